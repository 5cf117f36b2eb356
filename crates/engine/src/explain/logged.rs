//! The finding that a machine's own log proves: the line, how often it was logged, how far the machine came.

use crate::api::{Blame, Confidence, Evidence, Stage};
use crate::case::Case;
use crate::case::finding::Finding;
use crate::case::pool_wait::STILL_ASKED_FOR;
use crate::cluster_state::aws;
use crate::cluster_state::memo::Memo;
use crate::explain::denial::{self, Denial};
use crate::explain::selinux;
use crate::objects::{Node, Pod};
use chrono::{DateTime, TimeDelta, Utc};
use logs::fact::{BootStep, DeviceFault, Fact, LogLine, Oops, Phase, Reason, ScriptEnd, Trouble};
use logs::journey::Journey;
use logs::lease::Lease;
use logs::selinux::{Refusal, refusal_behind};
use logs::table::{CILIUM_OPERATOR, is_about_others, program_of};
use readers::source_text::Span;

/// An operator that has said nothing for so long has succeeded.
const QUIET: TimeDelta = TimeDelta::minutes(30);

/// What the table calls lines of systemd.
const SYSTEMD: &str = "systemd";

/// The error that stops the machine, before all others in its log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Root<'w> {
    pub(crate) fact: &'w Fact,
    journey: &'w Journey,
    whose: LogOwner<'w>,
}

/// The link between a log and the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LogOwner<'w> {
    /// It names the machine.
    Own,
    /// It names no known machine, and this is the only one that it can belong to.
    ByElimination,
    /// It belongs to an instance that was launched like this one, or to one of several.
    Sibling(Option<&'w str>),
}

/// The root of a machine's trouble, if it is one of these.
pub(crate) fn root<'w>(case: &Case<'w>, troubles: &[Trouble]) -> Option<Root<'w>> {
    let own = case.logs().into_iter().map(|of_machine| {
        let whose = if of_machine.is_named { LogOwner::Own } else { LogOwner::ByElimination };
        (&of_machine.log.journey, whose)
    });
    let own = own.filter_map(|(journey, whose)| first(case, journey, whose)).min_by_key(|root| root.fact.rank());
    // An agent that waits, and its operator's log, which is no machine's: that says why.
    let says_more = |own: &Root<'_>, other: &Root<'_>| {
        other.whose == LogOwner::Sibling(None)
            && other.fact.trouble == own.fact.trouble
            && other.fact.rank() < own.fact.rank()
    };
    let first = match (own, beside(case)) {
        (Some(own), Some(other)) if !says_more(&own, &other) => own,
        (Some(own), None) => own,
        (_, other) => other?,
    };
    troubles.contains(&first.fact.trouble).then_some(first)
}

/// Trouble of this kind in the machine's own logs, whatever else stops it.
pub(crate) fn of_kind<'w>(case: &Case<'w>, trouble: Trouble) -> Option<Root<'w>> {
    case.logs().into_iter().filter(|of_machine| of_machine.is_named).find_map(|of_machine| {
        let journey = &of_machine.log.journey;
        let fact = journey.open().into_iter().find(|fact| fact.trouble == trouble)?;
        Some(Root { fact, journey, whose: LogOwner::Own })
    })
}

/// That systemd stopped the kubelet shortly before the Node fell silent: what ran for longer since was started again.
pub(crate) fn stopped_kubelet<'w>(case: &Case<'w>, silent: DateTime<Utc>) -> Option<Root<'w>> {
    /// The node controller waits 50 seconds, and longer if it has just started.
    /// Source: kubernetes v1.36.3 cmd/kube-controller-manager/app/options/nodelifecyclecontroller.go,
    /// pkg/controller/nodelifecycle/config/v1alpha1/defaults.go.
    const SHORTLY: TimeDelta = TimeDelta::minutes(5);
    of_kind(case, Trouble::KubeletStopped)
        .filter(|root| root.fact.last.time.is_some_and(|at| at <= silent && silent - at <= SHORTLY))
}

/// The root of the trouble of one log.
fn first<'w>(case: &Case<'w>, journey: &'w Journey, whose: LogOwner<'w>) -> Option<Root<'w>> {
    let fact = journey.open().into_iter().find(|fact| explains(case, fact))?;
    Some(Root { fact, journey, whose })
}

/// Whether a log of the machine, or of those that should behave alike, tells what stops it.
pub(crate) fn tells_a_root(case: &Case) -> bool {
    let own = case.logs().into_iter().any(|of_machine| of_machine.log.journey.complains());
    own || beside(case).is_some()
}

