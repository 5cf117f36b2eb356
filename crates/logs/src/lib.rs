//! Reads logs: of a machine (journal, console, cloud-init, the files of the EKS log collector) and of components
//! (Karpenter, the VPC CNI).
//!
//! Text goes in line by line, facts come out: what a line proves, how often it was said, from when to when, and how far
//! the machine came. [`table`] is the one list of what lines mean. No files, no clock.

// Nothing may panic on input.
#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::todo, clippy::unimplemented)]

mod boot;
mod clock;
mod denial;
pub mod device_plugins;
mod early;
pub mod fact;
mod framing;
mod head;
pub mod journey;
mod kubelet_stop;
mod last_words;
pub mod lease;
mod machines;
mod oops;
mod pattern;
mod quoted;
mod reader;
mod repeated;
mod script_end;
pub mod selinux;
mod systemd;
pub mod table;
mod traceback;
mod unit_name;
mod wrapped;
mod wrapping;

pub use reader::{ContainerLog, FileKind, FileLimits, LogReader, pool_of_claim, row_of};
