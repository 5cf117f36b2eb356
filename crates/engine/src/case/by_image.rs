//! What pods fail in on every Node of one image, and get past on those of another.
//!
//! One pod fails by its own fault, and so does each of a new version, wherever it is put. So what is compared is the
//! same part of pods: of pods of one text, of those that share a volume, and of those into which the same container is
//! put before their own.

use super::judging::Judging;
use super::node_image::Grain;
use super::stage::{Symptom, Wait};
use crate::api::{Evidence, Stage};
use crate::case::out_of_service::is_out_of_service;
use crate::case::unstarted_pods::STILL_REFUSED;
use crate::cluster_state::ClusterState;
use crate::cluster_state::memo::Memo;
use crate::objects::{ContainerStatus, Node, Pod, steady};
use chrono::{DateTime, TimeDelta, Utc};
use readers::source_text::mask;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The part of a pod that fails.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// One is not mounted.
    Volumes,
    /// Its image was fetched, and is not unpacked.
    Image,
    /// It ends with an error again and again.
    Container { name: String, is_init: bool },
}

#[derive(Debug)]
struct Failure {
    part: Part,
    object: String,
    said: String,
    words: String,
    since: DateTime<Utc>,
    last: DateTime<Utc>,
    /// It is the runtime of the machine that fails, before the container has run.
    is_of_runtime: bool,
}

/// The part in which a pod fails, however old the report is. For a Job only an image that is not unpacked counts,
/// because the Job ends with its pods. DaemonSets do not count: a failing agent keeps no pod off the Node.
fn failure(cluster: &ClusterState, pod: &Pod) -> Option<Failure> {
    let owner = pod.metadata.owner_references.first()?;
    if owner.kind == "DaemonSet" || pod.is_ready() || pod.metadata.deletion_timestamp.is_some() {
        return None;
    }
    if !pod.has_started()
        && let Some(unpacking) = refused_layer(pod)
    {
        return Some(unpacking);
    }
    match (owner.kind == "Job", pod.has_started()) {
        (true, _) => None,
        (false, true) => crash(pod),
        (false, false) => refused_mount(cluster, pod),
    }
}

/// The layers came from the registry, and the machine cannot lay them out: nothing that a registry or a pod's text
/// decides.
/// Source: containerd v2.1.4 core/unpack/unpacker.go (`failed to extract layer`), pkg/archive and core/mount.
fn refused_layer(pod: &Pod) -> Option<Failure> {
    let mut waiting = pod.status.container_statuses.iter().filter_map(|c| c.state.waiting.as_ref());
    let said = waiting.find(|w| w.message.contains("failed to extract layer"))?.message.as_str();
    // Of a full disk the Node itself tells.
    if said.contains("no space left") {
        return None;
    }
    let (_, why) = said.rsplit_once(": failed to extract layer").unwrap_or(("", said));
    let why = why.rsplit_once("\": ").map_or(why, |(_, why)| why);
    Some(Failure {
        part: Part::Image,
        object: format!("Pod/{}", pod.metadata.name),
        said: format!("its image is pulled and not unpacked: {}", mask(&steady(why))),
        words: words(why),
        since: pod.metadata.creation_timestamp?,
        last: DateTime::<Utc>::MAX_UTC,
        is_of_runtime: true,
    })
}

fn refused_mount(cluster: &ClusterState, pod: &Pod) -> Option<Failure> {
    let events = cluster.told_of_pod(pod).filter(|e| e.reason == "FailedMount" && tells_why(&e.message));
    let event = events.max_by_key(|e| (e.last_seen(), &e.message))?;
    Some(Failure {
        part: Part::Volumes,
        object: format!("Event Pod/{}", pod.metadata.name),
        said: event.said(),
        words: words(&event.message),
        since: event.first_timestamp.or(event.last_seen())?,
        last: event.last_seen()?,
        is_of_runtime: false,
    })
}

/// The kubelet sums up what it waits for, and says elsewhere why. A driver that is not there is another matter, and so
/// is an object that the pod's text names.
/// Source: kubernetes v1.36.3 pkg/kubelet/volumemanager/volume_manager.go `WaitForAttachAndMount`.
fn tells_why(said: &str) -> bool {
    let parts = ["timed out waiting for the condition", "context deadline exceeded", " not found"];
    !parts.iter().any(|part| said.contains(part))
}

