//! The machine was deleted, and something holds it for longer than its owner allowed.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::finding::{Finding, Opinion};
use crate::case::{Case, timestamp};
use crate::objects::input::Input;
use crate::objects::{Condition, DaemonSet, Event, Node, NodeClaim, Pod, PodDisruptionBudget, Taint, VolumeAttachment};
use crate::rules::Rule;
use crate::rules::shared::{commands, network_plugin, placement, volume_attachments};
use crate::upstream::karpenter::{DISRUPTED_TAINTS, DO_NOT_DISRUPT, TERMINATION_FINALIZER};
use chrono::TimeDelta;

pub static RULE: Rule = Rule {
    cause: "TerminationStuck",
    summary: "The NodeClaim was deleted, and a step of its deletion has hung for longer than its owner allowed",
    stages: &[Stage::Terminate],
    reads: &[
        Input::Nodes,
        Input::NodeClasses,
        Input::Events,
        Input::Pods,
        Input::Deployments,
        Input::DaemonSets,
        Input::DisruptionBudgets,
        Input::VolumeAttachments,
    ],
    lint: false,
    versions: "all; Karpenter 1.6 and later say Drained and VolumesDetached",
    page: include_str!("../../../pages/TerminationStuck.md"),
    check,
};

/// Far longer than any grace period that pods commonly have.
const PODS_GO_WITHIN: TimeDelta = TimeDelta::minutes(30);

fn check(case: &Case) -> Opinion {
    let Some(claim) = case.claim else { return Opinion::Silent };
    let condition = |type_: &str| claim.condition(type_);
    let endless = |node| {
        never_unmounted(case, claim, node)
            .or_else(|| agent_gone(case, claim, node))
            .or_else(|| two_budgets(case, claim, node))
    };
    if let Some(found) = case.node.filter(|_| !claim.is_true("InstanceTerminating")).and_then(endless) {
        return found.into();
    }
    let whole = case.wait.since.checked_add_signed(case.wait.proven * 2);
    if let Some(whole) = whole.filter(|at| *at > case.now) {
        return Opinion::LookAgain(whole);
    }
    let found = match case.node {
        _ if has_no_group(claim) => Some(refused_as_it_is(case, claim)),
        // Source: core pkg/controllers/node/termination/controller.go `reconcile`, nodeclaim/lifecycle/controller.go
        // `finalize` (v1.14.3).
        _ if claim.is_true("InstanceTerminating") => {
            Some(instance(case, claim, "Karpenter has asked EC2 to terminate it, and EC2 still shows it"))
        }
        Some(node) => foreign_finalizer(claim, node)
            .or_else(|| volumes(case, claim, node))
            .or_else(|| dead_kubelet(case, claim, node))
            .or_else(|| {
                let past = condition("VolumesDetached").is_some_and(|c| c.is_true() || c.is_false());
                (claim.is_true("Drained") && past).then(|| {
                    instance(case, claim, "the Node is drained, and Karpenter has not got the instance terminated")
                })
            })
            .or_else(|| shut_budget(case, claim, node))
            .or_else(|| disruption_budget(case, claim, node))
            .or_else(|| nothing_to_drain(case, claim, node)),
        // A claim that still says "Draining" has a Node that was not given.
        None if case.cluster.missing(Input::Nodes).is_none() && condition("Drained").is_none_or(Condition::is_true) => {
            Some(instance(case, claim, "its Node is gone, and Karpenter has not got the instance terminated"))
        }
        None => None,
    };
    let going = || volume_attachments::goes_until(case, volume_attachments::of(case, case.node?, None)?);
    match found {
        Some(found) => found.into(),
        None => going().map_or(Opinion::Silent, Opinion::LookAgain),
    }
}

fn drain_taint(node: &Node) -> Option<&Taint> {
    DISRUPTED_TAINTS.iter().find_map(|key| node.taint(key))
}

fn head(claim: &NodeClaim) -> String {
    let deleted = claim.metadata.deletion_timestamp.map_or_else(String::new, |at| format!(" at {}", timestamp(at)));
    format!("NodeClaim {} was deleted{deleted} and does not go", claim.name())
}

fn instance(case: &Case, claim: &NodeClaim, why: &str) -> Finding {
    let id = claim.instance_id().unwrap_or("INSTANCE");
    let state = |type_: &str| claim.condition(type_).map_or_else(|| "absent".to_owned(), Condition::shown);
    Finding::new(
        Confidence::Certain,
        format!("{}: {why} ({id}).", head(claim)),
        Evidence::new(
            format!("NodeClaim/{}", claim.name()),
            r#"status.conditions[?(@.type=="InstanceTerminating")]"#,
            state("InstanceTerminating"),
            "the last step before Karpenter removes its finalizer",
        ),
    )
    .blaming(Blame::object("karpenter.sh/v1", "NodeClaim", claim.name()).field("status.conditions"))
    .fix("See why EC2 keeps the instance: ec2:TerminateInstances denied to Karpenter (policy, permission boundary, SCP), termination protection, or an instance that hangs in shutting-down.")
    .step(Risk::Inspect, "See what Karpenter logs", Some(format!("{} | grep {}", commands::karpenter_log(case), claim.name())))
    .ask_aws("What state is the instance in?", format!("aws ec2 describe-instances --instance-ids {id} --query 'Reservations[].Instances[].[State,StateReason]'"))
}

