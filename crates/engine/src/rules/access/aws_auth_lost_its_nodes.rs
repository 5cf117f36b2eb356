//! aws-auth has no node role any more, and the running Nodes stopped together.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::cluster_state::memo::Memo;
use crate::objects::Node;
use crate::objects::input::Input;
use crate::rules::Rule;
use crate::rules::shared::aws_auth_role;
use crate::rules::shared::commands;
use chrono::{DateTime, TimeDelta, Utc};
use readers::aws_auth::NODES_GROUP;

pub static RULE: Rule = Rule {
    cause: "AwsAuthLostItsNodes",
    summary: "aws-auth maps no node role, and all Nodes stopped within minutes of one another",
    stages: &[Stage::Ready],
    reads: &[Input::Nodes, Input::AwsAuth, Input::CertificateSigningRequests, Input::Deployments],
    lint: false,
    versions: "all, in clusters whose authentication mode includes the ConfigMap",
    page: include_str!("../../../pages/AwsAuthLostItsNodes.md"),
    check,
};

/// The API server remembers whom a token belongs to, so not every kubelet is turned away in the same second.
const TOGETHER: TimeDelta = TimeDelta::minutes(10);

fn stopped(node: &Node) -> Option<DateTime<Utc>> {
    node.condition("Ready")
        .filter(|ready| ready.reason == "NodeStatusUnknown")
        .and_then(|ready| ready.last_transition_time)
}

static KUBELETS: Memo<Kubelets> = Memo::new("how all Nodes fare");

/// How all Nodes fare.
struct Kubelets {
    /// Whether any is Ready.
    ready: bool,
    /// When each of those that stopped did, in order.
    stopped: Vec<DateTime<Utc>>,
}

fn check(case: &Case) -> Opinion {
    let (Some(node), Some(auth)) = (case.node, case.cluster.aws_auth()) else { return Opinion::Silent };
    let Some(silent) = stopped(node) else { return Opinion::Silent };
    let read = &auth.read;
    // An empty or a broken mapping is another matter: without any entry the cluster may well do without the ConfigMap.
    if read.broken.is_some() || read.roles.is_empty() {
        return Opinion::Silent;
    }
    // One entry that is left does not say that no other was lost.
    if read.roles.iter().any(|role| role.has_group(NODES_GROUP)) {
        return Opinion::Silent;
    }
    let kubelets = case.cluster.once(&KUBELETS, "", || {
        let ready = case.cluster.nodes().any(Node::is_ready);
        let mut stopped: Vec<_> = case.cluster.nodes().filter_map(stopped).collect();
        stopped.sort();
        Kubelets { ready, stopped }
    });
    // Access entries are in use. Whether this role has one, another role's Node does not tell.
    if kubelets.ready || aws_auth_role::by_entries(case) {
        return Opinion::Silent;
    }
    let before = kubelets.stopped.partition_point(|at| silent - *at > TOGETHER);
    // Without this one.
    let together = kubelets.stopped.partition_point(|at| *at - silent <= TOGETHER) - before - 1;
    if together == 0 {
        return Opinion::Silent;
    }
    let mapped =
        read.roles.iter().map(|r| r.role_arn.rsplit('/').next().unwrap_or(&r.role_arn)).collect::<Vec<_>>().join(", ");
    let arn = commands::role_arn("NODE_ROLE", read.roles.first().map(|entry| entry.role_arn.as_str()));
    Finding::new(
        Confidence::Likely,
        format!(
            "ConfigMap aws-auth maps no role for nodes, and Node {} stopped together with {together} others: most likely the ConfigMap was overwritten, and their kubelets are turned away.",
            node.name()
        ),
        Evidence::new("ConfigMap/aws-auth", "data.mapRoles", mapped, format!("none of them has the group {NODES_GROUP}")),
    )
    .with(Evidence::new(
        format!("Node/{}", node.name()),
        r#"status.conditions[?(@.type=="Ready")]"#,
        node.condition("Ready").map(crate::objects::Condition::shown).unwrap_or_default(),
        "no Node is Ready, and they fell silent within minutes of one another: not the fault of one instance",
    ))
    .blaming(Blame::object("v1", "ConfigMap", "aws-auth").namespace("kube-system").field("data.mapRoles"))
    .fix("Put the node roles back, with username system:node:{{EC2PrivateDNSName}} and groups system:bootstrappers and system:nodes; the kubelets come back by themselves. Then find out what writes the ConfigMap as a whole.")
    .step(Risk::Mutating, format!("Add such a line to mapRoles for each node role: {}", commands::map_role(&arn)), Some(commands::EDIT_AWS_AUTH.to_owned()))
    .ask_aws(
        "Do access entries exist for the node roles? Then the Nodes share another reason, such as the network.",
        format!("aws eks list-access-entries --cluster-name {} --output text", case.karpenter().and_then(|k| k.cluster_name.as_deref()).unwrap_or("CLUSTER")),
    )
    .into()
}
