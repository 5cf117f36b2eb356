//! The needs of an agent's pod outside of it: the network of its Node, and the Deployment that serves it.

use super::NOT_READY;
use super::agent::{Agent, INSTANCE_TYPE};
use super::said;
use super::without_kube_proxy::without_kube_proxy;
use super::words::last_words;
use crate::api::{Blame, Link};
use crate::case::Case;
use crate::cluster_state::memo::Memo;
use crate::explain::explanation::{Explanation, Proof};
use crate::explain::logged::excerpt;
use crate::facts::custom_networking::leaves_no_interface;
use crate::facts::network_plugin;
use crate::objects::input::Input;
use crate::objects::{Node, NodeClaim, Pod, Taint};
use crate::upstream::network_agents::{self, Server};
use crate::upstream::node_events::lacks_addresses;
use crate::upstream::{startup_taint, vpc_cni};
use std::net::IpAddr;

/// The reason behind an agent with an unspecific message.
pub(super) fn found(case: &Case, node: &Node, agent: &Agent, says: &str) -> Option<Explanation> {
    too_few_interfaces(case, node, agent, says).or_else(|| unserved(case, node, agent, says))
}

/// The pod of the DaemonSet whose plugin refuses the sandbox, if it is not Ready itself.
pub(super) fn failing_plugin<'c>(case: &Case<'c>, node: &Node, agent: &Agent, plugin: &str) -> Option<&'c Pod> {
    let set = network_plugin::installer(case, node, plugin);
    let pod = case.pods().find(|p| p.daemon_set() == Some(set) && set != agent.set)?;
    (!pod.is_ready()).then_some(pod)
}

/// The sandbox fails in a plugin: the DaemonSet that installed it is at fault, not the pod that suffers.
pub(super) fn refused_by_plugin(
    case: &Case,
    node: &Node,
    agent: &Agent,
    says: &str,
    (plugin, network): (&str, Option<&str>),
) -> Option<Explanation> {
    let set = network_plugin::installer(case, node, plugin);
    let gets_none = format!("pod {} gets no network ({says})", agent.name);
    if set == agent.set {
        return (!agent.pod.is_ready()).then(|| refused_by_itself(agent, says, plugin));
    }
    let Some(pod) = case.pods().find(|p| p.daemon_set() == Some(set)) else {
        return left_behind(case, node, agent, says, plugin);
    };
    let owner = Agent::of(pod);
    let log = format!("kubectl logs -n {} {} --all-containers --tail=50", owner.namespace, owner.name);
    // Chained it would stand under the other's name for the network.
    let is_alone = network == Some(plugin) && network_plugin::CHAINED.contains(&plugin);
    if let Some(main) = network_plugin::plugin(case, node).filter(|_| is_alone) {
        let main = &main.metadata.name;
        let alone = format!("containerd loads only the configuration of its plugin, and not that of {main}");
        let why = format!(
            "{gets_none}: containerd loads only the configuration of plugin {plugin} of DaemonSet {set}. DaemonSet \
             {main}, which assigns pod IPs, is not chained"
        );
        return Some(
            Explanation::new(Proof::Lasting, why, owner.blame.clone(), agent.link(says))
                .behind(Link::new(format!("Pod/{}", owner.name), alone))
                .fix(format!(
                    "Use a version of DaemonSet {set} that waits for the configuration of {main} and chains itself to \
                     it. On this node remove its own file from /etc/cni/net.d and restart pod {}, or replace the node, \
                     which evicts its pods.",
                    owner.name
                ))
                .inspect("See what it installed", log),
        );
    }
    // client-go asks this address if it has no kubeconfig.
    // Source: client-go v0.36.3 tools/clientcmd/client_config.go `getDefaultServer`.
    if says.contains("http://localhost:8080/") {
        return Some(without_kubeconfig(&owner, agent, says, plugin));
    }
    if lacks_addresses(says) {
        let why =
            format!("{gets_none}: DaemonSet {set}, whose pod {} is Ready, has no free address on the Node", owner.name);
        return Some(
            Explanation::new(Proof::Open, why, owner.blame.clone(), agent.link(says))
                .behind(Link::new(format!("Pod/{}", owner.name), "it has no free address for pods"))
                .fix(format!(
                    "Give the node more addresses: a larger range or subnet for DaemonSet {set}, or fewer pods \
                     (maxPods). If it has free ones that {set} does not use, restart pod {} and upgrade. The restart \
                     leaves running pods alone.",
                    owner.name
                ))
                .inspect("Read its log", log.clone())
                .ask(
                    format!(
                        "Why has {set} no address: is its range or subnet full, or did it not take the addresses that \
                         it got?"
                    ),
                    log,
                ),
        );
    }
    if let Some(path) = not_executable(says) {
        let why = format!("{gets_none}: DaemonSet {set} has installed {path}, which nobody may execute");
        return Some(
            Explanation::new(Proof::Open, why, owner.blame.clone(), agent.link(says))
                .behind(Link::new(format!("Pod/{}", owner.name), format!("its {path} lacks the right to be executed")))
                .fix(format!(
                    "Use another version of DaemonSet {set}, whose programs may be executed. Until then, chmod +x \
                     {path} on the node helps, or a setting of {set} that does not call {plugin}."
                ))
                .inspect("See its versions", format!("kubectl rollout history daemonset -n {} {set}", owner.namespace)),
        );
    }
    let why = format!("{gets_none}: plugin {plugin} belongs to DaemonSet {set}, whose pod {} is Ready", owner.name);
    Some(
        Explanation::new(Proof::Open, why, owner.blame.clone(), agent.link(says))
            .behind(Link::new(format!("Pod/{}", owner.name), format!("its plugin {plugin} refuses the pod")))
            .fix(format!("Read the log of pod {}: plugin {plugin} returns an error for pods on this node.", owner.name))
            .inspect("Read its log", log.clone())
            .ask(format!("Which error does pod {} log when plugin {plugin} fails?", owner.name), log),
    )
}

