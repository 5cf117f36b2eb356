//! Accelerators and other devices that are missing or broken.

pub mod accelerator_broken;
pub mod dra_driver_silent;
pub mod extended_resource_missing;
