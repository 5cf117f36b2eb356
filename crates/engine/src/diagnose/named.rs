//! The diagnoses of one name: a machine, or all machines of a NodePool or a node class.

use super::survey::Survey;
use crate::api::NodeDiagnosis;
use crate::api::judged::About;
use crate::case::pool_wait;
use crate::cluster_state::{ClusterState, Subject};
use crate::objects::{Event, Node, NodeClaim};
use crate::upstream::former_words::{present_kind, present_resource};
use std::collections::{BTreeMap, BTreeSet};

impl Survey {
    /// Keeps the part about a NodeClaim, Node, NodePool, node class, instance id or providerID. `None` if nothing has
    /// this name. `KIND/NAME` works as in kubectl.
    pub fn of_name(mut self, cluster: &ClusterState, name: &str) -> Option<Self> {
        let mut subjects = subjects(cluster, name);
        // The reason why this machine ended is in the diagnosis of its NodePool, whether or not the NodeClaim still
        // exists.
        let series = series(cluster, name);
        if subjects.is_empty() {
            subjects.extend(series.clone());
        }
        if subjects.is_empty() {
            return None;
        }
        let machines: BTreeSet<&str> = subjects.iter().flat_map(|subject| machines(cluster, subject)).collect();
        self.judged.about = subjects.iter().map(|subject| about(cluster, subject, &self.diagnoses)).collect();
        self.diagnoses.retain(|diagnosis| {
            let of_series = series.as_ref().is_some_and(|pool| is_itself(diagnosis, pool));
            of_series || subjects.iter().any(|subject| concerns(diagnosis, subject))
        });
        self.judged.waiting.retain(|waiting| machines.contains(waiting.name.as_str()));
        if let Some(otherwise) = &mut self.judged.otherwise {
            otherwise.also_stuck.retain(|stuck| machines.contains(stuck.name.as_str()));
            otherwise.not_stuck.retain(|name| machines.contains(name.as_str()));
            if otherwise.also_stuck.is_empty() && otherwise.not_stuck.is_empty() {
                self.judged.otherwise = None;
            }
        }
        self.judged.stuck = self.diagnoses.len();
        Some(self)
    }
}

/// The subjects with this name: a machine first, otherwise NodePools and node classes.
fn subjects(cluster: &ClusterState, name: &str) -> Vec<Subject> {
    let (kind, named) = match name.split_once('/') {
        Some((kind, named)) if !kind.contains(':') && !named.contains('/') => {
            (Some(present_resource(&kind.to_ascii_lowercase()).to_owned()), named)
        }
        _ => (None, name.rsplit('/').next().unwrap_or(name)),
    };
    let may_be = |singular: &str, plural: &str| kind.as_deref().is_none_or(|kind| kind == singular || kind == plural);
    let of_node = |node: &Node| {
        cluster
            .claim_of_node(node)
            .map_or_else(|| Subject::Node(node.name().to_owned()), |claim| Subject::Claim(claim.name().to_owned()))
    };
    let claim = cluster
        .claim(named)
        .filter(|claim| may_be("nodeclaim", "nodeclaims") || claim.is_node() && may_be("node", "nodes"))
        .map(|claim| Subject::Claim(claim.name().to_owned()));
    let node = || cluster.node(named).filter(|_| may_be("node", "nodes")).map(of_node);
    let is_claims = |claim: &&NodeClaim| claim.instance_id() == Some(named) || claim.status.provider_id == *name;
    let is_nodes = |node: &&Node| node.instance_id() == Some(named) || node.spec.provider_id == *name;
    let of_instance = || {
        let claim = cluster.claims().find(is_claims).map(|claim| Subject::Claim(claim.name().to_owned()));
        claim.or_else(|| cluster.nodes().find(is_nodes).map(of_node)).filter(|_| kind.is_none())
    };
    if let Some(machine) = claim.or_else(node).or_else(of_instance) {
        return vec![machine];
    }
    let pool = cluster.pool(named).filter(|_| may_be("nodepool", "nodepools")).map(|_| Subject::Pool(named.to_owned()));
    let is_class = |kind: &str| may_be(&kind.to_ascii_lowercase(), &format!("{}es", kind.to_ascii_lowercase()));
    let classes = cluster.classes().filter(|facts| facts.class.name() == named && is_class(&facts.class.kind));
    let launching: Vec<Subject> = pool
        .into_iter()
        .chain(classes.map(|facts| Subject::Class(facts.class.kind.clone(), named.to_owned())))
        .collect();
    if !launching.is_empty() {
        return launching;
    }
    // `nodepool-general`, the name of its NodeDiagnosis, or a machine that is known only by its log, or Karpenter.
    let is_called = |subject: &Subject| {
        let (own, name) = subject.kind_and_name();
        subject.diagnosis_name() == named || kind.as_deref() == Some(&own.to_ascii_lowercase()) && name == named
    };
    cluster.classes_and_pools().chain(cluster.instances()).filter(is_called).collect()
}

