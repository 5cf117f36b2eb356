//! Mistakes in the user data of a node class, or in what Karpenter makes of it.

pub mod bootstrap_argument_ignored;
pub mod bottlerocket_too_old;
pub mod custom_bootstrap_without_taint;
pub mod custom_family_without_user_data;
pub mod custom_user_data_joins_nothing;
pub mod feature_gate_refused;
pub mod instance_store_set_up_twice;
pub mod kubelet_flag_drops_taints;
pub mod kubelet_flag_removed;
pub mod kubelet_refuses_cgroup_v1;
pub mod kubelet_refuses_labels;
pub mod user_data_stops_kubelet;
pub mod wrong_cluster;
