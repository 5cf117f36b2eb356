//! A temporary taint, set to remove, replace or spare the Node, is still on it.

use crate::case::left_taint::{DELETION_CANDIDATE, LeftTaint, Setter, left_taint};
use crate::case::timestamp;
use crate::explain::commands;
use crate::explain::taint_writer::naming_last_taint_writer;
use crate::facts::autoscaler::{Autoscaler, autoscaler};
use crate::objects::Node;
use crate::rules::prelude::*;
use crate::upstream::karpenter::{DISRUPTED_TAINTS, Karpenter, Version};

rule! {
    cause: TaintLeftBehind,
    summary: "A taint that was set to remove, replace or spare the Node is still there, and no component removes it",
    stages: [Ready],
    reads: [NodeClaims, Deployments, Pods],
    versions: "all; cluster-autoscaler before 1.26 forgets cordoned Nodes",
}

/// Why the taint is still there.
struct Why {
    confidence: Confidence,
    /// The text after the names of the taint and the Node.
    says: String,
    because: String,
    fix: String,
}

fn check(case: &Case) -> Option<Opinion> {
    let node = case.node.filter(|_| case.wait.symptom == Symptom::TaintLeft)?;
    let left = left_taint(node, case.claim)?;
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
        "Remove the taint, so that pods can run there again",
        Some(format!("kubectl taint node {name} {}:{}-", taint.key, taint.effect)),
    );
    let found = match node.taint(DELETION_CANDIDATE).filter(|_| left.by == Setter::Autoscaler) {
        Some(candidate) => found.step(
            Risk::LowRisk,
            "Also remove the taint that marked it as a candidate",
            Some(format!("kubectl taint node {name} {}:{}-", candidate.key, candidate.effect)),
        ),
        None => found,
    };
    if !node.spec.unschedulable {
        return found;
    }
    let cordoned = Evidence::new(format!("Node/{name}"), "spec.unschedulable", "true", "the Node is cordoned too");
    found.with(cordoned).step(Risk::LowRisk, "Uncordon it", Some(format!("kubectl uncordon {name}")))
}

/// A cluster-autoscaler keeps its removals in memory only. A new one removes such taints when it starts, before 1.26
/// only from Nodes that are Ready and not cordoned, and only from Nodes of its groups.
/// Sources: cluster-autoscaler core/static_autoscaler.go `cleanUpIfRequired` (1.17.4, 1.33),
/// kubernetes/autoscaler#5200.
fn of_autoscaler(case: &Case, node: &Node, left: LeftTaint) -> Finding {
    let fix = "Remove the taint that cluster-autoscaler left, which disrupts no pod. Or terminate the instance, which \
               removes its pods. Since version 1.26, cluster-autoscaler removes such taints from all Nodes of its \
               groups when it starts.";
    let why = |confidence, says: String, because: &str| Why {
        confidence,
        says,
        because: because.to_owned(),
        fix: fix.to_owned(),
    };
    match autoscaler(case, left.since) {
        Autoscaler::Replaced { pod, at } => {
            let says = format!(
                "cluster-autoscaler was about to remove the Node, but was itself replaced at {} (pod {pod}), and the \
                 new one does not know of that removal",
                timestamp(at)
            );
            let because = "its value is the time, and cluster-autoscaler keeps its removals in memory only";
            finding(node, left, why(Confidence::Certain, says, because))
        }
        Autoscaler::Runs => {
            let says = "cluster-autoscaler was about to remove the Node and still runs, but has not removed it";
            let because = "no lifecycle hook commonly holds an instance for that long";
            finding(node, left, why(Confidence::Likely, says.to_owned(), because)).ask_aws(
                "Which lifecycle state does the Auto Scaling group report for the instance?",
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
        "Find out why Karpenter ({}) does not continue. If the node should stay, remove the taint, which disrupts no \
         pod.",
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
            "another version of Karpenter than {} set it. The version that runs here does not know the taint, so it \
             never removes it",
            version(karpenter)
        );
        return why(
            Confidence::Certain,
            says,
            "karpenter.sh/disruption up to 1.0, karpenter.sh/disrupted from 1.0 on: an upgrade or downgrade happened \
             during a replacement",
        );
    }
    if let Some(stopped) = karpenter.and_then(|karpenter| karpenter.stopped.as_ref()) {
        let since = stopped.since.map_or_else(String::new, |at| format!(" since {}", timestamp(at)));
        let says = format!("Karpenter was about to replace the Node, but does not run{since}");
        return why(Confidence::Certain, says, "only Karpenter continues, or removes it when it starts again");
    }
    if case.claim.is_none() && case.cluster.missing(Input::NodeClaims).is_none() {
        let says = "Karpenter was about to replace the Node, but its NodeClaim is gone, and Karpenter does not change \
                    a Node without one";
        return why(Confidence::Certain, says.to_owned(), "Karpenter only removes it from Nodes that have a NodeClaim");
    }
    let says = "Karpenter has begun to replace the Node, but neither deleted it nor gave up, as it does within an hour";
    why(
        Confidence::Likely,
        says.to_owned(),
        "whenever Karpenter looks for nodes to disrupt, it removes this from all Nodes that it is not replacing",
    )
}

/// Sources: core pkg/apis/v1/taints.go `IsDisruptingTaint` (v1.0.5; gone in v1.1.0), pkg/apis/v1beta1/taints.go
/// (v0.37.0).
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
            "the person or tool that set it while the node was away has to remove it again: no controller does",
            "pods that do not tolerate it are deleted by force as soon as they are assigned there",
            "Remove the taint, because the node is back. This disrupts no pod.",
        ),
        Setter::Volumes => (
            Confidence::Certain,
            "Kubernetes up to 1.26 sets it if an EBS volume hangs while it is being attached, and never removes it",
            "its controller is gone since Kubernetes 1.27",
            "Restart or replace the node, which stops its pods. Or remove the taint if no volume hangs any more.",
        ),
        Setter::CloudController => (
            Confidence::Likely,
            "the instance was stopped once. The cloud controller removes it from a Ready Node within seconds, but has \
             not",
            "if the cloud controller runs, no Ready Node keeps this taint",
            "Get the cloud controller running. It then removes the taint by itself.",
        ),
        _ => (
            Confidence::Likely,
            "its condition does not hold. The node lifecycle controller removes it within seconds, but has not, or \
             another writer sets it again",
            "if the node lifecycle controller runs, such a taint goes with its condition",
            "Find the writer that sets it, and get kube-controller-manager running if it is down. It then removes the \
             taint.",
        ),
    };
    Why { confidence, says: says.to_owned(), because: because.to_owned(), fix: fix.to_owned() }
}
