//! The permission in the cluster that Karpenter lacks, and the ClusterRole of its chart that should grant it.

use crate::api::Blame;
use crate::case::Case;
use crate::case::finding::Finding;
use crate::upstream::karpenter::{Karpenter, Version};

/// A request on the whole cluster that the API server denies.
#[derive(Debug, PartialEq, Eq)]
struct DeniedRequest<'t> {
    verb: &'t str,
    resource: &'t str,
    /// Empty for the core group.
    group: &'t str,
}

/// Blames the ClusterRole that lacks what the log line names, and says how to add it.
pub(crate) fn onto(case: &Case, finding: Finding, line: &str, deployment: &str) -> Finding {
    // In a record of JSON the quotes are escaped.
    let line = line.replace('\\', "");
    let finding = match denied(&line) {
        Some(denied) => {
            let role = cluster_role(deployment, denied.group, case.karpenter());
            let blame = Blame::object("rbac.authorization.k8s.io/v1", "ClusterRole", &role).field("rules");
            finding.blaming(blame).fix(fix(&denied, &role, case.karpenter()))
        }
        None => finding.blaming(Blame::object("rbac.authorization.k8s.io/v1", "ClusterRole", deployment)).fix(
            "Give Karpenter's ServiceAccount the permission that the log line names: install the chart of the image's \
             version with its ClusterRoles.",
        ),
    };
    finding.inspect(
        "See what its ClusterRoles permit",
        "kubectl get clusterroles -l app.kubernetes.io/name=karpenter -o yaml".to_owned(),
    )
}

/// `cannot list resource "nodeclaims" in API group "karpenter.sh" at the cluster scope`
/// Source: apiserver v0.36.3 pkg/endpoints/handlers/responsewriters/errors.go `forbiddenMessage`.
fn denied(line: &str) -> Option<DeniedRequest<'_>> {
    let (_, request) = line.split_once(" cannot ")?;
    let (verb, _) = request.split_once(' ')?;
    let (resource, group) = (quoted(request, "resource")?, quoted(request, "API group")?);
    request.contains("at the cluster scope").then_some(DeniedRequest { verb, resource, group })
}

fn quoted<'t>(text: &'t str, after: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(after)?;
    rest.trim_start().strip_prefix('"')?.split_once('"').map(|(quoted, _)| quoted)
}

/// The chart divides Karpenter's permissions: those on AWS's own kinds and on webhooks have their own ClusterRole.
/// Sources: karpenter-provider-aws v0.19.0, v0.37.0, v1.14.1 charts/karpenter/templates/clusterrole.yaml,
/// clusterrole-core.yaml; before 0.19 there is one.
fn cluster_role(deployment: &str, group: &str, karpenter: Option<&Karpenter>) -> String {
    const OF_PROVIDER: [&str; 2] = ["karpenter.k8s.aws", "admissionregistration.k8s.io"];
    let is_divided = karpenter.is_none_or(|karpenter| karpenter.version >= Version(0, 19, 0));
    if is_divided && !OF_PROVIDER.contains(&group) { format!("{deployment}-core") } else { deployment.to_owned() }
}

fn fix(denied: &DeniedRequest, role: &str, karpenter: Option<&Karpenter>) -> String {
    let DeniedRequest { verb, resource, group } = denied;
    // What it lists it watches too. Source: client-go v0.36.3 tools/cache/reflector.go `ListAndWatchWithContext`.
    let verbs = if ["list", "watch"].contains(verb) { "list and watch" } else { *verb };
    let of_group = if group.is_empty() { "the core API group".to_owned() } else { format!("API group {group}") };
    let add = format!(
        "Add a rule to ClusterRole {role} that permits {verbs} of {resource} ({of_group}). If it has the rule, bind \
         Karpenter's ServiceAccount to it. Karpenter then starts by itself, and no node is disrupted."
    );
    let Some(Karpenter { version, chart: Some(chart), .. }) = karpenter else {
        return format!(
            "{add} If the installed chart is older than Karpenter's image, install the chart of the image's version \
             instead."
        );
    };
    if chart == version {
        format!(
            "{add} The installed chart is {chart}, as the image is. To install it again helps only if the ClusterRole \
             was changed. A later patch release may contain the rule."
        )
    } else {
        format!(
            "{add} Or install chart {version} with its ClusterRoles: the installed chart is {chart}, and the image is \
             {version}."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::Deployment;
    use serde_json::json;

    #[test]
    fn the_denied_request_is_read_from_the_line() {
        let line = "customresourcedefinitions.apiextensions.k8s.io is forbidden: User \
                    \"system:serviceaccount:kube-system:karpenter\" cannot list resource \
                    \"customresourcedefinitions\" in API group \"apiextensions.k8s.io\" at the cluster scope";
        let request =
            DeniedRequest { verb: "list", resource: "customresourcedefinitions", group: "apiextensions.k8s.io" };
        assert_eq!(denied(line), Some(request));
        // A Role of one namespace is no ClusterRole.
        assert_eq!(denied(&line.replace("at the cluster scope", "in the namespace \"kube-system\"")), None);
        assert_eq!(denied("nodes is forbidden: no reason"), None);
    }

    #[test]
    fn each_group_has_its_cluster_role() {
        assert_eq!(cluster_role("karpenter", "apiextensions.k8s.io", None), "karpenter-core");
        assert_eq!(cluster_role("karpenter", "", None), "karpenter-core");
        assert_eq!(cluster_role("karpenter", "karpenter.k8s.aws", None), "karpenter");
    }

    #[test]
    fn the_chart_is_installed_again_only_if_it_is_another_one() {
        let advice = |chart: Option<&str>| {
            let labels = chart.map_or_else(|| json!({}), |chart| json!({"helm.sh/chart": chart}));
            let containers = json!([{"image": "public.ecr.aws/karpenter/controller:1.0.4"}]);
            let deployment = json!({
                "metadata": {"name": "karpenter", "labels": labels},
                "spec": {"template": {"spec": {"containers": containers}}},
            });
            let deployment: Deployment = serde_json::from_value(deployment).expect("a Deployment");
            let karpenter = Karpenter::from_deployment(&deployment);
            let denied = DeniedRequest { verb: "list", resource: "pods", group: "" };
            fix(&denied, "karpenter-core", karpenter.as_ref())
        };
        let same = advice(Some("karpenter-1.0.4"));
        assert!(same.contains("ClusterRole karpenter-core that permits list and watch of pods"), "{same}");
        assert!(same.contains("helps only if the ClusterRole was changed"), "{same}");
        assert!(advice(Some("karpenter-0.37.0")).contains("Or install chart 1.0.4"));
        assert!(advice(None).contains("If the installed chart is older"));
    }
}
