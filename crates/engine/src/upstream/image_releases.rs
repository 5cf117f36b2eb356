//! For which versions of Kubernetes, and until when, AWS publishes the images that an alias stands for.

use readers::userdata::{Family, has_expansion};

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

/// The reason why an alias stands for no image, whatever the version of Kubernetes is.
// karpenter-provider-aws v1.14.1 pkg/apis/v1/ec2nodeclass.go AMISelectorTerm (families, `latest` for Windows),
// pkg/providers/amifamily/{al2,al2023,bottlerocket}.go DescribeImageQuery
pub fn impossible(alias: &str) -> Option<String> {
    if has_expansion(alias) {
        return None;
    }
    let Some((family, version)) = alias.split_once('@') else {
        return Some("an alias is FAMILY@VERSION".to_owned());
    };
    let (possible, wanted) = match family {
        "al2" | "al2023" => (version == "latest" || is_release(version), "latest or vYYYYMMDD"),
        // Karpenter takes the v away.
        "bottlerocket" => {
            let version = version.trim_start_matches('v');
            (version == "latest" || is_bottlerocket(version), "latest or vX.Y.Z")
        }
        "windows2019" | "windows2022" | "windows2025" => (version == "latest", "latest"),
        _ => {
            let families = "al2, al2023, bottlerocket, windows2019, windows2022 or windows2025";
            return Some(format!("{family:?} is no family, which are {families}"));
        }
    };
    (!possible).then(|| format!("a version of {family} is {wanted}"))
}

/// `1.20.3`, and with the commit behind it, as SSM names it too.
fn is_bottlerocket(version: &str) -> bool {
    let (numbers, commit) = version.split_once('-').unwrap_or((version, "0"));
    let parts: Vec<&str> = numbers.split('.').collect();
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    parts.len() == 3 && parts.iter().all(is_number) && commit.bytes().all(|b| b.is_ascii_hexdigit())
}

/// `v20251209`
fn is_release(text: &str) -> bool {
    let Some(day) = text.strip_prefix('v').filter(|day| day.len() == 8 && day.bytes().all(|b| b.is_ascii_digit()))
    else {
        return false;
    };
    let number = |range: std::ops::Range<usize>| day.get(range).and_then(|part| part.parse::<u32>().ok());
    number(4..6).is_some_and(|month| (1..=12).contains(&month)) && number(6..8).is_some_and(|d| (1..=31).contains(&d))
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
    fn versions_that_no_release_has_stand_for_nothing() {
        for alias in [
            "al2023@2023.0.20230222",
            "al2023@lates",
            "al2023@20240807",
            "al2023@v2024080",
            "al2023@v20241340",
            "al2@v1.31",
            "al2023@1.31",
            "bottlerocket@1.20",
            "bottlerocket@v20240807",
            "windows2022@v20240807",
            "al2023",
            "AL2023@latest",
            "ubuntu@latest",
        ] {
            assert!(impossible(alias).is_some(), "{alias}");
        }
        for alias in [
            "al2@latest",
            "al2023@v20240807",
            "bottlerocket@latest",
            "bottlerocket@v1.20.3",
            "bottlerocket@1.20.3-5d9ac849",
            "windows2022@latest",
            "al2023@${version}",
            "{{ .Values.alias }}",
        ] {
            assert_eq!(impossible(alias), None, "{alias}");
        }
    }

    #[test]
    fn windows_server_2025_begins_with_1_35() {
        assert!(not_begun("windows2025@latest", 34).is_some());
        assert_eq!(not_begun("windows2025@latest", 35), None);
        assert_eq!(not_begun("windows2022@latest", 34), None);
    }
}
