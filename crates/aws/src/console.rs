//! What an instance printed while it booted: only the lines that are known to say that the bootstrap failed. No IO.

use engine::objects::{Console, ConsoleLine};
use readers::source_text;

/// Who prints such a line, and all of what it holds.
const FAILURES: [(&str, &[&str]); 9] = [
    // amazon-eks-ami v20251112 nodeadm/cmd/nodeadm/main.go, internal/cli/common.go
    ("nodeadm", &["nodeadm", "Command failed"]),
    ("nodeadm", &["\"level\":\"fatal\"", "nodeadm"]),
    ("nodeadm", &["nodeadm-config.service: Failed with result"]),
    ("nodeadm", &["nodeadm-run.service: Failed with result"]),
    // amazon-eks-ami v20251112 templates/al2/runtime/bootstrap.sh `err_report`
    ("bootstrap.sh", &["Exited with error on line"]),
    // bottlerocket sources/api/early-boot-config, packages/os/early-boot-config.service
    ("early-boot-config", &["early-boot-config", "Failed"]),
    ("early-boot-config", &["early-boot-config", "Error"]),
    // kubernetes v1.36.3 cmd/kubelet/app/server.go
    ("kubelet", &["failed to run Kubelet"]),
    // cloud-init cloudinit/config/cc_scripts_user.py
    ("cloud-init", &["Failed to run module scripts"]),
];
/// Lines that are kept: the last ones, which tell of the end.
const MOST: usize = 5;
/// Characters of a line that are shown.
const LONGEST: usize = 300;

/// Reads the text of a console. Every line that is kept is masked.
pub fn read(output: &[u8]) -> Console {
    let text = String::from_utf8_lossy(output);
    let mut lines: Vec<ConsoleLine> = Vec::new();
    for line in text.lines() {
        let Some((program, _)) = FAILURES.iter().find(|(_, words)| words.iter().all(|word| line.contains(word))) else {
            continue;
        };
        let mut shown: String = without_colors(&source_text::mask(line)).trim().chars().take(LONGEST).collect();
        if shown.chars().count() == LONGEST {
            shown.push('…');
        }
        if lines.last().is_none_or(|last| last.text != shown) {
            lines.push(ConsoleLine { program: (*program).to_owned(), text: shown });
        }
    }
    // Who failed for sure goes before who may have: the last line is the one that is told first.
    lines.sort_by_key(|line| line.program != "cloud-init");
    let skip = lines.len().saturating_sub(MOST);
    Console { lines: lines.split_off(skip), bytes: output.len() }
}

/// Without the terminal's escapes: masking has made blanks of their first byte.
fn without_colors(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once(" [") {
        let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').len();
        match after.get(digits..).and_then(|end| end.strip_prefix('m')) {
            Some(end) if digits > 0 => {
                out.push_str(before);
                rest = end;
            }
            _ => {
                out.push_str(before);
                out.push_str(" [");
                rest = after;
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_failures_are_kept_and_secrets_are_masked() {
        let text = b"[    0.000000] Linux version 6.12\n\
            export DB_PASSWORD=hunter2\n\
            [   31.9] cloud-init[1700]: Failed to run module scripts-user (scripts in /var/lib/cloud/instance/scripts)\n\
            [   12.3] nodeadm[1629]: {\"level\":\"fatal\",\"caller\":\"nodeadm/main.go:36\",\"msg\":\"Command failed\",\"error\":\"token=abcdefgh: i/o timeout\"}\n\
            \x1b[0;1;31m[FAILED]\x1b[0m Failed to start nodeadm-config.\n";
        let console = read(text);
        assert_eq!(console.bytes, text.len());
        let programs: Vec<_> = console.lines.iter().map(|line| line.program.as_str()).collect();
        assert_eq!(programs, ["cloud-init", "nodeadm"]);
        let all = format!("{console:?}");
        assert!(!all.contains("hunter2") && !all.contains("abcdefgh"), "{all}");
        assert!(console.lines[1].text.contains("Command failed"), "{all}");
    }

    #[test]
    fn colors_go_and_brackets_stay() {
        let line = "\x1b[0;1;31m[FAILED]\x1b[0m early-boot-config Failed [ 12.3] \x1b[0m";
        let console = read(line.as_bytes());
        assert_eq!(console.lines[0].text, "[FAILED] early-boot-config Failed [ 12.3]");
    }

    #[test]
    fn an_endless_console_is_cut() {
        let text = (0..10_000)
            .fold(String::new(), |text, n| text + &format!("Exited with error on line {n} {}\n", "x".repeat(500)));
        let console = read(text.as_bytes());
        assert_eq!(console.lines.len(), MOST);
        assert!(console.lines.iter().all(|line| line.text.chars().count() <= LONGEST + 1));
        assert!(console.lines[MOST - 1].text.contains("line 9999"));
    }
}
