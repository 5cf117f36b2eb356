//! Chores of this repository, run by `cargo xtask`.

pub mod e2e;
pub mod new_cause;
pub mod site;
pub mod tables;
pub mod upstream;
