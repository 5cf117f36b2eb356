//! The kubelet runs, but the API server rejects it.

use super::command::CONSOLE;
use super::{CauseCandidate, Suspicion};
use crate::api::Stage;
use crate::case::{Case, timestamp};
use crate::cluster_state::memo::Memo;
use crate::explain::commands;
use crate::facts::access_entry;
use crate::objects::input::Input;
use crate::objects::{Node, NodeClass};
use chrono::TimeDelta;
use readers::source_text::{Span, excerpt};

/// Only EKS has the entries: nodewhy asks AWS, or you do.
pub const ROLE_NOT_LET_IN: CauseCandidate = CauseCandidate {
    cause: "NodeRoleHasNoAccessEntry",
    stages: &[Stage::Join],
    behind: &[],
    weigh: |case, differential| {
        let role = differential.role?;
        if differential.is_let_in {
            return None;
        }
        let wanted = access_entry::type_for(case);
        let of_another = differential
            .differs("role")
            .map(|(nearest, role)| format!("nodes of {} with the role {} join", nearest.class, role.theirs));
        let never = differential.worked_before().is_none() && of_another.is_none();
        let by_map = match case.cluster.aws_auth() {
            _ if !case.goes_by(Input::AwsAuth) => "only an access entry authorizes nodes of EKS Auto Mode".to_owned(),
            Some(_) => format!("aws-auth does not map {role}"),
            None => "nodewhy knows no aws-auth that authorizes the role, so the role needs an access entry".to_owned(),
        };
        Some(
            Suspicion::new(
                format!(
                    "Perhaps the access entry of the node role {role} is missing, or has type STANDARD instead of \
                     {wanted}, so the API server rejects the kubelet."
                ),
                entry_command(case, role),
                format!("no such entry, or a type other than {wanted}"),
            )
            .telling(of_another)
            .consistent(never.then(|| format!("no node with the role {role} has joined")))
            .consistent(Some(by_map))
            .unlikely(differential.worked_before()),
        )
    },
};

/// Authorized kubelets stop together when their role is no longer authorized.
pub const ROLE_LOST_ITS_ACCESS: CauseCandidate = CauseCandidate {
    cause: "NodeRoleHasNoAccessEntry",
    stages: &[Stage::Ready],
    behind: &["KubeletStopped"],
    weigh: |case, differential| {
        let role = differential.role?;
        let split = differential.split(case, "group").filter(|split| split.repeated)?;
        Some(
            Suspicion::new(
                format!(
                    "Perhaps the node role {role} is no longer authorized: its access entry, or its line in aws-auth, \
                     is gone."
                ),
                entry_command(case, role),
                "no such entry, and no line for the role in aws-auth",
            )
            .telling(Some(format!(
                "every Node of NodePool {} stopped reporting, those of {} are Ready",
                split.value, split.elsewhere
            ))),
        )
    },
};

fn entry_command(case: &Case, role: &str) -> String {
    let cluster = case.cluster_name().unwrap_or("CLUSTER");
    format!("aws eks describe-access-entry --cluster-name {cluster} --principal-arn {}", commands::role_arn(role, None))
}

/// Karpenter writes the endpoint into user data. It looks the endpoint up itself if no setting names it.
pub const OTHER_ENDPOINT: CauseCandidate = CauseCandidate {
    cause: "WrongCluster",
    stages: &[Stage::Join],
    behind: &[],
    weigh: |case, differential| {
        let karpenter = case.karpenter()?;
        let endpoint = karpenter.cluster_endpoint.as_deref().filter(|endpoint| !endpoint.is_empty())?;
        let never = differential.together()?;
        let cluster = case.cluster_name().unwrap_or("CLUSTER");
        Some(
            Suspicion::new(
                format!(
                    "Perhaps CLUSTER_ENDPOINT of Deployment {} is wrong: {endpoint} is not this cluster's endpoint, \
                     and Karpenter passes it on unchecked.",
                    karpenter.deployment
                ),
                format!("aws eks describe-cluster --name {cluster} --query cluster.endpoint"),
                format!("an address other than {endpoint}"),
            )
            .consistent(Some(never)),
        )
    },
};

/// If the VPC's DHCP options name another domain, the API server refuses an image that uses the host's name for the
/// Node.
pub const OTHER_NAME: CauseCandidate = CauseCandidate {
    cause: "NodeNameRefused",
    stages: &[Stage::Join],
    behind: &[],
    weigh: |case, differential| {
        let class = case.class()?;
        let chosen = class.spec.ami_selector_terms.iter().all(|term| term.alias.is_none());
        let reports = differential.reporting.as_ref();
        let domain = other_domain(case);
        if reports.is_none() && domain.is_none() {
            return None;
        }
        Some(
            Suspicion::new(
                "Perhaps the API server refuses the Node because a domain in the VPC's DHCP options, or an override, \
                 gives it another name than EC2 does.",
                CONSOLE,
                "kubelet: node … is not allowed to modify node …; then compare aws ec2 describe-dhcp-options, \
                 domain-name",
            )
            .telling(reports.map(|name| format!("a kubelet reports as {name}, but there is no such Node")))
            .telling(domain.clone().filter(|_| chosen))
            .consistent(domain.filter(|_| !chosen))
            .consistent(chosen.then_some("the class selects the image itself, and the image may use the host's name"))
            .consistent(differential.together())
            .unlikely(differential.worked_before()),
        )
    },
};

