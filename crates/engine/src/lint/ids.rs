//! Ids in the selectors of a node class that no resource of AWS has.

use super::flaw::Flaw;
use crate::objects::NodeClass;
use readers::userdata::has_expansion;

/// Terms whose `id` holds more than one id, or text around it. The patterns of the schema are not anchored, so the API
/// server accepts them, and Karpenter asks AWS for an id that does not exist.
// karpenter-provider-aws v1.15.0 pkg/apis/crds/karpenter.k8s.aws_ec2nodeclasses.yaml: ami-[0-9a-z]+, sg-[0-9a-z]+,
// subnet-[0-9a-z]+; pkg/providers/subnet/subnet.go, pkg/providers/securitygroup/securitygroup.go getFilterSets
pub fn flaws(class: &NodeClass) -> Vec<Flaw> {
    let spec = &class.spec;
    let subnets: Vec<Option<&str>> = spec.subnet_selector_terms.iter().map(|term| term.id.as_deref()).collect();
    let groups: Vec<Option<&str>> = spec.security_group_selector_terms.iter().map(|term| term.id.as_deref()).collect();
    let images: Vec<Option<&str>> = spec.ami_selector_terms.iter().map(|term| term.id.as_deref()).collect();
    let lists = [
        ("subnetSelectorTerms", "subnet-", subnets),
        ("securityGroupSelectorTerms", "sg-", groups),
        ("amiSelectorTerms", "ami-", images),
    ];
    let mut flaws = Vec::new();
    for (list, prefix, ids) in lists {
        let is_wrong = |id: Option<&str>| id.is_some_and(|id| is_no_id(id, prefix));
        let fatal = ids.iter().copied().all(is_wrong);
        let outcome = if fatal { "Karpenter launches nothing" } else { "this term selects nothing" };
        for (at, id) in ids.into_iter().enumerate().filter(|(_, id)| is_wrong(*id)) {
            flaws.push(Flaw {
                cause: "NoSuchId",
                message: format!(
                    "EC2NodeClass {} has the id {:?} in spec.{list}, which is not one id of AWS: {outcome}.",
                    class.name(),
                    id.unwrap_or_default()
                ),
                fix: format!("Write one id in each term, such as {prefix}0123456789abcdef0. A name is no id."),
                field: format!("spec.{list}.{at}.id"),
                fatal,
            });
        }
    }
    flaws
}

/// Whether the schema accepts the text and AWS has no such id: it begins with other text, or something follows the id.
/// An ARN is the finding of a rule.
fn is_no_id(id: &str, prefix: &str) -> bool {
    let is_foreign = |c: char| !c.is_ascii_alphanumeric() && c != '-';
    let is_more = !id.starts_with(prefix) || id.contains(is_foreign);
    id.contains(prefix) && is_more && !id.starts_with("arn:") && !has_expansion(id)
}
