//! A log says that IAM denies a call that the machine, the network plugin or Karpenter must make.

use crate::explain::{commands, launch_blame, launch_error, logged};
use crate::objects::{Node, NodeClaim, Pod, ServiceAccount};
use crate::rules::prelude::*;
use crate::upstream::credentials::Credentials;
use crate::upstream::karpenter::is_karpenter;
use logs::fact::{Reason, Trouble};

const KARPENTER: &str = "karpenter";

const UNNAMED: &str = "Allow the call that the line names, in the policy of the role that makes it or in that role's \
                       trust policy. This disrupts nothing.";

/// What shows the action and the policy of a denial that EC2 encodes.
const DECODE: (&str, &str) = (
    "Decode the denial: it names the action, the resource and the policy's conditions",
    "aws sts decode-authorization-message --query DecodedMessage --output text --encoded-message MESSAGE",
);

rule! {
    cause: AwsRefusesMachine,
    summary: "The machine, its network plugin or Karpenter logged that AWS denies a call",
    stages: [Launch, Join, Register, Initialize, Ready, Terminate],
    reads: [Nodes, NodePools, NodeClasses, Pods, Deployments, ServiceAccounts, Logs],
    versions: "all; seen only in logs",
}

fn check(case: &Case) -> Option<Opinion> {
    let root = logged::root(case, &[Trouble::AwsRefuses])?;
    let of_karpenter = root.fact.program == KARPENTER;
    let log = if of_karpenter { karpenter_log(case) } else { None };
    let finding = root
        .finding(case)
        .fix(root.denial().map_or_else(|| UNNAMED.to_owned(), |denial| denial.fix()))
        .inspect("See which role calls what: the denial names both", log.or_else(|| logged::command(case)));
    let is_encoded = root.says("Encoded authorization failure");
    let finding = if is_encoded { finding.inspect(DECODE.0, DECODE.1.to_owned()) } else { finding };
    let named = root.fact.names.get("role").map(String::as_str);
    let is_asked = of_karpenter && root.is_because(&[Reason::AccessDenied]);
    // A role of its own has another session than the id of an instance.
    let of_machine = root.fact.names.contains_key("session");
    let mut own_pods = case.cluster.pods().filter(|pod| is_asked && of_machine && is_karpenter(pod));
    if let Some(pod) = own_pods.find(|pod| borrows(case, pod, named)) {
        return without_own_role(finding, pod).into();
    }
    let finding = match root.denial().filter(|_| is_asked) {
        Some(denial) => denial.asking_for_tags(case, finding),
        None => finding,
    };
    // What Karpenter logs of a launch, it writes into the Launched condition too, sooner or later.
    let text = &root.fact.last.text;
    if let Some(error) = launch_error::named(text).filter(|_| of_karpenter)
        && let Some(in_aws) = launch_blame::in_aws(case, error, text)
    {
        return in_aws.onto(finding.fix(error.fix)).into();
    }
    if root.is_because(&[Reason::OrganizationPolicy]) {
        return finding
            .fix(
                "Allow the call in the organization's service control policy, or request only what it allows. No \
                 policy of the role overrides it.",
            )
            .blaming(Blame::object("", "ServiceControlPolicy", "organization"))
            .into();
    }
    if let Some(account) = refused_account(case, &root.fact.program, text) {
        return finding
            .fix(
                "Correct the trust policy of the role that the ServiceAccount names: it must name the cluster's OIDC \
                 provider, and this namespace and name as its subject. This disrupts nothing.",
            )
            .blaming(account)
            .into();
    }
    let blame = match named {
        Some(role) => Some(Blame::object("", "IAMRole", role)),
        None if of_karpenter => None,
        None => caller(case, &root.fact.program),
    };
    finding.blaming(blame).into()
}

/// Whose role makes the calls of a program, if its log names none: a pod may have a role of its own.
fn caller(case: &Case, program: &str) -> Option<Blame> {
    let of_node = || Some(Blame::object("", "IAMRole", case.class()?.spec.role.as_deref()?));
    let Some(pod) = logged::speaker(case, program) else { return of_node() };
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let account = || Blame::object("v1", "ServiceAccount", account_name(pod)).namespace(namespace);
    match Credentials::of(pod) {
        Credentials::Irsa(arn) => Some(Blame::object("", "IAMRole", arn.rsplit('/').next().unwrap_or(arn))),
        Credentials::PodIdentity => Some(account()),
        // Such a pod is older than the annotation, or the dump lacks what the webhook wrote into it.
        Credentials::Node if has_own_role(case, pod) => {
            Some(account().field("metadata.annotations['eks.amazonaws.com/role-arn']"))
        }
        Credentials::Node => of_node(),
    }
}

/// The console of an instance does not show what Karpenter is not allowed to do with it.
fn karpenter_log(case: &Case) -> Option<String> {
    let name = case.claim.map(NodeClaim::name).or(case.node.map(Node::name))?;
    Some(format!("{} | grep {name}", commands::karpenter_log(case)))
}

/// Agents run with a ServiceAccount of their own name, if an object does not say which it is.
fn account_name(pod: &Pod) -> &str {
    match &*pod.spec.service_account_name {
        "" => pod.daemon_set().unwrap_or_default(),
        name => name,
    }
}

/// Whether the ServiceAccount of the pod names a role.
fn has_own_role(case: &Case, pod: &Pod) -> bool {
    let names_its_role = |own: &ServiceAccount| {
        own.metadata.name.as_str() == account_name(pod)
            && own.metadata.namespace == pod.metadata.namespace
            && own.role_arn().is_some()
    };
    case.cluster.service_accounts().any(names_its_role)
}

/// The ServiceAccount that cannot assume its role, because the role trusts another subject.
/// Source: <https://docs.aws.amazon.com/eks/latest/userguide/iam-roles-for-service-accounts.html>.
fn refused_account(case: &Case, program: &str, text: &str) -> Option<Blame> {
    if !text.contains("AssumeRoleWithWebIdentity") {
        return None;
    }
    let pod = logged::speaker(case, program)?;
    let account = Some(&*pod.spec.service_account_name).filter(|name| !name.is_empty())?;
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    Some(Blame::object("v1", "ServiceAccount", account).namespace(namespace).field("metadata.annotations"))
}

/// Whether the pod uses the role of its node because it has none of its own.
fn borrows(case: &Case, pod: &Pod, denied: Option<&str>) -> bool {
    denied.is_some() && Credentials::of(pod) == Credentials::Node && !has_own_role(case, pod)
}

/// Source: karpenter.sh docs/getting-started: Karpenter's controller has a role beside that of the Nodes.
fn without_own_role(finding: Finding, pod: &Pod) -> Finding {
    let (account, pod_name) = (&*pod.spec.service_account_name, &pod.metadata.name);
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    finding
        .with(Evidence::new(
            format!("Pod/{namespace}/{pod_name}"),
            "spec.containers[*].env",
            "neither AWS_ROLE_ARN nor AWS_CONTAINER_CREDENTIALS_FULL_URI",
            "so it calls AWS with the role of the node that it runs on",
        ))
        .blaming(Blame::object("v1", "ServiceAccount", account).namespace(namespace).field("metadata.annotations"))
        .fix(format!(
            "Give Karpenter its own role in its namespace: an EKS Pod Identity association for ServiceAccount \
             {namespace}/{account}, or the annotation eks.amazonaws.com/role-arn. Then restart its pods, which \
             disrupts no node. The role of the nodes should not have these permissions."
        ))
        .inspect(
            "See which role the ServiceAccount has",
            format!("kubectl get serviceaccount -n {namespace} {account} -o yaml"),
        )
}
