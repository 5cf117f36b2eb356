//! What was judged, and when, in sentences: an all-clear is worth what was looked at.

use super::clock;
use engine::api::judged::{About, AlsoStuck, Judged, JudgedBy, Otherwise, UnplacedPods};
use engine::api::{NodeDiagnosis, ObjectRef, Stage};
use engine::case::duration;
use engine::diagnose::survey::Survey;

/// Maximum number of names of machines that would be stuck at the other time.
const NAMED: usize = 5;

/// The sentences of an answer: what was judged, pods without a machine, missing inputs, and the answer at the other
/// time.
pub fn sentences(survey: &Survey) -> Vec<String> {
    let judged = &survey.judged;
    let mut sentences = vec![answer(judged, &survey.diagnoses)];
    sentences.extend(judged.about.iter().filter_map(causes));
    sentences.extend(judged.unplaced.as_ref().filter(|_| judged.about.is_empty()).map(|pods| unplaced(pods, judged)));
    sentences.extend(unread_objects(judged));
    sentences.extend(missing(judged));
    sentences.extend(judged.otherwise.as_ref().map(otherwise));
    sentences
}

/// The same of one of several clusters.
pub fn sentences_of(cluster: Option<&str>, survey: &Survey) -> Vec<String> {
    let of = cluster.map_or_else(String::new, |name| format!("{name}: "));
    sentences(survey).into_iter().map(|sentence| format!("{of}{sentence}")).collect()
}

/// A cluster that is not among those that were judged.
pub fn unread(cluster: &str, why: &str) -> String {
    format!("{cluster} could not be read: {why}")
}

/// `Judged 3 NodeClaims, 212 Nodes at 2026-01-15T18:00:51Z (the newest time in the dump): nothing is stuck; 2 wait, the
/// longest for 1m 12s at Join.` What is stuck and is no machine has its name.
fn answer(judged: &Judged, diagnoses: &[NodeDiagnosis]) -> String {
    let subjects = diagnoses.iter().map(|diagnosis| &diagnosis.spec.subject);
    let others: Vec<&ObjectRef> = subjects.filter(|subject| !is_machine(&subject.kind)).collect();
    let what = if judged.about.is_empty() {
        everything(judged, &others)
    } else {
        judged.about.iter().map(|about| format!("{} {}", about.kind, about.name)).collect::<Vec<_>>().join(" and ")
    };
    let stuck = match (judged.stuck, others.as_slice()) {
        (0, _) if !judged.unread.is_empty() => "nothing that could be read is stuck".to_owned(),
        (0, _) => "nothing is stuck".to_owned(),
        (1, []) => "1 is stuck".to_owned(),
        (1, [one, ..]) => format!("{} {} is stuck", one.kind, one.name),
        (stuck, []) => format!("{stuck} are stuck"),
        (stuck, others) => {
            let names = others.iter().map(|other| format!("{} {}", other.kind, other.name)).collect();
            let among = if others.len() < stuck { " (among them " } else { " (" };
            format!("{stuck} are stuck{among}{})", named(names))
        }
    };
    let waiting = match judged.waiting.as_slice() {
        [] => String::new(),
        [one] => {
            let waits = match one.stage {
                Stage::Ready => "has been unusable".to_owned(),
                stage => format!("has waited at {stage:?}"),
            };
            let because = if one.because.is_empty() { String::new() } else { format!(": {}", one.because) };
            format!(
                "; {} {waits} for {} (normal for {}, until {}){because}",
                one.name,
                duration(judged.at - one.since),
                duration(one.until - one.since),
                clock(one.until)
            )
        }
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

/// NodeClaims and Nodes. Before them the NodePools or node classes, if one is stuck or there is nothing else.
fn everything(judged: &Judged, others: &[&ObjectRef]) -> String {
    if judged.logs > 0 {
        return counted_as(judged.logs, "log");
    }
    let is_without_machines = judged.node_claims + judged.nodes == 0;
    let stuck = |kinds: &[&str]| others.iter().find(|other| kinds.contains(&other.kind.as_str()));
    let pool = stuck(&["NodePool", "Provisioner"]).map(|pool| pool.kind.as_str());
    let class = stuck(&["EC2NodeClass", "NodeClass", "AWSNodeTemplate"]).map(|_| "node class");
    let mut counted = Vec::new();
    if let Some(pool) = pool.or_else(|| is_without_machines.then_some("NodePool")) {
        counted.push(counted_as(judged.node_pools, pool));
    }
    if let Some(class) = class.or_else(|| is_without_machines.then_some("node class")) {
        counted.push(counted_as(judged.node_classes, class));
    }
    if !is_without_machines {
        counted.extend([counted_as(judged.node_claims, "NodeClaim"), counted_as(judged.nodes, "Node")]);
    }
    counted.join(", ")
}

/// `NodePool general has 12 NodeClaims; stuck: 2 KubeletRefusesLabels, 1 Unknown; it is to blame for 2.`
fn causes(about: &About) -> Option<String> {
    let About { kind, name, node_claims, causes, blamed } = about;
    if is_machine(kind) {
        return None;
    }
    let counted: Vec<String> = causes.iter().map(|(cause, count)| format!("{count} {cause}")).collect();
    let stuck = if counted.is_empty() { "none".to_owned() } else { counted.join(", ") };
    let blamed = if *blamed > 0 { format!("; it is to blame for {blamed}") } else { String::new() };
    Some(format!("{kind} {name} has {}; stuck: {stuck}{blamed}.", counted_as(*node_claims, "NodeClaim")))
}

fn is_machine(kind: &str) -> bool {
    matches!(kind, "NodeClaim" | "Machine" | "Node" | "Instance")
}

/// The first names, and how many more there are.
fn named(names: Vec<String>) -> String {
    let more = names.len().saturating_sub(NAMED);
    let shown = names.into_iter().take(NAMED).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
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
