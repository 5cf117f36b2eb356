//! For which versions of Kubernetes, and until when, AWS publishes the images that an alias stands for.

use readers::userdata::Family;

/// No Amazon Linux 2 from this minor version of Kubernetes 1 on.
/// Source: karpenter-provider-aws v1.14.1 pkg/providers/amifamily/ami.go `DescribeImageQueries`.
const WITHOUT_AL2: u32 = 33;
/// The last release of Amazon Linux 2 for EKS, whose support ended on 2025-11-26.
/// Source: awslabs/amazon-eks-ami (81fec2e) CHANGELOG.md "AMI Release v20251209", README.md.
const LAST_AL2: &str = "v20251209";
/// The first minor version with Windows Server 2025.
/// Source: karpenter-provider-aws v1.14.1 pkg/providers/amifamily/ami.go `DescribeImageQueries`.
const WITH_WINDOWS_2025: u32 = 35;

/// Why an alias stands for no image on Kubernetes 1.`minor` and later, and never will.
pub fn ended(alias: &str, minor: Option<u32>) -> Option<String> {
    if Family::from_alias(alias) != Some(Family::Al2) {
        return None;
    }
    if minor.is_some_and(|minor| minor >= WITHOUT_AL2) {
        return Some(format!(
            "AWS publishes no Amazon Linux 2 for EKS from Kubernetes 1.{WITHOUT_AL2} on, and none later than {LAST_AL2}"
        ));
    }
    let (_, release) = alias.split_once('@')?;
    let is_later = is_release(release) && release > LAST_AL2;
    is_later.then(|| format!("the last release of Amazon Linux 2 for EKS is {LAST_AL2}"))
}

/// Why an alias stands for no image on exactly Kubernetes 1.`minor`.
pub fn not_begun(alias: &str, minor: u32) -> Option<String> {
    let is_of_2025 = alias.split('@').next().is_some_and(|family| family.eq_ignore_ascii_case("windows2025"));
    (is_of_2025 && minor < WITH_WINDOWS_2025)
        .then(|| format!("AWS publishes Windows Server 2025 for EKS from Kubernetes 1.{WITH_WINDOWS_2025} on"))
}

/// `v20251209`
fn is_release(text: &str) -> bool {
    text.len() == LAST_AL2.len() && text.strip_prefix('v').is_some_and(|day| day.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amazon_linux_2_ended_with_1_32_and_with_its_last_release() {
        assert!(ended("al2@latest", Some(33)).is_some());
        assert!(ended("al2@v20251209", Some(34)).is_some());
        assert!(ended("AL2@v20260114", None).is_some());
        for published in [("al2@latest", Some(32)), ("al2@v20251209", Some(32)), ("al2@latest", None)] {
            assert_eq!(ended(published.0, published.1), None, "{published:?}");
        }
        assert_eq!(ended("al2023@v20260714", Some(36)), None);
        assert_eq!(ended("bottlerocket@latest", Some(36)), None);
    }

    #[test]
    fn windows_server_2025_begins_with_1_35() {
        assert!(not_begun("windows2025@latest", 34).is_some());
        assert_eq!(not_begun("windows2025@latest", 35), None);
        assert_eq!(not_begun("windows2022@latest", 34), None);
    }
}
