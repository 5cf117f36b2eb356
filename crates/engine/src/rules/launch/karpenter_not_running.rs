//! Karpenter itself does not run, so whatever waits for it waits on.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::finding::{Finding, Opinion};
use crate::case::stage::Symptom;
use crate::case::{Case, karpenter_line, timestamp};
use crate::cluster_state::memo::Memo;
use crate::objects::input::Input;
use crate::objects::{Condition, Meta, Node, NodeClaim, Pod};
use crate::rules::Rule;
use crate::rules::shared::karpenter_ends;
use crate::upstream::credentials::Credentials;
use crate::upstream::karpenter::{
    CLASS_TERMINATION_FINALIZER, DISRUPTED_TAINTS, Stopped, TERMINATION_FINALIZER, is_karpenter,
};
use chrono::{DateTime, Utc};

pub static RULE: Rule = Rule {
    cause: "KarpenterNotRunning",
    summary: "No replica of Karpenter is available, so nothing is launched, registered or called usable",
    stages: &[Stage::Launch, Stage::Register, Stage::Initialize, Stage::Terminate],
    reads: &[
        Input::NodeClaims,
        Input::NodeClasses,
        Input::Deployments,
        Input::ServiceAccounts,
        Input::Pods,
        Input::Logs,
    ],
    lint: false,
    versions: "all",
    page: include_str!("../../../pages/KarpenterNotRunning.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let Some(karpenter) = case.karpenter() else { return uninstalled(case) };
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
    // Without names no credentials are of use.
    let finding = if let Some(waits) = waits_for_dns(case, namespace) {
        waits.onto(finding, namespace, name)
    } else if let Some(ended) = karpenter_ends::of(case, namespace) {
        ended.onto(case, finding, namespace, name)
    } else if let Some(poor) = without_credentials(case, namespace) {
        poor.onto(finding, namespace)
    } else {
        unexplained(finding, namespace)
    };
    finding
        .step(
            Risk::Inspect,
            "See why the last container ended",
            Some(format!("kubectl logs -n {namespace} deployment/{name} --previous --tail=50")),
        )
        .into()
}

/// Nothing but its log may tell why it does not run.
fn unexplained(finding: Finding, namespace: &str) -> Finding {
    finding
        .fix("Bring Karpenter back. Its last log says why it ends: no AWS credentials (IRSA, Pod Identity), CRDs of another version, a cluster name or endpoint that is wrong, memory; or its pods are Pending, because it was left to run on Nodes of its own.")
        .step(Risk::Inspect, "See its pods", Some(format!("kubectl get pods -n {namespace} -l app.kubernetes.io/name=karpenter -o wide")))
        .unknown(karpenter_ends::WHY_KARPENTER_ENDS, format!("kubectl describe pods -n {namespace} -l app.kubernetes.io/name=karpenter"))
}

/// Something deleted that only Karpenter lets go of, and that nobody has begun to work on.
struct Untouched<'c> {
    kind: &'c str,
    meta: &'c Meta,
    finalizer: &'static str,
    of_aws: bool,
}

impl<'c> Untouched<'c> {
    fn of(case: &Case<'c>) -> Option<Self> {
        if case.stage() != Stage::Terminate {
            return None;
        }
        let (kind, meta, finalizer, of_aws) = match (case.claim, case.node) {
            (Some(claim), node) => {
                let of_aws = claim.spec.node_class_ref.group == *"karpenter.k8s.aws";
                let untouched = is_untouched(claim, node);
                return untouched.then_some(Self {
                    kind: "NodeClaim",
                    meta: &claim.metadata,
                    finalizer: TERMINATION_FINALIZER,
                    of_aws,
                });
            }
            (None, Some(node)) if !is_tainted(node) => {
                let of_aws = node.metadata.label("karpenter.k8s.aws/ec2nodeclass").is_some();
                ("Node", &node.metadata, TERMINATION_FINALIZER, of_aws)
            }
            (None, Some(_)) => return None,
            (None, None) => {
                let class = case.class()?;
                (&*class.kind, &class.metadata, CLASS_TERMINATION_FINALIZER, class.is_ec2())
            }
        };
        let held = meta.finalizers.iter().any(|own| *own == *finalizer);
        held.then_some(Self { kind, meta, finalizer, of_aws })
    }
}

