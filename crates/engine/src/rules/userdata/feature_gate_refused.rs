//! userData sets a feature gate that the kubelet does not know, or no longer lets anybody set: it exits, and no Node
//! ever appears.

use crate::api::Stage;
use crate::case::Case;
use crate::case::finding::Opinion;
use crate::explain::kubelet_exit::{FatalSetting, KubeletStart};
use crate::objects::input::Input;
use crate::rules::Rule;
use readers::userdata::feature_gates::GateRefusal;

pub static RULE: Rule = Rule {
    cause: "FeatureGateRefused",
    summary: "userData sets a feature gate that this kubelet does not know, or that is locked, over which it exits",
    stages: &[Stage::Join],
    reads: &[Input::Nodes, Input::NodeClaims, Input::NodeClasses],
    lint: false,
    versions: "Kubernetes 1.21 to 1.37, by gate",
    page: include_str!("../../../pages/FeatureGateRefused.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let Some(start) = KubeletStart::of(case) else { return Opinion::Silent };
    let minor = start.kubelet.minor;
    let Some(gate) = start.user_data.refused_gates(minor).next() else { return Opinion::Silent };
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
