//! The API server restarts, and etcd has forgotten what the watches would go on from: they are told 410 Gone.

use super::proxy::{Proxy, Traffic};
use super::{metric, outcome, started, stuck, version};
use crate::cluster::life::{cluster, diagnosed, refuse, remove};
use std::collections::BTreeSet;
use testkit::control_plane::recipes::{SOON, wait_until};

#[tokio::test(flavor = "multi_thread")]
async fn what_changed_while_the_api_server_was_away_and_etcd_was_compacted_is_seen() {
    let (mut control_plane, rights) = cluster();
    let client = control_plane.client().await;
    let proxy = Proxy::start(&control_plane).await;
    let nodewhy = started(&control_plane, &proxy.kubeconfig(&rights), &[]);
    stuck(&control_plane, &client, &["general-goes", "general-stays"]).await;
    let settled = version(&control_plane, "general-stays");

    // The watches break off, and what they ask then waits until the cluster is another one.
    proxy.set(Traffic::Held(""));
    proxy.cut();
    remove(&client, &["general-goes".to_owned()]).await;
    refuse(&client, &["general-comes".to_owned()]).await;
    control_plane.compact();
    control_plane.restart_apiserver(|_| {});
    assert_eq!(diagnosed(&control_plane), BTreeSet::from(["general-goes".to_owned(), "general-stays".to_owned()]));
    proxy.set(Traffic::Flows);

    wait_until(SOON, || diagnosed(&control_plane).contains("general-comes").then_some(()));
    wait_until(SOON, || (outcome(&control_plane, "general-goes")? == "Deleted").then_some(()));
    assert!(
        metric(&nodewhy, r#"nodewhy_watch_relists_total{input="nodeclaims"}"#) >= Some(1.0),
        "the watch was not told 410"
    );
    assert_eq!(version(&control_plane, "general-stays"), settled, "what is still true is not written again");
    assert_eq!(diagnosed(&control_plane).len(), 3);
}
