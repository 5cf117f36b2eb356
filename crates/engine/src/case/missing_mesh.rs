//! A Ready Node on which pods of a service mesh fail their own check, for the mesh's network plugin is not there.

use super::judging::Judging;
use super::stage::{Symptom, Wait};

use crate::api::{Evidence, Stage};
use crate::case::out_of_service::is_out_of_service;
use crate::cluster_state::ClusterState;
use crate::objects::{ContainerStatus, DaemonSet, Node, Pod};
use chrono::{DateTime, Utc};

/// The init container with which a mesh checks that a pod's traffic is redirected, and the DaemonSet whose plugin
/// redirects it. A mesh adds this container only if it is told that the plugin is there.
/// Sources: linkerd2 stable-2.14.10 charts/partials/templates/_network-validator.tpl, charts/linkerd2-cni; istio 1.26
/// manifests/charts/istio-control/istio-discovery/files/injection-template.yaml, manifests/charts/istio-cni.
const CHECKS: [(&str, &str); 2] =
    [("linkerd-network-validator", "linkerd-cni"), ("istio-validation", "istio-cni-node")];

/// A plugin that is installed, and was not on this Node when a pod needed it.
#[derive(Debug, Clone, Copy)]
pub struct MissingMesh<'w> {
    pub set: &'w DaemonSet,
    /// The pod that has failed for longest.
    pub pod: &'w Pod,
    /// Its init container that fails.
    pub check: &'w ContainerStatus,
    since: DateTime<Utc>,
}

pub fn missing_mesh<'w>(cluster: &'w ClusterState, node: &Node) -> Option<MissingMesh<'w>> {
    let missing = cluster.pods_on(node.name()).filter_map(|pod| {
        let mut checks = pod.status.init_container_statuses.iter().filter(|own| exit_code(own).is_some());
        let (check, name) = checks.find_map(|own| Some((own, plugin_of(&own.name)?)))?;
        let set = cluster.daemon_sets().find(|set| set.metadata.name == *name)?;
        let of_plugin = cluster.pods_on(node.name()).find(|other| other.daemon_set() == Some(name));
        let made = pod.metadata.creation_timestamp?;
        let came_before = of_plugin.is_none_or(|plugin| came_before(made, plugin));
        let stays = pod.metadata.deletion_timestamp.is_none();
        (came_before && stays).then_some(MissingMesh { set, pod, check, since: made })
    });
    missing.min_by_key(|missing| (missing.since, &missing.pod.metadata.name))
}

/// Whether a pod that was made then came before the plugin. One that came after it has another reason. If the plugin
/// has restarted since, nobody knows when it was Ready first.
fn came_before(made: DateTime<Utc>, plugin: &Pod) -> bool {
    let Some(ready) = plugin.ready_since() else { return true };
    let is_older = plugin.metadata.creation_timestamp.is_some_and(|at| at < made);
    let has_restarted = plugin.status.container_statuses.iter().any(|own| own.restart_count > 0);
    made < ready && !(is_older && has_restarted)
}

fn plugin_of(check: &str) -> Option<&'static str> {
    CHECKS.iter().find(|(name, _)| *name == check).map(|(_, plugin)| *plugin)
}

/// The exit code of a check that failed.
fn exit_code(check: &ContainerStatus) -> Option<i64> {
    let ended = check.state.terminated.as_ref().or(check.last_state.terminated.as_ref())?;
    ended.exit_code.filter(|code| *code != 0 && !check.ready)
}

pub(super) fn wait(judging: Judging, node: &Node) -> Option<Wait> {
    let Judging { cluster, thresholds: t, .. } = judging;
    if !node.is_ready() || is_out_of_service(node) {
        return None;
    }
    let missing = missing_mesh(cluster, node)?;
    let object = format!("Pod/{}", missing.pod.metadata.name);
    // Without its restarts, whose number changes all the time.
    let failed = format!("{} failed with exit code {}", missing.check.name, exit_code(missing.check)?);
    let because = "this init container fails until the plugin of the mesh redirects the pod's traffic";
    let evidence = Evidence::new(object, "status.initContainerStatuses", failed, because);
    // On a new Node the plugin comes up beside the first pods, and a mesh may repair them itself.
    let wait = Wait::new(Stage::Ready, missing.since, t.ready * 2, t, evidence);
    Some(Wait { proven: wait.patience, symptom: Symptom::MeshPluginMissing, ..wait })
}
