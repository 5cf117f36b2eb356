//! Pods that wait for a machine, and that Karpenter makes none for.

use super::extended::{self, Offer};
use crate::cluster_state::ClusterState;
use crate::cluster_state::memo::Memo;
use crate::objects::input::Input;
use crate::objects::intern::Interned;
use crate::objects::{Condition, Container, Event, Node, NodeClass, NodePool, Pod, Requirement, Taint, quantity};
use crate::upstream::gpus;
use crate::upstream::karpenter::Karpenter;
use crate::upstream::overhead::{self, GIB, KeptBack};
use crate::upstream::startup_taint;
use crate::upstream::unplaced::{
    self, Bound, PlacementObstacle, Shortfall, UnmetRequirement, bound, bound_on_node, is_about_volumes, nominated,
    shortfall, unknown_label, unmet, unoffered, unspread,
};
use crate::upstream::vpc_cni::POD_ENI;
use chrono::{DateTime, Utc};
use readers::userdata::Family;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A pod that Karpenter found no room for in a NodePool.
#[derive(Debug, Clone, Copy)]
pub struct Unplaced<'w> {
    pub event: &'w Event,
    pub refusal: PlacementObstacle,
    /// The pod, if nodewhy has read it.
    pub pod: Option<&'w Pod>,
    /// The part of the message that is about the NodePool, if Karpenter does not name it there.
    pub unnamed: Option<&'w str>,
}

/// A resource of which no machine of a NodePool has enough.
#[derive(Debug, Clone, Copy)]
pub struct Lack<'w> {
    pub resource: &'w str,
    /// The sum that the pod and the DaemonSets request on one node.
    pub total: &'w str,
    pub why: Why<'w>,
}

#[derive(Debug, Clone, Copy)]
pub enum Why<'w> {
    /// Karpenter knows it of no instance type; what DaemonSets ask of it.
    Unknown { of_daemons: Option<&'w str> },
    /// None of the instance types that the NodePool allows has it.
    NoDevice,
    /// It counts a volume of this many GiB, and not the instance's own disks.
    SmallVolume { gib: u64 },
    /// DaemonSets take so much that the pod does not fit, which would fit alone on a machine like this one.
    Crowded { of_daemons: f64, machine: &'w Node },
    /// A device plugin offers more of it than Karpenter counts of the machine, as of this one.
    Multiplied { offer: Offer<'w> },
    /// Karpenter counts less of memory than machines of a type have that the NodePool allows, such as this one.
    Reckoned { machine: &'w Node },
}

pub(super) const ZONE: &str = "topology.kubernetes.io/zone";

/// The resources that Karpenter knows for an instance type.
/// Source: karpenter-provider-aws v1.14.1 pkg/providers/instancetype/types.go `computeCapacity`, pkg/apis/v1/labels.go.
const OF_INSTANCE_TYPES: [&str; 11] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "pods",
    POD_ENI,
    "nvidia.com/gpu",
    "amd.com/gpu",
    "aws.amazon.com/neuron",
    "aws.amazon.com/neuroncore",
    "habana.ai/gaudi",
    "vpc.amazonaws.com/efa",
];

/// And this of Windows only, `NewInstanceType`.
const WINDOWS_ADDRESS: &str = "vpc.amazonaws.com/PrivateIPv4Address";

/// The sum of a resource that containers request. Quantities that do not parse are left out.
pub fn requested(containers: &[Container], resource: &str) -> f64 {
    containers.iter().filter_map(|c| quantity::parse(c.resources.requests.get(resource)?)).sum()
}

type Largest = BTreeMap<String, (f64, String)>;

/// The most of each resource that a machine of the NodePool has, and which one that is.
fn largest_of(cluster: &ClusterState, pool: &str) -> Arc<Largest> {
    static LARGEST: Memo<Largest> = Memo::new("the largest machines of a NodePool");
    cluster.once(&LARGEST, pool, || {
        let mut largest = Largest::new();
        for node in cluster.claims_of_pool(pool).flat_map(|claim| cluster.nodes_of(claim)) {
            for (resource, quantity) in node.status.allocatable.iter() {
                let Some(room) = quantity::parse(quantity) else { continue };
                if largest.get(resource).is_none_or(|(most, _)| room > *most) {
                    largest.insert(resource.to_owned(), (room, node.name().to_owned()));
                }
            }
        }
        largest
    })
}

/// A volume on which there can never be what is asked for, while Karpenter is not told of the instance's own disks.
fn small_volume<'w>(class: &NodeClass, pool: &NodePool, short: &Shortfall<'w>) -> Option<Lack<'w>> {
    let (resource, total) = *short.total.iter().find(|(name, _)| *name == "ephemeral-storage")?;
    let StorageReckoned { gib, left, .. } = volume(class, pool)?;
    (quantity::parse(total)? > left).then_some(Lack { resource, total, why: Why::SmallVolume { gib } })
}

