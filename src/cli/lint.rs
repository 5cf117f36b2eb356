//! `nodewhy lint`: what would keep machines from joining, from files or a live cluster.

use super::flags::{AwsFlags, LiveFlags};
use super::{BAD_INPUT, Color, FailOn, NO_CLUSTER, block_on, color, complain, fail, load_and, print};
use crate::ingest::list::Reading;
use crate::ingest::{dump, kustomization};
use crate::report::{self, counted_as};
use aws::questions::Question;
use chrono::Utc;
use clap::Args;
use engine::case::stage::Thresholds;
use engine::cluster_state::ClusterState;
use engine::lint;
use engine::lint::introduced::introduced;
use engine::lint::upgrade::Target;
use engine::objects::input::Object;
use engine::objects::{Ami, Answer, AwsObservation};
use engine::upstream::karpenter::Version;
use readers::userdata::Family;
use std::path::PathBuf;
use std::process::ExitCode;
use std::slice;

pub const EXIT_CODES: &str = "Exit codes: 0 no finding reaches --fail-on; 1 a finding reaches --fail-on; 2 bad usage, \
                              or a node class, NodePool or aws-auth that cannot be read; 3 no cluster could be read.";

#[derive(Debug, Args)]
pub struct Lint {
    /// Check these Kubernetes manifests, user data files or directories. In a directory, nodewhy checks every .yaml,
    /// .yml and .json file below it. - is standard input [default: the objects of the live cluster]
    #[arg(value_name = "FILE", conflicts_with_all = ["kubeconfig", "context"])]
    more: Vec<PathBuf>,
    /// Check this file, directory or - (standard input), like FILE. Repeatable
    #[arg(short = 'f', long = "filename", value_name = "FILE", conflicts_with_all = ["kubeconfig", "context"])]
    files: Vec<PathBuf>,
    /// Report only what NEW introduces: findings that OLD (files or directories as for FILE) does not have
    #[arg(long, num_args = 2, value_names = ["OLD", "NEW"], conflicts_with_all = ["files", "more", "kubeconfig", "context"])]
    diff: Vec<PathBuf>,
    /// The AMI family for files that are plain user data [default: detected from how the file begins]
    #[arg(long, value_parser = family)]
    ami_family: Option<Family>,
    /// The Kubernetes version of the cluster, now or after an upgrade, such as 1.33 [default: the version of the live
    /// cluster; for files, the version in the names of the images]
    #[arg(long, value_parser = minor)]
    kubernetes: Option<u32>,
    /// The Karpenter version of the cluster, now or after an upgrade, such as 1.14 [default: the version of its
    /// Deployment]
    #[arg(long, value_parser = karpenter)]
    karpenter: Option<Version>,
    #[command(flatten)]
    cluster: LiveFlags,
    #[arg(short, long, value_enum, default_value_t)]
    output: report::lint::LintFormat,
    /// Exit with 1 if a finding has at least this confidence
    #[arg(long, value_enum, default_value = "likely")]
    fail_on: FailOn,
    #[arg(long, value_enum, default_value_t)]
    color: Color,
    #[command(flatten)]
    aws: AwsFlags,
}

fn family(name: &str) -> Result<Family, String> {
    Family::from_name(name)
        .ok_or_else(|| "expected AL2, AL2023, Bottlerocket, Windows2019, Windows2022, Windows2025 or Custom".to_owned())
}

/// 33 of 1.33, v1.33 or 1.33.2.
fn minor(version: &str) -> Result<u32, String> {
    let rest = version.strip_prefix('v').unwrap_or(version).strip_prefix("1.");
    let minor = rest.and_then(|rest| rest.split('.').next()?.parse().ok());
    minor.ok_or_else(|| "expected a version such as 1.33".to_owned())
}

/// 1.14, v1.14.1.
fn karpenter(version: &str) -> Result<Version, String> {
    Version::parse(version).ok_or_else(|| "expected a version such as 1.14 or 1.14.1".to_owned())
}

pub fn run(args: &Lint) -> ExitCode {
    if args.files.is_empty() && args.more.is_empty() && args.diff.is_empty() {
        return of_cluster(args);
    }
    let (old, paths) = match &*args.diff {
        [old, new] => (Some(old), vec![new.clone()]),
        _ => (None, args.files.iter().chain(&args.more).cloned().collect()),
    };
    let (mut report, summary) = match linted(args, &paths) {
        Ok(linted) => linted,
        Err(error) => return fail(&error, BAD_INPUT),
    };
    if let Some(old) = old {
        match linted(args, slice::from_ref(old)) {
            Ok((old, read)) if read.complaints.is_empty() => {
                report.findings = introduced(&old.findings, report.findings);
                // Whether all is ready is no question about one change.
                report.upgrade = None;
            }
            Ok((_, read)) => {
                read.complaints.iter().for_each(|complaint| complain(&complaint.to_string()));
                return fail(
                    &format!("{} cannot be read, so nothing can be compared with it", old.display()),
                    BAD_INPUT,
                );
            }
            Err(error) => return fail(&error, BAD_INPUT),
        }
    }
    for complaint in
        summary.complaints.iter().chain(&summary.suspicions).chain(summary.skipped.iter().take(MOST_SKIPPED))
    {
        complain(&complaint.to_string());
    }
    if let Some(more @ 1..) = summary.skipped.len().checked_sub(MOST_SKIPPED) {
        complain(&format!("{more} more files or documents skipped"));
    }
    for note in report.templates.iter().chain(&report.notes) {
        complain(note);
    }
    if report.looked_at == 0 {
        complain(
            "nothing to lint: no EC2NodeClass, NodePool, NodeOverlay, ConfigMap kube-system/aws-auth or user data could be \
             read",
        );
        // A folder may hold no such object. A file that you name was meant to.
        let is_meant = |path: &PathBuf| !path.is_dir();
        if !summary.complaints.is_empty() || (report.is_empty() && paths.iter().any(is_meant)) {
            return ExitCode::from(BAD_INPUT);
        }
    }
    let unread = summary.complaints.len() + report.templates.len();
    if let Some(upgrade) = &mut report.upgrade
        && unread > 0
    {
        upgrade.unknowns.push(format!("nodewhy could not read {}.", counted_as(unread, "text")));
    }
    let code = conclude(args, &report, summary.ignored);
    if summary.complaints.is_empty() { code } else { ExitCode::from(BAD_INPUT) }
}

