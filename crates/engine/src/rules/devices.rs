//! Accelerators and other devices that are missing or broken.

pub mod accelerator_broken;
pub mod device_plugin_fails;
pub mod dra_driver_silent;
pub mod extended_resource_missing;
pub mod kubelet_rejects_pods;
