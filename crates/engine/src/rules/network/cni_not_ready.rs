//! The Node is NotReady because no network plugin is set up on it.

use crate::explain::agent_chain::{of_pod, refused, without_pod};
use crate::explain::explanation::Explanation;
use crate::explain::logged;
use crate::facts::custom_networking::{custom_networking, eni_config_of};
use crate::facts::network_plugin::{self, is_windows, plugin, rank, symptom};
use crate::objects::{Node, Pod};
use crate::rules::prelude::*;
use crate::upstream::vpc_cni;
use chrono::TimeDelta;
use logs::table::{CILIUM_OPERATOR, program_of};

rule! {
    cause: CniNotReady,
    summary: "The Node is NotReady because its network plugin is absent, crashes or cannot be pulled",
    stages: [Initialize, Ready],
    reads: [
        NodeClaims, Nodes, NodePools, NodeClasses, Events, Pods, DaemonSets, EniConfigs, MutatingWebhooks,
        ValidatingWebhooks, Logs,
    ],
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let node = case.node?;
    let Some(ready) = vpc_cni::not_ready(node) else {
        return match node.condition("Ready") {
            Some(c) if c.is_true() => Some(Opinion::ruled_out(
                node,
                format!("Node {} is Ready, so its network plugin is set up", node.name()),
            )),
            _ => None,
        };
    };
    let evidence = Evidence::new(
        format!("Node/{}", node.name()),
        r#"status.conditions[?(@.type=="Ready")]"#,
        ready.shown(),
        "the kubelet reports no network plugin until the plugin has written its configuration",
    );
    let pods = case.pods().filter(|p| p.daemon_set().and_then(rank).is_some());
    let pod = pods.min_by_key(|p| (p.is_ready(), p.trouble().is_none(), p.daemon_set().and_then(rank)));
    let head = format!("Node {} has been NotReady since {}", node.name(), case.since());
    let because = |explanation: Explanation, evidence: Evidence| {
        let observed =
            explanation.links.first().map(|link| (link.object.clone(), link.says.clone())).unwrap_or_default();
        let summary = format!("{head} because of its network plugin: {}.", explanation.why.trim_end_matches('.'));
        let finding = Finding::new(explanation.confidence(case), summary, evidence).with(Evidence::new(
            observed.0,
            "status",
            observed.1,
            "the network plugin that sets up the Node's network",
        ));
        explanation.explain(finding, symptom(node, ready))
    };
    // Where no DaemonSet was read, what one of them says of this Node tells which it is.
    let refused =
        || network_plugin::names(case, node).into_iter().find(|name| refused(case, node, name, None).is_some());
    let name = plugin(case, node).map(|set| set.metadata.name.as_str()).or_else(refused);
    let finding = match (pod, name) {
        (None, _) if has_builtin_plugin(node) => Finding::new(
            Confidence::Likely,
            format!("{head} because the network plugin (CNI) in its image has not set itself up."),
            evidence,
        )
        .fix("Look at the instance: on this kind of node no pod sets up the network.")
        .unknown("Which error do the node's own services log?", format!("kubectl describe node {}", node.name())),
        (Some(pod), _) => asking_for_eni_config(case, node, pod, because(of_pod(case, node, pod), evidence)),
        (None, Some(name)) => because(without_pod(case, node, name), evidence),
        (None, None) if case.cluster.missing(Input::DaemonSets).is_none() => Finding::new(
            Confidence::Likely,
            format!("{head}: this cluster has no network plugin (CNI) that nodewhy knows."),
            evidence,
        )
        .blaming(Blame::object("apps/v1", "DaemonSet", "aws-node").namespace("kube-system"))
        .fix("Install a network plugin, for example the VPC CNI add-on (DaemonSet aws-node)."),
        (None, None) if has_seen_no_pod(case, node) => Finding::new(
            Confidence::Likely,
            format!(
                "{head} because it has no network plugin (CNI). The kubelet has reported no pod, not even one of a \
                 plugin, so the plugin is probably not installed."
            ),
            evidence,
        )
        .blaming(
            (!case.is_elsewhere()).then(|| Blame::object("apps/v1", "DaemonSet", "aws-node").namespace("kube-system")),
        )
        .fix(
            "Install the network plugin: on EKS the VPC CNI add-on (DaemonSet aws-node). This disrupts nothing. Next \
             time, install it before the nodes (Terraform: before_compute = true).",
        )
        .step(
            Risk::LowRisk,
            "Install the VPC CNI add-on, if the cluster is to use no other plugin",
            (!case.is_elsewhere())
                .then(|| "aws eks create-addon --cluster-name CLUSTER --addon-name vpc-cni".to_owned()),
        )
        .unknown("Does the cluster have a DaemonSet of a network plugin?", "kubectl get daemonsets -A"),
        (None, None) => Finding::new(
            Confidence::Likely,
            format!("{head} because its network plugin (CNI) has not set itself up."),
            evidence,
        )
        .fix("Get the network plugin's pod running on this node.")
        .unknown("Does the network plugin's pod run there?", pods_command(node)),
    };
    let is_of_cilium = pod.and_then(Pod::daemon_set).or(name).and_then(program_of) == Some(CILIUM);
    let finding = if is_of_cilium { with_operator(case, finding) } else { finding };
    finding.inspect("See the pods on the Node", pods_command(node)).into()
}

