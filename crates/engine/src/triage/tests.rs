mod at_launch;
mod aws_auth_texts;

use super::change::{Change, ReadFailure};
use super::{IncidentSummary, Keep, Order, Triage, Write};
use crate::api::{Confidence, NodeDiagnosis, OUTCOME_LABEL, Outcome, Text};
use crate::case::stage::Thresholds;
use crate::cluster_state::Touched;
use crate::cluster_state::memo::Memo;
use crate::objects::input::{Input, Object};
use crate::remediation;
use chrono::{DateTime, TimeDelta, Utc};
use readers::aws_auth::identity::Identity;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

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
    let conditions =
        [condition("Launched", "True", "Launched"), condition("Registered", "False", "UnregisteredTaintNotFound")];
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

/// There are none, on the Node or without one.
fn no_pods(triage: &mut Triage, now: DateTime<Utc>) {
    for node in ["ip-10-0-0-1", ""] {
        triage.take(Change::Pods { node: node.to_owned(), pods: Ok(Vec::new()) }, now);
    }
}

fn removed(last: Option<Value>) -> Change {
    let last = last.map(|object| Box::new(Object::from_value(Input::NodeClaims, object).unwrap()));
    Change::Removed { input: Input::NodeClaims, namespace: None, name: "general-a".to_owned(), last }
}

/// A triage that has just begun, in a cluster that holds these diagnoses.
fn fresh(known: Vec<NodeDiagnosis>) -> Triage {
    let mut triage = Triage::new(Thresholds::default(), Keep::default());
    for diagnosis in known {
        triage.take(shown(diagnosis), at(0, 0));
    }
    triage
}

fn started(known: Vec<NodeDiagnosis>) -> Triage {
    let mut triage = fresh(known);
    triage.start();
    triage.lead();
    triage
}

/// The diagnosis as the cluster shows it.
fn shown(diagnosis: NodeDiagnosis) -> Change {
    Change::Diagnosis(Box::new(diagnosis))
}

fn writes(orders: Vec<Order>) -> Vec<Write> {
    orders.into_iter().filter_map(|order| if let Order::Write(write) = order { Some(*write) } else { None }).collect()
}

fn diagnosis(write: Write) -> NodeDiagnosis {
    Arc::unwrap_or_clone(write.diagnosis)
}

/// A triage with an open diagnosis, and that diagnosis.
fn sick() -> (Triage, NodeDiagnosis) {
    let mut triage = started(Vec::new());
    triage.take(applied(Input::NodeClaims, refused(None)), at(1, 0));
    let mut written = writes(triage.look(at(1, 0)));
    assert_eq!(written.len(), 1);
    (triage, diagnosis(written.remove(0)))
}

#[test]
fn nothing_is_said_about_half_a_world() {
    let mut triage = fresh(Vec::new());
    triage.take(applied(Input::NodeClaims, refused(None)), at(1, 0));
    assert_eq!(triage.look(at(1, 0)), []);
    triage.start();
    triage.lead();
    let written = writes(triage.look(at(1, 0)));
    assert!(written[0].announces && written[0].ends.is_none());
}

#[test]
fn time_alone_writes_nothing() {
    let (mut triage, _) = sick();
    for minute in 2..14 {
        triage.schedule.take(Touched::Everything);
        assert_ne!(triage.schedule.touched(), 0);
        assert_eq!(writes(triage.look(at(minute, 0))), []);
    }
}

#[test]
fn what_says_nothing_new_is_kept_and_nothing_is_judged_for_it() {
    static ASKED: Memo<DateTime<Utc>> = Memo::new("when it was asked");
    let mut triage = started(Vec::new());
    let report = |version: &str, heartbeat: DateTime<Utc>, ready: &str| {
        let mut node = node(ready);
        node["metadata"]["resourceVersion"] = json!(version);
        node["status"]["conditions"][0]["lastHeartbeatTime"] = json!(heartbeat);
        applied(Input::Nodes, node)
    };
    let claim = || applied(Input::NodeClaims, claim(&[condition("Ready", "True", "Ready")], None));
    let pool = |nodes: u32| {
        applied(Input::NodePools, json!({"metadata": {"name": "general"}, "status": {"resources": {"nodes": nodes}}}))
    };
    let mut judged = |change: Change, minute: i64| {
        triage.cluster.once(&ASKED, "", || at(minute, 0));
        triage.take(change, at(minute, 0));
        let judged = triage.schedule.touched();
        triage.look(at(minute, 0));
        let node = triage
            .cluster
            .node("ip-10-0-0-1")
            .map(|n| (n.metadata.resource_version.clone(), *n.status.conditions[0].last_heartbeat_time));
        (
            judged,
            *triage.cluster.once(&ASKED, "", || at(minute, 1)),
            node.and_then(|(version, heartbeat)| Some((version.as_deref()?.to_owned(), heartbeat?))),
        )
    };
    let seen = |version: &str, heartbeat| Some((version.to_owned(), heartbeat));
    assert_eq!(judged(report("7", at(1, 0), "True"), 1), (1, at(1, 1), seen("7", at(1, 0))));
    assert_eq!(judged(claim(), 2), (3, at(2, 1), seen("7", at(1, 0))));
    assert_eq!(judged(pool(1), 3), (2, at(3, 1), seen("7", at(1, 0))));
    // What was worked out before is still known after these.
    assert_eq!(judged(report("8", at(6, 0), "True"), 6), (0, at(3, 1), seen("8", at(6, 0))));
    assert_eq!(judged(claim(), 7), (0, at(3, 1), seen("8", at(6, 0))));
    assert_eq!(judged(pool(2), 8), (0, at(3, 1), seen("8", at(6, 0))));
    // The kubelet says something else.
    assert_eq!(judged(report("9", at(11, 0), "False"), 11), (2, at(11, 1), seen("9", at(11, 0))));
}

#[test]
fn a_restart_writes_nothing() {
    let (_, known) = sick();
    let mut triage = fresh(vec![known]);
    triage.take(applied(Input::NodeClaims, refused(None)), at(9, 0));
    triage.start();
    triage.lead();
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
    triage.look(at(1, 0));
    for node in ["ip-10-0-0-1", ""] {
        triage.take(Change::Pods { node: node.to_owned(), pods: Ok(Vec::new()) }, at(1, 0));
    }
    assert!(writes(triage.look(at(1, 0)))[0].diagnosis.spec.node.is_some());
    triage.take(
        Change::Removed { input: Input::Nodes, namespace: None, name: "ip-10-0-0-1".into(), last: None },
        at(15, 0),
    );
    triage.take(removed(Some(refused(None))), at(15, 1));
    let written = writes(triage.look(at(15, 1)));
    assert_eq!(written.last().unwrap().ends, Some(Outcome::Terminated));
    assert!(written.last().unwrap().diagnosis.spec.node.is_some());
}

#[test]
fn a_machine_that_becomes_usable_recovers_and_may_fall_ill_again() {
    let (mut triage, _) = sick();
    let healthy =
        [condition("Launched", "True", ""), condition("Registered", "True", ""), condition("Initialized", "True", "")];
    triage.take(applied(Input::NodeClaims, claim(&healthy, None)), at(4, 0));
    assert_eq!(writes(triage.look(at(4, 0)))[0].ends, Some(Outcome::Recovered));
    assert_eq!(
        triage.next_look(),
        Some(at(4, 0) + Keep::default().retention),
        "nothing but the end of its retention is waited for"
    );
    triage.take(applied(Input::NodeClaims, refused(None)), at(5, 0));
    let again = writes(triage.look(at(5, 0)));
    assert!(again[0].announces && again[0].ends.is_none() && !again[0].replaces);
}

/// A machine that a startup taint holds up, and what changes when it is taken off.
fn held_up_by_a_taint() -> Triage {
    let mut triage = started(Vec::new());
    triage.take(applied(Input::Nodes, tainted(true)), at(0, 0));
    triage.take(applied(Input::NodeClaims, registered(false)), at(0, 0));
    triage.look(at(6, 0));
    no_pods(&mut triage, at(6, 0));
    assert_eq!(said(triage.look(at(6, 0))), [("StartupTaintStays".to_owned(), Confidence::Likely)]);
    triage
}

fn tainted(is: bool) -> Value {
    let mut node = node("True");
    let taint = json!({ "key": "example.com/agent-not-ready", "effect": "NoExecute" });
    node["spec"]["taints"] = if is { json!([taint]) } else { json!([]) };
    node
}

fn registered(initialized: bool) -> Value {
    let initialized = if initialized {
        condition("Initialized", "True", "Initialized")
    } else {
        condition("Initialized", "Unknown", "StartupTaintsExist")
    };
    let conditions = [condition("Launched", "True", "Launched"), condition("Registered", "True", "Registered")];
    let mut claim = claim(&[&conditions[..], &[initialized]].concat(), None);
    claim["spec"]["startupTaints"] = json!([{ "key": "example.com/agent-not-ready", "effect": "NoExecute" }]);
    claim
}

#[test]
fn what_was_repaired_ends_with_the_cause_that_held_it_up() {
    let mut triage = held_up_by_a_taint();
    triage.take(applied(Input::Nodes, tainted(false)), at(7, 0));
    assert_eq!(said(triage.look(at(7, 0))), []);
    triage.take(applied(Input::NodeClaims, registered(true)), at(7, 1));
    let ended = diagnosis(writes(triage.look(at(7, 1))).remove(0));
    assert_eq!((ended.cause(), ended.outcome()), (Some("StartupTaintStays"), Some(Outcome::Recovered)));
}

