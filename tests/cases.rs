//! Real cases from public reports: right subject, right cause, right object to change, no false alarm.

use chrono::{DateTime, Utc};
use engine::api::{Confidence, NodeDiagnosis, Suspect};
use engine::case::Case;
use engine::case::stage::Thresholds;
use engine::cluster_state::ClusterState;
use engine::diagnose::diagnose;
use engine::objects::MachineLog;
use engine::objects::input::Object;
use engine::objects::sink::Sink;
use engine::rules::unknown;
use engine::suspects::{self, Stated, frequency, ranked};
use nodewhy::ingest::collect;
use nodewhy::ingest::dump::{self, Summary};
use nodewhy::ingest::logs::{self, Bounds};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use testkit::objects::{Objects, case_folders};

#[derive(Deserialize)]
struct Expect {
    now: DateTime<Utc>,
    sick: BTreeSet<String>,
    #[serde(default)]
    sick_other: BTreeSet<String>,
    /// Subjects that may be diagnosed instead of the sick: the NodePool or class that makes them.
    #[serde(default)]
    sick_alternatives: BTreeSet<String>,
    /// What may be diagnosed besides.
    #[serde(default)]
    also_ok: BTreeSet<String>,
    #[serde(default)]
    must_mention: Vec<String>,
    /// The verdict on a sick subject has all of these, or one of its first three suspects.
    #[serde(default)]
    suspect_words: Vec<String>,
    #[serde(default)]
    must_not_blame: Vec<String>,
    /// The causes that fit what the case turned out to be.
    #[serde(default)]
    must_not_rule_out: Vec<String>,
    object_to_fix: String,
    /// What may be blamed just as well.
    #[serde(default)]
    object_to_fix_alternatives: BTreeSet<String>,
    observable: String,
}

fn names(diagnosis: &NodeDiagnosis) -> Vec<String> {
    let spec = &diagnosis.spec;
    let machine = spec.node_claim.iter().chain(&spec.node).map(|n| n.name.clone());
    let node = spec.node.iter().map(|n| format!("Node/{}", n.name));
    machine
        .chain(node)
        .chain([spec.subject.name.clone(), format!("{}/{}", spec.subject.kind, spec.subject.name)])
        .collect()
}

/// `nat|route`: one of them.
fn has(text: &str, words: &str) -> bool {
    words.split('|').any(|word| text.contains(word))
}

/// At which place the first suspect stands that has all the words, from 1.
fn place(suspects: &[Suspect], words: &[String]) -> Option<usize> {
    let text = |suspect: &Suspect| serde_json::to_string(suspect).expect("JSON").to_lowercase();
    let at = suspects.iter().map(text).position(|text| words.iter().all(|word| has(&text, word)))?;
    Some(at + 1)
}

fn expectation(folder: &Path) -> Expect {
    serde_json::from_str(&std::fs::read_to_string(folder.join("expect.json")).expect("expect.json"))
        .expect("an expectation")
}

/// Takes in the logs of a case, as `--logs` does.
fn read_logs(folder: &Path, state: &mut ClusterState) {
    let given = ["logs", "logs.tar.gz"].map(|name| folder.join(name)).into_iter().filter(|path| path.exists());
    for journey in logs::load(&given.collect::<Vec<_>>(), state, Bounds::default()).journeys {
        state.apply(Object::MachineLog(MachineLog::new(journey)), DateTime::UNIX_EPOCH);
    }
}

