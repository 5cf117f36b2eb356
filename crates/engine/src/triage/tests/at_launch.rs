//! A node class or a NodePool is changed while machines are stuck that were launched with what it said before.

use super::{applied, at, condition, diagnosis, fresh, removed, started, writes};
use crate::api::{NodeDiagnosis, Outcome};
use crate::cluster_state::Touched;
use crate::objects::input::{Input, Object};
use crate::triage::change::Change;
use crate::triage::{Order, Triage};
use serde_json::{Value, json};

const REFUSED_LABEL: &str = "node-role.kubernetes.io/worker=";
const GOOD_LABEL: &str = "node.kubernetes.io/lifecycle=spot";

fn class(label: &str, hash: &str, version: &str) -> Value {
    json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass",
        "metadata": {
            "name": "default", "uid": "5",
            "annotations": {
                "karpenter.k8s.aws/ec2nodeclass-hash": hash, "karpenter.k8s.aws/ec2nodeclass-hash-version": version,
            },
            "managedFields": [{ "manager": "kubectl", "time": "2026-11-21T10:06:00Z", "fieldsV1": { "f:spec": {} } }],
        },
        "spec": {
            "amiFamily": "Custom", "amiSelectorTerms": [{ "id": "ami-0a" }],
            "userData": format!(
                "#!/bin/bash\n/etc/eks/bootstrap.sh shop --kubelet-extra-args '--node-labels={label} \
                 --register-with-taints=karpenter.sh/unregistered:NoExecute'\n"
            ),
        },
    })
}

/// It was launched and never joined.
fn claim(hash: &str, version: &str) -> Value {
    let conditions = [condition("Launched", "True", "Launched"), condition("Registered", "Unknown", "NodeNotFound")];
    let mut claim = super::claim(&conditions, None);
    claim["status"]["imageID"] = json!("ami-0a");
    claim["metadata"]["annotations"] = json!({
        "karpenter.k8s.aws/ec2nodeclass-hash": hash, "karpenter.k8s.aws/ec2nodeclass-hash-version": version,
    });
    claim
}

fn of_class(triage: &mut Triage, class: Value, minute: i64) -> Vec<NodeDiagnosis> {
    triage.take(applied(Input::NodeClasses, class), at(minute, 0));
    said(triage, minute)
}

fn said(triage: &mut Triage, minute: i64) -> Vec<NodeDiagnosis> {
    writes(triage.look(at(minute, 0))).into_iter().map(diagnosis).collect()
}

fn verdict(diagnosis: &NodeDiagnosis) -> (String, String) {
    let status = diagnosis.status.as_ref().unwrap();
    (status.cause.to_string(), format!("{:?}", status.confidence))
}

fn refuses_labels() -> (String, String) {
    ("KubeletRefusesLabels".to_owned(), "Certain".to_owned())
}

/// A triage and its verdict about one machine of a class with a label that the kubelet refuses.
fn stuck() -> (Triage, NodeDiagnosis) {
    let mut triage = started(Vec::new());
    triage.take(applied(Input::NodeClaims, claim("111", "v5")), at(6, 0));
    let mut said = of_class(&mut triage, class(REFUSED_LABEL, "111", "v5"), 6);
    assert_eq!(said.len(), 1);
    let said = said.remove(0);
    assert_eq!(verdict(&said), refuses_labels());
    (triage, said)
}

#[test]
fn a_class_that_is_repaired_takes_no_cause_from_the_machines_that_were_launched_before() {
    let (mut triage, _) = stuck();
    // The text first; Karpenter reckons its hash a moment later.
    assert_eq!(of_class(&mut triage, class(GOOD_LABEL, "111", "v5"), 7), []);
    assert_eq!(of_class(&mut triage, class(GOOD_LABEL, "222", "v5"), 7), []);
    for minute in 8..14 {
        triage.schedule.take(Touched::Everything);
        assert_eq!(triage.look(at(minute, 0)), [], "minute {minute}");
    }
    triage.take(removed(Some(claim("111", "v5"))), at(15, 2));
    let said = said(&mut triage, 15);
    assert_eq!(said.len(), 1);
    assert_eq!(verdict(&said[0]), refuses_labels());
    assert_eq!(said[0].outcome(), Some(Outcome::Terminated));
    assert_eq!(said[0].status.as_ref().unwrap().earlier, []);
}

#[test]
fn a_class_that_is_deleted_takes_no_cause_either() {
    let (mut triage, _) = stuck();
    let last = Object::from_value(Input::NodeClasses, class(REFUSED_LABEL, "111", "v5")).unwrap();
    let name = "default".to_owned();
    triage.take(
        Change::Removed { input: Input::NodeClasses, namespace: None, name, last: Some(Box::new(last)) },
        at(7, 0),
    );
    for minute in 7..12 {
        triage.schedule.take(Touched::Everything);
        assert_eq!(triage.look(at(minute, 0)), [], "minute {minute}");
    }
}

