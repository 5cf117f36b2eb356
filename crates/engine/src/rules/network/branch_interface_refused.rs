//! The Node is Ready, but EC2 refuses the network interface that a pod with security groups of its own needs.

use crate::case::unstarted_pods::waits_for_sandbox;
use crate::facts::pod_addresses;
use crate::objects::{Event, Node, Pod};
use crate::rules::prelude::*;
use crate::upstream::node_events::{Sandbox, refused_sandbox};
use crate::upstream::vpc_cni::has_branch_interface;

rule! {
    cause: BranchInterfaceRefused,
    summary: "The Node is Ready, but a pod with security groups of its own gets no network interface, because EC2 \
              refuses it",
    stages: [Ready],
    reads: [NodeClasses, Events, Pods],
    versions: "all",
}

/// The event of the VPC resource controller, which asks EC2 for the interface.
/// Source: amazon-vpc-resource-controller-k8s pkg/provider/branch/provider.go `ReasonBranchAllocationFailed`.
const REFUSED: &str = "BranchAllocationFailed";

fn check(case: &Case) -> Option<Opinion> {
    let node = case.node.filter(|_| case.wait.symptom == Symptom::PodsRefused)?;
    // Pods without such an interface have another trouble.
    if pod_addresses::refusal(case, node).is_some() {
        return None;
    }
    let waiting = case.pods().filter(|pod| has_branch_interface(pod) && lacks_address(case, node, pod));
    let pod = waiting.min_by_key(|pod| (refusal(case, pod).is_none(), &pod.metadata.name))?;
    let (name, namespace) = (&pod.metadata.name, pod.metadata.namespace.as_deref().unwrap_or_default());
    let head = format!(
        "Node {} is Ready, but since {} pod {name} has waited for a network interface of its own",
        node.name(),
        case.since()
    );
    let describe = format!("kubectl describe pod -n {namespace} {name}");
    let of_pod = Blame::object("v1", "Pod", name).namespace(namespace);
    let Some(event) = refusal(case, pod) else {
        return Finding::new(Confidence::Likely, format!("{head}."), case.wait.evidence.clone())
            .blaming(of_pod)
            .fix("Find out why the VPC resource controller (in the EKS control plane) gives the pod no interface.")
            .inspect("See the pod's own events", describe.clone())
            .unknown("Do the pod's events say why it gets no interface?", describe)
            .into();
    };
    let reason = reason(case, event);
    let evidence = Evidence::new(
        format!("Event Pod/{name}"),
        "message",
        event.said(),
        "the VPC resource controller (in the EKS control plane) repeats what EC2 answers",
    );
    let policies = format!("kubectl get securitygrouppolicies.vpcresources.k8s.aws -n {namespace} -o yaml");
    let finding = Finding::new(Confidence::Likely, format!("{head}: {}.", reason.why), evidence)
        .with(case.wait.evidence.clone())
        .blaming(reason.blame.unwrap_or(of_pod))
        .fix(reason.fix)
        .inspect("See what EC2 answers", describe);
    let finding =
        if reason.of_policy { finding.inspect("See which groups the policies list", policies) } else { finding };
    finding.into()
}

fn lacks_address(case: &Case, node: &Node, pod: &Pod) -> bool {
    let mut refusals = case.cluster.pod_events_on(node.name()).filter(|e| e.names(&pod.metadata));
    refusals.any(|e| refused_sandbox(e) == Some(Sandbox::Address) && waits_for_sandbox(pod, e))
}

fn refusal<'c>(case: &Case<'c>, pod: &'c Pod) -> Option<&'c Event> {
    case.cluster.events_about_pod(pod).filter(|e| e.reason == REFUSED).max_by_key(|e| e.last_seen())
}

struct Reason {
    why: String,
    /// `None` for the pod.
    blame: Option<Blame>,
    fix: &'static str,
    of_policy: bool,
}

/// What EC2 answers to `CreateNetworkInterface`. Source: Amazon EC2 API reference, error codes.
fn reason(case: &Case, event: &Event) -> Reason {
    let says = |codes: &[&str]| codes.iter().any(|code| event.message.contains(code));
    if says(&["interface security group memberships", "SecurityGroupsPerInterfaceLimitExceeded"]) {
        return Reason {
            why: "the SecurityGroupPolicies that select it list more security groups than one interface may have"
                .to_owned(),
            blame: None,
            fix: "List fewer security groups in the SecurityGroupPolicies that select the pod, for example by merging \
                  their rules. Or ask AWS to raise the quota \"Security groups per network interface\". The \
                  controller tries again by itself.",
            of_policy: true,
        };
    }
    if says(&["InvalidGroup.NotFound", "InvalidSecurityGroupID", "InvalidGroupId", "different networks"]) {
        return Reason {
            why: "a SecurityGroupPolicy that selects it lists a security group that the VPC of the node does not have"
                .to_owned(),
            blame: None,
            fix: "Correct the ids in the SecurityGroupPolicies that select the pod: each group must be in the VPC of \
                  the nodes. The controller tries again by itself.",
            of_policy: true,
        };
    }
    if says(&["InsufficientFreeAddressesInSubnet"]) {
        return Reason {
            why: "the subnet of the node has no free address for it".to_owned(),
            blame: case.class_field("spec.subnetSelectorTerms"),
            fix: "Free addresses in the subnet, or select larger subnets for new nodes. Such an interface is always in \
                  the subnet of its node, unless an ENIConfig names another.",
            of_policy: false,
        };
    }
    if says(&["UnauthorizedOperation", "not authorized"]) {
        return Reason {
            why: "the role of the EKS cluster may not create it".to_owned(),
            blame: None,
            fix: "Attach the policy AmazonEKSVPCResourceController to the role of the EKS cluster (not of the nodes). \
                  The controller tries again by itself.",
            of_policy: false,
        };
    }
    Reason {
        why: format!("EC2 refuses it ({})", event.said().trim_end_matches('.')),
        blame: None,
        fix: "Correct what EC2 names. The controller tries again by itself.",
        of_policy: true,
    }
}
