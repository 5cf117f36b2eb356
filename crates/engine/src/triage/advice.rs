//! Commands that stop a NodePool from launching nodes that fail. You run them: nodewhy itself changes no NodePool.

use crate::api::pool_machines::PoolMachines;
use crate::api::{FixStep, Risk};
use crate::cluster_state::ClusterState;
use crate::cluster_state::class_members::ClassMembers;
use crate::explain::commands;
use crate::objects::{NodeClass, NodePool};
use chrono::{DateTime, Utc};
use serde_json::json;

/// Failed launches before a stop is recommended. One alone says little about the next.
const IN_VAIN: u32 = 2;
/// Maximum number of pinned images. The class of a NodePool has one for each architecture and accelerator.
const IMAGES: usize = 5;

const BACK: &str = "After the fix, allow launches again";

/// Fix steps for a NodePool with an incident since `since`. `before` are the earlier recommended steps. No steps if a
/// machine has joined since.
pub(super) fn steps(
    cluster: &ClusterState,
    pool: &str,
    machines: &PoolMachines,
    since: DateTime<Utc>,
    before: &[FixStep],
) -> Vec<FixStep> {
    let joined = machines.last_joined.as_ref().is_some_and(|last| last.at > since);
    let Some(pool) = cluster.pool(pool).filter(|_| machines.failed_launches >= IN_VAIN && !joined) else {
        return Vec::new();
    };
    let class = &pool.spec.template.spec.node_class_ref;
    let of_class = cluster.class(&class.kind, &class.name).zip(cluster.class_members(&class.kind, &class.name));
    let pinned = of_class.and_then(|(facts, members)| pin(&facts.class, members));
    pinned.into_iter().chain(limit(pool, before)).collect()
}

fn step(text: String, command: String) -> FixStep {
    FixStep { text: text.into(), command: Some(command), risk: Risk::Mutating }
}

/// Pins the images of the machines that joined, if new nodes start with an image that no machine has joined with.
fn pin(class: &NodeClass, members: &ClassMembers) -> Option<FixStep> {
    let (_, images) = members.tallies().find(|(dimension, _)| dimension.what == "image")?;
    let mut worked: Vec<_> = images
        .iter()
        .filter(|(_, tally)| tally.joined > 0)
        .map(|(image, tally)| (tally.joined, image.as_str()))
        .collect();
    let is_new = |image: &str| images.get(image).is_none_or(|tally| tally.joined == 0);
    let changed = class.status.amis.iter().any(|ami| is_new(&ami.id))
        && worked.iter().any(|(_, image)| class.status.amis.iter().all(|ami| ami.id != *image));
    if !class.is_ec2() || !changed {
        return None;
    }
    worked.sort_by(|one, other| other.cmp(one));
    let worked: Vec<&str> = worked.into_iter().take(IMAGES).map(|(_, image)| image).collect();
    let text = format!(
        "If the image is what has changed: pin the images of the nodes of {} {} that joined",
        class.kind,
        class.name()
    );
    Some(step(text, commands::pin(class, &worked)))
}

/// With a CPU limit of 0 Karpenter launches nothing, and running nodes stay. A static NodePool accepts no CPU limit.
/// Source: karpenter v1.14.1 pkg/controllers/provisioning/scheduling/scheduler.go `filterByRemainingResources`,
/// pkg/apis/v1/nodepool.go "only 'limits.nodes' is supported on static NodePools".
fn limit(pool: &NodePool, recommended: &[FixStep]) -> Vec<FixStep> {
    let before = pool.spec.limits.get("cpu");
    if pool.spec.replicas.is_some() {
        return Vec::new();
    }
    if before == Some("0") {
        // The limit is set. Only the recommended step still has the former limit.
        return recommended.iter().filter(|step| step.text == BACK).cloned().collect();
    }
    let patch = |cpu: Option<&str>| {
        let patch = json!({"spec": {"limits": {"cpu": cpu}}});
        format!("kubectl patch nodepool {} --type=merge -p '{patch}'", pool.name())
    };
    vec![
        step("Stop launches until the cause is fixed (running nodes stay)".to_owned(), patch(Some("0"))),
        step(BACK.to_owned(), patch(before)),
    ]
}
