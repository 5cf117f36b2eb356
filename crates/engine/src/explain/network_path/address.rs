//! Ranges of IPv4 addresses, and whether a rule covers all, some or none of the relevant ones.

use std::net::Ipv4Addr;

pub(super) const ANYWHERE: &str = "0.0.0.0/0";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cidr {
    first: u32,
    last: u32,
}

/// Never on the internet.
/// Source: IANA IPv4 Special-Purpose Address Registry (RFC 1918, RFC 6598, RFC 3927, RFC 1122).
const PRIVATE: [&str; 6] =
    ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16", "127.0.0.0/8"];

impl Cidr {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (address, length) = text.split_once('/').unwrap_or((text, "32"));
        let length: u32 = length.parse().ok().filter(|length| *length <= 32)?;
        let address = u32::from(address.parse::<Ipv4Addr>().ok()?);
        let host_bits = u32::MAX.checked_shr(length).unwrap_or(0);
        Some(Self { first: address & !host_bits, last: address | host_bits })
    }

    pub(super) const fn contains(self, other: Self) -> bool {
        self.first <= other.first && other.last <= self.last
    }

    pub(super) const fn overlaps(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// The receiver or the sender of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Peer {
    /// An address of the internet that nodewhy does not know.
    Internet,
    /// An address in this range.
    Within(Cidr),
}

/// Whether something holds for all, some or none of the addresses or ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Share {
    None,
    /// For some, or nodewhy cannot tell.
    Some,
    All,
}

impl Share {
    /// The same for a range of ports that a rule names.
    pub(super) const fn of_ports((first, last): (u16, u16), from: u16, to: u16) -> Self {
        if from <= first && last <= to {
            Self::All
        } else if to < first || last < from {
            Self::None
        } else {
            Self::Some
        }
    }
}

impl Peer {
    /// How many of the peer's addresses a rule covers.
    pub(super) fn covered_by(self, rule: &str) -> Share {
        let Some(rule) = Cidr::parse(rule) else { return Share::Some };
        let is_private = || PRIVATE.iter().filter_map(|range| Cidr::parse(range)).any(|range| range.contains(rule));
        match self {
            Self::Internet if rule == (Cidr { first: 0, last: u32::MAX }) => Share::All,
            Self::Internet if is_private() => Share::None,
            Self::Within(range) if rule.contains(range) => Share::All,
            Self::Within(range) if !rule.overlaps(range) => Share::None,
            Self::Internet | Self::Within(_) => Share::Some,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_covers_all_some_or_none_of_a_peer() {
        let within = |range| Peer::Within(Cidr::parse(range).unwrap());
        for (peer, rule, share) in [
            (Peer::Internet, "0.0.0.0/0", Share::All),
            (Peer::Internet, "10.0.0.0/8", Share::None),
            (Peer::Internet, "10.1.2.0/24", Share::None),
            (Peer::Internet, "8.0.0.0/5", Share::Some),
            (Peer::Internet, "52.0.0.0/8", Share::Some),
            (Peer::Internet, "no address", Share::Some),
            (within("10.0.1.0/24"), "0.0.0.0/0", Share::All),
            (within("10.0.1.0/24"), "10.0.1.0/24", Share::All),
            (within("10.0.1.0/24"), "10.0.1.128/25", Share::Some),
            (within("10.0.1.0/24"), "10.0.2.0/24", Share::None),
            (within("10.0.1.7"), "10.0.1.7/32", Share::All),
            (within("255.255.255.255/32"), "255.255.255.254/31", Share::All),
        ] {
            assert_eq!(peer.covered_by(rule), share, "{peer:?} {rule}");
        }
        for broken in ["", "10.0.0.0/33", "10.0.0/8", "fd00::/8", "/", "10.0.0.0/-1"] {
            assert_eq!(Cidr::parse(broken), None, "{broken}");
        }
    }
}
