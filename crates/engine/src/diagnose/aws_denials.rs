//! The calls that nodewhy may not make to AWS about a machine.

use crate::case::Case;
use crate::explain::{image_fit, launch_blame, network_path};
use crate::facts::{instance_state, machine_image, node_role};
use crate::objects::AwsRefusal;

/// The calls that IAM denied when AWS was asked about this machine; each once.
pub fn refusals<'w>(case: &Case<'w>) -> Vec<&'w AwsRefusal> {
    let aws = case.cluster.aws();
    let (cluster, role) = (case.cluster_name().unwrap_or_default(), node_role::name(case).unwrap_or_default());
    let entry = format!("{cluster}/{role}");
    let network = network_path::questions(case);
    let things = [
        Some(cluster),
        Some(role),
        Some(&*entry),
        case.instance_id(),
        machine_image::of(case),
        instance_state::image_in_question(case),
        instance_state::key_in_question(case),
        instance_state::key_users_in_question(case),
        node_role::profile_name(case),
        launch_blame::quota_in_question(case),
        network.vpc,
        network.dhcp_options,
    ];
    let things = things.into_iter().flatten().chain(network.groups).chain(image_fit::types_in_question(case));
    let mut denied: Vec<&AwsRefusal> =
        things.flat_map(|about| aws.refusals_about(about)).filter(|refusal| refusal.denied).collect();
    denied.sort_by_key(|refusal| &refusal.action);
    denied.dedup_by_key(|refusal| &refusal.action);
    denied
}