#[test]
fn another_kind_of_the_same_name_is_not_deleted_with_it() {
    let (mut triage, _) = stuck();
    let auto = json!({ "apiVersion": "eks.amazonaws.com/v1", "kind": "NodeClass", "metadata": { "name": "default" } });
    triage.take(applied(Input::NodeClasses, auto.clone()), at(7, 0));
    let last = Some(Box::new(Object::from_value(Input::NodeClasses, auto).unwrap()));
    let name = "default".to_owned();
    triage.take(Change::Removed { input: Input::NodeClasses, namespace: None, name, last }, at(7, 0));
    assert!(triage.cluster.class("NodeClass", "default").is_none());
    assert!(triage.cluster.class("EC2NodeClass", "default").is_some());
    assert_eq!(triage.look(at(7, 0)), []);
}

#[test]
fn the_next_machines_are_judged_by_what_the_class_says_now() {
    let (mut triage, _) = stuck();
    of_class(&mut triage, class(GOOD_LABEL, "222", "v5"), 7);
    let mut next = claim("222", "v5");
    next["metadata"]["name"] = json!("general-b");
    next["metadata"]["uid"] = json!("2");
    next["status"]["providerID"] = json!("aws:///eu-west-1a/i-0b");
    triage.take(applied(Input::NodeClaims, next), at(7, 0));
    triage.look(at(7, 0));
    let said = said(&mut triage, 12);
    let next: Vec<_> = said.iter().filter(|d| d.metadata.name.as_deref() == Some("general-b")).map(verdict).collect();
    assert!(!next.contains(&refuses_labels()), "{next:?}");
}

#[test]
fn nothing_is_certain_of_a_class_that_was_changed_after_the_launch() {
    let mut triage = started(Vec::new());
    triage.take(applied(Input::NodeClaims, claim("111", "v5")), at(6, 0));
    let said = of_class(&mut triage, class(REFUSED_LABEL, "222", "v5"), 6);
    assert_eq!(verdict(&said[0]).0, "Unknown");
    let status = said[0].status.as_ref().unwrap();
    let unknown = &status.unknowns[0];
    assert!(
        unknown.question.starts_with(
            "EC2NodeClass default changed after this node was launched (2026-11-21 10:06:00Z); its earlier user data \
             is not visible."
        ),
        "{unknown:?}"
    );
    assert!(unknown.command.contains("--instance-id i-0a --attribute userData"), "{unknown:?}");
}

#[test]
fn hashes_of_another_version_do_not_say_that_the_class_was_changed() {
    for (hash, version) in [("222", "v6"), ("111", "v5")] {
        let mut triage = started(Vec::new());
        triage.take(applied(Input::NodeClaims, claim("111", "v5")), at(6, 0));
        let said = of_class(&mut triage, class(REFUSED_LABEL, hash, version), 6);
        assert_eq!(verdict(&said[0]), refuses_labels());
    }
}

#[test]
fn a_new_version_of_the_hash_changes_nothing() {
    let (mut triage, _) = stuck();
    assert_eq!(of_class(&mut triage, class(REFUSED_LABEL, "777", "v6"), 7), []);
    triage.take(applied(Input::NodeClaims, claim("777", "v6")), at(7, 0));
    assert_eq!(said(&mut triage, 7), []);
    // Now it is repaired.
    assert_eq!(of_class(&mut triage, class(GOOD_LABEL, "888", "v6"), 8), []);
}

#[test]
fn after_a_restart_a_proven_cause_stands_though_its_class_was_repaired() {
    let (_, said) = stuck();
    let mut known = said;
    known.metadata.uid = Some("d".to_owned());
    let mut triage = fresh(vec![known]);
    triage.take(applied(Input::NodeClasses, class(GOOD_LABEL, "222", "v5")), at(8, 0));
    triage.take(applied(Input::NodeClaims, claim("111", "v5")), at(8, 0));
    triage.start();
    triage.lead();
    for minute in 8..14 {
        triage.schedule.take(Touched::Everything);
        assert_eq!(triage.look(at(minute, 0)), [], "minute {minute}");
    }
    triage.take(removed(Some(claim("111", "v5"))), at(15, 2));
    let ended = writes(triage.look(at(15, 2)));
    assert_eq!(ended.len(), 1);
    assert_eq!(verdict(&ended[0].diagnosis), refuses_labels());
}

