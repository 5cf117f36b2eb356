//! Mistakes in a NodeOverlay that its schema does not have.

use super::flaw::Flaw;
use super::place::{Piece, Place};
use super::{Level, Mistake, former};
use crate::api::Blame;
use crate::objects::NodeOverlay;
use crate::upstream::schemas;
use readers::userdata::has_expansion;
use serde_json::Value;

const API_VERSION: &str = "karpenter.sh/v1alpha1";

/// Resources that Karpenter takes from EC2 and does not let an overlay change, beside those that the schema forbids.
// karpenter v1.15.0 pkg/apis/v1alpha1/nodeoverlay_validation.go validateCapacity, and the resources that
// karpenter-provider-aws v1.15.0 pkg/apis/v1/labels.go adds to core's
const OF_EC2: &[&str] = &[
    "aws.amazon.com/neuron",
    "aws.amazon.com/neuroncore",
    "habana.ai/gaudi",
    "vpc.amazonaws.com/efa",
    "vpc.amazonaws.com/pod-eni",
];

/// Resources of a NodeOverlay that Karpenter does not let it set.
pub fn flaws(overlay: &NodeOverlay) -> Vec<Flaw> {
    let resources = overlay.spec.capacity.iter().map(|(resource, _)| resource);
    resources.filter(|resource| OF_EC2.contains(resource)).map(|resource| of_ec2(overlay.name(), resource)).collect()
}

fn of_ec2(name: &str, resource: &str) -> Flaw {
    Flaw {
        fatal: false,
        cause: "CapacityOfEc2",
        field: format!("spec.capacity['{resource}']"),
        message: format!(
            "NodeOverlay {name} sets {resource}, which Karpenter takes from EC2. Karpenter does not apply the overlay."
        ),
        fix: format!("Remove {resource} from spec.capacity."),
    }
}

/// An apiVersion of NodeOverlays that no Karpenter serves. The API server has none of these.
pub fn version(blame: &Blame, object: &Value, piece: &Piece) -> Option<(Mistake, Place)> {
    let written = object["apiVersion"].as_str().unwrap_or_default();
    if blame.kind != "NodeOverlay" || written == API_VERSION || has_expansion(written) {
        return None;
    }
    let why = format!("which Karpenter {} does not serve", schemas::KARPENTER);
    let fix = format!("Write apiVersion: {API_VERSION}.");
    let mistake = former::refusal(Level::Error, blame.clone(), written, &why, Some(fix));
    Some((mistake, piece.place(Some("apiVersion"), None)))
}
