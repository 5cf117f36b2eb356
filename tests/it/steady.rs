//! Nothing is written because time went by: every example of the pages, looked at again and again while kubelets and
//! controllers repeat what they have said.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use engine::api::{Confidence, NodeDiagnosis, Outcome, Stage};
use engine::case::stage::Thresholds;
use engine::objects::input::{Input, Object, Reading, TypeMeta};
use engine::rules;
use engine::triage::change::Change;
use engine::triage::{Keep, Order, Triage};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use testkit::objects::{examples, over_cluster};

/// The minutes after noon at which somebody looks.
const LOOKS: [u32; 8] = [0, 1, 2, 4, 7, 15, 31, 60];

fn noon() -> DateTime<Utc> {
    "2026-01-15T12:00:00Z".parse().expect("a time")
}

/// What may change by time alone: a wait that gets longer proves more. With it everything else of a verdict may.
type Verdict = (String, Stage, Confidence, Option<Outcome>);

fn verdict(diagnosis: &NodeDiagnosis) -> Verdict {
    let status = diagnosis.status.as_ref().expect("a verdict");
    (status.cause.to_string(), status.stage, status.confidence, status.outcome)
}

/// An operator in a cluster with these objects and diagnoses.
fn operator(objects: &[Value], known: &BTreeMap<String, NodeDiagnosis>, now: DateTime<Utc>) -> Triage {
    let mut triage = Triage::new(Thresholds::default(), Keep::default());
    for diagnosis in known.values() {
        triage.take(Change::Diagnosis(Box::new(diagnosis.clone())), now);
    }
    // A list that says of which API server it is holds nothing that is watched.
    for change in objects.iter().filter(|object| object["kind"] != "List").filter_map(applied) {
        triage.take(change, now);
    }
    triage.start();
    triage.lead();
    triage
}

/// What is watched of it: of Karpenter before 0.32 only dumps are read.
fn applied(object: &Value) -> Option<Change> {
    let meta: TypeMeta = serde_json::from_value(object.clone()).expect("a kind");
    let input = match meta.reading() {
        Reading::As(input) => input,
        Reading::Former(_) => return None,
        _ => panic!("{meta:?} is not read"),
    };
    Some(Change::Applied(Box::new(Object::from_value(input, object.clone()).expect("an object of its kind"))))
}

/// The pods of its Nodes, as it asks for them, and what it writes; nobody answers for rights.
fn written(triage: &mut Triage, objects: &[Value], now: DateTime<Utc>) -> Vec<NodeDiagnosis> {
    let mut written = Vec::new();
    for seconds in [0, 1, 12] {
        let now = now + TimeDelta::seconds(seconds);
        for order in triage.look(now) {
            match order {
                Order::Write(write) => {
                    triage.take(Change::Diagnosis(Box::new((*write.diagnosis).clone())), now);
                    written.push((*write.diagnosis).clone());
                }
                Order::ListPods(node) => {
                    let on_node =
                        objects.iter().filter(|o| o["kind"] == "Pod" && o["spec"]["nodeName"] == node.as_str());
                    let pods =
                        on_node.map(|pod| Object::from_value(Input::Pods, pod.clone()).expect("a pod")).collect();
                    triage.take(Change::Pods { node, pods: Ok(pods) }, now);
                }
                Order::Delete(_) | Order::Summarize(_) | Order::Announce(_) | Order::ReviewAccess(_) => {}
            }
        }
    }
    written
}

/// Events that are younger than this at noon go on: a kubelet repeats what it says within five minutes.
/// Source: kubernetes v1.36.3 client-go tools/record/events_cache.go.
const GOES_ON: TimeDelta = TimeDelta::minutes(5);

fn goes_on(object: &Value) -> bool {
    let last = object["lastTimestamp"].as_str().and_then(|at| at.parse::<DateTime<Utc>>().ok());
    object["kind"] == "Event" && last.is_some_and(|at| noon() - at < GOES_ON)
}

/// What is said once more: the same event has happened again, and the kubelet counts from longer ago.
fn repeat(object: &mut Value, minute: u32) {
    if object["kind"] == "Event" {
        // The DaemonSet controller tries with a new name each time, and what is used of a quota moves.
        if let Some(said) = object["message"].as_str().filter(|said| said.contains("pods \"")) {
            let pod = format!("pods \"x{minute}\" is");
            let said = said.replace("used: pods=40", &format!("used: pods={}", 40 + minute));
            let named = said.split_once("pods \"").and_then(|(a, rest)| Some((a, rest.split_once("\" is")?.1)));
            object["message"] = named.map(|(before, after)| format!("{before}{pod}{after}")).into();
            object["metadata"]["name"] = json!(format!("refused.{minute}"));
        }
        object["count"] = json!(object["count"].as_u64().unwrap_or(1) + 7);
        object["lastTimestamp"] =
            json!((noon() + TimeDelta::minutes(minute.into())).to_rfc3339_opts(SecondsFormat::Secs, true));
    }
    for condition in object["status"]["conditions"].as_array_mut().into_iter().flatten() {
        let message = condition["message"].as_str().and_then(|message| message.split_once("last seen active "));
        if let Some((before, (_, after))) = message.and_then(|(before, rest)| Some((before, rest.split_once(" ago")?)))
        {
            condition["message"] = json!(format!("{before}last seen active {minute}m1.5s ago{after}"));
        }
    }
}

#[test]
fn no_verdict_is_written_because_somebody_repeats_himself_or_the_operator_starts_anew() {
    let mut faults = String::new();
    let (mut verdicts, mut repeated) = (0, 0);
    for (page, example) in rules::ALL.iter().flat_map(|rule| examples(rule.cause).into_iter().map(|e| (rule.cause, e)))
    {
        let mut objects = over_cluster(&example.objects);
        let speaks: Vec<usize> =
            (0..objects.len()).filter(|n| goes_on(&objects[*n]) || objects[*n]["kind"] == "Node").collect();
        repeated += speaks.iter().filter(|n| objects[**n]["kind"] == "Event").count();
        let mut triage = operator(&objects, &BTreeMap::new(), noon());
        let mut known: BTreeMap<String, NodeDiagnosis> = BTreeMap::new();
        for minute in LOOKS {
            let now = noon() + TimeDelta::minutes(minute.into());
            for n in speaks.iter().filter(|_| minute > 0) {
                repeat(&mut objects[*n], minute);
                let Some(change) = applied(&objects[*n]) else { continue };
                triage.take(change, now);
            }
            for starts_anew in [false, true] {
                let mut fresh = starts_anew.then(|| operator(&objects, &known, now));
                for diagnosis in written(fresh.as_mut().unwrap_or(&mut triage), &objects, now) {
                    let name = diagnosis.metadata.name.clone().expect("a name");
                    if let Some(before) = known.get(&name).filter(|before| verdict(before) == verdict(&diagnosis)) {
                        let shown = |d: &NodeDiagnosis| serde_json::to_string(&d.status).expect("a status");
                        let (before, after) = (shown(before), shown(&diagnosis));
                        let _ = writeln!(
                            faults,
                            "{page}, {}: {name} after {minute} minutes\n{before}\n{after}",
                            example.title
                        );
                    }
                    verdicts += usize::from(known.insert(name, diagnosis).is_none());
                }
            }
        }
    }
    assert!(faults.is_empty(), "written anew:\n{faults}");
    assert!(verdicts > rules::ALL.len() && repeated > 10, "{verdicts} verdicts, {repeated} events");
}
