//! The kubelet gets in, and may not create the Node of the name that it has.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::case::stage;
use crate::objects::input::Input;
use crate::objects::{Event, NodeClaim};
use crate::rules::Rule;
use chrono::{DateTime, TimeDelta, Utc};
use readers::aws_auth::{NodeName, Verdict};

pub static RULE: Rule = Rule {
    cause: "NodeNameRefused",
    summary: "The kubelet authenticates, but the API server refuses to let it create a Node of its name",
    stages: &[Stage::Join],
    reads: &[Input::Events, Input::Nodes, Input::CertificateSigningRequests],
    versions: "all",
    page: include_str!("../../../pages/NodeNameRefused.md"),
    check,
};

/// The kubelet's events are throttled to one in 300 s for each object; twice that without one, and it has stopped trying.
/// Source: client-go v0.36.3 tools/record/events_cache.go `defaultSpamQPS`.
const STILL_TRYING: TimeDelta = TimeDelta::minutes(10);

/// Whose kubelet it is that reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// Its name holds the instance's id.
    Own,
    /// By time and by elimination: no other kubelet reports so, and no other machine waits that could be its.
    NobodyElses,
    Somebodys,
}

/// The kubelet that may be this machine's.
pub(crate) fn of_this_machine<'w>(case: &Case<'w>, launched: DateTime<Utc>) -> Option<(&'w str, &'w Event, Whose)> {
    let kubelets = turned_away(case, launched);
    let is_own = |name: &str| case.claim.and_then(NodeClaim::instance_id).is_some_and(|id| name.contains(id));
    if let Some(&(name, event)) = kubelets.iter().find(|(name, _)| is_own(name)) {
        return Some((name, event, Whose::Own));
    }
    // Another instance's id is not this one's.
    let mut nameless = kubelets.into_iter().filter(|(name, _)| !name.starts_with("i-"));
    let (name, event) = nameless.next()?;
    let alone = nameless.next().is_none() && !others_wait(case, first_seen(event));
    Some((name, event, if alone { Whose::NobodyElses } else { Whose::Somebodys }))
}

/// Whether another machine, of whatever class, was launched by then and has not joined.
pub(crate) fn others_wait(case: &Case, by: Option<DateTime<Utc>>) -> bool {
    let waits = |c: &NodeClaim| !c.is_true("Registered") && c.true_since("Launched").is_some_and(|at| by.is_none_or(|by| at <= by));
    case.cluster.claims().any(|claim| waits(claim) && Some(claim.name()) != case.claim.map(NodeClaim::name))
}

fn first_seen(event: &Event) -> Option<DateTime<Utc>> {
    event.first_timestamp.or(event.metadata.creation_timestamp).or(event.last_seen())
}

/// A kubelet that reports, since the launch and until now, under a name that no Node has or ever had.
///
/// It writes events only as a node (`system:node:…` in `system:nodes`): network, CA and authentication are right. A certificate
/// request would say that its Node did exist.
/// Source: kubernetes v1.36.3 pkg/auth/authorizer/rbac/bootstrappolicy/policy.go `NodeRules`, pkg/kubelet/kubelet_node_status.go.
fn turned_away<'w>(case: &Case<'w>, launched: DateTime<Utc>) -> Vec<(&'w str, &'w Event)> {
    let mut names: Vec<(&str, &Event)> = Vec::new();
    for (name, event) in case.cluster.kubelets_without_node() {
        let since_launch = first_seen(event).is_some_and(|at| at >= launched);
        let still = event.last_seen().is_some_and(|at| case.now - at <= STILL_TRYING);
        // Repeated on every attempt to register.
        let attempt = event.reason.starts_with("NodeHas") && event.times() >= 3;
        if since_launch && still && attempt && names.last().is_none_or(|(last, _)| *last != name) {
            names.push((name, event));
        }
    }
    let deleted = |name: &str| case.cluster.events("Node", name).any(stage::deletes_node);
    names.retain(|(name, _)| !deleted(name) && !case.cluster.csrs().any(|c| c.spec.username == format!("system:node:{name}")));
    names
}

fn check(case: &Case) -> Opinion {
    let Some(claim) = case.claim else { return Opinion::Silent };
    let Some(launched) = claim.true_since("Launched") else { return Opinion::Silent };
    let Some((name, event, whose)) = of_this_machine(case, launched) else {
        return Opinion::ruled_out("no kubelet reports under a name without a Node since the launch");
    };
    // Where requests for certificates were not read, the Node may have existed.
    let requests_read = case.cluster.missing(Input::CertificateSigningRequests).is_none();
    // Never Certain: who refuses the Node stands in the kubelet's log only.
    let confidence = if requests_read && whose != Whose::Somebodys { Confidence::Likely } else { Confidence::Possible };
    let summary = format!(
        "The kubelet of NodeClaim {} runs and is let in, but may not create its Node {name}: most likely its own name and the one it is authenticated as differ.",
        claim.name()
    );
    let finding = Finding::new(
        confidence,
        summary,
        Evidence::new(
            format!("Event/{}", event.metadata.name),
            "message",
            format!("{} ({} times)", event.said(), event.times()),
            format!("a kubelet calls itself {name}, only nodes may write such events, and there is no such Node"),
        ),
    )
    .fix("Let the kubelet's name be the instance's private DNS name: no hostname override, no custom domain name in the DHCP options, an AMI that asks EC2 for the name.")
    .step(
        Risk::Inspect,
        "Compare the name with the instance's private DNS name",
        claim.instance_id().map(|id| format!("aws ec2 describe-instances --instance-ids {id} --query 'Reservations[].Instances[].PrivateDnsName'")),
    )
    .unknown("Which name is the kubelet authenticated as?", "aws logs filter-log-events --log-group-name /aws/eks/CLUSTER/cluster --log-stream-name-prefix authenticator".to_owned())
    .unknown(
        "Does an admission webhook or policy refuse the Node? That leaves the same trace.",
        "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations,validatingadmissionpolicies -o yaml",
    );
    finding.blaming(blame(case).unwrap_or_else(|| Blame::object("karpenter.sh/v1", "NodeClaim", claim.name()))).into()
}

/// What gives the kubelet its name: the user's own override, an entry of aws-auth that expects the instance's id, or the node class.
fn blame(case: &Case) -> Option<Blame> {
    let override_ = case.user_data().and_then(|(u, text)| Some((u.effective("hostname-override")?.span, text)));
    let class = case.class().map(|c| Blame::object(&c.api_version, &c.kind, c.name()));
    if let (Some((span, text)), Some(class)) = (override_, class.clone()) {
        return Some(class.field("spec.userData").at(text, span));
    }
    let role = case.class().and_then(|c| c.spec.role.as_deref());
    if let (Some(role), Some(auth)) = (role, case.cluster.aws_auth())
        && let Verdict::Mapped(entry) = auth.read.judge(role)
        && entry.node_name() == Ok(NodeName::InstanceId)
    {
        let blame = Blame::object("v1", "ConfigMap", "aws-auth").namespace("kube-system").field("data.mapRoles");
        return Some(blame.at(&auth.map_roles, entry.username_span.unwrap_or(entry.span)));
    }
    class
}
