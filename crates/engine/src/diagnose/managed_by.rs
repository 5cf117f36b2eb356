//! The owner of an object that you have to change: an operator rewrites the objects that it owns.

use crate::api::{Blame, FixStep, Risk};
use crate::case::Case;

/// The same change at the owner of a blamed DaemonSet, if it has one: an `Installation`, a `ClusterPolicy`.
pub fn step(case: &Case, blame: Option<&Blame>) -> Option<FixStep> {
    let blame = blame.filter(|blame| blame.kind == "DaemonSet")?;
    let set = case.cluster.daemon_sets().find(|set| {
        set.metadata.name == *blame.name
            && blame.namespace.as_deref().is_none_or(|n| set.metadata.namespace.as_deref() == Some(n))
    })?;
    let owner = set.metadata.owner_references.first()?;
    let kind = owner.kind.to_ascii_lowercase();
    // Kinds of one name are of several vendors: `clusterpolicy.v1.nvidia.com`.
    let resource = match owner.api_version.split_once('/') {
        Some((group, version)) => format!("{kind}.{version}.{group}"),
        None => kind,
    };
    let namespace = set.metadata.namespace.as_deref().map_or_else(String::new, |n| format!(" -n {n}"));
    Some(FixStep {
        text: format!(
            "Or make the change there, if its operator would revert it: {} {} owns DaemonSet {}",
            owner.kind, owner.name, blame.name
        )
        .into(),
        command: Some(format!("kubectl edit {resource}{namespace} {}", owner.name)),
        risk: Risk::Mutating,
    })
}
