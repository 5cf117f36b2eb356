//! Stuck states that Karpenter itself brings about, one Karpenter after the other, and what nodewhy calls each. A
//! healthy claim stands beside them.
//!
//! docs/karpenter-versions.md is this test's table. `NODEWHY_UPDATE=1 cargo xtask e2e matrix --run-ignored only`
//! writes it, with one Karpenter more.

use crate::cluster::operator::{diagnosis, install};
use chrono::{SecondsFormat, Utc};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use testkit::control_plane::recipes::{
    condition, deny_events_of_karpenter, deny_nodes, deny_status_of_claims, heartbeat, join_without_unregistered_taint,
    labelled_nodeclaim, mark_ready, nodeclaim, nodeclaim_with, nodepool, nodepool_without_nodes, wait_or,
};
use testkit::control_plane::{ControlPlane, NEWEST_KARPENTER, Nodewhy, Process};

/// The oldest and the newest are built for other tests too; the one in between only for the table of the docs.
const VERSIONS: [&str; 3] = ["1.0.5", "1.4.0", NEWEST_KARPENTER];
const OLDEST: &str = VERSIONS[0];
const NEWEST: &str = VERSIONS[2];

/// Short, so that a test need not wait as long as a user would: this is about what is said.
const SHORT: [&str; 5] = [
    "--launch-threshold=10",
    "--join-threshold=15",
    "--register-threshold=15",
    "--initialize-threshold=20",
    "--proven-threshold=2",
];

const IN_TIME: Duration = Duration::from_secs(90);

/// A state, how it comes about, and what is to be said of it.
struct State {
    name: &'static str,
    comes_about: &'static str,
    make: fn(&ControlPlane),
    /// Goes on once Karpenter has done its part; `true` where nothing is left to do.
    go_on: fn(&ControlPlane, &Process) -> bool,
    /// Under each version.
    says: [Says; 3],
}

/// What is to be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    Cause(&'static str),
    /// The machine is fine.
    Nothing,
    /// It cannot be brought about under that version. Karpenter 1.0.5 knows no delayed Nodes.
    NotHere,
}
use Says::{Cause, NotHere, Nothing};

