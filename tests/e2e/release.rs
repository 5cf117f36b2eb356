//! What a release carries: the workflows are free of known faults, and whoever installs finds the files that they make.

mod image;

use assert_cmd::Command;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use testkit::programs::linters;

fn read(file: &str) -> String {
    fs::read_to_string(testkit::project().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// The names between `before` and `after` in the text.
fn names<'t>(text: &'t str, before: &str, after: &str) -> BTreeSet<&'t str> {
    text.split(before).skip(1).filter_map(|rest| Some(rest.split_once(after)?.0)).collect()
}

#[test]
fn whoever_installs_finds_the_files_that_the_workflow_makes() {
    let made = read(".github/workflows/release.yml");
    let made = names(&made, "{ name: ", ",");
    assert_eq!(made.len(), 5, "{made:?}");
    for installer in [".krew.yaml", "Cargo.toml", "docs/release.md"] {
        let text = read(installer);
        assert_eq!(names(&text, "nodewhy-", ".tar.gz"), made, "{installer}");
    }
}

#[test]
fn a_file_of_the_release_holds_the_program_and_its_license() {
    let folder = tempfile::tempdir().expect("a folder");
    let (script, program) = (testkit::project().join(".ci/package"), testkit::nodewhy());
    Command::new(script).arg(&program).arg("nodewhy-linux-amd64").arg(folder.path()).assert().success();
    let run = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).current_dir(folder.path()).args(arguments).assert().success();
        String::from_utf8_lossy(&output.get_output().stdout).into_owned()
    };
    assert_eq!(run("tar", &["-tzf", "nodewhy-linux-amd64.tar.gz"]), "nodewhy\nLICENSE\n");
    run("sha256sum", &["--check", "nodewhy-linux-amd64.tar.gz.sha256"]);
    run("tar", &["-xzf", "nodewhy-linux-amd64.tar.gz"]);
    assert!(run("./nodewhy", &["version"]).starts_with("version"), "it is the program");
}

#[test]
fn a_program_that_is_too_large_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let small = folder.path().join("nodewhy");
    fs::write(&small, "small").expect("written");
    let script = testkit::project().join(".ci/size");
    Command::new(&script).arg(small).assert().success();
    // The program of the tests is not optimized, and has the names of its functions.
    Command::new(&script).arg(testkit::nodewhy()).assert().failure();
    assert!(read(".github/workflows/ci.yml").contains(".ci/size target/release/nodewhy"), "nobody checks the size");
}

#[test]
fn the_workflows_are_free_of_known_faults() {
    Command::new(linters::actionlint()).current_dir(testkit::project()).assert().success();
    let audit = ["--offline", "--no-progress", "--persona=pedantic", ".github/workflows", "action.yml"];
    Command::new(linters::zizmor()).current_dir(testkit::project()).args(audit).assert().success();
}

#[test]
fn no_job_publishes_anything_that_the_tests_have_not_passed() {
    let workflow: Value = serde_saphyr::from_str(&read(".github/workflows/release.yml")).expect("YAML");
    let mut publishing = 0;
    for (name, job) in workflow["jobs"].as_object().expect("jobs") {
        let may_write =
            job["permissions"].as_object().is_some_and(|rights| rights.values().any(|right| right == "write"));
        if may_write {
            publishing += 1;
            let needs = job["needs"].as_array().expect("a list of jobs");
            for tests in ["tests", "advisories"] {
                assert!(needs.iter().any(|needed| needed == tests), "{name} does not need {tests}");
            }
        }
    }
    assert_eq!(publishing, 2, "the files, and the image with the chart");
}
