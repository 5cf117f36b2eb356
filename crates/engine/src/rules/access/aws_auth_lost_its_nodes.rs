//! aws-auth no longer lets a node role in, under which machines ran: they stopped together, and new ones never join.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::finding::{Finding, Opinion};
use crate::case::{Case, timestamp};
use crate::cluster_state::memo::Memo;
use crate::cluster_state::{AwsAuthFacts, ClusterState};
use crate::objects::input::Input;
use crate::objects::{Condition, Node};
use crate::rules::Rule;
use crate::rules::shared::access_entry::{self, Entrance};
use crate::rules::shared::{aws_auth_role, commands, node_role};
use chrono::{DateTime, TimeDelta, Utc};
use readers::aws_auth::{NODES_GROUP, Verdict};
use std::sync::Arc;

pub static RULE: Rule = Rule {
    cause: "AwsAuthLostItsNodes",
    summary: "aws-auth no longer maps a node role, and the Nodes that had joined with it stopped together",
    stages: &[Stage::Join, Stage::Register, Stage::Initialize, Stage::Ready],
    reads: &[
        Input::Nodes,
        Input::NodeClaims,
        Input::NodeClasses,
        Input::AwsAuth,
        Input::CertificateSigningRequests,
        Input::Deployments,
        Input::AwsObservations,
    ],
    lint: false,
    versions: "all, in clusters whose authentication mode includes the ConfigMap",
    page: include_str!("../../../pages/AwsAuthLostItsNodes.md"),
    check,
};

/// The API server remembers whom a token belongs to, so not every kubelet is turned away in the same second.
const TOGETHER: TimeDelta = TimeDelta::minutes(10);
/// A token lives for so long, and a kubelet asks for the next one before.
/// Source: aws-iam-authenticator @81b1dab pkg/token/token.go `presignedURLExpiration`.
const TOKEN: TimeDelta = TimeDelta::minutes(15);

fn stopped(node: &Node) -> Option<DateTime<Utc>> {
    node.condition("Ready")
        .filter(|ready| ready.reason == "NodeStatusUnknown")
        .and_then(|ready| ready.last_transition_time)
}

/// How the Nodes of a role fare; of all Nodes where nothing tells the role.
struct Kubelets {
    /// One that is Ready.
    ready: Option<String>,
    /// When each of those that stopped did, in order.
    stopped: Vec<DateTime<Utc>>,
    /// When the last machine of the role registered, and its NodeClaim.
    joined: Option<(DateTime<Utc>, String)>,
}

impl Kubelets {
    fn of(case: &Case, role: Option<&str>) -> Arc<Self> {
        static KUBELETS: Memo<Kubelets> = Memo::new("how the Nodes of a role fare");
        let cluster = case.cluster;
        cluster.once(&KUBELETS, role.unwrap_or_default(), || {
            let nodes = || {
                cluster.nodes().filter(|node| role.is_none() || node_role::of_node(cluster, node).as_deref() == role)
            };
            let mut stopped: Vec<_> = nodes().filter_map(stopped).collect();
            stopped.sort();
            let ready = nodes().find(|n| n.is_ready()).map(|n| n.name().to_owned());
            Self { ready, stopped, joined: role.and_then(|role| last_joined(cluster, role)) }
        })
    }

    /// How many stopped with the one that stopped then, itself included.
    fn together(&self, at: DateTime<Utc>) -> usize {
        let before = self.stopped.partition_point(|other| at - *other > TOGETHER);
        self.stopped.partition_point(|other| *other - at <= TOGETHER) - before
    }
}

fn last_joined(cluster: &ClusterState, role: &str) -> Option<(DateTime<Utc>, String)> {
    let classes = cluster.classes().filter(|c| cluster.aws().role_of(&c.class) == Some(role));
    let members = classes.filter_map(|c| cluster.class_members(&c.class.kind, c.class.name()));
    members.filter_map(|members| members.last_joined().map(|(at, name)| (*at, name.to_string()))).max()
}

fn check(case: &Case) -> Opinion {
    let auth = case.cluster.aws_auth().filter(|_| case.goes_by(Input::AwsAuth));
    let Some(auth) = auth.filter(|auth| auth.read.broken.is_none()) else { return Opinion::Silent };
    let own = case.node.and_then(stopped);
    // A kubelet that posts its status was let in.
    if own.is_none() && (case.node.is_some() || case.stage() != Stage::Join) {
        return Opinion::Silent;
    }
    match node_role::seen(case) {
        Some(role) => of_role(case, auth, &role, own),
        None => of_any(case, auth, own),
    }
}

