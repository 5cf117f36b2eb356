//! The EKS node monitoring agent reports that the Node's GPU or Neuron device is broken.

use crate::case::timestamp;
use crate::explain::commands;
use crate::explain::repair;
use crate::facts::requested_resources::missing;
use crate::objects::Pod;
use crate::rules::prelude::*;

rule! {
    cause: AcceleratorBroken,
    summary: "The EKS node monitoring agent reports that the Node's GPU or Neuron device is broken",
    stages: [Initialize, Ready],
    reads: [Events, Pods, DaemonSets, Deployments],
    versions: "all, with the EKS node monitoring agent",
}

/// A part of the agent's reason, its meaning, and the fix.
/// Source: eks-node-monitoring-agent v1.7.0 monitors/nvidia, monitors/neuron, reasons.yaml.
const REPORTS: &[(&str, &str)] = &[
    ("XID", "the NVIDIA driver reported a fatal error of the GPU"),
    ("DoubleBit", "the GPU's memory has an uncorrectable error"),
    ("NVLink", "the link between the GPUs has failed"),
    ("DeviceCountMismatch", "a GPU has fallen off the bus"),
    ("FabricManager", "the NVIDIA fabric manager does not run, so the GPUs cannot communicate"),
    ("NvidiaFabric", "the NVSwitch fabric has failed"),
    ("DCGMDiagnostic", "DCGM's diagnosis of the GPU has failed"),
    ("DCGMHealthCode", "DCGM's health check of the GPU has failed"),
    ("Uncorrectable", "the Neuron device has an uncorrectable memory error"),
    ("NeuronDMA", "the Neuron device's DMA engine has failed"),
];

fn check(case: &Case) -> Option<Opinion> {
    let node = case.node?;
    let broken = node.condition("AcceleratedHardwareReady")?;
    if !broken.is_false() {
        if !broken.is_true() {
            return None;
        }
        let because =
            format!("the node monitoring agent reports that the accelerator of Node {} is healthy", node.name());
        return Some(Opinion::ruled_out(node, because));
    }
    // If a Node waits for something else, that is its cause.
    let lacks_devices = || {
        node.is_ready()
            && case.claim.is_some_and(|c| missing(c, node).iter().any(|r| r.contains("gpu") || r.contains("neuron")))
    };
    // Karpenter reboots a node for broken hardware only, and has not got the reboot in time.
    // Source: karpenter-provider-aws v1.15.0 pkg/cloudprovider/cloudprovider.go `RepairPolicies`.
    let is_reported = matches!(case.wait.symptom, Symptom::HardwareBroken | Symptom::RebootPending);
    let is_cause = is_reported || case.stage() == Stage::Initialize && lacks_devices();
    if !is_cause {
        return None;
    }
    let name = node.name();
    let evidence = Evidence::new(
        format!("Node/{name}"),
        r#"status.conditions[?(@.type=="AcceleratedHardwareReady")]"#,
        broken.shown(),
        "the EKS node monitoring agent reports it, and never clears it by itself",
    );
    // DCGMError is about reaching DCGM, not about the device (containers-roadmap#2555, #2567).
    if broken.reason == "DCGMError" {
        return no_dcgm(case, name, evidence).into();
    }
    let meaning = REPORTS
        .iter()
        .find(|(part, _)| broken.reason.contains(part))
        .map_or("the accelerator is broken", |(_, meaning)| meaning);
    let said = if broken.message.is_empty() {
        broken.reason.to_string()
    } else {
        format!("{}: {}", broken.reason, broken.message.trim_end_matches('.'))
    };
    // While a reboot is pending, the wait counts from Karpenter's decision.
    let broke = broken.last_transition_time.filter(|_| case.wait.symptom == Symptom::RebootPending);
    let since = broke.map_or_else(|| case.since(), |at| timestamp(at).to_string());
    let finding = Finding::new(
        Confidence::Certain,
        format!("Node {name} has had a broken accelerator since {since}: {meaning} ({said})."),
        evidence,
    )
    .blaming(Blame::object("v1", "Node", name).field("status.conditions"))
    .fix(
        "Replace the node: pods on its accelerator fail, and restarting them does not help. Replacing drains the \
         node's pods first.",
    )
    .inspect(
        "See the agent's events",
        format!("kubectl get events -A --field-selector involvedObject.kind=Node,involvedObject.name={name}"),
    )
    .destroy(
        "Replace the node (Karpenter or the drain evicts its pods first)",
        case.claim.map_or_else(
            || format!("kubectl drain --ignore-daemonsets --delete-emptydir-data {name}"),
            |c| format!("kubectl delete nodeclaim {}", c.name()),
        ),
    );
    repair::who_replaces(case, finding).into()
}