fn multiplied<'w>(cluster: &'w ClusterState, pool: &NodePool, short: &Shortfall<'w>) -> Option<Lack<'w>> {
    let (total, offer) = extended::multiplied(cluster, pool, short)?;
    Some(Lack { resource: offer.resource, total, why: Why::Multiplied { offer } })
}

/// The volume that Karpenter counts as the ephemeral storage of every machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StorageReckoned {
    pub gib: u64,
    pub kept_back: KeptBack,
    /// Bytes that pods may ask for; where that is less than none, no pod at all fits.
    /// Source: core pkg/utils/resources/resources.go `Fits` (v1.0.5, v1.14.1).
    pub left: f64,
}

/// `None` where the class does not tell its size, or the instance's own disks may take its place.
pub fn volume(class: &NodeClass, pool: &NodePool) -> Option<StorageReckoned> {
    if !class.is_ec2() || class.spec.instance_store_policy.is_some() {
        return None;
    }
    let gib = class.ephemeral_storage()?;
    let bytes = f64::from(u32::try_from(gib).ok()?) * GIB;
    let kept_back = overhead::of_volume(class, pool, bytes)?;
    Some(StorageReckoned { gib, kept_back, left: bytes - kept_back.total() })
}

impl<'w> Unplaced<'w> {
    /// A pod that is refused for a reason which names the NodePool, or for none.
    pub fn named(event: &'w Event, refusal: PlacementObstacle, pod: Option<&'w Pod>) -> Self {
        Unplaced { event, refusal, pod, unnamed: None }
    }

