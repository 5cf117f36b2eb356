//! Everything known about one machine at one instant. Rules read this and nothing else.

pub mod admission;
pub(crate) mod aws_auth_change;
pub mod branch_pods;
pub mod by_image;
pub mod by_revision;
pub(crate) mod changed;
pub mod consolidated_early;
pub mod conversion;
mod deferred;
pub mod deletion_reason;
pub mod device_missing;
pub(crate) mod drift_at_once;
pub mod emptied_early;
pub mod extended;
pub mod failing_agent;
pub mod failing_round;
pub mod finding;
pub mod flapping;
pub mod held_drain;
pub mod judging;
pub mod karpenter_line;
pub mod left_taint;
mod logged_agent;
pub mod memory_overhead;
pub mod missing_driver;
pub mod missing_mesh;
pub mod node_image;
pub mod other_family;
mod out_of_service;
pub(crate) mod pod_requests;
pub mod pool_wait;
pub mod port_held;
mod reboot;
pub mod refilled_drain;
pub mod refused_pool;
pub mod refused_volume;
pub mod rejected_pods;
pub(crate) mod reserved_drift;
mod role;
pub mod stage;
pub(crate) mod static_drift;
pub mod tagged_twice;
pub mod taints;
pub mod thresholds;
pub mod timeout;
mod unanswered;
pub mod undersized_nodes;
pub mod unnamed_reason;
pub mod unplaced;
pub mod unstarted_pods;
pub mod vanished;
pub mod wait;
pub mod witness;

use crate::api::{Blame, Named, NamedUid, NodeDiagnosisSpec, ObjectRef, Stage};
use crate::case::judging::Judging;
use crate::case::stage::{Inert, Symptom, Wait};
use crate::case::undersized_nodes::UndersizedNode;
use crate::case::unplaced::{Lack, Unplaced};
use crate::cluster_state::at_launch::AtLaunch;
use crate::cluster_state::class_members::{ClassMembers, DIMENSIONS};
use crate::cluster_state::logged::{OfMachine, SiblingLog};
use crate::cluster_state::{ClassFacts, ClusterState, Subject, diagnosis_name};
use crate::objects::input::Input;
use crate::objects::{Condition, Event, MachineLog, Meta, Node, NodeClaim, NodeClass, NodeClassRef, NodePool, Pod};
use crate::upstream::former_words::Words;
use crate::upstream::karpenter::{Karpenter, Provider, Version, is_karpenter};
use crate::upstream::provider_id::is_elsewhere;
use crate::upstream::text_hash::{HashKey, TextHash};
use crate::upstream::unplaced::{PlacementObstacle, is_refusal, nominated};
use chrono::{DateTime, SubsecRound, Utc};
use logs::fact::{Phase, Trouble};
use readers::userdata::UserData;

/// One machine at one instant: its objects, the stage it waits at, and the cluster around it.
#[derive(Debug)]
pub struct Case<'w> {
    pub now: DateTime<Utc>,
    pub cluster: &'w ClusterState,
    pub claim: Option<&'w NodeClaim>,
    pub node: Option<&'w Node>,
    pool: Option<AtLaunch<'w, NodePool>>,
    class: Option<AtLaunch<'w, ClassFacts>>,
    pub wait: Wait,
    subject: About<'w>,
}

/// The object that a case is about.
#[derive(Debug, Clone, Copy)]
struct About<'w> {
    api_version: &'w str,
    kind: &'w str,
    meta: &'w Meta,
}

impl<'w> Case<'w> {
    /// Every case of the cluster: machines first, each kind in the order of names.
    pub fn all(judging: Judging<'w>) -> impl Iterator<Item = Self> {
        let cluster = judging.cluster;
        let claims = cluster.claims().filter_map(move |claim| Self::of_claim(judging, claim));
        let nodes = cluster.nodes().filter_map(move |node| Self::of_node(judging, node));
        let others = cluster.classes_and_pools().filter_map(move |subject| Self::of(judging, &subject));
        let logged = cluster.instances().filter_map(move |subject| Self::of(judging, &subject));
        claims.chain(nodes).chain(others).chain(logged)
    }

    /// The case of a subject that waits at a stage; `None` where it does not wait, or does not exist.
    pub fn of(judging: Judging<'w>, subject: &Subject) -> Option<Self> {
        let cluster = judging.cluster;
        match subject {
            Subject::Claim(name) => Self::of_claim(judging, cluster.claim(name)?),
            Subject::Node(name) => Self::of_node(judging, cluster.node(name)?),
            Subject::Pool(name) => Self::of_pool(judging, cluster.pool(name)?),
            Subject::Class(kind, name) => Self::of_class(judging, cluster.class(kind, name)?),
            Subject::Instance(name) => Self::of_instance(judging, cluster.log(name)?),
            Subject::Karpenter(name) => {
                Self::of_karpenter(judging, cluster.karpenter().filter(|own| *own.metadata.name == **name)?)
            }
        }
    }

