//! The commands that verdicts give, over every cause's examples and every case.

pub mod tried;

use crate::corpus::{case_folders, load_case};
use crate::objects::{examples, over_cluster};
use chrono::{DateTime, Utc};
use engine::api::NodeDiagnosis;
use engine::case::judging::Judging;
use engine::case::stage::Thresholds;
use engine::cluster_state::ClusterState;
use engine::diagnose::diagnose;
use engine::rules;
use nodewhy::ingest::dump::{Summary, load_from};
use std::sync::LazyLock;

/// Every cause's examples and every case, each with its time.
fn clusters() -> impl Iterator<Item = (String, ClusterState, DateTime<Utc>)> {
    let causes = rules::ALL.iter().map(|r| r.cause).chain([rules::unknown::CAUSE]);
    let of_pages =
        causes.flat_map(|cause| examples(cause).into_iter().map(move |e| (cause, e))).map(|(cause, example)| {
            let mut state = ClusterState::default();
            for object in over_cluster(&example.objects) {
                load_from("page", object.to_string().as_bytes(), &mut state, &mut Summary::default());
            }
            (format!("{cause}.md:{}", example.line), state, "2026-01-15T12:00:00Z".parse().expect("a time"))
        });
    let of_cases = case_folders().into_iter().map(|folder| {
        let expect = std::fs::read_to_string(folder.join("expect.json")).expect("expect.json");
        let expect: serde_json::Value = serde_json::from_str(&expect).expect("an expectation");
        let mut state = ClusterState::default();
        load_case(&folder, &mut state);
        let name = folder.file_name().unwrap_or_default().display().to_string();
        (name, state, expect["now"].as_str().and_then(|now| now.parse().ok()).expect("a time"))
    });
    of_pages.chain(of_cases)
}

/// What is judged of them, and whence: once per process.
pub fn verdicts() -> &'static [(String, NodeDiagnosis)] {
    static VERDICTS: LazyLock<Vec<(String, NodeDiagnosis)>> = LazyLock::new(judged);
    &VERDICTS
}

fn judged() -> Vec<(String, NodeDiagnosis)> {
    let of = |(whence, state, now): (String, ClusterState, DateTime<Utc>)| {
        diagnose(Judging::new(&state, now, &Thresholds::default()))
            .into_iter()
            .map(move |d| (whence.clone(), d))
            .collect::<Vec<_>>()
    };
    clusters().flat_map(of).collect()
}

/// The commands of their fixes and open questions, and whence.
pub fn commands() -> Vec<(String, String)> {
    let of = |(whence, diagnosis): &(String, NodeDiagnosis)| {
        let status = diagnosis.status.as_ref().expect("a status");
        let steps = status.fix.iter().flat_map(|fix| &fix.steps).filter_map(|step| step.command.clone());
        let asked = status.unknowns.iter().map(|unknown| unknown.command.to_string());
        steps.chain(asked).map(|command| (whence.clone(), command)).collect::<Vec<_>>()
    };
    verdicts().iter().flat_map(of).collect()
}

/// The words of each command of a line, as a shell splits it: `None` where a quote is left open.
pub fn split(line: &str) -> Option<Vec<Vec<String>>> {
    let (mut commands, mut words, mut word) = (Vec::new(), Vec::new(), None::<String>);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' => break,
                        quoted => word.push(quoted),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '"' => break,
                        // A shell would run or expand these.
                        '$' | '`' => return None,
                        '\\' => word.push(chars.next()?),
                        quoted => word.push(quoted),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(chars.next()?),
            '$' | '`' | '<' | '(' | ')' | '{' | '}' | '*' => return None,
            ' ' => words.extend(word.take()),
            ';' | '|' | '&' => {
                words.extend(word.take());
                commands.push(std::mem::take(&mut words));
                chars.next_if_eq(&c);
            }
            '>' => words.extend(word.take().into_iter().chain([">".to_owned()])),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    commands.push(words);
    commands.iter().all(|words| !words.is_empty()).then_some(commands)
}
