//! Python environments with pinned wheels, made once into `target/NAME`.

use crate::{download, project};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The Python that has what the file of requirements names, with hashes; made anew where that has changed.
/// Of tests that ask at once, one makes it and the others wait.
pub fn environment(name: &str, requirements: &Path) -> PathBuf {
    let wanted = fs::read_to_string(requirements).expect("the requirements");
    let environment = crate::target().join(name);
    let turn = File::create(environment.with_extension("lock")).expect("target is writable");
    turn.lock().expect("a lock on a file");
    let (python, done) = (environment.join("bin/python"), environment.join("requirements.txt"));
    if fs::read_to_string(&done).is_ok_and(|have| have == wanted) {
        return python;
    }
    let run = |command: &mut Command| {
        let output =
            command.output().map_err(|error| format!("{command:?}: {error}; the tests need python3 with venv"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.success() { Ok(()) } else { Err(format!("{command:?}: {said}")) }
    };
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))
        .unwrap_or_else(|error| panic!("{error}"));
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"];
    download(|| run(Command::new(&python).args(install).args(["--only-binary", ":all:", "-r"]).arg(requirements)));
    fs::write(done, wanted).expect("target is writable");
    python
}

/// The Python that runs moto.
pub fn moto() -> PathBuf {
    environment("moto", &project().join("crates/programs/moto/requirements.txt"))
}

/// The Python with the SDK of the Model Context Protocol.
pub fn mcp_client() -> PathBuf {
    environment("mcp", &project().join("tests/e2e/mcp/requirements.txt"))
}
