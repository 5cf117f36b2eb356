//! The pool from which Cilium's operator assigns no addresses: the operator does not know it, or it has no free range.

use crate::explain::logged;
use crate::rules::prelude::*;
use logs::fact::Fact;
use logs::table::CILIUM_OPERATOR;

/// The pool that the operator's line names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unserved<'f> {
    pool: &'f str,
    is_full: bool,
}

pub(super) fn unserved(fact: &Fact) -> Option<Unserved<'_>> {
    let named = |key: &str| fact.names.get(key).filter(|_| fact.program == CILIUM_OPERATOR);
    let (named, is_full) = named("unknown_pool").map(|pool| (pool, false)).or(named("full_pool").map(|p| (p, true)))?;
    // The errors of several pools are in one line, and the last is this one.
    let pool = named.rsplit('"').next().unwrap_or(named);
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    (!pool.is_empty() && pool.chars().all(is_name)).then_some(Unserved { pool, is_full })
}

impl Unserved<'_> {
    /// The finding with what to do about the pool. `operator` is the operator's Deployment.
    pub(super) fn explain(self, case: &Case, finding: Finding, operator: Option<Blame>) -> Finding {
        let pool = self.pool;
        let finding = finding
            .inspect("See which pools exist, and their ranges", "kubectl get ciliumpodippools -o yaml".to_owned());
        let of_pool = Blame::object("cilium.io/v2alpha1", "CiliumPodIPPool", pool);
        if self.is_full {
            return finding
                .fix(format!(
                    "Add a range to CiliumPodIPPool {pool}, or delete CiliumNodes whose nodes are gone, because they \
                     keep their ranges. This disrupts nothing."
                ))
                .blaming(of_pool.field("spec"));
        }
        match operator.zip(blind_version(case)) {
            Some((operator, version)) => restarting(finding, pool, operator, version),
            None => finding
                .fix(format!(
                    "Create CiliumPodIPPool {pool}, or correct the name of the pool that the node requests. If the \
                     pool exists, restart the operator (kubectl rollout restart). This disrupts nothing."
                ))
                .blaming(of_pool),
        }
    }
}

fn restarting(finding: Finding, pool: &str, operator: Blame, version: &str) -> Finding {
    let restart = operator
        .namespace
        .as_ref()
        .map(|namespace| format!("kubectl rollout restart -n {namespace} deployment/{}", operator.name));
    finding
        .adding(&format!(
            "Version {version} of the operator may see no pool that was created after the operator started."
        ))
        .fix(format!(
            "If CiliumPodIPPool {pool} exists, restart the operator: it then knows the pool. If it does not exist, \
             create it first. Later versions see new pools without a restart."
        ))
        .change("Restart the operator, if the pool exists", restart)
        .blaming(operator)
}

/// The version of the operator, if it may stop watching pools once it has started. The last pre-releases may not.
/// Sources: cilium/cilium#45980, #46034; cilium 13dcc1677e operator/pkg/ipam/multipool.go `startIPPoolAllocator`, which
/// uses the context of the start hook.
fn blind_version<'w>(case: &Case<'w>) -> Option<&'w str> {
    const BLIND: &str = "v1.20.0-pre.";
    let pod = logged::speaker(case, CILIUM_OPERATOR)?;
    let image = pod.spec.containers.first()?.image.split('@').next()?;
    let (_, tag) = image.rsplit_once(':')?;
    tag.starts_with(BLIND).then_some(tag)
}
