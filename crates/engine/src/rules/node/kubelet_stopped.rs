//! The kubelet no longer reports, or never did.

mod small_type;

use crate::case::left_taint::OUT_OF_SERVICE;
use crate::cluster_state::memo::Memo;
use crate::effective::Origin;
use crate::explain::commands;
use crate::explain::instance_questions::ask_the_instance;
use crate::explain::logged::{self, Root};
use crate::explain::repair;
use crate::facts::little_reserved::{LittleReserved, little_reserved};
use crate::objects::{Condition, Event, Node};
use crate::rules::prelude::*;
use chrono::TimeDelta;
use logs::fact::Trouble;
use readers::source_text;
use small_type::{SmallType, small_type};
use std::collections::BTreeMap;

rule! {
    cause: KubeletStopped,
    summary: "The kubelet stopped posting the Node's status, or never posted it",
    stages: [Initialize, Ready],
    reads: [Nodes, NodeClaims, NodeClasses, Events, Pods, Deployments, AwsObservations, Logs],
    versions: "all",
}

/// The time between the last Event and the node controller's verdict. A thrashing node may still renew its Lease for
/// some time.
const SHORTLY: TimeDelta = TimeDelta::minutes(15);

const PANICKED: &str = "Read the console above the panic. A name in brackets behind a function is the kernel module in \
                        which it happened. Remove or roll back what loads that module, or boot another kernel. Then \
                        replace the node, which removes its pods.";

const STOPPED: &str = "Start the kubelet on the instance (systemctl start kubelet), which keeps its pods. Or replace \
                       the node, which removes them. Then find out what stopped it.";

const STOPPED_WITH_RUNTIME: &str = "Start the kubelet on the instance (systemctl start kubelet), which keeps its pods. \
                                    Or replace the node, which removes them. Then read why containerd ended. For new \
                                    nodes, use an image whose kubelet comes back with containerd.";

/// An Event about the node right before its kubelet fell silent, and its meaning.
struct LastWord {
    reason: &'static str,
    why: &'static str,
    because: &'static str,
    fix: &'static str,
}

/// Sources: kubernetes v1.36.3 pkg/kubelet/oom/oom_watcher_linux.go, pkg/kubelet/events/event.go;
/// karpenter-provider-aws v1.14.1 pkg/controllers/interruption/events/events.go.
const LAST_WORDS: [LastWord; 5] = [
    LastWord {
        reason: "SystemOOM",
        why: "the node ran out of memory",
        because: "the kernel killed processes, and those that survived may hang",
        fix: "Replace the node, which removes its pods. Then reserve memory for the system (kubeReserved, \
              systemReserved, evictionHard) and give the pods memory limits.",
    },
    LastWord {
        reason: "FreeDiskSpaceFailed",
        why: "the node's disk was full",
        because: "the kubelet could not delete enough",
        fix: "Replace the node, which removes its pods. Then give the nodes a larger root volume (EC2NodeClass \
              spec.blockDeviceMappings), and limit what pods and logs write there.",
    },
    LastWord {
        reason: "SpotInterrupted",
        why: "EC2 announced that it reclaims the Spot instance",
        because: "EC2 ends the instance two minutes after the warning",
        fix: "There is nothing to fix: EC2 took the Spot instance back. Delete the Node if no controller does.",
    },
    LastWord {
        reason: "InstanceTerminating",
        why: "EC2 was terminating the instance",
        because: "Karpenter got the message from the interruption queue",
        fix: "Find out who terminates instances that Karpenter has launched. Delete the Node if no controller does.",
    },
    LastWord {
        reason: "InstanceStopping",
        why: "EC2 was stopping the instance",
        because: "Karpenter got the message from the interruption queue",
        fix: "Find out who stops instances that Karpenter has launched. Delete the Node if no controller does.",
    },
];

fn last_word<'w>(case: &Case<'w>, ready: &Condition) -> Option<(&'static LastWord, &'w Event)> {
    let silent = ready.last_transition_time?;
    let before = |e: &Event| e.last_seen().is_some_and(|at| at <= silent && silent - at <= SHORTLY);
    LAST_WORDS.iter().find_map(|word| Some((word, case.events().find(|e| e.reason == word.reason && before(e))?)))
}

