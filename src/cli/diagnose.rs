//! `nodewhy diagnose`: which machines are stuck and why, of a dump or of a live cluster.

use super::duration::seconds;
use super::flags::{AwsFlags, LiveFlags, ThresholdFlags};
use super::pod_logs::KnownLogs;
use super::{
    BAD_INPUT, Color, FailOn, NO_CLUSTER, answer, ask_aws, block_on, color, complain, contexts, fail, load_and, print,
    watch, width,
};
use crate::ingest::logs::{Bounds, Logs};
use crate::ingest::{dump, dump_time, logs};
use crate::report::{self, Background, Format, Style, history};
use chrono::{DateTime, Utc};
use clap::Args;
use engine::api::judged::JudgedBy;
use engine::case::stage::Thresholds;
use engine::cluster_state::ClusterState;
use engine::diagnose::survey::Survey;
use engine::objects::MachineLog;
use engine::objects::input::Object;
use kube::Client;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub const EXIT_CODES: &str = "Exit codes: 0 judged; 1 something is stuck (with --fail-on); 2 bad usage or input; 3 the cluster could not be read, or of several clusters none.";

#[derive(Debug, Args)]
pub struct Diagnose {
    /// Show only this NodeClaim, Node, instance id, providerID, NodePool or node class, with all details
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Read objects from this file, this directory or - (standard input), as `kubectl get … -o yaml` (or json) prints
    /// them. Repeatable. Needs no cluster
    #[arg(short = 'f', long = "filename", value_name = "FILE", conflicts_with_all = ["kubeconfig", "context"])]
    files: Vec<PathBuf>,
    /// Read logs of nodes and components from this file, directory, .tar, .tar.gz (EKS log collector, Bottlerocket
    /// logdog) or - (standard input). Repeatable. Works with -f, or alone
    #[arg(long, value_name = "PATH", conflicts_with_all = ["kubeconfig", "context"])]
    logs: Vec<PathBuf>,
    /// Do not read pod logs. By default nodewhy reads the last lines of the pods that a verdict points to, if you have
    /// the right to
    #[arg(long, conflicts_with_all = ["files", "logs"])]
    no_logs: bool,
    #[command(flatten)]
    pub(super) cluster: LiveFlags,
    /// Read these contexts of the kubeconfig in parallel and print one answer. If one cannot be read, the answer names it
    /// and the reason, and covers the others
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', conflicts_with_all = ["context", "files", "logs", "watch"])]
    contexts: Vec<String>,
    /// Like --contexts, for every context. Contexts that differ only in namespace are read once
    #[arg(long, conflicts_with_all = ["contexts", "context", "files", "logs", "watch"])]
    all_contexts: bool,
    #[arg(short, long, value_enum, default_value_t)]
    pub(super) output: Format,
    /// Also show evidence, ruled-out causes and open questions (implied by NAME)
    #[arg(long)]
    details: bool,
    /// Judge as of this time, for example 2026-01-31T12:00:00Z [default: now. For a dump: the time that `collect` wrote
    /// into it, or an estimate from its kubelets' reports and the file's date]
    #[arg(long)]
    now: Option<DateTime<Utc>>,
    /// Exit with 1 if a node is stuck and its verdict has at least this confidence, or if an object could not be read
    #[arg(long, value_enum)]
    fail_on: Option<FailOn>,
    /// Look again at this interval [default: 30s] and print the answer again when a verdict changes. JSON is one line per
    /// answer, YAML one document. Ctrl-C ends it. With --fail-on, the first such verdict ends it too
    #[arg(short, long, value_name = "DURATION", num_args = 0..=1, require_equals = true, default_missing_value = "30s", value_parser = seconds)]
    watch: Option<u32>,
    #[arg(long, value_enum, default_value_t)]
    color: Color,
    #[command(flatten)]
    aws: AwsFlags,
    #[command(flatten)]
    pub(super) thresholds: ThresholdFlags,
}

pub fn run(args: &Diagnose) -> ExitCode {
    // `-f a.yaml b.yaml`, as a shell makes of `-f *.yaml`: kubectl does not take that either.
    if let Some(file) = args.names.iter().find(|name| Path::new(name).is_file()) {
        return fail(
            &format!("{file} is a file, but a name is expected here: pass -f for each file, as in -f a.yaml -f b.yaml"),
            BAD_INPUT,
        );
    }
    if args.names.len() > 1 {
        return fail(&format!("one name is expected, not {}", args.names.join(" ")), BAD_INPUT);
    }
    let standard_input = args.files.iter().chain(&args.logs).filter(|path| path.as_os_str() == "-").count();
    if standard_input > 1 {
        return fail(&"standard input can be read only once: pass - to either -f or --logs", BAD_INPUT);
    }
    if args.all_contexts || !args.contexts.is_empty() {
        return contexts::run(args);
    }
    match args.watch {
        Some(every) => match args.unwatchable() {
            Some(why) => fail(&why, BAD_INPUT),
            None => watch::run(args, every),
        },
        None if args.files.is_empty() && args.logs.is_empty() => of_cluster(args),
        None if args.files.is_empty() => of_logs(args),
        None => of_dump(args),
    }
}

