//! `nodewhy diagnose --watch`: looks again and again, and answers again when a verdict has changed.
//!
//! Each look reads the cluster as the command without `--watch` does. Watches would tell sooner, but a machine becomes
//! stuck by waiting, and what is read of its pods depends on the verdict: the operator is there for that.

use super::diagnose_args::{Diagnose, karpenter};
use super::pod_logs::KnownLogs;
use super::progress::Progress;
use super::{BAD_INPUT, NO_CLUSTER, block_on, complain, connect, fail, load_from, print_to_reader};
use crate::ingest::list::Reading;
use crate::kube_client::Connection;
use crate::report::{self, Background};
use chrono::Utc;
use engine::api::NodeDiagnosis;
use engine::api::judged::JudgedBy;
use engine::case::judging::Judging;
use engine::case::stage::Thresholds;
use engine::cluster_state::ClusterState;
use engine::diagnose::survey::Survey;
use engine::objects::input::Object;
use engine::triage;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

/// Looks no more often than this: a look lists everything.
const LEAST: u32 = 5;

pub fn run(args: &Diagnose, every: u32) -> ExitCode {
    if every < LEAST {
        return fail(
            &format!("--watch={every}s is too often, because each look lists the cluster: use {LEAST}s or more"),
            BAD_INPUT,
        );
    }
    let watched = block_on(async {
        tokio::select! {
            ended = watch(args, every) => ended,
            Ok(()) = tokio::signal::ctrl_c() => Ok(ExitCode::SUCCESS),
        }
    });
    match watched {
        Ok(Ok(code)) => code,
        Ok(Err(Failure { why, code })) => fail(&why, code),
        Err(error) => fail(&error, NO_CLUSTER),
    }
}

/// Why it ended, or why a look gave no answer.
struct Failure {
    why: String,
    code: u8,
}

async fn watch(args: &Diagnose, every: u32) -> Result<ExitCode, Failure> {
    let no_cluster = |why| Failure { why, code: NO_CLUSTER };
    let connection = connect(&args.cluster).await.map_err(no_cluster)?;
    let mut said = Vec::new();
    let mut logs = KnownLogs::default();
    let mut before: Option<Survey> = None;
    loop {
        let mut remarks = Vec::new();
        let looked = look(args, &connection, &mut logs, &mut remarks).await;
        // If the first look finds no such name, the command ends. Later the name may come back.
        remarks.extend(looked.as_ref().err().filter(|_| before.is_some()).map(|failure| failure.why.clone()));
        tell_new(&mut said, remarks);
        match looked {
            Ok((survey, state)) => {
                let changes = before.as_ref().map(|before| changes(before, &survey));
                if changes.as_deref() != Some(&[]) {
                    changes.iter().flatten().for_each(|change| complain(change));
                    let background = Background { cluster: &state, notes: &[] };
                    let style = args.style(survey.judged.at);
                    let rendered = report::render_one_of_many(survey.clone(), &background, style);
                    let printed = rendered.map_err(|error| error.to_string()).and_then(|text| print_to_reader(&text));
                    if !printed.map_err(|why| Failure { why, code: BAD_INPUT })? {
                        return Ok(ExitCode::SUCCESS);
                    }
                }
                if args.fails(&survey) {
                    return Ok(ExitCode::from(1));
                }
                if before.is_none() {
                    complain(&format!("looking at {} every {every} s; Ctrl-C ends it", connection.server()));
                }
                before = Some(survey);
            }
            Err(failure) if before.is_none() => return Err(failure),
            Err(_) => {}
        }
        tokio::time::sleep(Duration::from_secs(u64::from(every))).await;
    }
}

async fn look(
    args: &Diagnose,
    connection: &Connection,
    logs: &mut KnownLogs,
    remarks: &mut Vec<String>,
) -> Result<(Survey, ClusterState), Failure> {
    let (mut state, now, thresholds) = (ClusterState::default(), Utc::now(), Thresholds::from(&args.thresholds));
    let progress = Progress::start();
    let mut seen = |object: &Object| progress.saw(object.input());
    let reading = Reading { state: &mut state, now, thresholds: &thresholds, seen: &mut seen };
    let loaded = load_from(connection, reading, remarks).await;
    progress.end();
    loaded.map_err(|why| Failure { why, code: NO_CLUSTER })?;
    remarks.push(karpenter(&state));
    let mut survey = Survey::of(Judging::new(&state, now, &thresholds), JudgedBy::Present);
    if args.take_in_logs(&connection.client, &mut state, &survey, logs, remarks).await {
        survey = Survey::of(Judging::new(&state, now, &thresholds), JudgedBy::Present);
    }
    let about = args.about(&state, survey).map_err(|why| Failure { why, code: BAD_INPUT })?;
    Ok((about, state))
}

/// Prints the remarks that are new since the last look.
fn tell_new(said: &mut Vec<String>, remarks: Vec<String>) {
    remarks.iter().filter(|remark| !said.contains(remark)).for_each(|remark| complain(remark));
    *said = remarks;
}

/// The differences, one sentence each. Counts and machines that wait no longer than normal are ignored, because they
/// change all the time.
fn changes(before: &Survey, after: &Survey) -> Vec<String> {
    let by_name = |survey: &Survey| -> BTreeMap<String, NodeDiagnosis> {
        survey.diagnoses.iter().filter_map(|d| Some((d.metadata.name.clone()?, d.clone()))).collect()
    };
    let (old, new) = (by_name(before), by_name(after));
    let cause = |d: &NodeDiagnosis| d.status.as_ref().map_or_else(String::new, |status| status.cause.to_string());
    let mut changes = Vec::new();
    for (name, diagnosis) in &new {
        match old.get(name) {
            None => changes.push(format!("{name} is stuck now: {}", cause(diagnosis))),
            Some(old) if !triage::same(old, diagnosis) => {
                changes.push(format!("the verdict on {name} has changed: {}", cause(diagnosis)));
            }
            Some(_) => {}
        }
    }
    changes.extend(old.keys().filter(|name| !new.contains_key(*name)).map(|name| format!("{name} is no longer stuck")));
    if before.judged.missing != after.judged.missing {
        changes.push("nodewhy can now read other inputs than before".to_owned());
    }
    changes
}
