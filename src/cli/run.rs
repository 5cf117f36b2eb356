//! `nodewhy run`: the operator.

use super::duration::seconds;
use super::flags::{AwsFlags, RemediationFlags, ThresholdFlags};
use super::{BAD_INPUT, NO_CLUSTER, block_on_threads, fail};
use crate::kube_client::ClusterFlags;
use crate::operator::{self, LogFormat, NodeConditionMode, OperatorOptions};
use chrono::TimeDelta;
use clap::Args;
use engine::case::stage::Thresholds;
use engine::remediation::Limits;
use engine::triage::Keep;
use std::net::SocketAddr;
use std::process::ExitCode;

#[derive(Debug, Clone, Args)]
pub struct Run {
    #[command(flatten)]
    cluster: ClusterFlags,
    /// Address of /metrics, /livez and /readyz
    #[arg(long, value_name = "ADDRESS", default_value = "[::]:8080")]
    listen: SocketAddr,
    /// Serve the page of `diagnose -o html`, kept up to date, without a login [ADDRESS, where left out: 127.0.0.1:8081]
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, require_equals = true, default_missing_value = "127.0.0.1:8081")]
    page: Option<SocketAddr>,
    /// Log lines for people or for machines
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
    /// How long a diagnosis is kept after it has ended
    #[arg(long, env = "NODEWHY_RETENTION", value_name = "DURATION", default_value = "24h", value_parser = seconds)]
    retention: u32,
    /// Diagnoses that ended, kept for each cause, NodePool and node class; `recurrences` counts the rest
    #[arg(long, env = "NODEWHY_HISTORY_LIMIT", value_name = "COUNT", default_value_t = 10)]
    history_limit: usize,
    /// Write only while holding the Lease, for more than one replica
    #[arg(long, env = "NODEWHY_LEADER_ELECT")]
    leader_elect: bool,
    /// Namespace of the Lease [default: the pod's, or the kubeconfig's]
    #[arg(long, env = "POD_NAMESPACE", value_name = "NAMESPACE")]
    lease_namespace: Option<String>,
    /// What this replica calls itself in the Lease and in Events; different for each [default: host name and process]
    #[arg(long, env = "POD_NAME", value_name = "NAME")]
    identity: Option<String>,
    /// Read the logs of the pods that an open verdict points to, in these namespaces
    #[arg(long, env = "NODEWHY_POD_LOGS", value_name = "NAMESPACE", value_delimiter = ',')]
    pod_logs: Vec<String>,
    /// Say each verdict in a condition of its Node too, `NodewhyDiagnosed`, for those who act on conditions
    #[arg(long, env = "NODEWHY_NODE_CONDITION", value_enum, default_value_t = NodeConditionMode::Off, value_name = "MODE")]
    node_condition: NodeConditionMode,
    // Their headings would go on over what follows.
    #[command(flatten)]
    aws: AwsFlags,
    #[command(flatten)]
    remediation: RemediationFlags,
    #[command(flatten)]
    thresholds: ThresholdFlags,
}

/// The operator waits far more than it computes, and a second thread is mostly woken to find the work done: a fifth of
/// its processor time (docs/adr/0007-one-thread-for-the-operator.md).
const THREADS: usize = 1;

pub fn run(args: &Run) -> ExitCode {
    if let Some(refusal) = args.remediation.refusal(args.retention) {
        return fail(&refusal, BAD_INPUT);
    }
    let thresholds = Thresholds::from(&args.thresholds);
    match block_on_threads(THREADS, operator::run(args.options(), thresholds)) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) => fail(&error, NO_CLUSTER),
        Err(error) => fail(&error, NO_CLUSTER),
    }
}

impl Run {
    fn options(&self) -> OperatorOptions {
        OperatorOptions {
            cluster: self.cluster.clone(),
            listen: self.listen,
            page: self.page,
            log_format: self.log_format,
            aws: self.aws.options(),
            pod_logs: self.pod_logs.iter().filter(|namespace| !namespace.is_empty()).cloned().collect(),
            remediation: Limits::from(&self.remediation),
            node_condition: self.node_condition,
            keep: Keep { retention: TimeDelta::seconds(i64::from(self.retention)), history: self.history_limit },
            leader_elect: self.leader_elect,
            lease_namespace: self.lease_namespace.clone(),
            identity: self.identity.clone(),
        }
    }
}