fn crash(pod: &Pod) -> Option<Failure> {
    let of = |statuses: &'_ [ContainerStatus]| statuses.iter().find(|status| crashes(status)).cloned();
    let init = of(&pod.status.init_container_statuses);
    let is_init = init.is_some();
    let status = init.or_else(|| of(&pod.status.container_statuses))?;
    let ended = status.last_state.terminated.as_ref().filter(|ended| ended.exit_code != Some(0))?;
    let code = ended.exit_code.map_or_else(String::new, |code| format!(" with exit code {code}"));
    let message = mask(&steady(ended.message.trim()));
    let said = if message.is_empty() { String::new() } else { format!(": {message}") };
    Some(Failure {
        object: format!("Pod/{}", pod.metadata.name),
        said: format!("container {} ends again and again{code}{said}", status.name),
        words: format!("{} {:?}", words(&ended.message), ended.exit_code),
        since: pod.metadata.creation_timestamp?,
        last: DateTime::<Utc>::MAX_UTC,
        is_of_runtime: is_of_runtime(&ended.reason, &ended.message),
        part: Part::Container { name: status.name, is_init },
    })
}

/// A container that could not be made, for a hook of the machine: nothing that its image or its text decides.
/// Sources: containerd v1.7.30 pkg/cri/server/container_start.go (`StartError`); runc v1.1.7
/// libcontainer/configs/config.go `RunHooks` (`error running hook #0`), `Command.Run`; later versions say of which kind
/// it is.
fn is_of_runtime(reason: &str, message: &str) -> bool {
    reason == "StartError" && message.contains("error running") && message.contains("hook")
}

/// After so many tries the kubelet pauses for minutes between two.
/// Source: kubernetes v1.36.3 pkg/kubelet/kubelet.go `MaxCrashLoopBackOff`.
fn crashes(status: &ContainerStatus) -> bool {
    const RESTARTS: u32 = 5;
    let pauses = status.state.waiting.as_ref().is_some_and(|w| w.reason == "CrashLoopBackOff");
    pauses && status.restart_count >= RESTARTS
}

/// Its letters, without words that have digits: paths and ids are another's in each pod.
fn words(said: &str) -> String {
    let is_word = |word: &&str| !word.contains(|c: char| c.is_ascii_digit());
    said.split_whitespace().filter(is_word).flat_map(str::chars).filter(|c| c.is_alphabetic()).collect()
}

/// A pod's part is compared with the same part of all pods that have the same key.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Key {
    /// Pods of the same template.
    Text { namespace: String, text: String },
    /// Pods that use the same volume claim.
    Claim { namespace: String, name: String },
    /// Pods with an init container of this name and image. A main container's image alone does not show what it does.
    Injected { name: String, image: String },
    /// Pods with an image that the runtime fails to unpack on some Node, with these words.
    Unpacked { words: String },
}

fn keys(pod: &Pod, part: &Part, words: &str) -> Vec<Key> {
    if *part == Part::Image {
        return vec![Key::Unpacked { words: words.to_owned() }];
    }
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let revision = pod.metadata.label("controller-revision-hash").unwrap_or_default();
    let owner = pod.metadata.owner_references.first();
    let text = owner.map(|owner| format!("{} {} {revision}", owner.kind, owner.name));
    let text = text.map(|text| Key::Text { namespace: namespace.to_owned(), text });
    let claims = pod.spec.volumes.iter().filter(|_| *part == Part::Volumes).map(|volume| Key::Claim {
        namespace: namespace.to_owned(),
        name: volume.persistent_volume_claim.claim_name.clone(),
    });
    let is_it = |name: &str| matches!(part, Part::Container { name: own, is_init: true } if own == name);
    let injected = pod.spec.init_containers.iter().filter(|c| is_it(&c.name) && !c.image.is_empty());
    let injected = injected.map(|c| Key::Injected { name: c.name.clone(), image: c.image.clone() });
    text.into_iter().chain(claims).chain(injected).collect()
}

/// Whether a pod is past a part: its volumes are mounted, the container has done its work or runs.
fn is_past(pod: &Pod, part: &Part) -> bool {
    match part {
        Part::Volumes | Part::Image => pod.has_started(),
        Part::Container { is_init: false, .. } => pod.is_ready(),
        Part::Container { name, .. } => pod.status.init_container_statuses.iter().any(|c| c.name == *name && c.ready),
    }
}

