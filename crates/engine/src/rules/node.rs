//! Nodes that exist but are not usable: kubelet, pressure, names, deletion.

pub mod admission_refuses_node;
pub mod csi_driver_missing;
pub mod daemon_set_pod_refused;
pub mod drain_held;
pub mod drain_refilled;
pub mod kubelet_newer_than_api_server;
pub mod kubelet_not_ready;
pub mod kubelet_stopped;
pub mod multiple_nodes_found;
pub mod node_deleted_by_cloud_controller;
pub mod node_object_deleted;
pub mod node_under_pressure;
pub mod node_without_provider_id;
pub mod pod_sandbox_fails;
pub mod reservations_exceed_machine;
pub mod stale_node_taken_over;
pub mod termination_stuck;
pub mod volume_limit_too_high;
