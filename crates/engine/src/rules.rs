//! The causes. One file each: plain data and one function.
//!
//! To add one, write `rules/CATEGORY/NAME.rs`, the page `docs/causes/Name.md` and the examples `tests/causes/Name.md`,
//! and add a line to [`ALL`]. `cargo xtask new-cause` does it.

pub mod access;
pub mod contrast;
pub mod devices;
pub mod instance;
pub mod launch;
pub mod logs;
pub mod network;
pub mod node;
pub mod prelude;
mod rule;
pub mod taints;
pub mod unknown;
pub mod userdata;

use crate::api::Stage;
use crate::case::Case;
use crate::cluster_state::ClusterState;
use crate::cluster_state::aws::AwsAnswer;
use crate::explain;
use crate::explain::network_path::NetworkQuestions;
use crate::facts;
use crate::objects::input::Input;
use crate::objects::{Ami, Image, NodeClass};
use crate::upstream::karpenter::Karpenter;
use readers::aws_auth::identity::Identity;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

pub use rule::Rule;

/// All causes, the more specific first: among equally sure findings the first wins.
pub const ALL: &[&Rule] = &[
    &userdata::kubelet_refuses_labels::RULE,
    &userdata::kubelet_flag_removed::RULE,
    &userdata::feature_gate_refused::RULE,
    &userdata::kubelet_refuses_cgroup_v1::RULE,
    &userdata::bootstrap_argument_ignored::RULE,
    &node::reservations_exceed_machine::RULE,
    &userdata::kubelet_flag_drops_taints::RULE,
    &userdata::custom_bootstrap_without_taint::RULE,
    &taints::unregistered_taint_missing::RULE,
    &instance::not_an_eks_image::RULE,
    &instance::ami_family_mismatch::RULE,
    &instance::nvidia_image_without_gpu::RULE,
    &userdata::instance_store_set_up_twice::RULE,
    &userdata::bottlerocket_too_old::RULE,
    &userdata::user_data_stops_kubelet::RULE,
    &userdata::wrong_cluster::RULE,
    &userdata::custom_family_without_user_data::RULE,
    &userdata::custom_user_data_joins_nothing::RULE,
    &instance::metadata_service_off::RULE,
    &instance::volume_key_refused::RULE,
    &network::no_route_out::RULE,
    &network::public_subnet_without_public_ip::RULE,
    &network::security_group_blocks_kubelet::RULE,
    &network::private_endpoint_unresolved::RULE,
    &network::private_dns_missing::RULE,
    &network::endpoint_access_refuses::RULE,
    &logs::user_data_refused::RULE,
    &logs::boot_container_fails::RULE,
    &logs::kubelet_refuses_configuration::RULE,
    &logs::runtime_not_up::RULE,
    &logs::machine_pulls_no_image::RULE,
    &logs::aws_unreachable::RULE,
    &logs::aws_refuses_machine::RULE,
    &logs::api_server_unreachable::RULE,
    &logs::api_server_untrusted::RULE,
    &instance::bootstrap_failed::RULE,
    &access::machine_gets_no_credentials::RULE,
    &access::access_entry_wrong_type::RULE,
    &access::access_entry_outlived_role::RULE,
    &access::node_role_has_no_access_entry::RULE,
    &instance::instance_ended::RULE,
    &access::node_role_is_controllers::RULE,
    &network::windows_ipam_off::RULE,
    &access::windows_group_missing::RULE,
    &access::aws_auth_lost_its_nodes::RULE,
    &access::node_name_refused::RULE,
    &access::aws_auth_unreadable::RULE,
    &access::aws_auth_entry_incomplete::RULE,
    &access::aws_auth_arn_never_matches::RULE,
    &access::node_role_not_mapped::RULE,
    &access::node_role_lacks_policy::RULE,
    &logs::kubelet_turned_away::RULE,
    &node::admission_refuses_node::RULE,
    &node::multiple_nodes_found::RULE,
    &node::stale_node_taken_over::RULE,
    &node::node_without_provider_id::RULE,
    &taints::unregistered_taint_put_back::RULE,
    &network::ip_family_differs::RULE,
    &taints::stale_cloud_provider_taint::RULE,
    &taints::cloud_controller_never_initialized::RULE,
    &devices::accelerator_broken::RULE,
    &node::kubelet_newer_than_api_server::RULE,
    &network::sandbox_image_pull_fails::RULE,
    &logs::kube_proxy_fails::RULE,
    &logs::network_plugin_fails::RULE,
    &node::daemon_set_pod_refused::RULE,
    &taints::startup_taint_put_back::RULE,
    &taints::startup_taint_stays::RULE,
    &devices::extended_resource_missing::RULE,
    &devices::dra_driver_silent::RULE,
    &network::kube_proxy_not_running::RULE,
    &network::pod_identity_agent_missing::RULE,
    &logs::device_driver_fails::RULE,
    &network::cni_lacks_permissions::RULE,
    &network::eni_config_missing::RULE,
    &network::cni_not_ready::RULE,
    &network::pods_get_no_address::RULE,
    &network::network_unavailable::RULE,
    &network::agent_killed_by_probe::RULE,
    &devices::device_plugin_fails::RULE,
    &devices::kubelet_rejects_pods::RULE,
    &network::agent_not_ready::RULE,
    &network::agent_update_cuts_pods::RULE,
    &network::branch_interface_refused::RULE,
    &network::branch_pods_out_of_reach::RULE,
    &node::volume_limit_too_high::RULE,
    &node::csi_driver_missing::RULE,
    &network::mesh_plugin_missing::RULE,
    &contrast::pods_fail_on_image::RULE,
    &node::pod_sandbox_fails::RULE,
    &node::node_deleted_by_cloud_controller::RULE,
    &node::node_object_deleted::RULE,
    &node::kubelet_not_ready::RULE,
    &node::kubelet_stopped::RULE,
    &node::node_under_pressure::RULE,
    &taints::agent_taint_remains::RULE,
    &taints::cordon_remains::RULE,
    &taints::taint_left_behind::RULE,
    &node::drain_held::RULE,
    &network::cluster_tag_on_two_groups::RULE,
    &node::drain_refilled::RULE,
    &launch::karpenter_not_running::RULE,
    &launch::webhook_refuses_node_claims::RULE,
    &launch::karpenter_is_behind::RULE,
    &node::termination_stuck::RULE,
    &launch::image_not_available::RULE,
    &launch::image_does_not_fit::RULE,
    &contrast::ami_drift_replacements_fail::RULE,
    &contrast::zone_never_joins::RULE,
    &contrast::image_never_joins::RULE,
    &contrast::instance_type_never_joins::RULE,
    &contrast::security_groups_differ::RULE,
    &instance::boots_too_slowly::RULE,
    &launch::no_image_for_architecture::RULE,
    &instance::instance_dies_at_start::RULE,
    &launch::arn_instead_of_name::RULE,
    &launch::security_groups_of_two_vpcs::RULE,
    &launch::no_subnet_in_zone::RULE,
    &launch::node_pool_at_its_limit::RULE,
    &launch::spread_needs_another_zone::RULE,
    &launch::spread_counts_no_zone::RULE,
    &launch::no_instance_type_left::RULE,
    &launch::no_reserved_capacity::RULE,
    &launch::no_instance_type_has_room::RULE,
    &launch::label_not_offered::RULE,
    &taints::taint_not_awaited::RULE,
    &launch::consolidated_too_soon::RULE,
    &launch::port_held_everywhere::RULE,
    &launch::daemon_set_not_counted::RULE,
    &launch::machine_smaller_than_reckoned::RULE,
    &launch::static_capacity_off::RULE,
    &launch::node_pool_is_static::RULE,
    &launch::node_class_not_served::RULE,
    &launch::node_claim_never_worked_on::RULE,
    &launch::startup_taint_among_taints::RULE,
    &launch::insufficient_capacity::RULE,
    &launch::launch_failed::RULE,
    &launch::node_class_crd_outdated::RULE,
    &launch::node_class_not_ready::RULE,
    &launch::node_pool_not_ready::RULE,
    &launch::node_claim_refused::RULE,
    &launch::provisioning_fails::RULE,
    &launch::volume_ties_pod_to_zone::RULE,
    &launch::dra_requests_refused::RULE,
    &launch::drifts_at_once::RULE,
];