    /// The parts of the message that are about the NodePool.
    fn reasons(&self, pool: &NodePool) -> impl Iterator<Item = &'w str> {
        let named = match self.unnamed {
            Some(_) => None,
            None => Some(unplaced::of_pool(self.event, pool.name())),
        };
        self.unnamed.into_iter().chain(named.into_iter().flatten())
    }

    /// Whether the NodePool can launch nothing, as its own fields show or Karpenter says, whatever the pod asks for.
    pub fn shows_fault(&self, pool: &NodePool, class: Option<&NodeClass>) -> bool {
        self.refusal == PlacementObstacle::Limits
            || self.unmet_by_itself(pool)
            || self.unoffered_by_itself(pool)
            || self.without_gpu(pool).is_some()
            || self.spread_elsewhere(pool).is_some()
            || self.bound_by_volumes(pool).is_some()
            || self.passed_over_as_static(pool)
            || self.refused_for_claims(pool)
            || self.refused_by_startup_taint(pool).is_some()
            || class.is_some_and(|class| self.without_storage(pool, class).is_some())
            || class.and_then(|class| pool.zones_without_subnet(class)).is_some_and(|zones| zones.all)
            || class.is_some_and(|class| self.lacks_reservation(pool, class))
    }

    /// Whether the NodePool allows capacity reservations only, of which its class has none to use, whatever the pod
    /// asks for.
    pub fn lacks_reservation(&self, pool: &NodePool, class: &NodeClass) -> bool {
        self.refusal == PlacementObstacle::NoInstanceType
            && pool.is_reserved_only()
            && pool.reservations(class).next().is_none()
    }

    /// Whether no instance type meets the NodePool's own requirements: what the pod adds to them is nothing that an
    /// instance type decides.
    pub fn unmet_by_itself(&self, pool: &NodePool) -> bool {
        self.refusal == PlacementObstacle::NoInstanceType
            && unmet(self.event, pool.name()).is_some_and(|asked| self.is_all_of(pool, asked))
    }

    /// Karpenter's word that it skips the NodePool for every pod, because the NodePool's own requirements leave no
    /// instance type. The pod could have a node of it otherwise.
    pub fn skipped(&self, cluster: &'w ClusterState, pool: &NodePool) -> Option<&'w Event> {
        let pod = self.pod.filter(|_| self.refusal == PlacementObstacle::PassedOver)?;
        let said = cluster.events("NodePool", pool.name()).filter(|event| unplaced::leaves_no_type(event));
        let newest = said.max_by_key(|event| event.last_seen())?;
        // Since then somebody may have repaired the NodePool, and the pod waits for another reason.
        let is_told_since = self.event.last_seen().is_none_or(|at| unplaced::is_repeated(newest, at));
        let is_of_pod = newest.last_seen() >= pod.metadata.creation_timestamp;
        (is_told_since && is_of_pod && admits(pool, pod)).then_some(newest)
    }

    /// Whether what meets the NodePool's own requirements is offered nowhere that they allow: the pod adds to them
    /// nothing that an instance type decides.
    pub fn unoffered_by_itself(&self, pool: &NodePool) -> bool {
        self.refusal == PlacementObstacle::NoInstanceType
            && unoffered(self.event, pool.name()).is_some_and(|asked| self.is_all_of(pool, asked))
    }

    /// The families of the NodePool's list that the pod leaves, and the NodePool's own requirement that excludes all of
    /// them, because they have no GPU.
    pub fn without_gpu<'p>(&self, pool: &'p NodePool) -> Option<(Vec<&'w str>, &'p Requirement)> {
        if self.refusal != PlacementObstacle::NoInstanceType {
            return None;
        }
        let own = &pool.spec.template.spec.requirements;
        let gpu = own.iter().find(|r| gpus::requires_gpu(r))?;
        let asked = unmet(self.event, pool.name())?;
        let (_, families) = asked.into_iter().find(|(key, _)| gpus::is_family(key))?;
        let families = families?;
        let lists = |family: &str| {
            let listed = own.iter().filter(|r| gpus::is_family(r.key.as_str()) && r.operator.as_str() == "In");
            listed.flat_map(|r| &r.values).any(|value| value.as_str() == family)
        };
        families.iter().all(|family| gpus::has_no_gpu(family) && lists(family)).then_some((families, gpu))
    }

    /// The zones of which one would have to be the pod's next, and those that the NodePool allows, which the pod asks
    /// for by its name or a label of its own.
    pub fn spread_elsewhere(&self, pool: &NodePool) -> Option<(Vec<&'w str>, Vec<&'w str>)> {
        if self.refusal != PlacementObstacle::Zone || !self.names(pool) {
            return None;
        }
        let (wanted, allowed) = self.reasons(pool).find_map(unspread)?;
        // A single zone may be that of the pod's volumes.
        let has_volumes = self.pod.is_some_and(|pod| !pod.spec.volumes.is_empty());
        let is_its_own = || lists_zones(pool, &allowed) && (allowed.len() > 1 || !has_volumes);
        (self.unnamed.is_none() || is_its_own()).then_some((wanted, allowed))
    }

    /// Whether no zone counts for the pod's spread, which names the NodePool that it may go to.
    pub fn counts_no_zone(&self, pool: &NodePool) -> bool {
        let names_it = |pod: &Pod| asks_for(pod).any(|key| key == "karpenter.sh/nodepool") && admits(pool, pod);
        self.refusal == PlacementObstacle::PassedOver
            && unplaced::counts_nothing(self.event)
            && self.pod.is_some_and(names_it)
    }

    /// The zones that the pod's volumes require, if they alone keep it off every NodePool. If the pod itself also
    /// requires a zone, nodewhy cannot separate the two, unless they exclude each other.
    pub fn bound_by_volumes(&self, pool: &NodePool) -> Option<Bound<'w>> {
        let of_zone = matches!(self.refusal, PlacementObstacle::Zone | PlacementObstacle::NoInstanceType);
        let pod = self.pod.filter(|pod| of_zone && !pod.spec.volumes.is_empty())?;
        let by_itself = asks_for(pod).any(|key| key == ZONE);
        let found = self.reasons(pool).find_map(|part| match bound(part) {
            Some(Bound::Outside { zones, .. }) if by_itself && self.unnamed.is_some() => {
                let is_pods_fault = is_about_volumes(part) && allows_all(pool, &zones);
                is_pods_fault.then_some(Bound::Apart)
            }
            None if self.unnamed.is_some() => bound_on_node(part).filter(|bound| is_for_volumes(pool, bound)),
            found => found,
        });
        found.filter(|bound| (!by_itself || *bound == Bound::Apart) && self.is_bound_everywhere())
    }

    /// Whether zones alone keep the pod off each NodePool. If not, another NodePool may allow the zone and be full.
    fn is_bound_everywhere(&self) -> bool {
        let mut named = unplaced::refusals(self.event);
        let mut unnamed = unplaced::unnamed(self.event).filter(|reason| reason.obstacle != PlacementObstacle::Label);
        named.all(|(name, _)| unplaced::of_pool(self.event, name).any(|part| bound(part).is_some()))
            && unnamed.all(|reason| bound(reason.part).or_else(|| bound_on_node(reason.part)).is_some())
    }

    /// The volume of which nothing is left for pods, whatever they ask for. The NodePool is passed over for it, or said
    /// to have no instance type that is large enough.
    pub fn without_storage(&self, pool: &NodePool, class: &NodeClass) -> Option<StorageReckoned> {
        let is_named = unplaced::refusals(self.event).any(|(name, _)| name == pool.name());
        let fits = match self.refusal {
            PlacementObstacle::PassedOver => !is_named,
            PlacementObstacle::NoInstanceType => shortfall(self.event, pool.name()).is_some(),
            _ => false,
        };
        volume(class, pool).filter(|volume| fits && volume.left < 0.0)
    }

    /// Whether the pod asks for the machines of this NodePool: by its name, or by a label that it gives them.
    fn names(&self, pool: &NodePool) -> bool {
        let is_its = |key: &str| key == "karpenter.sh/nodepool" || pool.spec.template.metadata.label(key).is_some();
        self.pod.is_some_and(|pod| asks_for(pod).any(is_its) && selects(pool, pod))
    }

    /// Whether what is asked for together is the NodePool's alone.
    fn is_all_of(&self, pool: &NodePool, asked_for: Vec<UnmetRequirement>) -> bool {
        let own = &pool.spec.template.spec.requirements;
        let asked = |key: &str| self.pod.is_some_and(|pod| asks_for(pod).any(|asked| asked == key));
        let is_own = |(key, values): UnmetRequirement| match values {
            _ if !is_of_instance(key) || OF_THE_POOL.contains(&key) => true,
            Some(values) => own.iter().any(|r| {
                let whole = r.values.len() == values.len() && values.iter().all(|value| r.admits(value));
                r.key == key && r.operator == "In" && whole
            }),
            None => own.iter().any(|r| r.key == key) && !asked(key),
        };
        asked_for.into_iter().all(is_own)
    }

    /// Whether the pod asks for the machines of a NodePool that makes none for pods: by its name, or by a label that
    /// the NodePool gives them.
    /// Source: core pkg/controllers/provisioning/provisioner.go `NewScheduler`, pkg/utils/nodepool/nodepool.go
    /// `IsStatic` (v1.14.1).
    pub fn passed_over_as_static(&self, pool: &NodePool) -> bool {
        self.refusal == PlacementObstacle::PassedOver && pool.spec.replicas.is_some() && self.names(pool)
    }

    /// The label that the pod asks for, and that no NodePool gives its machines.
    pub fn unoffered_label(&self, cluster: &ClusterState, pool: &NodePool) -> Option<&'w str> {
        let is_told = match self.refusal {
            PlacementObstacle::Label => true,
            PlacementObstacle::PassedOver => waits_for_class(pool),
            _ => false,
        };
        let (_, key) = unknown_label(self.event).filter(|_| is_told)?;
        if !self.stands_for_all(cluster, pool) {
            return None;
        }
        let asks = |pod: &Pod| asks_for(pod).any(|asked| asked == key);
        (self.pod.is_none_or(asks) && !cluster.pools().any(|pool| offers(pool, self.pod, key))).then_some(key)
    }

    /// Whether the NodePool stands for all that are refused for a label: the first one with taints that the pod
    /// tolerates, as it is meant for such pods, or else the first. It may be one that is not Ready, of which Karpenter
    /// says nothing. Without the pod nobody knows which taints it tolerates, so then no NodePool stands for others that
    /// have some.
    fn stands_for_all(&self, cluster: &ClusterState, pool: &NodePool) -> bool {
        let is_tainted = |pool: &NodePool| pool.spec.template.spec.taints.iter().any(Taint::keeps_pods_off);
        let named: Vec<&NodePool> = unplaced::refusals(self.event).filter_map(|(name, _)| cluster.pool(name)).collect();
        let all = || named.iter().copied().chain(cluster.pools().filter(|pool| waits_for_class(pool)));
        let meant = match self.pod {
            Some(pod) => all().find(|pool| is_tainted(pool) && tolerated(pool, pod, |_| true)),
            None if all().count() > 1 && all().any(is_tainted) => return false,
            None => None,
        };
        meant.or(named.first().copied()).is_none_or(|first| first.name() == pool.name())
    }

    /// Whether Karpenter makes no machine for the pod because it asks for devices by a ResourceClaim, and this
    /// NodePool's machines are meant for it: it asks for them, or tolerates what keeps others from them.
    pub fn refused_for_claims(&self, pool: &NodePool) -> bool {
        let is_meant = |pod: &Pod| {
            let taints = &pool.spec.template.spec.taints;
            self.names(pool) || taints.iter().any(Taint::keeps_pods_off) && admits(pool, pod)
        };
        self.refusal == PlacementObstacle::PassedOver
            && unplaced::refuses_claims(self.event)
            && self.pod.is_some_and(is_meant)
    }

    /// The startup taint among the NodePool's lasting ones for which it is refused: no pod tolerates it, so no machine
    /// is made on which the taint could be removed.
    pub fn refused_by_startup_taint<'p>(&self, pool: &'p NodePool) -> Option<&'p Taint> {
        startup_taint::among_taints(pool).filter(|_| self.refusal == PlacementObstacle::StartupTaint)
    }

    /// The resource of which no machine of the NodePool has as much as the pod and the DaemonSets ask for, where it is
    /// not for the pod's own size: what a pod asks for is its owner's.
    pub fn lacks(&self, cluster: &'w ClusterState, pool: &NodePool, class: Option<&'w NodeClass>) -> Option<Lack<'w>> {
        if self.refusal != PlacementObstacle::NoInstanceType {
            return None;
        }
        // Another NodePool may have the room, and not get the machine.
        let mut others = unplaced::refusals(self.event);
        let unsatisfied = |name: &str| unplaced::unsatisfied(self.event, name);
        if !others.all(|(name, _)| shortfall(self.event, name).or_else(|| unsatisfied(name)).is_some()) {
            return None;
        }
        let Some(short) = shortfall(self.event, pool.name()) else {
            return self.unknown_resource(cluster, pool, class, &unsatisfied(pool.name())?);
        };
        self.unknown_resource(cluster, pool, class, &short)
            .or_else(|| small_volume(class?, pool, &short))
            .or_else(|| self.crowded_out(cluster, pool, &short))
            .or_else(|| self.reckoned_short(cluster, pool, class?, &short))
            .or_else(|| multiplied(cluster, pool, &short))
            .or_else(|| self.without_device(cluster, pool, &short))
    }

    /// A device that a pod requests while it selects this NodePool by name or label. No instance type of the NodePool
    /// has the device and room for the other requests. If one of its nodes has such devices, the pod may only want too
    /// many.
    fn without_device(&self, cluster: &ClusterState, pool: &NodePool, short: &Shortfall<'w>) -> Option<Lack<'w>> {
        let is_device = |name: &str| name.contains('/') && OF_INSTANCE_TYPES.contains(&name);
        let wanted = |(name, asked): &(&str, &str)| is_device(name) && quantity::parse(asked) != Some(0.0);
        let (resource, total) = short.total.iter().copied().find(wanted)?;
        // A NodeClaim of this NodePool was meant for the pod, so an instance type had the device and the room.
        let was_placed = |pod: &Pod| {
            let mut claims = cluster.events_about_pod(pod).filter_map(nominated);
            claims.any(|claim| cluster.pool_of_claim_name(claim) == Some(pool.name()))
        };
        if self.pod.is_some_and(was_placed) {
            return None;
        }
        let has_some = largest_of(cluster, pool.name()).get(resource).is_some_and(|(most, _)| *most > 0.0);
        (!has_some && self.names(pool)).then_some(Lack { resource, total, why: Why::NoDevice })
    }

    /// A resource that Karpenter gives no instance type, so that no machine is made for whoever asks for it.
    fn unknown_resource(
        &self,
        cluster: &'w ClusterState,
        pool: &NodePool,
        class: Option<&NodeClass>,
        short: &Shortfall<'w>,
    ) -> Option<Lack<'w>> {
        // A NodeOverlay may add it, and Karpenter says nothing of the size that it gives.
        let overlays =
            |karpenter: &Karpenter| karpenter.has_overlays() && cluster.missing(Input::NodeOverlays).is_some();
        if class.is_none_or(|class| !class.is_ec2()) || cluster.karpenter().is_none_or(overlays) {
            return None;
        }
        let promised = |name: &str| cluster.node_overlays().any(|overlay| overlay.spec.capacity.get(name).is_some());
        // All NodePools that the pod may go to say the same: one of them is enough.
        if unplaced::refusals(self.event).next().is_none_or(|(name, _)| name != pool.name()) {
            return None;
        }
        let windows = class.and_then(NodeClass::family) == Some(Family::Windows);
        let off = |name: &str| name == POD_ENI && cluster.karpenter().is_some_and(Karpenter::leaves_out_pod_eni);
        let known =
            |name: &str| OF_INSTANCE_TYPES.contains(&name) && !off(name) || (windows && name == WINDOWS_ADDRESS);
        let asked = short.total.iter().copied();
        let (resource, total) = asked
            .into_iter()
            .find(|(name, asked)| !known(name) && !promised(name) && quantity::parse(asked) != Some(0.0))?;
        let of_daemons = short.overhead.iter().flatten().find(|(name, _)| *name == resource).map(|(_, part)| *part);
        Some(Lack { resource, total, why: Why::Unknown { of_daemons } })
    }

    /// DaemonSets that take the larger part of a machine which the pod alone would fit on.
    fn crowded_out(&self, cluster: &'w ClusterState, pool: &NodePool, short: &Shortfall<'w>) -> Option<Lack<'w>> {
        let largest = largest_of(cluster, pool.name());
        short.total.iter().find_map(|&(resource, total)| {
            let (most, machine) = largest.get(resource)?;
            let all = quantity::parse(total)?;
            let of_daemons = match &short.overhead {
                Some(overhead) => quantity::parse(overhead.iter().find(|(name, _)| *name == resource)?.1)?,
                None => all - requested(&self.pod?.spec.containers, resource),
            };
            let own = all - of_daemons;
            let crowded = all > *most && own <= *most && of_daemons >= own && own > 0.0;
            let machine = cluster.node(machine)?;
            if !crowded {
                return None;
            }
            Some(Lack { resource, total, why: Why::Crowded { of_daemons, machine } })
        })
    }

    /// The resources that the pod and the DaemonSets request on one node of the NodePool, if these are too much. Empty
    /// otherwise.
    pub fn total(&self, pool: &NodePool) -> Vec<(&'w str, &'w str)> {
        shortfall(self.event, pool.name()).map_or_else(Vec::new, |short| short.total)
    }

    /// Whether it still waits, as far as its event and the pod itself tell.
    pub fn waits(&self, now: DateTime<Utc>) -> bool {
        let repeated = unplaced::is_repeated(self.event, now);
        let unbound = |pod: &Pod| pod.spec.node_name.is_empty() && pod.metadata.deletion_timestamp.is_none();
        repeated && self.pod.map_or_else(|| self.event.times() > 1, unbound)
    }

    pub fn since(&self) -> Option<DateTime<Utc>> {
        self.event.first_timestamp.or(self.event.event_time).or(self.event.last_seen())
    }

    /// Whether the NodePool is meant for the pod. Where no instance type was left, Karpenter has seen to that; else
    /// nothing but the pod itself tells.
    pub fn is_for(&self, pool: &NodePool) -> bool {
        match (self.refusal, self.pod) {
            (PlacementObstacle::NoInstanceType, _) => true,
            (PlacementObstacle::StartupTaint, Some(pod)) => {
                tolerated(pool, pod, |taint| startup_taint::owner(taint).is_none()) && selects(pool, pod)
            }
            (_, Some(pod)) => admits(pool, pod),
            (_, None) => false,
        }
    }
}

