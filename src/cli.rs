//! The command line.

mod userdata;

use crate::api::{Confidence, NodeDiagnosis};
#[cfg(feature = "aws")]
use crate::aws::{self, Aws, questions::Question};
use crate::cluster::Cluster;
use crate::collect;
use crate::crd;
use crate::diagnose::{self, Judgement};
use crate::dump;
#[cfg(feature = "aws")]
use crate::foreign::{Ami, Answer, AwsObservation};
use crate::gate::Thresholds;
use crate::input::Input;
use crate::lint;
use crate::live;
use crate::raw::Raw;
use crate::report::{self, Format, Style};
use crate::rules;
use crate::run;
use crate::userdata::Family;
use crate::world::{Subject, World};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use clap::{Args, Parser, Subcommand, ValueEnum};
use kube::api::ApiResource;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Says why a Karpenter node on Amazon EKS never became usable.
#[derive(Debug, Parser)]
#[command(name = "nodewhy", version, about, long_about = None, max_term_width = 110)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Find stuck machines and name the root cause, from a dump (-f) or a live cluster
    #[command(after_help = EXIT_CODES)]
    Diagnose(Diagnose),
    /// Find in EC2NodeClasses, NodePools, user data and aws-auth what would keep machines from joining, before any is launched
    #[command(after_help = LINT_EXIT_CODES)]
    Lint(Lint),
    /// Show what the machines of a node class will really run: user data, Karpenter's part and the image's, merged
    #[command(after_help = USERDATA_EXIT_CODES)]
    Userdata(userdata::UserData),
    /// Print what `diagnose -f` reads of a cluster, secrets masked
    Collect {
        #[command(flatten)]
        cluster: Cluster,
        #[cfg(feature = "aws")]
        #[command(flatten)]
        aws: aws::Options,
    },
    /// Watch the cluster and write a NodeDiagnosis for each stuck machine
    Run {
        #[command(flatten)]
        options: run::Options,
        #[command(flatten)]
        thresholds: ThresholdArgs,
    },
    /// Print the CustomResourceDefinition
    Crd,
    /// Print the page of a cause, or the list of all causes
    Explain {
        /// The cause, for example NodeRoleNotMapped
        cause: Option<String>,
    },
}

const EXIT_CODES: &str =
    "Exit codes: 0 judged; 1 something is stuck (with --fail-on); 2 bad usage or input; 3 the cluster could not be read.";

const LINT_EXIT_CODES: &str = "Exit codes: 0 nothing found; 1 something found (see --fail-on); 2 bad usage or input.";

#[derive(Debug, Args)]
struct Lint {
    /// Kubernetes manifests or user data: files, directories (every .yaml, .yml and .json below them), or - for standard input
    #[arg(value_name = "FILE", required_unless_present = "files")]
    more: Vec<PathBuf>,
    /// The same; may be given several times
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The AMI family of files that are themselves user data [default: judged by how they begin]
    #[arg(long, value_parser = family)]
    ami_family: Option<Family>,
    #[arg(short, long, value_enum, default_value_t)]
    output: report::lint::Format,
    /// Exit with 1 where a finding is at least this sure
    #[arg(long, value_enum, default_value = "likely")]
    fail_on: FailOn,
    #[arg(long, value_enum, default_value_t)]
    color: Color,
    #[cfg(feature = "aws")]
    #[command(flatten)]
    aws: aws::Options,
}

fn family(name: &str) -> Result<Family, String> {
    Family::from_name(name).ok_or_else(|| "expected AL2, AL2023, Bottlerocket, Windows2019, Windows2022, Windows2025 or Custom".to_owned())
}

const USERDATA_EXIT_CODES: &str =
    "Exit codes: 0 read; 1 something is lost or stops the machine (with --fail-on); 2 bad usage or input; 3 the cluster could not be read.";

