//! Values that Karpenter's labels of a machine never have, whatever AWS adds.

use crate::upstream::instance_name::InstanceName;

/// Why no machine has this value of a label, and what to write instead.
// karpenter-provider-aws v1.14.1 pkg/providers/instancetype/types.go computeRequirements, lowerKabobCase
pub fn refusal(key: &str, value: &str) -> Option<String> {
    let (fits, wanted): (bool, &str) = match key {
        "karpenter.k8s.aws/instance-category" => (is_letters(value), "the letters of a family, such as m"),
        "karpenter.k8s.aws/instance-family" => (is_family(value), "a family, such as m7i"),
        "karpenter.k8s.aws/instance-generation" => (is_number(value), "a number, such as 7"),
        "karpenter.k8s.aws/instance-size" => (is_size(value), "a size, such as 2xlarge"),
        "node.kubernetes.io/instance-type" => (
            value.split_once('.').is_some_and(|(family, size)| is_family(family) && is_size(size)),
            "an instance type, such as m7i.2xlarge",
        ),
        "karpenter.k8s.aws/instance-memory" => {
            (value.parse::<u64>().is_ok_and(|mebibytes| mebibytes >= SMALLEST) && is_number(value), "MiB, such as 8192")
        }
        "karpenter.k8s.aws/instance-cpu"
        | "karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz"
        | "karpenter.k8s.aws/instance-ebs-bandwidth"
        | "karpenter.k8s.aws/instance-network-bandwidth"
        | "karpenter.k8s.aws/instance-local-nvme"
        | "karpenter.k8s.aws/instance-gpu-count"
        | "karpenter.k8s.aws/instance-gpu-memory"
        | "karpenter.k8s.aws/instance-accelerator-count" => (is_number(value), "a whole number"),
        "karpenter.k8s.aws/instance-cpu-manufacturer" => (is_kebab(value), "intel, amd or aws"),
        "karpenter.k8s.aws/instance-gpu-manufacturer" => (is_kebab(value), "nvidia, amd or habana"),
        "karpenter.k8s.aws/instance-accelerator-manufacturer" => (is_kebab(value), "aws or habana"),
        "karpenter.k8s.aws/instance-gpu-name" => (is_kebab(value), "a name in lower case, such as t4"),
        "karpenter.k8s.aws/instance-accelerator-name" => (is_kebab(value), "a name in lower case, such as inferentia"),
        "karpenter.k8s.aws/capacity-reservation-id" => {
            (value.starts_with("cr-"), "an id, such as cr-0123456789abcdef0")
        }
        "topology.kubernetes.io/zone" => (is_zone(value), "the name of a zone, such as us-east-1a"),
        "topology.kubernetes.io/region" => (is_region(value), "a region, such as us-east-1"),
        _ => return None,
    };
    (!fits).then(|| format!("Write {wanted}."))
}

/// The labels that the name of an instance type, or of a family, decides.
// karpenter-provider-aws v1.15.0 pkg/providers/instancetype/types.go computeRequirements
pub fn derived(name: &str) -> Vec<(&'static str, String)> {
    let Some(InstanceName { family, size, category, generation, options }) = InstanceName::of(name) else {
        return Vec::new();
    };
    let is_arm = options.contains('g') || family == "a1" || family.starts_with("mac2");
    let mut labels = vec![
        ("kubernetes.io/arch", if is_arm { "arm64" } else { "amd64" }.to_owned()),
        ("karpenter.k8s.aws/instance-category", category.to_owned()),
        ("karpenter.k8s.aws/instance-generation", generation.to_owned()),
    ];
    if let Some(size) = size {
        labels.push(("karpenter.k8s.aws/instance-family", family.to_owned()));
        labels.push(("karpenter.k8s.aws/instance-size", size.to_owned()));
    }
    labels
}

/// The memory of t2.nano, in MiB.
const SMALLEST: u64 = 512;

fn is_letters(value: &str) -> bool {
    !value.is_empty() && value.bytes().all(|b| b.is_ascii_lowercase())
}

fn is_number(value: &str) -> bool {
    let plain = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
    plain && (value == "0" || !value.starts_with('0'))
}

fn is_kebab(value: &str) -> bool {
    !value.is_empty() && value.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'.'))
}

/// `m7i`, `u-6tb1`
fn is_family(value: &str) -> bool {
    let plain = value.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    plain && value.starts_with(|c: char| c.is_ascii_lowercase()) && value.bytes().any(|b| b.is_ascii_digit())
}

/// `large`, `2xlarge`, `metal-48xl`
fn is_size(value: &str) -> bool {
    let many = value.strip_suffix("xlarge").is_some_and(|times| times.is_empty() || is_number(times));
    let metal = value.strip_prefix("metal").is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
    many || (metal && is_kebab(value)) || matches!(value, "nano" | "micro" | "small" | "medium" | "large")
}

/// The kind of place that a name of AWS stands for.
#[derive(PartialEq, Eq)]
enum Named {
    Region,
    Zone,
    Neither,
}

