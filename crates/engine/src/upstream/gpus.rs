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

/// Whether the label has the letters of the instance family.
pub fn is_category(key: &str) -> bool {
    about_instance(key) == Some("category")
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

/// Why Karpenter counts no GPU of a maker for an instance type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoGpu {
    /// Its GPUs are from this other maker.
    OtherMaker(&'static str),
    /// It has a GPU or a part of one, but EC2 reports a count of 0.
    NotReported,
    /// It has no GPU.
    Without,
}

/// Why an instance type, or each type of a family, has none of a GPU resource. `None` if it has some, or if nodewhy
/// does not know.
/// Sources: Amazon EC2 instance types guide, "Specifications for Amazon EC2 accelerated computing instances";
/// karpenter-provider-aws v1.14.1 pkg/providers/instancetype/types.go `nvidiaGPUs`, `amdGPUs` (by `GpuInfo`);
/// aws/karpenter-provider-aws#8368 (0 for p5.4xlarge and g6f) and docs "Troubleshooting" (gr6f).
pub fn why_without(resource: &str, type_or_family: &str) -> Option<NoGpu> {
    const NVIDIA: [&str; 15] =
        ["g3", "g3s", "g4dn", "g5", "g5g", "g6", "g6e", "gr6", "p2", "p3", "p3dn", "p4d", "p4de", "p5e", "p5en"];
    let family = type_or_family.split('.').next().unwrap_or(type_or_family);
    let is_uncounted = ["g6f", "gr6f"].contains(&family) || type_or_family == "p5.4xlarge";
    match resource {
        "nvidia.com/gpu" | "amd.com/gpu" if has_no_gpu(family) => Some(NoGpu::Without),
        "nvidia.com/gpu" if family == "g4ad" => Some(NoGpu::OtherMaker("AMD")),
        "nvidia.com/gpu" if is_uncounted => Some(NoGpu::NotReported),
        "amd.com/gpu" if NVIDIA.contains(&family) => Some(NoGpu::OtherMaker("NVIDIA")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{NoGpu, has_no_gpu, is_category, is_family, requires_gpu, why_without};
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
    fn a_type_has_the_gpus_of_one_maker_and_as_many_as_ec2_reports() {
        let nvidia = |type_: &str| why_without("nvidia.com/gpu", type_);
        assert_eq!(nvidia("g4ad"), Some(NoGpu::OtherMaker("AMD")));
        assert_eq!(nvidia("g4ad.2xlarge"), Some(NoGpu::OtherMaker("AMD")));
        assert_eq!(nvidia("gr6f.4xlarge"), Some(NoGpu::NotReported));
        assert_eq!(nvidia("p5.4xlarge"), Some(NoGpu::NotReported));
        assert_eq!(nvidia("m7i.large"), Some(NoGpu::Without));
        assert_eq!(why_without("amd.com/gpu", "g5.xlarge"), Some(NoGpu::OtherMaker("NVIDIA")));
        // They have some, or another type of the family has, or nodewhy does not know them.
        for type_ in ["p5", "p5.48xlarge", "g4dn", "g6.xlarge", "g9x", "p5x.4xlarge", ""] {
            assert_eq!(nvidia(type_), None, "{type_}");
        }
        assert_eq!(why_without("amd.com/gpu", "g4ad"), None);
        assert_eq!(why_without("aws.amazon.com/neuron", "g4ad"), None);
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
        assert!(
            is_category("eks.amazonaws.com/instance-category") && !is_category("eks.amazonaws.com/instance-family")
        );
    }
}