    fn of_pool(judging: Judging<'w>, pool: &'w NodePool) -> Option<Self> {
        let Judging { cluster, now, thresholds } = judging;
        if cluster.is_left_behind(&pool.api_version) {
            return None;
        }
        let class = class_of(cluster, &pool.spec.template.spec.node_class_ref);
        let events: Vec<_> = cluster.claim_events_of_pool(pool.name()).collect();
        let is_refused = events.iter().any(|event| pool_wait::is_refused_launch(event));
        let waited_for_since = if is_refused { waited_for_since(cluster, pool) } else { None };
        let claims = cluster.claims_of_pool(pool.name()).collect();
        let history = pool_wait::History { events, claims, waited_for_since };
        let lacking = lacking_in(cluster, pool, class.map(|c| &c.class)).map(|(unplaced, _)| unplaced);
        let unplaced = unplaced_in(cluster, pool, class.map(|c| &c.class)).chain(lacking);
        let unplaced = unplaced.chain(uncounted_in(cluster, pool));
        let wait = pool_wait::pool_wait(judging, pool, class.map(|c| &c.class), &history, unplaced)
            .or_else(|| unserved_wait(judging, pool, class))
            .or_else(|| refused_claims_wait(judging, pool))
            .or_else(|| deferred::wait(judging, pool, class.map(|c| &c.class)))
            .or_else(|| pool_wait::inert_wait(pool, is_inert(cluster, pool, class)?, thresholds))
            .or_else(|| karpenter_line::wait(judging, pool))
            .or_else(|| static_drift::wait(judging, pool))
            .or_else(|| reserved_drift::wait(judging, pool, class.map(|c| &c.class)))
            .or_else(|| drift_at_once::wait(judging, pool))
            .or_else(|| emptied_early::wait(judging, pool))
            .or_else(|| consolidated_early::wait(judging, pool))
            .or_else(|| vanished::wait(judging, pool))
            .or_else(|| port_held::wait(judging, pool))
            .or_else(|| {
                let oldest = ignored_in(cluster, pool).min_by_key(|pod| pod.metadata.creation_timestamp)?;
                pool_wait::ignored_wait(oldest, thresholds)
            })
            .or_else(|| {
                let first = undersized_nodes_in(cluster, pool).min_by_key(|undersized| undersized.since)?;
                pool_wait::undersized_node_wait(first.pod, first.since, thresholds)
            })
            .or_else(|| refused_pool::wait(judging, pool))
            .or_else(|| {
                // A node class that is not ready has the diagnosis.
                let is_of_class = class.is_some_and(|c| unready_class_wait(judging, &c.class).is_some());
                if is_of_class { None } else { failing_round::wait(judging, pool) }
            })?;
        let subject = About { api_version: "karpenter.sh/v1", kind: "NodePool", meta: &pool.metadata };
        let (pool, class) = (Some(AtLaunch::Present(pool)), class.map(AtLaunch::Present));
        Some(Self { now, cluster, claim: None, node: None, pool, class, wait, subject })
    }

    fn of_class(judging: Judging<'w>, facts: &'w ClassFacts) -> Option<Self> {
        let Judging { cluster, now, thresholds } = judging;
        let class = &facts.class;
        if cluster.is_left_behind(&class.api_version) {
            return None;
        }
        let is_used = cluster.claims_of_class(&class.kind, class.name()).next().is_some();
        let may_be_used = is_used || cluster.missing(Input::NodeClaims).is_some();
        let leaving = stage::leaving_class_wait(class, may_be_used, thresholds);
        let is_leaving = leaving.is_some();
        let wait = leaving.or_else(|| unready_class_wait(judging, class))?;
        let pool = cluster.pools().find(|p| {
            let reference = &p.spec.template.spec.node_class_ref;
            reference.kind == class.kind && *reference.name == *class.name() && !p.is_switched_off()
        });
        // A class that nobody launches from holds nothing up.
        if pool.is_none() && cluster.missing(Input::NodePools).is_none() && !is_used && !is_leaving {
            return None;
        }
        let subject = About { api_version: &class.api_version, kind: &class.kind, meta: &class.metadata };
        let (pool, class) = (pool.map(AtLaunch::Present), Some(AtLaunch::Present(facts)));
        Some(Self { now, cluster, claim: None, node: None, pool, class, wait, subject })
    }

    fn of_instance(judging: Judging<'w>, log: &'w MachineLog) -> Option<Self> {
        let wait = stage::logged_wait(judging, log)?;
        let subject = About { api_version: "", kind: "Instance", meta: &log.metadata };
        let Judging { cluster, now, .. } = judging;
        Some(Self { now, cluster, claim: None, node: None, pool: None, class: None, wait, subject })
    }

    fn of_karpenter(judging: Judging<'w>, karpenter: &'w Karpenter) -> Option<Self> {
        let wait = conversion::wait(judging)?;
        let subject = About { api_version: "apps/v1", kind: "Deployment", meta: &karpenter.metadata };
        let Judging { cluster, now, .. } = judging;
        Some(Self { now, cluster, claim: None, node: None, pool: None, class: None, wait, subject })
    }

    fn of_node(judging: Judging<'w>, node: &'w Node) -> Option<Self> {
        let Judging { cluster, now, thresholds } = judging;
        let wait = in_service_wait(judging, node, stage::node_wait(node, thresholds))?;
        if cluster.claim_of_node(node).is_some() {
            return None;
        }
        let pool = node.metadata.label("karpenter.sh/nodepool");
        let pool = pool.and_then(|pool| cluster.pool_at_launch(pool, &node.metadata));
        // Where the NodePool was not read, the Node itself says its class.
        // Source: karpenter-provider-aws v1.14.1 pkg/apis/v1/labels.go `LabelNodeClass`.
        let labelled = || NodeClassRef {
            group: "karpenter.k8s.aws".into(),
            kind: "EC2NodeClass".into(),
            name: node.metadata.label("karpenter.k8s.aws/ec2nodeclass").unwrap_or_default().into(),
        };
        let of_pool = pool.and_then(AtLaunch::known).map(|pool| &pool.spec.template.spec.node_class_ref);
        let class = of_pool.cloned().unwrap_or_else(labelled);
        let class = cluster.class_at_launch(&class, &node.metadata);
        let subject = About { api_version: "v1", kind: "Node", meta: &node.metadata };
        Some(Self { now, cluster, claim: None, node: Some(node), pool, class, wait, subject })
    }

