//! How many interfaces and addresses the VPC CNI has for pods on an instance type.
//!
//! AWS releases types faster than nodewhy is released. nodewhy says nothing about a type that the table lacks.
//! `cargo xtask tables` recreates the table, and `tests/e2e/upstream` compares it with the module that it names.

const TABLE: &str = include_str!("instance_types.tsv");

/// The network of an instance type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstanceNetwork {
    /// Interfaces of the network card that the VPC CNI uses.
    pub interfaces: u64,
    /// IPv4 addresses of each, its own among them.
    pub addresses: u64,
    /// Branches of a trunk interface, one for each pod with security groups of its own; 0 where there can be no trunk.
    pub branches: u64,
}

/// The type's network; `None` where the table is older than the type.
pub fn network(type_: &str) -> Option<InstanceNetwork> {
    let row = TABLE.lines().find_map(|line| line.strip_prefix(type_)?.strip_prefix('\t'))?;
    let mut numbers = row.split('\t').map(|number| number.parse().ok());
    let mut next = || numbers.next().flatten();
    Some(InstanceNetwork { interfaces: next()?, addresses: next()?, branches: next()? })
}

/// The day up to which the table knows types.
pub fn as_of() -> &'static str {
    TABLE.lines().next().and_then(|line| line.split_whitespace().last()).unwrap_or_default()
}

impl InstanceNetwork {
    /// The pods that get an address of their own, and the two agents that have the host's, as AWS and Karpenter count.
    /// Source: karpenter-provider-aws v1.14.1 pkg/providers/instancetype/types.go `ENILimitedPods`.
    pub fn pods(self, reserved_interfaces: u64) -> u64 {
        match self.interfaces.saturating_sub(reserved_interfaces) {
            0 => 0,
            interfaces => interfaces * self.addresses.saturating_sub(1) + 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_are_counted_as_the_table_of_eks_images_does() {
        // amazon-eks-ami templates/shared/runtime/eni-max-pods.txt
        let pods = |type_| network(type_).map(|network| network.pods(0));
        let counted = [("m5.large", 29), ("t3.small", 11), ("c5.4xlarge", 234), ("p4d.24xlarge", 737)];
        for (type_, expected) in counted {
            assert_eq!(pods(type_), Some(expected), "{type_}");
        }
        assert_eq!(network("m5.large").map(|network| network.pods(1)), Some(20));
        assert_eq!(network("m5.large").map(|network| network.branches), Some(9));
        assert_eq!(network("t3.large").map(|network| network.branches), Some(0));
        assert_eq!(network("m5"), None);
        assert_eq!(network("m99.large"), None);
    }

    #[test]
    fn the_table_says_how_old_it_is() {
        assert!(as_of().parse::<chrono::NaiveDate>().is_ok(), "{}", as_of());
    }
}
