//! nodewhy says why a node never became usable. Here is what does IO: the verdicts are those of the `engine`.

// Nothing may panic on input.
#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::todo, clippy::unimplemented)]

pub mod cli;
pub mod ingest;
pub mod kube_client;
pub mod operator;
pub mod report;
