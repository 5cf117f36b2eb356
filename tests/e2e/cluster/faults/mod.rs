//! What goes wrong around nodewhy, one fault a file. docs/faults.md is the list of them, with what nodewhy promises.
//!
//! No Karpenter runs here: the tests say what it would. Claims named `general-…` are stuck from their first second.

mod clock;
mod credentials;
mod diagnoses;
mod flood;
mod frozen;
mod inputs;
mod memory;
pub(crate) mod proxy;
mod relist;
mod restart;
mod silence;
mod storm;

use crate::cluster::life::{diagnosed, is_ready, refuse};
use crate::cluster::operator::diagnosis;
use serde_json::Value;
use std::path::Path;
use testkit::control_plane::recipes::{SOON, wait_until};
use testkit::control_plane::{ControlPlane, Nodewhy};

#[test]
fn every_fault_is_in_the_list_of_promises() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let promises = std::fs::read_to_string(project.join("docs/faults.md")).expect("the list");
    let files = std::fs::read_dir(project.join("tests/e2e/cluster/faults")).expect("this folder").flatten();
    let names = files
        .map(|file| file.file_name().into_string().expect("UTF-8"))
        .filter(|name| !["mod.rs", "proxy.rs"].contains(&name.as_str()));
    let missing: Vec<_> = names.filter(|name| !promises.contains(&format!("| `faults/{name}` |"))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// An operator that has taken in the cluster.
fn started(control_plane: &ControlPlane, kubeconfig: &Path, arguments: &[&str]) -> Nodewhy {
    let nodewhy = control_plane.nodewhy(kubeconfig, arguments);
    wait_until(SOON, || is_ready(&nodewhy).then_some(()));
    nodewhy
}

/// Claims that get stuck, and their diagnoses.
async fn stuck(control_plane: &ControlPlane, client: &kube::Client, names: &[&str]) {
    refuse(client, &names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).await;
    wait_until(SOON, || names.iter().all(|name| diagnosed(control_plane).contains(*name)).then_some(()));
}

/// It changes with every write.
fn version(control_plane: &ControlPlane, name: &str) -> Option<Value> {
    diagnosis(control_plane, name).map(|d| d["metadata"]["resourceVersion"].clone())
}

fn outcome(control_plane: &ControlPlane, name: &str) -> Option<String> {
    diagnosis(control_plane, name)?["status"]["outcome"].as_str().map(str::to_owned)
}

/// A metric, by its name and labels.
pub(crate) fn metric(nodewhy: &Nodewhy, series: &str) -> Option<f64> {
    nodewhy.get("/metrics").lines().find_map(|line| line.strip_prefix(series)?.trim().parse().ok())
}

/// Whether an input is read, as the metrics say it.
fn is_up(nodewhy: &Nodewhy, input: &str) -> bool {
    metric(nodewhy, &format!(r#"nodewhy_watch_up{{input="{input}"}}"#)) == Some(1.0)
}

/// The line about an input in /readyz.
fn said_of(nodewhy: &Nodewhy, input: &str) -> String {
    let report = nodewhy.get("/readyz");
    let of_input = |line: &&str| line.get(3..).is_some_and(|rest| rest.split(' ').next() == Some(input));
    report.lines().find(of_input).unwrap_or_default().to_owned()
}

fn is_alive(nodewhy: &Nodewhy) -> bool {
    nodewhy.get("/livez").starts_with("HTTP/1.0 200")
}
