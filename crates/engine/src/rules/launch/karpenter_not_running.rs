//! Karpenter itself does not run, so whatever waits for it waits on.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::finding::{Finding, Opinion};
use crate::case::stage::Symptom;
use crate::case::{Case, karpenter_line, timestamp};
use crate::objects::input::Input;
use crate::objects::{Condition, Pod};
use crate::rules::Rule;
use crate::upstream::credentials::Credentials;
use crate::upstream::karpenter::{Stopped, is_karpenter_image};

pub static RULE: Rule = Rule {
    cause: "KarpenterNotRunning",
    summary: "No replica of Karpenter is available, so nothing is launched, registered or called usable",
    stages: &[Stage::Launch, Stage::Register, Stage::Initialize],
    reads: &[Input::NodeClasses, Input::Deployments, Input::ServiceAccounts, Input::Pods],
    lint: false,
    versions: "all",
    page: include_str!("../../../pages/KarpenterNotRunning.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let Some(karpenter) = case.karpenter() else { return Opinion::Silent };
    let Some(stopped) = &karpenter.stopped else { return Opinion::Silent };
    // A rollout of a single replica takes it away for a moment.
    let settled = stopped.since.and_then(|at| at.checked_add_signed(case.wait.proven));
    if let Some(at) = settled.filter(|at| case.now < *at) {
        return Opinion::LookAgain(at);
    }
    let Some(waits) = waits_for_karpenter(case) else { return Opinion::Silent };
    let (namespace, name) = karpenter.deployment.split_once('/').unwrap_or(("", &karpenter.deployment));
    let how = match stopped {
        Stopped { wanted: 0, .. } => "is scaled to 0 replicas".to_owned(),
        Stopped { since, wanted } => {
            let since = since.map_or_else(String::new, |at| format!(" since {}", timestamp(at)));
            format!("has had none of its {wanted} replicas available{since}")
        }
    };
    let finding = Finding::new(
        Confidence::Certain,
        format!("Karpenter is not running: Deployment {} {how}, so {waits}.", karpenter.deployment),
        Evidence::new(
            format!("Deployment/{name}"),
            "status.availableReplicas",
            format!("0 of {}", stopped.wanted),
            "nothing else does Karpenter's work",
        ),
    )
    .blaming(Blame::object("apps/v1", "Deployment", name).namespace(namespace).field("status.availableReplicas"));
    if stopped.wanted == 0 {
        let command = format!("kubectl scale deployment -n {namespace} {name} --replicas=2");
        return finding
            .fix(format!("Scale Deployment {} up again.", karpenter.deployment))
            .step(Risk::Mutating, "Scale it up", Some(command))
            .into();
    }
    let finding = match without_credentials(case, namespace) {
        Some(poor) => {
            return poor
                .onto(finding, namespace)
                .step(
                    Risk::Inspect,
                    "See why the last container ended",
                    Some(format!("kubectl logs -n {namespace} deployment/{name} --previous --tail=50")),
                )
                .into();
        }
        None => finding,
    };
    finding
        .fix("Bring Karpenter back. Its last log says why it ends: no AWS credentials (IRSA, Pod Identity), CRDs of another version, a cluster name or endpoint that is wrong, memory; or its pods are Pending, because it was left to run on Nodes of its own.")
        .step(Risk::Inspect, "See its pods", Some(format!("kubectl get pods -n {namespace} -l app.kubernetes.io/name=karpenter -o wide")))
        .step(Risk::Inspect, "See why the last container ended", Some(format!("kubectl logs -n {namespace} deployment/{name} --previous --tail=50")))
        .unknown("Why do its pods not run?", format!("kubectl describe pods -n {namespace} -l app.kubernetes.io/name=karpenter"))
        .into()
}

/// A pod of Karpenter's on Fargate that was given no role.
struct WithoutCredentials<'w> {
    pod: &'w Pod,
    account: &'w str,
    how: &'static str,
}

