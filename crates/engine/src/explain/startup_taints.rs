//! Startup taints that are left, and why their owner has not removed them.

use crate::api::{Blame, Link};
use crate::case::Case;
use crate::case::finding::Finding;
use crate::cluster_state::memo::Memo;
use crate::explain::agent_chain::{of_pod, refused, remover_waits, without_pod};
use crate::explain::explanation::{Explanation, Proof};
use crate::explain::taint_writer::naming_last_taint_writer;
use crate::facts::deployment_pods;
use crate::objects::input::Input;
use crate::objects::{Node, NodeClaim, Pod, Taint};
use crate::upstream::cloud_controller::last_taint_writer;
use crate::upstream::karpenter::{DO_NOT_SYNC_TAINTS_LABEL, Version, image_tag};
use crate::upstream::startup_taint;
use chrono::{DateTime, Utc};
use logs::fact::{Fact, Reason, Trouble};
use readers::userdata::Family;

/// The startup taint that keeps the Node from being initialized, and all that are left.
///
/// If several are left, an agent may only wait for another's taint. The first whose agent waits for no other is the one
/// to explain.
pub(crate) fn staying<'c>(case: &Case<'c>) -> Option<(&'c Taint, Vec<&'c Taint>)> {
    let (node, claim) = (case.node?, case.claim?);
    let is_declared = |taint: &Taint| claim.spec.startup_taints.iter().any(|own| own.matches(taint));
    // A dump may leave out what a NodeClaim declares; Karpenter's own word stands all the same.
    // Source: core pkg/controllers/nodeclaim/lifecycle/initialization.go `Reconcile` (v1.0.5, v1.14.1).
    let said = claim.condition("Initialized").filter(|c| c.reason == "StartupTaintsExist");
    let is_said = |taint: &Taint| said.is_some_and(|c| c.message.contains(&format!("\"{taint}\"")));
    let all: Vec<&Taint> = node.spec.taints.iter().filter(|t| is_declared(t) || is_said(t)).collect();
    let waits_for_another = |taint: &Taint| {
        let sets = || {
            startup_taint::owner(taint)
                .into_iter()
                .flat_map(|o| case.cluster.daemon_sets().filter(move |d| o.is(&d.metadata.name)))
        };
        all.iter().any(|other| !other.matches(taint) && sets().any(|set| !set.tolerates(other)))
    };
    let first = all.iter().find(|t| !waits_for_another(t)).or(all.first())?;
    Some((*first, all))
}

/// The pod of the taint's owner on the Node.
pub(crate) fn pod_of<'c>(case: &Case<'c>, owner: &startup_taint::TaintOwner) -> Option<&'c Pod> {
    case.pods().find(|p| p.daemon_set().is_some_and(|d| owner.is(d)))
}

/// Why the owner has not removed its taint from the Node: a clause, and the reason behind it.
pub(crate) fn explain(
    case: &Case,
    node: &Node,
    pool: &str,
    taint: &Taint,
    owner: &startup_taint::TaintOwner,
) -> Explanation {
    let name = node.name();
    let open = |why: &str, blame: Blame| {
        let link = Link::new(blame.object.clone(), why);
        Explanation::new(Proof::Open, why, blame, link).fix(owner.fix)
    };
    let of_node = || Blame::object("v1", "Node", name).field("spec.taints");
    if let Some(waits) = remover_waits(case, taint, owner) {
        return waits;
    }
    if let Some(awaited) = awaited_daemon_set(case, node, taint).or_else(|| failing_package(case, node, taint)) {
        return awaited;
    }
    if let Some(why) = owner.otherwise {
        return open(why, of_node());
    }
    let whose = owner.remover.map_or_else(|| "its".to_owned(), |_| format!("{}'s", owner.name));
    if let Some(pod) = pod_of(case, owner) {
        if pod.is_ready() {
            if let Some(never) = never_removes(case, node, taint, pod).filter(|_| owner.remover.is_none()) {
                return never;
            }
            if let Some(off) = switched_off(case, owner) {
                return off;
            }
            return open(
                &format!("has not, although {whose} pod {} on the Node is Ready", pod.metadata.name),
                of_node(),
            );
        }
        let explanation = of_pod(case, node, pod);
        return Explanation { why: format!("{whose} {}", explanation.why), ..explanation };
    }
    let installed = case.cluster.daemon_sets().find(|d| owner.is(&d.metadata.name)).map(|d| &*d.metadata.name);
    let refused_set = || owner.daemon_sets().iter().copied().find(|set| refused(case, node, set, None).is_some());
    match installed.or_else(refused_set) {
        Some(set) => without_pod(case, node, set),
        None if case.cluster.missing(Input::DaemonSets).is_some() => {
            Explanation { proof: Proof::None, ..open("nodewhy could not read whether it runs on the Node", of_node()) }
        }
        None => {
            let blame = Blame::object("karpenter.sh/v1", "NodePool", pool).field("spec.template.spec.startupTaints");
            open(&format!("{} is not installed", owner.name), blame)
        }
    }
}