#[test]
fn what_still_hangs_after_the_repair_has_another_cause() {
    let mut triage = held_up_by_a_taint();
    triage.take(applied(Input::Nodes, tainted(false)), at(7, 0));
    assert_eq!(said(triage.look(at(7, 0))), []);
    assert_eq!(said(triage.look(at(9, 0))), [("Unknown".to_owned(), Confidence::Possible)]);
    // It comes back: that is news at once.
    triage.take(applied(Input::Nodes, tainted(true)), at(9, 30));
    assert_eq!(said(triage.look(at(9, 30))), [("StartupTaintStays".to_owned(), Confidence::Likely)]);
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

#[test]
fn a_node_that_is_seen_before_its_claim_of_the_same_name_gives_way_to_it() {
    let (mut triage, mut node) = (started(Vec::new()), node("False"));
    node["metadata"]["name"] = json!("general-a");
    let kinds = |orders| writes(orders).into_iter().map(|w| (w.diagnosis.spec.subject.kind.clone(), w.replaces));
    triage.take(applied(Input::Nodes, node), at(40, 0));
    triage.look(at(40, 0));
    for node in ["general-a", ""] {
        triage.take(Change::Pods { node: node.to_owned(), pods: Ok(Vec::new()) }, at(40, 0));
    }
    assert!(kinds(triage.look(at(40, 0))).eq([("Node".to_owned(), false)]));
    triage.take(applied(Input::NodeClaims, refused(None)), at(40, 1));
    assert!(kinds(triage.look(at(40, 1))).eq([("NodeClaim".to_owned(), true)]));
}

fn uninitialized() -> Triage {
    let mut triage = started(Vec::new());
    let conditions = [
        condition("Launched", "True", ""),
        condition("Registered", "True", ""),
        condition("Initialized", "Unknown", "NodeNotReady"),
    ];
    triage.take(applied(Input::Nodes, node("False")), at(0, 10));
    triage.take(applied(Input::NodeClaims, claim(&conditions, None)), at(0, 10));
    triage
}

#[test]
fn the_pods_of_a_stuck_node_are_read_before_it_is_judged() {
    let mut triage = uninitialized();
    assert_eq!(triage.look(at(1, 0)), []);
    assert_eq!(triage.look(at(6, 0)), [Order::ListPods("ip-10-0-0-1".to_owned()), Order::ListPods(String::new())]);
    assert_eq!(triage.look(at(6, 1)), []);
    triage.take(Change::Pods { node: String::new(), pods: Ok(Vec::new()) }, at(6, 2));
    assert_eq!(triage.look(at(6, 2)), []);
    triage.take(Change::Pods { node: "ip-10-0-0-1".to_owned(), pods: Ok(Vec::new()) }, at(6, 2));
    assert_eq!(writes(triage.look(at(6, 2))).len(), 1);
    assert_eq!(triage.cluster().missing(Input::Pods), None);
}

#[test]
fn a_machine_waits_since_its_conditions_tell_however_late_they_are_seen() {
    let seen_again = |first: &[Value], then: &str| {
        let mut triage = started(Vec::new());
        triage.take(applied(Input::Nodes, node("False")), at(40, 0));
        triage.take(applied(Input::NodeClaims, claim(first, None)), at(40, 0));
        let conditions = ["Launched", "Registered"].map(|type_| condition(type_, "True", type_));
        let conditions = [conditions.as_slice(), &[condition("Initialized", "Unknown", then)]].concat();
        triage.take(applied(Input::NodeClaims, claim(&conditions, None)), at(40, 1));
        triage.look(at(40, 1))
    };
    let pods = Order::ListPods("ip-10-0-0-1".to_owned());
    assert!(seen_again(&[], "NodeNotReady").contains(&pods), "it is stuck since its creation");
    let moved = [condition("Initialized", "False", "NodeNotFound")];
    assert!(seen_again(&moved, "NodeNotReady").contains(&pods), "the status moved then, and so did its time");
    let before = [condition("Initialized", "Unknown", "NodeNotFound")];
    assert!(
        !seen_again(&before, "NodeNotReady").contains(&pods),
        "only who watches knows since when it is that reason"
    );
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
                lists += u32::from(!node.is_empty());
                triage.take(Change::Pods { node, pods: Ok(Vec::new()) }, now);
            }
        }
    }
    assert!(lists < 24 * 8, "{lists} lists in a day");
}

/// Karpenter's word that a NodePool is full, of a pod.
fn full(last: DateTime<Utc>) -> Value {
    json!({
        "metadata": { "name": "report-1.e1", "namespace": "shop" }, "reason": "FailedScheduling",
        "involvedObject": { "kind": "Pod", "namespace": "shop", "name": "report-1", "uid": "p1" },
        "source": { "component": "karpenter" }, "count": 3, "firstTimestamp": at(0, 0), "lastTimestamp": last,
        "message": "Failed to schedule pod, all available instance types exceed limits for nodepool: \"general\"",
    })
}

#[test]
fn the_pods_that_wait_are_read_while_karpenter_calls_a_nodepool_full_and_at_no_other_time() {
    let mut triage = started(Vec::new());
    let pool = json!({ "metadata": { "name": "general" }, "spec": { "limits": { "cpu": "90" } } });
    triage.take(applied(Input::NodePools, pool), at(0, 0));
    assert_eq!(triage.look(at(4, 0)), []);
    triage.take(applied(Input::Events, full(at(5, 0))), at(5, 0));
    assert_eq!(triage.look(at(5, 0)), [Order::ListPods(String::new())]);
    let waiting = json!({
        "metadata": { "name": "report-1", "namespace": "shop", "uid": "p1" }, "status": { "phase": "Pending" },
    });
    let pods = vec![Object::from_value(Input::Pods, waiting).unwrap()];
    triage.take(Change::Pods { node: String::new(), pods: Ok(pods) }, at(5, 1));
    let written = writes(triage.look(at(5, 1)));
    assert_eq!(
        written.iter().map(|w| &*w.diagnosis.status.as_ref().unwrap().cause).collect::<Vec<_>>(),
        ["NodePoolAtItsLimit"]
    );
    // The pods have gone elsewhere, and Karpenter says nothing more: nobody asks, and none is kept.
    for minute in 6..60 {
        for order in triage.look(at(minute, 0)) {
            if let Order::ListPods(node) = order {
                assert!(minute < 16, "asked after {minute} minutes");
                triage.take(Change::Pods { node, pods: Ok(Vec::new()) }, at(minute, 0));
            }
        }
    }
    assert_eq!(triage.cluster().pods().count(), 0);
}

/// Karpenter's word that EC2 refused a launch.
fn refused_launch(claim: &str, last: DateTime<Utc>) -> Value {
    json!({
        "metadata": { "name": format!("{claim}.e1"), "namespace": "default" }, "reason": "InsufficientCapacityError",
        "involvedObject": { "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": claim },
        "source": { "component": "karpenter" }, "count": 1, "lastTimestamp": last,
        "message": format!(
            "NodeClaim {claim} event: creating instance, insufficient capacity, with fleet error(s), \
             ReservationCapacityExceeded: The requested reservation does not have sufficient compatible and available \
             capacity for this request."
        ),
    })
}

#[test]
fn the_pods_that_wait_are_read_while_launches_of_a_nodepool_are_refused_again_and_again() {
    let mut triage = started(Vec::new());
    triage.take(applied(Input::NodePools, json!({ "metadata": { "name": "general" } })), at(0, 0));
    triage.take(applied(Input::Events, refused_launch("general-aaaaa", at(10, 0))), at(10, 0));
    assert_eq!(triage.look(at(10, 0)), [], "one refusal is normal");
    triage.take(applied(Input::Events, refused_launch("general-bbbbb", at(30, 0))), at(30, 0));
    assert_eq!(triage.look(at(30, 0)), [Order::ListPods(String::new())]);
    let waiting = json!({
        "metadata": { "name": "api-1", "namespace": "shop", "uid": "p1", "creationTimestamp": at(1, 0) },
        "status": { "phase": "Pending", "conditions": [
            { "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes" },
        ] },
    });
    let waiting = || vec![Object::from_value(Input::Pods, waiting.clone()).unwrap()];
    triage.take(Change::Pods { node: String::new(), pods: Ok(waiting()) }, at(30, 1));
    let written = writes(triage.look(at(30, 1)));
    assert_eq!(
        written.iter().map(|w| &*w.diagnosis.status.as_ref().unwrap().cause).collect::<Vec<_>>(),
        ["InsufficientCapacity"]
    );
    // The pods stay known, so the silence between two refusals changes nothing. At last Karpenter asks no more.
    for minute in 31..90 {
        for order in triage.look(at(minute, 0)) {
            if let Order::ListPods(node) = order {
                assert!(minute <= 60, "asked after {minute} minutes");
                triage.take(Change::Pods { node, pods: Ok(waiting()) }, at(minute, 0));
            }
        }
        assert!(minute > 60 || triage.open().count() == 1, "no verdict after {minute} minutes");
    }
    assert_eq!((triage.open().count(), triage.cluster().pods().count()), (0, 0));
}

