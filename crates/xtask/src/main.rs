//! `cargo xtask new-cause NAME --in CATEGORY`, `cargo xtask site`, `cargo xtask tables`.

use std::path::Path;
use std::process::ExitCode;
use xtask::{new_cause, site, tables};

const USAGE: &str = "\
Usage: cargo xtask new-cause NAME --in CATEGORY
       cargo xtask site
       cargo xtask tables

new-cause writes the skeletons of a cause's page and rule, and lists the rule among its category and in rules::ALL.
NAME is CamelCase, such as KubeletStopped; CATEGORY is a folder of crates/engine/src/rules.
site writes what mdbook makes the site of into target/site.
tables makes the tables of crates/engine/src/upstream anew from the Go modules that they are pinned to.";

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
        ["tables"] => tables::write(root).map(|tables| format!("wrote {tables}")),
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
