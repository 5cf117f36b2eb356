//! What was judged, and when, in sentences: an all-clear is worth what was looked at.

use super::clock;
use engine::api::judged::{About, AlsoStuck, Judged, JudgedBy, Otherwise, UnplacedPods};
use engine::case::duration;

/// Maximum number of names of machines that would be stuck at the other time.
const NAMED: usize = 5;

/// The sentences of an answer: what was judged, pods without a machine, missing inputs, and the answer at the other
/// time.
pub fn sentences(judged: &Judged) -> Vec<String> {
    let mut sentences = vec![answer(judged)];
    sentences.extend(judged.about.iter().filter_map(causes));
    sentences.extend(judged.unplaced.as_ref().filter(|_| judged.about.is_empty()).map(|pods| unplaced(pods, judged)));
    sentences.extend(unread_objects(judged));
    sentences.extend(missing(judged));
    sentences.extend(judged.otherwise.as_ref().map(otherwise));
    sentences
}

/// The same of one of several clusters.
pub fn sentences_of(cluster: Option<&str>, judged: &Judged) -> Vec<String> {
    let of = cluster.map_or_else(String::new, |name| format!("{name}: "));
    sentences(judged).into_iter().map(|sentence| format!("{of}{sentence}")).collect()
}

/// A cluster that is not among those that were judged.
pub fn unread(cluster: &str, why: &str) -> String {
    format!("{cluster} could not be read: {why}")
}

/// `Judged 3 NodeClaims, 212 Nodes at 2026-01-15T18:00:51Z (the newest time in the dump): nothing is stuck; 2 wait, the
/// longest for 1m 12s at Join.`
fn answer(judged: &Judged) -> String {
    let what = if judged.about.is_empty() {
        everything(judged)
    } else {
        judged.about.iter().map(|about| format!("{} {}", about.kind, about.name)).collect::<Vec<_>>().join(" and ")
    };
    let stuck = match judged.stuck {
        0 if !judged.unread.is_empty() => "nothing that could be read is stuck".to_owned(),
        0 => "nothing is stuck".to_owned(),
        1 => "1 is stuck".to_owned(),
        stuck => format!("{stuck} are stuck"),
    };
    let waiting = match judged.waiting.as_slice() {
        [] => String::new(),
        [one] => format!(
            "; {} waits at {:?} for {}, which is normal until {}",
            one.name,
            one.stage,
            duration(judged.at - one.since),
            clock(one.until)
        ),
        [longest, ..] => {
            format!(
                "; {} wait, the longest for {} at {:?}",
                judged.waiting.len(),
                duration(judged.at - longest.since),
                longest.stage
            )
        }
    };
    format!("Judged {what} at {} ({}): {stuck}{waiting}.", clock(judged.at), source(judged.clock))
}

fn everything(judged: &Judged) -> String {
    if judged.logs > 0 {
        return counted_as(judged.logs, "log");
    }
    let others = [(judged.node_pools, "NodePool"), (judged.node_classes, "node class")];
    let machines = [(judged.node_claims, "NodeClaim"), (judged.nodes, "Node")];
    let counted = if judged.node_claims + judged.nodes > 0 { machines } else { others };
    counted.map(|(count, what)| counted_as(count, what)).join(", ")
}

/// `NodePool general has 12 NodeClaims; stuck: 2 KubeletRefusesLabels, 1 Unknown; it is to blame for 2.`
fn causes(about: &About) -> Option<String> {
    let About { kind, name, node_claims, causes, blamed } = about;
    if is_machine(about) {
        return None;
    }
    let counted: Vec<String> = causes.iter().map(|(cause, count)| format!("{count} {cause}")).collect();
    let stuck = if counted.is_empty() { "none".to_owned() } else { counted.join(", ") };
    let blamed = if *blamed > 0 { format!("; it is to blame for {blamed}") } else { String::new() };
    Some(format!("{kind} {name} has {}; stuck: {stuck}{blamed}.", counted_as(*node_claims, "NodeClaim")))
}

fn is_machine(about: &About) -> bool {
    matches!(about.kind.as_str(), "NodeClaim" | "Node")
}

/// `Karpenter launches no node for 2 pods, and no verdict explains why. Pod shop/web-0 waits longest, for 12m: …`
fn unplaced(waiting: &UnplacedPods, judged: &Judged) -> String {
    let UnplacedPods { pods, namespace, name, since, message } = waiting;
    let (pods, waits) = (counted_as(*pods, "pod"), duration(judged.at - *since));
    format!(
        "Karpenter launches no node for {pods}, and no verdict explains why. Pod {namespace}/{name} waits longest, for \
         {waits}: {message}. Perhaps no NodePool offers what it asks for: kubectl describe pod -n {namespace} {name}"
    )
}

/// `nodewhy could not read and did not judge: dump.yaml:7: document 1: …; and 3 more.`
fn unread_objects(judged: &Judged) -> Option<String> {
    let (shown, more) = (judged.unread.iter().take(NAMED).cloned().collect::<Vec<_>>(), judged.unread.len());
    let more = more.saturating_sub(NAMED);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    (!shown.is_empty()).then(|| format!("nodewhy could not read and did not judge: {}{more}.", shown.join("; ")))
}

fn missing(judged: &Judged) -> Option<String> {
    if judged.missing.is_empty() {
        return None;
    }
    let lacking = judged.missing.join(", ");
    Some(match judged.clock {
        _ if judged.logs > 0 => {
            "Only logs were given: with a dump (-f) nodewhy tells which object to change.".to_owned()
        }
        JudgedBy::Present => format!("nodewhy could not read {lacking}."),
        _ => format!("The dump lacks {lacking}: run nodewhy collect to include them."),
    })
}

fn otherwise(otherwise: &Otherwise) -> String {
    let Otherwise { at, clock: by, also_stuck, not_stuck } = otherwise;
    let named = |names: Vec<String>| {
        let more = names.len().saturating_sub(NAMED);
        let shown = names.into_iter().take(NAMED).collect::<Vec<_>>().join(", ");
        if more > 0 { format!("{shown} and {more} more") } else { shown }
    };
    let in_short = |stuck: &AlsoStuck| format!("{} ({} {:?})", stuck.name, stuck.cause, stuck.confidence);
    let mut differs = Vec::new();
    if !also_stuck.is_empty() {
        differs.push(format!("also stuck: {}", named(also_stuck.iter().map(in_short).collect())));
    }
    if !not_stuck.is_empty() {
        differs.push(format!("not stuck yet: {}", named(not_stuck.clone())));
    }
    format!(
        "The dump does not say when it was made. At another time, {} ({}), the answer is different: {}. Pass the right \
         time with --now.",
        clock(*at),
        source(*by),
        differs.join("; ")
    )
}

const fn source(clock: JudgedBy) -> &'static str {
    match clock {
        JudgedBy::Given => "--now",
        JudgedBy::Present => "now",
        JudgedBy::Collected => "when it was collected",
        JudgedBy::Written => "when the dump was written",
        JudgedBy::Newest => "the newest time in the dump",
        JudgedBy::Logged => "the newest time in the logs",
    }
}

/// `1 Node`, `3 Nodes`, `2 node classes`.
pub fn counted_as(count: usize, what: &str) -> String {
    let plural = if what.ends_with('s') { "es" } else { "s" };
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}{plural}") }
}