    fn of_claim(judging: Judging<'w>, claim: &'w NodeClaim) -> Option<Self> {
        let Judging { cluster, now, thresholds } = judging;
        if cluster.is_left_behind(&claim.api_version) {
            return None;
        }
        let nodes = cluster.nodes_of(claim);
        let changed = |c: &Condition| cluster.reason_changed_at(claim.name(), &c.type_, &c.reason);
        let in_service = |wait| match nodes.first() {
            Some(node) if claim.is_true("Initialized") && claim.metadata.deletion_timestamp.is_none() => {
                in_service_wait(judging, node, wait)
            }
            _ => wait,
        };
        let vanished = || {
            let gone = nodes.is_empty() && cluster.missing(Input::Nodes).is_none();
            if gone { stage::vanished_wait(judging, claim) } else { None }
        };
        let of_claim = || {
            stage::unlaunched_leaving_wait(judging, claim)
                .or_else(|| stage::claim_wait(claim, &nodes, changed, thresholds))
        };
        let wait = in_service(vanished().or_else(of_claim))?;
        let (pool, class) = launched_with(cluster, claim);
        let subject = About { api_version: "karpenter.sh/v1", kind: "NodeClaim", meta: &claim.metadata };
        Some(Self { now, cluster, claim: Some(claim), node: nodes.first().copied(), pool, class, wait, subject })
    }

    /// The case of a machine that goes away too and has waited as long as this one had to, for what waits for it.
    pub fn of_leaving(&self, claim: &'w NodeClaim) -> Option<Self> {
        let cluster = self.cluster;
        let wait = stage::terminate_wait(claim, claim.metadata.deletion_timestamp?, self.wait.proven)?;
        let (pool, class) = launched_with(cluster, claim);
        let node = cluster.nodes_of(claim).first().copied();
        let subject = About { api_version: "karpenter.sh/v1", kind: "NodeClaim", meta: &claim.metadata };
        let case = Self { now: self.now, cluster, claim: Some(claim), node, pool, class, wait, subject };
        (case.now - case.wait.since >= case.wait.proven).then_some(case)
    }

    /// The objects that the diagnosis is about, by name and UID, so that it outlives them.
    pub fn spec(&self) -> NodeDiagnosisSpec {
        let named = |meta: &Meta| NamedUid { name: meta.name.to_string(), uid: meta.uid.to_string() };
        let label = |key: &str| self.node.and_then(|n| n.metadata.label(key)).map(str::to_owned);
        let pool = self
            .claim
            .and_then(|c| c.node_pool().map(str::to_owned))
            .or_else(|| self.pool.map(|pool| pool.any().name().to_owned()))
            .or_else(|| label("karpenter.sh/nodepool"));
        let class = self
            .claim
            .map(|c| c.spec.node_class_ref.name.to_string())
            .or_else(|| self.class.map(|class| class.any().class.name().to_owned()));
        let About { api_version, kind, meta } = self.subject;
        NodeDiagnosisSpec {
            subject: ObjectRef {
                api_version: api_version.to_owned(),
                kind: kind.to_owned(),
                name: meta.name.to_string(),
                uid: meta.uid.to_string(),
            },
            node_claim: self.claim.map(|c| named(&c.metadata)).or_else(|| self.owning_claim()),
            node: self.node.map(|n| named(&n.metadata)),
            node_pool: pool.map(|name| Named { name }),
            node_class: class.filter(|name| !name.is_empty()).map(|name| Named { name }),
        }
    }

    /// The NodeClaim of a Node where none was read: Karpenter makes it the Node's owner.
    /// Source: core pkg/controllers/nodeclaim/lifecycle/registration.go `syncNode` (v1.14.1).
    fn owning_claim(&self) -> Option<NamedUid> {
        let node = self.node?;
        self.cluster.missing(Input::NodeClaims)?;
        let owner = node.metadata.owner_references.iter().find(|owner| *owner.kind == *"NodeClaim")?;
        Some(NamedUid { name: owner.name.to_string(), uid: String::new() })
    }

    /// The names that this Karpenter version uses for NodePools, NodeClaims and node classes.
    pub fn words(&self) -> Words {
        let mut pools = self.cluster.pools().peekable();
        let former = pools.peek().is_some() && pools.all(NodePool::is_provisioner)
            || self.pool.is_some_and(|pool| pool.any().is_provisioner())
            || self.class.is_some_and(|class| class.any().class.is_node_template())
            || self.node.is_some_and(|node| node.is_of_provisioner() && self.claim.is_none());
        match self.claim {
            Some(claim) if claim.is_node() => Words::BeforeMachines,
            Some(claim) if claim.is_machine() => Words::BeforeNodePools,
            None if former && self.cluster.is_before_machines() => Words::BeforeMachines,
            None if former => Words::BeforeNodePools,
            _ => Words::Present,
        }
    }

    /// The name that a NodeDiagnosis of this case has.
    pub fn diagnosis_name(&self) -> String {
        diagnosis_name(self.subject.kind, &self.subject.meta.name)
    }

    pub fn stage(&self) -> Stage {
        self.wait.stage
    }

    /// `Kind/name` of the subject, for evidence.
    pub fn subject(&self) -> String {
        format!("{}/{}", self.subject.kind, self.subject.meta.name)
    }

