//! Machines that hang at every gate and are repaired, with the real Karpenter: what ended is called what it was.

use crate::cluster::identity::Kubelet;
use crate::cluster::operator::install;
use chrono::{SecondsFormat, Utc};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};
use testkit::control_plane::recipes::{
    SOON, deny_changes_of_nodes, deny_status_of_claims, mark_ready, nodeclaims_with, nodepool, nodepool_without_nodes,
};
use testkit::control_plane::{ControlPlane, NEWEST_KARPENTER, Nodewhy, Process, binaries};
use testkit::patience::{Patience, patience};

const OF_EACH: usize = 5;
const A_MOMENT: Duration = Duration::from_millis(300);
/// Short, so that a test need not wait as long as a user would.
const SHORT: [&str; 4] =
    ["--launch-threshold=5", "--join-threshold=5", "--register-threshold=5", "--proven-threshold=5"];

/// How long a repaired machine may take at the last two stages, which the test plays the kubelet for: with many
/// machines on a slow computer that takes a while.
fn as_a_kubelet() -> [String; 2] {
    let seconds = |nominal| patience(Duration::from_secs(nominal)).as_secs();
    [format!("--initialize-threshold={}", seconds(8)), format!("--ready-threshold={}", seconds(4))]
}

/// Where machines hang, and what is said of them.
struct Gate {
    stage: &'static str,
    cause: &'static str,
    machines: usize,
    /// The NodePool of the name, and its claims.
    make: fn(&ControlPlane, &str, &[String]),
    /// Goes on once Karpenter has done its part of the claim; `true` where nothing is left to do.
    go_on: fn(&ControlPlane, &Value) -> bool,
    /// So that Karpenter and the kubelets can go on with the claims.
    repair: fn(&ControlPlane, &str, &[Value]),
}

const GATES: [Gate; 5] = [
    Gate {
        stage: "Launch",
        cause: "Unknown",
        machines: OF_EACH,
        make: |c, pool, claims| {
            nodepool(c, pool);
            deny_status_of_claims(c, pool);
            nodeclaims_with(c, claims, pool, &json!({}));
        },
        go_on: |_, _| true,
        repair: |c, pool, _| permit(c, &format!("{pool}-no-status")),
    },
    Gate {
        stage: "Join",
        cause: "Unknown",
        machines: OF_EACH,
        make: hang_before_they_join,
        go_on: |_, _| true,
        repair: |c, _, claims| claims.iter().for_each(|claim| join(c, claim)),
    },
    Gate {
        stage: "Register",
        cause: "Unknown",
        machines: OF_EACH,
        make: |c, pool, claims| {
            nodepool(c, pool);
            deny_changes_of_nodes(c, pool);
            nodeclaims_with(c, claims, pool, &json!({}));
        },
        go_on: |_, _| true,
        repair: |c, pool, _| permit(c, &format!("{pool}-no-changes")),
    },
    Gate {
        stage: "Initialize",
        cause: "StartupTaintStays",
        machines: OF_EACH,
        make: |c, pool, claims| {
            nodepool(c, pool);
            let taint = json!({ "startupTaints": [{ "key": "example.com/agent-not-ready", "effect": "NoSchedule" }] });
            nodeclaims_with(c, claims, pool, &taint);
        },
        go_on: |c, claim| registered(claim).inspect(|node| mark_ready(c, node)).is_some(),
        repair: |c, _, claims| {
            for claim in claims {
                let node = registered(claim).expect("it was registered");
                c.kubectl(&["taint", "node", node, "example.com/agent-not-ready-"]);
            }
        },
    },
    Gate {
        stage: "Ready",
        cause: "KubeletStopped",
        machines: OF_EACH,
        make: |c, pool, claims| {
            nodepool(c, pool);
            nodeclaims_with(c, claims, pool, &json!({}));
        },
        go_on: |c, claim| {
            let Some(node) = registered(claim) else { return false };
            let conditions = claim["status"]["conditions"].as_array().into_iter().flatten();
            if !conditions.into_iter().any(|c| c["type"] == "Initialized" && c["status"] == "True") {
                mark_ready(c, node);
                return false;
            }
            // kubernetes v1.36.3 pkg/controller/nodelifecycle/node_lifecycle_controller.go `tryUpdateNodeHealth`
            let now = Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true);
            let silent = json!({ "type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "lastTransitionTime": now });
            c.patch_status("node", node, "strategic", &json!({ "status": { "conditions": [silent] } }));
            true
        },
        repair: |c, _, claims| {
            for claim in claims {
                mark_ready(c, registered(claim).expect("it was registered"));
            }
        },
    },
];

/// One machine alone: beside others that have not joined nobody could tell whose kubelet reports.
const NAME_REFUSED: Gate = Gate {
    stage: "Join",
    cause: "NodeNameRefused",
    machines: 1,
    make: hang_before_they_join,
    go_on: |c, claim| {
        if claim["status"]["providerID"].is_null() {
            return false;
        }
        let name = format!("{}.corp.example.com", name_of(claim));
        Kubelet::new(c, &name, "system:node:ip-10-0-0-1.ec2.internal", "system:nodes")
            .reports(5)
            .expect("nodes may write events");
        true
    },
    repair: |c, _, claims| claims.iter().for_each(|claim| join(c, claim)),
};

impl Gate {
    fn pool(&self) -> String {
        format!("{}-{}", self.stage, self.cause).to_lowercase()
    }

    fn claims(&self) -> Vec<String> {
        (0..self.machines).map(|n| format!("{}-{n}", self.pool())).collect()
    }
}

fn hang_before_they_join(control_plane: &ControlPlane, pool: &str, claims: &[String]) {
    nodepool_without_nodes(control_plane, pool);
    nodeclaims_with(control_plane, claims, pool, &json!({}));
}

/// All of a kind.
fn all(control_plane: &ControlPlane, kind: &str) -> BTreeMap<String, Value> {
    let mut list = control_plane.get(&[kind]).expect("a list");
    let items = list["items"].as_array_mut().expect("items");
    items.drain(..).map(|item| (name_of(&item).to_owned(), item)).collect()
}

fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().expect("a name")
}

