//! Where the programs come from: Go modules, built once into `target/control-plane`, and for Prometheus a package of Debian.

use super::debian;
use std::{
    env,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

/// The folder with this module's go.mod, which pins etcd and Kubernetes.
const MODULE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/control-plane");

/// A program of the control plane: from `KUBEBUILDER_ASSETS` where that folder has it, else built from the pinned modules.
pub fn control_plane(name: &str) -> PathBuf {
    if let Some(ready) = env::var_os("KUBEBUILDER_ASSETS").map(|folder| Path::new(&folder).join(name)).filter(|path| path.exists()) {
        return ready;
    }
    let go_mod = fs::read_to_string(Path::new(MODULE).join("go.mod")).expect("go.mod is beside this file");
    // go install builds etcd's server under the name of its directory.
    install("bin", &go_mod, MODULE, &[&ldflags(&go_mod), "tool"]).join(if name == "etcd" { "server" } else { name })
}

/// Karpenter with its kwok provider, which makes Node objects instead of machines.
pub fn karpenter(version: &str) -> PathBuf {
    let package = format!("sigs.k8s.io/karpenter/kwok@v{version}");
    install(&format!("karpenter-{version}"), "", ".", &["-ldflags=-s -w", &package]).join("kwok")
}

/// helm, by itself: its Kubernetes libraries are of another version than the control plane's.
pub fn helm() -> PathBuf {
    install("helm-3.20.0", "", ".", &["-ldflags=-s -w", "helm.sh/helm/v3/cmd/helm@v3.20.0"]).join("helm")
}

/// `prometheus` or `promtool`: what the PATH has, else Debian's. Its Go module has `replace` lines, which go install refuses.
pub fn prometheus(name: &str) -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    let ready = env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file());
    ready.unwrap_or_else(|| once("prometheus", "Debian's package", debian::unpack).join("usr/bin").join(name))
}

/// The folder with the source of a module (`example.com/module@v1.2.3`), for the manifests in it.
pub fn module_source(module: &str) -> PathBuf {
    let output = go().current_dir(folder()).args(["mod", "download", "-json", module]).output().expect(NO_GO);
    assert!(output.status.success(), "go mod download {module}: {}", String::from_utf8_lossy(&output.stdout));
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("go writes JSON");
    answer["Dir"].as_str().expect("a downloaded module has a folder").into()
}

/// Without its version kube-apiserver calls itself v0.0.0-master, which clients refuse.
fn ldflags(go_mod: &str) -> String {
    let required = go_mod.lines().find_map(|line| line.trim().strip_prefix("k8s.io/kubernetes v"));
    let version = required.and_then(|version| version.split(' ').next()).expect("go.mod requires Kubernetes");
    let mut numbers = version.split('.');
    let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    let package = "k8s.io/component-base/version";
    format!("-ldflags=-s -w -X {package}.gitVersion=v{version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}")
}

/// `go install` into `target/control-plane/NAME`, unless the last one there was of the same `sources` and arguments.
fn install(name: &str, sources: &str, working_directory: &str, arguments: &[&str]) -> PathBuf {
    once(name, &format!("{arguments:?}\n{sources}"), |bin| {
        let working_directory = folder().join(working_directory);
        let status = go().current_dir(working_directory).env("GOBIN", bin).arg("install").args(arguments).status().expect(NO_GO);
        assert!(status.success(), "go install {arguments:?}: {status}");
    })
}

/// The folder `target/control-plane/NAME`, filled by `make` unless it was filled from the same before.
fn once(name: &str, wanted: &str, make: impl FnOnce(&Path)) -> PathBuf {
    let made = folder().join(name);
    fs::create_dir_all(&made).expect("target is writable");
    // Tests run in parallel, in threads and in processes; the lock ends with the file handle.
    let lock = File::create(made.join(".lock")).expect("target is writable");
    lock.lock().expect("target's file system has locks");
    let stamp = made.join(".built-from");
    if fs::read_to_string(&stamp).is_ok_and(|built| built == wanted) {
        return made;
    }
    say(&format!("making {} (minutes, the first time)", made.display()));
    let start = Instant::now();
    make(&made);
    fs::write(stamp, wanted).expect("target is writable");
    say(&format!("made {} in {:.0?}", made.display(), start.elapsed()));
    made
}

const NO_GO: &str = "the tests build a control plane from Go modules: install Go (https://go.dev/dl), in the version of tests/control-plane/go.mod or later";

/// Past the capture of a test's output: somebody waits.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

fn go() -> Command {
    Command::new("go")
}

fn folder() -> PathBuf {
    // <target>/tmp is the one path in the target directory that cargo tells integration tests.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it is <target>/tmp");
    let folder = target.join("control-plane");
    fs::create_dir_all(&folder).expect("target is writable");
    folder
}