#[derive(Debug, Args)]
struct Diagnose {
    /// One NodeClaim, Node, NodePool or node class only, in full
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// What `kubectl get … -o yaml` (or json) printed: a file, a directory, or - for standard input; may be given several times. Needs no
    /// cluster
    #[arg(short = 'f', long = "filename", value_name = "FILE", conflicts_with_all = ["kubeconfig", "context"])]
    files: Vec<PathBuf>,
    #[command(flatten)]
    cluster: Cluster,
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
    #[cfg(feature = "aws")]
    #[command(flatten)]
    aws: aws::Options,
    #[command(flatten)]
    thresholds: ThresholdArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FailOn {
    Possible,
    Likely,
    Certain,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Color {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    Always,
    Never,
}

/// How long a machine may wait at a gate before it counts as stuck, in seconds.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Thresholds")]
pub struct ThresholdArgs {
    /// Created, but no instance
    #[arg(long = "launch-threshold", env = "NODEWHY_LAUNCH_THRESHOLD", value_name = "SECONDS", default_value_t = 120)]
    launch: u32,
    /// Launched, but no Node; twice that on Windows
    #[arg(long = "join-threshold", env = "NODEWHY_JOIN_THRESHOLD", value_name = "SECONDS", default_value_t = 300)]
    join: u32,
    /// Node there, but not registered by Karpenter
    #[arg(long = "register-threshold", env = "NODEWHY_REGISTER_THRESHOLD", value_name = "SECONDS", default_value_t = 120)]
    register: u32,
    /// Registered, but not initialized
    #[arg(long = "initialize-threshold", env = "NODEWHY_INITIALIZE_THRESHOLD", value_name = "SECONDS", default_value_t = 300)]
    initialize: u32,
    /// The same where device plugins or drivers are awaited
    #[arg(long = "devices-threshold", env = "NODEWHY_DEVICES_THRESHOLD", value_name = "SECONDS", default_value_t = 600)]
    devices: u32,
    /// Ready before, not Ready now
    #[arg(long = "ready-threshold", env = "NODEWHY_READY_THRESHOLD", value_name = "SECONDS", default_value_t = 300)]
    ready: u32,
    /// Deleted, and still there though nothing is drained any more
    #[arg(long = "terminate-threshold", env = "NODEWHY_TERMINATE_THRESHOLD", value_name = "SECONDS", default_value_t = 3600)]
    terminate: u32,
    /// The least wait at any gate, enough where the cause is proven
    #[arg(long = "proven-threshold", env = "NODEWHY_PROVEN_THRESHOLD", value_name = "SECONDS", default_value_t = 120)]
    proven: u32,
}

impl From<&ThresholdArgs> for Thresholds {
    fn from(args: &ThresholdArgs) -> Self {
        let seconds = |n: u32| TimeDelta::seconds(i64::from(n));
        Self {
            launch: seconds(args.launch),
            join: seconds(args.join),
            register: seconds(args.register),
            initialize: seconds(args.initialize),
            devices: seconds(args.devices),
            ready: seconds(args.ready),
            terminate: seconds(args.terminate),
            proven: seconds(args.proven),
        }
    }
}

/// Bad usage or input.
const BAD_INPUT: u8 = 2;
/// The cluster could not be read.
const NO_CLUSTER: u8 = 3;

/// Runs the command line.
pub fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Diagnose(args) => diagnose(&args),
        Command::Lint(args) => lint(&args),
        Command::Userdata(args) => userdata::run(&args),
        Command::Collect {
            cluster,
            #[cfg(feature = "aws")]
            aws,
        } => collect(
            &cluster,
            #[cfg(feature = "aws")]
            &aws,
        ),
        Command::Run { options, thresholds } => match block_on_threads(OPERATORS_THREADS, run::run(options, (&thresholds).into())) {
            Ok(Ok(())) => ExitCode::SUCCESS,
            Ok(Err(error)) => fail(&error, NO_CLUSTER),
            Err(error) => fail(&error, NO_CLUSTER),
        },
        Command::Crd => match crd::crd_yaml() {
            Ok(yaml) => {
                print(&yaml);
                ExitCode::SUCCESS
            }
            Err(error) => fail(&error, BAD_INPUT),
        },
        Command::Explain { cause } => explain(cause.as_deref()),
    }
}

