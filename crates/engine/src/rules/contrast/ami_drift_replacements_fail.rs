//! The node class moved to a new image, Karpenter replaces healthy nodes, and the replacements cannot start.

use crate::cluster_state::memo::Memo;
use crate::explain::commands;
use crate::explain::image_drift::{self, Replaced, Replacement, is_of};
use crate::explain::launch_error::{self, LaunchError};
use crate::facts::told_by_aws::or_ask;
use crate::objects::{Condition, NodeClass};
use crate::rules::prelude::*;
use crate::upstream::karpenter::Karpenter;
use std::collections::BTreeSet;

rule! {
    cause: AmiDriftReplacementsFail,
    summary: "Karpenter replaces NodeClaims because the image drifted, and the new image cannot start",
    stages: [Launch, Join],
    reads: [NodeClaims, NodeClasses, Deployments, AwsObservations],
    versions: "all; only AWS provider 1.2.1 and earlier select images that are still pending",
}

/// The machines of the class that have this image and are not being deleted, always including this one.
fn failing(case: &Case, class: &NodeClass, arch: Option<&str>, image: &str) -> usize {
    static FAILING: Memo<BTreeSet<String>> = Memo::new("machines with the new image");
    let of_class = || case.cluster.claims_of_class(&class.kind, class.name());
    let failing = case.cluster.once(
        &FAILING,
        &format!("{}/{} {} {image}", class.kind, class.name(), arch.unwrap_or_default()),
        || {
            let failing = of_class()
                .filter(|c| c.metadata.deletion_timestamp.is_none() && c.status.image_id == image && is_of(c, arch));
            failing.map(|claim| claim.name().to_owned()).collect()
        },
    );
    let own = case.claim.is_some_and(|claim| failing.contains(claim.name()));
    failing.len() + usize::from(!own)
}

fn check(case: &Case) -> Option<Opinion> {
    let (claim, class) = (case.claim?, case.class()?);
    let arch = claim.fixed("kubernetes.io/arch");
    let Replacement { old, drifted, new, launched, fate } = match image_drift::replacement(case, claim, class) {
        Ok(replacement) => replacement,
        Err(answer) => return answer,
    };
    let named = image_drift::named(class, new);
    let failing = failing(case, class, arch, if fate == Replaced::NeverJoins { new } else { "" });
    let joined = image_drift::joined_with(case, &old.status.image_id);
    let what = match fate {
        Replaced::NeverJoins => "launch but never join".to_owned(),
        Replaced::ImageRefused | Replaced::Refused => format!("cannot be launched: {}", refusal(launched)),
    };
    let confidence = if fate == Replaced::ImageRefused { Confidence::Certain } else { Confidence::Likely };
    let summary = format!(
        "{} {} moved to the image (AMI) {named}. Karpenter replaces healthy NodeClaims (AMIDrift), but the \
         replacements {what}. Nodes with the image {} have joined, none with the new one.",
        class.kind,
        class.name(),
        old.status.image_id
    );
    let mut finding = Finding::new(
        confidence,
        summary,
        Evidence::new(
            format!("NodeClaim/{}", old.name()),
            r#"status.conditions[?(@.type=="Drifted")]"#,
            "True AMIDrift",
            format!("the class no longer selects its image {}", old.status.image_id),
        )
        .figures(format!("{drifted} to be replaced; old image: {joined} joined; new image: 0 of {failing}")),
    )
    .with(image_drift::selected(class, new))
    .with(Evidence::new(
        case.subject(),
        r#"status.conditions[?(@.type=="Launched")]"#,
        launched.shown(),
        "the state of the replacement",
    ))
    .blaming(Blame::class(class).field("spec.amiSelectorTerms"))
    .fix(fix(case, launched, &old.status.image_id))
    .inspect(
        "See the state of the new image",
        format!(
            "aws ec2 describe-images --image-ids {new} --include-deprecated --query \
             'Images[].[ImageId,State,StateReason.Message,DeprecationTime]'"
        ),
    )
    .change("Pin the old image", commands::pin(class, &[&old.status.image_id]));
    finding = or_ask(
        finding,
        case.cluster.aws().image(new),
        format!("Is the image {new} available, or still pending?"),
        format!("aws ec2 describe-images --image-ids {new} --query 'Images[].State'"),
        |image, at| {
            Some(
                Evidence::new(
                    format!("ec2:DescribeImages {new}"),
                    "State",
                    image.state.clone(),
                    "what EC2 says about the new image",
                )
                .told_by_aws(at),
            )
        },
    );
    if let Some(karpenter) = case.karpenter().filter(|k| k.takes_pending_images()) {
        finding = finding.with(Evidence::new(
            "Deployment/karpenter",
            "spec.template.spec.containers[0].image",
            karpenter.version.to_string(),
            "this version also selects images that are still pending; 1.2.2, 1.3.0 and later select only available \
             ones",
        ));
    }
    finding.into()
}

/// Why the replacement is not launched, as the launch rule says it: the meaning of the error if it is known, and its
/// words.
fn refusal(launched: &Condition) -> String {
    let said = launch_error::said(launched);
    launch_error::known(launched, None).map_or_else(|| said.clone(), |error| format!("{} ({said})", error.why))
}

fn fix(case: &Case, launched: &Condition, works: &str) -> String {
    let is_unavailable = launch_error::known(launched, None).is_some_and(LaunchError::is_unavailable_image);
    if launched.is_true() || !is_unavailable {
        return format!(
            "Select the working image {works} by its id until you have tested the new one. Running nodes with this \
             image stay."
        );
    }
    // karpenter-provider-aws v1.2.2 pkg/providers/amifamily/types.go (#7685)
    let takes_pending = case.karpenter().is_none_or(Karpenter::takes_pending_images);
    let upgrade = takes_pending.then_some(" Karpenter 1.2.2, 1.3.0 and later select only available images.");
    format!(
        "If the new image is pending, wait: the next launch succeeds when it is available. Otherwise select the \
         working image {works} by its id. Give an image the name or tag that the node class selects only when it is \
         available.{}",
        upgrade.unwrap_or_default()
    )
}
