//! nodewhy meets the limit of its memory, dies, and is started again, as kubelet does it.

use super::proxy::{Proxy, Traffic};
use super::{is_up, outcome, started, stuck};
use crate::cluster::life::{cluster, diagnosed, remove};
use crate::cluster::operator::diagnosis;
use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, PostParams};
use serde_json::json;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use testkit::control_plane::recipes::{SOON, wait_until};

#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_before_it_ran_out_of_memory_stands_and_what_came_then_is_said_after() {
    let (control_plane, rights) = cluster();
    let client = control_plane.client().await;
    let proxy = Proxy::start(&control_plane).await;
    let mut nodewhy = started(&control_plane, &proxy.kubeconfig(&rights), &[]);
    stuck(&control_plane, &client, &["general-goes", "general-stays"]).await;
    let settled = diagnosis(&control_plane, "general-stays");

    // A page of a list is held as a whole: 75 MB of Nodes, and no room for them.
    let nodes: Api<Node> = Api::all(client.clone());
    let large = "x".repeat(250_000);
    stream::iter(0..300)
        .for_each_concurrent(8, |n| {
            let node = json!({ "metadata": { "name": format!("large-{n}"), "annotations": { "example.com/large": large } }, "spec": { "providerID": format!("aws:///eu-west-1a/i-{n}") } });
            let nodes = nodes.clone();
            async move { drop(nodes.create(&PostParams::default(), &serde_json::from_value(node).unwrap()).await.unwrap()) }
        })
        .await;
    proxy.set(Traffic::Refused(503));
    proxy.cut();
    wait_until(SOON, || (!is_up(&nodewhy, "nodes")).then_some(()));
    let (id, status) =
        (nodewhy.process.id(), std::fs::read_to_string(format!("/proc/{}/status", nodewhy.process.id())).unwrap());
    let data: u64 =
        status.lines().find_map(|line| line.strip_prefix("VmData:")?.trim().split(' ').next()?.parse().ok()).unwrap();
    let limit = (data + 16 * 1024) * 1024;
    let limited =
        Command::new("prlimit").args([format!("--pid={id}"), format!("--data={limit}")]).status().expect("util-linux");
    assert!(limited.success());
    proxy.set(Traffic::Flows);
    let ended = wait_until(SOON, || nodewhy.process.exited());
    assert_eq!(ended.signal(), Some(6), "{}", nodewhy.process.log());
    assert!(nodewhy.process.log().contains("memory allocation"), "{}", nodewhy.process.log());

    remove(&client, &["general-goes".to_owned()]).await;
    let _again = started(&control_plane, &rights, &[]);
    stuck(&control_plane, &client, &["general-later"]).await;
    wait_until(SOON, || outcome(&control_plane, "general-goes"));
    assert_eq!(diagnosis(&control_plane, "general-stays"), settled);
    assert_eq!(diagnosed(&control_plane).len(), 3);
}