/// The operator waits far more than it computes, and a second thread is mostly woken to find the work done: a fifth of its processor
/// time (ARCHITECTURE.md).
const OPERATORS_THREADS: usize = 1;
/// Commands read two large lists side by side.
const COMMANDS_THREADS: usize = 2;

fn block_on<F: Future>(future: F) -> std::io::Result<F::Output> {
    block_on_threads(COMMANDS_THREADS, future)
}

fn block_on_threads<F: Future>(threads: usize, future: F) -> std::io::Result<F::Output> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?.block_on(future))
}

/// An error with what caused it: the last link names the address.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |e| e.source());
    causes.fold(error.to_string(), |all, cause| {
        let cause = cause.to_string();
        if all.contains(&cause) { all } else { format!("{all}: {cause}") }
    })
}

fn fail(error: &dyn std::fmt::Display, code: u8) -> ExitCode {
    complain(&error.to_string());
    ExitCode::from(code)
}

fn lint(args: &Lint) -> ExitCode {
    let paths: Vec<PathBuf> = args.files.iter().chain(&args.more).cloned().collect();
    let mut files = lint::Files::default();
    let summary = dump::load(&paths, &mut files);
    for complaint in &summary.complaints {
        complain(&complaint.to_string());
    }
    #[cfg(feature = "aws")]
    if let Err(error) = ask_aws_about_images(&args.aws, &mut files) {
        return fail(&error, BAD_INPUT);
    }
    let report = lint::lint(files, args.ami_family);
    for note in &report.notes {
        complain(note);
    }
    if report.looked_at == 0 {
        return fail(&"nothing to lint: no EC2NodeClass, NodePool, ConfigMap kube-system/aws-auth or user data could be read", BAD_INPUT);
    }
    match report::lint::render(&report.findings, args.output, colour(args.color)) {
        Ok(text) => print(&text),
        Err(error) => return fail(&error, BAD_INPUT),
    }
    let least = if args.fail_on == FailOn::Certain { lint::Level::Error } else { lint::Level::Warning };
    let failed = report.findings.iter().any(|finding| finding.level >= least);
    ExitCode::from(if summary.complaints.is_empty() { u8::from(failed) } else { BAD_INPUT })
}

/// Asks EC2 about the images that the classes of the files select; what it shows counts as the class's status where that is not here.
#[cfg(feature = "aws")]
fn ask_aws_about_images(options: &aws::Options, files: &mut lint::Files) -> Result<(), String> {
    if !options.ask {
        return Ok(());
    }
    let mut aws = Aws::new(options, &World::default()).map_err(|error| error.to_string())?;
    let now = Utc::now();
    let asked = block_on(async {
        let mut told = Vec::new();
        for class in files.classes_mut().filter(|class| class.is_ec2()) {
            if class.status.amis.is_empty() {
                let by_id = class.spec.ami_selector_terms.iter().filter_map(|term| term.id.clone());
                class.status.amis = by_id.map(|id| Ami { id, ..Ami::default() }).collect();
                for (ami, observation) in aws.selected(&class.spec.ami_selector_terms, now).await? {
                    class.status.amis.push(ami);
                    told.push(observation);
                }
            }
            let images = class.status.amis.iter().map(|ami| Question::Image(ami.id.clone()));
            let unknown = images.filter(|question| !told.iter().any(|answer| answer.about == question.about()));
            told.extend(aws.answer(unknown.collect(), now).await);
        }
        Ok(told)
    });
    let told: Vec<AwsObservation> = asked.map_err(|error| error.to_string()).flatten()?;
    for answer in &told {
        if let Answer::Refused(refusal) = &answer.answer {
            complain(&format!("{}: {refusal}", answer.about));
        }
    }
    files.told(told);
    Ok(())
}

