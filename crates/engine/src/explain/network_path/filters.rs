//! Whether a network ACL or the rules of security groups allow a packet.

use super::address::{Peer, Share};
use crate::objects::{AclEntry, GroupRule, NetworkAcl};

/// HTTPS: every API that a machine needs.
pub(super) const HTTPS: (u16, u16) = (443, 443);
/// The ports on which a Linux machine receives answers.
/// Source: Linux 6.12 net/ipv4/af_inet.c `inet_init_net`, `ip_local_ports.range`.
pub(super) const ANSWERS: (u16, u16) = (32768, 60999);
/// The ports on which a NAT gateway receives answers.
/// Source: Amazon VPC user guide, custom network ACLs, "Ephemeral ports".
pub(super) const ANSWERS_OF_NAT: (u16, u16) = (1024, 65535);

/// The entry of an ACL that decides, in the order of their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    Allowed,
    /// By the entry of this number; `None` if no entry matches, which is the same as a denial.
    Denied(Option<u32>),
    /// Depends on the address or the port.
    Open,
}

pub(super) fn decide(acl: &NetworkAcl, egress: bool, peer: Peer, ports: (u16, u16)) -> Decision {
    let mut entries: Vec<(&AclEntry, Share)> = acl
        .entries
        .iter()
        .filter(|entry| entry.egress == egress)
        .filter_map(|entry| Some((entry, entry_covers(entry, peer, ports)?)))
        .collect();
    entries.sort_by_key(|(entry, _)| entry.number);
    let (mut some_allowed, mut some_denied) = (false, false);
    for (entry, share) in entries {
        match (share, entry.allow) {
            (Share::All, true) => return if some_denied { Decision::Open } else { Decision::Allowed },
            (Share::All, false) if some_allowed => return Decision::Open,
            (Share::All, false) => return Decision::Denied(Some(entry.number)),
            (_, true) => some_allowed = true,
            (_, false) => some_denied = true,
        }
    }
    if some_allowed { Decision::Open } else { Decision::Denied(None) }
}

/// `None` if the entry covers something else.
fn entry_covers(entry: &AclEntry, peer: Peer, ports: (u16, u16)) -> Option<Share> {
    let of_ports = match (entry.protocol.as_str(), entry.from, entry.to) {
        ("-1", ..) => Share::All,
        ("6", Some(from), Some(to)) => Share::of_ports(ports, from, to),
        ("6", ..) => Share::Some,
        _ => return None,
    };
    let share = of_ports.min(peer.covered_by(entry.cidr.as_deref()?));
    (share != Share::None).then_some(share)
}

/// How much of HTTPS to or from this peer the rules allow. They only allow, and one of them is enough. nodewhy does not
/// know the content of a prefix list.
pub(super) fn permitted<'r>(
    rules: impl Iterator<Item = &'r GroupRule>,
    egress: bool,
    peer: Peer,
    peer_groups: &[String],
) -> Share {
    let of_rule = |rule: &GroupRule| {
        let by_address = rule.cidrs.iter().map(|cidr| peer.covered_by(cidr)).max();
        let by_group = rule.groups.iter().any(|group| peer_groups.contains(group)).then_some(Share::All);
        let by_list = (!rule.prefix_lists.is_empty()).then_some(Share::Some);
        let of_peer = [by_address, by_group, by_list].into_iter().flatten().max().unwrap_or(Share::None);
        of_peer.min(ports_of(rule))
    };
    rules.filter(|rule| rule.egress == egress).map(of_rule).max().unwrap_or(Share::None)
}

