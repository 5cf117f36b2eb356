//! Karpenter's last message before it exited, and the change that makes it run.

use crate::api::{Blame, Evidence};
use crate::case::Case;
use crate::case::finding::Finding;
use crate::explain::denial;
use crate::explain::karpenter_rights;
use crate::explain::logged::{excerpt, told};
use crate::objects::{OUT_OF_MEMORY, Pod};
use crate::upstream::credentials::POD_IDENTITY_AGENT;
use crate::upstream::karpenter::is_karpenter;
use logs::fact::{Fact, Reason, Trouble};
use logs::table::KARPENTER;

/// The question that its log may answer if objects do not.
pub(crate) const WHY_KARPENTER_ENDS: &str = "Why do its pods not run?";

/// The last line before it exited, and its pod.
pub(crate) struct KarpenterEnds<'w> {
    fact: &'w Fact,
    pod: &'w Pod,
}

/// The last message of a pod of Karpenter's that exited by itself.
pub(crate) fn of<'w>(case: &Case<'w>, namespace: &str) -> Option<KarpenterEnds<'w>> {
    let pods = || case.cluster.pods_in(namespace).filter(|pod| is_karpenter(pod) && ended_by_itself(pod));
    let found = case.cluster.logs_of_components().filter_map(|log| {
        let of = |pod: &&Pod| {
            let components = &log.journey.identity.components;
            components.contains(&*pod.metadata.name) || components.contains(KARPENTER)
        };
        let pod = pods().find(of)?;
        let fact = log.journey.open().into_iter().filter(|fact| fact.trouble == Trouble::KarpenterEnds);
        Some(KarpenterEnds { fact: fact.max_by_key(|fact| fact.last.time)?, pod })
    });
    found.max_by_key(|own| own.fact.last.time)
}

/// A container that was killed for its memory or its probes has not logged why.
fn ended_by_itself(pod: &Pod) -> bool {
    const KILLED: [i64; 2] = [137, 143];
    pod.status.container_statuses.iter().filter(|container| !container.ready).any(|container| {
        let ended = container.state.terminated.as_ref().or(container.last_state.terminated.as_ref());
        ended.is_some_and(|ended| {
            ended.reason != OUT_OF_MEMORY && ended.exit_code.is_some_and(|code| code != 0 && !KILLED.contains(&code))
        })
    })
}

impl KarpenterEnds<'_> {
    /// Whether it exited for another reason than its own kinds, as far as the line shows.
    pub(crate) fn is_for_another_reason(&self) -> bool {
        !matches!(self.fact.reason, None | Some(Reason::NoKind | Reason::NotFound | Reason::NotConverted))
    }

    /// The line itself.
    pub(crate) fn told(&self) -> Evidence {
        told(self.fact, "Karpenter logged it before it exited")
    }

    pub(crate) fn onto(self, case: &Case, finding: Finding, namespace: &str, deployment: &str) -> Finding {
        let Self { fact, pod } = &self;
        let because = match fact.reason {
            Some(Reason::AccessDenied) => ", because IAM denies a call".to_owned(),
            reason => reason.map_or_else(String::new, |reason| format!(", because {}", reason.in_words())),
        };
        let queue = case.karpenter().and_then(|karpenter| karpenter.interruption_queue.as_deref());
        let queue = queue.filter(|_| fact.reason == Some(Reason::NoQueue));
        let queue = queue.map_or_else(String::new, |queue| format!(" (INTERRUPTION_QUEUE is {queue})"));
        let ends = format!("Its pod {} exits{because}{queue}: {}", pod.metadata.name, excerpt(&fact.last.text));
        let finding = finding.adding(&ends).with(self.told());
        if let Some(pool) = fact.names.get("annotated").and_then(|pools| pools.split([',', ' ']).next()) {
            return annotated(finding, pool);
        }
        let settings = Blame::object("apps/v1", "Deployment", deployment)
            .namespace(namespace)
            .field("spec.template.spec.containers[0].env");
        let edit = format!("kubectl edit deployment -n {namespace} {deployment}");
        match fact.reason {
            Some(Reason::NoQueue) => finding
                .blaming(settings)
                .fix(
                    "Create the queue with its rules, as the CloudFormation template of Karpenter's Getting Started \
                     guide or the Terraform module does, or leave settings.interruptionQueue empty. Neither disrupts \
                     nodes.",
                )
                .change("Name a queue that exists, or none", edit),
            Some(Reason::Setting) => finding
                .blaming(settings)
                .fix("Correct the setting that the log line names, in the values of the chart.")
                .change("Correct the setting", edit),
            Some(Reason::NotConverted) => of_kind(fact, finding).fix(
                "Set Karpenter's Service and its port in spec.conversion of the CustomResourceDefinitions (chart \
                 karpenter-crd: webhook.serviceName, webhook.serviceNamespace, webhook.port), in the same version as \
                 Karpenter.",
            ),
            Some(Reason::NoKind) => of_kind(fact, finding).fix(
                "Install the CustomResourceDefinitions of this version (chart karpenter-crd). Helm does not upgrade \
                 the CustomResourceDefinitions inside a chart.",
            ),
            Some(Reason::Forbidden) => karpenter_rights::onto(case, finding, &fact.last.text, deployment),
            Some(Reason::AccessDenied | Reason::OrganizationPolicy | Reason::PermissionsBoundary) => {
                denied(finding, fact, pod, namespace)
            }
            Some(Reason::NoIdentityAgent) => {
                finding.blaming(Blame::object("apps/v1", "DaemonSet", POD_IDENTITY_AGENT).namespace("kube-system")).fix(
                    "Install the add-on eks-pod-identity-agent. Check that it runs on the nodes of Karpenter's pods, \
                     and that no network policy or proxy keeps them from it. Or give Karpenter its role through IRSA.",
                )
            }
            Some(Reason::NoCredentials) => finding.blaming(account(pod, namespace)).fix(
                "Give Karpenter's ServiceAccount a role: through IRSA (annotation eks.amazonaws.com/role-arn, and a \
                 trust policy for the cluster's OIDC provider), or through an association of EKS Pod Identity.",
            ),
            _ => finding.fix("Correct what Karpenter's error names. Karpenter then starts again by itself."),
        }
    }
}

