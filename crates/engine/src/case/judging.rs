//! What every judgement starts from: the cluster, the time, and how long is too long.

use super::thresholds::Thresholds;
use crate::cluster_state::ClusterState;
use chrono::{DateTime, Utc};

/// A cluster that is judged at one time. Each function that decides whether something waits for too long takes it.
#[derive(Debug, Clone, Copy)]
pub struct Judging<'w> {
    pub cluster: &'w ClusterState,
    /// The time of the judgement: now, or the time of a dump.
    pub now: DateTime<Utc>,
    pub thresholds: &'w Thresholds,
}

impl<'w> Judging<'w> {
    pub fn new(cluster: &'w ClusterState, now: DateTime<Utc>, thresholds: &'w Thresholds) -> Self {
        Self { cluster, now, thresholds }
    }
}