/// The label for which Karpenter leaves a pod alone, whatever else the pod would take: those of its own domain that are
/// not for pods.
/// Sources: core pkg/controllers/provisioning/provisioner.go `Validate`, pkg/apis/v1/labels.go `IsRestrictedLabel`
/// (v1.0.5, v1.14.1).
pub fn restricted_label(pod: &Pod) -> Option<&str> {
    asks_for(pod).find(|key| {
        let domain = key.split_once('/').map_or("", |(domain, _)| domain);
        let own = domain == "karpenter.sh" || domain.ends_with(".karpenter.sh");
        own && !is_of_instance(key)
    })
}

/// Whether the NodePool allows all of these zones.
pub(super) fn allows_all(pool: &NodePool, zones: &[&str]) -> bool {
    zones.iter().all(|zone| may_have(pool, ZONE, Some(zone)))
}

/// Whether these are the zones that the NodePool lists.
pub(super) fn lists_zones(pool: &NodePool, zones: &[&str]) -> bool {
    let is_same = |own: Vec<&str>| own.len() == zones.len() && own.iter().all(|zone| zones.contains(zone));
    listed_zones(pool).is_some_and(is_same)
}

/// The zones that the NodePool lists. `None` if it lists none.
pub(super) fn listed_zones(pool: &NodePool) -> Option<Vec<&str>> {
    let template = &pool.spec.template;
    if let Some(zone) = template.metadata.label(ZONE) {
        return Some(vec![zone]);
    }
    let listed = template.spec.requirements.iter().find(|r| r.key == ZONE && r.operator == "In")?;
    let zones = listed.values.iter().map(Interned::as_str);
    Some(zones.filter(|zone| may_have(pool, ZONE, Some(zone))).collect())
}