/// The common part of the machines that should behave alike, if they agree.
fn beside<'w>(case: &Case<'w>) -> Option<Root<'w>> {
    let (passed, logs) = case.logs_beside();
    if logs.is_empty() {
        return None;
    }
    // A device that fails, and a full disk, are the machine's own; what every boot mounts, and needs, is the image's.
    let is_needed = |fact: &Fact| fact.boot.as_ref().is_some_and(|step| !step.needed_by.is_empty());
    let is_mounted = |root: &Root<'_>| root.fact.trouble == Trouble::DiskFails && is_needed(root.fact);
    let is_shared =
        |root: &Root<'_>| !matches!(root.fact.trouble, Trouble::DeviceFails | Trouble::DiskFails) || is_mounted(root);
    let is_ahead = |fact: &Fact| passed.is_none_or(|passed| passed < fact.blocks);
    let is_sure = |root: &Root<'_>| {
        (root.fact.ends || root.lasts() || is_mounted(root)) && is_shared(root) && is_ahead(root.fact)
    };
    let root_of = |machine: Option<&str>| {
        // What names no machine may be of any.
        let its = logs.iter().filter(|other| other.of.is_none() || other.of == machine);
        let roots = its.filter_map(|other| first(case, &other.log.journey, LogOwner::Sibling(other.of)));
        roots.filter(is_sure).min_by_key(|root| root.fact.rank())
    };
    let is_first = |at: usize, of: Option<&str>| logs.iter().take(at).all(|other| other.of != of);
    let named = logs.iter().enumerate().filter(|(at, other)| other.of.is_some() && is_first(*at, other.of));
    let nobodys = logs.iter().all(|other| other.of.is_none()).then_some(None);
    let mut roots = named.map(|(_, other)| other.of).chain(nobodys).filter_map(root_of);
    let root = roots.next()?;
    roots.all(|other| other.fact.means == root.fact.means).then_some(root)
}

/// The role whose calls IAM denies to this program, as its log names it.
pub(crate) fn denied_role<'w>(case: &Case<'w>, program: &str) -> Option<&'w str> {
    let logs = case.logs();
    let facts = logs.iter().flat_map(|of_machine| of_machine.log.journey.open());
    let mut denials = facts.filter(|fact| fact.program == program && fact.trouble == Trouble::AwsRefuses);
    denials.find_map(|fact| fact.names.get("role")).map(String::as_str)
}

/// The pod that logs under this name: that of the machine, else one that serves all.
pub(crate) fn speaker<'w>(case: &Case<'w>, program: &str) -> Option<&'w Pod> {
    let is_its = |name: &str| program_of(name) == Some(program);
    let own = case.pods().filter(|pod| pod.daemon_set().is_some_and(is_its));
    own.min_by_key(|pod| pod.daemon_set()).or_else(|| {
        static OF_ALL: Memo<Option<(String, String)>> = Memo::new("the pod that serves all and logs under a name");
        let found = case.cluster.once(&OF_ALL, program, || {
            let pod = case.cluster.pods().find(|pod| pod.daemon_set().is_none() && is_its(&pod.metadata.name))?;
            Some((pod.metadata.namespace.as_deref().unwrap_or_default().to_owned(), pod.metadata.name.to_string()))
        });
        let (namespace, name) = (*found).as_ref()?;
        case.cluster.pods_named(namespace, name).find(|pod| *pod.metadata.name == **name)
    })
}

/// The unit of this vendor's driver that failed as the machine booted.
pub(crate) fn driver_unit<'w>(case: &Case<'w>, vendor: &str) -> Option<&'w Fact> {
    let is_its = |fact: &&Fact| fact.boot.as_ref().is_some_and(|step| step.unit.to_ascii_lowercase().contains(vendor));
    case.logs().into_iter().find_map(|of_machine| of_machine.log.journey.drivers.iter().find(is_its))
}

/// A line that Karpenter's log still repeats about the machine or the node class and that no row of the table knows.
pub(crate) fn unexplained<'w>(case: &Case<'w>) -> Option<&'w Fact> {
    let logs = case.logs().into_iter().filter(|of_machine| of_machine.is_named);
    let told = logs.flat_map(|of_machine| of_machine.log.journey.open());
    let is_new = |fact: &&Fact| fact.last.time.is_some_and(|at| case.now - at <= STILL_ASKED_FOR);
    told.filter(|fact| fact.trouble == Trouble::Unexplained && fact.lasts()).find(is_new)
}

