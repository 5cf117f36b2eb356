//! A Ready Node has pods with volumes, but the driver that mounts them does not work there.

use crate::case::missing_driver::{MissingDriver, missing_driver};
use crate::explain::agent_chain::{of_pod, without_pod};
use crate::explain::explanation::{Explanation, Proof};
use crate::objects::{Node, Pod};
use crate::rules::prelude::*;

rule! {
    cause: CsiDriverMissing,
    summary: "The Node is Ready, but pods wait there for volumes because the CSI driver that mounts them does not run \
              on it",
    stages: [Ready],
    reads: [Nodes, NodeClasses, Events, Pods, DaemonSets, Logs],
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let node = case.node.filter(|_| case.wait.symptom == Symptom::DriverMissing)?;
    let missing = missing_driver(case.cluster, node, case.now)?;
    let explanation = behind(case, node, &missing);
    let driver = missing.in_words();
    let MissingDriver { event, .. } = missing;
    let (who, why) = (&event.involved_object, explanation.why.trim_end_matches('.'));
    let waits = format!("it waits for {driver}");
    let what = if missing.is_of_claim() {
        format!("no volume can be created there for {} {}, which {driver} must create", who.kind, who.name)
    } else {
        format!("pod {} waits there for a volume, which {driver} must mount", who.name)
    };
    let summary = format!("Node {} is Ready, but since {} {what}. But {why}.", node.name(), case.since());
    let symptom = Link::new(format!("Node/{}", node.name()), format!("Ready, but it has no {driver}"));
    let explanation = explanation.after(Link::new(format!("{}/{}", who.kind, who.name), waits));
    explanation.found(case, summary, case.wait.evidence.clone(), symptom).into()
}

/// Why the driver's pod does not work on the Node.
fn behind(case: &Case, node: &Node, missing: &MissingDriver) -> Explanation {
    let set = &missing.set.metadata.name;
    match case.pods().find(|pod| pod.daemon_set() == Some(set)) {
        Some(pod) if pod.is_ready() => unregistered(of_pod(case, node, pod), pod, missing.name),
        Some(pod) => of_pod(case, node, pod),
        None => without_pod(case, node, set),
    }
}

/// The registrar tells the kubelet of a socket under a path of the host. Both must use the same path.
/// Source: kubernetes-csi/node-driver-registrar README.md, `--kubelet-registration-path`.
fn unregistered(explanation: Explanation, pod: &Pod, driver: &str) -> Explanation {
    let name = &pod.metadata.name;
    let why = format!("pod {name} is Ready, but has not registered the driver with the kubelet");
    let log = format!(
        "kubectl logs -n {} {name} --all-containers --tail=50",
        pod.metadata.namespace.as_deref().unwrap_or_default()
    );
    Explanation { why, proof: Proof::Open, ..explanation }
        .fix(format!(
            "Read the log of node-driver-registrar in pod {name}: it registers {driver}, under the kubelet's own root \
             directory (--root-dir)."
        ))
        .ask(format!("Does node-driver-registrar of pod {name} log that it has registered {driver}?"), log)
}