/// The program of a plugin that is there and may not be executed:
/// `fork/exec /opt/cni/bin/bandwidth: permission denied`.
/// Source: golang/go go1.26 src/os/exec_posix.go `startProcess`.
fn not_executable(says: &str) -> Option<&str> {
    let (path, why) = says.split_once("fork/exec ")?.1.split_once(": ")?;
    why.starts_with("permission denied").then_some(path)
}

/// The pod of a plugin writes the plugin's kubeconfig at its start. Two plugins that start at once may overwrite each
/// other's configuration.
/// Source: istio cni/pkg/install/kubeconfig.go.
fn without_kubeconfig(owner: &Agent, agent: &Agent, says: &str, plugin: &str) -> Explanation {
    let (pod, set) = (owner.name, owner.set);
    let why = format!(
        "pod {} gets no network: plugin {plugin} has no kubeconfig, so it asks localhost for the API server ({says}). \
         Pod {pod} of DaemonSet {set} writes that file when it starts",
        agent.name
    );
    Explanation::new(Proof::Open, why, owner.blame.clone(), agent.link(says))
        .behind(Link::new(format!("Pod/{pod}"), format!("its plugin {plugin} has no kubeconfig")))
        .fix(format!(
            "Delete pod {pod}: its successor writes the kubeconfig of {plugin} again. If new nodes meet this too, \
             {set} and another network plugin may have started at the same time: update {set}."
        ))
        .change("Restart the pod", format!("kubectl delete pod -n {} {pod}", owner.namespace))
        .ask(
            format!("Did pod {pod} write the kubeconfig of {plugin}?"),
            format!("kubectl logs -n {} {pod} --all-containers --tail=50", owner.namespace),
        )
}

