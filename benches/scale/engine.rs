//! The engine alone: the whole fleet at once, and one change after the other.

use crate::measure::{Row, timed};
use engine::case::judging::Judging;
use engine::case::stage::Thresholds;
use engine::cluster_state::ClusterState;
use engine::diagnose::diagnose;
use engine::objects::input::{Input, Object};
use engine::triage::change::Change;
use engine::triage::{Keep, Triage};
use serde_json::{Value, json};
use testkit::objects::cluster;
use testkit::objects::fleet::{Fate, claim, node, now};
use testkit::objects::incident;

/// Ten times as many machines.
pub fn judge(n: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    let fleets = [
        (Fate::Healthy, Fate::Healthy, "healthy machines"),
        (Fate::Stuck, Fate::Stuck, "stuck machines"),
        (Fate::Healthy, Fate::Stuck, "machines, every other stuck"),
        (Fate::Healthy, Fate::Young, "machines, every other young"),
    ];
    for (even, odd, what) in fleets {
        let fate = |machine: usize| if machine.is_multiple_of(2) { even } else { odd };
        let mut state = cluster("");
        for machine in 0..10 * n {
            if fate(machine) == Fate::Healthy {
                state.apply(Object::from_value(Input::Nodes, node(machine)).expect("a Node"), now());
            }
            state.apply(
                Object::from_value(Input::NodeClaims, claim(machine, fate(machine))).expect("a NodeClaim"),
                now(),
            );
        }
        let found = timed(&format!("engine: judge {} {what}", 10 * n), &mut rows, || {
            diagnose(Judging::new(&state, now(), &Thresholds::default()))
        });
        assert_eq!(found.len(), (0..10 * n).filter(|machine| fate(*machine) == Fate::Stuck).count());
    }
    rows
}

/// Incidents of so many machines and of twice as many: the second takes twice as long where no machine is compared with
/// all others.
pub fn incidents(n: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for incident in &incident::ALL {
        for machines in [n, 2 * n] {
            let state = incident.fleet(machines);
            let what = format!("engine: judge {machines}, {}", incident.what);
            timed(&what, &mut rows, || diagnose(Judging::new(&state, now(), &Thresholds::default())));
        }
    }
    rows
}

/// Machines that may each be any of many Nodes, new or left over, or of many kubelets without a Node, and twice as
/// many: the second takes twice as long where what is asked of all of them is looked up.
pub fn strangers(n: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for machines in [n, 2 * n] {
        let objects: Vec<(Input, Value)> = (0..machines).flat_map(without_provider_id).collect();
        let what = format!("engine: read {machines} NodeClaims, and as many Nodes without a providerID");
        let state = timed(&what, &mut rows, || state_of(&objects));
        let what = format!("engine: judge {machines} NodeClaims, and as many Nodes without a providerID");
        let found = timed(&what, &mut rows, || diagnose(Judging::new(&state, now(), &Thresholds::default())));
        assert_eq!(found.len(), 2 * machines);
    }
    for machines in [n, 2 * n] {
        let objects: Vec<(Input, Value)> = (0..machines).flat_map(turned_away).collect();
        let state = state_of(&objects);
        let what =
            format!("engine: judge {machines} NodeClaims, as many refused kubelets, and as many certificate requests");
        let found = timed(&what, &mut rows, || diagnose(Judging::new(&state, now(), &Thresholds::default())));
        assert_eq!(found.len(), machines);
    }
    for machines in [n, 2 * n] {
        let objects: Vec<(Input, Value)> = (0..machines).flat_map(on_a_node_left_over).collect();
        let state = state_of(&objects);
        let what =
            format!("engine: judge {machines} NodeClaims, and as many Nodes left over whose kubelets started again");
        let found = timed(&what, &mut rows, || diagnose(Judging::new(&state, now(), &Thresholds::default())));
        assert!(found.len() >= machines, "{}", found.len());
    }
    rows
}

fn state_of(objects: &[(Input, Value)]) -> ClusterState {
    let mut state = cluster("");
    for (input, object) in objects {
        state.apply(Object::from_value(*input, object.clone()).expect("an object"), now());
    }
    state
}

fn without_provider_id(machine: usize) -> [(Input, Value); 2] {
    let mut node = node(machine);
    for (field, value) in [("creationTimestamp", json!("2026-01-15T11:54:00Z")), ("ownerReferences", json!([]))] {
        node["metadata"][field] = value;
    }
    node["spec"] = json!({"taints": [{"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule"}]});
    for label in ["karpenter.sh/registered", "karpenter.sh/initialized"] {
        node["metadata"]["labels"].as_object_mut().expect("labels").remove(label);
    }
    [(Input::NodeClaims, claim(machine, Fate::Stuck)), (Input::Nodes, node)]
}

