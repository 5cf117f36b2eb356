//! The machine would join, but boots for longer than Karpenter waits.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::finding::{Finding, Opinion};
use crate::case::{Case, duration};
use crate::cluster_state::memo::Memo;
use crate::objects::input::Input;
use crate::objects::{Node, NodeClaim};
use crate::rules::Rule;
use crate::rules::shared::instance_questions::ask_the_instance;
use crate::upstream::karpenter::{REGISTRATION_TIMEOUT, UNREGISTERED_TAINT};
use chrono::TimeDelta;

pub static RULE: Rule = Rule {
    cause: "BootsTooSlowly",
    summary: "The machine takes about as long to boot as Karpenter waits for it, or joins after that",
    stages: &[Stage::Join, Stage::Register],
    reads: &[Input::NodeClaims, Input::NodeClasses, Input::Deployments, Input::AwsObservations],
    lint: false,
    versions: "all; the 15 minutes are a constant in every version",
    page: include_str!("../../../pages/BootsTooSlowly.md"),
    check,
};

/// Enough of a class to know how long its machines take.
const SAMPLE: usize = 100;
/// From here on a boot comes near the timeout.
const SLOW: TimeDelta = TimeDelta::minutes(10);

fn check(case: &Case) -> Opinion {
    match (case.claim, case.node) {
        (Some(_), None) => like_its_siblings(case),
        (None, Some(node)) => too_late(case, node),
        _ => Opinion::Silent,
    }
}

fn boot(claim: &NodeClaim) -> Option<TimeDelta> {
    Some(claim.true_since("Registered")? - claim.true_since("Launched")?)
}

/// How long the slowest machine of the class took, of those that joined, and its name.
static SLOWEST: Memo<Option<(TimeDelta, String)>> = Memo::new("the slowest machine of the class");

/// Machines of the class that joined took long, so this one may only be on its way.
fn like_its_siblings(case: &Case) -> Opinion {
    let (Some(class), Some(of_class)) = (case.class(), case.class_object()) else { return Opinion::Silent };
    // Whoever asks has not joined, and is none of them.
    let slowest = case.cluster.once(&SLOWEST, &of_class, || {
        let took = case
            .cluster
            .joined_of_class(&class.kind, class.name())
            .take(SAMPLE)
            .filter_map(|c| Some((boot(c)?, c.name())));
        took.max().map(|(took, name)| (took, name.to_owned()))
    });
    let Some((took, slowest)) = slowest.as_ref() else { return Opinion::Silent };
    let took = *took;
    // As long as the others took, and no longer than leaves time to read a verdict.
    let expected = case.wait.since.checked_add_signed(SLOW.min(took + TimeDelta::minutes(1)));
    if let Some(at) = expected.filter(|at| took >= case.wait.patience && case.now < *at) {
        return Opinion::LookAgain(at);
    }
    if took < SLOW {
        // Of this one nothing was seen.
        return Opinion::Silent;
    }
    let summary = format!(
        "The machines of {} take up to {} to boot and join, and Karpenter deletes a machine that has not joined after {}: this one is most likely too slow.",
        of_class.replacen('/', " ", 1),
        duration(took),
        duration(REGISTRATION_TIMEOUT)
    );
    let evidence = Evidence::new(
        format!("NodeClaim/{slowest}"),
        r#"status.conditions[?(@.type=="Registered")]"#,
        format!("{} after the launch", duration(took)),
        "a machine of the same class that did join",
    );
    let field = if class.spec.user_data.is_some() { "spec.userData" } else { "spec.amiSelectorTerms" };
    let finding =
        advise(case, Finding::new(Confidence::Likely, summary, evidence)).blaming(Blame::class(class).field(field));
    ask_the_instance(case, finding).into()
}

/// A machine of Karpenter's has joined, and its NodeClaim is gone.
fn too_late(case: &Case, node: &Node) -> Opinion {
    let of_karpenter = node.metadata.label("karpenter.sh/nodepool");
    let waits = node.taint(UNREGISTERED_TAINT).is_some() && !node.spec.provider_id.is_empty();
    let (Some(pool), true, None) = (of_karpenter, waits, case.cluster.missing(Input::NodeClaims)) else {
        return Opinion::Silent;
    };
    let name = node.name();
    let summary = format!(
        "Node {name} of NodePool {pool} has joined, but its NodeClaim is gone: most likely the machine booted for longer than the {} after which Karpenter deletes it.",
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
        "Karpenter launched this machine",
    ))
    .blaming(Blame::object("v1", "Node", name));
    let finding = advise(case, finding).unknown(
        "Was the NodeClaim deleted by the timeout, or by somebody?",
        format!("kubectl get events -A --field-selector involvedObject.kind=NodeClaim | grep {pool}-"),
    );
    ask_the_instance(case, finding).into()
}

fn advise(case: &Case, finding: Finding) -> Finding {
    let console = |id| format!("aws ec2 get-console-output --latest --output text --instance-id {id}");
    finding.step(Risk::Inspect, "See what takes so long", case.instance_id().map(console)).fix("Shorten the boot: bake drivers, hardening and large images into the AMI instead of doing it in user data; there is no setting for the 15 minutes.")
}
