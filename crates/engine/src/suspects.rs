//! From a verdict that proves no root cause to possible causes, the best suspect first.
//!
//! A candidate weighs what the machine shares with working nodes and what it does not. Each observation either
//! separates this cause from others or is merely consistent with it. The order is: observations for a cause less those
//! against it, then the same for what is consistent, then how often the cause is the answer in public reports. So you
//! see why the first suspect is first when you count lines.

mod access;
mod bootstrap;
pub mod command;
pub mod differential;
pub mod frequency;
mod group;
mod image;
mod launch;
mod network;
mod node;

use crate::api::{Confidence, Evidence, Grounds, Link, Stage, Suspect, Text};
use crate::case::Case;
use crate::rules::{self, unknown};
use command::SettlingCommand;
use differential::{Differential, Separation};
use std::cmp::Reverse;
use std::sync::Arc;

/// A cause that may explain a machine, although no object proves it.
#[derive(Debug)]
pub struct CauseCandidate {
    /// The name of its page.
    pub cause: &'static str,
    pub stages: &'static [Stage],
    /// The verdicts that name only its symptom.
    pub behind: &'static [&'static str],
    pub weigh: fn(&Case, &Differential) -> Option<Suspicion>,
}

/// A cause that has a page but no rule: no object shows it.
#[derive(Debug)]
pub struct SuspectPage {
    pub cause: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    pub stages: &'static [Stage],
    pub text: &'static str,
}

/// If nothing else orders two candidates, the first stays first.
pub const ALL: &[&CauseCandidate] = &[
    &access::ROLE_NOT_LET_IN,
    &access::ROLE_LOST_ITS_ACCESS,
    &access::OTHER_ENDPOINT,
    &access::OTHER_NAME,
    &access::CLOCK,
    &access::ADMISSION,
    &network::ZONE,
    &network::NO_ROUTE,
    &network::NO_PUBLIC_ADDRESS,
    &network::OTHER_SECURITY_GROUPS,
    &network::SECURITY_GROUP_RULES,
    &network::ENDPOINT_NAME,
    &network::PROXY,
    &network::THROTTLED,
    &image::IMAGE,
    &image::INSTANCE_TYPE,
    &bootstrap::USER_DATA,
    &bootstrap::NO_TOKEN,
    &bootstrap::KUBELET_SETTINGS,
    &bootstrap::GAVE_UP_ONCE,
    &bootstrap::EMPTY_NODE_NAME,
    &bootstrap::INSTANCE_ENDED,
    &bootstrap::VOLUME_KEY,
    &launch::IMAGE_NOT_AVAILABLE,
    &launch::VOLUME_KEY,
    &launch::RIGHTS,
    &node::CNI_OLDER_THAN_INSTANCE_TYPE,
    &node::CNI_RIGHTS,
    &node::NO_SERVICE_ADDRESS,
    &node::NO_ADDRESSES,
    &node::NO_ENI_CONFIG,
    &node::NO_POD,
    &node::HOP_LIMIT,
    &node::RUNTIME,
    &node::MEMORY,
    &node::CPU_CREDITS,
    &node::INSTANCE_GONE,
];

macro_rules! page {
    ($cause:literal, $stages:expr, $summary:literal) => {
        SuspectPage {
            cause: $cause,
            summary: $summary,
            stages: $stages,
            text: include_str!(concat!("../pages/", $cause, ".md")),
        }
    };
}

/// The pages of causes that no rule can prove.
pub const PAGES: &[SuspectPage] = &[
    page!("ProxyWithoutExceptions", &[Stage::Join], "A proxy in user data swallows calls that must bypass it"),
    page!(
        "NodeNameEmptyAtBoot",
        &[Stage::Join],
        "EC2 had no private DNS name for the instance when the kubelet started"
    ),
    page!("LaunchRightsMissing", &[Stage::Launch], "Karpenter's role is not allowed to create what a launch needs"),
    page!("Ec2CallsThrottled", &[Stage::Join], "EC2 refuses the instance's calls, because the account makes too many"),
    page!(
        "MetadataHopLimit",
        &[Stage::Initialize, Stage::Ready],
        "A hop limit of 1 keeps an agent's pod from the instance's metadata"
    ),
    page!(
        "CniOlderThanInstanceType",
        &[Stage::Initialize, Stage::Ready],
        "The VPC CNI is older than the instance type, and exits because of it"
    ),
    page!(
        "ServiceAddressUnreachable",
        &[Stage::Initialize, Stage::Ready],
        "The network plugin does not reach the API server through its Service"
    ),
    page!(
        "ContainerRuntimeFails",
        &[Stage::Initialize, Stage::Ready],
        "containerd hangs, or refuses its configuration"
    ),
    page!("MemoryExhausted", &[Stage::Ready], "The node ran out of memory, and the kubelet stopped with it"),
    page!(
        "CpuCreditsExhausted",
        &[Stage::Ready],
        "A burstable instance has no CPU credits left, and its kubelet is too slow to report"
    ),
];

