//! `nodewhy diagnose` reads what the pods log that its verdicts point to: the API server forwards to a kubelet's port,
//! where the test answers.

use crate::cluster::operator::{diagnosis, install};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use testkit::control_plane::kubelet::{KubeletLogs, Log};
use testkit::control_plane::recipes::{SOON, wait_until};
use testkit::control_plane::{ControlPlane, NEWEST_KARPENTER};

/// The machine was launched a minute ago: that is too long here.
const IMPATIENT: [&str; 2] = ["--initialize-threshold=10", "--proven-threshold=2"];
const SECRET: &str = "hunter2hunter2";

fn ago(seconds: i64) -> String {
    time(Utc::now() - TimeDelta::seconds(seconds))
}

fn time(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

fn condition(type_: &str, status: &str, message: &str) -> Value {
    json!({"type": type_, "status": status, "reason": if message.is_empty() { type_ } else { "KubeletNotReady" },
        "message": message, "lastTransitionTime": ago(60), "lastHeartbeatTime": ago(1)})
}

/// aws-node that ends at each of its starts, as the kubelet hands its lines out.
fn denied() -> String {
    let line = |at: i64, text: &str| {
        format!("{}.123456789Z {text}\n", time(Utc::now() - TimeDelta::seconds(at)).trim_end_matches('Z'))
    };
    line(58, r#"{"level":"info","ts":"x","caller":"aws-k8s-agent/main.go:42","msg":"Starting L-IPAMD v1.20.4  ..."}"#)
        + &line(57, &format!(r#"{{"level":"debug","msg":"DB_PASSWORD={SECRET}"}}"#))
        + &line(
            55,
            &format!(
                r#"{{"level":"error","caller":"aws-k8s-agent/main.go:42","msg":"Initialization failure: ipamd init: operation error EC2: DescribeNetworkInterfaces, https response error StatusCode: 403, api error UnauthorizedOperation: You are not authorized to perform this operation. token={SECRET}"}}"#
            ),
        )
}

/// A Node whose network plugin crashes, and whose kubelet is at that port.
fn crashing(control_plane: &ControlPlane, node: &str, pod: &str, port: u16) {
    control_plane.apply(json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": node, "labels": {"kubernetes.io/os": "linux", "karpenter.sh/nodepool": "general", "karpenter.sh/registered": "true"}},
        "spec": {"providerID": format!("aws:///eu-west-1a/i-0{node}"), "taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]},
    }));
    let said = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network \
                plugin returns error: cni plugin not initialized";
    status(
        control_plane,
        "node",
        node,
        &json!({
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
            "conditions": [condition("Ready", "False", said)],
            "nodeInfo": {"architecture": "amd64", "bootID": "", "containerRuntimeVersion": "", "kernelVersion": "", "kubeProxyVersion": "",
                "kubeletVersion": "v1.36.0", "machineID": "", "operatingSystem": "linux", "osImage": "", "systemUUID": ""},
        }),
    );
    control_plane.apply(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": pod, "namespace": "kube-system",
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "aws-node", "uid": "d2"}]},
        "spec": {"nodeName": node, "containers": [{"name": "aws-node", "image": "aws-node:v1.20.4"}]},
    }));
    status(
        control_plane,
        "pod",
        pod,
        &json!({
            "phase": "Running", "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": ago(60)}],
            "containerStatuses": [{"name": "aws-node", "ready": false, "restartCount": 3, "image": "", "imageID": "",
                "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s restarting failed \
                    container"}},
                "lastState": {"terminated": {"reason": "Error", "exitCode": 1}}}],
        }),
    );
    // Of a class of its own: the log of one that was made alike would be told of the others.
    let class = json!({"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": node});
    control_plane.apply(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": node, "labels": {"karpenter.sh/nodepool": "general"}},
        "spec": {"nodeClassRef": class, "requirements": [], "expireAfter": "Never"},
    }));
    let passed = |type_: &str| json!({"type": type_, "status": "True", "reason": type_, "message": "", "lastTransitionTime": ago(60)});
    status(
        control_plane,
        "nodeclaim",
        node,
        &json!({
            "providerID": format!("aws:///eu-west-1a/i-0{node}"), "nodeName": node,
            "conditions": [passed("Launched"), passed("Registered"),
                {"type": "Initialized", "status": "Unknown", "reason": "NodeNotReady", "message": said, "lastTransitionTime": ago(60)}],
        }),
    );
}

