//! Nodes whose pods get no network: the VPC CNI, kube-proxy, addresses, sandboxes, credentials.

pub mod agent_killed_by_probe;
pub mod agent_not_ready;
pub mod agent_update_cuts_pods;
pub mod branch_interface_refused;
pub mod branch_pods_out_of_reach;
pub mod cluster_tag_on_two_groups;
pub mod cni_lacks_permissions;
pub mod cni_not_ready;
pub mod endpoint_access_refuses;
pub mod eni_config_missing;
pub mod ip_family_differs;
pub mod kube_proxy_not_running;
pub mod mesh_plugin_missing;
pub mod network_unavailable;
pub mod no_route_out;
pub mod pod_identity_agent_missing;
pub mod pods_get_no_address;
pub mod private_dns_missing;
pub mod private_endpoint_unresolved;
pub mod public_subnet_without_public_ip;
pub mod sandbox_image_pull_fails;
pub mod security_group_blocks_kubelet;
pub mod windows_ipam_off;