/// How a pod does in a part.
#[derive(Debug)]
struct Seen {
    /// In the order of [`Grain::ALL`].
    images: [String; 3],
    node: String,
    workload: String,
    /// The words of its failure. `None` if the pod got past this part.
    fails: Option<String>,
}

/// All pods with this key.
fn seen(cluster: &ClusterState, key: &Key, part: &Part) -> Arc<Vec<Seen>> {
    static SEEN: Memo<Vec<Seen>> = Memo::new("who fails in a part of pods, and on which image");
    cluster.once(&SEEN, &format!("{key:?} {part:?}"), || {
        let namespace = match key {
            Key::Text { namespace, .. } | Key::Claim { namespace, .. } => Some(namespace),
            Key::Injected { .. } | Key::Unpacked { .. } => None,
        };
        let unpacked = match key {
            Key::Unpacked { words } => unpacked_nowhere(cluster, words),
            _ => BTreeSet::new(),
        };
        let is_alike = |pod: &Pod| match key {
            Key::Unpacked { .. } => pod.spec.containers.iter().any(|c| unpacked.contains(c.image.as_str())),
            _ => keys(pod, part, "").contains(key),
        };
        let is_in = |pod: &&Pod| namespace.is_none_or(|own| pod.metadata.namespace.as_deref() == Some(own));
        let of_pod = |pod: &Pod| {
            let node = cluster.node(pod.node())?;
            let failure = failure(cluster, pod).filter(|failure| failure.part == *part);
            (failure.is_some() || is_past(pod, part)).then(|| Seen {
                images: images(cluster, node),
                node: node.name().to_owned(),
                workload: workload(pod),
                fails: failure.map(|failure| failure.words),
            })
        };
        cluster.pods().filter(is_in).filter(|pod| is_alike(pod)).filter_map(of_pod).collect()
    })
}

/// The images of pods that are not unpacked in these words.
fn unpacked_nowhere<'w>(cluster: &'w ClusterState, words: &str) -> BTreeSet<&'w str> {
    let fails = |pod: &&Pod| refused_layer(pod).is_some_and(|failure| failure.words == words);
    cluster.pods().filter(fails).flat_map(|pod| &pod.spec.containers).map(|c| c.image.as_str()).collect()
}

fn images(cluster: &ClusterState, node: &Node) -> [String; 3] {
    Grain::ALL.map(|grain| grain.of(cluster, node))
}

fn workload(pod: &Pod) -> String {
    let (kind, name) = pod.workload();
    format!("{} {kind} {name}", pod.metadata.namespace.as_deref().unwrap_or_default())
}

/// A failure of pods on every Node with this Node's image that tried the part, while pods on another image get past it.
#[derive(Debug)]
pub struct ByImage<'w> {
    pub pod: &'w Pod,
    pub said: String,
    object: String,
    since: DateTime<Utc>,
    /// The image of this Node, told apart as coarsely as it separates.
    pub own: String,
    /// Nodes of this image on which it fails.
    pub failing: BTreeSet<String>,
    /// Another image, and all Nodes on which it does not fail.
    pub other: String,
    pub well: BTreeSet<String>,
    is_of_runtime: bool,
    /// Pods of the same text are among those that are well, or those of several workloads among those that fail: then
    /// it is no fault of one text.
    pub is_of_no_text: bool,
}