/// An error that the operator of the network plugin repeats, which names the Node and which no row of the table knows.
pub(crate) fn named_by_operator<'w>(case: &Case<'w>) -> Option<&'w Fact> {
    let logs = case.logs().into_iter().filter(|of_machine| of_machine.is_named);
    let mut told = logs.flat_map(|of_machine| of_machine.log.journey.operator_errors.iter());
    told.find(|fact| fact.lasts() && fact.last.time.is_none_or(|at| case.now - at <= QUIET))
}

/// The line that Karpenter's log repeats about the end of the machine, however old: Karpenter retries less and less
/// often, and an error that it got past is no longer open.
/// Source: client-go v0.36.3 util/workqueue/default_rate_limiters.go (1000 seconds at most).
pub(crate) fn holds<'w>(case: &Case<'w>) -> Option<&'w Fact> {
    let logs = case.logs().into_iter().filter(|of_machine| of_machine.is_named);
    let told = logs.flat_map(|of_machine| of_machine.log.journey.open());
    let is_of_end =
        |fact: &&Fact| matches!(fact.trouble, Trouble::AwsRefuses | Trouble::Unexplained) && fact.blocks == Phase::Gone;
    told.filter(is_of_end).filter(|fact| fact.lasts()).min_by_key(|fact| fact.rank())
}

/// The same fact as a sentence that follows another.
pub(crate) fn quoted(unexplained: &Fact) -> String {
    format!(" Karpenter's log has {} such lines, the last one: {}", unexplained.count, excerpt(&unexplained.last.text))
}

/// What the operator said of the machine once or twice, and not again for long: it tries again until it succeeds.
/// Source: cilium 0c69aafa94 pkg/ipam/allocator/multipool/node_handler.go `createUpsertController`.
fn is_past(case: &Case, fact: &Fact) -> bool {
    let is_old = |at: DateTime<Utc>| case.now - at > QUIET;
    fact.program == CILIUM_OPERATOR && !fact.ends && !fact.lasts() && fact.last.time.is_some_and(is_old)
}

/// The log need not prove what the cluster shows of a machine.
fn explains(case: &Case, fact: &Fact) -> bool {
    if is_past(case, fact) {
        return false;
    }
    // A kubelet is Ready whether the devices of its node work or not. So they are not why it is not Ready.
    if fact.trouble == Trouble::DeviceFails && case.node.is_some_and(|node| !node.is_ready()) {
        return false;
    }
    // Who has a Node was configured.
    let is_of_boot = matches!(
        fact.trouble,
        Trouble::UserDataRefused
            | Trouble::ScriptFailed
            | Trouble::BootContainerFailed
            | Trouble::BootstrapFailed
            | Trouble::KernelPanicked
    );
    // Only a Node whose kubelet has reported can tell whether a stop was meant to last.
    if fact.trouble == Trouble::KubeletStopped && matches!(case.stage(), Stage::Join | Stage::Register) {
        return false;
    }
    match case.stage() {
        Stage::Launch => fact.blocks == Phase::Booted,
        // A kubelet that ends has not joined, however far it came by then.
        Stage::Join | Stage::Register => fact.blocks <= Phase::Registered || fact.ends && fact.program == "kubelet",
        Stage::Initialize | Stage::Ready => {
            fact.blocks == Phase::Ready
                || fact.blocks == Phase::Registered && !is_of_boot
                || fact.ends && booted_again(case, fact)
        }
        Stage::Terminate => fact.blocks == Phase::Gone,
    }
}

/// Whether it was said after the Node had joined, and its kubelet says nothing any more: what ends the start of a
/// machine ends its next one too. A script of user data may end after the kubelet has come up.
fn booted_again(case: &Case, fact: &Fact) -> bool {
    let is_silent = |node: &&Node| node.condition("Ready").is_some_and(|ready| ready.status == "Unknown");
    let joined = case.node.filter(is_silent).and_then(|node| node.metadata.creation_timestamp);
    fact.trouble != Trouble::ScriptFailed && joined.zip(fact.last.time).is_some_and(|(joined, said)| said > joined)
}

