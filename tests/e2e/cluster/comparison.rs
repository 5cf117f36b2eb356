//! What others answer on the case of the README, put into a real API server. docs/comparison.md shows it verbatim;
//! `NODEWHY_UPDATE=1 cargo xtask e2e comparison --run-ignored only` writes what it shows.

use std::path::Path;
use std::process::Command;
use testkit::control_plane::{ControlPlane, NEWEST_KARPENTER, binaries};

const PAGE: &str = "docs/comparison.md";
const CASE: &str = "tests/cases/06-node-label-refused-by-kubelet/cluster.yaml";

fn project(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The page with another output under the heading: the block after the line that shows the command.
fn with_output(page: &str, command: &str, output: &str) -> String {
    let shown = format!("    {command}\n\n```text\n");
    let (before, rest) = page.split_once(&shown).unwrap_or_else(|| panic!("{PAGE} does not show {command}"));
    let (_, after) = rest.split_once("```\n").expect("an end of the block");
    let lines: String = output.trim_end().lines().map(|line| line.trim_end().to_owned() + "\n").collect();
    format!("{before}{shown}{lines}```\n{after}")
}

#[test]
#[ignore = "builds popeye, and its output differs by the time"]
fn others_are_shown_the_same_case() {
    let popeye = binaries::tools("popeye", &project("benches/scale/popeye"), |_| "-ldflags=-s -w".to_owned());
    let control_plane = ControlPlane::start();
    control_plane.karpenter_crds(NEWEST_KARPENTER);
    control_plane.ec2nodeclass_crd();
    control_plane.replay(&std::fs::read_to_string(project(CASE)).expect("the case"));

    let run = |program: &Path, command: &str| {
        let mut words = Command::new(program);
        words.args(command.split(' ').skip(1)).env("KUBECONFIG", control_plane.kubeconfig()).env("COLUMNS", "110");
        let output = words.output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(!said.is_empty(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        said
    };
    let mut page = std::fs::read_to_string(project(PAGE)).expect("the page");
    for (program, command) in [
        (binaries::control_plane("kubectl"), "kubectl get nodeclaims"),
        (binaries::control_plane("kubectl"), "kubectl describe nodeclaim batch-spot-9dlcm"),
        (popeye.join("popeye"), "popeye --all-namespaces --sections nodes --out jurassic --force-exit-zero"),
        (env!("CARGO_BIN_EXE_nodewhy").into(), "nodewhy diagnose"),
    ] {
        let said = run(&program, command);
        if program.ends_with("nodewhy") {
            assert!(said.starts_with("KubeletRefusesLabels (Certain)"), "{said}");
        }
        page = with_output(&page, command, &said);
    }
    if std::env::var_os("NODEWHY_UPDATE").is_some() {
        std::fs::write(project(PAGE), page).expect("written");
    }
}