/// A machine that does not join, with a role that aws-auth gives a group of the cluster's own.
fn in_doubt() -> (Triage, Identity) {
    let mut triage = started(Vec::new());
    triage.take(
        applied(
            Input::NodeClasses,
            json!({ "kind": "EC2NodeClass", "metadata": { "name": "default" }, "spec": { "role": "shop" } }),
        ),
        at(0, 0),
    );
    let entry = "- rolearn: arn:aws:iam::111122223333:role/shop\n  username: system:node:{{EC2PrivateDNSName}}\n  \
                 groups: [our-nodes]\n";
    triage.take(applied(Input::AwsAuth, aws_auth(entry)), at(0, 0));
    let conditions = [condition("Launched", "True", "Launched"), condition("Registered", "Unknown", "NodeNotFound")];
    triage.take(applied(Input::NodeClaims, claim(&conditions, None)), at(0, 0));
    (triage, Identity::new("system:node:nodewhy-asks", ["our-nodes".to_owned()]))
}

fn aws_auth(map_roles: &str) -> Value {
    json!({ "metadata": { "name": "aws-auth", "namespace": "kube-system" }, "data": { "mapRoles": map_roles } })
}

fn answer(identity: &Identity, allowed: bool) -> Change {
    let mut review = identity.review();
    review["status"] = json!({ "allowed": allowed });
    Change::Access {
        identity: identity.clone(),
        answer: Object::from_value(Input::AccessReviews, review).map(Box::new).map_err(|_| ReadFailure::NotInstalled),
    }
}

fn said(orders: Vec<Order>) -> Vec<(String, Confidence)> {
    let statuses = writes(orders).into_iter().filter_map(|write| diagnosis(write).status);
    statuses.map(|status| (status.cause.to_string(), status.confidence)).collect()
}

#[test]
fn the_rights_of_a_stuck_machines_kubelet_are_asked_before_it_is_judged() {
    let (mut triage, identity) = in_doubt();
    assert_eq!(triage.look(at(1, 0)), []);
    assert_eq!(triage.look(at(2, 0)), [Order::ReviewAccess(identity.clone())]);
    triage.take(answer(&identity, false), at(2, 1));
    assert_eq!(said(triage.look(at(2, 1))), [("AwsAuthEntryIncomplete".to_owned(), Confidence::Certain)]);

    // Somebody binds the group: the next answer says so.
    let orders = triage.look(at(4, 0));
    assert_eq!(orders, [Order::ReviewAccess(identity.clone())]);
    triage.take(answer(&identity, true), at(4, 1));
    triage.look(at(4, 1));
    // It may be joining right now.
    assert_eq!(said(triage.look(at(6, 0))), []);
    assert_eq!(said(triage.look(at(8, 0))), [("Unknown".to_owned(), Confidence::Possible)]);
}

#[test]
fn who_may_not_ask_says_so_once_and_is_no_surer_than_likely() {
    let (mut triage, identity) = in_doubt();
    assert_eq!(triage.look(at(5, 0)), [Order::ReviewAccess(identity.clone())]);
    let refused = || Change::Access {
        identity: identity.clone(),
        answer: Err(ReadFailure::NotPermitted("create subjectaccessreviews".to_owned())),
    };
    triage.take(refused(), at(5, 1));
    let [write] = &writes(triage.look(at(5, 1)))[..] else { panic!("one verdict") };
    let status = write.diagnosis.status.as_ref().unwrap();
    assert_eq!((&*status.cause, status.confidence), ("AwsAuthEntryIncomplete", Confidence::Likely));
    let unknown = &status.unknowns[0];
    assert!(unknown.question.contains("not permitted: create subjectaccessreviews"), "{unknown:?}");
    assert_eq!(unknown.command, "kubectl auth can-i create nodes --as=system:node:nodewhy-asks --as-group=our-nodes");

    let mut asked = 0;
    for minute in 6..60 {
        let orders = triage.look(at(minute, 0));
        asked += orders.iter().filter(|order| matches!(order, Order::ReviewAccess(_))).count();
        triage.take(refused(), at(minute, 1));
        assert_eq!(writes(orders), []);
        assert_eq!(writes(triage.look(at(minute, 1))), []);
    }
    assert!((5..30).contains(&asked), "asked {asked} times in an hour");
}

#[test]
fn one_question_serves_all_machines_of_a_role_and_another_entry_is_another_question() {
    let (mut triage, identity) = in_doubt();
    let mut other =
        claim(&[condition("Launched", "True", "Launched"), condition("Registered", "Unknown", "NodeNotFound")], None);
    other["metadata"]["name"] = json!("general-b");
    other["metadata"]["uid"] = json!("9");
    triage.take(applied(Input::NodeClaims, other), at(0, 0));
    assert_eq!(triage.look(at(2, 0)), [Order::ReviewAccess(identity.clone())]);
    triage.take(answer(&identity, false), at(2, 1));
    assert_eq!(writes(triage.look(at(2, 1))).len(), 2);

    triage.take(
        applied(
            Input::AwsAuth,
            aws_auth("- rolearn: arn:aws:iam::111122223333:role/shop\n  username: x\n  groups: [z]\n"),
        ),
        at(2, 2),
    );
    assert_eq!(triage.look(at(2, 2)), [Order::ReviewAccess(Identity::new("x", ["z".to_owned()]))]);
    assert_eq!(triage.cluster().access(&identity), None);
    // The old answer comes late.
    triage.take(answer(&identity, true), at(2, 3));
    assert_eq!(triage.cluster().access(&identity), None);
}

#[test]
fn a_node_without_provider_id_is_news_for_every_claim_that_waits_for_one() {
    let mut triage = started(Vec::new());
    let conditions = [condition("Launched", "True", "Launched"), condition("Registered", "Unknown", "NodeNotFound")];
    triage.take(applied(Input::NodeClaims, claim(&conditions, None)), at(0, 0));
    let cause =
        |triage: &mut Triage, at| writes(triage.look(at)).last().and_then(|w| Some(w.diagnosis.status.clone()?.cause));
    assert_eq!(cause(&mut triage, at(6, 0)).as_deref(), Some("Unknown"));
    let anonymous =
        json!({ "metadata": { "name": "ip-10-0-0-1", "uid": "2", "creationTimestamp": at(7, 0) }, "spec": {} });
    triage.take(applied(Input::Nodes, anonymous), at(7, 0));
    assert_eq!(cause(&mut triage, at(7, 0)), None, "the cloud controller may only be about to set it");
    let said: Vec<_> = writes(triage.look(at(10, 0)))
        .into_iter()
        .map(|w| (w.diagnosis.spec.subject.kind.clone(), w.diagnosis.status.as_ref().unwrap().cause.clone()))
        .collect();
    assert!(said.contains(&("NodeClaim".to_owned(), "NodeWithoutProviderID".into())), "{said:?}");
}

#[test]
fn a_node_that_claims_to_come_from_the_future_holds_up_no_verdict() {
    let causes = |created: DateTime<Utc>| {
        let mut triage = started(Vec::new());
        let conditions =
            [condition("Launched", "True", "Launched"), condition("Registered", "Unknown", "NodeNotFound")];
        triage.take(applied(Input::NodeClaims, claim(&conditions, None)), at(0, 0));
        let anonymous =
            json!({ "metadata": { "name": "ip-10-0-0-1", "uid": "2", "creationTimestamp": created }, "spec": {} });
        triage.take(applied(Input::Nodes, anonymous), at(6, 0));
        writes(triage.look(at(6, 0))).iter().filter_map(|w| Some(w.diagnosis.cause()?.to_owned())).collect::<Vec<_>>()
    };
    assert_eq!(causes(at(6, 0)), [""; 0], "the cloud controller may only be about to set its providerID");
    assert_eq!(causes(at(24 * 60, 0)), ["Unknown"]);
}

#[test]
fn our_own_events_are_no_evidence() {
    let mut triage = started(Vec::new());
    let event = json!({
        "metadata": { "name": "e", "namespace": "default" }, "reason": "Unknown", "reportingComponent": "nodewhy",
        "involvedObject": { "kind": "NodeClaim", "name": "general-a" },
    });
    triage.take(applied(Input::Events, event), at(1, 0));
    assert_eq!(triage.cluster().events("NodeClaim", "general-a").count(), 0);
}

#[test]
fn a_machine_that_hangs_in_its_deletion_is_news_again() {
    let mut triage = started(Vec::new());
    let conditions = ["Launched", "Registered", "Initialized"].map(|type_| condition(type_, "True", type_));
    triage.take(applied(Input::NodeClaims, claim(&conditions, None)), at(0, 0));
    let mut silent = node("Unknown");
    silent["status"]["conditions"][0]["reason"] = json!("NodeStatusUnknown");
    triage.take(applied(Input::Nodes, silent), at(0, 0));
    no_pods(&mut triage, at(0, 0));
    let mut orders = triage.look(at(10, 0));
    no_pods(&mut triage, at(10, 1));
    orders.extend(triage.look(at(10, 1)));
    assert_eq!(
        writes(orders).last().and_then(|w| w.diagnosis.cause().map(str::to_owned)).as_deref(),
        Some("KubeletStopped")
    );
    triage.take(applied(Input::NodeClaims, claim(&conditions, Some(at(20, 0)))), at(20, 0));
    triage.take(
        Change::Removed { input: Input::Nodes, namespace: None, name: "ip-10-0-0-1".to_owned(), last: None },
        at(21, 0),
    );
    assert_eq!(writes(triage.look(at(21, 0))).last().and_then(|w| w.ends), Some(Outcome::Deleted));
    assert_eq!(writes(triage.look(at(79, 0))), []);
    let stuck = writes(triage.look(at(80, 0)));
    assert_eq!(stuck.first().and_then(|w| w.diagnosis.cause()), Some("TerminationStuck"));
    assert!(stuck.iter().all(|w| w.announces && w.ends.is_none()));
    triage.take(removed(None), at(95, 0));
    assert_eq!(writes(triage.look(at(95, 0))).last().and_then(|w| w.ends), Some(Outcome::Deleted));
}

