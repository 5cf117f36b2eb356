//! From a verdict that proves no root cause to what may be behind it, the best suspect first.
//!
//! A candidate weighs what the machine shares with those that work and what it does not. Each observation either tells
//! this cause from others or is merely consistent with it. The order is: what tells for a cause less what tells against
//! it, then the same of what is consistent, then how often the cause is the answer in public reports. So a reader sees
//! by counting lines why the first is first.

mod access;
mod bootstrap;
pub mod differential;
pub mod frequency;
mod image;
mod launch;
mod network;
mod node;

use crate::api::{Confidence, Stage, Suspect, Text};
use crate::case::Case;
use crate::rules::{self, unknown};
use differential::{Differential, Separation};
use std::cmp::Reverse;

/// A cause that may explain a machine, though no object proves it.
#[derive(Debug)]
pub struct CauseCandidate {
    /// The name of its page.
    pub cause: &'static str,
    pub stages: &'static [Stage],
    /// The verdicts that only name its symptom.
    pub behind: &'static [&'static str],
    pub weigh: fn(&Case, &Differential) -> Option<Suspicion>,
}

/// A cause that has a page and no rule: no object shows it.
#[derive(Debug)]
pub struct SuspectPage {
    pub cause: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    pub stages: &'static [Stage],
    pub text: &'static str,
}

/// Where nothing else orders two candidates, the first stays first.
pub const ALL: &[&CauseCandidate] = &[
    &access::ROLE_NOT_LET_IN,
    &access::ROLE_LOST_ITS_ACCESS,
    &access::OTHER_ENDPOINT,
    &access::ADMISSION,
    &network::ZONE,
    &network::NO_ROUTE,
    &network::NO_PUBLIC_ADDRESS,
    &network::OTHER_SECURITY_GROUPS,
    &network::SECURITY_GROUP_RULES,
    &network::ENDPOINT_NAME,
    &network::PROXY,
    &image::IMAGE,
    &image::INSTANCE_TYPE,
    &bootstrap::USER_DATA,
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
    &node::RUNTIME,
    &node::MEMORY,
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

/// The pages of those that no rule can prove.
pub const PAGES: &[SuspectPage] = &[
    page!("NoRouteOut", &[Stage::Join], "The subnets have no way to AWS and to the API server"),
    page!("PublicSubnetWithoutPublicIp", &[Stage::Join], "The instance stands in a public subnet without a public IP"),
    page!(
        "SecurityGroupBlocksKubelet",
        &[Stage::Join],
        "The rules of the security groups keep the kubelet from the API server"
    ),
    page!("PrivateEndpointUnresolved", &[Stage::Join], "The name of the private API endpoint cannot be resolved"),
    page!("ProxyWithoutExceptions", &[Stage::Join], "A proxy in user data swallows calls that must not go through it"),
    page!("NodeNameEmptyAtBoot", &[Stage::Join], "EC2 had not told the private DNS name when the kubelet started"),
    page!(
        "AdmissionRefusesNode",
        &[Stage::Join, Stage::Register],
        "An admission webhook or policy refuses the Node or its changes"
    ),
    page!("LaunchRightsMissing", &[Stage::Launch], "Karpenter's role may not make what a launch needs"),
    page!(
        "CniOlderThanInstanceType",
        &[Stage::Initialize, Stage::Ready],
        "The VPC CNI is older than the instance type and exits on it"
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
    page!("MemoryExhausted", &[Stage::Ready], "The machine ran out of memory, and the kubelet with it"),
];

/// The page of a cause that no rule has; names are compared without regard to case.
pub fn page(cause: &str) -> Option<&'static SuspectPage> {
    PAGES.iter().find(|page| page.cause.eq_ignore_ascii_case(cause))
}

/// What a candidate sees in one machine.
#[derive(Debug)]
pub struct Suspicion {
    summary: Text,
    command: Text,
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
    /// What it would mean, the command that settles it, and what to look for in its output.
    fn new(summary: impl Into<Text>, command: impl Into<Text>, look_for: impl Into<Text>) -> Self {
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

    /// Would be so if it were this cause, and if it were others.
    #[must_use]
    fn consistent(mut self, observation: Option<impl Into<Text>>) -> Self {
        self.consistent.speak_for.extend(observation.map(Into::into));
        self
    }

    /// A value that no machine that works has: it tells once a second machine of it failed, for one differs from others
    /// in much.
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

    fn named(mut self, cause: &'static str) -> Suspect {
        let mut speaks_for = self.telling.speak_for;
        speaks_for.append(&mut self.consistent.speak_for);
        let mut against = self.telling.against;
        against.append(&mut self.consistent.against);
        Suspect {
            cause: cause.into(),
            summary: self.summary,
            speaks_for,
            against,
            command: self.command,
            look_for: self.look_for,
        }
    }
}

/// What the verdict states that suspects stand beside.
#[derive(Debug, Clone, Copy)]
pub struct Stated<'v> {
    pub cause: &'v str,
    pub confidence: Confidence,
}

impl Stated<'_> {
    /// A root cause that is likely or proven needs no suspects. A symptom does, however sure it is, but for Launch:
    /// what is certain there is EC2's own word.
    fn leaves_open(&self, candidate: &CauseCandidate) -> bool {
        let names_the_fault = self.confidence == Confidence::Certain && candidate.stages.contains(&Stage::Launch);
        self.cause == unknown::CAUSE
            || candidate.behind.contains(&self.cause) && !names_the_fault
            || self.confidence == Confidence::Possible && self.cause != candidate.cause
    }
}

