//! The causes. One file each: plain data and one function.
//!
//! To add one, write `rules/NAME.rs` and `docs/causes/Name.md`, and add a line to [`ALL`]. The page is also the rule's test.

pub mod agent_reports;
pub mod change;
pub mod contrast;
pub mod stale_cloud_provider_taint;
pub mod unknown;

mod accelerator_broken;
mod access_entry;
mod access_entry_outlived_role;
mod access_entry_wrong_type;
mod agent_taint_remains;
mod ami_drift_replacements_fail;
mod ami_family_mismatch;
mod aws_auth_arn_never_matches;
mod aws_auth_entry_incomplete;
mod aws_auth_lost_its_nodes;
mod aws_auth_unreadable;
mod boots_too_slowly;
mod bootstrap_argument_ignored;
mod bootstrap_failed;
pub mod cloud_controller_never_initialized;
mod cni_lacks_permissions;
mod cni_not_ready;
mod custom_bootstrap_without_taint;
mod custom_family_without_user_data;
mod custom_user_data_joins_nothing;
mod daemon_set_pod_refused;
mod dra_driver_silent;
mod eni_config_missing;
mod extended_resource_missing;
mod image_never_joins;
pub mod image_not_available;
mod instance_dies_at_start;
mod instance_ended;
mod instance_state;
mod instance_type_never_joins;
mod insufficient_capacity;
mod karpenter_not_running;
mod kube_proxy_not_running;
mod kubelet_flag_drops_taints;
mod kubelet_flag_removed;
mod kubelet_not_ready;
mod kubelet_refuses_labels;
mod kubelet_stopped;
mod launch_error;
mod launch_failed;
mod multiple_nodes_found;
mod no_image_for_architecture;
mod node_class_not_ready;
mod node_deleted_by_cloud_controller;
mod node_name_refused;
mod node_pool_not_ready;
mod node_role;
mod node_role_has_no_access_entry;
mod node_role_not_mapped;
mod node_under_pressure;
mod node_without_provider_id;
mod not_an_eks_image;
mod nvidia_image_without_gpu;
mod placement;
mod pod_identity_agent_missing;
mod pods_get_no_address;
mod pull;
mod repair;
mod sandbox_image_pull_fails;
mod security_groups_differ;
mod stale_node_taken_over;
mod startup_taint_put_back;
mod startup_taint_stays;
mod termination_stuck;
pub mod told_by_aws;
mod unregistered_taint_missing;
mod unregistered_taint_put_back;
mod untainted;
mod user_data_stops_kubelet;
mod volume_key_refused;
mod wrong_cluster;
mod zone_never_joins;

use crate::api::Stage;
use crate::case::Case;
use crate::finding::Opinion;
use crate::identity::Identity;
use crate::input::Input;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// One root cause.
#[derive(Debug)]
pub struct Rule {
    /// Stable CamelCase identifier; also the name of the page.
    pub cause: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    /// The gates whose waiting it can explain.
    pub stages: &'static [Stage],
    /// What it reads beside the machine itself.
    pub reads: &'static [Input],
    /// The versions it is about, in words.
    pub versions: &'static str,
    /// The page, which is its test too.
    pub page: &'static str,
    pub check: fn(&Case) -> Opinion,
}

