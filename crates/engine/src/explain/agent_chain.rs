//! From an agent that a Node waits for down to the reason why it does not work there: its pod, the pod's message, its
//! meaning, the object to change.
//!
//! A symptom is no cause: if no link proves the reason behind it, the last link is an open question.

mod across_images;
mod agent;
mod behind;
mod go_panic;
mod host_path;
mod machine_settings;
mod own_host;
mod pod;
mod port;
mod proxy_skew;
mod refusal;
mod room;
mod said;
mod sandbox_ends;
mod waited_for;
mod without_kube_proxy;
mod words;

pub(crate) use machine_settings::LIBRARY_OF_RUNC;
pub(crate) use pod::{cannot_be_set_up, of_pod};
pub(crate) use refusal::refused;
pub(crate) use words::last_words;

use crate::api::{Blame, Link};
use crate::case::Case;
use crate::explain::commands;
use crate::explain::explanation::{Explanation, Proof};
use crate::facts::deployment_pods;
use crate::facts::network_plugin::{KUBE_PROXY, rank};
use crate::facts::placement;
use crate::objects::input::Input;
use crate::objects::{DaemonSet, Node, Pod, Taint};
use crate::upstream::startup_taint;

/// The causes that a chain may lead to, and so the inputs that a rule reads if it follows one.
fn reads(case: &Case) {
    for input in [Input::Nodes, Input::NodeClasses, Input::Events, Input::Pods, Input::DaemonSets, Input::Logs] {
        case.cluster.asks(input);
    }
}

/// Why a DaemonSet of this name has no pod on the Node.
pub(crate) fn without_pod(case: &Case, node: &Node, name: &str) -> Explanation {
    reads(case);
    let set = case.cluster.daemon_sets().find(|d| d.metadata.name == *name);
    let namespace = set.and_then(|set| set.metadata.namespace.as_deref());
    let object = format!("DaemonSet/{name}");
    if let Some(refused) = refused(case, node, name, namespace) {
        return refused.explanation(case, name);
    }
    let blame = Blame::object("apps/v1", "DaemonSet", name).namespace(namespace.unwrap_or("kube-system"));
    let describe = format!("kubectl describe daemonset -n {} {name}", namespace.unwrap_or("kube-system"));
    if let Some((set, kept)) = set.and_then(|set| Some((set, placement::refusal(set, node)?))) {
        return kept_away(case, node, set, &kept);
    }
    if case.cluster.missing(Input::Pods).is_some() {
        let why = format!("nodewhy could not read whether a pod of DaemonSet {name} runs on it");
        return Explanation::new(Proof::None, why, blame, Link::new(object, "nodewhy could not read its pods"))
            .fix(format!("Get the pod of DaemonSet {name} running on this node."))
            .ask(format!("Does a pod of DaemonSet {name} run there?"), pods_on(node));
    }
    let why = format!("DaemonSet {name} has no pod on it");
    Explanation::new(Proof::Open, why, blame, Link::new(object, format!("it has no pod on Node {}", node.name())))
        .fix(format!(
            "Find out why DaemonSet {name} creates no pod there: its events name a quota, an admission policy or its \
             own affinity."
        ))
        .inspect("See why the DaemonSet creates no pod", describe.clone())
        .ask(format!("Which error do the events of DaemonSet {name} report?"), describe)
}

/// Source: kubernetes v1.36.3 pkg/controller/nodelifecycle/node_lifecycle_controller.go
/// `nodeConditionToTaintKeyStatusMap`.
const NOT_READY: &str = "node.kubernetes.io/not-ready";

fn kept_away(case: &Case, node: &Node, set: &DaemonSet, kept: &placement::KeptAway) -> Explanation {
    let name = &set.metadata.name;
    let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
    let blame = Blame::object("apps/v1", "DaemonSet", name).namespace(namespace).field(kept.field);
    let proof = if kept.may_change { Proof::Lasting } else { Proof::Settled };
    let waits = kept.taint.as_ref().and_then(|taint| waits_in_turn(case, name, taint));
    let link = Link::new(format!("DaemonSet/{name}"), kept.why.clone());
    let mut explanation = Explanation::new(proof, kept.why.clone(), blame, link);
    explanation
        .links
        .extend(kept.taint.as_ref().map(|taint| Link::new(format!("Node/{}", node.name()), taint.to_string())));
    if let Some((why, link)) = waits {
        explanation.why.push_str(&why);
        explanation.links.push(link);
    }
    match &kept.taint {
        Some(taint) => explanation
            .fix(format!(
                "Add a toleration for {} to DaemonSet {name}, and to the chart's values, or the next helm upgrade \
                 removes it. An agent that every node needs may instead tolerate every taint (operator: Exists).",
                taint.key
            ))
            .change("Add the toleration", commands::tolerate(set, taint)),
        None => explanation
            .fix(kept.selection_fix(name))
            .inspect("See what it selects", format!("kubectl describe daemonset -n {namespace} {name}")),
    }
}

