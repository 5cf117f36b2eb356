//! Pods fail on each Ready Node with one image, in what they are past on Nodes with another.

use crate::api::{Blame, Confidence, Evidence, Link, Risk, Stage};
use crate::case::Case;
use crate::case::by_image::{ByImage, by_image};
use crate::case::finding::{Finding, Opinion};
use crate::case::stage::Symptom;
use crate::objects::input::Input;
use crate::rules::Rule;
use crate::rules::shared::agent_chain::last_words;
use std::collections::BTreeSet;

pub static RULE: Rule = Rule {
    cause: "PodsFailOnImage",
    summary: "Nodes with one image are Ready, and pods fail there in what they are past on Nodes with another image, such as a kernel module that is not there",
    stages: &[Stage::Ready],
    reads: &[Input::NodeClaims, Input::Nodes, Input::NodeClasses, Input::NodePools, Input::Events, Input::Pods],
    lint: false,
    versions: "all",
    page: include_str!("../../../pages/PodsFailOnImage.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let Some(node) = case.node.filter(|_| case.wait.symptom == Symptom::PodsFailOnImage) else {
        return Opinion::Silent;
    };
    let Some(found) = by_image(case.cluster, node, case.now) else { return Opinion::Silent };
    let ByImage { pod, own, failing, other, well, .. } = &found;
    let (name, namespace) = (&pod.metadata.name, pod.metadata.namespace.as_deref().unwrap_or_default());
    let said = last_words(&found.said).into_owned();
    let rivals = rivals(case, &found);
    let also = if rivals.is_empty() {
        String::new()
    } else {
        format!(" These Nodes differ from those in {} too.", rivals.join(" and "))
    };
    let only = format!(
        "it fails on each of {} Nodes with the image {own} that it was tried on, and on none of {} with others, such as {other}",
        failing.len(),
        well.len()
    );
    let kernel_says_so = names_kernel(&found.said);
    let is_sure = kernel_says_so || found.is_of_no_text && rivals.is_empty();
    let confidence = if is_sure { Confidence::Likely } else { Confidence::Possible };
    let blame = case.class_field("spec.amiSelectorTerms").unwrap_or_else(|| Blame::object("v1", "Node", node.name()));
    let summary = format!(
        "Node {} is Ready, and pod {name} has failed there since {}: {said}; {only}.{also}",
        node.name(),
        case.since()
    );
    let kernel = if kernel_says_so { "The kernel of this image lacks what the message names. " } else { "" };
    Finding::new(confidence, summary, case.wait.evidence.clone())
        .with(Evidence::new(format!("Node/{}", node.name()), "status.nodeInfo.osImage", own.as_str(), only.clone()).figures(format!("0 of {} past it; elsewhere {1} of {1}", failing.len(), well.len())))
        .linked([
            Link::new(format!("Node/{}", node.name()), "Ready, and pods fail there"),
            Link::new(format!("Pod/{name}"), said),
            Link::new(blame.object.clone(), only),
        ])
        .blaming(blame)
        .fix(format!("{kernel}Pin the image on which it works ({other}) for these pods, or let user data load the kernel module or install what is missing."))
        .step(Risk::Inspect, "See what the pod says", Some(format!("kubectl describe pod -n {namespace} {name}")))
        .step(Risk::Inspect, "Read its log", Some(format!("kubectl logs -n {namespace} {name} --all-containers --tail=50")))
        .unknown("What has the image not got that the other has: a kernel module, a program, a setting?", format!("kubectl get node {} {} -o yaml | grep -e kernelVersion -e osImage", node.name(), well.first().map_or("", String::as_str)))
        .into()
}

/// Whether it is said in the words of a kernel that lacks a module.
/// Sources: mount(2), ENODEV; lustre lustre/utils/mount_lustre.c; util-linux v2.40 libmount/src/context_mount.c; netfilter
/// iptables v1.8.10 iptables/iptables-restore.c, libiptc/libiptc.c.
fn names_kernel(said: &str) -> bool {
    const WORDS: [&str; 5] = [
        "failed: No such device",
        "modules loaded?",
        "unknown filesystem type",
        "unable to initialize table",
        "do you need to insmod?",
    ];
    WORDS.iter().any(|word| said.contains(word))
}

/// What else separates the Nodes on which it fails from the others.
fn rivals(case: &Case, found: &ByImage) -> Vec<&'static str> {
    const LABELS: [(&str, &str); 4] = [
        ("karpenter.sh/nodepool", "NodePool"),
        ("kubernetes.io/arch", "architecture"),
        ("node.kubernetes.io/instance-type", "instance type"),
        ("topology.kubernetes.io/zone", "zone"),
    ];
    let values = |nodes: &BTreeSet<String>, key: &str| -> BTreeSet<&str> {
        nodes.iter().filter_map(|name| case.cluster.node(name)?.metadata.label(key)).collect()
    };
    let differs = |key: &str| {
        let (failing, well) = (values(&found.failing, key), values(&found.well, key));
        !failing.is_empty() && !well.is_empty() && failing.is_disjoint(&well)
    };
    LABELS.into_iter().filter(|(key, _)| differs(key)).map(|(_, what)| what).collect()
}
