//! The machine is sent to another cluster: by userData, or by Karpenter's own settings.

use crate::cluster_state::memo::Memo;
use crate::objects::{NodeClaim, NodeClass};
use crate::rules::prelude::*;
use crate::upstream::eks;
use crate::upstream::karpenter::Karpenter;
use readers::source_text;
use readers::source_text::shell_word;
use readers::userdata::{Family, Located, has_expansion, same_endpoint};

rule! {
    cause: WrongCluster,
    summary: "userData or Karpenter's settings send the machine to another cluster",
    stages: [Join],
    reads: [Nodes, NodeClaims, NodeClasses, KubeProxyConfig, DaemonSets, Deployments],
    lint: true,
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    if let Some(finding) = in_another_region(case) {
        return finding.into();
    }
    let (class, karpenter) = (case.class()?, case.karpenter()?);
    let name = karpenter.cluster_name.as_deref().filter(|n| !n.is_empty());
    let endpoint = karpenter.cluster_endpoint.as_deref().filter(|e| !e.is_empty());
    let joined = case.same_spec_sibling_joined();
    let elsewhere = case.user_data().filter(|_| joined.is_none()).and_then(|(user_data, text)| {
        let (named, own) = user_data.other_cluster(name, endpoint)?;
        Some((text, named, own))
    });
    if let Some((text, named, own)) = elsewhere {
        return by_user_data(class, text, named, own).into();
    }
    if let Some(sibling) = joined_by_these_settings(case, karpenter) {
        return Some(Opinion::ruled_out(
            sibling,
            format!("NodeClaim {} joined with the same node class", sibling.name()),
        ));
    }
    // Of what a machine of before a change of the settings tells, nothing is known.
    if joined.is_some() && karpenter.written.is_none() {
        return None;
    }
    // A text of the user's own that names its cluster is not told Karpenter's.
    if class.family() == Some(Family::Custom) {
        return None;
    }
    by_settings(case, &karpenter.deployment, name, endpoint).map(Opinion::from)
}

/// A machine of the same text of the class that joined, and that was made by Karpenter as it is set now.
fn joined_by_these_settings<'w>(case: &Case<'w>, karpenter: &Karpenter) -> Option<&'w NodeClaim> {
    let own = case.claim.and_then(|claim| claim.metadata.creation_timestamp);
    let since = karpenter.written.as_ref().map(|written| written.at).or(own)?;
    case.same_spec_siblings_joined().find(|sibling| sibling.metadata.creation_timestamp >= Some(since))
}

/// Before the kubelet starts, Bottlerocket asks EC2 and EKS for its own instance and cluster, in the region of its
/// settings.
/// Source: bottlerocket sources/api/pluto/README.md.
fn in_another_region(case: &Case) -> Option<Finding> {
    let (class, (user_data, text)) = (case.class()?, case.user_data()?);
    let told = user_data.region.as_ref().filter(|region| !region.value.is_empty() && !has_expansion(&region.value))?;
    let zone = case.claim?.metadata.label("topology.kubernetes.io/zone")?;
    if zone.starts_with(&*told.value) {
        return None;
    }
    let place = source_text::position(text, told.span.start);
    let (name, region) = (class.name(), source_text::mask(&told.value));
    let field = format!("spec.userData:{}:{}", place.line, place.column);
    Some(
        Finding::new(
            Confidence::Certain,
            format!(
                "userData of {} {name}, line {}, sets settings.aws.region to {region:?}, and the machine is in {zone}: \
                 Bottlerocket looks for its instance and its cluster in the other region, and does not start the \
                 kubelet.",
                class.kind, place.line
            ),
            Evidence::new(
                format!("{}/{name}", class.kind),
                field,
                region,
                "Bottlerocket calls EC2 and EKS of this region",
            ),
        )
        .with(Evidence::new(
            case.subject(),
            "metadata.labels['topology.kubernetes.io/zone']",
            zone,
            "the instance runs here, and no other region knows it",
        ))
        .blaming(Blame::class(class).field("spec.userData").at(text, told.span))
        .fix("Take settings.aws.region out: Bottlerocket reads its region from the instance itself.")
        .change("Take it out", format!("kubectl edit {} {name}", class.kind.to_ascii_lowercase())),
    )
}

