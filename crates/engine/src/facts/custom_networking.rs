//! Whether the VPC CNI gives pods addresses of other subnets than the Node's.

use crate::case::Case;
use crate::objects::{DaemonSet, Node};
use crate::upstream::instance_types::{self, InstanceNetwork};
use crate::upstream::vpc_cni;

/// Source: amazon-vpc-cni-k8s v1.20.4 README.md.
pub(crate) const CUSTOM_NETWORKING: &str = "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG";

/// The DaemonSet aws-node, if it gives pods addresses of other subnets than the Node's.
pub(crate) fn custom_networking<'c>(case: &Case<'c>) -> Option<&'c DaemonSet> {
    let set = case.cluster.daemon_sets().find(|d| d.metadata.name == vpc_cni::AWS_NODE)?;
    set.env(CUSTOM_NETWORKING).is_some_and(|v| v.eq_ignore_ascii_case("true")).then_some(set)
}

/// The name of the Node's ENIConfig, and what it comes from.
/// Source: amazon-vpc-cni-k8s v1.20.4 pkg/eniconfig/eniconfig.go `GetNodeSpecificENIConfigName`.
pub(crate) fn eni_config_of<'n>(set: &'n DaemonSet, node: &'n Node) -> (&'n str, Option<String>) {
    const EXTERNAL: &str = "vpc.amazonaws.com/externalEniConfig";
    let key = |env: &str| set.env(env).filter(|v| !v.is_empty()).unwrap_or(vpc_cni::ENI_CONFIG);
    let (annotation, label) = (key("ENI_CONFIG_ANNOTATION_DEF"), key("ENI_CONFIG_LABEL_DEF"));
    let external = node.metadata.label(EXTERNAL).map(|name| (name, format!("label {EXTERNAL}")));
    let annotated = || node.metadata.annotation(annotation).map(|name| (name, format!("annotation {annotation}")));
    let labelled = || node.metadata.label(label).map(|name| (name, format!("label {label}")));
    external.or_else(annotated).or_else(labelled).map_or(("default", None), |(name, from)| (name, Some(from)))
}

/// Whether pods of this instance type get no network interface at all: of two, the first belongs to the Node alone, and
/// security groups for pods keep the other as a trunk.
/// Source: amazon-vpc-cni-k8s#2792; v1.20.4 README.md `ENABLE_POD_ENI`.
pub(crate) fn leaves_no_interface(case: &Case, instance_type: &str) -> bool {
    let keeps_one = |set: &DaemonSet| set.env("ENABLE_POD_ENI").is_some_and(|v| v.eq_ignore_ascii_case("true"));
    let two = |network: InstanceNetwork| network.interfaces == 2 && network.branches > 0;
    instance_types::network(instance_type).is_some_and(two) && custom_networking(case).is_some_and(keeps_one)
}
