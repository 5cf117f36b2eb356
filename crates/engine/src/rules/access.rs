//! Kubelets that the API server does not authorize: aws-auth, access entries, node names.

pub mod access_entry_outlived_role;
pub mod access_entry_wrong_type;
pub mod aws_auth_arn_never_matches;
pub mod aws_auth_entry_incomplete;
pub mod aws_auth_lost_its_nodes;
pub mod aws_auth_unreadable;
pub mod machine_gets_no_credentials;
pub mod node_name_refused;
pub mod node_role_has_no_access_entry;
pub mod node_role_is_controllers;
pub mod node_role_lacks_policy;
pub mod node_role_not_mapped;
pub mod windows_group_missing;