/// The DaemonSet that the taint names is not Ready on the Node.
fn awaited_daemon_set(case: &Case, node: &Node, taint: &Taint) -> Option<Explanation> {
    let (namespace, name) = startup_taint::watched_daemon_set(taint)?;
    let is_its = |pod: &&Pod| pod.daemon_set() == Some(name) && pod.metadata.namespace.as_deref() == Some(namespace);
    let explanation = match case.pods().find(is_its) {
        Some(pod) if pod.is_ready() => return None,
        Some(pod) => of_pod(case, node, pod),
        None => {
            case.cluster.daemon_sets().find(|set| set.metadata.name == *name)?;
            without_pod(case, node, name)
        }
    };
    let why = format!("it waits for DaemonSet {name}: {}", explanation.why);
    Some(Explanation { why, ..explanation })
}

/// A package of Skyhook that does not complete on the Node.
fn failing_package(case: &Case, node: &Node, taint: &Taint) -> Option<Explanation> {
    let fails = |pod: &&Pod| startup_taint::package(pod).is_some() && pod.trouble().is_some();
    let pod = case.pods().filter(|_| startup_taint::waits_for_packages(taint)).find(fails)?;
    let (skyhook, package) = startup_taint::package(pod)?;
    let failing = of_pod(case, node, pod);
    let why = format!("it waits for package {package} of Skyhook {skyhook}: {}", failing.why);
    let blame = Blame::object("skyhook.nvidia.com/v1alpha1", "Skyhook", skyhook).field("spec.packages");
    Some(
        Explanation { why, blame, ..failing }
            .fix(format!(
                "Correct package {package} in Skyhook {skyhook}, or take it out. The operator removes the taint once \
                 the other packages are complete."
            ))
            .inspect("See how far its packages came", format!("kubectl get skyhook {skyhook} -o yaml")),
    )
}

/// The component that removes the taint runs, but this function of it is off.
fn switched_off(case: &Case, owner: &startup_taint::TaintOwner) -> Option<Explanation> {
    let (deployment, switch) = (owner.remover_deployment()?, owner.switch()?);
    let pods = deployment_pods::on_nodes(case, deployment);
    // A value from elsewhere is read as an empty one.
    let may_be_on = |pod: &Pod| {
        let set = pod.spec.containers.iter().flat_map(|c| &c.env).find(|variable| variable.name == switch);
        set.is_some_and(|variable| matches!(&*variable.value.to_ascii_lowercase(), "" | "true" | "t" | "1"))
    };
    if pods.iter().any(|pod| may_be_on(pod)) {
        return None;
    }
    // Another revision has a Deployment of its own: the pod's name ends with a hash of its ReplicaSet and one of its
    // own.
    let pod = pods.first()?;
    let name = pod.metadata.name.rsplitn(3, '-').last()?;
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let why = format!("has not, because Deployment {name} runs without {switch}=true");
    let blame =
        Blame::object("apps/v1", "Deployment", name).namespace(namespace).field("spec.template.spec.containers[0].env");
    let link = Link::new(format!("Pod/{}", pod.metadata.name), format!("it runs without {switch}=true"));
    // The variable may come from a ConfigMap as a whole.
    Some(Explanation::new(Proof::Open, why, blame, link).fix(owner.ready.map_or(owner.fix, |(fix, _)| fix)))
}

/// Karpenter merges the startup taints into the Node at registration, unless this label forbids it.
/// Source: core pkg/controllers/nodeclaim/lifecycle/registration.go `syncNode` (v1.14.3); core#1772, core#2125,
/// aws#8029.
pub(crate) fn restored_by_karpenter(case: &Case, node: &Node) -> bool {
    let synced = node.metadata.label(DO_NOT_SYNC_TAINTS_LABEL) != Some("true");
    let old = case.karpenter().is_some_and(|karpenter| !karpenter.knows_do_not_sync_taints());
    synced && (old || case.class().is_some_and(|class| class.family() == Some(Family::Custom)))
}