/// Lints the objects of a live cluster.
fn of_cluster(args: &Lint) -> ExitCode {
    let (now, mut state) = (Utc::now(), ClusterState::default());
    let reading = Reading { state: &mut state, now, thresholds: &Thresholds::default(), seen: &mut |_| () };
    let loaded = load_and(&args.cluster, reading, async |_, _, _| ());
    if let Err(error) = loaded {
        return fail(&error, NO_CLUSTER);
    }
    if let Err(error) = ask_aws_about_images_of(&args.aws, &mut state) {
        return fail(&error, BAD_INPUT);
    }
    let named = Target { kubernetes: args.kubernetes, karpenter: args.karpenter };
    let report = lint::lint_cluster(&mut state, named, now, &|| ());
    report.notes.iter().for_each(|note| complain(note));
    if report.looked_at == 0 {
        complain("nothing to lint: the cluster has no EC2NodeClass, NodePool or ConfigMap kube-system/aws-auth");
    }
    conclude(args, &report, 0)
}

/// Prints the findings; the exit code is that of --fail-on. `unknown` objects are of kinds that no rule reads.
fn conclude(args: &Lint, report: &lint::Report, unknown: usize) -> ExitCode {
    let mut counts = format!("{} checked, {unknown} not known", counted_as(report.looked_at, "object"));
    if !report.templates.is_empty() {
        counts = format!("{counts}, {} not read", counted_as(report.templates.len(), "template"));
    }
    complain(&counts);
    let obstacles = report.upgrade.as_ref().is_some_and(|upgrade| !upgrade.obstacles.is_empty());
    let text = report::lint::render(report, unknown, args.output, color(args.color)).map_err(|error| error.to_string());
    if let Err(error) = text.and_then(|text| print(&text)) {
        return fail(&error, BAD_INPUT);
    }
    let least = if args.fail_on == FailOn::Certain { lint::Level::Error } else { lint::Level::Warning };
    // Obstacles are warnings: they say what Kubernetes and Karpenter support, not what fails.
    let is_blocked = obstacles && args.fail_on != FailOn::Certain;
    ExitCode::from(u8::from(is_blocked || report.findings.iter().any(|finding| finding.level >= least)))
}

/// Reads and lints files and directories.
fn linted(args: &Lint, paths: &[PathBuf]) -> Result<(lint::Report, dump::Summary), String> {
    let mut files = lint::Files::default();
    let summary = dump::load(paths, &mut files);
    files.are_patches(&kustomization::patches(&files.names()));
    ask_aws_about_images(&args.aws, &mut files)?;
    if let Some(minor) = args.kubernetes {
        files.for_kubernetes(minor);
    }
    if let Some(version) = args.karpenter {
        files.for_karpenter(version);
    }
    Ok((lint::lint(files, args.ami_family), summary))
}

/// More skipped files and documents are only counted.
const MOST_SKIPPED: usize = 20;

/// Asks EC2 about the images that the classes of the files select; what it shows counts as the class's status where
/// that is not here.
fn ask_aws_about_images(flags: &AwsFlags, files: &mut lint::Files) -> Result<(), String> {
    let Some(options) = flags.options() else { return Ok(()) };
    let mut aws = aws::Client::new(&options, &ClusterState::default()).map_err(|error| error.to_string())?;
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

/// Asks EC2 about the images that the classes of a cluster use.
fn ask_aws_about_images_of(flags: &AwsFlags, state: &mut ClusterState) -> Result<(), String> {
    let Some(options) = flags.options() else { return Ok(()) };
    let mut aws = aws::Client::new(&options, state).map_err(|error| error.to_string())?;
    let classes = state.classes().map(|facts| &facts.class).filter(|class| class.is_ec2());
    let images = classes.flat_map(|class| &class.status.amis).map(|ami| Question::Image(ami.id.clone()));
    let (questions, now) = (images.collect(), Utc::now());
    let answers = block_on(aws.answer(questions, now)).map_err(|error| error.to_string())?;
    for answer in answers {
        if let Answer::Refused(refusal) = &answer.answer {
            complain(&format!("{}: {refusal}", answer.about));
        }
        state.apply(Object::AwsObservation(answer), now);
    }
    Ok(())
}
