//! aws-auth no longer maps a node role that nodes ran with: those nodes stopped together, and new ones never join.

use crate::case::timestamp;
use crate::cluster_state::memo::Memo;
use crate::cluster_state::{AwsAuthFacts, ClusterState};
use crate::explain::commands;
use crate::facts::access_entry::{self, EntryState};
use crate::facts::{aws_auth_role, node_role};
use crate::objects::{Condition, Node};
use crate::rules::prelude::*;
use chrono::{DateTime, TimeDelta, Utc};
use readers::aws_auth::{NODES_GROUP, Verdict};
use std::sync::Arc;

rule! {
    cause: AwsAuthLostItsNodes,
    summary: "aws-auth no longer maps a node role, and the Nodes that had joined with it stopped together",
    stages: [Join, Register, Initialize, Ready],
    reads: [Nodes, NodeClaims, NodeClasses, AwsAuth, CertificateSigningRequests, Deployments, AwsObservations],
    versions: "all, in clusters whose authentication mode includes the ConfigMap",
}

/// The API server caches the owner of a token, so it does not reject every kubelet in the same second.
const TOGETHER: TimeDelta = TimeDelta::minutes(10);
/// The lifetime of a token. A kubelet requests the next one before the end.
/// Source: aws-iam-authenticator @81b1dab pkg/token/token.go `presignedURLExpiration`.
const TOKEN: TimeDelta = TimeDelta::minutes(15);

fn stopped(node: &Node) -> Option<DateTime<Utc>> {
    node.condition("Ready")
        .filter(|ready| ready.reason == "NodeStatusUnknown")
        .and_then(|ready| ready.last_transition_time)
}

/// The state of the Nodes of a role, or of all Nodes if nothing shows the role.
struct Kubelets {
    /// A Node that is Ready.
    ready: Option<String>,
    /// The times at which the Nodes stopped, in order.
    stopped: Vec<DateTime<Utc>>,
    /// The time at which the last node of the role registered, and its NodeClaim.
    joined: Option<(DateTime<Utc>, String)>,
}

