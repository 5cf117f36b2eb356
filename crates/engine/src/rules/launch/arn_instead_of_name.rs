//! A field of the node class contains an ARN, but EC2 and IAM accept only a name or an id there.

use crate::explain::commands;
use crate::objects::NodeClass;
use crate::rules::prelude::*;

rule! {
    cause: ArnInsteadOfName,
    summary: "A field of the EC2NodeClass contains an ARN, but needs a name or an id",
    stages: [Launch],
    reads: [NodeClaims, NodeClasses],
    lint: true,
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let class = case.class().filter(|class| class.is_ec2())?;
    let Misplaced { field, arn, what } = misplaced(class)?;
    if let Some(sibling) = case.same_spec_sibling_joined() {
        return Some(Opinion::ruled_out(sibling, format!("NodeClaim {} joined with {field} as it is", sibling.name())));
    }
    let (name, own) = (class.name(), arn.rsplit([':', '/']).next().unwrap_or_default());
    // AWS's refusal for another field may name the only fault.
    let of_field = |type_: &str| match field.split('.').nth(1) {
        Some("subnetSelectorTerms") => type_ == "SubnetsReady",
        Some("securityGroupSelectorTerms") => type_ == "SecurityGroupsReady",
        Some("amiSelectorTerms") => type_ == "AMIsReady",
        _ => type_ == "InstanceProfileReady",
    };
    let other = class.status.conditions.iter().any(|condition| {
        let repeats = matches!(condition.type_.as_str(), "Ready" | "ValidationSucceeded");
        condition.is_false() && !repeats && !of_field(&condition.type_)
    });
    let object = format!("{}/{name}", class.kind);
    Finding::new(
        if other { Confidence::Likely } else { Confidence::Certain },
        format!(
            "{} {name} has an ARN in {field}, which needs {what}, so Karpenter can launch nothing from it: {arn}.",
            class.kind
        ),
        Evidence::new(
            &object,
            field.clone(),
            arn,
            format!("Karpenter passes the value on as it is, and AWS accepts only {what} there"),
        ),
    )
    .with_all(class.condition("Ready").filter(|ready| !ready.is_true()).map(|ready| {
        Evidence::new(
            &object,
            r#"status.conditions[?(@.type=="Ready")]"#,
            ready.shown(),
            "Karpenter launches nothing until this is True",
        )
    }))
    .blaming(Blame::class(class).field(field.clone()))
    .fix(format!("Write {own:?} in {field} of {} {name}.", class.kind))
    .change(format!("Write {own} there (Karpenter tries again by itself)"), commands::edit(class))
    .into()
}

struct Misplaced<'c> {
    field: String,
    arn: &'c str,
    /// The kind of value that the field needs.
    what: &'static str,
}

/// The first such field. The CRD's patterns for ids are not anchored, and those for names accept anything. `spec.role`
/// is no such field, because Karpenter takes what follows the last `/` of its value.
// karpenter-provider-aws v1.14.1 pkg/apis/v1/ec2nodeclass.go; pkg/providers/instanceprofile/instanceprofile.go
// ensureRole
fn misplaced(class: &NodeClass) -> Option<Misplaced<'_>> {
    let spec = &class.spec;
    // An instance profile's ARN ends like a role's, so Karpenter looks for a role with the profile's name.
    let profile_for_role = spec.role.as_deref().filter(|role| role.contains(":instance-profile/"));
    let subnets = spec.subnet_selector_terms.iter().enumerate();
    let subnets =
        subnets.map(|(n, t)| (format!("spec.subnetSelectorTerms.{n}.id"), t.id.as_deref(), "the id of a subnet"));
    let groups = spec.security_group_selector_terms.iter().enumerate().flat_map(|(n, t)| {
        let field = format!("spec.securityGroupSelectorTerms.{n}");
        [
            (format!("{field}.id"), t.id.as_deref(), "the id of a security group"),
            (format!("{field}.name"), t.name.as_deref(), "the name of a security group"),
        ]
    });
    let images = spec.ami_selector_terms.iter().enumerate();
    let images = images.map(|(n, t)| (format!("spec.amiSelectorTerms.{n}.id"), t.id.as_deref(), "the id of an image"));
    let names = [
        ("spec.instanceProfile".to_owned(), spec.instance_profile.as_deref(), "the name of an instance profile"),
        ("spec.role".to_owned(), profile_for_role, "the name of a role"),
    ];
    let fields = names.into_iter().chain(subnets).chain(groups).chain(images);
    fields
        .filter_map(|(field, value, what)| Some(Misplaced { field, arn: value?, what }))
        .find(|misplaced| misplaced.arn.trim_start().starts_with("arn:"))
}
