//! The clock of nodewhy's machine is ten minutes ahead of the API server's, or behind it.

use super::{metric, stuck};
use crate::cluster::life::{cluster, diagnosed, is_ready, refuse};
use crate::cluster::operator::diagnosis;
use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::json;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use testkit::control_plane::recipes::{SOON, wait_until};
use testkit::control_plane::{ControlPlane, Nodewhy};
use testkit::programs::sandbox;

fn with_clock(control_plane: &ControlPlane, kubeconfig: &Path, offset: &str) -> Nodewhy {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nodewhy"));
    command.env("LD_PRELOAD", sandbox::faketime()).env("FAKETIME", offset).env("DONT_FAKE_MONOTONIC", "1");
    let nodewhy = control_plane.nodewhy_by(command, kubeconfig, &[]);
    wait_until(SOON, || is_ready(&nodewhy).then_some(()));
    nodewhy
}

/// A claim that was launched so long ago, and whose Node has not come.
async fn launched(control_plane: &ControlPlane, client: &kube::Client, name: &str, ago: Duration) {
    refuse(client, &[name.to_owned()]).await;
    let at = (Utc::now() - ago).to_rfc3339_opts(SecondsFormat::Secs, true);
    let condition = |type_: &str, status: &str, reason: &str| json!({ "type": type_, "status": status, "reason": reason, "message": reason, "lastTransitionTime": at });
    let conditions = [condition("Launched", "True", "Launched"), condition("Registered", "Unknown", "NodeNotFound")];
    let patch = json!({ "status": { "conditions": conditions } });
    control_plane.patch_status("nodeclaim", name, "merge", &patch);
}

#[tokio::test(flavor = "multi_thread")]
async fn machines_are_as_old_as_the_api_server_says() {
    let (control_plane, rights) = cluster();
    let client = control_plane.client().await;
    launched(&control_plane, &client, "young", Duration::from_mins(1)).await;

    let ahead = with_clock(&control_plane, &rights, "+10m");
    stuck(&control_plane, &client, &["general-refused"]).await;
    let refused = diagnosis(&control_plane, "general-refused").unwrap();
    let seen: DateTime<Utc> = refused["status"]["firstObservedAt"].as_str().unwrap().parse().unwrap();
    assert!((Utc::now() - seen).abs() < chrono::TimeDelta::minutes(1), "{refused:#}");
    std::thread::sleep(Duration::from_secs(5));
    assert!(diagnosis(&control_plane, "young").is_none(), "a machine of one minute is not stuck");
    let skew = metric(&ahead, "nodewhy_clock_skew_seconds");
    assert!(skew.is_some_and(|skew| (skew + 600.0).abs() < 10.0), "{skew:?}\n{}", ahead.process.log());
    assert!(ahead.process.log().contains("clock"));
    assert!(ahead.process.terminate().success());

    let behind = with_clock(&control_plane, &rights, "-10m");
    launched(&control_plane, &client, "late", Duration::from_mins(8)).await;
    wait_until(SOON, || diagnosis(&control_plane, "late").filter(|d| d["status"]["stage"] == "Join"));
    let skew = metric(&behind, "nodewhy_clock_skew_seconds");
    assert!(skew.is_some_and(|skew| (skew - 600.0).abs() < 10.0), "{skew:?}");
    assert!(diagnosed(&control_plane).contains("general-refused"));
}
