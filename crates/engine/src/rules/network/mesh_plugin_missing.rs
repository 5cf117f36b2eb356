//! Pods of a service mesh fail on a Ready Node, because the mesh's network plugin is not there or came after them.

use crate::case::missing_mesh::{MissingMesh, missing_mesh};
use crate::case::timestamp;
use crate::explain::agent_chain::{of_pod, without_pod};
use crate::explain::explanation::{Explanation, Proof};
use crate::objects::{Node, Pod};
use crate::rules::prelude::*;
use chrono::{DateTime, Utc};

rule! {
    cause: MeshPluginMissing,
    summary: "The Node is Ready, but pods of Istio or Linkerd fail there, because the network plugin of the mesh does \
              not run on it or came after them",
    stages: [Ready],
    reads: [Nodes, NodeClasses, Events, Pods, DaemonSets, Logs],
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let node = case.node.filter(|_| case.wait.symptom == Symptom::MeshPluginMissing)?;
    let missing = missing_mesh(case.cluster, node)?;
    let explanation = behind(case, node, &missing);
    let (pod, container) = (&missing.pod.metadata.name, &missing.check.name);
    let (set, why) = (&missing.set.metadata.name, explanation.why.trim_end_matches('.'));
    let summary = format!(
        "Node {} is Ready, but pod {pod} has failed there since {}: its init container {container} finds that its \
         traffic is not redirected, which the plugin of DaemonSet {set} does. But {why}.",
        node.name(),
        case.since()
    );
    let symptom = Link::new(format!("Node/{}", node.name()), "Ready, but pods of the mesh fail there");
    let explanation = explanation.after(Link::new(format!("Pod/{pod}"), format!("it waits for the plugin of {set}")));
    explanation.found(case, summary, case.wait.evidence.clone(), symptom).into()
}

/// Why the plugin was not there.
fn behind(case: &Case, node: &Node, missing: &MissingMesh) -> Explanation {
    let set = &missing.set.metadata.name;
    let Some(plugin) = case.pods().find(|pod| pod.daemon_set() == Some(set)) else {
        return without_pod(case, node, set);
    };
    match plugin.ready_since() {
        Some(ready) => came_late(missing, plugin, ready),
        None => of_pod(case, node, plugin),
    }
}

/// A plugin changes the network of a pod when the pod starts, and of no pod that is there.
/// Source: containernetworking/cni v1.3.0 SPEC.md, section 4 (`ADD`).
fn came_late(missing: &MissingMesh, plugin: &Pod, ready: DateTime<Utc>) -> Explanation {
    let (pod, plugin) = (&missing.pod.metadata, &plugin.metadata.name);
    let namespace = pod.namespace.as_deref().unwrap_or_default();
    let set = &missing.set.metadata.name;
    let late = format!("it has been Ready since {} only", timestamp(ready));
    let why = format!("pod {plugin} came after it ({late}), and a plugin changes no pod that exists");
    let blame = Blame::object("apps/v1", "DaemonSet", set)
        .namespace(missing.set.metadata.namespace.as_deref().unwrap_or_default());
    Explanation::new(Proof::Settled, why, blame, Link::new(format!("Pod/{plugin}"), late))
        .fix(
            "Delete the pod: its successor gets its redirection. To spare the next nodes this, give the NodePool a \
             startup taint that the mesh removes (Istio: cni.istio.io/not-ready, with \
             PILOT_ENABLE_NODE_UNTAINT_CONTROLLERS=true on istiod), or turn on the repair that deletes such pods.",
        )
        .change("Replace the pod", format!("kubectl delete pod -n {namespace} {}", pod.name))
}
