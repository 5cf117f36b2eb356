//! Connections that stay open and say nothing: a load balancer that forgot them, a network that lost the way back.

use super::proxy::{Proxy, Traffic};
use super::{is_alive, is_up, metric, said_of, started, stuck, version};
use crate::cluster::life::{cluster, diagnosed, leads, refuse};
use std::time::{Duration, Instant};
use testkit::control_plane::recipes::{SOON, wait_until};

/// A watch ends after 60 seconds; one that does not is dead.
const NOTICED: Duration = Duration::from_secs(80);
const ELECTED: [&str; 2] = ["--leader-elect", "--lease-namespace=nodewhy"];

#[tokio::test(flavor = "multi_thread")]
async fn watches_that_hang_are_given_up_and_what_they_missed_is_seen() {
    let (control_plane, rights) = cluster();
    let client = control_plane.client().await;
    let proxy = Proxy::start(&control_plane).await;
    let nodewhy = started(&control_plane, &proxy.kubeconfig(&rights), &ELECTED);
    stuck(&control_plane, &client, &["general-before"]).await;
    let settled = version(&control_plane, "general-before");

    proxy.set(Traffic::Silent);
    // Who cannot renew does not lead: another replica could by now.
    wait_until(SOON, || (!leads(&nodewhy)).then_some(()));
    refuse(&client, &["general-meanwhile".to_owned()]).await;
    assert!(is_alive(&nodewhy), "a restart would not help");
    // From here on new connections work, those that were open stay dead.
    proxy.set(Traffic::Flows);
    let since = Instant::now();
    wait_until(SOON, || leads(&nodewhy).then_some(()));
    wait_until(NOTICED, || diagnosed(&control_plane).contains("general-meanwhile").then_some(()));
    println!("seen {:.0?} after new connections work", since.elapsed());
    assert_eq!(version(&control_plane, "general-before"), settled);
    assert_eq!(
        metric(&nodewhy, r#"nodewhy_watch_relists_total{input="nodeclaims"}"#),
        None,
        "a watch that was lost is taken up again"
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "six minutes"]
async fn a_silence_of_minutes_is_told_and_a_quiet_cluster_is_none() {
    let (control_plane, rights) = cluster();
    let client = control_plane.client().await;
    let proxy = Proxy::start(&control_plane).await;
    let nodewhy = started(&control_plane, &proxy.kubeconfig(&rights), &[]);
    stuck(&control_plane, &client, &["general-before"]).await;

    // Watches end and go on, and nobody takes that for a fault.
    for _ in 0..50 {
        std::thread::sleep(Duration::from_secs(3));
        assert!(["nodes", "nodeclaims", "certificatesigningrequests"].iter().all(|input| is_up(&nodewhy, input)));
    }
    assert_eq!(metric(&nodewhy, r#"nodewhy_watch_relists_total{input="nodes"}"#), None);

    proxy.set(Traffic::Silent);
    let since = Instant::now();
    wait_until(Duration::from_mins(4), || (!is_up(&nodewhy, "nodeclaims")).then_some(()));
    println!("told after {:.0?}: {}", since.elapsed(), said_of(&nodewhy, "nodeclaims"));
    assert!(said_of(&nodewhy, "nodeclaims").starts_with("[-]"));
    proxy.set(Traffic::Flows);
    refuse(&client, &["general-meanwhile".to_owned()]).await;
    wait_until(SOON, || diagnosed(&control_plane).contains("general-meanwhile").then_some(()));
}
