//! The same checks of the objects of a cluster.
//!
//! A finding names an object and its field, and a line and a column only within the text of that field.

use super::ignore::Ignores;
use super::place::Place;
use super::upgrade::{Target, Upgrade};
use super::{Cluster, LintFinding, Mistake, Report};
use crate::api::Blame;
use crate::cluster_state::ClusterState;
use chrono::{DateTime, Utc};

/// Lints the node classes, NodePools and aws-auth of a cluster. Nodes that joined count as evidence, so a mistake that
/// they contradict is none. Calls `tells` after each node class, because many take long.
///
/// A class or NodePool whose status already says that it fails is left to `diagnose`. `named` has the versions of an
/// upgrade; without them, the version counts that the API server has now.
pub fn lint_cluster(state: &mut ClusterState, named: Target, now: DateTime<Utc>, tells: &dyn Fn()) -> Report {
    let mut report = Report { upgrade: Upgrade::to(named), ..Report::default() };
    if state.is_before_machines() {
        report.notes.push("Karpenter before 0.32 is not checked".to_owned());
        return report;
    }
    if let Some(upgrade) = &mut report.upgrade {
        upgrade.look_at(state);
    }
    if let Some(version) = named.karpenter {
        state.suppose_karpenter(version);
    }
    // The machines that do not exist are no answer of the API server, and nothing that is known of the others changes.
    let aside = state.set_aside();
    let target = Target { kubernetes: named.kubernetes.or(state.api_server().minor()), ..named };
    let mut cluster = Cluster { state: std::mem::take(state), target, is_live: true, ..Cluster::default() };
    let mistakes = cluster.mistakes(Vec::new(), now, &mut report.notes, tells);
    *state = cluster.state;
    state.take_back(aside);

    let texts = texts(state);
    report.looked_at = texts.len();
    let mut ignores = Ignores::default();
    for (object, text) in &texts {
        ignores.read(&object.object, text.unwrap_or_default(), 1, object);
    }
    let is_there = |mistake: &Mistake| texts.iter().any(|(object, _)| object.object == mistake.blame.object);
    report.findings = mistakes.into_iter().filter(is_there).map(in_object).collect();
    ignores.apply(&mut report.findings);
    report.findings.sort_by(|a, b| (&a.file, a.line, a.column, &a.cause).cmp(&(&b.file, b.line, b.column, &b.cause)));
    report.findings.dedup_by(|a, b| (a.line, a.column, &a.cause, &a.blame) == (b.line, b.column, &b.cause, &b.blame));
    for finding in &mut report.findings {
        finding.file.clear();
    }
    report
}

/// The objects that are checked, each with its text that may hold comments. An object that is being deleted launches
/// nothing any more.
fn texts(state: &ClusterState) -> Vec<(Blame, Option<&str>)> {
    let classes = state.classes().map(|facts| &facts.class);
    let classes = classes
        .filter(|class| class.is_ec2() && !class.is_node_template() && class.metadata.deletion_timestamp.is_none());
    let classes = classes.map(|class| (Blame::class(class).field("spec.userData"), class.spec.user_data.as_deref()));
    let pools = state.pools().filter(|pool| !pool.is_provisioner() && pool.metadata.deletion_timestamp.is_none());
    let pools = pools.map(|pool| (Blame::object("karpenter.sh/v1", "NodePool", pool.name()), None));
    let overlays = state.node_overlays().filter(|overlay| overlay.metadata.deletion_timestamp.is_none());
    let overlays =
        overlays.map(|overlay| (Blame::object("karpenter.sh/v1alpha1", "NodeOverlay", overlay.name()), None));
    let auth = state.aws_auth().map(|auth| {
        let map = Blame::object("v1", "ConfigMap", "aws-auth").namespace("kube-system").field("data.mapRoles");
        (map, Some(auth.map_roles.as_str()))
    });
    classes.chain(pools).chain(overlays).chain(auth).collect()
}

/// The finding, with its place in the object. Its file is the object for as long as comments are matched with it.
fn in_object(mistake: Mistake) -> LintFinding {
    let (line, column) = mistake.within().unwrap_or_default();
    let at = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let place = Place { line: at(line), column: at(column), exact: true };
    let object = mistake.blame.object.clone();
    mistake.at(&object, place)
}

