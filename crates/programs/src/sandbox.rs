//! What puts a program under a securityContext, or gives it another clock.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::go::{install, once};
use crate::{debian, project};

const NO_BUBBLEWRAP: &str = "the tests take bwrap from Debian's package bubblewrap";

/// `bwrap`.
pub fn bubblewrap() -> PathBuf {
    once("bubblewrap", "Debian's package", |folder| debian::unpack(&["bubblewrap"], NO_BUBBLEWRAP, folder))
        .join("usr/bin/bwrap")
}

/// containerd's default profile, for the kernel.
pub fn seccomp_profile() -> PathBuf {
    let source = project().join("crates/programs/seccomp");
    let text = |file: &str| fs::read_to_string(source.join(file)).expect("it is here");
    let sources = [text("go.mod"), text("main.go"), text("compile.py")].concat();
    let containerds = install("seccomp", &sources, &source, &["."]).join("seccomp");
    once("seccomp-profile", &sources, |folder| {
        let said = Command::new(containerds).output().expect("it was just built");
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        fs::write(folder.join("profile.json"), said.stdout).expect("target is writable");
        let mut compile = Command::new("python3");
        compile.arg(source.join("compile.py")).arg(folder.join("profile.json")).arg(folder.join("profile.bpf"));
        assert!(compile.status().is_ok_and(|status| status.success()), "{compile:?}");
    })
    .join("profile.bpf")
}

/// The library that gives a program another clock, with `LD_PRELOAD`.
pub fn faketime() -> PathBuf {
    const NO_FAKETIME: &str = "the tests take libfaketime from Debian's package of that name";
    let folder = once("faketime", "Debian's package", |folder| debian::unpack(&["libfaketime"], NO_FAKETIME, folder));
    let triplets = fs::read_dir(folder.join("usr/lib")).expect("the package has a library").flatten();
    let library = triplets.map(|triplet| triplet.path().join("faketime/libfaketimeMT.so.1")).find(|path| path.exists());
    library.expect("the package has a library")
}
