//! The machine would join, but it boots for longer than Karpenter waits.

use crate::case::duration;
use crate::cluster_state::memo::Memo;
use crate::explain::instance_questions::ask_the_instance;
use crate::objects::{Node, NodeClaim};
use crate::rules::prelude::*;
use crate::upstream::karpenter::{REGISTRATION_TIMEOUT, UNREGISTERED_TAINT};
use chrono::TimeDelta;

rule! {
    cause: BootsTooSlowly,
    summary: "The node takes about as long to boot as Karpenter waits for it, or joins after that",
    stages: [Join, Register],
    reads: [NodeClaims, NodeClasses, Deployments, AwsObservations],
    versions: "all; the 15 minutes are a constant in every version",
}

/// Enough of a class to know how long its nodes take.
const SAMPLE: usize = 100;
/// From this point on, a boot comes near the timeout.
const SLOW: TimeDelta = TimeDelta::minutes(10);

fn check(case: &Case) -> Option<Opinion> {
    match (case.claim, case.node) {
        (Some(_), None) => like_its_siblings(case),
        (None, Some(node)) => too_late(case, node),
        _ => None,
    }
}

fn boot(claim: &NodeClaim) -> Option<TimeDelta> {
    Some(claim.true_since("Registered")? - claim.true_since("Launched")?)
}

/// The longest time that a joined node of the class took, and its name.
static SLOWEST: Memo<Option<(TimeDelta, String)>> = Memo::new("the slowest node of the class");

/// Joined nodes of the class took long, so this machine may still be on its way.
fn like_its_siblings(case: &Case) -> Option<Opinion> {
    let (class, of_class) = (case.class()?, case.class_object()?);
    // The machine in question has not joined, so it is not one of them.
    let slowest = case.cluster.once(&SLOWEST, &of_class, || {
        let took = case
            .cluster
            .joined_of_class(&class.kind, class.name())
            .take(SAMPLE)
            .filter_map(|c| Some((boot(c)?, c.name())));
        took.max().map(|(took, name)| (took, name.to_owned()))
    });
    let (took, slowest) = slowest.as_ref().as_ref()?;
    let took = *took;
    // As long as the others took, but short enough to leave time to read a verdict.
    let expected = case.wait.since.checked_add_signed(SLOW.min(took + TimeDelta::minutes(1)));
    if let Some(at) = expected.filter(|at| took >= case.wait.patience && case.now < *at) {
        return Some(Opinion::LookAgain(at));
    }
    if took < SLOW {
        // Nothing is known about this one.
        return None;
    }
    let summary = format!(
        "Nodes of {} take up to {} to boot and join, and Karpenter deletes a machine that has not joined after {}. \
         Most likely this one is too slow.",
        of_class.replacen('/', " ", 1),
        duration(took),
        duration(REGISTRATION_TIMEOUT)
    );
    let evidence = Evidence::new(
        format!("NodeClaim/{slowest}"),
        r#"status.conditions[?(@.type=="Registered")]"#,
        format!("{} after the launch", duration(took)),
        "a node of the same class that did join",
    );
    let field = if class.spec.user_data.is_some() { "spec.userData" } else { "spec.amiSelectorTerms" };
    let finding =
        advise(case, Finding::new(Confidence::Likely, summary, evidence)).blaming(Blame::class(class).field(field));
    ask_the_instance(case, finding).into()
}

/// A Karpenter node has joined, but its NodeClaim is gone.
fn too_late(case: &Case, node: &Node) -> Option<Opinion> {
    let of_karpenter = node.metadata.label("karpenter.sh/nodepool");
    let waits = node.taint(UNREGISTERED_TAINT).is_some() && !node.spec.provider_id.is_empty();
    let (Some(pool), true, None) = (of_karpenter, waits, case.cluster.missing(Input::NodeClaims)) else {
        return None;
    };
    let name = node.name();
    let summary = format!(
        "Node {name} of NodePool {pool} has joined, but its NodeClaim is gone. Most likely it booted for longer than \
         the {} after which Karpenter deletes a machine.",
        duration(REGISTRATION_TIMEOUT)
    );
    let finding = Finding::new(
        Confidence::Likely,
        summary,
        Evidence::new(
            format!("Node/{name}"),
            "spec.providerID",
            node.spec.provider_id.clone(),
            "no NodeClaim has this id",
        ),
    )
    .with(Evidence::new(
        format!("Node/{name}"),
        "metadata.labels['karpenter.sh/nodepool']",
        pool,
        "Karpenter launched this node",
    ))
    .blaming(Blame::object("v1", "Node", name));
    let finding = advise(case, finding).unknown(
        "Did the timeout delete the NodeClaim, or did someone delete it?",
        format!("kubectl get events -A --field-selector involvedObject.kind=NodeClaim | grep {pool}-"),
    );
    ask_the_instance(case, finding).into()
}

fn advise(case: &Case, finding: Finding) -> Finding {
    let console = |id| format!("aws ec2 get-console-output --latest --output text --instance-id {id}");
    finding.inspect("See what takes so long", case.instance_id().map(console)).fix(
        "Shorten the boot: put drivers, hardening and large images into the AMI instead of fetching them in user data. \
         You cannot change the 15 minutes.",
    )
}
