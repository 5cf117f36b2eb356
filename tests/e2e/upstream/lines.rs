//! What programs print: the text of each row of the table of log lines stands in the file that the row names.

use crate::upstream::table::Table;
use logs::table::{FILES, reasons, rows};
use std::fs;
use testkit::go::module_source;

/// Whose source no Go module of a pinned version holds, and why.
const NOT_LOOKED_UP: &[(&str, &str)] = &[
    ("github.com/aws/karpenter", "before 0.28 it stands under this name, which is pinned nowhere"),
    ("AWS EC2 HTTP NVIDIA", "it is documented, or seen, and nowhere open"),
    ("Linux glibc mdadm bash curl apt systemd rpm-software-management NVIDIA/", "it is written in C"),
    ("kubernetes-sigs/aws-ebs-csi-driver projectcalico/ cilium/", "no program here pins it"),
    ("botocore canonical/cloud-init", "it is written in Python"),
    ("bottlerocket-os/", "it is written in Rust, and published nowhere"),
    ("aws/eks-pod-identity-agent", "no module proxy has it"),
    ("docs.aws.amazon.com", "it is an address that AWS documents"),
    ("Start-EKSBootstrap.ps1 EC2Launch AWS.Tools", "it is seen on Windows, and published nowhere"),
    ("PowerShell/", "it is written in C#"),
    ("awslabs/amazon-eks-ami", "its scripts are no module, and nodeadm has no tags"),
    ("golang/go", "it is the toolchain's own, whose version is the machine's"),
    (
        "pelletier/go-toml grpc-go opencontainers/runc spf13/pflag sigs.k8s.io/controller-runtime sigs.k8s.io/yaml",
        "a program's go.mod tells the version",
    ),
    (
        "containerd k8s.io/apiextensions-apiserver k8s.io/kubernetes k8s.io/client-go k8s.io/cloud-provider aws/amazon-vpc-cni-k8s aws-sdk-go-v2 github.com/aws/aws-sdk-go sigs.k8s.io/karpenter github.com/aws/karpenter-provider-aws",
        "another version than those that are pinned",
    ),
];

/// Module and file of a row that can be looked up.
fn place(source: &str, pins: &[&str]) -> Option<(String, String)> {
    let mut words = source.split(' ');
    let (name, version, file) = (words.next()?, words.next()?, words.next()?);
    let module = match name {
        "containerd/containerd" => "github.com/containerd/containerd/v2".to_owned(),
        "aws/amazon-vpc-cni-k8s" => format!("github.com/{name}"),
        "sigs.k8s.io/karpenter" | "sigs.k8s.io/aws-iam-authenticator" => name.to_owned(),
        _ if name.starts_with("k8s.io/") || name.starts_with("github.com/") => name.to_owned(),
        _ => return None,
    };
    let is_pinned = pins.contains(&version);
    is_pinned.then(|| (format!("{module}@{version}"), file.trim_end_matches([';', ',']).to_owned()))
}

/// Whether a piece of what is said stands there. Errors are put together from several files, `doing this: doing that`:
/// one of them is enough.
fn stands_in(says: &str, file: &str, text: &str) -> bool {
    const LEAST: usize = 8;
    let pieces = says.split(['{', '}', '"', '\'', '`']).flat_map(|piece| piece.split(": "));
    let letters = |piece: &str| piece.chars().filter(char::is_ascii_alphabetic).count();
    let mut pieces = pieces.map(|piece| piece.trim_matches([' ', ':', ',', '.']));
    pieces.any(|piece| letters(piece) >= LEAST && !file.ends_with(piece) && text.contains(piece))
}

#[test]
fn what_programs_print_stands_in_their_source() {
    let table = Table::read();
    let pins: Vec<&str> = table.pins.values().flatten().map(String::as_str).collect();
    let said = FILES.iter().flat_map(|(_, text)| rows(text).expect("the table")).map(|row| (row.says, row.source));
    let reasons = reasons().expect("the reasons").into_iter().map(|row| (row.says, row.source));
    let (mut complaints, mut looked_up) = (Vec::new(), 0);
    for (says, source) in said.chain(reasons) {
        let Some((module, file)) = place(&source, &pins) else {
            let is_excused = |(names, _): &(&str, &str)| names.split(' ').any(|name| source.starts_with(name));
            if !NOT_LOOKED_UP.iter().any(is_excused) {
                complaints.push(format!("{says}: {source} is no source that is looked up"));
            }
            continue;
        };
        looked_up += 1;
        let text = fs::read_to_string(module_source(&module).join(&file)).unwrap_or_default().replace("\\\"", "\"");
        if !stands_in(&says, &file, &text) {
            complaints.push(format!("{says}: not in {module} {file}"));
        }
    }
    assert!(complaints.is_empty(), "{} of {looked_up}:\n{}", complaints.len(), complaints.join("\n"));
    assert!(looked_up >= 99, "{looked_up} rows are looked up");
}
