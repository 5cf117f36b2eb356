//! Which DaemonSet is the part of a CSI driver that works on the Nodes, and what the part beside the controller says of
//! a Node without it.

use crate::objects::{DaemonSet, Event};

/// Whether it is the node part of a CSI driver: each has this sidecar beside it.
/// Source: kubernetes-csi/node-driver-registrar README.md.
pub fn is_registrar(set: &DaemonSet) -> bool {
    set.spec.template.spec.containers.iter().any(|c| c.image.contains("node-driver-registrar"))
}

/// The Node that was chosen for a pod, where the driver can make no volume for it because it is not registered there.
/// Source: kubernetes-csi/external-provisioner v3.6.0, v5.0.0, v6.3.0 pkg/controller/topology.go.
pub fn unprovisioned_on(event: &Event) -> Option<&str> {
    let (_, node) = event.message.split_once("no topology key found on CSINode ")?;
    (event.reason == "ProvisioningFailed").then_some(node.trim_end())
}

/// The driver whose provisioner reports.
/// Source: sig-storage-lib-external-provisioner v13 controller/controller.go `NewProvisionController` (component).
pub fn provisioner(event: &Event) -> &str {
    event.reporter().split('_').next().unwrap_or_default()
}

/// Whether the DaemonSet runs a CSI driver, by its sidecar or by the driver's own image.
pub fn is_of_driver(set: &DaemonSet) -> bool {
    is_registrar(set) || set.spec.template.spec.containers.iter().any(|c| c.image.contains("csi-driver"))
}

/// The node part of this driver, found by name: ebs-csi-node belongs to ebs.csi.aws.com, longhorn-csi-plugin to
/// driver.longhorn.io. If several names share a word with the driver's, the one with the fewest other words is taken:
/// fsx-openzfs-csi-node does not belong to fsx.csi.aws.com, nor ebs-csi-node-windows to a Linux node.
pub fn node_part<'s>(sets: impl Iterator<Item = &'s DaemonSet>, driver: &str) -> Option<&'s DaemonSet> {
    let of_driver: Vec<&str> = words(driver).collect();
    let alike = sets.filter(|set| is_of_driver(set)).filter_map(|set| {
        let of_set: Vec<&str> = words(&set.metadata.name).collect();
        let shared = of_set.iter().filter(|word| of_driver.contains(word)).count();
        let others = of_set.len() + of_driver.len() - 2 * shared;
        (shared > 0).then_some((others, set))
    });
    alike.min_by_key(|(others, set)| (*others, &set.metadata.name)).map(|(_, set)| set)
}

/// The words of a name that identify the driver, without words that many names share.
fn words(name: &str) -> impl Iterator<Item = &str> {
    const NOBODYS: [&str; 9] = ["csi", "aws", "com", "io", "k8s", "driver", "storage", "node", "plugin"];
    name.split(['.', '-']).filter(|word| !NOBODYS.contains(word))
}

#[cfg(test)]
mod tests {
    use super::node_part;
    use crate::objects::DaemonSet;

    #[test]
    fn a_driver_has_the_node_part_that_is_called_like_it() {
        let set = |name: &str| -> DaemonSet {
            serde_json::from_value(serde_json::json!({
                "metadata": {"name": name},
                "spec": {"template": {"spec": {"containers": [{"image": "sig-storage/csi-node-driver-registrar:v2"}]}}},
            }))
            .unwrap()
        };
        let names = [
            "ebs-csi-node-windows",
            "ebs-csi-node",
            "fsx-openzfs-csi-node",
            "fsx-csi-node",
            "longhorn-csi-plugin",
            "s3-csi-node",
        ];
        let sets = names.map(set);
        for (driver, name) in [
            ("ebs.csi.aws.com", Some("ebs-csi-node")),
            ("fsx.csi.aws.com", Some("fsx-csi-node")),
            ("fsx.openzfs.csi.aws.com", Some("fsx-openzfs-csi-node")),
            ("driver.longhorn.io", Some("longhorn-csi-plugin")),
            ("efs.csi.aws.com", None),
        ] {
            assert_eq!(node_part(sets.iter(), driver).map(|set| &*set.metadata.name), name, "{driver}");
        }
    }
}