/// The NodePool whose instances EC2 terminates one after the other, if the NodeClaim of this name is among them.
fn series(cluster: &ClusterState, name: &str) -> Option<Subject> {
    let claim = name.rsplit('/').next().unwrap_or(name);
    let pool = cluster.pool_of_claim_name(claim)?;
    let events: Vec<&Event> = cluster.claim_events_of_pool(pool).collect();
    let died = pool_wait::died_at_start(&events, cluster.claims_of_pool(pool));
    died.iter().any(|event| event.involved_object.name == claim).then(|| Subject::Pool(pool.to_owned()))
}

/// The names of the diagnoses of its machines.
fn machines<'c>(cluster: &'c ClusterState, subject: &'c Subject) -> Vec<&'c str> {
    match subject {
        Subject::Claim(name) | Subject::Node(name) | Subject::Instance(name) => vec![name],
        Subject::Pool(name) => cluster.claims_of_pool(name).map(NodeClaim::name).collect(),
        Subject::Class(kind, name) => cluster.claims_of_class(kind, name).map(NodeClaim::name).collect(),
        Subject::Karpenter(_) => Vec::new(),
    }
}

fn is_blamed(diagnosis: &NodeDiagnosis, (kind, name): (&str, &str)) -> bool {
    let blame = diagnosis.status.as_ref().and_then(|status| status.blame.as_ref());
    blame.is_some_and(|blame| (present_kind(&blame.kind), blame.name.as_str()) == (kind, name))
}

fn is_itself(diagnosis: &NodeDiagnosis, subject: &Subject) -> bool {
    let of = &diagnosis.spec.subject;
    // A Node that Karpenter created itself is listed as a NodeClaim: `cluster_state/old_machines.rs`.
    let is_old = matches!(subject, Subject::Claim(name) if of.kind == "Node" && of.name == *name);
    is_old || (present_kind(&of.kind), of.name.as_str()) == subject.kind_and_name()
}

/// Whether a diagnosis is about this subject or one of its machines, or names it as the object to change.
fn concerns(diagnosis: &NodeDiagnosis, subject: &Subject) -> bool {
    let (kind, name) = subject.kind_and_name();
    let spec = &diagnosis.spec;
    let is_machine = match subject {
        Subject::Claim(_) | Subject::Node(_) | Subject::Instance(_) | Subject::Karpenter(_) => false,
        Subject::Pool(_) => spec.node_pool.as_ref().is_some_and(|pool| pool.name == *name),
        Subject::Class(..) => spec.node_class.as_ref().is_some_and(|class| class.name == *name),
    };
    is_itself(diagnosis, subject)
        || is_machine
        || (!matches!(subject, Subject::Claim(_) | Subject::Node(_) | Subject::Instance(_))
            && is_blamed(diagnosis, (kind, name)))
}

fn about(cluster: &ClusterState, subject: &Subject, diagnoses: &[NodeDiagnosis]) -> About {
    let (kind, name) = subject.kind_and_name();
    let mut causes = BTreeMap::new();
    let concerned = || diagnoses.iter().filter(|diagnosis| concerns(diagnosis, subject));
    for status in concerned().filter_map(|diagnosis| diagnosis.status.as_ref()) {
        *causes.entry(status.cause.to_string()).or_insert(0) += 1;
    }
    let blamed = concerned().filter(|diagnosis| is_blamed(diagnosis, (kind, name))).count();
    let node_claims = machines(cluster, subject).len();
    About { kind: kind.to_owned(), name: name.to_owned(), node_claims, causes, blamed }
}
