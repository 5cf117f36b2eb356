//! The pods of a Deployment that are on Nodes, found by its name.

use crate::case::Case;
use crate::cluster_state::memo::Memo;
use crate::objects::Pod;

/// Namespaces and names, in the order of the Nodes.
type Names = Vec<(String, String)>;

pub(crate) fn on_nodes<'w>(case: &Case<'w>, deployment: &str) -> Vec<&'w Pod> {
    static PODS: Memo<Names> = Memo::new("the pods of a Deployment that are on Nodes");
    let cluster = case.cluster;
    let names = cluster.once(&PODS, deployment, || {
        let all = cluster.nodes().flat_map(|node| cluster.pods_on(node.name()));
        let own = all.filter(|pod| pod.is_of_deployment(deployment)).map(|pod| &pod.metadata);
        own.map(|meta| (meta.namespace.as_deref().unwrap_or_default().to_owned(), meta.name.to_string())).collect()
    });
    let pod = |(namespace, name): &(String, String)| {
        cluster.pods_named(namespace, name).find(|pod| *pod.metadata.name == **name)
    };
    names.iter().filter_map(pod).collect()
}