const STATES: [State; 12] = [
    State {
        name: "no-node",
        comes_about: "the machine never joins",
        make: |c| {
            nodepool_without_nodes(c, "no-node");
            nodeclaim(c, "no-node", "no-node");
        },
        go_on: |_, _| true,
        says: [NotHere, Cause("Unknown"), Cause("Unknown")],
    },
    State {
        name: "denied",
        comes_about: "an admission policy refuses the Node",
        make: |c| {
            nodepool(c, "denied");
            deny_nodes(c, "denied");
            nodeclaim(c, "denied", "denied");
        },
        go_on: |_, _| true,
        says: [Cause("LaunchFailed"), Cause("Unknown"), Cause("Unknown")],
    },
    State {
        name: "untainted",
        comes_about: "the Node joins without karpenter.sh/unregistered",
        make: |c| {
            nodepool(c, "untainted");
            join_without_unregistered_taint(c, "untainted");
            nodeclaim(c, "untainted", "untainted");
        },
        go_on: |c, _| ready(c, "untainted"),
        says: [Cause("UnregisteredTaintMissing"), Nothing, Nothing],
    },
    State {
        name: "twice",
        comes_about: "two Nodes have the machine's providerID",
        make: |c| {
            nodepool_without_nodes(c, "twice");
            nodeclaim(c, "twice", "twice");
        },
        go_on: |c, karpenter| {
            let Some(id) = c
                .get(&["nodeclaim", "twice"])
                .and_then(|claim| claim["status"]["providerID"].as_str().map(str::to_owned))
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
        says: [NotHere, Cause("MultipleNodesFound"), Cause("MultipleNodesFound")],
    },
    State {
        name: "startup-taint",
        comes_about: "nobody removes a startup taint",
        make: |c| {
            nodepool(c, "startup-taint");
            let taint = json!({ "startupTaints": [{ "key": "example.com/agent-not-ready", "effect": "NoSchedule" }] });
            nodeclaim_with(c, "startup-taint", "startup-taint", taint);
        },
        go_on: |c, _| ready(c, "startup-taint"),
        says: [Cause("StartupTaintStays"); 3],
    },
    State {
        name: "cloud-taint",
        comes_about: "the cloud controller never looks at the Node",
        make: |c| {
            nodepool(c, "cloud-taint");
            nodeclaim(c, "cloud-taint", "cloud-taint");
        },
        go_on: |c, _| {
            let tainted = node_of(c, "cloud-taint").is_some_and(|node| {
                c.try_kubectl(&[
                    "taint",
                    "node",
                    &node,
                    "node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule",
                ])
                .is_ok()
            });
            tainted && ready(c, "cloud-taint")
        },
        says: [Cause("CloudControllerNeverInitialized"); 3],
    },
    State {
        name: "put-back",
        comes_about: "Karpenter puts back a startup taint that its driver has removed",
        make: |c| {
            csi_driver(c);
            nodepool(c, "put-back");
            nodeclaim_with(c, "put-back", "put-back", json!({ "startupTaints": [CSI_TAINT.clone()] }));
        },
        go_on: |c, _| csi_pod(c, "put-back") && ready(c, "put-back"),
        says: [Cause("StartupTaintPutBack"); 3],
    },
    State {
        name: "left-off",
        comes_about: "the same, and the kubelet sets karpenter.sh/do-not-sync-taints",
        make: |c| {
            csi_driver(c);
            nodepool(c, "left-off");
            let label = json!({ "karpenter.sh/do-not-sync-taints": "true" });
            labelled_nodeclaim(c, "left-off", "left-off", &label, json!({ "startupTaints": [CSI_TAINT.clone()] }));
        },
        go_on: |c, _| csi_pod(c, "left-off") && ready(c, "left-off"),
        says: [NotHere, NotHere, Nothing],
    },
    State {
        name: "status-refused",
        comes_about: "an admission policy refuses Karpenter's writes of the NodeClaim's status",
        make: |c| {
            nodepool(c, "status-refused");
            deny_status_of_claims(c, "status-refused");
            nodeclaim(c, "status-refused", "status-refused");
        },
        go_on: |_, _| true,
        says: [Cause("Unknown"); 3],
    },
    State {
        name: "no-class",
        comes_about: "the NodePool's node class is missing",
        make: |c| {
            nodepool(c, "no-class");
            c.kubectl(&["delete", "kwoknodeclass", "no-class", "--wait=false"]);
        },
        go_on: |_, _| true,
        says: [Cause("NodePoolNotReady"); 3],
    },
    State {
        name: "no-pool",
        comes_about: "nobody removes a startup taint, and the machine's NodePool is gone",
        make: |c| {
            nodepool(c, "no-pool");
            let taint = json!({ "startupTaints": [{ "key": "example.com/agent-not-ready", "effect": "NoSchedule" }] });
            nodeclaim_with(c, "no-pool", "no-pool", taint);
        },
        go_on: |c, _| {
            // A NodePool that is deleted takes its claims along, where somebody collects garbage.
            let _ = c.try_kubectl(&["delete", "nodepool", "no-pool", "--wait=false", "--ignore-not-found"]);
            ready(c, "no-pool")
        },
        says: [Cause("StartupTaintStays"); 3],
    },
    State {
        name: "healthy",
        comes_about: "nothing is wrong",
        make: |c| {
            nodepool(c, "healthy");
            nodeclaim(c, "healthy", "healthy");
        },
        go_on: |c, _| ready(c, "healthy"),
        says: [Nothing; 3],
    },
];

static CSI_TAINT: LazyLock<Value> =
    LazyLock::new(|| json!({ "key": "ebs.csi.aws.com/agent-not-ready", "effect": "NoExecute" }));

/// The EBS CSI driver: it removes its taint once, when it starts.
fn csi_driver(control_plane: &ControlPlane) {
    let labels = json!({ "app": "ebs-csi-node" });
    let pod = json!({ "tolerations": [{ "operator": "Exists" }], "containers": [{ "name": "ebs-plugin", "image": "example.com/ebs-csi-driver" }] });
    control_plane.apply(json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": { "name": "ebs-csi-node", "namespace": "kube-system" },
        "spec": { "selector": { "matchLabels": labels }, "template": { "metadata": { "labels": labels }, "spec": pod } },
    }));
}

