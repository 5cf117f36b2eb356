//! A Ready Node whose address is of another IP family than the cluster's.

use super::judging::Judging;
use super::stage::{Symptom, Wait};

use crate::api::{Evidence, Stage};
use crate::case::out_of_service::is_out_of_service;
use crate::cluster_state::ClusterState;
use crate::cluster_state::memo::Memo;
use crate::objects::Node;
use crate::upstream::karpenter::UNINITIALIZED_TAINT;
use crate::upstream::vpc_cni::AWS_NODE;
use readers::userdata::IpFamily;

/// The one family of a Node's InternalIPs.
pub fn only_family(node: &Node) -> Option<IpFamily> {
    let mut families =
        node.status.addresses.iter().filter(|a| a.type_ == "InternalIP").filter_map(|a| IpFamily::of_text(&a.address));
    let first = families.next()?;
    families.all(|family| family == first).then_some(first)
}

/// A Node in service of each family, IPv4 first, by name; one with both is of neither.
pub fn in_service(cluster: &ClusterState) -> [Option<&str>; 2] {
    static IN_SERVICE: Memo<[Option<String>; 2]> = Memo::new("Nodes in service by the family of their address");
    let names = cluster.once(&IN_SERVICE, "", || {
        let usable = || cluster.nodes().filter(|n| n.is_ready() && n.taint(UNINITIALIZED_TAINT).is_none());
        let of = |family| usable().find(|n| only_family(n) == Some(family)).map(|n| n.name().to_owned());
        [of(IpFamily::V4), of(IpFamily::V6)]
    });
    let [v4, v6] = &*names;
    [v4, v6].map(|name| cluster.node(name.as_deref()?).map(Node::name))
}

/// The family that the VPC CNI gives pods.
/// Source: amazon-vpc-cni-k8s v1.20.4 README.md ENABLE_IPv6: either of the two, never both.
pub fn of_vpc_cni(cluster: &ClusterState) -> Option<IpFamily> {
    let set = cluster.daemon_sets().find(|set| set.metadata.name == AWS_NODE)?;
    Some(if set.env("ENABLE_IPv6") == Some("true") { IpFamily::V6 } else { IpFamily::V4 })
}

pub(super) fn wait(judging: Judging, node: &Node) -> Option<Wait> {
    let Judging { cluster, thresholds: t, .. } = judging;
    let ready = node.condition("Ready").filter(|_| node.is_ready() && !is_out_of_service(node))?;
    // A fleet of one family, which is nearly every one, is looked through once.
    let [Some(_), Some(_)] = in_service(cluster) else { return None };
    let own = only_family(node)?;
    if of_vpc_cni(cluster)? == own {
        return None;
    }
    let shown = format!("InternalIP {}", node.address("InternalIP").unwrap_or_default());
    let because = format!("the VPC CNI gives pods addresses of the other family than {own}");
    let evidence = Evidence::new(format!("Node/{}", node.name()), "status.addresses", shown, because);
    let wait = Wait::new(Stage::Ready, ready.last_transition_time?, t.ready, t, evidence);
    Some(Wait { symptom: Symptom::OtherFamily, ..wait })
}
