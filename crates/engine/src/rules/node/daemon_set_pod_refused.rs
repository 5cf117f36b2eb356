//! The API server rejects the pod that would make the Node usable, because of a quota, a webhook or a policy.

use crate::explain::agent_chain::refused;
use crate::explain::startup_taints::staying;
use crate::facts::network_plugin;
use crate::objects::{Node, Taint};
use crate::rules::prelude::*;
use crate::upstream::credentials::{Credentials, POD_IDENTITY_AGENT};
use crate::upstream::startup_taint;
use crate::upstream::vpc_cni;

rule! {
    cause: DaemonSetPodRefused,
    summary: "The DaemonSet that the Node needs cannot create its pod: a quota, a webhook or a policy rejects it",
    stages: [Initialize, Ready],
    reads: [Events, Pods, DaemonSets, MutatingWebhooks, ValidatingWebhooks],
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let node = case.node?;
    let mut present = None;
    let mut is_absent = false;
    for need in needed(case, node) {
        let name = need.daemon_set;
        if let Some(pod) = case.pods().find(|p| p.daemon_set() == Some(name)) {
            present = present.or(Some((pod, name)));
            continue;
        }
        is_absent = true;
        if let Some(refused) = refused(case, node, name, need.namespace) {
            let explanation = refused.explanation(case, name);
            let summary = format!(
                "{} Node {} needs a pod of DaemonSet {name}, but the API server rejects it: {}.",
                need.what_for,
                node.name(),
                refused.said
            );
            let finding = Finding::new(refused.confidence(), summary, refused.evidence());
            return explanation.explain(finding, need.symptom).into();
        }
    }
    // Events are kept for an hour: that none is there excludes nothing.
    let (pod, name) = present.filter(|_| !is_absent)?;
    Some(Opinion::ruled_out(pod, format!("DaemonSet {name} has a pod on Node {}", node.name())))
}

/// A DaemonSet: the Node cannot progress without its pod.
struct Need<'c> {
    daemon_set: &'c str,
    namespace: Option<&'c str>,
    what_for: &'static str,
    symptom: Link,
}

/// The likeliest first.
fn needed<'c>(case: &Case<'c>, node: &'c Node) -> Vec<Need<'c>> {
    let namespace = |name: &str| {
        let set = case.cluster.daemon_sets().find(|d| d.metadata.name == *name)?;
        set.metadata.namespace.as_deref()
    };
    let need = |daemon_set: &'c str, what_for, symptom| Need {
        daemon_set,
        namespace: namespace(daemon_set),
        what_for,
        symptom,
    };
    if let Some(ready) = vpc_cni::not_ready(node) {
        let plugins = network_plugin::names(case, node);
        // A plugin can replace kube-proxy: it is needed where the plugin has a pod, which fails.
        let fails = case.pods().find(|p| !p.is_ready() && p.daemon_set().and_then(network_plugin::rank).is_some());
        let proxy = fails.map(|_| network_plugin::KUBE_PROXY);
        let agent = fails.filter(|p| Credentials::of(p) == Credentials::PodIdentity).map(|_| POD_IDENTITY_AGENT);
        return plugins
            .into_iter()
            .chain(proxy)
            .chain(agent)
            .map(|name| need(name, "To be Ready,", network_plugin::symptom(node, ready)))
            .collect();
    }
    if !node.is_ready() {
        return Vec::new();
    }
    let staying = staying(case).map(|(taint, _)| (taint, "To lose its startup taint,"));
    let remaining = || {
        let meant = |t: &Taint| case.claim.is_some_and(|c| c.spec.taints.iter().any(|own| own.matches(t)));
        let taints = node.spec.taints.iter().filter(|t| t.keeps_pods_off() && !meant(t));
        taints.filter(|t| startup_taint::owner(t).is_some()).map(|t| (t, "To lose its taint,")).next()
    };
    let Some((taint, what_for)) = staying.or_else(remaining) else { return Vec::new() };
    let names = startup_taint::owner(taint).into_iter().flat_map(|owner| owner.daemon_sets().iter().copied());
    let installed = case.cluster.missing(Input::DaemonSets).is_none();
    names
        .map(|name| need(name, what_for, Link::new(format!("Node/{}", node.name()), format!("taint {taint}"))))
        .filter(|need| !installed || case.cluster.daemon_sets().any(|d| d.metadata.name == *need.daemon_set))
        .collect()
}