/// Whether the pod's volumes, and not the NodePool, exclude the zones that the pod's spread or affinity requires.
fn is_for_volumes(pool: &NodePool, bound: &Bound) -> bool {
    match bound {
        Bound::Unspread { wanted: zones, .. } | Bound::Unaccompanied { friends: zones, .. } => {
            zones.iter().any(|zone| may_have(pool, ZONE, Some(zone)))
        }
        Bound::Apart | Bound::Outside { .. } => false,
    }
}

/// The label that a pod requires, for sentences: `team=blue`, or `team` if it does not require exactly one value.
pub fn asked<'p>(pod: &'p Pod, key: &'p str) -> String {
    let mut wanted = expressions(pod).filter(|r| r.key == key).flat_map(|r| &r.values).map(Interned::as_str);
    let value = pod.spec.node_selector.get(key).map(String::as_str).or_else(|| wanted.next());
    value.filter(|_| wanted.next().is_none()).map_or_else(|| key.to_owned(), |value| format!("{key}={value}"))
}

/// The requirements that Karpenter adds to each NodeClaim.
/// Source: core pkg/controllers/provisioning/scheduling/nodeclaimtemplate.go `NewNodeClaimTemplate` (v1.14.1).
pub(super) const OF_THE_POOL: [&str; 2] = ["karpenter.sh/nodepool", "karpenter.k8s.aws/ec2nodeclass"];

