//! `nodewhy diagnose`: which machines are stuck and why, of a dump or of a live cluster.

use super::flags::{AwsFlags, LiveFlags, ThresholdFlags};
use super::{BAD_INPUT, Color, FailOn, NO_CLUSTER, ask_aws, color, complain, fail, load, print, width};
use crate::ingest::{dump, dump_time};
use crate::report::{self, Format, Style};
use chrono::{DateTime, Utc};
use clap::Args;
use engine::api::judged::JudgedBy;
use engine::case::stage::Thresholds;
use engine::cluster_state::ClusterState;
use engine::diagnose::survey::Survey;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub const EXIT_CODES: &str = "Exit codes: 0 judged; 1 something is stuck (with --fail-on); 2 bad usage or input; 3 the cluster could not be read.";

#[derive(Debug, Args)]
pub struct Diagnose {
    /// Only this NodeClaim, Node, instance id, providerID, NodePool or node class, in full
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// What `kubectl get … -o yaml` (or json) printed: a file, a directory, or - for standard input; may be given
    /// several times. Needs no cluster
    #[arg(short = 'f', long = "filename", value_name = "FILE", conflicts_with_all = ["kubeconfig", "context"])]
    files: Vec<PathBuf>,
    #[command(flatten)]
    cluster: LiveFlags,
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
    /// Also show evidence, exclusions and open questions, as for a single name
    #[arg(long)]
    details: bool,
    /// The time to judge at, for example 2026-01-31T12:00:00Z [default: now for a cluster; for a dump the time that
    /// `collect` wrote into it, else as near as its kubelets' reports and its file tell]
    #[arg(long)]
    now: Option<DateTime<Utc>>,
    /// Exit with 1 if something is stuck and the verdict is at least this sure
    #[arg(long, value_enum)]
    fail_on: Option<FailOn>,
    #[arg(long, value_enum, default_value_t)]
    color: Color,
    #[command(flatten)]
    aws: AwsFlags,
    #[command(flatten)]
    thresholds: ThresholdFlags,
}

pub fn run(args: &Diagnose) -> ExitCode {
    // `-f a.yaml b.yaml`, as a shell makes of `-f *.yaml`: kubectl does not take that either.
    if let Some(file) = args.names.iter().find(|name| Path::new(name).is_file()) {
        return fail(
            &format!(
                "{file} is a file, and a name is expected here: give each file its own -f, as in -f a.yaml -f b.yaml"
            ),
            BAD_INPUT,
        );
    }
    if args.names.len() > 1 {
        return fail(&format!("one name is expected, not {}", args.names.join(" ")), BAD_INPUT);
    }
    if args.files.is_empty() { of_cluster(args) } else { of_dump(args) }
}

fn of_cluster(args: &Diagnose) -> ExitCode {
    let (now, clock) = args.now.map_or_else(|| (Utc::now(), JudgedBy::Present), |now| (now, JudgedBy::Given));
    let mut state = ClusterState::default();
    let thresholds = Thresholds::from(&args.thresholds);
    if let Err(error) = load(&args.cluster, &mut state, now, &thresholds, &mut |_| ()) {
        return fail(&error, NO_CLUSTER);
    }
    say_karpenter(&state);
    if let Err(error) = ask_aws(&args.aws, &mut state, now, &thresholds) {
        return fail(&error, BAD_INPUT);
    }
    conclude(args, &state, Survey::of(&state, now, clock, &thresholds))
}

fn of_dump(args: &Diagnose) -> ExitCode {
    let mut state = ClusterState::default();
    let summary = dump::load(&args.files, &mut state);
    for complaint in summary.complaints.iter().chain(&summary.suspicions) {
        complain(&complaint.to_string());
    }
    if state.subjects().next().is_none() {
        complain(
            "nothing to judge: no NodeClaim, Node, NodePool or EC2NodeClass could be read; give what kubectl get -o yaml prints of them",
        );
        return ExitCode::from(BAD_INPUT);
    }
    let known = dump_time::DumpTimes {
        collected: summary.collected,
        newest: state.newest_time(),
        heartbeat: state.newest_heartbeat(),
        written: summary.written,
    };
    let given = args.now.map(|now| ((now, JudgedBy::Given), None));
    let Some(((now, clock), other)) = given.or_else(|| dump_time::of(known)) else {
        return fail(&"nothing in the dump carries a time to judge at; give one with --now", BAD_INPUT);
    };
    say_karpenter(&state);
    let thresholds = Thresholds::from(&args.thresholds);
    if let Err(error) = ask_aws(&args.aws, &mut state, now, &thresholds) {
        return fail(&error, BAD_INPUT);
    }
    let mut survey = Survey::of(&state, now, clock, &thresholds);
    if let Some((at, clock)) = other {
        survey = survey.or_at(&state, at, clock, &thresholds);
    }
    let code = conclude(args, &state, survey);
    if summary.complaints.is_empty() { code } else { ExitCode::from(BAD_INPUT) }
}

fn say_karpenter(state: &ClusterState) {
    match state.karpenter() {
        Some(karpenter) => complain(&format!("Karpenter {} ({})", karpenter.version, karpenter.source)),
        None => complain("the version of Karpenter is not known: its Deployment is not here"),
    }
}

/// Prints the answer, or what of it is about the name that was asked for.
fn conclude(args: &Diagnose, state: &ClusterState, survey: Survey) -> ExitCode {
    let now = survey.judged.at;
    let survey = match args.names.first() {
        None => survey,
        Some(name) => match survey.of_name(state, name) {
            Some(survey) => survey,
            None => {
                return fail(
                    &format!("no NodeClaim, Node, NodePool, node class or instance is called {name}"),
                    BAD_INPUT,
                );
            }
        },
    };
    let failed = args.fail_on.is_some_and(|least| survey.surest() >= Some(least.into()));
    let details = args.details || !args.names.is_empty();
    let style = Style { format: args.output, color: color(args.color), now, width: width(), details };
    match report::render(survey, style).map_err(|error| error.to_string()).and_then(|text| print(&text)) {
        Ok(()) => ExitCode::from(u8::from(failed)),
        Err(error) => fail(&error, BAD_INPUT),
    }
}
