//! `nodewhy diagnose`: which machines are stuck and why, of a dump or of a live cluster.

use super::diagnose_args::{Diagnose, karpenter};
use super::pod_logs::KnownLogs;
use super::{BAD_INPUT, NO_CLUSTER, answer, ask_aws, block_on, complain, contexts, fail, load_and, print, watch};
use crate::ingest::list::Reading;
use crate::ingest::logs::{Bounds, Logs};
use crate::ingest::{dump, dump_time, logs};
use crate::report::{self, Background, Format, history};
use chrono::{DateTime, Utc};
use engine::api::NodeDiagnosis;
use engine::api::judged::JudgedBy;
use engine::case::judging::Judging;
use engine::case::stage::Thresholds;
use engine::cluster_state::ClusterState;
use engine::diagnose::differences::differences;
use engine::diagnose::survey::Survey;
use engine::objects::MachineLog;
use engine::objects::input::Object;
use std::path::Path;
use std::process::ExitCode;

pub const EXIT_CODES: &str = "Exit codes: 0 success, even if nodes are stuck; 1 --fail-on found a stuck node or an \
                              unreadable object; 2 bad usage or input; 3 no cluster could be read.";

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

fn of_cluster(args: &Diagnose) -> ExitCode {
    let (now, clock) = args.now();
    let mut state = ClusterState::default();
    let thresholds = Thresholds::from(&args.thresholds);
    let judge = |state: &ClusterState| Survey::of(Judging::new(state, now, &thresholds), clock);
    let mut unread = Vec::new();
    let reading = Reading { state: &mut state, now, thresholds: &thresholds, seen: &mut |_| () };
    let loaded = load_and(&args.cluster, reading, async |client, state, notes| {
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
    // At another time the operator may have said something else.
    if let (Ok(survey), None) = (&about, args.now) {
        say_differences(args, &state, survey);
    }
    conclude(args, &state, about, &unread)
}

/// Reports where the operator's NodeDiagnoses differ from this answer. Without an operator, or without the right to
/// read them, there is nothing to compare.
fn say_differences(args: &Diagnose, state: &ClusterState, survey: &Survey) {
    const SHOWN: usize = 5;
    let Ok(Ok(written)) = block_on(super::history::of_cluster(&args.cluster)) else { return };
    let is_asked = |diagnosis: &NodeDiagnosis| args.names.first().is_none_or(|name| history::is_about(diagnosis, name));
    let differences = differences(state, survey, &written, is_asked);
    differences.iter().take(SHOWN).for_each(|difference| complain(difference));
    let more = differences.len().saturating_sub(SHOWN);
    if more > 0 {
        complain(&format!("{more} more NodeDiagnoses differ from this answer; `kubectl get ndx` shows them"));
    }
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
            "nothing to judge: found no readable NodeClaim, Node, NodePool or EC2NodeClass; pass the output of kubectl \
             get -o yaml",
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
    let Some(((now, clock), other)) = given.or_else(|| dump_time::candidates(known)) else {
        return fail(&"the dump contains no time to judge at; pass the time of the dump with --now", BAD_INPUT);
    };
    say_karpenter(&state);
    say_former(&state);
    let thresholds = Thresholds::from(&args.thresholds);
    if let Err(error) = ask_aws(&args.aws, &mut state, now, &thresholds) {
        return fail(&error, BAD_INPUT);
    }
    let mut survey = Survey::of(Judging::new(&state, now, &thresholds), clock);
    if let Some((at, clock)) = other {
        survey = survey.or_at(Judging::new(&state, at, &thresholds), clock);
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
    let survey = Survey::of(Judging::new(&state, now, &Thresholds::from(&args.thresholds)), clock);
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
        // A NodePool, a pod, or Karpenter itself, takes no steps.
        let identity = &log.journey.identity;
        let is_pod = !identity.pods.is_empty() && identity.is_no_machine();
        let is_machine = identity.is_no_group() && !is_pod;
        // A log of Karpenter or of an agent has faults of a machine, but no boot step.
        let came_to = log.journey.came_to().filter(|_| is_machine);
        let step = came_to
            .map_or_else(String::new, |(phase, _)| format!("; last boot step that succeeded: {}", phase.in_words()));
        complain(&format!("log of {}: read {} lines{step}", log.metadata.name, log.journey.lines));
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
            "skipped {left} of kind Provisioner, Machine or AWSNodeTemplate: an upgrade to 0.33 or later left \
             them, and the Karpenter of this cluster does not read them"
        ));
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
