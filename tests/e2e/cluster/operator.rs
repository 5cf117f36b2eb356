//! The operator and the live command beside the real Karpenter, with the rights that are shipped and no others.

use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use testkit::control_plane::recipes::{
    SOON, backdate_registration, condition, heartbeat, join_without_unregistered_taint, mark_ready, nodeclaim,
    nodepool, wait_until,
};
use testkit::control_plane::{ControlPlane, Nodewhy};
use testkit::patience::settled;

/// Installs what is shipped, and gives the rights of its ServiceAccount.
pub(crate) fn install(control_plane: &ControlPlane) -> PathBuf {
    control_plane.install("manifests")
}

pub(crate) fn diagnosis(control_plane: &ControlPlane, name: &str) -> Option<Value> {
    control_plane.get(&["nodediagnosis", name])
}

fn diagnoses(control_plane: &ControlPlane) -> Vec<String> {
    let list = control_plane.get(&["nodediagnoses"]).expect("a list");
    list["items"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|d| d["metadata"]["name"].as_str().map(str::to_owned))
        .collect()
}

/// A claim that Karpenter 1.0.5 refuses, and a healthy one beside it.
pub fn one_refused_one_healthy(control_plane: &ControlPlane) {
    nodepool(control_plane, "tainted-away");
    nodepool(control_plane, "healthy");
    join_without_unregistered_taint(control_plane, "tainted-away");
    nodeclaim(control_plane, "stuck", "tainted-away");
    nodeclaim(control_plane, "joined", "healthy");
    wait_until(SOON, || {
        heartbeat(control_plane);
        (condition(control_plane, "nodeclaim", "stuck", "Registered")? == "False UnregisteredTaintNotFound")
            .then_some(())
    });
    wait_until(SOON, || {
        heartbeat(control_plane);
        condition(control_plane, "nodeclaim", "joined", "Registered")?.starts_with("True").then_some(())
    });
    let joined = control_plane.get(&["nodeclaim", "joined"]).expect("the claim");
    mark_ready(control_plane, joined["status"]["nodeName"].as_str().expect("a registered claim names its node"));
}

/// Whether a line of the metrics begins so.
pub(crate) fn metric(nodewhy: &Nodewhy, line: &str) -> bool {
    nodewhy.get("/metrics").lines().any(|l| l.starts_with(line))
}

#[test]
fn the_verdict_comes_within_seconds_and_outlives_the_machine() {
    let control_plane = ControlPlane::start();
    let rights = install(&control_plane);
    let nodewhy = control_plane.nodewhy(&rights, &[]);
    let _karpenter = control_plane.karpenter("1.0.5");
    one_refused_one_healthy(&control_plane);

    let found = wait_until(SOON, || diagnosis(&control_plane, "stuck").filter(|d| d["status"]["cause"].is_string()));
    assert_eq!(found["status"]["cause"], "UnregisteredTaintMissing", "{found:#}");
    assert_eq!(found["status"]["stage"], "Register");
    assert_eq!(found["spec"]["nodePool"]["name"], "tainted-away");
    assert!(found["metadata"]["ownerReferences"].is_null(), "garbage collection would take the evidence");
    assert!(metric(&nodewhy, r#"nodewhy_diagnoses{cause="UnregisteredTaintMissing""#));

    backdate_registration(&control_plane, "stuck");
    wait_until(SOON, || {
        heartbeat(&control_plane);
        control_plane.get(&["nodeclaim", "stuck"]).is_none().then_some(())
    });
    let ended = wait_until(SOON, || diagnosis(&control_plane, "stuck").filter(|d| d["status"]["outcome"].is_string()));
    assert_eq!(ended["status"]["outcome"], "Terminated", "{ended:#}");
    assert_eq!(ended["status"]["cause"], "UnregisteredTaintMissing");
    assert!(ended["status"]["endedAt"].is_string());
    assert_eq!(diagnoses(&control_plane), ["stuck"], "the healthy claim beside it gets nothing");
    assert!(nodewhy.process.terminate().success(), "SIGTERM is graceful");
}

#[test]
fn a_nodepool_at_its_limit_is_told_by_the_pods_that_wait_for_it() {
    let control_plane = ControlPlane::start();
    let rights = install(&control_plane);
    let nodewhy = control_plane.nodewhy(&rights, &["--launch-threshold=2", "--proven-threshold=2"]);
    let _karpenter = control_plane.karpenter("1.0.5");
    nodepool(&control_plane, "full");
    control_plane.kubectl(&[
        "patch",
        "nodepool",
        "full",
        "--type=merge",
        r#"--patch={"spec":{"limits":{"cpu":"1m"}}}"#,
    ]);
    control_plane.apply(serde_json::json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "waits", "namespace": "default" },
        "spec": { "containers": [{ "name": "main", "image": "none" }] },
    }));
    // As the scheduler writes it, which does not run here.
    let unschedulable =
        r#"--patch={"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable"}]}}"#;
    control_plane.kubectl(&["patch", "pod", "waits", "--subresource=status", unschedulable]);
    let found =
        wait_until(SOON, || diagnosis(&control_plane, "nodepool-full").filter(|d| d["status"]["cause"].is_string()));
    assert_eq!(found["status"]["cause"], "NodePoolAtItsLimit", "{found:#}");
    assert_eq!(found["status"]["blame"]["object"], "NodePool/full");
    assert!(nodewhy.process.terminate().success());
}

