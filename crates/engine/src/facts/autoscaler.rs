//! Whether the cluster-autoscaler that marked a Node still runs.

use crate::case::Case;
use crate::cluster_state::memo::Memo;
use crate::objects::Container;
use chrono::{DateTime, Utc};

/// What happened to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Autoscaler {
    /// One that ran at that time still runs.
    Runs,
    /// All that run began later; the first of them.
    Replaced { pod: String, at: DateTime<Utc> },
    /// nodewhy read no pod of it.
    Unseen,
}

/// Its pods, and since when each runs without a break.
static PODS: Memo<Vec<(String, DateTime<Utc>)>> = Memo::new("pods of cluster-autoscaler");

/// Sources: charts and manifests of kubernetes/autoscaler, cluster-autoscaler 1.33 Makefile (`IMAGE`).
fn is_autoscaler(containers: &[Container]) -> bool {
    containers.iter().any(|c| c.image.contains("cluster-autoscaler"))
}

pub(crate) fn autoscaler(case: &Case, marked: DateTime<Utc>) -> Autoscaler {
    let cluster = case.cluster;
    let pods = cluster.once(&PODS, "", || {
        let pods = cluster.pods().filter(|pod| is_autoscaler(&pod.spec.containers));
        let lives = pods.filter(|pod| !pod.has_ended());
        let begun = lives.filter_map(|pod| {
            let namespace = pod.metadata.namespace.as_deref().unwrap_or("default");
            let name = format!("{namespace}/{}", pod.metadata.name);
            Some((name, pod.stopped_at().max(pod.metadata.creation_timestamp)?))
        });
        begun.collect()
    });
    match pods.iter().min_by_key(|(name, at)| (*at, name)) {
        Some((_, at)) if *at <= marked => Autoscaler::Runs,
        Some((pod, at)) => Autoscaler::Replaced { pod: pod.clone(), at: *at },
        None => Autoscaler::Unseen,
    }
}
