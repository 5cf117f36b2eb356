//! Prometheus and Alertmanager, from the PATH or from Debian's packages.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::debian;
use crate::go::once;

const NO_PROMETHEUS: &str = "the tests take prometheus and promtool from the PATH, or on Debian and Ubuntu from the \
                             package prometheus: install them";

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