pub fn by_image<'w>(cluster: &'w ClusterState, node: &Node, now: DateTime<Utc>) -> Option<ByImage<'w>> {
    let failures = cluster.pods_on(node.name()).filter_map(|pod| {
        let failure = failure(cluster, pod).filter(|failure| now - failure.last <= STILL_REFUSED)?;
        Some((pod, failure))
    });
    // Of a Node whose pods are well nothing more is worked out.
    let failures: Vec<(&Pod, Failure)> = failures.collect();
    if failures.is_empty() {
        return None;
    }
    let own = images(cluster, node);
    let mut all: Vec<ByImage> = failures
        .into_iter()
        .filter_map(|(pod, failure)| {
            let keys = keys(pod, &failure.part, &failure.words);
            let told_apart = (0..own.len()).filter(|grain| !own[*grain].is_empty());
            told_apart
                .flat_map(|grain| keys.iter().map(move |key| (grain, key)))
                .find_map(|(grain, key)| split(cluster, pod, (grain, &own[grain]), key, &failure))
        })
        .collect();
    all.sort_by(|a, b| {
        (!a.is_of_no_text, a.since, &a.pod.metadata.name).cmp(&(!b.is_of_no_text, b.since, &b.pod.metadata.name))
    });
    // Releases change every week, and so does what pods are told: where one workload fails that may be its own.
    let workloads: BTreeSet<String> = all.iter().map(|found| workload(found.pod)).collect();
    let coarsest = &own[0];
    let is_told = |found: &ByImage| found.own == *coarsest || workloads.len() > 1 || found.is_of_runtime;
    // One machine is no pattern.
    all.into_iter().find(|found| found.failing.len() >= 2 && is_told(found))
}

fn split<'w>(
    cluster: &ClusterState,
    pod: &'w Pod,
    (grain, image): (usize, &str),
    key: &Key,
    failure: &Failure,
) -> Option<ByImage<'w>> {
    let seen = seen(cluster, key, &failure.part);
    // Of what is not known so closely nobody knows whether it is another.
    let (failing, well): (Vec<&Seen>, Vec<&Seen>) = seen.iter().partition(|seen| seen.fails.is_some());
    let well: Vec<&Seen> = well.into_iter().filter(|seen| !seen.images[grain].is_empty()).collect();
    let alike = failing.iter().all(|seen| seen.images[grain] == image && seen.fails.as_ref() == Some(&failure.words));
    if !alike || well.is_empty() || well.iter().any(|seen| seen.images[grain] == image) {
        return None;
    }
    let nodes = |of: &[&Seen]| of.iter().map(|seen| seen.node.clone()).collect::<BTreeSet<_>>();
    let workloads: BTreeSet<&str> = failing.iter().map(|seen| seen.workload.as_str()).collect();
    let of_text = matches!(key, Key::Text { .. });
    // A new version fails wherever it is put, and what runs is the old one.
    let own = workload(pod);
    let is_older = |other: &Pod| other.is_ready() && !pod.is_same_text(other) && workload(other) == own;
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    if !of_text && !failure.is_of_runtime && cluster.pods_in(namespace).any(is_older) {
        return None;
    }
    let (failing, well_on) = (nodes(&failing), nodes(&well));
    // A container's image may not be built for an architecture, which is nothing that a machine image lacks.
    let is_container = matches!(failure.part, Part::Container { .. });
    if is_container && !failure.is_of_runtime && differ(cluster, &failing, &well_on, "kubernetes.io/arch") {
        return None;
    }
    Some(ByImage {
        pod,
        said: failure.said.clone(),
        object: failure.object.clone(),
        since: failure.since,
        failing,
        own: image.to_owned(),
        other: well[0].images[grain].clone(),
        well: well_on,
        is_of_runtime: failure.is_of_runtime,
        is_of_no_text: of_text || workloads.len() > 1,
    })
}

/// Whether all Nodes on one side have another value of this label than all on the other.
pub fn differ(cluster: &ClusterState, one: &BTreeSet<String>, other: &BTreeSet<String>, label: &str) -> bool {
    let values = |nodes: &BTreeSet<String>| -> BTreeSet<&str> {
        nodes.iter().filter_map(|name| cluster.node(name)?.metadata.label(label)).collect()
    };
    let (one, other) = (values(one), values(other));
    !one.is_empty() && !other.is_empty() && one.is_disjoint(&other)
}

pub(super) fn wait(judging: Judging, node: &Node) -> Option<Wait> {
    let Judging { cluster, now, thresholds: t } = judging;
    if !node.is_ready() || is_out_of_service(node) {
        return None;
    }
    let found = by_image(cluster, node, now)?;
    let because = "the Node is Ready, and what pods fail in there they are past on Nodes with another image";
    let evidence = Evidence::new(found.object, "status", found.said, because);
    let patience: TimeDelta = t.ready * if found.is_of_no_text { 3 } else { 6 };
    let wait = Wait::new(Stage::Ready, found.since, patience, t, evidence);
    Some(Wait { proven: wait.patience, symptom: Symptom::PodsFailOnImage, ..wait })
}
