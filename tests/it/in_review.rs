//! `nodewhy lint` where people review changes: the GitHub action, the hooks of pre-commit, and pipes.

use assert_cmd::Command;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use testkit::project;

const PROGRAM: &str = env!("CARGO_BIN_EXE_nodewhy");

/// A node class with a label that the kubelet refuses, and the same class without it.
const WRONG: &str = "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: default}\nspec:\n  \
                     amiFamily: Custom\n  userData: |\n    #!/bin/bash\n    /etc/eks/bootstrap.sh shop \
                     --kubelet-extra-args '--node-labels=kubernetes.io/x=y'\n";
const FINE: &str = "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: default}\nspec:\n  \
                    amiFamily: AL2023\n  role: KarpenterNodeRole-shop\n";

fn read(file: &str) -> String {
    fs::read_to_string(project().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn yaml(file: &str) -> Value {
    serde_saphyr::from_str(&read(file)).expect("YAML")
}

/// A folder with one manifest.
fn repository(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("karpenter")).expect("a folder");
    fs::write(folder.path().join("karpenter/class.yaml"), text).expect("written");
    folder
}

struct Step {
    code: i32,
    out: String,
    outputs: String,
    sarif: Option<Value>,
}

/// Runs the action's own script in the folder, with the program of the tests in place of the installed one.
fn lint_step(folder: &Path, files: &str, format: &str) -> Step {
    let action = yaml("action.yml");
    let steps = action["runs"]["steps"].as_array().expect("steps");
    let script = steps.iter().find(|step| step["id"] == "lint").expect("the step")["run"].as_str().expect("a script");
    let temp = tempfile::tempdir().expect("a folder");
    fs::create_dir(temp.path().join("nodewhy")).expect("a folder");
    symlink(PROGRAM, temp.path().join("nodewhy/nodewhy")).expect("a link");
    let outputs = temp.path().join("outputs");
    let output = Command::new("bash")
        .args(["-c", script])
        .current_dir(folder)
        .env("RUNNER_TEMP", temp.path())
        .env("GITHUB_OUTPUT", &outputs)
        .env("FILES", files)
        .env("FAIL_ON", "likely")
        .env("KUBERNETES", "1.35")
        .env("KARPENTER", "")
        .env("FORMAT", format)
        .output()
        .expect("the script runs");
    let sarif = fs::read_to_string(temp.path().join("nodewhy/nodewhy.sarif")).unwrap_or_default();
    Step {
        code: output.status.code().expect("no signal"),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        outputs: fs::read_to_string(outputs).unwrap_or_default(),
        sarif: serde_json::from_str(&sarif).ok(),
    }
}

#[test]
fn the_action_lints_and_leaves_a_file_to_upload() {
    let folder = repository(WRONG);
    let step = lint_step(folder.path(), "karpenter\n", "text");
    assert_eq!(step.code, 0, "the upload comes first");
    assert!(step.out.contains("KubeletRefusesLabels") && step.outputs.contains("\ncode=1\n"), "{}", step.outputs);
    let sarif = step.sarif.expect("SARIF");
    let results = sarif["runs"][0]["results"].as_array().expect("results");
    let place = &results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
    assert_eq!((results.len(), place), (1, &Value::from("karpenter/class.yaml")));
    let step = lint_step(folder.path(), ".", "github");
    assert!(step.out.contains("::error file=karpenter/class.yaml,line=8,"), "{}", step.out);
    let folder = repository(FINE);
    let step = lint_step(folder.path(), "karpenter", "text");
    assert!(step.code == 0 && step.outputs.contains("\ncode=0\n"), "{}", step.outputs);
    assert_eq!(step.sarif.expect("SARIF")["runs"][0]["results"], Value::Array(Vec::new()));
    let step = lint_step(folder.path(), "elsewhere", "text");
    assert!(step.code == 2 && step.sarif.is_none(), "nothing to upload: {}", step.outputs);
}

/// The names between `before` and `after` in the text.
fn names<'t>(text: &'t str, before: &str, after: &str) -> BTreeSet<&'t str> {
    text.split(before).skip(1).filter_map(|rest| Some(rest.split_once(after)?.0)).collect()
}

#[test]
fn the_action_installs_a_program_of_the_release_and_pins_what_it_uses() {
    let (action, release) = (read("action.yml"), read(".github/workflows/release.yml"));
    assert_eq!(names(&action, " name=", " ;;"), names(&release, "{ name: ", ","));
    let used = names(&action, "uses: ", "\n");
    let is_pinned = |used: &&str| {
        let commit = used.split_once('@').and_then(|(_, rest)| rest.split(' ').next()).unwrap_or_default();
        commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()) && used.contains(" # v")
    };
    assert!(!used.is_empty() && used.iter().all(is_pinned), "{used:?}");
    // The script takes the first such line.
    let manifest = read("Cargo.toml");
    let version = manifest.lines().find(|line| line.starts_with("version = "));
    assert_eq!(version, Some(&*format!("version = \"{}\"", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn each_hook_of_pre_commit_finds_the_mistake_of_a_repository() {
    let hooks = yaml(".pre-commit-hooks.yaml");
    let hooks = hooks.as_array().expect("hooks");
    for hook in hooks {
        let arguments = hook["args"].as_array().expect("arguments").iter().filter_map(Value::as_str);
        let mut words = hook["entry"].as_str().expect("a command").split(' ');
        assert_eq!(words.next(), Some("nodewhy"));
        let arguments: Vec<&str> = words.chain(arguments).collect();
        for (text, code) in [(WRONG, 1), (FINE, 0)] {
            let folder = repository(text);
            Command::new(PROGRAM).args(&arguments).current_dir(folder.path()).assert().code(code);
        }
    }
    assert_eq!(hooks.len(), 2);
}

/// If helm or kustomize fails, the pipe is empty, and that is no all-clear.
#[test]
fn an_empty_pipe_is_no_success() {
    for text in ["", "---\n# Source: shop/templates/class.yaml\n"] {
        Command::new(PROGRAM).args(["lint", "-f", "-"]).write_stdin(text).assert().code(2);
    }
    let rendered = format!("---\n# Source: shop/templates/class.yaml\n{WRONG}---\n# Source: shop/templates/x.yaml\n");
    Command::new(PROGRAM).args(["lint", "-f", "-"]).write_stdin(rendered).assert().code(1);
}