/// A name of a Node, or of its host, that EC2 would not give.
/// Source: Amazon EC2 user guide, "Amazon EC2 instance hostnames and domains".
fn other_domain(case: &Case) -> Option<String> {
    static DOMAIN: Memo<Option<String>> = Memo::new("a name of a Node in another domain than EC2's");
    const OF_EC2: [&str; 2] = [".ec2.internal", ".compute.internal"];
    let is_other = |name: &&str| {
        name.starts_with("ip-") && name.contains('.') && !OF_EC2.iter().any(|domain| name.ends_with(domain))
    };
    let seen = case.cluster.once(&DOMAIN, "", || {
        case.cluster.nodes().find_map(|node| {
            let names = [Some(node.name()), node.metadata.label("kubernetes.io/hostname"), node.address("Hostname")];
            let name = names.into_iter().flatten().find(is_other)?;
            let (_, domain) = name.split_once('.')?;
            Some(format!("Node {} is in the domain {domain}, which is not EC2's own", node.name()))
        })
    });
    (*seen).clone()
}

/// TLS accepts no certificate from another time, and the authenticator accepts no such token.
pub const CLOCK: CauseCandidate = CauseCandidate {
    cause: "ApiServerUntrusted",
    stages: &[Stage::Join, Stage::Ready],
    behind: &["KubeletStopped"],
    weigh: |case, differential| {
        let touched = || case.class().filter(|_| case.node.is_none() && !differential.text_joins).and_then(sets_clock);
        let ahead = case.node.and_then(|node| ahead(case, node));
        let seen = ahead.or_else(touched)?;
        Some(
            Suspicion::new(
                "Perhaps the clock of the instance is wrong, so certificates and tokens are not valid at its time.",
                CONSOLE,
                "certificate has expired or is not yet valid; chronyd without a source",
            )
            .telling(Some(seen))
            .consistent(differential.together().filter(|_| case.node.is_none())),
        )
    },
};

/// The line of user data that sets the clock or its source.
fn sets_clock(class: &NodeClass) -> Option<String> {
    const NAMES: [&str; 4] = ["timedatectl", "chrony", "ntpd", "settings.ntp"];
    let text = class.spec.user_data.as_deref()?;
    let (at, name) = NAMES.iter().find_map(|name| Some((text.find(name)?, name)))?;
    let line = excerpt(text, Span { start: at, end: at + name.len() }).shown;
    Some(format!("user data sets the clock: `{}`", line.trim()))
}

/// The kubelet dates its events, and the API server records when they arrived.
/// Source: client-go v0.36.3 tools/record/event.go `makeEvent`.
fn ahead(case: &Case, node: &Node) -> Option<String> {
    const TOO_FAR: TimeDelta = TimeDelta::minutes(2);
    let of_kubelet = case.cluster.events("Node", node.name()).filter(|event| event.reporter() == "kubelet");
    let mut dated = of_kubelet.filter_map(|event| Some((event.first_timestamp?, event.metadata.creation_timestamp?)));
    let (said, came) = dated.find(|(said, came)| *said - *came > TOO_FAR)?;
    Some(format!("the kubelet dated an event {} that arrived at {}", timestamp(said), timestamp(came)))
}

/// Only a webhook's log shows whether it refuses.
pub const ADMISSION: CauseCandidate = CauseCandidate {
    cause: "AdmissionRefusesNode",
    stages: &[Stage::Join, Stage::Register],
    behind: &[],
    weigh: |case, differential| {
        let (summary, seen) = match case.node {
            Some(node) => (
                format!("Perhaps an admission webhook or policy refuses Karpenter's changes of Node {}.", node.name()),
                "the Node exists, but Karpenter cannot mark it as registered",
            ),
            None => (
                "Perhaps an admission webhook or policy refuses the Node that the kubelet creates.".to_owned(),
                differential.reporting.as_ref().map(|_| REPORTS).or_else(|| differential.together())?,
            ),
        };
        Some(
            Suspicion::new(
                summary,
                "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations,validatingadmissionpolicies \
                 -o yaml",
                "rules for nodes with failurePolicy: Fail",
            )
            .telling((seen == REPORTS).then_some(seen))
            .consistent((seen != REPORTS).then_some(seen)),
        )
    },
};

const REPORTS: &str = "a kubelet reports, but its Node does not exist";