/// The Node that Karpenter has registered.
fn registered(claim: &Value) -> Option<&str> {
    claim["status"]["nodeName"].as_str().filter(|name| !name.is_empty())
}

/// The kubelet of the machine gets in, and is Ready.
fn join(control_plane: &ControlPlane, claim: &Value) {
    let (name, taint) = (name_of(claim), json!({ "key": "karpenter.sh/unregistered", "effect": "NoExecute" }));
    control_plane.apply(json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": name },
        "spec": { "providerID": claim["status"]["providerID"], "taints": [taint] },
    }));
    let room = json!({ "cpu": "4", "memory": "16Gi", "pods": "110", "ephemeral-storage": "20Gi" });
    control_plane.patch_status("node", name, "merge", &json!({ "status": { "capacity": room, "allocatable": room } }));
    mark_ready(control_plane, name);
}

fn permit(control_plane: &ControlPlane, policy: &str) {
    control_plane.kubectl(&["delete", "validatingadmissionpolicybinding", policy, "--ignore-not-found"]);
}

fn is_stuck(gate: &Gate, diagnosis: &Value) -> bool {
    let status = &diagnosis["status"];
    status["cause"] == gate.cause && status["stage"] == gate.stage && status["outcome"].is_null()
}

fn shown(control_plane: &ControlPlane, nodewhy: &Nodewhy) -> String {
    let said = control_plane.kubectl(&["get", "nodeclaims,nodediagnoses", "-o", "wide"]);
    format!("{said}\n{}", nodewhy.process.log())
}