#[test]
fn an_end_by_design_is_told_as_one() {
    let (mut triage, _) = sick();
    let disrupted = condition("DisruptionReason", "True", "Drifted");
    let conditions = [
        condition("Launched", "True", "Launched"),
        condition("Registered", "False", "UnregisteredTaintNotFound"),
        disrupted,
    ];
    triage.take(applied(Input::NodeClaims, claim(&conditions, Some(at(5, 0)))), at(5, 0));
    let written = writes(triage.look(at(5, 0)));
    let ended =
        written.last().and_then(|w| w.diagnosis.status.as_ref()?.conditions.iter().find(|c| c.type_ == "Ended"));
    assert!(
        ended.is_some_and(|c| c
            .message
            .ends_with("was deleted after 5m: it had drifted from its NodePool or node class")),
        "{ended:?}"
    );
}

// The life of a diagnosis in the cluster.

/// Another machine of the same NodePool, refused like the first.
fn other(name: &str, deleted: Option<DateTime<Utc>>) -> Value {
    let mut claim = refused(deleted);
    claim["metadata"]["name"] = json!(name);
    claim["metadata"]["uid"] = json!(name);
    claim["status"]["providerID"] = json!(format!("aws:///eu-west-1a/i-{name}"));
    claim
}

fn recurrences(write: &Write) -> u32 {
    write.diagnosis.status.as_ref().unwrap().recurrences
}

fn deletes(orders: &[Order]) -> Vec<&str> {
    orders
        .iter()
        .filter_map(|order| if let Order::Delete(delete) = order { Some(delete.name.as_str()) } else { None })
        .collect()
}

fn summaries(orders: &[Order]) -> Vec<&IncidentSummary> {
    orders
        .iter()
        .filter_map(|order| if let Order::Summarize(summary) = order { Some(&**summary) } else { None })
        .collect()
}

/// Carries out the orders, as the publisher and the watch do, on what a cluster holds.
fn carry_out(
    triage: &mut Triage,
    orders: Vec<Order>,
    cluster: &mut BTreeMap<String, NodeDiagnosis>,
    now: DateTime<Utc>,
) {
    for order in orders {
        match order {
            Order::Write(write) => {
                let name = write.diagnosis.metadata.name.clone().unwrap();
                let mut diagnosis = diagnosis(*write);
                diagnosis.metadata.uid = Some(format!("of-{name}"));
                cluster.insert(name, diagnosis.clone());
                triage.take(shown(diagnosis), now);
            }
            Order::Delete(delete) => {
                cluster.remove(&delete.name);
                triage.take(Change::DiagnosisGone(delete.name), now);
            }
            Order::Summarize(_) | Order::Announce(_) | Order::ListPods(_) | Order::ReviewAccess(_) => {}
        }
    }
}

#[test]
fn a_diagnosis_that_a_user_deletes_comes_back_while_the_machine_is_stuck() {
    let (mut triage, known) = sick();
    triage.take(shown(known.clone()), at(2, 0));
    triage.take(Change::DiagnosisGone("general-a".to_owned()), at(2, 0));
    let again = writes(triage.look(at(2, 0)));
    assert_eq!(again.len(), 1);
    assert_eq!(again[0].diagnosis.status, known.status);
    assert!(!again[0].announces, "it was said once");
    // What ended and is deleted stays away.
    triage.take(shown(known), at(2, 0));
    triage.take(removed(None), at(3, 0));
    let ended = diagnosis(writes(triage.look(at(3, 0))).remove(0));
    triage.take(shown(ended), at(3, 0));
    triage.take(Change::DiagnosisGone("general-a".to_owned()), at(4, 0));
    assert_eq!(triage.look(at(4, 0)), []);
}

#[test]
fn what_the_budget_of_removals_counts_on_is_not_forgotten_for_being_one_too_many() {
    let mut triage = started(Vec::new());
    triage.take(applied(Input::NodeClaims, other("general-00", None)), at(0, 0));
    triage.look(at(0, 0));
    let last = Box::new(Object::from_value(Input::NodeClaims, other("general-00", None)).unwrap());
    triage.take(
        Change::Removed { input: Input::NodeClaims, namespace: None, name: "general-00".to_owned(), last: Some(last) },
        at(1, 0),
    );
    let ended = diagnosis(writes(triage.look(at(1, 0))).remove(0));
    let history: Vec<_> = (0..12)
        .map(|n| {
            let mut diagnosis = ended.clone();
            diagnosis.metadata.name = Some(format!("general-{n:02}"));
            diagnosis.spec.subject.name = format!("general-{n:02}");
            let status = diagnosis.status.as_mut().unwrap();
            status.recurrences = n;
            // The oldest, and the next but one: one removal an hour ago, one that was refused.
            if let Some(reason) = [Some("Removed"), None, Some("Cordoned")].get(n as usize).copied().flatten() {
                status.conditions.push(crate::api::Condition {
                    type_: remediation::CONDITION.into(),
                    status: if reason == "Removed" { "True" } else { "False" }.into(),
                    last_transition_time: at(1, 0),
                    reason: reason.into(),
                    message: Text::default(),
                    observed_generation: None,
                });
            }
            diagnosis
        })
        .collect();
    let deleted = |minute| {
        let orders = started(history.clone()).look(at(minute, 0));
        let names = orders
            .into_iter()
            .filter_map(|order| if let Order::Delete(delete) = order { Some(delete.name) } else { None });
        names.collect::<Vec<_>>()
    };
    assert_eq!(deleted(61), ["general-01", "general-02"]);
}

#[test]
fn a_pool_that_fails_all_night_leaves_as_many_as_are_kept_and_counts_the_rest() {
    let mut cluster = BTreeMap::new();
    let mut triage = started(Vec::new());
    for round in 0..60 {
        // Ten hours, a restart in the middle.
        if round == 30 {
            triage = started(cluster.values().cloned().collect());
        }
        let (name, now) = (format!("general-{round:02}"), at(10 * round, 0));
        triage.take(applied(Input::NodeClaims, other(&name, None)), now);
        let orders = triage.look(now);
        assert_eq!(
            orders.iter().find_map(|o| if let Order::Write(w) = o { Some(recurrences(w)) } else { None }),
            u32::try_from(round).ok()
        );
        carry_out(&mut triage, orders, &mut cluster, now);
        let last = Box::new(Object::from_value(Input::NodeClaims, other(&name, None)).unwrap());
        triage.take(Change::Removed { input: Input::NodeClaims, namespace: None, name, last: Some(last) }, now);
        let orders = triage.look(now);
        carry_out(&mut triage, orders, &mut cluster, now);
        assert!(cluster.len() <= Keep::default().history);
    }
    assert_eq!(cluster.len(), Keep::default().history);
    assert!(cluster.contains_key("general-59") && !cluster.contains_key("general-49"), "the newest stay");
}

#[test]
fn what_ended_is_deleted_after_the_retention_time_and_not_before() {
    let (mut triage, _) = sick();
    triage.take(removed(None), at(20, 0));
    triage.look(at(20, 0));
    let end = at(20, 0) + Keep::default().retention;
    assert_eq!(triage.next_look(), Some(end));
    assert_eq!(triage.look(end - TimeDelta::seconds(1)), []);
    assert_eq!(deletes(&triage.look(end)), ["general-a"]);
    assert_eq!(triage.next_look(), None);
}

#[test]
fn a_post_mortem_holds_what_claim_node_and_events_said_last() {
    let mut triage = started(Vec::new());
    triage.take(applied(Input::Nodes, node("False")), at(1, 0));
    triage.take(applied(Input::NodeClaims, refused(None)), at(1, 0));
    triage.look(at(1, 0));
    let event = json!({
        "metadata": { "name": "e", "namespace": "default" }, "reason": "InvalidDiskCapacity", "message": "invalid \
            capacity 0 on image filesystem",
        "involvedObject": { "kind": "Node", "name": "ip-10-0-0-1" }, "lastTimestamp": at(9, 0),
    });
    triage.take(applied(Input::Events, event), at(9, 0));
    triage.take(applied(Input::NodeClaims, refused(Some(at(15, 1)))), at(15, 1));
    let written = diagnosis(writes(triage.look(at(15, 1))).remove(0));
    let told: Vec<_> = written
        .status
        .unwrap()
        .evidence
        .into_iter()
        .map(|e| format!("{} {} {}", e.object, e.field, e.observed))
        .collect();
    let tells = |words: &str| assert!(told.iter().any(|line| line.contains(words)), "{words} is not in {told:#?}");
    tells("NodeClaim/general-a status.conditions[?(@.type==\"Registered\")] False UnregisteredTaintNotFound");
    tells("Node/ip-10-0-0-1 status.conditions[?(@.type==\"Ready\")] False Kubelet");
    tells("Event Node/ip-10-0-0-1 message InvalidDiskCapacity: invalid capacity 0 on image filesystem");
}

