//! The command line: one file a command.

mod collect;
mod completion;
mod contexts;
mod diagnose;
mod diagnose_args;
mod duration;
mod explain;
mod flags;
mod history;
mod lint;
mod man;
mod mcp;
mod pod_logs;
mod progress;
mod run;
mod userdata;
mod version;
mod watch;

use crate::ingest::list::{self, Reading};
use crate::kube_client::Connection;
use crate::report;
use chrono::{DateTime, Utc};
use clap::{Parser, Subcommand, ValueEnum};
use engine::api::{Confidence, crd};
use engine::case::stage::Thresholds;
use engine::cluster_state::ClusterState;
use engine::objects::AwsObservation;
use engine::objects::input::{Input, Object};
use engine::objects::sink::Sink;
use flags::{AwsFlags, LiveFlags};
use kube::Client;
use progress::Progress;
use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

/// Find out why a Karpenter node on Amazon EKS did not become usable.
#[derive(Debug, Parser)]
#[command(name = "nodewhy", version, about, long_about = None, max_term_width = 110)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Find stuck nodes and name the root cause, from a dump (-f) or a live cluster
    #[command(after_help = diagnose::EXIT_CODES)]
    Diagnose(diagnose_args::Diagnose),
    /// Show what `nodewhy run` (the operator) recorded about nodes that were stuck, including nodes that are gone
    History(history::HistoryArgs),
    /// Check EC2NodeClasses, NodePools, user data and aws-auth for mistakes that would keep new nodes from joining, now
    /// or after an upgrade
    #[command(after_help = lint::EXIT_CODES)]
    Lint(lint::Lint),
    /// Show the final user data of a node class: your part, merged with what Karpenter and the AMI add
    #[command(after_help = userdata::EXIT_CODES)]
    Userdata(userdata::UserDataArgs),
    /// Print everything that `diagnose -f` needs from a cluster, with secrets masked
    Collect(collect::Collect),
    /// Watch the cluster and write a NodeDiagnosis for each stuck node (the operator)
    Run(Box<run::Run>),
    /// Print the CustomResourceDefinition
    Crd,
    /// Print the documentation of a cause or lint finding, or list all causes
    Explain(explain::Explain),
    /// Serve the read-only commands to an AI agent: a Model Context Protocol server on standard input and output
    Mcp(mcp::McpFlags),
    /// Print the completion script for a shell
    #[command(after_help = completion::EXAMPLES)]
    Completion(completion::Completion),
    /// Print the man page, or write one man page per command
    Man(man::Pages),
    /// Print the version, the target and the API version, for bug reports
    Version(version::VersionFlags),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FailOn {
    Possible,
    Likely,
    Certain,
}

impl From<FailOn> for Confidence {
    fn from(least: FailOn) -> Self {
        match least {
            FailOn::Possible => Self::Possible,
            FailOn::Likely => Self::Likely,
            FailOn::Certain => Self::Certain,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Color {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    Always,
    Never,
}

/// Bad usage or input.
const BAD_INPUT: u8 = 2;
/// The cluster could not be read.
const NO_CLUSTER: u8 = 3;

/// Runs the command line.
pub fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Diagnose(args) => diagnose::run(&args),
        Command::History(args) => history::run(&args),
        Command::Lint(args) => lint::run(&args),
        Command::Userdata(args) => userdata::run(&args),
        Command::Collect(args) => collect::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Crd => answer(crd::CRD),
        Command::Explain(args) => explain::run(&args),
        Command::Mcp(args) => mcp::run(args),
        Command::Completion(args) => completion::run(&args),
        Command::Man(args) => man::run(&args),
        Command::Version(args) => version::run(&args),
    }
}

/// Commands read two large lists side by side.
const COMMANDS_THREADS: usize = 2;

fn block_on<F: Future>(future: F) -> std::io::Result<F::Output> {
    block_on_threads(COMMANDS_THREADS, future)
}

fn block_on_threads<F: Future>(threads: usize, future: F) -> std::io::Result<F::Output> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?.block_on(future))
}

fn fail(error: &dyn std::fmt::Display, code: u8) -> ExitCode {
    complain(&error.to_string());
    ExitCode::from(code)
}