fn by_user_data(class: &NodeClass, text: &str, named: &Located<String>, own: &str) -> Finding {
    let place = source_text::position(text, named.span.start);
    let name = class.name();
    Finding::new(
        Confidence::Likely,
        format!(
            "userData of {} {name}, line {}, joins the cluster {:?}, but Karpenter works for {own:?}, so its Nodes \
             never appear here.",
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
        "Karpenter launches nodes for this cluster",
    ))
    .blaming(Blame::class(class).field("spec.userData").at(text, named.span))
    .fix("Name this cluster in userData, with its endpoint and certificate authority.")
    .change("Correct the name", format!("kubectl edit {} {name}", class.kind.to_ascii_lowercase()))
}

/// The cluster's name from the label of Nodes that eksctl created.
static BY_EKSCTL: Memo<Option<String>> = Memo::new("the cluster's name by eksctl's label");

/// A cluster name or endpoint that another component in the cluster uses.
struct ClusterSetting {
    setting: &'static str,
    value: String,
    object: String,
    field: &'static str,
    /// EKS itself wrote it, or the component would not work.
    surely: bool,
}

/// The API server's address from components that reach it.
fn endpoints(case: &Case) -> Vec<ClusterSetting> {
    const ENV: &str = "spec.template.spec.containers[0].env";
    let said = |value: String, object: String, field, surely| {
        // amazon-vpc-cni-k8s#2327: the add-on's template has been published with its placeholder.
        let told = value.starts_with("https://") && !has_expansion(&value);
        told.then_some(ClusterSetting { setting: "CLUSTER_ENDPOINT", value, object, field, surely })
    };
    // What stands before an API server, such as a proxy, has an address of its own.
    let reached = case.cluster.api_server().address.clone().filter(|address| eks::cluster_id(address).is_some());
    let reached = reached.and_then(|address| said(address, "kubeconfig".to_owned(), "clusters[].cluster.server", true));
    let kube_proxy = case
        .cluster
        .kube_proxy_server()
        .and_then(|server| said(server.to_owned(), "ConfigMap/kube-proxy".to_owned(), "data.kubeconfig", true));
    let by_sets = case.cluster.daemon_sets().filter_map(|set| {
        let object = format!("DaemonSet/{}", set.metadata.name);
        let value = match set.metadata.name.as_str() {
            "aws-node" => set.env("CLUSTER_ENDPOINT").map(str::to_owned),
            // cilium v1.18.4 install/kubernetes/cilium/templates/cilium-agent/daemonset.yaml, of k8sServiceHost.
            "cilium" => set
                .env("KUBERNETES_SERVICE_HOST")
                .filter(|host| eks::cluster_id(host).is_some())
                .map(|h| format!("https://{h}")),
            _ => None,
        };
        value.and_then(|value| said(value, object, ENV, false))
    });
    let by_classes = case.cluster.classes().filter_map(|facts| {
        let (_, reached) = facts.user_data.as_ref()?.joins();
        case.cluster.joined_of_class(&facts.class.kind, facts.class.name()).next()?;
        said(reached?.value.clone(), format!("{}/{}", facts.class.kind, facts.class.name()), "spec.userData", false)
    });
    reached.into_iter().chain(kube_proxy).chain(by_sets).chain(by_classes).collect()
}

/// Whether two addresses are one cluster's: with IPv6 it has another domain.
fn same_cluster(one: &str, other: &str) -> bool {
    let same_id =
        eks::cluster_id(one).zip(eks::cluster_id(other)).is_some_and(|(one, other)| one.eq_ignore_ascii_case(other));
    same_id || same_endpoint(one, other)
}