/// A deletion that nobody has begun to work on, where no Karpenter is left that could: only it takes its finalizer off.
fn uninstalled(case: &Case) -> Opinion {
    let Some(Untouched { kind, meta, finalizer, of_aws }) = Untouched::of(case) else { return Opinion::Silent };
    // EKS runs Auto Mode's Karpenter out of sight, and others may run theirs elsewhere.
    if !of_aws || case.cluster.missing(Input::Deployments).is_some() || case.cluster.pods().any(is_karpenter) {
        return Opinion::Silent;
    }
    // One under another name would have changed some NodeClaim since.
    let newest = |claim: &NodeClaim| claim.status.conditions.iter().filter_map(|c| c.last_transition_time).max();
    let alive = case.cluster.once(&NEWEST, "", || case.cluster.claims().filter_map(newest).max());
    if *alive > meta.deletion_timestamp {
        return Opinion::Silent;
    }
    let name = &meta.name;
    let deleted = meta.deletion_timestamp.map_or_else(String::new, |at| format!(" at {}", timestamp(at)));
    let node = case.node.filter(|_| case.claim.is_some());
    let also = node.map_or_else(String::new, |node| format!(" and Node {}", node.name()));
    let finding = Finding::new(
        Confidence::Certain,
        format!(
            "{kind} {name} was deleted{deleted}, and no Karpenter is left that takes its finalizer {finalizer} off it{also}: no Deployment of it is here, as after it was uninstalled."
        ),
        Evidence::new(format!("{kind}/{name}"), "metadata.finalizers", finalizer, what_karpenter_does(kind)),
    )
    .blaming(Blame::object("apps/v1", "Deployment", "karpenter"))
    .fix("Install Karpenter again until they are gone; it also terminates the instances. Else terminate the instances yourself, and then remove the finalizer from NodeClaims and Nodes.")
    .step(
        Risk::Inspect,
        "See that no Karpenter runs under another name",
        Some("kubectl get deployments -A -o wide".to_owned()),
    )
    .step(
        Risk::Destructive,
        "Remove the finalizer once the instance is gone",
        Some(format!(
            "kubectl patch {} {name} --type=merge -p '{{\"metadata\":{{\"finalizers\":null}}}}'",
            kind.to_ascii_lowercase()
        )),
    );
    if case.claim.is_none() && case.node.is_none() {
        return finding.into();
    }
    finding
        .ask_aws(
            "Is the instance gone?",
            format!(
                "aws ec2 describe-instances --instance-ids {} --query 'Reservations[].Instances[].State'",
                case.instance_id().unwrap_or("INSTANCE")
            ),
        )
        .into()
}

fn what_karpenter_does(kind: &str) -> &'static str {
    if matches!(kind, "NodeClaim" | "Node") {
        "Karpenter drains the Node, has the instance terminated, and removes it; nothing of that was begun"
    } else {
        "Karpenter waits for its NodeClaims, deletes its instance profile and launch templates, and removes it"
    }
}

/// When a condition of a NodeClaim changed last: only Karpenter writes them.
static NEWEST: Memo<Option<DateTime<Utc>>> = Memo::new("when a condition of a NodeClaim changed last");

/// Whether Karpenter has done nothing for the deletion: its first steps are a taint on the Node, and a condition.
/// Source: core pkg/controllers/node/termination/controller.go `finalize` (v1.14.3).
fn is_untouched(claim: &NodeClaim, node: Option<&Node>) -> bool {
    const STEPS: [&str; 3] = ["Drained", "VolumesDetached", "InstanceTerminating"];
    STEPS.iter().all(|step| claim.condition(step).is_none()) && !node.is_some_and(is_tainted)
}

