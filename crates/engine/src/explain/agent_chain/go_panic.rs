//! An agent's program ends with a panic of Go's runtime: a mistake in its code.

use super::agent::Agent;
use crate::case::Case;
use crate::upstream::karpenter::{Version, image_tag};
use crate::upstream::vpc_cni;

/// Source: golang/go go1.26 src/runtime/error.go, panic.go (`plainError`), chan.go, internal/runtime/maps/map.go. A
/// program that panics with words of its own may lack something instead.
const OF_RUNTIME: [&str; 6] = [
    "runtime error: ",
    "assignment to entry in nil map",
    "interface conversion: ",
    "close of closed channel",
    "close of nil channel",
    "send on closed channel",
];

/// Whether the program ends with such a panic.
pub(super) fn is_bug(says: &str) -> bool {
    says.split("panic: ").skip(1).any(|panic| OF_RUNTIME.iter().any(|words| panic.starts_with(words)))
}

/// Its controller for network policies reads PolicyEndpoints though its other half is turned off.
/// Source: aws-network-policy-agent v1.1.2 controllers/policyendpoints_controller.go `configureeBPFProbes`, and pull
/// request 323, which lets it pass over them.
const LEFT_POLICIES: (&str, &str) = (
    "older versions of its network policy agent panic so over a PolicyEndpoint if network policies are turned off \
     (--enable-network-policy=false)",
    "If network policies are turned off, delete the NetworkPolicies that still exist, and with them their \
     PolicyEndpoints. Or turn network policies on again, or update the VPC CNI, which restarts aws-node on every node.",
);

/// The setting without which the VPC CNI does not panic so, as a clause, and the fix.
/// Source: amazon-vpc-cni-k8s v1.11.2, v1.11.3 pkg/ipamd/ipamd.go `AnnotatePod` (#1947).
pub(super) fn known(case: &Case, agent: &Agent, says: &str) -> Option<(&'static str, &'static str)> {
    const FIXED: Version = Version(1, 11, 3);
    if agent.set != vpc_cni::AWS_NODE || !is_bug(says) {
        return None;
    }
    if says.contains("PolicyEndpointsReconciler).configureeBPFProbes") {
        return Some(LEFT_POLICIES);
    }
    if !says.contains("AnnotatePod") {
        return None;
    }
    let set = case.cluster.daemon_sets().find(|set| set.metadata.name == *vpc_cni::AWS_NODE)?;
    let annotates = set.env("ANNOTATE_POD_IP").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let own = agent.pod.spec.containers.iter().find(|container| container.image.contains("amazon-k8s-cni"))?;
    let version = Version::parse(image_tag(&own.image)?)?;
    (annotates && version < FIXED).then_some((
        "with ANNOTATE_POD_IP=true it panics over a pod without annotations, until 1.11.3",
        "Set ANNOTATE_POD_IP=false on DaemonSet aws-node, or update the VPC CNI to 1.11.3 or later, which fixes this \
         panic. Either restarts aws-node on every node.",
    ))
}

pub(super) fn fix(agent: &Agent, image: &str) -> String {
    format!(
        "Update DaemonSet {} to a later version, because a panic is a bug of its program ({image}). If the panic began \
         with a change of its settings, undo that change.",
        agent.set
    )
}

#[cfg(test)]
mod tests {
    use super::is_bug;

    #[test]
    fn a_panic_of_the_runtime_is_told_from_one_with_words_of_the_program() {
        for (says, bug) in [
            ("its log ends with: panic: assignment to entry in nil map (in ipamd.(*IPAMContext).AnnotatePod)", true),
            ("panic: runtime error: index out of range [0] with length 0", true),
            ("panic: fetching queue url, AWS.SimpleQueueService.NonExistentQueue: no such queue", false),
            ("[PANIC][83] felix/int_dataplane.go 1155: BPFConnTimeLBEnabled but failed to attach", false),
            ("container aws-node: CrashLoopBackOff", false),
        ] {
            assert_eq!(is_bug(says), bug, "{says}");
        }
    }
}