/// Karpenter writes the cluster name and endpoint of its settings into every node's user data. After a cluster is
/// recreated, both may still be the old cluster's. Others in the cluster have the right ones: kube-proxy, the network
/// plugin, nodes that joined, and Nodes that eksctl created.
fn by_settings(case: &Case, deployment: &str, name: Option<&str>, endpoint: Option<&str>) -> Option<Finding> {
    static ENDPOINTS: Memo<Vec<ClusterSetting>> = Memo::new("the cluster's endpoint as others have it");
    let endpoints = case.cluster.once(&ENDPOINTS, "", || endpoints(case));
    let same = |ours: &str| endpoints.iter().any(|said| same_cluster(ours, &said.value));
    // Where one of them agrees with Karpenter, the others have another way to the same API server.
    if let Some(ours) = endpoint.filter(|ours| !same(ours))
        && let Some(first) = endpoints.first()
    {
        let agree = endpoints.iter().filter(|said| same_cluster(&said.value, &first.value)).count();
        // An alias of the user's own may lead to the same API server.
        let proven = eks::cluster_id(ours).is_some() && eks::cluster_id(&first.value).is_some();
        let confidence = match first.surely || agree > 1 {
            true if proven => Confidence::Certain,
            true => Confidence::Likely,
            // It may be the one that is old.
            false => Confidence::Possible,
        };
        return Some(
            set_elsewhere(confidence, deployment, ours, first)?.with_all(
                endpoints.iter().skip(1).filter(|said| same_cluster(&said.value, &first.value)).map(evidence),
            ),
        );
    }
    let eksctl = case.cluster.once(&BY_EKSCTL, "", || {
        let label = case.cluster.nodes().find_map(|n| n.metadata.label("alpha.eksctl.io/cluster-name"));
        label.map(str::to_owned)
    });
    let cni = case.cluster.daemon_sets().find(|d| d.metadata.name == "aws-node")?;
    let said = |value: &str, object: &str, field| ClusterSetting {
        setting: "CLUSTER_NAME",
        value: value.to_owned(),
        object: object.to_owned(),
        field,
        surely: false,
    };
    let by_cni = cni.env("CLUSTER_NAME").filter(|name| !name.is_empty());
    let by_cni = by_cni.map(|name| said(name, "DaemonSet/aws-node", "spec.template.spec.containers[0].env"));
    let by_label = eksctl.as_deref().map(|name| said(name, "Nodes", "metadata.labels['alpha.eksctl.io/cluster-name']"));
    let ours = name?;
    let other = [by_cni, by_label].into_iter().flatten().find(|said| said.value != ours)?;
    set_elsewhere(Confidence::Likely, deployment, ours, &other)
}

fn evidence(said: &ClusterSetting) -> Evidence {
    Evidence::new(&said.object, said.field, &said.value, "this is the cluster that it is in")
}

fn set_elsewhere(confidence: Confidence, deployment: &str, ours: &str, said: &ClusterSetting) -> Option<Finding> {
    let (namespace, deployment) = deployment.split_once('/')?;
    let (setting, theirs) = (said.setting, &said.value);
    let finding = Finding::new(
        confidence,
        format!(
            "Karpenter's setting {setting} is {ours:?}, but this cluster's is {theirs:?}: it writes another cluster \
             into the user data of its machines, and their Nodes never appear here."
        ),
        Evidence::new(
            format!("Deployment/{deployment}"),
            format!("spec.template.spec.containers[0].env {setting}"),
            ours,
            "every machine that Karpenter launches joins this cluster",
        ),
    )
    .with(evidence(said))
    .blaming(Blame::object("apps/v1", "Deployment", deployment).namespace(namespace).field(format!("env {setting}")))
    .fix(
        "Set settings.clusterName and settings.clusterEndpoint of Karpenter's chart to this cluster's. Karpenter looks \
         up an endpoint that is empty.",
    )
    .inspect("See this cluster's endpoint", "kubectl cluster-info".to_owned())
    .change(
        "Set it, also in the chart's values, or the next helm upgrade reverts it",
        format!("kubectl set env -n {namespace} deployment/{deployment} {setting}={}", shell_word(theirs)),
    );
    Some(finding)
}
