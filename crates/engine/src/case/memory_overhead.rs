//! Machines that pods would fit on, and that Karpenter counts as too small: it takes a part away of the memory that EC2
//! tells of, for it does not know what hypervisor and kernel take.

use crate::case::unplaced::{Lack, OF_THE_POOL, Unplaced, Why, asks_for, is_of_instance};
use crate::cluster_state::ClusterState;
use crate::cluster_state::memo::Memo;
use crate::objects::{Meta, Node, NodeClass, NodePool, Requirement, quantity};
use crate::upstream::instance_types::network;
use crate::upstream::karpenter::Karpenter;
use crate::upstream::overhead;
use crate::upstream::unplaced::{Shortfall, outsized};
use readers::userdata::Family;
use std::borrow::Cow;
use std::collections::BTreeMap;

const TYPE: &str = "node.kubernetes.io/instance-type";
const CPUS: &str = "karpenter.k8s.aws/instance-cpu";

type ByType = BTreeMap<String, (f64, String)>;

/// For each instance type, the node with the least allocatable memory: that memory in bytes and the node's name.
static SMALLEST: Memo<ByType> = Memo::new("the smallest machine of each instance type");

fn smallest(cluster: &ClusterState) -> ByType {
    let mut smallest = ByType::new();
    for node in cluster.nodes() {
        let (Some(type_), Some(memory)) = (node.metadata.label(TYPE), allocatable(node, "memory")) else { continue };
        if smallest.get(type_).is_none_or(|(least, _)| memory < *least) {
            smallest.insert(type_.to_owned(), (memory, node.name().to_owned()));
        }
    }
    smallest
}

fn allocatable(node: &Node, resource: &str) -> Option<f64> {
    quantity::parse(node.status.allocatable.get(resource)?)
}

/// The CPUs of the node's instance type. Without the label, allocatable CPU is rounded up: by default the kubelet
/// reserves less than one CPU.
fn cpus(node: &Node) -> Option<f64> {
    let told = node.metadata.label(CPUS).and_then(quantity::parse);
    told.or_else(|| Some(allocatable(node, "cpu")?.ceil()))
}

impl<'w> Unplaced<'w> {
    /// Memory that Karpenter says no instance type has enough of, while a machine is there that has: of a type that
    /// NodePool and pod allow, and which has enough of all else by Karpenter's reckoning too.
    pub(super) fn reckoned_short(
        &self,
        cluster: &'w ClusterState,
        pool: &NodePool,
        class: &NodeClass,
        short: &Shortfall<'w>,
    ) -> Option<Lack<'w>> {
        let karpenter = cluster.karpenter()?;
        let takes_away = overhead::memory_overhead(karpenter)? > 0.0;
        // Other machines do not show how much a kubelet with other settings keeps back, nor does Linux show it for
        // Windows.
        let differs = overhead::is_told(class, pool) || class.family().is_none_or(|family| family == Family::Windows);
        if !class.is_ec2() || !takes_away || differs {
            return None;
        }
        let (resource, total) = *short.total.iter().find(|(name, _)| *name == "memory")?;
        let wide_enough = |node: &&'w Node| {
            is_plain(node, class)
                && self.allows(pool, node)
                && has_room(node, karpenter, short).is_some_and(|room| room)
                && within_limits(cluster, pool, node)
        };
        let by_type = cluster.once(&SMALLEST, "", || smallest(cluster));
        let machine = by_type.values().filter_map(|(_, name)| cluster.node(name)).find(wide_enough)?;
        Some(Lack { resource, total, why: Why::Reckoned { machine } })
    }

    /// Whether another machine of the type may be made for the pod, as far as both say what it has to be.
    fn allows(&self, pool: &NodePool, node: &Node) -> bool {
        let own = &pool.spec.template.spec.requirements;
        let decides =
            |key: &str| is_of_instance(key) && !OF_THE_POOL.contains(&key) && key != "karpenter.sh/capacity-type";
        let asks = |key: &str| self.pod.is_none_or(|pod| asks_for(pod).any(|asked| asked == key));
        let Some(asked) = outsized(self.event, pool.name()) else { return false };
        asked.iter().filter(|(key, _)| decides(key)).all(|(key, values)| match values {
            Some(values) => value_of(node, key).is_some_and(|value| values.contains(&&*value)),
            None => !asks(key) && own.iter().any(|r| r.key == *key),
        }) && own.iter().filter(|r| decides(&r.key)).all(|r| is_met(node, r))
    }
}

