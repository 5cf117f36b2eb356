//! Nodes whose pods get no network: the VPC CNI, kube-proxy, addresses, sandboxes, credentials.

pub mod cni_lacks_permissions;
pub mod cni_not_ready;
pub mod eni_config_missing;
pub mod ip_family_differs;
pub mod kube_proxy_not_running;
pub mod pod_identity_agent_missing;
pub mod pods_get_no_address;
pub mod sandbox_image_pull_fails;
pub mod windows_ipam_off;
