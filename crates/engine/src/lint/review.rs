//! The same checks of one object before it is stored, for an admission webhook.
//!
//! Only findings about the object itself count. Whoever applies it cannot change the others with it, and may not know
//! them.

use super::{Level, LintFinding, lint_cluster};
use crate::cluster_state::ClusterState;
use crate::cluster_state::surroundings::Surroundings;
use crate::lint::upgrade::Target;
use crate::objects::input::Object;
use chrono::{DateTime, Utc};

/// What it would be wrong to say before an object is stored: `kubectl apply` sends a NodePool before or just after its
/// node class, and nodewhy hears of the class a moment later.
const LATER: &[&str] = &["DanglingNodeClassRef"];

/// Lints an object together with what the cluster has. Errors come first.
pub fn lint_object(object: &Object, surroundings: &Surroundings, now: DateTime<Utc>) -> Vec<LintFinding> {
    if !is_linted(object) {
        return Vec::new();
    }
    let mut findings = about(object, surroundings.with(object.clone(), now), now);
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.level));
    findings
}

/// The object without the parts of its status that Karpenter wrote for another spec. An update of the spec leaves the
/// status as it was: images that the selector no longer selects, and conditions of a mistake that is corrected.
pub fn without_stale_status(object: Object, old: &Object) -> Object {
    match (object, old) {
        (Object::NodeClass(mut class), Object::NodeClass(old)) if class.spec != old.spec => {
            let (new, old, status) = (&class.spec, &old.spec, &mut class.status);
            status.conditions.clear();
            if (&new.ami_family, &new.ami_selector_terms) != (&old.ami_family, &old.ami_selector_terms) {
                status.amis.clear();
            }
            if new.subnet_selector_terms != old.subnet_selector_terms {
                status.subnets.clear();
            }
            if new.security_group_selector_terms != old.security_group_selector_terms {
                status.security_groups.clear();
            }
            if new.capacity_reservation_selector_terms != old.capacity_reservation_selector_terms {
                status.capacity_reservations.clear();
            }
            if (&new.role, &new.instance_profile) != (&old.role, &old.instance_profile) {
                status.instance_profile = None;
            }
            Object::NodeClass(class)
        }
        (Object::NodePool(mut pool), Object::NodePool(old)) if pool.spec != old.spec => {
            pool.status.conditions.clear();
            Object::NodePool(pool)
        }
        (object, _) => object,
    }
}

/// The errors that the object proves by itself, whatever is applied with it: `findings` without those that need another
/// object of the cluster.
pub fn certain<'f>(
    findings: &'f [LintFinding],
    object: &Object,
    surroundings: &Surroundings,
    now: DateTime<Utc>,
) -> Vec<&'f LintFinding> {
    let mut errors: Vec<_> = findings.iter().filter(|finding| finding.level == Level::Error).collect();
    if !errors.is_empty() {
        let alone = about(object, surroundings.with_only(object.clone(), now), now);
        errors.retain(|error| alone.iter().any(|own| own.level == Level::Error && is_same(own, error)));
    }
    errors
}

fn is_same(a: &LintFinding, b: &LintFinding) -> bool {
    (&a.cause, &a.blame.field, a.line) == (&b.cause, &b.blame.field, b.line)
}

fn is_linted(object: &Object) -> bool {
    match object {
        Object::NodeClass(class) => class.is_ec2(),
        Object::NodePool(_) | Object::NodeOverlay(_) => true,
        Object::AwsAuth(map) => map.is("kube-system", "aws-auth"),
        _ => false,
    }
}

fn about(object: &Object, mut state: ClusterState, now: DateTime<Utc>) -> Vec<LintFinding> {
    let kind = match object {
        Object::NodeClass(class) => class.kind.as_str(),
        Object::NodePool(_) => "NodePool",
        Object::NodeOverlay(_) => "NodeOverlay",
        _ => "ConfigMap",
    };
    let mut findings = lint_cluster(&mut state, Target::default(), now, &|| ()).findings;
    let name = &object.meta().name;
    findings.retain(|finding| {
        let blame = &finding.blame;
        blame.kind == kind && *blame.name == **name && !LATER.contains(&&*finding.cause)
    });
    findings
}

