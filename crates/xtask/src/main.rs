//! `cargo xtask new-cause NAME --in CATEGORY`.

use std::path::Path;
use std::process::ExitCode;
use xtask::new_cause;

const USAGE: &str = "\
Usage: cargo xtask new-cause NAME --in CATEGORY

Writes the skeletons of a cause's page and rule, and lists the rule among its category and in rules::ALL.
NAME is CamelCase, such as KubeletStopped; CATEGORY is a folder of crates/engine/src/rules.";

/// The repository: two folders up from this crate.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (["new-cause", name, "--in", category] | ["new-cause", "--in", category, name]) = arguments[..] else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match new_cause::write(Path::new(ROOT), name, category) {
        Ok(cause) => {
            println!("{cause}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}
