//! A program of the boot that no table knows, and that says one error again and again until the log ends: it waits for
//! something that does not come.

use crate::boot::speaks_of_trouble;
use crate::fact::{Fact, LogLine, Phase, Trouble};
use crate::quoted::shown;
use crate::table::TABLE;
use crate::wrapping::{plain, unwrapped, without_colors};

/// A loop says its error so often among the last lines of a log.
const OFTEN: usize = 5;

/// So many lines may stand behind the last of them.
const FEW: u64 = 10;

/// How programs begin that run beside the boot: they may fail on machines that join. Of systemd and the kernel nobody
/// knows what they speak for.
const BESIDE: [&str; 9] =
    ["amazon-", "audit", "chronyd", "kernel", "snapd", "ssh", "ssm-", "systemd", "unattended-upgrade"];

/// What a program complains of.
struct Complaint {
    program: String,
    /// Its letters: numbers, times and ids differ.
    words: String,
    said: LogLine,
}

/// The error that the last lines of a machine's log repeat. `None` if they complain of other things as often.
pub(crate) fn error<'l>(
    lines: impl Iterator<Item = (u64, &'l [u8])>,
    file: &str,
    mut year: Option<i32>,
) -> Option<Fact> {
    let mut complaints = Vec::new();
    let mut end = 0;
    for (number, raw) in lines {
        end = number;
        let text = String::from_utf8_lossy(raw);
        let text = without_colors(&text);
        let line = unwrapped(&text, &mut year);
        let Some(program) = line.program.as_deref() else { continue };
        let message = plain(&line.message);
        if !speaks_of_trouble(&message) {
            continue;
        }
        let words = message.chars().filter(|c| c.is_alphabetic()).collect();
        let said = LogLine { file: file.to_owned(), line: number, time: line.time, text: shown(&message) };
        complaints.push(Complaint { program: program.to_owned(), words, said });
    }
    let newest = complaints.last().filter(|newest| end - newest.said.line <= FEW)?;
    let is_beside = BESIDE.iter().any(|begins| newest.program.starts_with(begins));
    if is_beside || TABLE.program(&newest.program).is_some() {
        return None;
    }
    let is_alike = |other: &&Complaint| other.program == newest.program && other.words == newest.words;
    let alike: Vec<&Complaint> = complaints.iter().filter(is_alike).collect();
    if alike.len() < OFTEN || alike.len() * 2 < complaints.len() {
        return None;
    }
    let first = alike.first()?.said.clone();
    let means = format!("{} fails again and again until the log ends", newest.program);
    let fact = Fact::of_no_row(&newest.program, means, Trouble::BootstrapFailed, Phase::KubeletUp, first);
    Some(Fact { ends: false, count: alike.len() as u64, last: newest.said.clone(), ..fact })
}

#[cfg(test)]
mod tests {
    use super::error;

    fn of(lines: &[String]) -> Option<(u64, u64)> {
        let lines = lines.iter().enumerate().map(|(at, line)| (at as u64 + 1, line.as_bytes()));
        error(lines, "f", Some(2026)).map(|fact| (fact.count, fact.last.line))
    }

    fn loop_of(program: &str, times: usize) -> Vec<String> {
        let line = |n| {
            format!(
                "Aug 13 10:1{n}:27 ip-10-0-1-1 {program}[1187]: Post \"https://10.0.6.26:3988/\": dial tcp: connection refused"
            )
        };
        (0..times).map(line).collect()
    }

    #[test]
    fn what_an_unknown_program_repeats_until_the_log_ends_is_told() {
        assert_eq!(of(&loop_of("nodeup", 6)), Some((6, 6)));
    }

    #[test]
    fn a_few_times_or_long_before_the_end_or_beside_the_boot_is_nothing() {
        assert_eq!(of(&loop_of("nodeup", 4)), None);
        for beside in ["amazon-ssm-agent", "chronyd", "systemd", "kubelet"] {
            assert_eq!(of(&loop_of(beside, 6)), None, "{beside}");
        }
        let mut went_on = loop_of("nodeup", 6);
        went_on.extend((0..20).map(|n| format!("Aug 13 10:2{}:27 ip-10-0-1-1 nodeup[1187]: task {n} done", n % 10)));
        assert_eq!(of(&went_on), None);
    }
}
