//! An agent that fails on every Node of one image, and works on those of another.

use crate::case::Case;
use crate::cluster_state::memo::Memo;
use crate::objects::Node;
use std::collections::BTreeMap;

/// How the pods of a DaemonSet do on the Nodes of one image.
#[derive(Debug, Default)]
struct Tally {
    ready: u32,
    failing: u32,
}

/// The image of the Node, on which the agent works nowhere, and another one, on which it does.
#[derive(Debug)]
pub(super) struct ImageSplit<'n> {
    pub own: &'n str,
    pub other: String,
}

pub(super) fn of<'n>(case: &Case, node: &'n Node, set: &str) -> Option<ImageSplit<'n>> {
    static TALLIES: Memo<BTreeMap<String, Tally>> = Memo::new("how an agent does on each image");
    let own = node.status.node_info.os_image.as_str();
    let tallies = case.cluster.once(&TALLIES, set, || {
        let mut tallies = BTreeMap::<String, Tally>::new();
        for node in case.cluster.nodes() {
            let Some(pod) = case.cluster.pods_on(node.name()).find(|pod| pod.daemon_set() == Some(set)) else {
                continue;
            };
            let tally = tallies.entry(node.status.node_info.os_image.to_string()).or_default();
            tally.ready += u32::from(pod.is_ready());
            tally.failing += u32::from(!pod.is_ready() && pod.trouble().is_some());
        }
        tallies
    });
    // One machine is no pattern.
    let here = tallies.get(own).filter(|here| here.ready == 0 && here.failing >= 2 && !own.is_empty());
    let elsewhere_well = here.is_some() && tallies.iter().all(|(image, tally)| image == own || tally.failing == 0);
    let (other, _) =
        tallies.iter().filter(|(_, tally)| elsewhere_well && tally.ready > 0).max_by_key(|(_, t)| t.ready)?;
    Some(ImageSplit { own, other: other.clone() })
}
