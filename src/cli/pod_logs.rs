//! What pods log that open verdicts point to, read for a command that has just judged.

use crate::ingest::pod_logs::{PodLogLimits, PodLogs, read};
use chrono::{DateTime, Utc};
use engine::case::judging::Judging;
use engine::case::stage::Thresholds;
use engine::cluster_state::ClusterState;
use engine::diagnose::log_source;
use engine::diagnose::survey::Survey;
use engine::objects::MachineLog;
use engine::objects::input::Object;
use kube::Client;
use std::collections::BTreeMap;

/// The logs that were read, by name.
#[derive(Debug, Default)]
pub struct KnownLogs(BTreeMap<String, MachineLog>);

impl KnownLogs {
    /// Reads the logs that open verdicts point to, and takes them into the state. Nothing is asked where no verdict is
    /// open. One that says what it said before stays as it was: later lines of the same are no other verdict.
    pub async fn take_into(
        &mut self,
        client: &Client,
        state: &mut ClusterState,
        survey: &Survey,
        now: DateTime<Utc>,
        thresholds: &Thresholds,
    ) -> PodLogs {
        let limits = PodLogLimits::default();
        let sources = log_source::of_survey(Judging::new(state, now, thresholds), survey, limits.pods);
        let mut read = if sources.is_empty() { PodLogs::default() } else { read(client, &sources, limits, now).await };
        for log in &mut read.logs {
            let known = self.0.entry(log.metadata.name.to_string()).or_insert_with(|| log.clone());
            if log.journey.tells_no_more_than(&known.journey) {
                log.clone_from(known);
            } else {
                known.clone_from(log);
            }
            state.apply(Object::MachineLog(log.clone()), now);
        }
        self.0.retain(|name, _| read.logs.iter().any(|log| *log.metadata.name == **name));
        read
    }
}