/// The page of a cause that has no rule. Names are compared without regard to case.
pub fn page(cause: &str) -> Option<&'static SuspectPage> {
    PAGES.iter().find(|page| page.cause.eq_ignore_ascii_case(cause))
}

/// A candidate's observation of one machine.
#[derive(Debug)]
pub struct Suspicion {
    summary: Text,
    command: SettlingCommand,
    look_for: Text,
    telling: Observations,
    consistent: Observations,
}

#[derive(Debug, Default)]
struct Observations {
    speak_for: Vec<Text>,
    against: Vec<Text>,
}

impl Observations {
    fn balance(&self) -> isize {
        self.speak_for.len().cast_signed() - self.against.len().cast_signed()
    }
}

impl Suspicion {
    /// Its meaning, the command that confirms it, and what to look for in the output.
    fn new(summary: impl Into<Text>, command: impl Into<SettlingCommand>, look_for: impl Into<Text>) -> Self {
        Self {
            summary: summary.into(),
            command: command.into(),
            look_for: look_for.into(),
            telling: Observations::default(),
            consistent: Observations::default(),
        }
    }

    /// Speaks for this cause and not for the others.
    #[must_use]
    fn telling(mut self, observation: Option<impl Into<Text>>) -> Self {
        self.telling.speak_for.extend(observation.map(Into::into));
        self
    }

    /// Would be true for this cause, and also for others.
    #[must_use]
    fn consistent(mut self, observation: Option<impl Into<Text>>) -> Self {
        self.consistent.speak_for.extend(observation.map(Into::into));
        self
    }

    /// A value that no working node has. It is evidence when a second machine with it failed, because two machines
    /// differ in many values.
    #[must_use]
    fn contrast(self, split: Option<&Separation>, said: impl FnOnce(&Separation) -> String) -> Self {
        match split {
            Some(split) if split.repeated => self.telling(Some(said(split))),
            split => self.consistent(split.map(said)),
        }
    }

    /// Makes this cause less likely than others.
    #[must_use]
    fn unlikely(mut self, observation: Option<impl Into<Text>>) -> Self {
        self.consistent.against.extend(observation.map(Into::into));
        self
    }

    fn has_grounds(&self) -> bool {
        !self.telling.speak_for.is_empty() || !self.consistent.speak_for.is_empty()
    }

    fn balance(&self) -> Balance {
        (self.telling.balance(), self.consistent.balance())
    }

    fn of(mut self, candidate: &'static CauseCandidate) -> Weighed {
        let mut speaks_for = self.telling.speak_for;
        speaks_for.append(&mut self.consistent.speak_for);
        let mut against = self.telling.against;
        against.append(&mut self.consistent.against);
        let (summary, look_for) = (self.summary, self.look_for);
        let grounds = Grounds { cause: candidate.cause.into(), summary, speaks_for, against, look_for };
        Weighed { candidate, grounds: Arc::new(grounds), command: self.command }
    }
}

/// The balance of what separates, and of what is consistent.
type Balance = (isize, isize);

/// A candidate with the evidence for it, from all machines that share it.
#[derive(Debug)]
struct Weighed {
    candidate: &'static CauseCandidate,
    grounds: Arc<Grounds>,
    command: SettlingCommand,
}

impl Weighed {
    fn suspect(&self, case: &Case) -> Suspect {
        Suspect { grounds: Arc::clone(&self.grounds), command: self.command.of(case) }
    }
}

/// The verdict's own statement beside the suspects.
#[derive(Debug, Clone, Copy)]
pub struct Stated<'v> {
    pub cause: &'v str,
    pub confidence: Confidence,
}

impl Stated<'_> {
    /// A likely root cause needs no suspects, and neither does a certain one: there the objects prove the cause.
    fn leaves_open(&self, candidate: &CauseCandidate) -> bool {
        let is_symptom = self.confidence != Confidence::Certain && candidate.behind.contains(&self.cause);
        self.cause == unknown::CAUSE
            || is_symptom
            || self.confidence == Confidence::Possible && self.cause != candidate.cause
    }
}

/// Reasons of Events that a verdict states as its cause, with the suspect that would repeat it.
/// Sources: kubernetes v1.36.3 pkg/kubelet/oom/oom_watcher_linux.go; karpenter-provider-aws v1.14.1
/// pkg/controllers/interruption/events/events.go.
const STATED: [(&str, &str); 4] = [
    ("SystemOOM", "MemoryExhausted"),
    ("SpotInterrupted", "InstanceEnded"),
    ("InstanceTerminating", "InstanceEnded"),
    ("InstanceStopping", "InstanceEnded"),
];

/// Objects in the chain of a verdict, with the suspect that would repeat what the chain says.
const IN_CHAIN: [(&str, &str); 1] = [("DaemonSet/kube-proxy", "ServiceAddressUnreachable")];