/// The labels that a pod asks for.
pub(super) fn asks_for(pod: &Pod) -> impl Iterator<Item = &str> {
    pod.spec.node_selector.keys().map(String::as_str).chain(expressions(pod).map(|r| r.key.as_str()))
}

/// The values that it takes of any label.
pub(super) fn values(pod: &Pod) -> impl Iterator<Item = &str> {
    let of_terms = expressions(pod).flat_map(|r| &r.values).map(Interned::as_str);
    pod.spec.node_selector.values().map(String::as_str).chain(of_terms)
}

fn expressions(pod: &Pod) -> impl Iterator<Item = &Requirement> {
    let required = &pod.spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution;
    required.node_selector_terms.iter().flat_map(|term| &term.match_expressions)
}

/// Whether Karpenter leaves the NodePool out for its node class, which has a diagnosis of its own.
/// Source: core pkg/controllers/provisioning/provisioner.go `NewScheduler` (v1.0.5, v1.14.1).
fn waits_for_class(pool: &NodePool) -> bool {
    pool.unready().is_none() && pool.condition("NodeClassReady").is_some_and(Condition::is_false)
}

/// Whether the NodePool may have machines for the pod, as far as labels and taints tell.
pub fn admits(pool: &NodePool, pod: &Pod) -> bool {
    tolerated(pool, pod, |_| true) && selects(pool, pod)
}