impl Diagnose {
    /// Why a second look would see what the first one saw, or cost too much.
    fn unwatchable(&self) -> Option<&'static str> {
        if !self.files.is_empty() || !self.logs.is_empty() {
            Some("--watch needs a cluster: a dump (-f) and logs (--logs) do not change")
        } else if self.now.is_some() {
            Some("--watch judges at the time of each look, so it takes no --now")
        } else if self.aws.options().is_some() {
            Some(
                "--watch does not ask AWS, because each look would: remove --aws (NODEWHY_AWS), or use `nodewhy run --aws`",
            )
        } else if self.output == Format::Html {
            Some("--watch prints answer after answer, and -o html is one page: choose another format")
        } else {
            None
        }
    }

    /// The contexts of the clusters that were asked for, each once.
    pub(super) fn contexts(&self) -> Result<Vec<String>, String> {
        if self.aws.options().is_some() {
            return Err("--aws works with one cluster at a time: remove --aws (NODEWHY_AWS), or pass --context".into());
        }
        if self.all_contexts {
            return self.cluster.cluster.contexts().map_err(|error| error.to_string());
        }
        let mut names: Vec<String> = Vec::new();
        for name in &self.contexts {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        Ok(names)
    }

    /// The time to judge a cluster at.
    pub(super) fn now(&self) -> (DateTime<Utc>, JudgedBy) {
        self.now.map_or_else(|| (Utc::now(), JudgedBy::Present), |now| (now, JudgedBy::Given))
    }

    /// The part of the survey about the requested name.
    pub(super) fn about(&self, state: &ClusterState, survey: Survey) -> Result<Survey, String> {
        let Some(name) = self.names.first() else { return Ok(survey) };
        let unknown = || {
            format!(
                "no NodeClaim, Node, NodePool, node class or instance is called {name}; of one that is gone, `nodewhy history {name}` shows what the operator wrote"
            )
        };
        survey.of_name(state, name).ok_or_else(unknown)
    }

    /// Reads the logs of pods that open verdicts about the requested name point to. Returns whether there were any.
    pub(super) async fn take_in_logs(
        &self,
        client: &Client,
        state: &mut ClusterState,
        survey: &Survey,
        known: &mut KnownLogs,
        notes: &mut Vec<String>,
    ) -> bool {
        let of_name = self.names.first().map(|name| survey.clone().of_name(state, name));
        let survey = match &of_name {
            _ if self.no_logs => return false,
            None => survey,
            Some(Some(of_name)) => of_name,
            Some(None) => return false,
        };
        let thresholds = Thresholds::from(&self.thresholds);
        let read = known.take_into(client, state, survey, survey.judged.at, &thresholds).await;
        notes.extend(read.notes);
        !read.logs.is_empty()
    }

    pub(super) fn style(&self, now: DateTime<Utc>) -> Style {
        let details = self.details || !self.names.is_empty();
        Style { format: self.output, color: color(self.color), now, width: width(), details }
    }

    /// Whether something is stuck and the verdict is as sure as --fail-on says, or nodewhy could not read an object.
    pub(super) fn fails(&self, survey: &Survey) -> bool {
        self.fail_on.is_some_and(|least| survey.surest() >= Some(least.into()) || !survey.judged.unread.is_empty())
    }
}

fn of_cluster(args: &Diagnose) -> ExitCode {
    let (now, clock) = args.now();
    let mut state = ClusterState::default();
    let thresholds = Thresholds::from(&args.thresholds);
    let judge = |state: &ClusterState| Survey::of(state, now, clock, &thresholds);
    let mut unread = Vec::new();
    let loaded = load_and(&args.cluster, &mut state, now, &thresholds, &mut |_| (), async |client, state, notes| {
        let survey = judge(state);
        let with_logs = args.take_in_logs(client, state, &survey, &mut KnownLogs::default(), notes).await;
        unread.clone_from(notes);
        (!with_logs).then_some(survey)
    });
    let judged = match loaded {
        Ok(judged) => judged,
        Err(error) => return fail(&error, NO_CLUSTER),
    };
    say_karpenter(&state);
    say_former(&state);
    let survey = match ask_aws(&args.aws, &mut state, now, &thresholds) {
        Ok(answers) => judged.filter(|_| answers.is_empty()).unwrap_or_else(|| judge(&state)),
        Err(error) => return fail(&error, BAD_INPUT),
    };
    let about = args.about(&state, survey);
    if about.is_err()
        && let Some(told) = args.names.first().and_then(|name| told_of_one_that_is_gone(args, name, now))
    {
        return answer(&told);
    }
    conclude(args, &state, about, &unread)
}

/// The diagnosis that the operator wrote about a machine that is gone.
fn told_of_one_that_is_gone(args: &Diagnose, name: &str, now: DateTime<Utc>) -> Option<String> {
    let written = block_on(super::history::of_cluster(&args.cluster)).ok()?.ok()?;
    let told = history::of(written, Some(name));
    if told.is_empty() {
        return None;
    }
    complain(&format!("{name} is gone; the operator wrote this about it"));
    match args.output {
        Format::Json => history::json(&told).ok(),
        Format::Yaml => history::yaml(&told).ok(),
        _ => Some(history::text(&told, true, now)),
    }
}

