//! Whether a Node's kubelet is newer than the API server, as far as the cluster shows the server's version.
//!
//! A kubelet may be older than its API server, never newer. Since 1.31 it lists Services by spec.clusterIP, which older
//! servers reject: it then starts no container.
//! Sources: <https://kubernetes.io/releases/version-skew-policy/>; kubernetes v1.31.0 pkg/kubelet/kubelet.go
//! (`headlessServiceFilter`), kubernetes/kubernetes#127316.

use crate::api::Blame;
use crate::case::Case;
use crate::cluster_state::memo::Memo;
use crate::facts::network_plugin::KUBE_PROXY;
use crate::objects::input::Input;
use crate::objects::{Ami, Node, Pod};

/// A minor version of Kubernetes 1.
pub(crate) type Minor = u32;

const STARTS_NOTHING: &str = "a kubelet that is newer than the API server cannot list Services and starts no container";

#[derive(Debug)]
pub(crate) struct KubeletSkew {
    pub kubelet: Minor,
    /// The API server's version, if it is known.
    pub server: Minor,
    /// A clause with both versions.
    pub why: String,
    /// The object that shows the API server's version.
    pub seen: String,
    /// Whether the API server reported it, or kube-proxy, which follows it, is older too.
    pub proven: bool,
}

/// The newest minor version of kubelets that work, and how many Nodes have it.
static WORKING: Memo<Vec<(Minor, usize)>> = Memo::new("the minor versions of kubelets that are Ready");

/// The skew, if the API server is older than this kubelet. If its version is not known, every other Ready Node must
/// have an older kubelet.
pub(crate) fn ahead_of_api_server(case: &Case, node: &Node) -> Option<KubeletSkew> {
    let kubelet = minor(&node.status.node_info.kubelet_version)?;
    if let Some(server) = case.cluster.api_server().version.as_deref().and_then(minor) {
        return (server < kubelet).then(|| KubeletSkew {
            kubelet,
            server,
            why: format!("its kubelet is 1.{kubelet}, while the API server is 1.{server}: {STARTS_NOTHING}"),
            seen: format!("the API server says that it is 1.{server}"),
            proven: true,
        });
    }
    let working = case.cluster.once(&WORKING, "", || {
        let ready = case.cluster.nodes().filter(|n| n.is_ready());
        let mut minors: Vec<Minor> = ready.filter_map(|n| minor(&n.status.node_info.kubelet_version)).collect();
        minors.sort_unstable();
        minors.chunk_by(|a, b| a == b).filter_map(|same| Some((*same.first()?, same.len()))).collect()
    });
    let own = usize::from(node.is_ready());
    let others = working.iter().filter(|(m, n)| *m != kubelet || *n > own).map(|(m, _)| *m).max()?;
    if others >= kubelet {
        return None;
    }
    let proxy = proxy(case);
    if proxy.is_some_and(|proxy| proxy >= kubelet) {
        return None;
    }
    let seen = proxy.map_or_else(String::new, |proxy| format!(" and kube-proxy is 1.{proxy}"));
    let why = format!(
        "its kubelet is 1.{kubelet}, while the kubelets that work are 1.{others} or older{seen}: {STARTS_NOTHING}"
    );
    Some(KubeletSkew {
        kubelet,
        server: others,
        why,
        seen: format!("no Node with a kubelet newer than 1.{others} is Ready"),
        proven: proxy.is_some(),
    })
}

impl KubeletSkew {
    /// The selector that chose the image.
    pub(crate) fn blame_and_fix(&self, case: &Case, node: &Node) -> (Blame, String) {
        match case.class() {
            Some(class) => (
                Blame::class(class).field("spec.amiSelectorTerms"),
                format!(
                    "Select images of the control plane's version, 1.{}, in {} {} (by alias, which follows it), or \
                     upgrade the control plane to 1.{} first. Then replace the node, which runs no container yet.",
                    self.server,
                    class.kind,
                    class.name(),
                    self.kubelet
                ),
            ),
            None => (
                Blame::object("v1", "Node", node.name()).field("status.nodeInfo.kubeletVersion"),
                format!(
                    "Replace the node by one of the control plane's version, 1.{}, or upgrade the control plane to \
                     1.{} first. The node runs no container yet.",
                    self.server, self.kubelet
                ),
            ),
        }
    }
}

/// The name of the image that the machine was started from.
pub(crate) fn image<'w>(case: &Case<'w>) -> Option<&'w Ami> {
    let id = case.claim.map(|c| c.status.image_id.as_str()).filter(|id| !id.is_empty())?;
    case.class()?.status.amis.iter().find(|ami| ami.id == id)
}

/// The version that kube-proxy's image has: its add-on follows the API server.
fn proxy(case: &Case) -> Option<Minor> {
    let tag = |image: &str| minor(image.rsplit_once(':')?.1);
    let set = case.cluster.daemon_sets().find(|d| d.metadata.name == *KUBE_PROXY);
    let of_set = set.and_then(|set| tag(&set.spec.template.spec.containers.first()?.image));
    let of_pod = |pod: &Pod| tag(&pod.spec.containers.first()?.image);
    let unread = case.cluster.missing(Input::DaemonSets).is_some();
    of_set.or_else(|| case.pods().filter(|p| unread && p.daemon_set() == Some(KUBE_PROXY)).find_map(of_pod))
}

/// `v1.31.0-eks-a737599`
pub(crate) fn minor(version: &str) -> Option<Minor> {
    version.strip_prefix('v')?.strip_prefix("1.")?.split('.').next()?.parse().ok()
}
