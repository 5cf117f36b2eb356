//! Instances that run the wrong image, end at once, or boot too slowly.

pub mod ami_family_mismatch;
pub mod boots_too_slowly;
pub mod bootstrap_failed;
pub mod instance_dies_at_start;
pub mod instance_ended;
pub mod metadata_service_off;
pub mod not_an_eks_image;
pub mod nvidia_image_without_gpu;
pub mod volume_key_refused;
