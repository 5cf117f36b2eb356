//! Scenarios on a real control plane with the real Karpenter.

mod aws;
#[path = "../control-plane/mod.rs"]
mod control_plane;
mod faults;
mod fifteen_minutes;
mod harness;
mod identity;
mod life;
mod matrix;
mod monitoring;
mod operator;
mod packaging;
mod prometheus;
mod remediation;
#[path = "../rights/mod.rs"]
mod rights;
mod userdata;
