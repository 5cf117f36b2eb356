//! A NodeOverlay makes Karpenter believe that nodes have a resource that nothing advertises there.
//!
//! Karpenter reads NodeOverlays only with a feature gate on, and it goes on waiting for a resource after the gate was
//! turned off.
//! Sources: core pkg/apis/v1alpha1/nodeoverlay.go `Capacity`, pkg/cloudprovider/overlay/cloudprovider.go,
//! pkg/controllers/nodeclaim/lifecycle/initialization.go `RequestedResourcesRegistered` (v1.14.1).

use crate::api::{Blame, Evidence};
use crate::case::Case;
use crate::explain::explanation::{Explanation, Proof};
use crate::objects::NodeOverlay;
use crate::objects::input::Input;
use crate::upstream::karpenter::Karpenter;

const GATE: &str = "NodeOverlay";

/// The overlay that promises the resource. A gate that nodewhy has not seen proves less than one that may be on.
pub(crate) fn promised(case: &Case, resource: &str) -> Option<Explanation> {
    let overlay = case.cluster.node_overlays().find(|overlay| overlay.spec.capacity.get(resource).is_some())?;
    let karpenter = case.karpenter();
    if let Some(karpenter) = karpenter.filter(|karpenter| karpenter.ignores_overlays()) {
        return Some(gate_off(karpenter, overlay, resource));
    }
    let found = gate_on(overlay, resource);
    Some(match karpenter {
        Some(_) => found,
        None if !case.goes_by(Input::Deployments) => Explanation { proof: Proof::None, ..found },
        None => Explanation { proof: Proof::None, ..found }.ask(
            "Is Karpenter's feature gate NodeOverlay on? nodewhy has not seen the Deployment that sets it.",
            "kubectl get deployments -A -l app.kubernetes.io/name=karpenter -o yaml | grep -A1 FEATURE_GATES",
        ),
    })
}

fn blame(overlay: &NodeOverlay, resource: &str) -> Blame {
    Blame::object("karpenter.sh/v1alpha1", "NodeOverlay", overlay.name()).field(format!("spec.capacity['{resource}']"))
}

fn evidence(overlay: &NodeOverlay, resource: &str, because: &'static str) -> Evidence {
    Evidence::new(
        format!("NodeOverlay/{}", overlay.name()),
        format!("spec.capacity['{resource}']"),
        overlay.spec.capacity.get(resource).unwrap_or_default(),
        because,
    )
}

fn gate_on(overlay: &NodeOverlay, resource: &str) -> Explanation {
    let name = overlay.name();
    let why = format!(
        "NodeOverlay {name} promises it for the instance type, but no device plugin advertises it to the kubelet of \
         the Node"
    );
    let because = "Karpenter believes that the node has it, and waits until the Node reports it";
    Explanation::unlinked(Proof::Open, why, blame(overlay, resource))
        .fix(format!(
            "Remove {resource} from NodeOverlay {name} if a separate scheduler counts it, or run a device plugin that \
             advertises it."
        ))
        .change("Remove it from the overlay", format!("kubectl edit nodeoverlay {name}"))
        .with(evidence(overlay, resource, because))
}

/// The overlay explains the launch only if the gate was on then, which no object shows.
fn gate_off(karpenter: &Karpenter, overlay: &NodeOverlay, resource: &str) -> Explanation {
    let name = overlay.name();
    let (namespace, deployment) = karpenter.place();
    let observed = match karpenter.gate(GATE) {
        Some(_) => format!("{GATE}=false"),
        None => format!("no {GATE}, so {GATE}=false by default"),
    };
    let why = format!(
        "NodeOverlay {name} promises it, and Karpenter reads overlays only with the feature gate {GATE}, which is off \
         now"
    );
    Explanation::unlinked(Proof::None, why, blame(overlay, resource))
        .fix(format!(
            "Run a device plugin that advertises {resource}, or remove the request from the pods. While the feature \
             gate {GATE} is off, Karpenter launches no other node for {resource}."
        ))
        .inspect(
            "See Karpenter's feature gates",
            format!("kubectl get deployment -n {namespace} {deployment} -o yaml | grep -A1 FEATURE_GATES"),
        )
        .with(evidence(overlay, resource, "Karpenter read it when it launched the node, if the gate was on then"))
        .with(Evidence::new(
            format!("Deployment/{deployment}"),
            "spec.template.spec.containers[0].env[FEATURE_GATES]",
            observed,
            "Karpenter ignores NodeOverlays now, but still waits for what a NodeClaim requested before",
        ))
}
