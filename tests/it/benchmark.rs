//! The benchmark: its scorer tells right from wrong, and docs/accuracy.md says what it counts.

use crate::surveys::{self, shown};
use benchmark::answers::Answer;
use benchmark::answers::reader::Reads;
use benchmark::case::{Case, Observable};
use benchmark::report::{self, Participant};
use benchmark::score::{Score, Worth, score};
use nodewhy::report::{Format, WIDTH};
use std::fs;
use testkit::corpus::case_folders;
use testkit::project;

fn cases() -> Vec<Case> {
    case_folders().iter().map(|folder| Case::read(folder).expect("a case")).collect()
}

/// An answer that says all that is true.
fn truth(case: &Case) -> Vec<Answer> {
    let truth = &case.truth;
    let subjects =
        if truth.sick.is_empty() { truth.sick_other.iter().take(1) } else { truth.sick.iter().take(usize::MAX) };
    let words = truth.must_mention.iter().filter_map(|words| words.split('|').next());
    let cause = words.collect::<Vec<_>>().join(" ");
    let answer = |name: &String| Answer {
        names: vec![if name.contains('/') { name.clone() } else { format!("NodeClaim/{name}") }],
        fix: cause.clone(),
        object: truth.object_to_fix.clone(),
        certain: truth.observable != Observable::None,
        ..Answer::default()
    };
    subjects.map(answer).collect()
}

#[test]
fn the_truth_is_right_in_every_case_and_what_differs_from_it_is_not() {
    for case in cases() {
        let name = &case.name;
        let answers = truth(&case);
        let whole = score(&case, &answers);
        assert!(whole.is_right(), "{name}: {whole:?}");
        let mut other = answers.clone();
        other.push(Answer { names: vec!["Node/of-nobody".to_owned()], ..Answer::default() });
        assert!(!score(&case, &other).is_right(), "{name}: a false alarm");
        if case.truth.is_healthy() {
            continue;
        }
        assert!(!score(&case, &[]).is_right(), "{name}: nothing found");
        let changed = |change: &dyn Fn(&mut Answer)| {
            let mut changed = answers.clone();
            changed.iter_mut().for_each(change);
            score(&case, &changed)
        };
        if let Some(wrong) = case.truth.must_not_blame.first().and_then(|words| words.split('|').next()) {
            assert!(!changed(&|a| a.cause = wrong.to_owned()).is_right(), "{name}: a wrong cause");
        }
        if let Some(excluded) = case.truth.must_not_rule_out.first() {
            assert!(!changed(&|a| a.excluded = vec![excluded.clone()]).is_right(), "{name}: the truth is ruled out");
        }
        if case.truth.observable == Observable::None {
            assert!(!changed(&|a| a.certain = true).is_right(), "{name}: certain of what cannot be seen");
        } else {
            assert!(!changed(&|a| a.object = "Node/of-nobody".to_owned()).is_right(), "{name}: another object");
            assert!(!changed(&|a| a.fix.clear()).is_right(), "{name}: no cause");
        }
    }
}

#[test]
fn a_cause_among_the_first_three_suspects_is_named_and_not_right() {
    let case = cases().into_iter().find(|c| c.truth.observable == Observable::Full && !c.truth.is_healthy());
    let case = case.expect("a case that can be seen");
    let mut answers = truth(&case);
    for answer in &mut answers {
        let words = std::mem::take(&mut answer.fix);
        answer.suspects = vec![String::new(), String::new(), words];
    }
    let third = score(&case, &answers);
    assert!(third.worth == Worth::Suspected);
    for answer in &mut answers {
        answer.suspects.insert(0, String::new());
    }
    assert_eq!(score(&case, &answers).worth, Worth::Wrong);
}

#[test]
fn whoever_reads_and_knows_nothing_finds_what_says_its_cause_itself() {
    let named = |name: &str| cases().into_iter().find(|case| case.name.starts_with(name)).expect("the case");
    let scored = |name: &str, reads| {
        let case = named(name);
        score(&case, &Participant::Reader(reads).answers(&case).expect("answers"))
    };
    // The class says which rights are missing; Events and pods say more than conditions.
    assert!(scored("402-", Reads::Describe).missed.is_empty());
    let differ = cases().into_iter().take(40).filter(|case| {
        let says = |reads| score(case, &Participant::Reader(reads).answers(case).expect("answers")).cause;
        says(Reads::Describe) && !says(Reads::Conditions)
    });
    assert!(differ.count() > 0);
}

#[test]
fn answers_are_read_by_the_number_of_a_case() {
    let (folder, cases) = (tempfile::tempdir().expect("a folder"), cases());
    for case in &cases {
        let text = serde_json::to_string(&truth(case)).expect("JSON");
        fs::write(folder.path().join(format!("{}.json", case.number())), text).expect("written");
    }
    let scores = Participant::Folder(folder.path()).scores(&cases).expect("scores");
    assert!(scores.iter().all(Score::is_right));
    assert_eq!(report::faults(&cases, &scores), "");
    assert!(report::row("they", &cases, &scores).starts_with(&format!("| they | {0} of {0} |", cases.len())));
}

#[test]
fn the_documents_say_what_is_counted() {
    let cases = cases();
    let first_run = fs::read_to_string(project().join("tests/cases/first-run.md")).expect("first-run.md");
    let printed = |case: &Case| shown(&surveys::case(&case.folder).survey, Format::Json, WIDTH, false);
    let accuracy = report::accuracy(&cases, Participant::Printed(&printed), &first_run).expect("a report");
    let batches = first_run.lines().filter(|line| line.starts_with("## Cases ")).count();
    assert_eq!(report::curve(&first_run).lines().count(), 2 + batches);
    for (path, made) in
        [("docs/accuracy.md", accuracy), ("benchmark/SOURCES.md", report::sources(&cases).expect("sources"))]
    {
        let written = fs::read_to_string(project().join(path)).unwrap_or_default();
        assert!(made == written, "{path} is stale: cargo benchmark table writes it");
    }
}
