//! What keeps a NodePool from launching in vain, as commands to read and to run: nodewhy itself changes no NodePool.

use crate::api::pool_machines::PoolMachines;
use crate::api::{FixStep, Risk};
use crate::cluster_state::ClusterState;
use crate::cluster_state::class_members::ClassMembers;
use crate::objects::{NodeClass, NodePool};
use crate::rules::shared::commands;
use chrono::{DateTime, Utc};
use serde_json::json;

/// That one machine did not join says little of the next.
const IN_VAIN: u32 = 2;
/// So many images are pinned at most; the class of a NodePool has one for each architecture and accelerator.
const IMAGES: usize = 5;

const BACK: &str = "Once it is mended, let it launch again";

/// For a NodePool whose incident began at `since`, and what was recommended before; nothing where a machine has joined
/// meanwhile.
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

/// The images of the machines that joined, where new machines start with one that no machine has joined with.
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
        "If the image is what has changed: pin what the machines of {} {} have that joined",
        class.kind,
        class.name()
    );
    Some(step(text, commands::pin(class, &worked)))
}

/// No launch fits into a limit of nothing, and what runs goes on. A static NodePool takes no limit of CPU.
/// Source: karpenter v1.14.1 pkg/controllers/provisioning/scheduling/scheduler.go `filterByRemainingResources`,
/// pkg/apis/v1/nodepool.go "only 'limits.nodes' is supported on static NodePools".
fn limit(pool: &NodePool, recommended: &[FixStep]) -> Vec<FixStep> {
    let before = pool.spec.limits.get("cpu");
    if pool.spec.replicas.is_some() {
        return Vec::new();
    }
    if before == Some("0") {
        // It is done. What stood there before, only the way back knows.
        return recommended.iter().filter(|step| step.text == BACK).cloned().collect();
    }
    let patch = |cpu: Option<&str>| {
        let patch = json!({"spec": {"limits": {"cpu": cpu}}});
        format!("kubectl patch nodepool {} --type=merge -p '{patch}'", pool.name())
    };
    vec![
        step("Stop the launches until it is mended; what runs goes on".to_owned(), patch(Some("0"))),
        step(BACK.to_owned(), patch(before)),
    ]
}