    /// The NodePool, where there is one: as it was when the machine was launched. `None` too where it was changed
    /// since, and what it said is not known.
    pub fn pool(&self) -> Option<&'w NodePool> {
        self.cluster.asks(Input::NodePools);
        self.pool.and_then(AtLaunch::known)
    }

    /// The NodePool as the next machines are made from it.
    pub fn pool_of_next(&self) -> Option<&'w NodePool> {
        self.cluster.asks(Input::NodePools);
        self.pool.and_then(|pool| self.cluster.pool(pool.any().name()))
    }

    fn class_facts(&self) -> Option<&'w ClassFacts> {
        self.cluster.asks(Input::NodeClasses);
        self.class.and_then(AtLaunch::known)
    }

    /// The node class, for its name: the machines of one that was changed are still compared.
    fn class_by_name(&self) -> Option<&'w NodeClass> {
        self.cluster.asks(Input::NodeClasses);
        self.class.map(|class| &class.any().class)
    }

    /// Pods that wait for a machine of the NodePool, and that Karpenter makes none for. They do not tell why a node class
    /// is not Ready.
    pub fn unplaced(&self) -> impl Iterator<Item = Unplaced<'w>> + use<'w> {
        let (cluster, class, now) = (self.cluster, self.class(), self.now);
        let pool = self.pool().filter(|_| self.subject.kind == "NodePool");
        pool.into_iter().flat_map(move |pool| unplaced_in(cluster, pool, class)).filter(move |u| u.waits(now))
    }

    /// Pods that wait for a machine of the NodePool, and for whose spread Karpenter counts no zone.
    pub fn uncounted(&self) -> impl Iterator<Item = Unplaced<'w>> + use<'w> {
        let (cluster, now) = (self.cluster, self.now);
        self.pool().into_iter().flat_map(move |pool| uncounted_in(cluster, pool)).filter(move |u| u.waits(now))
    }

    /// Pods that Karpenter leaves alone for a label that they ask for, and that would else have a machine of the
    /// NodePool.
    pub fn ignored(&self) -> impl Iterator<Item = &'w Pod> + use<'w> {
        let cluster = self.cluster;
        self.pool().into_iter().flat_map(move |pool| ignored_in(cluster, pool))
    }

    /// Pods that only this NodePool of reserved capacity admits, and that Karpenter puts off without a word.
    pub fn deferred(&self) -> impl Iterator<Item = &'w Pod> + use<'w> {
        let (cluster, class) = (self.cluster, self.class());
        self.pool().into_iter().flat_map(move |pool| deferred::deferred_in(cluster, pool, class))
    }

    /// Machines of the NodePool that were made for a pod, and are too small for it.
    pub fn undersized_nodes(&self) -> impl Iterator<Item = UndersizedNode<'w>> + use<'w> {
        let cluster = self.cluster;
        self.pool().into_iter().flat_map(move |pool| undersized_nodes_in(cluster, pool))
    }

    /// Pods for which no machine of the NodePool is large enough, though not for their own size, and what it lacks.
    pub fn lacking(&self) -> impl Iterator<Item = (Unplaced<'w>, Lack<'w>)> + use<'w> {
        let (cluster, class, now) = (self.cluster, self.class(), self.now);
        self.pool()
            .into_iter()
            .flat_map(move |pool| lacking_in(cluster, pool, class))
            .filter(move |(u, _)| u.waits(now))
    }

    /// The node class object, EC2 or other: as it was when the machine was launched. `None` too where it was changed
    /// since, and what it said is not known.
    pub fn class(&self) -> Option<&'w NodeClass> {
        self.class_facts().map(|c| &c.class)
    }

    /// `EC2NodeClass/default`.
    pub fn class_object(&self) -> Option<String> {
        self.class().map(|c| format!("{}/{}", c.kind, c.name()))
    }

    /// A field of the node class, where it is known by name at least: whatever a machine is made of refers to it.
    pub fn class_field(&self, field: &str) -> Option<Blame> {
        if let Some(class) = self.class() {
            return Some(Blame::class(class).field(field));
        }
        let of_claim = self.claim.map(|claim| &claim.spec.node_class_ref);
        let of_pool = || self.pool().map(|pool| &pool.spec.template.spec.node_class_ref);
        let reference = of_claim.or_else(of_pool).filter(|reference| !reference.name.is_empty())?;
        let api_version = format!("{}/v1", reference.group);
        Some(Blame::object(&api_version, &reference.kind, &reference.name).field(field))
    }

    /// The class's user data, where one of these words stands in it.
    pub fn user_data_naming(&self, words: &[&str]) -> Option<Blame> {
        let class = self.class()?;
        let text = class.spec.user_data.as_deref()?;
        words.iter().any(|word| text.contains(word)).then(|| Blame::class(class).field("spec.userData"))
    }

    /// The class's user data as the machine reads it, with its text.
    pub fn user_data(&self) -> Option<(&'w UserData, &'w str)> {
        let facts = self.class_facts()?;
        Some((facts.user_data.as_ref()?, facts.class.spec.user_data.as_deref()?))
    }

    /// The Karpenter that runs here.
    pub fn karpenter(&self) -> Option<&'w Karpenter> {
        self.cluster.karpenter()
    }

    /// The EC2 instance.
    pub fn instance_id(&self) -> Option<&'w str> {
        let logged =
            || Some(&*self.subject.meta.name).filter(|name| self.subject.kind == "Instance" && name.starts_with("i-"));
        self.claim.and_then(|c| c.instance_id()).or_else(|| self.node.and_then(|n| n.instance_id())).or_else(logged)
    }

    /// The EKS cluster's name, from Karpenter's configuration.
    pub fn cluster_name(&self) -> Option<&'w str> {
        self.karpenter().and_then(|k| k.cluster_name.as_deref()).filter(|name| !name.is_empty())
    }

    /// Whether the tag of Karpenter's image is a version of the AWS provider or of the core.
    pub fn provider(&self) -> Provider {
        match self.claim.map(|c| c.spec.node_class_ref.kind.as_str()) {
            Some("EC2NodeClass") => Provider::Aws,
            Some(_) => Provider::Core,
            None => self.class().map_or(Provider::Aws, |c| if c.is_ec2() { Provider::Aws } else { Provider::Core }),
        }
    }

    /// Whether the machine is of another cloud than AWS.
    pub fn is_elsewhere(&self) -> bool {
        let claims = self.claim.map(|claim| &*claim.status.provider_id);
        claims.into_iter().chain(self.node.map(|node| &*node.spec.provider_id)).any(is_elsewhere)
    }

    /// Whether an input applies to this node. EKS Auto Mode authorizes its nodes only by an access entry and runs its
    /// Karpenter outside the cluster.
    /// Source: Amazon EKS user guide, Create a Node Class for Amazon EKS, "Create node class access entry".
    pub fn goes_by(&self, input: Input) -> bool {
        !matches!(input, Input::AwsAuth | Input::AccessReviews | Input::Deployments | Input::ServiceAccounts)
            || !self.class().is_some_and(NodeClass::is_auto_mode)
    }

    /// Other NodeClaims of the same node class.
    pub fn siblings(&self) -> impl Iterator<Item = &'w NodeClaim> + '_ {
        let own = self.claim.map(NodeClaim::name);
        self.class_by_name()
            .into_iter()
            .flat_map(|c| self.cluster.claims_of_class(&c.kind, c.name()))
            .filter(move |c| Some(c.name()) != own)
    }

    /// The siblings that are registered.
    pub fn joined_siblings(&self) -> impl Iterator<Item = &'w NodeClaim> + '_ {
        let own = self.claim.map(NodeClaim::name);
        self.class_by_name()
            .into_iter()
            .flat_map(|c| self.cluster.joined_of_class(&c.kind, c.name()))
            .filter(move |c| Some(c.name()) != own)
    }

    /// The machines of the same node class, counted.
    pub fn class_members(&self) -> Option<&'w ClassMembers> {
        self.class_by_name().and_then(|c| self.cluster.class_members(&c.kind, c.name()))
    }

    /// The siblings that are registered and that Karpenter will replace for another image.
    pub fn image_drifted_siblings(&self) -> impl Iterator<Item = &'w NodeClaim> + '_ {
        let own = self.claim.map(NodeClaim::name);
        let names = self.class_members().into_iter().flat_map(ClassMembers::image_drifted);
        names.filter_map(|name| self.cluster.claim(name)).filter(move |c| Some(c.name()) != own)
    }

    /// The siblings that are not initialized and may have begun to wait by this time.
    pub fn unfinished_siblings(&self, by: DateTime<Utc>) -> impl Iterator<Item = &'w NodeClaim> + '_ {
        let own = self.claim.map(NodeClaim::name);
        let names = self.class_members().into_iter().flat_map(move |class_members| class_members.unfinished(by));
        names.filter_map(|name| self.cluster.claim(name)).filter(move |c| Some(c.name()) != own)
    }

    /// Whether a sibling registered after this time: whatever all machines of the class share works.
    pub fn sibling_joined_since(&self, time: DateTime<Utc>) -> bool {
        let own = self.claim.map(NodeClaim::name);
        self.class_members()
            .is_some_and(|class_members| class_members.joined_after(time).any(|name| Some(name.as_str()) != own))
    }

    /// Whether the node class says what it said when the machine was launched.
    pub fn class_is_as_at_launch(&self) -> bool {
        let launched = self.claim.and_then(|claim| TextHash::of_class(&claim.metadata));
        launched.is_some() && launched == self.class().and_then(|class| TextHash::of_class(&class.metadata))
    }

    /// A sibling that registered and was made from the same text of the node class.
    /// Source: karpenter-provider-aws v1.14.1 pkg/apis/v1/labels.go `AnnotationEC2NodeClassHash`.
    pub fn same_spec_sibling_joined(&self) -> Option<&'w NodeClaim> {
        self.same_spec_siblings_joined().next()
    }

    /// All such siblings.
    pub fn same_spec_siblings_joined(&self) -> impl Iterator<Item = &'w NodeClaim> + '_ {
        let (name, text) = (self.claim.map(NodeClaim::name), self.class_hash());
        // After an edit of the class there are many siblings, and none of this text.
        let names = self.class_members().into_iter().flat_map(move |class_members| class_members.joined_of_text(&text));
        names.filter_map(|name| self.cluster.claim(name)).filter(move |c| Some(c.name()) != name)
    }

    /// The hash of the node class at launch.
    pub fn class_hash(&self) -> HashKey {
        self.claim.map(|claim| HashKey::of_class(&claim.metadata)).unwrap_or_default()
    }

    /// A sibling that registered with this value of one of the dimensions.
    pub fn sibling_joined_with(&self, what: &str, value: &str) -> Option<&'w NodeClaim> {
        let dimension = DIMENSIONS.iter().find(|dimension| dimension.what == what)?;
        let any = self.class_members().is_some_and(|class_members| class_members.joined_with(what, value) > 0);
        any.then(|| self.joined_siblings().find(|c| dimension.value(c) == Some(value)))?
    }

    /// Events about the claim and its Node.
    pub fn events(&self) -> impl Iterator<Item = &'w Event> + '_ {
        let claim = self.claim.into_iter().flat_map(|c| self.cluster.events("NodeClaim", c.name()));
        let node = self.node.into_iter().flat_map(|n| self.cluster.events("Node", n.name()));
        claim.chain(node)
    }

    /// The newest event of this reason about the claim or its Node.
    pub fn event(&self, reason: &str) -> Option<&'w Event> {
        self.events().filter(|e| e.reason == reason).max_by_key(|e| e.last_seen())
    }

    /// Pods on the Node.
    pub fn pods(&self) -> impl Iterator<Item = &'w Pod> + '_ {
        self.node.into_iter().flat_map(|n| self.cluster.pods_on(n.name()))
    }

    /// The logs of this node, or of the NodePool, node class or instance that the case is about.
    pub fn logs(&self) -> Vec<OfMachine<'w>> {
        match (self.claim, self.node, self.subject.kind) {
            (None, None, "Instance") => {
                let log = self.cluster.log(&self.subject.meta.name);
                log.map(|log| OfMachine { log, is_named: true }).into_iter().collect()
            }
            (None, None, kind) if kind.ends_with("NodeClass") => self.cluster.logs_of_class(&self.subject.meta.name),
            (None, None, "NodePool") => self.cluster.logs_of_pool(&self.subject.meta.name),
            (None, None, _) => Vec::new(),
            (claim, node, _) => {
                let mut logs = self.cluster.logs_of(claim, node);
                let of_class = claim.is_some_and(|claim| claim.waits_for_class() || claim.waits_for_profile());
                if let Some(class) = self.class().filter(|_| of_class) {
                    logs.extend(self.cluster.logs_of_class(class.name()));
                }
                logs
            }
        }
    }

    /// The logs of comparable nodes, if this node's own log reports no problem: it may not have got as far. With them,
    /// the last phase that its own log shows.
    pub fn logs_beside(&self) -> (Option<Phase>, Vec<SiblingLog<'w>>) {
        let Some(claim) = self.claim else { return Default::default() };
        let own = self.logs();
        let complains = |of_machine: &OfMachine<'_>| {
            let journey = &of_machine.log.journey;
            !journey.identity.is_no_machine() && journey.complains()
        };
        if own.iter().any(complains) {
            return Default::default();
        }
        let passed = own.iter().filter_map(|own| Some(own.log.journey.came_to()?.0)).max();
        (passed, self.cluster.logs_beside(claim))
    }

    /// Whether it has waited for longer than is normal: before that, what still fails may only be starting.
    pub fn is_overdue(&self) -> bool {
        self.now - self.wait.since >= self.wait.patience
    }

    /// When the machine began to wait, for sentences: a duration would be wrong a minute after it was written down.
    pub fn since(&self) -> String {
        timestamp(self.wait.since).to_string()
    }
}