impl Root<'_> {
    /// A program that gave up proves its message; one that retries proves it after some time.
    pub(crate) fn confidence(&self) -> Confidence {
        // A script of user data need not be what starts the kubelet, and an unknown line not be why a program ended.
        let is_known = !self.fact.unknown && self.fact.trouble != Trouble::ScriptFailed;
        // What an operator lacks to serve the machine is not why it lacks it.
        let is_of_operator = self.fact.program == CILIUM_OPERATOR;
        let is_proof = is_known && !is_of_operator && !self.fact.vague && (self.fact.ends || self.lasts());
        if is_proof && self.whose == LogOwner::Own { Confidence::Certain } else { Confidence::Likely }
    }

    /// Logged again and again, for a while, for every request of the program: one reason fails all its requests.
    fn lasts(&self) -> bool {
        let is_same = |other: &&Fact| {
            let what = |fact: &Fact| (fact.trouble, fact.reason);
            other.program == self.fact.program && what(other) == what(self.fact)
        };
        if self.fact.reason.is_none() {
            return self.fact.lasts();
        }
        Fact::last_together(self.journey.facts.iter().filter(is_same))
    }

    /// Why a request failed: ", because nothing answers in time".
    fn reason(&self) -> String {
        let reason = self.fact.reason.map_or_else(String::new, |reason| format!(", because {}", reason.in_words()));
        match self.denial() {
            Some(denial) if !reason.is_empty() => format!("{reason} ({})", denial.in_words()),
            _ => reason,
        }
    }

    /// The call that AWS denies, if the line names it.
    pub(crate) fn denial(&self) -> Option<Denial<'_>> {
        denial::of(self.fact)
    }

    /// The log's reason, for a summary.
    pub(crate) fn quote(&self) -> String {
        let often = if self.fact.count > 1 { format!(" {} times", self.fact.count) } else { String::new() };
        let reason = self.reason();
        let fails = reason.strip_prefix(',').map_or_else(String::new, |because| format!(" that it fails{because}"));
        format!("Its log says{often}{fails}: {}", excerpt(&self.fact.last.text))
    }

    /// The error of AWS that Karpenter logged, as a sentence to follow another.
    pub(crate) fn refusal(&self) -> String {
        let named = |name: &str| self.fact.names.get(name).map_or("", |text| text.trim_end_matches('.'));
        format!(" Karpenter's log says why: {}: {}.", named("code"), named("error"))
    }

    /// The line as the log has it.
    pub(crate) fn line(&self) -> &str {
        &self.fact.last.text
    }

    /// Whether the line, or the error before it that it wraps, has this text.
    pub(crate) fn says(&self, text: &str) -> bool {
        self.line().contains(text) || self.fact.cause.as_ref().is_some_and(|cause| cause.text.contains(text))
    }

    /// A program that wraps an error has logged it before; one that prints a trace logs it behind the line.
    fn place_of_cause(&self) -> &'static str {
        let first = &self.fact.first;
        let is_behind = |cause: &LogLine| cause.file == first.file && cause.line > first.line;
        if self.fact.cause.as_ref().is_some_and(is_behind) { "its trace ends with" } else { "the error before it" }
    }

    /// The error in the line, without the text around it.
    pub(crate) fn error(&self) -> &str {
        self.fact.names.get("error").unwrap_or(&self.fact.last.text).trim().trim_end_matches('.')
    }

    /// The line, for a finding that proves more.
    pub(crate) fn evidence(&self) -> Evidence {
        told(self.fact, &self.fact.means)
    }

    pub(crate) fn is_because(&self, reasons: &[Reason]) -> bool {
        self.fact.reason.is_some_and(|reason| reasons.contains(&reason))
    }

    /// The finding, with the line that proves it, the other lines that stay open, and how far the machine came.
    pub(crate) fn finding(&self, case: &Case) -> Finding {
        let fact = self.fact;
        let often = if fact.count > 1 { format!(" (logged {} times)", fact.count) } else { String::new() };
        let (machine, means, reason) = (self.machine(case), &fact.means, self.reason());
        let words = excerpt(&self.words().text);
        let told_of = match self.device() {
            Some(device) => {
                let (why, line) = (&device.means, excerpt(device.line.text.trim_end_matches('.')));
                format!("{machine} {why}: {line}. After that, {}: {words}", self.failure())
            }
            None => format!("{machine} {means}{reason}{often}: {words}"),
        };
        let summary = if is_about_others(&fact.program) { format!("For {told_of}") } else { format!("On {told_of}") };
        let summary = match &fact.cause {
            Some(cause) => {
                format!("{}; {}: {}", summary.trim_end_matches('.'), self.place_of_cause(), excerpt(&cause.text))
            }
            None => summary,
        };
        // That a script failed, cloud-init says; why, the script itself has said before.
        let is_told = fact.script.as_ref().is_some_and(|script| !script.said.is_empty());
        let before = self.journey.open().into_iter().find(|other| {
            let is_script = fact.trouble == Trouble::ScriptFailed && !is_told;
            is_script && !other.ends && other.program == fact.program && *other != fact
        });
        let summary = match before {
            Some(other) => format!("{summary}; before that: {}", excerpt(&other.last.text)),
            None => summary,
        };
        let summary = match fact.script.as_ref().and_then(commands_in_words) {
            Some(commands) => format!("{}; {commands}", summary.trim_end_matches('.')),
            None => summary,
        };
        let summary = match fact.boot.as_ref().and_then(|step| step.refusal.as_ref()) {
            Some(line) => format!("{}; the kernel says why: {}", summary.trim_end_matches('.'), excerpt(&line.text)),
            None => summary,
        };
        let summary = match &fact.boot {
            Some(step) => format!("{}.{}", summary.trim_end_matches(['.', ':']), boot_in_words(step)),
            None => summary,
        };
        let summary = match self.module_in_words() {
            Some(module) => format!("{}. {module}", summary.trim_end_matches('.')),
            None => summary,
        };
        let refusal = self.selinux_refusal();
        let summary = match &refusal {
            Some(refusal) => format!("{}. {}", summary.trim_end_matches('.'), selinux::in_words(refusal)),
            None => summary,
        };
        let others = self.journey.open().into_iter().filter(|other| *other != fact && explains(case, other));
        let others = others.take(3).map(|other| told(other, &other.means));
        let came_to = came_to(self.journey);
        let finding =
            Finding::new(self.confidence(), summary, told(fact, &fact.means)).with_all(self.of_boot()).with_all(others);
        let is_told = |line: &LogLine| fact.boot.as_ref().is_some_and(|step| step.said.contains(line));
        let refusal = refusal.map(|refusal| refusal.line).filter(|line| !is_told(line));
        let refusal = refusal.map(|line| at(line, "SELinux refused it what it needs".to_owned()));
        let finding = finding.with_all(refusal).with_all(self.of_module());
        let cause = fact.cause.as_ref();
        let cause = cause.map(|line| at(line, format!("{}, of the same program", self.place_of_cause())));
        let finding = finding.with_all(cause);
        let finding = finding.with_all(self.of_script()).with_all(came_to);
        let because = match self.whose {
            LogOwner::Own => return finding,
            LogOwner::ByElimination => "no other machine here is unfinished, so the log is taken for this one's",
            LogOwner::Sibling(Some(_)) => "a machine of the same node class at the same stage; this machine has no log",
            LogOwner::Sibling(None) => {
                "all unfinished machines here belong to one node class, and the log is of one of them"
            }
        };
        finding.with(Evidence::new(fact.last.file.clone(), "identity", format!("it names {}", self.named()), because))
    }

    /// The DHCP lease that the machine lost, with the line that says so.
    pub(crate) fn lost_lease(&self) -> Option<(&Lease, Evidence)> {
        let lease = &self.journey.lease;
        let lost = at(lease.lost.as_ref()?, "no later line says that there is a new lease".to_owned());
        Some((lease, lost))
    }

    /// That systemd-networkd was stopped, and mostly started again, shortly before the trouble began.
    pub(crate) fn restarted_network(&self) -> Option<(TimeDelta, Evidence)> {
        const SHORTLY: TimeDelta = TimeDelta::minutes(5);
        let stopped = self.journey.lease.stopped.as_deref()?;
        let before = self.fact.first.time? - stopped.time?;
        let is_shortly = before >= TimeDelta::zero() && before <= SHORTLY;
        is_shortly.then(|| (before, at(stopped, "it comes up again without what other programs had set up".to_owned())))
    }

    /// What SELinux refused the program, if that is why it failed.
    pub(crate) fn selinux_refusal(&self) -> Option<Refusal<'_>> {
        refusal_behind(&self.journey.refusals, self.fact)
    }

    /// Why the accelerator does not work that the step of the boot is about.
    pub(crate) fn device(&self) -> Option<&DeviceFault> {
        self.fact.boot.as_ref()?.device.as_ref()
    }

    /// What failed, where the summary has its reason before it.
    fn failure(&self) -> String {
        match &self.fact.boot {
            Some(step) if self.is_unit_of_boot() && !step.unit.is_empty() => format!("{} failed", step.unit),
            _ => self.fact.means.clone(),
        }
    }

    /// Whether it is the first unit of the boot that failed, and no row of the table knows it.
    pub(crate) fn is_unit_of_boot(&self) -> bool {
        self.fact.boot.is_some() && self.fact.unknown && self.fact.program == SYSTEMD
    }

    /// Whether a unit of the boot whose name begins so said this just before it failed.
    pub(crate) fn is_unit_that_said(&self, name: &str, text: &str) -> bool {
        let step = self.fact.boot.as_ref().filter(|step| step.unit.to_ascii_lowercase().starts_with(name));
        step.is_some_and(|step| step.said.iter().any(|line| line.text.contains(text)))
    }

    /// The command among the last of a script that calls the metadata service without a token.
    /// Source: EC2 user guide, "Use the Instance Metadata Service to access instance metadata".
    pub(crate) fn calls_without_token(&self) -> Option<&str> {
        const SERVICE: &str = "://169.254.169.254/latest/";
        const TOKENS: [&str; 2] = ["x-aws-ec2-metadata-token", "/latest/api/token"];
        let has_token = |text: &str| TOKENS.iter().any(|token| text.to_ascii_lowercase().contains(token));
        let commands = self.fact.script.iter().flat_map(|script| &script.commands);
        let mut texts = commands.map(|command| command.text.as_str());
        texts.find(|text| text.contains(SERVICE) && !has_token(text))
    }

    /// Whether systemd deleted the job of a unit, for its order contradicts that of others.
    pub(crate) fn is_of_cycle(&self) -> bool {
        self.is_unit_of_boot() && !self.fact.vague
    }

    /// The line that says most: of a script or a step of the boot its own last words, not that it failed.
    fn words(&self) -> &LogLine {
        if let Some(error) = self.fact.script.as_ref().and_then(|script| script.said.first()) {
            return error;
        }
        let own_words = self.fact.unknown && self.fact.program != SYSTEMD;
        let said = self.fact.boot.as_ref().filter(|_| !own_words).and_then(|step| step.said.first());
        said.unwrap_or(if self.fact.boot.is_some() { &self.fact.first } else { &self.fact.last })
    }

    /// What was logged as a step of the boot failed.
    fn of_boot(&self) -> Vec<Evidence> {
        let Some(step) = &self.fact.boot else { return Vec::new() };
        let device = step.device.iter().map(|device| at(&device.line, device.means.clone()));
        let said = step.said.iter().filter(|line| **line != self.fact.last);
        let said = said.map(|line| at(line, format!("logged when {} failed", step.unit)));
        let cycle = step.cycle.iter().map(|line| at(line, "names units that wait for each other".to_owned()));
        let earlier = step.earlier.iter().map(|line| at(line, "failed earlier, and the boot went on".to_owned()));
        device.chain(said).chain(cycle).chain(earlier).collect()
    }

    /// What the script printed last.
    fn of_script(&self) -> Vec<Evidence> {
        let Some(script) = &self.fact.script else { return Vec::new() };
        let said = script.said.iter().map(|line| at(line, "the script printed it last".to_owned()));
        let commands = script.commands.iter().map(|line| at(line, "the script ran it last".to_owned()));
        said.chain(commands).collect()
    }

    /// When and with what systemd stopped the kubelet, as the end of a sentence and what follows it.
    pub(crate) fn stop_in_words(&self) -> String {
        let stopped = told_at(&self.fact.last);
        let Some(end) = &self.fact.runtime_end else {
            return format!("systemd stopped it{stopped}, and nothing started it again.");
        };
        let up = end.up.as_ref().map_or_else(String::new, |up| format!(" Only containerd came back{}.", told_at(up)));
        format!("systemd stopped it{stopped}, when containerd ended, and nothing started it again.{up}")
    }

    /// The lines of containerd's end and return.
    pub(crate) fn of_runtime_end(&self) -> Vec<Evidence> {
        let Some(end) = &self.fact.runtime_end else { return Vec::new() };
        let ended = at(&end.ended, "a unit that requires containerd is stopped with it".to_owned());
        let up = end.up.iter().map(|up| at(up, "what systemd stopped with containerd does not come back".to_owned()));
        std::iter::once(ended).chain(up).collect()
    }

    /// In which module of the kernel it panicked, as a sentence of its own.
    pub(crate) fn module_in_words(&self) -> Option<String> {
        let Oops { module, function, calls, .. } = self.fact.oops.as_ref()?;
        Some(if *calls {
            format!("The kernel failed in its own code, which {function} of its module {module} had called.")
        } else {
            format!("The kernel failed in {function} of its module {module}.")
        })
    }

    /// The line that names this function.
    pub(crate) fn of_module(&self) -> Option<Evidence> {
        let oops = self.fact.oops.as_ref()?;
        let because = match oops.is_foreign() {
            Some(true) => "names the function in the kernel module, which is no part of Linux (out-of-tree)",
            Some(false) => "names the function in the kernel module, which is a part of Linux",
            None => "names the function in the kernel module",
        };
        Some(at(&oops.line, because.to_owned()))
    }

    /// What to do about that module. Whether it fails by itself, or for what another part of the kernel left, no log
    /// tells.
    pub(crate) fn module_fix(&self) -> Option<String> {
        let oops = self.fact.oops.as_ref()?;
        let module = &oops.module;
        Some(if oops.is_foreign() == Some(true) {
            format!(
                "Remove or roll back what loads the kernel module {module}, such as an agent's DaemonSet or a driver, \
                 or give it a kernel that it supports. Then replace the node, which removes its pods."
            )
        } else {
            format!(
                "Use an image with another kernel. If a workload or agent uses the kernel module {module}, stop it \
                 there. Then replace the node, which removes its pods."
            )
        })
    }

    /// The pod on the node whose DaemonSet is called like that module, if it is no part of Linux. That is a hint, no
    /// proof: the name need not be of the same program.
    pub(crate) fn pod_like_module(&self, case: &Case) -> Option<Evidence> {
        const LEAST: usize = 4;
        let oops = self.fact.oops.as_ref().filter(|oops| oops.is_foreign() == Some(true))?;
        let module = oops.module.replace('_', "-");
        let is_like = |pod: &&Pod| pod.daemon_set().is_some_and(|name| module.len() >= LEAST && name.contains(&module));
        let pod = case.pods().filter(is_like).max_by_key(|pod| pod.metadata.creation_timestamp)?;
        let created = pod.metadata.creation_timestamp;
        let created =
            created.map_or_else(String::new, |created| format!(", created {}", crate::case::timestamp(created)));
        Some(Evidence::new(
            format!("Pod/{}", pod.metadata.name),
            "metadata.ownerReferences",
            format!("DaemonSet {}{created}", pod.daemon_set()?),
            format!("its DaemonSet is named like the kernel module {}", oops.module),
        ))
    }

    /// The command that shows the failed unit's own log, on the instance.
    pub(crate) fn unit_log(&self) -> Option<String> {
        let id = self.fact.boot.as_ref()?.id.as_ref()?;
        Some(format!("journalctl -b -u {id}"))
    }

    /// The log's name of its machine.
    fn named(&self) -> String {
        let identity = &self.journey.identity;
        let names: Vec<&str> = identity.instances.iter().chain(&identity.hosts).map(String::as_str).collect();
        if names.is_empty() { "no machine".to_owned() } else { names.join(", ") }
    }

    /// The machine of the log. If it is another, it stands for this one.
    fn machine(&self, case: &Case) -> String {
        match self.whose {
            LogOwner::Own | LogOwner::ByElimination => machine(case),
            LogOwner::Sibling(Some(other)) => format!("{other}, of the same node class as {},", machine(case)),
            LogOwner::Sibling(None) => format!("{}, or one of the same node class,", machine(case)),
        }
    }

    /// The node class, at the part of its user data that the line names.
    pub(crate) fn user_data(&self, case: &Case) -> Option<Blame> {
        let class = case.class()?;
        let blame = Blame::class(class);
        let Some(text) = class.spec.user_data.as_deref() else { return Some(blame) };
        let blame = blame.field("spec.userData");
        Some(match self.place_in(text) {
            Some(span) => blame.at(text, span),
            None => blame,
        })
    }

    /// The position of the line's names in a text, the longest name first: that is least likely to match by chance.
    fn place_in(&self, text: &str) -> Option<Span> {
        const LEAST: usize = 4;
        let mut names: Vec<&str> =
            self.fact.names.values().map(|name| name.trim_matches(['"', '\'', ' ', '`'])).collect();
        let commands = self.fact.script.iter().flat_map(|script| &script.commands);
        names.extend(commands.map(|command| command.text.trim_start_matches(['+', ' '])));
        names.retain(|name| name.len() >= LEAST && !name.contains("***"));
        names.sort_by_key(|name| std::cmp::Reverse(name.len()));
        names.iter().find_map(|name| text.find(name).map(|start| Span::new(start, start + name.len())))
    }
}

