//! Bottlerocket's NVIDIA variant runs on an instance without a GPU, so its boot does not finish.

use crate::cluster_state::memo::Memo;
use crate::explain::instance_questions::ask_the_instance;
use crate::objects::NodeClaim;
use crate::rules::prelude::*;

rule! {
    cause: NvidiaImageWithoutGpu,
    summary: "The image is Bottlerocket's NVIDIA variant, but the instance has no GPU",
    stages: [Join],
    reads: [NodeClaims, NodeClasses, Deployments, AwsObservations],
    versions: "all",
}

/// Karpenter labels a launched claim with facts about its instance type: always the family, and the GPU if it has one.
/// Source: karpenter-provider-aws v1.14.1 `pkg/providers/instancetype/types.go` `computeRequirements`.
const FAMILY: &str = "karpenter.k8s.aws/instance-family";
const GPUS: &str = "karpenter.k8s.aws/instance-gpu-count";

/// A node without a GPU that joined with the image.
static JOINED: Memo<Option<String>> = Memo::new("a node with the image and no GPU that joined");

fn check(case: &Case) -> Option<Opinion> {
    let (claim, class) = (case.claim?, case.class()?);
    let ami = class.status.amis.iter().find(|a| a.id == claim.status.image_id)?;
    if !ami.name.starts_with("bottlerocket-aws-") || !ami.name.contains("-nvidia-") {
        return None;
    }
    let family = claim.metadata.label(FAMILY)?;
    if let Some(gpus) = claim.metadata.label(GPUS) {
        return Some(Opinion::ruled_out(
            claim,
            format!("the image {} is for NVIDIA GPUs, and the instance has {gpus}", ami.name),
        ));
    }
    let joined = case.cluster.once(&JOINED, &format!("{}/{} {}", class.kind, class.name(), ami.id), || {
        let without_gpu = |s: &&NodeClaim| s.status.image_id == ami.id && s.metadata.label(GPUS).is_none();
        case.joined_siblings().find(without_gpu).map(|s| s.name().to_owned())
    });
    if let Some(joined) = joined.as_deref().and_then(|name| case.cluster.claim(name)) {
        let because = format!("NodeClaim {} has joined with the image {} and no GPU", joined.name(), ami.name);
        return Some(Opinion::ruled_out(joined, because));
    }
    let name = class.name();
    let object = format!("{}/{name}", class.kind);
    let finding = Finding::new(
        Confidence::Likely,
        format!(
            "The image {} that {} {name} selects is Bottlerocket's NVIDIA variant, but {family} instances have no GPU. \
             Its kernel modules cannot be loaded, so the boot stops before the kubelet.",
            ami.name, class.kind
        ),
        Evidence::new(
            &object,
            "status.amis",
            format!("{} {}", ami.id, ami.name),
            "by its name this is the variant with NVIDIA's driver",
        ),
    )
    .with(Evidence::new(case.subject(), "status.imageID", &claim.status.image_id, "the instance runs this image"))
    .with(Evidence::new(
        case.subject(),
        "metadata.labels",
        format!("{FAMILY}={family}, no {GPUS}"),
        "the instance type has no GPU",
    ))
    .blaming(Blame::class(class).field("spec.amiSelectorTerms"))
    .fix(
        "Select the standard variant for nodes without a GPU: with an alias, because Karpenter then chooses the \
         variant that fits the instance, or in a separate node class.",
    )
    .change("Select by alias", format!("kubectl edit {} {name}", class.kind.to_ascii_lowercase()));
    ask_the_instance(case, finding).into()
}
