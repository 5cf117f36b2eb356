//! The agent has removed its startup taint, but another writer has re-added it.

use crate::explain::logged::{excerpt, told};
use crate::explain::startup_taints::{never_removes, on_every_machine, pod_of, restored_by_karpenter, staying};
use crate::objects::{ManagedField, Pod};
use crate::rules::prelude::*;
use crate::upstream::cloud_controller::last_taint_writer;
use crate::upstream::karpenter::{DO_NOT_SYNC_TAINTS_LABEL, Karpenter};
use crate::upstream::startup_taint;
use logs::fact::{Fact, Trouble};
use readers::userdata::Family;

rule! {
    cause: StartupTaintPutBack,
    summary: "A startup taint is on the Node again after its agent removed it: Karpenter or another agent re-added it",
    stages: [Initialize],
    reads: [Nodes, NodeClaims, NodeClasses, Pods, DaemonSets, Deployments, Logs],
    versions: "Karpenter before 1.5.0, and all with amiFamily Custom; agents re-add theirs under all",
}

fn by_registration(old: Option<&Karpenter>) -> String {
    match old {
        Some(karpenter) => format!("Karpenter {} re-added it when it registered the Node", karpenter.version),
        None => "Karpenter re-added it when it registered the Node, as it does with amiFamily Custom".to_owned(),
    }
}

fn by_another(writer: Option<&ManagedField>) -> String {
    match writer {
        Some(writer) => format!("another writer re-added it. The taint list was last written by {}", writer.writer()),
        None => "either the API server rejected the removal of the taint and the driver did not retry, or another \
                 writer re-added it"
            .to_owned(),
    }
}

fn check(case: &Case) -> Option<Opinion> {
    let node = case.node.filter(|n| n.is_ready())?;
    let (taint, _) = staying(case)?;
    let owner = startup_taint::owner(taint).filter(|o| o.remover.is_none())?;
    let pod = pod_of(case, owner)?;
    let Some(ready) = pod.status.conditions.iter().find(|c| c.type_ == "Ready" && c.is_true()) else {
        return Some(Opinion::ruled_out(pod, format!("pod {} of {} is not Ready yet", pod.metadata.name, owner.name)));
    };
    // A driver removes its taint within seconds of its start, with retries.
    // Source: aws-ebs-csi-driver pkg/driver/node.go `tryRemoveNotReadyTaintUntilSucceed`.
    if let Some(done) = ready.last_transition_time.and_then(|at| at.checked_add_signed(case.wait.proven))
        && case.now < done
    {
        return Some(Opinion::LookAgain(done));
    }
    if on_every_machine(case, node, taint) || never_removes(case, node, taint, pod).is_some() {
        return None;
    }
    let name = node.name();
    let old = case.karpenter().filter(|k| !k.knows_do_not_sync_taints());
    let custom = case.class().filter(|c| c.family() == Some(Family::Custom));
    let writer = last_taint_writer(node);
    let logged = failed_removal(case, pod);
    let by_karpenter = logged.is_none() && restored_by_karpenter(case, node) && !began_after_registration(case, pod);
    let who = match logged {
        Some(fact) => format!("its log says that the removal failed ({})", excerpt(&fact.last.text)),
        None if by_karpenter => by_registration(old),
        None => by_another(writer),
    };
    let finding = Finding::new(
        Confidence::Likely,
        format!(
            "Startup taint {taint} is on Node {name} although {} is Ready there and should have removed it: {who}.",
            owner.name
        ),
        Evidence::new(
            format!("Pod/{}", pod.metadata.name),
            "status.conditions",
            ready.shown(),
            "the driver removes its taint once, when it starts, and does not check again",
        ),
    )
    .with(Evidence::new(
        format!("Node/{name}"),
        "spec.taints",
        taint.to_string(),
        "the taint is on the Node although the driver runs",
    ))
    .with_all(logged.map(|fact| told(fact, "the driver does not try again, or fails each time")))
    .step(
        Risk::LowRisk,
        "Let pods onto this node now",
        Some(format!("kubectl taint node {name} {}:{}-", taint.key, taint.effect)),
    );
    if logged.is_some() {
        return by_its_own_log(finding, pod, owner.name).into();
    }
    let finding = match (by_karpenter, old, custom, writer) {
        (true, Some(karpenter), ..) => finding
            .with(Evidence::new(
                "Deployment/karpenter",
                "spec.template.spec.containers[0].image",
                karpenter.version.to_string(),
                "before 1.5.0 registration restores the startup taints that a fast agent has already removed",
            ))
            .blaming(
                Blame::object("apps/v1", "Deployment", "karpenter").field("spec.template.spec.containers[0].image"),
            )
            .fix("Upgrade Karpenter to 1.5.0 or later. Until then remove the taint by hand, which disrupts no pod."),
        (true, None, Some(class), _) => finding
            .with(Evidence::new(
                format!("Node/{name}"),
                "metadata.labels",
                format!("no {DO_NOT_SYNC_TAINTS_LABEL}"),
                "Karpenter gives the kubelet this label with every amiFamily but Custom",
            ))
            .blaming(Blame::class(class).field("spec.userData"))
            .fix(format!(
                "Register the kubelet with all taints of the NodePool and with the label \
                 {DO_NOT_SYNC_TAINTS_LABEL}=true. Until then remove the taint by hand, which disrupts no pod."
            )),
        (_, _, _, Some(writer)) => finding
            .with(Evidence::new(
                format!("Node/{name}"),
                "metadata.managedFields",
                format!("f:taints owned by {}", writer.manager),
                "the newest owner of the list wrote all of it last, perhaps from an old copy",
            ))
            .blaming(Blame::object("v1", "Node", name).field("spec.taints"))
            .fix(
                "Remove the taint, which disrupts no pod. Keep the drivers up to date, because older ones overwrite \
                 each other's removals.",
            ),
        _ => by_nobody_known(finding, name, pod, owner.name),
    };
    finding.into()
}

