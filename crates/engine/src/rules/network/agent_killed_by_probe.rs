//! The kubelet kills the network plugin or kube-proxy of a Ready Node again and again, because its probe fails.

use crate::case::flapping::killed_agent;
use crate::objects::{Event, Node, Pod};
use crate::rules::prelude::*;
use crate::upstream::karpenter::{Version, image_tag};
use crate::upstream::vpc_cni::AWS_NODE;
use readers::source_text;

rule! {
    cause: AgentKilledByProbe,
    summary: "The Node is Ready, but the kubelet kills its network plugin or kube-proxy again and again because their \
              liveness probe fails",
    stages: [Ready],
    reads: [Events, Pods],
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let node = case.node.filter(|_| case.wait.symptom == Symptom::AgentKilled)?;
    let events = || case.cluster.pod_events_on(node.name());
    let (pod, ..) = killed_agent(|| case.pods(), events(), case.now)?;
    let (name, namespace) = (&pod.metadata.name, pod.metadata.namespace.as_deref().unwrap_or_default());
    let set = pod.daemon_set().unwrap_or(name);
    let probe =
        events().filter(|e| e.names(&pod.metadata) && fails_probe(e)).max_by_key(|e| (e.last_seen(), &e.message));
    let said = probe.map(|e| answer(&e.message));
    let fails = said.as_ref().map_or_else(String::new, |said| format!(" ({said})"));
    let late = said.as_ref().is_some_and(|said| is_late(said));
    let moved = said.as_ref().filter(|said| said.contains(FORMER_PORT)).and_then(|_| listens_elsewhere(pod));
    let port = moved.as_ref().map_or_else(String::new, |version| {
        format!(". aws-node {version} does not listen on this port any more, only on the socket {SOCKET}")
    });
    let short_of_cpu = late && moved.is_none();
    let cpu = if short_of_cpu { full_cpu(pod, set) } else { String::new() };
    let why = format!("its liveness probe fails{fails}{port}{cpu}");
    let fix = if moved.is_some() {
        format!(
            "Update DaemonSet {set} with the manifest or chart of its image's version: there, both probes connect to \
             {SOCKET}. This restarts it on every node."
        )
    } else if late {
        more_time(set)
    } else {
        format!(
            "Read what pod {name} logged before the kubelet killed it. Its probe gets a bad answer, and during every \
             restart new pods of the node get no network."
        )
    };
    let finding = Finding::new(Confidence::Likely, summary(case, node, set, &why), case.wait.evidence.clone())
        .with_all(probe.map(|e| of_probe(pod, e)))
        .linked([
            Link::new(format!("Node/{}", node.name()), "Ready, but its new pods get no network during each restart"),
            Link::new(format!("Pod/{name}"), why),
        ])
        .blaming(Blame::object("apps/v1", "DaemonSet", set).namespace(namespace).field("spec.template.spec.containers"))
        .fix(fix)
        .inspect("See its probes, requests and restarts", format!("kubectl describe pod -n {namespace} {name}"));
    if moved.is_some() {
        return finding.into();
    }
    let finding = if short_of_cpu {
        finding.unknown(
            "Is the CPU of the Node full, and which pods use more of it than they request?",
            format!("kubectl describe node {}", node.name()),
        )
    } else {
        finding
    };
    finding
        .unknown(
            "Which error does it log before the kubelet kills it?",
            format!("kubectl logs -n {namespace} {name} --all-containers --previous --tail=50"),
        )
        .into()
}

/// The link between a late answer and the CPU, as a sentence of its own. A container gets CPU time in proportion to its
/// request if the others want all of it.
/// Source: kubernetes v1.36.3 pkg/kubelet/cm/helpers_linux.go `MilliCPUToShares`.
fn full_cpu(pod: &Pod, set: &str) -> String {
    const LATE: &str = ". An answer comes too late mostly because other pods use all CPU of the Node";
    let containers = &pod.spec.containers;
    let container = containers.iter().find(|container| container.name == set).or(containers.first());
    match container.map(|container| container.resources.requests.get("cpu")) {
        Some(Some(cpu)) => format!("{LATE}: then the container gets little more than the {cpu} CPU that it requests"),
        Some(None) => format!("{LATE}: then a container that requests no CPU gets almost none"),
        None => LATE.to_owned(),
    }
}