/// `2026-01-15 11:58:00Z`, for sentences.
pub fn timestamp(at: DateTime<Utc>) -> impl std::fmt::Display {
    // A pattern would be parsed each time.
    std::fmt::from_fn(move |f| write!(f, "{}Z", at.trunc_subsecs(0).naive_utc()))
}

/// `7m 30s`, `2h 5m`, `3d 4h`: the two largest units.
pub fn duration(delta: chrono::TimeDelta) -> String {
    let seconds = delta.num_seconds().max(0);
    match (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0, s) => format!("{s}s"),
        (0, 0, m, 0) => format!("{m}m"),
        (0, 0, m, s) => format!("{m}m {s}s"),
        (0, h, 0, _) => format!("{h}h"),
        (0, h, m, _) => format!("{h}h {m}m"),
        (d, 0, ..) => format!("{d}d"),
        (d, h, ..) => format!("{d}d {h}h"),
    }
}

fn unplaced_in<'w>(
    cluster: &'w ClusterState,
    pool: &'w NodePool,
    class: Option<&'w NodeClass>,
) -> impl Iterator<Item = Unplaced<'w>> {
    let named = cluster.unplaced_in(pool.name()).map(|(event, refusal, pod)| Unplaced::named(event, refusal, pod));
    let unnamed = cluster.unplaced().filter_map(move |(event, pod)| {
        let reason = unnamed_reason::about(cluster, event, pod, pool)?;
        Some(Unplaced { event, refusal: reason.obstacle, pod: Some(pod), unnamed: Some(reason.part) })
    });
    let refused = cluster.unplaced();
    let passed_over = refused.map(|(event, pod)| Unplaced::named(event, PlacementObstacle::PassedOver, Some(pod)));
    named.chain(unnamed).chain(passed_over).filter(move |unplaced| {
        unplaced.unoffered_label(cluster, pool).is_some()
            || unplaced.skipped(cluster, pool).is_some()
            || unplaced.shows_fault(pool, class) && unplaced.is_for(pool)
    })
}

