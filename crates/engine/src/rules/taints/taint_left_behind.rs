//! A taint that somebody set for a while, to remove, replace or spare the Node, is still on it.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::finding::{Finding, Opinion};
use crate::case::left_taint::{DELETION_CANDIDATE, LeftTaint, Setter, left_taint};
use crate::case::stage::Symptom;
use crate::case::{Case, timestamp};
use crate::objects::Node;
use crate::objects::input::Input;
use crate::rules::Rule;
use crate::rules::shared::autoscaler::{Autoscaler, autoscaler};
use crate::rules::shared::commands;
use crate::rules::shared::taint_writer::naming_last_taint_writer;
use crate::upstream::karpenter::{DISRUPTED_TAINTS, Karpenter, Version};

pub static RULE: Rule = Rule {
    cause: "TaintLeftBehind",
    summary: "A taint that was set to remove, replace or spare the Node is still there, and nobody takes it off",
    stages: &[Stage::Ready],
    reads: &[Input::NodeClaims, Input::Deployments, Input::Pods],
    lint: false,
    versions: "all; cluster-autoscaler before 1.26 forgets cordoned Nodes",
    page: include_str!("../../../pages/TaintLeftBehind.md"),
    check,
};

/// Why the taint is there yet.
struct Why {
    confidence: Confidence,
    /// What follows its name and the Node's.
    says: String,
    because: String,
    fix: String,
}

fn check(case: &Case) -> Opinion {
    let Some(node) = case.node.filter(|_| case.wait.symptom == Symptom::TaintLeft) else { return Opinion::Silent };
    let Some(left) = left_taint(node, case.claim) else { return Opinion::Silent };
    let found = match left.by {
        Setter::Autoscaler => of_autoscaler(case, node, left),
        Setter::Karpenter => finding(node, left, of_karpenter(case, left)),
        Setter::Volumes => finding(node, left, of_others(left.by)),
        by => naming_last_taint_writer(finding(node, left, of_others(by)), node),
    };
    found.into()
}

fn finding(node: &Node, left: LeftTaint, why: Why) -> Finding {
    let (name, taint) = (node.name(), left.taint);
    let since = if left.dated { format!(" since {}", timestamp(left.since)) } else { String::new() };
    let found = Finding::new(
        why.confidence,
        format!("Node {name} is Ready, and taint {taint} keeps pods off it{since}: {}.", why.says),
        Evidence::new(format!("Node/{name}"), "spec.taints", taint.to_string(), why.because),
    )
    .blaming(Blame::object("v1", "Node", name).field("spec.taints"))
    .fix(why.fix)
    .step(
        Risk::LowRisk,
        "Take the taint off: pods come again",
        Some(format!("kubectl taint node {name} {}:{}-", taint.key, taint.effect)),
    );
    let found = match node.taint(DELETION_CANDIDATE).filter(|_| left.by == Setter::Autoscaler) {
        Some(candidate) => found.step(
            Risk::LowRisk,
            "And the one that marked it as a candidate",
            Some(format!("kubectl taint node {name} {}:{}-", candidate.key, candidate.effect)),
        ),
        None => found,
    };
    if !node.spec.unschedulable {
        return found;
    }
    let cordoned = Evidence::new(format!("Node/{name}"), "spec.unschedulable", "true", "it is cordoned besides");
    found.with(cordoned).step(Risk::LowRisk, "Uncordon it", Some(format!("kubectl uncordon {name}")))
}

/// A cluster-autoscaler keeps in memory only what it is removing. A new one takes such taints off when it starts, before
/// 1.26 only of Nodes that are Ready and not cordoned, and of those that its groups have.
/// Sources: cluster-autoscaler core/static_autoscaler.go `cleanUpIfRequired` (1.17.4, 1.33), kubernetes/autoscaler#5200.
fn of_autoscaler(case: &Case, node: &Node, left: LeftTaint) -> Finding {
    let fix = "Take off what cluster-autoscaler left, or terminate the instance. From 1.26 on it cleans up all Nodes of its groups when it starts.";
    let why = |confidence, says: String, because: &str| Why {
        confidence,
        says,
        because: because.to_owned(),
        fix: fix.to_owned(),
    };
    match autoscaler(case, left.since) {
        Autoscaler::Replaced { pod, at } => {
            let says = format!(
                "cluster-autoscaler was about to remove the Node, and was itself replaced at {} (pod {pod}); the new one knows nothing of that",
                timestamp(at)
            );
            let because = "its value is the time, and what cluster-autoscaler was removing it knows in memory only";
            finding(node, left, why(Confidence::Certain, says, because))
        }
        Autoscaler::Runs => {
            let says = "cluster-autoscaler was about to remove the Node, runs, and has not got it removed";
            let because = "no lifecycle hook commonly holds an instance for that long";
            finding(node, left, why(Confidence::Likely, says.to_owned(), because)).ask_aws(
                "What does the Auto Scaling group say of the instance?",
                format!(
                    "aws autoscaling describe-auto-scaling-instances --instance-ids {}",
                    case.instance_id().unwrap_or("INSTANCE")
                ),
            )
        }
        Autoscaler::Unseen => {
            let says =
                "cluster-autoscaler was about to remove the Node, and most likely was replaced or stopped meanwhile";
            let because = "no lifecycle hook commonly holds an instance for that long";
            finding(node, left, why(Confidence::Likely, says.to_owned(), because)).unknown(
                "Does cluster-autoscaler run, and since when?",
                "kubectl get pods -A -o wide | grep autoscaler",
            )
        }
    }
}

