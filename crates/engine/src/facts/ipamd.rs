//! What ipamd, the daemon of the VPC CNI, logs about a Node that has no addresses for its pods.

use crate::case::Case;
use crate::objects::{MachineLog, Node};
use chrono::{DateTime, TimeDelta, Utc};
use logs::fact::LogLine;

/// Why ipamd gets no more addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shortage {
    /// The subnet has no free block for a prefix.
    Blocks,
    /// The subnet has no free address.
    Addresses,
    /// It counts as many network interfaces as the instance can have.
    Interfaces,
}

/// The line that says so.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IpamdLine<'w> {
    pub(crate) shortage: Shortage,
    pub(crate) line: &'w LogLine,
    /// Whether the log or its file names the Node. Otherwise it names no machine.
    pub(crate) is_named: bool,
}

/// What ipamd has said about it last, around the first refusal or later. A log that names no machine counts if none
/// names it.
pub(crate) fn shortage<'w>(case: &Case<'w>, node: &Node, refused: Option<DateTime<Utc>>) -> Option<IpamdLine<'w>> {
    let own = case.logs().into_iter().map(|of_machine| (of_machine.log, of_machine.is_named));
    let strays = case.cluster.logs().filter(|log| log.journey.identity.is_empty());
    let told = own.chain(strays.map(|log| (log, false))).flat_map(|(log, is_named)| {
        lines(log).filter_map(move |line| Some(IpamdLine { shortage: of_line(&line.text)?, line, is_named }))
    });
    let told = told.filter(|told| is_recent(told.line, refused)).filter_map(|told| of_node(told, node));
    told.max_by_key(|told| (told.is_named, told.line.time, told.line.line))
}

/// The lines that the journey keeps of the VPC CNI.
fn lines(log: &MachineLog) -> impl Iterator<Item = &LogLine> {
    const PROGRAM: &str = "vpc-cni";
    let facts = log.journey.facts.iter().filter(|fact| fact.program == PROGRAM).map(|fact| &fact.last);
    facts.chain(log.journey.last_words.get(PROGRAM))
}

/// Sources: EC2 API reference, "Error codes"; amazon-vpc-cni-k8s v1.20.4 pkg/ipamd/ipamd.go `increaseDatastorePool`,
/// `containsInsufficientCIDRsOrSubnetIPs`.
fn of_line(text: &str) -> Option<Shortage> {
    const WORDS: [(&str, Shortage); 3] = [
        ("InsufficientCidrBlocks", Shortage::Blocks),
        ("InsufficientFreeAddressesInSubnet", Shortage::Addresses),
        ("Skipping ENI allocation as the max ENI limit", Shortage::Interfaces),
    ];
    WORDS.iter().find(|(words, _)| text.contains(words)).map(|(_, shortage)| *shortage)
}

/// An older line may be about another shortage.
fn is_recent(line: &LogLine, refused: Option<DateTime<Utc>>) -> bool {
    const BEFORE: TimeDelta = TimeDelta::minutes(10);
    line.time.zip(refused).is_none_or(|(said, refused)| refused - said <= BEFORE)
}

/// `None` if the name of the file names another machine.
fn of_node<'w>(told: IpamdLine<'w>, node: &Node) -> Option<IpamdLine<'w>> {
    let short = node.name().split('.').next().unwrap_or_default();
    let own = [Some(short), node.instance_id()];
    let mut named = machines_in(&told.line.file).peekable();
    if told.is_named || named.peek().is_none() {
        return Some(told);
    }
    named.any(|name| own.contains(&Some(name))).then_some(IpamdLine { is_named: true, ..told })
}

/// `ip-10-0-1-2` and `i-0123456789abcdef0` in `logs/ipamd-ip-10-0-1-2.log`.
fn machines_in(file: &str) -> impl Iterator<Item = &str> {
    let is_id = |c: char| c.is_ascii_hexdigit();
    let is_host = |c: char| c.is_ascii_digit() || c == '-';
    let hosts = named_after(file, "ip-", is_host).filter(|name| name.matches('-').count() == 4);
    hosts.chain(named_after(file, "i-", is_id).filter(|id| id.len() >= "i-01234567".len()))
}

fn named_after<'t>(text: &'t str, prefix: &'static str, is_part: fn(char) -> bool) -> impl Iterator<Item = &'t str> {
    text.match_indices(prefix).filter_map(move |(at, _)| {
        if text.get(..at)?.ends_with(|c: char| c.is_ascii_alphanumeric()) {
            return None;
        }
        let name = text.get(at..)?;
        let rest = name.get(prefix.len()..)?;
        let end = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
        name.get(..prefix.len() + end).map(|name| name.trim_end_matches('-'))
    })
}

#[cfg(test)]
mod tests {
    use super::{Shortage, machines_in, of_line};

    #[test]
    fn a_file_names_its_machine() {
        let named = |file: &'static str| machines_in(file).collect::<Vec<_>>();
        assert_eq!(named("logs/ipamd-ip-10-64-2-201.log"), ["ip-10-64-2-201"]);
        assert_eq!(named("ip-10-0-1-2.ec2.internal-ipamd.log"), ["ip-10-0-1-2"]);
        assert_eq!(named("i-0d425b905f3457500-ipamd.log"), ["i-0d425b905f3457500"]);
        assert_eq!(named("var_log/aws-routed-eni/ipamd-of-eni-0123456789.log"), [""; 0]);
    }

    #[test]
    fn each_shortage_has_its_words() {
        let full = "Failed to allocate a private IP/Prefix addresses on ENI eni-1: InsufficientCidrBlocks: The \
                    specified subnet does not have enough free cidr blocks";
        assert_eq!(of_line(full), Some(Shortage::Blocks));
        let limit = "Skipping ENI allocation as the max ENI limit of 4 is already reached (accounting for 1 unmanaged \
                     ENIs and 0 trunk ENIs)";
        assert_eq!(of_line(limit), Some(Shortage::Interfaces));
        assert_eq!(of_line("DataStore has no available IP/Prefix addresses"), None);
    }
}