/// When the DaemonSet of a plugin is deleted, its configuration, its program and its token stay on the Nodes.
fn left_behind(case: &Case, node: &Node, agent: &Agent, says: &str, plugin: &str) -> Option<Explanation> {
    let own = plugin.trim_end_matches("-shim").trim_end_matches("-cni");
    let is_its = |name: &str| name.contains(own);
    let is_known = network_plugin::of_plugin(plugin) != plugin || network_plugin::CHAINED.contains(&plugin);
    // It misses what its pods brought: a token that holds, an agent that answers.
    let misses = ["Unauthorized", "connection refused", "no such file or directory"];
    let is_alone = misses.iter().any(|what| says.contains(what));
    let is_there = case.cluster.daemon_sets().any(|set| is_its(&set.metadata.name))
        || case.pods().any(|pod| is_its(&pod.metadata.name));
    if !is_known || !is_alone || is_there || case.cluster.missing(Input::DaemonSets).is_some() {
        return None;
    }
    let name = node.name();
    let left =
        format!("its network configuration still calls plugin {plugin}, but no DaemonSet of it is in the cluster");
    let why = format!(
        "pod {} gets no network ({says}): {plugin} was removed from the cluster but not from this Node, {left}",
        agent.name
    );
    Some(
        Explanation::new(Proof::Open, why, Blame::object("v1", "Node", name), agent.link(says))
            .behind(Link::new(format!("Node/{name}"), left))
            .fix(format!(
                "Delete the configuration of {plugin} from /etc/cni/net.d on this node, so that containerd uses the \
                 current plugin's. Or replace the node (drain it and delete its NodeClaim), since new nodes never had \
                 it."
            ))
            .change("Keep new pods away until then", format!("kubectl cordon {name}"))
            .ask(format!("Is there a DaemonSet of {plugin} under another name?"), "kubectl get daemonsets -A"),
    )
}

/// The plugin is still in the configuration of the Node, but needs something that only its own pod brings: after a
/// restart of the node /run is empty.
/// Source: istio/istio#60668; istio 1.28 cni/pkg/plugin/plugin.go `CmdAdd`.
fn refused_by_itself(agent: &Agent, says: &str, plugin: &str) -> Explanation {
    let each_other = format!("plugin {plugin} refuses the pod of its own DaemonSet {}", agent.set);
    let why = format!("{each_other}, so both may wait for each other");
    let log = format!("kubectl describe pod -n {} {}", agent.namespace, agent.name);
    Explanation::new(Proof::Open, why, agent.blame.clone(), agent.link(says))
        .behind(Link::new(format!("DaemonSet/{}", agent.set), each_other))
        .fix(format!(
            "Replace the node, which evicts its pods. Or remove {plugin} from /etc/cni/net.d there until pod {} runs, \
             which adds it again. Use a version of DaemonSet {} whose plugin accepts its own pod, or run that pod in \
             the host's network.",
            agent.name, agent.set
        ))
        .inspect("See what the plugin lacks", log.clone())
        .ask(format!("Does plugin {plugin} lack something that only pod {} brings?", agent.name), log)
}

const TYPHA: &str = "calico-typha";
/// The port of Typha. Source: calico v3.29.2 typha/pkg/syncserver/sync_server.go `defaultPort`.
const TYPHA_PORT: u16 = 5473;

