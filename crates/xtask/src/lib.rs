//! Chores of this repository, run by `cargo xtask`.

pub mod new_cause;
pub mod site;
pub mod tables;
