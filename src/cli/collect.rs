//! `nodewhy collect`: the dump that `nodewhy diagnose -f` reads, of a live cluster.

use super::flags::{AwsFlags, LiveFlags, ThresholdFlags};
use super::pod_logs::KnownLogs;
use super::{BAD_INPUT, NO_CLUSTER, answer, ask_aws, fail, load_and};
use crate::ingest::collect;
use crate::ingest::list::Reading;
use chrono::Utc;
use clap::Args;
use engine::api::judged::JudgedBy;
use engine::case::judging::Judging;
use engine::case::stage::Thresholds;
use engine::cluster_state::ClusterState;
use engine::diagnose::survey::Survey;
use engine::objects::input::Object;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub struct Collect {
    #[command(flatten)]
    cluster: LiveFlags,
    #[command(flatten)]
    aws: AwsFlags,
    /// Also collect the relevant log lines of the pods that a current verdict names, with secrets masked
    #[arg(long)]
    logs: bool,
    #[command(flatten)]
    thresholds: ThresholdFlags,
}

pub fn run(args: &Collect) -> ExitCode {
    let (mut objects, mut state, now) = (Vec::new(), ClusterState::default(), Utc::now());
    let thresholds = Thresholds::from(&args.thresholds);
    let mut keep = |object: &Object| objects.push(object.clone());
    let reading = Reading { state: &mut state, now, thresholds: &thresholds, seen: &mut keep };
    let loaded = load_and(&args.cluster, reading, async |client, state, notes| {
        if !args.logs {
            return Vec::new();
        }
        let survey = Survey::of(Judging::new(state, now, &thresholds), JudgedBy::Present);
        let read = KnownLogs::default().take_into(client, state, &survey, now, &thresholds).await;
        notes.extend(read.notes);
        read.logs
    });
    match loaded {
        Ok(logs) => objects.extend(logs.into_iter().map(Object::MachineLog)),
        Err(error) => return fail(&error, NO_CLUSTER),
    }
    match ask_aws(&args.aws, &mut state, now, &thresholds) {
        Ok(answers) => objects.extend(answers.into_iter().map(Object::AwsObservation)),
        Err(error) => return fail(&error, BAD_INPUT),
    }
    match collect::list(&objects, state.inputs_read(), state.api_server(), now) {
        Ok(dump) => answer(&dump),
        Err(error) => fail(&error, BAD_INPUT),
    }
}
