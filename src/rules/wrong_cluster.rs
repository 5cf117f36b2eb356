//! userData sends the kubelet to another cluster than the one Karpenter works for.

use super::Rule;
use crate::api::{Blame, Confidence, Risk, Stage};
use crate::case::Case;
use crate::finding::{Finding, Opinion, saw};
use crate::input::Input;
use crate::text;
use crate::userdata::{Family, Located, UserData};

pub static RULE: Rule = Rule {
    cause: "WrongCluster",
    summary: "userData names another cluster than Karpenter's own",
    stages: &[Stage::Join],
    reads: &[Input::NodeClasses, Input::Deployments],
    versions: "all",
    page: include_str!("../../docs/causes/WrongCluster.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let (Some((user_data, text)), Some(class)) = (case.user_data(), case.class()) else { return Opinion::Silent };
    let Some(own) = case.karpenter().and_then(|k| k.cluster_name.as_deref()).filter(|n| !n.is_empty()) else { return Opinion::Silent };
    let Some(named) = cluster_of(user_data) else { return Opinion::Silent };
    if named.value == own || named.value.contains('$') {
        return Opinion::RuledOut(format!("userData names the cluster {own}"));
    }
    if let Some(sibling) = case.same_spec_sibling_joined() {
        return Opinion::RuledOut(format!("NodeClaim {} joined with the same userData", sibling.name()));
    }
    let place = text::position(text, named.span.start);
    let name = class.name();
    Finding::new(
        Confidence::Likely,
        format!(
            "userData of {} {name}, line {}, joins the cluster {:?}, but Karpenter works for {own:?}, so its Nodes never appear here.",
            class.kind,
            place.line,
            text::mask(&named.value)
        ),
        saw(
            format!("{}/{name}", class.kind),
            format!("spec.userData:{}:{}", place.line, place.column),
            text::mask(&named.value),
            "the kubelet asks for a token of this cluster",
        ),
    )
    .with(saw("Deployment/karpenter", "CLUSTER_NAME", own, "Karpenter launches machines for this cluster"))
    .blaming(Blame::object(&class.api_version, &class.kind, name).field("spec.userData").at(text, named.span))
    .fix("Name this cluster in userData, with its endpoint and certificate authority.")
    .step(Risk::Mutating, "Correct the name", Some(format!("kubectl edit ec2nodeclass {name}")))
    .into()
}

/// The cluster that the user's own text joins. Elsewhere than on Custom, Karpenter's part overrides it, but for a first call on AL2.
fn cluster_of(user_data: &UserData) -> Option<&Located<String>> {
    let call = user_data.bootstrap_calls.first().filter(|c| c.exact).and_then(|c| c.cluster_name.as_ref());
    match user_data.family {
        Family::Custom => call.or_else(|| user_data.node_configs.iter().find_map(|c| c.cluster_name.as_ref())),
        Family::Al2 => call,
        _ => None,
    }
}