/// Karpenter, with a pod on that Node.
fn karpenter(control_plane: &ControlPlane, node: &str) {
    let labels = json!({"app.kubernetes.io/name": "karpenter"});
    let image = format!("public.ecr.aws/karpenter/controller:{NEWEST_KARPENTER}");
    let container = json!({"name": "controller", "image": image});
    control_plane.apply(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "karpenter", "namespace": "kube-system", "labels": labels},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}},
    }));
    control_plane.apply(json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "karpenter-1", "namespace": "kube-system", "labels": labels},
        "spec": {"nodeName": node, "containers": [container]},
    }));
}

/// A NodeClaim for which no machine was launched.
fn unlaunched(control_plane: &ControlPlane, claim: &str, reason: &str) {
    let class = json!({"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"});
    control_plane.apply(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": claim},
        "spec": {"nodeClassRef": class, "requirements": [], "expireAfter": "Never"},
    }));
    let waits = json!({"type": "Launched", "status": "Unknown", "reason": reason, "message": "", "lastTransitionTime": ago(60)});
    status(control_plane, "nodeclaim", claim, &json!({"conditions": [waits]}));
}

fn status(control_plane: &ControlPlane, kind: &str, name: &str, status: &Value) {
    let patch = json!({"status": status}).to_string();
    control_plane.kubectl(&[
        "patch",
        kind,
        name,
        "--namespace=kube-system",
        "--subresource=status",
        "--type=merge",
        "--patch",
        &patch,
    ]);
}

fn cluster() -> (ControlPlane, PathBuf) {
    let control_plane = ControlPlane::start();
    control_plane.karpenter_crds(NEWEST_KARPENTER);
    control_plane.ec2nodeclass_crd();
    control_plane.apply(
        "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: aws-node, namespace: kube-system}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: aws-node, image: x}]}}}}",
    );
    let rights = install(&control_plane);
    (control_plane, rights)
}

fn nodewhy(rights: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nodewhy"));
    command.args(arguments).args(IMPATIENT).env("KUBECONFIG", rights).output().expect("nodewhy runs")
}

/// Waits until so many machines are: none is as old as it says.
fn until_stuck(rights: &Path, count: usize) {
    wait_until(SOON, || {
        std::thread::sleep(Duration::from_secs(1));
        let output = nodewhy(rights, &["diagnose", "-o", "json", "--no-logs", "--launch-threshold=3"]);
        let list: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        (list["items"].as_array().map(Vec::len) == Some(count)).then_some(())
    });
}

