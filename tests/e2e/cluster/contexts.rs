//! Several clusters as one answer: two that are read, and one that is gone.

use chrono::{SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use testkit::control_plane::recipes::{ec2_nodepool, nodeclaim};
use testkit::control_plane::{ControlPlane, NEWEST_KARPENTER, free_ports};

/// A kubeconfig of these servers; the last context differs from the first in its namespace only.
fn kubeconfig(folder: &Path, clusters: &[(&str, &ControlPlane)], gone: &str) -> std::path::PathBuf {
    let [port] = free_ports();
    let (mut servers, mut users, mut contexts) = (Vec::new(), Vec::new(), Vec::new());
    for (name, control_plane) in clusters {
        let own = std::fs::read_to_string(control_plane.kubeconfig()).expect("a kubeconfig");
        let own: Value = serde_json::from_str(&own).expect("JSON");
        servers.push(json!({"name": name, "cluster": own["clusters"][0]["cluster"]}));
        users.push(json!({"name": name, "user": own["users"][0]["user"]}));
        contexts.push(json!({"name": name, "context": {"cluster": name, "user": name}}));
    }
    servers.push(json!({"name": gone, "cluster": {"server": format!("https://127.0.0.1:{port}")}}));
    users.push(json!({"name": gone, "user": {"token": "t"}}));
    contexts.push(json!({"name": gone, "context": {"cluster": gone, "user": gone}}));
    let mut again = contexts[0].clone();
    again["name"] = json!("elsewhere");
    again["context"]["namespace"] = json!("elsewhere");
    contexts.push(again);
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "clusters": servers, "users": users, "contexts": contexts,
        "current-context": gone,
    });
    let file = folder.join("config");
    std::fs::write(&file, config.to_string()).expect("a file");
    file
}

#[test]
fn one_that_is_gone_hides_no_other() {
    let clusters = [ControlPlane::start(), ControlPlane::start()];
    for control_plane in &clusters {
        control_plane.karpenter_crds(NEWEST_KARPENTER);
        control_plane.ec2nodeclass_crd();
        ec2_nodepool(control_plane);
    }
    let [sick, healthy] = &clusters;
    nodeclaim(sick, "general-7xk2p", "general");
    let folder = tempfile::tempdir().expect("a folder");
    let config = kubeconfig(folder.path(), &[("sick", sick), ("healthy", healthy)], "gone");
    let in_an_hour = (Utc::now() + TimeDelta::hours(1)).to_rfc3339_opts(SecondsFormat::Secs, true);
    let ask = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nodewhy"));
        command.arg("diagnose").args(arguments).args(["--now", &in_an_hour]).arg("--kubeconfig").arg(&config);
        let output = command.output().expect("it runs");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        (output.status.code(), text(output.stdout), text(output.stderr))
    };

    let (code, out, err) = ask(&["--all-contexts"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("nodewhy: gone: ") && err.contains("refuses the connection"), "{err}");
    let place = |part: &str| out.find(part).unwrap_or_else(|| panic!("no {part:?} in\n{out}"));
    assert!(place("Cluster sick\n") < place("NodeClaim general-7xk2p"));
    assert!(place("NodeClaim general-7xk2p") < place("Cluster healthy\n"));
    assert!(place("Cluster healthy\n") < place("gone could not be read: https://127.0.0.1:"));
    place("first run: kubectl config use-context sick\n");
    assert!(!out.contains("use-context healthy") && !out.contains("elsewhere"), "{out}");
    assert!(out.ends_with("Read 2 of 3 clusters: 1 is stuck, in sick.\n"), "{out}");

    let (code, out, _) = ask(&["--contexts=gone,healthy,sick,gone", "-o=json", "--fail-on=possible"]);
    assert_eq!(code, Some(1), "of all clusters, the surest verdict counts");
    let lists: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(lists["kind"], "NodeDiagnosisLists");
    let names: Vec<&Value> = lists["items"].as_array().into_iter().flatten().map(|item| &item["cluster"]).collect();
    assert_eq!(names, ["gone", "healthy", "sick"], "in the order they were asked for, each once");
    assert!(lists["items"][0]["unread"].as_str().is_some_and(|why| why.contains("refuses")), "{out}");
    let list = &lists["items"][2]["list"];
    assert_eq!((&list["kind"], &list["judged"]["stuck"]), (&json!("NodeDiagnosisList"), &json!(1)), "{out}");
    assert_eq!(list["items"][0]["spec"]["subject"]["name"], "general-7xk2p", "{out}");
    let (code, ..) = ask(&["--contexts=gone,healthy", "--fail-on=possible"]);
    assert_eq!(code, Some(0), "a cluster that was not read is not a stuck machine");

    let (_, out, _) = ask(&["--contexts=sick,healthy", "-o=wide"]);
    let column = |line: &str| line.split_whitespace().take(2).map(str::to_owned).collect::<Vec<_>>();
    let lines: Vec<_> = out.lines().take(2).map(column).collect();
    assert_eq!(lines, [["CLUSTER", "NAME"], ["sick", "general-7xk2p"]], "{out}");
    assert!(out.contains("\nhealthy: Judged "), "{out}");

    let (_, page, _) = ask(&["--all-contexts", "-o=html"]);
    for part in
        ["1 NodeClaim is stuck", "cluster sick", "use-context sick", "healthy: Judged", "gone could not be read"]
    {
        assert!(page.contains(part), "no {part:?} in\n{page}");
    }

    let (code, out, _) = ask(&["general-7xk2p", "--contexts=healthy,sick"]);
    assert_eq!(code, Some(0), "one of them has the machine");
    assert!(out.contains("general-7xk2p") && !out.contains("Cluster healthy"), "{out}");
    let (code, _, err) = ask(&["nobody", "--contexts=healthy,sick"]);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("is called nobody"), "{err}");
}