/// All causes, the more specific first: among equally sure findings the first wins.
pub const ALL: &[&Rule] = &[
    &kubelet_refuses_labels::RULE,
    &kubelet_flag_removed::RULE,
    &bootstrap_argument_ignored::RULE,
    &kubelet_flag_drops_taints::RULE,
    &custom_bootstrap_without_taint::RULE,
    &unregistered_taint_missing::RULE,
    &not_an_eks_image::RULE,
    &ami_family_mismatch::RULE,
    &nvidia_image_without_gpu::RULE,
    &user_data_stops_kubelet::RULE,
    &wrong_cluster::RULE,
    &custom_family_without_user_data::RULE,
    &custom_user_data_joins_nothing::RULE,
    &volume_key_refused::RULE,
    &bootstrap_failed::RULE,
    &access_entry_wrong_type::RULE,
    &access_entry_outlived_role::RULE,
    &node_role_has_no_access_entry::RULE,
    &instance_ended::RULE,
    &aws_auth_lost_its_nodes::RULE,
    &node_name_refused::RULE,
    &aws_auth_unreadable::RULE,
    &aws_auth_entry_incomplete::RULE,
    &aws_auth_arn_never_matches::RULE,
    &node_role_not_mapped::RULE,
    &multiple_nodes_found::RULE,
    &stale_node_taken_over::RULE,
    &node_without_provider_id::RULE,
    &unregistered_taint_put_back::RULE,
    &stale_cloud_provider_taint::RULE,
    &cloud_controller_never_initialized::RULE,
    &accelerator_broken::RULE,
    &sandbox_image_pull_fails::RULE,
    &daemon_set_pod_refused::RULE,
    &startup_taint_put_back::RULE,
    &startup_taint_stays::RULE,
    &extended_resource_missing::RULE,
    &dra_driver_silent::RULE,
    &kube_proxy_not_running::RULE,
    &pod_identity_agent_missing::RULE,
    &cni_lacks_permissions::RULE,
    &eni_config_missing::RULE,
    &cni_not_ready::RULE,
    &pods_get_no_address::RULE,
    &node_deleted_by_cloud_controller::RULE,
    &kubelet_not_ready::RULE,
    &kubelet_stopped::RULE,
    &node_under_pressure::RULE,
    &agent_taint_remains::RULE,
    &karpenter_not_running::RULE,
    &termination_stuck::RULE,
    &image_not_available::RULE,
    &ami_drift_replacements_fail::RULE,
    &zone_never_joins::RULE,
    &image_never_joins::RULE,
    &instance_type_never_joins::RULE,
    &security_groups_differ::RULE,
    &boots_too_slowly::RULE,
    &no_image_for_architecture::RULE,
    &instance_dies_at_start::RULE,
    &insufficient_capacity::RULE,
    &launch_failed::RULE,
    &node_class_not_ready::RULE,
    &node_pool_not_ready::RULE,
];

/// The rules that know a gate, and all that they read.
#[derive(Debug, Default)]
pub struct OfStage {
    /// In the order of [`ALL`].
    pub rules: Vec<&'static Rule>,
    pub reads: BTreeSet<Input>,
}

/// Sorted once: every judgement asks.
static OF_STAGE: LazyLock<BTreeMap<Stage, OfStage>> = LazyLock::new(|| {
    let mut of_stage: BTreeMap<Stage, OfStage> = BTreeMap::new();
    for rule in ALL {
        for stage in rule.stages {
            let of_stage = of_stage.entry(*stage).or_default();
            of_stage.rules.push(rule);
            of_stage.reads.extend(rule.reads);
        }
    }
    of_stage
});

/// The rules that know this gate; `None` where none does.
#[must_use]
pub fn of_stage(stage: Stage) -> Option<&'static OfStage> {
    OF_STAGE.get(&stage)
}

/// Of whom only the API server can say whether the machine's kubelet may create its Node.
#[must_use]
pub fn identity_in_doubt(case: &Case) -> Option<Identity> {
    aws_auth_entry_incomplete::in_doubt(case)
}

/// The name of the role that a machine has, as far as it can be told.
#[must_use]
pub fn role_of_machines<'w>(case: &Case<'w>) -> Option<&'w str> {
    node_role::name(case)
}

/// Where the page of a cause is published.
#[must_use]
pub fn documentation(cause: &str) -> String {
    format!("https://github.com/nodewhy/nodewhy/blob/main/docs/causes/{cause}.md")
}

/// The rule of a cause; names are compared without regard to case.
#[must_use]
pub fn by_cause(cause: &str) -> Option<&'static Rule> {
    ALL.iter().copied().find(|rule| rule.cause.eq_ignore_ascii_case(cause))
}

/// The list of all causes as `docs/causes/README.md` shows it.
#[must_use]
pub fn index() -> String {
    let symptom = |page: &str| page.lines().find_map(|l| l.strip_prefix("> ")).unwrap_or_default().replace('|', "\\|");
    let stages = |rule: &Rule| rule.stages.iter().map(|s| format!("{s:?}")).collect::<Vec<_>>().join(", ");
    let row = |rule: &&Rule| format!("| [{0}]({0}.md) | {1} | {2} | `{3}` |\n", rule.cause, stages(rule), rule.summary, symptom(rule.page));
    let head = "# Causes\n\nMade by `NODEWHY_UPDATE=1 cargo test --test pages`. Each page is also the test of its rule; the examples start from the\nhealthy cluster in [cluster.yaml](cluster.yaml). Where nothing fits, nodewhy says [Unknown](Unknown.md);\n[not-visible.md](not-visible.md) lists known causes that no rule can see.\n\n| cause | stage | what it is | message to search for |\n| --- | --- | --- | --- |\n";
    ALL.iter().map(row).fold(head.to_owned(), |all, row| all + &row)
}
