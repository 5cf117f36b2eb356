//! A log says why pods get no network: that of the network plugin, or of its operator.

use crate::api::{Blame, Risk, Stage};
use crate::case::Case;
use crate::case::finding::Opinion;
use crate::objects::input::Input;
use crate::rules::Rule;
use crate::rules::shared::logged;
use logs::fact::{Fact, Reason, Trouble};
use logs::table::program_of;

pub static RULE: Rule = Rule {
    cause: "NetworkPluginFails",
    summary: "The network plugin logged why it does not come up, or gets no addresses",
    stages: &[Stage::Initialize, Stage::Ready],
    reads: &[Input::Nodes, Input::NodeClasses, Input::Pods, Input::Logs],
    lint: false,
    versions: "all; seen only in logs",
    page: include_str!("../../../pages/NetworkPluginFails.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let Some(root) = logged::root(case, &[Trouble::CniFails]) else { return Opinion::Silent };
    let typha = out_of_reach(root.fact);
    let (blame, fix) = if typha {
        let admits = "Let the security groups of the Nodes admit Typha's port (TCP 5473) from each other: calico-node reads the API server through Typha.";
        (case.class_field("spec.securityGroupSelectorTerms"), admits)
    } else if root.fact.ends {
        let names = "Correct what the line names: a setting or the version of the program that logged it, or what the image of the Node or the type of instance lacks.";
        (program(case, root.fact), names)
    } else {
        let names = "Correct what the line names: free addresses of the subnet, the ENIConfig, the version of aws-node, or the subnets' tags.";
        (None, names)
    };
    let finding = root.finding(case).fix(fix).step(
        Risk::Inspect,
        "See the pods on the Node",
        case.node.map(|node| format!("kubectl get pods -A -o wide --field-selector spec.nodeName={}", node.name())),
    );
    match blame {
        Some(blame) => finding.blaming(blame).into(),
        None => finding.into(),
    }
}

/// Typha gives no answer on another Node: what drops the packets stands between them.
fn out_of_reach(fact: &Fact) -> bool {
    fact.names.contains_key("typha") && fact.reason == Some(Reason::Timeout)
}

/// The workload that gave up by itself: its text says with which version and settings.
fn program(case: &Case, fact: &Fact) -> Option<Blame> {
    let is_its = |name: &str| program_of(name) == Some(&*fact.program);
    let set = case.pods().filter_map(|pod| Some((pod.daemon_set()?, pod.metadata.namespace.as_deref()?)));
    if let Some((set, namespace)) = set.filter(|(set, _)| is_its(set)).min() {
        return Some(Blame::object("apps/v1", "DaemonSet", set).namespace(namespace));
    }
    // A Deployment's pod ends with a hash of its ReplicaSet and one of its own.
    let pod = case.cluster.pods().find(|pod| pod.daemon_set().is_none() && is_its(&pod.metadata.name))?;
    let deployment = pod.metadata.name.rsplitn(3, '-').last()?;
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    Some(Blame::object("apps/v1", "Deployment", deployment).namespace(namespace))
}