/// The driver's pod on the Node is Ready: kwok's Node was born without the taint, as if the driver had been faster than
/// Karpenter.
fn csi_pod(control_plane: &ControlPlane, claim: &str) -> bool {
    let Some(node) = node_of(control_plane, claim) else { return false };
    let set =
        control_plane.get(&["daemonset", "ebs-csi-node", "--namespace=kube-system"]).expect("the driver is installed");
    let name = format!("ebs-csi-node-{claim}");
    let owner = json!({ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "ebs-csi-node", "uid": set["metadata"]["uid"], "controller": true });
    let template = &set["spec"]["template"];
    control_plane.apply(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": "kube-system", "labels": template["metadata"]["labels"], "ownerReferences": [owner] },
        "spec": { "nodeName": node, "tolerations": template["spec"]["tolerations"], "containers": template["spec"]["containers"] },
    }));
    let ready = json!({ "type": "Ready", "status": "True", "lastTransitionTime": Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true) });
    let patch = json!({ "status": { "phase": "Running", "conditions": [ready] } }).to_string();
    control_plane.kubectl(&[
        "patch",
        "pod",
        &name,
        "--namespace=kube-system",
        "--subresource=status",
        "--patch",
        &patch,
    ]);
    true
}

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

/// What was said of each state, and how many seconds after its claim was made.
type Column = BTreeMap<&'static str, Option<(String, u64)>>;

/// A cluster in which the states were brought about.
struct Scene {
    control_plane: ControlPlane,
    karpenter: Process,
    nodewhy: Nodewhy,
    said: Column,
}

impl State {
    fn says_under(&self, version: &str) -> Says {
        VERSIONS.iter().position(|v| *v == version).map_or(NotHere, |at| self.says[at])
    }
}

/// The cause that stands: of the machine, else of its NodePool.
fn stands(control_plane: &ControlPlane, state: &State) -> Option<String> {
    let of = |name: &str| diagnosis(control_plane, name).and_then(|d| cause_of(&d));
    of(state.name).or_else(|| of(&format!("nodepool-{}", state.name)))
}

/// Karpenter as it is where somebody wants no Events of it: its own switch leaves out those about conditions, the
/// policy the others. karpenter v1.15.0 pkg/operator/options/options.go
fn silent_karpenter(control_plane: &ControlPlane) -> Process {
    deny_events_of_karpenter(control_plane);
    control_plane.karpenter_with(NEWEST, &[("DISABLE_CLUSTER_STATE_OBSERVABILITY", "true")])
}

fn run(version: &str, start: impl FnOnce(&ControlPlane) -> Process) -> Scene {
    let control_plane = ControlPlane::start();
    let rights = install(&control_plane);
    let karpenter = start(&control_plane);
    let nodewhy = control_plane.nodewhy(&rights, &SHORT);
    let states: Vec<&State> = STATES.iter().filter(|state| state.says_under(version) != NotHere).collect();
    let (mut waiting, mut made) = (Vec::new(), BTreeMap::new());
    for state in &states {
        (state.make)(&control_plane);
        made.insert(state.name, Instant::now());
        waiting.push(*state);
        waiting.retain(|state| !(state.go_on)(&control_plane, &karpenter));
    }
    let names = |waiting: &RefCell<Vec<&State>>| waiting.borrow().iter().map(|state| state.name).collect::<Vec<_>>();
    let waiting = RefCell::new(waiting);
    let go_on = || {
        heartbeat(&control_plane);
        waiting.borrow_mut().retain(|state| !(state.go_on)(&control_plane, &karpenter));
        waiting.borrow().is_empty().then_some(())
    };
    wait_or(IN_TIME, go_on, || format!("{version}: {:?}", names(&waiting)));
    let mut said = Column::new();
    let all_said = || {
        heartbeat(&control_plane);
        let mut missing = false;
        for state in &states {
            let Cause(wanted) = state.says_under(version) else { continue };
            if said.contains_key(state.name) {
                continue;
            }
            match stands(&control_plane, state).filter(|cause| cause == wanted) {
                Some(cause) => drop(said.insert(state.name, Some((cause, made[state.name].elapsed().as_secs())))),
                None => missing = true,
            }
        }
        (!missing).then_some(())
    };
    wait_or(IN_TIME, all_said, || format!("{version}: {}", shown(&control_plane, &nodewhy)));
    // Time enough for a false alarm, and for a second thought.
    std::thread::sleep(Duration::from_secs(12));
    for state in states {
        let wanted = if let Cause(wanted) = state.says_under(version) { Some(wanted) } else { None };
        let stands = stands(&control_plane, state);
        assert_eq!(stands.as_deref(), wanted, "{version} {}: {}", state.name, shown(&control_plane, &nodewhy));
        said.entry(state.name).or_default();
    }
    Scene { control_plane, karpenter, nodewhy, said }
}

