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

/// The oldest and the newest.
static RANGE: Memo<Option<(Minor, Minor)>> = Memo::new("the oldest and the newest kubelet that is Ready");

/// The image's name shows its kubelet, or a Node with the image does. Otherwise it is most likely that of the other
/// Nodes. While they differ, they do not show the kubelet of an image that the class no longer selects.
pub(crate) fn expected(case: &Case) -> Option<KubeletVersion> {
    let image = kubelet_skew::image(case);
    if let Some((minor, ami)) = image.and_then(|ami| Some((image_name::kubernetes(&ami.name)?, ami))) {
        let why = format!("the image {} is for Kubernetes 1.{minor}", ami.name);
        return Some(KubeletVersion { minor, by_image: true, why });
    }
    let former = case.former_image();
    if let Some((minor, node)) = former.and_then(|image| with_image(case, image)) {
        let why = format!("Node {} has the same image and runs Kubernetes 1.{minor}", node.name());
        return Some(KubeletVersion { minor, by_image: true, why });
    }
    let (oldest, minor) = range(case)?;
    if former.is_some() && oldest != minor {
        return None;
    }
    Some(KubeletVersion { minor, by_image: false, why: format!("the other Nodes run Kubernetes 1.{minor}") })
}

/// A Node that a sibling with this image became, and the version of its kubelet.
fn with_image<'w>(case: &Case<'w>, image: &str) -> Option<(Minor, &'w Node)> {
    let sibling = case.sibling_joined_with("image", image)?;
    let node = case.cluster.nodes_of(sibling).first().copied()?;
    Some((minor_of(node)?, node))
}

/// The version of the machine's own image, otherwise that of all images that its class selects.
pub(crate) fn by_images(case: &Case) -> Option<Minor> {
    match kubelet_skew::image(case) {
        Some(own) => image_name::kubernetes(&own.name),
        None => case.class()?.kubernetes(),
    }
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
    range(case).map(|(_, newest)| newest)
}

fn range(case: &Case) -> Option<(Minor, Minor)> {
    *case.cluster.once(&RANGE, "", || {
        let ready = || case.cluster.nodes().filter(|n| n.is_ready()).filter_map(minor_of);
        Some((ready().min()?, ready().max()?))
    })
}

fn minor_of(node: &Node) -> Option<Minor> {
    kubelet_skew::minor(&node.status.node_info.kubelet_version)
}