/// The program whose operator has a log of its own.
const CILIUM: &str = "cilium";

/// The finding with what the operator of the plugin logs of the Node, if the reason is still open.
fn with_operator(case: &Case, finding: Finding) -> Finding {
    let Some(fact) = logged::named_by_operator(case).filter(|_| finding.confidence != Confidence::Certain) else {
        return finding;
    };
    let said = logged::excerpt(&fact.last.text);
    finding
        .adding(&format!(
            "The log of {CILIUM_OPERATOR} has {} errors that name the Node, the last one: {said}",
            fact.count
        ))
        .with(logged::told(fact, "nodewhy does not know the line, but it may be the cause"))
}

/// The kubelet's Events about the Node are there and none about a pod, not even about one that every Node gets. Events
/// of an older Node have been deleted.
/// Source: kubernetes v1.36.3 pkg/controlplane/apiserver/options/options.go `EventTTL`.
fn has_seen_no_pod(case: &Case, node: &Node) -> bool {
    const KEPT: TimeDelta = TimeDelta::hours(1);
    let is_young = node.metadata.creation_timestamp.is_some_and(|at| case.now - at < KEPT);
    let mut of_node = case.cluster.events("Node", node.name());
    is_young
        && of_node.any(|e| e.reporter() == "kubelet")
        && case.cluster.pod_events_on(node.name()).next().is_none()
        && case.pods().next().is_none()
}

/// These nodes on EKS get their network plugin with the image, not from a DaemonSet.
fn has_builtin_plugin(node: &Node) -> bool {
    is_windows(node) || node.metadata.label("eks.amazonaws.com/compute-type") == Some("auto")
}

fn pods_command(node: &Node) -> String {
    format!("kubectl get pods -A -o wide --field-selector spec.nodeName={}", node.name())
}

/// Custom networking needs one more object, which the pod's message does not name.
fn asking_for_eni_config(case: &Case, node: &Node, pod: &Pod, finding: Finding) -> Finding {
    let (Some(set), Some(zone)) = (custom_networking(case), node.metadata.label("topology.kubernetes.io/zone")) else {
        return finding;
    };
    if finding.confidence == Confidence::Certain || pod.daemon_set() != Some(&set.metadata.name) {
        return finding;
    }
    let finding = finding.with(Evidence::new(
        format!("DaemonSet/{}", set.metadata.name),
        "spec.template.spec.containers[0].env",
        "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG=true",
        "pods get addresses only if an ENIConfig fits the Node",
    ));
    if let Some(config) = case.cluster.eni_config(eni_config_of(set, node).0) {
        let (name, subnet) = (&config.metadata.name, &config.spec.subnet);
        return finding
            .adding(&format!("Custom networking attaches interfaces of {subnet}, which ENIConfig {name} names."))
            .with(Evidence::new(
                format!("ENIConfig/{name}"),
                "spec.subnet",
                subnet.clone(),
                format!("an interface can be attached only if the subnet is in the Node's zone {zone}"),
            ))
            .ask_aws(
                format!(
                    "Is {subnet} in zone {zone} with free addresses, and do the security groups belong to its VPC?"
                ),
                format!(
                    "aws ec2 describe-subnets --subnet-ids {subnet} --query \
                     'Subnets[].[AvailabilityZone,VpcId,AvailableIpAddressCount]'"
                ),
            );
    }
    finding.unknown(
        format!("Is there an ENIConfig for {zone}, and does its subnet have free addresses?"),
        "kubectl get eniconfigs -o yaml",
    )
}
