//! Programs from Go modules, built once into `target/control-plane`.

use crate::download;
use std::{
    env,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

/// The folder with the source of a module (`example.com/module@v1.2.3`).
pub fn module_source(module: &str) -> PathBuf {
    download(|| downloaded(module))
}

/// The same, tried once.
pub fn downloaded(module: &str) -> Result<PathBuf, String> {
    let answer = asked(&["mod", "download", "-json", module])?;
    let answer: serde_json::Value = serde_json::from_str(&answer).map_err(|error| format!("{module}: {error}"))?;
    let folder = answer["Dir"].as_str().ok_or_else(|| format!("go mod download {module} names no folder"))?;
    Ok(folder.into())
}

/// The versions of a module that the proxy lists, without those that its authors took back. A module that has no
/// release has none here.
pub fn versions(module: &str) -> Result<Vec<String>, String> {
    let answer = asked(&["list", "-m", "-versions", "-f", "{{range .Versions}}{{.}} {{end}}", module])?;
    Ok(answer.split_whitespace().map(str::to_owned).collect())
}

/// What go answers. It reads the proxy's address from GOPROXY by itself.
fn asked(arguments: &[&str]) -> Result<String, String> {
    let output = newer_go().current_dir(folder()).args(arguments).output();
    let output = output.map_err(|error| format!("{error}: {NO_GO}"))?;
    let [said, complaint] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    if output.status.success() {
        return Ok(said);
    }
    Err(format!("go {}: {}{}", arguments.join(" "), said.trim(), complaint.trim()))
}

/// The newest Go that a pinned module requires, and a newer one if an unpinned module requires it. The module proxy
/// serves it.
const TOOLCHAIN: &str = "go1.26.10+auto";

/// A program of a Go module that is built by itself, without a go.mod of ours.
pub struct Installed {
    pub module: &'static str,
    /// Below the module.
    pub package: &'static str,
    pub version: &'static str,
}

impl Installed {
    /// As `go install` takes it.
    pub fn argument(&self) -> String {
        format!("{}/{}@{}", self.module, self.package, self.version)
    }
}

/// What reads EKS's NodeConfigs, as eksctl pins it.
pub const NODEADM: &str = "github.com/awslabs/amazon-eks-ami/nodeadm@v0.0.0-20260213141146-147b13ea3f4a";

/// A copy of a module's source that may be written to, for programs that are no dependency of anything.
pub fn writable_source(module: &str, name: &str) -> PathBuf {
    let copy = folder().join(name);
    let mut cp = Command::new("cp");
    cp.args(["-r", "--no-preserve=mode"]).arg(module_source(module).join(".")).arg(&copy);
    assert!(cp.status().is_ok_and(|status| status.success()), "{cp:?}");
    copy
}

/// `go install` into `target/control-plane/NAME`, unless the last one there was of the same `sources` and arguments.
pub fn install(name: &str, sources: &str, working_directory: &Path, arguments: &[&str]) -> PathBuf {
    once(name, &format!("{arguments:?}\n{sources}"), |bin| install_into(bin, working_directory, arguments))
}

/// The same by [`TOOLCHAIN`], for modules that require a newer Go than the machine has.
pub fn install_by_newer_go(name: &str, sources: &str, working_directory: &Path, arguments: &[&str]) -> PathBuf {
    once(name, &format!("{arguments:?}\n{sources}"), |bin| install_by(newer_go, bin, working_directory, arguments))
}

/// `go install` into the folder.
pub fn install_into(bin: &Path, working_directory: &Path, arguments: &[&str]) {
    install_by(go, bin, working_directory, arguments);
}

fn install_by(go: fn() -> Command, bin: &Path, working_directory: &Path, arguments: &[&str]) {
    download(|| {
        let mut go = go();
        let status = go.current_dir(working_directory).env("GOBIN", bin).arg("install").args(arguments).status();
        let status = status.expect(NO_GO);
        if status.success() { Ok(()) } else { Err(format!("go install {arguments:?}: {status}")) }
    });
}

/// The variable that says that everything is built: whoever builds then has found a gap in [`crate::ALL`].
pub const BUILT: &str = "NODEWHY_PROGRAMS_ARE_BUILT";

/// The folder `target/control-plane/NAME`, filled by `make` unless it was filled from the same before.
pub fn once(name: &str, wanted: &str, make: impl FnOnce(&Path)) -> PathBuf {
    let made = folder().join(name);
    fs::create_dir_all(&made).expect("target is writable");
    // Tests run in parallel, in threads and in processes; the lock ends with the file handle.
    let lock = File::create(made.join(".lock")).expect("target is writable");
    lock.lock().expect("target's file system has locks");
    let stamp = made.join(".built-from");
    if fs::read_to_string(&stamp).is_ok_and(|built| built == wanted) {
        return made;
    }
    // A test that builds makes others wait, and is slow for a reason that is not its own.
    assert!(env::var_os(BUILT).is_none(), "{name} is missing in programs::ALL");
    say(&format!("making {} (minutes, the first time)", made.display()));
    let start = Instant::now();
    make(&made);
    fs::write(stamp, wanted).expect("target is writable");
    say(&format!("made {} in {:.0?}", made.display(), start.elapsed()));
    made
}

/// `<target>/control-plane`.
pub fn folder() -> PathBuf {
    let folder = crate::target().join("control-plane");
    fs::create_dir_all(&folder).expect("target is writable");
    folder
}

const NO_GO: &str = "the tests build programs from Go modules: install Go (https://go.dev/dl), in the version of \
                     crates/programs/control-plane/go.mod or later";

/// Past the capture of a test's output: somebody waits.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

fn go() -> Command {
    Command::new("go")
}

fn newer_go() -> Command {
    let mut go = go();
    go.env("GOTOOLCHAIN", TOOLCHAIN);
    go
}
