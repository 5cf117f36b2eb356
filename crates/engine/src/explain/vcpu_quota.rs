//! The vCPU quota that refuses a launch, and whether it is smaller than everything that may be launched.

use crate::case::Case;
use crate::explain::launch_error::{FaultIn, LaunchError};
use crate::objects::Requirement;
use crate::upstream::gpus::{is_category, is_family};

/// The instance types that share one vCPU quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bucket {
    pub code: &'static str,
    pub name: &'static str,
}

/// Instance families by their letters; `p5` and later have a spot quota of their own.
/// Source: <https://docs.aws.amazon.com/ec2/latest/instancetypes/ec2-instance-quotas.html>.
const BUCKETS: &[(&[&str], &str, &str, &str, &str)] = &[
    (
        &["a", "c", "d", "h", "i", "m", "r", "t", "z"],
        "L-1216C47A",
        "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances",
        "L-34B43A08",
        "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests",
    ),
    (
        &["g", "gr", "vt"],
        "L-DB2E81BA",
        "Running On-Demand G and VT instances",
        "L-3819A6DF",
        "All G and VT Spot Instance Requests",
    ),
    (&["p"], "L-417A185B", "Running On-Demand P instances", "", ""),
    (&["inf"], "L-1945791B", "Running On-Demand Inf instances", "L-B5D1601B", "All Inf Spot Instance Requests"),
    (&["f"], "L-74FC7D96", "Running On-Demand F instances", "L-88CF9481", "All F Spot Instance Requests"),
    (&["x"], "L-7295265B", "Running On-Demand X instances", "L-E3A00192", "All X Spot Instance Requests"),
];

const TYPE: &str = "node.kubernetes.io/instance-type";

/// The one bucket of all that may be launched.
pub(super) fn bucket(case: &Case, spot: bool) -> Option<Bucket> {
    let requirements = requirements(case)?;
    let is_type = |key: &str| key == TYPE;
    let keys: [&dyn Fn(&str) -> bool; 3] = [&is_type, &is_family, &is_category];
    let named = keys
        .into_iter()
        .find_map(|is_key| requirements.iter().find(|r| is_key(r.key.as_str()) && r.operator == "In"))?;
    let mut buckets = named.values.iter().map(|value| bucket_of(value, spot));
    let first = buckets.next()??;
    buckets.all(|other| other == Some(first)).then_some(first)
}

fn requirements<'w>(case: &Case<'w>) -> Option<&'w [Requirement]> {
    match case.claim {
        Some(claim) => Some(&claim.spec.requirements),
        None => Some(&case.pool()?.spec.template.spec.requirements),
    }
}

fn bucket_of(family: &str, spot: bool) -> Option<Bucket> {
    let letters = family.split(|c: char| !c.is_ascii_lowercase()).next()?;
    let (_, code, name, spot_code, spot_name) = BUCKETS.iter().find(|(families, ..)| families.contains(&letters))?;
    let (code, name) = if spot { (spot_code, spot_name) } else { (code, name) };
    (!code.is_empty()).then_some(Bucket { code, name })
}

/// A quota with which nothing that may be launched starts, however few instances run.
#[derive(Debug)]
pub(crate) struct TooSmall {
    /// In vCPUs.
    limit: f64,
    /// The vCPUs of the smallest instance type that may be launched.
    smallest: Option<u32>,
    bucket: Option<Bucket>,
    spot: bool,
}

impl TooSmall {
    /// As the refusal says, otherwise as AWS says.
    pub(crate) fn of(case: &Case, error: &LaunchError, said: &str) -> Option<Self> {
        let FaultIn::VcpuQuota { spot } = error.fault else { return None };
        let bucket = bucket(case, spot);
        let told = || Some(case.cluster.aws().quota(bucket?.code).known()?.0.value);
        let limit = limit(said).or_else(told)?;
        let smallest = smallest(case);
        let is_too_small = limit < 1.0 || smallest.is_some_and(|vcpus| limit < f64::from(vcpus));
        is_too_small.then_some(Self { limit, smallest, bucket, spot })
    }

    /// Whether no instance of any size fits, so that no NodePool can do without the quota.
    pub(super) fn is_zero(&self) -> bool {
        self.limit < 1.0
    }

