//! A port of the Node that an agent needs and another program has.

use super::agent::Agent;
use crate::api::{Blame, Link};
use crate::case::Case;
use crate::cluster_state::memo::Memo;
use crate::explain::explanation::{Explanation, Proof};
use crate::facts::network_plugin::{self, KUBE_PROXY};
use crate::objects::Pod;
use std::collections::BTreeSet;

/// The pod that used a port of the Node first, if a pod declares the port.
pub(super) fn taken(
    case: &Case,
    agent: &Agent,
    port: Option<u16>,
    fails: impl Fn(&str) -> String,
    link: Link,
) -> Explanation {
    let is_other = |pod: &&Pod| *pod.metadata.name != *agent.name && pod.runs();
    let takes = |pod: &&Pod| port.is_some_and(|port| pod.takes_host_port(port));
    let mut holders: Vec<&Pod> = case.pods().filter(is_other).filter(takes).collect();
    holders.sort_by_key(|pod| &pod.metadata.name);
    let what = port.map_or_else(|| "the port that it needs".to_owned(), |port| format!("port {port} of the Node"));
    let Some(holder) = holders.first() else {
        return Explanation::new(
            Proof::Open,
            fails(&format!("; another program has {what}")),
            agent.blame.clone(),
            link,
        )
        .fix(format!(
            "Find the program that has {what}: another agent in the node's network or a service of the image. Give \
                 one of the two another port.",
        ))
        .inspect(
            "See which pods are in the Node's network",
            format!(
                "kubectl get pods -A --field-selector spec.nodeName={} -o \
                     custom-columns=NAME:.metadata.name,HOST:.spec.hostNetwork",
                agent.pod.node()
            ),
        );
    };
    let (kind, name) = holder.workload();
    let namespace = holder.metadata.namespace.as_deref().unwrap_or_default();
    let is_network = |set: &str| set == KUBE_PROXY || network_plugin::rank(set).is_some();
    // The Node's network was there first, whoever came first this time.
    let yields = is_network(name) && !is_network(agent.set);
    let api = if kind == "Pod" { "v1" } else { "apps/v1" };
    let blame = if yields { agent.in_spec("containers") } else { Blame::object(api, kind, name).namespace(namespace) };
    let object = blame.object.replacen('/', " ", 1);
    Explanation::new(Proof::Lasting, fails(&format!("; {kind} {name} has {what}")), blame, link)
        .behind(Link::new(format!("Pod/{}", holder.metadata.name), format!("it takes {what}")))
        .fix(format!(
            "Give {object} another port, or take it out of the node's network (hostNetwork, hostPort). Its pods \
             restart."
        ))
        .inspect(
            "See which ports the other takes",
            format!(
                "kubectl get pod -n {namespace} {} -o jsonpath='{{.spec.containers[*].ports}}'",
                holder.metadata.name
            ),
        )
}

/// The port of a pod that the scheduler keeps off the Node because a pod there has the port.
pub(super) fn held(case: &Case, agent: &Agent) -> Option<u16> {
    let is_other = |pod: &&Pod| pod.metadata.name != agent.pod.metadata.name && pod.runs();
    let holds = |port: u16| case.pods().filter(is_other).any(|pod| pod.takes_host_port(port));
    agent.pod.host_ports().find(|port| holds(*port))
}

/// A port of the Node that another workload has on each Node on which the agent fails, and on none on which it works.
pub(super) fn taken_where_it_fails(case: &Case, set: &str) -> Option<u16> {
    static PORTS: Memo<Option<u16>> = Memo::new("a port that is taken on Nodes on which an agent fails");
    let found = case.cluster.once(&PORTS, set, || {
        let (mut failing, mut well) = (Vec::new(), Vec::new());
        for node in case.cluster.nodes() {
            let pods = || case.cluster.pods_on(node.name());
            let Some(agent) = pods().find(|pod| pod.daemon_set() == Some(set)) else { continue };
            let others = pods().filter(|pod| pod.daemon_set() != Some(set) && pod.runs());
            let ports: BTreeSet<u16> = others.flat_map(Pod::host_ports).collect();
            if agent.is_ready() {
                well.push(ports);
            } else if agent.trouble().is_some() {
                failing.push(ports);
            }
        }
        // One machine is no pattern.
        let first = failing.first().filter(|_| failing.len() >= 2 && well.len() >= 2)?;
        let is_telling =
            |port: &u16| failing.iter().all(|own| own.contains(port)) && !well.iter().any(|own| own.contains(port));
        first.iter().copied().find(is_telling)
    });
    *found
}
