//! The API server refuses everything for a while: its flow control (429), or its storage (500).

use super::proxy::{Proxy, Traffic};
use super::{is_alive, is_up, said_of, started, stuck, version};
use crate::cluster::life::{cluster, diagnosed, is_ready, refuse, remove};
use std::time::{Duration, Instant};
use testkit::control_plane::recipes::{SOON, wait_until};

#[tokio::test(flavor = "multi_thread")]
async fn refusals_are_told_do_not_become_a_storm_of_our_own_and_pass() {
    let (control_plane, rights) = cluster();
    let client = control_plane.client().await;
    let proxy = Proxy::start(&control_plane).await;
    let nodewhy = started(&control_plane, &proxy.kubeconfig(&rights), &[]);
    stuck(&control_plane, &client, &["general-before", "general-goes"]).await;
    let settled = version(&control_plane, "general-before");

    for code in [429, 500] {
        proxy.set(Traffic::Refused(code));
        proxy.cut();
        // Each watch says it for itself, one after the other.
        for input in ["nodeclaims", "nodes"] {
            wait_until(SOON, || said_of(&nodewhy, input).contains(&code.to_string()).then_some(()));
        }
        assert!(!is_up(&nodewhy, "nodes") && is_ready(&nodewhy) && is_alive(&nodewhy), "{}", nodewhy.get("/readyz"));
    }
    refuse(&client, &["general-meanwhile".to_owned()]).await;
    remove(&client, &["general-goes".to_owned()]).await;
    let (asked, since) = (proxy.requests(), Instant::now());
    std::thread::sleep(Duration::from_secs(10));
    let rate = f64::from(proxy.requests() - asked) / since.elapsed().as_secs_f64();
    println!("{rate:.1} requests a second while everything is refused");
    assert!(rate < 5.0, "{rate}");

    proxy.set(Traffic::Flows);
    wait_until(SOON, || diagnosed(&control_plane).contains("general-meanwhile").then_some(()));
    wait_until(SOON, || (super::outcome(&control_plane, "general-goes")? == "Deleted").then_some(()));
    wait_until(SOON, || (!nodewhy.get("/readyz").contains(" 500 ")).then_some(()));
    assert!(is_up(&nodewhy, "nodes"));
    assert_eq!(version(&control_plane, "general-before"), settled);
    assert_eq!(diagnosed(&control_plane).len(), 3);

    // One line each time it begins, one when it is over, and none of the client library's.
    wait_until(SOON, || nodewhy.process.log().contains("requests to the API server succeed again").then_some(()));
    let log = nodewhy.process.log();
    let said = |words: &str| log.lines().filter(|line| line.contains(words)).count();
    assert_eq!([said("requests to the API server fail"), said("requests to the API server succeed")], [2, 1], "{log}");
    // ENIConfigs are not installed here.
    assert_eq!([said("kube_client"), said("an input cannot be read")], [0, 1], "{log}");
}
