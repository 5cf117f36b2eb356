//! aws-auth is changed while machines are stuck that tried to join with what it said before.

use super::{applied, at, condition, diagnosis, removed, started, writes};
use crate::api::{NodeDiagnosis, Outcome};
use crate::cluster_state::Touched;
use crate::objects::input::Input;
use crate::triage::Triage;
use crate::triage::change::Change;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

const BROKEN: &str = "- rolearn: [broken\n";
const MAPPED: &str = "- rolearn: arn:aws:iam::111122223333:role/shop\n  username: \
                      system:node:{{EC2PrivateDNSName}}\n  groups: [system:bootstrappers, system:nodes]\n";

fn aws_auth(map_roles: &str, written: DateTime<Utc>) -> Change {
    let mut map = super::aws_auth(map_roles);
    map["metadata"]["managedFields"] = json!([{
        "manager": "kubectl-edit", "time": written, "fieldsV1": { "f:data": { "f:mapRoles": {} } },
    }]);
    applied(Input::AwsAuth, map)
}

/// It was launched and never joined.
fn claim() -> Value {
    super::claim(&[condition("Launched", "True", "Launched"), condition("Registered", "Unknown", "NodeNotFound")], None)
}

fn said(triage: &mut Triage, minute: i64) -> Vec<NodeDiagnosis> {
    writes(triage.look(at(minute, 0))).into_iter().map(diagnosis).collect()
}

fn verdict(diagnosis: &NodeDiagnosis) -> (String, String) {
    let status = diagnosis.status.as_ref().unwrap();
    (status.cause.to_string(), format!("{:?}", status.confidence))
}

fn unreadable(confidence: &str) -> (String, String) {
    ("AwsAuthUnreadable".to_owned(), confidence.to_owned())
}

fn with(aws_auth: Change, minute: i64) -> Triage {
    let mut triage = started(Vec::new());
    let class = json!({ "kind": "EC2NodeClass", "metadata": { "name": "default" }, "spec": { "role": "shop" } });
    triage.take(applied(Input::NodeClasses, class), at(minute, 0));
    triage.take(aws_auth, at(minute, 0));
    triage.take(applied(Input::NodeClaims, claim()), at(minute, 0));
    triage
}

/// A triage that has said why its machine does not join.
fn stuck() -> Triage {
    let mut triage = with(aws_auth(BROKEN, at(-10, 0)), 6);
    let said = said(&mut triage, 6);
    assert_eq!(said.iter().map(verdict).collect::<Vec<_>>(), [unreadable("Certain")]);
    triage
}

fn shows_the_change(diagnosis: &NodeDiagnosis) -> bool {
    let status = diagnosis.status.as_ref().unwrap();
    status.evidence.iter().any(|e| e.because.contains("its earlier text did not map the node role"))
}

#[test]
fn a_repair_takes_no_cause_from_the_machines_that_tried_before() {
    let mut triage = stuck();
    triage.take(aws_auth(MAPPED, at(7, 0)), at(7, 0));
    let repaired = said(&mut triage, 7);
    assert_eq!(repaired.iter().map(verdict).collect::<Vec<_>>(), [unreadable("Certain")]);
    assert!(shows_the_change(&repaired[0]), "{:?}", repaired[0]);
    for minute in 8..11 {
        triage.schedule.take(Touched::Everything);
        assert_eq!(said(&mut triage, minute), [], "minute {minute}");
    }
    let joined = ["Launched", "Registered", "Initialized"].map(|type_| condition(type_, "True", type_));
    triage.take(applied(Input::NodeClaims, super::claim(&joined, None)), at(11, 0));
    let ended = said(&mut triage, 11);
    assert_eq!(ended.iter().map(verdict).collect::<Vec<_>>(), [unreadable("Certain")]);
    assert_eq!(ended[0].outcome(), Some(Outcome::Recovered));
}

