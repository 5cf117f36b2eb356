//! Why the API server cannot give Karpenter the objects of a kind in the version that it reads.

use super::judging::Judging;
use super::stage::Wait;
use super::waiting_pods;
use crate::case::pool_wait;
use crate::cluster_state::ClusterState;
use crate::objects::input::Input;
use crate::objects::{ClusterService, CustomResourceDefinition, WebhookService};
use crate::upstream::karpenter::Karpenter;

const NODE_POOLS: &str = "nodepools.karpenter.sh";
const NODE_CLAIMS: &str = "nodeclaims.karpenter.sh";
const NODE_CLASSES: &str = "ec2nodeclasses.karpenter.k8s.aws";

/// A CustomResourceDefinition that keeps its objects from Karpenter.
#[derive(Debug, Clone, Copy)]
pub struct Unconverted<'w> {
    pub definition: &'w CustomResourceDefinition,
    pub karpenter: &'w Karpenter,
    /// The version that Karpenter does not get.
    pub version: &'static str,
    pub fault: ConversionFault<'w>,
}

#[derive(Debug, Clone, Copy)]
pub enum ConversionFault<'w> {
    /// The version is not served at all.
    NotServed,
    /// Some objects may be stored in a version of which the definition knows nothing.
    NotDeclared { stored: &'w str },
    /// The Service of the webhook is not there; Karpenter's own is.
    NoService { asked: &'w WebhookService, own: &'w ClusterService },
    /// It is, without that port.
    NoPort { asked: &'w WebhookService, port: u16 },
}

/// The first that is found, in the order in which Karpenter cannot do without them.
pub fn unconverted(cluster: &ClusterState) -> Option<Unconverted<'_>> {
    let karpenter = cluster.karpenter()?;
    let found = |definition| of(cluster, karpenter, definition);
    cluster.custom_resources().filter_map(found).min_by_key(|own| own.definition.name() != NODE_POOLS)
}

fn of<'w>(
    cluster: &'w ClusterState,
    karpenter: &'w Karpenter,
    definition: &'w CustomResourceDefinition,
) -> Option<Unconverted<'w>> {
    let of_version = |version, fault| Unconverted { definition, karpenter, version, fault };
    let reads = karpenter.reads();
    if !is_read(definition) {
        return None;
    }
    if !definition.serves(reads) {
        return Some(of_version(reads, ConversionFault::NotServed));
    }
    if karpenter.ends_without_v1() && definition.name() == NODE_POOLS && !definition.serves("v1") {
        return Some(of_version("v1", ConversionFault::NotServed));
    }
    // What was read in the same version was converted.
    let was_read = reads == "v1" && has_objects(cluster, definition);
    let fault = undeclared(definition).or_else(|| unreached(cluster, karpenter, definition)).filter(|_| !was_read)?;
    Some(of_version(reads, fault))
}

/// Whether it is one of a kind that Karpenter cannot do without, and tells its versions.
fn is_read(definition: &CustomResourceDefinition) -> bool {
    [NODE_POOLS, NODE_CLAIMS, NODE_CLASSES].contains(&definition.name()) && !definition.spec.versions.is_empty()
}

fn has_objects(cluster: &ClusterState, definition: &CustomResourceDefinition) -> bool {
    match definition.name() {
        NODE_POOLS => cluster.pools().next().is_some(),
        NODE_CLAIMS => cluster.claims().next().is_some(),
        _ => cluster.classes().any(|facts| facts.class.is_ec2()),
    }
}

/// `request to convert CR from an invalid group/version: karpenter.sh/v1beta1`: so the API server answers then.
/// Source: apiextensions-apiserver v0.36.3 pkg/apiserver/conversion/converter.go `Convert`.
fn undeclared(definition: &CustomResourceDefinition) -> Option<ConversionFault<'_>> {
    let is_declared = |stored: &String| definition.spec.versions.iter().any(|own| own.name == *stored);
    let stored = definition.status.stored_versions.iter().find(|stored| !is_declared(stored))?;
    Some(ConversionFault::NotDeclared { stored })
}

/// Nobody is asked where all objects are stored in the version that is wanted.
/// Source: apiextensions-apiserver v0.36.3 pkg/apiserver/conversion/webhook_converter.go `Convert`.
fn unreached<'w>(
    cluster: &'w ClusterState,
    karpenter: &'w Karpenter,
    definition: &'w CustomResourceDefinition,
) -> Option<ConversionFault<'w>> {
    /// apiextensions-apiserver v0.36.3 pkg/apis/apiextensions/v1/defaults.go.
    const DEFAULT_PORT: u16 = 443;
    let conversion = &definition.spec.conversion;
    let others = definition.status.stored_versions.iter().any(|stored| *stored != karpenter.reads());
    let asked =
        conversion.webhook.client_config.service.as_ref().filter(|_| conversion.strategy == "Webhook" && others)?;
    let is_at = |service: &&ClusterService, namespace: &str, name: &str| {
        service.metadata.namespace.as_deref() == Some(namespace) && *service.metadata.name == *name
    };
    let port = asked.port.unwrap_or(DEFAULT_PORT);
    if let Some(found) = cluster.services().find(|service| is_at(service, &asked.namespace, &asked.name)) {
        let listens = found.spec.ports.iter().any(|own| own.port == port);
        return (!listens).then_some(ConversionFault::NoPort { asked, port });
    }
    // The chart gives the Service the name of its Deployment: without that one, not all Services were read.
    // Source: karpenter-provider-aws v1.0.8 charts/karpenter/templates/service.yaml.
    let namespace = karpenter.metadata.namespace.as_deref()?;
    let own = cluster.services().find(|service| is_at(service, namespace, &karpenter.metadata.name))?;
    Some(ConversionFault::NoService { asked, own })
}

/// Karpenter, where it does not run, nothing that it makes machines of could be read, and that is why; a pod waits.
pub(super) fn wait(judging: Judging) -> Option<Wait> {
    let Judging { cluster, thresholds: t, .. } = judging;
    let stopped = cluster.karpenter()?.stopped.as_ref()?;
    let has_pools = cluster.missing(Input::NodePools).is_none() && cluster.pools().next().is_some();
    unconverted(cluster).filter(|_| !has_pools)?;
    let waiting = waiting_pods(cluster).filter(|pod| pod.daemon_set().is_none());
    pool_wait::unserved_wait(stopped, waiting.min_by_key(|pod| pod.metadata.creation_timestamp)?, t)
}
