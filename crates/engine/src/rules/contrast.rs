//! Properties that failing machines have in common and joined nodes do not have.

pub mod ami_drift_replacements_fail;
pub mod image_never_joins;
pub mod instance_type_never_joins;
pub mod pods_fail_on_image;
pub mod security_groups_differ;
pub mod zone_never_joins;