#[test]
fn a_config_map_that_is_deleted_and_recreated_takes_no_cause_either() {
    let mut triage = stuck();
    let (namespace, name) = (Some("kube-system".to_owned()), "aws-auth".to_owned());
    triage.take(Change::Removed { input: Input::AwsAuth, namespace, name, last: None }, at(7, 0));
    assert_eq!(said(&mut triage, 7), []);
    triage.take(aws_auth(MAPPED, at(7, 30)), at(8, 0));
    let repaired = said(&mut triage, 8);
    assert_eq!(repaired.iter().map(verdict).collect::<Vec<_>>(), [unreadable("Certain")]);
    assert!(shows_the_change(&repaired[0]), "{:?}", repaired[0]);
}

#[test]
fn what_does_not_join_after_the_repair_has_another_cause() {
    let mut triage = stuck();
    triage.take(aws_auth(MAPPED, at(7, 0)), at(7, 0));
    said(&mut triage, 7);
    // Nothing touches it: the look was planned.
    let later: Vec<_> = (8..16).flat_map(|minute| said(&mut triage, minute)).collect();
    assert_eq!(later.len(), 1, "{later:?}");
    assert_ne!(verdict(&later[0]).0, "AwsAuthUnreadable");
}

#[test]
fn a_machine_that_was_not_stuck_before_the_repair_is_not_called_so_because_of_it() {
    let mut triage = with(aws_auth(BROKEN, at(-10, 0)), 1);
    assert_eq!(said(&mut triage, 1), []);
    triage.take(aws_auth(MAPPED, at(3, 0)), at(3, 0));
    let later: Vec<_> = (3..12).flat_map(|minute| said(&mut triage, minute)).collect();
    assert!(later.iter().all(|d| verdict(d).0 != "AwsAuthUnreadable"), "{later:?}");
}

#[test]
fn a_machine_that_is_launched_after_the_repair_is_judged_by_the_new_text() {
    let mut triage = stuck();
    triage.take(aws_auth(MAPPED, at(7, 0)), at(7, 0));
    said(&mut triage, 7);
    let mut next = claim();
    next["metadata"]["name"] = json!("general-b");
    next["metadata"]["uid"] = json!("2");
    next["metadata"]["creationTimestamp"] = json!(at(7, 30));
    next["status"]["conditions"][0]["lastTransitionTime"] = json!(at(7, 35));
    next["status"]["providerID"] = json!("aws:///eu-west-1a/i-0b");
    triage.take(applied(Input::NodeClaims, next), at(8, 0));
    let later: Vec<_> = (8..16).flat_map(|minute| said(&mut triage, minute)).collect();
    let next: Vec<_> = later.iter().filter(|d| d.metadata.name.as_deref() == Some("general-b")).map(verdict).collect();
    assert!(!next.is_empty() && next.iter().all(|(cause, _)| cause != "AwsAuthUnreadable"), "{next:?}");
}

#[test]
fn a_change_that_leaves_the_role_as_it_was_takes_no_certainty() {
    let still_broken = || aws_auth(&format!("{BROKEN}# edited\n"), at(7, 0));
    let mut triage = stuck();
    triage.take(still_broken(), at(7, 0));
    assert!(said(&mut triage, 7).iter().all(|said| verdict(said) == unreadable("Certain")));
    let open: Vec<_> = triage.open().map(verdict).collect();
    assert_eq!(open, [unreadable("Certain")]);
    // Without the text of before it may have been the change that rejected the machine.
    let mut restarted = with(still_broken(), 8);
    let said = said(&mut restarted, 8);
    assert_eq!(said.iter().map(verdict).collect::<Vec<_>>(), [unreadable("Likely")]);
}

#[test]
fn three_texts_are_kept_while_a_machine_is_older_than_their_change() {
    let mut triage = stuck();
    for minute in 7..12 {
        triage.take(aws_auth(&format!("{BROKEN}# {minute}\n"), at(minute, 0)), at(minute, 0));
        // What says the same again is no other text.
        triage.take(aws_auth(&format!("{BROKEN}# {minute}\n"), at(minute, 20)), at(minute, 30));
    }
    assert_eq!(triage.cluster.earlier_aws_auths(), 3);
    triage.take(removed(Some(claim())), at(15, 2));
    assert_eq!(triage.cluster.earlier_aws_auths(), 0);
}
