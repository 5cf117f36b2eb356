//! What an instance printed while it booted: what the table of log lines knows of it. No IO.

use chrono::{DateTime, Utc};
use engine::cluster_state::aws;
use engine::objects::Console;
use logs::{FileLimits, LogReader};

/// Reads the text of a console. Every line that is kept is masked. `written` tells the year of lines that name none.
pub fn read(instance: &str, output: &[u8], written: Option<DateTime<Utc>>) -> Console {
    let mut reader = LogReader::new(FileLimits::default());
    // Its lines are in memory: there is nothing to fail.
    let _ = reader.file(&format!("{} {instance}", aws::CONSOLE), output, written);
    Console { journey: reader.of_one_machine(), bytes: output.len() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use logs::fact::Trouble;

    const INSTANCE: &str = "i-0a0000000000000b1";

    fn troubles(console: &Console) -> Vec<Trouble> {
        console.journey.open().iter().map(|fact| fact.trouble).collect()
    }

    #[test]
    fn only_known_lines_are_kept_and_secrets_are_masked() {
        let text = b"[    0.000000] Linux version 6.12\n\
            export DB_PASSWORD=hunter2\n\
            [   31.9] cloud-init[1700]: Failed to run module scripts-user (scripts in /var/lib/cloud/instance/scripts)\n\
            [   12.3] nodeadm[1629]: {\"level\":\"fatal\",\"caller\":\"nodeadm/main.go:36\",\"msg\":\"Command failed\",\"error\":\"operation error EC2: DescribeInstances, token=abcdefgh: i/o timeout\"}\n\
            \x1b[0;1;31m[FAILED]\x1b[0m Failed to start nodeadm-config.\n";
        let console = read(INSTANCE, text, None);
        assert_eq!(console.bytes, text.len());
        let programs: Vec<_> = console.journey.facts.iter().map(|fact| fact.program.as_str()).collect();
        assert_eq!(programs, ["cloud-init", "nodeadm", "systemd"]);
        assert_eq!(troubles(&console).first(), Some(&Trouble::AwsUnreachable));
        let all = format!("{console:?}");
        assert!(!all.contains("hunter2") && !all.contains("abcdefgh") && !all.contains("Linux version"), "{all}");
    }

    #[test]
    fn whatever_name_its_lines_give_it_the_console_is_of_one_machine() {
        let text = "Jan 15 11:51:00 ip-10-0-2-20 kubelet[1629]: E0115 11:51:00.1 1629 run.go:72] \"command failed\" err=\"failed to run Kubelet: a\"\n\
            Jan 15 11:51:05 golden-image kubelet[1629]: E0115 11:51:05.1 1629 run.go:72] \"command failed\" err=\"failed to run Kubelet: b\"\n";
        let console = read(INSTANCE, text.as_bytes(), "2026-01-15T12:00:00Z".parse().ok());
        let journey = &console.journey;
        assert!(journey.identity.instances.contains(INSTANCE), "{journey:?}");
        let ends: Vec<_> = journey.files.values().flatten().copied().collect();
        assert_eq!(ends, ["2026-01-15T11:51:05Z".parse::<DateTime<Utc>>().unwrap()], "{journey:?}");
    }

    #[test]
    fn an_endless_console_is_cut() {
        let text = (0..10_000)
            .fold(String::new(), |text, n| text + &format!("Exited with error on line {n} {}\n", "x".repeat(500)));
        let console = read(INSTANCE, text.as_bytes(), None);
        let [fact] = console.journey.facts.as_slice() else { panic!("{console:?}") };
        assert!(fact.count == 10_000 && fact.last.text.len() < 500 && fact.last.text.contains("line 9999"), "{fact:?}");
    }
}