// Replicas.

/// A replica that sees everything and does not lead.
fn standby() -> Triage {
    let mut triage = fresh(Vec::new());
    triage.start();
    triage
}

#[test]
fn a_replica_that_does_not_lead_orders_nothing_and_then_what_the_leader_did_not_come_to() {
    let mut standby = standby();
    let (mut leader, mut cluster) = (started(Vec::new()), BTreeMap::new());
    for name in ["general-a", "general-b", "general-c"] {
        for triage in [&mut leader, &mut standby] {
            triage.take(applied(Input::NodeClaims, other(name, None)), at(1, 0));
        }
    }
    let mut ordered = leader.look(at(1, 0));
    assert_eq!(standby.look(at(1, 0)), []);
    // The leader dies after the first write, which the standby sees; then one of the other machines goes away.
    ordered.truncate(1);
    carry_out(&mut standby, ordered, &mut cluster, at(1, 1));
    standby.take(
        Change::Removed { input: Input::NodeClaims, namespace: None, name: "general-c".into(), last: None },
        at(16, 0),
    );
    assert_eq!(standby.look(at(16, 0)), []);
    standby.lead();
    let taken_over = writes(standby.look(at(16, 1)));
    let names: Vec<_> = taken_over.iter().map(|w| (w.diagnosis.metadata.name.as_deref().unwrap(), w.ends)).collect();
    assert_eq!(names, [("general-b", None), ("general-c", Some(Outcome::Terminated))]);
    assert!(taken_over.iter().all(|w| w.announces && !w.replaces), "nobody has said it");
    assert_eq!(standby.look(at(17, 0)), []);
}

#[test]
fn a_replica_that_follows_takes_the_leaders_word_but_not_one_from_before_the_end() {
    let mut standby = standby();
    standby.take(applied(Input::NodeClaims, refused(None)), at(1, 0));
    standby.look(at(1, 0));
    let (_, mut written) = sick();
    written.status.as_mut().unwrap().summary = "The leader has seen more.".into();
    standby.take(shown(written.clone()), at(1, 0));
    assert_eq!(standby.open().next().unwrap().status, written.status);
    standby.take(removed(Some(refused(None))), at(15, 2));
    standby.look(at(15, 2));
    standby.take(shown(written), at(15, 3));
    standby.look(at(15, 3));
    standby.lead();
    assert_eq!(writes(standby.look(at(15, 4)))[0].ends, Some(Outcome::Terminated));
}

#[test]
fn a_replica_that_takes_over_deletes_no_diagnosis_of_the_machine_it_is_about() {
    let (_, known) = sick();
    let mut standby = fresh(vec![known]);
    standby.start();
    let mut another = refused(None);
    another["metadata"]["uid"] = json!("9");
    standby.take(applied(Input::NodeClaims, another), at(1, 0));
    standby.look(at(1, 0));
    // The leader has put the new one in place of the old one, and did not come to its status.
    let mut half = standby.open().next().unwrap().clone();
    half.status = None;
    standby.take(Change::DiagnosisGone("general-a".to_owned()), at(1, 1));
    standby.take(shown(half), at(1, 1));
    standby.lead();
    let written = writes(standby.look(at(1, 2)));
    assert_eq!(written.len(), 1);
    assert!(!written[0].replaces && written[0].diagnosis.status.is_some());
}

fn announced(orders: &[Order]) -> Vec<&str> {
    orders
        .iter()
        .filter_map(
            |order| if let Order::Announce(diagnosis) = order { diagnosis.metadata.name.as_deref() } else { None },
        )
        .collect()
}

/// The leader may have died between a verdict and its Event. The Event has one name, so that the API server has it
/// once.
#[test]
fn who_takes_over_sends_the_events_of_the_last_minutes_again() {
    let mut standby = standby();
    for name in ["general-a", "general-b"] {
        standby.take(applied(Input::NodeClaims, other(name, None)), at(1, 0));
    }
    standby.look(at(1, 0));
    let mut leader = started(Vec::new());
    leader.take(applied(Input::NodeClaims, other("general-a", None)), at(1, 0));
    let written = writes(leader.look(at(1, 0))).remove(0);
    standby.take(shown(diagnosis(written)), at(1, 1));
    standby.lead();
    standby.announce_again(at(1, 20));
    let orders = standby.look(at(1, 20));
    assert_eq!(announced(&orders), ["general-a"]);
    let own: Vec<_> = writes(orders).into_iter().map(|w| (w.diagnosis.metadata.name.clone(), w.announces)).collect();
    assert_eq!(own, [(Some("general-b".to_owned()), true)], "what is still to be written brings its Event with it");
    standby.announce_again(at(9, 0));
    assert_eq!(announced(&standby.look(at(9, 0))), [""; 0], "that is long ago");
}

/// The kind was older than nodewhy and lacked a field. Its upgrade ends the watch.
#[test]
fn what_the_kind_could_not_hold_is_written_again_after_a_new_list() {
    let (mut triage, written) = sick();
    let mut lacking = written.clone();
    lacking.status.as_mut().unwrap().ruled_out.clear();
    lacking.status.as_mut().unwrap().summary = "Cut.".into();
    let listed = || Change::DiagnosesListed(BTreeSet::from(["general-a".to_owned()]));
    triage.take(shown(lacking.clone()), at(1, 1));
    assert_eq!(triage.look(at(1, 2)), [], "not while nothing else is known");
    triage.take(shown(lacking), at(5, 0));
    triage.take(listed(), at(5, 0));
    let [again] = <[Write; 1]>::try_from(writes(triage.look(at(5, 0)))).unwrap();
    assert_eq!(again.diagnosis.status, written.status);
    assert!(!again.announces && !again.first && !again.replaces);
    triage.take(shown(written), at(5, 1));
    triage.take(listed(), at(9, 0));
    assert_eq!(triage.look(at(9, 0)), [], "now it is there");
}

/// A probe asks whether the operator makes progress while it judges thousands.
#[test]
fn each_subject_that_is_judged_is_a_sign_of_life() {
    let mut triage = started(Vec::new());
    for name in ["general-a", "general-b", "general-c"] {
        triage.take(applied(Input::NodeClaims, other(name, None)), at(1, 0));
    }
    let signs = std::cell::Cell::new(0);
    triage.look_telling(at(1, 0), || signs.set(signs.get() + 1));
    assert!(signs.get() >= 3, "{}", signs.get());
}

// Incidents.

fn pool_and_class(triage: &mut Triage) {
    let pool = json!({
        "metadata": { "name": "general", "uid": "p" },
        "spec": { "template": { "spec": { "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" } } } },
    });
    triage.take(applied(Input::NodePools, pool), at(0, 0));
    let class = json!({ "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": { "name": "default", "uid": "c" } });
    triage.take(applied(Input::NodeClasses, class), at(0, 0));
}

#[test]
fn a_thousand_claims_are_summarized_a_dozen_times_on_their_pool_and_class() {
    let mut triage = started(Vec::new());
    pool_and_class(&mut triage);
    let mut told = Vec::new();
    for machine in 0..1000 {
        triage.take(applied(Input::NodeClaims, other(&format!("general-{machine}"), None)), at(1, 0));
        told.extend(summaries(&triage.look(at(1, 0))).into_iter().cloned());
    }
    let notes: Vec<_> =
        told.iter().map(|s| s.note.split(" is stuck").next().unwrap().split(" are stuck").next().unwrap()).collect();
    assert_eq!(
        notes[..3],
        ["1 machine of NodePool general", "2 machines of NodePool general", "4 machines of NodePool general"]
    );
    assert_eq!(notes.len(), 10);
    let regarding: Vec<_> = told[0].regarding.iter().map(|r| (r.kind.as_str(), r.uid.as_str())).collect();
    assert_eq!(regarding, [("NodePool", "p"), ("EC2NodeClass", "c")]);
}

#[test]
fn a_restart_summarizes_nothing_anew() {
    let mut triage = started(Vec::new());
    pool_and_class(&mut triage);
    triage.take(applied(Input::NodeClaims, refused(None)), at(1, 0));
    let orders = triage.look(at(1, 0));
    assert_eq!(summaries(&orders).len(), 1);
    let known = writes(orders).into_iter().map(diagnosis);
    let mut triage = fresh(known.collect());
    pool_and_class(&mut triage);
    triage.take(applied(Input::NodeClaims, refused(None)), at(9, 0));
    triage.start();
    triage.lead();
    assert_eq!(triage.look(at(9, 0)), []);
}

/// The written diagnoses of the NodePool.
fn of_pool(orders: Vec<Order>) -> Vec<NodeDiagnosis> {
    let of_pool = |write: &Write| write.diagnosis.spec.subject.kind == "NodePool";
    writes(orders).into_iter().filter(of_pool).map(diagnosis).collect()
}