#[cfg(test)]
mod tests {
    use super::{certain, lint_object, without_stale_status};
    use crate::cluster_state::ClusterState;
    use crate::cluster_state::surroundings::Surroundings;
    use crate::lint::LintFinding;
    use crate::objects::ApiServerFacts;
    use crate::objects::input::{Input, Object};
    use crate::objects::sink::Sink;
    use chrono::{DateTime, Utc};
    use serde_json::{Value, json};

    const CONFIG: &str = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    flags:\n";
    const MISTAKE: &str = "    - --node-labels=node-role.kubernetes.io/batch=true\n";
    const FINE: &str = "    - --v=4\n";

    fn now() -> DateTime<Utc> {
        "2026-01-15T12:00:00Z".parse().unwrap()
    }

    fn hash() -> Value {
        json!({"karpenter.k8s.aws/ec2nodeclass-hash": "1", "karpenter.k8s.aws/ec2nodeclass-hash-version": "v4"})
    }

    fn object(input: Input, value: Value) -> Object {
        Object::from_value(input, value).unwrap()
    }

    fn class(flag: &str) -> Object {
        object(
            Input::NodeClasses,
            json!({
                "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass",
                "metadata": {"name": "batch", "uid": "1", "annotations": hash()},
                "spec": {"amiSelectorTerms": [{"alias": "al2023@latest"}], "role": "nodes", "userData": format!("{CONFIG}{flag}")},
            }),
        )
    }

