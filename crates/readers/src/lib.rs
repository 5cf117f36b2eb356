//! Reads what a machine and the API server read: user data, and the aws-auth ConfigMap. Readers never fail: they give
//! what they read, and what is wrong with it, each with its place. No Kubernetes client, no IO, no clock.

// Nothing may panic on input.
#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::todo, clippy::unimplemented)]

pub mod aws_auth;
pub mod source_text;
pub mod userdata;