fn is_tainted(node: &Node) -> bool {
    DISRUPTED_TAINTS.iter().any(|key| node.taint(key).is_some())
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
    let on_fargate = |pod: &&Pod| pod.metadata.label(FARGATE_PROFILE).is_some() && pod.trouble().is_some();
    let pod = case.cluster.pods_in(namespace).filter(|pod| is_karpenter(pod)).find(on_fargate)?;
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

/// Karpenter's pod asks the cluster's DNS, which waits for a Node that Karpenter would have made.
struct WaitsForDns<'w> {
    pod: &'w Pod,
    dns: &'w Pod,
    said: &'w str,
}

/// Source: karpenter.sh docs/troubleshooting, "Failed Resolving STS Credentials with I/O Timeout"; kubernetes v1.36.3
/// pkg/kubelet/network/dns/dns.go `getPodDNSType` (a pod on the host's network asks as the host does).
fn waits_for_dns<'w>(case: &Case<'w>, namespace: &str) -> Option<WaitsForDns<'w>> {
    let asks_cluster = |pod: &&Pod| match pod.spec.dns_policy.as_str() {
        "" | "ClusterFirst" => !pod.spec.host_network,
        policy => policy == "ClusterFirstWithHostNet",
    };
    let mut own = case.cluster.pods_in(namespace).filter(|pod| is_karpenter(pod)).filter(asks_cluster);
    let pod = own.find(|pod| pod.trouble().is_some())?;
    let of_dns = || case.cluster.pods_in("kube-system").filter(|pod| pod.metadata.label("k8s-app") == Some("kube-dns"));
    if of_dns().any(Pod::is_ready) {
        return None;
    }
    let (dns, said) = of_dns().find_map(|dns| Some((dns, dns.unscheduled()?)))?;
    Some(WaitsForDns { pod, dns, said })
}

impl WaitsForDns<'_> {
    fn onto(self, mut finding: Finding, namespace: &str, name: &str) -> Finding {
        let Self { pod, dns, said } = self;
        let (pod, dns) = (&pod.metadata.name, &dns.metadata.name);
        let summary = finding.summary.trim_end_matches('.').to_owned();
        finding.summary = format!(
            "{summary}. Its pod {pod} resolves names by the cluster's DNS (dnsPolicy ClusterFirst), of which no pod runs: {dns} waits for a Node, so both wait for each other."
        );
        let policy = r#"{"spec":{"template":{"spec":{"dnsPolicy":"Default"}}}}"#;
        finding
            .with(Evidence::new(
                format!("Pod/kube-system/{dns}"),
                "status.conditions",
                said,
                "no pod of the cluster's DNS is Ready, and Karpenter finds the addresses of AWS by it",
            ))
            .blaming(Blame::object("apps/v1", "Deployment", name).namespace(namespace).field("spec.template.spec.dnsPolicy"))
            .fix("Let Karpenter resolve names as its Node does (Helm: dnsPolicy=Default), so that it can make Nodes for CoreDNS too; or let CoreDNS tolerate the taints of the Nodes that there are.")
            .step(
                Risk::Mutating,
                "Let it resolve names as its Node does",
                Some(format!("kubectl patch deployment -n {namespace} {name} -p '{policy}'")),
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
        (Stage::Terminate, ..) => Untouched::of(case).map(|Untouched { kind, meta, finalizer, .. }| {
            format!("nobody takes the finalizer {finalizer} off {kind} {}, which was deleted", meta.name)
        }),
        (Stage::Register | Stage::Initialize, Some(claim), Some(node)) => match karpenter_line::turn(claim, node)?.0 {
            Stage::Register => Some(format!("nobody registers Node {} of NodeClaim {}", node.name(), claim.name())),
            _ => Some(format!("nobody calls the Ready Node {} initialized", node.name())),
        },
        _ => None,
    }
}
