//! Karpenter calls the Node usable, but an agent's taint keeps it empty.

use crate::explain::startup_taints::{ask_remover, explain};
use crate::objects::{NodeClaim, Taint};
use crate::rules::prelude::*;
use crate::upstream::startup_taint;

rule! {
    cause: AgentTaintRemains,
    summary: "The Node is initialized, but a taint that some agent should remove keeps pods off it",
    stages: [Ready],
    reads: [Nodes, NodeClasses, Events, Pods, DaemonSets, Logs],
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let node = case.node.filter(|n| n.is_ready())?;
    let meant = |taint: &Taint| case.claim.is_some_and(|c| c.spec.taints.iter().any(|own| own.matches(taint)));
    let mut of_agents = node.spec.taints.iter().filter(|t| t.keeps_pods_off() && !meant(t));
    let (taint, owner) = of_agents.find_map(|t| Some((t, startup_taint::owner(t).filter(|o| !o.has_rules())?)))?;
    let name = node.name();
    let pool = case.claim.and_then(NodeClaim::node_pool).unwrap_or("unknown");
    // Only Karpenter waits for startup taints, so only its Nodes need a declaration.
    let declared = case.claim.is_none_or(|c| c.spec.startup_taints.iter().any(|s| s.matches(taint)));
    let explanation = explain(case, node, pool, taint, owner);
    let remover = owner.remover.unwrap_or(owner.name);
    let undeclared = if declared {
        ""
    } else {
        ". The NodePool does not declare it as a startup taint, so Karpenter calls the Node usable and launches more \
         for the same pods"
    };
    let summary = format!(
        "Taint {taint} keeps pods off Node {name}: {remover} should remove it, but {}{undeclared}.",
        explanation.why.trim_end_matches('.')
    );
    let evidence = Evidence::new(
        format!("Node/{name}"),
        "spec.taints",
        taint.to_string(),
        format!("{} sets this taint for as long as it is not ready on the Node", owner.name),
    );
    let symptom = Link::new(format!("Node/{name}"), format!("taint {taint}"));
    let finding = explanation.found(case, summary, evidence, symptom);
    let mut finding = ask_remover(case, finding, owner);
    // Who made a Node without a NodeClaim, a node group or kubeadm, is not among the objects.
    if case.claim.is_none() && finding.blame.as_ref().is_some_and(|blame| blame.kind == "NodePool") {
        finding = finding.blaming(Blame::object("v1", "Node", name).field("spec.taints"));
    }
    if !declared {
        let field = "spec.template.spec.startupTaints";
        finding = finding.with(Evidence::new(
            format!("NodePool/{pool}"),
            field,
            "absent",
            "Karpenter only waits for declared startup taints",
        ));
        // Karpenter would wait forever for a taint that nothing removes from its Nodes.
        if !owner.passes_over_karpenters_nodes() {
            finding = finding.change(
                "Declare the taint as a startup taint, so that Karpenter waits for it",
                format!("kubectl edit nodepool {pool}"),
            );
        }
        // Where its agent is well, what is wrong is the NodePool.
        if finding.blame.as_ref().is_some_and(|b| b.kind == "Node") && owner.otherwise.is_none() {
            finding = finding.blaming(Blame::object("karpenter.sh/v1", "NodePool", pool).field(field));
        }
    }
    finding
        .change(
            "Let pods onto this node now. They may start before the agent is ready for them",
            format!("kubectl taint node {name} {}:{}-", taint.key, taint.effect),
        )
        .into()
}
