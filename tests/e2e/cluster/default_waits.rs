//! What is removed when, by the limits that are shipped. No flag sets one: the clock is moved, which nodewhy takes from
//! the API server's answers.

use crate::cluster::remediation::{FINGERPRINTS, removals, stale_node};
use crate::cluster::tainted::{A_WHILE, Cluster, each, has_taint, initialize, names, nodes, register, tainted};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use testkit::control_plane::recipes::{SOON, wait_until};

const CAUSE: &str = "CloudControllerNeverInitialized";

#[tokio::test(flavor = "multi_thread")]
async fn a_taint_goes_after_thirty_minutes_or_ten_and_the_next_one_an_hour_later() {
    let cluster = Cluster::start(&[]).await;
    let never = names("never", 1);
    register(&cluster.client, &never).await;
    let never = never[0].as_str();
    cluster.at(11).await;
    cluster.holds(never, "TooRecent", &[]);
    cluster.at(38).await;
    cluster.holds(never, "TooRecent", &[]);
    cluster.at(43).await;
    cluster.said(never, "Removed");

    // Of two Nodes one may be mended in an hour.
    stale_node(&cluster.control_plane, "stale");
    cluster.at(47).await;
    cluster.holds("stale", "TooRecent", &[never]);
    cluster.at(54).await;
    cluster.holds("stale", "TooRecent", &[never]);
    cluster.at(60).await;
    cluster.holds("stale", "BudgetSpent", &[never]);
    cluster.at(100).await;
    cluster.holds("stale", "BudgetSpent", &[never]);
    cluster.at(105).await;
    cluster.said("stale", "Removed");
    assert_eq!(removals(&cluster.control_plane), [never, "stale"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_fifty_stuck_nodes_none_is_touched_until_the_cloud_controller_is_back_for_most() {
    const NODES: usize = 50;
    let cluster = Cluster::start(&[]).await;
    let all = names("never", NODES);
    register(&cluster.client, &all).await;
    let many = BTreeMap::from([("ManyNodes".to_owned(), NODES)]);
    for minutes in [11, 45, 24 * 60] {
        cluster.at(minutes).await;
        wait_until(SOON, || (cluster.reasons() == many).then_some(()));
        std::thread::sleep(A_WHILE);
        assert_eq!(cluster.reasons(), many);
        assert_eq!(removals(&cluster.control_plane), [""; 0]);
    }
    assert_eq!(tainted(&cluster.client).await, all);

    // It comes back for all but five.
    let (left, passed) = all.split_at(5);
    let labels: BTreeMap<_, _> = FINGERPRINTS.iter().filter_map(|label| label.split_once('=')).collect();
    let done = &json!({ "metadata": { "labels": labels }, "spec": { "taints": [] } });
    let of_controller =
        &PatchParams { field_manager: Some("aws-cloud-controller-manager".to_owned()), ..PatchParams::default() };
    let api = &Api::<Node>::all(cluster.client.clone());
    each(passed, async |name| drop(api.patch(name, of_controller, &Patch::Merge(done)).await.unwrap())).await;
    initialize(&cluster.client, passed).await;
    let open = |count| wait_until(SOON, || (cluster.reasons().values().sum::<usize>() == count).then_some(()));
    open(left.len());
    // The last five are mended as the budget allows: two of fifty in an hour.
    for (removed, then) in [(2, 24 * 60 + 65), (4, 24 * 60 + 70)] {
        wait_until(SOON, || (removals(&cluster.control_plane).len() >= removed).then_some(()));
        initialize(&cluster.client, &removals(&cluster.control_plane)).await;
        open(left.len() - removed);
        std::thread::sleep(A_WHILE);
        assert_eq!(removals(&cluster.control_plane).len(), removed);
        cluster.at(then).await;
    }
    let mended: BTreeSet<_> = removals(&cluster.control_plane).into_iter().collect();
    assert!(mended.len() == 4 && mended.iter().all(|name| left.contains(name)), "{mended:?}");
    let nodes = nodes(&cluster.client).await;
    assert!(left.iter().all(|name| has_taint(&nodes[name], "dedicated")), "{nodes:#?}");
    // As many as are kept.
    let ended =
        cluster.control_plane.get(&["nodediagnoses", "--selector=nodewhy.dev/outcome=Recovered"]).expect("a list");
    let ended = ended["items"].as_array().expect("items");
    assert!(ended.len() >= 10 && ended.iter().all(|d| d["status"]["cause"] == CAUSE), "{ended:#?}");
}
