//! Causes that no object shows: messages of the machine and of the components, given with `--logs`.

pub mod api_server_unreachable;
pub mod api_server_untrusted;
pub mod aws_refuses_machine;
pub mod aws_unreachable;
pub mod boot_container_fails;
pub mod device_driver_fails;
pub mod kube_proxy_fails;
pub mod kubelet_refuses_configuration;
pub mod kubelet_turned_away;
pub mod machine_pulls_no_image;
pub mod network_plugin_fails;
pub mod runtime_not_up;
pub mod user_data_refused;
