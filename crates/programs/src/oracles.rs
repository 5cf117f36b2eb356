//! Programs that say what the originals make of user data: `tests/e2e/oracles` asks them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::debian;
use crate::go::{NODEADM, install, install_by_newer_go, install_into, once, writable_source};
use crate::project;

/// What Karpenter makes of user data.
pub fn karpenter() -> PathBuf {
    module("karpenter", install_by_newer_go).join("karpenter")
}

/// What the kubelet makes of its flags.
pub fn kubelet() -> PathBuf {
    module("kubelet", install).join("kubelet")
}

/// Secrets as the rules of gitleaks describe them.
pub fn secrets() -> PathBuf {
    module("secrets", install).join("secrets")
}

/// The program of a module in `tests/e2e/oracles`.
fn module(name: &str, install: fn(&str, &str, &Path, &[&str]) -> PathBuf) -> PathBuf {
    let source = project().join("tests/e2e/oracles").join(name);
    let text = |file: &str| fs::read_to_string(source.join(file)).expect("the module has it");
    let stamp = [text("go.mod"), text("main.go")].concat();
    install(&format!("oracle-{name}"), &stamp, &source, &["-ldflags=-s -w", "."])
}

/// What nodeadm makes of a NodeConfig.
pub fn nodeadm() -> PathBuf {
    let main = project().join("tests/e2e/oracles/nodeadm/main.go");
    let source = fs::read_to_string(&main).expect("a file of this tree");
    let stamp = format!("{NODEADM}\n{source}");
    once("oracle-nodeadm", &stamp, |bin| {
        let copy = writable_source(NODEADM, "oracle-nodeadm-source");
        fs::create_dir_all(copy.join("cmd/oracle")).expect("a file of this tree");
        fs::copy(&main, copy.join("cmd/oracle/main.go")).expect("a file of this tree");
        install_into(bin, &copy, &["-ldflags=-s -w", "./cmd/oracle"]);
    })
    .join("oracle")
}

const SHARED: &str = "libsystemd-shared-252.so";
const CORE: &str = "libsystemd-core-252.so";

/// Debian's packages of both libraries and of what they are linked with.
const PACKAGES: &[&str] = &[
    "libacl1",
    "libapparmor1",
    "libaudit1",
    "libblkid1",
    "libcap-ng0",
    "libcap2",
    "libcrypt1",
    "libgcrypt20",
    "libgpg-error0",
    "libip4tc2",
    "libkmod2",
    "liblz4-1",
    "liblzma5",
    "libmount1",
    "libpam0g",
    "libpcre2-8-0",
    "libseccomp2",
    "libselinux1",
    "libssl3",
    "libsystemd-shared",
    "libzstd1",
    "systemd",
];

const MISSING: &str = "systemd 252 is not installed, and could not be fetched with apt-get: the tests ask its \
                       libraries what a machine makes of a unit. Debian 12, Amazon Linux 2023 and RHEL 9 have them in \
                       the package systemd";

/// What systemd 252 makes of a unit: a small program, and its libraries.
pub fn systemd() -> Command {
    let libraries = installed(Path::new("/usr")).unwrap_or_else(unpacked);
    let source = project().join("tests/e2e/oracles/systemd/oracle.c");
    let text = fs::read_to_string(&source).expect("it is here");
    let program = once("oracle-systemd", &text, |folder| {
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-Wall", "-Werror"]).arg(&source).args(["-ldl", "-o"]).arg(folder.join("oracle"));
        assert!(cc.status().expect("the linker that Rust needs is a C compiler").success(), "{cc:?}");
    });
    let mut command = Command::new(program.join("oracle"));
    command.arg(libraries.join(SHARED)).arg(libraries.join(CORE));
    // What was unpacked beside them is found beside them.
    command
        .env("LD_LIBRARY_PATH", format!("{}:{}", libraries.display(), libraries.parent().expect("usr/lib").display()));
    command
}

/// The folder with both libraries below `usr`.
fn installed(usr: &Path) -> Option<PathBuf> {
    let multiarch = fs::read_dir(usr.join("lib")).into_iter().flatten().flatten().map(|entry| entry.path());
    let folders =
        [usr.join("lib"), usr.join("lib64")].into_iter().chain(multiarch).map(|folder| folder.join("systemd"));
    folders.into_iter().find(|folder| folder.join(SHARED).exists() && folder.join(CORE).exists())
}

/// Debian's packages, unpacked.
fn unpacked() -> PathBuf {
    let folder = once("systemd-252", &PACKAGES.concat(), |folder| {
        debian::unpack(PACKAGES, MISSING, folder);
        // Some packages still put their libraries into /lib.
        let copied = Command::new("cp").args(["-r", "lib/.", "usr/lib/"]).current_dir(folder).status();
        assert!(copied.is_ok_and(|status| status.success()), "cp");
    });
    installed(&folder.join("usr")).unwrap_or_else(|| panic!("{MISSING}"))
}
