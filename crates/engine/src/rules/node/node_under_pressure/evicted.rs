//! How much the evicted pods used, by the kubelet's messages, and which owner most of it belonged to.

use crate::facts::workload::PodWorkload;
use crate::objects::{Event, Pod, quantity};
use crate::rules::prelude::*;
use crate::upstream::overhead::GIB;
use chrono::TimeDelta;
use std::collections::BTreeMap;

/// The evicted pods of one owner, for the resource that the Node is short of.
pub(super) struct Glutton<'c> {
    pub workload: PodWorkload<'c>,
    pub resource: &'static str,
    /// `3 of its pods used 12.1 to 19.9 GiB of ephemeral-storage each`
    pub used: String,
    pub evidence: Evidence,
}

/// How long before the pressure an eviction still belongs to it: the kubelet evicts before it reports.
const JUST_BEFORE: TimeDelta = TimeDelta::hours(1);

/// By default the kubelet evicts with a tenth of the disk left: a pod that used as much is enough for that.
/// Source: kubernetes v1.36.3 pkg/kubelet/eviction/defaults_linux.go `DefaultEvictionHard`.
const MUCH: f64 = 0.1;

/// The usage of a pod's containers when the kubelet evicted it, and the resource.
/// Source: kubernetes v1.36.3 pkg/kubelet/eviction/helpers.go `evictionMessage`.
fn usage(event: &Event) -> Option<(&str, f64)> {
    let (_, said) = event.message.split_once("The node was low on resource: ").filter(|_| event.reason == "Evicted")?;
    let (resource, containers) = said.split_once(". ")?;
    let amounts = containers.split("Container ").filter_map(|of_one| {
        let (_, amount) = of_one.split_once(" was using ")?;
        quantity::parse(amount.split(',').next()?)
    });
    Some((resource, amounts.sum()))
}

/// A pod that the kubelet evicted.
struct Eviction<'c> {
    used: f64,
    event: &'c Event,
    /// The pod, if it still exists.
    pod: Option<&'c Pod>,
}

impl<'c> Eviction<'c> {
    fn place(&self) -> (&'c str, &'c str) {
        let about = &self.event.involved_object;
        (about.namespace.as_deref().unwrap_or("default"), about.name.as_str())
    }

    /// The owner is unknown if the pod is gone.
    fn owner(&self) -> (&'c str, &'c str, &'c str) {
        let (namespace, name) = self.place();
        let (kind, owner) = self.pod.map_or(("Pod", name), Pod::workload);
        (namespace, kind, owner)
    }
}

fn evicted<'c>(case: &Case<'c>, resource: &str) -> Vec<Eviction<'c>> {
    let Some(node) = case.node else { return Vec::new() };
    let begins = case.wait.since - JUST_BEFORE;
    let pods: BTreeMap<(&str, &str), &Pod> = case.pods().map(|pod| (place(pod), pod)).collect();
    // A pod that its own Event and one of the kubelet report counts once.
    let mut evictions = BTreeMap::new();
    for event in case.cluster.pod_events_on(node.name()).filter(|event| event.last_seen() >= Some(begins)) {
        if let Some((_, used)) = usage(event).filter(|(of, _)| *of == resource) {
            let eviction = Eviction { used, event, pod: None };
            let pod = pods.get(&eviction.place()).copied();
            evictions.insert(eviction.place(), Eviction { pod, ..eviction });
        }
    }
    evictions.into_values().collect()
}

/// The owner whose pods each used much of the Node, and together more than all other pods that were evicted with them.
pub(super) fn glutton<'c>(case: &Case<'c>, resource: &'static str) -> Option<Glutton<'c>> {
    let room = quantity::parse(case.node?.status.allocatable.get(resource)?)?;
    let evictions = evicted(case, resource);
    let most = evictions.iter().max_by(|a, b| a.used.total_cmp(&b.used)).filter(|most| most.used >= room * MUCH)?;
    let own = || evictions.iter().filter(|of| of.owner() == most.owner()).map(|of| of.used);
    let all: f64 = evictions.iter().map(|of| of.used).sum();
    if most.pod.is_none() || own().sum::<f64>() * 2.0 <= all {
        return None;
    }
    let gib = |bytes: f64| format!("{:.1}", bytes / GIB);
    let used = match own().count() {
        1 => format!("one pod that the kubelet evicted had used {} GiB of {resource}", gib(most.used)),
        n => format!(
            "{n} of its pods that the kubelet evicted had used {} to {} GiB of {resource} each",
            gib(own().fold(most.used, f64::min)),
            gib(most.used)
        ),
    };
    let (namespace, name) = most.place();
    let because = "the kubelet's measurement when it evicted the pod";
    let evidence = Evidence::new(format!("Event Pod/{name}"), "message", most.event.said(), because);
    Some(Glutton { workload: PodWorkload::of(most.pod, namespace, name), resource, used, evidence })
}

fn place(pod: &Pod) -> (&str, &str) {
    (pod.metadata.namespace.as_deref().unwrap_or("default"), pod.metadata.name.as_str())
}