fn of_dump(args: &Diagnose) -> ExitCode {
    let mut state = ClusterState::default();
    let summary = dump::load(&args.files, &mut state);
    for complaint in summary.complaints.iter().chain(&summary.suspicions) {
        complain(&complaint.to_string());
    }
    let read = read_logs(args, &mut state);
    if state.subjects().next().is_none() {
        complain(
            "nothing to judge: found no readable NodeClaim, Node, NodePool or EC2NodeClass; pass the output of kubectl get -o yaml",
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
        return fail(&"the dump contains no time to judge at; pass one with --now", BAD_INPUT);
    };
    say_karpenter(&state);
    say_former(&state);
    let thresholds = Thresholds::from(&args.thresholds);
    if let Err(error) = ask_aws(&args.aws, &mut state, now, &thresholds) {
        return fail(&error, BAD_INPUT);
    }
    let mut survey = Survey::of(&state, now, clock, &thresholds);
    if let Some((at, clock)) = other {
        survey = survey.or_at(&state, at, clock, &thresholds);
    }
    let complaints = summary.complaints.iter().chain(&summary.suspicions).map(ToString::to_string);
    let unread: Vec<String> = complaints.chain(read.complaints.iter().cloned()).collect();
    let code = conclude(args, &state, args.about(&state, survey), &unread);
    if summary.complaints.is_empty() && read.complaints.is_empty() { code } else { ExitCode::from(BAD_INPUT) }
}

/// Machines that nothing tells of but their logs.
fn of_logs(args: &Diagnose) -> ExitCode {
    let mut state = ClusterState::default();
    let read = read_logs(args, &mut state);
    if state.instances().next().is_none() {
        return fail(&"nothing to judge: no log could be read", BAD_INPUT);
    }
    let newest = state.logs().filter_map(|log| log.journey.ends).max();
    let (now, clock) = match args.now {
        Some(now) => (now, JudgedBy::Given),
        None => (newest.unwrap_or_else(Utc::now), JudgedBy::Logged),
    };
    let survey = Survey::of(&state, now, clock, &Thresholds::from(&args.thresholds));
    let code = conclude(args, &state, args.about(&state, survey), &read.complaints);
    if read.complaints.is_empty() { code } else { ExitCode::from(BAD_INPUT) }
}

/// Reads the logs; says what could not be read, how far each machine came, and which is of no machine of the dump.
fn read_logs(args: &Diagnose, state: &mut ClusterState) -> Logs {
    if args.logs.is_empty() {
        return Logs::default();
    }
    let mut read = logs::load(&args.logs, state, Bounds::default());
    read.notes.iter().chain(&read.complaints).for_each(|said| complain(said));
    for journey in read.journeys.drain(..) {
        let log = MachineLog::new(journey);
        let came_to = log.journey.came_to().map_or("it booted", |(phase, _)| phase.in_words());
        // A NodePool, a pod, or Karpenter itself, takes no steps.
        let identity = &log.journey.identity;
        let is_pod = !identity.pods.is_empty() && identity.is_no_machine();
        let is_machine = identity.is_no_group() && !is_pod;
        let step = if is_machine { format!("; the last step that it tells of: {came_to}") } else { String::new() };
        complain(&format!("log of {}: {} lines{step}", log.metadata.name, log.journey.lines));
        state.apply(Object::MachineLog(log), DateTime::UNIX_EPOCH);
    }
    for log in state.foreign_logs() {
        complain(&format!("log of {}: skipped, because no node in the dump has this name", log.metadata.name));
    }
    read
}

fn say_karpenter(state: &ClusterState) {
    complain(&karpenter(state));
}

/// Reports objects that an upgrade left behind. They are not judged.
fn say_former(state: &ClusterState) {
    let left = state.left_behind();
    if left > 0 {
        complain(&format!(
            "{left} of kind Provisioner, Machine or AWSNodeTemplate: not judged, as the Karpenter of this cluster does not \
             read them; an upgrade to 0.33 or later left them"
        ));
    }
}

pub(super) fn karpenter(state: &ClusterState) -> String {
    match state.karpenter() {
        Some(karpenter) => format!("Karpenter {} ({})", karpenter.version, karpenter.source),
        None => "the version of Karpenter is not known: its Deployment is not here".to_owned(),
    }
}

/// Prints the answer about what was asked for, or that there is no such thing.
fn conclude(args: &Diagnose, state: &ClusterState, about: Result<Survey, String>, unread: &[String]) -> ExitCode {
    let survey = match about {
        Ok(survey) => survey,
        Err(unknown) => return fail(&unknown, BAD_INPUT),
    };
    let now = survey.judged.at;
    let failed = args.fails(&survey);
    let background = Background { cluster: state, notes: unread };
    let rendered = report::render(survey, &background, args.style(now)).map_err(|error| error.to_string());
    match rendered.and_then(|text| print(&text)) {
        Ok(()) => ExitCode::from(u8::from(failed)),
        Err(error) => fail(&error, BAD_INPUT),
    }
}
