//! What tests and benchmarks stand on: a real control plane, an AWS, clusters of any size, and the rights that the code
//! needs.

// A test that cannot go on says so and ends.
#![allow(clippy::missing_panics_doc)]

pub mod alerts;
pub mod browser;
pub mod compare;
pub mod confined;
pub mod control_plane;
pub mod corpus;
pub mod demo;
pub mod fixes;
pub mod log_rows;
pub mod moto;
pub mod objects;
pub mod page;
pub mod patience;
pub mod protobuf;
pub mod rights;
pub mod scripts;
pub mod tls_proxy;

use std::env;
use std::path::PathBuf;

pub use programs::{self, debian, go, project, python, target};

/// The program under test, which cargo builds before it runs a test or a benchmark of the package, and names to it
/// since 1.94.
pub fn nodewhy() -> PathBuf {
    env::var_os("CARGO_BIN_EXE_nodewhy").expect("`cargo test` and `cargo bench` say where the program is").into()
}

/// Where a failed test leaves its traces: what cargo tells tests as `CARGO_TARGET_TMPDIR`.
pub fn scratch() -> PathBuf {
    target().join("tmp")
}
