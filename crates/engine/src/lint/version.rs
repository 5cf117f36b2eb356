//! The Kubernetes version of the machines of a node class, and what that version removes.

use super::{Level, Mistake};
use crate::api::Blame;
use crate::cluster_state::ClassFacts;
use crate::facts::cgroup_v1;
use crate::objects::NodeClass;
use crate::upstream::image_releases;
use readers::source_text;
use readers::userdata::feature_gates::GateRefusal;
use readers::userdata::{Family, UserData, image_name};

/// How many minor versions a kubelet may be older than its API server.
/// Source: <https://kubernetes.io/releases/version-skew-policy/>, since 1.28.
pub const OLDER: u32 = 3;

/// The oldest minor version of Kubernetes 1 that nodewhy supports. An alias follows the version of the cluster.
const OLDEST: u32 = 30;

/// Mistakes of a class on Kubernetes 1.`cluster`, the version of the control plane if it is known.
pub fn mistakes(facts: &ClassFacts, cluster: Option<u32>) -> Vec<Mistake> {
    let class = &facts.class;
    let blame = |field: &str| Blame::class(class).field(field);
    let mistake = |cause: &str, message, fix: &str, blame, grave| Mistake {
        level: Level::Error,
        cause: cause.to_owned(),
        message,
        fix: Some(fix.to_owned()),
        blame,
        grave,
    };
    let mut mistakes = Vec::new();
    let terms = class.spec.ami_selector_terms.iter().enumerate();
    let unpublished = terms.filter_map(|(at, term)| {
        let alias = term.alias.as_deref()?;
        let not_begun = || image_releases::not_begun(alias, cluster?);
        let impossible = || image_releases::impossible(alias);
        Some((at, alias, image_releases::ended(alias, cluster).or_else(not_begun).or_else(impossible)?))
    });
    mistakes.extend(unpublished.map(|(at, alias, why)| {
        let message = format!(
            "EC2NodeClass {} has the alias {alias}, for which there are no images: {why}. Karpenter launches nothing.",
            class.name()
        );
        let blame = blame(&format!("spec.amiSelectorTerms.{at}.alias"));
        mistake("NodeClassNotReady", message, "Move to an alias that is published for this version.", blame, false)
    }));
    let minor = kubelet(class, cluster);
    if let (Some(minor), Some(cluster)) = (minor, cluster)
        && minor + OLDER < cluster
    {
        let message = format!(
            "The images of EC2NodeClass {} have the kubelet of 1.{minor}, but Kubernetes 1.{cluster} supports kubelets \
             only from 1.{} on.",
            class.name(),
            cluster - OLDER
        );
        let fix = "Select images of a newer version, for example by alias, which follows the cluster.";
        let own = mistake("ImageTooOld", message, fix, blame("spec.amiSelectorTerms"), false);
        mistakes.push(Mistake { level: Level::Warning, ..own });
    }
    let (Some(data), Some(text)) = (&facts.user_data, &class.spec.user_data) else { return mistakes };
    for defect in data.contradictions(minor, &class.spec.kubelet) {
        let line = source_text::position(text, defect.span.start).line;
        let message = format!(
            "The machine cannot join because of userData of EC2NodeClass {}, line {line}: {}.",
            class.name(),
            defect.message
        );
        let blame = blame("spec.userData").at(text, defect.span);
        mistakes.push(mistake("UserDataStopsKubelet", message, "Correct the field.", blame, true));
    }
    if minor.is_some() || follows_cluster(class) {
        let named = format!("userData of EC2NodeClass {}", class.name());
        mistakes.extend(refused(data, text, minor, &named, &blame("spec.userData")));
    }
    let Some(minor) = minor else { return mistakes };
    // The rule of this cause looks at the images that the class has now.
    let may_run = matches!(data.family, Family::Al2 | Family::Al2023 | Family::Custom) && !cgroup_v1::is_allowed(data);
    if cluster.is_some()
        && minor >= cgroup_v1::SINCE
        && may_run
        && let Some(span) = cgroup_v1::asked_for(text)
    {
        let line = source_text::position(text, span.start).line;
        let message = format!(
            "userData of EC2NodeClass {}, line {line}, has the machine boot with cgroup v1, on which the kubelet of \
             1.{minor} exits (failCgroupV1).",
            class.name()
        );
        let fix = "Remove it from userData. If a program still needs cgroup v1, set failCgroupV1: false in the \
                   kubelet's configuration until then.";
        let blame = blame("spec.userData").at(text, span);
        let own = mistake("KubeletRefusesCgroupV1", message, fix, blame, true);
        mistakes.push(Mistake { level: Level::Warning, ..own });
    }
    mistakes
}

