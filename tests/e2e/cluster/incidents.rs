//! What is said of a NodePool whose machines are stuck, and what is left of the past.

use crate::cluster::life::{
    ACCOUNT, CAUSE, claim_names, claims, cluster, diagnosed, is_ready, leads, refuse, remove, replica,
};
use crate::cluster::operator::{diagnosis, metric};
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use testkit::control_plane::ControlPlane;
use testkit::control_plane::recipes::{SOON, ec2_node_class_ref, wait_until};
use testkit::patience::settled;

const POOL: &str = "nodepool-general";

/// The condition follows the verdict, and goes with it; what kubelets say stays theirs.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_carries_its_verdict_as_a_condition_where_that_is_asked_for() {
    let (control_plane, _) = cluster();
    let rights = control_plane.install("tests/e2e/cluster/node-condition");
    let client = control_plane.client().await;
    let name = "ip-10-0-0-1";
    control_plane.apply(json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": name }, "spec": { "providerID": "aws:///eu-west-1a/i-general-000" },
    }));
    let ready =
        json!({ "status": { "conditions": [{ "type": "Ready", "status": "True", "reason": "KubeletReady" }] } });
    control_plane.patch_status("node", name, "strategic", &ready);
    let said = || {
        let node = control_plane.get(&["node", name])?;
        let all = node["status"]["conditions"].as_array()?;
        Some(all.iter().find(|c| c["type"] == "NodewhyDiagnosed").cloned().unwrap_or_default())
    };
    refuse(&client, &claim_names(1)).await;
    // Not asked for, it is not written.
    let without = control_plane.nodewhy(&rights, &[]);
    wait_until(SOON, || (diagnosed(&control_plane).len() == 1).then_some(()));
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(said(), Some(Value::Null));
    assert!(without.process.terminate().success());

    let operator = control_plane.nodewhy(&rights, &["--node-condition=on"]);
    let condition = wait_until(SOON, || said().filter(|c| c["status"] == "True"));
    assert_eq!(condition["reason"], CAUSE, "{condition:#}");
    assert!(condition["message"].as_str().is_some_and(|m| m.contains("NodeClaim general-000")), "{condition:#}");
    control_plane.kubectl(&["wait", "--for=condition=NodewhyDiagnosed", "--timeout=120s", &format!("node/{name}")]);

    // A kubelet reports, others write: it stays, and nodewhy writes nothing again.
    let versions =
        || (diagnosis(&control_plane, "general-000").map(|d| d["metadata"]["resourceVersion"].clone()), said());
    let settled = settled(versions);
    control_plane.patch_status("node", name, "strategic", &ready);
    std::thread::sleep(Duration::from_secs(12));
    assert_eq!(versions(), settled, "no loop");
    let patches = control_plane.writes_of(ACCOUNT);
    let patches = patches.iter().filter(|event| event["objectRef"]["resource"] == "nodes").count();
    assert_eq!(patches, 1, "it was written once");

    // It joins.
    pass(&client, "general-000").await;
    wait_until(SOON, || said().filter(Value::is_null));
    let node = control_plane.get(&["node", name]).unwrap();
    assert_eq!(node["status"]["conditions"][0]["type"], "Ready", "{node:#}");

    // What stands when it is switched off can be taken away.
    refuse(&client, &["general-001".to_owned()]).await;
    control_plane.apply(json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": "ip-10-0-0-2" }, "spec": { "providerID": "aws:///eu-west-1a/i-general-001" },
    }));
    control_plane.kubectl(&["wait", "--for=condition=NodewhyDiagnosed", "--timeout=120s", "node/ip-10-0-0-2"]);
    assert!(operator.process.terminate().success());
    let _clears = control_plane.nodewhy(&rights, &["--node-condition=clear"]);
    wait_until(SOON, || {
        let node = control_plane.get(&["node", "ip-10-0-0-2"])?;
        let all = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
        all.iter().all(|c| c["type"] != "NodewhyDiagnosed").then_some(())
    });
}

fn of_pool(control_plane: &ControlPlane) -> Option<Value> {
    diagnosis(control_plane, POOL).filter(|d| d["status"]["cause"].is_string())
}

fn stuck(control_plane: &ControlPlane) -> Option<u64> {
    of_pool(control_plane)?["status"]["machines"]["stuck"].as_u64()
}

/// One claim of the pool joins, and was never in trouble.
async fn join(client: &kube::Client, name: &str) {
    let claim = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": { "name": name, "labels": { "karpenter.sh/nodepool": "general" } },
        "spec": { "nodeClassRef": ec2_node_class_ref(), "requirements": [], "expireAfter": "Never" },
    });
    claims(client).create(&PostParams::default(), &serde_json::from_value(claim).unwrap()).await.unwrap();
    pass(client, name).await;
}