/// A NodeClaim of before v1 whose conversion left out what v1 requires: the API server refuses every write of it, that
/// of taking the finalizer off too, and later versions of Karpenter do not take it for their own.
/// Sources: core pkg/apis/v1/nodeclaim.go `NodeClassReference` (v1.14.3), pkg/utils/nodeclaim/nodeclaim.go `IsManaged`
/// (since v1.1.0).
fn has_no_group(claim: &NodeClaim) -> bool {
    let reference = &claim.spec.node_class_ref;
    // What was cut by hand may lack all of it.
    reference.group.is_empty() && !reference.kind.is_empty() && !reference.name.is_empty()
}

fn refused_as_it_is(case: &Case, claim: &NodeClaim) -> Finding {
    let (name, reference) = (claim.name(), &claim.spec.node_class_ref);
    Finding::new(
        Confidence::Certain,
        format!(
            "{}: its spec.nodeClassRef has no group, which karpenter.sh/v1 requires, so the removal of Karpenter's finalizer is refused like every other write, or no Karpenter takes it for its own.",
            head(claim)
        ),
        Evidence::new(
            format!("NodeClaim/{name}"),
            "spec.nodeClassRef",
            format!("{{kind: {}, name: {}}}", reference.kind, reference.name),
            "group is required since v1, and the spec cannot be changed: it was made before, and its conversion did not add it",
        ),
    )
    .blaming(Blame::object("karpenter.sh/v1", "NodeClaim", name).field("spec.nodeClassRef.group"))
    .fix("See that the instance is gone. Then make group optional in the CustomResourceDefinition for as long as it takes to remove the finalizer, and restore it from the chart of your version.")
    .step(Risk::Inspect, "See what Karpenter logs", Some(format!("{} | grep {name}", commands::karpenter_log(case))))
    .step(
        Risk::Mutating,
        "Take group out of spec.nodeClassRef.required, and put it back afterwards",
        Some("kubectl edit customresourcedefinition nodeclaims.karpenter.sh".to_owned()),
    )
    .step(
        Risk::Destructive,
        "Remove the finalizer once the instance is gone; Karpenter does nothing more for it",
        Some(format!("kubectl patch nodeclaim {name} --type=merge -p '{{\"metadata\":{{\"finalizers\":null}}}}'")),
    )
    .ask_aws(
        "Is the instance gone?",
        format!(
            "aws ec2 describe-instances --instance-ids {} --query 'Reservations[].Instances[].State'",
            claim.instance_id().unwrap_or("INSTANCE")
        ),
    )
}

/// Before 1.6 no condition tells how far Karpenter has come: the pods do, and that it no longer says that it drains.
///
/// It waits then for the VolumeAttachments of the Node, in 1.0 without a word, or for EC2.
/// Sources: core pkg/controllers/node/termination/controller.go `finalize`, pkg/utils/pod/scheduling.go `IsDrainable`,
/// terminator/events/events.go `NodeFailedToDrain` (v1.0.5).
fn nothing_to_drain(case: &Case, claim: &NodeClaim, node: &Node) -> Option<Finding> {
    let says_how_far = ["Drained", "VolumesDetached"].iter().any(|step| claim.condition(step).is_some());
    if says_how_far || claim.spec.termination_grace_period.is_some() || case.cluster.missing(Input::Pods).is_some() {
        return None;
    }
    let taint = drain_taint(node)?;
    let drained_away = |pod: &Pod| {
        !matches!(pod.status.phase.as_str(), "Succeeded" | "Failed")
            && !pod.metadata.owner_references.iter().any(|owner| owner.kind == "Node")
            && !pod.spec.tolerations.iter().any(|t| t.tolerates(taint))
    };
    let recent = |e: &&Event| e.last_seen().is_some_and(|at| case.now - at <= STILL_REFUSED);
    // A dump may hold the pods of some namespaces only. Karpenter repeats what it waits for every two minutes.
    let tells = case.events().filter(recent).any(|e| e.reason == "DisruptionBlocked");
    let drains = case.events().filter(recent).any(|e| e.reason == "FailedDraining");
    if !tells || drains || case.pods().next().is_none() || case.pods().any(drained_away) {
        return None;
    }
    let name = node.name();
    let own_pod =
        |pod: &Pod| pod.daemon_set().is_none() && !matches!(pod.status.phase.as_str(), "Succeeded" | "Failed");
    match volume_attachments::of(case, node, None) {
        Some(attachment) if volume_attachments::goes_until(case, attachment).is_some() => return None,
        // A volume of a pod that stays is not waited for.
        Some(attachment) if !case.pods().any(own_pod) => {
            let evidence = Evidence::new(
                format!("VolumeAttachment/{}", attachment.metadata.name),
                "spec.nodeName",
                name,
                "every pod that is left there tolerates Karpenter's taint, and Karpenter does not say that it drains",
            );
            return Some(still_attached(case, claim, node, attachment, evidence));
        }
        None if case.cluster.missing(Input::VolumeAttachments).is_none() => {
            return Some(instance(
                case,
                claim,
                "no pod is left to drain on its Node and no volume is attached, and Karpenter has not got the instance terminated",
            ));
        }
        _ => {}
    }
    Some(
        Finding::new(
            Confidence::Certain,
            format!(
                "{}: no pod is left to drain on its Node {name}, so a volume is still attached there (a VolumeAttachment that nobody deletes), or Karpenter has not got the instance terminated.",
                head(claim)
            ),
            Evidence::new(
                format!("Node/{name}"),
                "metadata.deletionTimestamp",
                node.metadata.deletion_timestamp.map_or_else(|| "absent".to_owned(), |at| timestamp(at).to_string()),
                "every pod that is left there tolerates Karpenter's taint, and Karpenter does not say that it drains",
            ),
        )
        .blaming(Blame::object("v1", "Node", name))
        .fix("See whether a VolumeAttachment names the Node: its pod or its claim was deleted by force, or its volume is Released, and nobody asks for the detachment. Delete it once no process uses the volume. Where there is none, see why EC2 keeps the instance. A terminationGracePeriod on the NodePool bounds the wait.")
        .step(
            Risk::Inspect,
            "See which volumes are still attached, and whether they are Released",
            Some(format!("kubectl get volumeattachments -o wide | grep {name}; kubectl get persistentvolumes")),
        )
        .step(Risk::Inspect, "See what Karpenter logs", Some(format!("{} | grep {}", commands::karpenter_log(case), claim.name()))),
    )
}

