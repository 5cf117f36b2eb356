//! What tests and benchmarks stand on: a real control plane, an AWS, clusters of any size, and the rights that the code
//! needs.

// A test that cannot go on says so and ends.
#![allow(clippy::missing_panics_doc)]

pub mod browser;
pub mod confined;
pub mod control_plane;
pub mod debian;
pub mod demo;
pub mod fixes;
pub mod go;
pub mod moto;
pub mod objects;
pub mod python;
pub mod rights;
pub mod tls_proxy;

use std::env;
use std::path::{Path, PathBuf};

/// The folder of the project.
pub fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("it is <project>/crates/testkit")
}

/// The program under test, which cargo builds before it runs a test or a benchmark of the package, and names to it
/// since 1.94.
pub fn nodewhy() -> PathBuf {
    env::var_os("CARGO_BIN_EXE_nodewhy").expect("`cargo test` and `cargo bench` say where the program is").into()
}

/// Cargo's target folder, which it names to tests but not to a library.
pub fn target() -> PathBuf {
    nodewhy().ancestors().nth(2).expect("it is <target>/<profile>/nodewhy").into()
}

/// Where a failed test leaves its traces: what cargo tells tests as `CARGO_TARGET_TMPDIR`.
pub fn scratch() -> PathBuf {
    target().join("tmp")
}
