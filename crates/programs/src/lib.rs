//! The real programs that the end-to-end tests start: where they come from, how they are built, and what the machine
//! must have for that. It depends on little, so it is built before the tests are, and builds the programs meanwhile.

// A test that cannot go on says so and ends.
#![allow(clippy::missing_panics_doc)]

pub mod agents;
pub mod browser;
pub mod control_plane;
pub mod debian;
pub mod go;
pub mod image;
pub mod linters;
pub mod monitoring;
pub mod oracles;
pub mod pins;
pub mod prerequisites;
pub mod python;
pub mod sandbox;

use std::env;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// The folder of the project.
pub fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("it is <project>/crates/programs")
}

/// Cargo's target folder. Cargo names the program under test to tests, which stands in it, and the folder to nobody.
pub fn target() -> PathBuf {
    let of_tests = env::var_os("CARGO_BIN_EXE_nodewhy").map(PathBuf::from);
    if let Some(target) = of_tests.as_deref().and_then(|program| program.ancestors().nth(2)) {
        return target.to_owned();
    }
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| project().join("target"), PathBuf::from)
}

/// What a download gives; one that fails is tried twice more.
fn download<T>(mut attempt: impl FnMut() -> Result<T, String>) -> T {
    for pause in [2, 10] {
        match attempt() {
            Ok(value) => return value,
            Err(error) => eprintln!("{error}\nonce more in {pause} s"),
        }
        thread::sleep(Duration::from_secs(pause));
    }
    attempt().unwrap_or_else(|error| panic!("{error}"))
}

/// Builds every version.
fn each<T>(versions: &[&str], build: fn(&str) -> T) {
    for version in versions {
        build(version);
    }
}

/// A program, or what belongs to some, and what builds it.
pub type Program = (&'static str, fn());

/// Everything that a test starts, in the order of building: most tests wait for the first.
pub const ALL: &[Program] = &[
    ("etcd, kube-apiserver, kube-controller-manager and kubectl", || drop(control_plane::control_plane("etcd"))),
    ("Karpenter with kwok", || each(&control_plane::KARPENTERS, control_plane::karpenter)),
    ("Karpenter with AWS", || drop(control_plane::aws_karpenter())),
    ("moto", || drop(python::moto())),
    ("the cloud controller of AWS", || drop(control_plane::cloud_controller())),
    ("Prometheus", || drop(monitoring::prometheus("promtool"))),
    ("Alertmanager", || drop(monitoring::alertmanager("amtool"))),
    ("helm", || drop(control_plane::helm())),
    ("a registry", || drop(control_plane::registry())),
    ("libfaketime", || drop(sandbox::faketime())),
    ("bubblewrap", || drop(sandbox::bubblewrap())),
    ("containerd's seccomp profile", || drop(sandbox::seccomp_profile())),
    ("Chromium", || drop(browser::chromium())),
    ("axe-core", || drop(browser::axe())),
    ("the Python client of the Model Context Protocol", || drop(python::mcp_client())),
    ("kubelets", || each(&agents::KUBELETS, agents::kubelet)),
    ("kube-proxies", || each(&agents::KUBE_PROXIES, agents::kube_proxy)),
    ("containerd", || drop(agents::containerds())),
    ("ipamd", || each(&agents::VPC_CNIS, agents::vpc_cni)),
    ("aws-iam-authenticator", || drop(agents::authenticator())),
    ("nodeadm", || drop(agents::nodeadm())),
    ("cloud-init", || drop(agents::cloud_init())),
    ("what Karpenter makes of user data", || drop(oracles::karpenter())),
    ("what nodeadm makes of a NodeConfig", || drop(oracles::nodeadm())),
    ("what the kubelet makes of its flags", || drop(oracles::kubelet())),
    ("the rules of gitleaks", || drop(oracles::secrets())),
    ("what systemd makes of a unit", || drop(oracles::systemd())),
    ("buildah", || drop(image::buildah())),
    ("the base of the image", || drop(image::base())),
    ("actionlint", || drop(linters::actionlint())),
    ("zizmor", || drop(linters::zizmor())),
];
