//! What a script of user data printed last before cloud-init, or bootstrap.sh, says that it ended: only that says why.

use crate::boot::speaks_of_trouble;
use crate::fact::{LogLine, ScriptEnd};
use crate::last_words::is_error;
use crate::quoted::shown;
use crate::table::{CLOUD_INIT, TABLE};
use crate::wrapping::{plain, unwrapped, without_colors};

/// Begins and ends a stage of cloud-init: scripts run between the two.
/// Source: canonical/cloud-init 22.4.2 cloudinit/cmd/main.py `WELCOME_MSG_TPL`, config/cc_final_message.py.
const STAGE: &str = "Cloud-init v. ";

/// A record of cloud-init's own, `cc_scripts_user.py[WARNING]: …`: the script before it has ended.
/// Source: canonical/cloud-init 22.4.2 cloudinit/log.py `DEF_CON_FORMAT`.
const RECORD: &str = ".py[";

/// A line that the script, or a command of it, printed.
struct Printed {
    /// The journal or the console says that it is cloud-init's.
    is_named: bool,
    text: String,
    line: LogLine,
}

/// The words and the last command of the script that ended behind these lines, each with its number.
pub(crate) fn script_end<'r>(
    lines: impl Iterator<Item = (u64, &'r [u8])>,
    year: Option<i32>,
    file: &str,
) -> Option<ScriptEnd> {
    /// Without `set -x` nothing tells what the last command printed.
    const FEW: usize = 10;
    /// A pipe of more commands than these says no more.
    const MOST: usize = 4;
    let printed = printed(lines, year, file);
    let command = printed.iter().rposition(|line| is_telling(&line.text));
    let begin = command.map_or(printed.len().saturating_sub(FEW), |at| at + 1);
    let said = last_words(printed.get(begin..).unwrap_or_default());
    let first = command.map_or(0, |at| first_of(&printed, at));
    let commands = command.and_then(|at| printed.get(first..=at)).unwrap_or_default();
    let skipped = commands.len().saturating_sub(MOST);
    let commands: Vec<LogLine> = commands.iter().skip(skipped).map(|line| line.line.clone()).collect();
    (!said.is_empty() || !commands.is_empty()).then_some(ScriptEnd { said, commands })
}

/// The output of the last script, of the lines that are cloud-init's. A file of cloud-init's own names no program, and
/// neither do the kernel's lines and systemd's on a console, and objects of a journal that are cut: they begin with a
/// bracket.
fn printed<'r>(lines: impl Iterator<Item = (u64, &'r [u8])>, year: Option<i32>, file: &str) -> Vec<Printed> {
    let mut year = year;
    let mut all: Vec<Printed> = Vec::new();
    for (number, raw) in lines {
        let text = String::from_utf8_lossy(raw);
        let text = without_colors(&text);
        let line = unwrapped(&text, &mut year);
        let message = plain(&line.message);
        if message.starts_with(STAGE) || message.contains(RECORD) {
            all.clear();
            continue;
        }
        let is_its = match line.program.as_deref() {
            Some(program) => TABLE.is_called(program, CLOUD_INIT),
            None => !text.starts_with(['[', '{']),
        };
        if !is_its || message.trim().is_empty() {
            continue;
        }
        all.push(Printed {
            is_named: line.program.is_some(),
            text: message.clone().into_owned(),
            line: LogLine { file: file.to_owned(), line: number, time: line.time, text: shown(&message) },
        });
    }
    let is_named = all.iter().any(|line| line.is_named);
    all.retain(|line| line.is_named == is_named);
    all
}

/// How deep in substitutions the shell is that runs this command, as `set -x` shows it.
/// Source: bash 5.2 print_cmd.c `indirection_level_string`.
fn depth(text: &str) -> Option<usize> {
    let command = text.trim_start_matches('+');
    let depth = text.len() - command.len();
    (depth > 0 && command.starts_with(' ')).then_some(depth)
}