fn counted(diagnosis: &NodeDiagnosis) -> (u32, u32, u32) {
    let machines = diagnosis.status.as_ref().unwrap().machines.as_ref().unwrap();
    (machines.stuck, machines.causes[0].so_far, machines.failed_launches)
}

fn gone(name: &str, deleted: DateTime<Utc>) -> Change {
    let last = Box::new(Object::from_value(Input::NodeClaims, other(name, Some(deleted))).unwrap());
    Change::Removed { input: Input::NodeClaims, namespace: None, name: name.to_owned(), last: Some(last) }
}

fn joined(name: &str, at: DateTime<Utc>) -> Change {
    let mut claim = other(name, None);
    let conditions = ["Launched", "Registered", "Initialized"];
    claim["status"]["conditions"] = conditions
        .map(|type_| json!({"type": type_, "status": "True", "reason": type_, "lastTransitionTime": at}))
        .into();
    applied(Input::NodeClaims, claim)
}

#[test]
fn machines_that_are_stuck_are_counted_on_their_pool_and_that_is_written_first() {
    let mut triage = started(Vec::new());
    pool_and_class(&mut triage);
    triage.take(applied(Input::NodeClaims, other("general-0", None)), at(1, 0));
    assert_eq!(of_pool(triage.look(at(1, 0))), [], "of one machine its own diagnosis says everything");
    for machine in 1..300 {
        triage.take(applied(Input::NodeClaims, other(&format!("general-{machine}"), None)), at(1, 1));
    }
    let orders = triage.look(at(1, 1));
    let Some(Order::Write(first)) = orders.first() else { panic!("{orders:?}") };
    assert_eq!(first.diagnosis.metadata.name.as_deref(), Some("nodepool-general"));
    assert!(!first.announces && first.ends.is_none() && first.in_vain.is_none(), "each machine has said it");
    let status = first.diagnosis.status.clone().unwrap();
    assert!(status.summary.starts_with("300 machines of NodePool general are stuck: Karpenter"), "{}", status.summary);
    assert_eq!((counted(&first.diagnosis), &*status.cause), ((300, 300, 0), "UnregisteredTaintMissing"));
    assert_eq!(triage.open().count(), 300, "no machine is counted twice");
    assert_eq!(status.first_observed_at, at(0, 0));
}

#[test]
fn what_is_counted_on_a_pool_is_written_seldom_and_is_right_in_the_end() {
    let mut triage = started(Vec::new());
    pool_and_class(&mut triage);
    let mut said = Vec::new();
    for machine in 0..1000 {
        let now = at(1, machine / 100);
        triage.take(applied(Input::NodeClaims, other(&format!("general-{machine}"), None)), now);
        said.extend(of_pool(triage.look(now)));
    }
    assert!((8..13).contains(&said.len()), "{} writes", said.len());
    let due = triage.pools.next_due().unwrap();
    assert!(due <= at(1, 40), "{due}");
    said.extend(of_pool(triage.look(due)));
    assert_eq!(counted(said.last().unwrap()).0, 1000);
    assert_eq!((triage.pools.next_due(), of_pool(triage.look(at(60, 0)))), (None, vec![]), "time alone writes nothing");

    // Neither does a restart.
    let known: Vec<_> = triage.diagnoses().cloned().collect();
    let mut triage = fresh(known);
    pool_and_class(&mut triage);
    for machine in 0..1000 {
        triage.take(applied(Input::NodeClaims, other(&format!("general-{machine}"), None)), at(61, 0));
    }
    triage.start();
    triage.lead();
    assert_eq!(triage.look(at(61, 0)), []);
}

/// One machine after the other, each for fifteen minutes.
fn launched_in_vain(triage: &mut Triage) -> Vec<NodeDiagnosis> {
    pool_and_class(triage);
    let mut said = Vec::new();
    for round in 0..4 {
        let name = format!("general-{round}");
        triage.take(applied(Input::NodeClaims, other(&name, None)), at(20 * round, 0));
        said.extend(of_pool(triage.look(at(20 * round, 0))));
        triage.take(gone(&name, at(20 * round + 15, 0)), at(20 * round + 15, 0));
        said.extend(of_pool(triage.look(at(20 * round + 15, 0))));
    }
    said
}

#[test]
fn an_incident_goes_on_from_machine_to_machine_until_one_joins() {
    let mut triage = started(Vec::new());
    let said = launched_in_vain(&mut triage);
    // The claims of this test are all as old as its first minute.
    let seconds = |d: &NodeDiagnosis| d.status.as_ref().unwrap().machines.as_ref().unwrap().failed_launch_seconds;
    assert_eq!(
        said.iter().map(counted).collect::<Vec<_>>(),
        [(1, 2, 1), (0, 2, 2), (1, 3, 2), (0, 3, 3), (1, 4, 3), (0, 4, 4)]
    );
    assert!(said.iter().all(NodeDiagnosis::is_open));
    assert_eq!(seconds(said.last().unwrap()), 60 * (15 + 35 + 55 + 75));
    assert!(said[1].status.as_ref().unwrap().summary.starts_with("No machine of NodePool general is stuck just now"));

    triage.take(joined("general-ok", at(78, 0)), at(78, 0));
    let ended = of_pool(triage.look(at(78, 0)));
    let status = ended[0].status.as_ref().unwrap();
    assert_eq!((status.outcome, status.ended_at), (Some(Outcome::Recovered), Some(at(78, 0))));
    let end = status.conditions.iter().find(|c| c.type_ == "Ended").unwrap();
    assert_eq!(end.message, "a machine of the NodePool became usable, after 1h 18m");
    // A later incident does not make it forgotten.
    for name in ["general-x", "general-y"] {
        triage.take(applied(Input::NodeClaims, other(name, None)), at(90, 0));
    }
    let again = of_pool(triage.look(at(90, 0)));
    assert_eq!(counted(&again[0]).2, 0, "failed launches before belong to the earlier incident");
    let earlier = &again[0].status.as_ref().unwrap().earlier;
    assert_eq!((earlier.len(), earlier[0].outcome, earlier[0].ended_at), (1, Outcome::Recovered, at(78, 0)));
}

#[test]
fn an_incident_that_nobody_follows_ends_when_it_was_quiet_for_long() {
    let mut triage = started(Vec::new());
    launched_in_vain(&mut triage);
    assert_eq!(triage.pools.next_due(), Some(at(105, 0)));
    assert_eq!(of_pool(triage.look(at(104, 59))), []);
    let ended = of_pool(triage.look(at(105, 0)));
    let status = ended[0].status.as_ref().unwrap();
    assert_eq!((status.outcome, status.ended_at), (Some(Outcome::Deleted), Some(at(75, 0))));
    assert_eq!(triage.pools.next_due(), None);
    assert!(deletes(&triage.look(at(75, 0) + Keep::default().retention)).contains(&"nodepool-general"));
}

#[test]
fn an_incident_without_stuck_machines_ends_after_a_restart_too() {
    let mut triage = started(Vec::new());
    launched_in_vain(&mut triage);
    let mut triage = fresh(triage.diagnoses().cloned().collect());
    pool_and_class(&mut triage);
    triage.start();
    triage.lead();
    assert_eq!(of_pool(triage.look(at(80, 0))), []);
    assert_eq!(triage.pools.next_due(), Some(at(105, 0)));
    let ended = of_pool(triage.look(at(105, 0)));
    let status = ended[0].status.as_ref().unwrap();
    assert_eq!((status.outcome, status.ended_at), (Some(Outcome::Deleted), Some(at(75, 0))));
    assert_eq!(counted(&ended[0]).0, 0);
}

#[test]
fn what_was_changed_before_the_first_failure_is_told_though_all_that_had_joined_are_gone() {
    let mut triage = started(Vec::new());
    pool_and_class(&mut triage);
    let class = json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass",
        "metadata": {
            "name": "default", "uid": "c",
            "managedFields": [{
                "manager": "argocd", "operation": "Apply", "time": "2026-11-21T09:55:00Z", "fieldsV1": { "f:spec": {} },
            }],
        },
    });
    triage.take(applied(Input::NodeClasses, class), at(0, 0));
    triage.take(joined("general-old", at(-10, 0)), at(0, 0));
    for name in ["general-0", "general-1"] {
        triage.take(applied(Input::NodeClaims, other(name, None)), at(1, 0));
    }
    let mut said = of_pool(triage.look(at(1, 0)));
    for name in ["general-old", "general-0", "general-1"] {
        triage.take(gone(name, at(15, 0)), at(15, 0));
    }
    triage.look(at(15, 0));
    triage.take(applied(Input::NodeClaims, other("general-2", None)), at(16, 0));
    said.extend(of_pool(triage.look(at(16, 0))));
    let changes = |diagnosis: &NodeDiagnosis| {
        let evidence = &diagnosis.status.as_ref().unwrap().evidence;
        evidence.iter().filter(|e| e.observed == "2026-11-21 09:55:00Z by argocd").count()
    };
    let example = |diagnosis: &NodeDiagnosis| diagnosis.status.as_ref()?.machines.as_ref()?.example.clone();
    assert_eq!(said.iter().map(changes).collect::<Vec<_>>(), vec![1; said.len()]);
    assert_eq!(said.last().and_then(example).as_deref(), Some("general-2"));
}

