//! Settings in user data that Karpenter's own part replaces, or that replace its own: the node joins without them, and
//! no component says so.

use super::{Level, Mistake};
use crate::api::Blame;
use crate::cluster_state::ClassFacts;
use crate::objects::NodePool;
use crate::upstream::karpenter::UNREGISTERED_TAINT;
use readers::source_text;
use readers::userdata::{Argument, ArgumentOrigin, By, Family, Fate, Setting, has_expansion};

/// The settings of the class that have no effect. `pools` are the NodePools of the class.
pub fn mistakes(facts: &ClassFacts, pools: &[&NodePool]) -> Vec<Mistake> {
    let class = &facts.class;
    let (Some(data), Some(text)) = (&facts.user_data, &class.spec.user_data) else { return Vec::new() };
    let mut mistakes = Vec::new();
    for argument in data.arguments.iter().filter(|argument| argument.fate == Fate::Overridden(By::Karpenter)) {
        let fix = match argument.name() {
            _ if argument.value.is_empty() || has_expansion(&argument.value) => continue,
            "registerWithTaints" | "register-with-taints" if are_in_pools(&argument.value, pools) => continue,
            "registerWithTaints" | "register-with-taints" => "Write it in spec.template.spec.taints of the NodePool.",
            // The class then says what Karpenter writes.
            "maxPods" | "max-pods" if class.spec.kubelet.contains_key("maxPods") => continue,
            "maxPods" | "max-pods" => "Write maxPods in spec.kubelet of the EC2NodeClass.",
            "cluster-name" | "api-server" | "cluster-certificate" => "Remove it.",
            _ => continue,
        };
        let line = source_text::position(text, argument.span.start).line;
        mistakes.push(Mistake {
            level: Level::Warning,
            cause: "OverriddenByKarpenter".to_owned(),
            message: format!(
                "userData of EC2NodeClass {}, line {line}, sets {}, which has no effect: Karpenter's own part replaces \
                 it.",
                class.name(),
                named(argument)
            ),
            fix: Some(fix.to_owned()),
            blame: Blame::class(class).field("spec.userData").at(text, argument.span),
            grave: false,
        });
    }
    mistakes
}

/// A flag of AL2023 that replaces Karpenter's list of taints, in a class whose NodePools are in other files. Beside a
/// NodePool, a rule says which of its taints are lost.
// kubernetes v1.36.3 pkg/util/flag/flags.go RegisterWithTaintsVar; karpenter-provider-aws v1.15.0
// pkg/providers/amifamily/bootstrap/nodeadm.go: Karpenter's list is a field of the kubelet's configuration
pub fn dropped_taints(facts: &ClassFacts) -> Option<Mistake> {
    let class = &facts.class;
    let (Some(data), Some(text)) = (&facts.user_data, &class.spec.user_data) else { return None };
    let argument = data.effective("register-with-taints").filter(|own| matches!(own.setting, Setting::Flag(_)))?;
    let taints = data.taints()?.ok()?;
    let is_known = argument.exact && !has_expansion(&argument.value);
    if data.family != Family::Al2023 || !is_known || taints.iter().any(|taint| taint.key == UNREGISTERED_TAINT) {
        return None;
    }
    let line = source_text::position(text, argument.span.start).line;
    Some(Mistake {
        level: Level::Warning,
        cause: "DropsTaints".to_owned(),
        message: format!(
            "userData of EC2NodeClass {}, line {line}, passes --register-with-taints, which replaces Karpenter's list. \
             Nodes come without {UNREGISTERED_TAINT} and without the taints of their NodePool.",
            class.name()
        ),
        fix: None,
        blame: Blame::class(class).field("spec.userData").at(text, argument.span),
        grave: false,
    })
}

/// The setting as its text names it.
fn named(argument: &Argument) -> &str {
    match argument.name() {
        "register-with-taints" if argument.origin == ArgumentOrigin::BottlerocketSetting => "node-taints",
        name => name,
    }
}

/// Whether every NodePool of the class has the taints, or Karpenter adds them. Then nothing is lost.
fn are_in_pools(taints: &str, pools: &[&NodePool]) -> bool {
    let mut keys = taints.split(',').map(|taint| taint.split(['=', ':']).next().unwrap_or_default());
    let has = |pool: &NodePool, key: &str| {
        let spec = &pool.spec.template.spec;
        spec.taints.iter().chain(&spec.startup_taints).any(|taint| taint.key.as_str() == key)
    };
    let is_there = |key: &str| {
        key == "karpenter.sh/unregistered" || (!pools.is_empty() && pools.iter().all(|&pool| has(pool, key)))
    };
    keys.all(is_there)
}