/// Karpenter 1.1 ends over the annotation in which the conversion from v1beta1 kept what a NodePool set for
/// the kubelet.
/// Source: karpenter-provider-aws v1.1.0 pkg/operator/operator.go `NewOperator`.
fn annotated(finding: Finding, pool: &str) -> Finding {
    const KEY: &str = "compatibility.karpenter.sh/v1beta1-kubelet-conversion";
    finding
        .blaming(Blame::object("karpenter.sh/v1", "NodePool", pool).field(format!("metadata.annotations['{KEY}']")))
        .fix(
            "Write what the annotation says of the kubelet into spec.kubelet of the EC2NodeClass of each named \
             NodePool, then remove the annotation. Until then, Karpenter 1.0 runs. The change drifts the nodes of \
             these NodePools.",
        )
        .inspect("See what it says", format!("kubectl get nodepool {pool} -o yaml"))
        .change("Remove the annotation", format!("kubectl annotate nodepool {pool} {KEY}-"))
}

/// Blames the CustomResourceDefinition of the kind that the line names.
fn of_kind(fact: &Fact, finding: Finding) -> Finding {
    match crd_of(&fact.last.text) {
        Some(crd) => finding.blaming(Blame::object("apiextensions.k8s.io/v1", "CustomResourceDefinition", &crd)),
        None => finding,
    }
}

/// The CustomResourceDefinition of the kind for which there is no match, as `KIND in version GROUP/VERSION` names it,
/// or that is not converted, as `GROUP/VERSION, Kind=KIND` does; the plurals are those of Karpenter's.
/// Source: apimachinery v0.36.3 pkg/api/meta/errors.go `NoKindMatchError.Error`, pkg/runtime/schema/group_version.go
/// `GroupVersionKind.String`.
fn crd_of(text: &str) -> Option<String> {
    let (kind, group) = if let Some((_, named)) = text.split_once("no matches for kind \"") {
        let (kind, rest) = named.split_once('"')?;
        (kind, rest.split_once("in version \"")?.1.split_once('/')?.0)
    } else {
        let (_, named) = text.split_once("conversion webhook for ")?;
        let (version, rest) = named.split_once(", Kind=")?;
        (rest.split_once(' ')?.0, version.split_once('/')?.0)
    };
    let plural = if kind.ends_with('s') { "es" } else { "s" };
    Some(format!("{}{plural}.{group}", kind.to_ascii_lowercase()))
}

/// The role may not make the call, or AWS does not give the role to this ServiceAccount.
fn denied(finding: Finding, fact: &Fact, pod: &Pod, namespace: &str) -> Finding {
    let call = denial::of(fact);
    match fact.names.get("role").filter(|_| !fact.last.text.contains("AssumeRoleWithWebIdentity")) {
        Some(role) => finding.blaming(Blame::object("", "IAMRole", role)).fix(format!(
            "Allow {} in a policy of role {role}. The CloudFormation template of Karpenter's Getting Started guide and \
             the Terraform module contain all that Karpenter needs.",
            call.map_or("the call that the log line names", |denial| denial.call)
        )),
        None => finding.blaming(account(pod, namespace)).fix(
            "Correct the trust policy of the role that Karpenter's ServiceAccount names, or that role's policy. The \
             log line names the denied call.",
        ),
    }
}

fn account(pod: &Pod, namespace: &str) -> Blame {
    Blame::object("v1", "ServiceAccount", &pod.spec.service_account_name)
        .namespace(namespace)
        .field("metadata.annotations")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_without_a_match_has_a_custom_resource_by_name() {
        let crd =
            |kind: &str, version: &str| crd_of(&format!("no matches for kind \"{kind}\" in version \"{version}\""));
        assert_eq!(crd("NodePool", "karpenter.sh/v1").as_deref(), Some("nodepools.karpenter.sh"));
        assert_eq!(crd("EC2NodeClass", "karpenter.k8s.aws/v1").as_deref(), Some("ec2nodeclasses.karpenter.k8s.aws"));
        assert_eq!(crd("Lease", "v1"), None);
        let told = "conversion webhook for karpenter.k8s.aws/v1beta1, Kind=EC2NodeClass failed: Post";
        assert_eq!(crd_of(told).as_deref(), Some("ec2nodeclasses.karpenter.k8s.aws"));
    }
}