/// Whether images of the class surely run on it: those with devices need images of their own.
fn is_plain(node: &Node, class: &NodeClass) -> bool {
    let is_device = |name: &str| name.contains('/') && !name.starts_with("vpc.amazonaws.com/");
    let runs = |key: &str, on: &dyn Fn(&str) -> bool| node.metadata.label(key).is_none_or(on);
    runs("kubernetes.io/os", &|os| os == "linux")
        && class.architectures().is_none_or(|known| runs("kubernetes.io/arch", &|arch| known.contains(arch)))
        && !node.status.allocatable.iter().any(|(name, _)| is_device(name))
}

/// Whether the machine has room for all that is asked for, and by Karpenter's reckoning for all but memory.
fn has_room(node: &Node, karpenter: &Karpenter, short: &Shortfall) -> Option<bool> {
    let (type_, cpus) = (node.metadata.label(TYPE)?, cpus(node)?);
    let reserved = karpenter.reserved_enis.as_deref().map_or(Some(0), |text| text.parse().ok())?;
    let pods = f64::from(u32::try_from(network(type_)?.pods(reserved)).ok()?);
    let fits = |(resource, asked): &(&str, &str)| {
        let asked = quantity::parse(asked)?;
        let room = match *resource {
            "memory" => allocatable(node, resource)?,
            "cpu" => (cpus - overhead::of_cpus(cpus)).min(allocatable(node, resource)?),
            "pods" => pods,
            // Of devices and disks nothing is known.
            _ => 0.0,
        };
        Some(asked <= room)
    };
    short.most.iter().map(fits).collect::<Option<Vec<bool>>>().map(|all| all.into_iter().all(|fits| fits))
}

/// Whether one more of its kind would exceed no limit of the NodePool: what would is left out before it is asked
/// whether a pod fits.
/// Source: core pkg/controllers/provisioning/scheduling/scheduler.go `filterByRemainingResources` (v1.0.5, v1.14.1).
fn within_limits(cluster: &ClusterState, pool: &NodePool, node: &Node) -> bool {
    // What the kubelet keeps back counts too.
    const WHOLE: f64 = 1.25;
    pool.spec.limits.iter().all(|(resource, most)| {
        let others = cluster.claims_of_pool(pool.name()).flat_map(|claim| cluster.nodes_of(claim));
        let parts: Option<Vec<f64>> = others.chain([node]).map(|node| allocatable(node, resource)).collect();
        let whole = parts.map(|parts| parts.iter().sum::<f64>() * WHOLE);
        whole.zip(quantity::parse(most)).is_some_and(|(whole, most)| whole <= most)
    })
}

fn is_met(node: &Node, wanted: &Requirement) -> bool {
    let Some(value) = value_of(node, &wanted.key) else { return false };
    let meta = Meta { labels: [(wanted.key.as_str(), &*value)].into_iter().collect(), ..Meta::default() };
    matches!(wanted.operator.as_str(), "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt")
        && wanted.is_met_by(&meta)
}

/// The value that Karpenter would give this label on a node of the same instance type. `None` if unknown.
/// Source: karpenter-provider-aws v1.14.1 pkg/providers/instancetype/types.go `computeRequirements`.
fn value_of<'n>(node: &'n Node, key: &str) -> Option<Cow<'n, str>> {
    let type_ = node.metadata.label(TYPE)?;
    let (family, size) = type_.split_once('.')?;
    let (category, rest) = family.split_at(family.find(|c: char| !c.is_ascii_lowercase())?);
    Some(match key {
        "karpenter.k8s.aws/instance-family" => family.into(),
        "karpenter.k8s.aws/instance-size" => size.into(),
        "karpenter.k8s.aws/instance-category" => category.into(),
        "karpenter.k8s.aws/instance-generation" => {
            rest.split(|c: char| !c.is_ascii_digit()).next().filter(|digits| !digits.is_empty())?.into()
        }
        CPUS => cpus(node)?.to_string().into(),
        // No other has trunk interfaces. Source: EKS user guide, "Security groups for Pods".
        "karpenter.k8s.aws/instance-hypervisor" if network(type_)?.branches > 0 => "nitro".into(),
        key => node.metadata.label(key)?.into(),
    })
}