fn unserved(case: &Case, node: &Node, agent: &Agent, says: &str) -> Option<Explanation> {
    let Server { deployment, uses, .. } = network_agents::server_of(agent.set)?;
    let pods: Vec<&Pod> = case.cluster.pods_of_deployment(agent.namespace, deployment).collect();
    if pods.iter().any(|pod| pod.is_ready()) {
        return (*deployment == TYPHA).then(|| typha_out_of_reach(case, node, agent, says, &pods)).flatten();
    }
    let (pod, fails) = pods.iter().find_map(|pod| {
        let trouble = pod.trouble().map(|(container, said)| format!("container {container}: {}", last_words(&said)));
        Some((pod, trouble.or_else(|| pod.unscheduled().map(str::to_owned))?))
    })?;
    let (name, namespace) = (&pod.metadata.name, agent.namespace);
    let fails = readers::source_text::mask(&fails);
    let image = pod.spec.containers.first().map(|c| c.image.split('@').next().unwrap_or_default());
    let image = image.and_then(|image| image.rsplit('/').next()).filter(|image| !image.is_empty());
    let of_image = image.map_or_else(String::new, |image| format!(" (image {image})"));
    let why = format!(
        "pod {} fails because it {uses} Deployment {deployment}, and no pod of that Deployment is Ready. Pod \
         {name}{of_image} fails: {fails}",
        agent.name
    );
    let blame = Blame::object("apps/v1", "Deployment", deployment).namespace(namespace);
    if let Some(taint) = pod.unscheduled().and_then(|said| taint_of_its_own(case, node, agent, pod, said)) {
        let why = format!(
            "pod {} fails because it {uses} Deployment {deployment}, and no pod of that Deployment is Ready. Pod \
             {name} does not tolerate {taint}, which all Nodes have. The taint is removed only after {} is Ready, so \
             both wait for each other",
            agent.name, agent.set
        );
        // Source: tigera/operator v1.36 api/v1/typha_deployment_types.go, pkg/common/common.go `CalicoNamespace`.
        let in_operator = match namespace {
            "calico-system" => {
                " If the Tigera operator manages it, set the toleration in spec.typhaDeployment of its Installation."
            }
            _ => "",
        };
        return Some(
            Explanation::new(Proof::Lasting, why, blame.field("spec.template.spec.tolerations"), agent.link(says))
                .behind(Link::new(format!("Deployment/{deployment}"), "none of its pods is Ready"))
                .behind(Link::new(format!("Pod/{name}"), fails))
                .fix(format!("Add a toleration for {} to Deployment {deployment}.{in_operator}", taint.key))
                .inspect("See what it waits for", format!("kubectl describe pod -n {namespace} {name}")),
        );
    }
    let unserved = |why: String, fails: String| {
        Explanation::new(Proof::Open, why, blame.clone(), agent.link(says))
            .behind(Link::new(format!("Deployment/{deployment}"), "none of its pods is Ready"))
            .behind(Link::new(format!("Pod/{name}"), fails))
    };
    let after_that = format!("{} becomes Ready on new nodes only after that.", agent.set);
    let log = format!("kubectl logs -n {namespace} {name} --all-containers --previous --tail=50");
    let Some(line) = said::of_deployment(case, deployment, pod) else {
        return Some(
            unserved(why, fails)
                .fix(format!("Get Deployment {deployment} running. {after_that}"))
                .inspect("Read its log", log.clone())
                .ask(format!("Which error does pod {name} log before it exits?"), log),
        );
    };
    let logs = format!("its log ends with: {}", excerpt(&line.text));
    if let Some((address, told)) = out_of_reach(case, agent, deployment, pod, &line.text) {
        let why = format!(
            "pod {} fails because it {uses} Deployment {deployment}, whose pod {name} does not reach the API server \
             at {address}: {}",
            agent.name, told.why
        );
        return Some(Explanation { why, ..told.after(Link::new(format!("Pod/{name}"), logs)).after(agent.link(says)) });
    }
    let (why, fails) = (format!("{why}; {logs}"), format!("{fails}; {logs}"));
    Some(
        unserved(why, fails)
            .fix(format!("Correct the error that pod {name} logs. {after_that}"))
            .inspect("Read its log", log.clone())
            .ask(format!("What else does pod {name} log?"), log),
    )
}

/// The address of Service kubernetes is not reachable where this pod runs, and nothing but the agent would make it so.
fn out_of_reach<'s>(
    case: &Case,
    agent: &Agent,
    deployment: &str,
    pod: &Pod,
    says: &'s str,
) -> Option<(&'s str, Explanation)> {
    let (_, address) = says.split_once("dial tcp")?;
    let (ip, _) = address.trim_start().split_once(":443: ")?;
    ip.trim_matches(['[', ']']).parse::<IpAddr>().ok()?;
    let node = case.cluster.node(pod.node())?;
    Some((ip, without_kube_proxy(case, node, agent, (deployment, pod))?))
}

