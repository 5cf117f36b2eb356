use super::to_json::{event, object};
use super::{EVENTS, JSON, ONE, answer, ask};
use axum::body::{Body, Bytes, to_bytes};
use engine::objects::input::{Input, Object};
use futures::stream;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Request, Response};
use proptest::prelude::*;
use serde_json::{Value, json};

fn varint(mut number: usize) -> Vec<u8> {
    let mut out = Vec::new();
    while number > 0x7f {
        out.push(u8::try_from(number & 0x7f).unwrap() | 0x80);
        number >>= 7;
    }
    out.push(u8::try_from(number).unwrap());
    out
}

/// A text, bytes or a message.
fn bytes(number: usize, bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let bytes = bytes.as_ref();
    [varint(number << 3 | 2), varint(bytes.len()), bytes.to_vec()].concat()
}

fn small(number: usize, value: usize) -> Vec<u8> {
    [varint(number << 3), varint(value)].concat()
}

fn whole(kind: &str, message: &[u8]) -> Vec<u8> {
    let types = [bytes(1, "v1"), bytes(2, kind)].concat();
    [b"k8s\0".to_vec(), bytes(1, types), bytes(2, message), bytes(3, ""), bytes(4, "")].concat()
}

fn read(bytes: &[u8]) -> Value {
    serde_json::from_slice(&object(bytes)).expect("JSON")
}

fn node(name: &str) -> Vec<u8> {
    bytes(1, bytes(1, name))
}

#[test]
fn what_is_read_of_a_node_is_written_as_go_writes_it() {
    let time = |seconds| [small(1, seconds), small(2, 0)].concat();
    let entry = |key: &str, value: Vec<u8>| [bytes(1, key), bytes(2, value)].concat();
    let metadata = [
        bytes(1, "n"),
        bytes(3, ""),
        bytes(8, time(5)),
        bytes(11, entry("b", b"1".to_vec())),
        // An unread field between two fields of a list.
        bytes(7, "x"),
        bytes(11, entry("a", Vec::new())),
        bytes(17, [bytes(1, "kubelet"), bytes(4, ""), bytes(7, bytes(1, "{\"f:spec\":\n{\"f:taints\":{}}}"))].concat()),
    ];
    let spec = [bytes(3, "aws:///z/i-1"), small(4, 1), bytes(5, [bytes(1, "k"), bytes(2, "")].concat())];
    let status =
        [bytes(2, entry("cpu", bytes(1, "2"))), bytes(8, "an image"), bytes(4, bytes(6, "a \"b\"\n\u{e9}\u{1}"))];
    let message = [bytes(1, metadata.concat()), bytes(2, spec.concat()), bytes(3, status.concat())].concat();
    let bytes = whole("Node", &message);
    assert!(!object(&bytes).contains(&b'\n'));
    assert_eq!(
        read(&bytes),
        json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {
                "name": "n", "creationTimestamp": "1970-01-01T00:00:05Z", "labels": {"a": "", "b": "1"},
                "managedFields": [{"manager": "kubelet", "time": null, "fieldsV1": {"f:spec": {"f:taints": {}}}}],
            },
            "spec": {"providerID": "aws:///z/i-1", "unschedulable": true, "taints": [{"key": "k"}]},
            "status": {"allocatable": {"cpu": "2"}, "conditions": [{"message": "a \"b\"\n\u{e9}\u{1}"}]},
        })
    );
}

#[test]
fn an_empty_list_is_a_list() {
    let list = read(&whole("EventList", &bytes(1, bytes(2, "7"))));
    let expected = json!({"apiVersion": "v1", "kind": "EventList", "metadata": {"resourceVersion": "7"}, "items": []});
    assert_eq!(list, expected);
}

#[test]
fn what_is_broken_hides_no_neighbor() {
    let cut = [node("broken"), vec![2 << 3 | 2, 100, 0]].concat();
    let list = [bytes(1, bytes(2, "7")), bytes(2, node("a")), bytes(2, cut), bytes(2, node("b"))].concat();
    let list = read(&whole("NodeList", &list));
    assert_eq!(list["metadata"], json!({"resourceVersion": "7"}));
    let named: Vec<_> = list["items"].as_array().unwrap().iter().map(|item| &item["metadata"]["name"]).collect();
    assert_eq!(named, [&json!("a"), &Value::Null, &json!("b")]);
    let error = Object::from_value(Input::Nodes, list["items"][1].clone()).unwrap_err().to_string();
    assert!(error.contains("the protobuf of this is broken"), "{error}");
}