fn ports_of(rule: &GroupRule) -> Share {
    match (rule.protocol.as_str(), rule.from, rule.to) {
        ("-1", ..) => Share::All,
        ("tcp" | "6", Some(from), Some(to)) => {
            let port = i32::from(HTTPS.0);
            if from <= port && port <= to { Share::All } else { Share::None }
        }
        ("tcp" | "6", ..) => Share::Some,
        _ => Share::None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::address::Cidr;
    use super::*;

    fn entry(number: u32, allow: bool, cidr: &str, ports: Option<(u16, u16)>) -> AclEntry {
        AclEntry {
            number,
            allow,
            egress: true,
            protocol: if ports.is_some() { "6" } else { "-1" }.to_owned(),
            cidr: Some(cidr.to_owned()),
            from: ports.map(|p| p.0),
            to: ports.map(|p| p.1),
        }
    }

    #[test]
    fn entries_decide_in_the_order_of_their_numbers() {
        let within = Peer::Within(Cidr::parse("10.0.1.0/24").unwrap());
        let all = |number| entry(number, true, "0.0.0.0/0", None);
        for (entries, peer, ports, decision) in [
            (vec![], Peer::Internet, HTTPS, Decision::Denied(None)),
            (vec![all(100)], Peer::Internet, HTTPS, Decision::Allowed),
            // Written in another order than they are numbered.
            (vec![all(100), entry(90, false, "0.0.0.0/0", Some(HTTPS))], within, HTTPS, Decision::Denied(Some(90))),
            (vec![entry(110, false, "0.0.0.0/0", None), all(100)], within, HTTPS, Decision::Allowed),
            // About others.
            (vec![entry(90, false, "10.0.2.0/24", None), all(100)], within, HTTPS, Decision::Allowed),
            (vec![entry(90, false, "10.0.0.0/8", None), all(100)], Peer::Internet, HTTPS, Decision::Allowed),
            (vec![entry(90, false, "0.0.0.0/0", Some((22, 22))), all(100)], within, HTTPS, Decision::Allowed),
            // About some.
            (vec![entry(90, false, "10.0.1.0/25", None), all(100)], within, HTTPS, Decision::Open),
            (vec![entry(90, true, "52.0.0.0/8", None)], Peer::Internet, HTTPS, Decision::Open),
            (vec![entry(90, true, "0.0.0.0/0", Some((49152, 65535)))], within, ANSWERS, Decision::Open),
            (vec![entry(90, true, "0.0.0.0/0", Some((1024, 65535)))], within, ANSWERS, Decision::Allowed),
            (vec![entry(90, true, "0.0.0.0/0", Some(HTTPS))], within, ANSWERS, Decision::Denied(None)),
        ] {
            let acl = NetworkAcl { entries, ..NetworkAcl::default() };
            assert_eq!(decide(&acl, true, peer, ports), decision, "{acl:?}");
            // The other direction is another list.
            assert_eq!(decide(&acl, false, peer, ports), Decision::Denied(None));
        }
    }

    /// Packet by packet, over ACLs of a small world.
    #[test]
    fn a_decision_holds_for_every_packet() {
        let mut seed = 7_u32;
        let mut random = |below: u32| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 16) % below
        };
        let mut decided = [0; 3];
        for _ in 0..20_000 {
            let entries = (0..random(5)).map(|_| {
                let (from, more) = (random(8), random(8));
                let ports = (random(3) > 0).then_some((from, from + more));
                let ports = ports.map(|(from, to)| (u16::try_from(from).unwrap(), u16::try_from(to).unwrap()));
                entry(random(50), random(2) == 0, &format!("10.0.0.{}/{}", random(16), 28 + random(5)), ports)
            });
            let mut acl = NetworkAcl { entries: entries.collect(), ..NetworkAcl::default() };
            acl.entries.sort_by_key(|entry| entry.number);
            acl.entries.dedup_by_key(|entry| entry.number);
            let (peer, ports) = (format!("10.0.0.{}/{}", random(16), 28 + random(5)), (2, 4));
            let range = Cidr::parse(&peer).unwrap();
            let decision = decide(&acl, true, Peer::Within(range), ports);
            let packets = (0..16).flat_map(|host| (2..=4).map(move |port| (host, port)));
            let allowed = packets.filter_map(|(host, port)| {
                let host = Cidr::parse(&format!("10.0.0.{host}")).unwrap();
                let matches = |entry: &&AclEntry| {
                    Cidr::parse(entry.cidr.as_deref().unwrap()).unwrap().contains(host)
                        && entry.from.is_none_or(|from| from <= port)
                        && entry.to.is_none_or(|to| port <= to)
                };
                range.contains(host).then(|| acl.entries.iter().find(matches).is_some_and(|entry| entry.allow))
            });
            let allowed: Vec<bool> = allowed.collect();
            match decision {
                Decision::Allowed => assert!(allowed.iter().all(|is| *is), "{peer} {acl:?}"),
                Decision::Denied(_) => assert!(!allowed.contains(&true), "{peer} {acl:?}"),
                Decision::Open => {}
            }
            decided[match decision {
                Decision::Allowed => 0,
                Decision::Denied(_) => 1,
                Decision::Open => 2,
            }] += 1;
        }
        assert!(decided.iter().all(|times| *times > 100), "{decided:?}");
    }

    #[test]
    fn any_rule_of_a_group_is_enough() {
        let peer = Peer::Within(Cidr::parse("10.0.1.7/32").unwrap());
        let rule = |protocol: &str, ports: Option<(i32, i32)>| GroupRule {
            protocol: protocol.to_owned(),
            from: ports.map(|p| p.0),
            to: ports.map(|p| p.1),
            ..GroupRule::default()
        };
        let by_cidr = |cidr: &str| GroupRule { cidrs: vec![cidr.to_owned()], ..rule("tcp", Some((443, 443))) };
        let by_group = |group: &str| GroupRule { groups: vec![group.to_owned()], ..rule("-1", None) };
        let by_list = GroupRule { prefix_lists: vec!["pl-1".to_owned()], ..rule("tcp", Some((0, 65535))) };
        let dns = GroupRule { cidrs: vec!["0.0.0.0/0".to_owned()], ..rule("udp", Some((443, 443))) };
        let ssh = GroupRule { cidrs: vec!["0.0.0.0/0".to_owned()], ..rule("tcp", Some((22, 22))) };
        for (rules, share) in [
            (vec![], Share::None),
            (vec![dns.clone(), ssh.clone()], Share::None),
            (vec![ssh.clone(), by_cidr("10.0.0.0/16")], Share::All),
            (vec![by_cidr("10.9.0.0/16")], Share::None),
            (vec![by_group("sg-node")], Share::All),
            (vec![by_group("sg-other")], Share::None),
            (vec![by_list, ssh], Share::Some),
        ] {
            assert_eq!(permitted(rules.iter(), false, peer, &["sg-node".to_owned()]), share, "{rules:?}");
        }
    }
}
