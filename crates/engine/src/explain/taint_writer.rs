//! The component that last wrote the list of taints.

use crate::api::Evidence;
use crate::case::finding::Finding;
use crate::objects::Node;
use crate::upstream::cloud_controller::last_taint_writer;

/// Adds the last writer of the taint list, or the question.
pub(crate) fn naming_last_taint_writer(finding: Finding, node: &Node) -> Finding {
    let command = format!("kubectl get node {} --show-managed-fields -o yaml", node.name());
    match last_taint_writer(node) {
        Some(writer) => finding.with(Evidence::new(
            format!("Node/{}", node.name()),
            "metadata.managedFields",
            format!("f:taints owned by {}", writer.manager),
            "the newest owner of the list wrote it last",
        )),
        None => finding.unknown("Which component wrote the taint list last?", command),
    }
}
