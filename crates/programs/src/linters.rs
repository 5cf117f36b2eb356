//! What finds faults in workflows.

use std::path::PathBuf;

use crate::{go, project, python};

pub fn actionlint() -> PathBuf {
    const ACTIONLINT: &str = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12";
    go::install("actionlint", ACTIONLINT, project(), &[ACTIONLINT]).join("actionlint")
}

pub fn zizmor() -> PathBuf {
    let requirements = project().join("tests/e2e/release/requirements.txt");
    python::environment("zizmor", &requirements).with_file_name("zizmor")
}
