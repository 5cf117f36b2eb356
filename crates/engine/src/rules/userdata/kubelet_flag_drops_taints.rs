//! The user data's own `--register-with-taints` replaces the taints that Karpenter hands to the kubelet.

use crate::facts::missing_taints;
use crate::rules::prelude::*;
use readers::source_text;
use readers::userdata::{Family, Setting};

rule! {
    cause: KubeletFlagDropsTaints,
    summary: "userData passes --register-with-taints, which replaces Karpenter's taints instead of adding to them",
    stages: [Register],
    reads: [NodeClasses, Deployments],
    lint: true,
    versions: "AWS provider 1.0.0–1.0.8, 1.1.0–1.1.3, 1.2.0–1.2.1 refuses the Node; others before 1.5.0 add the \
               taints, later ones do not",
}

fn check(case: &Case) -> Option<Opinion> {
    let question = match missing_taints::ask(case) {
        Ok(question) => question,
        Err(answer) => return answer,
    };
    let ((user_data, text), class) = (case.user_data()?, case.class()?);
    // With Custom nothing is replaced, the taint was never there; on AL2 the user's own call of bootstrap.sh is the
    // fault.
    if user_data.family == Family::Custom || user_data.starts_kubelet_before_karpenter() {
        return None;
    }
    let argument = user_data.effective("register-with-taints").filter(|a| matches!(a.setting, Setting::Flag(_)))?;
    let taints = missing_taints::registered(user_data)?;
    if question.covered_by(&taints) {
        return None;
    }
    let place = source_text::position(text, argument.span.start);
    let name = class.name();
    let summary = format!(
        "userData of {} {name}, line {}, passes --register-with-taints={}, which replaces all taints that Karpenter \
         sets, {}.",
        class.kind,
        place.line,
        source_text::mask(&argument.value),
        question.outcome(case)
    );
    let confidence = if argument.exact { Confidence::Certain } else { Confidence::Likely };
    Finding::new(
        confidence,
        summary,
        Evidence::new(
            format!("{}/{name}", class.kind),
            format!("spec.userData:{}:{}", place.line, place.column),
            source_text::quoted(text, argument.span),
            "a flag beats the registerWithTaints of the configuration file, and the last flag replaces the whole list",
        ),
    )
    .with_all(question.evidence(case))
    .blaming(Blame::class(class).field("spec.userData").at(text, argument.span))
    .fix("Take the flag out of userData and declare the taint in the NodePool's taints or startupTaints.")
    .change("Remove the flag. New nodes will be correct, but not this one", format!("kubectl edit ec2nodeclass {name}"))
    .change(
        "Declare the taint in the NodePool",
        question.claim.node_pool().map(|p| format!("kubectl edit nodepool {p}")),
    )
    .destroy("Replace the node", format!("kubectl delete nodeclaim {}", question.claim.name()))
    .into()
}