fn commands(diagnosis: &NodeDiagnosis) -> Vec<&str> {
    let fix = diagnosis.status.as_ref().unwrap().fix.as_ref().unwrap();
    let of_groups = |command: &&str| command.contains("patch nodepool") || command.contains("patch ec2nodeclass");
    fix.steps.iter().filter_map(|step| step.command.as_deref()).filter(of_groups).collect()
}

#[test]
fn what_stops_launches_in_vain_is_recommended_once_two_were_and_none_has_joined() {
    let mut triage = started(Vec::new());
    let said = launched_in_vain(&mut triage);
    assert_eq!(commands(&said[0]), [""; 0], "one machine is no row");
    let stop = r#"kubectl patch nodepool general --type=merge -p '{"spec":{"limits":{"cpu":"0"}}}'"#;
    let back = r#"kubectl patch nodepool general --type=merge -p '{"spec":{"limits":{"cpu":null}}}'"#;
    assert_eq!(commands(&said[1]), [stop, back]);
    assert_eq!(commands(said.last().unwrap()), [stop, back]);
    // Once it is done, the way back stays.
    let limited = json!({
        "metadata": { "name": "general", "uid": "p" },
        "spec": { "limits": { "cpu": "0" }, "template": { "spec": { "nodeClassRef": {
            "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default",
        } } } },
    });
    triage.take(applied(Input::NodePools, limited), at(76, 0));
    triage.take(applied(Input::NodeClaims, other("general-last", None)), at(76, 0));
    let after = of_pool(triage.look(at(76, 0)));
    assert_eq!(commands(after.last().unwrap()), [back]);
    // Where others of the NodePool join meanwhile, it is left to launch.
    triage.take(joined("general-ok", at(79, 0)), at(79, 0));
    for name in ["general-x", "general-y"] {
        triage.take(applied(Input::NodeClaims, other(name, None)), at(79, 1));
    }
    let later = of_pool(triage.look(at(79, 30)));
    assert_eq!(commands(later.last().unwrap()), [""; 0]);
}

#[test]
fn the_images_that_worked_are_pinned_only_where_new_machines_get_another_one() {
    let with_image = |name: &str, image: &str| {
        let mut claim = other(name, None);
        claim["status"]["imageID"] = json!(image);
        let passed =
            |type_: &str| json!({"type": type_, "status": "True", "reason": type_, "lastTransitionTime": at(-60, 0)});
        claim["status"]["conditions"] = ["Launched", "Registered", "Initialized"].map(passed).into();
        applied(Input::NodeClaims, claim)
    };
    let pins = |resolved: &[&str], spec: Value| {
        let mut triage = started(Vec::new());
        pool_and_class(&mut triage);
        let amis: Vec<_> = resolved.iter().map(|id| json!({"id": id})).collect();
        let class = json!({
            "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": { "name": "default", "uid": "c" },
            "spec": spec, "status": { "amis": amis },
        });
        triage.take(applied(Input::NodeClasses, class), at(0, 0));
        triage.take(with_image("general-old-0", "ami-old"), at(0, 0));
        triage.take(with_image("general-old-1", "ami-old"), at(0, 0));
        triage.take(with_image("general-arm", "ami-arm"), at(0, 0));
        for name in ["general-0", "general-1", "general-2"] {
            triage.take(applied(Input::NodeClaims, other(name, None)), at(1, 0));
        }
        let mut said = of_pool(triage.look(at(1, 0)));
        for name in ["general-0", "general-1"] {
            triage.take(gone(name, at(15, 0)), at(15, 0));
        }
        said.extend(of_pool(triage.look(at(16, 0))));
        let last = said.pop().unwrap();
        commands(&last).iter().filter(|c| c.contains("ec2nodeclass")).map(|c| (*c).to_owned()).collect::<Vec<_>>()
    };
    let alias = json!({"amiSelectorTerms": [{"alias": "windows2022@latest"}]});
    assert_eq!(
        pins(&["ami-new", "ami-arm"], alias),
        [
            r#"kubectl patch ec2nodeclass default --type=merge -p '{"spec":{"amiFamily":"Windows2022","amiSelectorTerms":[{"id":"ami-old"},{"id":"ami-arm"}]}}'"#
        ]
    );
    let named = json!({"amiFamily": "AL2023", "amiSelectorTerms": [{"tags": {"team": "a"}}]});
    assert_eq!(
        pins(&["ami-new"], named.clone()),
        [
            r#"kubectl patch ec2nodeclass default --type=merge -p '{"spec":{"amiSelectorTerms":[{"id":"ami-old"},{"id":"ami-arm"}]}}'"#
        ]
    );
    assert_eq!(pins(&["ami-old", "ami-arm"], named), [""; 0], "the image has not changed");
}

#[test]
fn a_pool_that_cannot_launch_says_so_itself_and_counts_beside_it() {
    let mut triage = started(Vec::new());
    pool_and_class(&mut triage);
    for name in ["general-0", "general-1"] {
        triage.take(applied(Input::NodeClaims, other(name, None)), at(1, 0));
    }
    triage.look(at(1, 0));
    let pool = |ready: &str| {
        let condition = json!({"type": "ValidationSucceeded", "status": ready, "reason": "NodePoolValidationFailed", "message": "x", "lastTransitionTime": at(2, 0)});
        applied(
            Input::NodePools,
            json!({
                "metadata": { "name": "general", "uid": "p" },
                "spec": { "template": { "spec": { "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" } } } },
                "status": { "conditions": [condition] },
            }),
        )
    };
    triage.take(pool("False"), at(2, 0));
    triage.look(at(2, 0));
    let own = of_pool(triage.look(at(9, 0)));
    let own = own.last().unwrap_or_else(|| panic!("no verdict of its own"));
    assert!(!own.speaks_for_machines(), "{own:#?}");
    assert_eq!(own.status.as_ref().unwrap().machines.as_ref().unwrap().stuck, 2);
    assert_eq!(triage.open().count(), 3);
    triage.take(pool("True"), at(10, 0));
    let back = of_pool(triage.look(at(10, 0)));
    assert!(back[0].speaks_for_machines() && back[0].cause() == Some("UnregisteredTaintMissing"), "{back:#?}");
    assert_eq!(of_pool(triage.look(at(11, 0))), []);
}

#[test]
fn another_machine_of_the_same_name_leaves_what_was_said_of_the_first() {
    let (mut triage, first) = sick();
    triage.take(removed(Some(refused(None))), at(15, 2));
    triage.look(at(15, 2));
    let mut another = refused(None);
    another["metadata"]["uid"] = json!("9");
    triage.take(applied(Input::NodeClaims, another), at(20, 0));
    let written = writes(triage.look(at(20, 0)));
    let earlier = &written[0].diagnosis.status.as_ref().unwrap().earlier;
    assert!(written[0].replaces);
    assert_eq!((earlier.len(), earlier[0].uid.as_str(), earlier[0].outcome), (1, "1", Outcome::Terminated));
    assert_eq!(earlier[0].summary, first.status.unwrap().summary);
    // It is not said anew.
    triage.schedule.take(Touched::Everything);
    assert_eq!(writes(triage.look(at(21, 0))), []);
}

/// A Node that Karpenter refuses, with a condition of nodewhy's own.
fn node_saying(own: Option<&crate::api::Condition>) -> Value {
    let mut node = node("True");
    if let Some(own) = own {
        node["metadata"]["resourceVersion"] = json!("another");
        node["status"]["conditions"].as_array_mut().unwrap().push(serde_json::to_value(own).unwrap());
    }
    node
}

#[test]
fn a_node_carries_its_verdict_while_it_stands_and_nodewhy_neither_judges_by_it_nor_wakes_for_it() {
    let mut triage = started(Vec::new());
    triage.take(applied(Input::Nodes, node_saying(None)), at(1, 0));
    triage.take(applied(Input::NodeClaims, refused(None)), at(1, 0));
    triage.look(at(1, 0));
    no_pods(&mut triage, at(1, 0));
    let written = writes(triage.look(at(1, 0)));
    let wanted = triage.node_verdicts(true, at(1, 0));
    let condition = wanted[0].condition.clone().unwrap();
    assert_eq!((wanted.len(), wanted[0].node.uid.as_str(), &*condition.reason), (1, "2", "UnregisteredTaintMissing"));
    assert_eq!(condition.message, written[0].diagnosis.status.as_ref().unwrap().summary);

    // As the watch shows it.
    triage.look(at(1, 1));
    triage.take(applied(Input::Nodes, node_saying(Some(&condition))), at(1, 1));
    assert_eq!(triage.schedule.touched(), 0, "it wakes nobody");
    assert_eq!(triage.node_verdicts(true, at(1, 2)), []);
    assert!(triage.cluster.node("ip-10-0-0-1").unwrap().condition(crate::api::NODE_CONDITION).is_none());
    triage.schedule.take(Touched::Everything);
    assert_eq!(writes(triage.look(at(1, 3))), [], "nobody judges by it");
    // Somebody writes another one over it.
    let mut other = condition.clone();
    other.reason = "Other".into();
    triage.take(applied(Input::Nodes, node_saying(Some(&other))), at(1, 4));
    assert_eq!(triage.node_verdicts(true, at(1, 5))[0].condition.as_ref().unwrap().reason, "UnregisteredTaintMissing");
    // One that is switched off takes it away.
    assert_eq!(triage.node_verdicts(false, at(1, 5))[0].condition, None);

    // It joins.
    triage.take(applied(Input::Nodes, node_saying(Some(&condition))), at(2, 0));
    let conditions = ["Launched", "Registered", "Initialized"].map(condition_true);
    triage.take(applied(Input::NodeClaims, claim(&conditions, None)), at(2, 0));
    triage.look(at(2, 0));
    let cleared = triage.node_verdicts(true, at(2, 0));
    assert!(cleared.len() == 1 && cleared[0].condition.is_none(), "{cleared:#?}");
}

