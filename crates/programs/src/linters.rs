//! What finds faults in workflows.

use std::path::PathBuf;

use crate::go::{self, Installed};
use crate::{project, python};

pub const ACTIONLINT: Installed =
    Installed { module: "github.com/rhysd/actionlint", package: "cmd/actionlint", version: "v1.7.12" };

pub fn actionlint() -> PathBuf {
    let package = ACTIONLINT.argument();
    go::install("actionlint", &package, project(), &[&package]).join("actionlint")
}

pub fn zizmor() -> PathBuf {
    let requirements = project().join("tests/e2e/release/requirements.txt");
    python::environment("zizmor", &requirements).with_file_name("zizmor")
}
