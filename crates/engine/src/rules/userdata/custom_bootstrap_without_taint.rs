//! The user's own bootstrap starts the kubelet, and does not give it the taint that Karpenter expects.

use crate::facts::missing_taints;
use crate::rules::prelude::*;
use crate::upstream::karpenter::UNREGISTERED_TAINT;
use readers::source_text::{self, Span};
use readers::userdata::{Family, UserData};

rule! {
    cause: CustomBootstrapWithoutTaint,
    summary: "The bootstrap in userData starts the kubelet without karpenter.sh/unregistered:NoExecute",
    stages: [Register],
    reads: [NodeClasses, Deployments],
    lint: true,
    versions: "AWS provider 1.0.0–1.0.8, 1.1.0–1.1.3, 1.2.0–1.2.1",
}

fn check(case: &Case) -> Option<Opinion> {
    let question = match missing_taints::ask(case) {
        Ok(question) => question,
        Err(answer) => return answer,
    };
    let class = case.class()?;
    let (user_data, text) = case.user_data().unzip();
    let custom = class.family() == Some(Family::Custom);
    let own_call = user_data.is_some_and(UserData::starts_kubelet_before_karpenter);
    if !custom && !own_call {
        return None;
    }
    let (user_data, text) = (user_data?, text?);
    if user_data.is_for_ignition() {
        return None;
    }
    // A lost argument is a finding of its own.
    if user_data.lost().any(|a| a.name() == "register-with-taints") {
        return None;
    }
    let taints = missing_taints::registered(user_data).unwrap_or_default();
    if question.covered_by(&taints) {
        return None;
    }
    let name = class.name();
    let span = place(user_data);
    let position = source_text::position(text, span.start);
    let who = if custom {
        "Karpenter adds nothing to the userData of amiFamily Custom"
    } else {
        "this call runs before Karpenter's own, which then changes nothing"
    };
    let summary = format!(
        "userData of {} {name} starts the kubelet itself (line {}) without \
         --register-with-taints={UNREGISTERED_TAINT}:NoExecute, {}.",
        class.kind,
        position.line,
        question.outcome(case)
    );
    let confidence = if user_data.unread_from.is_none() && user_data.bootstrap_calls.iter().all(|c| c.extra_args_exact)
    {
        Confidence::Certain
    } else {
        Confidence::Likely
    };
    let finding = Finding::new(
        confidence,
        summary,
        Evidence::new(
            format!("{}/{name}", class.kind),
            format!("spec.userData:{}:{}", position.line, position.column),
            source_text::quoted(text, span),
            who,
        ),
    )
    .with_all(question.evidence(case))
    .blaming(Blame::class(class).field("spec.userData").at(text, span));
    if custom {
        finding
            .fix(format!("Pass --register-with-taints={UNREGISTERED_TAINT}:NoExecute to the kubelet in userData."))
            .change(
                "Add the taint to --kubelet-extra-args (two words: the option, then one quoted value)",
                format!("kubectl edit ec2nodeclass {name}"),
            )
            .into()
    } else {
        finding
            .fix("Take the call of bootstrap.sh out of userData: Karpenter appends its own.")
            .change(
                "Remove the call, and move its kubelet arguments to the class's spec.kubelet and the NodePool",
                format!("kubectl edit ec2nodeclass {name}"),
            )
            .into()
    }
}

/// The place for the taint: the option that passes flags to the kubelet, or otherwise the whole bootstrap.
fn place(user_data: &UserData) -> Span {
    let call = user_data.bootstrap_calls.first();
    let option = call
        .and_then(|c| c.options.iter().rfind(|(name, _)| name == "--kubelet-extra-args"))
        .map(|(_, value)| value.span);
    let flag = user_data.effective("register-with-taints").map(|a| a.span);
    flag.or(option)
        .or(call.map(|c| c.span))
        .or_else(|| user_data.node_configs.first().map(|c| c.span))
        .or_else(|| user_data.parts.first().map(|p| p.span))
        .unwrap_or_default()
}
