//! Agents of a node, of the versions that `tests/e2e/real_logs` brings into trouble.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::debian;
use crate::go::{Installed, NODEADM, folder, install, install_into, once, writable_source};
use crate::project;

/// The folders of `go.mod`s: the newest kubelet, beside which the runtime stands, and two that machines still have.
pub const KUBELETS: [&str; 3] = ["kubelet", "kubelet-1.34", "kubelet-1.28"];

/// A program of one version.
pub struct Kubelet {
    pub folder: PathBuf,
    pub minor: u32,
}

pub fn kubelet(name: &str) -> Kubelet {
    let source = project().join("tests/e2e/real_logs").join(name);
    let text = ["go.mod", "main.go"].map(|file| fs::read_to_string(source.join(file)).unwrap_or_default()).concat();
    let pinned =
        |line: &str| Some(line.trim().trim_start_matches("require ").strip_prefix("k8s.io/kubernetes v")?.to_owned());
    let version = text.lines().find_map(pinned).expect("a pin");
    let version = version.trim_end_matches(" // indirect");
    let flags = format!("-ldflags=-s -w -X k8s.io/component-base/version.gitVersion=v{version}");
    let mut programs = vec![flags.as_str(), "k8s.io/kubernetes/cmd/kubelet"];
    programs.extend(source.join("main.go").exists().then_some("."));
    let minor = version.split('.').nth(1).and_then(|minor| minor.parse().ok()).expect("1.28.15 has a minor");
    Kubelet { folder: install(name, &text, &source, &programs), minor }
}

/// The modules that have a kube-proxy too.
pub const KUBE_PROXIES: [&str; 2] = ["kubelet", "kubelet-1.34"];

/// kube-proxy of the module in that folder.
pub fn kube_proxy(version: &str) -> PathBuf {
    let source = project().join("tests/e2e/real_logs").join(version);
    let go_mod = fs::read_to_string(source.join("go.mod")).expect("a pin");
    let name = version.replace("kubelet", "kube-proxy");
    install(&name, &go_mod, &source, &["-ldflags=-s -w", "k8s.io/kubernetes/cmd/kube-proxy"]).join("kube-proxy")
}

const NO_CONTAINERD: &str = "the tests take containerd 1.6 from Debian's package of that name";

/// containerd 2 from its module, and 1.6 as Debian has it.
pub fn containerds() -> [(&'static str, PathBuf); 2] {
    let source = project().join("tests/e2e/real_logs/containerd");
    let text = fs::read_to_string(source.join("go.mod")).expect("it is here");
    let second = install("containerd", &text, &source, &["-ldflags=-s -w", "tool"]).join("containerd");
    let first = once("containerd-debian", "Debian's package", |folder| {
        debian::unpack(&["containerd"], NO_CONTAINERD, folder);
    });
    [("2", second), ("1.6", first.join("usr/bin/containerd"))]
}

pub const VPC_CNIS: [&str; 2] = ["1.23.2", "1.20.4"];

/// Its Go module.
pub fn vpc_cni_module(version: &str) -> String {
    format!("github.com/aws/amazon-vpc-cni-k8s@v{version}")
}

/// ipamd of one version.
pub fn vpc_cni(version: &str) -> PathBuf {
    let (module, name) = (vpc_cni_module(version), format!("vpc-cni-{version}"));
    once(&name, &module, |bin| {
        let source = writable_source(&module, &format!("{name}-source"));
        install_into(bin, &source, &["-ldflags=-s -w", "./cmd/aws-k8s-agent"]);
    })
    .join("aws-k8s-agent")
}

pub const AUTHENTICATOR: Installed =
    Installed { module: "sigs.k8s.io/aws-iam-authenticator", package: "cmd/aws-iam-authenticator", version: "v0.6.13" };

pub fn authenticator() -> PathBuf {
    let arguments = ["-ldflags=-s -w", &AUTHENTICATOR.argument()];
    install("aws-iam-authenticator-0.6.13", "", &folder(), &arguments).join("aws-iam-authenticator")
}

pub fn nodeadm() -> PathBuf {
    once("nodeadm", NODEADM, |bin| {
        let source = writable_source(NODEADM, "nodeadm-source");
        install_into(bin, &source, &["-ldflags=-s -w", "./cmd/nodeadm"]);
    })
    .join("nodeadm")
}

const NO_CLOUD_INIT: &str = "the tests take cloud-init 22.4 from Debian 12's package of that name";

/// It, and the Python that it is written in, which the machine runs.
pub fn cloud_init() -> PathBuf {
    const PACKAGES: [&str; 18] = [
        "cloud-init",
        "python3-attr",
        "python3-certifi",
        "python3-chardet",
        "python3-configobj",
        "python3-idna",
        "python3-jinja2",
        "python3-json-pointer",
        "python3-jsonpatch",
        "python3-jsonschema",
        "python3-markupsafe",
        "python3-oauthlib",
        "python3-pyrsistent",
        "python3-requests",
        "python3-serial",
        "python3-six",
        "python3-urllib3",
        "python3-yaml",
    ];
    once("cloud-init", &PACKAGES.join(" "), |folder| {
        debian::unpack(&PACKAGES, NO_CLOUD_INIT, folder);
        let compiled = Command::new("python3").args(["-m", "compileall", "-q"]).arg(folder.join("usr/lib")).status();
        assert!(compiled.is_ok_and(|status| status.success()), "{NO_CLOUD_INIT}, and run it with python3");
    })
}
