//! What the probes and Prometheus are told: how far the first lists are, and whether the loop still turns.

pub mod readiness;
pub mod server;