/// The taint that keeps it off every Node and is removed only after the agent works.
/// Source: kubernetes v1.36.3 pkg/controller/nodelifecycle/node_lifecycle_controller.go
/// `nodeConditionToTaintKeyStatusMap`.
fn taint_of_its_own<'c>(case: &Case, node: &'c Node, agent: &Agent, pod: &Pod, said: &str) -> Option<&'c Taint> {
    static EVERYWHERE: Memo<bool> = Memo::new("taints that all Nodes have");
    const OF_NETWORK: [&str; 2] = [NOT_READY, "node.kubernetes.io/network-unavailable"];
    let goes_with_it = |taint: &Taint| {
        OF_NETWORK.contains(&&*taint.key) || startup_taint::owner(taint).is_some_and(|owner| owner.is(agent.set))
    };
    let keeps = |taint: &&Taint| taint.keeps_pods_off() && !pod.spec.tolerations.iter().any(|t| t.tolerates(taint));
    let taint = node.spec.taints.iter().filter(keeps).find(|taint| goes_with_it(taint))?;
    let everywhere = || {
        let on_all = || case.cluster.nodes().all(|other| other.taint(&taint.key).is_some());
        *case.cluster.once(&EVERYWHERE, &taint.key, on_all)
    };
    (said.contains("untolerated taint") && everywhere()).then_some(taint)
}

/// calico-node works only on Nodes that run a Typha.
fn typha_out_of_reach(case: &Case, node: &Node, agent: &Agent, says: &str, pods: &[&Pod]) -> Option<Explanation> {
    let beside = |name: &str| pods.iter().any(|typha| typha.is_ready() && typha.node() == name);
    let well = || {
        let agents = case.cluster.pods_named(agent.namespace, &format!("{}-", agent.set));
        agents.filter(|p| p.daemon_set() == Some(agent.set) && p.is_ready())
    };
    if beside(node.name()) || well().next().is_none() || well().any(|p| !beside(p.node())) {
        return None;
    }
    let only = "calico-node is Ready only on Nodes that run a Typha themselves";
    let why = format!(
        "pod {} fails: {says}; {only}, so this one perhaps cannot reach Typha there (TCP port {TYPHA_PORT})",
        agent.name
    );
    let blame = case.class_field("spec.securityGroupSelectorTerms").unwrap_or_else(|| agent.blame.clone());
    let log = format!("kubectl logs -n {} {} --all-containers --tail=-1 | grep -i typha", agent.namespace, agent.name);
    Some(
        Explanation::new(Proof::Open, why, blame, agent.link(says))
            .behind(Link::new(format!("Deployment/{TYPHA}"), only))
            .fix(format!(
                "Open TCP port {TYPHA_PORT} between the nodes in their security groups, because calico-node reads the \
                 API server through Typha. This disrupts nothing."
            ))
            .inspect("See what it logs about Typha", log.clone())
            .ask(format!("Does pod {} reach Typha?", agent.name), log),
    )
}

/// Custom networking excludes the first interface for pods, and security groups for pods keep one for themselves.
fn too_few_interfaces(case: &Case, node: &Node, agent: &Agent, says: &str) -> Option<Explanation> {
    let type_ = node.metadata.label(INSTANCE_TYPE)?;
    if agent.set != vpc_cni::AWS_NODE || !leaves_no_interface(case, type_) {
        return None;
    }
    let lacks = format!(
        "{type_} has 2 network interfaces for the VPC CNI: custom networking excludes the first for pods, and \
         ENABLE_POD_ENI keeps the other for security groups for pods"
    );
    let blame = match case.claim.and_then(NodeClaim::node_pool) {
        Some(pool) => Blame::object("karpenter.sh/v1", "NodePool", pool).field("spec.template.spec.requirements"),
        None => agent.blame.clone(),
    };
    let describe = format!("kubectl describe daemonset -n {} {}", agent.namespace, agent.set);
    Some(
        Explanation::new(Proof::Lasting, format!("pod {} fails: {says}; {lacks}", agent.name), blame, agent.link(says))
            .behind(Link::new(format!("Node/{}", node.name()), lacks))
            .fix(
                "Exclude types with fewer than three network interfaces in the NodePool (mostly size medium), or turn \
                 off custom networking or ENABLE_POD_ENI on aws-node.",
            )
            .inspect("See the two settings", describe),
    )
}
