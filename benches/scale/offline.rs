//! A dump, as JSON and as YAML.

use crate::fate;
use crate::measure::{Row, whole};
use crate::peers;
use serde_json::{Value, json};
use std::process::Command;
use testkit::objects::fleet::{Fate, claim, node};
use testkit::objects::over_cluster;

fn items(n: usize) -> Vec<Value> {
    let machines = (0..n).flat_map(|n| [(fate(n) == Fate::Healthy).then(|| node(n)), Some(claim(n, fate(n)))]);
    over_cluster("").into_iter().chain(machines.flatten()).collect()
}

pub fn dumps(n: usize) -> Vec<Row> {
    let folder = tempfile::tempdir().expect("a folder");
    let mut rows = Vec::new();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items(n)});
    let json = folder.path().join("dump.json");
    std::fs::write(&json, serde_json::to_string_pretty(&list).expect("JSON")).expect("room");
    let yaml = folder.path().join("dump.yaml");
    std::fs::write(&yaml, serde_saphyr::to_string(&list).expect("YAML")).expect("room");
    drop(list);
    for file in [json, yaml] {
        let size = std::fs::metadata(&file).expect("just written").len() / (1 << 20);
        let name = file.extension().unwrap_or_default().to_string_lossy().into_owned();
        let mut command = Command::new(env!("CARGO_BIN_EXE_nodewhy"));
        command.arg("diagnose").arg("--now=2026-01-15T12:00:00Z").arg("-f").arg(&file);
        rows.push(whole(&format!("nodewhy diagnose -f, {size} MiB of {name}"), &[0], &mut command));
        if name == "json" {
            rows.extend(peers::jq(&file));
        }
    }
    rows
}
