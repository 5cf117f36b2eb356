//! userData sets a feature gate that the kubelet does not know, or no longer lets anybody set: it exits, and no Node
//! ever appears.

use crate::explain::kubelet_exit::{FatalSetting, KubeletStart};
use crate::rules::prelude::*;
use readers::userdata::feature_gates::GateRefusal;

rule! {
    cause: FeatureGateRefused,
    summary: "userData sets a feature gate that this kubelet does not know, or that is locked, over which it exits",
    stages: [Join],
    reads: [Nodes, NodeClaims, NodeClasses],
    versions: "Kubernetes 1.21 to 1.37, by gate",
}

fn check(case: &Case) -> Option<Opinion> {
    let start = KubeletStart::of(case)?;
    let minor = start.kubelet.minor;
    let gate = start.user_data.refused_gates(minor).next()?;
    let (name, refusal) = (gate.name, gate.refusal);
    let setting = FatalSetting {
        span: gate.span,
        is_exact: refusal != GateRefusal::Unknown && gate.argument.is_certain_of(name),
        // An older kubelet knows what is gone by now; what is not there yet, any that joined shows to be there.
        since: match refusal {
            GateRefusal::Gone(since) | GateRefusal::Locked(since, _) => since,
            GateRefusal::NotYet(_) | GateRefusal::Unknown => 0,
        },
        does: format!("sets the feature gate {name}, {refusal}: the kubelet of 1.{minor} exits over it"),
        error: match refusal {
            GateRefusal::Locked(_, to) => {
                format!("cannot set feature gate {name} to {}, feature is locked to {to}", !to)
            }
            _ => format!("unrecognized feature gate: {name}"),
        },
        fix: match refusal {
            GateRefusal::Unknown => format!(
                "Correct the name of {name}, or take it out of the kubelet's feature gates. A gate of nodeadm, such as \
                 InstanceIdNodeName, belongs in spec.featureGates of the NodeConfig."
            ),
            _ => format!("Take {name} out of the feature gates in userData."),
        },
        step: "Remove the gate. New nodes will be correct",
    };
    start.ends_over(case, setting)
}
