//! A NodePool whose node class is of another Karpenter than the one that runs here: nobody looks at it.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::case::stage::{Inert, Symptom};
use crate::objects::input::Input;
use crate::rules::Rule;

pub static RULE: Rule = Rule {
    cause: "NodeClassNotServed",
    summary: "The NodePool refers to a node class of another Karpenter than the one that runs here",
    stages: &[Stage::Launch],
    reads: &[Input::NodePools],
    lint: false,
    versions: "all",
    page: include_str!("../../../pages/NodeClassNotServed.md"),
    check,
};

const AUTO_MODE: &str = "eks.amazonaws.com";

fn check(case: &Case) -> Opinion {
    let (Symptom::Inert(Inert::ClassNotServed), Some(pool)) = (case.wait.symptom, case.pool()) else {
        return Opinion::Silent;
    };
    let (name, reference) = (pool.name(), &pool.spec.template.spec.node_class_ref);
    let served = case.cluster.pools().find(|other| !other.status.conditions.is_empty());
    let Some(served) = served else { return Opinion::Silent };
    let theirs = &served.spec.template.spec.node_class_ref;
    let runs = match theirs.group.as_str() {
        AUTO_MODE => "EKS Auto Mode",
        _ => "a Karpenter of your own",
    };
    let fix = match theirs.group.as_str() {
        AUTO_MODE => {
            "Make a NodeClass of eks.amazonaws.com/v1 with what the class is to say and refer to that, or install Karpenter beside Auto Mode: its custom resources alone do nothing."
        }
        _ => "Refer to a node class of the kind that this Karpenter knows, or turn EKS Auto Mode on.",
    };
    Finding::new(
        Confidence::Certain,
        format!(
            "NodePool {name} launches nothing: it refers to {} {} of {}, and nobody works on such here; what runs is {runs}, which knows {} of {}.",
            reference.kind, reference.name, reference.group, theirs.kind, theirs.group
        ),
        Evidence::new(
            format!("NodePool/{name}"),
            "spec.template.spec.nodeClassRef",
            format!("{} {} ({})", reference.kind, reference.name, reference.group),
            "Karpenter leaves out NodePools whose kind of node class is not its provider's",
        ),
    )
    .with(Evidence::new(
        format!("NodePool/{name}"),
        "status.conditions",
        "none",
        format!("NodePool {} has some: Karpenter runs, and has not looked at this one", served.name()),
    ))
    .blaming(Blame::object("karpenter.sh/v1", "NodePool", name).field("spec.template.spec.nodeClassRef"))
    .fix(fix)
    .step(Risk::Inspect, "See what a NodePool refers to that is worked on", Some(format!("kubectl get nodepool {} -o jsonpath='{{.spec.template.spec.nodeClassRef}}'", served.name())))
    .step(Risk::Mutating, "Refer to the right one", Some(format!("kubectl edit nodepool {name}")))
    .into()
}