fn check(case: &Case) -> Option<Opinion> {
    let node = case.node?;
    let ready = node.condition("Ready")?;
    // Source: kubernetes v1.36.3 pkg/controller/nodelifecycle/node_lifecycle_controller.go `tryUpdateNodeHealth`.
    let what = match ready.reason.as_str() {
        "NodeStatusUnknown" => format!("has posted no status since {} (Ready is Unknown)", case.since()),
        "NodeStatusNeverUpdated" => "has never posted a status".to_owned(),
        _ if ready.is_true() || ready.is_false() => {
            return Some(Opinion::ruled_out(node, format!("the kubelet of Node {} posts its status", node.name())));
        }
        _ => return None,
    };
    let said = last_word(case, ready);
    let image = silent_image(case);
    let logged = logged_end(case, ready).filter(|_| said.is_none());
    let out_of_memory = said.filter(|(word, _)| word.reason == "SystemOOM");
    let little = out_of_memory.and_then(|_| little_reserved(case));
    let small = out_of_memory.filter(|_| little.is_none()).and_then(|_| small_type(case));
    let why = match (said, &logged, &image) {
        (Some((word, event)), ..) => {
            let reserved = little.as_ref().map_or_else(String::new, reserved_in_words);
            let of_type = small.as_ref().map_or_else(String::new, SmallType::in_words);
            format!("right before, {} ({}).{reserved}{of_type}", word.why, event.said().trim_end_matches('.'))
        }
        (None, Some(logged), _) => end_in_words(logged),
        (None, None, Some(image)) => {
            format!("most nodes of its image {image} are silent too, and none of another image: the image may be why.")
        }
        (None, None, None) => "the instance is gone, hangs, or cannot reach the API server.".to_owned(),
    };
    // k8s.io/cloud-provider v0.36.3 controllers/nodelifecycle: where the search by name finds nothing, AWS's provider
    // returns an error, and a Node is only deleted without one (kubernetes/cloud-provider-aws#1471,
    // kubernetes/kubernetes#139301).
    let orphan = node.spec.provider_id.is_empty();
    let tail = if orphan {
        " It has no providerID, so the cloud controller does not delete it when its instance is gone."
    } else {
        ""
    };
    let unrepaired = ready.last_transition_time.and_then(|silent| repair::unrepaired(case, Some(silent)));
    let repair = unrepaired.map_or_else(String::new, |unrepaired| {
        format!(" Karpenter's node repair does not replace it: {}.", unrepaired.why)
    });
    let summary = format!("The kubelet of Node {} {what}: {why}{tail}{repair}", node.name());
    let finding = Finding::new(
        Confidence::Likely,
        summary,
        Evidence::new(
            format!("Node/{}", node.name()),
            r#"status.conditions[?(@.type=="Ready")]"#,
            ready.shown(),
            "the kubelet has renewed neither status nor Lease, so the node controller writes the status",
        ),
    )
    .blaming(Blame::object("v1", "Node", node.name()));
    let finding = match image.filter(|_| said.is_none()) {
        Some(image) => of_image(case, &image, finding),
        None => finding,
    };
    let finding = if orphan { without_provider_id(node.name(), finding) } else { finding };
    let finding = match (little, small) {
        (Some(little), _) => of_reservation(case, &little, finding),
        (None, Some(small)) => small.onto(finding),
        (None, None) => finding,
    };
    let finding = match (said, logged) {
        (Some((word, event)), _) => finding
            .with(
                Evidence::new(format!("Event/{}", event.metadata.name), "reason", word.reason, word.because)
                    .figures(format!("{} times", event.times())),
            )
            .linked([
                Link::new(format!("Node/{}", node.name()), ready.shown()),
                Link::new(format!("Event/{}", event.metadata.name), format!("{}: {}", word.reason, event.said())),
            ])
            .fix(word.fix),
        (None, Some(logged)) => of_log(case, &logged, finding),
        (None, None) if orphan => finding
            .fix("Find out whether an instance with that private DNS name still runs. If none does, delete the Node."),
        (None, None) if !finding.fix.is_empty() => finding,
        (None, None) => finding.fix(
            "Look at the instance. The usual reasons are memory, disk or network. If it does not recover, replace the \
             node, which removes its pods.",
        ),
    };
    let finding =
        finding.inspect("See the Node's conditions and events", format!("kubectl describe node {}", node.name()));
    let finding = held_pods(case, node, repair::or_replace(case, finding));
    repair::who_replaces(case, ask_the_instance(case, finding)).into()
}

fn reserved_in_words(little: &LittleReserved) -> String {
    format!(
        " Its node class reserves little memory for the kubelet ({}). An EKS image by itself reserves at least 255Mi.",
        source_text::mask(&little.said)
    )
}

fn of_reservation(case: &Case, little: &LittleReserved, finding: Finding) -> Finding {
    let Some(class) = case.class() else { return finding };
    let blame = match (&little.origin, class.spec.user_data.as_deref()) {
        (Origin::UserData(span), Some(text)) => Blame::class(class).field("spec.userData").at(text, *span),
        (Origin::NodeClass(field), _) => Blame::class(class).field(field.clone()),
        _ => Blame::class(class),
    };
    finding
        .with(Evidence::new(
            format!("{}/{}", class.kind, class.name()),
            blame.field.clone().unwrap_or_default(),
            source_text::mask(&little.said),
            "pods may use the memory that the kubelet and containerd need",
        ))
        .blaming(blame)
        .change("Reserve more memory on new nodes", commands::edit(class))
}

/// What the node's own log says of the end of its kubelet.
fn logged_end<'w>(case: &Case<'w>, ready: &Condition) -> Option<Root<'w>> {
    let stopped = || logged::stopped_kubelet(case, ready.last_transition_time?);
    logged::of_kind(case, Trouble::KernelPanicked).or_else(stopped)
}

