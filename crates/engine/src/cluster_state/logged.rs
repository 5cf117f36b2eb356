//! Which log is which machine's.

use super::memo::{Derived, Memo};
use super::{ClusterState, Subject};
use crate::objects::input::Input;
use crate::objects::intern::Interned;
use crate::objects::{MachineLog, Node, NodeClaim};
use crate::upstream::provider_id::host_elsewhere;
use crate::upstream::text_hash::HashKey;
use chrono::{DateTime, Utc};
use logs::fact::MachineNames;
use logs::journey::Journey;
use logs::pool_of_claim;
use logs::table::runs_in_pods;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// A log, and what ties it to the machine.
#[derive(Debug, Clone, Copy)]
pub struct OfMachine<'w> {
    pub log: &'w MachineLog,
    /// It names the machine. Else it names none that is known, and the machine is the only one that it can be of.
    pub is_named: bool,
}

/// A log of another machine, of which the same is expected.
#[derive(Debug, Clone, Copy)]
pub struct SiblingLog<'w> {
    pub log: &'w MachineLog,
    /// Its instance, on another cloud its host name. `None` where the log names none that is known: it may even be of
    /// the machine itself.
    pub of: Option<&'w str>,
}

impl ClusterState {
    /// The logs of a machine.
    pub fn logs_of(&self, claim: Option<&NodeClaim>, node: Option<&Node>) -> Vec<OfMachine<'_>> {
        self.asks(Input::Logs);
        if self.logs.is_empty() {
            return Vec::new();
        }
        let own = self.identity(claim, node);
        let named = self.logs_named(&self.logs_by_name(), &own);
        let named = named.into_iter().map(|(_, log)| OfMachine { log, is_named: true });
        // Logs without an owner belong to the one machine that waits, if only one waits.
        let waiting = self.waiting();
        let taken = waiting.strays.iter().filter(|_| waiting.sole.as_ref() == Some(&own));
        let taken = taken.filter_map(|log| self.logs.get(log)).map(|log| OfMachine { log, is_named: false });
        named.chain(taken).collect()
    }

    /// Karpenter's log lines about a node class.
    pub fn logs_of_class(&self, name: &str) -> Vec<OfMachine<'_>> {
        self.asks(Input::Logs);
        let of_class = self.logs.values().filter(|log| log.journey.identity.classes.contains(name));
        of_class.map(|log| OfMachine { log, is_named: true }).collect()
    }

    /// Karpenter's log lines about a NodePool.
    pub fn logs_of_pool(&self, name: &str) -> Vec<OfMachine<'_>> {
        self.asks(Input::Logs);
        let of_pool = self.logs.values().filter(|log| log.journey.identity.pools.contains(name));
        of_pool.map(|log| OfMachine { log, is_named: true }).collect()
    }

    /// Karpenter's log lines about NodeClaims of this NodePool that are gone.
    pub fn logs_of_gone_claims(&self, pool: &str) -> Vec<OfMachine<'_>> {
        self.asks(Input::Logs);
        let is_gone = |claim: &String| pool_of_claim(claim) == Some(pool) && !self.claims.contains_key(claim.as_str());
        let identity = |log: &MachineLog| {
            let claims = &log.journey.identity.claims;
            !claims.is_empty() && claims.iter().all(is_gone)
        };
        self.logs.values().filter(|log| identity(log)).map(|log| OfMachine { log, is_named: true }).collect()
    }

    /// Log lines that components write about themselves.
    pub fn logs_of_components(&self) -> impl Iterator<Item = &MachineLog> {
        self.logs().filter(|log| !log.journey.identity.components.is_empty())
    }

    /// The logs of the unfinished machines that were made as this one was and came as far, and those that can only be
    /// of one of them.
    pub fn logs_beside(&self, claim: &NodeClaim) -> Vec<SiblingLog<'_>> {
        self.asks(Input::Logs);
        if self.logs.is_empty() {
            return Vec::new();
        }
        let (waiting, made) = (self.waiting(), Making::of(claim));
        // A later machine of the same making is in service: what keeps this one is its own.
        if waiting.finished.get(&made).is_some_and(|newest| *newest >= claim.metadata.creation_timestamp) {
            return Vec::new();
        }
        let fares = Fares::of(claim);
        let of_others = waiting.logged.get(&fares).into_iter().flatten().filter(|(other, _)| **other != *claim.name());
        let called = |other: &Interned| {
            let claim = self.claims.get(other)?;
            claim.instance_id().or_else(|| host_elsewhere(&claim.status.provider_id))
        };
        let of_others = of_others.map(|(other, log)| (log, called(other)));
        let is_any = waiting.sole.is_none() && waiting.alike.as_ref() == Some(&fares);
        let strays = waiting.strays.iter().filter(|_| is_any).map(|log| (log, None));
        of_others.chain(strays).filter_map(|(log, of)| Some(SiblingLog { log: self.logs.get(log)?, of })).collect()
    }

    pub fn logs(&self) -> impl Iterator<Item = &MachineLog> {
        self.asks(Input::Logs);
        self.logs.values()
    }

    /// The log of a machine that no object tells of.
    pub fn log(&self, name: &str) -> Option<&MachineLog> {
        self.asks(Input::Logs);
        self.logs.get(name)
    }

    /// Forgets what was logged of a machine or a node class that is well.
    pub fn forget_logs(&mut self, subject: &Subject) {
        if self.logs.is_empty() {
            return;
        }
        let own = match subject {
            Subject::Claim(name) => {
                let claim = self.claims.get(name.as_str()).map(AsRef::as_ref);
                let node = claim.and_then(|claim| self.nodes_of(claim).first().copied());
                let mut own = self.identity(claim, node);
                own.claims.insert(name.clone());
                // Others have its role, too.
                own.roles.clear();
                own
            }
            Subject::Node(name) => self.identity(None, self.nodes.get(name.as_str()).map(AsRef::as_ref)),
            Subject::Class(_, name) => MachineNames { classes: [name.clone()].into(), ..MachineNames::default() },
            Subject::Pool(name) => MachineNames { pools: [name.clone()].into(), ..MachineNames::default() },
            Subject::Instance(_) | Subject::Karpenter(_) => return,
        };
        self.logs.retain(|_, log| !log.journey.identity.meets(&own));
        self.derived = Derived::default();
    }

    /// Those that a component's log speaks of.
    pub(super) fn subjects_of_log(&self, log: &MachineLog) -> Vec<Subject> {
        let identity = &log.journey.identity;
        let claims = identity.claims.iter().map(|name| Subject::Claim(name.clone()));
        let kinds = |name: &String| {
            let named = self.classes.iter().filter(|(_, of_kind)| of_kind.contains_key(name));
            named.map(|(kind, _)| Subject::Class(kind.clone(), name.clone())).collect::<Vec<_>>()
        };
        let pods =
            self.pods.iter().filter(|(_, pods)| pods.values().any(|p| identity.pods.contains(&*p.metadata.name)));
        let of_pods = pods.filter_map(|(node, _)| self.node(node)).flat_map(|node| self.subjects_of_node(node));
        // What Karpenter says of itself may be why no NodePool gets a machine.
        let of_all = self.pools.keys().filter(|_| !identity.components.is_empty());
        let pools = identity.pools.iter().cloned().chain(of_all.map(ToString::to_string)).map(Subject::Pool);
        claims.chain(identity.classes.iter().flat_map(kinds)).chain(pools).chain(of_pods).collect()
    }

    /// The machines that are known by their logs only: those of a user who has no dump. Where there is one, what is not
    /// in it belongs to somebody else.
    pub fn instances(&self) -> impl Iterator<Item = Subject> + '_ {
        let alone = self.claims.is_empty() && self.nodes.is_empty();
        let is_machine = |log: &MachineLog| log.journey.identity.is_no_group() && !log.journey.is_only_named();
        let names = self.logs.iter().filter(move |(_, log)| alone && is_machine(log));
        names.map(|(name, _)| Subject::Instance(name.to_string()))
    }

    /// The logs that are of no machine here.
    pub fn foreign_logs(&self) -> impl Iterator<Item = &MachineLog> {
        let is_known = !self.claims.is_empty() || !self.nodes.is_empty();
        let waiting = self.waiting();
        let foreign =
            move |name: &Interned| is_known && !waiting.owned.contains(name) && !waiting.strays.contains(name);
        // Other holders of a role, such as people, do not count, and what a component says about itself is about no
        // machine. A log without a machine's name that an agent wrote counts for this agent.
        let is_agents = |journey: &Journey| {
            !journey.last_words.is_empty() || journey.facts.iter().any(|fact| runs_in_pods(&fact.program))
        };
        let is_machine = move |log: &MachineLog| {
            let identity = &log.journey.identity;
            identity.roles.is_empty()
                && identity.components.is_empty()
                && !log.journey.is_told_by_operator()
                && (!identity.is_empty() || !is_agents(&log.journey))
        };
        self.logs.iter().filter(move |(name, log)| foreign(name) && is_machine(log)).map(|(_, log)| log)
    }

    fn logs_by_name(&self) -> Arc<LogsByName> {
        static LOGS: Memo<LogsByName> = Memo::new("logs by what they call their machine");
        self.once(&LOGS, "", || {
            let mut by_name = LogsByName::new();
            for (log_name, log) in &self.logs {
                for key in keys(&log.journey.identity) {
                    by_name.entry(key.to_owned()).or_default().insert(log_name.clone());
                }
            }
            by_name
        })
    }

    /// The logs that name this machine, in order.
    fn logs_named(&self, logs: &LogsByName, machine: &MachineNames) -> Vec<(&Interned, &MachineLog)> {
        let found: BTreeSet<&Interned> = keys(machine).filter_map(|key| logs.get(key)).flatten().collect();
        let found = found.into_iter().filter_map(|name| self.logs.get_key_value(name));
        found.filter(|(_, log)| log.journey.identity.meets(machine)).collect()
    }

    fn waiting(&self) -> Arc<Waiting> {
        static WAITING: Memo<Waiting> = Memo::new("machines that an unowned log may belong to");
        self.once(&WAITING, "", || self.work_out_waiting())
    }

    fn work_out_waiting(&self) -> Waiting {
        let logs = self.logs_by_name();
        let mut waiting = Waiting::default();
        let (mut unfinished, mut are_alike) = (Vec::new(), true);
        for claim in self.claims.values() {
            let identity = self.identity(Some(claim), self.nodes_of(claim).first().copied());
            let named = self.logs_named(&logs, &identity);
            if claim.is_true("Initialized") {
                let newest = waiting.finished.entry(Making::of(claim)).or_default();
                *newest = (*newest).max(claim.metadata.creation_timestamp);
            } else {
                let fares = Fares::of(claim);
                are_alike &= *waiting.alike.get_or_insert_with(|| fares.clone()) == fares;
                if !named.is_empty() {
                    let named = named.iter().map(|(log, _)| (claim.metadata.name.clone(), (*log).clone()));
                    waiting.logged.entry(fares).or_default().extend(named);
                }
                unfinished.push(identity);
            }
            waiting.owned.extend(named.into_iter().map(|(log, _)| log.clone()));
        }
        for node in self.nodes.values() {
            let named = self.logs_named(&logs, &self.identity(None, Some(node)));
            waiting.owned.extend(named.into_iter().map(|(log, _)| log.clone()));
        }
        let is_class = |name: &String| self.classes.values().any(|of_kind| of_kind.contains_key(name));
        let is_pool = |name: &String| self.pools.contains_key(name.as_str());
        let of_group = self.logs.iter().filter(|(_, log)| {
            let identity = &log.journey.identity;
            identity.classes.iter().any(is_class) || identity.pools.iter().any(is_pool)
        });
        waiting.owned.extend(of_group.map(|(name, _)| name.clone()));
        // If the machines were launched differently, an unowned log cannot be assigned.
        if !are_alike {
            waiting.alike = None;
            return waiting;
        }
        let strays = self.logs.iter().filter(|(name, _)| !waiting.owned.contains(*name));
        let is_anybodys = |log: &MachineLog| unfinished.iter().any(|one| may_be(&log.journey.identity, one));
        waiting.strays = strays.filter(|(_, log)| is_anybodys(log)).map(|(name, _)| name.clone()).collect();
        waiting.sole = <[MachineNames; 1]>::try_from(unfinished).ok().map(|[one]| one);
        waiting
    }

    /// What the machine is called.
    fn identity(&self, claim: Option<&NodeClaim>, node: Option<&Node>) -> MachineNames {
        let mut identity = MachineNames::default();
        let instance = claim.and_then(NodeClaim::instance_id).or_else(|| node.and_then(Node::instance_id));
        identity.instances.extend(instance.map(str::to_owned));
        identity.claims.extend(claim.map(|claim| claim.name().to_owned()));
        let provider_ids = [claim.map(|claim| &*claim.status.provider_id), node.map(|node| &*node.spec.provider_id)];
        let elsewhere = provider_ids.into_iter().flatten().filter_map(host_elsewhere);
        // Host names are in lower case; Azure writes the rest of the path now so, now so.
        identity.hosts.extend(elsewhere.map(str::to_ascii_lowercase));
        if let Some(node) = node {
            identity.hosts.insert(node.name().to_owned());
            let is_name = |kind: &str| matches!(kind, "Hostname" | "InternalDNS");
            identity
                .hosts
                .extend(node.status.addresses.iter().filter(|a| is_name(&a.type_)).map(|a| a.address.to_string()));
            identity.pods.extend(self.pods_on(node.name()).map(|pod| pod.metadata.name.to_string()));
        }
        let class = claim.map(|claim| &claim.spec.node_class_ref);
        let class = class.and_then(|of| self.classes.get(&*of.kind)?.get(&*of.name));
        identity.roles.extend(class.and_then(|known| self.aws.role_of(&known.class)).map(str::to_owned));
        let told = instance.and_then(|id| self.aws.instance(id).known());
        identity.hosts.extend(told.and_then(|(told, _)| told.private_dns_name.clone()));
        identity
    }
}