    /// The rest of "… cannot launch, because".
    pub(crate) fn why(&self) -> String {
        let Self { limit, smallest, bucket, spot } = self;
        let quota = match bucket {
            Some(Bucket { code, name }) => format!("vCPU quota \"{name}\" ({code})"),
            None if *spot => "spot quota for these instances, in vCPUs,".to_owned(),
            None => "vCPU quota for these instances".to_owned(),
        };
        match smallest.filter(|_| !self.is_zero()) {
            Some(vcpus) => {
                format!("the account's {quota} is {limit}, and the smallest allowed instance type has {vcpus} vCPUs")
            }
            None => format!("the account's {quota} is {limit}"),
        }
    }

    pub(super) fn fix(&self) -> String {
        let raise = match self.bucket {
            Some(Bucket { code, name }) => format!("Raise the quota \"{name}\" ({code}, in vCPUs)."),
            None if self.spot => "Raise the quota (All … Spot Instance Requests, in vCPUs).".to_owned(),
            None => "Raise the quota (Running On-Demand … instances, in vCPUs).".to_owned(),
        };
        let or = if self.is_zero() {
            "Or allow instances that count towards another quota."
        } else {
            "Or allow smaller instance types."
        };
        format!(
            "{raise} Until then none of these instances can launch, so waiting does not help. {or} Raising the quota \
             disrupts nothing."
        )
    }
}

/// The largest limit that the errors of a fleet name.
fn limit(said: &str) -> Option<f64> {
    let named = said.split("current vCPU limit of ").skip(1);
    let limits = named.filter_map(|rest| rest.split(' ').next()?.parse::<u32>().ok());
    limits.max().map(f64::from)
}

/// The vCPUs of the smallest instance type that may be launched, if all are named and known.
fn smallest(case: &Case) -> Option<u32> {
    let named = requirements(case)?.iter().find(|r| r.key == TYPE && r.operator == "In")?;
    let vcpus: Option<Vec<u32>> = named.values.iter().map(|type_| vcpus(type_)).collect();
    vcpus?.into_iter().min()
}

/// The least number of vCPUs of an instance type, by its size: four for each `xlarge`. `c4.8xlarge` and `d2.8xlarge`
/// have more, `m2` fewer, and the families without a bucket are not asked about.
/// Source: <https://docs.aws.amazon.com/ec2/latest/instancetypes/instance-types.html>.
fn vcpus(type_: &str) -> Option<u32> {
    let (family, size) = type_.split_once('.')?;
    bucket_of(family, false).filter(|_| family != "m2")?;
    match size.strip_suffix("xlarge")? {
        "" => Some(4),
        times => times.parse::<u32>().ok()?.checked_mul(4),
    }
}

#[cfg(test)]
mod tests {
    use super::{bucket_of, limit, vcpus};

    #[test]
    fn a_limit_is_read_off_the_errors_of_a_fleet() {
        let said = "VcpuLimitExceeded: You have requested more vCPU capacity than your current vCPU limit of 0 allows";
        assert_eq!(limit(said), Some(0.0));
        assert_eq!(limit(&format!("{said}; {}", said.replace("of 0", "of 32"))), Some(32.0));
        assert_eq!(limit("An instance was requested that would exceed your VCPU quota"), None);
    }

    #[test]
    fn a_size_tells_how_many_vcpus_there_are_at_least() {
        assert_eq!(vcpus("g5.2xlarge"), Some(8));
        assert_eq!(vcpus("p3.xlarge"), Some(4));
        for type_ in ["t3.medium", "m5.metal", "m2.4xlarge", "hpc6a.48xlarge", "u-6tb1.56xlarge"] {
            assert_eq!(vcpus(type_), None, "{type_}");
        }
    }

    #[test]
    fn a_family_has_the_quota_of_its_letters() {
        let code = |family: &str, spot: bool| bucket_of(family, spot).map(|bucket| bucket.code);
        assert_eq!(code("g5.xlarge", false), Some("L-DB2E81BA"));
        assert_eq!(code("gr6", true), Some("L-3819A6DF"));
        assert_eq!(code("m", false), Some("L-1216C47A"));
        assert_eq!(code("p5.48xlarge", false), Some("L-417A185B"));
        assert_eq!(code("p5.48xlarge", true), None, "P5 has a spot quota of its own");
        assert_eq!(code("u-6tb1.metal", false), None);
        assert_eq!(code("mac2", false), None);
    }
}