/// The rules of a stage, and all inputs that they read.
#[derive(Debug)]
pub struct OfStage {
    /// In the order of [`ALL`].
    pub rules: Vec<&'static Rule>,
    reads: BTreeSet<Input>,
    /// The same without the inputs of rules that depend on a log.
    reads_without_logs: BTreeSet<Input>,
}

impl OfStage {
    /// The inputs that its rules read in this cluster. Rules that depend on a log report nothing if there is no log.
    pub fn reads(&self, cluster: &ClusterState) -> &BTreeSet<Input> {
        if cluster.missing(Input::Logs).is_some() { &self.reads_without_logs } else { &self.reads }
    }
}

/// The inputs that every case needs.
const MACHINE: [Input; 2] = [Input::Nodes, Input::NodeClaims];

/// Sorted once, because every judgement needs it.
static OF_STAGE: LazyLock<BTreeMap<Stage, OfStage>> = LazyLock::new(|| {
    let mut of_stage: BTreeMap<Stage, OfStage> = BTreeMap::new();
    for rule in ALL {
        for stage in rule.stages {
            let of_stage = of_stage.entry(*stage).or_insert_with(|| OfStage {
                rules: Vec::new(),
                reads: MACHINE.into_iter().collect(),
                reads_without_logs: MACHINE.into_iter().collect(),
            });
            of_stage.rules.push(rule);
            of_stage.reads.extend(rule.reads);
            // What follows an agent's chain looks at the agent's DaemonSet, and says as much without a log.
            if !rule.reads.contains(&Input::Logs) || rule.reads.contains(&Input::DaemonSets) {
                of_stage.reads_without_logs.extend(rule.reads.iter().filter(|input| **input != Input::Logs));
            }
        }
    }
    of_stage
});