fn diagnose(args: &Diagnose) -> ExitCode {
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
    let mut world = World::default();
    let thresholds = Thresholds::from(&args.thresholds);
    if let Err(error) = load(&args.cluster, &mut world, now, &thresholds, &mut |_, _| ()) {
        return fail(&error, NO_CLUSTER);
    }
    say_karpenter(&world);
    #[cfg(feature = "aws")]
    if let Err(error) = ask_aws(&args.aws, &mut world, now, &thresholds) {
        return fail(&error, BAD_INPUT);
    }
    conclude(args, &world, now)
}

/// Asks AWS what is open, where the user wants that; gives the answers.
#[cfg(feature = "aws")]
fn ask_aws(options: &aws::Options, world: &mut World, now: DateTime<Utc>, thresholds: &Thresholds) -> Result<Vec<AwsObservation>, String> {
    if !options.ask {
        return Ok(Vec::new());
    }
    let mut aws = Aws::new(options, world).map_err(|error| error.to_string())?;
    let answers = block_on(aws::ask(&mut aws, world, now, thresholds)).map_err(|error| error.to_string())?;
    if !answers.is_empty() {
        complain(&format!("asked AWS about {} things in {}", answers.len(), aws.region()));
    }
    if aws.is_spent() {
        complain("not all questions to AWS fit in one minute; --aws-calls-per-minute permits more");
    }
    Ok(answers)
}

/// Reads the cluster; says what could not be read, and fails where nothing could.
fn load(
    cluster: &Cluster,
    world: &mut World,
    now: DateTime<Utc>,
    thresholds: &Thresholds,
    seen: &mut (dyn FnMut(&Raw, &ApiResource) + Send),
) -> Result<(), String> {
    let loaded = block_on(async {
        let client = cluster.client().await.map_err(|e| e.to_string())?;
        live::load(&client, world, now, thresholds, seen).await.map_err(|e| format!("the cluster does not answer: {}", chain(&e)))
    });
    loaded.map_err(|e| e.to_string())??.iter().for_each(|c| complain(c));
    world.missing(Input::Nodes).map_or(Ok(()), |why| Err(format!("nothing to judge: Nodes cannot be read ({why})")))
}

fn collect(cluster: &Cluster, #[cfg(feature = "aws")] options: &aws::Options) -> ExitCode {
    let (mut objects, mut world, now) = (Vec::new(), World::default(), Utc::now());
    let mut keep = |object: &Raw, resource: &ApiResource| objects.extend(object.whole(resource).ok().map(collect::disclosed));
    if let Err(error) = load(cluster, &mut world, now, &Thresholds::default(), &mut keep) {
        return fail(&error, NO_CLUSTER);
    }
    #[cfg(feature = "aws")]
    match ask_aws(options, &mut world, now, &Thresholds::default()) {
        Ok(answers) => objects.extend(answers.iter().map(aws::document)),
        Err(error) => return fail(&error, BAD_INPUT),
    }
    print(&collect::list(&objects));
    ExitCode::SUCCESS
}

