//! A NodePool whose node class belongs to another Karpenter than the one that runs here, or to an Auto Mode that is
//! off: no controller works on it.

use crate::case::stage::Inert;
use crate::objects::NodePool;
use crate::rules::prelude::*;
use chrono::TimeDelta;

rule! {
    cause: NodeClassNotServed,
    summary: "The NodePool refers to a node class of another Karpenter than the one that runs here, or of an Auto Mode \
              that is off",
    stages: [Launch],
    reads: [NodePools, Deployments],
    versions: "all",
}

const AUTO_MODE: &str = "eks.amazonaws.com";

/// Auto Mode writes conditions within seconds.
const LOOKED_AT_WITHIN: TimeDelta = TimeDelta::minutes(10);

fn check(case: &Case) -> Option<Opinion> {
    match (case.wait.symptom, case.pool()) {
        (Symptom::Inert(Inert::ClassNotServed), Some(pool)) => of_another(case, pool),
        (Symptom::Inert(Inert::AutoModeOff), Some(pool)) => auto_mode_off(case, pool),
        _ => None,
    }
}

fn auto_mode_off(case: &Case, pool: &NodePool) -> Option<Opinion> {
    let made = pool.metadata.creation_timestamp;
    let due = made.and_then(|made| made.checked_add_signed(LOOKED_AT_WITHIN))?;
    if due > case.now {
        return Some(Opinion::LookAgain(due));
    }
    let (name, reference) = (pool.name(), &pool.spec.template.spec.node_class_ref);
    Finding::new(
        Confidence::Certain,
        format!(
            "NodePool {name} launches nothing: it refers to {} {} of {AUTO_MODE}, which only EKS Auto Mode works on, \
             and no controller has worked on it since it was created. Auto Mode is switched off, and its custom \
             resources alone do nothing.",
            reference.kind, reference.name
        ),
        Evidence::new(
            format!("NodePool/{name}"),
            "status.conditions",
            "none",
            "Auto Mode's Karpenter writes conditions within seconds, and no NodePool here has any",
        ),
    )
    .blaming(Blame::object("karpenter.sh/v1", "NodePool", name).field("spec.template.spec.nodeClassRef"))
    .fix(
        "Switch EKS Auto Mode on for the cluster. In Terraform, set enabled = true in compute_config: without it, an \
         apply switches Auto Mode off. Or install Karpenter and refer to an EC2NodeClass.",
    )
    .step(Risk::LowRisk, "Switch EKS Auto Mode on", None)
    .inspect("See which node class the NodePool refers to", format!("kubectl get nodepool {name} -o yaml"))
    .ask_aws(
        "Is Auto Mode on?",
        format!(
            "aws eks describe-cluster --name {} --query cluster.computeConfig",
            case.cluster_name().unwrap_or("CLUSTER")
        ),
    )
    .into()
}

fn of_another(case: &Case, pool: &NodePool) -> Option<Opinion> {
    let (name, reference) = (pool.name(), &pool.spec.template.spec.node_class_ref);
    let served = case.cluster.pools().find(|other| !other.status.conditions.is_empty());
    let served = served?;
    let theirs = &served.spec.template.spec.node_class_ref;
    let runs = match theirs.group.as_str() {
        AUTO_MODE => "EKS Auto Mode",
        _ => "a Karpenter of your own",
    };
    let fix = match theirs.group.as_str() {
        AUTO_MODE => {
            "Create a NodeClass of eks.amazonaws.com/v1 with the settings of the class and refer to it. Or install \
             Karpenter beside Auto Mode: its custom resources alone do nothing."
        }
        _ => "Refer to a node class of the kind that this Karpenter knows, or turn EKS Auto Mode on.",
    };
    Finding::new(
        Confidence::Certain,
        format!(
            "NodePool {name} launches nothing: it refers to {} {} of {}, and no controller here works on that kind. \
             This cluster runs {runs}, which knows {} of {}.",
            reference.kind, reference.name, reference.group, theirs.kind, theirs.group
        ),
        Evidence::new(
            format!("NodePool/{name}"),
            "spec.template.spec.nodeClassRef",
            format!("{} {} ({})", reference.kind, reference.name, reference.group),
            "Karpenter ignores NodePools if their kind of node class is not its provider's",
        ),
    )
    .with(Evidence::new(
        format!("NodePool/{name}"),
        "status.conditions",
        "none",
        format!("NodePool {} has some: Karpenter runs, but has not worked on this one", served.name()),
    ))
    .blaming(Blame::object("karpenter.sh/v1", "NodePool", name).field("spec.template.spec.nodeClassRef"))
    .fix(fix)
    .inspect(
        "See what a working NodePool refers to",
        format!("kubectl get nodepool {} -o jsonpath='{{.spec.template.spec.nodeClassRef}}'", served.name()),
    )
    .change("Refer to the right node class", format!("kubectl edit nodepool {name}"))
    .into()
}
