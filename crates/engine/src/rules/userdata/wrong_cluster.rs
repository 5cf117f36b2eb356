//! The machine is sent to another cluster: by userData, or by Karpenter's own settings.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::cluster_state::memo::Memo;
use crate::objects::NodeClass;
use crate::objects::input::Input;
use crate::rules::Rule;
use readers::source_text;
use readers::source_text::shell_word;
use readers::userdata::{Located, same_endpoint};

pub static RULE: Rule = Rule {
    cause: "WrongCluster",
    summary: "userData or Karpenter's settings send the machine to another cluster",
    stages: &[Stage::Join],
    reads: &[Input::Nodes, Input::NodeClaims, Input::NodeClasses, Input::DaemonSets, Input::Deployments],
    lint: true,
    versions: "all",
    page: include_str!("../../../pages/WrongCluster.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let (Some(class), Some(karpenter)) = (case.class(), case.karpenter()) else { return Opinion::Silent };
    let name = karpenter.cluster_name.as_deref().filter(|n| !n.is_empty());
    let endpoint = karpenter.cluster_endpoint.as_deref().filter(|e| !e.is_empty());
    let elsewhere = case.user_data().and_then(|(user_data, text)| {
        let (named, own) = user_data.other_cluster(name, endpoint)?;
        Some((text, named, own))
    });
    if let Some(sibling) = case.same_spec_sibling_joined() {
        return Opinion::ruled_out(sibling, format!("NodeClaim {} joined with the same node class", sibling.name()));
    }
    if let Some((text, named, own)) = elsewhere {
        return by_user_data(class, text, named, own).into();
    }
    match by_settings(case, &karpenter.deployment, name, endpoint) {
        Some(finding) => finding.into(),
        // An endpoint that is not known cannot be compared.
        None => Opinion::Silent,
    }
}

fn by_user_data(class: &NodeClass, text: &str, named: &Located<String>, own: &str) -> Finding {
    let place = source_text::position(text, named.span.start);
    let name = class.name();
    Finding::new(
        Confidence::Likely,
        format!(
            "userData of {} {name}, line {}, joins the cluster {:?}, but Karpenter works for {own:?}, so its Nodes never appear here.",
            class.kind,
            place.line,
            source_text::mask(&named.value)
        ),
        Evidence::new(
            format!("{}/{name}", class.kind),
            format!("spec.userData:{}:{}", place.line, place.column),
            source_text::mask(&named.value),
            "the kubelet asks for a token of this cluster",
        ),
    )
    .with(Evidence::new(
        "Deployment/karpenter",
        "spec.template.spec.containers[0].env",
        own,
        "Karpenter launches machines for this cluster",
    ))
    .blaming(Blame::object(&class.api_version, &class.kind, name).field("spec.userData").at(text, named.span))
    .fix("Name this cluster in userData, with its endpoint and certificate authority.")
    .step(Risk::Mutating, "Correct the name", Some(format!("kubectl edit {} {name}", class.kind.to_ascii_lowercase())))
}

/// The cluster's name as the labels of Nodes have it that eksctl made.
static BY_EKSCTL: Memo<Option<String>> = Memo::new("the cluster's name by eksctl's label");

/// Karpenter writes its own cluster's name and endpoint into every machine's user data; after a cluster was made anew
/// they may be the old one's. Who else in the cluster knows them: the VPC CNI as the EKS add-on, and Nodes that eksctl
/// made.
fn by_settings(case: &Case, deployment: &str, name: Option<&str>, endpoint: Option<&str>) -> Option<Finding> {
    let cni = case.cluster.daemon_sets().find(|d| d.metadata.name == "aws-node")?;
    let containers = &cni.spec.template.spec.containers;
    let env = |key: &str| {
        containers.iter().flat_map(|c| &c.env).find(|e| e.name == key && !e.value.is_empty()).map(|e| e.value.as_str())
    };
    let eksctl = case.cluster.once(&BY_EKSCTL, "", || {
        let label = case.cluster.nodes().find_map(|n| n.metadata.label("alpha.eksctl.io/cluster-name"));
        label.map(str::to_owned)
    });
    let by_name = name
        .zip(env("CLUSTER_NAME"))
        .filter(|(ours, theirs)| ours != theirs)
        .map(|(o, t)| ("CLUSTER_NAME", o, t, "DaemonSet/aws-node"));
    let by_label = || {
        name.zip(eksctl.as_deref())
            .filter(|(ours, theirs)| ours != theirs)
            .map(|(o, t)| ("CLUSTER_NAME", o, t, "Nodes"))
    };
    // The add-on's template has been published with its placeholder: amazon-vpc-cni-k8s#2327.
    let by_endpoint = || {
        let theirs = env("CLUSTER_ENDPOINT").filter(|e| e.starts_with("https://"))?;
        endpoint
            .filter(|ours| !same_endpoint(ours, theirs))
            .map(|ours| ("CLUSTER_ENDPOINT", ours, theirs, "DaemonSet/aws-node"))
    };
    let (setting, ours, theirs, witness) = by_endpoint().or(by_name).or_else(by_label)?;
    let (namespace, deployment) = deployment.split_once('/')?;
    let finding = Finding::new(
        Confidence::Likely,
        format!(
            "Karpenter's setting {setting} is {ours:?}, but this cluster's is {theirs:?}: it writes another cluster into the user data of its machines, and their Nodes never appear here."
        ),
        Evidence::new(format!("Deployment/{deployment}"), format!("spec.template.spec.containers[0].env {setting}"), ours, "every machine that Karpenter launches joins this cluster"),
    )
    .with(Evidence::new(witness, if witness == "Nodes" { "metadata.labels['alpha.eksctl.io/cluster-name']" } else { "spec.template.spec.containers[0].env" }, theirs, "this is the cluster that they are in"))
    .blaming(Blame::object("apps/v1", "Deployment", deployment).namespace(namespace).field(format!("env {setting}")))
    .fix("Set settings.clusterName and settings.clusterEndpoint of Karpenter's chart to this cluster's; an empty endpoint is looked up.")
    .step(Risk::Inspect, "See this cluster's endpoint", Some("kubectl cluster-info".to_owned()))
    .step(Risk::Mutating, "Set it; the chart's values must say the same, or the next release undoes it", Some(format!("kubectl set env -n {namespace} deployment/{deployment} {setting}={}", shell_word(theirs))));
    Some(finding)
}