/// Every verdict that was ever written from now on, as a watch sees them.
pub(crate) fn watched(control_plane: &ControlPlane) -> Process {
    let mut command = Command::new(binaries::control_plane("kubectl"));
    command.arg("--kubeconfig").arg(control_plane.kubeconfig()).args(["get", "nodediagnoses", "--watch", "-o"]);
    command.arg(r#"jsonpath={.metadata.name} {.status.cause} {.status.outcome}{"\n"}"#);
    control_plane.spawn("watched", &command)
}

/// The Warnings of nodewhy by machine.
fn warnings(control_plane: &ControlPlane) -> BTreeMap<String, Vec<String>> {
    let events = control_plane.get(&["events.v1.events.k8s.io", "--namespace=default"]).expect("a list");
    let mut of = BTreeMap::<String, Vec<String>>::new();
    for event in events["items"].as_array().into_iter().flatten() {
        let about = &event["regarding"];
        let is_ours = event["reportingController"] == "nodewhy" && event["type"] == "Warning";
        if is_ours && about["kind"] == "NodeClaim" {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            of.entry(text(&about["name"])).or_default().push(text(&event["reason"]));
        }
    }
    of
}

#[test]
fn what_was_repaired_at_any_gate_ends_as_what_it_was_and_nothing_more_is_said() {
    let control_plane = ControlPlane::start();
    let rights = install(&control_plane);
    let karpenter = control_plane.karpenter(NEWEST_KARPENTER);
    let long = as_a_kubelet();
    let thresholds = [SHORT.as_slice(), &long.each_ref().map(String::as_str)].concat();
    let nodewhy = control_plane.nodewhy(&rights, &thresholds);
    for gates in [std::slice::from_ref(&NAME_REFUSED), &GATES] {
        let machines: Vec<_> =
            gates.iter().flat_map(|gate| gate.claims().into_iter().map(move |machine| (gate, machine))).collect();
        hang(&control_plane, &nodewhy, gates, &machines);
        recover(&control_plane, &karpenter, &nodewhy, gates, &machines);
    }
}

fn hang(control_plane: &ControlPlane, nodewhy: &Nodewhy, gates: &[Gate], machines: &[(&Gate, String)]) {
    for gate in gates {
        (gate.make)(control_plane, &gate.pool(), &gate.claims());
    }
    let patience = Patience::of(SOON);
    let (mut waiting, mut unsaid) = (machines.to_vec(), machines.to_vec());
    while !unsaid.is_empty() {
        let (claims, diagnoses) = (all(control_plane, "nodeclaims"), all(control_plane, "nodediagnoses"));
        waiting.retain(|(gate, machine)| !(gate.go_on)(control_plane, &claims[machine]));
        unsaid.retain(|(gate, machine)| !diagnoses.get(machine).is_some_and(|d| is_stuck(gate, d)));
        let left: Vec<_> = unsaid.iter().map(|(_, machine)| machine).collect();
        assert!(!patience.is_over(), "{left:?}: {}", shown(control_plane, nodewhy));
        std::thread::sleep(A_MOMENT);
    }
}

fn recover(
    control_plane: &ControlPlane,
    karpenter: &Process,
    nodewhy: &Nodewhy,
    gates: &[Gate],
    machines: &[(&Gate, String)],
) {
    let said_before = warnings(control_plane);
    let watched = watched(control_plane);
    let begun = Instant::now();
    let claims = all(control_plane, "nodeclaims");
    for gate in gates {
        let pool = gate.pool();
        let claims: Vec<_> = gate.claims().iter().map(|name| claims[name].clone()).collect();
        let (first, others) = claims.split_at(1);
        // Karpenter is slow to see it: meanwhile nodewhy judges a machine that waits for nothing but Karpenter.
        karpenter.signal("STOP");
        (gate.repair)(control_plane, &pool, first);
        std::thread::sleep(Duration::from_secs(1));
        karpenter.signal("CONT");
        (gate.repair)(control_plane, &pool, others);
    }
    let patience = Patience::of(SOON);
    let (mut starting, mut left) = (machines.to_vec(), machines.to_vec());
    while !left.is_empty() {
        let (claims, diagnoses) = (all(control_plane, "nodeclaims"), all(control_plane, "nodediagnoses"));
        starting.retain(|(_, machine)| {
            let node = registered(&claims[machine]);
            node.inspect(|node| mark_ready(control_plane, node)).is_none()
        });
        left.retain(|(_, machine)| diagnoses[machine]["status"]["outcome"] != "Recovered");
        let names: Vec<_> = left.iter().map(|(_, machine)| machine).collect();
        assert!(!patience.is_over(), "{names:?}: {}", shown(control_plane, nodewhy));
        std::thread::sleep(A_MOMENT);
    }
    println!("{} machines recovered in {:.1?}", machines.len(), begun.elapsed());
    // Time enough for a second thought.
    std::thread::sleep(Duration::from_secs(3));

    let (log, diagnoses) = (watched.log(), all(control_plane, "nodediagnoses"));
    let of_machines = |all: BTreeMap<String, Vec<String>>| -> Vec<_> {
        machines.iter().map(|(_, machine)| all.get(machine).cloned()).collect()
    };
    assert_eq!(of_machines(warnings(control_plane)), of_machines(said_before), "{}", nodewhy.process.log());
    for (gate, machine) in machines {
        let status = &diagnoses[machine]["status"];
        let ended = (&status["cause"], &status["outcome"]);
        assert_eq!(ended, (&json!(gate.cause), &json!("Recovered")), "{machine}: {}", shown(control_plane, nodewhy));
        let seen: Vec<_> =
            log.lines().filter_map(|line| line.strip_prefix(&format!("{machine} "))).map(str::trim).collect();
        let other = seen.iter().find(|said| **said != gate.cause && **said != format!("{} Recovered", gate.cause));
        assert_eq!(other, None, "{machine}: {seen:?}");
        assert!(seen.last().is_some_and(|said| said.ends_with("Recovered")), "{machine}: {seen:?}");
    }
}