/// The verdict on a machine, and what was said beside it.
fn verdict(rights: &Path, machine: &str, arguments: &[&str]) -> (Value, String) {
    let output = nodewhy(rights, &[&["diagnose", "-o", "json"], arguments].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let list: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let items = list["items"].as_array().expect("a list");
    let found = items.iter().find(|item| item["spec"]["subject"]["name"] == machine);
    (found.unwrap_or_else(|| panic!("{machine} is not stuck: {list:#}\n{said}"))["status"].clone(), said)
}

#[test]
fn the_log_of_the_failing_agent_proves_what_its_pod_does_not_say() {
    let (control_plane, rights) = cluster();
    let kubelet = KubeletLogs::start(|_| Log::Lines(denied()));
    let administrator = control_plane.kubeconfig();

    // Nothing is stuck: nothing is asked.
    let output = nodewhy(&administrator, &["diagnose"]);
    assert!(output.status.success() && kubelet.asked().is_empty(), "{:?}", kubelet.asked());

    crashing(&control_plane, "denied", "aws-node-x1", kubelet.port);
    let (without, said) = verdict(&administrator, "denied", &["--no-logs"]);
    assert_eq!(
        (&without["cause"], &without["confidence"]),
        (&json!("CniNotReady"), &json!("Likely")),
        "{without:#}{said}"
    );
    assert!(kubelet.asked().is_empty(), "{:?}", kubelet.asked());

    let (proven, said) = verdict(&administrator, "denied", &[]);
    assert_eq!(
        (&proven["cause"], &proven["confidence"]),
        (&json!("AwsRefusesMachine"), &json!("Certain")),
        "{proven:#}{said}"
    );
    let line =
        proven["evidence"].as_array().expect("evidence").iter().find(|e| e["object"] == "pod/aws-node-x1/aws-node");
    assert!(
        line.is_some_and(|line| line["observed"].as_str().unwrap_or_default().contains("UnauthorizedOperation")),
        "{proven:#}"
    );
    assert!(!proven.to_string().contains(SECRET) && !said.contains(SECRET), "{proven:#}{said}");
    // While it waits to start again, its log is that of its last run: once is enough.
    let asked = kubelet.asked();
    assert!(asked.len() == 1 && asked[0].starts_with("/containerLogs/kube-system/aws-node-x1/aws-node?"), "{asked:?}");
    assert!(
        ["tailLines=1000", "limitBytes=", "timestamps=true"].iter().all(|part| asked[0].contains(part)),
        "{asked:?}"
    );

    // A dump holds what counts of it, for whoever may not read logs, and no secret.
    let dump = tempfile::NamedTempFile::with_suffix(".json").expect("a file");
    let path = dump.path().to_str().expect("UTF-8");
    for (arguments, cause) in [(&["collect", "--logs"][..], "AwsRefusesMachine"), (&["collect"], "CniNotReady")] {
        let collected = nodewhy(&administrator, arguments).stdout;
        assert!(!String::from_utf8_lossy(&collected).contains(SECRET));
        std::fs::write(dump.path(), collected).expect("written");
        assert_eq!(verdict(&rights, "denied", &["-f", path]).0["cause"], cause);
    }
    kubelet.forget();

    // The operator's ServiceAccount may not read logs: a note, and the verdict as it was.
    let (without, said) = verdict(&rights, "denied", &[]);
    assert_eq!(without["cause"], "CniNotReady", "{without:#}");
    let note =
        "cannot read the log of pod/aws-node-x1/aws-node: not permitted to system:serviceaccount:nodewhy:nodewhy";
    assert!(said.contains(note), "{said}");
    assert!(kubelet.asked().is_empty(), "{:?}", kubelet.asked());
}

#[test]
fn karpenters_log_tells_why_a_claim_is_not_launched_and_a_container_that_runs_again_what_it_said_before() {
    let (control_plane, _) = cluster();
    let administrator = control_plane.kubeconfig();
    let kubelet = KubeletLogs::start(|path| {
        Log::Lines(match path {
            _ if path.contains("karpenter") => launches_nothing(),
            _ if path.contains("previous=true") => denied(),
            _ => starts(),
        })
    });
    crashing(&control_plane, "restarted", "aws-node-x1", kubelet.port);
    status(
        &control_plane,
        "pod",
        "aws-node-x1",
        &json!({
            "containerStatuses": [{"name": "aws-node", "ready": false, "restartCount": 3, "image": "", "imageID": "",
                "state": {"running": {"startedAt": ago(3)}}, "lastState": {"terminated": {"reason": "Error", "exitCode": 1}}}],
        }),
    );
    karpenter(&control_plane, "restarted");
    for claim in ["unlaunched", "beside"] {
        unlaunched(&control_plane, claim, "LaunchFailed");
    }
    let arguments = ["--launch-threshold=3"];
    until_stuck(&administrator, 3);
    let (launch, said) = verdict(&administrator, "unlaunched", &arguments);
    assert_eq!(launch["cause"], "AwsRefusesMachine", "{launch:#}{said}");
    let (beside, _) = verdict(&administrator, "beside", &arguments);
    assert_eq!(beside["cause"], "LaunchFailed", "Karpenter says nothing of this one: {beside:#}");
    let (restarted, said) = verdict(&administrator, "restarted", &arguments);
    assert_eq!(restarted["cause"], "AwsRefusesMachine", "{restarted:#}{said}");
    let objects = restarted["evidence"].to_string();
    assert!(objects.contains("pod/aws-node-x1/aws-node, before its restart"), "{restarted:#}");
}

#[test]
fn what_a_karpenter_that_ends_again_and_again_said_before_its_restart_tells_why_it_does_not_run() {
    const CRASH: &str =
        "panic: fetching queue url, AWS.SimpleQueueService.NonExistentQueue: The specified queue does not exist.";
    let (control_plane, _) = cluster();
    let administrator = control_plane.kubeconfig();
    // As a kubelet keeps them: of the run that ended last, and of the one that has just begun.
    let kubelet = KubeletLogs::start(|path| {
        let begun =
            r#"{"level":"INFO","logger":"controller","message":"discovered karpenter version","version":"1.14.1"}"#;
        let line = if path.contains("previous=true") { CRASH } else { begun };
        Log::Lines(format!("{} {line}\n", ago(if path.contains("previous=true") { 30 } else { 2 })))
    });
    crashing(&control_plane, "host", "aws-node-x1", kubelet.port);
    karpenter(&control_plane, "host");
    let unavailable = json!({"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable", "message": "",
        "lastTransitionTime": ago(60), "lastUpdateTime": ago(60)});
    control_plane.kubectl(&[
        "patch",
        "deployment",
        "karpenter",
        "--namespace=kube-system",
        "--subresource=status",
        "--type=merge",
        "--patch",
        &json!({"status": {"replicas": 1, "unavailableReplicas": 1, "conditions": [unavailable]}}).to_string(),
    ]);
    unlaunched(&control_plane, "unlaunched", "AwaitingReconciliation");
    let ended = json!({"terminated": {"reason": "Error", "exitCode": 2, "startedAt": ago(40), "finishedAt": ago(30)}});
    let container = |state: Value, last: &Value| {
        status(
            &control_plane,
            "pod",
            "karpenter-1",
            &json!({
                "phase": "Running", "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": ago(60)}],
                "containerStatuses": [{"name": "controller", "ready": false, "restartCount": 4, "image": "", "imageID": "",
                    "state": state, "lastState": last}],
            }),
        );
    };
    container(json!({"running": {"startedAt": ago(3)}}), &ended);
    let arguments = ["--launch-threshold=3"];
    let asked_of_karpenter = || -> Vec<bool> {
        let asked = kubelet.asked().into_iter().filter(|path| path.contains("/karpenter-1/controller?"));
        asked.map(|path| path.contains("previous=true")).collect()
    };
    let says_why = |verdict: &Value| {
        let summary = verdict["summary"].as_str().unwrap_or_default();
        verdict["cause"] == "KarpenterNotRunning" && summary.contains("there is no such queue")
    };
    until_stuck(&administrator, 2);
    let (verdict_now, said) = verdict(&administrator, "unlaunched", &arguments);
    assert!(says_why(&verdict_now), "{verdict_now:#}{said}");
    assert!(verdict_now.to_string().contains("pod/karpenter-1/controller, before its restart"), "{verdict_now:#}");
    let mut asked = asked_of_karpenter();
    asked.sort_unstable();
    assert_eq!(asked, [false, true], "both of its logs");
    kubelet.forget();

    // While it waits to start again there is one log, that of its last run; here the stand-in has another.
    container(json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s"}}), &ended);
    let (verdict_now, said) = verdict(&administrator, "unlaunched", &arguments);
    assert_eq!(verdict_now["cause"], "KarpenterNotRunning", "{verdict_now:#}{said}");
    assert!(!says_why(&verdict_now), "{verdict_now:#}");
    assert_eq!(asked_of_karpenter(), [false]);
}

