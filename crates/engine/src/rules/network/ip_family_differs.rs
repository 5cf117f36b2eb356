//! The machine's address and the cluster have different IP families. An EKS cluster has one family and cannot change
//! it.

use crate::case::other_family::{in_service, of_vpc_cni, only_family};
use crate::explain::instance_questions::ask_the_instance;
use crate::explain::repair;
use crate::facts::cloud_controller_traces::traces;
use crate::objects::Node;
use crate::rules::prelude::*;
use crate::upstream::karpenter::UNINITIALIZED_TAINT;
use crate::upstream::vpc_cni::AWS_NODE;
use readers::userdata::{Family, IpFamily};

rule! {
    cause: IpFamilyDiffers,
    summary: "The machine uses an IPv4 address in an IPv6 cluster, or needs an IPv6 address in an IPv4 cluster",
    stages: [Join, Initialize, Ready],
    reads: [Nodes, NodeClaims, NodeClasses, DaemonSets, Events, Deployments, AwsObservations],
    versions: "all",
}

/// The cluster's family, and the object that shows it.
struct OfCluster {
    family: IpFamily,
    seen: Evidence,
    /// Whether the Nodes in service and the VPC CNI's setting agree.
    proven: bool,
}

fn check(case: &Case) -> Option<Opinion> {
    match case.stage() {
        Stage::Join => asked_for(case),
        _ => registered(case),
    }
}

/// A Node that registered with an address of the other family.
fn registered(case: &Case) -> Option<Opinion> {
    let node = case.node?;
    let uninitialized = node.taint(UNINITIALIZED_TAINT).is_some() && traces(case, node).is_empty();
    // Where neither waits for an address, something else holds it up.
    if node.is_ready() && !uninitialized && case.wait.symptom != Symptom::OtherFamily {
        return None;
    }
    let cluster = of_cluster(case)?;
    let own = only_family(node)?;
    if own == cluster.family {
        return None;
    }
    let name = node.name();
    let outcome = if uninitialized {
        "the cloud controller lists only the instance's addresses of the cluster's family, so it does not find this \
         one and leaves its uninitialized taint"
    } else if node.is_ready() {
        "it is Ready, but its network plugin and kube-proxy work only with the cluster's family, so other components \
         cannot reach its kubelet and its pods"
    } else {
        "its network plugin and kube-proxy work only with the cluster's family"
    };
    // k8s.io/cloud-provider v0.36.3 controllers/node/node_controller.go: an address that the kubelet was given and the
    // cloud does not list fails the whole update.
    let confidence = if uninitialized && cluster.proven { Confidence::Certain } else { Confidence::Likely };
    let evidence = Evidence::new(
        format!("Node/{name}"),
        "status.addresses",
        format!("InternalIP {}", node.address("InternalIP").unwrap_or_default()),
        format!("the kubelet was started with this {own} address"),
    );
    let summary = format!(
        "Node {name} registered with an {own} address, but the cluster's Nodes have {} ones: {outcome}.",
        cluster.family
    );
    blamed(case, Finding::new(confidence, summary, evidence).with(cluster.seen), own, cluster.family).into()
}

/// The node class asks for an IPv6 address, but the machine has none: Karpenter assigns one only in IPv6 clusters.
fn asked_for(case: &Case) -> Option<Opinion> {
    let class = case.class()?;
    if decided(case) != Some(IpFamily::V6) {
        return None;
    }
    let cluster = of_cluster(case).filter(|cluster| cluster.family == IpFamily::V4)?;
    if let Some(sibling) = case.same_spec_sibling_joined() {
        return Some(Opinion::ruled_out(
            sibling,
            format!("NodeClaim {} joined with the same node class", sibling.name()),
        ));
    }
    let summary = format!(
        "{} {} makes its machines register with an IPv6 address, but the cluster is IPv4. An instance without an IPv6 \
         address stops its bootstrap there, so no Node appears.",
        class.kind,
        class.name()
    );
    let finding = blamed(case, Finding::new(Confidence::Likely, summary, cluster.seen), IpFamily::V6, IpFamily::V4);
    ask_the_instance(case, finding).into()
}

/// The family that the node class sets.
fn decided(case: &Case) -> Option<IpFamily> {
    let by_text = case.user_data().and_then(|(user_data, _)| user_data.ip_family());
    by_text.map(|found| found.value).or_else(|| by_dns(case))
}

/// `spec.kubelet.clusterDNS`: Karpenter passes its family to bootstrap.sh, and Bottlerocket looks for an address of
/// that family. nodeadm uses the cluster's CIDR.
/// Sources: karpenter-provider-aws v1.14.1 pkg/providers/amifamily/bootstrap/eksbootstrap.go `isIPv6`;
/// bottlerocket-core-kit a10182f sources/api/pluto/src/main.rs.
fn by_dns(case: &Case) -> Option<IpFamily> {
    let class = case.class().filter(|class| matches!(class.family(), Some(Family::Al2 | Family::Bottlerocket)))?;
    IpFamily::of_text(class.spec.kubelet.get("clusterDNS")?.get(0)?.as_str()?)
}

