//! What a machine may cost, in counted bytes and allocations: figures that do not depend on the day or the computer.

use engine::case::judging::Judging;
use engine::case::stage::Thresholds;
use engine::cluster_state::ClusterState;
use engine::diagnose::diagnose;
use engine::objects::MachineLog;
use engine::objects::input::{Input, Object};
use logs::{FileLimits, LogReader};
use nodewhy::ingest::dump::{Summary, load_from};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::collections::BTreeSet;
use std::io::{self, Cursor, Read};
use testkit::objects::cluster;
use testkit::objects::fleet::{Fate, claim, node, now};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const MACHINES: usize = 2_000;
const YOUNG: usize = 200;

fn object(input: Input, value: &serde_json::Value) -> Object {
    Object::read(input, &mut serde_json::Deserializer::from_str(&value.to_string())).expect("an object")
}

/// One test: the counters are the process's, and tests of one binary run side by side.
#[test]
fn all_stay_within_their_budget() {
    a_machine();
    a_dump();
}

fn a_machine() {
    let mut state = cluster("");
    let texts: Vec<(Input, serde_json::Value)> =
        (0..MACHINES).flat_map(|n| [(Input::Nodes, node(n)), (Input::NodeClaims, claim(n, Fate::Healthy))]).collect();

    let region = Region::new(ALLOCATOR);
    for (input, text) in &texts {
        state.apply(object(*input, text), now());
    }
    let held = region.change();
    let bytes = (held.bytes_allocated - held.bytes_deallocated) / MACHINES;
    eprintln!("{bytes} bytes for a Node and its NodeClaim");

    let region = Region::new(ALLOCATOR);
    assert_eq!(diagnose(Judging::new(&state, now(), &Thresholds::default())), [], "a healthy fleet");
    let judged = region.change().allocations;
    assert!(bytes <= 2_970, "{bytes} bytes for a Node and its NodeClaim");
    assert!(judged <= 4 * MACHINES, "{judged} allocations to judge {MACHINES} healthy machines");

    // Each looks for an older one that is stuck: not at every machine of the class.
    for n in MACHINES..MACHINES + YOUNG {
        state.apply(object(Input::NodeClaims, &claim(n, Fate::Young)), now());
    }
    let region = Region::new(ALLOCATOR);
    assert_eq!(diagnose(Judging::new(&state, now(), &Thresholds::default())), [], "a fleet that grows");
    let judged = (region.change().allocations - judged) / YOUNG;
    assert!(judged <= 100, "{judged} allocations to judge a young machine");

    // Of a fleet that nothing explains: the longest verdict of those that come in thousands.
    let mut state = cluster("");
    for n in 0..MACHINES {
        state.apply(object(Input::NodeClaims, &claim(n, Fate::Stuck)), now());
    }
    let region = Region::new(ALLOCATOR);
    let diagnoses = diagnose(Judging::new(&state, now(), &Thresholds::default()));
    let change = region.change();
    assert_eq!(diagnoses.len(), MACHINES);
    let kept = (change.bytes_allocated - change.bytes_deallocated) / MACHINES;
    let made = (change.allocations + change.reallocations) / MACHINES;
    eprintln!("{kept} bytes for a verdict, {made} allocations and reallocations");
    assert!(kept <= 4_096, "{kept} bytes for a verdict");
    // 85 before each verdict looked up what its node class and NodePool said at launch, and quoted only masked text.
    assert!(made <= 105, "{made} allocations and reallocations to make a verdict");
    beside_a_log(state);
}

/// One of them has a log, and another log is of any of them: neither is compared with each machine for each machine.
fn beside_a_log(mut state: ClusterState) {
    let said = "Jan 15 11:5MINUTE:34 HOST kubelet[1629]: E0115 11:5MINUTE:34.123456    1629 \
                kubelet_node_status.go:108] \"Unable to register node with API server\" err=\"Post \
                \\\"https://10.0.3.7:443/api/v1/nodes\\\": dial tcp 10.0.3.7:443: i/o timeout\"\n";
    let log: String = (1..9).map(|minute: u8| said.replace("MINUTE", &minute.to_string())).collect();
    for (file, host) in [("i-00000000000000007.log", "ip-10-9-9-9"), ("kubelet.log", "ip-10-9-9-8")] {
        let mut reader = LogReader::new(FileLimits::default());
        reader.file(file, log.replace("HOST", host).as_bytes(), Some(now())).expect("memory");
        let journeys = reader.journeys().into_iter();
        journeys.for_each(|journey| drop(state.apply(Object::MachineLog(MachineLog::new(journey)), now())));
    }
    let region = Region::new(ALLOCATOR);
    let diagnoses = diagnose(Judging::new(&state, now(), &Thresholds::default()));
    let change = region.change();
    let causes: BTreeSet<&str> = diagnoses.iter().filter_map(|d| Some(d.status.as_ref()?.cause.as_ref())).collect();
    assert_eq!((diagnoses.len(), causes), (MACHINES, BTreeSet::from(["ApiServerUnreachable"])));
    let made = (change.allocations + change.reallocations) / MACHINES;
    eprintln!("{made} allocations and reallocations to make a verdict beside a log");
    assert!(made <= 300, "{made} allocations and reallocations to make a verdict beside a log");
}

/// Reads a list of one item again and again, and sees how many bytes are held meanwhile.
struct Endless {
    begin: Cursor<&'static str>,
    item: Cursor<String>,
    times: usize,
    end: Cursor<&'static str>,
    most: usize,
}

impl Read for Endless {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let now = ALLOCATOR.stats();
        self.most = self.most.max(now.bytes_allocated - now.bytes_deallocated);
        loop {
            let read = match self.begin.read(into)? {
                0 if self.times == 0 => return self.end.read(into),
                0 => self.item.read(into)?,
                read => return Ok(read),
            };
            if read > 0 {
                return Ok(read);
            }
            self.times -= 1;
            self.item.set_position(0);
        }
    }
}

fn a_dump() {
    const MIB: usize = 1 << 20;
    let node = node(1);
    let json = format!("{node},\n");
    let yaml = serde_saphyr::to_string(&node).expect("YAML").trim_end().replace('\n', "\n  ");
    for (begin, item, end) in [
        (r#"{"apiVersion": "v1", "items": ["#, json, r#"], "kind": "List"}"#),
        ("apiVersion: v1\nitems:\n", format!("- {yaml}\n"), "kind: List\n"),
    ] {
        let times = 48 * MIB / item.len();
        let before = ALLOCATOR.stats();
        let held_before = before.bytes_allocated - before.bytes_deallocated;
        let mut text =
            Endless { begin: Cursor::new(begin), item: Cursor::new(item), times, end: Cursor::new(end), most: 0 };
        let (mut state, mut summary) = (ClusterState::default(), Summary::default());
        load_from("dump", &mut text, &mut state, &mut summary);
        assert_eq!((summary.objects, summary.complaints), (times, vec![]));
        let held = (text.most - held_before) / MIB;
        eprintln!("{held} MiB to read a dump of 48");
        assert!(held <= 20, "{held} MiB to read a dump of 48");
    }
}