/// Whether the pod tolerates these taints of the NodePool.
pub(super) fn tolerated(pool: &NodePool, pod: &Pod, counts: impl Fn(&Taint) -> bool) -> bool {
    let taints = pool.spec.template.spec.taints.iter().filter(|taint| taint.keeps_pods_off());
    taints.filter(|taint| counts(taint)).all(|taint| pod.spec.tolerations.iter().any(|own| own.tolerates(taint)))
}

/// Whether the pod may run on machines with the NodePool's labels.
pub(super) fn selects(pool: &NodePool, pod: &Pod) -> bool {
    selects_by(pool, pod, |_| true)
}

/// The same as far as these labels go.
pub(super) fn selects_by(pool: &NodePool, pod: &Pod, counts: impl Fn(&str) -> bool) -> bool {
    let terms =
        &pod.spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution.node_selector_terms;
    let met = |r: &Requirement| !counts(&r.key) || meets(pool, r);
    let has = |(key, value): (&String, &String)| !counts(key) || may_have(pool, key, Some(value));
    pod.spec.node_selector.iter().all(has)
        && (terms.is_empty() || terms.iter().any(|term| term.match_expressions.iter().all(met)))
}

pub(super) fn meets(pool: &NodePool, wanted: &Requirement) -> bool {
    match wanted.operator.as_str() {
        "In" => wanted.values.iter().any(|value| may_have(pool, &wanted.key, Some(value))),
        "NotIn" => pool
            .spec
            .template
            .metadata
            .label(&wanted.key)
            .is_none_or(|own| !wanted.values.iter().any(|value| value == own)),
        "DoesNotExist" => pool.spec.template.metadata.label(&wanted.key).is_none(),
        _ => may_have(pool, &wanted.key, None),
    }
}