/// The last command of a script, with the substitutions in it: the end of a sentence.
fn commands_in_words(script: &ScriptEnd) -> Option<String> {
    let commands: Vec<String> = script.commands.iter().map(|line| excerpt(&line.text)).collect();
    match commands.as_slice() {
        [] => None,
        [only] => Some(format!("its last command: {only}")),
        several => Some(format!("its last commands: {}", several.join(" and "))),
    }
}

/// How far the boot came, and what did not start after it: sentences that follow another.
fn boot_in_words(step: &BootStep) -> String {
    let reached = step.reached.as_ref().map(|target| format!(" Before that, the boot reached {target}."));
    let needed = match step.needed_by.as_slice() {
        [] => None,
        units => Some(format!(" systemd did not start what needs it: {}.", units.join(", "))),
    };
    [reached, needed].into_iter().flatten().collect()
}

/// `i-0abc…`, otherwise the machine's name.
fn machine(case: &Case) -> String {
    match (case.instance_id(), case.subject().split_once('/')) {
        (Some(id), _) => id.to_owned(),
        (None, Some(("Instance", name))) => format!("the machine of {name}"),
        (None, Some((kind, name))) => format!("{kind} {name}"),
        (None, None) => case.subject(),
    }
}

/// The command that shows more of the machine's log. There is none for a machine that only its log names.
pub(crate) fn command(case: &Case) -> Option<String> {
    let instance =
        case.instance_id().map(|id| format!("aws ec2 get-console-output --latest --output text --instance-id {id}"));
    instance.or_else(|| {
        let has_object = case.claim.is_some() || case.node.is_some();
        has_object.then(|| format!("kubectl describe {}", case.subject().to_ascii_lowercase()))
    })
}

