//! The kubelet runs and is turned away.

use super::{CauseCandidate, Suspicion};
use crate::api::Stage;
use crate::case::Case;
use crate::rules::shared::{access_entry, commands};

/// EKS has the entries, and nobody else: AWS is asked, or somebody.
pub const ROLE_NOT_LET_IN: CauseCandidate = CauseCandidate {
    cause: "NodeRoleHasNoAccessEntry",
    stages: &[Stage::Join],
    behind: &[],
    weigh: |case, differential| {
        let role = differential.role.filter(|_| !differential.is_let_in)?;
        let wanted = access_entry::type_for(case);
        let of_another = differential
            .differs("role")
            .map(|(nearest, role)| format!("machines of {}, which have the role {}, join", nearest.class, role.theirs));
        let never = differential.worked_before().is_none() && of_another.is_none();
        let by_map = match case.cluster.aws_auth() {
            Some(_) => format!("aws-auth does not map {role}"),
            None => "no aws-auth is seen that lets the role in: it takes an access entry".to_owned(),
        };
        Some(
            Suspicion::new(
                format!("The access entry of the node role {role} is missing, or is of type STANDARD and not {wanted}: the kubelet is turned away."),
                entry_command(case, role),
                format!("no such entry, or a type other than {wanted}"),
            )
            .telling(of_another)
            .consistent(never.then(|| format!("no machine with the role {role} has joined")))
            .consistent(Some(by_map))
            .unlikely(differential.worked_before()),
        )
    },
};

/// Kubelets that were let in fall silent together once their role no longer is.
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
                    "The node role {role} is no longer let in: its access entry, or its line in aws-auth, is gone."
                ),
                entry_command(case, role),
                "no such entry, and no line for the role in aws-auth",
            )
            .telling(Some(format!(
                "every Node of NodePool {} fell silent, those of {} are Ready",
                split.value, split.elsewhere
            ))),
        )
    },
};

fn entry_command(case: &Case, role: &str) -> String {
    let cluster = case.cluster_name().unwrap_or("CLUSTER");
    format!("aws eks describe-access-entry --cluster-name {cluster} --principal-arn {}", commands::role_arn(role, None))
}

/// Karpenter writes the endpoint into user data; it looks it up itself where nobody sets it.
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
                    "CLUSTER_ENDPOINT of Deployment {}, {endpoint}, is not this cluster's: machines join elsewhere.",
                    karpenter.deployment
                ),
                format!("aws eks describe-cluster --name {cluster} --query cluster.endpoint"),
                format!("an address other than {endpoint}"),
            )
            .consistent(Some("CLUSTER_ENDPOINT is set by hand, and Karpenter passes it on unchecked"))
            .consistent(Some(never)),
        )
    },
};

/// Whether a webhook refuses only its log says.
pub const ADMISSION: CauseCandidate = CauseCandidate {
    cause: "AdmissionRefusesNode",
    stages: &[Stage::Join, Stage::Register],
    behind: &[],
    weigh: |case, differential| {
        let (summary, seen) = match case.node {
            Some(node) => (
                format!("An admission webhook or policy refuses Karpenter's changes of Node {}.", node.name()),
                "the Node is there, and Karpenter cannot mark it as registered",
            ),
            None => (
                "An admission webhook or policy refuses the Node that the kubelet creates.".to_owned(),
                differential.together()?,
            ),
        };
        Some(
            Suspicion::new(
                summary,
                "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations,validatingadmissionpolicies -o yaml",
                "rules for nodes with failurePolicy: Fail",
            )
            .consistent(Some(seen)),
        )
    },
};
