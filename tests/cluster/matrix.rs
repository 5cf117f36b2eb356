//! Stuck states that Karpenter itself brings about, one Karpenter after the other, and what nodewhy calls each. A healthy claim stands beside them.
//!
//! docs/karpenter-versions.md is this test's table. `NODEWHY_UPDATE=1 cargo test --test cluster matrix -- --ignored` writes it, with one Karpenter more.

use crate::control_plane::recipes::{
    condition, deny_nodes, heartbeat, join_without_unregistered_taint, mark_ready, nodeclaim, nodeclaim_with, nodepool,
    nodepool_without_nodes, wait_until,
};
use crate::control_plane::{ControlPlane, Nodewhy, Process};
use crate::operator::{diagnosis, install};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// Built for other tests too.
const IN_CI: [&str; 2] = ["1.0.5", "1.14.1"];
const MORE: [&str; 1] = ["1.4.0"];

/// Short, so that a test need not wait as long as a user would: this is about what is said.
const SHORT: [&str; 5] =
    ["--launch-threshold=10", "--join-threshold=15", "--register-threshold=15", "--initialize-threshold=20", "--proven-threshold=2"];

const IN_TIME: Duration = Duration::from_secs(90);
/// Before that the test says itself what is missing.
const ALMOST: Duration = Duration::from_secs(85);

