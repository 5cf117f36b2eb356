//! The explanations that several rules share: from a symptom to its cause, with the evidence and the fix. An
//! explanation knows facts and never asks a rule.

pub(crate) mod agent_chain;
pub(crate) mod auto_mode_entry;
pub(crate) mod commands;
pub mod contrast;
pub(crate) mod denial;
pub(crate) mod device_reason;
pub(crate) mod driver_unit;
pub(crate) mod early_panic;
pub(crate) mod explanation;
pub mod image_drift;
pub mod image_fit;
pub mod instance_questions;
pub(crate) mod karpenter_ends;
mod karpenter_rights;
pub(crate) mod kubelet_exit;
pub mod launch_blame;
pub mod launch_error;
pub(crate) mod logged;
pub(crate) mod lost_plugin;
pub mod network_path;
pub(crate) mod networkd;
pub(crate) mod overlay_promise;
pub(crate) mod proxied;
pub mod pull;
pub(crate) mod pulls_by_image;
pub mod repair;
pub(crate) mod selinux;
pub(crate) mod shut_budget;
pub(crate) mod sibling_got_through;
pub(crate) mod spent_budget;
pub mod startup_taints;
pub mod taint_writer;
pub(crate) mod unwrapped;
pub(crate) mod user_data_line;
pub(crate) mod vcpu_quota;
pub(crate) mod volume_attachments;
