//! Pods fail on every Ready Node with one image, at a step that succeeds on Nodes with another.

use crate::case::by_image::{ByImage, by_image, differ};
use crate::explain::agent_chain::last_words;
use crate::facts::kernel_module;
use crate::rules::prelude::*;

rule! {
    cause: PodsFailOnImage,
    summary: "Nodes with one image are Ready, but pods fail there at a step that succeeds with another image, for \
              example because a kernel module is missing",
    stages: [Ready],
    reads: [NodeClaims, Nodes, NodeClasses, NodePools, Events, Pods],
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let node = case.node.filter(|_| case.wait.symptom == Symptom::PodsFailOnImage)?;
    let found = by_image(case.cluster, node, case.now)?;
    let ByImage { pod, own, failing, other, well, .. } = &found;
    let (name, namespace) = (&pod.metadata.name, pod.metadata.namespace.as_deref().unwrap_or_default());
    let said = last_words(&found.said).trim_end_matches('.').to_owned();
    let rivals = rivals(case, &found);
    let also = if rivals.is_empty() {
        String::new()
    } else {
        format!(" These Nodes differ from those in {} too.", rivals.join(" and "))
    };
    let only = format!(
        "it has failed on all {} Nodes with the image {own} where it ran, and on none of {} with other images, such \
         as {other}",
        failing.len(),
        well.len()
    );
    let kernel_says_so = kernel_module::is_missing(&found.said);
    let is_sure = kernel_says_so || found.is_of_no_text && rivals.is_empty();
    let confidence = if is_sure { Confidence::Likely } else { Confidence::Possible };
    let blame = case.class_field("spec.amiSelectorTerms").unwrap_or_else(|| Blame::object("v1", "Node", node.name()));
    let summary = format!(
        "Node {} is Ready, but pod {name} has failed there since {}: {said}. By image: {only}.{also}",
        node.name(),
        case.since()
    );
    let kernel = if kernel_says_so { "The kernel of this image lacks what the message names. " } else { "" };
    Finding::new(confidence, summary, case.wait.evidence.clone())
        .with(
            Evidence::new(format!("Node/{}", node.name()), "status.nodeInfo.osImage", own.as_str(), only.clone())
                .figures(format!("0 of {} past it; elsewhere {1} of {1}", failing.len(), well.len())),
        )
        .linked([
            Link::new(format!("Node/{}", node.name()), "Ready, but pods fail there"),
            Link::new(format!("Pod/{name}"), said),
            Link::new(blame.object.clone(), only),
        ])
        .blaming(blame)
        .fix(format!(
            "{kernel}Pin the working image ({other}) for these pods. Or use user data to load the kernel module or \
             install what is missing."
        ))
        .inspect("See the pod's message", format!("kubectl describe pod -n {namespace} {name}"))
        .inspect("Read its log", format!("kubectl logs -n {namespace} {name} --all-containers --tail=50"))
        .unknown(
            "Which kernel module, program or setting does this image lack that the other has?",
            format!(
                "kubectl get node {} {} -o yaml | grep -e kernelVersion -e osImage",
                node.name(),
                well.first().map_or("", String::as_str)
            ),
        )
        .into()
}

/// Other differences between the Nodes on which it fails and the other Nodes.
fn rivals(case: &Case, found: &ByImage) -> Vec<&'static str> {
    const LABELS: [(&str, &str); 4] = [
        ("karpenter.sh/nodepool", "NodePool"),
        ("kubernetes.io/arch", "architecture"),
        ("node.kubernetes.io/instance-type", "instance type"),
        ("topology.kubernetes.io/zone", "zone"),
    ];
    let differs = |key: &str| differ(case.cluster, &found.failing, &found.well, key);
    LABELS.into_iter().filter(|(key, _)| differs(key)).map(|(_, what)| what).collect()
}
