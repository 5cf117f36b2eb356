//! Taints that are missing, stay, or come back.

pub mod agent_taint_remains;
pub mod cloud_controller_never_initialized;
pub mod cordon_remains;
pub mod stale_cloud_provider_taint;
pub mod startup_taint_put_back;
pub mod startup_taint_stays;
pub mod taint_left_behind;
pub mod taint_not_awaited;
pub mod unregistered_taint_missing;
pub mod unregistered_taint_put_back;
