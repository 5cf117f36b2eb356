//! What SELinux refused, and whether a program failed for it.

use crate::fact::{Fact, LogLine};
use crate::last_words::is_of;
use crate::table::AVC_DENIED;
use chrono::{DateTime, TimeDelta, Utc};

/// What was refused longer before a program failed, or after it, is not why.
const BREATH: TimeDelta = TimeDelta::seconds(120);

/// Whether SELinux refused it. With permissive=1 it logs the same, and allows it.
/// Source: Linux v6.12 security/selinux/avc.c `avc_audit_post_callback`.
pub(crate) fn is_refusal(message: &str) -> bool {
    message.contains(AVC_DENIED) && message.contains(" permissive=0")
}

/// When the kernel audited it: `audit(1768477915.314:120)`.
pub(crate) fn audited_at(message: &str) -> Option<DateTime<Utc>> {
    let (_, rest) = message.split_once("audit(")?;
    DateTime::from_timestamp(rest.split('.').next()?.parse().ok()?, 0)
}

/// A line in which SELinux refuses something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal<'l> {
    /// `execute`
    pub access: &'l str,
    /// The file or whatever else it is about, if the line names it.
    pub object: Option<&'l str>,
    /// The type of its label: `user_tmp_t`.
    pub label: &'l str,
    /// The type of the process: `init_t`.
    pub domain: &'l str,
    pub line: &'l LogLine,
    /// What the process calls itself, 15 bytes of it.
    program: &'l str,
}

impl<'l> Refusal<'l> {
    pub(crate) fn of(line: &'l LogLine) -> Option<Self> {
        let text = line.text.as_str();
        let (_, behind) = text.split_once(AVC_DENIED)?;
        let access = behind.split_once("{ ")?.1.split_once(" }")?.0;
        let program = quoted(text, " comm=\"")?;
        let object = quoted(text, " path=\"").or_else(|| quoted(text, " name=\""));
        let (label, domain) = (type_of(text, " tcontext=")?, type_of(text, " scontext=")?);
        Some(Self { access, object, label, domain, line, program })
    }

    /// The text as far as two refusals of the same are alike.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let what = |own: &Self| (own.access, own.object, own.label, own.domain);
        self.program == other.program && what(self) == what(other)
    }

    /// Whether it is about the program of one of these names: as the process, or as the file.
    fn is_about(&self, names: &[&str]) -> bool {
        let file = self.object.map(base);
        names.iter().any(|name| file == Some(*name) || self.is_process(name))
    }

    /// A child of systemd that is about to become a program is called `(program)`, before v254 by its last eight bytes.
    /// Sources: systemd v257 src/core/exec-invoke.c `rename_process_from_path`, v252 src/core/execute.c; Linux v6.12
    /// include/linux/sched.h `TASK_COMM_LEN`.
    fn is_process(&self, name: &str) -> bool {
        const COMM: usize = 15;
        const OF_SYSTEMD: usize = 8;
        let own = self.program.trim_start_matches('(').trim_end_matches(')');
        own == name
            || own.len() == COMM && name.starts_with(own)
            || own.len() == OF_SYSTEMD && self.program.starts_with('(') && name.ends_with(own)
    }

    /// Whether the program failed at that time.
    fn is_near(&self, fact: &Fact) -> bool {
        /// Without times only the place tells: so many lines a journal has between the two at most.
        const LINES: u64 = 80;
        let (Some(time), Some(first), Some(last)) = (self.line.time, fact.first.time, fact.last.time) else {
            return self.line.file == fact.last.file && self.line.line.abs_diff(fact.last.line) <= LINES;
        };
        time.signed_duration_since(first) >= -BREATH && last.signed_duration_since(time) >= -BREATH
    }
}

/// The refusal for which a program failed: it is about this program, and the program said that it may not do something,
/// or said nothing.
pub fn refusal_behind<'j>(refusals: &'j [LogLine], fact: &Fact) -> Option<Refusal<'j>> {
    if !fact.ends || !tells_of_refusal(fact) {
        return None;
    }
    let refusals = refusals.iter().filter_map(Refusal::of);
    let unit = unit_of(fact);
    let path = fact.names.get("path").map(|path| base(path));
    let program = Some(fact.program.as_str()).filter(|program| *program != "systemd");
    let names: Vec<&str> = [path, unit, program].into_iter().flatten().collect();
    let is_of_unit = |refusal: &Refusal<'_>| {
        let process = refusal.program.trim_start_matches('(').trim_end_matches(')');
        unit.is_some_and(|unit| is_of(unit, process))
    };
    refusals.filter(|refusal| refusal.is_about(&names) || is_of_unit(refusal)).find(|refusal| refusal.is_near(fact))
}

