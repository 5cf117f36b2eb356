//! `nodewhy collect`: the dump that `nodewhy diagnose -f` reads, of a live cluster.

use super::flags::{AwsFlags, LiveFlags};
use super::{BAD_INPUT, NO_CLUSTER, answer, ask_aws, fail, load};
use crate::ingest::collect;
use chrono::Utc;
use clap::Args;
use engine::case::stage::Thresholds;
use engine::cluster_state::ClusterState;
use engine::objects::input::Object;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub struct Collect {
    #[command(flatten)]
    cluster: LiveFlags,
    #[command(flatten)]
    aws: AwsFlags,
}

pub fn run(args: &Collect) -> ExitCode {
    let (mut objects, mut state, now) = (Vec::new(), ClusterState::default(), Utc::now());
    let mut keep = |object: &Object| objects.push(object.clone());
    if let Err(error) = load(&args.cluster, &mut state, now, &Thresholds::default(), &mut keep) {
        return fail(&error, NO_CLUSTER);
    }
    match ask_aws(&args.aws, &mut state, now, &Thresholds::default()) {
        Ok(answers) => objects.extend(answers.into_iter().map(Object::AwsObservation)),
        Err(error) => return fail(&error, BAD_INPUT),
    }
    match collect::list(&objects, state.inputs_read(), state.api_server(), now) {
        Ok(dump) => answer(&dump),
        Err(error) => fail(&error, BAD_INPUT),
    }
}
