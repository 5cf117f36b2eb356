//! A DaemonSet that sets the address of the API server for its pods, and the address does not answer.

use super::agent::Agent;
use crate::api::Link;
use crate::case::Case;
use crate::cluster_state::memo::Memo;
use crate::explain::explanation::{Explanation, Proof};
use crate::objects::{Condition, Pod, conditions};
use chrono::{DateTime, Utc};
use std::net::IpAddr;

/// The address of the API server that the DaemonSet itself sets for its pods.
pub(super) fn own_host(case: &Case, agent: &Agent) -> Option<String> {
    let set = case.cluster.daemon_sets().find(|d| d.metadata.name == *agent.set)?;
    set.env("KUBERNETES_SERVICE_HOST").filter(|host| !host.is_empty()).map(str::to_owned)
}

/// Whether this is the IP address that the DaemonSet sets, and no pod of it has come up with it since.
pub(super) fn is_outdated(case: &Case, agent: &Agent, host: &str, called: &str) -> bool {
    host.parse::<IpAddr>().is_ok() && called == host && !is_reached(case, agent)
}

/// Whether a pod of the same text became Ready since this one fails: then the address answers.
fn is_reached(case: &Case, agent: &Agent) -> bool {
    static NEWEST: Memo<Option<DateTime<Utc>>> = Memo::new("when a pod of a DaemonSet's revision last became Ready");
    let revision = agent.pod.metadata.label("controller-revision-hash").unwrap_or_default();
    let about = format!("{}/{} {revision}", agent.namespace, agent.set);
    let newest = case.cluster.once(&NEWEST, &about, || {
        let pods = case.cluster.pods_in(agent.namespace).filter(|pod| pod.is_same_text(agent.pod));
        pods.filter_map(|pod| readiness(pod).filter(|c| c.is_true())?.last_transition_time).max()
    });
    let fails_since = readiness(agent.pod).and_then(|c| c.last_transition_time);
    *newest > fails_since.or(agent.pod.metadata.creation_timestamp)
}

fn readiness(pod: &Pod) -> Option<&Condition> {
    conditions(&pod.status.conditions, "Ready")
}

/// EKS replaces the addresses of its API servers. A pod with a network of its own may also fail for want of that.
/// Source: docs.cilium.io "Kubernetes Without kube-proxy", which asks for the host name on EKS (cilium/cilium#22039).
pub(super) fn outdated_host(agent: &Agent, host: &str, here: Link, unreached: &str) -> Explanation {
    let why = format!(
        "pod {} cannot reach the API server at {unreached}: DaemonSet {} sets this IP address in \
         KUBERNETES_SERVICE_HOST",
        agent.name, agent.set
    );
    let proof = if agent.pod.spec.host_network { Proof::Lasting } else { Proof::Open };
    let told = Explanation::new(proof, why, agent.in_spec("containers"), here)
        .behind(Link::new(
            format!("DaemonSet/{}", agent.set),
            format!("it sets KUBERNETES_SERVICE_HOST to {host}, and EKS replaces the IP addresses of its API servers"),
        ))
        .fix(
            "Set KUBERNETES_SERVICE_HOST to the host name of the cluster's endpoint (Cilium: k8sServiceHost in the \
             values of the chart). EKS replaces the IP addresses of its API servers.",
        )
        .inspect("See what the pod reports", agent.describe());
    if proof == Proof::Lasting {
        return told;
    }
    told.ask(
        format!("Is {host} still an address of the API server?"),
        "kubectl get endpointslices -n default -l kubernetes.io/service-name=kubernetes",
    )
}
