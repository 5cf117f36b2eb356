//! A pod that selects a NodePool requests a device, and none of its instance types has the device beside the rest.

use crate::case::unplaced::{Lack, Unplaced};
use crate::facts::short_resource::{has_overlay, pods_at_most, without_gpu};
use crate::objects::{NodePool, Requirement, quantity};
use crate::rules::prelude::*;
use crate::upstream::gpus::NoGpu;
use std::fmt::Write;

/// The requirements that decide which instance types a NodePool allows.
const TYPES: [&str; 5] = [
    "node.kubernetes.io/instance-type",
    "karpenter.k8s.aws/instance-family",
    "karpenter.k8s.aws/instance-category",
    "eks.amazonaws.com/instance-family",
    "eks.amazonaws.com/instance-category",
];

pub(super) fn no_device(
    case: &Case,
    pool: &NodePool,
    told: &Unplaced,
    lack: &Lack,
    of_pod: &str,
    event: Evidence,
) -> Finding {
    let (name, resource) = (pool.name(), lack.resource);
    let of_types = |r: &&Requirement| TYPES.contains(&r.key.as_str());
    let allowed: Vec<String> =
        pool.spec.template.spec.requirements.iter().filter(of_types).map(Requirement::shown).collect();
    let allowed = allowed.join(", ");
    let mut short: Vec<Short> = lacks_gpu(case, pool, told, resource).into_iter().collect();
    let class = case.class();
    short.extend(class.and_then(|class| pods_at_most(told, pool, class)).map(|most| lacks_pods(told, pool, &most)));
    if short.is_empty() {
        short.push(unproven(told, pool, resource, &allowed));
    }
    let why: Vec<&str> = short.iter().map(|short| short.why.as_str()).collect();
    let fix: Vec<&str> = short.iter().map(|short| short.fix.as_str()).collect();
    Finding::new(
        Confidence::Certain,
        format!("NodePool {name} launches nothing for {of_pod}: {}", why.join(" Also, ")),
        event,
    )
    .with(Evidence::new(
        format!("NodePool/{name}"),
        "spec.template.spec.requirements",
        allowed,
        format!("no node of this NodePool has had {resource} either"),
    ))
    .blaming(Blame::object("karpenter.sh/v1", "NodePool", name).field("spec.template.spec.requirements"))
    .fix(fix.join(" "))
    .change("Change what the NodePool allows", format!("kubectl edit nodepool {name}"))
}

/// A resource that is short: whole sentences.
struct Short {
    why: String,
    fix: String,
}

fn lacks_gpu(case: &Case, pool: &NodePool, told: &Unplaced, resource: &str) -> Option<Short> {
    let overlay = has_overlay(case, resource);
    let types = without_gpu(told, pool, resource).filter(|_| overlay != Some(true))?;
    let mut why = format!("the pod requests {resource}, which no allowed instance type has.");
    let other = types.iter().find_map(|(_, why)| if let NoGpu::OtherMaker(maker) = why { Some(*maker) } else { None });
    if let Some(maker) = other {
        let alike = alike(&types, NoGpu::OtherMaker(maker));
        let _ = write!(why, " The GPUs of {alike} are from {maker}.");
    }
    let uncounted = alike(&types, NoGpu::NotReported);
    if !uncounted.is_empty() {
        let _ = write!(why, " EC2 reports 0 GPUs for {uncounted}, so Karpenter counts none.");
    }
    let without = alike(&types, NoGpu::Without);
    if !without.is_empty() {
        let _ = write!(why, " There is no GPU in {without}.");
    }
    if overlay.is_none() {
        why.push_str(" A NodeOverlay could add it, but nodewhy has read none.");
    }
    Some(Short { why, fix: gpu_fix(resource, &uncounted) })
}

/// The types or families that have none for this reason.
fn alike(types: &[(String, NoGpu)], reason: NoGpu) -> String {
    let alike = types.iter().filter(|(_, why)| *why == reason).map(|(type_, _)| type_.as_str());
    alike.collect::<Vec<_>>().join(", ")
}

/// Sources: docs "Troubleshooting", "Pods requesting nvidia.com/gpu are not scheduled on g6f fractional GPU instances"
/// (karpenter-provider-aws website/content/en/docs/troubleshooting.md); aws/karpenter-provider-aws#8368.
fn gpu_fix(resource: &str, uncounted: &str) -> String {
    if resource == "amd.com/gpu" {
        return "Allow a family with AMD GPUs: g4ad.".to_owned();
    }
    if uncounted.is_empty() {
        return "Allow a family with NVIDIA GPUs, such as g4dn, g5 or g6. Larger types of the same families do not help."
            .to_owned();
    }
    let beside = if uncounted.split(", ").any(|type_| type_ == "p5.4xlarge") {
        " (for an H100: p5.48xlarge, which has 8)"
    } else {
        ""
    };
    format!(
        "Allow types whose GPUs EC2 reports, such as g4dn, g5 or g6{beside}. Or declare the GPUs of {uncounted} in a \
         NodeOverlay (feature gate NodeOverlay, from Karpenter 1.7 on)."
    )
}

fn lacks_pods(told: &Unplaced, pool: &NodePool, (type_, most): &(String, u64)) -> Short {
    let asked = told.total(pool).into_iter().find(|(resource, _)| *resource == "pods").map_or("more", |(_, n)| n);
    Short {
        why: format!("with the DaemonSets a node would have {asked} pods, but {type_} may hold only {most}."),
        fix: format!("Allow types that hold {asked} pods or more: they have more network interfaces or addresses."),
    }
}

/// Karpenter does not say which resource is short.
fn unproven(told: &Unplaced, pool: &NodePool, resource: &str, allowed: &str) -> Short {
    let total = told.total(pool).into_iter().map(|(name, asked)| format!("{name} {}", quantity::shown(name, asked)));
    let total = total.collect::<Vec<_>>().join(", ");
    Short {
        why: format!(
            "none of the allowed instance types ({allowed}) has enough of everything that the pod and the DaemonSets \
             need: {total}. Karpenter does not say what is short."
        ),
        fix: format!(
            "Compare each number with the allowed types, of which Karpenter counts 7.5 % less memory than EC2 reports \
             (vmMemoryOverheadPercent). If they have no {resource}, allow types that have it, otherwise larger types."
        ),
    }
}