/// Pods for whose spread this Karpenter counts no zone, for they name the NodePool.
fn uncounted_in<'w>(cluster: &'w ClusterState, pool: &'w NodePool) -> impl Iterator<Item = Unplaced<'w>> {
    let forgets = cluster.karpenter().is_some_and(Karpenter::forgets_zones_of_named_pools);
    let refused = cluster.unplaced().filter(move |_| forgets);
    let all = refused.map(|(event, pod)| Unplaced::named(event, PlacementObstacle::PassedOver, Some(pod)));
    all.filter(move |unplaced| unplaced.counts_no_zone(pool))
}

/// Pods that Karpenter leaves alone for a label that they ask for, and that would else have a machine of the NodePool.
fn ignored_in<'w>(cluster: &'w ClusterState, pool: &'w NodePool) -> impl Iterator<Item = &'w Pod> {
    // Up to 0.32 the label of a Provisioner counted.
    let ignores = cluster.karpenter().is_some_and(|karpenter| karpenter.version >= Version(0, 33, 0));
    waiting_pods(cluster).filter(move |pod| {
        let label = unplaced::restricted_label(pod).filter(|_| ignores);
        label.is_some_and(|label| unnamed_reason::is_meant_without(cluster, pod, label, pool))
    })
}

/// For each waiting pod, a node of the NodePool that Karpenter launched for it and that is too small.
fn undersized_nodes_in<'w>(cluster: &'w ClusterState, pool: &'w NodePool) -> impl Iterator<Item = UndersizedNode<'w>> {
    waiting_pods(cluster).filter_map(move |pod| undersized_nodes::undersized_node(cluster, pool, pod))
}

/// Pods that wait for a Node; Karpenter's own wait for another's.
fn waiting_pods(cluster: &ClusterState) -> impl Iterator<Item = &Pod> {
    let waits = |pod: &&Pod| pod.unscheduled().is_some() && pod.metadata.deletion_timestamp.is_none();
    cluster.pods_without_node().filter(waits).filter(|pod| !is_karpenter(pod))
}