/// Sources: amazon-vpc-cni-k8s v1.9.3, v1.10.0, v1.10.2 config/master/aws-k8s-cni.yaml;
/// grpc-ecosystem/grpc-health-probe main.go, which gives up after one second by itself.
fn more_time(set: &str) -> String {
    let how = if *set == *AWS_NODE {
        format!(
            "Give the probes of DaemonSet {set} more time, as the VPC CNI's manifest does since 1.10: timeoutSeconds \
             10, and in their command -connect-timeout=5s and -rpc-timeout=5s."
        )
    } else {
        format!("Raise timeoutSeconds of the liveness and readiness probes of DaemonSet {set} to 5 or more.")
    };
    format!(
        "{how} Also raise its CPU request. Both restart it on every node. Raise the requests of pods that use more CPU \
         than they request."
    )
}

fn summary(case: &Case, node: &Node, set: &str, why: &str) -> String {
    format!(
        "Node {} is Ready, and since {} its kubelet kills {set} there again and again: {why}. While it is away, new \
         pods of the Node get no network.",
        node.name(),
        case.since()
    )
}

fn of_probe(pod: &Pod, event: &Event) -> Evidence {
    let object = format!("Event Pod/{}", pod.metadata.name);
    Evidence::new(object, "message", answer(&event.message), "the answer that the probe got")
}

/// The port that the probes of aws-node connect to in manifests before 1.23.
/// Source: amazon-vpc-cni-k8s v1.20.4 config/master/aws-k8s-cni.yaml.
const FORMER_PORT: &str = ":50051";

/// Source: amazon-vpc-cni-k8s v1.23.2 pkg/ipamd/rpc_handler.go `ipamdGRPCSocketPath`, config/master/aws-k8s-cni.yaml.
const SOCKET: &str = "/var/run/aws-node/ipamd.sock";

/// The version of a pod of aws-node that listens only on its socket.
fn listens_elsewhere(pod: &Pod) -> Option<Version> {
    let images = pod.spec.containers.iter().filter(|container| container.image.contains("amazon-k8s-cni"));
    let mut versions = images.filter_map(|container| Version::parse(image_tag(&container.image)?));
    versions.find(|version| *version >= Version(1, 23, 0))
}

/// Source: kubernetes v1.36.3 pkg/kubelet/prober/prober.go `probe`.
fn fails_probe(event: &Event) -> bool {
    event.reason == "Unhealthy" && event.message.contains("Liveness probe failed")
}

/// Keeps only the message of a line that a probe logs as JSON, because its time differs each time.
fn answer(message: &str) -> String {
    let said = message.split_once("Liveness probe failed").map_or(message, |(_, said)| said.trim_start_matches(": "));
    let said = said.rsplit_once(r#""msg":""#).map_or(said, |(_, said)| said.trim_end_matches(['}', '"']));
    source_text::mask(said.replace('\\', "").trim().trim_end_matches('.'))
}

fn is_late(said: &str) -> bool {
    ["timeout", "timed out", "deadline exceeded"].iter().any(|word| said.contains(word))
}

#[cfg(test)]
mod tests {
    use super::{answer, is_late};

    #[test]
    fn of_a_probe_its_answer_is_quoted_without_its_time() {
        for (message, said, late) in [
            (
                r#"Liveness probe failed: {"level":"info","ts":"2021-07-26T16:08:40.590Z","msg":"timeout: failed to connect service \":50051\" within 1s"}"#,
                r#"timeout: failed to connect service ":50051" within 1s"#,
                true,
            ),
            (
                "Liveness probe failed: HTTP probe failed with statuscode: 503",
                "HTTP probe failed with statuscode: 503",
                false,
            ),
        ] {
            assert_eq!(answer(message), said);
            assert_eq!(is_late(said), late);
        }
    }
}