/// The unit without `.service`, of the step of the boot or of systemd's line.
fn unit_of(fact: &Fact) -> Option<&str> {
    let of_line = || fact.last.text.split_once(".service: ").map(|(unit, _)| unit);
    let id = fact.boot.as_ref().and_then(|step| step.id.as_deref());
    id.map(|id| id.rsplit_once('.').map_or(id, |(stem, _)| stem)).or_else(of_line)
}

/// Whether the program was told EACCES or EPERM in glibc's words, or said nothing before it ended.
fn tells_of_refusal(fact: &Fact) -> bool {
    let of_boot = fact.boot.iter().flat_map(|step| &step.said);
    let of_script = fact.script.iter().flat_map(|script| &script.said);
    let own = || of_boot.clone().filter(|line| !line.text.contains(AVC_DENIED));
    let is_silent = fact.unknown && fact.program == "systemd" && own().next().is_none();
    let mut said = own().chain(of_script).chain([&fact.first, &fact.last]);
    is_silent
        || said
            .any(|line| ["ermission denied", "not permitted", "203/EXEC"].iter().any(|word| line.text.contains(word)))
}

/// `comm="(nodeadm)"`
fn quoted<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    text.split_once(key)?.1.split('"').next().filter(|value| !value.is_empty())
}

/// `scontext=system_u:system_r:init_t:s0`
fn type_of<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    text.split_once(key)?.1.split(' ').next()?.split(':').nth(2)
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::refusal_behind;
    use crate::{FileLimits, LogReader};

    const START: &str =
        "Oct 14 10:16:02 localhost systemd[1]: Starting nodeadm-config.service - EKS Nodeadm Config...\n";
    const FAILED: &str = "\
Oct 14 10:16:02 localhost (nodeadm)[1641]: nodeadm-config.service: Failed to locate executable /usr/bin/nodeadm: Permission denied
Oct 14 10:16:02 localhost systemd[1]: nodeadm-config.service: Failed with result 'exit-code'.
";
    const DENIED: &str = "Oct 14 10:16:02 localhost audit[1641]: AVC avc:  denied  { execute } for  pid=1641 \
        comm=\"(nodeadm)\" name=\"nodeadm\" dev=\"nvme0n1p1\" ino=8920144 scontext=system_u:system_r:init_t:s0 \
        tcontext=unconfined_u:object_r:user_tmp_t:s0 tclass=file permissive=0\n";

    /// What SELinux refused to the program that failed first.
    fn refused(log: &str) -> Option<String> {
        let mut reader = LogReader::new(FileLimits::default());
        reader.file("journal", log.as_bytes(), "2024-10-14T11:00:00Z".parse().ok()).expect("text");
        let journey = reader.of_one_machine();
        let open = journey.open();
        let refusal = refusal_behind(&journey.refusals, open.first()?)?;
        Some(format!("{} {} {} {}", refusal.domain, refusal.access, refusal.object?, refusal.label))
    }

    #[test]
    fn a_program_that_may_not_be_executed_has_a_label() {
        let wanted = Some("init_t execute nodeadm user_tmp_t".to_owned());
        assert_eq!(refused(&[START, DENIED, FAILED].concat()), wanted);
        assert_eq!(refused(&[START, FAILED, DENIED].concat()), wanted, "the audit's line may come later");
    }

    #[test]
    fn a_refusal_of_something_else_is_not_why() {
        for (from, to) in [
            ("permissive=0", "permissive=1"),
            ("nodeadm\"", "chronyd\""),
            ("Oct 14 10:16:02 localhost audit", "Oct 14 10:10:02 localhost audit"),
        ] {
            let other = DENIED.replace("(nodeadm)", "nodeadm").replace(from, to);
            assert_eq!(refused(&[START, other.as_str(), FAILED].concat()), None, "{to}");
        }
        let invalid = FAILED.replace("Permission denied", "No such file or directory");
        assert_eq!(refused(&[START, DENIED, invalid.as_str()].concat()), None);
    }
}
