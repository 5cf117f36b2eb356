//! Judges machines: objects in, verdicts out.
//!
//! Data flows one way: [`objects`] → [`cluster_state`] → [`case`] → [`facts`] → [`explain`] → [`rules`] → [`suspects`]
//! → [`diagnose`] → [`api`]. No IO, no clock, no await: the dependencies of this crate cannot do any.

// Nothing may panic on input.
#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::todo, clippy::unimplemented)]

pub mod api;
pub mod case;
pub mod cluster_state;
pub mod diagnose;
pub mod effective;
pub mod explain;
pub mod facts;
pub mod lint;
pub mod objects;
pub mod remediation;
pub mod rules;
pub mod suspects;
pub mod triage;
pub mod upstream;
