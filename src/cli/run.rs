//! `nodewhy run`: the operator.

use super::duration::seconds;
use super::flags::{AwsFlags, RemediationFlags, ThresholdFlags};
use super::{BAD_INPUT, NO_CLUSTER, block_on_threads, fail};
use crate::kube_client::ClusterFlags;
use crate::operator::admission::{AdmissionOptions, Deny};
use crate::operator::{self, LogFormat, NodeConditionMode, OperatorOptions};
use chrono::TimeDelta;
use clap::Args;
use engine::case::stage::Thresholds;
use engine::remediation::Limits;
use engine::triage::Keep;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, Clone, Args)]
pub struct Run {
    #[command(flatten)]
    cluster: ClusterFlags,
    /// Address for /metrics, /livez and /readyz
    #[arg(long, value_name = "ADDRESS", default_value = "[::]:8080")]
    listen: SocketAddr,
    /// Serve the page of `diagnose -o html`, always current. It has no login [default ADDRESS: 127.0.0.1:8081]
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, require_equals = true, default_missing_value = "127.0.0.1:8081")]
    page: Option<SocketAddr>,
    /// Format of log lines
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
    /// How long to keep a NodeDiagnosis after its problem is over
    #[arg(long, env = "NODEWHY_RETENTION", value_name = "DURATION", default_value = "24h", value_parser = seconds)]
    retention: u32,
    /// How many ended NodeDiagnoses to keep per cause, NodePool and node class (`recurrences` counts the rest)
    #[arg(long, env = "NODEWHY_HISTORY_LIMIT", value_name = "COUNT", default_value_t = 10)]
    history_limit: usize,
    /// Write only while this replica holds the Lease. Needed for more than one replica
    #[arg(long, env = "NODEWHY_LEADER_ELECT")]
    leader_elect: bool,
    /// Namespace of the Lease [default: the namespace of the pod or of the kubeconfig's context]
    #[arg(long, env = "POD_NAMESPACE", value_name = "NAMESPACE")]
    lease_namespace: Option<String>,
    /// Name of this replica in the Lease and in Events. Each replica needs its own [default: host name and process id]
    #[arg(long, env = "POD_NAME", value_name = "NAME")]
    identity: Option<String>,
    /// Read the logs of pods in these namespaces, if an open verdict points to them
    #[arg(long, env = "NODEWHY_POD_LOGS", value_name = "NAMESPACE", value_delimiter = ',')]
    pod_logs: Vec<String>,
    /// Write each verdict to its Node too, as the condition NodewhyDiagnosed, for tools that act on conditions
    #[arg(long, env = "NODEWHY_NODE_CONDITION", value_enum, default_value_t = NodeConditionMode::Off, value_name = "MODE")]
    node_condition: NodeConditionMode,
    /// Serve an admission webhook on this port: it warns at `kubectl apply` about what `nodewhy lint` finds
    #[arg(long, env = "NODEWHY_ADMISSION_PORT", value_name = "PORT")]
    admission_port: Option<u16>,
    /// Folder with the webhook's tls.crt and tls.key, read again when they change [default: nodewhy makes its own]
    #[arg(long, env = "NODEWHY_ADMISSION_CERTIFICATES", value_name = "DIR")]
    admission_certificates: Option<PathBuf>,
    /// Which objects the webhook refuses. It warns about all others
    #[arg(long, env = "NODEWHY_ADMISSION_DENY", value_enum, default_value_t = Deny::Nothing, value_name = "WHAT")]
    admission_deny: Deny,
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
    fn admission(&self) -> Option<AdmissionOptions> {
        let certificates = self.admission_certificates.clone();
        Some(AdmissionOptions { port: self.admission_port?, certificates, deny: self.admission_deny })
    }

    fn options(&self) -> OperatorOptions {
        OperatorOptions {
            cluster: self.cluster.clone(),
            listen: self.listen,
            page: self.page,
            admission: self.admission(),
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
