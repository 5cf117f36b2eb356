//! Real cases from public reports: right subject, right cause, right object to change, no false alarm.

use engine::api::{Confidence, NodeDiagnosis};
use engine::case::stage::Thresholds;
use engine::cluster_state::ClusterState;
use engine::diagnose::diagnose;
use engine::objects::sink::Sink;
use nodewhy::ingest::collect;
use nodewhy::ingest::dump::{self, Summary};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use testkit::objects::{Objects, case_folders};

#[derive(Deserialize)]
struct Expect {
    now: chrono::DateTime<chrono::Utc>,
    sick: BTreeSet<String>,
    #[serde(default)]
    sick_other: BTreeSet<String>,
    #[serde(default)]
    must_mention: Vec<String>,
    #[serde(default)]
    must_not_blame: Vec<String>,
    /// The causes that fit what the case turned out to be.
    #[serde(default)]
    must_not_rule_out: Vec<String>,
    object_to_fix: String,
    observable: String,
}

fn names(diagnosis: &NodeDiagnosis) -> Vec<String> {
    let spec = &diagnosis.spec;
    let machine = spec.node_claim.iter().chain(&spec.node).map(|n| n.name.clone());
    machine.chain([spec.subject.name.clone(), format!("{}/{}", spec.subject.kind, spec.subject.name)]).collect()
}

fn expectation(folder: &Path) -> Expect {
    serde_json::from_str(&std::fs::read_to_string(folder.join("expect.json")).expect("expect.json"))
        .expect("an expectation")
}

/// What is wrong with the answer to one case.
fn faults(folder: &Path) -> Vec<String> {
    let expect = expectation(folder);
    let mut state = ClusterState::default();
    let summary = dump::load(&[folder.join("cluster.yaml")], &mut state);
    let diagnoses = diagnose(&state, expect.now, &Thresholds::default());
    let mut faults: Vec<String> = summary.complaints.iter().map(ToString::to_string).collect();
    let named: BTreeSet<String> = diagnoses.iter().flat_map(names).collect();
    faults.extend(expect.sick.difference(&named).map(|name| format!("{name} is sick and was not found")));
    if !expect.sick_other.is_empty() && expect.sick_other.is_disjoint(&named) {
        faults.push(format!("one of {:?} is sick and was not found", expect.sick_other));
    }
    for diagnosis in &diagnoses {
        let status = diagnosis.status.as_ref().expect("a status");
        if !names(diagnosis).iter().any(|n| expect.sick.contains(n) || expect.sick_other.contains(n)) {
            faults.push(format!("{} is a false alarm: {}", diagnosis.spec.subject.name, status.summary));
        }
        faults.extend(
            status
                .ruled_out
                .iter()
                .filter(|r| expect.must_not_rule_out.iter().any(|truth| *truth == r.cause))
                .map(|r| format!("the true cause {} is ruled out: {}", r.cause, r.because)),
        );
        let stated = format!("{} {}", status.cause, status.summary).to_lowercase();
        let fix = status.fix.as_ref().map_or_else(String::new, |f| {
            f.steps.iter().fold(f.summary.to_string(), |all, s| {
                format!("{all} {} {}", s.text, s.command.as_deref().unwrap_or_default())
            })
        });
        let all = format!("{stated} {}", fix.to_lowercase());
        if expect.observable == "full" {
            faults.extend(
                expect
                    .must_mention
                    .iter()
                    .filter(|m| !all.contains(*m))
                    .map(|m| format!("{m:?} is not mentioned in: {all}")),
            );
            let blamed = status.blame.as_ref().map_or("none", |b| b.object.as_str());
            if blamed != expect.object_to_fix {
                faults.push(format!("{blamed} is blamed, {} is to be changed", expect.object_to_fix));
            }
        }
        if expect.observable == "none" && status.confidence == Confidence::Certain {
            faults.push(format!("the objects cannot tell, and this is called certain: {stated}"));
        }
        faults.extend(
            expect.must_not_blame.iter().filter(|m| stated.contains(*m)).map(|m| format!("{m:?} is blamed: {stated}")),
        );
    }
    faults
}

#[test]
fn what_is_collected_of_a_real_case_gives_the_same_verdict_to_the_byte() {
    for folder in case_folders() {
        let (mut objects, mut live) = (Objects::default(), ClusterState::default());
        for sink in [&mut objects as &mut dyn Sink, &mut live] {
            dump::load(&[folder.join("cluster.yaml")], sink);
        }
        let (mut offline, mut summary) = (ClusterState::default(), Summary::default());
        let dump = collect::list(&objects.0, live.inputs_read(), chrono::DateTime::UNIX_EPOCH).expect("a list");
        dump::load_from("the dump", dump.as_bytes(), &mut offline, &mut summary);
        assert_eq!((summary.complaints, summary.objects), (Vec::new(), objects.0.len()), "{}", folder.display());
        let now = expectation(&folder).now;
        let judged =
            |state: &ClusterState| serde_json::to_string(&diagnose(state, now, &Thresholds::default())).expect("JSON");
        assert_eq!(judged(&live), judged(&offline), "{}", folder.display());
    }
}

#[test]
fn every_real_case_comes_out_right() {
    let folders = case_folders();
    assert!(folders.len() >= 40, "cases are missing");
    let mut report = String::new();
    for folder in &folders {
        let name = folder.file_name().unwrap_or_default().display().to_string();
        for fault in faults(folder) {
            let _ = writeln!(report, "{name}: {fault}");
        }
    }
    assert!(report.is_empty(), "\n{report}");
}