/// Flags and feature gates of a text over which a kubelet of this minor version of Kubernetes 1 exits, or every kubelet
/// that nodewhy supports if it is not known. `named` is the text in sentences.
pub fn refused(data: &UserData, text: &str, known: Option<u32>, named: &str, blame: &Blame) -> Vec<Mistake> {
    let minor = known.unwrap_or(OLDEST);
    let kubelet =
        known.map_or_else(|| format!("every kubelet from 1.{OLDEST} on"), |minor| format!("the kubelet of 1.{minor}"));
    let mistake = |cause: &str, message, fix: &str, span| Mistake {
        level: Level::Error,
        cause: cause.to_owned(),
        message,
        fix: Some(fix.to_owned()),
        blame: blame.clone().at(text, span),
        grave: true,
    };
    let mut mistakes = Vec::new();
    for (argument, since) in data.removed_flags(minor).filter(|(argument, _)| argument.is_certain_of(argument.name())) {
        let message = format!(
            "{named} passes --{}, which Kubernetes 1.{since} removed: {kubelet} exits over the unknown flag and no \
             Node appears.",
            argument.name()
        );
        mistakes.push(mistake("KubeletFlagRemoved", message, "Remove the flag.", argument.span));
    }
    for gate in data.refused_gates(minor).filter(|gate| gate.argument.is_certain_of(gate.name)) {
        let message = format!(
            "{named} sets the feature gate {}, {}: {kubelet} exits over it and no Node appears.",
            gate.name, gate.refusal
        );
        let own = mistake("FeatureGateRefused", message, "Remove the gate.", gate.span);
        match gate.refusal {
            // The kubelet may be newer.
            GateRefusal::NotYet(_) if known.is_none() => {}
            GateRefusal::Unknown if known.is_none() => mistakes.push(Mistake { level: Level::Warning, ..own }),
            _ => mistakes.push(own),
        }
    }
    mistakes
}

/// The minor version of the kubelet in new nodes: the one that pinned images name, else the cluster's, else that of
/// the images which the class has in its status.
pub fn kubelet(class: &NodeClass, cluster: Option<u32>) -> Option<u32> {
    let pinned = class.spec.ami_selector_terms.iter().map(|term| {
        let by_name = term.name.as_deref().and_then(image_name::kubernetes);
        by_name.or_else(|| term.ssm_parameter.as_deref().and_then(of_parameter))
    });
    // lint reports a flag only if every image lacks it, and the oldest kubelet lacks the fewest.
    let oldest = |minors: Vec<Option<u32>>| {
        minors.into_iter().collect::<Option<Vec<u32>>>().and_then(|known| known.into_iter().min())
    };
    let of_status = || oldest(class.status.amis.iter().map(|ami| image_name::kubernetes(&ami.name)).collect());
    // An image that is pinned by id or tags has the kubelet that it has, whatever the cluster's version.
    oldest(pinned.collect()).or(cluster.filter(|_| follows_cluster(class))).or_else(of_status)
}

/// Whether the images have the kubelet of the cluster's version.
fn follows_cluster(class: &NodeClass) -> bool {
    class.spec.ami_selector_terms.iter().any(|term| term.alias.is_some())
}

/// 33 of `/aws/service/eks/optimized-ami/1.33/…` and of `/aws/service/bottlerocket/aws-k8s-1.33/…`.
// https://docs.aws.amazon.com/eks/latest/userguide/retrieve-ami-id.html, …/retrieve-ami-id-bottlerocket.html
fn of_parameter(parameter: &str) -> Option<u32> {
    let rest = parameter.strip_prefix("/aws/service/eks/optimized-ami/1.").or_else(|| {
        let (_, rest) = parameter.strip_prefix("/aws/service/bottlerocket/aws-k8s-")?.split_once("1.")?;
        Some(rest)
    })?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_published_parameter_names_its_version() {
        assert_eq!(
            of_parameter("/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/x86_64/standard/recommended/image_id"),
            Some(33)
        );
        assert_eq!(of_parameter("/aws/service/bottlerocket/aws-k8s-1.34-nvidia/x86_64/latest/image_id"), Some(34));
        assert_eq!(of_parameter("/shop/images/1.33/al2023"), None);
        assert_eq!(of_parameter("/aws/service/ami-windows-latest/x"), None);
    }
}
