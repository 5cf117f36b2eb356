//! The selected image does not understand the user data, whether Karpenter wrote it for amiFamily or you wrote it.

use crate::objects::{Ami, NodeClaim, NodeClass};
use crate::rules::prelude::*;
use readers::source_text::{self, Span};
use readers::userdata::image_name;
use readers::userdata::{Family, PartKind, UserData};

rule! {
    cause: AmiFamilyMismatch,
    summary: "The image has another operating system than the one that the user data is written for, by amiFamily or \
              by hand",
    stages: [Join],
    reads: [NodeClaims, NodeClasses],
    lint: true,
    versions: "all",
}

/// The user data that an instance of this family runs at boot.
const fn reads(family: Family) -> &'static str {
    match family {
        Family::Al2 => "a shell script that calls /etc/eks/bootstrap.sh",
        Family::Al2023 => "a NodeConfig for nodeadm",
        Family::Bottlerocket => "settings in TOML",
        Family::Windows => "a PowerShell script",
        Family::Custom => "what you wrote",
    }
}

const fn system(family: Family) -> &'static str {
    match family {
        Family::Al2 => "Amazon Linux 2",
        Family::Al2023 => "Amazon Linux 2023",
        Family::Bottlerocket => "Bottlerocket",
        Family::Windows => "Windows",
        Family::Custom => "custom",
    }
}

fn check(case: &Case) -> Option<Opinion> {
    let (claim, class) = (case.claim?, case.class()?);
    let ami = class.status.amis.iter().find(|a| a.id == claim.status.image_id)?;
    let published = image_name::family(&ami.name);
    let ubuntu = image_name::is_ubuntu_for_eks(&ami.name);
    // Since v1, Karpenter has no family for Ubuntu. The AL2 family writes what Ubuntu's images read.
    let built_for = published.or_else(|| if ubuntu { Some(Family::Al2) } else { image_name::hint(&ami.name) });
    let (family, built_for) = (class.family()?, built_for?);
    let os = if ubuntu { "Ubuntu" } else { system(built_for) };
    if family == Family::Custom {
        return own_user_data(case, claim, class, ami, built_for);
    }
    if family == built_for {
        // A name that only hints, or a class that was edited since, proves nothing.
        if published.is_some() && case.class_is_as_at_launch() {
            return Some(Opinion::ruled_out(
                class,
                format!("the image {} is one of {os}, which fits the class", ami.name),
            ));
        }
        return None;
    }
    // A name is only a name: a node that joined with this image and this class is proof.
    if let Some(joined) = case.same_spec_siblings_joined().find(|s| s.status.image_id == ami.id) {
        return Some(Opinion::ruled_out(
            joined,
            format!("NodeClaim {} has joined with the image {}", joined.name(), ami.name),
        ));
    }
    let written = class.family_name();
    let summary = format!(
        "{} {} says {written}, so Karpenter writes {}. But the image {} is {}{} and does not understand it.",
        class.kind,
        class.name(),
        reads(family),
        ami.name,
        if published.is_some() { "" } else { "by name " },
        os
    );
    let object = format!("{}/{}", class.kind, class.name());
    Finding::new(
        if published.is_some() { Confidence::Certain } else { Confidence::Likely },
        summary,
        Evidence::new(&object, "spec.amiFamily", written, format!("user data is written for {}", system(family))),
    )
    .with(Evidence::new(
        &object,
        "status.amis",
        format!("{} {}", ami.id, ami.name),
        format!("by its name this is one of {os}, which expects {}", reads(built_for)),
    ))
    .with(Evidence::new(case.subject(), "status.imageID", &claim.status.image_id, "the instance runs this image"))
    .blaming(Blame::class(class).field("spec.amiFamily"))
    .fix(if ubuntu {
        "Set amiFamily to AL2, because Ubuntu's EKS images read its user data (or use Custom with user data of your \
         own). Or select an image of the amiFamily."
            .to_owned()
    } else {
        format!("Select an image of the family {written}, or set amiFamily to the image's family ({os}).")
    })
    .change(
        "Select by alias, which sets image and family together",
        format!("kubectl edit ec2nodeclass {}", class.name()),
    )
    .into()
}

/// Under amiFamily Custom only the text shows what it is written for.
fn own_user_data(case: &Case, claim: &NodeClaim, class: &NodeClass, ami: &Ami, built_for: Family) -> Option<Opinion> {
    let (user_data, text) = case.user_data()?;
    let (written_for, span) = language(user_data, text)?;
    if written_for == built_for {
        return None;
    }
    if let Some(joined) = case.same_spec_siblings_joined().find(|s| s.status.image_id == ami.id) {
        return Some(Opinion::ruled_out(
            joined,
            format!("NodeClaim {} has joined with the image {}", joined.name(), ami.name),
        ));
    }
    let published = image_name::family(&ami.name).is_some();
    let followed = user_data.unread_from.is_none() && user_data.bootstrap_calls.iter().all(|call| call.starts_kubelet);
    let name = class.name();
    let place = source_text::position(text, span.start);
    let object = format!("{}/{name}", class.kind);
    let summary = format!(
        "userData of {} {name} is {} (line {}), but the image {} is {}{}, which expects {}.",
        class.kind,
        reads(written_for),
        place.line,
        ami.name,
        if published { "" } else { "by name " },
        system(built_for),
        reads(built_for)
    );
    Finding::new(
        if published && followed { Confidence::Certain } else { Confidence::Likely },
        summary,
        Evidence::new(
            &object,
            format!("spec.userData:{}:{}", place.line, place.column),
            source_text::quoted(text, span),
            format!("this is written for {}, and Karpenter adds nothing under amiFamily Custom", system(written_for)),
        ),
    )
    .with(Evidence::new(
        &object,
        "status.amis",
        format!("{} {}", ami.id, ami.name),
        format!("by its name this is one of {}", system(built_for)),
    ))
    .with(Evidence::new(case.subject(), "status.imageID", &claim.status.image_id, "the instance runs this image"))
    .blaming(Blame::class(class).field("spec.userData").at(text, span))
    .fix(format!(
        "Write {} instead. Or set amiFamily to the image's family ({}), so that Karpenter writes it.",
        reads(built_for),
        system(built_for)
    ))
    .change("Rewrite userData, or set amiFamily", format!("kubectl edit ec2nodeclass {name}"))
    .into()
}

/// The only family whose images this text starts, and the line that shows it; `None` if it may serve several.
fn language(user_data: &UserData, text: &str) -> Option<(Family, Span)> {
    let nodeadm = user_data.node_configs.first().map(|config| config.span);
    // A script may install the bootstrap.sh that it calls, check first whether it exists, or call nodeadm itself.
    let may_choose = text.matches("bootstrap.sh").count() > user_data.bootstrap_calls.len() || text.contains("nodeadm");
    let script = user_data.bootstrap_calls.first().map(|call| call.span);
    let all = |kind: PartKind| {
        user_data.parts.iter().all(|part| part.kind == kind).then(|| user_data.parts.first().map(|p| p.span)).flatten()
    };
    match (nodeadm, script) {
        (Some(_), Some(_)) => None,
        (Some(span), None) => Some((Family::Al2023, span)),
        (None, Some(span)) => (!may_choose).then_some((Family::Al2, span)),
        (None, None) => {
            let settings = all(PartKind::Bottlerocket).map(|span| (Family::Bottlerocket, span));
            settings.or_else(|| all(PartKind::PowerShell).map(|span| (Family::Windows, span)))
        }
    }
}