/// At most five suspects, the best first; `excluded` says whether a cause is ruled out or told elsewhere.
pub fn of(case: &Case, verdict: Stated, excluded: impl Fn(&str) -> bool) -> Vec<Suspect> {
    ranked(case, verdict, excluded, frequency::reports)
}

/// The same with other figures on how often a cause is the answer.
pub fn ranked(
    case: &Case,
    verdict: Stated,
    excluded: impl Fn(&str) -> bool,
    reports: impl Fn(&str) -> u32,
) -> Vec<Suspect> {
    const SHOWN: usize = crate::api::schema_limits::SUSPECTS;
    let asked = |c: &&&CauseCandidate| c.stages.contains(&case.stage()) && verdict.leaves_open(c) && !excluded(c.cause);
    let mut asked = ALL.iter().filter(asked).peekable();
    if asked.peek().is_none() {
        return Vec::new();
    }
    let differential = Differential::of(case);
    if differential.kubelet_reports {
        return Vec::new();
    }
    let weighed = asked.filter_map(|candidate| Some((candidate.cause, (candidate.weigh)(case, &differential)?)));
    let mut suspicions: Vec<_> = weighed.filter(|(_, suspicion)| suspicion.has_grounds()).collect();
    suspicions.sort_by_cached_key(|(cause, s)| Reverse((s.telling.balance(), s.consistent.balance(), reports(cause))));
    suspicions.into_iter().take(SHOWN).map(|(cause, suspicion)| suspicion.named(cause)).collect()
}

/// The list of all causes as `docs/causes/README.md` shows it.
pub fn index() -> String {
    let symptom = |page: &str| page.lines().find_map(|l| l.strip_prefix("> ")).unwrap_or_default().replace('|', "\\|");
    let stages = |page: &SuspectPage| page.stages.iter().map(|s| format!("{s:?}")).collect::<Vec<_>>().join(", ");
    let row = |page: &SuspectPage| {
        format!("| [{0}]({0}.md) | {1} | {2} | `{3}` |\n", page.cause, stages(page), page.summary, symptom(page.text))
    };
    let head = "\n## Suspects only\n\nNo object proves these. They are named under `status.suspects`, with what speaks for and against them\n([how they are ordered](../verdicts.md#suspects)).\n\n| cause | stage | what it is | message to search for |\n| --- | --- | --- | --- |\n";
    PAGES.iter().map(row).fold(rules::index() + head, |all, row| all + &row)
}
