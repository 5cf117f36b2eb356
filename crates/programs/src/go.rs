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
    let output = download(|| {
        let mut go = go();
        go.current_dir(folder()).env("GOTOOLCHAIN", TOOLCHAIN).args(["mod", "download", "-json", module]);
        let output = go.output().expect(NO_GO);
        let said = String::from_utf8_lossy(&output.stdout);
        if output.status.success() { Ok(output.stdout) } else { Err(format!("go mod download {module}: {said}")) }
    });
    let answer: serde_json::Value = serde_json::from_slice(&output).expect("go writes JSON");
    answer["Dir"].as_str().expect("a downloaded module has a folder").into()
}

/// The newest Go that a pinned module requires. Only downloads use it, and the module proxy serves it.
const TOOLCHAIN: &str = "go1.26.10";

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

/// `go install` into the folder.
pub fn install_into(bin: &Path, working_directory: &Path, arguments: &[&str]) {
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

const NO_GO: &str = "the tests build programs from Go modules: install Go (https://go.dev/dl), in the version of crates/programs/control-plane/go.mod or later";

/// Past the capture of a test's output: somebody waits.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

fn go() -> Command {
    Command::new("go")
}
