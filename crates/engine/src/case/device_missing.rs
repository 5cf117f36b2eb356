//! A Ready Node without the devices for which a pod waits, on which what makes them known does not work.

use super::extended::EFA;
use super::judging::Judging;
use super::stage::{Symptom, Wait};
use super::waiting_pods;
use crate::api::{Evidence, Stage};
use crate::case::out_of_service::is_out_of_service;
use crate::cluster_state::ClusterState;
use crate::cluster_state::memo::Memo;
use crate::objects::input::Input;
use crate::objects::{Node, Pod, conditions, quantity};
use crate::upstream::device_plugins::{MIG_SLICE, MIG_STATE, SHARED, has_devices, is_plugin, offers};
use chrono::{DateTime, Utc};
use std::collections::BTreeSet;
use std::sync::Arc;

pub struct DeviceMissing<'w> {
    pub why: DeviceGap<'w>,
    /// A pod that could have a place there.
    pub waiting: &'w Pod,
    pub resource: &'w str,
    pub since: DateTime<Utc>,
}

/// Why nothing makes the devices known there.
#[derive(Debug, Clone, Copy)]
pub enum DeviceGap<'w> {
    /// A pod that does so does not work.
    Agent(&'w Pod),
    /// The GPUs could not be cut into slices.
    Uncut,
    /// A pod that does so works, and finds none.
    Blind(&'w Pod),
    /// There is no DaemonSet that does so.
    NoPlugin,
    /// They are known by another name.
    Named(&'w str),
}

fn unready_since(pod: &Pod) -> Option<DateTime<Utc>> {
    conditions(&pod.status.conditions, "Ready").filter(|ready| ready.is_false())?.last_transition_time
}

pub fn device_missing<'w>(cluster: &'w ClusterState, node: &'w Node) -> Option<DeviceMissing<'w>> {
    let fails = |pod: &&Pod| {
        pod.metadata.deletion_timestamp.is_none()
            && pod.daemon_set().is_some_and(is_plugin)
            && (pod.trouble().is_some() || pod.stopped_at().is_some())
    };
    let agent = cluster.pods_on(node.name()).filter(fails).filter_map(|pod| Some((unready_since(pod)?, pod)));
    let agent = agent.min_by_key(|(since, pod)| (*since, &pod.metadata.name));
    let uncut = node.metadata.label(MIG_STATE) == Some("failed");
    if agent.is_none() && !uncut {
        return unknown(cluster, node);
    }
    // Karpenter attaches such interfaces to machines only that are made for pods which ask for them.
    let claim = cluster.claim_of_node(node);
    let is_without = |resource: &str| {
        resource == EFA && claim.is_some_and(|claim| claim.spec.resources.requests.get(resource).is_none())
    };
    let is_its = |resource: &str| {
        uncut && resource.starts_with(MIG_SLICE)
            || agent.is_some_and(|(_, pod)| pod.daemon_set().is_some_and(|set| offers(set, resource)))
    };
    let wanted = |pod: &'w Pod| {
        let mut asked = pod.requests().map(|(name, _)| name);
        let resource = asked.find(|name| is_its(name) && !offered_by(node, name) && !is_without(name))?;
        // The scheduler says it of each Node that has no more than that against it.
        pod.unscheduled().filter(|said| said.contains(&format!("Insufficient {resource}")))?;
        Some((pod.metadata.creation_timestamp?, pod, resource))
    };
    let (waits, waiting, resource) =
        waiting_pods(cluster).filter_map(wanted).min_by_key(|(at, pod, _)| (*at, &pod.metadata.name))?;
    let since = agent.map_or(waits, |(since, _)| since.max(waits));
    let why = agent.map_or(DeviceGap::Uncut, |(_, pod)| DeviceGap::Agent(pod));
    Some(DeviceMissing { why, waiting, resource, since })
}

fn offered_by(node: &Node, resource: &str) -> bool {
    node.status.allocatable.get(resource).and_then(quantity::parse).unwrap_or(0.0) > 0.0
}

/// Whether it offers devices of the same vendor by any name: slices of GPUs, cores of accelerators.
fn offers_any_of(node: &Node, resource: &str) -> bool {
    let vendor = resource.split_once('/').map_or(resource, |(vendor, _)| vendor);
    let is_of = |name: &str| name.split_once('/').is_some_and(|(own, _)| own == vendor);
    node.status.allocatable.iter().any(|(name, _)| is_of(name) && offered_by(node, name))
}

/// A resource that a waiting pod requests and no Node offers.
#[derive(Debug)]
struct Unoffered {
    namespace: String,
    pod: String,
    resource: String,
}

/// The resources that waiting pods request and no Node offers. If a Node offers one, the pod may be meant for that
/// Node.
fn unoffered(cluster: &ClusterState) -> Arc<Vec<Unoffered>> {
    static UNOFFERED: Memo<Vec<Unoffered>> = Memo::new("what pods wait for and no Node offers");
    cluster.once(&UNOFFERED, "", || {
        let mut asked = Vec::new();
        for pod in waiting_pods(cluster) {
            let Some(said) = pod.unscheduled() else { continue };
            let refused = pod.requests().filter(|(name, _)| said.contains(&format!("Insufficient {name}")));
            asked.extend(refused.map(|(resource, _)| Unoffered {
                namespace: pod.metadata.namespace.as_deref().unwrap_or_default().to_owned(),
                pod: pod.metadata.name.to_string(),
                resource: resource.to_string(),
            }));
        }
        let resources: BTreeSet<String> = asked.iter().map(|asked| asked.resource.clone()).collect();
        let is_offered = |resource: &String| cluster.nodes().any(|node| offered_by(node, resource));
        let offered: BTreeSet<String> = resources.into_iter().filter(is_offered).collect();
        asked.retain(|asked| !offered.contains(&asked.resource));
        asked
    })
}

/// A machine with devices of which the scheduler does not know, or not by this name, and a pod that waits for them. One
/// with a NodeClaim is not initialized without what it was made for.
fn unknown<'w>(cluster: &'w ClusterState, node: &'w Node) -> Option<DeviceMissing<'w>> {
    let offered = |resource: &str| offered_by(node, resource);
    let family = node.metadata.label("node.kubernetes.io/instance-type")?.split('.').next()?;
    let initialized =
        node.metadata.label("karpenter.sh/initialized").is_some() || cluster.claim_of_node(node).is_none();
    let may_be_read = cluster.missing(Input::DaemonSets).is_none() && cluster.daemon_sets().next().is_some();
    // Bottlerocket, and Auto Mode with it, has the plugin in its image.
    let has_own = node.status.node_info.os_image.contains("Bottlerocket");
    let is_for = |pod: &Pod| pod.spec.node_selector.iter().all(|(key, value)| node.metadata.label(key) == Some(value));
    let why = |resource: &'w str| {
        if let Some(own) = resource.strip_suffix(SHARED).filter(|own| offered(own)) {
            return Some(DeviceGap::Named(own));
        }
        let has_them = has_devices(family, resource) && !offered(resource) && initialized;
        let plugin = cluster
            .pods_on(node.name())
            .find(|pod| pod.is_ready() && pod.daemon_set().is_some_and(|set| is_plugin(set) && offers(set, resource)));
        if let Some(plugin) = plugin.filter(|_| has_them && !has_own && !offers_any_of(node, resource)) {
            return Some(DeviceGap::Blind(plugin));
        }
        let is_made_known = cluster.daemon_sets().any(|set| offers(&set.metadata.name, resource));
        let unheard_of = node.status.allocatable.get(resource).is_none();
        (has_them && unheard_of && may_be_read && !is_made_known && !has_own).then_some(DeviceGap::NoPlugin)
    };
    let unoffered = unoffered(cluster);
    let wanted = unoffered.iter().filter_map(|asked| {
        let pod = cluster.pods_named(&asked.namespace, &asked.pod).find(|pod| pod.metadata.name == asked.pod)?;
        let (resource, _) = pod.requests().find(|(name, _)| *name == asked.resource)?;
        is_for(pod).then_some(())?;
        Some((pod.metadata.creation_timestamp?, pod, resource, why(resource)?))
    });
    let (waits, waiting, resource, why) = wanted.min_by_key(|(at, pod, ..)| (*at, &pod.metadata.name))?;
    let began = match why {
        DeviceGap::Blind(plugin) => conditions(&plugin.status.conditions, "Ready")?.last_transition_time?,
        _ => node.metadata.creation_timestamp?,
    };
    let since = waits.max(began);
    Some(DeviceMissing { why, waiting, resource, since })
}

pub(super) fn wait(judging: Judging, node: &Node) -> Option<Wait> {
    let Judging { cluster, thresholds: t, .. } = judging;
    if !node.is_ready() || is_out_of_service(node) {
        return None;
    }
    let found = device_missing(cluster, node)?;
    let shown = node.status.allocatable.get(found.resource).unwrap_or("absent");
    let because = "a pod waits for it, and what makes it known does not work there";
    let field = format!("status.allocatable['{}']", found.resource);
    let evidence = Evidence::new(format!("Node/{}", node.name()), field, shown, because);
    let wait = Wait::new(Stage::Ready, found.since, t.ready * 3, t, evidence);
    Some(Wait { proven: t.ready, symptom: Symptom::DeviceMissing, ..wait })
}
