//! The image that new machines get is not available: still pending, failed, disabled or gone.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::finding::{Finding, Opinion};
use crate::case::{Case, timestamp};
use crate::cluster_state::aws::Told;
use crate::objects::input::Input;
use crate::objects::{Ami, AmiTerm, Image, NodeClaim, NodeClass};
use crate::rules::Rule;
use crate::rules::contrast::ami_drift_replacements_fail::runs;
use crate::rules::shared::told_by_aws::seen;

pub static RULE: Rule = Rule {
    cause: "ImageNotAvailable",
    summary: "The image that the node class selects is pending, failed, disabled or gone, and EC2 launches nothing with it",
    stages: &[Stage::Launch],
    reads: &[Input::NodeClaims, Input::NodeClasses, Input::Deployments],
    versions: "all; pending images are only selected by AWS provider 1.2.1 and earlier; seen only where nodewhy may ask EC2 (--aws)",
    page: include_str!("../../../pages/ImageNotAvailable.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let Some(class) = case.class() else { return Opinion::Silent };
    let Some(id) = image(case) else { return Opinion::Silent };
    let aws = case.cluster.aws();
    let (state, image, at) = match aws.image(id) {
        Told::Is(image, _) if image.state == "available" => {
            return Opinion::ruled_out(format!("EC2 says that the image {id} is available"));
        }
        Told::Is(image, at) => (image.state.as_str(), Some(image), at),
        Told::Absent(at) => ("not known to EC2: deregistered, or not shared with this account", None, at),
        Told::Nothing | Told::Refused(_) => return Opinion::Silent,
    };
    // What EC2 does not know, another account or region may have.
    let confidence = if image.is_some() || aws.sees_instances() { Confidence::Certain } else { Confidence::Likely };
    let ami = class.status.amis.iter().find(|ami| ami.id == id);
    let name = image.map(|i| i.name.as_str()).or(ami.map(|ami| ami.name.as_str())).filter(|n| !n.is_empty());
    let named = name.map_or_else(|| id.to_owned(), |name| format!("{id} ({name})"));
    let term = selected_by(class, id, name);
    let object = format!("{}/{}", class.kind, class.name());
    let by = term.as_ref().map_or_else(String::new, |(_, term)| format!(", which {term} of {} {} selects", class.kind, class.name()));
    let safe = kept(case);
    let reason = image.and_then(|i| i.state_reason.as_deref()).map_or_else(String::new, |reason| format!(": {reason}"));
    let mut finding = Finding::new(
        confidence,
        format!("The image {named}{by}, is {state}, and EC2 launches nothing with it."),
        Evidence::new(
            format!("ec2:DescribeImages {id}"),
            "State",
            format!("{state}{reason}{}", seen(at)),
            "only an available image can be launched",
        ),
    )
    .with(Evidence::new(&object, "status.amis", named.clone(), "the first entry that fits is what new machines get"))
    .blaming(
        Blame::object(&class.api_version, &class.kind, class.name())
            .field(term.map_or("spec.amiSelectorTerms".to_owned(), |(n, _)| format!("spec.amiSelectorTerms[{n}]"))),
    )
    .fix(fix(image));
    if let Some(created) = image.and_then(|i| i.created) {
        finding = finding.with(Evidence::new(
            format!("ec2:DescribeImages {id}"),
            "CreationDate",
            timestamp(created).to_string(),
            "when the image was begun",
        ));
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
                "this version also selects images that are still pending; 1.2.2, 1.3.0 and later take available ones only"
            } else {
                "this version selects available images only: the image has changed since, and the next look at the selectors drops it"
            },
        ));
    }
    finding
        .step(Risk::Inspect, "Follow the image's state", Some(format!("aws ec2 describe-images --image-ids {id} --include-deprecated --include-disabled --query 'Images[].[ImageId,State,StateReason.Message]'")))
        .step(Risk::Mutating, "Pin the image that works by its id", Some(format!("kubectl edit ec2nodeclass {}", class.name())))
        .into()
}

