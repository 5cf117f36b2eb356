//! The last line in the log of an agent's pod, or of one that serves it, if there is a log.

use super::agent::Agent;
use crate::case::Case;
use crate::objects::Pod;
use logs::fact::LogLine;
use logs::journey::Journey;
use logs::table::program_of;

pub(super) struct LastLine<'w> {
    pub(super) line: &'w LogLine,
    pub(super) by: SaidBy<'w>,
}

/// The pod that logged it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SaidBy<'w> {
    /// The log names the pod or its machine.
    Own,
    /// The log names neither, and the pod is one that it may belong to.
    Nobody,
    /// The log is of another pod of the DaemonSet, with this name.
    Other(&'w str),
}

/// The last error of the agent's own log, otherwise of a log that names no machine, otherwise of another pod of its
/// DaemonSet that fails as it does.
pub(super) fn last<'w>(case: &Case<'w>, agent: &Agent) -> Option<LastLine<'w>> {
    let known = program_of(agent.set);
    // Of one that no table knows, its log is kept under its pod's name.
    let own = case.logs().into_iter().filter(|of_machine| of_machine.is_named);
    let own = own.filter_map(|of_machine| line(&of_machine.log.journey, known.unwrap_or(agent.name)));
    if let Some(line) = own.max_by_key(|line| line.time) {
        return Some(LastLine { line, by: SaidBy::Own });
    }
    let nobodys = || {
        let strays = case.cluster.logs().filter(|log| log.journey.identity.is_empty());
        let line = strays.filter_map(|log| line(&log.journey, known?)).max_by_key(|line| line.time)?;
        // What was said before the pod was made, another one said.
        let made = agent.pod.metadata.creation_timestamp;
        let is_older = line.time.zip(made).is_some_and(|(said, made)| said < made);
        (!is_older).then_some(LastLine { line, by: SaidBy::Nobody })
    };
    nobodys().or_else(|| anothers(case, agent, known))
}

fn anothers<'w>(case: &Case<'w>, agent: &Agent, known: Option<&str>) -> Option<LastLine<'w>> {
    let fails = |pod: &str| {
        let pod = case.cluster.pods_named(agent.namespace, pod).next()?;
        let is_alike = pod.trouble()?.0 == agent.pod.trouble()?.0 && pod.is_same_workload(agent.pod);
        is_alike.then_some(())
    };
    let is_of_set = |pod: &&String| pod.strip_prefix(agent.set).is_some_and(|drawn| drawn.starts_with('-'));
    let others = case.cluster.logs().flat_map(|log| {
        let named = log.journey.identity.pods.iter().filter(is_of_set);
        named.map(move |pod| (pod.as_str(), &log.journey))
    });
    let told = others.filter_map(|(pod, journey)| Some((pod, line(journey, known.unwrap_or(pod))?)));
    let (pod, line) = told.filter(|(pod, _)| fails(pod).is_some()).max_by_key(|(_, line)| line.time)?;
    Some(LastLine { line, by: SaidBy::Other(pod) })
}

/// The last error of the log of one pod, which belongs to this Deployment.
pub(super) fn of_deployment<'w>(case: &Case<'w>, deployment: &str, pod: &Pod) -> Option<&'w LogLine> {
    let name = &*pod.metadata.name;
    let own = case.cluster.logs().filter(|log| log.journey.identity.pods.contains(name));
    own.filter_map(|log| line(&log.journey, program_of(deployment).unwrap_or(name))).max_by_key(|line| line.time)
}

fn line<'w>(journey: &'w Journey, program: &str) -> Option<&'w LogLine> {
    let open = journey.open();
    let ends = |vague| open.iter().find(move |fact| fact.program == program && fact.ends && fact.vague == vague);
    let known = ends(false).map(|fact| &fact.last).or_else(|| journey.last_words.get(program));
    known.or_else(|| ends(true).map(|fact| &fact.last))
}