/// Whether its machines may have this label: those that the user invented stand in the NodePool, others are the
/// instance type's.
pub(super) fn may_have(pool: &NodePool, key: &str, value: Option<&str>) -> bool {
    let Some(value) = value else { return own_label(pool, key) || is_of_instance(key) };
    if key == "karpenter.sh/nodepool" {
        return value == pool.name();
    }
    if let Some(own) = pool.spec.template.metadata.label(key) {
        return own == value;
    }
    let mut required = pool.spec.template.spec.requirements.iter().filter(|r| r.key == key).peekable();
    (required.peek().is_some() || is_of_instance(key)) && required.all(|r| r.admits(value))
}

pub(super) fn own_label(pool: &NodePool, key: &str) -> bool {
    let template = &pool.spec.template;
    template.metadata.label(key).is_some() || template.spec.requirements.iter().any(|r| r.key == key)
}

/// Whether the NodePool has the label, with a value that the pod asks for where that is known.
fn offers(pool: &NodePool, pod: Option<&Pod>, key: &str) -> bool {
    let of_selector = |pod: &Pod| pod.spec.node_selector.get(key).is_none_or(|value| may_have(pool, key, Some(value)));
    let of_affinity = |pod: &Pod| {
        let mut asked = expressions(pod).filter(|r| r.key == key).peekable();
        asked.peek().is_none() || asked.any(|r| meets(pool, r))
    };
    own_label(pool, key) && pod.is_none_or(|pod| of_selector(pod) && of_affinity(pod))
}

/// Source: core pkg/apis/v1/labels.go `WellKnownLabels` (v1.14.1); karpenter-provider-aws v1.14.1
/// pkg/apis/v1/labels.go.
pub(super) fn is_of_instance(key: &str) -> bool {
    matches!(
        key,
        "karpenter.sh/capacity-type"
            | "karpenter.sh/nodepool"
            | "kubernetes.io/arch"
            | "kubernetes.io/os"
            | "node.kubernetes.io/instance-type"
            | "topology.kubernetes.io/region"
            | "topology.kubernetes.io/zone"
            | "topology.k8s.aws/zone-id"
    ) || key.starts_with("karpenter.k8s.aws/")
        || key.starts_with("eks.amazonaws.com/instance-")
}
