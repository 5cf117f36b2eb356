//! The cloud controller deleted the Node, but the instance still exists.

use crate::cluster_state::memo::Memo;
use crate::explain::instance_questions::ask_the_instance;
use crate::facts::kubelet_without_node::others_wait;
use crate::objects::intern::Interned;
use crate::objects::{Event, NodeClaim};
use crate::rules::prelude::*;
use crate::upstream::node_events;
use chrono::TimeDelta;
use std::collections::BTreeSet;

rule! {
    cause: NodeDeletedByCloudController,
    summary: "The cloud controller deleted the Node because it did not find its instance, but the instance still runs",
    stages: [Join, Ready],
    reads: [Nodes, NodeClaims, NodeClasses, Events, Deployments, AwsObservations],
    versions: "all",
}

/// EC2 lists a new instance within seconds, as a rule.
const AT_ONCE: TimeDelta = TimeDelta::minutes(2);

fn check(case: &Case) -> Option<Opinion> {
    let (Some(claim), None) = (case.claim, case.node) else { return None };
    if case.stage() == Stage::Join {
        return before_registration(case, claim);
    }
    if case.wait.symptom != Symptom::NodeDeleted {
        return None;
    }
    let finding = Finding::new(
        Confidence::Likely,
        format!(
            "The cloud controller deleted Node {} at {} because it did not find its instance. NodeClaim {} still \
             exists, and so does the instance {} as far as Karpenter knows.",
            claim.status.node_name,
            case.since(),
            claim.name(),
            claim.instance_id().unwrap_or("of it")
        ),
        case.wait.evidence.clone(),
    )
    .blaming(Blame::object("karpenter.sh/v1", "NodeClaim", claim.name()));
    with_fix(case, claim, finding).into()
}

/// The names of the Nodes that NodeClaims have.
static NAMED: Memo<BTreeSet<Interned>> = Memo::new("the names of the Nodes that NodeClaims have");

/// The names of Nodes that do not exist and that the cloud controller deleted.
static DELETED: Memo<BTreeSet<String>> = Memo::new("Nodes that the cloud controller deleted");

/// The Node was deleted before Karpenter saw it: EC2 did not list the new instance yet.
///
/// Nodes of ended instances get the same event. It can only mean this machine if a kubelet started under this name
/// after the launch and right before the deletion.
fn before_registration(case: &Case, claim: &NodeClaim) -> Option<Opinion> {
    let launched = claim.true_since("Launched")?;
    let first = |e: &Event| e.first_timestamp.or(e.metadata.creation_timestamp).or(e.last_seen());
    let young = |name: &str, deleted: &Event| {
        let of_kubelet = case.cluster.events("Node", name).filter(|e| e.reporter() == "kubelet");
        let started = of_kubelet.filter_map(first).min().filter(|at| *at >= launched);
        started.zip(deleted.last_seen()).is_some_and(|(started, deleted)| deleted - started <= AT_ONCE)
    };
    let named = case.cluster.once(&NAMED, "", || case.cluster.claims().map(|c| c.status.node_name.clone()).collect());
    let others = |name: &str| claim.status.node_name != name && named.contains(name);
    let gone = case.cluster.once(&DELETED, "", || {
        let deleted = case.cluster.events_without_node().filter(|(_, event)| node_events::deletes_node(event));
        deleted.map(|(name, _)| name.to_owned()).collect()
    });
    let deleted: Vec<_> = gone
        .iter()
        .flat_map(|name| case.cluster.events("Node", name).map(move |event| (name.as_str(), event)))
        .filter(|(name, e)| node_events::deletes_node(e) && young(name, e) && !others(name))
        .collect();
    let own = deleted.iter().find(|(name, _)| claim.instance_id().is_some_and(|id| name.contains(id)));
    let &(name, event) = own.or(deleted.first())?;
    let rivals = deleted.len() > 1 || others_wait(case, event.last_seen());
    let finding = Finding::new(
        // The name does not tell the instance: by time and by elimination.
        if own.is_some() || !rivals { Confidence::Likely } else { Confidence::Possible },
        format!(
            "Node {name} joined after NodeClaim {} was launched, and the cloud controller deleted it at once because \
             it did not find its instance. The kubelet does not recreate it.",
            claim.name()
        ),
        Evidence::new(
            format!("Event/{}", event.metadata.name),
            "message",
            event.said(),
            "a kubelet started under this name after the launch, but there is no such Node any more",
        ),
    )
    .with(case.wait.evidence.clone())
    .blaming(Blame::object("karpenter.sh/v1", "NodeClaim", claim.name()));
    with_fix(case, claim, finding).into()
}

fn with_fix(case: &Case, claim: &NodeClaim, finding: Finding) -> Finding {
    let finding = finding
        .fix(
            "Delete the NodeClaim, because a running kubelet does not recreate its Node. Pods that still run on the \
             instance stop. If it happens again, check whether the Node's name is the instance's private DNS name and \
             whether the cluster role may call ec2:DescribeInstances.",
        )
        .destroy("Replace the machine", format!("kubectl delete nodeclaim {}", claim.name()));
    ask_the_instance(case, finding)
}
