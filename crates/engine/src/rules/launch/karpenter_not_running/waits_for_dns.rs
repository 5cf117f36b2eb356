//! Karpenter and the cluster's DNS wait for each other.

use crate::objects::Pod;
use crate::rules::prelude::*;
use crate::upstream::karpenter::is_karpenter;

/// Karpenter's pod asks the cluster's DNS, which waits for a Node that Karpenter should launch.
pub(super) struct WaitsForDns<'w> {
    pod: &'w Pod,
    dns: &'w Pod,
    said: &'w str,
}

/// Source: karpenter.sh docs/troubleshooting, "Failed Resolving STS Credentials with I/O Timeout"; kubernetes v1.36.3
/// pkg/kubelet/network/dns/dns.go `getPodDNSType` (a pod on the host's network asks as the host does).
pub(super) fn waits_for_dns<'w>(case: &Case<'w>, namespace: &str) -> Option<WaitsForDns<'w>> {
    let asks_cluster = |pod: &&Pod| match pod.spec.dns_policy.as_str() {
        "" | "ClusterFirst" => !pod.spec.host_network,
        policy => policy == "ClusterFirstWithHostNet",
    };
    let mut own = case.cluster.pods_in(namespace).filter(|pod| is_karpenter(pod)).filter(asks_cluster);
    let pod = own.find(|pod| pod.trouble().is_some())?;
    let of_dns = || case.cluster.pods_in("kube-system").filter(|pod| pod.metadata.label("k8s-app") == Some("kube-dns"));
    if of_dns().any(Pod::is_ready) {
        return None;
    }
    let (dns, said) = of_dns().find_map(|dns| Some((dns, dns.unscheduled()?)))?;
    Some(WaitsForDns { pod, dns, said })
}

impl WaitsForDns<'_> {
    pub(super) fn onto(self, finding: Finding, namespace: &str, name: &str) -> Finding {
        let Self { pod, dns, said } = self;
        let (pod, dns) = (&pod.metadata.name, &dns.metadata.name);
        let waits = format!(
            "Its pod {pod} resolves names with the cluster's DNS (dnsPolicy ClusterFirst), but no DNS pod runs: {dns} \
             waits for a Node, so both wait for each other."
        );
        let policy = r#"{"spec":{"template":{"spec":{"dnsPolicy":"Default"}}}}"#;
        finding
            .adding(&waits)
            .with(Evidence::new(
                format!("Pod/kube-system/{dns}"),
                "status.conditions",
                said,
                "no pod of the cluster's DNS is Ready, and Karpenter needs it to find the addresses of AWS",
            ))
            .blaming(
                Blame::object("apps/v1", "Deployment", name).namespace(namespace).field("spec.template.spec.dnsPolicy"),
            )
            .fix(
                "Let Karpenter resolve names as its Node does (Helm: dnsPolicy=Default), so that it can launch Nodes \
                 for CoreDNS too. Or let CoreDNS tolerate the taints of the existing Nodes.",
            )
            .change(
                "Let it resolve names as its Node does",
                format!("kubectl patch deployment -n {namespace} {name} -p '{policy}'"),
            )
    }
}
