//! The record of a removal on the Node itself. Deleting NodeDiagnoses does not erase this record. Erasing it takes the
//! right to write Nodes, which also permits removing the taint.

use crate::api::{FIELD_MANAGER, REMOVED_ANNOTATION};
use crate::objects::{ManagedField, Node, Taint};
use crate::upstream::karpenter::UNINITIALIZED_TAINT;
use chrono::{DateTime, TimeDelta, Utc};

/// Whether a taint was removed from this very Node.
pub(super) fn is_stamped(node: &Node) -> bool {
    node.metadata.annotation(REMOVED_ANNOTATION).is_some()
}

/// Whether that was within the window. An invalid time was written by another tool, and counts. That only makes
/// removals rarer.
pub(super) fn is_recent(node: &Node, now: DateTime<Utc>, window: TimeDelta) -> bool {
    node.metadata
        .annotation(REMOVED_ANNOTATION)
        .is_some_and(|stamp| stamp.parse::<DateTime<Utc>>().map_or(true, |at| now - at < window))
}

/// The taint, if it is on a Node from which it was removed.
pub(super) fn came_back(node: &Node) -> Option<&Taint> {
    node.taint(UNINITIALIZED_TAINT).filter(|_| is_stamped(node))
}

/// The message about a taint that came back, with the last writer of the taint list, and the time, as far as
/// `managedFields` show.
pub(super) fn put_back(node: &Node, taint: &Taint) -> (String, Option<DateTime<Utc>>) {
    let writers = node.metadata.managed_fields.0.iter().filter(|f| f.owns_taints && f.manager != FIELD_MANAGER);
    let last = writers.max_by_key(|f| f.time);
    let by = last.map_or("a client that managedFields does not name", ManagedField::writer);
    (format!("{taint} was removed from Node {} and re-added by {by}.", node.name()), last.and_then(|f| f.time))
}
