//! The instance is gone, and Karpenter drains its Node as if it were there.

use super::{drains, head};
use crate::objects::{Event, Node};
use crate::rules::prelude::*;
use crate::upstream::karpenter::{Karpenter, Version};
use crate::upstream::node_events::deletes_node;
use chrono::TimeDelta;

/// If a Node is not Ready, Karpenter asks for its instance in each round, and removes its finalizer if there is none.
/// Source: core pkg/controllers/node/termination/controller.go `finalize` (v1.0.5, v1.14.1).
const NOTICED_WITHIN: TimeDelta = TimeDelta::minutes(15);
/// An Event that repeats is written every five minutes.
/// Source: client-go v0.36.3 tools/record/events_cache.go `defaultSpamQPS`.
const SAID_WITHIN: TimeDelta = TimeDelta::minutes(10);

const RESTART: &str =
    "Restart Karpenter, so that it asks EC2 for the instance again. It then removes its finalizer from the Node.";

pub(super) fn instance_gone(case: &Case, node: &Node) -> Option<Finding> {
    let ready = node.condition("Ready").filter(|ready| ready.status == "Unknown")?;
    let drains = drains(case)?;
    let event = case.events().find(|event| deletes_node(event) && lasts(case, event))?;
    let name = node.name();
    let forgetful = case.karpenter().filter(|karpenter| remembers(karpenter));
    let because = match forgetful {
        Some(karpenter) => format!("Karpenter {} keeps the instance in its cache, and", karpenter.version),
        None => "Karpenter does not notice it, and".to_owned(),
    };
    let finding = Finding::new(
        if forgetful.is_some() { Confidence::Certain } else { Confidence::Likely },
        format!(
            "{}: the instance of its Node {name} is gone, as the cloud controller says. {because} waits for the pods \
             there, which can never finish terminating.",
            head(case)
        ),
        Evidence::new(
            format!("Event/{}", event.metadata.name),
            "message",
            event.said(),
            "the cloud controller asks EC2 for the instance",
        )
        .figures(format!("{} times", event.times())),
    )
    .with(Evidence::new(
        format!("Node/{name}"),
        r#"status.conditions[?(@.type=="Ready")]"#,
        ready.shown(),
        "Karpenter removes its finalizer without a drain if such a Node has no instance",
    ))
    .with(drains);
    let Some(karpenter) = case.karpenter() else {
        return Some(finding.blaming(Blame::object("v1", "Node", name)).fix(RESTART));
    };
    let (namespace, deployment) = karpenter.place();
    let fix = if forgetful.is_some() {
        "Restart Karpenter, so that it asks EC2 for the instance again. It then removes its finalizer from the Node. \
         Karpenter 1.14.1 and later forget such instances by themselves."
    } else {
        RESTART
    };
    let restart = format!("kubectl rollout restart deployment -n {namespace} {deployment}");
    Some(finding.blaming(Blame::object("apps/v1", "Deployment", deployment).namespace(namespace)).fix(fix).step(
        Risk::LowRisk,
        "Restart Karpenter",
        Some(restart),
    ))
}

/// Whether the cloud controller has said so for long, and says so still.
fn lasts(case: &Case, event: &Event) -> bool {
    let is_said = event.last_seen().is_some_and(|at| case.now - at <= SAID_WITHIN);
    is_said && event.first_timestamp.is_some_and(|first| case.now - first >= NOTICED_WITHIN)
}

/// Whether it keeps instances in a cache that nothing ends.
/// Sources: karpenter-provider-aws v1.14.1 pkg/providers/instance/instance.go `List`, which takes out what EC2 no
/// longer returns; karpenter-provider-aws#9226, #9479 (since v1.13.0).
fn remembers(karpenter: &Karpenter) -> bool {
    (Version(1, 13, 0)..Version(1, 14, 1)).contains(&karpenter.version)
}