/// Since when a pod waits that the NodePool admits, and that Karpenter refuses for nothing that is the pod's own.
fn waited_for_since(cluster: &ClusterState, pool: &NodePool) -> Option<DateTime<Utc>> {
    let is_asked_for = |waiting: &&Pod| {
        let told = cluster.events_about_pod(waiting).filter(|event| nominated(event).is_some());
        match told.max_by_key(|event| event.last_seen()).and_then(nominated) {
            // Karpenter meant a NodeClaim of this NodePool for the pod, and deleted it. In between it may refuse the
            // pod, because the offerings that failed count as unavailable for a while.
            Some(claim) => cluster.claim(claim).is_none() && cluster.pool_of_claim_name(claim) == Some(pool.name()),
            None => !cluster.events_about_pod(waiting).any(is_refusal),
        }
    };
    let waiting = failing_round::held_up(cluster, pool).filter(is_asked_for);
    waiting.filter_map(|pod| pod.metadata.creation_timestamp).min()
}

/// Pods for which no machine of the NodePool is large enough, though not for their own size.
fn lacking_in<'w>(
    cluster: &'w ClusterState,
    pool: &'w NodePool,
    class: Option<&'w NodeClass>,
) -> impl Iterator<Item = (Unplaced<'w>, Lack<'w>)> {
    let named = cluster.unplaced_in(pool.name()).map(|(event, refusal, pod)| Unplaced::named(event, refusal, pod));
    named.filter_map(move |unplaced| Some((unplaced, unplaced.lacks(cluster, pool, class)?)))
}

/// The wait of a Node in service, including problems that its own conditions do not show. A flapping Node comes first:
/// no single NotReady period shows it.
fn in_service_wait(judging: Judging, node: &Node, wait: Option<Wait>) -> Option<Wait> {
    let Judging { cluster, thresholds, .. } = judging;
    let is_turn = |wait: &Wait| wait.stage == Stage::Ready && wait.symptom == Symptom::NotPassed && !node.is_ready();
    if wait.as_ref().is_none_or(is_turn)
        && let Some(by_turns) = flapping::by_turns_wait(judging, node)
    {
        return Some(by_turns);
    }
    wait.or_else(|| unstarted_pods::refused_pods_wait(judging, node))
        .or_else(|| flapping::killed_agent_wait(judging, node))
        .or_else(|| failing_agent::wait(judging, node))
        .or_else(|| device_missing::wait(judging, node))
        .or_else(|| rejected_pods::wait(judging, node))
        .or_else(|| other_family::wait(judging, node))
        .or_else(|| refused_volume::wait(judging, node))
        .or_else(|| refilled_drain::wait(judging, node))
        .or_else(|| held_drain::wait(judging, node))
        .or_else(|| stage::stopped_wait(cluster.claim_of_node(node)?, node, thresholds))
        .or_else(|| left_taint::wait(judging, node))
        .or_else(|| missing_driver::wait(judging, node))
        .or_else(|| missing_mesh::wait(judging, node))
        .or_else(|| by_image::wait(judging, node))
        .or_else(|| by_revision::wait(judging, node))
        .or_else(|| branch_pods::wait(judging, node))
        .or_else(|| tagged_twice::wait(judging, node))
        .or_else(|| logged_agent::wait(judging, node))
}

fn unserved_wait(judging: Judging, pool: &NodePool, class: Option<&ClassFacts>) -> Option<Wait> {
    let Judging { cluster, thresholds, .. } = judging;
    // EKS runs Auto Mode's Karpenter out of sight.
    let stopped = cluster.karpenter()?.stopped.as_ref()?;
    if class.is_none_or(|c| c.class.is_auto_mode()) {
        return None;
    }
    // A NodeClaim that nobody launches has the diagnosis, and so has a class that nobody looks at.
    let told = cluster.claims_of_pool(pool.name()).any(|claim| !claim.is_true("Initialized"));
    if told || class.is_some_and(|c| pool_wait::class_wait(&c.class, thresholds).is_some()) {
        return None;
    }
    // Where Karpenter's own pods wait for Nodes that are not Ready, the Nodes have the diagnosis.
    let waits_itself = cluster.pods_without_node().any(|pod| is_karpenter(pod) && pod.unscheduled().is_some());
    if waits_itself && cluster.nodes().all(|node| !node.is_ready()) {
        return None;
    }
    let waiting = waiting_pods(cluster).filter(|pod| unplaced::admits(pool, pod));
    pool_wait::unserved_wait(stopped, waiting.min_by_key(|pod| pod.metadata.creation_timestamp)?, thresholds)
}

/// A node class that is not Ready, or that lacks its instance profile.
fn unready_class_wait(judging: Judging, class: &NodeClass) -> Option<Wait> {
    pool_wait::class_wait(class, judging.thresholds).or_else(|| profileless_wait(judging, class))
}

/// A node class without the instance profile that Karpenter makes for it, and whose log says why: before v0.37 it has
/// no condition that tells.
fn profileless_wait(judging: Judging, class: &NodeClass) -> Option<Wait> {
    let Judging { cluster, now, thresholds } = judging;
    let is_made = class.spec.role.is_some() && class.spec.instance_profile.is_none();
    if !is_made || class.status.instance_profile.is_some() || class.condition("Ready").is_some() {
        return None;
    }
    let logs = cluster.logs_of_class(class.name());
    let open = logs.iter().flat_map(|of_class| of_class.log.journey.open());
    let told = open.filter(|fact| fact.trouble == Trouble::AwsRefuses && fact.blocks == Phase::Booted && fact.lasts());
    let (first, last) = told.filter_map(|fact| fact.first.time.zip(fact.last.time)).max_by_key(|(_, last)| *last)?;
    let is_old = now.signed_duration_since(last) > pool_wait::STILL_ASKED_FOR;
    (!is_old).then(|| pool_wait::profileless_wait(class, first, thresholds))
}

