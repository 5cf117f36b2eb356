//! An agent that fails on every Node with one image and works on those with another.

use crate::case::Case;
use crate::case::node_image::Grain;
use crate::cluster_state::memo::Memo;
use crate::objects::Node;
use std::collections::{BTreeMap, BTreeSet};

/// How many pods of a DaemonSet work on the Nodes with one image.
#[derive(Debug, Default)]
struct Tally {
    ready: u32,
    failing: u32,
}

/// The image of the Node, with which the agent works nowhere, and another one, with which it does.
#[derive(Debug)]
pub(super) struct ImageSplit {
    pub own: String,
    pub other: String,
}

/// By system or kernel. The releases of two NodePools differ in more than themselves, so they only count if nothing
/// else differs.
pub(super) fn image_split(case: &Case, node: &Node, set: &str) -> Option<ImageSplit> {
    [Grain::System, Grain::Kernel].into_iter().find_map(|grain| told_apart(case, node, set, grain))
}

/// By release, within one NodePool or node group.
pub(super) fn of_release(case: &Case, node: &Node, set: &str) -> Option<ImageSplit> {
    static WORKING: Memo<BTreeSet<String>> = Memo::new("the groups of Nodes in which an agent works");
    let group = |node: &'_ Node| {
        let labels = ["karpenter.sh/nodepool", "eks.amazonaws.com/nodegroup"];
        labels.iter().find_map(|label| node.metadata.label(label)).map(str::to_owned)
    };
    let own = group(node)?;
    let works =
        |other: &&Node| case.cluster.pods_on(other.name()).any(|pod| pod.daemon_set() == Some(set) && pod.is_ready());
    let working = case.cluster.once(&WORKING, set, || case.cluster.nodes().filter(works).filter_map(group).collect());
    if !working.contains(&own) {
        return None;
    }
    told_apart(case, node, set, Grain::Image)
}

fn told_apart(case: &Case, node: &Node, set: &str, grain: Grain) -> Option<ImageSplit> {
    static TALLIES: Memo<BTreeMap<String, Tally>> = Memo::new("the Nodes on which an agent works, by image");
    let own = grain.of(case.cluster, node);
    let tallies = case.cluster.once(&TALLIES, &format!("{grain:?} {set}"), || {
        let mut tallies = BTreeMap::<String, Tally>::new();
        for node in case.cluster.nodes() {
            let Some(pod) = case.cluster.pods_on(node.name()).find(|pod| pod.daemon_set() == Some(set)) else {
                continue;
            };
            let image = grain.of(case.cluster, node);
            // Nobody knows whether that is another.
            if image.is_empty() && pod.is_ready() {
                continue;
            }
            let tally = tallies.entry(image).or_default();
            tally.ready += u32::from(pod.is_ready());
            tally.failing += u32::from(!pod.is_ready() && pod.trouble().is_some());
        }
        tallies
    });
    // One machine is no pattern.
    let here = tallies.get(&own).filter(|here| here.ready == 0 && here.failing >= 2 && !own.is_empty());
    let elsewhere_well = here.is_some() && tallies.iter().all(|(image, tally)| *image == own || tally.failing == 0);
    let (other, _) =
        tallies.iter().filter(|(_, tally)| elsewhere_well && tally.ready > 0).max_by_key(|(_, t)| t.ready)?;
    Some(ImageSplit { other: other.clone(), own })
}
