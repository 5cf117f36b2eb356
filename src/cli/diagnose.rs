//! `nodewhy diagnose`: which machines are stuck and why, of a dump or of a live cluster.

use super::flags::{AwsFlags, ThresholdFlags};
use super::{BAD_INPUT, Color, FailOn, NO_CLUSTER, ask_aws, color, complain, fail, load, print};
use crate::ingest::dump;
use crate::kube_client::ClusterFlags;
use crate::report::{self, Format, Style};
use chrono::{DateTime, SecondsFormat, Utc};
use clap::Args;
use engine::api::{Confidence, NodeDiagnosis};
use engine::case::stage::Thresholds;
use engine::cluster_state::{ClusterState, Subject};
use engine::diagnose::{self, Judgement};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub const EXIT_CODES: &str =
    "Exit codes: 0 judged; 1 something is stuck (with --fail-on); 2 bad usage or input; 3 the cluster could not be read.";

#[derive(Debug, Args)]
pub struct Diagnose {
    /// One NodeClaim, Node, NodePool or node class only, in full
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// What `kubectl get … -o yaml` (or json) printed: a file, a directory, or - for standard input; may be given several times. Needs no
    /// cluster
    #[arg(short = 'f', long = "filename", value_name = "FILE", conflicts_with_all = ["kubeconfig", "context"])]
    files: Vec<PathBuf>,
    #[command(flatten)]
    cluster: ClusterFlags,
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
    /// The time to judge at, for example 2026-01-31T12:00:00Z [default: the newest time in the dump; now for a cluster]
    #[arg(long)]
    now: Option<DateTime<Utc>>,
    /// Exit with 1 where something is stuck and the verdict is at least this sure
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
            &format!("{file} is a file, and a name is expected here: give each file its own -f, as in -f a.yaml -f b.yaml"),
            BAD_INPUT,
        );
    }
    if args.names.len() > 1 {
        return fail(&format!("one name is expected, not {}", args.names.join(" ")), BAD_INPUT);
    }
    if args.files.is_empty() { of_cluster(args) } else { of_dump(args) }
}

fn of_cluster(args: &Diagnose) -> ExitCode {
    let now = args.now.unwrap_or_else(Utc::now);
    let mut state = ClusterState::default();
    let thresholds = Thresholds::from(&args.thresholds);
    if let Err(error) = load(&args.cluster, &mut state, now, &thresholds, &mut |_, _| ()) {
        return fail(&error, NO_CLUSTER);
    }
    say_karpenter(&state);
    if let Err(error) = ask_aws(&args.aws, &mut state, now, &thresholds) {
        return fail(&error, BAD_INPUT);
    }
    conclude(args, &state, now)
}

fn of_dump(args: &Diagnose) -> ExitCode {
    let mut state = ClusterState::default();
    let summary = dump::load(&args.files, &mut state);
    for complaint in &summary.complaints {
        complain(&complaint.to_string());
    }
    if state.subjects().next().is_none() {
        complain(
            "nothing to judge: no NodeClaim, Node, NodePool or EC2NodeClass could be read; give what kubectl get -o yaml prints of them",
        );
        return ExitCode::from(BAD_INPUT);
    }
    let now = match (args.now, state.newest_time()) {
        (Some(now), _) => now,
        (None, Some(newest)) => {
            complain(&format!(
                "judged at {}, the newest time in the dump (--now sets another)",
                newest.to_rfc3339_opts(SecondsFormat::Secs, true)
            ));
            newest
        }
        (None, None) => {
            complain("nothing in the dump carries a time to judge at; give one with --now");
            return ExitCode::from(BAD_INPUT);
        }
    };
    say_karpenter(&state);
    if let Err(error) = ask_aws(&args.aws, &mut state, now, &Thresholds::from(&args.thresholds)) {
        return fail(&error, BAD_INPUT);
    }
    let code = conclude(args, &state, now);
    if summary.complaints.is_empty() { code } else { ExitCode::from(BAD_INPUT) }
}

fn say_karpenter(state: &ClusterState) {
    match state.karpenter() {
        Some(karpenter) => complain(&format!("Karpenter {} ({})", karpenter.version, karpenter.source)),
        None => complain("the version of Karpenter is not known: its Deployment is not here"),
    }
}

fn conclude(args: &Diagnose, state: &ClusterState, now: DateTime<Utc>) -> ExitCode {
    let thresholds = Thresholds::from(&args.thresholds);
    let diagnoses = match args.names.first() {
        None => diagnose::diagnose(state, now, &thresholds),
        Some(name) => match one(state, name, now, &thresholds) {
            Ok(diagnoses) => diagnoses,
            Err(message) => {
                complain(&message);
                return ExitCode::from(BAD_INPUT);
            }
        },
    };
    let failed = args.fail_on.is_some_and(|least| {
        let least = match least {
            FailOn::Possible => Confidence::Possible,
            FailOn::Likely => Confidence::Likely,
            FailOn::Certain => Confidence::Certain,
        };
        diagnoses.iter().filter_map(|d| d.status.as_ref()).any(|s| s.confidence >= least)
    });
    match report::render(diagnoses, Style { format: args.output, color: color(args.color), now }) {
        Ok(text) => print(&text),
        Err(error) => {
            complain(&error.to_string());
            return ExitCode::from(BAD_INPUT);
        }
    }
    ExitCode::from(u8::from(failed))
}

/// The diagnosis of one name; says on stderr how a machine without one fares.
fn one(state: &ClusterState, name: &str, now: DateTime<Utc>, thresholds: &Thresholds) -> Result<Vec<NodeDiagnosis>, String> {
    let named = name.rsplit('/').next().unwrap_or(name);
    let subjects: Vec<Subject> = match (state.claim(named), state.node(named)) {
        (Some(_), _) => vec![Subject::Claim(named.to_owned())],
        (None, Some(node)) => {
            vec![state.claim_of_node(node).map_or_else(|| Subject::Node(named.to_owned()), |c| Subject::Claim(c.name().to_owned()))]
        }
        (None, None) => {
            let classes =
                state.classes().filter(|c| c.class.name() == named).map(|c| Subject::Class(c.class.kind.clone(), named.to_owned()));
            classes.chain(state.pool(named).map(|_| Subject::Pool(named.to_owned()))).collect()
        }
    };
    if subjects.is_empty() {
        return Err(format!("no NodeClaim, Node, NodePool or node class is called {named}"));
    }
    let mut diagnoses = Vec::new();
    for subject in subjects {
        match diagnose::judge(state, &subject, now, thresholds) {
            Judgement::Sick(diagnosis, _) => diagnoses.push(*diagnosis),
            Judgement::Waiting(Some(until)) => {
                complain(&format!(
                    "{named} waits at a stage, as machines do; it counts as stuck from {}",
                    until.to_rfc3339_opts(SecondsFormat::Secs, true)
                ));
            }
            Judgement::Waiting(None) | Judgement::Healthy => complain(&format!("nothing is wrong with {named}")),
        }
    }
    Ok(diagnoses)
}