#[test]
fn only_what_can_be_read_is_asked_for_so() {
    let accepted = |method: &str, uri: &str, accept: Option<&str>| {
        let mut request = Request::builder().method(method).uri(uri);
        if let Some(accept) = accept {
            request = request.header(ACCEPT, accept);
        }
        let mut request = request.body(()).unwrap();
        ask(&mut request);
        request.headers().get(ACCEPT).map(|accept| accept.to_str().unwrap().to_owned())
    };
    let either = Some("application/vnd.kubernetes.protobuf,application/json".to_owned());
    assert_eq!(accepted("GET", "/api/v1/nodes?limit=500", None), either);
    assert_eq!(accepted("GET", "/api/v1/events?watch=true&fieldSelector=x", None), either);
    for (method, uri) in
        [("GET", "/api/v1/nodes/n"), ("PATCH", "/api/v1/nodes"), ("GET", "/apis/karpenter.sh/v1/nodeclaims")]
    {
        assert_eq!(accepted(method, uri, None), None, "{method} {uri}");
    }
    let metadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    assert_eq!(accepted("GET", "/api/v1/nodes", Some(metadata)), Some(metadata.to_owned()));
}

async fn answered(content: &str, chunks: Vec<Bytes>) -> String {
    let body = Body::from_stream(stream::iter(chunks.into_iter().map(Ok::<_, std::io::Error>)));
    let response = answer(Response::builder().header(CONTENT_TYPE, content).body(body).unwrap());
    if content != "text/plain" {
        assert_eq!(response.headers()[CONTENT_TYPE], JSON);
    }
    String::from_utf8(to_bytes(response.into_body(), usize::MAX).await.unwrap().to_vec()).unwrap()
}

#[tokio::test]
async fn whatever_comes_is_handed_on_as_json() {
    let status = whole("Status", &[bytes(3, "no"), small(6, 100)].concat());
    let json = r#"{"apiVersion":"v1","kind":"Status","message":"no","code":100}"#;
    assert_eq!(answered(ONE, vec![status.into()]).await, json);
    assert_eq!(answered("application/json", vec![json.into()]).await, json);
    assert_eq!(answered("text/plain", vec!["404 page not found".into()]).await, "404 page not found");
}

#[tokio::test]
async fn events_are_read_wherever_their_bytes_are_parted() {
    let frame = |type_: &str, name: &str| {
        let object = whole("Node", &node(name));
        let event = [bytes(1, type_), bytes(2, bytes(1, object))].concat();
        [u32::try_from(event.len()).unwrap().to_be_bytes().to_vec(), event].concat()
    };
    let frames = [frame("ADDED", "a"), frame("BOOKMARK", "b"), frame("DELETED", &"c".repeat(300))].concat();
    let line = |type_: &str, name: &str| {
        format!(
            r#"{{"type":"{type_}","object":{{"apiVersion":"v1","kind":"Node","metadata":{{"name":"{name}"}}}}}}{}"#,
            '\n'
        )
    };
    let lines = [line("ADDED", "a"), line("BOOKMARK", "b"), line("DELETED", &"c".repeat(300))].concat();
    for size in [1, 2, 3, 50, 200, frames.len()] {
        let chunks = frames.chunks(size).map(Bytes::copy_from_slice).collect();
        assert_eq!(answered(EVENTS, chunks).await, lines, "in pieces of {size}");
    }
    // One that broke off is told when the watch goes on.
    let cut = Bytes::copy_from_slice(&frames[..frames.len() - 1]);
    assert_eq!(answered(EVENTS, vec![cut]).await.lines().count(), 2);
}

/// Bytes of which most are those of messages, here and there others.
fn nearly_a_list() -> impl Strategy<Value = Vec<u8>> {
    let names = prop::collection::vec("[a-z]{0,5}", 0..4);
    let spoiled = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6);
    (names, spoiled).prop_map(|(names, spoiled)| {
        let items: Vec<u8> = names
            .iter()
            .flat_map(|name| bytes(2, [node(name), bytes(2, bytes(5, bytes(4, small(1, 9))))].concat()))
            .collect();
        let mut list = whole("NodeList", &items);
        for (at, byte) in spoiled {
            let at = at.index(list.len());
            list[at] = byte;
        }
        list
    })
}

proptest! {
    #[test]
    fn any_bytes_give_json(bytes in prop_oneof![prop::collection::vec(any::<u8>(), 0..200), nearly_a_list()]) {
        let mut line = Vec::new();
        event(&bytes, &mut line);
        prop_assert!(!line.contains(&b'\n'));
        for json in [object(&bytes), line] {
            prop_assert!(serde_json::from_slice::<Value>(&json).is_ok(), "{}", String::from_utf8_lossy(&json));
        }
    }
}