/// Whether a verdict says what this suspect would guess: its evidence is an Event about it, or its chain explains it.
pub fn repeats(evidence: &[Evidence], chain: &[Link], suspect: &str) -> bool {
    let states = |e: &Evidence| {
        e.object.starts_with("Event/") && e.field == "reason" && STATED.contains(&(e.observed.as_str(), suspect))
    };
    let explains = |link: &Link| IN_CHAIN.contains(&(link.object.as_str(), suspect));
    evidence.iter().any(states) || chain.iter().any(explains)
}

/// At most five suspects, the best first. `excluded` says whether a cause is ruled out or reported elsewhere.
pub fn most_likely(case: &Case, verdict: Stated, excluded: impl Fn(&str) -> bool) -> Vec<Suspect> {
    let asked = asked(case, verdict, excluded);
    if !ALL.iter().any(|candidate| asked(candidate)) {
        return Vec::new();
    }
    match group::of(case) {
        Some(weighed) => shown(case, weighed.iter().filter(|weighed| asked(weighed.candidate))),
        None => shown(case, &weighed(case, asked, frequency::reports)),
    }
}

/// Like `of`, with other counts of how often a cause is the answer.
pub fn ranked(
    case: &Case,
    verdict: Stated,
    excluded: impl Fn(&str) -> bool,
    reports: impl Fn(&str) -> u32,
) -> Vec<Suspect> {
    shown(case, &weighed(case, asked(case, verdict, excluded), reports))
}

fn asked(case: &Case, verdict: Stated, excluded: impl Fn(&str) -> bool) -> impl Fn(&CauseCandidate) -> bool {
    /// Causes that may keep a Node away although its kubelet reports: network, certificates and role are right.
    const AFTER_THE_KUBELET: [&str; 2] = ["NodeNameRefused", "AdmissionRefusesNode"];
    let stage = case.stage();
    let reports = differential::reporting(case).is_some();
    move |c| {
        let may_be = !reports || AFTER_THE_KUBELET.contains(&c.cause);
        c.stages.contains(&stage) && verdict.leaves_open(c) && may_be && !excluded(c.cause)
    }
}

/// The suspects that have evidence, the best first.
fn weighed(case: &Case, asked: impl Fn(&CauseCandidate) -> bool, reports: impl Fn(&str) -> u32) -> Vec<Weighed> {
    let mut asked = ALL.iter().filter(|candidate| asked(candidate)).peekable();
    if asked.peek().is_none() {
        return Vec::new();
    }
    let differential = Differential::of(case);
    let suspicions = asked.filter_map(|candidate| Some((*candidate, (candidate.weigh)(case, &differential)?)));
    let mut suspicions: Vec<_> = suspicions.filter(|(_, suspicion)| suspicion.has_grounds()).collect();
    suspicions.sort_by_cached_key(|(candidate, suspicion)| Reverse((suspicion.balance(), reports(candidate.cause))));
    suspicions.into_iter().map(|(candidate, suspicion)| suspicion.of(candidate)).collect()
}

fn shown<'s>(case: &Case, weighed: impl IntoIterator<Item = &'s Weighed>) -> Vec<Suspect> {
    weighed.into_iter().take(crate::api::schema_limits::SUSPECTS).map(|weighed| weighed.suspect(case)).collect()
}

/// The list of all causes as `docs/causes/README.md` shows it.
pub fn index() -> String {
    let symptom = |page: &str| page.lines().find_map(|l| l.strip_prefix("> ")).unwrap_or_default().replace('|', "\\|");
    let stages = |page: &SuspectPage| page.stages.iter().map(|s| format!("{s:?}")).collect::<Vec<_>>().join(", ");
    let row = |page: &SuspectPage| {
        format!("| [{0}]({0}.md) | {1} | {2} | `{3}` |\n", page.cause, stages(page), page.summary, symptom(page.text))
    };
    let head = "\n## Suspects only\n\nNo object proves these causes. nodewhy names them under `status.suspects`, with \
                the evidence for and against them\n([how they are ordered](../verdicts.md#suspects)).\n\n| cause | \
                stage | what it is | message to search for |\n| --- | --- | --- | --- |\n";
    PAGES.iter().map(row).fold(rules::index() + head, |all, row| all + &row)
}

#[cfg(test)]
mod tests {
    use super::repeats;
    use crate::api::Link;

    #[test]
    fn a_chain_through_kube_proxy_needs_no_guess_about_it() {
        let chain = [Link::new("DaemonSet/kube-proxy", "DaemonSet kube-proxy is not installed")];
        assert!(repeats(&[], &chain, "ServiceAddressUnreachable"));
        assert!(!repeats(&[], &chain, "PodsGetNoAddress"));
        assert!(!repeats(&[], &[Link::new("Pod/kube-proxy-1", "it fails")], "ServiceAddressUnreachable"));
    }
}
