//! The DNS server of the cluster that a node class passes to the kubelet.

use super::flaw::Flaw;
use crate::objects::NodeClass;
use readers::userdata::{Family, has_expansion};
use serde_json::Value;
use std::net::IpAddr;

/// An entry of `clusterDNS` that is not an IP address. Bottlerocket then rejects all of its settings. On other families
/// the kubelet ignores the entry.
// kubernetes v1.36.3 pkg/kubelet/kubelet.go "Invalid clusterDNS IP"; for Bottlerocket's cluster-dns-ip see
// crates/readers/src/userdata/bottlerocket.rs
pub fn flaw(class: &NodeClass) -> Option<Flaw> {
    let family = class.family().filter(|family| *family != Family::Custom)?;
    let servers = class.spec.kubelet.get("clusterDNS")?.as_array()?.iter().filter_map(Value::as_str).enumerate();
    let (at, server) =
        servers.into_iter().find(|(_, server)| !has_expansion(server) && server.parse::<IpAddr>().is_err())?;
    let fatal = family == Family::Bottlerocket;
    let outcome = if fatal {
        "Bottlerocket refuses its settings and no Node appears"
    } else {
        "the kubelet leaves it out and pods get no DNS of the cluster from it"
    };
    Some(Flaw {
        cause: "NoDnsAddress",
        message: format!(
            "EC2NodeClass {} has the clusterDNS {server:?}, which is no address: {outcome}.",
            class.name()
        ),
        fix: "Write the cluster IP of the Service kube-dns, or remove clusterDNS: Karpenter finds it.".into(),
        field: format!("spec.kubelet.clusterDNS.{at}"),
        fatal,
    })
}