fn condition_true(type_: &str) -> Value {
    condition(type_, "True", type_)
}

#[test]
fn a_node_carries_what_names_a_cause_and_is_likely_and_is_of_this_very_node() {
    let (_, mut known) = sick();
    known.spec.node = Some(crate::api::NamedUid { name: "ip-10-0-0-1".to_owned(), uid: "2".to_owned() });
    let carried = |change: fn(&mut NodeDiagnosis)| {
        let mut diagnosis = known.clone();
        change(&mut diagnosis);
        let mut triage = fresh(vec![diagnosis]);
        triage.take(applied(Input::Nodes, node("True")), at(1, 0));
        triage.node_verdicts(true, at(1, 0)).len()
    };
    assert_eq!(carried(|_| ()), 1);
    assert_eq!(carried(|d| d.status.as_mut().unwrap().cause = "Unknown".into()), 0);
    assert_eq!(carried(|d| d.status.as_mut().unwrap().confidence = Confidence::Possible), 0);
    assert_eq!(carried(|d| d.status.as_mut().unwrap().outcome = Some(Outcome::Recovered)), 0);
    assert_eq!(carried(|d| d.spec.node.as_mut().unwrap().uid = "earlier".to_owned()), 0);
}

/// Somebody made it by hand, or a release that knew other subjects.
#[test]
fn what_nothing_would_ever_end_is_deleted() {
    let open = || started_with_verdict().1;
    let mut misnamed = open();
    misnamed.metadata.name = Some("another".to_owned());
    let mut of_nothing = open();
    of_nothing.spec.subject.kind = "Deployment".to_owned();
    for mut wrong in [misnamed, of_nothing] {
        wrong.metadata.uid = Some("9".to_owned());
        let name = wrong.metadata.name.clone().unwrap();
        let mut triage = started(vec![wrong.clone()]);
        let delete = Order::Delete(super::Delete { name: name.clone(), uid: Some("9".to_owned()) });
        assert_eq!(triage.look(at(1, 0)), [delete]);
        assert_eq!(triage.open().count(), 0, "it is counted nowhere");
        // Once is enough; and when it is gone it is forgotten.
        triage.take(shown(wrong.clone()), at(1, 1));
        assert_eq!(triage.look(at(1, 1)), []);
        triage.take(Change::DiagnosisGone(name), at(1, 2));
        triage.take(shown(wrong), at(1, 3));
        assert_eq!(triage.look(at(1, 3)).len(), 1);
    }
    assert_eq!(started(vec![open()]).open().count(), 1);
}

/// An open diagnosis, and the triage that gave it.
fn started_with_verdict() -> (Triage, NodeDiagnosis) {
    let mut triage = started(Vec::new());
    triage.take(applied(Input::NodeClaims, refused(None)), at(0, 0));
    no_pods(&mut triage, at(0, 0));
    triage.look(at(0, 1));
    let mut written = writes(triage.look(at(1, 0)));
    let open = triage.open().next().cloned();
    (triage, open.unwrap_or_else(|| NodeDiagnosis::clone(&written.remove(0).diagnosis)))
}

#[test]
fn what_has_ended_says_so_to_every_selector_and_no_longer_counts_down() {
    let (mut triage, open) = started_with_verdict();
    let label = |d: &NodeDiagnosis| d.labels().remove(OUTCOME_LABEL);
    assert!(open.status.as_ref().unwrap().terminates_at.is_some());
    assert_eq!(label(&open), None);
    triage.take(removed(Some(refused(Some(at(5, 0))))), at(5, 0));
    let ended = triage.diagnoses().next().unwrap();
    assert_eq!(label(ended), ended.outcome().map(|outcome| format!("{outcome:?}")));
    assert!(ended.outcome().is_some());
    assert_eq!(ended.status.as_ref().unwrap().terminates_at, None);
}

/// `kubectl wait --for=condition=Judged` relies on this. Diagnosed is False if the cause is unknown.
#[test]
fn every_verdict_is_judged_with_its_cause_as_the_reason() {
    let (_, open) = started_with_verdict();
    let status = open.status.unwrap();
    let judged = status.conditions.iter().find(|c| c.type_ == "Judged").unwrap();
    assert_eq!((&*judged.status, &*judged.reason), ("True", &*status.cause));
}

#[test]
fn machines_that_came_and_went_unseen_are_named() {
    let event = |claim: &str, type_: &str, after: &str| {
        applied(
            Input::Events,
            json!({
                "metadata": { "name": format!("{claim}.{type_}"), "namespace": "default" }, "reason": type_,
                "message": format!("Status condition transitioned, Type: {type_}, Status: Unknown -> {after}, Reason: \
                                    {type_}"),
                "involvedObject": { "kind": "NodeClaim", "name": claim, "uid": claim }, "lastTimestamp": CREATED,
            }),
        )
    };
    let mut triage = started(vec![started_with_verdict().1]);
    let events = [
        event("general-gone", "Launched", "True"),
        event("general-gone", "Registered", "False"),
        event("general-joined", "Launched", "True"),
        event("general-joined", "Registered", "True"),
        event("general-a", "Launched", "True"),
        event("general-never-launched", "Launched", "False"),
    ];
    for event in events {
        triage.take(event, at(0, 0));
    }
    assert_eq!(triage.never_judged().collect::<Vec<_>>(), ["general-gone"]);
}

/// Nodes that came at once, and a Karpenter that registers one of them in five seconds.
#[test]
fn a_karpenter_that_is_behind_is_told_of_once_and_on_the_pool() {
    const MACHINES: i64 = 80;
    let machine = |n: i64, registered: Option<DateTime<Utc>>| {
        let mut conditions = vec![condition("Launched", "True", "Launched")];
        conditions.push(condition("Registered", "Unknown", "NodeNotFound"));
        if let Some(at) = registered {
            conditions[1] =
                json!({"type": "Registered", "status": "True", "reason": "Registered", "lastTransitionTime": at});
            conditions.push(
                json!({"type": "Initialized", "status": "True", "reason": "Initialized", "lastTransitionTime": at}),
            );
        }
        let mut claim = claim(&conditions, None);
        claim["metadata"]["name"] = json!(format!("general-{n}"));
        claim["metadata"]["uid"] = json!(format!("c{n}"));
        claim["status"]["providerID"] = json!(format!("aws:///eu-west-1a/i-{n}"));
        let mut node = node("True");
        node["metadata"]["name"] = json!(format!("ip-{n}"));
        node["metadata"]["uid"] = json!(format!("n{n}"));
        node["spec"]["providerID"] = claim["status"]["providerID"].clone();
        if registered.is_none() {
            node["spec"]["taints"] = json!([{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}]);
        }
        [applied(Input::NodeClaims, claim), applied(Input::Nodes, node)]
    };
    // All are worked off, or Karpenter stops half way.
    for registers in [MACHINES, MACHINES / 2] {
        let mut triage = started(Vec::new());
        let pool = json!({"metadata": {"name": "general", "uid": "p", "creationTimestamp": CREATED},
            "spec": {"template": {"spec": {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}}}}});
        triage.take(applied(Input::NodePools, pool), at(0, 0));
        for change in (0..MACHINES).flat_map(|n| machine(n, None)) {
            triage.take(change, at(0, 0));
        }
        let mut said = Vec::new();
        for n in 0..MACHINES + 60 {
            let now = at(0, n * 5);
            if n < registers {
                for change in machine(n, Some(now)) {
                    triage.take(change, now);
                }
            }
            for node in (0..MACHINES).map(|n| format!("ip-{n}")).chain([String::new()]) {
                triage.take(Change::Pods { node, pods: Ok(Vec::new()) }, now);
            }
            for write in writes(triage.look(now)) {
                let (name, cause) = (write.diagnosis.metadata.name.clone(), write.diagnosis.cause().map(str::to_owned));
                said.push((name.unwrap(), cause.unwrap(), write.ends, now));
            }
        }
        let (pool, machines): (Vec<_>, Vec<_>) = said.iter().partition(|(name, ..)| name == "nodepool-general");
        let of_pool: Vec<_> = pool.iter().map(|(_, cause, ends, _)| (cause.as_str(), *ends)).collect();
        if registers == MACHINES {
            assert_eq!(machines, Vec::<&(String, String, Option<Outcome>, DateTime<Utc>)>::new());
            assert_eq!(of_pool, [("KarpenterIsBehind", None), ("KarpenterIsBehind", Some(Outcome::Recovered))]);
        } else {
            let stopped = at(0, (registers - 1) * 5);
            assert!(machines.iter().all(|(.., at)| *at > stopped), "{machines:?}");
            let stuck = machines.iter().filter(|(_, cause, ..)| cause == "Unknown").count();
            assert_eq!(stuck, usize::try_from(MACHINES - registers).unwrap(), "{machines:?}");
        }
    }
}
