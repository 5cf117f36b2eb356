//! Which IP family the user's text has the kubelet register with.

use super::{Family, Located, UserData, has_expansion};
use std::fmt;
use std::net::IpAddr;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IpFamily {
    V4,
    V6,
}

impl fmt::Display for IpFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        })
    }
}

impl IpFamily {
    pub const fn of(address: IpAddr) -> Self {
        if address.is_ipv6() { Self::V6 } else { Self::V4 }
    }

    /// That of an address, or of a range of them.
    pub fn of_text(text: &str) -> Option<Self> {
        text.split('/').next()?.trim().parse().ok().map(Self::of)
    }
}

impl UserData {
    /// The IP family that the text decides on, and what decides it. Elsewhere than on Custom, Karpenter's part does,
    /// but for a first call of bootstrap.sh on AL2.
    pub fn ip_family(&self) -> Option<Located<IpFamily>> {
        match self.family {
            Family::Al2 => self.by_call(),
            // nodeadm takes the address of the family that the cluster's CIDR is of.
            // amazon-eks-ami 81fec2e nodeadm/internal/kubelet/config.go getNodeIp
            Family::Custom => self.by_call().or_else(|| {
                let cidr = self.node_configs.iter().rev().find_map(|config| config.cidr.as_ref())?;
                Some(Located { value: IpFamily::of_text(&cidr.value)?, span: cidr.span })
            }),
            Family::Al2023 | Family::Bottlerocket | Family::Windows => None,
        }
    }

    /// bootstrap.sh asks EKS only where it must look up the endpoint too; else IPv4 is its default.
    // amazon-eks-ami v20251112 templates/al2/runtime/bootstrap.sh
    fn by_call(&self) -> Option<Located<IpFamily>> {
        let call = self.bootstrap_calls.iter().find(|call| call.starts_kubelet && call.exact)?;
        let given = |name: &str| call.options.iter().rfind(|(option, _)| option == name).map(|(_, value)| value);
        let literal = |located: &&Located<String>| !located.value.is_empty() && !has_expansion(&located.value);
        if let Some(cidr) = given("--service-ipv6-cidr").filter(literal) {
            return Some(Located { value: IpFamily::V6, span: cidr.span });
        }
        if let Some(named) = given("--ip-family") {
            let value = match named.value.to_ascii_lowercase().as_str() {
                "ipv4" => IpFamily::V4,
                "ipv6" => IpFamily::V6,
                _ => return None,
            };
            return Some(Located { value, span: named.span });
        }
        let asks_nobody = given("--apiserver-endpoint").is_some() && given("--b64-cluster-ca").is_some();
        asks_nobody.then_some(Located { value: IpFamily::V4, span: call.span })
    }
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::*;

    fn family(text: &str, of: Family) -> Option<(IpFamily, String)> {
        read(text, of).ip_family().map(|found| (found.value, found.span.of(text).to_owned()))
    }

    #[test]
    fn a_call_says_its_family_or_asks_for_it() {
        const KNOWN: &str = "--apiserver-endpoint https://x --b64-cluster-ca QQ==";
        for (options, expected) in [
            ("--ip-family ipv6 --service-ipv6-cidr fd00::/108", Some((IpFamily::V6, "fd00::/108"))),
            ("--ip-family IPv6 --dns-cluster-ip fd00::a", Some((IpFamily::V6, "IPv6"))),
            ("--ip-family ipv4", Some((IpFamily::V4, "ipv4"))),
            ("--ip-family $FAMILY", None),
            ("--use-max-pods false", None),
        ] {
            let text = format!("#!/bin/bash\n/etc/eks/bootstrap.sh shop {options}\n");
            let expected = expected.map(|(value, shown)| (value, shown.to_owned()));
            assert_eq!(family(&text, Family::Custom), expected, "{options}");
        }
        let text = format!("#!/bin/bash\n/etc/eks/bootstrap.sh shop {KNOWN}\n");
        assert_eq!(family(&text, Family::Al2).map(|(value, _)| value), Some(IpFamily::V4));
    }

    #[test]
    fn the_clusters_range_decides_only_where_karpenter_adds_none() {
        let text =
            "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {cluster: {name: a, cidr: 10.100.0.0/16}}\n";
        assert_eq!(family(text, Family::Custom), Some((IpFamily::V4, "10.100.0.0/16".to_owned())));
        assert_eq!(family(text, Family::Al2023), None);
    }
}