/// It passes all stages.
async fn pass(client: &kube::Client, name: &str) {
    let now = chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
    let conditions: Vec<_> = ["Launched", "Registered", "Initialized"]
        .map(|type_| json!({ "type": type_, "status": "True", "reason": type_, "message": "", "lastTransitionTime": now }))
        .into();
    let status = json!({ "status": { "providerID": format!("aws:///eu-west-1a/i-{name}"), "conditions": conditions } });
    claims(client).patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
}

fn nodewhy(rights: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_nodewhy"))
        .args(arguments)
        .env("KUBECONFIG", rights)
        .output()
        .expect("nodewhy");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// The commands that are recommended do what they say, and until somebody runs them nothing has changed.
fn stop_the_launches(control_plane: &ControlPlane, of_pool: &Value) {
    let pool = || control_plane.get(&["nodepool", "general"]).expect("the NodePool");
    let class = || control_plane.get(&["ec2nodeclass", "default"]).expect("the class");
    assert_eq!((&pool()["metadata"]["generation"], &class()["metadata"]["generation"]), (&json!(1), &json!(1)));
    let steps = of_pool["status"]["fix"]["steps"].as_array().expect("steps");
    let commands: Vec<&str> = steps.iter().rev().take(3).rev().filter_map(|step| step["command"].as_str()).collect();
    let run = |command: &str| {
        let words: Vec<&str> = command.strip_prefix("kubectl ").expect("kubectl").split(' ').collect();
        let plain: Vec<String> = words.iter().map(|word| word.trim_matches('\'').to_owned()).collect();
        control_plane.kubectl(&plain.iter().map(String::as_str).collect::<Vec<_>>());
    };
    run(commands[0]);
    assert_eq!(class()["spec"]["amiSelectorTerms"], json!([{ "id": "ami-0old" }]), "{commands:#?}");
    assert_eq!(class()["spec"]["amiFamily"], "AL2023");
    run(commands[1]);
    assert_eq!(pool()["spec"]["limits"]["cpu"], "0");
    run(commands[2]);
    assert!(pool()["spec"]["limits"]["cpu"].is_null());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_says_how_many_of_its_machines_are_stuck_before_they_do_and_what_was() {
    const CLAIMS: usize = 60;
    let (control_plane, rights) = cluster();
    let client = control_plane.client().await;
    let operator = replica(&control_plane, &rights, "first");
    wait_until(SOON, || leads(&operator).then_some(()));
    // One had joined, with another image than those that come now.
    join(&client, "general-old").await;
    control_plane.patch_status("nodeclaim", "general-old", "merge", &json!({ "status": { "imageID": "ami-0old" } }));
    let images = json!([{ "id": "ami-0new", "name": "new", "requirements": [] }]);
    control_plane.patch_status("ec2nodeclass", "default", "merge", &json!({ "status": { "amis": images } }));
    let names = claim_names(CLAIMS);
    refuse(&client, &names).await;
    wait_until(SOON, || (stuck(&control_plane)? == CLAIMS as u64).then_some(()));
    wait_until(SOON, || (diagnosed(&control_plane).len() == CLAIMS).then_some(()));
    let said = of_pool(&control_plane).unwrap();
    let status = &said["status"];
    assert_eq!((&status["cause"], &status["stage"]), (&json!(CAUSE), &json!("Register")), "{said:#}");
    let summary = status["summary"].as_str().unwrap();
    assert!(summary.starts_with(&format!("{CLAIMS} machines of NodePool general are stuck: Karpenter")), "{summary}");
    let of_cause = json!([{ "cause": CAUSE, "stuck": CLAIMS, "soFar": CLAIMS }]);
    assert_eq!((&status["machines"]["causes"], &said["spec"]["nodeClass"]["name"]), (&of_cause, &json!("default")));
    let row = control_plane.kubectl(&["get", "ndx", POOL, "--no-headers"]);
    assert_eq!(row.split_whitespace().take(5).collect::<Vec<_>>(), [POOL, CAUSE, "Register", "60", "general"]);

    // It was written with the second machine. How soon, `cargo bench --bench scale` measures.
    let verdicts: Vec<_> = control_plane
        .writes_of(ACCOUNT)
        .into_iter()
        .filter(|event| {
            event["objectRef"]["resource"] == "nodediagnoses" && event["objectRef"]["subresource"] == "status"
        })
        .collect();
    let first = verdicts.iter().position(|event| event["objectRef"]["name"] == POOL).expect("it was written");
    assert!(first <= 5, "{first} verdicts came before");
    let at = |event: &Value| {
        event["requestReceivedTimestamp"].as_str().unwrap().parse::<chrono::DateTime<chrono::Utc>>().unwrap()
    };
    let waited = at(&verdicts[first]) - at(&verdicts[0]);
    println!("{first} verdicts came before, the first {waited} before");
    let of_pool_written = verdicts.iter().filter(|event| event["objectRef"]["name"] == POOL).count();
    assert!(of_pool_written < 12, "{of_pool_written} writes");
    // No machine is counted twice.
    let metrics = operator.get("/metrics");
    let counted: Vec<_> = metrics.lines().filter(|line| line.starts_with("nodewhy_diagnoses{")).collect();
    assert!(counted.len() == 1 && counted[0].ends_with(&format!(" {CLAIMS}")), "{counted:#?}");

    // At rest, and over a restart, nothing is written.
    let version = || of_pool(&control_plane).map(|d| d["metadata"]["resourceVersion"].clone());
    let settled = settled(version);
    assert!(operator.process.terminate().success());
    let operator = replica(&control_plane, &rights, "second");
    wait_until(SOON, || leads(&operator).then_some(()));
    std::thread::sleep(Duration::from_secs(8));
    assert_eq!(version(), settled);

    // All are gone: the incident goes on until one joins.
    remove(&client, &names).await;
    wait_until(SOON, || (stuck(&control_plane)? == 0).then_some(()));
    let all_gone =
        wait_until(SOON, || of_pool(&control_plane).filter(|d| d["status"]["machines"]["failedLaunches"] == CLAIMS));
    assert!(all_gone["status"]["outcome"].is_null(), "{all_gone:#}");
    assert!(metric(&operator, &format!(r#"nodewhy_launches_in_vain_total{{nodepool="general"}} {CLAIMS}"#)));
    let ran = operator.get("/metrics");
    let ran =
        ran.lines().find_map(|l| l.strip_prefix(r#"nodewhy_instances_in_vain_seconds_total{nodepool="general"} "#));
    assert_eq!(ran, Some(all_gone["status"]["machines"]["failedLaunchSeconds"].to_string().as_str()));
    stop_the_launches(&control_plane, &all_gone);
    join(&client, "general-ok").await;
    let ended = wait_until(SOON, || of_pool(&control_plane).filter(|d| d["status"]["outcome"] == "Recovered"));
    assert_eq!(ended["metadata"]["labels"]["nodewhy.dev/outcome"], "Recovered");

    // A name that comes back does not overwrite what was; nor does the next incident of the NodePool.
    let again = ["general-058".to_owned(), "general-059".to_owned()];
    refuse(&client, &again).await;
    let second = wait_until(SOON, || {
        diagnosis(&control_plane, &again[1]).filter(|d| d["status"]["earlier"][0]["outcome"] == "Deleted")
    });
    assert!(second["status"]["outcome"].is_null(), "{second:#}");
    assert_ne!(second["status"]["earlier"][0]["uid"], second["spec"]["subject"]["uid"]);
    wait_until(SOON, || of_pool(&control_plane).filter(|d| d["status"]["earlier"][0]["outcome"] == "Recovered"));

    let (code, out, errors) = nodewhy(&rights, &["history"]);
    let machines: Vec<&str> = out.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    let of = |name: &str| machines.iter().filter(|machine| **machine == name).count();
    assert_eq!(code, Some(0), "{errors}");
    assert_eq!((of("NodePool/general"), of("general-059")), (2, 2), "{out}");
    // Which of those that are gone were the last ones to go, and are kept, nobody decides.
    let gone = *machines.iter().find(|machine| of(machine) == 1 && machine.starts_with("general-0")).expect("some are");
    let (_, out, _) = nodewhy(&rights, &["history", "general-059"]);
    assert!(out.contains("Deleted") && out.contains("stuck") && out.contains("Karpenter"), "{out}");
    // One that is gone, by the command that people know.
    let (code, out, errors) = nodewhy(&rights, &["diagnose", gone]);
    assert!(code == Some(0) && errors.contains(&format!("{gone} is gone")), "{errors}");
    assert!(out.contains(gone) && out.contains("was deleted after") && !out.contains("general-059"), "{out}");
    let (code, _, errors) = nodewhy(&rights, &["diagnose", "general-999"]);
    assert!(code == Some(2) && errors.contains("is called general-999"), "{errors}");
    assert!(is_ready(&operator));
}
