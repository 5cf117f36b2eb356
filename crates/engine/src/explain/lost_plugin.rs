//! The kubelet lost its connection to the device plugin of a resource, and no plugin registered again.

use crate::api::Blame;
use crate::case::{Case, timestamp};
use crate::explain::explanation::{Explanation, Proof};
use crate::explain::logged::{at, excerpt};
use crate::objects::{Node, Pod, conditions};

/// What the kubelet's log says of it. `plugin` is the pod of the plugin on the Node, if it has one.
pub(crate) fn of(case: &Case, node: &Node, resource: &str, who: &str, plugin: Option<&Pod>) -> Option<Explanation> {
    // A plugin that was started after the log ends may have registered since.
    let ready = plugin.and_then(|pod| conditions(&pod.status.conditions, "Ready")?.last_transition_time);
    let logs = case.logs().into_iter().map(|of_machine| &of_machine.log.journey);
    let mut logs = logs.filter(|journey| ready.zip(journey.ends).is_none_or(|(ready, ends)| ready <= ends));
    let line = logs.find_map(|journey| journey.device_plugins.lost(resource))?;
    let when = line.time.map_or_else(String::new, |time| format!(" at {}", timestamp(time)));
    let why = format!(
        "the kubelet lost its connection to {who}{when} ({}), and its log shows no registration after that",
        excerpt(&line.text)
    );
    let evidence = at(line, "a resource is offered only while its plugin is registered with the kubelet".to_owned());
    let of_node = Blame::object("v1", "Node", node.name()).field("status.allocatable");
    let Some(pod) = plugin else { return Some(without_pod(case, node, why, of_node).with(evidence)) };
    let (namespace, name) = (pod.metadata.namespace.as_deref().unwrap_or_default(), &pod.metadata.name);
    let found = Explanation::unlinked(Proof::Open, why, of_node)
        .fix(format!("Restart pod {name}, so that the plugin registers again."))
        .change("Restart the plugin", format!("kubectl delete pod -n {namespace} {name}"));
    Some(found.with(evidence))
}

/// The plugin is a service of the image. In Bottlerocket 1.25.0 it may take the start of the kubelet for a restart, and
/// registers twice at once. A later release waits until the kubelet listens.
/// Sources: bottlerocket-os/bottlerocket#4250, bottlerocket-os/bottlerocket-core-kit#228.
fn without_pod(case: &Case, node: &Node, why: String, of_node: Blame) -> Explanation {
    let is_auto = node.metadata.label("eks.amazonaws.com/compute-type") == Some("auto");
    let os_image = &node.status.node_info.os_image;
    let is_bottlerocket = os_image.starts_with("Bottlerocket") && !is_auto;
    let of_image = case.class_field("spec.amiSelectorTerms").filter(|_| is_bottlerocket);
    let fix = if is_bottlerocket && os_image.contains(" 1.25.0 ") {
        "Delete the NodeClaim: on Bottlerocket the plugin is a service of the image, and a new node starts it again. \
         If that happens on other nodes too, select a newer release: 1.25.0 has a race between the plugin and the \
         kubelet."
    } else if is_bottlerocket {
        "Delete the NodeClaim: on Bottlerocket the plugin is a service of the image, and a new node starts it again. \
         If that happens on other nodes too, select another release."
    } else {
        "Restart the device plugin on the node, so that it registers again. If it is a service of the image, delete \
         the NodeClaim."
    };
    let found = Explanation::unlinked(Proof::Open, why, of_image.unwrap_or(of_node)).fix(fix);
    match case.claim {
        Some(claim) => found.destroy("Replace the node", format!("kubectl delete nodeclaim {}", claim.name())),
        None => found,
    }
}
