//! The kubelet's probes of pods with security groups of their own get no answer, though the Node is Ready.

use crate::case::branch_pods::{branch_pods, reached_elsewhere};
use crate::objects::DaemonSet;
use crate::rules::prelude::*;
use crate::upstream::vpc_cni::AWS_NODE;

rule! {
    cause: BranchPodsOutOfReach,
    summary: "The Node is Ready, but the kubelet reaches none of its pods with security groups of their own: a setting \
              of the VPC CNI or these groups keep its probes out",
    stages: [Ready],
    reads: [Events, Pods, DaemonSets],
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let node = case.node.filter(|_| case.wait.symptom == Symptom::BranchPodsOutOfReach)?;
    let found = branch_pods(case.cluster, node, case.now)?;
    let set = case.cluster.daemon_sets().find(|set| set.metadata.name == *AWS_NODE)?;
    let (pod, name) = (&found.pod.metadata, node.name());
    let who = if found.count == 1 { "its pod".to_owned() } else { format!("its {} pods", found.count) };
    let begin = format!(
        "Node {name} is Ready, but since {} the kubelet gets no answer from {who} with security groups of their own, \
         such as {}",
        case.since(),
        pod.name
    );
    let links = [
        Link::new(format!("Node/{name}"), "Ready, but does not reach its pods with security groups of their own"),
        Link::new(format!("Pod/{}", pod.name), found.event.said()),
    ];
    let finding = |confidence, why: &str| {
        Finding::new(confidence, format!("{begin}: {why}."), case.wait.evidence.clone()).linked(links)
    };
    // Each Node has the same setting.
    if drops_answers(set) && !reached_elsewhere(case.cluster, &found) {
        return dropped(set, |why| finding(Confidence::Likely, why)).into();
    }
    let describe = format!("kubectl describe pod -n {} {}", pod.namespace.as_deref().unwrap_or_default(), pod.name);
    // A single pod may have hung.
    let confidence = if found.count > 1 { Confidence::Likely } else { Confidence::Possible };
    refused(|why| finding(confidence, why)).inspect("See the interface that the pod got", describe).into()
}

/// What the settings of the VPC CNI do not show.
const OF_GROUPS: (&str, &str) = (
    "Do the security groups of the pods let the Node in?",
    "kubectl get securitygrouppolicies.vpcresources.k8s.aws -A -o yaml",
);

/// Whether the kernel of the Node takes the pods' answers to the kubelet for packets of another interface.
/// Source: amazon-vpc-cni-k8s v1.20.4 README.md `DISABLE_TCP_EARLY_DEMUX`, `POD_SECURITY_GROUP_ENFORCING_MODE`.
fn drops_answers(set: &DaemonSet) -> bool {
    let is = |name: &str, value: &str| set.env_of_any(name).is_some_and(|own| own.eq_ignore_ascii_case(value));
    !is("DISABLE_TCP_EARLY_DEMUX", "true") && !is("POD_SECURITY_GROUP_ENFORCING_MODE", "standard")
}

fn dropped(set: &DaemonSet, finding: impl FnOnce(&str) -> Finding) -> Finding {
    let namespace = set.metadata.namespace.as_deref().unwrap_or("kube-system");
    let says = "aws-node runs without DISABLE_TCP_EARLY_DEMUX=true, so the kernel drops the answers of such pods to \
                the kubelet";
    finding(says)
        .with(Evidence::new(
            format!("DaemonSet/{AWS_NODE}"),
            "spec.template.spec.initContainers[0].env",
            set.env_of_any("DISABLE_TCP_EARLY_DEMUX").unwrap_or("unset").to_owned(),
            "with the enforcing mode strict, probes over TCP and HTTP need DISABLE_TCP_EARLY_DEMUX=true",
        ))
        .blaming(
            Blame::object("apps/v1", "DaemonSet", AWS_NODE)
                .namespace(namespace)
                .field("spec.template.spec.initContainers[0].env"),
        )
        .fix(
            "Set DISABLE_TCP_EARLY_DEMUX=true on the init container of aws-node, which restarts aws-node on every \
             node. Or set POD_SECURITY_GROUP_ENFORCING_MODE=standard, which new pods get. Keep it in the settings of \
             the add-on.",
        )
        .change(
            "Set it, and keep it in the settings of the add-on",
            format!(
                "kubectl set env -n {namespace} daemonset/{AWS_NODE} -c aws-vpc-cni-init DISABLE_TCP_EARLY_DEMUX=true"
            ),
        )
        .unknown(OF_GROUPS.0, OF_GROUPS.1)
}

fn refused(finding: impl FnOnce(&str) -> Finding) -> Finding {
    finding("their own security groups perhaps do not let the Node's probes in")
        .fix(
            "Allow the ports of the probes in the security groups that SecurityGroupPolicies give these pods, from the \
             security group of the nodes. This disrupts nothing.",
        )
        .unknown(OF_GROUPS.0, OF_GROUPS.1)
}