/// Whether several machines of the NodePool have kept the taint, none has lost it, and nothing wrote the list after
/// registration. A component that re-adds a taint does so in a race, and not always.
pub(crate) fn on_every_machine(case: &Case, node: &Node, taint: &Taint) -> bool {
    static KEPT: Memo<bool> = Memo::new("startup taints that each node of a NodePool has kept");
    let of_registration = |manager: &str| manager.contains("kubelet") || manager.contains("karpenter");
    let written = last_taint_writer(node).is_some_and(|writer| !of_registration(&writer.manager));
    let Some(pool) = case.claim.and_then(NodeClaim::node_pool).filter(|_| !written) else { return false };
    if restored_by_karpenter(case, node) {
        return false;
    }
    *case.cluster.once(&KEPT, &format!("{pool} {taint}"), || {
        let starts_with_it = |claim: &&NodeClaim| claim.spec.startup_taints.iter().any(|own| own.matches(taint));
        let nodes = case.cluster.claims_of_pool(pool).filter(starts_with_it);
        let nodes = nodes.filter_map(|claim| case.cluster.node(&claim.status.node_name)).filter(|node| node.is_ready());
        let (kept, lost): (Vec<&Node>, Vec<&Node>) =
            nodes.partition(|node| node.spec.taints.iter().any(|t| t.matches(taint)));
        kept.len() > 1 && lost.is_empty()
    })
}

/// The driver is Ready, but its version waits for something that never comes before it removes its taint: the limit of
/// volumes in its CSINode. The kubelet writes that only if a driver reports one. This driver does so only with
/// --volume-attach-limit-opt-in.
/// Sources: aws-efs-csi-driver v3.5.0 pkg/driver/node.go `checkDriverRegistration`, `getVolumeAttachLimit` (#1939,
/// #1966); kubernetes v1.36.3 pkg/volume/csi/nodeinfomanager/nodeinfomanager.go `installDriverToCSINode`.
fn waits_for_volume_limit(case: &Case, node: &Node, taint: &Taint, pod: &Pod) -> Option<Explanation> {
    const WAITS: Version = Version(3, 5, 0);
    let ready = pod.status.conditions.iter().find(|c| c.type_ == "Ready" && c.is_true())?;
    let settled = ready.last_transition_time.is_none_or(|at| case.now - at >= case.wait.proven);
    let image = pod.spec.containers.iter().map(|c| &*c.image).find(|image| image.contains("aws-efs-csi-driver"))?;
    let version = image_tag(image).and_then(Version::parse)?;
    if taint.key != "efs.csi.aws.com/agent-not-ready" || version != WAITS || !settled {
        return None;
    }
    let why = format!(
        "version {version} of it waits in pod {}, which is Ready, for a limit of volumes in the Node's CSINode. The \
         kubelet writes that only for drivers that report one",
        pod.metadata.name
    );
    let set = pod.daemon_set()?;
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let blame = Blame::object("apps/v1", "DaemonSet", set).namespace(namespace).field("spec.template.spec.containers");
    let link = Link::new(format!("Pod/{}", pod.metadata.name), format!("it is Ready, of {image}"));
    Some(
        Explanation::new(Proof::Open, why, blame, link)
            .fix(format!(
                "Use another version of the driver: 3.4 does not wait, nor does one with the fix of \
                 kubernetes-sigs/aws-efs-csi-driver#1966. Until then remove {} from startupTaints of the NodePool, and \
                 from the Nodes that have it, which disrupts no pod.",
                taint.key
            ))
            .ask(
                "Does the driver have no limit (allocatable) in the Node's CSINode?",
                format!("kubectl get csinode {} -o yaml", node.name()),
            ),
    )
}

/// The version since which a driver removes its taint, by the key and a part of its image.
/// Sources: aws-ebs-csi-driver CHANGELOG.md v1.19.0 (#1588); kubernetes-sigs/aws-efs-csi-driver#1238.
const REMOVED_SINCE: [(&str, &str, Version); 2] = [
    ("ebs.csi.aws.com/agent-not-ready", "aws-ebs-csi-driver", Version(1, 19, 0)),
    ("efs.csi.aws.com/agent-not-ready", "aws-efs-csi-driver", Version(1, 7, 2)),
];

/// The driver's version does not know its taint.
fn too_old(taint: &Taint, pod: &Pod) -> Option<Explanation> {
    let (_, part, since) = REMOVED_SINCE.iter().find(|(key, ..)| **key == *taint.key)?;
    let image = pod.spec.containers.iter().map(|c| &*c.image).find(|image| image.contains(part))?;
    let version = image_tag(image).and_then(Version::parse).filter(|version| version < since)?;
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let set = pod.daemon_set()?;
    let blame = Blame::object("apps/v1", "DaemonSet", set).namespace(namespace).field("spec.template.spec.containers");
    let link = Link::new(format!("Pod/{}", pod.metadata.name), format!("it is of {image}"));
    let why = format!("version {version} of it does not remove the taint, which came with {since}");
    Some(Explanation::new(Proof::Lasting, why, blame, link).fix(format!(
        "Upgrade DaemonSet {set} to {since} or later, with its chart or add-on (its ServiceAccount needs the \
         permission to patch Nodes). Until then remove {} from startupTaints of the NodePool, and from the Nodes that \
         have it, which disrupts no pod.",
        taint.key
    )))
}

