//! Events at the rate of ten thousand a minute, and objects as large as the API server takes them.

use super::{is_alive, metric, started, stuck};
use crate::cluster::life::{cluster, diagnosed, refuse};
use crate::cluster::operator::diagnosis;
use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Event, Node};
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;
use std::time::{Duration, Instant};
use testkit::control_plane::Nodewhy;
use testkit::control_plane::recipes::{SOON, wait_until};
use testkit::patience::settled;

const EVENTS: usize = 4_000;
/// The limit that is shipped.
const LIMIT_KIB: u64 = 512 * 1024;

/// The most memory that it has had at once, in KiB.
fn peak(nodewhy: &Nodewhy) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", nodewhy.process.id())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux says it");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_events_and_objects_of_a_megabyte_delay_no_verdict() {
    let (control_plane, rights) = cluster();
    let client = control_plane.client().await;
    let nodewhy = started(&control_plane, &rights, &[]);
    stuck(&control_plane, &client, &["general-before"]).await;

    // A Node with a megabyte of images and a quarter of one of annotations, an aws-auth and user data of a megabyte
    // each.
    let large = "x".repeat(250_000);
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "large", "annotations": { "example.com/large": large } }, "spec": { "providerID": "aws:///eu-west-1a/i-large" } });
    let nodes: Api<Node> = Api::all(client.clone());
    nodes.create(&PostParams::default(), &serde_json::from_value(node).unwrap()).await.unwrap();
    let images: Vec<_> = (0..100)
        .map(|n| json!({ "names": [format!("example.com/{n}/{}", "y".repeat(10_000))], "sizeBytes": 1 }))
        .collect();
    nodes
        .patch_status("large", &PatchParams::default(), &Patch::Merge(json!({ "status": { "images": images } })))
        .await
        .unwrap();
    let role = |n: usize| {
        format!(
            "- rolearn: arn:aws:iam::111122223333:role/a-role-with-a-long-name-{n}\n  username: u{n}\n  groups: [a, \
             b]\n"
        )
    };
    let map =
        json!({ "metadata": { "name": "aws-auth" }, "data": { "mapRoles": (0..9_500).map(role).collect::<String>() } });
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-system");
    maps.create(&PostParams::default(), &serde_json::from_value(map).unwrap()).await.unwrap();
    let script = format!("#!/bin/bash\n{}", "echo a line that does nothing at all\n".repeat(27_000));
    let user_data = json!({ "spec": { "userData": script } }).to_string();
    control_plane
        .try_kubectl_with_input(
            &["patch", "ec2nodeclass", "default", "--type=merge", "--patch-file=/dev/stdin"],
            user_data,
        )
        .expect("the API server takes it");

    let settled = settled(|| diagnosis(&control_plane, "general-before"));

    let events: Api<Event> = Api::namespaced(client.clone(), "default");
    let since = Instant::now();
    let kinds = ["Node", "NodeClaim", "DaemonSet", "Pod"];
    let half = stream::iter(0..EVENTS).for_each_concurrent(16, |n| {
        let (events, kind) = (events.clone(), kinds[n % kinds.len()]);
        async move {
            let event = json!({
                "metadata": { "name": format!("flood.{n}"), "namespace": "default" },
                "involvedObject": { "kind": kind, "name": format!("other-{}", n % 500), "namespace": "default" },
                "reason": if kind == "Pod" { "FailedCreatePodSandBox" } else { "Noise" },
                "message": "something happens, and it means nothing", "type": "Warning", "count": 1,
                "firstTimestamp": "2026-01-15T12:00:00Z", "lastTimestamp": "2026-01-15T12:00:00Z",
            });
            events.create(&PostParams::default(), &serde_json::from_value(event).unwrap()).await.unwrap();
        }
    });
    let amid = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        refuse(&client, &["general-amid".to_owned()]).await;
        let asked = Instant::now();
        wait_until(SOON, || diagnosed(&control_plane).contains("general-amid").then_some(()));
        asked.elapsed()
    };
    let (told, ()) =
        tokio::join!(async { tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(amid)) }, half);
    println!(
        "{EVENTS} Events in {:.0?}, a verdict amid them after {told:.1?}, at most {} MiB",
        since.elapsed(),
        peak(&nodewhy) / 1024
    );
    stuck(&control_plane, &client, &["general-after"]).await;
    assert!(is_alive(&nodewhy));
    assert!(peak(&nodewhy) < LIMIT_KIB / 2, "{} KiB", peak(&nodewhy));
    assert_eq!(diagnosis(&control_plane, "general-before"), settled);
    assert_eq!(diagnosed(&control_plane).len(), 3, "noise is no symptom");
    assert_eq!(
        metric(&nodewhy, r#"nodewhy_unreadable_objects_total{input="events/NodeClaim"}"#),
        Some(0.0),
        "{}",
        nodewhy.get("/metrics")
    );
}
