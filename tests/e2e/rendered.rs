//! What a real Helm and a real kustomize render goes to `nodewhy lint` through a pipe, as docs/lint.md shows.

use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use testkit::control_plane::binaries;

const CLASS: &str = "apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata:
  name: batch
spec:
  role: KarpenterNodeRole-shop
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: shop}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: shop}}]
  userData: |
    apiVersion: node.eks.aws/v1alpha1
    kind: NodeConfig
    spec:
      kubelet:
        flags:
        - --node-labels=LABEL
";
const REFUSED: &str = "node-role.kubernetes.io/batch=true";
const FINE: &str = "example.com/batch=true";

fn write(folder: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let file = folder.join(name);
        fs::create_dir_all(file.parent().expect("a folder")).expect("made");
        fs::write(file, text).expect("written");
    }
}

/// The exit code of `nodewhy lint -f -` behind this program, and the causes with their lines.
fn linted(renderer: &mut Command) -> (Option<i32>, Vec<(String, u64)>) {
    let mut renderer = renderer.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    let pipe = renderer.stdout.take().expect("a pipe");
    let output = Command::new(testkit::nodewhy())
        .args(["lint", "--filename=-", "--output=json"])
        .stdin(pipe)
        .output()
        .expect("nodewhy starts");
    renderer.wait().expect("it ends");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| json!({}));
    let findings = report["items"].as_array().cloned().unwrap_or_default();
    let cause = |finding: &Value| finding["cause"].as_str().unwrap_or_default().to_owned();
    let found = findings.iter().map(|finding| (cause(finding), finding["line"].as_u64().unwrap_or_default()));
    (output.status.code(), found.collect())
}

/// The line of the label in what the program renders.
fn line_of(renderer: &mut Command, label: &str) -> u64 {
    let rendered = renderer.output().expect("it starts").stdout;
    let rendered = String::from_utf8(rendered).expect("text");
    let before = rendered.lines().take_while(|line| !line.contains(label)).count();
    u64::try_from(before + 1).expect("a small number")
}

#[test]
fn a_chart_is_linted_with_the_values_of_the_day() {
    let folder = tempfile::tempdir().expect("a folder");
    let class = CLASS.replace("LABEL", "{{ .Values.label }}");
    let chart = "apiVersion: v2\nname: shop\nversion: 0.1.0\n";
    write(folder.path(), &[("Chart.yaml", chart), ("templates/class.yaml", &class)]);
    let helm = |value: &str| {
        let mut helm = Command::new(binaries::helm());
        helm.args(["template", "shop"]).arg(folder.path()).arg(format!("--set-string={value}"));
        helm
    };
    let refused = &format!("label={}", REFUSED.replace('=', "\\="));
    let line = line_of(&mut helm(refused), REFUSED);
    assert_eq!(linted(&mut helm(refused)), (Some(1), vec![("KubeletRefusesLabels".to_owned(), line)]));
    assert_eq!(linted(&mut helm(&format!("label={FINE}"))), (Some(0), Vec::new()));
    // A chart that cannot be rendered gives nodewhy nothing to read.
    write(folder.path(), &[("templates/broken.yaml", "{{ .Values.label.none.such }}")]);
    assert_eq!(linted(&mut helm(refused)), (Some(2), Vec::new()));
}

#[test]
fn an_overlay_of_kustomize_is_linted_with_its_patches() {
    let folder = tempfile::tempdir().expect("a folder");
    let base = CLASS.replace("LABEL", FINE);
    let user_data = CLASS.split_once("userData: |\n").expect("it has user data").1.replace("LABEL", REFUSED);
    let patch = format!(
        "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {{name: batch}}\nspec:\n  userData: |\n{user_data}"
    );
    let files = [
        ("base/class.yaml", &*base),
        ("base/kustomization.yaml", "resources: [class.yaml]\n"),
        ("prod/patch.yaml", &*patch),
        ("prod/kustomization.yaml", "resources: [../base]\npatches: [{path: patch.yaml}]\n"),
    ];
    write(folder.path(), &files);
    let kustomize = |overlay: &str| {
        let mut kubectl = Command::new(binaries::control_plane("kubectl"));
        kubectl.arg("kustomize").arg(folder.path().join(overlay));
        kubectl
    };
    let line = line_of(&mut kustomize("prod"), REFUSED);
    assert_eq!(linted(&mut kustomize("prod")), (Some(1), vec![("KubeletRefusesLabels".to_owned(), line)]));
    assert_eq!(linted(&mut kustomize("base")), (Some(0), Vec::new()));
    assert_eq!(linted(&mut kustomize("none")), (Some(2), Vec::new()));
}
