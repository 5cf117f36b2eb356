//! nodewhy says why a node never became usable.
//!
//! Data flows one way: foreign objects → [`world`] → [`case`] → rules → diagnosis → report or publish.

// Nothing may panic on input.
#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::todo, clippy::unimplemented)]

pub mod api;
#[cfg(feature = "aws")]
pub mod aws;
pub mod aws_auth;
pub mod case;
pub mod cli;
pub mod clock;
pub mod cloud_controller;
pub mod cluster;
pub mod cni;
pub mod collect;
pub mod crd;
pub mod credentials;
pub mod diagnose;
pub mod dump;
pub mod effective;
pub mod ending;
mod fields;
pub mod finding;
pub mod foreign;
pub mod gate;
pub mod identity;
pub mod image;
pub mod input;
pub mod karpenter;
pub mod lease;
pub mod lint;
pub mod live;
pub mod metrics;
pub mod peers;
pub mod publish;
pub mod raw;
pub mod readiness;
pub mod remediate;
pub mod report;
pub mod rules;
pub mod run;
pub mod serve;
pub mod startup_taint;
pub mod text;
pub mod triage;
pub mod userdata;
pub mod watch;
pub mod word;
pub mod world;
