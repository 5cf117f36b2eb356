//! A command that certainly fails, and with `set -e` ends the script.
//!
//! Nothing is known of what most commands return. `mkdir` fails if the folder exists, and every image has some.

use super::super::shell::{Command, Runs, Word};
use super::super::{DefectKind, Family};
use super::{BOOTSTRAP, Reader, program};
use crate::source_text::Span;

/// Folders of every Linux.
// https://refspecs.linuxfoundation.org/FHS_3.0/fhs-3.0.html, file-hierarchy(7), sysctl.d(5)
const OF_LINUX: &[&str] = &[
    "/boot",
    "/dev",
    "/etc",
    "/etc/sysctl.d",
    "/etc/systemd",
    "/etc/systemd/system",
    "/home",
    "/opt",
    "/root",
    "/run",
    "/srv",
    "/tmp",
    "/usr",
    "/usr/bin",
    "/usr/local",
    "/usr/local/bin",
    "/var",
    "/var/lib",
    "/var/log",
];

/// Folders of EKS's images of Amazon Linux.
// amazon-eks-ami 81fec2e templates/al2023/provisioners/install-worker.sh, install-nodeadm.sh; v20251112
// templates/al2/provisioners/install-worker.sh
const OF_EKS: &[&str] = &[
    "/etc/eks",
    "/etc/kubernetes",
    "/etc/kubernetes/manifests",
    "/opt/cni",
    "/opt/cni/bin",
    "/var/lib/kubelet",
    "/var/lib/kubernetes",
];

impl Reader<'_> {
    /// Looks for the first `mkdir` of a folder that exists, where `set -e` or the first line makes a failure the end.
    pub(super) fn ends_at_failure(&mut self, script: &str, commands: &[Command]) {
        let first = script.lines().next().unwrap_or_default();
        let options = first.split_whitespace().skip(1);
        let mut exits = first.starts_with("#!") && options.fold(false, |exits, word| errexit(word).unwrap_or(exits));
        for (at, command) in commands.iter().enumerate() {
            let words = program(&command.words);
            let Some((name, arguments)) = words.split_first() else { continue };
            if name.text.as_str() == "set" {
                let sets = sets_errexit(arguments).unwrap_or(exits);
                // What a subshell switches on ends with it. What it switches off may stay off: nothing is said then.
                exits = command.runs == Runs::Always && sets && (exits || !command.in_subshell);
                continue;
            }
            if !exits || command.runs != Runs::Always || name.text.as_str() != "mkdir" || !self.stands_alone(command) {
                continue;
            }
            let rest = commands.get(at + 1..).unwrap_or_default();
            let joins = rest.iter().any(|command| command.words.iter().any(|word| word.text.as_str() == BOOTSTRAP));
            let before = commands.get(..at).unwrap_or_default();
            let existing = folders(arguments).find(|folder| {
                let path = folder.text.as_str().trim_end_matches('/');
                self.has_folder(path, joins) && !before.iter().any(|command| removes(command, path))
            });
            let is_custom = self.data.family == Family::Custom;
            // Of an image of one's own only the call is known to matter.
            if let Some(folder) = existing.filter(|_| if is_custom { joins } else { !rest.is_empty() }) {
                let before = if is_custom { ", before the call that joins the node" } else { "" };
                let message = format!(
                    "{} exists already, so mkdir fails and `set -e` ends the script here{before}",
                    folder.text.as_str()
                );
                let span = folder.text.span();
                return self.defect(DefectKind::EndsAtFailure, span, message);
            }
        }
    }

    /// Whether the image has this folder before the script runs.
    fn has_folder(&self, path: &str, calls_bootstrap: bool) -> bool {
        let of_eks = match self.data.family {
            Family::Al2 | Family::Al2023 => OF_EKS.contains(&path),
            // The script is in it.
            _ => calls_bootstrap && path == "/etc/eks",
        };
        of_eks || OF_LINUX.contains(&path)
    }

    /// Whether the failure of a command counts: it is a statement of its own, and neither it nor a subshell around it
    /// is the first part of `a || b`.
    // bash(1), SHELL BUILTIN COMMANDS, set -e
    fn stands_alone(&self, command: &Command) -> bool {
        if command.in_tested_subshell {
            return false;
        }
        let Span { start, .. } = command.span;
        let line = self.text.get(..start).and_then(|before| before.rsplit('\n').next()).unwrap_or_default();
        line.trim().is_empty() && !command.span.of(self.text).trim_end().ends_with(['&', '|'])
    }
}

/// Whether options switch on that a failure ends the script, or off. `None` if they do neither.
fn sets_errexit(arguments: &[Word]) -> Option<bool> {
    let words: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
    let by_name = words.windows(2).find_map(|pair| match pair {
        ["-o", "errexit"] => Some(true),
        ["+o", "errexit"] => Some(false),
        _ => None,
    });
    by_name.or_else(|| words.iter().find_map(|word| errexit(word)))
}

/// Whether `-eux` switches it on, or `+e` off.
fn errexit(word: &str) -> Option<bool> {
    let is_set = |letters: &str| letters.bytes().all(|b| b.is_ascii_alphabetic()) && letters.contains('e');
    if word.strip_prefix('-').is_some_and(is_set) {
        Some(true)
    } else if word.strip_prefix('+').is_some_and(is_set) {
        Some(false)
    } else {
        None
    }
}

/// The folders that a call of `mkdir` fails over if they exist. None with `-p`.
fn folders(arguments: &[Word]) -> impl Iterator<Item = &Word> {
    let is_short = |word: &str| word.starts_with('-') && !word.starts_with("--");
    let is_parents = |word: &str| word.starts_with("--p") || (is_short(word) && word.contains('p'));
    let parents = arguments.iter().any(|word| !word.exact || is_parents(word.text.as_str()));
    let arguments: &[Word] = if parents { &[] } else { arguments };
    // The mode is a word that begins with no slash.
    arguments.iter().filter(|word| word.text.as_str().starts_with('/'))
}

/// Whether a command may remove the folder.
fn removes(command: &Command, path: &str) -> bool {
    let words = program(&command.words);
    let removes = words.first().is_some_and(|name| matches!(name.text.as_str(), "rm" | "rmdir" | "mv"));
    removes && words.iter().any(|word| word.text.as_str().trim_end_matches('/') == path || !word.exact)
}