/// The DaemonSet with which the agent's add-on installs DCGM.
const SERVER: &str = "dcgm-server";

fn no_dcgm(case: &Case, name: &str, evidence: Evidence) -> Finding {
    let refused = case.cluster.daemon_sets().find(|d| d.metadata.name == SERVER).and_then(|set| {
        let taint = case.node?.spec.taints.iter().find(|t| t.keeps_pods_off() && !set.tolerates(t))?;
        Some((set, taint))
    });
    let head = format!(
        "The node monitoring agent cannot reach DCGM on Node {name} since {}, and therefore reports the GPU as broken",
        case.since()
    );
    let pods = || case.pods().filter(|p| p.daemon_set() == Some(SERVER));
    let failing = pods().find_map(|p| Some((p, p.trouble()?)));
    let replaced = case.claim.is_some_and(|c| c.is_true("Registered"))
        && case.karpenter().is_some_and(|k| k.gate("NodeRepair") == Some(true))
        && repair::veto(case).is_none();
    match refused {
        Some((set, taint)) => Finding::new(
            Confidence::Certain,
            format!("{head}: DaemonSet {SERVER} does not tolerate the Node's taint {taint}."),
            evidence,
        )
        .blaming(
            Blame::object("apps/v1", "DaemonSet", SERVER)
                .namespace(set.metadata.namespace.as_deref().unwrap_or_default())
                .field("spec.template.spec.tolerations"),
        )
        .fix("Let dcgm-server tolerate the Node's taints (the add-on's setting dcgmAgent.tolerations).")
        .change("Add the toleration (the add-on may remove it at its next update)", commands::tolerate(set, taint)),
        None if failing.is_some() || !replaced => unreachable_server(&head, failing, evidence),
        None => replaced_for_nothing(case, &head, name, evidence),
    }
}

/// DCGM's server exists and fails, or what keeps the agent from it is not known.
fn unreachable_server(head: &str, failing: Option<(&Pod, (&str, String))>, evidence: Evidence) -> Finding {
    let server = Blame::object("apps/v1", "DaemonSet", SERVER).namespace("kube-system");
    match failing {
        Some((pod, (container, why))) => Finding::new(
            Confidence::Certain,
            format!("{head}: its pod {} fails there (container {container}: {why}).", pod.metadata.name),
            evidence,
        )
        .blaming(
            Blame::object("v1", "Pod", &pod.metadata.name)
                .namespace(pod.metadata.namespace.as_deref().unwrap_or_default()),
        )
        .fix(
            "Get dcgm-server's pod running. Then restart the monitoring agent's pod on the Node, because the agent \
             does not clear the condition by itself.",
        )
        .inspect(
            "See why it fails",
            format!(
                "kubectl describe pod -n {} {}",
                pod.metadata.namespace.as_deref().unwrap_or("default"),
                pod.metadata.name
            ),
        )
        .step(
            Risk::LowRisk,
            "When it runs, restart the agent's pod on the Node",
            Some(restart_agent(pod.node())),
        ),
        None => Finding::new(Confidence::Likely, format!("{head}. The GPU itself may be healthy."), evidence)
            .blaming(server)
            .fix(
                "Get dcgm-server running on the Node, and run only one DCGM: the GPU operator installs its own. If the \
                 driver does not answer either, replace the node.",
            )
            .inspect("See DCGM's DaemonSet", format!("kubectl describe daemonset -n kube-system {SERVER}")),
    }
}

const AGENT: &str = "eks-node-monitoring-agent";

fn restart_agent(node: &str) -> String {
    format!("kubectl delete pod -n kube-system -l app.kubernetes.io/name={AGENT} --field-selector spec.nodeName={node}")
}

/// The condition stays False after the agent can reach DCGM again, and node repair uses the condition.
/// Source: aws/eks-node-monitoring-agent v1.7.0 pkg/manager/node_exporter.go `Fatal`; reports #266, #275.
fn replaced_for_nothing(case: &Case, head: &str, name: &str, evidence: Evidence) -> Finding {
    let summary =
        format!("{head}. The GPU itself may be healthy, but Karpenter's node repair replaces the node because of it.");
    let finding = Finding::new(Confidence::Certain, summary, evidence)
        .blaming(Blame::object("apps/v1", "DaemonSet", AGENT).namespace("kube-system"))
        .fix(
            "Restart the agent's pod on the Node: it reports a lost connection once, and never that the connection is \
             back. Run only one DCGM there: the GPU operator installs its own.",
        )
        .step(Risk::LowRisk, "Restart the agent's pod on the Node", Some(restart_agent(name)));
    repair::who_replaces(case, finding)
}