/// `us-east-1` is a region; `us-east-1a`, `us-east-1-bos-1a` and `us-east-1-wl1-bos-wlz-1` are zones.
fn place(value: &str) -> Named {
    let parts: Vec<&str> = value.split('-').collect();
    let words = parts.iter().take_while(|part| is_letters(part)).count();
    let (Some(number), true) = (parts.get(words), words >= 2) else { return Named::Neither };
    let digits = number.bytes().take_while(u8::is_ascii_digit).count();
    let letters = number.get(digits..).unwrap_or_default();
    let last = parts.len() == words + 1;
    match (digits, last) {
        (0, _) => Named::Neither,
        (_, true) if letters.is_empty() => Named::Region,
        (_, true) if letters.len() == 1 && is_letters(letters) => Named::Zone,
        (_, false) if letters.is_empty() && is_kebab(value) => Named::Zone,
        _ => Named::Neither,
    }
}

fn is_zone(value: &str) -> bool {
    place(value) == Named::Zone
}

fn is_region(value: &str) -> bool {
    place(value) == Named::Region
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_machine_has_is_refused() {
        for (key, value) in [
            ("karpenter.k8s.aws/instance-category", "m5"),
            ("karpenter.k8s.aws/instance-category", "M"),
            ("karpenter.k8s.aws/instance-family", "m"),
            ("karpenter.k8s.aws/instance-family", "M5"),
            ("karpenter.k8s.aws/instance-family", "m5.large"),
            ("karpenter.k8s.aws/instance-generation", "6i"),
            ("karpenter.k8s.aws/instance-size", "2xLarge"),
            ("karpenter.k8s.aws/instance-size", "2xl"),
            ("karpenter.k8s.aws/instance-size", "m5.large"),
            ("node.kubernetes.io/instance-type", "m5"),
            ("node.kubernetes.io/instance-type", "m5.*"),
            ("node.kubernetes.io/instance-type", "m5large"),
            ("node.kubernetes.io/instance-type", "M5.large"),
            ("karpenter.k8s.aws/instance-memory", "16Gi"),
            ("karpenter.k8s.aws/instance-memory", "16"),
            ("karpenter.k8s.aws/instance-cpu", "4.0"),
            ("karpenter.k8s.aws/instance-cpu", "four"),
            ("karpenter.k8s.aws/instance-gpu-manufacturer", "NVIDIA"),
            ("karpenter.k8s.aws/instance-cpu-manufacturer", "Intel"),
            ("karpenter.k8s.aws/instance-gpu-name", "T4"),
            ("topology.kubernetes.io/zone", "us-east-1"),
            ("topology.kubernetes.io/zone", "use1-az1"),
            ("topology.kubernetes.io/zone", "a"),
            ("topology.kubernetes.io/zone", "us-east-1A"),
            ("topology.kubernetes.io/region", "us-east-1a"),
        ] {
            assert!(refusal(key, value).is_some(), "{key} {value}");
        }
    }

    #[test]
    fn a_name_decides_category_generation_and_architecture() {
        for (family, category, generation, arch) in [
            ("m5", "m", "5", "amd64"),
            ("m7g", "m", "7", "arm64"),
            ("g4dn", "g", "4", "amd64"),
            ("g5g", "g", "5", "arm64"),
            ("gr6", "gr", "6", "amd64"),
            ("im4gn", "im", "4", "arm64"),
            ("a1", "a", "1", "arm64"),
            ("u-6tb1", "u", "1", "amd64"),
            ("u7i-12tb", "u", "7", "amd64"),
            ("c8i-flex", "c", "8", "amd64"),
            ("p6e-gb200", "p", "6", "arm64"),
        ] {
            let labels = [
                ("kubernetes.io/arch", arch.to_owned()),
                ("karpenter.k8s.aws/instance-category", category.to_owned()),
                ("karpenter.k8s.aws/instance-generation", generation.to_owned()),
            ];
            assert_eq!(derived(family), labels, "{family}");
        }
        let of_type = derived("m7g.2xlarge");
        assert!(of_type.contains(&("karpenter.k8s.aws/instance-size", "2xlarge".to_owned())), "{of_type:?}");
        assert_eq!(derived("metal"), []);
    }

    #[test]
    fn what_a_machine_may_have_is_not() {
        for (key, value) in [
            ("karpenter.k8s.aws/instance-category", "inf"),
            ("karpenter.k8s.aws/instance-family", "u7i-12tb"),
            ("karpenter.k8s.aws/instance-family", "mac2-m2pro"),
            ("karpenter.k8s.aws/instance-generation", "8"),
            ("karpenter.k8s.aws/instance-size", "metal-24xl"),
            ("karpenter.k8s.aws/instance-size", "48xlarge"),
            ("karpenter.k8s.aws/instance-size", "xlarge"),
            ("karpenter.k8s.aws/instance-memory", "512"),
            ("karpenter.k8s.aws/instance-local-nvme", "0"),
            ("karpenter.k8s.aws/instance-gpu-name", "radeon-pro-v520"),
            ("topology.kubernetes.io/zone", "us-east-1a"),
            ("topology.kubernetes.io/zone", "us-gov-west-1b"),
            ("topology.kubernetes.io/zone", "us-west-2-lax-1a"),
            ("topology.kubernetes.io/zone", "us-east-1-wl1-bos-wlz-1"),
            ("topology.kubernetes.io/region", "eu-central-1"),
            ("example.com/zone", "anything"),
        ] {
            assert_eq!(refusal(key, value), None, "{key} {value}");
        }
        let types = include_str!("../upstream/instance_types.tsv").lines().filter(|line| !line.starts_with('#'));
        for name in types.filter_map(|line| line.split('\t').next()) {
            assert_eq!(refusal("node.kubernetes.io/instance-type", name), None, "{name}");
        }
    }
}