/// Where nothing tells the machine's role, only an aws-auth without any node role says something.
fn of_any(case: &Case, auth: &AwsAuthFacts, own: Option<DateTime<Utc>>) -> Opinion {
    let Some(own) = own else { return Opinion::Silent };
    // An empty mapping is another matter: without any entry the cluster may well do without the ConfigMap. And one
    // entry that is left does not say that no other was lost.
    if auth.read.roles.is_empty() || auth.read.roles.iter().any(|role| role.has_group(NODES_GROUP)) {
        return Opinion::Silent;
    }
    let kubelets = Kubelets::of(case, None);
    // Access entries are in use. Whether this role has one, another role's Node does not tell.
    if kubelets.ready.is_some() || aws_auth_role::by_entries(case) {
        return Opinion::Silent;
    }
    if kubelets.together(own) < 2 {
        return Opinion::Silent;
    }
    let lost = Lost { role: None, entry: None, first: own, together: kubelets.together(own), by: None };
    finding(case, auth, &lost, Confidence::Likely)
}

/// What was lost, and what shows it.
struct Lost<'a> {
    role: Option<&'a str>,
    /// What is left of an entry for the role.
    entry: Option<&'static str>,
    first: DateTime<Utc>,
    together: usize,
    /// The change of aws-auth right before.
    by: Option<Evidence>,
}

fn of_role(case: &Case, auth: &AwsAuthFacts, role: &str, own: Option<DateTime<Utc>>) -> Opinion {
    let kubelets = Kubelets::of(case, Some(role));
    // Where no machine of the role has stopped, nothing was lost: other rules know of roles that never got in.
    let Some(first) = kubelets.stopped.first().copied() else { return Opinion::Silent };
    let at = own.unwrap_or(first);
    if case.claim.is_some_and(|claim| own.is_none() && claim.true_since("Launched").is_none_or(|l| l < first - TOKEN)) {
        return Opinion::Silent;
    }
    let entry = match auth.read.judge(role) {
        Verdict::Mapped(_) => {
            return Opinion::ruled_out(auth, format!("aws-auth maps {role} to a node's username and groups"));
        }
        Verdict::Broken(_) => return Opinion::Silent,
        Verdict::Unmapped => None,
        _ => Some("the entry that it has makes no node of it"),
    };
    if let Some(ready) = kubelets.ready.as_deref().and_then(|ready| case.cluster.node(ready)) {
        return Opinion::ruled_out(ready, format!("Node {} has the role {role} and is Ready", ready.name()));
    }
    let since = auth.written.as_ref().map_or(at, |written| written.at.min(at));
    if let Some((_, claim)) = kubelets.joined.as_ref().filter(|(joined, _)| *joined > since + TOGETHER)
        && let Some(claim) = case.cluster.claim(claim)
    {
        let because = format!("NodeClaim {} joined with {role} later, though aws-auth does not map it", claim.name());
        return Opinion::ruled_out(claim, because);
    }
    let by = changed(auth, at);
    if by.is_none() && auth.written.as_ref().is_some_and(|written| written.at < at) {
        return Opinion::ruled_out(auth, "aws-auth was last written long before they stopped");
    }
    let has_no_entry = match access_entry::of(case, role) {
        Entrance::Missing { mode, .. } if !mode.reads_aws_auth() => return Opinion::Silent,
        Entrance::Missing { .. } | Entrance::NotRead => true,
        Entrance::Unseen => false,
        Entrance::Fits(entry) => {
            let because = format!("the access entry of {} lets the role in", entry.principal_arn);
            return access_entry::excludes(case, role, because);
        }
        Entrance::WrongType { .. } | Entrance::Outlived { .. } => return Opinion::Silent,
    };
    if !has_no_entry {
        if let Some(csr) = node_role::came_by_entry(case, role) {
            return Opinion::ruled_out(csr, format!("a Node came with {role} by an access entry"));
        }
        // Without any entry the cluster may well do without the ConfigMap.
        if auth.read.roles.is_empty() && by.is_none() {
            return Opinion::Silent;
        }
    }
    let together = kubelets.together(at);
    let confidence = match (has_no_entry, together) {
        (true, _) => Confidence::Certain,
        (false, 2..) => Confidence::Likely,
        // One may have died, and the other not boot.
        (false, _) if own.is_none() => Confidence::Possible,
        (false, _) => return Opinion::Silent,
    };
    finding(case, auth, &Lost { role: Some(role), entry, first: at, together, by }, confidence)
}

