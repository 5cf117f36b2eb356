//! The control plane and the controllers that run beside it: Go modules, built once into `target/control-plane`.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use crate::go::{Installed, folder, install, install_by_newer_go};

/// The folder with the go.mod that pins etcd and Kubernetes.
const MODULE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/control-plane");

/// A program of the control plane: from `KUBEBUILDER_ASSETS` where that folder has it, else built from the pinned
/// modules.
pub fn control_plane(name: &str) -> PathBuf {
    if let Some(ready) =
        env::var_os("KUBEBUILDER_ASSETS").map(|folder| Path::new(&folder).join(name)).filter(|path| path.exists())
    {
        return ready;
    }
    // go install builds etcd's server under the name of its directory.
    tools("bin", Path::new(MODULE), ldflags).join(if name == "etcd" { "server" } else { name })
}

/// The folder with the programs of a module's `tool` lines. What the linker is told may depend on its go.mod.
pub fn tools(folder: &str, module: &Path, ldflags: impl FnOnce(&str) -> String) -> PathBuf {
    let go_mod = fs::read_to_string(module.join("go.mod")).expect("the module has a go.mod");
    install(folder, &go_mod, module, &[&ldflags(&go_mod), "tool"])
}

/// Both of core and of the AWS provider, which `tests/e2e/oracles/karpenter/go.mod` pins.
pub const NEWEST_KARPENTER: &str = "1.15.0";

/// The versions of Karpenter that the tests run: the oldest and the newest.
pub const KARPENTERS: [&str; 2] = ["1.0.5", NEWEST_KARPENTER];

/// Karpenter with its kwok provider, which makes Node objects instead of machines.
pub fn karpenter(version: &str) -> PathBuf {
    let package = format!("sigs.k8s.io/karpenter/kwok@v{version}");
    let name = format!("karpenter-{version}");
    install_by_newer_go(&name, "", &folder(), &["-ldflags=-s -w", &package]).join("kwok")
}

/// Karpenter with its AWS provider, of the version that the oracle of user data pins.
pub fn aws_karpenter() -> PathBuf {
    let module = crate::project().join("tests/e2e/oracles/karpenter");
    let go_mod = fs::read_to_string(module.join("go.mod")).expect("the module has a go.mod");
    install_by_newer_go("karpenter-aws", &go_mod, &module, &["-ldflags=-s -w", "tool"]).join("controller")
}

/// The cloud controller of AWS.
pub fn cloud_controller() -> PathBuf {
    let module = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/cloud-controller"));
    tools("cloud-controller", module, |_| "-ldflags=-s -w".to_owned()).join("aws-cloud-controller-manager")
}

pub const HELM: Installed = Installed { module: "helm.sh/helm/v3", package: "cmd/helm", version: "v3.22.0" };

/// helm, by itself: its Kubernetes libraries are of another version than the control plane's.
pub fn helm() -> PathBuf {
    install("helm-3.22.0", "", &folder(), &["-ldflags=-s -w", &HELM.argument()]).join("helm")
}

pub const REGISTRY: Installed =
    Installed { module: "github.com/google/go-containerregistry", package: "cmd/registry", version: "v0.22.1" };

/// A registry that forgets what it holds when it ends.
pub fn registry() -> PathBuf {
    install("registry-0.22.1", "", &folder(), &["-ldflags=-s -w", &REGISTRY.argument()]).join("registry")
}

/// Without its version kube-apiserver calls itself v0.0.0-master, which clients refuse.
fn ldflags(go_mod: &str) -> String {
    let required = go_mod.lines().find_map(|line| line.trim().strip_prefix("k8s.io/kubernetes v"));
    let version = required.and_then(|version| version.split(' ').next()).expect("go.mod requires Kubernetes");
    let mut numbers = version.split('.');
    let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    let package = "k8s.io/component-base/version";
    format!(
        "-ldflags=-s -w -X {package}.gitVersion=v{version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
    )
}