/// Whether it is a command that may have failed, not one that tells of it.
fn is_telling(text: &str) -> bool {
    const TELLS: [&str; 7] = ["exit", "return", "false", "echo", "printf", "trap", "err_report"];
    depth(text).is_some() && !text.split_ascii_whitespace().nth(1).is_some_and(|word| TELLS.contains(&word))
}

/// The first command of the substitutions in the command at this place: the shell shows them before it.
fn first_of(printed: &[Printed], at: usize) -> usize {
    let depth_at = |at: usize| printed.get(at).and_then(|line| depth(&line.text)).unwrap_or_default();
    let outer = depth_at(at);
    (0..at).rev().take_while(|before| depth_at(*before) > outer).last().unwrap_or(at)
}

/// The last error, and what was printed with it: of several lines together the first names it.
fn last_words(printed: &[Printed]) -> Vec<LogLine> {
    const MOST: usize = 2;
    let output: Vec<&Printed> = printed.iter().filter(|line| depth(&line.text).is_none()).collect();
    let is_complaint = |text: &str| is_error(text) || speaks_of_trouble(text) || is_of_shell(text);
    let complains = |at: &usize| output.get(*at).is_some_and(|line| is_complaint(&line.text));
    let Some(last) = (0..output.len()).rev().find(complains) else { return Vec::new() };
    let first = (0..=last).rev().take_while(complains).last().unwrap_or(last);
    output.iter().take(last + 1).skip(first).take(MOST).map(|line| line.line.clone()).collect()
}

