//! The first questions of the rules about missing taints: does the Node lack taints that Karpenter relies on, and what
//! is the effect?

use crate::api::{Evidence, Stage};
use crate::case::Case;
use crate::case::finding::Opinion;
use crate::case::taints;
use crate::objects::{Node, NodeClaim, Taint};
use crate::upstream::karpenter::UNREGISTERED_TAINT;
use readers::userdata::UserData;

/// A Node that registered without its taints.
pub struct Untainted<'w> {
    pub claim: &'w NodeClaim,
    pub node: Option<&'w Node>,
    /// Karpenter rejects the Node; otherwise it is in service without `missing`.
    pub refused: bool,
    pub missing: Vec<Taint>,
}

/// `Err` is the rule's answer where the question does not arise.
pub fn ask<'w>(case: &Case<'w>) -> Result<Untainted<'w>, Option<Opinion>> {
    let Some(claim) = case.claim.filter(|_| case.stage() == Stage::Register) else { return Err(None) };
    if let Some(registered) = claim.condition("Registered").filter(|c| c.is_false()) {
        // core v1.0.5 pkg/controllers/nodeclaim/lifecycle/registration.go; the condition itself proves that this
        // version blocks.
        if registered.reason != "UnregisteredTaintNotFound" {
            return Err(None);
        }
        return Ok(Untainted { claim, node: case.node, refused: true, missing: Vec::new() });
    }
    let Some(node) = case.node.filter(|_| claim.is_true("Registered")) else { return Err(None) };
    Ok(Untainted { claim, node: Some(node), refused: false, missing: taints::missing_taints(claim, node) })
}

impl Untainted<'_> {
    /// The end of the sentence about the mistake in the user data.
    pub fn outcome(&self, case: &Case) -> String {
        let version = case.karpenter().map_or_else(String::new, |k| format!(" {}", k.version));
        if self.refused {
            format!("so the Node registers without {UNREGISTERED_TAINT}, and Karpenter{version} rejects it")
        } else {
            format!(
                "so the Node is in service without {}, and workloads that the NodePool keeps off are scheduled there",
                taints::listed(&self.missing)
            )
        }
    }

    /// The facts that the Node and the version show.
    pub fn evidence(&self, case: &Case) -> Vec<Evidence> {
        let node = self.node.map(|node| {
            let because =
                "the kubelet applies its taints only when it creates the Node; adding them later does not help";
            Evidence::new(format!("Node/{}", node.name()), "spec.taints", taints::listed(&node.spec.taints), because)
        });
        let version = case.karpenter().map(|k| {
            let blocks = k.blocks_on_missing_taint(case.provider());
            let because = match (self.refused, blocks) {
                (true, _) => {
                    "this version rejects Nodes without the taint; AWS provider 1.0.9, 1.1.4, 1.2.2, 1.3.0 and later \
                     only warn"
                }
                (false, _) => {
                    "this version registers the Node nevertheless, and since 1.5.0 does not add missing taints"
                }
            };
            Evidence::new(
                "Deployment/karpenter",
                "spec.template.spec.containers[0].image",
                k.version.to_string(),
                because,
            )
        });
        node.into_iter().chain(version).collect()
    }

    /// Whether these taints, registered by the kubelet, would have prevented this.
    pub fn covered_by(&self, taints: &[readers::userdata::kubelet_flags::RegisteredTaint]) -> bool {
        let has = |key: &str, effect: &str| taints.iter().any(|t| t.key == key && t.effect == effect);
        if self.refused {
            has(UNREGISTERED_TAINT, "NoExecute")
        } else {
            self.missing.iter().all(|t| has(&t.key, &t.effect))
        }
    }
}

/// The taints that the user's text registers, where the kubelet can parse them.
pub fn registered(user_data: &UserData) -> Option<Vec<readers::userdata::kubelet_flags::RegisteredTaint>> {
    user_data.taints().and_then(Result::ok)
}
