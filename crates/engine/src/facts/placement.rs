//! Why a DaemonSet has no pod on a Node, as far as its own text shows.

use crate::objects::{DaemonSet, Node, Taint};

/// The reason that keeps the pod away.
#[derive(Debug, PartialEq, Eq)]
pub struct KeptAway {
    pub why: String,
    /// The part of the DaemonSet that does it.
    pub field: &'static str,
    /// Labels may be set some minutes after the Node joined, but for those of the machine itself. A taint that stays is
    /// not tolerated later either.
    pub may_change: bool,
    /// The taint that is not tolerated, if it is one.
    pub taint: Option<Taint>,
}

impl KeptAway {
    /// What lets the DaemonSet run on a Node that it does not select.
    pub fn selection_fix(&self, daemon_set: &str) -> String {
        if self.may_change {
            return format!(
                "Add to the Node the label that DaemonSet {daemon_set} requires. Or change the DaemonSet so that it \
                 selects this Node."
            );
        }
        format!(
            "Let DaemonSet {daemon_set} run on this Node too, if its image is built for it. What it asks for is what \
             the machine is, and no label changes that."
        )
    }
}

/// The part that only some Nodes meet.
pub const AFFINITY: &str = "spec.template.spec.affinity";

/// The kubelet writes these at each registration, and sets them back if anybody changes them.
/// Source: kubernetes v1.36.3 pkg/kubelet/kubelet_node_status.go `updateDefaultLabels`.
const OF_MACHINE: [&str; 2] = ["kubernetes.io/arch", "kubernetes.io/os"];

fn may_change(node: &Node, key: &str) -> bool {
    !(OF_MACHINE.contains(&key) && node.metadata.label(key).is_some())
}

pub fn refusal(set: &DaemonSet, node: &Node) -> Option<KeptAway> {
    let (name, pod) = (&set.metadata.name, &set.spec.template.spec);
    let untolerated = node.spec.taints.iter().filter(|t: &&Taint| t.keeps_pods_off() && !set.tolerates(t));
    // Those of conditions come and go with them: one that somebody chose tells more.
    if let Some(taint) = untolerated.min_by_key(|t| t.key.starts_with("node.kubernetes.io/")) {
        let why = format!("DaemonSet {name} does not tolerate the Node's taint {taint}");
        return Some(KeptAway {
            why,
            field: "spec.template.spec.tolerations",
            may_change: false,
            taint: Some(taint.clone()),
        });
    }
    if let Some((key, value)) = pod.node_selector.iter().find(|(k, v)| node.metadata.label(k) != Some(v.as_str())) {
        let why = format!("DaemonSet {name} selects Nodes with {key}={value}, but this one does not have that label");
        let may_change = may_change(node, key);
        return Some(KeptAway { why, field: "spec.template.spec.nodeSelector", may_change, taint: None });
    }
    let unmet = pod.affinity.unmet(&node.metadata);
    let first = unmet.first()?;
    let has =
        node.metadata.label(&first.key).map_or_else(|| "does not have that label".to_owned(), |v| format!("has {v}"));
    let why = format!("DaemonSet {name} runs only on Nodes with {}, but this one {has}", first.shown());
    Some(KeptAway { why, field: AFFINITY, may_change: may_change(node, &first.key), taint: None })
}
