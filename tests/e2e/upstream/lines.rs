//! What programs print: the text of each row of the table of log lines stands in the file that the row names.

use std::fs;
use testkit::go::module_source;
use testkit::project;
use xtask::upstream::lines::{SaidLine, all, place, stands_in, unquoted};
use xtask::upstream::table::Table;

/// Whose source no Go module of a pinned version holds, and why.
const NOT_LOOKED_UP: &[(&str, &str)] = &[
    ("github.com/aws/karpenter", "before 0.28 it stands under this name, which is pinned nowhere"),
    ("AWS EC2 HTTP NVIDIA", "it is documented, or seen, and nowhere open"),
    ("Linux GNU glibc iptables mdadm bash curl apt systemd rpm-software-management NVIDIA/", "it is written in C"),
    ("kubernetes-sigs/aws-ebs-csi-driver projectcalico/ cilium/", "no program here pins it"),
    ("botocore aws/aws-cli canonical/cloud-init", "it is written in Python"),
    ("dracutdevs/", "it is written in shell"),
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
        "containerd k8s.io/apiextensions-apiserver k8s.io/apimachinery k8s.io/kubernetes k8s.io/client-go k8s.io/cloud-provider \
         aws/amazon-vpc-cni-k8s aws-sdk-go-v2 github.com/aws/aws-sdk-go sigs.k8s.io/karpenter \
         github.com/aws/karpenter-provider-aws",
        "another version than those that are pinned",
    ),
];

#[test]
fn what_programs_print_stands_in_their_source() {
    let table = Table::read(project()).expect("the table");
    let pins: Vec<&str> = table.pins.values().flatten().map(String::as_str).collect();
    let (mut complaints, mut looked_up) = (Vec::new(), 0);
    for SaidLine { says, source } in all(project()).expect("the tables") {
        let Some((module, version, file)) = place(&source).filter(|(_, version, _)| pins.contains(version)) else {
            let is_excused = |(names, _): &(&str, &str)| names.split(' ').any(|name| source.starts_with(name));
            if !NOT_LOOKED_UP.iter().any(is_excused) {
                complaints.push(format!("{says}: {source} is no source that is looked up"));
            }
            continue;
        };
        looked_up += 1;
        let module = format!("{module}@{version}");
        let text = unquoted(&fs::read_to_string(module_source(&module).join(file)).unwrap_or_default());
        if !stands_in(&says, file, &text) {
            complaints.push(format!("{says}: not in {module} {file}"));
        }
    }
    assert!(complaints.is_empty(), "{} of {looked_up}:\n{}", complaints.len(), complaints.join("\n"));
    assert!(looked_up >= 99, "{looked_up} rows are looked up");
}
