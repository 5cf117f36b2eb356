//! Objects of examples: YAML documents, merged over the healthy cluster of the pages.

#![allow(dead_code, reason = "each suite uses its part")]

pub mod fleet;

use serde_json::Value;

/// The healthy cluster that every example of a page starts from.
pub const CLUSTER: &str = include_str!("../../docs/causes/cluster.yaml");

/// The documents of a YAML text; empty ones are none.
pub fn documents(text: &str) -> Vec<Value> {
    let all: Vec<Value> = serde_saphyr::from_multiple(text).unwrap_or_else(|e| panic!("unreadable YAML: {e}\n{text}"));
    all.into_iter().filter(|d| !d.is_null()).collect()
}

/// The healthy cluster with these documents merged over it (RFC 7386) by kind and name; new ones are added.
pub fn over_cluster(text: &str) -> Vec<Value> {
    let mut cluster = documents(CLUSTER);
    for patch in documents(text) {
        let same = |o: &&mut Value| o["kind"] == patch["kind"] && o["metadata"]["name"] == patch["metadata"]["name"];
        match cluster.iter_mut().find(same) {
            Some(object) => json_patch::merge(object, &patch),
            None => cluster.push(patch),
        }
    }
    cluster
}
