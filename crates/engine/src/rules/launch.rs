//! Machines that are never launched: node class, NodePool, image, capacity, Karpenter itself.

pub mod arn_instead_of_name;
pub mod daemon_set_not_counted;
pub mod dra_requests_refused;
pub mod image_not_available;
pub mod insufficient_capacity;
pub mod karpenter_is_behind;
pub mod karpenter_not_running;
pub mod label_not_offered;
pub mod launch_failed;
pub mod no_image_for_architecture;
pub mod no_instance_type_has_room;
pub mod no_instance_type_left;
pub mod no_subnet_in_zone;
pub mod node_claim_never_worked_on;
pub mod node_class_crd_outdated;
pub mod node_class_not_ready;
pub mod node_class_not_served;
pub mod node_pool_at_its_limit;
pub mod node_pool_is_static;
pub mod node_pool_not_ready;
pub mod security_groups_of_two_vpcs;
pub mod spread_needs_another_zone;
pub mod startup_taint_among_taints;
pub mod static_capacity_off;
pub mod volume_ties_pod_to_zone;
pub mod webhook_refuses_node_claims;
