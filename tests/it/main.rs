//! The tests that need nothing but Rust and a C compiler.

mod answers;
mod bad_input;
mod benchmark;
mod brush;
mod cases;
mod certain;
mod contrast;
mod fixes;
mod fleets;
mod foreign;
mod former;
mod history;
mod lint;
mod log_sources;
mod logs;
mod manifests;
mod model;
mod page;
mod pages;
mod properties;
mod reads;
mod secrets;
mod steady;
mod tools;
mod unreachable;
mod userdata;