fn turned_away(machine: usize) -> [(Input, Value); 3] {
    let (at, name) = ("2026-01-15T11:58:00Z", format!("worker-{machine:05}.shop.internal"));
    let event = json!({
        "metadata": {"name": format!("{name}.1"), "namespace": "default", "uid": format!("e{machine}")},
        "involvedObject": {"kind": "Node", "name": name, "uid": name},
        "reason": "NodeHasSufficientMemory", "message": format!("Node {name} status is now: NodeHasSufficientMemory"),
        "type": "Normal", "count": 9, "source": {"component": "kubelet", "host": name},
        "firstTimestamp": "2026-01-15T11:55:30Z", "lastTimestamp": at,
    });
    let csr = json!({
        "metadata": {"name": format!("csr-{machine}"), "creationTimestamp": at},
        "spec": {
            "username": format!("system:node:ip-10-1-{machine}.eu-west-1.compute.internal"),
            "signerName": "kubernetes.io/kubelet-serving",
            "extra": {"sessionName": [format!("i-9{machine:016x}")]},
        },
        "status": {"conditions": [{"type": "Approved", "status": "True"}]},
    });
    let claim = claim(machine, Fate::Stuck);
    [(Input::NodeClaims, claim), (Input::Events, event), (Input::CertificateSigningRequests, csr)]
}

/// A machine, and the Node of one that is gone, whose kubelet has started since.
fn on_a_node_left_over(machine: usize) -> [(Input, Value); 3] {
    let mut node = node(1_000_000 + machine);
    let name = node["metadata"]["name"].clone();
    for condition in node["status"]["conditions"].as_array_mut().expect("conditions") {
        condition["lastTransitionTime"] = json!("2026-01-15T11:57:40Z");
    }
    let event = json!({
        "metadata": {"name": format!("started.{machine}"), "namespace": "default", "uid": format!("e{machine}")},
        "involvedObject": {"kind": "Node", "name": name, "uid": name},
        "reason": "Starting", "message": "Starting kubelet.", "type": "Normal", "count": 1,
        "source": {"component": "kubelet", "host": name},
        "firstTimestamp": "2026-01-15T11:57:30Z", "lastTimestamp": "2026-01-15T11:57:30Z",
    });
    [(Input::NodeClaims, claim(machine, Fate::Stuck)), (Input::Nodes, node), (Input::Events, event)]
}

/// Reports of kubelets, from their text to the end of the look, in fleets of different sizes: such as say nothing new,
/// and such as do.
pub fn reports(n: usize) -> Vec<Row> {
    const EVENTS: usize = 20_000;
    let mut rows = Vec::new();
    for n in [n / 10, n, 10 * n] {
        let mut triage = Triage::new(Thresholds::default(), Keep::default());
        let read = |input, value: &Value| {
            Change::Applied(Box::new(Object::from_value(input, value.clone()).expect("an object")))
        };
        for machine in 0..n {
            triage.take(read(Input::Nodes, &node(machine)), now());
            triage.take(read(Input::NodeClaims, &claim(machine, Fate::Healthy)), now());
        }
        triage.start();
        triage.lead();
        triage.look(now());
        // Kubelets far from each other: neither their texts nor their facts are at hand when they are wanted.
        let kubelets = || (0..n.min(1_000)).map(|kubelet| node(kubelet * n.div_ceil(1_000) % n));
        let with_message = |mut node: Value| {
            node["status"]["conditions"][0]["message"] = "something else".into();
            node.to_string()
        };
        let heartbeats: Vec<String> = kubelets().map(|node| node.to_string()).collect();
        let news = kubelets().map(with_message).chain(heartbeats.iter().cloned()).collect();
        for (texts, what) in [(heartbeats, "heartbeats"), (news, "other messages of a condition")] {
            timed(&format!("engine: {EVENTS} {what} of {n} Nodes, one look each"), &mut rows, || {
                for text in texts.iter().cycle().take(EVENTS) {
                    let node = Object::from_json(Input::Nodes, text).expect("a Node");
                    triage.take(Change::Applied(Box::new(node)), now());
                    assert_eq!(triage.look(now()), []);
                }
            });
        }
    }
    rows
}