    fn pool(capacity: &str) -> Object {
        object(
            Input::NodePools,
            json!({
                "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "batch", "uid": "2"},
                "spec": {"template": {"spec": {
                    "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "batch"},
                    "requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": [capacity]}],
                }}},
            }),
        )
    }

    fn joined() -> Object {
        let condition = |type_: &str| json!({"type": type_, "status": "True", "reason": type_, "lastTransitionTime": "2026-01-15T11:00:00Z"});
        object(
            Input::NodeClaims,
            json!({
                "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
                "metadata": {
                    "name": "batch-a", "uid": "3", "annotations": hash(), "labels": {"karpenter.sh/nodepool": "batch"},
                    "creationTimestamp": "2026-01-15T11:00:00Z",
                },
                "spec": {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "batch"}},
                "status": {"providerID": "aws:///eu-west-1a/i-0a", "conditions": [condition("Launched"), condition("Registered")]},
            }),
        )
    }

    fn cluster(objects: impl IntoIterator<Item = Object>) -> Surroundings {
        let mut state = ClusterState::default();
        for object in objects {
            state.apply(object, now());
        }
        state.surroundings().unwrap()
    }

    fn causes(findings: &[LintFinding]) -> Vec<&str> {
        findings.iter().map(|finding| finding.cause.as_str()).collect()
    }

    fn found(reviewed: &Object, cluster: &Surroundings) -> Vec<LintFinding> {
        lint_object(reviewed, cluster, now())
    }

    #[test]
    fn a_new_class_is_judged_and_no_other_object_with_it() {
        let empty = cluster([]);
        assert_eq!(causes(&found(&class(MISTAKE), &empty)), ["KubeletRefusesLabels"]);
        assert_eq!(causes(&found(&class(FINE), &empty)), [""; 0]);
        // The mistake is the stored class's, which whoever applies the NodePool does not change.
        let stored = cluster([class(MISTAKE)]);
        assert_eq!(causes(&found(&pool("spot"), &stored)), [""; 0]);
    }

    #[test]
    fn a_class_is_judged_for_the_version_that_the_cluster_has() {
        let of_version = |version: Option<&str>| {
            let mut state = ClusterState::default();
            let version = version.map(str::to_owned);
            state.of_api_server(ApiServerFacts { address: None, version });
            state.surroundings().unwrap()
        };
        let reviewed = class("    - --pod-infra-container-image=pause\n");
        assert_eq!(causes(&found(&reviewed, &of_version(Some("v1.35.1")))), ["KubeletFlagRemoved"]);
        assert_eq!(causes(&found(&reviewed, &of_version(Some("v1.34.5")))), [""; 0]);
        assert_eq!(causes(&found(&reviewed, &of_version(None))), [""; 0]);
    }

    #[test]
    fn an_overlay_is_judged_too() {
        let overlay = |capacity: Value| {
            let spec = json!({"requirements": [], "capacity": capacity});
            let overlay = json!({"metadata": {"name": "network", "uid": "4"}, "spec": spec});
            object(Input::NodeOverlays, overlay)
        };
        let of_ec2 = found(&overlay(json!({"vpc.amazonaws.com/efa": "4"})), &cluster([]));
        assert_eq!(causes(&of_ec2), ["CapacityOfEc2"]);
        assert_eq!(of_ec2[0].blame.field.as_deref(), Some("spec.capacity['vpc.amazonaws.com/efa']"));
        assert_eq!(causes(&found(&overlay(json!({"smarter-devices/fuse": "4"})), &cluster([]))), [""; 0]);
    }

    #[test]
    fn a_node_that_joined_contradicts_a_finding_about_the_same_text_and_not_about_a_new_one() {
        let with_node = |stored: &str| cluster([class(stored), pool("spot"), joined()]);
        assert_eq!(causes(&found(&class(MISTAKE), &with_node(MISTAKE))), [""; 0]);
        // The object of a review has the hash of the text before.
        assert_eq!(causes(&found(&class(MISTAKE), &with_node(FINE))), ["KubeletRefusesLabels"]);
    }

    #[test]
    fn the_images_of_the_former_selector_say_nothing_about_the_new_one() {
        let of_alias = |alias: &str| {
            let ami = json!({"id": "ami-0a", "name": "amazon-eks-node-al2023-x86_64-standard-1.33-v20251112"});
            object(
                Input::NodeClasses,
                json!({
                    "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "batch", "uid": "1"},
                    "spec": {"amiSelectorTerms": [{"alias": alias}], "role": "nodes"}, "status": {"amis": [ami]},
                }),
            )
        };
        let (old, new) = (of_alias("al2023@latest"), of_alias("bottlerocket@latest"));
        let stored = cluster([old.clone()]);
        assert_eq!(causes(&found(&new, &stored)), ["AmiFamilyMismatch"], "as if Karpenter had selected it");
        assert_eq!(causes(&found(&without_stale_status(new.clone(), &old), &stored)), [""; 0]);
        assert_eq!(without_stale_status(new.clone(), &new), new);
    }

    #[test]
    fn a_nodepool_may_come_before_its_class() {
        assert_eq!(causes(&found(&pool("spot"), &cluster([]))), [""; 0]);
    }

    #[test]
    fn an_error_is_certain_only_if_the_object_proves_it_by_itself() {
        let empty = cluster([]);
        let reviewed = class(MISTAKE);
        let findings = found(&reviewed, &empty);
        assert_eq!(certain(&findings, &reviewed, &empty, now()).len(), 1);
        // The class may be applied just after the NodePool, with reservations.
        let stored = cluster([class(FINE)]);
        let reviewed = pool("reserved");
        let findings = found(&reviewed, &stored);
        assert_eq!(findings.len(), 1, "{findings:#?}");
        assert_eq!(certain(&findings, &reviewed, &stored, now()), [] as [&LintFinding; 0]);
    }

    #[test]
    fn of_aws_auth_the_flawed_entry_is_found() {
        let entry = "- rolearn: arn:aws:iam::111122223333:role/nodes\n  username: system:node:{{EC2PrivateDnsName}}\n  \
            groups: [system:bootstrappers, system:nodes]\n";
        let auth = |name: &str| {
            object(
                Input::AwsAuth,
                json!({"metadata": {"name": name, "namespace": "kube-system", "uid": "4"}, "data": {"mapRoles": entry}}),
            )
        };
        let stored = cluster([class(FINE), pool("spot")]);
        assert_eq!(causes(&found(&auth("aws-auth"), &stored)), ["AwsAuthEntryIncomplete"]);
        assert_eq!(causes(&found(&auth("other"), &stored)), [""; 0]);
    }
}