/// The change of aws-auth that came before they stopped, and after which they could not go on for long.
fn changed(auth: &AwsAuthFacts, stopped: DateTime<Utc>) -> Option<Evidence> {
    let right_before = |at: &DateTime<Utc>| *at <= stopped && stopped - *at <= TOKEN + TOGETHER;
    let because = "right before they stopped";
    if let Some(written) = auth.written.as_ref().filter(|written| right_before(&written.at)) {
        let observed = format!("{} by {}", timestamp(written.at), written.by);
        return Some(Evidence::new("ConfigMap/aws-auth", "metadata.managedFields", observed, because));
    }
    let created = auth.created.filter(right_before)?;
    let observed = timestamp(created).to_string();
    Some(Evidence::new("ConfigMap/aws-auth", "metadata.creationTimestamp", observed, because))
}

fn finding(case: &Case, auth: &AwsAuthFacts, lost: &Lost, confidence: Confidence) -> Opinion {
    let roles = &auth.read.roles;
    let names: Vec<_> = roles.iter().map(|r| r.role_arn.rsplit('/').next().unwrap_or(&r.role_arn)).collect();
    let mapped = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
    let machine = match (case.node, case.claim) {
        (Some(node), _) => format!("Node {}", node.name()),
        (None, Some(claim)) => format!("NodeClaim {}", claim.name()),
        (None, None) => return Opinion::Silent,
    };
    let what = match (lost.role, lost.entry) {
        (Some(role), None) => format!("maps no entry for {role}, the role of {machine}"),
        (Some(role), Some(left)) => format!("does not let in {role}, the role of {machine}: {left}"),
        (None, _) => "maps no role for nodes".to_owned(),
    };
    let how = match case.node {
        Some(_) if lost.together < 2 => "its kubelet has stopped".to_owned(),
        Some(_) if lost.role.is_some() => "its kubelet stopped together with others of that role".to_owned(),
        Some(_) => format!("{machine} stopped together with others"),
        None => "the Nodes that had joined with it have stopped".to_owned(),
    };
    let tail = match (confidence, lost.role) {
        (Confidence::Certain, _) => {
            "no access entry makes up for it, so kubelets with it are turned away, new ones too"
        }
        (_, Some(_)) => {
            "most likely the ConfigMap was overwritten, and kubelets with that role are turned away, new ones too"
        }
        (_, None) => "most likely the ConfigMap was overwritten, and their kubelets are turned away",
    };
    let role = lost.role.unwrap_or("NODE_ROLE");
    let arn = commands::role_arn(role, roles.first().map(|entry| entry.role_arn.as_str()));
    let because = match lost.role {
        Some(role) => format!("{role} is let in by none of them"),
        None => format!("none of them has the group {NODES_GROUP}"),
    };
    let silent = match case.node {
        Some(node) => Evidence::new(
            format!("Node/{}", node.name()),
            r#"status.conditions[?(@.type=="Ready")]"#,
            node.condition("Ready").map(Condition::shown).unwrap_or_default(),
            "none of these Nodes is Ready, and they fell silent within minutes of one another: not the fault of one instance",
        ),
        None => Evidence::new(
            case.subject(),
            "metadata.creationTimestamp",
            format!("launched when they had stopped, {}", timestamp(lost.first)),
            "none of the Nodes that had joined with the role is Ready",
        ),
    };
    let question = match lost.role {
        Some(role) => {
            format!("Does an access entry exist for {role}? Then the Nodes share another reason, such as the network.")
        }
        None => "Do access entries exist for the node roles? Then the Nodes share another reason, such as the network."
            .to_owned(),
    };
    let finding = Finding::new(
        confidence,
        format!("ConfigMap aws-auth {what}, and {how}: {tail}."),
        Evidence::new("ConfigMap/aws-auth", "data.mapRoles", mapped, because),
    )
    .with(silent.figures(format!("{} stopped", lost.together)))
    .with_all(lost.by.clone())
    .with_all(lost.role.and_then(|role| node_role::evidence(case, role)))
    .blaming(Blame::object("v1", "ConfigMap", "aws-auth").namespace("kube-system").field("data.mapRoles"))
    .fix("Put the node roles back, with username system:node:{{EC2PrivateDNSName}} and groups system:bootstrappers and system:nodes; the kubelets come back by themselves. Then find out what writes the ConfigMap as a whole.")
    .step(Risk::Mutating, format!("Add such a line to mapRoles for each node role: {}", commands::map_role(&arn)), Some(commands::EDIT_AWS_AUTH.to_owned()));
    if confidence == Confidence::Certain {
        return finding.into();
    }
    let cluster = case.cluster_name().unwrap_or("CLUSTER");
    finding.ask_aws(question, format!("aws eks list-access-entries --cluster-name {cluster} --output text")).into()
}