fn end_in_words(logged: &Root<'_>) -> String {
    if logged.fact.trouble == Trouble::KubeletStopped {
        return logged.stop_in_words();
    }
    let module = logged.module_in_words().map_or_else(String::new, |module| format!(" {module}"));
    format!("{}: {}.{module}", logged.fact.means, logged::excerpt(&logged.fact.last.text))
}

fn of_log(case: &Case, logged: &Root<'_>, finding: Finding) -> Finding {
    let finding = finding.with(logged.evidence());
    if logged.fact.trouble == Trouble::KubeletStopped {
        let fix = if logged.fact.runtime_end.is_some() { STOPPED_WITH_RUNTIME } else { STOPPED };
        return finding.with_all(logged.of_runtime_end()).fix(fix);
    }
    let finding = finding.with_all(logged.of_module()).with_all(logged.pod_like_module(case));
    match logged.module_fix() {
        Some(fix) => finding.fix(fix),
        None => finding.fix(PANICKED),
    }
}

/// Adds the deleted pods that cannot end. Only the kubelet confirms that a pod has ended. Until then its volumes stay
/// attached, and a StatefulSet creates no replacement.
/// Source: kubernetes v1.36.3 pkg/controller/podgc/gc_controller.go `gcTerminating`.
fn held_pods(case: &Case, node: &Node, finding: Finding) -> Finding {
    let ending = case.pods().filter(|pod| pod.metadata.deletion_timestamp.is_some() && pod.daemon_set().is_none());
    let names: Vec<&str> = ending.map(|pod| pod.metadata.name.as_str()).collect();
    let Some(first) = names.first() else { return finding };
    finding
        .with(Evidence::new(
            format!("Pod/{first}"),
            "metadata.deletionTimestamp",
            format!("set, as of {} pods there", names.len()),
            "only the kubelet confirms that a pod has ended: until then its volumes stay attached, and no pod of the \
             same name can start",
        ))
        .destroy(
            "Only if the instance is certainly off: free its pods and volumes with this taint",
            format!("kubectl taint node {} {OUT_OF_SERVICE}=nodeshutdown:NoExecute", node.name()),
        )
        .step(Risk::LowRisk, "Remove that taint when the node is back", None)
}

/// The nodes of a class by image: those whose kubelet has fallen silent, and those that are Ready.
static BY_IMAGE: Memo<BTreeMap<String, (u32, u32)>> = Memo::new("silent kubelets of a class by image");

/// The node's image, if most nodes of the class with it have fallen silent, several of them, and none with another
/// image has. Otherwise something else stops nodes of all images.
fn silent_image(case: &Case) -> Option<String> {
    let class = case.class()?;
    let own = case.claim?.status.image_id.as_str();
    let by_image = case.cluster.once(&BY_IMAGE, &format!("{}/{}", class.kind, class.name()), || {
        let mut by_image: BTreeMap<String, (u32, u32)> = BTreeMap::new();
        for claim in case.cluster.claims_of_class(&class.kind, class.name()) {
            let nodes = case.cluster.nodes_of(claim);
            let Some(ready) = nodes.first().and_then(|node| node.condition("Ready")) else { continue };
            let (silent, working) = by_image.entry(claim.status.image_id.to_string()).or_default();
            *silent += u32::from(ready.reason == "NodeStatusUnknown");
            *working += u32::from(ready.is_true());
        }
        by_image
    });
    let (silent, working) = *by_image.get(own).filter(|_| !own.is_empty())?;
    let mut others = by_image.iter().filter(|(image, _)| *image != own).map(|(_, counted)| *counted);
    let others_work = others.clone().any(|(_, working)| working > 0) && others.all(|(silent, _)| silent == 0);
    let named = class.status.amis.iter().find(|ami| ami.id == own).map(|ami| ami.name.as_str());
    (silent >= 2 && silent > working && others_work)
        .then(|| named.filter(|name| !name.is_empty()).unwrap_or(own).to_owned())
}

fn of_image(case: &Case, image: &str, finding: Finding) -> Finding {
    let Some(class) = case.class() else { return finding };
    finding
        .with(Evidence::new(
            case.subject(),
            "status.imageID",
            image,
            "most nodes of the class with this image have fallen silent, and none with another",
        ))
        .blaming(Blame::class(class).field("spec.amiSelectorTerms"))
        .fix(
            "Pin the image of the working nodes of the class. Then replace the silent nodes, which removes their pods.",
        )
        .change("Pin the other image", commands::edit(class))
}

fn without_provider_id(name: &str, finding: Finding) -> Finding {
    let because = "the cloud controller identifies an instance by this id, and cannot tell that a Node without it has \
                   lost its instance";
    finding
        .with(Evidence::new(format!("Node/{name}"), "spec.providerID", "empty", because))
        .inspect(
            "See whether the instance still runs",
            format!(
                "aws ec2 describe-instances --filters Name=private-dns-name,Values={name} --query \
                 'Reservations[].Instances[].[InstanceId,State.Name]'"
            ),
        )
        .destroy("Delete the Node if no such instance runs", format!("kubectl delete node {name}"))
}