#[test]
fn the_operator_reads_a_log_where_it_is_told_to_once_and_writes_nothing_for_what_is_said_again() {
    let (control_plane, rights) = cluster();
    let kubelet = KubeletLogs::start(|_| Log::Lines(denied()));
    let operate = |namespaces: &str| control_plane.nodewhy(&rights, &[&IMPATIENT[..], &[namespaces]].concat());
    let verdict = |cause: &str| {
        wait_until(SOON, || diagnosis(&control_plane, "denied").filter(|d| d["status"]["cause"] == cause))
    };

    // Elsewhere it may: that is not here.
    crashing(&control_plane, "denied", "aws-node-x1", kubelet.port);
    let operator = operate("--pod-logs=karpenter");
    verdict("CniNotReady");
    std::thread::sleep(Duration::from_secs(6));
    assert!(kubelet.asked().is_empty(), "{:?}", kubelet.asked());
    assert!(!operator.process.log().contains("a log cannot be read"), "{}", operator.process.log());
    drop(operator);

    // It is told to, and may not: said once, and the verdict stands.
    let operator = operate("--pod-logs=kube-system,karpenter");
    wait_until(SOON, || operator.process.log().contains("a log cannot be read").then_some(()));
    verdict("CniNotReady");
    drop(operator);

    control_plane.apply_path(&testkit::project().join("manifests/components/logs/role.yaml"));
    let operator = operate("--pod-logs=kube-system,karpenter");
    let found = verdict("AwsRefusesMachine");
    assert_eq!(found["status"]["confidence"], "Certain", "{found:#}");
    assert!(!found.to_string().contains(SECRET), "{found:#}");
    std::thread::sleep(Duration::from_secs(12));
    assert_eq!(kubelet.asked().len(), 1, "{:?}", kubelet.asked());
    let version = |d: Option<Value>| d.map(|d| d["metadata"]["resourceVersion"].clone());
    assert_eq!(version(diagnosis(&control_plane, "denied")), version(Some(found)));
    assert!(operator.process.terminate().success());
}

