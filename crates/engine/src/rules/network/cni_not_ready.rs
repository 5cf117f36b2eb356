//! The Node is NotReady because no network plugin has set itself up on it.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::objects::input::Input;
use crate::objects::{DaemonSet, Node, Pod};
use crate::rules::Rule;
use crate::rules::shared::commands;
use crate::rules::shared::custom_networking::custom_networking;
use crate::rules::shared::network_plugin::{is_windows, plugin, rank};
use crate::rules::shared::pull;
use crate::upstream::vpc_cni;

pub static RULE: Rule = Rule {
    cause: "CniNotReady",
    summary: "The Node is NotReady because its network plugin is absent, crashes or cannot be pulled",
    stages: &[Stage::Initialize, Stage::Ready],
    reads: &[Input::Pods, Input::DaemonSets],
    lint: false,
    versions: "all",
    page: include_str!("../../../pages/CniNotReady.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let Some(node) = case.node else { return Opinion::Silent };
    let Some(ready) = vpc_cni::not_ready(node) else {
        return match node.condition("Ready") {
            Some(c) if c.is_true() => {
                Opinion::ruled_out(node, format!("Node {} is Ready, so its network plugin is set up", node.name()))
            }
            _ => Opinion::Silent,
        };
    };
    let evidence = Evidence::new(
        format!("Node/{}", node.name()),
        r#"status.conditions[?(@.type=="Ready")]"#,
        ready.shown(),
        "the kubelet has no network plugin; it says so until the plugin has written its configuration",
    );
    let plugin = plugin(case, node);
    let pods = case.pods().filter(|p| p.daemon_set().and_then(rank).is_some());
    let pod = pods.min_by_key(|p| (p.is_ready(), p.trouble().is_none(), p.daemon_set().and_then(rank)));
    let finding = match (pod, plugin) {
        (None, _) if has_builtin_plugin(node) => Finding::new(
            Confidence::Likely,
            format!(
                "Node {} has been NotReady since {} because the network plugin (CNI) in its image has not set itself up.",
                node.name(),
                case.since()
            ),
            evidence,
        )
        .fix("Look at the instance: no pod sets up the network on this kind of Node.")
        .unknown("What do the Node's own services say?", format!("kubectl describe node {}", node.name())),
        (Some(pod), _) => with_pod(case, node, pod, evidence),
        (None, Some(set)) => without_pod(case, node, set, evidence),
        (None, None) if case.cluster.missing(Input::DaemonSets).is_none() => Finding::new(
            Confidence::Likely,
            format!(
                "Node {} has been NotReady since {}: no network plugin (CNI) that nodewhy knows is installed in this cluster.",
                node.name(),
                case.since()
            ),
            evidence,
        )
        .blaming(Blame::object("apps/v1", "DaemonSet", "aws-node").namespace("kube-system"))
        .fix("Install a network plugin, for example the VPC CNI add-on (DaemonSet aws-node)."),
        (None, None) => Finding::new(
            Confidence::Likely,
            format!(
                "Node {} has been NotReady since {} because its network plugin (CNI) has not set itself up.",
                node.name(),
                case.since()
            ),
            evidence,
        )
        .fix("Get the network plugin's pod running on this Node.")
        .unknown("Does the network plugin's pod run there?", pods_command(node)),
    };
    finding.step(Risk::Inspect, "See the pods on the Node", Some(pods_command(node))).into()
}

/// On EKS these get their network plugin with the image, not from a DaemonSet.
fn has_builtin_plugin(node: &Node) -> bool {
    is_windows(node) || node.metadata.label("eks.amazonaws.com/compute-type") == Some("auto")
}

fn pods_command(node: &Node) -> String {
    format!("kubectl get pods -A -o wide --field-selector spec.nodeName={}", node.name())
}

fn with_pod(case: &Case, node: &Node, pod: &Pod, evidence: crate::api::Evidence) -> Finding {
    let name = &pod.metadata.name;
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let object = format!("Pod/{name}");
    let trouble = pod.trouble();
    let (confidence, why) = match &trouble {
        Some((container, why)) => {
            (proven_in_time(case), format!("its network plugin's pod {name} fails: container {container}: {why}"))
        }
        None if pod.is_ready() => (
            Confidence::Likely,
            format!("its network plugin's pod {name} is Ready and has still not written a configuration"),
        ),
        None => {
            (Confidence::Likely, format!("its network plugin's pod {name} is not Ready (phase {})", pod.status.phase))
        }
    };
    let summary = format!("Node {} has been NotReady since {} because {why}.", node.name(), case.since());
    let pull = trouble.as_ref().and_then(|(_, why)| pull::explain(why));
    let summary = match pull {
        Some(pull) => format!("{} ({}).", summary.trim_end_matches('.'), pull.why),
        None => summary,
    };
    let observed = trouble.map_or_else(|| pod.status.phase.clone(), |(container, why)| format!("{container}: {why}"));
    let finding = Finding::new(confidence, summary, evidence)
        .with(Evidence::new(object, "status.containerStatuses", observed, "this pod sets up the Node's network"))
        .blaming(Blame::object("v1", "Pod", name).namespace(namespace))
        .fix(match (pull, pod.daemon_set()) {
            (Some(pull), _) => pull.fix,
            (None, Some(vpc_cni::AWS_NODE)) => AWS_NODE_FIX,
            (None, _) => "Read the log of the network plugin's pod: it names the reason.",
        })
        .step(
            Risk::Inspect,
            "Read its log",
            Some(format!("kubectl logs -n {namespace} {name} --all-containers --tail=50")),
        );
    let finding = match (pod.spec.containers.first(), node.metadata.label("node.kubernetes.io/instance-type")) {
        // Instance types that the VPC CNI does not know make it exit. vpc-cni v1.20.4 pkg/vpc/vpc_ip_resource_limit.go.
        (Some(container), Some(type_)) if pull.is_none() && pod.daemon_set() == Some(vpc_cni::AWS_NODE) => {
            let version = container.image.rsplit('/').next().unwrap_or(&container.image);
            finding.unknown(
                format!("Does {version} know the instance type {type_}? Older versions exit on newer types."),
                format!("kubectl logs -n {namespace} {name} -c aws-node --previous --tail=50"),
            )
        }
        _ => finding,
    };
    match (custom_networking(case), node.metadata.label("topology.kubernetes.io/zone")) {
        (Some(set), Some(zone)) if pull.is_none() && pod.daemon_set() == Some(&set.metadata.name) => finding
            .with(Evidence::new(
                format!("DaemonSet/{}", set.metadata.name),
                "spec.template.spec.containers[0].env",
                "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG=true",
                "pods get addresses only where an ENIConfig fits the Node",
            ))
            .unknown(
                format!("Is there an ENIConfig for {zone}, and does its subnet have free addresses?"),
                "kubectl get eniconfigs -o yaml",
            ),
        _ => finding,
    }
}

const AWS_NODE_FIX: &str = "Read aws-node's log (kubectl logs, and /var/log/aws-routed-eni/ipamd.log on the instance): the usual reasons are a role without AmazonEKS_CNI_Policy, an API server that kube-proxy does not make reachable, a subnet without free addresses, and a version older than the instance type.";

/// A first crash may only be the start: aws-node exits until kube-proxy has made the API server reachable.
fn proven_in_time(case: &Case) -> Confidence {
    if case.is_overdue() { Confidence::Certain } else { Confidence::Likely }
}

fn without_pod(case: &Case, node: &Node, set: &DaemonSet, evidence: crate::api::Evidence) -> Finding {
    let name = &set.metadata.name;
    let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
    let head = format!("Node {} has been NotReady since {} because", node.name(), case.since());
    let blame = Blame::object("apps/v1", "DaemonSet", name).namespace(namespace);
    if case.cluster.missing(Input::Pods).is_some() {
        return Finding::new(
            Confidence::Likely,
            format!("{head} its network plugin (DaemonSet {name}) has not set itself up."),
            evidence,
        )
        .blaming(blame)
        .fix("Get the network plugin's pod running on this Node.")
        .unknown("Does the network plugin's pod run there?", pods_command(node));
    }
    let refused = node.spec.taints.iter().find(|t| t.effect != "PreferNoSchedule" && !set.tolerates(t));
    match refused {
        Some(taint) => Finding::new(
            Confidence::Certain,
            format!("{head} DaemonSet {name}, its network plugin, does not tolerate the Node's taint {taint}."),
            evidence,
        )
        .with(Evidence::new(
            format!("Node/{}", node.name()),
            "spec.taints",
            taint.to_string(),
            format!("DaemonSet {name} has no toleration for it"),
        ))
        .blaming(blame.field("spec.template.spec.tolerations"))
        .fix("Let the network plugin tolerate every taint (operator: Exists), as its own manifests do.")
        .step(
            Risk::Mutating,
            "Add the toleration; the DaemonSet's pods restart",
            Some(commands::tolerate(set, taint)),
        ),
        None => Finding::new(
            Confidence::Likely,
            format!("{head} DaemonSet {name}, its network plugin, has no pod on it."),
            evidence,
        )
        .blaming(blame)
        .fix("Find out why the DaemonSet makes no pod there: a quota, an admission policy, its node affinity.")
        .step(
            Risk::Inspect,
            "See why the DaemonSet makes no pod",
            Some(format!("kubectl describe daemonset -n {namespace} {name}")),
        ),
    }
}
