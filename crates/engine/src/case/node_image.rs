//! What a Node has booted, from coarse to fine: two releases of one system have the same name.

use crate::cluster_state::ClusterState;
use crate::objects::Node;

/// How finely two images are distinguished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grain {
    /// `Amazon Linux 2`.
    System,
    /// `Amazon Linux 2 with kernel 5.10`.
    Kernel,
    /// `Amazon Linux 2, ami-0123…`.
    Image,
}

impl Grain {
    pub const ALL: [Self; 3] = [Self::System, Self::Kernel, Self::Image];

    /// The Node's image in words; empty where that is not known.
    pub fn of(self, cluster: &ClusterState, node: &Node) -> String {
        let info = &node.status.node_info;
        let system = info.os_image.as_str();
        match self {
            Self::System => system.to_owned(),
            Self::Kernel => match series(&info.kernel_version) {
                Some(series) => format!("{system} with kernel {series}"),
                None => String::new(),
            },
            Self::Image => match ami(cluster, node) {
                Some(ami) => format!("{system}, {ami}"),
                None => String::new(),
            },
        }
    }
}

/// `5.10` of `5.10.186-179.751.amzn2.x86_64`.
fn series(version: &str) -> Option<&str> {
    let (at, _) = version.match_indices('.').nth(1)?;
    Some(&version[..at])
}

/// Sources: core v1.14.3 pkg/apis/v1/nodeclaim_status.go `ImageID`; EKS names it in a label of a
/// managed node group's Nodes.
fn ami<'w>(cluster: &'w ClusterState, node: &'w Node) -> Option<&'w str> {
    let of_claim = cluster.claim_of_node(node).map(|claim| claim.status.image_id.as_str());
    let of_claim = of_claim.filter(|image| !image.is_empty());
    of_claim.or_else(|| node.metadata.label("eks.amazonaws.com/nodegroup-image"))
}
