//! Settings in user data that Karpenter's own part replaces: the node joins without them, and no component says so.

use super::{Level, Mistake};
use crate::api::Blame;
use crate::cluster_state::ClassFacts;
use crate::objects::NodePool;
use readers::source_text;
use readers::userdata::{Argument, ArgumentOrigin, By, Fate, has_expansion};

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
