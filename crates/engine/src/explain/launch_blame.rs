//! The object or the AWS resource to blame for a refused launch, if the error proves it: the object that requests what
//! AWS does not give, otherwise the resource in AWS.

use crate::api::{Blame, Evidence, Risk};
use crate::case::Case;
use crate::case::finding::Finding;
use crate::cluster_state::aws::AwsAnswer;
use crate::explain::launch_error::{self, FaultIn, LaunchError};
use crate::explain::vcpu_quota::{Bucket, TooSmall, bucket};
use crate::facts::told_by_aws::or_ask;
use crate::objects::{Condition, Event, NodeClaim, NodeClass, NodePool, ServiceQuota};

/// The field to change, the reason, and the command.
pub(crate) struct InAws<'w> {
    blame: Blame,
    fix: Option<String>,
    step: Option<(Risk, String, String)>,
    quota: Option<(Bucket, AwsAnswer<'w, ServiceQuota>)>,
}

/// What to change, if the error lies in AWS and names it, or in the version of Karpenter.
pub(crate) fn in_aws<'w>(case: &Case<'w>, error: &LaunchError, said: &str) -> Option<InAws<'w>> {
    match error.fault {
        FaultIn::Aws(kind, name) => Some(InAws::new(Blame::object("", kind, name))),
        FaultIn::Karpenter => {
            let (namespace, name) = case.karpenter()?.place();
            let deployment = Blame::object("apps/v1", "Deployment", name).namespace(namespace);
            Some(InAws::new(deployment.field("spec.template.spec.containers[0].image")))
        }
        FaultIn::VcpuQuota { spot } => {
            let bucket = bucket(case, spot);
            let too_small = TooSmall::of(case, error, said);
            let quota = || Blame::object("", "ServiceQuota", bucket.map_or("ec2-vcpu", |bucket| bucket.name));
            let raise_or_lower = |Bucket { code, name }: Bucket| {
                format!(
                    "Raise the quota \"{name}\" ({code}, in vCPUs), or lower the demand. Raising it disrupts nothing."
                )
            };
            Some(InAws {
                blame: of_pool(case)
                    .filter(|_| !too_small.as_ref().is_some_and(TooSmall::is_zero))
                    .unwrap_or_else(quota),
                fix: too_small.as_ref().map(TooSmall::fix).or_else(|| bucket.map(raise_or_lower)),
                step: bucket.map(|Bucket { code, name }| {
                    let command = format!(
                        "aws service-quotas request-service-quota-increase --service-code ec2 --quota-code {code} \
                         --desired-value VCPUS"
                    );
                    (Risk::Mutating, format!("Request a higher quota \"{name}\""), command)
                }),
                quota: bucket.map(|bucket| (bucket, case.cluster.aws().quota(bucket.code))),
            })
        }
        FaultIn::ServiceControlPolicy => Some(if let Some((class, tags, other)) = demanded_tags(case) {
            InAws {
                fix: Some(format!(
                    "Set the tag{} {} in spec.tags of {kind} {}, as {kind} {other} does, which is Ready. Or allow the \
                     call in the service control policy.",
                    if tags.len() == 1 { "" } else { "s" },
                    tags.join(", "),
                    class.name(),
                    kind = class.kind,
                )),
                ..InAws::new(Blame::class(class).field("spec.tags"))
            }
        } else {
            let policy = || Blame::object("", "ServiceControlPolicy", policy_id(said).unwrap_or("organization"));
            let class = case.class().map(Blame::class);
            InAws::new(class.unwrap_or_else(policy))
        }),
        _ => None,
    }
}

impl InAws<'_> {
    const fn new(blame: Blame) -> Self {
        Self { blame, fix: None, step: None, quota: None }
    }

    pub(crate) fn onto(self, finding: Finding) -> Finding {
        let finding = match self.fix {
            Some(fix) => finding.fix(fix),
            None => finding,
        };
        let finding = match self.step {
            Some((risk, text, command)) => finding.step(risk, text, Some(command)),
            None => finding,
        };
        let finding = match self.quota {
            Some((bucket, told)) => with_size(finding, bucket, told),
            None => finding,
        };
        finding.blaming(self.blame)
    }
}

