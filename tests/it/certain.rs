//! `Certain` is a root cause: it names an object to change, and not the machine that shows the symptom.

use engine::api::{Confidence, NodeDiagnosis};
use engine::suspects;
use std::collections::BTreeSet;
use std::fmt::Write;
use testkit::fixes::verdicts;

/// What lies with the one machine: it is replaced, or its own taints, deletion or hardware are what is to be changed.
const OF_THE_MACHINE: &[&str] = &[
    "AcceleratorBroken",
    "CloudControllerNeverInitialized",
    "CordonRemains",
    "MultipleNodesFound",
    "NodeObjectDeleted",
    "NodeWithoutProviderID",
    "SandboxImagePullFails",
    "StaleCloudProviderTaint",
    "StaleNodeTakenOver",
    "TaintLeftBehind",
    "TerminationStuck",
    "UnregisteredTaintMissing",
    "UnregisteredTaintPutBack",
];

/// What no object that was read is to be changed for: EC2 or a log says why, of a machine whose class is not known, or
/// a permission is missing, and nothing says whose.
const OUTSIDE: &[&str] = &[
    "ApiServerUnreachable",
    "AwsUnreachable",
    "BootstrapFailed",
    "InstanceEnded",
    "KubeletTurnedAway",
    "LaunchFailed",
    "NetworkPluginFails",
    "NodeClassNotReady",
];

/// What is wrong with a verdict that says it is certain.
fn fault(diagnosis: &NodeDiagnosis) -> Option<String> {
    let status = diagnosis.status.as_ref().expect("the engine fills in the status");
    if status.confidence != Confidence::Certain {
        return None;
    }
    let Some(blame) = &status.blame else {
        return (!OUTSIDE.contains(&&*status.cause)).then(|| "names no object to change".to_owned());
    };
    let is_machine = matches!(blame.kind.as_str(), "Node" | "NodeClaim");
    let is_symptom = suspects::ALL.iter().any(|candidate| candidate.behind.contains(&&*status.cause));
    if is_machine && (is_symptom || !OF_THE_MACHINE.contains(&&*status.cause)) {
        return Some(format!("blames only {}, which shows it", blame.object));
    }
    if is_symptom && status.chain.len() == 1 {
        return Some("has a chain that ends at the symptom".to_owned());
    }
    (!status.suspects.is_empty()).then(|| "has suspects all the same".to_owned())
}

#[test]
fn what_is_certain_names_what_to_change() {
    let mut failures = String::new();
    let mut certain = BTreeSet::new();
    for (place, diagnosis) in verdicts() {
        let cause = diagnosis.cause().unwrap_or_default();
        if let Some(fault) = fault(diagnosis) {
            let _ = writeln!(failures, "{place}: {cause} {fault}");
        }
        let status = diagnosis.status.as_ref().expect("the engine fills in the status");
        if status.confidence == Confidence::Certain {
            certain.insert(cause.to_owned());
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
    let unused: Vec<_> = OF_THE_MACHINE.iter().chain(OUTSIDE).filter(|cause| !certain.contains(**cause)).collect();
    assert!(unused.is_empty(), "no example is certain of {unused:?}");
}
