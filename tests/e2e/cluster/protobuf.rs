//! What an API server writes as protobuf is read as what it writes as JSON.

use engine::objects::input::Input;
use futures::StreamExt;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use nodewhy::kube_client::raw::Raw;
use nodewhy::kube_client::{ClusterFlags, resource_of};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use testkit::control_plane::ControlPlane;
use testkit::objects::fleet::node;

fn event(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": "default"},
        "involvedObject": {"kind": "Node", "name": "n", "uid": "u"}, "reason": "Reason", "message": "a <b> & \
            \"c\"\n\u{e9}", "type": "Warning",
        "source": {"component": "kubelet", "host": "n"}, "count": 3, "firstTimestamp": "2026-01-15T11:00:00Z", "lastTimestamp": "2026-01-15T11:10:00Z",
        "eventTime": "2026-01-15T11:10:00.123456Z", "series": {"count": 4, "lastObservedTime": "2026-01-15T11:10:00.000010Z"},
        "reportingComponent": "kubelet", "reportingInstance": "n", "action": "Act",
    })
}

/// One with every field that is read, one with nothing but a name.
fn nodes() -> [Value; 2] {
    let mut full = node(1);
    for field in ["uid", "resourceVersion", "ownerReferences", "managedFields", "creationTimestamp"] {
        full["metadata"].as_object_mut().expect("an object").remove(field);
    }
    full["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": "c", "uid": "u"}]);
    full["spec"]["unschedulable"] = json!(true);
    full["spec"]["taints"] = json!([{"key": "a/b", "value": "c", "effect": "NoExecute", "timeAdded": "2026-01-15T11:00:00Z"}, {"key": "d", "effect": "NoSchedule"}]);
    [full, json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "empty"}})]
}

/// The objects of an input as they are read out of a list, and then out of a watch that begins anew; and whether any of
/// them came with a field that nobody reads.
async fn views(client: &Client, input: Input, unread: &str) -> (Vec<Value>, bool) {
    let resource = resource_of(&input.sources()[0]);
    let api: Api<Raw> = Api::all_with(client.clone(), &resource);
    let mut objects = api.list(&ListParams::default()).await.expect("a list").items;
    let mut events = api.watch(&WatchParams::default().timeout(20), "0").await.expect("a watch").boxed();
    for _ in 0..objects.len() {
        match events.next().await {
            Some(Ok(WatchEvent::Added(object))) => objects.push(object),
            Some(Err(error)) => panic!("{}: {error}", input.name()),
            _ => panic!("{}: what is there is not told", input.name()),
        }
    }
    let view = |object: &Raw| serde_json::to_value(object.read(input, &resource).expect("a view").0).expect("JSON");
    (objects.iter().map(view).collect(), objects.iter().any(|object| object.text().contains(unread)))
}

#[tokio::test]
async fn what_comes_as_protobuf_is_what_comes_as_json() {
    let control_plane = ControlPlane::start();
    for object in nodes().into_iter().chain([event("full")]) {
        control_plane.apply(object);
    }
    // It owns fields of the status, as a kubelet does; and the Node's deletion has begun.
    let name = nodes()[0]["metadata"]["name"].clone();
    let name = name.as_str().expect("a name");
    control_plane.patch_status("node", name, "merge", &json!({"status": nodes()[0]["status"]}));
    control_plane.kubectl(&["delete", "node", name, "--wait=false"]);

    let kubeconfig = Some(control_plane.kubeconfig());
    let flags = ClusterFlags { kubeconfig, context: None };
    let command = flags.connect(Duration::from_secs(10)).await.expect("a client").client;
    let operator = flags.lasting_client(Arc::default()).await.expect("a client");
    let plain = control_plane.client().await;
    for (input, unread) in [(Input::Nodes, "\"images\""), (Input::Events, "\"reportingInstance\"")] {
        let (expected, is_whole) = views(&plain, input, unread).await;
        assert!(is_whole && expected.len() >= 2, "{expected:#?}");
        for client in [&command, &operator] {
            let (read, is_whole) = views(client, input, unread).await;
            assert!(!is_whole, "{} came as JSON", input.name());
            assert_eq!(read, expected);
        }
    }
}

/// What the API server refuses it says as protobuf too.
#[tokio::test]
async fn a_refusal_is_understood() {
    let control_plane = ControlPlane::start();
    control_plane.kubectl(&["create", "serviceaccount", "nobody"]);
    let flags = ClusterFlags { kubeconfig: Some(control_plane.kubeconfig_for("default", "nobody")), context: None };
    let client = flags.connect(Duration::from_secs(10)).await.expect("a client").client;
    let api: Api<Raw> = Api::all_with(client, &resource_of(&Input::Nodes.sources()[0]));
    let Err(kube::Error::Api(status)) = api.list(&ListParams::default()).await else { panic!("it is no refusal") };
    assert_eq!((status.code, status.reason.as_str()), (403, "Forbidden"));
    assert!(status.message.contains("cannot list resource"), "{}", status.message);
}
