//! What the API server does not let anybody write, written in etcd, by its JSON gateway.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use k8s_openapi::ByteString;
use serde_json::{Value, json};

/// Puts the time of creation of a stored object back.
pub fn age(port: u16, key: &str, by: Duration) {
    let key = ByteString(key.as_bytes().to_vec());
    let found = call(port, "/v3/kv/range", &json!({ "key": key }));
    let ByteString(mut object) =
        serde_json::from_value(found["kvs"][0]["value"].clone()).expect("the object is stored");
    // ObjectMeta.creationTimestamp, a Time whose seconds come first: field 8, a length, field 1 (apimachinery v0.36
    // generated.proto).
    let place =
        object.windows(3).position(|bytes| matches!(bytes, [0x42, 0x08, 0x08])).expect("a time of creation") + 3;
    let seconds: u64 = (0..5).map(|n| u64::from(object[place + n] & 0x7f) << (7 * n)).sum();
    let older = seconds - by.as_secs();
    // As many bytes as before: five are enough for the years 1970 to 3058.
    for n in 0..5 {
        object[place + n] = u8::try_from(older >> (7 * n) & 0x7f).expect("seven bits") | if n < 4 { 0x80 } else { 0 };
    }
    call(port, "/v3/kv/put", &json!({ "key": key, "value": ByteString(object) }));
}

/// Forgets all but the newest revision.
pub fn compact(port: u16) {
    let newest = call(port, "/v3/kv/range", &json!({ "key": ByteString(b"/".to_vec()), "count_only": true }))["header"]
        ["revision"]
        .clone();
    call(port, "/v3/kv/compaction", &json!({ "revision": newest, "physical": true }));
}

fn call(port: u16, path: &str, body: &Value) -> Value {
    let body = body.to_string();
    let mut connection = TcpStream::connect(("127.0.0.1", port)).expect("etcd listens");
    write!(
        connection,
        "POST {path} HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .expect("etcd reads");
    let mut answer = String::new();
    connection.read_to_string(&mut answer).expect("etcd answers");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a body");
    assert!(head.contains(" 200 "), "{answer}");
    serde_json::from_str(body).expect("JSON")
}
