//! Debian's packages, unpacked without installing them: no root, and nothing of the machine changes.

use crate::download;
use std::{fs, path::Path, process::Command};

/// Downloads the packages and unpacks them into the folder; `otherwise` is what the tests say where that cannot be.
pub fn unpack(packages: &[&str], otherwise: &str, into: &Path) {
    unpack_by(&["download"], packages, otherwise, into);
}

/// The same with what they need that this machine lacks.
pub fn unpack_with_dependencies(packages: &[&str], otherwise: &str, into: &Path) {
    // Nothing is installed, so nothing of the machine's is locked.
    let arguments = ["-o", "Debug::NoLocking=true", "--yes", "--download-only", "--no-install-recommends", "install"];
    unpack_by(&arguments, packages, otherwise, into);
}

fn unpack_by(arguments: &[&str], packages: &[&str], otherwise: &str, into: &Path) {
    let run = |command: &mut Command| {
        let output = command.output().map_err(|error| format!("{command:?}: {error}\n{otherwise}"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.success() { Ok(()) } else { Err(format!("{command:?}: {said}\n{otherwise}")) }
    };
    let (lists, cache) = (into.join("apt/lists"), into.join("apt/cache"));
    // What `install` downloads goes to a folder of its own.
    let archives = cache.join("archives");
    for folder in [&lists, &cache, &archives] {
        fs::create_dir_all(folder.join("partial")).expect("target is writable");
    }
    // Lists of our own: the machine's may be missing, as in images, or old, and only root may renew them.
    let apt_get = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command
            .current_dir(&cache)
            .arg("-qq")
            .arg("-o")
            .arg(option("Dir::State::Lists", &lists))
            .arg("-o")
            .arg(option("Dir::Cache", &cache));
        command.args(["-o", "APT::Sandbox::User=root"]).args(arguments);
        download(|| run(&mut command));
    };
    apt_get(&["update"]);
    apt_get(&[arguments, packages].concat());
    let files = [&cache, &archives].into_iter().flat_map(|folder| fs::read_dir(folder).expect("made above"));
    let files = files.flatten().map(|entry| entry.path());
    for package in files.filter(|path| path.extension().is_some_and(|extension| extension == "deb")) {
        run(Command::new("dpkg").arg("-x").arg(package).arg(into)).unwrap_or_else(|error| panic!("{error}"));
    }
    fs::remove_dir_all(into.join("apt")).expect("target is writable");
}

fn option(name: &str, path: &Path) -> String {
    format!("{name}={}", path.display())
}
