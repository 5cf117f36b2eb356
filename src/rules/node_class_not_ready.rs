//! A node class that is not Ready launches nothing: its conditions say which selector, image or permission is wrong.

use super::Rule;
use crate::api::{Blame, Confidence, Risk, Stage};
use crate::case::Case;
use crate::finding::{Finding, Opinion, saw};
use crate::foreign::{Condition, NodeClass, SelectorTerm};
use crate::input::Input;
use std::collections::{BTreeMap, BTreeSet};

pub static RULE: Rule = Rule {
    cause: "NodeClassNotReady",
    summary: "The EC2NodeClass is not Ready, so nothing can be launched from it",
    stages: &[Stage::Launch],
    reads: &[Input::NodeClasses],
    versions: "all",
    page: include_str!("../../docs/causes/NodeClassNotReady.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let Some(class) = case.class() else { return Opinion::Silent };
    let Some(ready) = class.condition("Ready") else { return Opinion::Silent };
    if ready.is_true() {
        return Opinion::RuledOut(format!("{} {} is Ready", class.kind, class.name()));
    }
    // The dependents say why; ValidationSucceeded "DependenciesNotReady" only repeats them.
    // Source: karpenter-provider-aws v1.14.1 pkg/apis/v1/ec2nodeclass_status.go, pkg/controllers/nodeclass/*.go.
    let failing: Vec<&Condition> =
        class.status.conditions.iter().filter(|c| c.type_ != "Ready" && !c.is_true() && c.reason != "DependenciesNotReady").collect();
    let name = class.name();
    let object = format!("{}/{name}", class.kind);
    let said: Vec<String> = if failing.is_empty() { vec![ready.shown()] } else { failing.iter().map(|c| plain(class, c)).collect() };
    let certain = failing.iter().any(|c| c.is_false());
    let confidence = if certain { Confidence::Certain } else { Confidence::Likely };
    let summary = format!("{} {name} is not Ready, so nothing can be launched from it: {}.", class.kind, said.join("; "));
    let evidence = |c: &Condition| {
        saw(&object, format!(r#"status.conditions[?(@.type=="{}")]"#, c.type_), c.shown(), "Karpenter launches nothing until this is True")
    };
    let mut finding = Finding::new(confidence, summary, evidence(ready)).with_all(failing.iter().map(|c| evidence(c)));
    finding = finding.blaming(blame(class, &failing));
    finding = match failing.first().map(|c| c.type_.as_str()) {
        Some("SubnetsReady" | "SecurityGroupsReady") => finding
            .fix("Put the tags on the subnets and security groups, or select them by id.")
            .step(Risk::Inspect, "See which subnets carry the tag", tag_command("describe-subnets", &class.spec.subnet_selector_terms))
            .step(
                Risk::Inspect,
                "See which security groups carry the tag",
                tag_command("describe-security-groups", &class.spec.security_group_selector_terms),
            )
            .step(Risk::Mutating, "Tag them, or change the selector terms", Some(format!("kubectl edit ec2nodeclass {name}"))),
        Some("AMIsReady") if failing.first().is_some_and(|c| c.reason == "UnsupportedAlias") => finding
            .fix("Move to an alias that is still published, such as al2023@VERSION; check user data, which AL2023 reads as a NodeConfig.")
            .step(Risk::Mutating, "Change the alias", Some(format!("kubectl edit ec2nodeclass {name}"))),
        Some("AMIsReady") => finding.fix("Select an image that exists for this Kubernetes version.").step(
            Risk::Mutating,
            "Change the image selector",
            Some(format!("kubectl edit ec2nodeclass {name}")),
        ),
        Some("ValidationSucceeded") => {
            finding.fix("Give Karpenter's role what the message names; change any annotation of the class to have it checked again.")
        }
        _ => finding.fix("Mend what the condition names."),
    };
    finding.step(Risk::Inspect, "See all conditions", Some(format!("kubectl describe {} {name}", class.kind.to_ascii_lowercase()))).into()
}

/// The condition as a sentence with the real selectors in it.
fn plain(class: &NodeClass, condition: &Condition) -> String {
    let (what, terms) = match condition.reason.as_str() {
        "SubnetsNotFound" => ("subnet", &class.spec.subnet_selector_terms),
        "SecurityGroupsNotFound" => ("security group", &class.spec.security_group_selector_terms),
        "UnsupportedAlias" => {
            let alias = class.spec.ami_selector_terms.iter().find_map(|t| t.alias.as_deref()).unwrap_or("in amiSelectorTerms");
            return format!("the alias {alias} has no images for this Kubernetes version ({})", condition.message.trim_end_matches('.'));
        }
        _ if condition.message.is_empty() => return format!("{} is {}", condition.type_, condition.shown()),
        _ => return condition.message.trim_end_matches('.').to_owned(),
    };
    let wanted: Vec<String> = terms.iter().map(shown).collect();
    if wanted.is_empty() { format!("no {what} is selected") } else { format!("no {what} has {}", wanted.join(" or ")) }
}

fn shown(term: &SelectorTerm) -> String {
    let tags = term.tags.iter().map(|(k, v)| format!("the tag {k}: {v}"));
    let id = term.id.iter().map(|id| format!("the id {id}"));
    let name = term.name.iter().map(|name| format!("the name {name}"));
    tags.chain(id).chain(name).collect::<Vec<_>>().join(" and ")
}

/// Where every failing selector goes by one tag, the tags in AWS are what is missing; else the class is what to change.
fn blame(class: &NodeClass, failing: &[&Condition]) -> Blame {
    let field = |type_: &str| match type_ {
        "SubnetsReady" => Some(("spec.subnetSelectorTerms", &class.spec.subnet_selector_terms)),
        "SecurityGroupsReady" => Some(("spec.securityGroupSelectorTerms", &class.spec.security_group_selector_terms)),
        _ => None,
    };
    let selectors: Vec<_> = failing.iter().filter_map(|c| field(&c.type_)).collect();
    let terms = selectors.iter().flat_map(|(_, terms)| terms.iter());
    let tags: BTreeSet<&BTreeMap<String, String>> = terms.map(|t| &t.tags).collect();
    let one_tag = tags.first().filter(|t| tags.len() == 1 && t.len() == 1).and_then(|t| t.keys().next());
    if let (Some(key), true) = (one_tag, selectors.len() == failing.len() && !selectors.is_empty()) {
        return Blame::object("", "EC2Tags", key);
    }
    let blame = Blame::object(&class.api_version, &class.kind, class.name());
    match (selectors.first(), failing.first().map(|c| c.type_.as_str())) {
        (Some((field, _)), _) => blame.field(*field),
        (None, Some("AMIsReady")) => blame.field("spec.amiSelectorTerms"),
        (None, Some("InstanceProfileReady")) => blame.field("spec.role"),
        _ => blame,
    }
}

fn tag_command(verb: &str, terms: &[SelectorTerm]) -> Option<String> {
    let (key, value) = terms.iter().find_map(|t| t.tags.iter().next())?;
    let filter = if value == "*" { format!("Name=tag-key,Values={key}") } else { format!("Name=tag:{key},Values={value}") };
    Some(format!("aws ec2 {verb} --filters {filter}"))
}