/// On Fargate only the role of a ServiceAccount's annotation gives a pod permissions: there is no instance whose role it
/// could use, and no agent of EKS Pod Identity. Elsewhere the role of the Node may do.
/// Source: Amazon EKS user guide, "Learn how EKS Pod Identity grants pods access to AWS services", considerations.
fn without_credentials<'w>(case: &Case<'w>, namespace: &str) -> Option<WithoutCredentials<'w>> {
    let of_karpenter = |pod: &&Pod| pod.spec.containers.iter().any(|c| is_karpenter_image(&c.image));
    let on_fargate = |pod: &&Pod| pod.metadata.label(FARGATE_PROFILE).is_some() && pod.trouble().is_some();
    let pod = case.cluster.pods_in(namespace).filter(of_karpenter).find(on_fargate)?;
    let account = pod.spec.service_account_name.as_str();
    let annotated = case.cluster.service_accounts().any(|own| {
        own.metadata.name == *account
            && own.metadata.namespace.as_deref() == Some(namespace)
            && own.role_arn().is_some()
    });
    let how = match Credentials::of(pod) {
        Credentials::PodIdentity => "its permissions are to come from EKS Pod Identity, which Fargate does not have",
        Credentials::Node if !annotated => {
            "its ServiceAccount names no IAM role, and EKS Pod Identity does not work on Fargate"
        }
        _ => return None,
    };
    Some(WithoutCredentials { pod, account, how })
}

/// Source: Amazon EKS user guide, "Define which Pods use AWS Fargate when launched".
const FARGATE_PROFILE: &str = "eks.amazonaws.com/fargate-profile";

impl WithoutCredentials<'_> {
    fn onto(self, mut finding: Finding, namespace: &str) -> Finding {
        let Self { pod, account, how } = self;
        let said = finding.summary.trim_end_matches('.').to_owned();
        finding.summary =
            format!("{said}. Its pod {} runs on Fargate without AWS credentials: {how}.", pod.metadata.name);
        finding
            .with(Evidence::new(
                format!("Pod/{namespace}/{}", pod.metadata.name),
                "spec.containers[*].env",
                "neither AWS_ROLE_ARN nor another source of credentials that works on Fargate",
                "there is no instance whose role it could use",
            ))
            .blaming(
                Blame::object("v1", "ServiceAccount", account)
                    .namespace(namespace)
                    .field("metadata.annotations"),
            )
            .fix("Give the ServiceAccount a role by IRSA (annotation eks.amazonaws.com/role-arn, and a trust policy for the cluster's OIDC provider), or run Karpenter on a managed node group, where EKS Pod Identity works.")
            .step(
                Risk::Mutating,
                "Name the role, then start its pods anew",
                Some(format!("kubectl edit serviceaccount -n {namespace} {account}")),
            )
    }
}

/// What only Karpenter could do for this subject; `None` where the next step is another's.
fn waits_for_karpenter(case: &Case) -> Option<String> {
    let untouched = |c: &Condition| c.status == "Unknown" && matches!(c.reason.as_str(), "AwaitingReconciliation" | "");
    match (case.stage(), case.claim, case.node) {
        (Stage::Launch, Some(claim), _) => {
            let untried = claim.condition("Launched").is_none_or(untouched);
            untried.then(|| format!("nobody launches an instance for NodeClaim {}", claim.name()))
        }
        (Stage::Launch, None, _) if case.wait.symptom == Symptom::NobodyLaunches => {
            Some(format!("nobody launches a machine of {} for the pods that wait", case.subject()))
        }
        (Stage::Launch, None, _) => {
            let class = case.class()?;
            let conditions = &class.status.conditions;
            let open = class.condition("Ready").is_some_and(|c| c.status == "Unknown");
            let unread = open
                && conditions.iter().filter(|c| c.type_ != "Ready").all(untouched)
                && conditions.iter().all(|c| !c.is_false());
            unread.then(|| format!("nobody looks at {} {}", class.kind, class.name()))
        }
        (Stage::Register | Stage::Initialize, Some(claim), Some(node)) => match karpenter_line::turn(claim, node)?.0 {
            Stage::Register => Some(format!("nobody registers Node {} of NodeClaim {}", node.name(), claim.name())),
            _ => Some(format!("nobody calls the Ready Node {} initialized", node.name())),
        },
        _ => None,
    }
}
