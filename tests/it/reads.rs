//! What a rule declares under `reads` is what it reads, over every example of every page and every real case.
//!
//! The cluster notes each input that is asked for, also by what rules share and by answers that were kept for a rule
//! before.

use chrono::{DateTime, Utc};
use engine::case::Case;
use engine::case::judging::Judging;
use engine::case::stage::Thresholds;
use engine::cluster_state::ClusterState;
use engine::objects::input::Input;
use engine::rules;
use nodewhy::ingest::dump::{Summary, load_from};
use std::collections::{BTreeMap, BTreeSet};
use testkit::corpus::{case_folders, load_case};
use testkit::objects::{examples, over_cluster};

/// Every cause's examples and every case, each with its time.
fn clusters() -> impl Iterator<Item = (ClusterState, DateTime<Utc>)> {
    let of_pages = rules::ALL.iter().flat_map(|rule| examples(rule.cause)).map(|example| {
        let mut state = ClusterState::default();
        for object in over_cluster(&example.objects) {
            load_from("page", object.to_string().as_bytes(), &mut state, &mut Summary::default());
        }
        (state, "2026-01-15T12:00:00Z".parse().expect("a time"))
    });
    let of_cases = case_folders().into_iter().map(|folder| {
        let expect = std::fs::read_to_string(folder.join("expect.json")).expect("expect.json");
        let expect: serde_json::Value = serde_json::from_str(&expect).expect("an expectation");
        let mut state = ClusterState::default();
        load_case(&folder, &mut state);
        (state, expect["now"].as_str().and_then(|now| now.parse().ok()).expect("a time"))
    });
    of_pages.chain(of_cases)
}

#[test]
fn every_rule_declares_what_it_reads_and_nothing_else() {
    let mut read: BTreeMap<&str, BTreeSet<Input>> = BTreeMap::new();
    for (state, now) in clusters() {
        for case in Case::all(Judging::new(&state, now, &Thresholds::default())) {
            for rule in rules::of_stage(case.stage()).into_iter().flat_map(|of_stage| &of_stage.rules) {
                let asked = state.inputs_asked_by(|| drop((rule.check)(&case)));
                read.entry(rule.cause).or_default().extend(asked);
            }
        }
    }
    let mut faults = Vec::new();
    for rule in rules::ALL {
        let declared: BTreeSet<Input> = rule.reads.iter().copied().collect();
        let read = read.get(rule.cause).cloned().unwrap_or_default();
        faults.extend(
            read.difference(&declared).map(|input| format!("{} reads {input:?} and does not say so", rule.cause)),
        );
        faults.extend(declared.difference(&read).map(|input| format!("{} never reads {input:?}", rule.cause)));
    }
    assert!(faults.is_empty(), "{faults:#?}");
}
