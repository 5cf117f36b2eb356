//! A taint that the NodePool declares as a startup taint and that no component removes.

use crate::cluster_state::memo::Memo;
use crate::explain::agent_chain::of_pod;
use crate::explain::explanation::Proof;
use crate::explain::pulls_by_image::pulls_by_image;
use crate::explain::startup_taints::{ask_remover, explain, never_removes, pod_of, staying};
use crate::objects::{Node, NodeClaim, Pod, Taint};
use crate::rules::prelude::*;
use crate::upstream::startup_taint;

rule! {
    cause: StartupTaintStays,
    summary: "A startup taint is still on the Node: the component that should remove it has not done so",
    stages: [Initialize],
    reads: [
        Nodes, NodeClaims, NodeClasses, Events, Pods, DaemonSets, Deployments, MutatingWebhooks, ValidatingWebhooks,
        Logs,
    ],
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let (node, claim) = (case.node?, case.claim?);
    let Some((first, all)) = staying(case) else {
        let because = format!("no startup taint of NodeClaim {} is left on Node {}", claim.name(), node.name());
        return Some(Opinion::ruled_out(node, because));
    };
    // A Node that is not Ready cannot run the pod that removes the taint: the reason for NotReady comes first.
    if !node.is_ready() {
        return None;
    }
    let finding = match startup_taint::owner(first) {
        None => unowned(case, claim, node, first),
        Some(owner) => match pod_of(case, owner).filter(|pod| owner.remover.is_none() && pod.is_ready()) {
            Some(pod) if never_removes(case, node, first, pod).is_none() => {
                return Some(Opinion::ruled_out(pod, format!("{} runs on the Node and has done its part", owner.name)));
            }
            _ => owned(case, claim, node, first, owner),
        },
    };
    let object = format!("Node/{}", node.name());
    let list = all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    finding
        .with(Evidence::new(
            object,
            "spec.taints",
            list,
            "Karpenter never removes startup taints: it waits until another component does",
        ))
        .into()
}

fn unowned(case: &Case, claim: &NodeClaim, node: &Node, taint: &Taint) -> Finding {
    static REMOVED: Memo<Vec<Vec<Taint>>> = Memo::new("the startup taints of nodes of a NodePool that got rid of them");
    let pool = claim.node_pool().unwrap_or("unknown");
    let summary = format!(
        "Startup taint {taint} of NodePool {pool} has been on Node {} since {}: nothing that nodewhy knows removes it, \
         and Karpenter waits for that without a time limit.",
        claim.status.node_name,
        case.since()
    );
    // Another machine of the pool got rid of it: then somebody does remove it, only not here.
    let removed = case.cluster.once(&REMOVED, pool, || {
        let mut removed: Vec<Vec<Taint>> = Vec::new();
        for other in case.cluster.claims_of_pool(pool).filter(|other| other.is_true("Initialized")) {
            if !removed.contains(&other.spec.startup_taints) {
                removed.push(other.spec.startup_taints.clone());
            }
        }
        removed
    });
    let removed_elsewhere = !claim.is_true("Initialized") && removed.contains(&claim.spec.startup_taints);
    let failing = || case.pods().filter(|p| p.daemon_set().is_some() && !p.is_ready() && p.trouble().is_some());
    if let Some(pod) = failing().next().filter(|_| removed_elsewhere) {
        return waits_for(case, node, taint, pod);
    }
    let confidence = if removed_elsewhere { Confidence::Possible } else { Confidence::Likely };
    Finding::new(
        confidence,
        summary,
        Evidence::new(
            format!("NodePool/{pool}"),
            "spec.template.spec.startupTaints",
            taint.to_string(),
            "a startup taint promises that some controller removes it; a toleration is not enough",
        ),
    )
    .blaming(Blame::object("karpenter.sh/v1", "NodePool", pool).field("spec.template.spec.startupTaints"))
    .fix(
        "Declare the taint under taints instead of startupTaints, or install the component that removes it. Changing \
         the NodePool makes Karpenter replace its nodes as drifted.",
    )
    .change(
        "Move the taint from startupTaints to taints, if pods only need a toleration",
        format!("kubectl edit nodepool {pool}"),
    )
    .change(
        "Let pods onto this node now, if you are certain that the taint guards nothing",
        format!("kubectl taint node {} {}:{}-", claim.status.node_name, taint.key, taint.effect),
    )
}

