//! The arguments of `nodewhy diagnose`, and what follows from them for one cluster, several, and one that is watched.

use super::duration::seconds;
use super::flags::{AwsFlags, LiveFlags, ThresholdFlags};
use super::pod_logs::KnownLogs;
use super::{Color, FailOn, color, width};
use crate::report::{Format, Style};
use chrono::{DateTime, Utc};
use clap::Args;
use engine::api::judged::JudgedBy;
use engine::case::stage::Thresholds;
use engine::cluster_state::ClusterState;
use engine::diagnose::survey::Survey;
use kube::Client;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct Diagnose {
    /// Show only this NodeClaim, Node, instance id, providerID, NodePool or node class, with all details
    #[arg(value_name = "NAME")]
    pub(super) names: Vec<String>,
    /// Read objects from this file, this directory or - (standard input), as `kubectl get … -o yaml` (or json) prints
    /// them. Repeatable. Needs no cluster
    #[arg(short = 'f', long = "filename", value_name = "FILE", conflicts_with_all = ["kubeconfig", "context"])]
    pub(super) files: Vec<PathBuf>,
    /// Read logs of nodes and components from this file, directory, .tar, .tar.gz (EKS log collector, Bottlerocket
    /// logdog) or - (standard input). Repeatable. Works with -f, or alone
    #[arg(long, value_name = "PATH", conflicts_with_all = ["kubeconfig", "context"])]
    pub(super) logs: Vec<PathBuf>,
    /// Do not read pod logs. By default nodewhy reads the last log lines of the pods that a verdict points to, if your
    /// permissions allow it
    #[arg(long, conflicts_with_all = ["files", "logs"])]
    pub(super) no_logs: bool,
    #[command(flatten)]
    pub(super) cluster: LiveFlags,
    /// Read these contexts of the kubeconfig in parallel and print one answer. If one cannot be read, the answer names
    /// it and the reason, and covers the others
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', conflicts_with_all = ["context", "files", "logs", "watch"])]
    pub(super) contexts: Vec<String>,
    /// Like --contexts, for every context. Contexts that differ only in namespace are read once
    #[arg(long, conflicts_with_all = ["contexts", "context", "files", "logs", "watch"])]
    pub(super) all_contexts: bool,
    #[arg(short, long, value_enum, default_value_t)]
    pub(super) output: Format,
    /// Also show evidence, ruled-out causes and open questions (implied by NAME)
    #[arg(long)]
    pub(super) details: bool,
    /// Judge as of this time, for example 2026-01-31T12:00:00Z [default: now. For a dump: the time that `collect` wrote
    /// into it, or an estimate from its kubelets' reports and the file's date]
    #[arg(long)]
    pub(super) now: Option<DateTime<Utc>>,
    /// Exit with 1 if a node is stuck and its verdict has at least this confidence, or if an object could not be read
    #[arg(long, value_enum)]
    pub(super) fail_on: Option<FailOn>,
    /// Look again at this interval [default: 30s] and print the answer again when a verdict changes. JSON prints one
    /// line per answer, YAML prints one document per answer. Ctrl-C ends it. With --fail-on, it also ends
    /// when an answer would exit with 1
    #[arg(short, long, value_name = "DURATION", num_args = 0..=1, require_equals = true, default_missing_value = "30s", value_parser = seconds)]
    pub(super) watch: Option<u32>,
    #[arg(long, value_enum, default_value_t)]
    pub(super) color: Color,
    #[command(flatten)]
    pub(super) aws: AwsFlags,
    #[command(flatten)]
    pub(super) thresholds: ThresholdFlags,
}

impl Diagnose {
    /// Why a second look would see what the first one saw, or cost too much.
    pub(super) fn unwatchable(&self) -> Option<&'static str> {
        if !self.files.is_empty() || !self.logs.is_empty() {
            Some("--watch needs a cluster: a dump (-f) and logs (--logs) do not change")
        } else if self.now.is_some() {
            Some("--watch judges at the time of each look: remove --now")
        } else if self.aws.options().is_some() {
            Some(
                "--watch does not ask AWS, because each look would: remove --aws (NODEWHY_AWS), or use `nodewhy run \
                 --aws`",
            )
        } else if self.output == Format::Html {
            Some("--watch prints many answers, and -o html writes one page: choose another format")
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
                "no NodeClaim, Node, NodePool, node class or instance is called {name}; if it is gone, `nodewhy \
                 history {name}` shows what `nodewhy run` recorded"
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

/// The version of Karpenter, in a sentence.
pub(super) fn karpenter(state: &ClusterState) -> String {
    match state.karpenter() {
        Some(karpenter) => format!("Karpenter {} ({})", karpenter.version, karpenter.source),
        None => "the version of Karpenter is not known: nodewhy did not read its Deployment".to_owned(),
    }
}