/// The progress of a machine according to its logs.
pub(crate) fn last_steps(case: &Case) -> impl Iterator<Item = Evidence> {
    case.logs().into_iter().filter_map(|of_machine| came_to(&of_machine.log.journey))
}

fn came_to(journey: &Journey) -> Option<Evidence> {
    let (phase, milestone) = journey.came_to()?;
    Some(at(&milestone.last, format!("the last step that the log shows: {}", phase.in_words())))
}

/// ` at 2026-01-15 11:52:00Z`, if the line has a time.
fn told_at(line: &LogLine) -> String {
    line.time.map_or_else(String::new, |time| format!(" at {}", crate::case::timestamp(time)))
}

pub(crate) fn told(fact: &Fact, because: &str) -> Evidence {
    let evidence = at(&fact.last, because.to_owned());
    match (fact.count, fact.first.time, fact.last.time) {
        (0 | 1, ..) => evidence,
        (count, Some(first), Some(last)) => {
            let span = last.signed_duration_since(first);
            evidence.figures(format!("{count} times in {}", crate::case::duration(span)))
        }
        (count, ..) => evidence.figures(format!("{count} times")),
    }
}

pub(crate) fn at(seen: &LogLine, because: String) -> Evidence {
    let time = seen.time.map_or_else(String::new, |time| format!(", {}", crate::case::timestamp(time)));
    let evidence = Evidence::new(seen.file.clone(), format!("line {}{time}", seen.line), seen.text.clone(), because);
    if seen.file.starts_with(aws::CONSOLE) { evidence.told_by_aws(None) } else { evidence }
}