fn cause_of(diagnosis: &Value) -> Option<String> {
    diagnosis["status"]["cause"].as_str().map(str::to_owned)
}

fn shown(control_plane: &ControlPlane, nodewhy: &Nodewhy) -> String {
    let claims = control_plane.kubectl(&["get", "nodeclaims,nodediagnoses", "-o", "wide"]);
    format!("{claims}\n{}", nodewhy.process.log())
}

fn table(columns: &[(String, Column)]) -> String {
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
fn what_karpenter_brings_about_is_named_under_the_newest() {
    run(NEWEST, |control_plane| control_plane.karpenter(NEWEST));
}

/// How many Events Karpenter has written.
fn events_of_karpenter(control_plane: &ControlPlane) -> usize {
    let events = control_plane.get(&["events", "--all-namespaces"]).expect("a list");
    events["items"]
        .as_array()
        .expect("events")
        .iter()
        .filter(|event| event["source"]["component"] == "karpenter")
        .count()
}

/// One operator sees the oldest Karpenter, and the newest take its place: kinds, controller and Deployment, and no
/// Events any more.
#[test]
fn under_the_oldest_too_and_an_upgrade_changes_only_what_it_must() {
    let Scene { control_plane, karpenter, nodewhy, said } =
        run(OLDEST, |control_plane| control_plane.karpenter(OLDEST));
    assert!(karpenter.terminate().success());
    control_plane.kubectl(&["delete", "events", "--all", "--namespace=default"]);
    let _karpenter = silent_karpenter(&control_plane);
    // The launch that 1.0.5 gave up is made, and its Node does not come.
    let changed = |name: &str| if name == "denied" { Some("Unknown") } else { None };
    let denied = || {
        heartbeat(&control_plane);
        let denied = diagnosis(&control_plane, "denied").and_then(|d| cause_of(&d));
        (denied.as_deref() == changed("denied")).then_some(())
    };
    wait_or(IN_TIME, denied, || shown(&control_plane, &nodewhy));
    std::thread::sleep(Duration::from_secs(12));
    for state in STATES.iter().filter(|state| said.contains_key(state.name)) {
        let before = said[state.name].as_ref().map(|(cause, _)| cause.as_str());
        let now = stands(&control_plane, state);
        assert_eq!(
            now.as_deref(),
            changed(state.name).or(before),
            "{}: {}",
            state.name,
            shown(&control_plane, &nodewhy)
        );
    }
    assert_eq!(events_of_karpenter(&control_plane), 0);
}

#[test]
#[ignore = "builds one Karpenter more, and writes the table of the docs"]
fn the_table_of_the_docs() {
    let mut columns: Vec<_> =
        VERSIONS.into_iter().map(|version| (version.to_owned(), run(version, |c| c.karpenter(version)).said)).collect();
    let silent = run(NEWEST, silent_karpenter);
    assert_eq!(events_of_karpenter(&silent.control_plane), 0);
    columns.push((format!("{NEWEST} without events"), silent.said));
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/karpenter-versions.md");
    let text = std::fs::read_to_string(&page).expect("the page");
    let (head, _) = text.split_once("| state |").expect("the table");
    if std::env::var_os("NODEWHY_UPDATE").is_some() {
        std::fs::write(&page, format!("{head}{}", table(&columns))).expect("the page is ours");
    }
}