/// Asks AWS what is open, where the user wants that; gives the answers.
fn ask_aws(
    flags: &AwsFlags,
    state: &mut ClusterState,
    now: DateTime<Utc>,
    thresholds: &Thresholds,
) -> Result<Vec<AwsObservation>, String> {
    let Some(options) = flags.options() else { return Ok(Vec::new()) };
    let mut aws = aws::Client::new(&options, state).map_err(|error| error.to_string())?;
    let answers = block_on(aws::ask(&mut aws, state, now, thresholds)).map_err(|error| error.to_string())?;
    if !answers.is_empty() {
        complain(&format!("asked AWS about {} things in {}", answers.len(), aws.region()));
    }
    if aws.is_spent() {
        complain("not all questions to AWS fit in one minute; --aws-calls-per-minute permits more");
    }
    Ok(answers)
}

/// Reads the cluster, and then does on the same connection what is to follow; says what could not be read, and fails
/// where nothing could.
fn load_and<T>(
    cluster: &LiveFlags,
    reading: Reading<'_>,
    then: impl AsyncFnOnce(&Client, &mut ClusterState, &mut Vec<String>) -> T,
) -> Result<T, String> {
    let Reading { state, now, thresholds, seen } = reading;
    let mut complaints = Vec::new();
    let loaded = block_on(async {
        let connection = connect(cluster).await?;
        let progress = Progress::start();
        let mut seen = |object: &Object| {
            progress.saw(object.input());
            seen(object);
        };
        let reading = Reading { state: &mut *state, now, thresholds, seen: &mut seen };
        let loaded = load_from(&connection, reading, &mut complaints).await;
        progress.end();
        loaded?;
        Ok::<_, String>(then(&connection.client, state, &mut complaints).await)
    });
    for complaint in complaints {
        complain(&complaint);
    }
    loaded.map_err(|error| error.to_string()).flatten()
}

/// Reads a cluster that is connected to.
async fn load_from(connection: &Connection, reading: Reading<'_>, complaints: &mut Vec<String>) -> Result<(), String> {
    let Reading { state, now, thresholds, seen } = reading;
    state.of_api_server(connection.api_server());
    let reading = Reading { state: &mut *state, now, thresholds, seen };
    complaints.extend(list::load(&connection.client, reading).await);
    state.missing(Input::Nodes).map_or(Ok(()), |why| Err(format!("nothing to judge: Nodes cannot be read ({why})")))
}

/// Connects to the cluster, and says what is waited for where it takes its time.
async fn connect(flags: &LiveFlags) -> Result<Connection, String> {
    let within = Duration::from_secs(u64::from(flags.request_timeout));
    let mut connection = flags.cluster.connect(within).await.map_err(|error| error.to_string())?;
    connection.greet(|server| complain(&format!("waiting for {server}"))).await.map_err(|error| error.to_string())?;
    Ok(connection)
}

fn color(wish: Color) -> bool {
    match wish {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()),
    }
}

/// Characters in a line of the terminal, as `COLUMNS` or the terminal says, within what is read well.
fn width() -> usize {
    let said = || std::env::var("COLUMNS").ok()?.parse().ok();
    let width = said().or_else(|| terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)));
    width.unwrap_or(report::WIDTH).clamp(NARROWEST, report::WIDTH)
}

/// Narrower terminals break lines themselves.
const NARROWEST: usize = 40;

/// Prints the answer. A closed pipe (`nodewhy … | head`) is no error, everything else is.
fn print(text: &str) -> Result<(), String> {
    print_to_reader(text).map(|_| ())
}

/// Prints a part of an answer; tells whether somebody still reads.
fn print_to_reader(text: &str) -> Result<bool, String> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(format!("the answer cannot be written: {error}")),
    }
}

/// Prints all that a command has to say.
fn answer(text: &str) -> ExitCode {
    match print(text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error, BAD_INPUT),
    }
}

/// Says something on standard error. It may quote strangers: their escape sequences and secrets are none of a
/// terminal's.
fn complain(message: &str) {
    let _ = writeln!(std::io::stderr().lock(), "nodewhy: {}", report::visible(message));
}
