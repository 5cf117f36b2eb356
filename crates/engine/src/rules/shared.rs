//! What several rules ask. A rule never asks another rule.

pub mod access_entry;
pub mod agent_reports;
pub mod change;
pub mod contrast;
pub mod instance_state;
pub mod launch_error;
pub mod node_role;
pub mod placement;
pub mod pull;
pub mod repair;
pub mod told_by_aws;
pub mod untainted;