/// Karpenter is through with the Node, and another finalizer holds it.
fn foreign_finalizer(claim: &NodeClaim, node: &Node) -> Option<Finding> {
    node.metadata.deletion_timestamp?;
    let held = &node.metadata.finalizers;
    let other = held.first().filter(|_| !held.iter().any(|f| f == TERMINATION_FINALIZER))?;
    Some(
        Finding::new(
            Confidence::Certain,
            format!("{}: the finalizer {other} holds its Node {}.", head(claim), node.name()),
            Evidence::new(
                format!("Node/{}", node.name()),
                "metadata.finalizers",
                held.join(", "),
                "Karpenter has removed its own; the Node goes when this one is removed",
            ),
        )
        .blaming(Blame::object("v1", "Node", node.name()).field("metadata.finalizers"))
        .fix("See whose finalizer it is, and why it does not remove it: a controller that was uninstalled never will.")
        .step(Risk::Inspect, "See the Node", Some(format!("kubectl get node {} -o yaml", node.name())))
        .step(
            Risk::Destructive,
            format!("Take the finalizer off where nobody is left to do it; what {other} guards is then skipped"),
            held.iter().position(|f| f == other).map(|at| {
                format!(
                    "kubectl patch node {} --type=json -p '[{{\"op\":\"remove\",\"path\":\"/metadata/finalizers/{at}\"}}]'",
                    node.name()
                )
            }),
        ),
    )
}

/// Karpenter waits for the volumes of a Node that is drained.
struct Attached<'c> {
    /// What shows it.
    evidence: Evidence,
    /// What Karpenter says of it, in brackets.
    said: String,
    /// By its name, which Karpenter's event tells too.
    attachment: Option<&'c str>,
    /// Where it was read.
    object: Option<&'c VolumeAttachment>,
}

/// Whether that is the step, for as long as `wait`. Before 1.6 only the event tells, which repeats while it lasts.
fn attached<'c>(case: &Case<'c>, claim: &NodeClaim, node: &Node, wait: TimeDelta) -> Option<Attached<'c>> {
    const BECAUSE: &str =
        "Karpenter waits until the attach-detach controller has deleted the VolumeAttachments of the Node";
    let event = case.event("AwaitingVolumeDetachment");
    let evidence = match (claim.condition("Drained"), claim.condition("VolumesDetached")) {
        (Some(drained), Some(detached)) if drained.is_true() && !detached.is_true() && !detached.is_false() => {
            Evidence::new(
                format!("NodeClaim/{}", claim.name()),
                r#"status.conditions[?(@.type=="VolumesDetached")]"#,
                detached.shown(),
                BECAUSE,
            )
        }
        (None, None) => {
            let event = event.filter(|e| lasts(case, e, wait))?;
            Evidence::new(format!("Event/{}", event.metadata.name), "message", event.said(), BECAUSE)
                .figures(format!("{} times", event.times()))
        }
        _ => return None,
    };
    let named = event.and_then(|e| first_attachment(&e.message));
    let object = volume_attachments::of(case, node, named);
    Some(Attached {
        evidence,
        said: event.map_or_else(String::new, |e| format!(" ({})", e.said().trim_end_matches('.'))),
        attachment: object.map(|object| &*object.metadata.name).or(named),
        object,
    })
}

