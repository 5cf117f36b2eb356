//! The commands of `cargo xtask`.

use std::path::Path;
use std::process::ExitCode;
use xtask::{e2e, new_cause, site, tables, upstream};

const USAGE: &str = "\
Usage: cargo xtask e2e [FILTER] [FLAGS OF CARGO-NEXTEST]
       cargo xtask programs
       cargo xtask tidy [FILTER]
       cargo xtask new-cause NAME --in CATEGORY
       cargo xtask site
       cargo xtask tables
       cargo xtask upstream [--markdown]

e2e builds the real programs, such as kube-apiserver and Karpenter, and runs the tests that start them. FILTER is a part
of a test's name, such as cluster::remediation.
programs builds these programs, and runs no test.
tidy checks texts and files: links, the site, the walls between crates, what is generated, and that each string of
upstream has a row in a table.
new-cause writes the skeletons of a cause's page, examples and rule, and lists the rule among its category and in rules::ALL.
NAME is CamelCase, such as KubeletStopped; CATEGORY is a folder of crates/engine/src/rules.
site writes what mdbook makes the site of into target/site.
tables makes the tables of crates/engine/src/upstream anew from the Go modules that they are pinned to.
upstream compares the pinned Go modules with their newest releases; cargo xtask upstream --help says how.";

/// The repository: two folders up from this crate.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = Path::new(ROOT);
    let done = match arguments[..] {
        ["new-cause", name, "--in", category] | ["new-cause", "--in", category, name] => {
            new_cause::write(root, name, category).map(|cause| cause.to_string())
        }
        ["site"] => site::write(root, &root.join("target/site"))
            .map(|pages| format!("wrote {} pages to target/site", pages.len())),
        ["upstream", "--help"] => Ok(upstream::HELP.to_owned()),
        ["upstream"] => return upstream(root, false),
        ["upstream", "--markdown"] => return upstream(root, true),
        ["tables"] => tables::write(root).map(|tables| format!("wrote {tables}")),
        ["e2e", ref arguments @ ..] => e2e::run(root, arguments),
        ["programs"] => e2e::programs(),
        ["tidy", ref arguments @ ..] => e2e::tidy(root, arguments),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(said) => {
            println!("{said}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the report; its exit code is the answer to "is there something to do".
fn upstream(root: &Path, markdown: bool) -> ExitCode {
    match upstream::run(root) {
        Ok(report) => {
            print!("{}", report.text(markdown));
            ExitCode::from(report.exit_code())
        }
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::from(2)
        }
    }
}