/// The node class and the text of it that a claim was launched with.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Making {
    kind: Interned,
    class: Interned,
    text: HashKey,
}

impl Making {
    fn of(claim: &NodeClaim) -> Self {
        let class = &claim.spec.node_class_ref;
        Self { kind: class.kind.clone(), class: class.name.clone(), text: HashKey::of_class(&claim.metadata) }
    }
}

/// The node class text that a claim was launched with, and the stage that it reached.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Fares {
    made: Making,
    is_launched: bool,
    is_registered: bool,
}

impl Fares {
    fn of(claim: &NodeClaim) -> Self {
        let (is_launched, is_registered) = (claim.is_true("Launched"), claim.is_true("Registered"));
        Self { made: Making::of(claim), is_launched, is_registered }
    }
}

/// The machines that an unowned log may belong to. It is computed once for all machines that ask.
#[derive(Debug, Default)]
struct Waiting {
    /// Logs of a machine, node class or NodePool that the state has.
    owned: BTreeSet<Interned>,
    /// Unowned logs that may belong to a waiting machine, if all waiting machines are alike.
    strays: BTreeSet<Interned>,
    /// The shared text and stage of all waiting machines, if they are alike.
    alike: Option<Fares>,
    /// The waiting machine, if there is only one.
    sole: Option<MachineNames>,
    /// The claim and the log of each waiting machine that has a log, grouped by how far the claim came.
    logged: BTreeMap<Fares, Vec<(Interned, Interned)>>,
    /// The creation time of the newest initialized claim.
    finished: BTreeMap<Making, Option<DateTime<Utc>>>,
}

/// Logs by the names that they give their machine. Hosts are keyed by their first label, because the rest may be
/// missing.
type LogsByName = HashMap<String, BTreeSet<Interned>>;

fn keys(names: &MachineNames) -> impl Iterator<Item = &str> {
    let hosts = names.hosts.iter().map(|host| host.split_once('.').map_or(host.as_str(), |(label, _)| label));
    let others = [&names.instances, &names.claims, &names.pods, &names.classes, &names.roles, &names.pools];
    let others = others.into_iter().chain([&names.components]).flatten();
    hosts.chain(others.map(String::as_str))
}

/// Whether nothing says that a log is of another machine.
fn may_be(log: &MachineNames, machine: &MachineNames) -> bool {
    let other = |ours: bool, theirs: bool| !ours && !theirs;
    log.claims.is_empty()
        && log.pods.is_empty()
        && log.is_no_group()
        && !machine.is_empty()
        && !other(log.instances.is_empty(), machine.instances.is_empty())
        && !other(log.hosts.is_empty(), machine.hosts.is_empty())
}
