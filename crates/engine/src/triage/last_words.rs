//! What a claim, its Node and their Events said last: soon all of them are gone, and the diagnosis is what stays.

use crate::api::schema_limits::EVIDENCE;
use crate::api::{Evidence, NodeDiagnosis};
use crate::case::timestamp;
use crate::cluster_state::ClusterState;

/// Events, newest first.
const EVENTS: usize = 5;

/// Adds to a diagnosis that ends what is not in it already.
pub(super) fn keep(diagnosis: &mut NodeDiagnosis, cluster: &ClusterState) {
    let words = last_words(diagnosis, cluster);
    let Some(status) = &mut diagnosis.status else { return };
    for word in words.into_iter().map(Evidence::within_limits) {
        let told = status
            .evidence
            .iter()
            .any(|e| (&e.object, &e.field) == (&word.object, &word.field) && e.observed == word.observed);
        if !told && status.evidence.len() < EVIDENCE {
            status.evidence.push(word);
        }
    }
}

fn last_words(diagnosis: &NodeDiagnosis, cluster: &ClusterState) -> Vec<Evidence> {
    let spec = &diagnosis.spec;
    let claim = spec.node_claim.as_ref().and_then(|named| cluster.claim(&named.name));
    let node = match claim {
        Some(claim) => cluster.nodes_of(claim).first().copied(),
        None => spec
            .node
            .as_ref()
            .and_then(|named| cluster.node(&named.name).filter(|node| *node.metadata.uid == *named.uid)),
    };
    let field = |type_: &str| format!(r#"status.conditions[?(@.type=="{type_}")]"#);
    let mut words = Vec::new();
    if let Some(claim) = claim {
        let undone = ["Launched", "Registered", "Initialized"]
            .iter()
            .find_map(|type_| claim.condition(type_).filter(|c| !c.is_true()));
        words.extend(undone.map(|c| {
            Evidence::new(
                format!("NodeClaim/{}", claim.name()),
                field(&c.type_),
                c.shown(),
                "what the NodeClaim said last",
            )
        }));
    }
    if let Some(node) = node {
        let object = format!("Node/{}", node.name());
        let ready = node.condition("Ready");
        words
            .extend(ready.map(|c| Evidence::new(object.clone(), field("Ready"), c.shown(), "what the Node said last")));
        if !node.spec.taints.is_empty() {
            let taints: Vec<_> = node.spec.taints.iter().map(ToString::to_string).collect();
            words.push(Evidence::new(object, "spec.taints", taints.join(", "), "the taints that the Node had last"));
        }
    }
    let about = [("NodeClaim", &spec.node_claim), ("Node", &spec.node)];
    let mut events: Vec<_> = about
        .into_iter()
        .filter_map(|(kind, named)| Some((kind, named.as_ref()?)))
        .flat_map(|(kind, named)| cluster.events(kind, &named.name))
        .collect();
    events.sort_by_key(|event| std::cmp::Reverse(event.last_seen()));
    words.extend(events.into_iter().take(EVENTS).map(|event| {
        let regarding = &event.involved_object;
        let object = format!("Event {}/{}", regarding.kind, regarding.name);
        let seen = event.last_seen().map_or_else(String::new, |at| format!(", last at {}", timestamp(at)));
        Evidence::new(object, "message", format!("{}: {}", event.reason, event.said()), "what an Event said last")
            .figures(format!("{} time(s){seen}", event.times()))
    }));
    words
}
