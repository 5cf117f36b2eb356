//! What the name of an image tells, where AWS or a vendor named it. A name is only a name: a machine that joined knows
//! better.

use crate::userdata::Family;

/// The operating system of a published EKS image.
///
/// Sources: amazon-eks-ami releases (amazon-eks-node-1.31-v…, amazon-eks-gpu-node-…, amazon-eks-arm64-node-…,
/// amazon-eks-node-al2023-…), Bottlerocket (bottlerocket-aws-k8s-…), Windows (Windows_Server-…-EKS_Optimized-…).
pub fn family(name: &str) -> Option<Family> {
    let name = last(name);
    if name.starts_with("amazon-eks-node-al2023-") {
        Some(Family::Al2023)
    } else if AL2.iter().any(|p| name.strip_prefix(p).is_some_and(|rest| rest.starts_with("1."))) {
        Some(Family::Al2)
    } else if name.starts_with("bottlerocket-aws-k8s-") {
        Some(Family::Bottlerocket)
    } else if name.starts_with("Windows_Server-") && name.contains("-EKS_Optimized-") {
        Some(Family::Windows)
    } else {
        None
    }
}

/// Canonical's images for EKS: Ubuntu with the `/etc/eks/bootstrap.sh` of Amazon Linux 2.
///
/// Sources: names in the EC2 image catalogue (ubuntu-eks/k8s_1.31/images/…, ubuntu-eks-pro/…); eksctl v0.210
/// pkg/nodebootstrap/README.md.
pub fn is_ubuntu_for_eks(name: &str) -> bool {
    name.starts_with("ubuntu-eks/") || name.starts_with("ubuntu-eks-pro/")
}

const AL2: [&str; 3] = ["amazon-eks-node-", "amazon-eks-gpu-node-", "amazon-eks-arm64-node-"];

/// The operating system that the name of somebody's own image hints at, where it hints at one only.
pub fn hint(name: &str) -> Option<Family> {
    let lower = name.to_ascii_lowercase();
    let words = || lower.split(|c: char| !c.is_ascii_alphanumeric());
    let says = |parts: &[&str]| parts.iter().any(|part| lower.contains(part));
    let al2023 = says(&["al2023", "amazonlinux2023", "amazon-linux-2023", "amazon_linux_2023"]);
    let al2 = words().any(|w| matches!(w, "al2" | "amzn2" | "amazonlinux2"));
    let found = [
        (al2023, Family::Al2023),
        (al2, Family::Al2),
        (says(&["bottlerocket"]), Family::Bottlerocket),
        (says(&["windows"]), Family::Windows),
    ];
    let mut found = found.into_iter().filter(|(says, _)| *says).map(|(_, family)| family);
    found.next().filter(|_| found.next().is_none())
}

/// The minor version of the Kubernetes that a published EKS image is made for: 31 of 1.31.
pub fn kubernetes(name: &str) -> Option<u32> {
    let minor =
        |text: &str| text.strip_prefix("1.").filter(|m| !m.is_empty() && m.len() <= 2).and_then(|m| m.parse().ok());
    family(name)?;
    last(name).split(['-', '_']).find_map(minor)
}

/// What an image is that holds neither a kubelet nor the bootstrap of EKS.
///
/// Sources: names in the EC2 image catalogue: Amazon Linux (al2023-ami-…, amzn2-ami-…), ECS-optimized images of both
/// and of Bottlerocket, Canonical's ubuntu/images/… (those for EKS are ubuntu-eks/…), Windows without EKS_Optimized.
pub fn without_kubelet(name: &str) -> Option<&'static str> {
    let file = last(name);
    let ecs = ["-ecs-", "-ECS_Optimized"].iter().any(|part| file.contains(part));
    let of_amazon = ["al2023-ami-", "amzn2-ami-", "bottlerocket-aws-ecs-", "Windows_Server-"]
        .iter()
        .any(|prefix| file.starts_with(prefix));
    if ecs && of_amazon {
        Some("an ECS-optimized image")
    } else if file.starts_with("al2023-ami-") {
        Some("plain Amazon Linux 2023")
    } else if file.starts_with("amzn2-ami-") {
        Some("plain Amazon Linux 2")
    } else if name.starts_with("ubuntu/images/")
        || name.starts_with("ubuntu-minimal/images/")
        || name.starts_with("ubuntu-pro-server/images/")
    {
        Some("plain Ubuntu")
    } else if file.starts_with("Windows_Server-") && !file.contains("EKS_Optimized") {
        Some("plain Windows Server")
    } else {
        None
    }
}

fn last(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_known_by_their_published_names_only() {
        for (name, system, minor) in [
            ("amazon-eks-node-1.31-v20250123", Family::Al2, 31),
            ("amazon-eks-gpu-node-1.30-v20240928", Family::Al2, 30),
            ("amazon/amazon-eks-node-al2023-x86_64-standard-1.31-v20250123", Family::Al2023, 31),
            ("bottlerocket-aws-k8s-1.31-x86_64-v1.32.0-cacc4ce9", Family::Bottlerocket, 31),
            ("bottlerocket-aws-k8s-1.29-nvidia-aarch64-v1.20.1-7c3e9198", Family::Bottlerocket, 29),
            ("Windows_Server-2022-English-Core-EKS_Optimized-1.31-2025.01.15", Family::Windows, 31),
        ] {
            assert_eq!(
                (family(name), kubernetes(name), without_kubelet(name)),
                (Some(system), Some(minor), None),
                "{name}"
            );
        }
        for name in [
            "platform-golden-al2-1.29",
            "amazon-eks-node-hardened-2026-01",
            "ubuntu-eks/k8s_1.31/images/hvm-ssd/ubuntu-jammy-22.04-amd64-server-20250101",
        ] {
            assert_eq!((family(name), kubernetes(name), without_kubelet(name)), (None, None, None), "{name}");
            assert_eq!(is_ubuntu_for_eks(name), name.starts_with("ubuntu"));
        }
        assert!(!is_ubuntu_for_eks("ubuntu/images/hvm-ssd/ubuntu-jammy-22.04-amd64-server-20250115"));
    }

    #[test]
    fn own_names_hint_at_one_system_or_none() {
        assert_eq!(hint("platform-golden-al2-1.29"), Some(Family::Al2));
        assert_eq!(hint("shop-eks-1.31-AL2023-hardened-20250101"), Some(Family::Al2023));
        assert_eq!(hint("al2-to-al2023-migration"), None);
        assert_eq!(hint("shop-golden-2026"), None);
        assert_eq!(hint("real2d-render"), None);
    }

    #[test]
    fn images_of_other_services_are_told_apart() {
        for (name, what) in [
            ("al2023-ami-2023.6.20250115.0-kernel-6.1-x86_64", "plain Amazon Linux 2023"),
            ("al2023-ami-ecs-hvm-2023.0.20250110-kernel-6.1-x86_64", "an ECS-optimized image"),
            ("amzn2-ami-kernel-5.10-hvm-2.0.20250116.0-x86_64-gp2", "plain Amazon Linux 2"),
            ("ubuntu/images/hvm-ssd/ubuntu-jammy-22.04-amd64-server-20250115", "plain Ubuntu"),
            ("Windows_Server-2022-English-Full-Base-2025.01.15", "plain Windows Server"),
            ("bottlerocket-aws-ecs-2-x86_64-v1.32.0-cacc4ce9", "an ECS-optimized image"),
        ] {
            assert_eq!(without_kubelet(name), Some(what));
            assert_eq!(family(name), None);
        }
    }
}
