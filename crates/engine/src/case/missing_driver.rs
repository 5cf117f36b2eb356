//! A Ready Node that has a pod, or is to have one, for whose volume it has no driver.

use super::judging::Judging;
use super::stage::{Symptom, Wait};

use crate::case::unstarted_pods::STILL_REFUSED;

use crate::api::{Evidence, Stage};
use crate::case::out_of_service::is_out_of_service;
use crate::cluster_state::ClusterState;
use crate::objects::{DaemonSet, Event, Node, Pod};
use crate::upstream::csi::{node_part, provisioner};
use chrono::{DateTime, Utc};

/// The name of the CSI driver that a Node lacks. The kubelet reports it, or the attacher, which uses the kubelet's list
/// of registered drivers.
/// Sources: kubernetes v1.36.3 pkg/volume/csi/csi_client.go `newCsiDriverClient`; kubernetes-csi/external-attacher
/// v4.8.0 pkg/controller/csi_handler.go `getNodeID`.
fn missing_name(event: &Event) -> Option<&str> {
    let (_, rest) = match event.reason.as_str() {
        "FailedMount" => event.message.split_once("driver name ")?,
        "FailedAttachVolume" => event.message.split_once(" does not contain driver ")?,
        _ => return None,
    };
    let (name, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let mounts = event.reason == "FailedMount";
    (!mounts || rest.starts_with("not found in the list of registered CSI drivers")).then_some(name)
}

/// The name of a provider of secrets that a Node lacks: the driver is there, and hands each mount to a provider's pod.
/// Source: kubernetes-sigs/secrets-store-csi-driver v1.4.5 pkg/secrets-store/provider_client.go
/// (`errProviderNotFound`).
fn missing_provider(event: &Event) -> Option<&str> {
    let (_, rest) =
        event.message.split_once("provider not found: provider \"").filter(|_| event.reason == "FailedMount")?;
    rest.split('"').next().filter(|name| !name.is_empty())
}

/// The DaemonSet of a provider: it is called after the driver and the provider, such as csi-secrets-store-provider-aws.
fn set_of_provider<'s>(mut sets: impl Iterator<Item = &'s DaemonSet>, provider: &str) -> Option<&'s DaemonSet> {
    let end = format!("provider-{provider}");
    sets.find(|set| set.metadata.name.ends_with(&end))
}

/// A driver that is installed, and not on this Node.
#[derive(Debug, Clone, Copy)]
pub struct MissingDriver<'w> {
    pub name: &'w str,
    /// Its part on the Nodes.
    pub set: &'w DaemonSet,
    /// The Event of the pod that has waited longest for the driver, or of the volume claim of a pod that is to be
    /// scheduled to this Node.
    pub event: &'w Event,
    since: DateTime<Utc>,
}

pub fn missing_driver<'w>(cluster: &'w ClusterState, node: &'w Node, now: DateTime<Utc>) -> Option<MissingDriver<'w>> {
    // Auto Mode has its driver in the image, under a name of its own.
    let compute = node.metadata.label("eks.amazonaws.com/compute-type");
    if node.is_windows() || matches!(compute, Some("auto" | "fargate")) {
        return None;
    }
    let is_recent = |event: &&Event| event.last_seen().is_some_and(|at| now - at <= STILL_REFUSED);
    let waits = |pod: &&Pod| !pod.has_started() && pod.metadata.deletion_timestamp.is_none();
    let said = cluster.pods_on(node.name()).filter(waits).flat_map(|pod| {
        cluster.told_of_pod(pod).filter(is_recent).filter_map(|event| Some((event, missing_name(event)?)))
    });
    let of_claims = cluster.volumes_refused_for(node).filter(is_recent).filter(|event| still_waits(cluster, event));
    let of_claims = of_claims.map(|event| (event, provisioner(event)));
    let of_drivers = said.chain(of_claims);
    let of_drivers =
        of_drivers.filter_map(|(event, name)| Some((event, name, node_part(cluster.daemon_sets(), name)?)));
    let mounts = cluster.pods_on(node.name()).filter(waits).flat_map(|pod| cluster.told_of_pod(pod));
    let of_providers = mounts.filter(is_recent).filter_map(|event| {
        let name = missing_provider(event)?;
        Some((event, name, set_of_provider(cluster.daemon_sets(), name)?))
    });
    let missing = of_drivers.chain(of_providers).filter_map(|(event, name, set)| {
        let of_driver = cluster.pods_on(node.name()).find(|p| p.daemon_set() == Some(&set.metadata.name));
        // Its pod may be Ready only now: the kubelet tries a mount again within about two minutes.
        // Source: kubernetes v1.36.3 pkg/util/goroutinemap/exponentialbackoff/exponential_backoff.go.
        let ready = of_driver.and_then(Pod::ready_since);
        if ready >= event.last_seen() {
            return None;
        }
        let since = event.first_timestamp.or(event.last_seen()).max(ready)?;
        Some(MissingDriver { name, set, event, since })
    });
    missing.min_by_key(|missing| (missing.since, &missing.event.involved_object.name))
}

/// Whether a pod of the claim still waits: on a Node by now it has its volume, or is judged there.
fn still_waits(cluster: &ClusterState, event: &Event) -> bool {
    let about = &event.involved_object;
    let uses = |pod: &&Pod| pod.spec.volumes.iter().any(|own| own.persistent_volume_claim.claim_name == about.name);
    let mut of_claim = cluster.pods_in(about.namespace.as_deref().unwrap_or_default()).filter(uses).peekable();
    of_claim.peek().is_some() && of_claim.all(|pod| pod.node().is_empty())
}

impl MissingDriver<'_> {
    /// What the Node lacks, with its name.
    pub fn in_words(&self) -> String {
        let what = if missing_provider(self.event).is_some() { "secrets provider" } else { "CSI driver" };
        format!("{what} {}", self.name)
    }

    /// Whether the pod is not there yet, for its volume is not.
    pub fn is_of_claim(&self) -> bool {
        self.event.involved_object.kind != "Pod"
    }
}

pub(super) fn wait(judging: Judging, node: &Node) -> Option<Wait> {
    let Judging { cluster, now, thresholds: t } = judging;
    if !node.is_ready() || is_out_of_service(node) {
        return None;
    }
    let missing = missing_driver(cluster, node, now)?;
    let because = if missing.is_of_claim() {
        "the scheduler has chosen the Node for the pod, and the driver makes no volume for a Node where it is not"
    } else {
        "the scheduler has put the pod on the Node, and nothing there mounts its volume"
    };
    let about = &missing.event.involved_object;
    let object = format!("Event {}/{}", about.kind, about.name);
    let evidence = Evidence::new(object, "message", missing.event.said(), because);
    // On a new Node the driver comes up beside the first pods.
    let wait = Wait::new(Stage::Ready, missing.since, t.ready * 2, t, evidence);
    Some(Wait { proven: wait.patience, symptom: Symptom::DriverMissing, ..wait })
}