/// The rules of this stage. `None` if there are none.
pub fn of_stage(stage: Stage) -> Option<&'static OfStage> {
    OF_STAGE.get(&stage)
}

/// The identity of the node's kubelet, if only the API server can say whether it may create its Node.
pub fn identity_in_doubt(case: &Case) -> Option<Identity> {
    facts::aws_auth_role::in_doubt(case)
}

/// The name of the node role, if nodewhy can derive it.
pub fn role_of_machines<'w>(case: &Case<'w>) -> Option<&'w str> {
    facts::node_role::name(case)
}

/// The name of the instance profile of the node.
pub fn profile_of_machine<'w>(case: &Case<'w>) -> Option<&'w str> {
    facts::node_role::profile_name(case)
}

/// The role of the node, if the node joins only with certain policies.
pub fn policies_in_question<'w>(case: &Case<'w>) -> Option<&'w str> {
    access::node_role_lacks_policy::role_in_question(case)
}

/// The key of the instance's volumes, if EC2 may have terminated the instance because of it.
pub fn volume_key_in_question<'w>(case: &Case<'w>) -> Option<&'w str> {
    facts::instance_state::key_in_question(case)
}

/// The image with a snapshot that EC2 may have failed to decrypt.
pub fn encrypted_image_in_question<'w>(case: &Case<'w>) -> Option<&'w str> {
    facts::instance_state::image_in_question(case)
}

/// The instance types that the node's image may not fit.
pub fn types_in_question<'w>(case: &Case<'w>) -> Vec<&'w str> {
    explain::image_fit::types_in_question(case)
}

/// The ARN of the key of the instance's volumes, if its policy and grants decide.
pub fn key_users_in_question<'w>(case: &Case<'w>) -> Option<&'w str> {
    facts::instance_state::key_users_in_question(case)
}

/// The code of the EC2 quota because of which EC2 refused a launch.
pub fn quota_in_question(case: &Case) -> Option<&'static str> {
    explain::launch_blame::quota_in_question(case)
}

/// The questions about the instance's network path to the API server and to AWS that nodewhy can ask so far.
pub fn network_questions<'w>(case: &Case<'w>) -> NetworkQuestions<'w> {
    explain::network_path::questions(case)
}

/// A fault of an image that is visible before a launch: the rule that explains it, the field to change, and the
/// message.
pub fn preflight(
    told: AwsAnswer<'_, Image>,
    class: &NodeClass,
    ami: &Ami,
    karpenter: Option<&Karpenter>,
) -> Option<(&'static Rule, &'static str, String)> {
    let unavailable = || {
        let message = facts::image_selection::preflight(told, class, ami)?;
        Some((&launch::image_not_available::RULE, "spec.amiSelectorTerms", message))
    };
    let too_small = || {
        let message = explain::image_fit::preflight(told.known()?.0, class, ami, karpenter)?;
        Some((&launch::image_does_not_fit::RULE, "spec.blockDeviceMappings", message))
    };
    unavailable().or_else(too_small)
}

/// The address of a cause's page.
pub fn documentation(cause: &str) -> String {
    format!("https://github.com/nodewhy/nodewhy/blob/main/docs/causes/{cause}.md")
}

/// The rule of a cause. Upper and lower case do not matter.
pub fn by_cause(cause: &str) -> Option<&'static Rule> {
    ALL.iter().copied().find(|rule| rule.cause.eq_ignore_ascii_case(cause))
}

/// The list of all causes as `docs/causes/README.md` shows it.
pub fn index() -> String {
    let symptom = |page: &str| page.lines().find_map(|l| l.strip_prefix("> ")).unwrap_or_default().replace('|', "\\|");
    let stages = |rule: &Rule| rule.stages.iter().map(|s| format!("{s:?}")).collect::<Vec<_>>().join(", ");
    let row = |rule: &&Rule| {
        format!("| [{0}]({0}.md) | {1} | {2} | `{3}` |\n", rule.cause, stages(rule), rule.summary, symptom(rule.page))
    };
    let head = "# Causes\n\nMade by `NODEWHY_UPDATE=1 cargo test --test it pages`. If nothing fits, nodewhy says \
                [Unknown](Unknown.md).\n[not-visible.md](not-visible.md) lists known causes that no rule can see.\n\n| \
                cause | stage | what it is | message to search for |\n| --- | --- | --- | --- |\n";
    ALL.iter().map(row).fold(head.to_owned(), |all, row| all + &row)
}