/// The first field that an error names: `spec.template.metadata.labels`.
pub(crate) fn path_in(error: &str) -> Option<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '.';
    let start = ["spec.", "metadata."].iter().filter_map(|begin| error.find(begin)).min()?;
    let path = error.get(start..)?;
    Some(path.split(|c| !is_part(c)).next()?.trim_end_matches('.'))
}

/// A line, for a sentence.
pub(crate) fn excerpt(text: &str) -> String {
    const LONGEST: usize = 280;
    let length = text.chars().count();
    if length <= LONGEST {
        return text.to_owned();
    }
    if let Some(denied) = denial::shortened(text, LONGEST) {
        return denied;
    }
    let begin: String = text.chars().take(LONGEST / 3).collect();
    let end: String = text.chars().skip(length - LONGEST * 2 / 3).collect();
    let (begin, end) = (without_cut_end(&begin), without_cut_begin(&end));
    format!("{begin} … {end}")
}

/// The longest part of a word that an excerpt drops. A longer one may be a path or an ARN.
const CUT_WORD: usize = 24;

fn without_cut_end(text: &str) -> &str {
    text.rsplit_once(' ').filter(|(_, cut)| cut.len() <= CUT_WORD).map_or(text, |(whole, _)| whole)
}

fn without_cut_begin(text: &str) -> &str {
    text.split_once(' ').filter(|(cut, _)| cut.len() <= CUT_WORD).map_or(text, |(_, whole)| whole)
}

#[cfg(test)]
mod tests {
    use super::excerpt;

    #[test]
    fn a_long_line_is_cut_between_words() {
        let line = "gamma-ray delta ".repeat(40) + "end";
        let cut = excerpt(&line);
        let (begin, end) = cut.split_once(" … ").expect("a cut");
        assert!(begin.ends_with(" gamma-ray"), "{begin}");
        assert!(end.starts_with("delta ") && end.ends_with(" end"), "{end}");
    }

    #[test]
    fn a_long_word_stays_in_part() {
        let line = format!("{} {}", "a".repeat(200), "b".repeat(300));
        let cut = excerpt(&line);
        assert!(cut.starts_with("aaa") && cut.ends_with("bbb"), "{cut}");
    }
}