/// The driver's pod on the Node was drained with the others, so nobody is left to unmount.
fn never_unmounted(case: &Case, claim: &NodeClaim, node: &Node) -> Option<Finding> {
    let attached = attached(case, claim, node, case.wait.proven)?;
    if case.cluster.missing(Input::Pods).is_some() {
        return None;
    }
    let taint = drain_taint(node)?;
    let mut drivers =
        case.cluster.daemon_sets().filter(|set| attaches(set)).filter(|set| lost_its_pod(case, set, node, taint));
    // Of several it is open whose volume it is.
    let (set, None) = (drivers.next()?, drivers.next()) else { return None };
    let name = &set.metadata.name;
    let Attached { evidence, said, attachment, .. } = attached;
    let finding = Finding::new(
        Confidence::Certain,
        format!(
            "{}: its Node {} is drained, and its volumes are still attached{said}: the pod of DaemonSet {name}, which unmounts them, was drained too, for it does not tolerate {taint}.",
            head(claim),
            node.name()
        ),
        evidence,
    );
    let finding = let_tolerate(finding, node, set, taint)
        .fix(format!("Let DaemonSet {name} tolerate {} (charts: tolerateAllTaints), so that it outlives a drain. What is attached now stays until its VolumeAttachment is deleted.", taint.key));
    Some(match attachment {
        Some(attachment) => finding.step(
            Risk::Destructive,
            "Delete the VolumeAttachment once no process of the Node uses the volume: what is not yet written is lost",
            Some(format!("kubectl delete volumeattachment {attachment}")),
        ),
        None => finding,
    })
}

/// Whether the DaemonSet would have a pod on the Node, and has none for the taint of the drain: it was drained with the
/// others, or a rollout took it.
fn lost_its_pod(case: &Case, set: &DaemonSet, node: &Node, taint: &Taint) -> bool {
    // A dump may hold the pods of some namespaces only.
    let seen = case.pods().any(|p| p.metadata.namespace == set.metadata.namespace);
    let gone = !case.pods().any(|p| p.daemon_set() == Some(&set.metadata.name));
    let mut before = node.clone();
    before.spec.taints.retain(|t| !t.matches(taint));
    seen && gone && !set.tolerates(taint) && placement::refusal(set, &before).is_none()
}

/// What brings it back.
fn let_tolerate(finding: Finding, node: &Node, set: &DaemonSet, taint: &Taint) -> Finding {
    let (namespace, name) = (set.metadata.namespace.as_deref().unwrap_or("kube-system"), &set.metadata.name);
    finding
        .with(Evidence::new(
            format!("DaemonSet/{name}"),
            "spec.template.spec.tolerations",
            format!("none for {taint}"),
            format!("it has no pod on Node {}, and gets none while the taint is there", node.name()),
        ))
        .blaming(
            Blame::object("apps/v1", "DaemonSet", name).namespace(namespace).field("spec.template.spec.tolerations"),
        )
        .step(
            Risk::Mutating,
            format!("Add the toleration to DaemonSet {name}; a chart or an operator that owns it would undo this"),
            Some(commands::tolerate(set, taint)),
        )
}

/// The agent that takes down the network of a pod is gone from the Node, so the pods there never end.
fn agent_gone(case: &Case, claim: &NodeClaim, node: &Node) -> Option<Finding> {
    if case.cluster.missing(Input::Pods).is_some() {
        return None;
    }
    let taint = drain_taint(node)?;
    let deleted = |p: &&Pod| p.metadata.deletion_timestamp.is_some_and(|at| case.now - at > PODS_GO_WITHIN);
    let mut ending = case.pods().filter(|p| p.daemon_set().is_none()).filter(deleted);
    let recent = |e: &&Event| e.last_seen().is_some_and(|at| case.now - at <= STILL_REFUSED);
    let (pod, event, set) = ending.find_map(|pod| {
        let events = case.cluster.pod_events_on(node.name()).filter(recent);
        let mut own = events.filter(|e| e.reason == "FailedKillPod" && e.involved_object.name == pod.metadata.name);
        own.find_map(|event| {
            let name = network_plugin::of_plugin(undone_by(&event.message)?);
            let set = case.cluster.daemon_sets().find(|set| set.metadata.name == name)?;
            lost_its_pod(case, set, node, taint).then_some((pod, event, set))
        })
    })?;
    let name = &set.metadata.name;
    let of_pod = format!("{}/{}", pod.metadata.namespace.as_deref().unwrap_or("default"), pod.metadata.name);
    let finding = Finding::new(
        Confidence::Certain,
        format!(
            "{}: pod {of_pod} on its Node {} cannot end, for DaemonSet {name}, which takes down its network, has no pod there any more: it does not tolerate {taint}, and a drained or rolled out pod does not come back.",
            head(claim),
            node.name()
        ),
        Evidence::new(
            format!("Event/{}", event.metadata.name),
            "message",
            event.said(),
            "the kubelet tries again, and Karpenter waits for the pod",
        )
        .figures(format!("{} times", event.times())),
    );
    Some(let_tolerate(finding, node, set, taint).fix(format!(
        "Let DaemonSet {name} tolerate {} (best all taints, operator Exists): its pod comes back, and the drain goes on.",
        taint.key
    )))
}