#[test]
fn a_machine_that_was_made_after_a_change_without_a_new_hash_is_judged_by_the_change() {
    let (mut triage, _) = stuck();
    of_class(&mut triage, class(GOOD_LABEL, "111", "v5"), 7);
    let mut next = claim("111", "v5");
    next["metadata"]["name"] = json!("general-b");
    next["metadata"]["uid"] = json!("2");
    next["metadata"]["creationTimestamp"] = json!(at(7, 0));
    next["status"]["conditions"][0]["lastTransitionTime"] = json!(at(7, 5));
    next["status"]["providerID"] = json!("aws:///eu-west-1a/i-0b");
    triage.take(applied(Input::NodeClaims, next), at(8, 0));
    triage.look(at(8, 0));
    let said = said(&mut triage, 14);
    assert_eq!(said.len(), 1);
    assert_ne!(verdict(&said[0]), refuses_labels());
}

#[test]
fn what_a_class_said_is_forgotten_with_the_last_machine_that_was_launched_with_it() {
    let (mut triage, _) = stuck();
    of_class(&mut triage, class(GOOD_LABEL, "222", "v5"), 7);
    // One more text is kept: a machine of the last one may not have been seen yet.
    of_class(&mut triage, class(GOOD_LABEL, "333", "v5"), 8);
    assert_eq!(triage.cluster.earlier_texts(), 2);
    triage.take(removed(Some(claim("111", "v5"))), at(15, 2));
    assert_eq!(triage.cluster.earlier_texts(), 1);
}

#[test]
fn a_pool_that_was_changed_is_not_held_against_machines_that_it_launched_before() {
    let pool = |hash: &str, kubelet: Value| {
        json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool",
            "metadata": {
                "name": "general",
                "annotations": { "karpenter.sh/nodepool-hash": hash, "karpenter.sh/nodepool-hash-version": "v3" },
            },
            "spec": { "template": { "spec": { "kubelet": kubelet } } },
        })
    };
    let mut machine = claim("111", "v5");
    machine["metadata"]["annotations"]["karpenter.sh/nodepool-hash"] = json!("1");
    machine["metadata"]["annotations"]["karpenter.sh/nodepool-hash-version"] = json!("v3");
    let claim = || Object::from_value(Input::NodeClaims, machine.clone()).unwrap();
    let mut state = crate::cluster_state::ClusterState::default();
    let mut apply = |input, value| drop(state.apply(Object::from_value(input, value).unwrap(), at(1, 0)));
    apply(Input::NodeClaims, machine.clone());
    apply(Input::NodePools, pool("1", json!({ "maxPods": 4 })));
    apply(Input::NodePools, pool("2", json!({ "maxPods": 110 })));
    let Object::NodeClaim(known) = claim() else { panic!("a NodeClaim") };
    let seen = state.pool_at_launch("general", &known.metadata).unwrap();
    let kubelet = &seen.known().unwrap().spec.template.spec.kubelet;
    assert_eq!(kubelet.get("maxPods"), Some(&json!(4)));
    // Of one that nobody saw before nothing is known.
    let mut later = crate::cluster_state::ClusterState::default();
    later.apply(Object::from_value(Input::NodePools, pool("2", json!({ "maxPods": 110 }))).unwrap(), at(1, 0));
    let seen = later.pool_at_launch("general", &known.metadata).unwrap();
    assert!(seen.known().is_none() && seen.lost().is_some());
}

/// Many Nodes come at once, and those that wait are looked for once for all of them.
#[test]
fn a_node_without_a_provider_id_touches_the_waiting_machines_at_the_next_look() {
    let mut triage = started(Vec::new());
    triage.take(applied(Input::NodeClaims, claim("111", "v5")), at(1, 0));
    assert_eq!(triage.look(at(1, 0)), []);
    let node = |n: usize| {
        json!({
            "metadata": { "name": format!("worker-{n}"), "creationTimestamp": "2026-11-21T10:01:00Z" },
            "status": { "conditions": [condition("Ready", "True", "KubeletReady")] },
        })
    };
    for n in 0..100 {
        triage.take(applied(Input::Nodes, node(n)), at(6, 0));
        assert_eq!(triage.schedule.touched(), n + 1, "each Node touches itself");
    }
    let said: Vec<_> = writes(triage.look(at(6, 0))).into_iter().map(diagnosis).collect();
    let of_claim: Vec<_> =
        said.iter().filter(|d| d.metadata.name.as_deref() == Some("general-a")).map(verdict).collect();
    assert_eq!(of_claim, [("NodeWithoutProviderID".to_owned(), "Possible".to_owned())]);
    let blamed = |d: &NodeDiagnosis| d.spec.node_claim.is_some() && d.status.as_ref().unwrap().blame.is_some();
    assert!(!said.iter().any(blamed), "it is unknown which of the Nodes belongs to the claim");
    let _: Vec<Order> = triage.look(at(7, 0));
}
