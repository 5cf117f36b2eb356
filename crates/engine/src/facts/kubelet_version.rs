//! The kubelet version of a machine that has no Node yet.

use crate::case::Case;
use crate::cluster_state::memo::Memo;
use crate::facts::kubelet_skew::{self, Minor};
use crate::objects::{Node, NodeClaim, NodeClass};
use readers::userdata::image_name;
use std::sync::Arc;

/// A kubelet's version, and the source that shows it.
pub(crate) struct KubeletVersion {
    pub minor: Minor,
    /// Whether the image's published name shows it; otherwise it is that of the newest Ready Node.
    pub by_image: bool,
    /// The same as a clause.
    pub why: String,
}

static NEWEST: Memo<Option<Minor>> = Memo::new("the newest kubelet that is Ready");

/// The image's name shows its kubelet; otherwise it is most likely that of the other Nodes.
pub(crate) fn expected(case: &Case) -> Option<KubeletVersion> {
    let image = kubelet_skew::image(case);
    if let Some((minor, ami)) = image.and_then(|ami| Some((image_name::kubernetes(&ami.name)?, ami))) {
        let why = format!("the image {} is for Kubernetes 1.{minor}", ami.name);
        return Some(KubeletVersion { minor, by_image: true, why });
    }
    let minor = newest(case)?;
    Some(KubeletVersion { minor, by_image: false, why: format!("the other Nodes run Kubernetes 1.{minor}") })
}

/// The lowest possible version of the control plane: its own report, otherwise that of the newest working kubelet.
pub(crate) fn of_cluster(case: &Case) -> Option<Minor> {
    let said = case.cluster.api_server().version.as_deref().and_then(kubelet_skew::minor);
    said.or_else(|| newest(case))
}

/// A machine that joined with the same text and a kubelet of this version or a newer one. One that joined before an
/// upgrade only proves something about its own kubelet.
pub(crate) fn joined_since<'w>(case: &Case<'w>, class: &NodeClass, since: Minor) -> Option<&'w NodeClaim> {
    static JOINED: Memo<Option<String>> = Memo::new("a machine with the same text and no older kubelet that joined");
    let text = case.class_hash();
    // Which kubelet it has only its Node tells.
    let is_newer = |node: &Node| minor_of(node).is_none_or(|minor| minor >= since);
    let is_witness = |s: &NodeClaim| case.cluster.nodes_of(s).first().is_some_and(|node| is_newer(node));
    let about = format!("{}/{} {text} {since}", class.kind, class.name());
    let joined: Arc<Option<String>> = case.cluster.once(&JOINED, &about, || {
        case.same_spec_siblings_joined().find(|s| is_witness(s)).map(|s| s.name().to_owned())
    });
    joined.as_deref().and_then(|name| case.cluster.claim(name))
}

fn newest(case: &Case) -> Option<Minor> {
    *case.cluster.once(&NEWEST, "", || case.cluster.nodes().filter(|n| n.is_ready()).filter_map(minor_of).max())
}

fn minor_of(node: &Node) -> Option<Minor> {
    kubelet_skew::minor(&node.status.node_info.kubelet_version)
}