/// Why the driver removes its taint from no machine, though it is Ready.
pub(crate) fn never_removes(case: &Case, node: &Node, taint: &Taint, pod: &Pod) -> Option<Explanation> {
    too_old(taint, pod)
        .or_else(|| refused_removal(case, pod))
        .or_else(|| waits_for_volume_limit(case, node, taint, pod))
        .or_else(|| lacks_right(case, node, taint, pod))
}

/// The driver's log says that it lacks a permission for removing the taint. Its ServiceAccount has the same permissions
/// on every Node.
fn refused_removal(case: &Case, pod: &Pod) -> Option<Explanation> {
    static NEWEST: Memo<Option<(Option<DateTime<Utc>>, String)>> = Memo::new("the newest denial of a taint's removal");
    let (name, namespace) = (&pod.metadata.name, pod.metadata.namespace.as_deref().unwrap_or_default());
    let account = pod.spec.service_account_name.as_str();
    let who = format!("system:serviceaccount:{namespace}:{account}");
    let is_its = |fact: &&Fact| {
        fact.trouble == Trouble::TaintStays && fact.reason == Some(Reason::Forbidden) && fact.last.text.contains(&who)
    };
    let newest = case.cluster.once(&NEWEST, &who, || {
        let told = case.cluster.logs().flat_map(|log| log.journey.open()).filter(is_its);
        told.max_by_key(|fact| fact.last.time).map(|fact| (fact.last.time, fact.last.text.clone()))
    });
    let (_, told) = (*newest).as_ref().filter(|(time, _)| *time >= pod.metadata.creation_timestamp)?;
    let what = told.split_once(&who).map_or("", |(_, what)| what);
    let what = what.split_once("cannot ").map_or("do that", |(_, what)| what);
    let what = what.replace(['\\', '"'], "");
    let why = format!("has not, because ServiceAccount {account} of its pods cannot {}", what.trim());
    let blame = Blame::object("v1", "ServiceAccount", account).namespace(namespace);
    let link = Link::new(format!("Pod/{name}"), format!("it is Ready, but its ServiceAccount cannot {}", what.trim()));
    Some(Explanation::new(Proof::Lasting, why, blame, link).fix(format!(
        "Give ServiceAccount {account} the whole ClusterRole of the driver's chart of this version. To remove the \
         taint it needs get csinodes and get, patch nodes. This disrupts nothing."
    )))
}

/// The driver is Ready, but removes its taint from no machine: it reads its CSINode first, and then patches the Node.
/// Source: aws-ebs-csi-driver v1.40.0 pkg/driver/node.go `removeNotReadyTaint`, charts/aws-ebs-csi-driver/templates/
/// clusterrole-csi-node.yaml.
fn lacks_right(case: &Case, node: &Node, taint: &Taint, pod: &Pod) -> Option<Explanation> {
    let ready = pod.status.conditions.iter().find(|c| c.type_ == "Ready" && c.is_true())?;
    let settled = ready.last_transition_time.is_none_or(|at| case.now - at >= case.wait.proven);
    if !settled || !on_every_machine(case, node, taint) {
        return None;
    }
    let (name, namespace) = (&pod.metadata.name, pod.metadata.namespace.as_deref().unwrap_or_default());
    let account = match pod.spec.service_account_name.as_str() {
        "" => "default",
        account => account,
    };
    let who = format!("system:serviceaccount:{namespace}:{account}");
    let why = format!(
        "has not on any node of the NodePool, although its pods are Ready: ServiceAccount {account} may lack the \
         permission (get csinodes, patch nodes)"
    );
    let blame = Blame::object("v1", "ServiceAccount", account).namespace(namespace);
    let link = Link::new(format!("Pod/{name}"), "it is Ready, but the taint is on each node that started with it");
    Some(
        Explanation::new(Proof::Open, why, blame, link)
            .fix(format!(
                "Bind ServiceAccount {account} to the whole ClusterRole of the driver's chart. To remove the taint it \
                 needs get csinodes and get, patch nodes. This disrupts nothing."
            ))
            .ask(
                "May the driver read CSINodes and patch Nodes?",
                format!("kubectl auth can-i get csinodes --as={who}; kubectl auth can-i patch nodes --as={who}"),
            ),
    )
}

/// If the agent is healthy, the component that removes its taint may be at fault.
pub(crate) fn ask_remover(case: &Case, finding: Finding, owner: &startup_taint::TaintOwner) -> Finding {
    let well = pod_of(case, owner).is_some_and(Pod::is_ready) && switched_off(case, owner).is_none();
    let (Some((fix, command)), Some(node), true) = (owner.ready, case.node, well) else { return finding };
    let remover = owner.remover.unwrap_or(owner.name);
    naming_last_taint_writer(finding.fix(fix), node)
        .unknown(format!("Does {remover} run, and what does it log about this Node?"), command)
}
