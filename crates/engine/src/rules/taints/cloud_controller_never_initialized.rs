//! The cloud controller never processed the Node, so its taint stays.

use crate::cluster_state::memo::Memo;
use crate::explain::logged;
use crate::facts::cloud_controller_traces::traces;
use crate::rules::prelude::*;
use crate::upstream::karpenter::UNINITIALIZED_TAINT;
use crate::upstream::{cloud_controller, eks};
use chrono::{DateTime, TimeDelta, Utc};
use logs::fact::Trouble;

/// `remediate` makes such a Node usable if you turn that on.
pub const CAUSE: &str = "CloudControllerNeverInitialized";

rule! {
    cause: CloudControllerNeverInitialized,
    summary: "The cloud controller has not initialized the Node, so its uninitialized taint stays",
    stages: [Initialize],
    reads: [Nodes, Events, NodeClasses, Pods, Logs],
    versions: "all",
}

/// Any update of the Node makes the cloud controller try again, and the kubelet updates it at least every 5 minutes.
/// After two of those updates the controller is not slow but fails.
/// Source: k8s.io/cloud-provider v0.36.3 controllers/node/node_controller.go; kubelet `nodeStatusReportFrequency`.
const CERTAIN_AFTER: TimeDelta = TimeDelta::minutes(10);

/// The fix if its log says what it lacks.
const FIX: &str = "Correct what the line names: allow the cloud controller's role (on EKS, the cluster's role) to call \
                   EC2, or set --node-ip to an address of the instance. Until then, you can remove the taint by hand \
                   to make the node usable.";

static INITIALIZATION: Memo<Initialization> = Memo::new("the cloud controller's progress with all Nodes");

/// The cloud controller's progress with all Nodes.
struct Initialization {
    wait: usize,
    /// The creation time of the youngest Node that it has initialized.
    last_passed: Option<DateTime<Utc>>,
}

fn check(case: &Case) -> Option<Opinion> {
    let told = logged::of_kind(case, Trouble::CloudControllerFails);
    let Some(node) = case.node else { return told.map(|root| root.finding(case).fix(FIX).into()) };
    let Some(taint) = node.taint(UNINITIALIZED_TAINT) else {
        return Some(Opinion::ruled_out(node, format!("Node {} does not carry {UNINITIALIZED_TAINT}", node.name())));
    };
    if !traces(case, node).is_empty() {
        return Some(Opinion::ruled_out(
            node,
            format!("the cloud controller has left its traces on Node {}", node.name()),
        ));
    }
    let created = node.metadata.creation_timestamp?;
    let name = node.name();
    let object = format!("Node/{name}");
    // A label of the cloud controller's may be its own in spite of all.
    let labelled: Vec<_> = cloud_controller::labels(node).map(|(key, _)| key).collect();
    // And where Events cannot be read, it may have said so in one.
    let is_late = case.now - created >= CERTAIN_AFTER && case.cluster.missing(Input::Events).is_none();
    let is_told = told.is_some_and(|root| root.confidence() == Confidence::Certain);
    let certain = (is_late || is_told) && labelled.is_empty();
    let confidence = if certain { Confidence::Certain } else { Confidence::Likely };
    let initialization = case.cluster.once(&INITIALIZATION, "", || {
        let (wait, passed): (Vec<_>, Vec<_>) =
            case.cluster.nodes().partition(|n| n.taint(UNINITIALIZED_TAINT).is_some());
        Initialization {
            wait: wait.len(),
            last_passed: passed.iter().filter_map(|n| n.metadata.creation_timestamp).max(),
        }
    });
    let others = initialization.wait.saturating_sub(1);
    let scope = match others {
        0 => "",
        _ if initialization.last_passed <= Some(created) => {
            " Other Nodes wait for it too, and it has initialized none that is younger: the controller itself is down."
        }
        _ => " Other Nodes wait for it too.",
    };
    // Only where something shows it: a cluster of one's own runs the controller in a DaemonSet.
    let on_eks = case.cluster.api_server().version.as_deref().is_some_and(eks::has_built)
        || eks::has_built(&node.status.node_info.kubelet_version);
    let place = if on_eks { " (in the EKS control plane)" } else { "" };
    let why = told.map_or_else(String::new, |root| format!(" {}", root.quote()));
    let summary = format!(
        "The cloud controller manager{place} never initialized Node {name}, so {taint} stays and no pod is scheduled \
         there.{scope}{why}"
    );
    let finding = Finding::new(
        confidence,
        summary,
        Evidence::new(
            &object,
            "spec.taints",
            taint.to_string(),
            "only the cloud controller removes this taint, after it has found the instance",
        )
        .figures(format!("{others} other Nodes have it too")),
    )
    .with(if labelled.is_empty() {
        Evidence::new(
            &object,
            "metadata.labels",
            "no beta.kubernetes.io/instance-type, no failure-domain.beta.kubernetes.io/zone",
            "the cloud controller sets these in the update that removes the taint; neither the kubelet nor Karpenter \
             does",
        )
    } else {
        let because = "the cloud controller would set them in the update that removes the taint, but these have \
                       another source: managedFields name another writer, or NodeClaim or userData set them";
        Evidence::new(&object, "metadata.labels", labelled.join(", "), because)
    })
    .with_all(told.map(|root| root.evidence()))
    .with(Evidence::new(
        &object,
        "status.addresses",
        addresses(node),
        "the cloud controller would add InternalDNS; the kubelet writes InternalIP and Hostname",
    ))
    .blaming(Blame::object("v1", "Node", name).field("spec.taints"))
    .fix(if told.is_some() {
        FIX
    } else {
        "Find out why the cloud controller cannot process the instance. Until then, you can remove the taint by hand \
         to make the node usable."
    })
    .inspect(
        "Read the cloud controller's log. On EKS turn on control plane logging first",
        format!(
            "aws logs filter-log-events --log-group-name /aws/eks/CLUSTER/cluster --log-stream-name-prefix \
             cloud-controller-manager --filter-pattern {name:?}"
        ),
    )
    .change(
        "Workaround: remove the taint once providerID, zone and instance type are on the Node",
        format!("kubectl taint node {name} {UNINITIALIZED_TAINT}-"),
    )
    .inspect("On EKS open a support case with AWS, because the controller runs in the managed control plane", None)
    .ask_aws(
        "Why did the cloud controller not process the Node (DescribeInstances denied or throttled, instance not found, \
         provided-node-ip not an address of the instance)? The command turns on its log.",
        "aws eks update-cluster-config --name CLUSTER --logging \
         '{\"clusterLogging\":[{\"types\":[\"controllerManager\"],\"enabled\":true}]}'",
    );
    finding.into()
}

fn addresses(node: &crate::objects::Node) -> String {
    let types: Vec<_> = node.status.addresses.iter().map(|a| a.type_.as_str()).collect();
    if types.is_empty() { "none".to_owned() } else { types.join(", ") }
}
