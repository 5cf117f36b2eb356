//! The engine alone: the whole fleet at once, and one change after the other.

use crate::measure::{Row, timed};
use engine::case::stage::Thresholds;
use engine::diagnose::diagnose;
use engine::objects::input::{Input, Object};
use engine::triage::change::Change;
use engine::triage::{Keep, Triage};
use serde_json::Value;
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
            diagnose(&state, now(), &Thresholds::default())
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
            timed(&what, &mut rows, || diagnose(&state, now(), &Thresholds::default()));
        }
    }
    rows
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
                    let node =
                        Object::read(Input::Nodes, &mut serde_json::Deserializer::from_str(text)).expect("a Node");
                    triage.take(Change::Applied(Box::new(node)), now());
                    assert_eq!(triage.look(now()), []);
                }
            });
        }
    }
    rows
}
