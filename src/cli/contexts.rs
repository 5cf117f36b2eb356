//! `nodewhy diagnose --contexts`, `--all-contexts`: several clusters, read side by side, as one answer.

use super::diagnose_args::{Diagnose, karpenter};
use super::flags::LiveFlags;
use super::pod_logs::KnownLogs;
use super::progress::Progress;
use super::{BAD_INPUT, NO_CLUSTER, block_on, complain, connect, fail, load_from, print};
use crate::ingest::list::Reading;
use crate::kube_client::ClusterFlags;
use crate::report::Format;
use crate::report::clusters;
use crate::report::one_cluster::{JudgedCluster, OneCluster};
use chrono::Utc;
use engine::case::judging::Judging;
use engine::case::stage::Thresholds;
use engine::cluster_state::ClusterState;
use engine::diagnose::survey::Survey;
use engine::objects::input::Object;
use futures::{StreamExt, stream};
use std::process::ExitCode;

/// Clusters that are read at once: each takes the memory that it takes alone.
const AT_ONCE: usize = 4;

/// Why there is nothing to show of a cluster.
enum Nothing {
    Unread(String),
    /// It was read, and has nothing of the name that was asked for.
    NoSuchName(String),
}

pub fn run(args: &Diagnose) -> ExitCode {
    let names = match args.contexts() {
        Ok(names) if names.is_empty() => return fail(&"the kubeconfig has no context", BAD_INPUT),
        Ok(names) => names,
        Err(why) => return fail(&why, BAD_INPUT),
    };
    let progress = Progress::start();
    let looks = stream::iter(names).map(|name| async {
        let looked = look(args, &name, &progress).await;
        (name, looked)
    });
    let looked = block_on(looks.buffered(AT_ONCE).collect::<Vec<_>>());
    progress.end();
    match looked {
        Ok(looked) => conclude(args, looked),
        Err(error) => fail(&error, NO_CLUSTER),
    }
}

async fn look(args: &Diagnose, context: &str, progress: &Progress) -> Result<JudgedCluster, Nothing> {
    let cluster = ClusterFlags { context: Some(context.to_owned()), ..args.cluster.cluster.clone() };
    let flags = LiveFlags { cluster, ..args.cluster };
    let ((now, clock), thresholds) = (args.now(), Thresholds::from(&args.thresholds));
    let (mut state, mut notes) = (ClusterState::default(), Vec::new());
    let connection = connect(&flags).await.map_err(Nothing::Unread)?;
    let mut seen = |object: &Object| progress.saw(object.input());
    let judge = |state: &ClusterState| Survey::of(Judging::new(state, now, &thresholds), clock);
    let read = async {
        let reading = Reading { state: &mut state, now, thresholds: &thresholds, seen: &mut seen };
        load_from(&connection, reading, &mut notes).await?;
        let survey = judge(&state);
        let mut logs = KnownLogs::default();
        let with_logs = args.take_in_logs(&connection.client, &mut state, &survey, &mut logs, &mut notes).await;
        Ok(if with_logs { judge(&state) } else { survey })
    };
    let read = read.await.map_err(Nothing::Unread);
    for note in notes.iter().chain(read.is_ok().then(|| karpenter(&state)).iter()) {
        complain(&format!("{context}: {note}"));
    }
    let survey = args.about(&state, read?).map_err(Nothing::NoSuchName)?;
    // Time lines are read from the objects. Whoever asks for something else does not pay for all clusters at once.
    let state = if args.output == Format::Html { state } else { ClusterState::default() };
    Ok(JudgedCluster { survey, state, notes })
}

fn conclude(args: &Diagnose, looked: Vec<(String, Result<JudgedCluster, Nothing>)>) -> ExitCode {
    let (mut clusters, mut unknown) = (Vec::new(), None);
    for (name, looked) in looked {
        match looked {
            Ok(seen) => clusters.push(OneCluster { name, seen: Ok(seen) }),
            Err(Nothing::Unread(why)) => {
                complain(&format!("{name}: {why}"));
                clusters.push(OneCluster { name, seen: Err(why) });
            }
            Err(Nothing::NoSuchName(why)) => unknown = Some(why),
        }
    }
    let mut read = clusters.iter().filter_map(|one| one.seen.as_ref().ok()).peekable();
    if read.peek().is_none() {
        return unknown.map_or(ExitCode::from(NO_CLUSTER), |why| fail(&why, BAD_INPUT));
    }
    let failed = read.any(|seen| args.fails(&seen.survey));
    let rendered = clusters::render(clusters, args.style(Utc::now())).map_err(|error| error.to_string());
    match rendered.and_then(|text| print(&text)) {
        Ok(()) => ExitCode::from(u8::from(failed)),
        Err(error) => fail(&error, BAD_INPUT),
    }
}
