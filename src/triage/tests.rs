use super::*;
use serde_json::{Value, json};

const CREATED: &str = "2026-11-21T10:00:00Z";

fn at(minutes: i64, seconds: i64) -> DateTime<Utc> {
    CREATED.parse::<DateTime<Utc>>().unwrap() + TimeDelta::minutes(minutes) + TimeDelta::seconds(seconds)
}

fn applied(input: Input, object: Value) -> Change {
    Change::Applied(Box::new(Object::from_value(input, object).unwrap()))
}

fn condition(type_: &str, status: &str, reason: &str) -> Value {
    json!({ "type": type_, "status": status, "reason": reason, "lastTransitionTime": CREATED })
}

/// A claim whose Node Karpenter refused: stuck from the first second, whatever the thresholds.
fn refused(deleted: Option<DateTime<Utc>>) -> Value {
    let conditions = [condition("Launched", "True", "Launched"), condition("Registered", "False", "UnregisteredTaintNotFound")];
    claim(&conditions, deleted)
}

fn claim(conditions: &[Value], deleted: Option<DateTime<Utc>>) -> Value {
    json!({
        "metadata": {
            "name": "general-a", "uid": "1", "creationTimestamp": CREATED, "deletionTimestamp": deleted,
            "labels": { "karpenter.sh/nodepool": "general" },
        },
        "spec": { "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" } },
        "status": { "providerID": "aws:///eu-west-1a/i-0a", "conditions": conditions },
    })
}

fn node(ready: &str) -> Value {
    json!({
        "metadata": { "name": "ip-10-0-0-1", "uid": "2", "creationTimestamp": CREATED },
        "spec": { "providerID": "aws:///eu-west-1a/i-0a" },
        "status": { "conditions": [condition("Ready", ready, "Kubelet")] },
    })
}

fn removed(last: Option<Value>) -> Change {
    let last = last.map(|object| Box::new(Object::from_value(Input::NodeClaims, object).unwrap()));
    Change::Removed { input: Input::NodeClaims, namespace: None, name: "general-a".to_owned(), last }
}

fn started(known: Vec<NodeDiagnosis>) -> Triage {
    let mut triage = Triage::new(Thresholds::default(), known);
    triage.start();
    triage
}

fn writes(orders: Vec<Order>) -> Vec<Write> {
    orders.into_iter().filter_map(|order| if let Order::Write(write) = order { Some(*write) } else { None }).collect()
}

/// A triage with an open diagnosis, and that diagnosis.
fn sick() -> (Triage, NodeDiagnosis) {
    let mut triage = started(Vec::new());
    triage.take(applied(Input::NodeClaims, refused(None)), at(1, 0));
    let mut written = writes(triage.look(at(1, 0)));
    assert_eq!(written.len(), 1);
    (triage, written.remove(0).diagnosis)
}

#[test]
fn nothing_is_said_about_half_a_world() {
    let mut triage = Triage::new(Thresholds::default(), Vec::new());
    triage.take(applied(Input::NodeClaims, refused(None)), at(1, 0));
    assert_eq!(triage.look(at(1, 0)), []);
    triage.start();
    let written = writes(triage.look(at(1, 0)));
    assert!(written[0].announces && written[0].ends.is_none());
}

#[test]
fn time_alone_writes_nothing() {
    let (mut triage, _) = sick();
    for minute in 2..14 {
        triage.take(applied(Input::NodeClaims, refused(None)), at(minute, 0));
        assert_eq!(writes(triage.look(at(minute, 0))), []);
    }
}

#[test]
fn a_restart_writes_nothing() {
    let (_, known) = sick();
    let mut triage = Triage::new(Thresholds::default(), vec![known]);
    triage.take(applied(Input::NodeClaims, refused(None)), at(9, 0));
    triage.start();
    assert_eq!(triage.look(at(9, 0)), []);
}

#[test]
fn a_claim_that_vanished_while_nobody_looked_was_deleted() {
    let (_, known) = sick();
    let mut triage = started(vec![known]);
    assert_eq!(writes(triage.look(at(30, 0)))[0].ends, Some(Outcome::Deleted));
    assert_eq!(triage.look(at(31, 0)), []);
}