/// The network plugin that failed to take down what it had set up.
/// Source: containernetworking/cni libcni/api.go v1.3.0 (`plugin type=%q failed (delete)`).
fn undone_by(message: &str) -> Option<&str> {
    let (before, _) = message.split_once(" failed (delete)")?;
    // Quoted once more where the runtime's words are.
    before.rsplit_once("plugin type=").map(|(_, plugin)| plugin.trim_matches(['\\', '"']))
}

/// Whether it is the node part of a CSI driver whose volumes are attached: those for network file systems say
/// `attachRequired: false` in their CSIDriver.
/// Source: deploy/kubernetes/base/csidriver.yaml of aws-efs-csi-driver, aws-fsx-csi-driver,
/// aws-mountpoint-s3-csi-driver, aws-fsx-openzfs-csi-driver.
fn attaches(set: &DaemonSet) -> bool {
    const NEVER_ATTACHED: [&str; 4] = ["efs-csi-node", "fsx-csi-node", "fsx-openzfs-csi-node", "s3-csi-node"];
    volume_attachments::is_registrar(set) && !NEVER_ATTACHED.contains(&&*set.metadata.name)
}

fn volumes(case: &Case, claim: &NodeClaim, node: &Node) -> Option<Finding> {
    let Attached { evidence, said, attachment, object } = attached(case, claim, node, case.wait.proven * 2)?;
    if let Some(object) = object {
        if volume_attachments::goes_until(case, object).is_some() {
            return None;
        }
        return Some(still_attached(case, claim, node, object, evidence));
    }
    let (blame, look) = match attachment {
        Some(name) => (
            Blame::object("storage.k8s.io/v1", "VolumeAttachment", name),
            format!("kubectl get volumeattachment {name} -o yaml"),
        ),
        None => (
            Blame::object("v1", "Node", node.name()),
            format!("kubectl get volumeattachments -o wide | grep {}", node.name()),
        ),
    };
    Some(
        Finding::new(
            Confidence::Certain,
            format!("{}: its Node {} is drained, and its volumes are still attached{said}.", head(claim), node.name()),
            evidence,
        )
        .blaming(blame)
        .fix("See why the VolumeAttachment stays: the CSI driver's controller is down or denied ec2:DetachVolume, the kubelet no longer unmounts, or it was left behind by a pod that is gone. A terminationGracePeriod on the NodePool bounds the wait.")
        .step(Risk::Inspect, "See what holds the attachment: its deletionTimestamp and status.detachError", Some(look)),
    )
}

/// The same where the VolumeAttachment was read, which tells who has to let go of the volume.
fn still_attached(
    case: &Case,
    claim: &NodeClaim,
    node: &Node,
    attachment: &VolumeAttachment,
    evidence: Evidence,
) -> Finding {
    let name = &*attachment.metadata.name;
    let held = volume_attachments::why(case, node, attachment);
    let volume = attachment.spec.source.persistent_volume_name.as_deref().unwrap_or("unknown");
    let why = match &held {
        Some(held) => format!(": {}", held.why),
        None => ", and nobody has asked for its deletion".to_owned(),
    };
    let finding = Finding::new(
        Confidence::Certain,
        format!(
            "{}: its Node {} is drained, and volume {volume} is still attached there by VolumeAttachment {name}{why}.",
            head(claim),
            node.name()
        ),
        evidence,
    )
    .step(
        Risk::Inspect,
        "See its deletionTimestamp and status.detachError, and whether the volume is Released",
        Some(format!("kubectl get volumeattachment {name} -o yaml; kubectl get persistentvolumes {volume}")),
    );
    match held {
        Some(held) => held.explain(finding, attachment),
        None => finding
            .blaming(volume_attachments::blame(attachment))
            .fix("See why the volume counts as in use there: the kubelet does not unmount it, or its pod or claim was deleted by force and the volume is Released. Delete the VolumeAttachment once no process uses the volume. A terminationGracePeriod on the NodePool bounds the wait."),
    }
}

/// The first name of `Awaiting deletion of bound volumeattachments (csi-1, csi-2 and 3 other(s))`.
/// Source: core pkg/controllers/node/termination/terminator/events/events.go `NodeAwaitingVolumeDetachmentEvent`
/// (v1.14.3).
fn first_attachment(message: &str) -> Option<&str> {
    let (_, names) = message.split_once("volumeattachments (")?;
    names.split([',', ' ', ')']).next().filter(|name| is_name(name))
}