/// On other nodes the taint goes, and here an agent of the Node fails. Controllers that mark Nodes as ready wait for
/// the pods of all DaemonSets.
fn waits_for(case: &Case, node: &Node, taint: &Taint, pod: &Pod) -> Finding {
    let mut explanation = of_pod(case, node, pod);
    // That the taint waits for this pod nobody says.
    explanation.proof = Proof::Open;
    let (name, set) = (node.name(), pod.daemon_set().unwrap_or_default());
    let by_image = pulls_by_image(case, pod);
    let waits = if let Some(by_image) = &by_image {
        format!("The controller that removes it may wait for DaemonSet {set}. {}", by_image.sentences())
    } else {
        let why = explanation.why.trim_end_matches('.');
        format!("The controller that removes it may wait for DaemonSet {set}, whose {why}.")
    };
    let summary = format!(
        "Startup taint {taint} has been on Node {name} since {}, but it was removed from other nodes of the NodePool. \
         {waits}",
        case.since()
    );
    if let Some(by_image) = by_image {
        explanation = by_image.onto(case, explanation);
    }
    let evidence = Evidence::new(
        format!("Node/{name}"),
        "spec.taints",
        taint.to_string(),
        "this taint was removed from other nodes of the NodePool",
    );
    let symptom = Link::new(format!("Node/{name}"), format!("taint {taint}"));
    explanation.found(case, summary, evidence, symptom).unknown(
        format!("Which component removes {taint}, and what does it wait for?"),
        format!("kubectl get node {name} -o yaml --show-managed-fields"),
    )
}

fn owned(case: &Case, claim: &NodeClaim, node: &Node, taint: &Taint, owner: &startup_taint::TaintOwner) -> Finding {
    let explanation = explain(case, node, claim.node_pool().unwrap_or("unknown"), taint, owner);
    let remover = owner.remover.unwrap_or(owner.name);
    let node = node.name();
    let summary = format!(
        "Startup taint {taint} has been on Node {node} since {}: {remover} should remove it, but {}.",
        case.since(),
        explanation.why.trim_end_matches('.')
    );
    let evidence = Evidence::new(
        format!("Node/{node}"),
        "spec.taints",
        taint.to_string(),
        format!("{} removes this taint once it is ready on the Node", owner.name),
    );
    let pods = || format!("kubectl get pods -A -o wide --field-selector spec.nodeName={node}");
    let symptom = Link::new(format!("Node/{node}"), format!("taint {taint}"));
    let finding = explanation.found(case, summary, evidence, symptom);
    let finding = if owner.otherwise.is_some() {
        finding.inspect("See the Node's taints and conditions", format!("kubectl describe node {node}"))
    } else {
        finding
    };
    if owner.otherwise.is_some() && !owner.has_rules() {
        return finding;
    }
    if owner.has_rules() {
        return finding
            .inspect(
                "See the rules and the conditions that they require",
                "kubectl get nodereadinessrules -o yaml".to_owned(),
            )
            .unknown(
                "Which condition does the rule of this taint require, and which component reports it?",
                "kubectl get nodereadinessrules -o yaml".to_owned(),
            );
    }
    let finding =
        ask_remover(case, finding, owner).inspect(format!("See what {} does on the Node", owner.name), pods());
    let finding = match case.class() {
        Some(class) if metadata_out_of_reach(case, owner) => finding.unknown(
            format!(
                "Does the pod need the instance's metadata? {} {} keeps it at the instance (httpPutResponseHopLimit \
                 1).",
                class.kind,
                class.name()
            ),
            format!(
                "kubectl logs -n {} {} --all-containers --tail=50",
                pod_of(case, owner).and_then(|p| p.metadata.namespace.as_deref()).unwrap_or("kube-system"),
                pod_of(case, owner).map_or("POD", |p| p.metadata.name.as_str())
            ),
        ),
        _ => finding,
    };
    if case.cluster.missing(Input::Pods).is_some() {
        finding.unknown(format!("Does the pod of {} run on {node}?", owner.name), pods())
    } else {
        finding
    }
}

/// The agent's pod fails, and cannot reach the instance's metadata: answers die at the first hop.
fn metadata_out_of_reach(case: &Case, owner: &startup_taint::TaintOwner) -> bool {
    let limited = case.class().is_some_and(|c| c.spec.metadata_options.http_put_response_hop_limit == Some(1));
    limited && pod_of(case, owner).is_some_and(|p| !p.spec.host_network && p.trouble().is_some())
}