/// Two that wait for each other. Either the taint goes with its owner's pod, which needs the network of this DaemonSet,
/// or with the Node's readiness, which needs this DaemonSet.
fn waits_in_turn(case: &Case, name: &str, taint: &Taint) -> Option<(String, Link)> {
    if taint.key == NOT_READY {
        let why = ". The taint is removed only after the Node is Ready, and for that the Node needs the pod: they \
                   wait for each other";
        let node = case.node.map(Node::name).unwrap_or_default();
        let says = "its taint is removed only after it is Ready";
        return Some((why.to_owned(), Link::new(format!("Node/{node}"), says)));
    }
    if name != KUBE_PROXY && rank(name).is_none() {
        return None;
    }
    let owner = startup_taint::owner(taint)?;
    let pod = case.pods().find(|p| p.daemon_set().is_some_and(|d| owner.is(d) && d != name) && !p.is_ready())?;
    let why = format!(
        ". {} removes that taint only after its pod {} is Ready, and that pod needs the network: they wait for each \
         other",
        owner.remover.unwrap_or(owner.name),
        pod.metadata.name
    );
    let says = format!("it needs DaemonSet {name}, and the taint is removed only after this pod is Ready");
    Some((why, Link::new(format!("Pod/{}", pod.metadata.name), says)))
}

/// The component that removes a taint waits for a Node itself: for one without the taint, or for another reason.
pub(crate) fn remover_waits(case: &Case, taint: &Taint, owner: &startup_taint::TaintOwner) -> Option<Explanation> {
    let deployment = owner.remover_deployment()?;
    let own = case.cluster.pods_without_node().filter(|pod| pod.is_of_deployment(deployment));
    let waiting: Vec<(&Pod, &str)> = own.filter_map(|pod| Some((pod, pod.unscheduled()?))).collect();
    // Newer schedulers do not say which: kubernetes v1.36.3 plugins/tainttoleration/taint_toleration.go.
    let tolerates = |pod: &Pod| pod.spec.tolerations.iter().any(|own| own.tolerates(taint));
    let is_kept_off = |(pod, said): &&(&Pod, &str)| said.contains("untolerated taint") && !tolerates(pod);
    let kept_off = waiting.iter().find(is_kept_off);
    let (pod, said) = *kept_off.or(waiting.first())?;
    // Where one of them runs, the taint goes all the same.
    if !deployment_pods::on_nodes(case, deployment).is_empty() {
        return None;
    }
    let (name, namespace) = (&pod.metadata.name, pod.metadata.namespace.as_deref().unwrap_or_default());
    let of_deployment = Blame::object("apps/v1", "Deployment", deployment).namespace(namespace);
    // EKS shows no Nodes of the control plane.
    let wants_control_plane = pod.spec.node_selector.keys().any(|key| key == CONTROL_PLANE);
    let (why, blame, fix) = if wants_control_plane {
        (
            format!("its pod {name} selects Nodes of the control plane, which an EKS cluster does not have"),
            of_deployment.field("spec.template.spec.nodeSelector"),
            format!("Remove {CONTROL_PLANE} from the nodeSelector of Deployment {deployment}."),
        )
    } else if kept_off.is_some() {
        (
            format!(
                "its pod {name} waits for a Node without that taint: Deployment {deployment} does not tolerate it, so \
                 both wait for each other"
            ),
            of_deployment.field("spec.template.spec.tolerations"),
            format!(
                "Add a toleration for {} to Deployment {deployment}, or give it nodes without the taint.",
                taint.key
            ),
        )
    } else {
        (
            format!("its pod {name} waits for a Node itself: {said}"),
            of_deployment,
            format!("Give Deployment {deployment} a Node that its pods may run on. Then it removes {}.", taint.key),
        )
    };
    Some(
        Explanation::new(Proof::Settled, why, blame, Link::new(format!("Pod/{name}"), said))
            .after(Link::new(format!("Deployment/{deployment}"), format!("it removes the taint {}", taint.key)))
            .fix(fix)
            .inspect("See what it waits for", format!("kubectl describe pod -n {namespace} {name}")),
    )
}

const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";

fn pods_on(node: &Node) -> String {
    format!("kubectl get pods -A -o wide --field-selector spec.nodeName={}", node.name())
}