/// The size of the quota: often 0, if the account has never requested such instances.
fn with_size(finding: Finding, Bucket { code, name }: Bucket, told: AwsAnswer<'_, ServiceQuota>) -> Finding {
    or_ask(
        finding,
        told,
        format!("How many vCPUs does the quota \"{name}\" allow?"),
        format!("aws service-quotas get-service-quota --service-code ec2 --quota-code {code} --query Quota.Value"),
        |quota, at| {
            let because = "so many vCPUs of these instance families may run at once in the region";
            let evidence = Evidence::new(
                format!("servicequotas:GetServiceQuota {code}"),
                "Quota.Value",
                format!("{} vCPUs", quota.value),
                because,
            );
            Some(evidence.told_by_aws(at))
        },
    )
}

/// The code of the quota that refuses the launch, if it is one.
pub(crate) fn quota_in_question(case: &Case) -> Option<&'static str> {
    let launched = case.claim.and_then(|claim| claim.condition("Launched")).filter(|c| !c.is_true());
    let of_condition = launched.into_iter().flat_map(|c| [c.reason.as_str(), c.message.as_str()]);
    let mut errors = of_condition.chain(refused(case).map(|event| &*event.message)).filter_map(launch_error::named);
    let spot = errors.find_map(|e| if let FaultIn::VcpuQuota { spot } = e.fault { Some(spot) } else { None })?;
    bucket(case, spot).map(|bucket| bucket.code)
}

/// The newest Event of a NodeClaim, or of those of a NodePool, that EC2 has nothing for.
pub(crate) fn refused<'w>(case: &Case<'w>) -> Option<&'w Event> {
    let refused = |e: &&Event| e.reason == "InsufficientCapacityError";
    if let Some(claim) = case.claim {
        return case.cluster.events("NodeClaim", claim.name()).filter(refused).max_by_key(|e| e.last_seen());
    }
    let pool = case.pool().map(NodePool::name)?;
    case.cluster.claim_events_of_pool(pool).filter(refused).max_by_key(|e| e.last_seen())
}

/// The quota is used up for what the NodePool allows: a smaller or another type, or the other capacity type, may fit.
fn of_pool(case: &Case) -> Option<Blame> {
    let pool = case.claim.and_then(NodeClaim::node_pool).or_else(|| case.pool().map(NodePool::name))?;
    Some(Blame::object("karpenter.sh/v1", "NodePool", pool).field("spec.template.spec.requirements"))
}

/// The class, the tags of another class with which the same account may launch, and that other class.
fn demanded_tags<'w>(case: &Case<'w>) -> Option<(&'w NodeClass, Vec<&'w str>, &'w str)> {
    let class = case.class()?;
    let ready = |other: &&NodeClass| other.condition("Ready").is_some_and(Condition::is_true);
    let others = case.cluster.classes().map(|facts| &facts.class).filter(|other| other.kind == class.kind);
    others.filter(ready).find_map(|other| {
        let more = other.spec.tags.iter().map(|(key, _)| key).filter(|key| class.spec.tags.get(key).is_none());
        let more: Vec<&str> = more.collect();
        (!more.is_empty()).then(|| (class, more, other.name()))
    })
}

/// The role that may not do it: `User: arn:aws:sts::1:assumed-role/NAME/SESSION is not authorized to perform: ACTION`.
pub(crate) fn refused_role(message: &str) -> Option<&str> {
    let (user, _) = message.split_once(" is not authorized to perform: ")?;
    let (_, role) = user.rsplit_once(":assumed-role/")?;
    role.split('/').next().filter(|name| !name.is_empty())
}

/// `p-1abc` of `arn:aws:organizations::1:policy/o-1/service_control_policy/p-1abc`, where the message has it.
fn policy_id(said: &str) -> Option<&str> {
    let (_, rest) = said.split_once("/service_control_policy/")?;
    rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').next().filter(|id| id.starts_with("p-"))
}

#[cfg(test)]
mod tests {
    use super::policy_id;

    #[test]
    fn a_policy_is_named_where_the_message_has_its_arn() {
        let arn = "with an explicit deny in a service control policy: \
                   arn:aws:organizations::1:policy/o-1/service_control_policy/p-1abc.";
        assert_eq!(policy_id(arn), Some("p-1abc"));
        assert_eq!(policy_id("due to a service control policy"), None);
    }
}
