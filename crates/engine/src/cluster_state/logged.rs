//! Which log is which machine's.

use super::{ClusterState, Subject};
use crate::objects::input::Input;
use crate::objects::{MachineLog, Node, NodeClaim};
use crate::upstream::karpenter::CLASS_HASH;
use logs::fact::MachineNames;

/// A log, and what ties it to the machine.
#[derive(Debug, Clone, Copy)]
pub struct OfMachine<'w> {
    pub log: &'w MachineLog,
    /// It names the machine. Else it names none that is known, and the machine is the only one that it can be of.
    pub is_named: bool,
}

/// A log of another machine, of which the same is expected.
#[derive(Debug, Clone, Copy)]
pub struct Beside<'w> {
    pub log: &'w MachineLog,
    /// Its instance. `None` where the log names none that is known: it may even be of the machine itself.
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
        let named = |log: &MachineLog| log.journey.identity.meets(&own);
        let is_sole = self.sole_unfinished() == own;
        let of = |log| {
            let is_named = named(log);
            (is_named || is_sole && may_be(&log.journey.identity, &own) && !self.is_of_any(log))
                .then_some(OfMachine { log, is_named })
        };
        self.logs.values().filter_map(of).collect()
    }

    /// What Karpenter says of a node class.
    pub fn logs_of_class(&self, name: &str) -> Vec<OfMachine<'_>> {
        self.asks(Input::Logs);
        let of_class = self.logs.values().filter(|log| log.journey.identity.classes.contains(name));
        of_class.map(|log| OfMachine { log, is_named: true }).collect()
    }

    /// The logs of the unfinished machines that were made as this one was and came as far, and those that can only be
    /// of one of them.
    pub fn logs_beside(&self, claim: &NodeClaim) -> Vec<Beside<'_>> {
        self.asks(Input::Logs);
        if self.logs.is_empty() || self.is_outdone(claim) {
            return Vec::new();
        }
        let unfinished: Vec<&NodeClaim> =
            self.claims.values().map(AsRef::as_ref).filter(|c| is_unfinished(c)).collect();
        let fares_alike = |other: &&&NodeClaim| is_made_alike(claim, other) && is_as_far(claim, other);
        let mut beside = Vec::new();
        for sibling in unfinished.iter().filter(fares_alike).filter(|other| other.name() != claim.name()) {
            let own = self.identity(Some(sibling), self.nodes_of(sibling).first().copied());
            let named = self.logs.values().filter(|log| log.journey.identity.meets(&own));
            beside.extend(named.map(|log| Beside { log, of: sibling.instance_id() }));
        }
        let open = self.open_to();
        let strays = self.logs.values().filter(|log| !self.is_of_any(log));
        let strays = strays.filter(|log| open.len() > 1 && open.iter().any(|one| may_be(&log.journey.identity, one)));
        if unfinished.iter().all(|other| fares_alike(&other)) {
            beside.extend(strays.map(|log| Beside { log, of: None }));
        }
        beside
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
                own
            }
            Subject::Node(name) => self.identity(None, self.nodes.get(name.as_str()).map(AsRef::as_ref)),
            Subject::Class(_, name) => MachineNames { classes: [name.clone()].into(), ..MachineNames::default() },
            Subject::Pool(_) | Subject::Instance(_) => return,
        };
        self.logs.retain(|_, log| !log.journey.identity.meets(&own));
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
        claims.chain(identity.classes.iter().flat_map(kinds)).chain(of_pods).collect()
    }

    /// The machines that are known by their logs only: those of a user who has no dump. Where there is one, what is not
    /// in it belongs to somebody else.
    pub fn instances(&self) -> impl Iterator<Item = Subject> + '_ {
        let alone = self.claims.is_empty() && self.nodes.is_empty();
        let is_machine = |log: &MachineLog| log.journey.identity.classes.is_empty();
        let names = self.logs.iter().filter(move |(_, log)| alone && is_machine(log));
        names.map(|(name, _)| Subject::Instance(name.to_string()))
    }

    /// The logs that are of no machine here.
    pub fn foreign_logs(&self) -> impl Iterator<Item = &MachineLog> {
        let open = self.open_to();
        let is_known = !self.claims.is_empty() || !self.nodes.is_empty();
        self.logs.values().filter(move |log| {
            let identity = &log.journey.identity;
            is_known && !self.is_of_any(log) && !open.iter().any(|one| may_be(identity, one))
        })
    }

    fn is_of_any(&self, log: &MachineLog) -> bool {
        let meets = |identity: MachineNames| log.journey.identity.meets(&identity);
        let is_class = |name: &String| self.classes.values().any(|of_kind| of_kind.contains_key(name));
        log.journey.identity.classes.iter().any(is_class)
            || self
                .claims
                .values()
                .any(|claim| meets(self.identity(Some(claim), self.nodes_of(claim).first().copied())))
            || self.nodes.values().any(|node| meets(self.identity(None, Some(node))))
    }

    /// What the machine is called.
    fn identity(&self, claim: Option<&NodeClaim>, node: Option<&Node>) -> MachineNames {
        let mut identity = MachineNames::default();
        let instance = claim.and_then(NodeClaim::instance_id).or_else(|| node.and_then(Node::instance_id));
        identity.instances.extend(instance.map(str::to_owned));
        identity.claims.extend(claim.map(|claim| claim.name().to_owned()));
        if let Some(node) = node {
            identity.hosts.insert(node.name().to_owned());
            let is_name = |kind: &str| matches!(kind, "Hostname" | "InternalDNS");
            identity
                .hosts
                .extend(node.status.addresses.iter().filter(|a| is_name(&a.type_)).map(|a| a.address.to_string()));
            identity.pods.extend(self.pods_on(node.name()).map(|pod| pod.metadata.name.to_string()));
        }
        let told = instance.and_then(|id| self.aws.instance(id).known());
        identity.hosts.extend(told.and_then(|(told, _)| told.private_dns_name.clone()));
        identity
    }

    /// The one machine that waits for anything; nobody where there are several, or none.
    fn sole_unfinished(&self) -> MachineNames {
        match <[MachineNames; 1]>::try_from(self.open_to()) {
            Ok([one]) => one,
            Err(_) => MachineNames::default(),
        }
    }

    /// The machines that wait for anything, where the log of one is as good as that of another: nobody where they
    /// were made differently.
    fn open_to(&self) -> Vec<MachineNames> {
        let unfinished: Vec<&NodeClaim> =
            self.claims.values().map(AsRef::as_ref).filter(|c| is_unfinished(c)).collect();
        let Some(first) = unfinished.first() else { return Vec::new() };
        let are_alike = unfinished.iter().all(|other| is_made_alike(first, other) && is_as_far(first, other));
        let unfinished = unfinished.iter().filter(|_| are_alike);
        unfinished.map(|claim| self.identity(Some(claim), self.nodes_of(claim).first().copied())).collect()
    }

    /// Whether a later machine of the same making is in service: what keeps this one is its own.
    fn is_outdone(&self, claim: &NodeClaim) -> bool {
        let made = |claim: &NodeClaim| claim.metadata.creation_timestamp;
        self.claims
            .values()
            .any(|other| !is_unfinished(other) && is_made_alike(claim, other) && made(other) >= made(claim))
    }
}

fn is_unfinished(claim: &NodeClaim) -> bool {
    !claim.is_true("Initialized")
}

/// Whether both are of one text of one node class.
fn is_made_alike(one: &NodeClaim, other: &NodeClaim) -> bool {
    let class = |claim: &NodeClaim| {
        let of = &claim.spec.node_class_ref;
        (of.kind.to_string(), of.name.to_string(), claim.metadata.annotation(CLASS_HASH).map(str::to_owned))
    };
    class(one) == class(other)
}

fn is_as_far(one: &NodeClaim, other: &NodeClaim) -> bool {
    ["Launched", "Registered"].iter().all(|step| one.is_true(step) == other.is_true(step))
}

/// Whether nothing says that a log is of another machine.
fn may_be(log: &MachineNames, machine: &MachineNames) -> bool {
    let other = |ours: bool, theirs: bool| !ours && !theirs;
    log.claims.is_empty()
        && log.pods.is_empty()
        && log.classes.is_empty()
        && !machine.is_empty()
        && !other(log.instances.is_empty(), machine.instances.is_empty())
        && !other(log.hosts.is_empty(), machine.hosts.is_empty())
}