/// The image that the machine gets: its own, else the first of the class that runs on its architecture.
#[must_use]
pub fn image<'w>(case: &Case<'w>) -> Option<&'w str> {
    let class = case.class()?;
    let arch = case.claim.and_then(|c| c.fixed("kubernetes.io/arch"));
    let own = case.claim.map(|c| c.status.image_id.as_str()).filter(|id| !id.is_empty());
    own.or_else(|| class.status.amis.iter().find(|ami| runs(ami, arch)).map(|ami| ami.id.as_str()))
}

fn fix(image: Option<&Image>) -> &'static str {
    match image.map(|i| i.state.as_str()) {
        Some("pending" | "transient") => {
            "Wait until it is available: launches then succeed by themselves. Until then pin the image that works; Karpenter 1.3.0 and later wait by themselves."
        }
        Some("disabled") => "Enable the image again, or select another one.",
        _ => "Select another image: this one will not become available.",
    }
}

/// Machines that run on and are not replaced before the new image works.
fn kept(case: &Case) -> Option<crate::api::Evidence> {
    let drifted = case.image_drifted_siblings();
    let names: Vec<&str> = drifted.map(NodeClaim::name).collect();
    let first = names.first()?;
    Some(Evidence::new(
        format!("NodeClaim/{first}"),
        r#"status.conditions[?(@.type=="Drifted")]"#,
        format!("True AMIDrift, {} in all", names.len()),
        // core pkg/controllers/disruption/queue.go `waitOrTerminate` (v1.14.3)
        "machines with the old image run on: Karpenter removes one only when its replacement is initialized",
    ))
}

/// The selector term that takes the image, and its place; `None` where that cannot be told, as by tags among other terms.
/// Source: karpenter-provider-aws v1.14.1 pkg/providers/amifamily/ami.go `DescribeImageQueries`.
fn selected_by(class: &NodeClass, id: &str, name: Option<&str>) -> Option<(usize, String)> {
    let terms = &class.spec.ami_selector_terms;
    let takes = |term: &AmiTerm| match (&term.id, &term.name) {
        (Some(own), _) => own == id,
        (None, Some(pattern)) => name.is_some_and(|name| matches_pattern(pattern, name)),
        (None, None) => false,
    };
    let place = terms.iter().position(takes).or_else(|| (terms.len() == 1).then_some(0))?;
    Some((place, said(terms.get(place)?)))
}

fn said(term: &AmiTerm) -> String {
    let tags = || term.tags.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(", ");
    match term {
        AmiTerm { alias: Some(alias), .. } => format!("the alias {alias}"),
        AmiTerm { id: Some(id), .. } => format!("the id {id}"),
        AmiTerm { name: Some(name), .. } => format!("the name {name}"),
        AmiTerm { ssm_parameter: Some(parameter), .. } => format!("the parameter {parameter}"),
        _ => format!("the tags {}", tags()),
    }
}

/// EC2's filters: `*` is any text, `?` any character.
fn matches_pattern(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == '?' || text.get(t) == Some(c) => (p, t) = (p + 1, t + 1),
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    (p, t) = (at + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern.get(p..).unwrap_or_default().iter().all(|c| *c == '*')
}

/// What `lint` says of an image before anything is launched with it; `None` where it is available, or nobody asked.
pub fn preflight(told: Told<'_, Image>, class: &NodeClass, ami: &Ami) -> Option<String> {
    let state = match told {
        Told::Is(image, _) if image.state != "available" => image.state.as_str(),
        Told::Absent(_) => "not known to EC2 in this region and account",
        _ => return None,
    };
    let by = selected_by(class, &ami.id, Some(&ami.name)).map_or_else(String::new, |(_, term)| format!(", which {term} selects"));
    Some(format!("The image {} ({}){by}, is {state}: EC2 launches nothing with it.", ami.id, ami.name))
}

#[cfg(test)]
mod tests {
    use super::matches_pattern;

    #[test]
    fn names_are_matched_as_ec2_matches_them() {
        for (pattern, text, fits) in [
            ("shop-*", "shop-golden-2026", true),
            ("*-golden-*", "shop-golden-2026", true),
            ("shop-?olden-*", "shop-golden-2026", true),
            ("shop-golden", "shop-golden-2026", false),
            ("*2025", "shop-golden-2026", false),
            ("", "", true),
            ("*", "", true),
        ] {
            assert_eq!(matches_pattern(pattern, text), fits, "{pattern} {text}");
        }
    }
}