#[test]
fn nothing_is_written_while_nothing_changes_and_a_restart_writes_nothing_anew() {
    let control_plane = ControlPlane::start();
    let rights = install(&control_plane);
    let _karpenter = control_plane.karpenter("1.0.5");
    one_refused_one_healthy(&control_plane);
    let nodewhy = control_plane.nodewhy(&rights, &[]);
    let version = |d: Value| d["metadata"]["resourceVersion"].clone();
    wait_until(SOON, || diagnosis(&control_plane, "stuck").filter(|d| d["status"]["cause"].is_string()));
    let settled = settled(|| diagnosis(&control_plane, "stuck").map(version));
    std::thread::sleep(Duration::from_secs(10));
    assert_eq!(diagnosis(&control_plane, "stuck").map(version), settled, "a heartbeat of Nodes is no news");

    assert!(nodewhy.process.terminate().success());
    let nodewhy = control_plane.nodewhy(&rights, &[]);
    wait_until(SOON, || metric(&nodewhy, "nodewhy_diagnoses{").then_some(()));
    std::thread::sleep(Duration::from_secs(5));
    assert_eq!(
        diagnosis(&control_plane, "stuck").map(version),
        settled,
        "the restarted operator knows what it has written"
    );
}

#[test]
fn a_cluster_without_karpenter_is_watched_and_says_what_is_missing() {
    let control_plane = ControlPlane::start();
    let rights = install(&control_plane);
    let nodewhy = control_plane.nodewhy(&rights, &[]);
    wait_until(SOON, || nodewhy.process.log().contains("not installed").then_some(()));
    // Karpenter comes later, and is seen without a restart.
    let _karpenter = control_plane.karpenter("1.0.5");
    one_refused_one_healthy(&control_plane);
    wait_until(Duration::from_secs(90), || {
        diagnosis(&control_plane, "stuck").filter(|d| d["status"]["cause"].is_string())
    });
}

#[test]
fn the_command_judges_a_live_cluster_and_its_own_dump_alike() {
    let control_plane = ControlPlane::start();
    let rights = install(&control_plane);
    let _karpenter = control_plane.karpenter("1.0.5");
    one_refused_one_healthy(&control_plane);
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_nodewhy"))
            .args(arguments)
            .env("KUBECONFIG", &rights)
            .output()
            .expect("nodewhy");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (code, live, errors) = run(&["diagnose", "-o", "json", "--fail-on", "likely"]);
    assert_eq!(code, Some(1), "{errors}");
    let live: Value = serde_json::from_str(&live).expect("JSON");
    assert_eq!(live["items"].as_array().map(Vec::len), Some(1), "{live:#}");
    assert_eq!(live["items"][0]["status"]["cause"], "UnregisteredTaintMissing");

    let (code, dump, errors) = run(&["collect"]);
    assert_eq!(code, Some(0), "{errors}");
    let file = tempfile::NamedTempFile::with_suffix(".json").expect("a file");
    std::fs::write(file.path(), dump).expect("a dump");
    let (code, offline, errors) = run(&["diagnose", "-o", "json", "-f", file.path().to_str().expect("a path")]);
    assert_eq!(code, Some(0), "{errors}");
    let offline: Value = serde_json::from_str(&offline).expect("JSON");
    assert_eq!(offline["items"][0]["status"]["cause"], live["items"][0]["status"]["cause"]);
    assert_eq!(offline["items"][0]["spec"], live["items"][0]["spec"]);

    let (code, text, _) = run(&["diagnose", "stuck", "--color", "never"]);
    assert_eq!(code, Some(0));
    assert!(text.starts_with("UnregisteredTaintMissing (Likely): NodeClaim stuck"), "{text}");
}

/// Whoever may read nothing is told so once, with all that it concerns, and gets no all-clear.
#[test]
fn without_rights_there_is_one_line_for_all_that_cannot_be_read() {
    let control_plane = ControlPlane::start();
    install(&control_plane);
    control_plane.kubectl(&["create", "serviceaccount", "nobody", "--namespace=default"]);
    let output = Command::new(env!("CARGO_BIN_EXE_nodewhy"))
        .arg("diagnose")
        .env("KUBECONFIG", control_plane.kubeconfig_for("default", "nobody"))
        .output()
        .expect("nodewhy");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(output.stdout.is_empty(), "no answer");
    let refused: Vec<&str> = said.lines().filter(|line| line.contains("not permitted to")).collect();
    assert_eq!(refused.len(), 1, "{said}");
    for what in ["Nodes", "DaemonSets", "Events", "system:serviceaccount:default:nobody", "kubectl auth can-i --list"] {
        assert!(refused[0].contains(what), "no {what} in {said}");
    }
}
