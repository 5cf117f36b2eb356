//! A path of the Node is of another kind than an agent's volume requires.

use super::agent::Agent;
use crate::api::{Blame, Link};
use crate::case::Case;
use crate::explain::explanation::{Explanation, Proof};
use crate::objects::{DaemonSet, Node};
use crate::upstream::vpc_cni;

/// The pod that cannot mount the path, and what made the path before.
pub(super) fn of_wrong_kind(
    case: &Case,
    node: &Node,
    agent: &Agent,
    (path, kind): (&str, &str),
    fails: impl Fn(&str) -> String,
    link: Link,
) -> Explanation {
    let wrong = Link::new(format!("Node/{}", node.name()), format!("{path} on it is no {kind}"));
    let explanation = match untyped(case, agent, path, kind) {
        Some(set) => made_directory(agent, set, (path, kind), fails, (link, wrong)),
        None => made_by_another(node, agent, path, fails, link).behind(wrong),
    };
    explanation.inspect("See what the pod reports", agent.describe()).inspect(
        "See which DaemonSets mount the path",
        format!("kubectl get daemonsets -A -o yaml | grep -A1 'path: {path}$'"),
    )
}

/// The agent's own volume has a type, so another program on the Node made the path.
fn made_by_another(node: &Node, agent: &Agent, path: &str, fails: impl Fn(&str) -> String, link: Link) -> Explanation {
    Explanation::new(Proof::Open, fails(""), agent.in_spec("volumes"), link)
        .fix(format!(
            "Find the pod or the script that makes {path}: a pod that mounts it without a type makes a directory if it \
             starts first. Then remove the path from this node and delete pod {}, or replace the node, which evicts \
             its pods.",
            agent.name
        ))
        .ask(
            format!("Which pod on the Node mounts {path} without a type?"),
            format!("kubectl get pods -A -o yaml --field-selector spec.nodeName={} | grep -A1 {path}", node.name()),
        )
}

/// The DaemonSet with a pod on the Node that mounts the path without a type. If the path is missing when such a pod
/// starts, the runtime makes a directory there.
/// Source: containerd v2.1.4 internal/cri/opts/spec_linux_opts.go `WithMounts`.
fn untyped<'c>(case: &Case<'c>, agent: &Agent, path: &str, kind: &str) -> Option<&'c DaemonSet> {
    if kind == "directory" {
        return None;
    }
    let is_there = |set: &DaemonSet| {
        case.pods().any(|pod| {
            let is_its = pod.daemon_set().is_some_and(|own| *own == *set.metadata.name);
            is_its && pod.metadata.namespace == set.metadata.namespace
        })
    };
    let is_other = |set: &DaemonSet| *set.metadata.name != *agent.set;
    let sets = case.cluster.daemon_sets().filter(|set| is_other(set) && set.mounts_untyped(path) && is_there(set));
    sets.min_by_key(|set| (&set.metadata.name, &set.metadata.namespace))
}

fn made_directory(
    agent: &Agent,
    set: &DaemonSet,
    (path, kind): (&str, &str),
    fails: impl Fn(&str) -> String,
    (link, wrong): (Link, Link),
) -> Explanation {
    let name = &set.metadata.name;
    let why = fails(&format!("; DaemonSet {name} mounts {path} without a type, which makes a directory of it"));
    let blame = Blame::object("apps/v1", "DaemonSet", name)
        .namespace(set.metadata.namespace.as_deref().unwrap_or_default())
        .field("spec.template.spec.volumes");
    // Source: amazon-vpc-cni-k8s v1.18.2 config/master/aws-k8s-cni.yaml; the chart since v1.18.1.
    let is_upstreams = *name == *vpc_cni::AWS_NODE && path == "/run/xtables.lock";
    let upstream = if is_upstreams { ", as the VPC CNI's own manifest does since 1.18.2" } else { "" };
    let type_ = if kind == "file" {
        format!("Set type: FileOrCreate for {path} in DaemonSet {name}{upstream}.")
    } else {
        format!("Set the type for {path} in DaemonSet {name} that DaemonSet {} has.", agent.set)
    };
    Explanation::new(Proof::Lasting, why, blame, link)
        .behind(wrong)
        .behind(Link::new(format!("DaemonSet/{name}"), format!("it mounts {path} without a type")))
        .fix(format!(
            "{type_} Then remove the directory on this node (rmdir {path}) and delete pod {}. Or replace the node, \
             which evicts its pods.",
            agent.name
        ))
}