fn of_dump(args: &Diagnose) -> ExitCode {
    let mut world = World::default();
    let summary = dump::load(&args.files, &mut world);
    for complaint in &summary.complaints {
        complain(&complaint.to_string());
    }
    if world.subjects().next().is_none() {
        complain(
            "nothing to judge: no NodeClaim, Node, NodePool or EC2NodeClass could be read; give what kubectl get -o yaml prints of them",
        );
        return ExitCode::from(BAD_INPUT);
    }
    let now = match (args.now, world.newest_time()) {
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
    say_karpenter(&world);
    #[cfg(feature = "aws")]
    if let Err(error) = ask_aws(&args.aws, &mut world, now, &Thresholds::from(&args.thresholds)) {
        return fail(&error, BAD_INPUT);
    }
    let code = conclude(args, &world, now);
    if summary.complaints.is_empty() { code } else { ExitCode::from(BAD_INPUT) }
}

fn say_karpenter(world: &World) {
    match world.karpenter() {
        Some(karpenter) => complain(&format!("Karpenter {} ({})", karpenter.version, karpenter.source)),
        None => complain("the version of Karpenter is not known: its Deployment is not here"),
    }
}

fn conclude(args: &Diagnose, world: &World, now: DateTime<Utc>) -> ExitCode {
    let thresholds = Thresholds::from(&args.thresholds);
    let diagnoses = match args.names.first() {
        None => diagnose::diagnose(world, now, &thresholds),
        Some(name) => match one(world, name, now, &thresholds) {
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
    match report::render(diagnoses, Style { format: args.output, colour: colour(args.color), now }) {
        Ok(text) => print(&text),
        Err(error) => {
            complain(&error.to_string());
            return ExitCode::from(BAD_INPUT);
        }
    }
    ExitCode::from(u8::from(failed))
}

/// The diagnosis of one name; says on stderr how a machine without one fares.
fn one(world: &World, name: &str, now: DateTime<Utc>, thresholds: &Thresholds) -> Result<Vec<NodeDiagnosis>, String> {
    let named = name.rsplit('/').next().unwrap_or(name);
    let subjects: Vec<Subject> = match (world.claim(named), world.node(named)) {
        (Some(_), _) => vec![Subject::Claim(named.to_owned())],
        (None, Some(node)) => {
            vec![world.claim_of_node(node).map_or_else(|| Subject::Node(named.to_owned()), |c| Subject::Claim(c.name().to_owned()))]
        }
        (None, None) => {
            let classes =
                world.classes().filter(|c| c.class.name() == named).map(|c| Subject::Class(c.class.kind.clone(), named.to_owned()));
            classes.chain(world.pool(named).map(|_| Subject::Pool(named.to_owned()))).collect()
        }
    };
    if subjects.is_empty() {
        return Err(format!("no NodeClaim, Node, NodePool or node class is called {named}"));
    }
    let mut diagnoses = Vec::new();
    for subject in subjects {
        match diagnose::judge(world, &subject, now, thresholds) {
            Judgement::Sick(diagnosis, _) => diagnoses.push(*diagnosis),
            Judgement::Waiting(Some(until)) => {
                complain(&format!(
                    "{named} waits at a gate, as machines do; it counts as stuck from {}",
                    until.to_rfc3339_opts(SecondsFormat::Secs, true)
                ));
            }
            Judgement::Waiting(None) | Judgement::Healthy => complain(&format!("nothing is wrong with {named}")),
        }
    }
    Ok(diagnoses)
}

fn explain(cause: Option<&str>) -> ExitCode {
    let Some(cause) = cause else {
        let width = rules::ALL.iter().map(|r| r.cause.len()).max().unwrap_or(0);
        let lines: Vec<String> = rules::ALL.iter().map(|r| format!("{:width$}  {}", r.cause, r.summary)).collect();
        print(&(lines.join("\n") + "\n"));
        return ExitCode::SUCCESS;
    };
    let page =
        if cause.eq_ignore_ascii_case(rules::unknown::CAUSE) { Some(rules::unknown::PAGE) } else { rules::by_cause(cause).map(|r| r.page) };
    let Some(page) = page else {
        complain(&format!("no cause is called {cause}; nodewhy explain lists them"));
        return ExitCode::from(BAD_INPUT);
    };
    print(page);
    ExitCode::SUCCESS
}

fn colour(wish: Color) -> bool {
    match wish {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()),
    }
}

/// A closed pipe (`nodewhy … | head`) is no error.
fn print(text: &str) {
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

fn complain(message: &str) {
    let _ = writeln!(std::io::stderr().lock(), "nodewhy: {message}");
}
