//! Baselines without knowledge: what somebody sees who reads what is not True and warns. The cause is those words, all
//! of them, and the object to change is the one that complains.

use super::Answer;
use crate::documents::{list, text};
use serde_json::Value;

/// How far somebody reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// The conditions of NodeClaims, Nodes, NodePools and node classes, as `kubectl get` shows them.
    Conditions,
    /// Also events, and the pods of the Node, as `kubectl describe` shows them.
    Describe,
}

/// What is not well, by the objects alone: no threshold, no joins but those that names give.
pub fn answers(reads: Reads, objects: &[Value]) -> Vec<Answer> {
    let of_kind = |kind: &'static str| objects.iter().filter(move |object| object["kind"] == kind);
    let mut answers = Vec::new();
    for claim in of_kind("NodeClaim") {
        let node = of_kind("Node").find(|node| provider(node) == provider(claim) && !provider(claim).is_empty());
        if !is_true(claim, "Initialized") || node.is_some_and(|node| !is_true(node, "Ready")) {
            answers.push(machine(reads, objects, claim, node));
        }
    }
    for node in of_kind("Node").filter(|node| !is_true(node, "Ready")) {
        if !of_kind("NodeClaim").any(|claim| provider(claim) == provider(node)) {
            answers.push(machine(reads, objects, node, Some(node)));
        }
    }
    let makers = objects
        .iter()
        .filter(|object| text(object, &["kind"]) == "NodePool" || text(object, &["kind"]).ends_with("NodeClass"));
    for maker in makers.filter(|maker| condition(maker, "Ready").is_some() && !is_true(maker, "Ready")) {
        answers.push(answer(vec![name(maker)], &complaints(maker), name(maker)));
    }
    answers
}

fn machine(reads: Reads, objects: &[Value], subject: &Value, node: Option<&Value>) -> Answer {
    let mut names = vec![name(subject)];
    names.extend(node.map(name).filter(|node| *node != names[0]));
    let (mut said, mut object) = (complaints(subject), name(subject));
    if let Some(node) = node.filter(|node| !std::ptr::eq(*node, subject)) {
        said.extend(complaints(node));
        object = name(node);
    }
    if reads == Reads::Describe {
        let class = &subject["spec"]["nodeClassRef"];
        for other in objects
            .iter()
            .filter(|o| o["kind"] == class["kind"] && text(o, &["metadata", "name"]) == text(class, &["name"]))
        {
            said.extend(complaints(other));
        }
        let own = |about: &str| names.iter().any(|name| name == about);
        said.extend(warnings(objects, own));
        let here = text(node.unwrap_or(&Value::Null), &["metadata", "name"]);
        for pod in
            objects.iter().filter(|o| o["kind"] == "Pod" && !here.is_empty() && text(o, &["spec", "nodeName"]) == here)
        {
            let troubles = pod_troubles(pod);
            if !troubles.is_empty() {
                object = owner(pod).unwrap_or_else(|| name(pod));
                said.extend(troubles);
                said.extend(warnings(objects, |about| about == name(pod)));
            }
        }
    }
    answer(names, &said, object)
}

fn answer(names: Vec<String>, said: &[String], object: String) -> Answer {
    Answer { names, cause: said.join("; "), object, ..Answer::default() }
}

fn name(object: &Value) -> String {
    format!("{}/{}", text(object, &["kind"]), text(object, &["metadata", "name"]))
}

/// The instance that both NodeClaim and Node name.
fn provider(object: &Value) -> &str {
    let of_node = text(object, &["spec", "providerID"]);
    if of_node.is_empty() { text(object, &["status", "providerID"]) } else { of_node }
}

fn condition<'a>(object: &'a Value, type_: &str) -> Option<&'a Value> {
    list(object, &["status", "conditions"]).iter().find(|condition| condition["type"] == type_)
}

fn is_true(object: &Value, type_: &str) -> bool {
    condition(object, type_).is_some_and(|condition| condition["status"] == "True")
}

/// The conditions that are not as they should be.
fn complaints(object: &Value) -> Vec<String> {
    let conditions = list(object, &["status", "conditions"]).iter();
    let wrong = conditions.filter(|condition| {
        // A Node under pressure says True.
        (condition["status"] == "True") == text(condition, &["type"]).ends_with("Pressure")
    });
    let said = |condition: &Value| {
        let words = ["type", "reason", "message"].map(|field| text(condition, &[field]));
        words.join(" ")
    };
    wrong.map(said).collect()
}

fn warnings(objects: &[Value], is_about: impl Fn(&str) -> bool) -> Vec<String> {
    let events = objects.iter().filter(|object| object["kind"] == "Event" && object["type"] == "Warning");
    let about = events.filter(|event| {
        let about = if event["involvedObject"].is_object() { &event["involvedObject"] } else { &event["regarding"] };
        is_about(&format!("{}/{}", text(about, &["kind"]), text(about, &["name"])))
    });
    let said = |event: &Value| {
        let note = text(event, &["note"]);
        let message = if note.is_empty() { text(event, &["message"]) } else { note };
        format!("{} {message}", text(event, &["reason"]))
    };
    about.map(said).collect()
}

/// What the containers of a pod wait for or died of.
fn pod_troubles(pod: &Value) -> Vec<String> {
    let containers = ["initContainerStatuses", "containerStatuses"].map(|field| list(pod, &["status", field]));
    let states = containers.into_iter().flatten().flat_map(|container| {
        let waiting = &container["state"]["waiting"];
        let died = [&container["state"]["terminated"], &container["lastState"]["terminated"]];
        let failed = died.into_iter().filter(|died| died["exitCode"].as_i64().is_some_and(|code| code != 0));
        [waiting].into_iter().chain(failed)
    });
    let said = states.map(|state| format!("{} {}", text(state, &["reason"]), text(state, &["message"])));
    said.map(|said| said.trim().to_owned()).filter(|said| !said.is_empty()).collect()
}

fn owner(pod: &Value) -> Option<String> {
    let owner = list(pod, &["metadata", "ownerReferences"]).first()?;
    Some(format!("{}/{}", text(owner, &["kind"]), text(owner, &["name"])))
}
