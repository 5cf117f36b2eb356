//! Which families of instance types have no GPU, and which requirements only a type with a GPU meets.

use crate::objects::Requirement;

/// What is behind the domain in a label of Karpenter, or of EKS Auto Mode, about the instance type.
fn about_instance(key: &str) -> Option<&str> {
    const BEGINS: [&str; 2] = ["karpenter.k8s.aws/instance-", "eks.amazonaws.com/instance-"];
    BEGINS.iter().find_map(|begin| key.strip_prefix(begin))
}

/// Whether the label has the family of the instance type.
pub fn is_family(key: &str) -> bool {
    about_instance(key) == Some("family")
}

/// Whether only a type with a GPU meets it: without one, no type has the label.
/// Source: karpenter-provider-aws v1.14.1 pkg/providers/instancetype/types.go `computeRequirements` (`info.GpuInfo`).
pub fn requires_gpu(requirement: &Requirement) -> bool {
    const LABELS: [&str; 4] = ["gpu-count", "gpu-manufacturer", "gpu-memory", "gpu-name"];
    let is_of_gpu = about_instance(requirement.key.as_str()).is_some_and(|label| LABELS.contains(&label));
    is_of_gpu && matches!(requirement.operator.as_str(), "In" | "Exists" | "Gt")
}

/// Whether no type of the family has a GPU, as its name tells: Inferentia and Trainium are no GPUs to EC2, and the
/// families for general use, compute and memory have none.
/// Sources: Amazon EC2 instance types guide, "Specifications for Amazon EC2 accelerated computing instances" and
/// "Amazon EC2 instance type naming conventions".
pub fn has_no_gpu(family: &str) -> bool {
    const NEURON: [&str; 6] = ["inf1", "inf2", "trn1", "trn1n", "trn2", "trn2u"];
    const SERIES: [char; 4] = ['c', 'm', 'r', 't'];
    let is_of_series = family.strip_prefix(SERIES).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    is_of_series || NEURON.contains(&family)
}

#[cfg(test)]
mod tests {
    use super::{has_no_gpu, is_family, requires_gpu};
    use crate::objects::Requirement;
    use serde_json::json;

    #[test]
    fn families_without_a_gpu_are_known_by_their_name() {
        for family in ["inf2", "trn1n", "c7g", "m6i", "r8gd", "t3a"] {
            assert!(has_no_gpu(family), "{family}");
        }
        // With one, with something else, or of a series that may have one.
        for family in
            ["g5", "g4ad", "p4d", "gr6", "dl1", "vt1", "f2", "mac2", "trn9", "inf9", "x2gd", "i4i", "hpc7a", ""]
        {
            assert!(!has_no_gpu(family), "{family}");
        }
    }

    #[test]
    fn a_requirement_that_a_type_without_the_label_meets_requires_no_gpu() {
        let requires = |key: &str, operator: &str| {
            let requirement: Requirement =
                serde_json::from_value(json!({"key": key, "operator": operator, "values": ["nvidia"]})).expect("one");
            requires_gpu(&requirement)
        };
        assert!(requires("karpenter.k8s.aws/instance-gpu-manufacturer", "In"));
        assert!(requires("eks.amazonaws.com/instance-gpu-count", "Gt"));
        for (key, operator) in [
            ("karpenter.k8s.aws/instance-gpu-manufacturer", "NotIn"),
            ("karpenter.k8s.aws/instance-gpu-count", "DoesNotExist"),
            ("karpenter.k8s.aws/instance-accelerator-manufacturer", "In"),
            ("example.com/instance-gpu-name", "In"),
        ] {
            assert!(!requires(key, operator), "{key} {operator}");
        }
        assert!(is_family("eks.amazonaws.com/instance-family") && !is_family("node.kubernetes.io/instance-type"));
    }
}
