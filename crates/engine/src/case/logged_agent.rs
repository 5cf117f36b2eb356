//! A Ready Node of which a log was given: its kube-proxy or its network plugin fails there, and nothing else tells.

use super::judging::Judging;
use super::stage::Wait;

use crate::case::pool_wait::STILL_ASKED_FOR;

use crate::api::{Evidence, Stage};
use crate::case::out_of_service::is_out_of_service;
use crate::objects::Node;
use logs::fact::{Fact, Trouble};

/// A log that does not name the Node may be of another; what an agent complains of at times, or has got over, is
/// nothing.
pub(super) fn wait(judging: Judging, node: &Node) -> Option<Wait> {
    let Judging { cluster, now, thresholds: t } = judging;
    if !node.is_ready() || is_out_of_service(node) {
        return None;
    }
    let logs = cluster.logs_of(cluster.claim_of_node(node), Some(node));
    let own = logs.iter().filter(|of_machine| of_machine.is_named);
    let told: Vec<&Fact> = own
        .flat_map(|of_machine| of_machine.log.journey.open())
        .filter(|fact| fact.trouble == Trouble::KubeProxyFails && !fact.vague)
        .collect();
    let (first, last) = (told.iter().filter_map(|f| f.first.time).min()?, told.iter().max_by_key(|f| f.last.time)?);
    let at = last.last.time?;
    let lasts = Fact::last_together(told.iter().copied()) && at - first >= t.ready * 3;
    if !lasts || now - at > STILL_ASKED_FOR {
        return None;
    }
    let because = "the Node is Ready, and what its pods need for their network says that it fails";
    let evidence = Evidence::new(format!("Log/{}", last.last.file), "message", last.last.text.clone(), because);
    Some(Wait::new(Stage::Ready, first, t.ready * 3, t, evidence).only_with_proof())
}