/// The wait of a NodePool whose pods get no NodeClaim: a webhook that Karpenter no longer serves refuses all of them.
fn refused_claims_wait(judging: Judging, pool: &NodePool) -> Option<Wait> {
    let Judging { cluster, thresholds, .. } = judging;
    admission::refuses_claims(cluster)?;
    let waiting = waiting_pods(cluster).filter(|pod| unplaced::admits(pool, pod));
    let oldest = waiting.min_by_key(|pod| pod.metadata.creation_timestamp)?;
    let since = oldest.metadata.creation_timestamp;
    let made = cluster.claims().any(|claim| claim.metadata.creation_timestamp >= since);
    if made { None } else { pool_wait::refused_claims_wait(oldest, thresholds) }
}

/// Why Karpenter works on the NodePool for no pod whatever.
fn is_inert(cluster: &ClusterState, pool: &NodePool, class: Option<&ClassFacts>) -> Option<Inert> {
    let ec2 = pool.spec.template.spec.node_class_ref.group == *"karpenter.k8s.aws";
    let off = || cluster.karpenter().is_some_and(|karpenter| karpenter.gate("StaticCapacity") == Some(false));
    if pool.spec.replicas.is_some_and(|replicas| replicas > 0) && ec2 && off() {
        let made = cluster.claims_of_pool(pool.name()).next().is_some();
        return (!made).then_some(Inert::StaticCapacityOff);
    }
    // Karpenter writes conditions within seconds, whatever they say.
    let touched = |pool: &NodePool| !pool.status.conditions.is_empty();
    let group = |pool: &'_ NodePool| pool.spec.template.spec.node_class_ref.group.clone();
    let of_class = class.is_some_and(|facts| !facts.class.status.conditions.is_empty());
    if touched(pool) || of_class || pool.metadata.deletion_timestamp.is_some() || group(pool).is_empty() {
        return None;
    }
    let (alike, others): (Vec<&NodePool>, Vec<&NodePool>) =
        cluster.pools().partition(|other| group(other) == group(pool));
    let others_are_served = others.into_iter().any(touched) && !alike.into_iter().any(touched);
    // Nothing but a pod that waits shows that this dump has what controllers write.
    let auto_mode = group(pool) == *"eks.amazonaws.com" && !cluster.pools().any(touched);
    if auto_mode && cluster.pods_without_node().any(|pod| pod.unscheduled().is_some() && unplaced::admits(pool, pod)) {
        return Some(Inert::AutoModeOff);
    }
    // Its own Karpenter may only not run.
    let own = ec2 && (cluster.karpenter().is_some() || cluster.missing(Input::Deployments).is_some());
    (others_are_served && !own).then_some(Inert::ClassNotServed)
}

/// The present node class: what the next machines are made from.
fn class_of<'w>(cluster: &'w ClusterState, reference: &NodeClassRef) -> Option<&'w ClassFacts> {
    cluster.class(&reference.kind, &reference.name)
}

/// NodePool and node class of a machine.
fn launched_with<'w>(
    cluster: &'w ClusterState,
    claim: &NodeClaim,
) -> (Option<AtLaunch<'w, NodePool>>, Option<AtLaunch<'w, ClassFacts>>) {
    let pool = claim.node_pool().and_then(|pool| cluster.pool_at_launch(pool, &claim.metadata));
    (pool, cluster.class_at_launch(&claim.spec.node_class_ref, &claim.metadata))
}

#[cfg(test)]
mod tests {
    use super::{Case, Judging, timestamp};
    use crate::case::stage::Thresholds;
    use crate::cluster_state::{Availability, ClusterState, Subject};
    use crate::objects::input::{Input, Object};
    use chrono::{DateTime, Utc};

    #[test]
    fn a_node_names_its_claim_and_its_class_where_neither_claims_nor_nodepools_were_read() {
        let now: DateTime<Utc> = "2026-01-15T12:00:00Z".parse().unwrap();
        let mut state = ClusterState::default();
        let node = serde_json::json!({
            "metadata": {
                "name": "a", "creationTimestamp": "2026-01-15T11:00:00Z",
                "labels": { "karpenter.sh/nodepool": "general", "karpenter.k8s.aws/ec2nodeclass": "default" },
                "ownerReferences": [{ "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": "general-7xk2p" }],
            },
            "status": { "conditions": [{ "type": "Ready", "status": "False" }] },
        });
        let class = serde_json::json!({
            "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": { "name": "default" },
        });
        state.apply(Object::from_value(Input::Nodes, node).unwrap(), now);
        state.apply(Object::from_value(Input::NodeClasses, class).unwrap(), now);
        let spec = |state: &ClusterState| {
            let thresholds = Thresholds::default();
            Case::of(Judging::new(state, now, &thresholds), &Subject::Node("a".to_owned())).unwrap().spec()
        };
        let told = spec(&state);
        assert_eq!(told.node_claim.unwrap().name, "general-7xk2p");
        assert_eq!(told.node_pool.unwrap().name, "general");
        assert_eq!(told.node_class.unwrap().name, "default");
        // Where NodeClaims were read, and this one is not among them, it is gone.
        state.mark(Input::NodeClaims, Availability::Read);
        assert_eq!(spec(&state).node_claim, None);
    }

    #[test]
    fn an_instant_is_written_as_its_pattern_says() {
        for at in
            ["2026-01-15T11:58:00Z", "2026-01-15T11:58:00.999999999Z", "2016-12-31T23:59:60.5Z", "0042-01-01T00:00:00Z"]
        {
            let at: DateTime<Utc> = at.parse().unwrap();
            assert_eq!(timestamp(at).to_string(), at.format("%Y-%m-%d %H:%M:%SZ").to_string());
        }
        let far = [DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC];
        assert!(far.iter().all(|at| timestamp(*at).to_string() == at.format("%Y-%m-%d %H:%M:%SZ").to_string()));
    }
}