impl Kubelets {
    fn of(case: &Case, role: Option<&str>) -> Arc<Self> {
        static KUBELETS: Memo<Kubelets> = Memo::new("state of the Nodes of a role");
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

    /// The number of Nodes that stopped together with the one that stopped at this time, including itself.
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

fn check(case: &Case) -> Option<Opinion> {
    let auth = case.cluster.aws_auth().filter(|_| case.goes_by(Input::AwsAuth));
    let auth = auth.map(|present| case.rejected_by_earlier_aws_auth().map_or(present, |(earlier, _)| earlier));
    let auth = auth.filter(|auth| auth.read.broken.is_none())?;
    let own = case.node.and_then(stopped);
    // The API server authorized every kubelet that posts its status.
    if own.is_none() && (case.node.is_some() || case.stage() != Stage::Join) {
        return None;
    }
    match node_role::seen(case) {
        Some(role) => of_role(case, auth, &role, own),
        None => of_any(case, auth, own),
    }
}

/// If nothing shows the node's role, only an aws-auth without any node role is evidence.
fn of_any(case: &Case, auth: &AwsAuthFacts, own: Option<DateTime<Utc>>) -> Option<Opinion> {
    let own = own?;
    // An empty mapping is different: without any entry the cluster may well work without the ConfigMap. And one entry
    // that is left does not prove that no other entry was lost.
    if auth.read.roles.is_empty() || auth.read.roles.iter().any(|role| role.has_group(NODES_GROUP)) {
        return None;
    }
    let kubelets = Kubelets::of(case, None);
    // Access entries are in use. The Node of another role does not show whether this role has one.
    if kubelets.ready.is_some() || aws_auth_role::by_entries(case) {
        return None;
    }
    if kubelets.together(own) < 2 {
        return None;
    }
    let lost = Lost { role: None, entry: None, first: own, together: kubelets.together(own), by: None };
    finding(case, auth, &lost, Confidence::Likely)
}

/// The mapping that was lost, and the evidence for it.
struct Lost<'a> {
    role: Option<&'a str>,
    /// The remains of an entry for the role.
    entry: Option<&'static str>,
    first: DateTime<Utc>,
    together: usize,
    /// The last change of aws-auth before the Nodes stopped.
    by: Option<Evidence>,
}

fn of_role(case: &Case, auth: &AwsAuthFacts, role: &str, own: Option<DateTime<Utc>>) -> Option<Opinion> {
    let kubelets = Kubelets::of(case, Some(role));
    // If no node of the role has stopped, no mapping was lost. Other rules judge roles that were never authorized.
    let first = kubelets.stopped.first().copied()?;
    let at = own.unwrap_or(first);
    if case.claim.is_some_and(|claim| own.is_none() && claim.true_since("Launched").is_none_or(|l| l < first - TOKEN)) {
        return None;
    }
    let entry = match auth.read.judge(role) {
        Verdict::Mapped(_) => {
            let because = format!("aws-auth maps {role} to a node's username and groups");
            return Some(case.excluded_by_aws_auth(auth, because));
        }
        Verdict::Broken(_) => return None,
        Verdict::Unmapped => None,
        _ => Some("the entry that it has does not authorize a node"),
    };
    // Nodes of the role come back after a repair, one by one.
    let repaired = case.rejected_by_earlier_aws_auth().map(|(_, met)| Opinion::LookAgain(met));
    if let Some(ready) = kubelets.ready.as_deref().and_then(|ready| case.cluster.node(ready)) {
        let because = format!("Node {} has the role {role} and is Ready", ready.name());
        return Some(repaired.unwrap_or_else(|| Opinion::ruled_out(ready, because)));
    }
    let since = auth.written.as_ref().map_or(at, |written| written.at.min(at));
    if let Some((_, claim)) = kubelets.joined.as_ref().filter(|(joined, _)| *joined > since + TOGETHER)
        && let Some(claim) = case.cluster.claim(claim)
    {
        let because = format!("NodeClaim {} joined with {role} later, although aws-auth does not map it", claim.name());
        return Some(repaired.unwrap_or_else(|| Opinion::ruled_out(claim, because)));
    }
    let by = changed(auth, at);
    if by.is_none() && auth.written.as_ref().is_some_and(|written| written.at < at) {
        return Some(Opinion::ruled_out(auth, "the last write to aws-auth was long before they stopped"));
    }
    let has_no_entry = match access_entry::entry_state(case, role) {
        EntryState::Missing { mode, .. } if !mode.reads_aws_auth() => return None,
        EntryState::Missing { .. } | EntryState::NotRead => true,
        EntryState::Unseen => false,
        EntryState::Fits(entry) => {
            let because = format!("the access entry of {} authorizes the role", entry.principal_arn);
            return access_entry::excludes(case, role, because);
        }
        EntryState::WrongType { .. } | EntryState::Outlived { .. } => return None,
    };
    if !has_no_entry {
        if let Some(csr) = node_role::came_by_entry(case, role) {
            return Some(Opinion::ruled_out(csr, format!("an access entry authorized a node with {role}")));
        }
        // Without any entry the cluster may well work without the ConfigMap.
        if auth.read.roles.is_empty() && by.is_none() {
            return None;
        }
    }
    let together = kubelets.together(at);
    let confidence = match (has_no_entry, together) {
        (true, _) => Confidence::Certain,
        (false, 2..) => Confidence::Likely,
        // One node may have died for its own reason, and another may fail to boot.
        (false, _) if own.is_none() => Confidence::Possible,
        (false, _) => return None,
    };
    finding(case, auth, &Lost { role: Some(role), entry, first: at, together, by }, confidence)
}

/// The change of aws-auth shortly before the nodes stopped: without their mapping they could not run for long.
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

fn finding(case: &Case, auth: &AwsAuthFacts, lost: &Lost, confidence: Confidence) -> Option<Opinion> {
    let roles = &auth.read.roles;
    let names: Vec<_> = roles.iter().map(|r| r.role_arn.rsplit('/').next().unwrap_or(&r.role_arn)).collect();
    let mapped = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
    let machine = match (case.node, case.claim) {
        (Some(node), _) => format!("Node {}", node.name()),
        (None, Some(claim)) => format!("NodeClaim {}", claim.name()),
        (None, None) => return None,
    };
    let what = match (lost.role, lost.entry) {
        (Some(role), None) => format!("maps no entry for {role}, the role of {machine}"),
        (Some(role), Some(left)) => format!("does not authorize {role}, the role of {machine}: {left}"),
        (None, _) => "maps no node role".to_owned(),
    };
    let how = match case.node {
        Some(_) if lost.together < 2 => "its kubelet has stopped".to_owned(),
        Some(_) if lost.role.is_some() => "its kubelet stopped together with others of that role".to_owned(),
        Some(_) => format!("{machine} stopped together with others"),
        None => "the Nodes that had joined with it have stopped".to_owned(),
    };
    let tail = match (confidence, lost.role) {
        (Confidence::Certain, _) => {
            "No access entry replaces the mapping, so the API server rejects kubelets with this role, new ones too"
        }
        (_, Some(_)) => {
            "Most likely the ConfigMap was overwritten, so the API server rejects kubelets with that role, new ones too"
        }
        (_, None) => "Most likely the ConfigMap was overwritten, so the API server rejects their kubelets",
    };
    let role = lost.role.unwrap_or("NODE_ROLE");
    let arn = commands::role_arn(role, roles.first().map(|entry| entry.role_arn.as_str()));
    let because = match lost.role {
        Some(role) => format!("no entry authorizes {role}"),
        None => format!("none of them has the group {NODES_GROUP}"),
    };
    let silent = match case.node {
        Some(node) => Evidence::new(
            format!("Node/{}", node.name()),
            r#"status.conditions[?(@.type=="Ready")]"#,
            node.condition("Ready").map(Condition::shown).unwrap_or_default(),
            "none of these Nodes is Ready, and they stopped within minutes of one another, so no single instance is at \
             fault",
        ),
        None => Evidence::new(
            case.subject(),
            "metadata.creationTimestamp",
            format!("launched after they had stopped, {}", timestamp(lost.first)),
            "none of the Nodes that had joined with the role is Ready",
        ),
    };
    let question = match lost.role {
        Some(role) => {
            format!("Does an access entry exist for {role}? If so, the Nodes share another cause, such as the network.")
        }
        None => {
            "Do access entries exist for the node roles? If so, the Nodes share another cause, such as the network."
                .to_owned()
        }
    };
    let finding = Finding::new(
        confidence,
        format!("ConfigMap aws-auth {what}, and {how}. {tail}."),
        Evidence::new("ConfigMap/aws-auth", "data.mapRoles", mapped, because),
    )
    .with(silent.figures(format!("{} stopped", lost.together)))
    .with_all(lost.by.clone())
    .with_all(lost.role.and_then(|role| node_role::evidence(case, role)))
    .blaming(Blame::object("v1", "ConfigMap", "aws-auth").namespace("kube-system").field("data.mapRoles"))
    .fix(
        "Add the node roles again, with username system:node:{{EC2PrivateDNSName}} and groups system:bootstrappers and \
         system:nodes. The kubelets reconnect by themselves. Then find out which tool writes the whole ConfigMap.",
    )
    .change(
        format!("Add such a line to mapRoles for each node role: {}", commands::map_role(&arn)),
        commands::EDIT_AWS_AUTH.to_owned(),
    )
    .inspect(
        "See which tool wrote the ConfigMap",
        "kubectl get configmap -n kube-system aws-auth -o yaml --show-managed-fields".to_owned(),
    );
    if confidence == Confidence::Certain {
        return finding.into();
    }
    let cluster = case.cluster_name().unwrap_or("CLUSTER");
    finding.ask_aws(question, format!("aws eks list-access-entries --cluster-name {cluster} --output text")).into()
}