/// Whether the shell itself says that a command of a script failed: `FILE: line 169: x: unbound variable`.
/// Source: bash 5.2 error.c `error_prolog`.
fn is_of_shell(text: &str) -> bool {
    let Some((_, behind)) = text.split_once(": line ") else { return false };
    let Some((line, _)) = behind.split_once(": ") else { return false };
    !line.is_empty() && line.bytes().all(|digit| digit.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::script_end;
    use crate::fact::{LogLine, ScriptEnd};

    fn end(log: &str) -> Option<ScriptEnd> {
        let lines = log.lines().zip(1..).map(|(line, number)| (number, line.as_bytes()));
        script_end(lines, Some(2026), "cloud-init-output.log")
    }

    fn texts(lines: &[LogLine]) -> Vec<String> {
        lines.iter().map(|line| line.text.clone()).collect()
    }

    fn both(log: &str) -> (Vec<String>, Vec<String>) {
        end(log).map(|end| (texts(&end.said), texts(&end.commands))).unwrap_or_default()
    }

    #[test]
    fn the_error_and_the_last_command_are_the_words_of_a_script() {
        let (said, commands) = both(
            "\
Cloud-init v. 22.2.2 running 'modules:final' at Tue, 13 Jan 2026 17:55:18 +0000. Up 15.66 seconds.
++ curl -sf http://169.254.169.254/latest/meta-data/instance-id
+ aws ec2 create-tags --resources --tags team=etl

usage: aws [options] <command> <subcommand> [parameters]

aws: error: argument --resources: expected at least one argument
",
        );
        assert_eq!(said, ["aws: error: argument --resources: expected at least one argument"]);
        let ran = "+ aws ec2 create-tags --resources --tags team=etl";
        assert_eq!(commands, ["++ curl -sf http://169.254.169.254/latest/meta-data/instance-id", ran]);
    }

    #[test]
    fn of_lines_together_the_first_names_the_error() {
        let (said, commands) = both(
            "\
E: The repository of nobody cannot be found
Reading package lists...
E: Could not get lock /var/lib/apt/lists/lock. It is held by process 1868 (apt)
E: Unable to lock directory /var/lib/apt/lists/
",
        );
        let lock = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 1868 (apt)";
        assert_eq!(said, [lock, "E: Unable to lock directory /var/lib/apt/lists/"]);
        assert!(commands.is_empty(), "{commands:?}");
    }

    #[test]
    fn what_the_shell_itself_says_is_an_error() {
        let said = "/etc/eks/bootstrap.sh: line 169: Copyright: unbound variable";
        assert_eq!(both(&format!("++ logger -t user-data -s\n{said}\n")).0, [said]);
        assert!(both("++ logger -s\nx: line by line: done\n").0.is_empty());
    }

    #[test]
    fn on_a_console_only_lines_of_cloud_init_are_of_the_script() {
        let (said, commands) = both(
            "\
[   24.000000] cloud-init[3301]: + yum install -y https://example.com/agent.rpm
[   24.930000] cloud-init[3301]: /var/tmp/agent.rpm: does not update installed package.
[   25.240000] cloud-init[3301]: Error: Nothing to do
[   25.300000] nvme nvme1: I/O error
[\x1b[0;1;31mFAILED\x1b[0m] Failed to start Something else.
error: of nobody
",
        );
        assert_eq!(said, ["Error: Nothing to do"]);
        assert_eq!(commands, ["+ yum install -y https://example.com/agent.rpm"]);
    }

    #[test]
    fn what_a_script_got_past_is_not_what_it_ended_with() {
        // An error of an earlier command, of an earlier script, and of an earlier stage.
        for log in [
            "+ yum remove x\nError: No match for argument: x\n+ aws s3 cp s3://b/a .\n",
            "Error: no such x\n2026-01-15 11:51:02,123 - util.py[WARNING]: Failed running \
             /var/lib/cloud/instance/scripts/part-001 [1]\n+ aws s3 cp s3://b/a .\n",
            "Error: no such x\nCloud-init v. 22.2.2 running 'modules:final' at Tue. Up 15.66 seconds.\n+ aws s3 cp \
             s3://b/a .\n",
        ] {
            assert_eq!(both(log), (Vec::new(), vec!["+ aws s3 cp s3://b/a .".to_owned()]), "{log}");
        }
        let quiet = "Error: no such x\n".to_owned() + &"Installing: y\n".repeat(12);
        assert!(end(&quiet).is_none());
        assert!(end("Complete!\n").is_none() && end("").is_none());
        // An object of a journal that is too long to be kept.
        assert!(end("{\"__CURSOR\":\"s=1\",\"MESSAGE\":\"error: x\n").is_none());
    }

    #[test]
    fn commands_that_only_tell_of_the_error_are_not_the_last() {
        let (said, commands) = both(
            "+ install-agent\ninstall-agent: cannot write /opt\n+ echo 'install failed'\ninstall failed\n+ exit 1\n",
        );
        assert_eq!(commands, ["+ install-agent"]);
        assert_eq!(said, ["install-agent: cannot write /opt", "install failed"]);
    }

    #[test]
    fn an_image_that_does_not_know_the_type_finds_no_line_of_it() {
        let log = "++ grep m7a.large /etc/eks/eni-max-pods.txt\n++ awk '{print $2}'\n+ MAX_PODS=\n";
        let unknown = |log: &str| end(log).and_then(|end| end.unknown_type().map(str::to_owned));
        assert_eq!(unknown(log).as_deref(), Some("m7a.large"));
        assert_eq!(unknown(&log.replace("grep m7a", "grep ^m7a")).as_deref(), Some("m7a.large"));
        let with_awk = log.replace("grep m7a.large", "cat").replace("'{print $2}'", "'/^m7a.large/ { print $2 }'");
        assert_eq!(unknown(&with_awk).as_deref(), Some("m7a.large"));
        // It was found, and something else ended the script.
        assert_eq!(unknown(&log.replace("MAX_PODS=", "MAX_PODS=29")), None);
        assert_eq!(unknown(&format!("{log}+ systemctl start kubelet\n")), None);
        assert_eq!(unknown(&log.replace("eni-max-pods.txt", "own.txt")), None);
    }

    #[test]
    fn secrets_in_what_a_script_printed_are_masked() {
        let all = format!("{:?}", end("+ setup --password=hunter2secret\nError: password=hunter2secret is refused\n"));
        assert!(all.contains("setup") && !all.contains("hunter2secret"), "{all}");
    }
}
