//! Custom networking is on, but the ENIConfig that aws-node looks for does not exist.

use crate::facts::custom_networking::{CUSTOM_NETWORKING, custom_networking, eni_config_of};
use crate::objects::Pod;
use crate::rules::prelude::*;
use crate::upstream::vpc_cni;

rule! {
    cause: EniConfigMissing,
    summary: "The VPC CNI's custom networking is on, but the ENIConfig that it looks for on this Node does not exist",
    stages: [Initialize, Ready],
    reads: [Pods, DaemonSets, EniConfigs],
    versions: "all, with AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG=true on the VPC CNI",
}

fn check(case: &Case) -> Option<Opinion> {
    let node = case.node.filter(|n| vpc_cni::not_ready(n).is_some())?;
    let set = custom_networking(case)?;
    // One that does not run yet looks for none.
    let waits = |pod: &Pod| pod.daemon_set() == Some(vpc_cni::AWS_NODE) && pod.unscheduled().is_some();
    if case.pods().any(waits) {
        return None;
    }
    let (name, from) = eni_config_of(set, node);
    if let Some(config) = case.cluster.eni_config(name) {
        let because = format!("ENIConfig {name}, which the VPC CNI uses for Node {}, exists", node.name());
        return Some(Opinion::ruled_out(config, because));
    }
    let unread = case.cluster.missing(Input::EniConfigs);
    // They matter only with custom networking, so the finding asks for them itself. A name that something gives the
    // Node may well exist where nobody has looked.
    if unread.is_some() && from.is_some() {
        return None;
    }
    let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
    let daemon_set = Blame::object("apps/v1", "DaemonSet", &set.metadata.name)
        .namespace(namespace)
        .field("spec.template.spec.containers[0].env");
    let named = set.env("ENI_CONFIG_LABEL_DEF").filter(|v| !v.is_empty());
    let (why, blame, fix) = match (&from, named) {
        (Some(from), _) => (
            format!("it looks for ENIConfig {name} (the Node's {from}), which does not exist"),
            Blame::object("crd.k8s.amazonaws.com/v1alpha1", "ENIConfig", name),
            format!(
                "Create ENIConfig {name} with a subnet of the Node's zone, or correct the setting that names it. \
                 Neither disrupts other nodes."
            ),
        ),
        (None, Some(label)) => (
            format!(
                "the Node has no label {label}, which ENI_CONFIG_LABEL_DEF names, so it looks for ENIConfig default, \
                 which does not exist"
            ),
            daemon_set,
            format!(
                "Set ENI_CONFIG_LABEL_DEF to a label that every Node has (topology.kubernetes.io/zone) instead of \
                 {label}, and create one ENIConfig for each value. aws-node restarts on every node."
            ),
        ),
        (None, None) => (
            "no setting names this Node's ENIConfig (ENI_CONFIG_LABEL_DEF is not set), so it looks for ENIConfig \
             default"
                .to_owned()
                + if unread.is_some() { "" } else { ", which does not exist" },
            daemon_set,
            "Set ENI_CONFIG_LABEL_DEF=topology.kubernetes.io/zone on the VPC CNI, and name one ENIConfig after each \
             zone. aws-node restarts on every node."
                .to_owned(),
        ),
    };
    let confidence = if unread.is_none() && case.is_overdue() { Confidence::Certain } else { Confidence::Likely };
    let finding = Finding::new(
        confidence,
        format!(
            "Node {} has been NotReady since {}: the VPC CNI's custom networking is on, and {why}.",
            node.name(),
            case.since()
        ),
        Evidence::new(
            format!("DaemonSet/{}", set.metadata.name),
            "spec.template.spec.containers[0].env",
            format!("{CUSTOM_NETWORKING}=true"),
            "pods get addresses only if an ENIConfig fits the Node",
        ),
    )
    .blaming(blame)
    .fix(fix)
    .inspect("See the ENIConfigs", "kubectl get eniconfigs".to_owned())
    .inspect("See the Nodes' zones", "kubectl get nodes -L topology.kubernetes.io/zone".to_owned());
    let finding = finding
        .inspect("See the Node's own labels and annotations", format!("kubectl get node {} -o yaml", node.name()));
    let finding = match from {
        Some(_) => finding,
        None => finding.change(
            "Let the zone name the ENIConfig",
            format!(
                "kubectl set env -n {namespace} daemonset/{} ENI_CONFIG_LABEL_DEF=topology.kubernetes.io/zone",
                set.metadata.name
            ),
        ),
    };
    if unread.is_some() {
        finding.unknown("Does an ENIConfig with the name default exist?", Input::EniConfigs.command()).into()
    } else {
        finding.into()
    }
}
