//! Karpenter is newer than the custom resource of its node classes, which drops the conditions that Karpenter writes.

use crate::rules::prelude::*;
use crate::upstream::karpenter::Version;

rule! {
    cause: NodeClassCrdOutdated,
    summary: "The custom resource of the node class is older than Karpenter, and drops the conditions that Karpenter \
              waits for",
    stages: [Launch],
    reads: [NodeClasses, Deployments],
    versions: "Karpenter 0.37 with custom resources of an older version",
}

/// The first version that launches only from a node class with the condition Ready=True, and writes that condition.
/// Source: karpenter-provider-aws v0.37.0 pkg/cloudprovider/cloudprovider.go `Create`.
const WITH_CONDITIONS: Version = Version(0, 37, 0);

/// The custom resource of the node class.
const CRD: &str = "ec2nodeclasses.karpenter.k8s.aws";

fn check(case: &Case) -> Option<Opinion> {
    let (claim, class) = (case.claim?, case.class().filter(|class| class.is_ec2())?);
    let launched = claim.condition("Launched").filter(|_| claim.waits_for_class())?;
    if !class.status.conditions.is_empty() {
        return None;
    }
    let karpenter = case.karpenter().filter(|karpenter| karpenter.version >= WITH_CONDITIONS)?;
    // Karpenter writes images and conditions at once: existing images prove that the conditions were dropped.
    let was_written = !class.status.amis.is_empty();
    let (name, version) = (class.name(), karpenter.version);
    let object = format!("EC2NodeClass/{name}");
    Finding::new(
        if was_written { Confidence::Certain } else { Confidence::Likely },
        format!(
            "NodeClaim {} is not launched: Karpenter {version} waits for the condition Ready of EC2NodeClass {name}, \
             which has no conditions. Its CustomResourceDefinition {CRD} is older than Karpenter and drops them.",
            claim.name()
        ),
        Evidence::new(
            case.subject(),
            r#"status.conditions[?(@.type=="Launched")]"#,
            launched.shown(),
            "Karpenter reports this if the condition does not exist",
        ),
    )
    .with(Evidence::new(&object, "status.conditions", "none", format!("Karpenter {version} writes Ready there")))
    .with_all(was_written.then(|| Evidence::new(&object, "status.amis", "there", "Karpenter has written its status")))
    .blaming(Blame::object("apiextensions.k8s.io/v1", "CustomResourceDefinition", CRD))
    .fix("Upgrade the CustomResourceDefinitions to Karpenter's version, with the chart karpenter-crd or kubectl apply. \
          A helm upgrade of the chart karpenter does not change them.")
    .inspect("See whether the definition knows conditions (the command prints array, or nothing)", format!(
            "kubectl get crd {CRD} -o \
             jsonpath='{{.spec.versions[*].schema.openAPIV3Schema.properties.status.properties.conditions.type}}'"
        ))
    .change(
        "Upgrade the definition to Karpenter's version. Do the same for the definitions of NodePool and NodeClaim",
        format!(
            "kubectl apply -f https://raw.githubusercontent.com/aws/karpenter-provider-aws/v{version}/pkg/apis/crds/karpenter.k8s.aws_ec2nodeclasses.yaml"
        ),
    )
    .into()
}