/// Neither Karpenter nor a writer of the taints is known to be at fault.
fn by_nobody_known(finding: Finding, name: &str, pod: &Pod, driver: &str) -> Finding {
    finding
        .blaming(Blame::object("v1", "Node", name).field("spec.taints"))
        .fix(format!(
            "Remove the taint. Or restart the driver's pod on the node, which removes the taint when it starts. \
             Keep the driver up to date: older ones of {driver} try once, and the API server rejects that if another \
             component writes the taints at that moment."
        ))
        .inspect(
            "See whether the API server rejected the removal of the taint",
            format!(
                "kubectl logs -n {} {} --all-containers | grep -i taint",
                pod.metadata.namespace.as_deref().unwrap_or_default(),
                pod.metadata.name
            ),
        )
        .unknown(
            "Which component wrote the taint list last?",
            format!("kubectl get node {name} --show-managed-fields -o yaml"),
        )
}

/// What the log of the driver's pod says of its own taint. A right that the driver lacks is another cause's affair.
fn failed_removal<'w>(case: &Case<'w>, pod: &Pod) -> Option<&'w Fact> {
    let logs = case.logs().into_iter().map(|of_machine| &of_machine.log.journey);
    let mut own = logs.filter(|journey| journey.identity.pods.contains(&*pod.metadata.name));
    own.find_map(|journey| journey.open().into_iter().find(|fact| fact.trouble == Trouble::TaintStays))
}

fn by_its_own_log(finding: Finding, pod: &Pod, driver: &str) -> Finding {
    let (name, namespace) = (&pod.metadata.name, pod.metadata.namespace.as_deref().unwrap_or_default());
    let blame = pod.daemon_set().map_or_else(
        || Blame::object("v1", "Pod", name).namespace(namespace),
        |set| Blame::object("apps/v1", "DaemonSet", set).namespace(namespace),
    );
    finding
        .blaming(blame)
        .fix(format!(
            "Restart pod {name}, which removes the taint when it starts, or remove the taint by hand. Neither disrupts \
             running pods. Use a version of {driver} that tries again: one that tries once fails if another component \
             writes the Node at that moment."
        ))
        .change("Restart the driver's pod", format!("kubectl delete pod -n {namespace} {name}"))
}

/// Karpenter writes the startup taints before it calls the Node registered, and not again. So it does not undo the work
/// of a pod that started later.
/// Source: core pkg/controllers/nodeclaim/lifecycle/registration.go `Reconcile` (v1.14.3).
fn began_after_registration(case: &Case, pod: &Pod) -> bool {
    let registered = case.claim.and_then(|claim| claim.condition("Registered")).filter(|c| c.is_true());
    let begun = pod.status.conditions.iter().find(|c| c.type_ == "Initialized" && c.is_true());
    let times = registered.and_then(|c| c.last_transition_time).zip(begun.and_then(|c| c.last_transition_time));
    times.is_some_and(|(registered, begun)| begun > registered)
}
