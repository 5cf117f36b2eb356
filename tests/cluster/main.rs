//! Scenarios on a real control plane with the real Karpenter.

mod aws;
mod contexts;
mod faults;
mod fifteen_minutes;
mod fixes;
mod harness;
mod identity;
mod life;
mod matrix;
mod monitoring;
mod operator;
mod packaging;
mod pod_logs;
mod prometheus;
mod remediation;
mod userdata;
mod watch;