#[cfg(test)]
mod tests {
    use super::lint_cluster;
    use crate::cluster_state::memo::Memo;
    use crate::cluster_state::{Availability, ClusterState};
    use crate::lint::LintFinding;
    use crate::lint::upgrade::Target;
    use crate::objects::input::{Input, Object};
    use chrono::{DateTime, Utc};
    use serde_json::{Value, json};

    const NOW: &str = "2026-01-15T12:00:00Z";
    const CONFIG: &str = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    flags:\n";
    const LABEL: &str = "    - --node-labels=node-role.kubernetes.io/batch=true";

    fn now() -> DateTime<Utc> {
        NOW.parse().unwrap()
    }

    fn hash(hash: &str) -> Value {
        json!({"karpenter.k8s.aws/ec2nodeclass-hash": hash, "karpenter.k8s.aws/ec2nodeclass-hash-version": "v4"})
    }

    fn class(user_data: &str) -> Value {
        json!({
            "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass",
            "metadata": {"name": "batch", "uid": "1", "annotations": hash("1")},
            "spec": {"amiSelectorTerms": [{"alias": "al2023@latest"}], "role": "nodes", "userData": user_data},
        })
    }

    fn pool(class: &str) -> Value {
        json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "batch", "uid": "2"},
            "spec": {"template": {"spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": class},
            }}},
        })
    }

    /// A NodeClaim of the class, made from the text with this hash.
    fn claim(of_text: &str, registered: &str) -> Value {
        let condition = |type_: &str, status: &str| json!({"type": type_, "status": status, "reason": type_, "lastTransitionTime": "2026-01-15T11:00:00Z"});
        json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {
                "name": "batch-a", "uid": "3", "annotations": hash(of_text), "creationTimestamp": "2026-01-15T11:00:00Z",
                "labels": {"karpenter.sh/nodepool": "batch"},
            },
            "spec": {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "batch"}},
            "status": {
                "providerID": "aws:///eu-west-1a/i-0a",
                "conditions": [condition("Launched", "True"), condition("Registered", registered)],
            },
        })
    }

    fn cluster(objects: &[(Input, Value)]) -> ClusterState {
        let mut state = ClusterState::default();
        for (input, object) in objects {
            state.apply(Object::from_value(*input, object.clone()).unwrap(), now());
        }
        state
    }

    fn found(objects: &[(Input, Value)]) -> Vec<LintFinding> {
        lint_cluster(&mut cluster(objects), Target::default(), now(), &|| ()).findings
    }

    fn causes(findings: &[LintFinding]) -> Vec<&str> {
        findings.iter().map(|finding| finding.cause.as_str()).collect()
    }

    #[test]
    fn a_finding_names_object_and_field_and_its_line_is_that_of_the_user_data() {
        let text = format!("{CONFIG}{LABEL}\n");
        let found = found(&[(Input::NodeClasses, class(&text)), (Input::NodePools, pool("batch"))]);
        let [finding] = &*found else { panic!("{found:#?}") };
        assert_eq!(finding.cause, "KubeletRefusesLabels");
        assert_eq!((&*finding.file, finding.line, finding.blame.line), ("", 6, Some(6)));
        assert_eq!(finding.blame.object, "EC2NodeClass/batch");
        assert_eq!(finding.blame.field.as_deref(), Some("spec.userData"));
    }

    #[test]
    fn the_check_leaves_the_cluster_as_it_was() {
        static CLAIMS: Memo<usize> = Memo::new("how many NodeClaims");
        let text = format!("{CONFIG}{LABEL}\n");
        let mut state = cluster(&[(Input::NodeClasses, class(&text)), (Input::NodePools, pool("batch"))]);
        state.mark(Input::NodeClaims, Availability::Missing("not permitted".to_owned()));
        let claims = |state: &ClusterState, not_known: usize| *state.once(&CLAIMS, "", || not_known);
        assert_eq!(claims(&state, 0), 0);
        let first = lint_cluster(&mut state, Target::default(), now(), &|| ());
        assert_eq!(first.looked_at, 2);
        assert_eq!((state.claims().count(), state.nodes().count()), (0, 0));
        assert_eq!(state.missing(Input::NodeClaims), Some("not permitted"));
        assert_eq!(claims(&state, 1), 0, "what was derived before is not computed again");
        assert!(state.class("EC2NodeClass", "batch").is_some() && state.pool("batch").is_some());
        assert_eq!(lint_cluster(&mut state, Target::default(), now(), &|| ()), first, "a second check finds the same");
    }

    #[test]
    fn a_node_that_joined_with_the_same_text_contradicts_the_finding_and_no_other_does() {
        let text = format!("{CONFIG}{LABEL}\n");
        let finding = &["KubeletRefusesLabels"][..];
        for (of_text, registered, expected) in
            [("1", "True", &[][..]), ("0", "True", finding), ("1", "Unknown", finding)]
        {
            let found = found(&[
                (Input::NodeClasses, class(&text)),
                (Input::NodePools, pool("batch")),
                (Input::NodeClaims, claim(of_text, registered)),
            ]);
            assert_eq!(causes(&found), expected, "{of_text} {registered}");
        }
    }

    #[test]
    fn a_class_that_is_being_deleted_launches_nothing_any_more() {
        let mut leaving = class(&format!("{CONFIG}{LABEL}\n"));
        leaving["metadata"]["deletionTimestamp"] = json!(NOW);
        assert_eq!(causes(&found(&[(Input::NodeClasses, leaving)])), [""; 0]);
    }

    #[test]
    fn a_comment_in_user_data_silences_the_finding() {
        let because = "    # nodewhy: ignore[KubeletRefusesLabels] the kubelet is our own";
        let silenced = class(&format!("{CONFIG}{because}\n{LABEL}\n"));
        assert_eq!(causes(&found(&[(Input::NodeClasses, silenced)])), [""; 0]);
        let unused = found(&[(Input::NodeClasses, class(&format!("{CONFIG}{because}\n    - --v=4\n")))]);
        assert_eq!((causes(&unused), unused[0].line), (vec!["UnusedIgnore"], 6));
    }

    #[test]
    fn a_nodepool_names_a_class_that_the_cluster_lacks() {
        let plain = || (Input::NodeClasses, class(&format!("{CONFIG}    - --v=4\n")));
        assert_eq!(causes(&found(&[plain(), (Input::NodePools, pool("batch"))])), [""; 0]);
        let found_other = found(&[plain(), (Input::NodePools, pool("bach"))]);
        assert_eq!(causes(&found_other), ["DanglingNodeClassRef"]);
        assert!(found_other[0].message.ends_with("which the cluster does not have."), "{}", found_other[0].message);
        assert_eq!(found_other[0].line, 0);
        assert_eq!(causes(&found(&[(Input::NodePools, pool("batch"))])), [""; 0], "the classes were not read");
    }

    #[test]
    fn an_entry_of_aws_auth_is_no_mistake_if_a_node_with_its_role_joined_since() {
        let entry = "- rolearn: arn:aws:iam::111122223333:role/nodes\n  username: system:node:{{EC2PrivateDnsName}}\n  \
            groups: [system:bootstrappers, system:nodes]\n";
        let auth = |written: &str| {
            json!({
                "metadata": {
                    "name": "aws-auth", "namespace": "kube-system", "uid": "4",
                    "managedFields": [{
                        "manager": "kubectl", "operation": "Update", "apiVersion": "v1", "time": written,
                        "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {}},
                    }],
                },
                "data": {"mapRoles": entry},
            })
        };
        let node = json!({
            "metadata": {"name": "ip-10-0-0-1", "uid": "5", "creationTimestamp": "2026-01-15T11:00:00Z"},
            "spec": {"providerID": "aws:///eu-west-1a/i-0a"},
            "status": {"conditions": [{
                "type": "Ready", "status": "True", "reason": "KubeletReady", "lastTransitionTime": "2026-01-15T11:00:00Z",
            }]},
        });
        let plain = class(&format!("{CONFIG}    - --v=4\n"));
        let about_auth = |written: &str| {
            let found = found(&[
                (Input::NodeClasses, plain.clone()),
                (Input::NodePools, pool("batch")),
                (Input::NodeClaims, claim("1", "True")),
                (Input::Nodes, node.clone()),
                (Input::AwsAuth, auth(written)),
            ]);
            found.iter().filter(|finding| finding.blame.kind == "ConfigMap").count()
        };
        // The node joined at 11:00.
        assert_eq!((about_auth("2026-01-15T10:00:00Z"), about_auth("2026-01-15T11:30:00Z")), (0, 1));
    }
}