#[test]
fn a_claim_that_karpenter_gave_up_ends_as_terminated_though_its_deletion_was_never_seen() {
    let (mut triage, _) = sick();
    triage.take(removed(Some(refused(None))), at(15, 2));
    let written = writes(triage.look(at(15, 2)));
    assert_eq!(written[0].ends, Some(Outcome::Terminated));
    assert_eq!(written[0].diagnosis.status.as_ref().unwrap().ended_at, Some(at(15, 2)));
    assert_eq!(triage.open().count(), 0);
}

#[test]
fn a_claim_that_vanished_at_a_relist_ends_too() {
    let (mut triage, _) = sick();
    triage.take(removed(None), at(20, 0));
    assert_eq!(writes(triage.look(at(20, 0)))[0].ends, Some(Outcome::Terminated));
}

#[test]
fn the_end_is_told_once() {
    let (mut triage, _) = sick();
    triage.take(applied(Input::NodeClaims, refused(Some(at(3, 0)))), at(3, 0));
    assert_eq!(writes(triage.look(at(3, 0)))[0].ends, Some(Outcome::Deleted));
    triage.take(applied(Input::NodeClaims, refused(Some(at(3, 0)))), at(4, 0));
    assert_eq!(triage.look(at(4, 0)), []);
    triage.take(removed(Some(refused(Some(at(3, 0))))), at(5, 0));
    assert_eq!(triage.look(at(5, 0)), []);
}

#[test]
fn a_claim_first_seen_after_its_timeout_still_gets_its_post_mortem() {
    let mut triage = started(Vec::new());
    triage.take(removed(Some(refused(Some(at(15, 1))))), at(15, 3));
    let written = writes(triage.look(at(15, 3)));
    assert!(written[0].announces);
    assert_eq!(written[0].ends, Some(Outcome::Terminated));
}

#[test]
fn what_the_claim_showed_while_it_lived_outlives_its_node() {
    let mut triage = started(Vec::new());
    triage.take(applied(Input::Nodes, node("False")), at(1, 0));
    triage.take(applied(Input::NodeClaims, refused(None)), at(1, 0));
    assert!(writes(triage.look(at(1, 0)))[0].diagnosis.spec.node.is_some());
    triage.take(Change::Removed { input: Input::Nodes, namespace: None, name: "ip-10-0-0-1".into(), last: None }, at(15, 0));
    triage.take(removed(Some(refused(None))), at(15, 1));
    let written = writes(triage.look(at(15, 1)));
    assert_eq!(written.last().unwrap().ends, Some(Outcome::Terminated));
    assert!(written.last().unwrap().diagnosis.spec.node.is_some());
}

#[test]
fn a_machine_that_becomes_usable_recovers_and_may_fall_ill_again() {
    let (mut triage, _) = sick();
    let healthy = [condition("Launched", "True", ""), condition("Registered", "True", ""), condition("Initialized", "True", "")];
    triage.take(applied(Input::NodeClaims, claim(&healthy, None)), at(4, 0));
    assert_eq!(writes(triage.look(at(4, 0)))[0].ends, Some(Outcome::Recovered));
    assert_eq!(triage.next_look(), None);
    triage.take(applied(Input::NodeClaims, refused(None)), at(5, 0));
    let again = writes(triage.look(at(5, 0)));
    assert!(again[0].announces && again[0].ends.is_none() && !again[0].replaces);
}

#[test]
fn another_machine_of_the_same_name_takes_the_place_of_the_one_that_ended() {
    let (mut triage, _) = sick();
    triage.take(removed(None), at(20, 0));
    triage.look(at(20, 0));
    let mut other = refused(None);
    other["metadata"]["uid"] = json!("9");
    triage.take(applied(Input::NodeClaims, other), at(21, 0));
    assert!(writes(triage.look(at(21, 0)))[0].replaces);
}

fn uninitialized() -> Triage {
    let mut triage = started(Vec::new());
    let conditions =
        [condition("Launched", "True", ""), condition("Registered", "True", ""), condition("Initialized", "Unknown", "NodeNotReady")];
    triage.take(applied(Input::Nodes, node("False")), at(0, 10));
    triage.take(applied(Input::NodeClaims, claim(&conditions, None)), at(0, 10));
    triage
}

#[test]
fn the_pods_of_a_stuck_node_are_read_before_it_is_judged() {
    let mut triage = uninitialized();
    assert_eq!(triage.look(at(1, 0)), []);
    assert_eq!(triage.look(at(6, 0)), [Order::ListPods("ip-10-0-0-1".to_owned())]);
    assert_eq!(triage.look(at(6, 1)), []);
    triage.take(Change::Pods { node: "ip-10-0-0-1".to_owned(), pods: Ok(Vec::new()) }, at(6, 2));
    assert_eq!(writes(triage.look(at(6, 2))).len(), 1);
    assert_eq!(triage.world().missing(Input::Pods), None);
}

