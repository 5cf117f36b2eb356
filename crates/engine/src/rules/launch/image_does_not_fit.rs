//! EC2 cannot launch the image: its snapshot is larger than the volume, or it boots on none of the types.

use crate::cluster_state::aws::IMAGE;
use crate::explain::commands;
use crate::explain::image_fit::{self, Misfit, SmallVolume, Want};
use crate::facts::image_selection::selected_by;
use crate::objects::{Image, NodeClass};
use crate::rules::prelude::*;
use chrono::{DateTime, Utc};

rule! {
    cause: ImageDoesNotFit,
    summary: "EC2 cannot launch the image: a volume is smaller than its snapshot, or it boots on none of the instance \
              types",
    stages: [Launch],
    reads: [NodeClasses, Deployments, AwsObservations],
    versions: "all; seen only if nodewhy may ask EC2 (--aws)",
}

fn check(case: &Case) -> Option<Opinion> {
    let (id, class) = image_fit::image_in_question(case)?;
    let aws = case.cluster.aws();
    let (image, at) = aws.image(id).known().filter(|(image, _)| image.state == "available")?;
    match image_fit::misfit(case, class, image) {
        Some(misfit) => found(case, &ReportedImage { id, image, at, class }, &misfit).into(),
        None if image_fit::types_in_question(case).iter().any(|name| aws.instance_type(name).known().is_some()) => {
            let because = format!("the image {id} fits the allowed volumes and instance types");
            aws.observation(IMAGE, id).map(|seen| Opinion::ruled_out(seen, because))
        }
        None => None,
    }
}

/// EC2's report about the image, and the term that selects it.
struct ReportedImage<'w> {
    id: &'w str,
    image: &'w Image,
    at: Option<DateTime<Utc>>,
    class: &'w NodeClass,
}

impl ReportedImage<'_> {
    fn says(&self, field: &'static str, observed: String, because: &'static str) -> Evidence {
        Evidence::new(format!("ec2:DescribeImages {}", self.id), field, observed, because).told_by_aws(self.at)
    }
}

fn found(case: &Case, told: &ReportedImage, misfit: &Misfit) -> Finding {
    let (id, class) = (told.id, told.class);
    let object = format!("{}/{}", class.kind, class.name());
    let term = selected_by(class, id, Some(&told.image.name));
    let by = term.as_ref().map_or_else(String::new, |(_, term)| format!(", which {term} of {object} selects"));
    let named = if told.image.name.is_empty() { id.to_owned() } else { format!("{id} ({})", told.image.name) };
    let finding = match misfit {
        Misfit::Volume(small) => of_volume(told, &named, &by, small),
        Misfit::Types { wants, types } => {
            let field = term.map_or("spec.amiSelectorTerms".to_owned(), |(n, _)| format!("spec.amiSelectorTerms[{n}]"));
            of_types(told, &named, &by, wants, types).blaming(Blame::class(class).field(field))
        }
    };
    let refused = case.claim.and_then(|claim| claim.condition("Launched")).map(|launched| {
        let because = "EC2 refused the launch, and this does not say why";
        Evidence::new(case.subject(), r#"status.conditions[?(@.type=="Launched")]"#, launched.shown(), because)
    });
    finding.with_all(refused).change("Change it (Karpenter tries again by itself)", commands::edit(class))
}

fn of_volume(told: &ReportedImage, named: &str, by: &str, small: &SmallVolume) -> Finding {
    let SmallVolume { place, device, gib, snapshot } = small;
    let class = told.class;
    let (whose, field) = match place {
        Some(place) => ("gives it", format!("spec.blockDeviceMappings[{place}].ebs.volumeSize")),
        None => ("names no volume, and Karpenter's default has", "spec.blockDeviceMappings".to_owned()),
    };
    Finding::new(
        Confidence::Certain,
        format!(
            "The snapshot behind {device} of the image {named}{by}, has {snapshot} GiB, but {} {} {whose} {gib} GiB. \
             EC2 launches no instance with a volume smaller than its snapshot.",
            class.kind,
            class.name()
        ),
        told.says(
            "BlockDeviceMappings",
            format!("{device} {snapshot} GiB"),
            "a volume must have at least the size of its snapshot",
        ),
    )
    .with(Evidence::new(
        format!("{}/{}", class.kind, class.name()),
        field.clone(),
        format!("{gib} GiB"),
        "smaller than the snapshot",
    ))
    .blaming(Blame::class(class).field(field))
    .fix(format!(
        "Give {device} {snapshot}Gi or more in blockDeviceMappings, or select an image with a smaller snapshot."
    ))
}

fn of_types(told: &ReportedImage, named: &str, by: &str, wants: &Want, types: &[&str]) -> Finding {
    let (field, is, but, fix) = match wants {
        Want::Architecture(arch) => (
            "Architecture",
            format!("is for {arch}"),
            "has another architecture",
            "Select an image for the architecture of these instance types, or allow types with the image's \
             architecture.",
        ),
        Want::BootMode(mode) => (
            "BootMode",
            format!("boots by {mode} only"),
            "does not boot this way",
            "Select an image with the boot mode uefi-preferred, or allow instance types with this boot mode.",
        ),
        Want::OtherNetwork => (
            "EnaSupport",
            "is registered without ENA".to_owned(),
            "has no other network",
            "Select an image that is registered with EnaSupport. If this image has the driver, register it with \
             EnaSupport.",
        ),
    };
    let observed = match wants {
        Want::Architecture(value) | Want::BootMode(value) => value.clone(),
        Want::OtherNetwork => "false".to_owned(),
    };
    let first = types.first().copied().unwrap_or_default();
    let all = match types.len() {
        0 | 1 => first.to_owned(),
        more => format!("{first}, like each of the {more} allowed types,"),
    };
    Finding::new(
        Confidence::Certain,
        format!("The image {named}{by}, {is}, but {all} {but}, so EC2 launches nothing with it."),
        told.says(field, observed, "none of the instance types that the NodeClaim allows supports such an image"),
    )
    .with(Evidence::new(format!("ec2:DescribeInstanceTypes {first}"), field, "differs", but).told_by_aws(told.at))
    .fix(fix)
}
