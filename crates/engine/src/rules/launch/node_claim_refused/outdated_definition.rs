//! The CustomResourceDefinition of NodeClaims is older than Karpenter: it rejects an operator that Karpenter writes.

use crate::rules::prelude::*;

const CRD: &str = "nodeclaims.karpenter.sh";

/// Since 1.9.0 Karpenter writes Gt of a NodePool as Gte, and Lt as Lte. The definitions know both since then.
/// Sources: core v1.9.0 pkg/scheduling/requirement.go `NodeSelectorRequirement`,
/// pkg/apis/crds/karpenter.sh_nodeclaims.yaml, without them in v1.8.2; karpenter-provider-aws#8951.
const NEWER: [&str; 2] = [r#"Unsupported value: "Gte""#, r#"Unsupported value: "Lte""#];

/// Whether the definition is at fault, and not the NodePool.
pub(super) fn is_outdated(error: &str) -> bool {
    NEWER.iter().any(|newer| error.contains(newer))
}

pub(super) fn of_definition(case: &Case, finding: Finding) -> Finding {
    let finding = finding
        .adding(
            "Karpenter writes Gt and Lt of a NodePool as Gte and Lte since 1.9.0, and the CustomResourceDefinition of \
             NodeClaims is older.",
        )
        .blaming(Blame::object("apiextensions.k8s.io/v1", "CustomResourceDefinition", CRD))
        .fix(
            "Upgrade the CustomResourceDefinitions to Karpenter's version, with the chart karpenter-crd or kubectl \
             apply. A helm upgrade of the chart karpenter does not change them.",
        )
        .inspect("See which operators the definition knows", format!("kubectl get crd {CRD} -o yaml"));
    let Some(karpenter) = case.karpenter() else { return finding };
    let version = karpenter.version;
    finding
        .with(Evidence::new(
            format!("Deployment/{}", karpenter.place().1),
            "spec.template.spec.containers[0].image",
            version.to_string(),
            "since 1.9.0 it writes the operators Gte and Lte",
        ))
        .change(
            "Upgrade the definition to Karpenter's version. Do the same for those of NodePools and node classes",
            format!(
                "kubectl apply -f https://raw.githubusercontent.com/aws/karpenter-provider-aws/v{version}/pkg/apis/crds/karpenter.sh_nodeclaims.yaml"
            ),
        )
}
