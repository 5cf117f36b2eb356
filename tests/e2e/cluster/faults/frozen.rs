//! The leader is held still while another replica takes over, and wakes up.

use super::proxy::{Proxy, Traffic};
use crate::cluster::life::{ACCOUNT, claim_names, cluster, diagnosed, leads, refuse, replica};
use chrono::{DateTime, Utc};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;
use testkit::control_plane::ControlPlane;
use testkit::control_plane::recipes::{SOON, wait_until};

const CLAIMS: usize = 100;

/// What tells the writes of one token from those of another of the same account.
fn credential(control_plane: &ControlPlane, kubeconfig: &Path) -> Value {
    let said = control_plane.kubectl(&[
        "auth",
        "whoami",
        "--output=json",
        "--kubeconfig",
        kubeconfig.to_str().expect("UTF-8"),
    ]);
    let said: Value = serde_json::from_str(&said).expect("JSON");
    said["status"]["userInfo"]["extra"]["authentication.kubernetes.io/credential-id"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_wakes_up_after_its_lease_ended_writes_nothing() {
    let (control_plane, rights) = cluster();
    let of_the_first = rights.with_extension("first");
    std::fs::copy(&rights, &of_the_first).expect("the folder is writable");
    let rights = control_plane.kubeconfig_for("nodewhy", "nodewhy");
    let credential = credential(&control_plane, &of_the_first);
    assert!(credential.is_array());

    let proxy = Proxy::start(&control_plane).await;
    let first = replica(&control_plane, &proxy.kubeconfig(&of_the_first), "first");
    wait_until(SOON, || leads(&first).then_some(()));
    let second = replica(&control_plane, &rights, "second");
    refuse(&control_plane.client().await, &claim_names(CLAIMS)).await;
    wait_until(SOON, || (!diagnosed(&control_plane).is_empty()).then_some(()));
    // Of each NodeDiagnosis that is under way the first half is written when it is held still: it would go on with the
    // second.
    proxy.set(Traffic::Late("force=true"));
    wait_until(SOON, || (proxy.held() >= 2).then_some(()));
    first.process.signal("STOP");
    proxy.set(Traffic::Flows);
    let before = diagnosed(&control_plane).len();
    assert!(before < CLAIMS, "the incident was over before the leader was held still");
    wait_until(SOON, || leads(&second).then_some(()));
    wait_until(SOON, || (diagnosed(&control_plane).len() == CLAIMS).then_some(()));

    let woken = Utc::now();
    first.process.signal("CONT");
    wait_until(SOON, || (!leads(&first)).then_some(()));
    std::thread::sleep(Duration::from_secs(5));
    // What had left the process when it was held still may arrive yet; then it is refused.
    let since_then = |event: &&Value| {
        let is_done = event["responseStatus"]["code"].as_i64().is_some_and(|code| code < 300);
        let at = event["requestReceivedTimestamp"].as_str().and_then(|at| at.parse::<DateTime<Utc>>().ok());
        is_done
            && at.is_some_and(|at| at >= woken)
            && event["user"]["extra"]["authentication.kubernetes.io/credential-id"] == credential
    };
    let writes = control_plane.writes_of(ACCOUNT);
    assert!(
        writes.iter().any(|event| event["user"]["extra"]["authentication.kubernetes.io/credential-id"] == credential)
    );
    let late: Vec<_> = writes.iter().filter(since_then).map(|event| (&event["verb"], &event["objectRef"])).collect();
    assert!(late.is_empty(), "{late:#?}");
    assert!(leads(&second));
    assert_eq!(diagnosed(&control_plane).len(), CLAIMS);
    println!("{before} of {CLAIMS} were written by the first");
}
