//! Where the programs come from: Go modules, built once into `target/control-plane`, and for Prometheus a package of
//! Debian.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::debian;
use crate::go::{folder, install, once};

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

/// Karpenter with its kwok provider, which makes Node objects instead of machines.
pub fn karpenter(version: &str) -> PathBuf {
    let package = format!("sigs.k8s.io/karpenter/kwok@v{version}");
    install(&format!("karpenter-{version}"), "", &folder(), &["-ldflags=-s -w", &package]).join("kwok")
}

/// Karpenter with its AWS provider, of the version that the oracle of user data pins.
pub fn aws_karpenter() -> PathBuf {
    let module = crate::project().join("tests/oracles/karpenter");
    tools("karpenter-aws", &module, |_| "-ldflags=-s -w".to_owned()).join("controller")
}

/// The cloud controller of AWS.
pub fn cloud_controller() -> PathBuf {
    let module = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/cloud-controller"));
    tools("cloud-controller", module, |_| "-ldflags=-s -w".to_owned()).join("aws-cloud-controller-manager")
}

/// helm, by itself: its Kubernetes libraries are of another version than the control plane's.
pub fn helm() -> PathBuf {
    install("helm-3.20.0", "", &folder(), &["-ldflags=-s -w", "helm.sh/helm/v3/cmd/helm@v3.20.0"]).join("helm")
}

/// A registry that forgets what it holds when it ends.
pub fn registry() -> PathBuf {
    let package = "github.com/google/go-containerregistry/cmd/registry@v0.20.6";
    install("registry-0.20.6", "", &folder(), &["-ldflags=-s -w", package]).join("registry")
}

const NO_PROMETHEUS: &str = "the tests take prometheus and promtool from the PATH, or on Debian and Ubuntu from the package prometheus: install them";

/// `prometheus` or `promtool`: what the PATH has, else Debian's. Its Go module has `replace` lines, which go install
/// refuses.
pub fn prometheus(name: &str) -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    let ready = env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file());
    ready.unwrap_or_else(|| {
        once("prometheus", "Debian's package", |folder| debian::unpack(&["prometheus"], NO_PROMETHEUS, folder))
            .join("usr/bin")
            .join(name)
    })
}

const NO_ALERTMANAGER: &str = "the tests take Alertmanager from Debian's package prometheus-alertmanager";

/// `prometheus-alertmanager` or `amtool`, which look for their own templates where the package installs them.
pub fn alertmanager(name: &str) -> Command {
    let unpack = |folder: &Path| debian::unpack(&["prometheus-alertmanager"], NO_ALERTMANAGER, folder);
    let folder = once("alertmanager", "Debian's package", unpack);
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c"]);
    command.arg(r#"mount --bind "$1/usr/share" /usr/share && shift && exec "$@""#).arg("sh").arg(&folder);
    command.arg(folder.join("usr/bin").join(name));
    command
}

/// The library that gives a program another clock, with `LD_PRELOAD`.
pub fn faketime() -> PathBuf {
    const NO_FAKETIME: &str = "the tests take libfaketime from Debian's package of that name";
    let folder = once("faketime", "Debian's package", |folder| debian::unpack(&["libfaketime"], NO_FAKETIME, folder));
    let triplets = fs::read_dir(folder.join("usr/lib")).expect("the package has a library").flatten();
    let library = triplets.map(|triplet| triplet.path().join("faketime/libfaketimeMT.so.1")).find(|path| path.exists());
    library.expect("the package has a library")
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
