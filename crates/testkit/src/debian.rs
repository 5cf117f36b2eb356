//! Debian's packages, unpacked without installing them: no root, and nothing of the machine changes.

use std::{fs, path::Path, process::Command};

/// Downloads the packages and unpacks them into the folder; `otherwise` is what the tests say where that cannot be.
pub fn unpack(packages: &[&str], otherwise: &str, into: &Path) {
    let run = |command: &mut Command| {
        let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}\n{otherwise}"));
        assert!(output.status.success(), "{command:?}: {}\n{otherwise}", String::from_utf8_lossy(&output.stderr));
    };
    let (lists, cache) = (into.join("apt/lists"), into.join("apt/cache"));
    for folder in [&lists, &cache] {
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
        run(command.args(["-o", "APT::Sandbox::User=root"]).args(arguments));
    };
    apt_get(&["update"]);
    apt_get(&[&["download"], packages].concat());
    let files = fs::read_dir(&cache).expect("made above").flatten().map(|entry| entry.path());
    for package in files.filter(|path| path.extension().is_some_and(|extension| extension == "deb")) {
        run(Command::new("dpkg").arg("-x").arg(package).arg(into));
    }
    fs::remove_dir_all(into.join("apt")).expect("target is writable");
}

fn option(name: &str, path: &Path) -> String {
    format!("{name}={}", path.display())
}
