//! The number of public reports for each cause: it orders suspects that nothing else distinguishes.
//!
//! Distinct threads of the trackers of Karpenter (kubernetes-sigs/karpenter, aws/karpenter-provider-aws), the EKS
//! images (awslabs/amazon-eks-ami), the VPC CNI (aws/amazon-vpc-cni-k8s), the EKS roadmap (aws/containers-roadmap) and
//! its Terraform module (terraform-aws-modules/terraform-aws-eks), read in November 2026. If there is no such count,
//! the reports that the cause's page lists and the real cases of `tests/cases`. This is a sample of convenience: only
//! the order matters.

/// Each cause with the number of its reports.
const REPORTS: [(&str, u32); 33] = [
    ("NodeRoleHasNoAccessEntry", 17),
    ("MemoryExhausted", 16),
    // NAT, routes, endpoints and access CIDRs together.
    ("NoRouteOut", 13),
    ("ImageNeverJoins", 10),
    ("ZoneNeverJoins", 10),
    // Removed flags and labels; as many reports are about boots that time out.
    ("BootstrapFailed", 9),
    // From 20 threads on network plugins that do not start.
    ("CniLacksPermissions", 9),
    ("PodsGetNoAddress", 9),
    ("CniOlderThanInstanceType", 8),
    ("InstanceTypeNeverJoins", 8),
    ("ImageNotAvailable", 6),
    ("ContainerRuntimeFails", 5),
    ("InstanceEnded", 5),
    ("LaunchRightsMissing", 4),
    ("ServiceAddressUnreachable", 4),
    ("SecurityGroupBlocksKubelet", 4),
    ("SecurityGroupsDiffer", 4),
    ("VolumeKeyRefused", 4),
    ("DaemonSetPodRefused", 3),
    ("EniConfigMissing", 3),
    ("MetadataHopLimit", 3),
    ("NodeNameRefused", 3),
    ("PrivateEndpointUnresolved", 3),
    ("ProxyWithoutExceptions", 3),
    ("CpuCreditsExhausted", 2),
    ("NodeNameEmptyAtBoot", 2),
    ("MetadataServiceOff", 2),
    ("PublicSubnetWithoutPublicIp", 2),
    ("WrongCluster", 2),
    ("AdmissionRefusesNode", 1),
    ("ApiServerUntrusted", 1),
    ("Ec2CallsThrottled", 1),
    ("KubeletRefusesConfiguration", 1),
];

/// The number of reports that name this cause; none if it was not counted.
pub fn reports(cause: &str) -> u32 {
    REPORTS.iter().find(|(counted, _)| *counted == cause).map_or(0, |(_, reports)| *reports)
}

#[cfg(test)]
mod tests {
    use super::{REPORTS, reports};
    use crate::suspects::ALL;

    #[test]
    fn every_candidate_is_counted_and_nothing_else_is() {
        assert!(ALL.iter().all(|candidate| reports(candidate.cause) > 0));
        assert!(REPORTS.iter().all(|(cause, _)| ALL.iter().any(|candidate| candidate.cause == *cause)));
    }
}