/// Whoever may write events chose their text, and it ends up in a command.
fn is_name(name: &str) -> bool {
    name.starts_with(char::is_alphanumeric) && name.chars().all(|c| c.is_ascii_alphanumeric() || "-.".contains(c))
}

/// A pod that a PodDisruptionBudget has not let go for as long as any step may take. A terminationGracePeriod ends that
/// by itself: then so long is what its owner allows.
fn disruption_budget(case: &Case, claim: &NodeClaim, node: &Node) -> Option<Finding> {
    if claim.is_true("Drained") || claim.spec.termination_grace_period.is_some() {
        return None;
    }
    let lasts = |e: &&Event| lasts(case, e, case.wait.proven * 2);
    let mut refused = case.events().filter(|e| e.reason == "FailedDraining").filter(lasts);
    let (event, (namespace, name)) = refused.find_map(|e| Some((e, refused_pod(&e.message)?)))?;
    let pod = case.pods().find(|p| p.metadata.name == *name && p.metadata.namespace.as_deref() == Some(namespace));
    // It has gone meanwhile, or is on its way.
    if case.cluster.missing(Input::Pods).is_none() && pod.is_none_or(|p| p.metadata.deletion_timestamp.is_some()) {
        return None;
    }
    let why = if event.message.contains(TWO_BUDGETS) {
        "more than one PodDisruptionBudget selects"
    } else {
        "a PodDisruptionBudget does not let go"
    };
    Some(
        Finding::new(
            Confidence::Certain,
            format!("{}: {why} pod {namespace}/{name} on its Node {}, so it is never evicted.", head(claim), node.name()),
            Evidence::new(
                format!("Event/{}", event.metadata.name),
                "message",
                event.said(),
                "Karpenter waits for the eviction, without end where there is no terminationGracePeriod",
            )
            .figures(format!("{} times", event.times())),
        )
        .blaming(match pod.map(|pod| budgets(case, pod)).as_deref() {
            Some([budget]) => blame_budget(budget),
            _ => Blame::object("v1", "Pod", name).namespace(namespace),
        })
        .fix("See why the budget allows no disruption: maxUnavailable 0, minAvailable as high as there are replicas, or pods of it that are not Ready. Let one more run, or mend the budget; two budgets over one pod never let it go. A terminationGracePeriod on the NodePool bounds the wait for the next machines.")
        .step(
            Risk::Inspect,
            "See which budget allows no disruption",
            Some(format!("kubectl get poddisruptionbudgets -n {namespace} -o wide")),
        )
        .step(Risk::Inspect, "See the pod and its labels", Some(format!("kubectl describe pod -n {namespace} {name}"))),
    )
}

/// A budget that has allowed nothing for as long as any step may take, over a pod that is to be evicted. Karpenter's
/// event often only counts the pods that it waits for.
/// Sources: kubernetes v1.36.3 pkg/controller/disruption/disruption.go `updatePdbStatus`, `failSafe`,
/// component-helpers/apps/poddisruptionbudget/helpers.go `UpdateDisruptionAllowedCondition`.
fn shut_budget(case: &Case, claim: &NodeClaim, node: &Node) -> Option<Finding> {
    if claim.is_true("Drained") || claim.spec.termination_grace_period.is_some() {
        return None;
    }
    let taint = drain_taint(node)?;
    let long = |c: &&Condition| c.last_transition_time.is_some_and(|at| case.now - at >= case.wait.proven * 2);
    let (pod, budget, allowed) = evicted(case, taint).find_map(|pod| {
        let [budget] = budgets(case, pod)[..] else { return None };
        let allowed = budget.allows_nothing().filter(long).filter(|_| !budget.lets_go_unready(pod))?;
        Some((pod, budget, allowed))
    })?;
    let (namespace, name) = (pod.metadata.namespace.as_deref().unwrap_or("default"), &pod.metadata.name);
    let (why, because) = if allowed.reason == "SyncFailed" || budget.status.expected_pods == 0 {
        (
            "for nobody can tell how many pods it should have",
            "its pods have no controller that says how many there are to be",
        )
    } else if budget.never_allows() {
        ("even while all of its pods are healthy", "it asks for as many healthy pods as there are to be")
    } else {
        ("while so few of its pods are healthy", "it allows one once more of its pods are Ready")
    };
    let of = &budget.metadata.name;
    let bound = budget.bound().map_or_else(String::new, |bound| format!(" ({bound})"));
    Some(
        Finding::new(
            Confidence::Certain,
            format!(
                "{}: PodDisruptionBudget {of}{bound} allows no disruption {why}, so pod {namespace}/{name} on its Node {} is never evicted.",
                head(claim),
                node.name()
            ),
            Evidence::new(
                format!("PodDisruptionBudget/{of}"),
                r#"status.conditions[?(@.type=="DisruptionAllowed")]"#,
                allowed.shown(),
                because,
            ),
        )
        .with(Evidence::new(
            format!("Pod/{name}"),
            "metadata.labels",
            format!("selected by PodDisruptionBudget {of}"),
            "Karpenter waits for its eviction, without end where there is no terminationGracePeriod",
        ))
        .blaming(blame_budget(budget))
        .fix(format!("Have PodDisruptionBudget {of} allow one disruption: maxUnavailable 1, or a minAvailable below the number of replicas; where its pods are not Ready, mend them. A terminationGracePeriod on the NodePool bounds the wait for the next machines."))
        .step(
            Risk::Inspect,
            "See what the budget asks for, and how many of its pods are healthy",
            Some(format!("kubectl describe poddisruptionbudgets -n {namespace} {of}")),
        )
        .step(
            Risk::Mutating,
            "Have it allow one disruption; the drain then goes on by itself",
            Some(format!("kubectl edit poddisruptionbudgets -n {namespace} {of}")),
        ),
    )
}

