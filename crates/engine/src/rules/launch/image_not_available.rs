//! The image for new nodes is not available: still pending, failed, disabled or gone.

use crate::case::timestamp;
use crate::cluster_state::aws::{AwsAnswer, IMAGE};
use crate::explain::commands;
use crate::facts::image_selection::selected_by;
use crate::facts::machine_image;
use crate::objects::{Image, NodeClaim};
use crate::rules::prelude::*;

rule! {
    cause: ImageNotAvailable,
    summary: "The image that the node class selects is pending, failed, disabled or gone, so EC2 launches nothing with \
              it",
    stages: [Launch],
    reads: [NodeClaims, NodeClasses, Deployments, AwsObservations],
    versions: "all; only AWS provider 1.2.1 and earlier select pending images; seen only if nodewhy may ask EC2 \
               (--aws)",
}

fn check(case: &Case) -> Option<Opinion> {
    let class = case.class()?;
    let id = machine_image::of(case)?;
    let aws = case.cluster.aws();
    let (state, image, at) = match aws.image(id) {
        AwsAnswer::Found(image, _) if image.state == "available" => {
            let because = format!("EC2 says that the image {id} is available");
            return aws.observation(IMAGE, id).map(|seen| Opinion::ruled_out(seen, because));
        }
        AwsAnswer::Found(image, at) => (image.state.as_str(), Some(image), at),
        AwsAnswer::Absent(at) => ("not known to EC2: deregistered, or not shared with this account", None, at),
        AwsAnswer::NotAsked | AwsAnswer::Refused(_) => return None,
    };
    // If EC2 does not know the image, another account or region may have it.
    let confidence = if image.is_some() || aws.sees_instances() { Confidence::Certain } else { Confidence::Likely };
    let ami = class.status.amis.iter().find(|ami| ami.id == id);
    let name = image.map(|i| i.name.as_str()).or(ami.map(|ami| ami.name.as_str())).filter(|n| !n.is_empty());
    let named = name.map_or_else(|| id.to_owned(), |name| format!("{id} ({name})"));
    let term = selected_by(class, id, name);
    let object = format!("{}/{}", class.kind, class.name());
    let by = term
        .as_ref()
        .map_or_else(String::new, |(_, term)| format!(", which {term} of {} {} selects", class.kind, class.name()));
    let safe = kept(case);
    let reason = image.and_then(|i| i.state_reason.as_deref()).map_or_else(String::new, |reason| format!(": {reason}"));
    let mut finding = Finding::new(
        confidence,
        format!("The image {named}{by}, is {state}, so EC2 launches nothing with it."),
        Evidence::new(
            format!("ec2:DescribeImages {id}"),
            "State",
            format!("{state}{reason}"),
            "EC2 launches only available images",
        )
        .told_by_aws(at),
    )
    .with(Evidence::new(&object, "status.amis", named.clone(), "new nodes get the first entry that fits"))
    .blaming(
        Blame::class(class)
            .field(term.map_or("spec.amiSelectorTerms".to_owned(), |(n, _)| format!("spec.amiSelectorTerms[{n}]"))),
    )
    .fix(fix(image));
    if let Some(created) = image.and_then(|i| i.created) {
        finding = finding.with(
            Evidence::new(
                format!("ec2:DescribeImages {id}"),
                "CreationDate",
                timestamp(created).to_string(),
                "when the creation of the image began",
            )
            .told_by_aws(None),
        );
    }
    if let Some(safe) = safe {
        finding = finding.with(safe);
    }
    if let Some(karpenter) = case.karpenter() {
        finding = finding.with(Evidence::new(
            "Deployment/karpenter",
            "spec.template.spec.containers[0].image",
            karpenter.version.to_string(),
            if karpenter.takes_pending_images() {
                "this version also selects images that are still pending; 1.2.2, 1.3.0 and later select only available \
                 ones"
            } else {
                "this version selects only available images: the image has changed since, and the next check of the \
                 selectors drops it"
            },
        ));
    }
    let works = case
        .image_drifted_siblings()
        .map(|claim| claim.status.image_id.as_str())
        .find(|image| !image.is_empty() && *image != id);
    let (pin_text, pin) = match works {
        Some(image) => ("Pin the image of the running nodes", commands::pin(class, &[image])),
        None => ("Select another image", commands::edit(class)),
    };
    finding
        .inspect(
            "Follow the image's state",
            format!(
                "aws ec2 describe-images --image-ids {id} --include-deprecated --include-disabled --query \
                 'Images[].[ImageId,State,StateReason.Message]'"
            ),
        )
        .change(pin_text, pin)
        .into()
}

fn fix(image: Option<&Image>) -> &'static str {
    match image.map(|i| i.state.as_str()) {
        Some("pending" | "transient") => {
            "Wait until it is available: launches then succeed by themselves. Until then, pin the image that works. \
             Karpenter 1.3.0 and later wait by themselves."
        }
        Some("disabled") => "Enable the image again, or select another one.",
        _ => "Select another image: this one will not become available.",
    }
}

/// Nodes that run and are not replaced before the new image works.
fn kept(case: &Case) -> Option<crate::api::Evidence> {
    let drifted = case.image_drifted_siblings();
    let names: Vec<&str> = drifted.map(NodeClaim::name).collect();
    let first = names.first()?;
    let kept = Evidence::new(
        format!("NodeClaim/{first}"),
        r#"status.conditions[?(@.type=="Drifted")]"#,
        "True AMIDrift",
        // core pkg/controllers/disruption/queue.go `waitOrTerminate` (v1.14.3)
        "nodes with the old image keep running: Karpenter removes one only when its replacement is initialized",
    );
    Some(kept.figures(format!("{} in all", names.len())))
}
