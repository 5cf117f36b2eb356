//! Prometheus from Debian's package, unpacked without installing it: no root, and nothing of the machine changes.

use std::{fs, path::Path, process::Command};

const NO_DEBIAN: &str =
    "the tests take prometheus and promtool from the PATH, or on Debian and Ubuntu from the package prometheus: install them";

/// Downloads the package and unpacks it into the folder.
pub fn unpack(into: &Path) {
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
    apt_get(&["download", "prometheus"]);
    let mut files = fs::read_dir(&cache).expect("made above").flatten().map(|entry| entry.path());
    let package = files.find(|path| path.extension().is_some_and(|extension| extension == "deb")).expect("apt-get download makes a file");
    run(Command::new("dpkg").arg("-x").arg(package).arg(into));
    fs::remove_dir_all(into.join("apt")).expect("target is writable");
}

fn option(name: &str, path: &Path) -> String {
    format!("{name}={}", path.display())
}

fn run(command: &mut Command) {
    let output = command.output().expect(NO_DEBIAN);
    assert!(output.status.success(), "{command:?}: {}\n{NO_DEBIAN}", String::from_utf8_lossy(&output.stderr));
}