#[test]
fn pods_that_nobody_lists_are_not_waited_for() {
    let mut triage = uninitialized();
    triage.look(at(6, 0));
    assert_eq!(triage.next_look(), Some(at(6, 10)));
    let orders = triage.look(at(6, 10));
    assert!(orders.contains(&Order::ListPods("ip-10-0-0-1".to_owned())));
    assert_eq!(writes(orders).len(), 1);
}

#[test]
fn a_machine_stuck_for_long_has_its_pods_listed_less_often() {
    let mut triage = uninitialized();
    let mut lists = 0;
    for second in 0..(24 * 360) {
        let now = at(0, 10 * second);
        for order in triage.look(now) {
            if let Order::ListPods(node) = order {
                lists += 1;
                triage.take(Change::Pods { node, pods: Ok(Vec::new()) }, now);
            }
        }
    }
    assert!(lists < 24 * 8, "{lists} lists in a day");
}

#[test]
fn our_own_events_are_no_evidence() {
    let mut triage = started(Vec::new());
    let event = json!({
        "metadata": { "name": "e", "namespace": "default" }, "reason": "Unknown", "reportingComponent": "nodewhy",
        "involvedObject": { "kind": "NodeClaim", "name": "general-a" },
    });
    triage.take(applied(Input::Events, event), at(1, 0));
    assert_eq!(triage.world().events("NodeClaim", "general-a").count(), 0);
}

#[test]
fn a_machine_that_hangs_in_its_deletion_is_news_again() {
    let mut triage = started(Vec::new());
    let conditions = ["Launched", "Registered", "Initialized"].map(|type_| condition(type_, "True", type_));
    triage.take(applied(Input::NodeClaims, claim(&conditions, None)), at(0, 0));
    let mut silent = node("Unknown");
    silent["status"]["conditions"][0]["reason"] = json!("NodeStatusUnknown");
    triage.take(applied(Input::Nodes, silent), at(0, 0));
    triage.take(Change::Pods { node: "ip-10-0-0-1".to_owned(), pods: Ok(Vec::new()) }, at(0, 0));
    let mut orders = triage.look(at(10, 0));
    triage.take(Change::Pods { node: "ip-10-0-0-1".to_owned(), pods: Ok(Vec::new()) }, at(10, 1));
    orders.extend(triage.look(at(10, 1)));
    assert_eq!(writes(orders).last().and_then(|w| cause(&w.diagnosis).map(str::to_owned)).as_deref(), Some("KubeletStopped"));
    triage.take(applied(Input::NodeClaims, claim(&conditions, Some(at(20, 0)))), at(20, 0));
    triage.take(Change::Removed { input: Input::Nodes, namespace: None, name: "ip-10-0-0-1".to_owned(), last: None }, at(21, 0));
    assert_eq!(writes(triage.look(at(21, 0))).last().and_then(|w| w.ends), Some(Outcome::Deleted));
    assert_eq!(writes(triage.look(at(79, 0))), []);
    let stuck = writes(triage.look(at(80, 0)));
    assert_eq!(stuck.first().and_then(|w| cause(&w.diagnosis)), Some("TerminationStuck"));
    assert!(stuck.iter().all(|w| w.announces && w.ends.is_none()));
    triage.take(removed(None), at(95, 0));
    assert_eq!(writes(triage.look(at(95, 0))).last().and_then(|w| w.ends), Some(Outcome::Deleted));
}

#[test]
fn an_end_by_design_is_told_as_one() {
    let (mut triage, _) = sick();
    let disrupted = condition("DisruptionReason", "True", "Drifted");
    let conditions = [condition("Launched", "True", "Launched"), condition("Registered", "False", "UnregisteredTaintNotFound"), disrupted];
    triage.take(applied(Input::NodeClaims, claim(&conditions, Some(at(5, 0)))), at(5, 0));
    let written = writes(triage.look(at(5, 0)));
    let ended = written.last().and_then(|w| w.diagnosis.status.as_ref()?.conditions.iter().find(|c| c.type_ == "Ended"));
    assert!(
        ended.is_some_and(|c| c.message.ends_with("was deleted after 5m: it had drifted from its NodePool or node class")),
        "{ended:?}"
    );
}
