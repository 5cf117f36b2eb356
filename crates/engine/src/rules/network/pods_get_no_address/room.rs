//! The number of pods that a Node has single addresses for.

use crate::facts::custom_networking::custom_networking;
use crate::objects::Node;
use crate::rules::prelude::*;
use crate::upstream::karpenter::{Version, image_tag};
use crate::upstream::{instance_types, vpc_cni};

pub(super) const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";

/// Source: amazon-vpc-cni-k8s v1.20.4 pkg/ipamd/ipamd.go `envEnableIpv4PrefixDelegation`.
const PREFIXES: &str = "ENABLE_PREFIX_DELEGATION";

/// The number of pods that the Node's type has single addresses for.
pub(super) struct Room<'c> {
    pub(super) type_: &'c str,
    pub(super) pods: u64,
    /// Whether the Node allows no more pods than that.
    pub(super) suffices: bool,
    /// Whether the VPC CNI keeps one interface for a trunk, and if so, whether the type can have one.
    pub(super) trunk: Option<bool>,
}

/// `None` for a type newer than the table, if the VPC CNI was not seen, or if it assigns addresses in prefixes of
/// sixteen. Source: amazon-vpc-cni-k8s v1.20.4 README.md.
///
/// With ENABLE_POD_ENI it keeps room for a trunk interface. Before 1.20.4 it does so even on types that cannot have
/// one.
/// Source: amazon-vpc-cni-k8s v1.9.3, v1.18.0, v1.20.3, v1.20.4 pkg/ipamd/ipamd.go `hasRoomForEni`.
pub(super) fn room<'c>(case: &Case<'c>, node: &'c Node) -> Option<Room<'c>> {
    let set = case.cluster.daemon_sets().find(|d| d.metadata.name == *vpc_cni::AWS_NODE)?;
    let is_on = |name: &str| set.env(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
    if is_on(PREFIXES) {
        return None;
    }
    let type_ = node.metadata.label(INSTANCE_TYPE)?;
    let network = instance_types::network(type_)?;
    let trunk = if is_on("ENABLE_POD_ENI") {
        let image = set.spec.template.spec.containers.iter().map(|c| &*c.image).find(|image| image.contains("cni"))?;
        let version = image_tag(image).and_then(Version::parse)?;
        let has_branches = network.branches > 0;
        (has_branches || version < Version(1, 20, 4)).then_some(has_branches)
    } else {
        None
    };
    let pods = network.pods(u64::from(custom_networking(case).is_some()) + u64::from(trunk.is_some()));
    let allowed: u64 = node.status.allocatable.get("pods")?.parse().ok()?;
    Some(Room { type_, pods, suffices: allowed <= pods, trunk })
}

impl Room<'_> {
    /// The interfaces that Karpenter must not count for pods.
    pub(super) fn reserved(&self, case: &Case) -> u64 {
        u64::from(custom_networking(case).is_some()) + u64::from(self.trunk.is_some())
    }
}

/// Whether the VPC CNI assigns addresses in prefixes of sixteen.
pub(super) fn has_prefixes(case: &Case) -> bool {
    let set = case.cluster.daemon_sets().find(|d| d.metadata.name == *vpc_cni::AWS_NODE);
    set.and_then(|set| set.env(PREFIXES)).is_some_and(|value| value.eq_ignore_ascii_case("true"))
}
