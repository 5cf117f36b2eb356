//! What a machine may cost, in counted bytes and allocations: figures that do not depend on the day or the computer.

mod objects;

use nodewhy::diagnose::diagnose;
use nodewhy::gate::Thresholds;
use nodewhy::input::{Input, Object};
use objects::cluster;
use objects::fleet::{Fate, claim, node, now};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const MACHINES: usize = 2_000;
const YOUNG: usize = 200;

fn object(input: Input, value: &serde_json::Value) -> Object {
    Object::read(input, &mut serde_json::Deserializer::from_str(&value.to_string())).expect("an object")
}

/// One test: the counters are the process's, and tests of one binary run side by side.
#[test]
fn a_machine_stays_within_its_budget() {
    let mut world = cluster("");
    let texts: Vec<(Input, serde_json::Value)> =
        (0..MACHINES).flat_map(|n| [(Input::Nodes, node(n)), (Input::NodeClaims, claim(n, Fate::Healthy))]).collect();

    let region = Region::new(ALLOCATOR);
    for (input, text) in &texts {
        world.apply(object(*input, text), now());
    }
    let held = region.change();
    let bytes = (held.bytes_allocated - held.bytes_deallocated) / MACHINES;
    eprintln!("{bytes} bytes for a Node and its NodeClaim");

    let region = Region::new(ALLOCATOR);
    assert_eq!(diagnose(&world, now(), &Thresholds::default()), [], "a healthy fleet");
    let judged = region.change().allocations;
    assert!(bytes <= 2_900, "{bytes} bytes for a Node and its NodeClaim");
    assert!(judged <= 4 * MACHINES, "{judged} allocations to judge {MACHINES} healthy machines");

    // Each looks for an older one that is stuck: not at every machine of the class.
    for n in MACHINES..MACHINES + YOUNG {
        world.apply(object(Input::NodeClaims, &claim(n, Fate::Young)), now());
    }
    let region = Region::new(ALLOCATOR);
    assert_eq!(diagnose(&world, now(), &Thresholds::default()), [], "a fleet that grows");
    let judged = (region.change().allocations - judged) / YOUNG;
    assert!(judged <= 100, "{judged} allocations to judge a young machine");

    // Of a fleet that nothing explains: the longest verdict of those that come in thousands.
    let mut world = cluster("");
    for n in 0..MACHINES {
        world.apply(object(Input::NodeClaims, &claim(n, Fate::Stuck)), now());
    }
    let region = Region::new(ALLOCATOR);
    let diagnoses = diagnose(&world, now(), &Thresholds::default());
    let change = region.change();
    assert_eq!(diagnoses.len(), MACHINES);
    let kept = (change.bytes_allocated - change.bytes_deallocated) / MACHINES;
    let made = (change.allocations + change.reallocations) / MACHINES;
    eprintln!("{kept} bytes for a verdict, {made} allocations and reallocations");
    assert!(kept <= 4_700, "{kept} bytes for a verdict");
    assert!(made <= 85, "{made} allocations and reallocations to make a verdict");
}
