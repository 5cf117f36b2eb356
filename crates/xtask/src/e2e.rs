//! `cargo xtask e2e`: builds the programs while cargo compiles the tests, then runs the tests with cargo-nextest.

use programs::{ALL, prerequisites, python, target};
use std::ffi::OsStr;
use std::panic;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Instant;

/// `arguments` are cargo-nextest's: parts of tests' names, and flags. Without a name all programs are built first;
/// with one, a test builds what it needs.
pub fn run(root: &Path, arguments: &[&str]) -> Result<String, String> {
    prerequisites::check()?;
    let start = Instant::now();
    let all = arguments.iter().all(|argument| argument.starts_with('-'));
    let nextest = nextest(root);
    let compiled = thread::scope(|scope| {
        let programs = all.then(|| scope.spawn(build_programs));
        let compiled = succeed(cargo(root).args(["test", "--locked", "--no-run", "--test", "e2e"]));
        let failed = programs.map_or_else(Vec::new, |programs| programs.join().unwrap_or_default());
        compiled.and(if failed.is_empty() { Ok(()) } else { Err(format!("not built: {}", failed.join(", "))) })
    });
    compiled?;
    println!("compiled the tests and built the programs in {} s", start.elapsed().as_secs());
    let mut tests = from_cargo(nextest);
    tests.current_dir(root).args(["nextest", "run", "--locked", "--test", "e2e"]);
    // Most of what they do is to wait.
    let cores = thread::available_parallelism().map_or(2, usize::from);
    tests.arg("--test-threads").arg((2 * cores).to_string());
    if all {
        tests.env(programs::go::BUILT, "1");
    }
    succeed(tests.args(arguments))?;
    Ok(format!("the end-to-end tests passed, {} s in all", start.elapsed().as_secs()))
}

/// `cargo xtask programs`: builds what the end-to-end tests start, and runs none of them.
pub fn programs() -> Result<String, String> {
    prerequisites::check()?;
    let failed = build_programs();
    if failed.is_empty() {
        Ok("built all programs".to_owned())
    } else {
        Err(format!("not built: {}", failed.join(", ")))
    }
}

/// Builds one program after the other; gives the names of those that failed, which have said why.
fn build_programs() -> Vec<&'static str> {
    ALL.iter().filter(|(_, build)| panic::catch_unwind(build).is_err()).map(|(name, _)| *name).collect()
}

/// cargo-nextest, from its pinned wheel.
fn nextest(root: &Path) -> PathBuf {
    python::environment("nextest", &root.join(".config/nextest-requirements.txt")).with_file_name("cargo-nextest")
}

fn cargo(root: &Path) -> Command {
    let mut cargo = from_cargo(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root).env("CARGO_TARGET_DIR", target());
    cargo
}

/// A command that runs cargo as a shell would. `cargo run` tells this program about its own package in variables such
/// as `CARGO_PKG_NAME`. The build script of ring 0.17.14 asks to run again when one of them changes, so an inner cargo
/// that inherits them compiles ring again, and with it every client of TLS.
fn from_cargo(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let is_of_this_package =
            name.to_str().is_some_and(|name| ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|of| name.starts_with(of)));
        if is_of_this_package {
            command.env_remove(name);
        }
    }
    command
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{} ended with {status}", command.get_program().display())) }
}

/// `cargo xtask tidy`: the checks of texts and files. `arguments` are parts of tests' names.
pub fn tidy(root: &Path, arguments: &[&str]) -> Result<String, String> {
    succeed(cargo(root).args(["test", "--locked", "--quiet", "--test", "tidy", "--"]).args(arguments))?;
    Ok("tidy".to_owned())
}
