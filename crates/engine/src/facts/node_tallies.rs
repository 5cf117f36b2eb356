//! The Nodes counted by their properties, so that a failing one is compared with the working ones, and not each time
//! with all of them.

use crate::case::Case;
use crate::cluster_state::memo::Memo;
use crate::objects::Node;
use crate::upstream::startup_taint::owner;
use crate::upstream::vpc_cni;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Nodes that share a value.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct NodeTally {
    pub ready: u32,
    pub not_ready: u32,
    /// The Nodes whose network plugin is not set up.
    pub without_network: u32,
}

/// The Nodes by what is compared, and the value.
#[derive(Debug, Default)]
pub(crate) struct NodeTallies {
    counted: [BTreeMap<String, NodeTally>; COMPARED.len()],
    /// All that are compared so, whatever the value.
    all: [NodeTally; COMPARED.len()],
    /// A Node of Karpenter's is Ready, and one that is not Karpenter's.
    pub own_ready: bool,
    pub foreign_ready: bool,
}

/// `None` where a Node is not compared so; a Node may have several values, or none of them.
type Values = fn(&Node) -> Option<Vec<String>>;

const COMPARED: [(&str, Values); 8] = [
    ("instance family", |node| one(family(node))),
    ("zone", |node| one(node.metadata.label("topology.kubernetes.io/zone"))),
    ("kubelet", |node| one(Some(node.status.node_info.kubelet_version.as_str()).filter(|version| !version.is_empty()))),
    ("group", |node| {
        let of_group = || node.metadata.label("eks.amazonaws.com/nodegroup");
        one(node.metadata.label("karpenter.sh/nodepool").or_else(of_group))
    }),
    ("capacity type", |node| one(node.metadata.label("karpenter.sh/capacity-type"))),
    ("IP family", |node| one(node.internal_ip().map(|ip| if ip.is_ipv6() { "IPv6" } else { "IPv4" }))),
    ("taint", |node| {
        let lasting = node.spec.taints.iter().filter(|taint| is_users(&taint.key) && owner(taint).is_none());
        Some(lasting.map(ToString::to_string).collect())
    }),
    ("label", |node| {
        let of_users = node.metadata.labels.iter().filter(|(key, _)| is_users(key));
        Some(of_users.map(|(key, value)| format!("{key}={value}")).collect())
    }),
];

/// Kubernetes, Karpenter and AWS set their own with the Node's state, or for each Node differently.
fn is_users(key: &str) -> bool {
    const OF_THEIRS: [&str; 5] = ["kubernetes.io", "k8s.io", "karpenter.sh", "k8s.aws", "amazonaws.com"];
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    let is_under =
        |theirs: &str| domain.strip_suffix(theirs).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    !OF_THEIRS.iter().any(|theirs| is_under(theirs))
}

fn one(value: Option<&str>) -> Option<Vec<String>> {
    value.map(|value| vec![value.to_owned()])
}

/// `m6i` of m6i.large.
pub(crate) fn family(node: &Node) -> Option<&str> {
    node.metadata.label("node.kubernetes.io/instance-type")?.split_once('.').map(|(family, _)| family)
}

pub(crate) fn tallies(case: &Case) -> Arc<NodeTallies> {
    static TALLIES: Memo<NodeTallies> = Memo::new("the Nodes by what they have");
    case.cluster.once(&TALLIES, "", || {
        let mut tallies = NodeTallies::default();
        for node in case.cluster.nodes() {
            tallies.count(node);
        }
        tallies
    })
}

fn place(what: &str) -> Option<usize> {
    COMPARED.iter().position(|(name, _)| *name == what)
}

impl NodeTallies {
    fn count(&mut self, node: &Node) {
        let (ready, network) = (node.is_ready(), vpc_cni::not_ready(node).is_none());
        let is_own = node.metadata.label("karpenter.sh/nodepool").is_some();
        self.own_ready |= is_own && ready;
        self.foreign_ready |= !is_own && ready;
        for (((_, values), counted), all) in COMPARED.iter().zip(&mut self.counted).zip(&mut self.all) {
            let Some(values) = values(node) else { continue };
            all.add(ready, network);
            for value in values {
                counted.entry(value).or_default().add(ready, network);
            }
        }
    }

    /// Each value with its Nodes.
    pub(crate) fn by(&self, what: &str) -> impl Iterator<Item = (&str, NodeTally)> {
        let of_what = place(what).and_then(|at| self.counted.get(at));
        of_what.into_iter().flatten().map(|(value, tally)| (value.as_str(), *tally))
    }

    /// All Nodes that are compared so.
    pub(crate) fn all(&self, what: &str) -> NodeTally {
        place(what).and_then(|at| self.all.get(at)).copied().unwrap_or_default()
    }
}

/// The Node's values among the compared properties.
pub(crate) fn values(node: &Node, what: &str) -> Vec<String> {
    place(what).and_then(|at| COMPARED.get(at)?.1(node)).unwrap_or_default()
}

impl NodeTally {
    fn add(&mut self, ready: bool, network: bool) {
        self.ready += u32::from(ready);
        self.not_ready += u32::from(!ready);
        self.without_network += u32::from(!network);
    }
}
