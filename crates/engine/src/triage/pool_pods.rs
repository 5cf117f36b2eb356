//! The NodePools whose verdict depends on the pods without a Node: those that Karpenter calls full, and those whose
//! launches are refused.

use crate::case::pool_wait;
use crate::cluster_state::ClusterState;
use crate::cluster_state::memo::Memo;
use crate::objects::NodePool;
use chrono::{DateTime, Utc};
use std::sync::Arc;

/// Since when the pods count for this NodePool.
pub(super) fn since(cluster: &ClusterState, pool: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let refused = pool_wait::refused_since(cluster, pool, now);
    cluster.full_since(pool, now).into_iter().chain(refused).min()
}

/// The names of all of them.
pub(super) fn pools(cluster: &ClusterState, now: DateTime<Utc>) -> Arc<Vec<String>> {
    static POOLS: Memo<Vec<String>> = Memo::new("NodePools whose verdict depends on pods without a Node");
    cluster.once_at(&POOLS, now, || {
        let refused =
            cluster.pools().map(NodePool::name).filter(|pool| pool_wait::refused_since(cluster, pool, now).is_some());
        cluster.full_pools(now).chain(refused).map(str::to_owned).collect()
    })
}
