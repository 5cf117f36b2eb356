//! userData passes the kubelet a flag that its version does not know any more: it exits, and no Node ever appears.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::cluster_state::memo::Memo;
use crate::objects::input::Input;
use crate::objects::{Node, NodeClaim, NodeClass};
use crate::rules::Rule;
use crate::upstream::karpenter::CLASS_HASH;
use readers::source_text;
use readers::userdata::image_name;
use std::sync::Arc;

pub static RULE: Rule = Rule {
    cause: "KubeletFlagRemoved",
    summary: "userData passes a kubelet flag that this Kubernetes version has removed, over which the kubelet exits",
    stages: &[Stage::Join],
    reads: &[Input::Nodes, Input::NodeClaims, Input::NodeClasses],
    lint: false,
    versions: "Kubernetes 1.24, 1.26, 1.27, 1.30, 1.31, 1.34, 1.35 and later, by flag",
    page: include_str!("../../../pages/KubeletFlagRemoved.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let (Some(claim), Some((user_data, text)), Some(class)) = (case.claim, case.user_data(), case.class()) else {
        return Opinion::Silent;
    };
    let image = class.status.amis.iter().find(|a| a.id == claim.status.image_id);
    // The image says which kubelet it holds; else it is most likely that of the other Nodes.
    let by_image = image.and_then(|a| image_name::kubernetes(&a.name));
    let Some(minor) = by_image.or_else(|| newest(case)) else {
        return Opinion::Silent;
    };
    let Some((argument, since)) = user_data.removed_flags(minor).next() else { return Opinion::Silent };
    // A machine that joined with this text only tells of its own kubelet, which may be the one before the upgrade.
    if let Some(sibling) = joined_since(case, class, since).as_deref().and_then(|name| case.cluster.claim(name)) {
        return Opinion::ruled_out(sibling, format!("NodeClaim {} joined with the same userData", sibling.name()));
    }
    let (flag, span, exact) = (argument.name(), argument.span, argument.is_certain_of(argument.name()));
    let place = source_text::position(text, span.start);
    let name = class.name();
    let which = match (by_image, image) {
        (Some(_), Some(ami)) => format!("the image {} is for Kubernetes 1.{minor}", ami.name),
        _ => format!("the other Nodes run Kubernetes 1.{minor}"),
    };
    Finding::new(
        if exact && by_image.is_some() { Confidence::Certain } else { Confidence::Likely },
        format!(
            "userData of {} {name}, line {}, passes --{flag}, which Kubernetes 1.{since} removed: the kubelet exits over the unknown flag and no Node appears.",
            class.kind, place.line
        ),
        Evidence::new(
            format!("{}/{name}", class.kind),
            format!("spec.userData:{}:{}", place.line, place.column),
            source_text::mask(span.of(text).lines().next().unwrap_or_default()),
            format!("failed to parse kubelet flag: unknown flag: --{flag}"),
        ),
    )
    .with(Evidence::new(case.subject(), "status.imageID", &claim.status.image_id, which))
    .blaming(Blame::object(&class.api_version, &class.kind, name).field("spec.userData").at(text, span))
    .fix(format!("Take --{flag} out of userData; containerd and the VPC CNI need none of these flags."))
    .step(Risk::Mutating, "Remove the flag; new machines are then right", Some(format!("kubectl edit {} {name}", class.kind.to_ascii_lowercase())))
    .into()
}

/// The newest kubelet that is Ready.
fn newest(case: &Case) -> Option<u32> {
    static NEWEST: Memo<Option<u32>> = Memo::new("the newest kubelet that is Ready");
    *case.cluster.once(&NEWEST, "", || case.cluster.nodes().filter(|n| n.is_ready()).filter_map(minor_of).max())
}

/// A machine that joined with the same text and a kubelet of this version or a newer one.
fn joined_since(case: &Case, class: &NodeClass, since: u32) -> Arc<Option<String>> {
    static JOINED: Memo<Option<String>> = Memo::new("a machine with the same text and no older kubelet that joined");
    let text = case.claim.and_then(|c| c.metadata.annotation(CLASS_HASH)).unwrap_or_default();
    // Which kubelet it has only its Node tells.
    let is_newer = |node: &Node| minor_of(node).is_none_or(|minor| minor >= since);
    let is_witness = |s: &NodeClaim| case.cluster.nodes_of(s).first().is_some_and(|node| is_newer(node));
    case.cluster.once(&JOINED, &format!("{}/{} {text} {since}", class.kind, class.name()), || {
        case.same_spec_siblings_joined().find(|s| is_witness(s)).map(|s| s.name().to_owned())
    })
}

/// 31 of `v1.31.4-eks-aeac579`.
fn minor_of(node: &Node) -> Option<u32> {
    node.status.node_info.kubelet_version.strip_prefix("v1.")?.split('.').next()?.parse().ok()
}
