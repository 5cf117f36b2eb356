//! `cargo benchmark`.

use benchmark::case::Case;
use benchmark::difference::{self, Templates};
use benchmark::report::{self, Participant};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const USAGE: &str = "\
Usage: cargo benchmark prepare FOLDER    the cases without their answers, by number, for somebody to judge
       cargo benchmark score FOLDER      scores the answers NUMBER.json in a folder
       cargo benchmark export FOLDER [CASE]
                                         writes the whole dumps of all cases, or of one, for other programs
       cargo benchmark shorten CASE      rewrites the cluster.yaml of a case as cluster.diff.yaml
       cargo benchmark table [PROGRAM]   scores nodewhy, which it builds or is given, and the baselines;
                                         writes docs/accuracy.md and benchmark/SOURCES.md";

/// The repository: the folder above this one.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        ["prepare", folder] => prepare(Path::new(folder)),
        ["score", folder] => score(Path::new(folder)),
        ["export", folder] => cases().and_then(|cases| export(Path::new(folder), &cases)),
        ["export", folder, name] => named(name).and_then(|case| export(Path::new(folder), &[case])),
        ["shorten", name] => named(name).and_then(|case| shorten(&case)),
        ["table"] => build().and_then(|program| table(&program)),
        ["table", program] => table(Path::new(program)),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

fn root() -> &'static Path {
    Path::new(ROOT)
}

fn cases() -> io::Result<Vec<Case>> {
    Case::all(&root().join("tests/cases"))
}

/// A case's name and its other files tell the cause: only what the cluster shows is copied.
fn prepare(folder: &Path) -> io::Result<()> {
    for case in cases()? {
        let to = folder.join(case.number());
        fs::create_dir_all(&to)?;
        fs::write(to.join("cluster.yaml"), case.dump()?)?;
        fs::write(to.join("now"), format!("{}\n", case.truth.now))?;
        if let Some(logs) = case.logs() {
            copy(&logs, &to.join(logs.file_name().unwrap_or_default()))?;
        }
    }
    Ok(())
}

/// A case by its name, or by its number.
fn named(name: &str) -> io::Result<Case> {
    let found = cases()?.into_iter().find(|case| case.name == name || case.number() == name);
    found.ok_or_else(|| io::Error::other(format!("no case is called {name}")))
}

fn export(folder: &Path, cases: &[Case]) -> io::Result<()> {
    for case in cases {
        let to = folder.join(&case.name);
        fs::create_dir_all(&to)?;
        fs::write(to.join("cluster.yaml"), case.dump()?)?;
    }
    Ok(())
}

fn shorten(case: &Case) -> io::Result<()> {
    let whole = case.folder.join("cluster.yaml");
    let text = difference::shorten::shorten(case, &fs::read_to_string(&whole)?, Templates::of_corpus());
    let text = text.map_err(|why| io::Error::other(format!("{} stays whole: {why}", case.name)))?;
    fs::write(case.folder.join("cluster.diff.yaml"), text)?;
    fs::remove_file(whole)
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if from.is_file() {
        return fs::copy(from, to).map(drop);
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

fn score(folder: &Path) -> io::Result<()> {
    let cases = cases()?;
    let scores = Participant::Folder(folder).scores(&cases)?;
    print!("{}\n{}", report::faults(&cases, &scores), report::table(&folder.display().to_string(), &cases, &scores));
    Ok(())
}

fn build() -> io::Result<PathBuf> {
    let built = Command::new(env!("CARGO")).current_dir(root()).args(["build", "--quiet"]).status()?;
    if !built.success() {
        return Err(io::Error::other("nodewhy was not built"));
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    Ok(target.join("debug/nodewhy"))
}

fn table(program: &Path) -> io::Result<()> {
    let cases = cases()?;
    let first_run = fs::read_to_string(root().join("tests/cases/first-run.md"))?;
    fs::write(root().join("docs/accuracy.md"), report::accuracy(&cases, Participant::Nodewhy(program), &first_run)?)?;
    fs::write(root().join("benchmark/SOURCES.md"), report::sources(&cases)?)
}
