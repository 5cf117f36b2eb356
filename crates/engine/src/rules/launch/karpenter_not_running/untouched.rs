//! A deletion that only Karpenter could continue, and that no Karpenter has begun to work on.

use crate::case::timestamp;
use crate::cluster_state::memo::Memo;
use crate::objects::{Meta, Node, NodeClaim};
use crate::rules::prelude::*;
use crate::upstream::karpenter::{CLASS_TERMINATION_FINALIZER, DISRUPTED_TAINTS, TERMINATION_FINALIZER, is_karpenter};
use chrono::{DateTime, Utc};

/// A deleted object that only Karpenter releases, and that no Karpenter has begun to work on.
pub(super) struct Untouched<'c> {
    pub(super) kind: &'c str,
    pub(super) meta: &'c Meta,
    pub(super) finalizer: &'static str,
    of_aws: bool,
}

impl<'c> Untouched<'c> {
    pub(super) fn of(case: &Case<'c>) -> Option<Self> {
        if case.stage() != Stage::Terminate {
            return None;
        }
        let (kind, meta, finalizer, of_aws) = match (case.claim, case.node) {
            (Some(claim), node) => {
                let of_aws = claim.spec.node_class_ref.group == *"karpenter.k8s.aws";
                let untouched = is_untouched(claim, node);
                return untouched.then_some(Self {
                    kind: "NodeClaim",
                    meta: &claim.metadata,
                    finalizer: TERMINATION_FINALIZER,
                    of_aws,
                });
            }
            (None, Some(node)) if !is_tainted(node) => {
                let of_aws = node.metadata.label("karpenter.k8s.aws/ec2nodeclass").is_some();
                ("Node", &node.metadata, TERMINATION_FINALIZER, of_aws)
            }
            (None, Some(_)) => return None,
            (None, None) => {
                let class = case.class()?;
                (&*class.kind, &class.metadata, CLASS_TERMINATION_FINALIZER, class.is_ec2())
            }
        };
        let held = meta.finalizers.iter().any(|own| *own == *finalizer);
        held.then_some(Self { kind, meta, finalizer, of_aws })
    }
}

/// A deletion that nothing has begun to work on, in a cluster without a Karpenter: only Karpenter removes its
/// finalizer.
pub(super) fn uninstalled(case: &Case) -> Option<Opinion> {
    let Untouched { kind, meta, finalizer, of_aws } = Untouched::of(case)?;
    // EKS runs Auto Mode's Karpenter out of sight, and others may run theirs in another place.
    if !of_aws || case.cluster.missing(Input::Deployments).is_some() || case.cluster.pods().any(is_karpenter) {
        return None;
    }
    // A Karpenter under another name would have changed some NodeClaim since.
    let newest = |claim: &NodeClaim| claim.status.conditions.iter().filter_map(|c| c.last_transition_time).max();
    let alive = case.cluster.once(&NEWEST, "", || case.cluster.claims().filter_map(newest).max());
    if *alive > meta.deletion_timestamp {
        return None;
    }
    let name = &meta.name;
    let deleted = meta.deletion_timestamp.map_or_else(String::new, |at| format!(" at {}", timestamp(at)));
    let node = case.node.filter(|_| case.claim.is_some());
    let also = node.map_or_else(String::new, |node| format!(" and Node {}", node.name()));
    let finding = Finding::new(
        Confidence::Certain,
        format!(
            "{kind} {name} was deleted{deleted}, but no Karpenter is left to remove its finalizer {finalizer} from \
             it{also}: this cluster has no Deployment of Karpenter, for example because it was uninstalled."
        ),
        Evidence::new(format!("{kind}/{name}"), "metadata.finalizers", finalizer, what_karpenter_does(kind)),
    )
    .blaming(Blame::object("apps/v1", "Deployment", "karpenter"))
    .fix(
        "Install Karpenter again until they are gone: it also terminates the instances. Otherwise terminate the \
         instances yourself first, and then remove the finalizer from NodeClaims and Nodes.",
    )
    .inspect("Check that no Karpenter runs under another name", "kubectl get deployments -A -o wide".to_owned())
    .destroy(
        "Remove the finalizer after the instance is gone",
        format!(
            "kubectl patch {} {name} --type=merge -p '{{\"metadata\":{{\"finalizers\":null}}}}'",
            kind.to_ascii_lowercase()
        ),
    );
    if case.claim.is_none() && case.node.is_none() {
        return finding.into();
    }
    finding
        .ask_aws(
            "Is the instance gone?",
            format!(
                "aws ec2 describe-instances --instance-ids {} --query 'Reservations[].Instances[].State'",
                case.instance_id().unwrap_or("INSTANCE")
            ),
        )
        .into()
}

fn what_karpenter_does(kind: &str) -> &'static str {
    if matches!(kind, "NodeClaim" | "Node") {
        "Karpenter drains the Node, terminates the instance, and removes the finalizer; none of these steps has begun"
    } else {
        "Karpenter waits for its NodeClaims, deletes its instance profile and launch templates, and removes the \
         finalizer"
    }
}

/// The last change of a NodeClaim's condition: only Karpenter writes them.
static NEWEST: Memo<Option<DateTime<Utc>>> = Memo::new("last change of a NodeClaim's condition");

/// Whether Karpenter has done nothing for the deletion: its first steps are a taint on the Node, and a condition.
/// Source: core pkg/controllers/node/termination/controller.go `finalize` (v1.14.3).
fn is_untouched(claim: &NodeClaim, node: Option<&Node>) -> bool {
    const STEPS: [&str; 3] = ["Drained", "VolumesDetached", "InstanceTerminating"];
    STEPS.iter().all(|step| claim.condition(step).is_none()) && !node.is_some_and(is_tainted)
}

fn is_tainted(node: &Node) -> bool {
    DISRUPTED_TAINTS.iter().any(|key| node.taint(key).is_some())
}
