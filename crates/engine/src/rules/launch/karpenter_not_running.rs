//! Karpenter itself does not run, so everything that needs it waits.

mod own_nodes;
mod own_pod_pending;
mod unconverted;
mod untouched;
mod waits_for_dns;
mod without_credentials;

use crate::case::{conversion, karpenter_line, timestamp};
use crate::explain::karpenter_ends::{self, KarpenterEnds};
use crate::objects::Condition;
use crate::rules::prelude::*;
use crate::upstream::karpenter::Stopped;
use chrono::TimeDelta;
use own_nodes::waits_for_own_nodes;
use own_pod_pending::own_pod_pending;
use untouched::{Untouched, uninstalled};
use waits_for_dns::waits_for_dns;
use without_credentials::without_credentials;

rule! {
    cause: KarpenterNotRunning,
    summary: "No replica of Karpenter is available, so nothing is launched, registered or initialized",
    stages: [Launch, Register, Initialize, Terminate],
    reads: [
        Nodes, NodeClaims, NodePools, NodeClasses, Deployments, ServiceAccounts, Pods, CustomResources, Services,
        Logs,
    ],
    versions: "all",
}

/// Longer than the rollout of a single replica, whatever waits for it.
const ROLLOUT: TimeDelta = TimeDelta::minutes(15);

fn check(case: &Case) -> Option<Opinion> {
    let Some(karpenter) = case.karpenter() else { return uninstalled(case) };
    let stopped = karpenter.stopped.as_ref()?;
    // A rollout of a single replica makes it unavailable for a moment.
    let settled = stopped.since.and_then(|at| at.checked_add_signed(case.wait.proven.min(ROLLOUT)));
    if let Some(at) = settled.filter(|at| case.now < *at) {
        return Some(Opinion::LookAgain(at));
    }
    let waits = waits_for_karpenter(case)?;
    let (namespace, name) = karpenter.place();
    let how = match stopped {
        Stopped { wanted: 0, .. } => "is scaled to 0 replicas".to_owned(),
        Stopped { since, wanted } => {
            let since = since.map_or_else(String::new, |at| format!(" since {}", timestamp(at)));
            format!("has had none of its {wanted} replicas available{since}")
        }
    };
    let finding = Finding::new(
        Confidence::Certain,
        format!("Karpenter is not running: Deployment {} {how}, so {waits}.", karpenter.deployment),
        Evidence::new(
            format!("Deployment/{name}"),
            "status.availableReplicas",
            format!("0 of {}", stopped.wanted),
            "no other component does Karpenter's work",
        ),
    )
    .blaming(Blame::object("apps/v1", "Deployment", name).namespace(namespace).field("status.availableReplicas"));
    if stopped.wanted == 0 {
        let command = format!("kubectl scale deployment -n {namespace} {name} --replicas=2");
        return finding
            .fix(format!("Scale Deployment {} up again. Karpenter then continues by itself.", karpenter.deployment))
            .change("Scale it up", command)
            .into();
    }
    let ended = karpenter_ends::of(case, namespace);
    // Without DNS, credentials do not help.
    let finding = if let Some(waits) = waits_for_dns(case, namespace) {
        waits.onto(finding, namespace, name)
    } else if let Some(own) = conversion::unconverted(case.cluster)
        .filter(|_| !ended.as_ref().is_some_and(KarpenterEnds::is_for_another_reason))
    {
        let finding = unconverted::onto(&own, finding);
        ended.into_iter().fold(finding, |finding, ended| finding.with(ended.told()))
    } else if let Some(ended) = ended {
        ended.onto(case, finding, namespace, name)
    } else if let Some(poor) = without_credentials(case, namespace) {
        poor.onto(finding, namespace, name)
    } else if let Some(own) = waits_for_own_nodes(case, namespace) {
        own.onto(finding, namespace, name)
    } else if let Some(own) = own_pod_pending(case, namespace) {
        own.onto(finding, namespace, name)
    } else {
        unexplained(finding, namespace)
    };
    finding
        .inspect(
            "See why the last container exited",
            format!("kubectl logs -n {namespace} deployment/{name} --previous --tail=50"),
        )
        .into()
}

/// Only its log may show why it does not run.
fn unexplained(finding: Finding, namespace: &str) -> Finding {
    finding
        .fix(
            "Get Karpenter running again. Its last log says why it exits: no AWS credentials (IRSA, Pod Identity), \
             CRDs of another version, a wrong cluster name or endpoint, or too little memory. If its pods are Pending, \
             it may have depended on Nodes of its own.",
        )
        .inspect("See its pods", format!("kubectl get pods -n {namespace} -l app.kubernetes.io/name=karpenter -o wide"))
        .unknown(
            karpenter_ends::WHY_KARPENTER_ENDS,
            format!("kubectl describe pods -n {namespace} -l app.kubernetes.io/name=karpenter"),
        )
}

/// The step that only Karpenter can do for this subject. `None` if the next step belongs to another component.
fn waits_for_karpenter(case: &Case) -> Option<String> {
    let untouched = |c: &Condition| c.status == "Unknown" && matches!(c.reason.as_str(), "AwaitingReconciliation" | "");
    match (case.stage(), case.claim, case.node) {
        (Stage::Launch, Some(claim), _) => {
            let untried = claim.condition("Launched").is_none_or(untouched);
            untried.then(|| format!("nothing launches an instance for NodeClaim {}", claim.name()))
        }
        (Stage::Launch, None, _) if case.wait.symptom == Symptom::NobodyLaunches => {
            let of = case.pool().map_or_else(String::new, |pool| format!(" of NodePool/{}", pool.name()));
            Some(format!("nothing launches a node{of} for the waiting pods"))
        }
        (Stage::Launch, None, _) => {
            let class = case.class()?;
            let conditions = &class.status.conditions;
            let open = class.condition("Ready").is_some_and(|c| c.status == "Unknown");
            let unread = open
                && conditions.iter().filter(|c| c.type_ != "Ready").all(untouched)
                && conditions.iter().all(|c| !c.is_false());
            unread.then(|| format!("nothing reconciles {} {}", class.kind, class.name()))
        }
        (Stage::Terminate, ..) => Untouched::of(case).map(|Untouched { kind, meta, finalizer, .. }| {
            format!("nothing removes the finalizer {finalizer} from {kind} {}, which was deleted", meta.name)
        }),
        (Stage::Register | Stage::Initialize, Some(claim), Some(node)) => match karpenter_line::turn(claim, node)?.0 {
            Stage::Register => Some(format!("nothing registers Node {} of NodeClaim {}", node.name(), claim.name())),
            _ => Some(format!("nothing initializes the Ready Node {}", node.name())),
        },
        _ => None,
    }
}