/// What is wrong with the answer to one case.
fn faults(folder: &Path) -> Vec<String> {
    let expect = expectation(folder);
    let mut state = ClusterState::default();
    let summary = dump::load(&[folder.join("cluster.yaml")], &mut state);
    let mut faults: Vec<String> = summary.complaints.iter().map(ToString::to_string).collect();
    read_logs(folder, &mut state);
    let diagnoses = diagnose(&state, expect.now, &Thresholds::default());
    let named: BTreeSet<String> = diagnoses.iter().flat_map(names).collect();
    if expect.sick_alternatives.is_disjoint(&named) {
        faults.extend(expect.sick.difference(&named).map(|name| format!("{name} is sick and was not found")));
    }
    let is_named = [&expect.sick_other, &expect.sick_alternatives].iter().any(|names| !names.is_disjoint(&named));
    if !expect.sick_other.is_empty() && !is_named {
        faults.push(format!("one of {:?} is sick and was not found", expect.sick_other));
    }
    for diagnosis in &diagnoses {
        let status = diagnosis.status.as_ref().expect("a status");
        let known = [&expect.sick, &expect.sick_other, &expect.sick_alternatives, &expect.also_ok];
        if !names(diagnosis).iter().any(|name| known.iter().any(|names| names.contains(name))) {
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
                    .filter(|m| !has(&all, m))
                    .map(|m| format!("{m:?} is not mentioned in: {all}")),
            );
            let blamed = status.blame.as_ref().map_or("none", |b| b.object.as_str());
            if blamed != expect.object_to_fix && !expect.object_to_fix_alternatives.contains(blamed) {
                faults.push(format!("{blamed} is blamed, {} is to be changed", expect.object_to_fix));
            }
        }
        let told = expect.suspect_words.iter().all(|words| has(&all, words));
        if !told && place(&status.suspects, &expect.suspect_words).is_none_or(|at| at > 3) {
            let named: Vec<_> =
                status.suspects.iter().map(|s| format!("{}: {}", s.grounds.cause, s.grounds.summary)).collect();
            faults.push(format!("{:?} is none of the first three suspects: {named:#?}", expect.suspect_words));
        }
        if expect.observable == "none" && status.confidence == Confidence::Certain {
            faults.push(format!("the objects cannot tell, and this is called certain: {stated}"));
        }
        faults.extend(
            expect.must_not_blame.iter().filter(|m| has(&stated, m)).map(|m| format!("{m:?} is blamed: {stated}")),
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
        let dump =
            collect::list(&objects.0, live.inputs_read(), live.api_server(), DateTime::UNIX_EPOCH).expect("a list");
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
    let mut still_wrong = STILL_WRONG.to_vec();
    for folder in &folders {
        let name = folder.file_name().unwrap_or_default().display().to_string();
        let faults = faults(folder);
        if let Some(at) = still_wrong.iter().position(|(case, _)| *case == name) {
            still_wrong.remove(at);
            let harms =
                |fault: &String| ["false alarm", "is ruled out", "is blamed:"].iter().any(|of| fault.contains(of));
            assert!(!faults.is_empty(), "{name} comes out right: take it off the list");
            assert!(!faults.iter().any(harms), "{name}: {faults:#?}");
            continue;
        }
        for fault in faults {
            let _ = writeln!(report, "{name}: {fault}");
        }
    }
    assert!(report.is_empty(), "\n{report}");
    assert!(still_wrong.is_empty(), "not among the cases: {still_wrong:?}");
}

/// What nodewhy does not find, though it can be seen, and why not. It does no harm: nothing else is blamed for it.
const STILL_WRONG: &[(&str, &str)] = &[
    ("693-user-data-waits-for-a-private-name", "a machine without a log is not judged by one that says little"),
    ("694-policy-agent-drops-the-traffic-of-pods", "nothing leads from the driver to the agent that drops its packets"),
    ("722-documented-role-name-in-aws-auth", "its third machine is a minute old, as healthy ones are"),
    ("825-a-host-name-of-their-own", "one log stands for two machines, the other of which is young"),
    ("812-launch-templates-fail-in-the-whole-region", "its third machine is too young, as above"),
    ("963-pods-of-a-vanished-host", "what Karpenter says of its whole round of scheduling is not read"),
    ("971-empty-pool-after-patch-upgrade", "what Karpenter says of its whole round of scheduling is not read"),
    ("972-drained-by-hand-and-still-there", "a Node that was drained by hand, without a deletion, is not looked at"),
    ("979-create-not-allowed", "what Karpenter says of its whole round of scheduling is not read"),
    ("999-marked-for-removal-and-forgotten", "a taint that the cluster autoscaler left"),
    ("1005-gone-machine-waits-for-its-pods", "a repair that waits for evictions from a Node without a kubelet"),
];

/// The table of reports orders suspects that nothing else tells apart, and the cases are such reports: each is judged
/// with its own count taken out.
#[test]
fn the_true_cause_is_suspected_without_the_count_of_its_own_case() {
    let (mut first, mut among_three, mut all) = (0, 0, 0);
    for folder in case_folders() {
        let expect = expectation(&folder);
        if expect.suspect_words.is_empty() {
            continue;
        }
        let mut state = ClusterState::default();
        dump::load(&[folder.join("cluster.yaml")], &mut state);
        read_logs(&folder, &mut state);
        let thresholds = Thresholds::default();
        let judged = diagnose(&state, expect.now, &thresholds);
        let sick = judged.iter().find(|d| names(d).iter().any(|name| expect.sick.contains(name)));
        // A verdict that tells the cause needs no suspects.
        let Some(status) = sick.and_then(|d| d.status.as_ref()).filter(|status| !status.suspects.is_empty()) else {
            continue;
        };
        let truth =
            place(&status.suspects, &expect.suspect_words).map(|at| status.suspects[at - 1].grounds.cause.clone());
        let reports = |cause: &str| {
            let own = u32::from(truth.as_deref() == Some(cause));
            frequency::reports(cause).saturating_sub(own)
        };
        let case = Case::all(&state, expect.now, &thresholds)
            .find(|case| sick.is_some_and(|d| d.spec == case.spec()))
            .expect("the case of the verdict");
        let verdict = Stated { cause: &status.cause, confidence: status.confidence };
        let excluded = |cause: &str| status.ruled_out.iter().any(|r| r.cause == cause);
        let at = place(&ranked(&case, verdict, excluded, reports), &expect.suspect_words);
        all += 1;
        first += u32::from(at == Some(1));
        among_three += u32::from(at.is_some_and(|at| at <= 3));
        eprintln!("{}: {at:?}", folder.file_name().unwrap_or_default().display());
    }
    told_in_the_docs(&format!("first in {first} and among the first three in {among_three} of {all} cases"));
}

/// Where a rule finds the cause, and a candidate knows it too: whether it would be suspected if no rule knew it.
#[test]
fn what_rules_find_would_be_suspected_without_them() {
    let (mut first, mut among_three, mut all) = (0, 0, 0);
    let thresholds = Thresholds::default();
    for folder in case_folders() {
        // Without its logs: what only a log tells, no candidate knows.
        let (expect, mut state) = (expectation(&folder), ClusterState::default());
        dump::load(&[folder.join("cluster.yaml")], &mut state);
        let judged = diagnose(&state, expect.now, &thresholds);
        let sick = judged.iter().find(|d| names(d).iter().any(|name| expect.sick.contains(name)));
        let Some((diagnosis, status)) = sick.and_then(|d| Some((d, d.status.as_ref()?))) else { continue };
        if !suspects::ALL.iter().any(|c| status.cause == c.cause && c.stages.contains(&status.stage)) {
            continue;
        }
        let case = Case::all(&state, expect.now, &thresholds)
            .find(|case| case.spec() == diagnosis.spec)
            .expect("the case of the verdict");
        let withheld = Stated { cause: unknown::CAUSE, confidence: Confidence::Possible };
        let excluded = |cause: &str| status.ruled_out.iter().any(|r| r.cause == cause);
        let own = |cause: &str| u32::from(status.cause == cause);
        let suspects = ranked(&case, withheld, excluded, |cause| frequency::reports(cause).saturating_sub(own(cause)));
        let at = suspects.iter().position(|suspect| suspect.grounds.cause == status.cause);
        all += 1;
        first += u32::from(at == Some(0));
        among_three += u32::from(at.is_some_and(|at| at < 3));
        eprintln!("{}: {} at {at:?}", folder.file_name().unwrap_or_default().display(), status.cause);
    }
    told_in_the_docs(&format!("first in {first} and among the first three in {among_three} of {all} such cases"));
}

fn told_in_the_docs(figures: &str) {
    let told = std::fs::read_to_string("docs/verdicts.md").expect("the page on verdicts").replace('\n', " ");
    assert!(told.contains(figures), "docs/verdicts.md does not say: {figures}");
}