/// Names the setting that gave the machine the `wrong` family.
fn blamed(case: &Case, finding: Finding, wrong: IpFamily, right: IpFamily) -> Finding {
    let text = case.user_data().and_then(|(data, text)| Some((data.ip_family().filter(|f| f.value == wrong)?, text)));
    match (case.class(), text) {
        (Some(class), Some((found, text))) => {
            let finding = finding
                .blaming(Blame::class(class).field("spec.userData").at(text, found.span))
                .fix(format!(
                    "Set the {right} service range of this cluster in userData: --ip-family and --service-ipv6-cidr \
                     for bootstrap.sh, spec.cluster.cidr for a NodeConfig. Then replace the machine."
                ))
                .change(
                    "Correct userData for new nodes",
                    format!("kubectl edit {} {}", class.kind.to_ascii_lowercase(), class.name()),
                );
            repair::or_replace(case, finding)
        }
        (Some(class), None) if by_dns(case) == Some(wrong) => finding
            .blaming(Blame::class(class).field("spec.kubelet.clusterDNS"))
            .fix(format!(
                "Set clusterDNS to the {right} address of this cluster's DNS service. The machine registers with an \
                 address of the same family."
            ))
            .inspect(
                "See that address",
                "kubectl get service -n kube-system kube-dns -o jsonpath='{.spec.clusterIPs}'".to_owned(),
            )
            .change("Correct clusterDNS", format!("kubectl edit {} {}", class.kind.to_ascii_lowercase(), class.name())),
        _ => by_karpenter(case, finding),
    }
}

/// Karpenter looks the family up once, when it starts, in the Service kube-dns. It assumes IPv4 if it cannot read it.
/// Source: karpenter-provider-aws v1.14.1 pkg/operator/operator.go `KubeDNSIP`; kubernetes-sigs/karpenter#1384.
fn by_karpenter(case: &Case, finding: Finding) -> Finding {
    let karpenter = case.karpenter().filter(|_| case.claim.is_some());
    let Some((namespace, name)) = karpenter.and_then(|karpenter| karpenter.deployment.split_once('/')) else {
        let node = case.node.map(Node::name).unwrap_or_default();
        return finding
            .fix(
                "Start the kubelet with an address of the cluster's family: set --ip-family and --service-ipv6-cidr \
                 for bootstrap.sh, or spec.cluster.cidr in a NodeConfig. Then replace the node.",
            )
            .inspect("See the family of its address", format!("kubectl get node {node} -o wide"));
    };
    let finding = finding.blaming(Blame::object("apps/v1", "Deployment", name).namespace(namespace));
    let finding = match case.node {
        Some(node) => finding.inspect("See its address", format!("kubectl get node {} -o wide", node.name())),
        None => finding,
    };
    let finding = finding
        .fix(
            "Restart Karpenter if it could not read the Service kube-dns when it started, because it then assumes an \
             IPv4 cluster. The restart disrupts no node. Then replace the machine.",
        )
        .inspect(
            "See whether it found the Service",
            format!("kubectl logs -n {namespace} deployment/{name} | grep -i kube-dns"),
        )
        .change(
            "Restart it, so that new nodes are correct",
            format!("kubectl rollout restart -n {namespace} deployment/{name}"),
        );
    repair::or_replace(case, finding)
}

/// The family of the Nodes in service, otherwise that of the VPC CNI's setting. If the Nodes have both, the setting
/// counts.
fn of_cluster(case: &Case) -> Option<OfCluster> {
    let set = of_vpc_cni(case.cluster);
    let (family, peer) = match in_service(case.cluster) {
        [Some(peer), None] => (IpFamily::V4, Some(peer)),
        [None, Some(peer)] => (IpFamily::V6, Some(peer)),
        [None, None] => (set?, None),
        // Of those that are Ready the setting tells which are wrong.
        [Some(_), Some(_)] if case.wait.symptom != Symptom::OtherFamily => return None,
        [Some(v4), Some(v6)] => (set?, Some(if set == Some(IpFamily::V6) { v6 } else { v4 })),
    };
    let seen = match peer.and_then(|name| case.cluster.node(name)) {
        Some(node) => Evidence::new(
            format!("Node/{}", node.name()),
            "status.addresses",
            format!("InternalIP {}", node.address("InternalIP").unwrap_or_default()),
            format!("Nodes in service have {family} addresses"),
        ),
        None => Evidence::new(
            format!("DaemonSet/{AWS_NODE}"),
            "spec.template.spec.containers[0].env ENABLE_IPv6",
            (family == IpFamily::V6).to_string(),
            format!("pods of this cluster get {family} addresses"),
        ),
    };
    Some(OfCluster { family, seen, proven: peer.is_some() && set == Some(family) })
}