fn of_karpenter(case: &Case, left: LeftTaint) -> Why {
    let karpenter = case.karpenter();
    let fix = format!(
        "See why Karpenter ({}) does not go on, and take the taint off where it is not to be replaced.",
        commands::karpenter_log(case)
    );
    let why = |confidence, says: String, because: &str| Why {
        confidence,
        says,
        because: because.to_owned(),
        fix: fix.clone(),
    };
    if let Some(karpenter) = karpenter.filter(|karpenter| !knows(karpenter, &left.taint.key)) {
        let says = format!(
            "it is of another Karpenter than {}, which runs here and does not know it, so that it is never taken off",
            version(karpenter)
        );
        return why(
            Confidence::Certain,
            says,
            "karpenter.sh/disruption up to 1.0, karpenter.sh/disrupted from 1.0 on: an upgrade or a way back met a replacement under way",
        );
    }
    if let Some(stopped) = karpenter.and_then(|karpenter| karpenter.stopped.as_ref()) {
        let since = stopped.since.map_or_else(String::new, |at| format!(" since {}", timestamp(at)));
        let says = format!("Karpenter was about to replace the Node, and does not run{since}");
        return why(Confidence::Certain, says, "only Karpenter goes on, or takes it off when it starts again");
    }
    if case.claim.is_none() && case.cluster.missing(Input::NodeClaims).is_none() {
        let says = "Karpenter was about to replace the Node, whose NodeClaim is gone, and without one it does not touch it any more";
        return why(Confidence::Certain, says.to_owned(), "Karpenter takes it off Nodes only that have a NodeClaim");
    }
    let says = "Karpenter has begun to replace the Node, and neither deleted it nor gave up, as it does within an hour";
    why(
        Confidence::Likely,
        says.to_owned(),
        "whenever Karpenter looks for what to disrupt, it takes this off all Nodes that it is not replacing",
    )
}

/// Sources: core pkg/apis/v1/taints.go `IsDisruptingTaint` (v1.0.5; gone in v1.1.0), pkg/apis/v1beta1/taints.go (v0.37.0).
fn knows(karpenter: &Karpenter, key: &str) -> bool {
    let [of_v1, _] = DISRUPTED_TAINTS;
    if key == of_v1 { karpenter.version >= Version(1, 0, 0) } else { karpenter.version < Version(1, 1, 0) }
}

fn version(karpenter: &Karpenter) -> String {
    let Version(major, minor, patch) = karpenter.version;
    format!("{major}.{minor}.{patch}")
}

fn of_others(by: Setter) -> Why {
    let (confidence, says, because, fix) = match by {
        Setter::People => (
            Confidence::Certain,
            "whoever set it, while the machine was away, has to take it off again: no controller does",
            "pods that do not tolerate it are deleted by force as soon as they end up there",
            "Take the taint off, now that the machine is back.",
        ),
        Setter::Volumes => (
            Confidence::Certain,
            "Kubernetes up to 1.26 sets it when an EBS volume hangs while it is attached, and never takes it off",
            "its controller is gone since Kubernetes 1.27",
            "Restart or replace the machine, or take the taint off where no volume hangs any more.",
        ),
        Setter::CloudController => (
            Confidence::Likely,
            "the instance was stopped once, and the cloud controller, which takes it off a Ready Node within seconds, does not",
            "where the cloud controller runs, no Ready Node keeps this taint",
            "Get the cloud controller running; then the taint goes by itself.",
        ),
        _ => (
            Confidence::Likely,
            "the condition that it stands for does not hold, and the node lifecycle controller, which takes it off within seconds, does not, or somebody sets it again",
            "where the node lifecycle controller runs, such a taint goes with its condition",
            "Find who sets it, and get kube-controller-manager running where it does not; then the taint goes by itself.",
        ),
    };
    Why { confidence, says: says.to_owned(), because: because.to_owned(), fix: fix.to_owned() }
}