fn launches_nothing() -> String {
    format!(
        "{} {}\n",
        ago(20),
        r#"{"level":"ERROR","logger":"controller","message":"Reconciler error","controller":"nodeclaim.lifecycle","NodeClaim":{"name":"unlaunched"},"error":"launching nodeclaim, creating instance, creating fleet request, operation error EC2: CreateFleet, https response error StatusCode: 403, api error UnauthorizedOperation: You are not authorized to perform this operation."}"#
    )
}

/// aws-node that has only begun.
fn starts() -> String {
    format!(
        "{} {}\n",
        ago(2),
        r#"{"level":"info","caller":"aws-k8s-agent/main.go:42","msg":"Starting L-IPAMD v1.20.4  ..."}"#
    )
}

#[test]
fn what_gives_no_log_is_a_note_and_takes_no_longer_than_it_may() {
    let (control_plane, _) = cluster();
    let administrator = control_plane.kubeconfig();
    let kubelet = KubeletLogs::start(|path| {
        if path.contains("aws-node-gone") {
            Log::Refused(404, "pod does not exist")
        } else if path.contains("aws-node-slow") {
            // More than the API server holds back before it sends anything.
            Log::Stalls(denied().repeat(200), Duration::from_mins(30))
        } else {
            // What it is asked for at most, it does not keep to.
            Log::Endless(denied())
        }
    });
    let closed = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
    for (node, pod, port) in [
        ("gone", "aws-node-gone", kubelet.port),
        ("slow", "aws-node-slow", kubelet.port),
        ("huge", "aws-node-huge", kubelet.port),
        ("dead", "aws-node-dead", closed),
    ] {
        crashing(&control_plane, node, pod, port);
    }
    let began = Instant::now();
    let (gone, said) = verdict(&administrator, "gone", &[]);
    println!("{:.1?} with a log that stalls", began.elapsed());
    assert_eq!(gone["cause"], "CniNotReady", "{gone:#}");
    for note in [
        "pod/aws-node-gone/aws-node: it is gone",
        "pod/aws-node-slow/aws-node: no answer in time",
        "pod/aws-node-dead/aws-node: ",
    ] {
        assert!(said.contains(note), "no {note:?} in {said}");
    }
    // What came before the time was over counts, and so does what fits the limit.
    for machine in ["slow", "huge"] {
        let (told, said) = verdict(&administrator, machine, &[machine]);
        assert_eq!(told["cause"], "AwsRefusesMachine", "{told:#}{said}");
    }
    assert_eq!(verdict(&administrator, "dead", &["dead"]).0["cause"], "CniNotReady");
}
