//! Bottlerocket sets up the instance's own disks twice: for userData, and for Karpenter, which does it since 1.1.

use crate::explain::commands;
use crate::explain::instance_questions::ask_the_instance;
use crate::objects::NodeClaim;
use crate::rules::prelude::*;
use crate::upstream::instance_name::InstanceName;
use crate::upstream::karpenter::Version;
use readers::source_text::{self, Span};
use readers::userdata::Family;

rule! {
    cause: InstanceStoreSetUpTwice,
    summary: "userData sets up Bottlerocket's instance store, and so does Karpenter: the second of the two fails, and \
              with it the boot",
    stages: [Join],
    reads: [NodeClaims, NodeClasses, Deployments, AwsObservations],
    versions: "Karpenter 1.1 and later",
}

/// aws/karpenter-provider-aws#8562. Source: karpenter-provider-aws v1.14.1
/// pkg/providers/amifamily/bootstrap/bottlerocket.go `Script` (000-mount-instance-storage).
const SINCE: Version = Version(1, 1, 0);

/// Source: karpenter-provider-aws v1.14.1 pkg/apis/v1/labels.go `LabelInstanceLocalNVME`.
fn has_own_disks(claim: &NodeClaim) -> bool {
    let label = |key: &str| claim.metadata.label(key);
    label("karpenter.k8s.aws/instance-local-nvme").is_some()
        || label("node.kubernetes.io/instance-type").is_some_and(is_named_for_disks)
}

/// `m6id.large` has a `d` behind its generation, and `i4i.large` is one of those that are made for their disks.
fn is_named_for_disks(instance_type: &str) -> bool {
    let name = InstanceName::of(instance_type).filter(|name| name.size.is_some());
    name.is_some_and(|name| name.options.contains('d') || ["i", "im", "is"].contains(&name.category))
}

fn check(case: &Case) -> Option<Opinion> {
    let (claim, class, (_, text)) = (case.claim?, case.class()?, case.user_data()?);
    let raid = class.spec.instance_store_policy.as_deref() == Some("RAID0");
    if !raid || class.family() != Some(Family::Bottlerocket) || !has_own_disks(claim) {
        return None;
    }
    let karpenter = case.karpenter().filter(|karpenter| karpenter.version >= SINCE)?;
    let span = binds(text)?;
    let joined = || case.same_spec_siblings_joined().filter(|sibling| has_own_disks(sibling));
    // Those that joined before may be an older Karpenter's.
    let upgraded = karpenter.written.as_ref().map_or(case.wait.since, |written| written.at);
    if let Some(sibling) = joined().find(|sibling| sibling.true_since("Registered") > Some(upgraded)) {
        return Some(Opinion::ruled_out(
            sibling,
            format!("NodeClaim {} has disks of its own and joined with the same userData", sibling.name()),
        ));
    }
    let in_doubt = karpenter.written.is_none() && joined().next().is_some();
    let (kind, name) = (&class.kind, class.name());
    let place = source_text::position(text, span.start);
    let finding = Finding::new(
        if in_doubt { Confidence::Possible } else { Confidence::Likely },
        format!(
            "userData of {kind} {name}, line {}, sets up the instance's own disks, and so does Karpenter for \
             instanceStorePolicy RAID0: the second of the two fails, and the machine never joins.",
            place.line
        ),
        Evidence::new(
            format!("{kind}/{name}"),
            format!("spec.userData:{}:{}", place.line, place.column),
            source_text::quoted(text, span),
            "a bootstrap command that fails and is essential stops the boot",
        ),
    )
    .with(Evidence::new(
        format!("{kind}/{name}"),
        "spec.instanceStorePolicy",
        "RAID0",
        "since 1.1 Karpenter adds the bootstrap command 000-mount-instance-storage for it",
    ))
    .blaming(Blame::object(&class.api_version, kind, name).field("spec.userData").at(text, span))
    .fix("Take the bootstrap command out of userData and keep instanceStorePolicy: RAID0.")
    .change("Take it out. New nodes will be correct", commands::edit(class));
    ask_the_instance(case, finding).into()
}

/// The place where a bootstrap command binds directories to the disks.
fn binds(text: &str) -> Option<Span> {
    const DISKS: &str = "\"ephemeral-storage\"";
    let at = text.find("bootstrap-commands").filter(|_| text.contains("\"bind\""))?;
    let start = at + text.get(at..)?.find(DISKS)?;
    let line = text.get(..start)?.rsplit('\n').next()?;
    (!line.trim_start().starts_with('#')).then(|| Span::new(start, start + DISKS.len()))
}

#[cfg(test)]
mod tests {
    use super::is_named_for_disks;

    #[test]
    fn a_type_is_named_for_its_disks() {
        for with in ["m6id.large", "c7gd.xlarge", "g4dn.2xlarge", "r6idn.4xlarge", "i4i.large", "im4gn.large"] {
            assert!(is_named_for_disks(with), "{with}");
        }
        for without in ["m6i.large", "inf2.xlarge", "dl1.24xlarge", "r7iz.large", "u-6tb1.metal", "m6id", ""] {
            assert!(!is_named_for_disks(without), "{without}");
        }
    }
}