/// A pod that more than one budget selects: the API server evicts none such, whatever the budgets allow, and Karpenter's
/// event only counts it among those that wait.
/// Source: kubernetes v1.36.3 pkg/registry/core/pod/storage/eviction.go `Create`.
fn two_budgets(case: &Case, claim: &NodeClaim, node: &Node) -> Option<Finding> {
    if claim.is_true("Drained") || claim.spec.termination_grace_period.is_some() {
        return None;
    }
    let taint = drain_taint(node)?;
    let (pod, mut budgets) =
        evicted(case, taint).map(|pod| (pod, budgets(case, pod))).find(|(_, budgets)| budgets.len() > 1)?;
    // The newest was added to what worked.
    budgets.sort_by_key(|budget| std::cmp::Reverse(budget.metadata.creation_timestamp));
    let newest = budgets.first()?;
    let (namespace, name) = (pod.metadata.namespace.as_deref().unwrap_or("default"), &pod.metadata.name);
    let names: Vec<&str> = budgets.iter().map(|budget| &*budget.metadata.name).collect();
    let evidence = |budget: &&PodDisruptionBudget| {
        Evidence::new(
            format!("PodDisruptionBudget/{}", budget.metadata.name),
            "spec.selector",
            format!("selects pod {namespace}/{name}"),
            "an eviction is refused where more than one budget speaks for the pod",
        )
    };
    Some(
        Finding::new(
            Confidence::Certain,
            format!(
                "{}: more than one PodDisruptionBudget ({}) selects pod {namespace}/{name} on its Node {}, so it is never evicted.",
                head(claim),
                names.join(", "),
                node.name()
            ),
            evidence(newest),
        )
        .with_all(budgets.iter().skip(1).map(evidence))
        .blaming(blame_budget(newest))
        .fix(format!("Delete one of the PodDisruptionBudgets {}, or narrow its selector: two over one pod never let it go, whatever they allow.", names.join(", ")))
        .step(
            Risk::Inspect,
            "See the budgets",
            Some(format!("kubectl get poddisruptionbudgets -n {namespace} {} -o yaml", names.join(" "))),
        )
        .step(
            Risk::Mutating,
            "Narrow the newest, or delete it if the others say enough",
            Some(format!("kubectl edit poddisruptionbudgets -n {namespace} {}", newest.metadata.name)),
        ),
    )
}

/// The pods that an eviction of Karpenter's asks the budgets for.
///
/// The API server evicts without a look at budgets what does not run; Karpenter evicts no pod that tolerates its taint
/// or that the kubelet made, and waits for what must not be disrupted.
/// Source: core pkg/utils/pod/scheduling.go `IsEvictable`, `IsDrainable` (v1.14.3).
fn evicted<'c>(case: &Case<'c>, taint: &Taint) -> impl Iterator<Item = &'c Pod> {
    case.pods().filter(move |pod| {
        pod.metadata.deletion_timestamp.is_none()
            && pod.status.phase == "Running"
            && pod.metadata.annotation(DO_NOT_DISRUPT) != Some("true")
            && !pod.metadata.owner_references.iter().any(|owner| owner.kind == "Node")
            && !pod.spec.tolerations.iter().any(|t| t.tolerates(taint))
    })
}

fn budgets<'c>(case: &Case<'c>, pod: &Pod) -> Vec<&'c PodDisruptionBudget> {
    case.cluster.disruption_budgets().filter(|budget| budget.selects(pod)).collect()
}

fn blame_budget(budget: &PodDisruptionBudget) -> Blame {
    Blame::object("policy/v1", "PodDisruptionBudget", &budget.metadata.name)
        .namespace(budget.metadata.namespace.as_deref().unwrap_or("default"))
        .field("spec")
}

/// Whether an event has been repeated for as long as `wait`, and still is.
fn lasts(case: &Case, event: &Event, wait: TimeDelta) -> bool {
    let still = event.last_seen().is_some_and(|at| case.now - at <= STILL_REFUSED);
    still && event.first_timestamp.is_some_and(|first| case.now - first >= wait)
}

