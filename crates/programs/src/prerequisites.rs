//! What the machine must have, before anything is built.

use std::fmt::Write;
use std::process::{Command, Stdio};

/// What is needed, how to see that it is there, and Debian's package.
struct Prerequisite {
    what: &'static str,
    seen_by: &'static [&'static str],
    packages: &'static str,
}

const ALL: &[Prerequisite] = &[
    Prerequisite {
        what: "Debian 12 or Ubuntu, for its package archive (root is not needed)",
        seen_by: &["apt-get", "--version"],
        packages: "apt",
    },
    Prerequisite {
        what: "Go 1.26 or later (https://go.dev/dl)",
        seen_by: &["sh", "-c", "go version | grep -E 'go1\\.(2[6-9]|[3-9][0-9])|go[2-9]\\.'"],
        packages: "",
    },
    Prerequisite {
        what: "Python 3 with venv and pip",
        seen_by: &["python3", "-c", "import ensurepip, venv, pip"],
        packages: "python3-venv python3-pip",
    },
    Prerequisite {
        what: "user namespaces (sysctl kernel.unprivileged_userns_clone=1)",
        seen_by: &["unshare", "--user", "--map-root-user", "true"],
        packages: "util-linux",
    },
    Prerequisite { what: "a C compiler", seen_by: &["cc", "--version"], packages: "gcc libc6-dev" },
    Prerequisite { what: "ip", seen_by: &["ip", "-V"], packages: "iproute2" },
    Prerequisite { what: "curl", seen_by: &["curl", "--version"], packages: "curl" },
    Prerequisite { what: "bash", seen_by: &["bash", "--version"], packages: "bash" },
];

/// Everything that is missing in one message, with the command that installs it.
pub fn check() -> Result<(), String> {
    let missing: Vec<&Prerequisite> = ALL.iter().filter(|prerequisite| !works(prerequisite.seen_by)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let mut message = "the end-to-end tests need what this machine lacks:".to_owned();
    for Prerequisite { what, seen_by, .. } in &missing {
        let _ = write!(message, "\n  - {what}; `{}` fails", seen_by.join(" "));
    }
    let packages: Vec<&str> =
        missing.iter().map(|missing| missing.packages).filter(|names| !names.is_empty()).collect();
    if !packages.is_empty() {
        let _ = write!(message, "\ninstall it with: apt-get install {}", packages.join(" "));
    }
    Err(message)
}

fn works(command: &[&str]) -> bool {
    let [program, arguments @ ..] = command else { return false };
    let quiet =
        Command::new(program).args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    quiet.is_ok_and(|status| status.success())
}