/// A state, how it comes about, and what is to be said of it.
struct State {
    name: &'static str,
    comes_about: &'static str,
    /// Karpenter 1.0.5 knows no delayed Nodes: some states cannot be brought about there.
    since_1_4: bool,
    make: fn(&ControlPlane),
    /// Goes on once Karpenter has done its part; `true` where nothing is left to do.
    go_on: fn(&ControlPlane, &Process) -> bool,
    /// Cause under 1.0.5 and from 1.4.0 on; nothing where the machine is fine.
    says: [Option<&'static str>; 2],
}

const STATES: [State; 7] = [
    State {
        name: "no-node",
        comes_about: "the machine never joins",
        since_1_4: true,
        make: |c| {
            nodepool_without_nodes(c, "no-node");
            nodeclaim(c, "no-node", "no-node");
        },
        go_on: |_, _| true,
        says: [None, Some("Unknown")],
    },
    State {
        name: "denied",
        comes_about: "an admission policy refuses the Node",
        since_1_4: false,
        make: |c| {
            nodepool(c, "denied");
            deny_nodes(c, "denied");
            nodeclaim(c, "denied", "denied");
        },
        go_on: |_, _| true,
        says: [Some("LaunchFailed"), Some("Unknown")],
    },
    State {
        name: "untainted",
        comes_about: "the Node joins without karpenter.sh/unregistered",
        since_1_4: false,
        make: |c| {
            nodepool(c, "untainted");
            join_without_unregistered_taint(c, "untainted");
            nodeclaim(c, "untainted", "untainted");
        },
        go_on: |c, _| ready(c, "untainted"),
        says: [Some("UnregisteredTaintMissing"), None],
    },
    State {
        name: "twice",
        comes_about: "two Nodes have the machine's providerID",
        since_1_4: true,
        make: |c| {
            nodepool_without_nodes(c, "twice");
            nodeclaim(c, "twice", "twice");
        },
        go_on: |c, karpenter| {
            let Some(id) = c.get(&["nodeclaim", "twice"]).and_then(|claim| claim["status"]["providerID"].as_str().map(str::to_owned))
            else {
                return false;
            };
            // Karpenter takes the first one that it sees alone.
            karpenter.signal("STOP");
            for name in ["twice-a", "twice-b"] {
                c.apply(json!({
                    "apiVersion": "v1", "kind": "Node", "metadata": { "name": name },
                    "spec": { "providerID": id, "taints": [{ "key": "karpenter.sh/unregistered", "effect": "NoExecute" }] },
                }));
            }
            karpenter.signal("CONT");
            true
        },
        says: [None, Some("MultipleNodesFound")],
    },
    State {
        name: "startup-taint",
        comes_about: "nobody removes a startup taint",
        since_1_4: false,
        make: |c| {
            nodepool(c, "startup-taint");
            let taint = json!({ "startupTaints": [{ "key": "example.com/agent-not-ready", "effect": "NoSchedule" }] });
            nodeclaim_with(c, "startup-taint", "startup-taint", taint);
        },
        go_on: |c, _| ready(c, "startup-taint"),
        says: [Some("StartupTaintStays"); 2],
    },
    State {
        name: "cloud-taint",
        comes_about: "the cloud controller never looks at the Node",
        since_1_4: false,
        make: |c| {
            nodepool(c, "cloud-taint");
            nodeclaim(c, "cloud-taint", "cloud-taint");
        },
        go_on: |c, _| {
            let tainted = node_of(c, "cloud-taint").is_some_and(|node| {
                c.try_kubectl(&["taint", "node", &node, "node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule"]).is_ok()
            });
            tainted && ready(c, "cloud-taint")
        },
        says: [Some("CloudControllerNeverInitialized"); 2],
    },
    State {
        name: "healthy",
        comes_about: "nothing is wrong",
        since_1_4: false,
        make: |c| {
            nodepool(c, "healthy");
            nodeclaim(c, "healthy", "healthy");
        },
        go_on: |c, _| ready(c, "healthy"),
        says: [None; 2],
    },
];

/// The Node that Karpenter has registered.
fn node_of(control_plane: &ControlPlane, claim: &str) -> Option<String> {
    let claim = control_plane.get(&["nodeclaim", claim])?;
    claim["status"]["nodeName"].as_str().filter(|name| !name.is_empty()).map(str::to_owned)
}

fn ready(control_plane: &ControlPlane, claim: &str) -> bool {
    let registered = condition(control_plane, "nodeclaim", claim, "Registered").unwrap_or_default();
    let Some(node) = node_of(control_plane, claim) else { return registered.starts_with("False") };
    mark_ready(control_plane, &node);
    true
}

/// What was said of each state, and how many seconds after the claim was made.
type Column = BTreeMap<&'static str, Option<(String, u64)>>;

fn run(version: &str) -> Column {
    let control_plane = ControlPlane::start();
    let rights = install(&control_plane);
    let karpenter = control_plane.karpenter(version);
    let nodewhy = control_plane.nodewhy(&rights, &SHORT);
    let old = version.starts_with("1.0.");
    let states: Vec<&State> = STATES.iter().filter(|state| !(old && state.since_1_4)).collect();
    let begun = Instant::now();
    for state in &states {
        (state.make)(&control_plane);
    }
    let mut waiting = states.clone();
    wait_until(IN_TIME, || {
        heartbeat(&control_plane);
        waiting.retain(|state| !(state.go_on)(&control_plane, &karpenter));
        waiting.is_empty().then_some(())
    });
    let mut said = Column::new();
    let wanted = |state: &State| state.says[usize::from(!old)];
    wait_until(IN_TIME, || {
        heartbeat(&control_plane);
        for state in states.iter().filter(|state| wanted(state).is_some()) {
            let cause = diagnosis(&control_plane, state.name).and_then(|d| cause_of(&d));
            if let Some(cause) = cause.filter(|cause| Some(cause.as_str()) == wanted(state)) {
                said.entry(state.name).or_insert_with(|| Some((cause, begun.elapsed().as_secs())));
            }
        }
        let missing = states.iter().any(|state| wanted(state).is_some() && !said.contains_key(state.name));
        assert!(begun.elapsed() < ALMOST || !missing, "{version}: {}", shown(&control_plane, &nodewhy));
        (!missing).then_some(())
    });
    // Time enough for a false alarm.
    std::thread::sleep(Duration::from_secs(12));
    for state in states.iter().filter(|state| wanted(state).is_none()) {
        assert!(diagnosis(&control_plane, state.name).is_none(), "{version} {}: {}", state.name, shown(&control_plane, &nodewhy));
        said.insert(state.name, None);
    }
    said
}

fn cause_of(diagnosis: &Value) -> Option<String> {
    diagnosis["status"]["cause"].as_str().map(str::to_owned)
}

fn shown(control_plane: &ControlPlane, nodewhy: &Nodewhy) -> String {
    let claims = control_plane.kubectl(&["get", "nodeclaims,nodediagnoses", "-o", "wide"]);
    format!("{claims}\n{}", nodewhy.process.log())
}

fn table(columns: &[(&str, Column)]) -> String {
    let mut table = String::from("| state |");
    for (version, _) in columns {
        let _ = write!(table, " {version} |");
    }
    table.push_str("\n| --- |");
    table.push_str(&" --- |".repeat(columns.len()));
    table.push('\n');
    for state in &STATES {
        let _ = write!(table, "| {} |", state.comes_about);
        for (_, column) in columns {
            let _ = match column.get(state.name) {
                Some(Some((cause, seconds))) => write!(table, " [{cause}](causes/{cause}.md), {seconds} s |"),
                Some(None) => write!(table, " no diagnosis |"),
                None => write!(table, " |"),
            };
        }
        table.push('\n');
    }
    table
}

#[test]
fn what_karpenter_brings_about_is_named_under_the_oldest_and_the_newest() {
    for version in IN_CI {
        run(version);
    }
}

#[test]
#[ignore = "builds one Karpenter more, and writes the table of the docs"]
fn the_table_of_the_docs() {
    let columns: Vec<_> = [IN_CI[0], MORE[0], IN_CI[1]].into_iter().map(|version| (version, run(version))).collect();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/karpenter-versions.md");
    let text = std::fs::read_to_string(&page).expect("the page");
    let (head, _) = text.split_once("| state |").expect("the table");
    if std::env::var_os("NODEWHY_UPDATE").is_some() {
        std::fs::write(&page, format!("{head}{}", table(&columns))).expect("the page is ours");
    }
}