/// Karpenter tells of one thing that holds a drain every two minutes, this or another.
const STILL_REFUSED: TimeDelta = TimeDelta::minutes(30);
const TWO_BUDGETS: &str = "eviction does not support multiple PDBs";

/// The pod of `evicting pod shop/web-1 violates a PDB`, or of `evicting pod violates a PDB (Pod=shop/web-1)`.
/// Source: core pkg/controllers/node/termination/terminator/eviction.go `Reconcile` (v1.0.5, v1.14.3).
fn refused_pod(message: &str) -> Option<(&str, &str)> {
    if !message.contains("violates a PDB") && !message.contains(TWO_BUDGETS) {
        return None;
    }
    let pod = match message.split_once("(Pod=") {
        Some((_, pod)) => pod.split_once(')')?.0,
        None => message.split_once("evicting pod ")?.1.split(' ').next()?,
    };
    pod.split_once('/').filter(|(namespace, name)| is_name(namespace) && is_name(name))
}

/// Pods whose deletion only the kubelet could finish, on a Node whose kubelet is gone.
fn dead_kubelet(case: &Case, claim: &NodeClaim, node: &Node) -> Option<Finding> {
    let ready = node.condition("Ready").filter(|c| c.status == "Unknown")?;
    let deleted = |p: &&Pod| p.metadata.deletion_timestamp.is_some_and(|at| case.now - at > PODS_GO_WITHIN);
    let meant = |p: &&Pod| p.metadata.annotation(DO_NOT_DISRUPT) != Some("true");
    let pods: Vec<&Pod> = case.pods().filter(|p| p.daemon_set().is_none()).filter(deleted).filter(meant).collect();
    let first = pods.first()?;
    let others = match pods.len() {
        1 => String::new(),
        n => format!(" and {} more", n - 1),
    };
    let namespace = first.metadata.namespace.as_deref().unwrap_or("default");
    Some(
        Finding::new(
            Confidence::Certain,
            format!(
                "{}: the kubelet of Node {} no longer reports, so pod {namespace}/{}{others} can never finish terminating, and Karpenter waits for that.",
                head(claim),
                node.name(),
                first.metadata.name
            ),
            Evidence::new(format!("Node/{}", node.name()), r#"status.conditions[?(@.type=="Ready")]"#, ready.shown(), "only the kubelet confirms that a pod has ended"),
        )
        .with(Evidence::new(format!("Pod/{}", first.metadata.name), "metadata.deletionTimestamp", "past", "the pod was deleted long ago and is still there"))
        .blaming(Blame::object("v1", "Node", node.name()))
        .fix("Terminate the instance, or delete the pods by force once it is certain that they do not run; a terminationGracePeriod on the NodePool bounds the wait.")
        .step(
            Risk::Destructive,
            "Delete the pod by force; its volume may be mounted twice if the instance still runs",
            Some(format!("kubectl delete pod -n {namespace} {} --force --grace-period=0", first.metadata.name)),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::{first_attachment, refused_pod, undone_by};

    #[test]
    fn the_plugin_that_cannot_undo_the_network_is_read() {
        let quoted =
            r#"desc = failed to destroy network for sandbox \"5e\": plugin type=\"cilium-cni\" failed (delete): gone"#;
        assert_eq!(undone_by(quoted), Some("cilium-cni"));
        assert_eq!(undone_by(r#"plugin type="aws-cni" failed (delete): gone"#), Some("aws-cni"));
        assert_eq!(undone_by(r#"plugin type="aws-cni" failed (add): gone"#), None);
    }

    #[test]
    fn only_a_name_is_taken_from_the_event() {
        let first = |names: &str| {
            first_attachment(&format!("Awaiting deletion of bound volumeattachments ({names})")).map(str::to_owned)
        };
        assert_eq!(first("csi-12ab"), Some("csi-12ab".to_owned()));
        assert_eq!(first("csi-1, csi-2 and 3 other(s)"), Some("csi-1".to_owned()));
        assert_eq!(first(""), None);
        assert_eq!(first("$(reboot)"), None);
        assert_eq!(first("--all"), None);
        assert_eq!(first_attachment("Awaiting something else (csi-1)"), None);
    }

    #[test]
    fn the_pod_that_a_budget_holds_is_read_from_the_event_of_each_version() {
        let of = |said: &str| refused_pod(&format!("Failed to drain node, {said}")).map(|(n, p)| format!("{n}/{p}"));
        assert_eq!(of("evicting pod shop/web-1 violates a PDB").as_deref(), Some("shop/web-1"));
        assert_eq!(of("evicting pod violates a PDB (Pod=shop/web-1)").as_deref(), Some("shop/web-1"));
        assert_eq!(of("eviction does not support multiple PDBs (Pod=shop/web-1)").as_deref(), Some("shop/web-1"));
        assert_eq!(of("5 pods are waiting to be evicted"), None);
        assert_eq!(of("evicting pod violates a PDB (Pod=$(reboot)/x)"), None);
    }
}
