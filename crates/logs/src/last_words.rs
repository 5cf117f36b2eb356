//! What a program said last before systemd says that it ended: better than nothing where no row knows the line.

use crate::fact::{Fact, LogLine, Phase, Trouble};
use crate::systemd::main_process_end;
use crate::table::{CLOUD_INIT, KARPENTER, TABLE};
use crate::wrapping::{PANIC, klog_level};
use chrono::TimeDelta;
use std::collections::BTreeMap;

/// By program, as the journal calls it, the newest line that speaks of an error and that no row knows.
#[derive(Debug, Default)]
pub(crate) struct LastWords {
    spoken: BTreeMap<String, LogLine>,
}

/// What logrus panics with has been said in the line before.
const OF_LOGRUS: &str = "panic: (*logrus.Entry)";

/// What was said longer before the end is not what it ended with.
const BREATH: TimeDelta = TimeDelta::seconds(30);

impl LastWords {
    /// Takes in a line; gives what a program ended with, if it says that one ended. `proves`: a row knows it. `raw` is
    /// the message as it was written, with its level.
    pub(crate) fn hear(
        &mut self,
        program: &str,
        (raw, message): (&str, &str),
        proves: bool,
        seen: impl Fn() -> LogLine,
    ) -> Option<Fact> {
        if program == "systemd" {
            let unit = ended(message)?;
            let own = self.spoken.keys().find(|program| is_of(unit, program)).cloned()?;
            let said = self.spoken.remove(&own)?;
            let (program, trouble) = about(&own)?;
            let silent = seen().time.zip(said.time).map(|(ended, said)| ended.signed_duration_since(said));
            return silent.is_none_or(|silent| silent <= BREATH).then(|| fact(program, trouble, said));
        }
        let (own, trouble) = about(program)?;
        if proves {
            // A row says more than its program's words.
            self.spoken.remove(program);
        } else if is_fatal(message) || is_fatal(raw) {
            self.spoken.remove(program);
            return Some(fact(own, trouble, seen()));
        } else if is_error(message) {
            // Of what it says at one time the first names the error; the others repeat it.
            let now = seen();
            let same_breath = self.spoken.get(program).is_some_and(|said| said.time.is_some() && said.time == now.time);
            if !same_breath {
                self.spoken.insert(program.to_owned(), now);
            }
        }
        None
    }
}

fn fact(program: &str, trouble: Trouble, said: LogLine) -> Fact {
    let blocks = match trouble {
        Trouble::CniFails => Phase::Ready,
        Trouble::KarpenterEnds => Phase::Booted,
        _ => Phase::KubeletUp,
    };
    Fact::of_no_row(program, format!("{program} ended, and said before it"), trouble, blocks, said)
}

/// The program of the table, and what it means for the machine that it does not run.
fn about(program: &str) -> Option<(&'static str, Trouble)> {
    let own = TABLE.program(program)?;
    let trouble = match own {
        "kubelet" => Trouble::KubeletRefusesConfiguration,
        "containerd" => Trouble::RuntimeNotUp,
        "nodeadm" | "bottlerocket" | CLOUD_INIT => Trouble::BootstrapFailed,
        "vpc-cni" => Trouble::CniFails,
        KARPENTER => Trouble::KarpenterEnds,
        _ => return None,
    };
    Some((own, trouble))
}

/// The unit whose process ended with an error: `x.service: Main process exited, code=exited, status=1/FAILURE`.
fn ended(message: &str) -> Option<&str> {
    let (unit, how) = message.split_once(".service: ")?;
    let how = main_process_end(how)?;
    (how.starts_with("code=exited") && !how.ends_with("status=0/SUCCESS") || how.starts_with("code=dumped"))
        .then_some(unit)
}

/// `kubelet` runs in `kubelet.service`, nodeadm in `nodeadm-config.service`, a snap's daemon in `snap.NAME.service`.
pub(crate) fn is_of(unit: &str, program: &str) -> bool {
    let unit = unit.strip_prefix("snap.").unwrap_or(unit);
    unit.strip_prefix(program).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// Whoever writes this ends: klog's F, logrus' and zap's fatal, Go's own panic.
pub(crate) fn is_fatal(message: &str) -> bool {
    // Karpenter's levels are large: core v0.34.0 pkg/operator/logging/logging.go `CapitalLevelEncoder`.
    const ENDS: [&str; 3] = [r#""level":"fatal""#, r#""level":"FATAL""#, r#""level":"PANIC""#];
    // Of logrus; as Calico writes it: calico v3.30 libcalico-go lib/logutils/logutils.go `Formatter.Format`.
    const WORDS: [&str; 4] = ["level=fatal", "level=panic", " [FATAL][", " [PANIC]["];
    klog_level(message) == Some('F')
        || message.starts_with(PANIC) && !message.starts_with(OF_LOGRUS)
        || WORDS.iter().any(|word| message.contains(word))
        || ENDS.iter().any(|level| message.contains(level))
}

/// Whether a line of a component's own file speaks of an error: of a record its level tells, whatever its words.
pub(crate) fn complains(line: &str) -> bool {
    match line.split_once(r#""level":""#) {
        Some((_, level)) => ["error", "fatal", "panic"]
            .iter()
            .any(|bad| level.get(..5).is_some_and(|own| own.eq_ignore_ascii_case(bad))),
        None => is_fatal(line) || is_error(line),
    }
}

pub(crate) fn is_error(message: &str) -> bool {
    const WORDS: [&str; 9] =
        ["error", "fail", "fatal", "cannot", "not found", "no such", "denied", "invalid", "unexpected"];
    let is_told = matches!(klog_level(message), Some('I' | 'W'));
    let is_told = is_told || ["level=info", "level=warning", "level=debug"].iter().any(|level| message.contains(level));
    if is_told {
        return false;
    }
    let lower = message.to_ascii_lowercase();
    WORDS.iter().any(|word| lower.contains(word))
}
