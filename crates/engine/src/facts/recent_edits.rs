//! The changes between the last machine that joined and the first that did not.
//!
//! The time of a change helps you to find the cause. It is not a cause: it never decides a verdict.

use crate::api::{Evidence, Stage};
use crate::case::{Case, timestamp};
use crate::objects::Written;

/// Why it matters; by this it is known as one.
pub(crate) const BECAUSE: &str =
    "changed after the last machine of the class registered, before the oldest that still waits was launched";

/// The changes of what all machines of the class share, made after the last success and before the first failure.
pub fn evidence(case: &Case) -> Vec<Evidence> {
    let (Some(class_members), Stage::Join | Stage::Register) = (case.class_members(), case.stage()) else {
        return Vec::new();
    };
    let (Some(joined), Some(failed)) =
        (class_members.last_joined().map(|(at, _)| *at), class_members.launched_in_vain().next().map(|(at, _)| *at))
    else {
        return Vec::new();
    };
    let class = case.class().and_then(|c| Some((case.class_object()?, c.metadata.last_written()?)));
    let aws_auth =
        case.cluster.aws_auth().and_then(|a| Some(("ConfigMap kube-system/aws-auth".to_owned(), a.written.clone()?)));
    let karpenter = case.karpenter().and_then(|k| Some((k.source.clone(), k.written.clone()?)));
    let between = |(_, written): &(String, Written)| joined < written.at && written.at <= failed;
    let shown = |(object, written): (String, Written)| {
        let observed = format!("{} by {}", timestamp(written.at), written.by);
        Evidence::new(object, "metadata.managedFields", observed, BECAUSE).figures(format!(
            "registered at {}, launched at {}",
            joined.format("%H:%M:%SZ"),
            failed.format("%H:%M:%SZ")
        ))
    };
    [class, aws_auth, karpenter].into_iter().flatten().filter(between).map(shown).collect()
}
