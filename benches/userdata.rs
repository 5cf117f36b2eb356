//! How long 16 KiB of user data takes to read, the largest that EC2 gives to a machine: plain, and made to be slow.
//!
//! `cargo bench --bench userdata`. `bash -n`, which only parses, stands beside for comparison; half of its time is
//! starting a process.

use divan::Bencher;
use engine::effective::{ClusterIdentity, Machine, resolve};
use engine::objects::NodeClass;
use readers::userdata::Family;
use std::io::Write as _;
use std::process::{Command, Stdio};

const SIZE: usize = 16 * 1024;

const CALL: &str = "/etc/eks/bootstrap.sh \"$CLUSTER\" --kubelet-extra-args \"--node-labels=team=payments \
                    --register-with-taints=a=b:NoSchedule\"\n";

fn main() {
    divan::main();
}

fn filled(head: &str, piece: &str) -> String {
    format!("{head}{}", piece.repeat((SIZE - head.len()) / piece.len()))
}

/// Each a shape at which a careless reader takes the square of its length, with the family that reads it the furthest.
const SHAPES: &[(&str, Family, &str, &str)] = &[
    (
        "script",
        Family::Al2,
        "#!/bin/bash\nCLUSTER=shop\n",
        "if [ -e /opt/x ]; then echo \"$CLUSTER: ${HOME}\" >> /var/log/x; fi\n",
    ),
    ("calls", Family::Al2, "#!/bin/bash\nCLUSTER=shop\n", CALL),
    ("here_documents", Family::Al2, "#!/bin/bash\n", "cat <<E\n"),
    ("doubling_variables", Family::Al2, "#!/bin/bash\nA=xxxxxxxxxxxxxxxx\n", "A=$A$A\n"),
    ("open_parentheses", Family::Al2, "#!/bin/bash\n", "$("),
    ("open_arithmetic", Family::Al2, "#!/bin/bash\n", "(( "),
    ("open_braces", Family::Al2, "#!/bin/bash\n", "{,"),
    ("nested_shells", Family::Al2, "#!/bin/bash\n", "bash -c \"bash -c 'kubelet --v=2'\"; "),
    ("labels", Family::Custom, "#!/bin/bash\n/etc/eks/bootstrap.sh shop --kubelet-extra-args --node-labels=", "a=b,"),
    (
        "boundaries",
        Family::Al2023,
        "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=B\n\n",
        "--B\nContent-Type: text/x-shellscript\n\n#!/bin/bash\n",
    ),
    ("flags", Family::Al2023, FLAGS, "    - --v=2\n"),
    ("unknown_flags", Family::Al2023, FLAGS, "    - --register-with-taint=x\n"),
    ("yaml_nesting", Family::Al2023, "", "[{a: "),
    ("toml_tables", Family::Bottlerocket, "[settings.kubernetes.node-labels]\n", "[[a]]\n"),
    ("toml_labels", Family::Bottlerocket, "[settings.kubernetes.node-labels]\n", "x = 'a'\n"),
    ("powershell", Family::Windows, "", "-KubeletExtraArgs '--v=2'\n"),
];

const FLAGS: &str = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    flags:\n";

/// Read, and merged with the image's and Karpenter's part: all that `nodewhy userdata` does before it prints.
#[divan::bench(args = SHAPES.iter().map(|(name, ..)| *name), sample_count = 20)]
fn analysed(bencher: Bencher, shape: &str) {
    let Some((_, family, head, piece)) = SHAPES.iter().find(|(name, ..)| *name == shape) else { return };
    let mut class = NodeClass::default();
    class.spec.user_data = Some(filled(head, piece));
    let machine = Machine {
        class: &class,
        family: *family,
        pool: None,
        karpenter: None,
        kubernetes: None,
        cluster: ClusterIdentity::default(),
    };
    bencher.bench(|| resolve(divan::black_box(&machine)));
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
    SHAPES.iter().find(|(name, ..)| *name == shape).map(|(_, _, head, piece)| filled(head, piece)).unwrap_or_default()
}

fn parse_with_bash(text: &str) -> bool {
    let Ok(mut bash) = Command::new("bash").arg("-n").stdin(Stdio::piped()).stderr(Stdio::null()).spawn() else {
        return false;
    };
    if let Some(mut stdin) = bash.stdin.take() {
        let _ = stdin.write_all(text.as_bytes());
    }
    bash.wait().is_ok_and(|status| status.success())
}
