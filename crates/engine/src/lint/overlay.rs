//! Mistakes in a NodeOverlay that its schema does not have.

use super::place::{Piece, Place};
use super::{Level, Mistake, former};
use crate::api::Blame;
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

/// The mistakes in a NodeOverlay, each with its place.
pub fn flaws(blame: &Blame, object: &Value, piece: &Piece) -> Vec<(Mistake, Place)> {
    if blame.kind != "NodeOverlay" {
        return Vec::new();
    }
    let of_version = version(blame, object["apiVersion"].as_str().unwrap_or_default());
    let of_version = of_version.map(|mistake| (mistake, piece.place(Some("apiVersion"), None)));
    let capacity = object["spec"]["capacity"].as_object().into_iter().flatten();
    let of_capacity = capacity.filter(|(resource, _)| OF_EC2.contains(&resource.as_str())).map(|(resource, _)| {
        let path = ["spec", "capacity", resource].map(str::to_owned);
        (of_ec2(blame, resource), piece.place_of(&path))
    });
    of_version.into_iter().chain(of_capacity).collect()
}

fn version(blame: &Blame, written: &str) -> Option<Mistake> {
    if written == API_VERSION || has_expansion(written) {
        return None;
    }
    let why = format!("which Karpenter {} does not serve", schemas::KARPENTER);
    let fix = format!("Write apiVersion: {API_VERSION}.");
    Some(former::refusal(Level::Error, blame.clone(), written, &why, Some(fix)))
}

fn of_ec2(blame: &Blame, resource: &str) -> Mistake {
    Mistake {
        level: Level::Warning,
        cause: "CapacityOfEc2".to_owned(),
        message: format!(
            "{} sets {resource}, which Karpenter takes from EC2. Karpenter does not apply the overlay.",
            blame.object
        ),
        fix: Some(format!("Remove {resource} from spec.capacity.")),
        blame: blame.clone().field(format!("spec.capacity.{resource}")),
        grave: false,
    }
}
