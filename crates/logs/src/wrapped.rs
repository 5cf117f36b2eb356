//! The error that a program logged before a line that only says that it gave up.

use crate::fact::LogLine;
use crate::last_words::complains;
use crate::quoted::shown;
use crate::table::TABLE;
use crate::wrapping::{plain, unwrapped, without_colors};
use chrono::{DateTime, TimeDelta, Utc};

/// An error of a program: its line, its time, and what it says.
#[derive(Debug, Clone)]
pub(crate) struct Said {
    pub(crate) line: u64,
    pub(crate) time: Option<DateTime<Utc>>,
    pub(crate) message: String,
}

impl Said {
    /// The line, if a program that says "I gave up" at this place may mean it.
    pub(crate) fn behind(&self, line: u64, time: Option<DateTime<Utc>>, file: &str) -> Option<LogLine> {
        /// Between an error and the end of its program not much is logged.
        const LINES: u64 = 20;
        /// A program may try a few times more in silence: the AWS SDK does so for a minute.
        const BREATH: TimeDelta = TimeDelta::minutes(2);
        let silent = time.zip(self.time).map(|(ended, said)| ended.signed_duration_since(said));
        let is_near = line.saturating_sub(self.line) <= LINES && silent.is_none_or(|silent| silent <= BREATH);
        let message = plain(&self.message);
        // The program may say twice that it gave up.
        let wraps = TABLE.read_line(None, &message).is_some_and(|said| said.known.row.wraps);
        (is_near && !wraps).then(|| LogLine {
            file: file.to_owned(),
            line: self.line,
            time: self.time,
            text: shown(&message),
        })
    }
}

/// Whether an error says nothing but the code that a program ended with, as in `Error: step apply.sh failed with exit
/// code 2`.
pub(crate) fn is_only_code(message: &str) -> bool {
    const BEFORE: [&str; 4] = ["exit code", "exit status", "exit status:", "exit code:"];
    let Some((before, code)) = message.trim_end_matches(['.', ' ']).rsplit_once(' ') else { return false };
    code.parse::<u8>().is_ok() && BEFORE.iter().any(|words| before.ends_with(words))
}

/// The last of these lines, each with its number, in which the program speaks of an error.
pub(crate) fn last_error<'r>(
    lines: impl Iterator<Item = (u64, &'r [u8])>,
    program: &str,
    year: Option<i32>,
) -> Option<Said> {
    let mut year = year;
    let errors = lines.filter_map(|(number, raw)| {
        let text = String::from_utf8_lossy(raw);
        let text = without_colors(&text);
        let line = unwrapped(&text, &mut year);
        let is_its = line.program.as_deref() == Some(program) && complains(&line.message);
        is_its.then(|| Said { line: number, time: line.time, message: line.message.into_owned() })
    });
    errors.last()
}

#[cfg(test)]
mod tests {
    use crate::{FileLimits, LogReader};

    const CAUSE: &str = r#"{"level":"error","ts":"2020-06-04T08:26:43.180Z","caller":"ipamd/ipamd.go:340","msg":"Failed to call ec2:DescribeNetworkInterfaces for [eni-04b7c2ad5e9103f86]: InvalidNetworkInterfaceID.NotFound: The networkInterface ID 'eni-04b7c2ad5e9103f86' does not exist"}"#;
    const WRAPPER: &str = r#"{"level":"error","ts":"2020-06-04T08:26:43.190Z","caller":"aws-k8s-agent/main.go:30","msg":"Initialization failure: ipamd init: failed to retrieve attached ENIs info"}"#;

    /// What the file says that ipamd ended for.
    fn cause(file: &str, lines: &[&str]) -> Option<String> {
        let mut reader = LogReader::new(FileLimits::default());
        reader.file(file, lines.join("\n").as_bytes(), None).expect("text");
        let journey = reader.of_one_machine();
        let fact = journey.facts.into_iter().find(|fact| fact.means == "ipamd ended at its start");
        fact.expect("the end of ipamd").cause.map(|line| line.text)
    }

    #[test]
    fn a_program_that_gave_up_means_its_last_error() {
        let found = cause("ipamd.log", &[CAUSE, WRAPPER, WRAPPER]).expect("a cause");
        assert!(found.contains("InvalidNetworkInterfaceID.NotFound"), "{found}");
        let in_journal = |line: &str| format!("2020-06-04T08:26:43Z node aws-node[1]: {line}");
        let found = cause("journal", &[&in_journal(CAUSE), &in_journal(WRAPPER)]).expect("a cause");
        assert!(found.contains("InvalidNetworkInterfaceID.NotFound"), "{found}");
    }

    #[test]
    fn an_error_of_long_ago_or_of_another_program_is_not_meant() {
        let later = WRAPPER.replace("08:26:43.190", "08:51:26.102");
        assert_eq!(cause("ipamd.log", &[CAUSE, &later]), None);
        let other = format!("2020-06-04T08:26:43Z node kube-proxy[1]: {CAUSE}");
        let end = format!("2020-06-04T08:26:43Z node aws-node[1]: {WRAPPER}");
        assert_eq!(cause("journal", &[&other, &end]), None);
        // The line itself says why.
        let whole = WRAPPER.replace("ENIs info", "ENIs info: i/o timeout");
        assert_eq!(cause("ipamd.log", &[CAUSE, &whole]), None);
    }
}
