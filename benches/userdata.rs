//! How long 16 KiB of user data takes to read, the largest that EC2 gives to a machine: plain, and made to be slow.
//!
//! `cargo bench --bench userdata`. `bash -n`, which only parses, stands beside for comparison; half of its time is starting a process.

use divan::Bencher;
use nodewhy::userdata::{self, Family};
use std::io::Write as _;
use std::process::{Command, Stdio};

const SIZE: usize = 16 * 1024;

const CALL: &str =
    "/etc/eks/bootstrap.sh \"$CLUSTER\" --kubelet-extra-args \"--node-labels=team=payments --register-with-taints=a=b:NoSchedule\"\n";

fn main() {
    divan::main();
}

fn filled(head: &str, piece: &str) -> String {
    format!("{head}{}", piece.repeat((SIZE - head.len()) / piece.len()))
}

/// Each a shape at which a careless reader takes the square of its length.
const SHAPES: &[(&str, &str, &str)] = &[
    ("script", "#!/bin/bash\nCLUSTER=shop\n", "if [ -e /opt/x ]; then echo \"$CLUSTER: ${HOME}\" >> /var/log/x; fi\n"),
    ("calls", "#!/bin/bash\nCLUSTER=shop\n", CALL),
    ("here_documents", "#!/bin/bash\n", "cat <<E\n"),
    ("doubling_variables", "#!/bin/bash\nA=xxxxxxxxxxxxxxxx\n", "A=$A$A\n"),
    ("open_parentheses", "#!/bin/bash\n", "$("),
    ("open_arithmetic", "#!/bin/bash\n", "(( "),
    ("open_braces", "#!/bin/bash\n", "{,"),
    ("nested_shells", "#!/bin/bash\n", "bash -c \"bash -c 'kubelet --v=2'\"; "),
    (
        "boundaries",
        "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=B\n\n",
        "--B\nContent-Type: text/x-shellscript\n\n#!/bin/bash\n",
    ),
    ("flags", "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    flags:\n", "    - --v=2\n"),
    ("yaml_nesting", "", "[{a: "),
    ("toml_tables", "[settings.kubernetes.node-labels]\n", "[[a]]\n"),
    ("powershell", "", "-KubeletExtraArgs '--v=2'\n"),
];

const FAMILIES: [Family; 5] = [Family::Al2, Family::Al2023, Family::Bottlerocket, Family::Windows, Family::Custom];

/// All five families one after the other: a fifth of this is one reading.
#[divan::bench(args = SHAPES.iter().map(|(name, ..)| *name), sample_count = 20)]
fn five_families(bencher: Bencher, shape: &str) {
    let text = text(shape);
    bencher.bench(|| FAMILIES.map(|family| userdata::read(divan::black_box(&text), family)));
}

#[divan::bench(args = ["script", "calls", "here_documents", "nested_shells"], sample_count = 20)]
fn as_script(bencher: Bencher, shape: &str) {
    let text = text(shape);
    bencher.bench(|| userdata::read(divan::black_box(&text), Family::Al2));
}

#[divan::bench(args = ["script", "calls", "here_documents", "nested_shells"], sample_count = 20)]
fn bash_n(bencher: Bencher, shape: &str) {
    let text = text(shape);
    bencher.bench(|| parse_with_bash(&text));
}

/// What starting a process alone takes.
#[divan::bench(sample_count = 20)]
fn bash_n_of_nothing(bencher: Bencher) {
    bencher.bench(|| parse_with_bash(""));
}

fn text(shape: &str) -> String {
    SHAPES.iter().find(|(name, ..)| *name == shape).map(|(_, head, piece)| filled(head, piece)).unwrap_or_default()
}

fn parse_with_bash(text: &str) -> bool {
    let Ok(mut bash) = Command::new("bash").arg("-n").stdin(Stdio::piped()).stderr(Stdio::null()).spawn() else { return false };
    if let Some(mut stdin) = bash.stdin.take() {
        let _ = stdin.write_all(text.as_bytes());
    }
    bash.wait().is_ok_and(|status| status.success())
}
