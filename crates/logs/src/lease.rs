//! Whether systemd-networkd lost the address of the machine's first network interface and got no new one.

use crate::fact::{Fact, LogLine, Phase, Trouble};
use serde::{Deserialize, Serialize};

/// What the journal calls systemd-networkd.
pub const NETWORKD: &str = "systemd-networkd";

/// Sources: systemd v252 src/network/networkd-dhcp4.c `dhcp4_address_ready_callback` (`DHCPv4 address … acquired
/// from`), `dhcp4_lease_lost`; networkd-link.c `link_reconfigure_impl`.
const ACQUIRED: &str = " acquired from ";
const LOST: &str = ": DHCP lease lost";
const RECONFIGURES: &str = ": Reconfiguring with ";

/// How systemd names the unit of systemd-networkd.
/// Source: systemd v252 units/systemd-networkd.service.in `Description`.
const UNIT: &str = "Network Configuration";

/// What makes a line worth a look.
pub(crate) const NEEDLES: [&str; 4] = [ACQUIRED, LOST, RECONFIGURES, UNIT];

/// The lease of a machine's first interface. The VPC CNI leaves the addresses of the others to itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Lease {
    /// The interface that got an address first.
    pub link: String,
    /// The line that says that it was lost, if none says that there is a new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<LogLine>,
    /// systemd-networkd reconfigured the interface before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub was_reconfigured: bool,
    /// The line that says that systemd-networkd was stopped. It is started again at once, unless the machine ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Box<LogLine>>,
}

impl Lease {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Takes in a line of this program.
    pub(crate) fn hear_of(&mut self, program: Option<&str>, message: &str, seen: impl Fn() -> LogLine) {
        match program {
            Some(NETWORKD) => self.hear(message, seen),
            Some("systemd") => self.hear_systemd(message, seen),
            _ => {}
        }
    }

    /// Takes in a line of systemd-networkd: `ens5: DHCP lease lost`.
    fn hear(&mut self, message: &str, seen: impl Fn() -> LogLine) {
        let Some((link, _)) = message.split_once(": ") else { return };
        let is_acquired = message.contains(ACQUIRED);
        let is_told = is_acquired || message.contains(LOST) || message.contains(RECONFIGURES);
        if self.link.is_empty() && is_told {
            link.clone_into(&mut self.link);
        }
        if self.link != link || !is_told {
            return;
        }
        if is_acquired {
            (self.lost, self.was_reconfigured) = (None, false);
        } else if message.contains(LOST) {
            self.lost = Some(seen());
        } else {
            self.was_reconfigured = true;
        }
    }

    /// Takes in a line of systemd: `Stopped Network Configuration.`, from v249 on with the unit's name before.
    fn hear_systemd(&mut self, message: &str, seen: impl Fn() -> LogLine) {
        if message.starts_with("Stopped ") && message.trim_end_matches('.').ends_with(UNIT) {
            self.stopped = Some(Box::new(seen()));
        }
    }

    /// Takes in what another file says. The newer one knows whether there is a lease.
    pub(crate) fn extend(&mut self, other: Self) {
        let stopped = other.stopped.clone().or(self.stopped.take());
        if self.is_empty() || self.link == other.link && other.lost.is_none() {
            *self = other;
        }
        self.stopped = stopped;
    }

    /// That the machine has no address.
    pub(crate) fn fact(&self) -> Option<Fact> {
        let means = "systemd-networkd lost the DHCP lease and got no new one, so the machine has no address".to_owned();
        let lost = self.lost.clone()?;
        let fact = Fact::of_no_row(NETWORKD, means, Trouble::NoMetadata, Phase::Registered, lost);
        Some(Fact { unknown: false, ..fact })
    }
}

#[cfg(test)]
mod tests {
    use crate::{FileLimits, LogReader};

    const BEFORE: &str = "Jan 15 11:51:02 localhost systemd-networkd[1547]: ";
    const GOT: &str = "ens5: DHCPv4 address 10.0.2.20/24, gateway 10.0.2.1 acquired from 10.0.2.1";
    const RECONFIGURES: &str = "ens5: Reconfiguring with /usr/lib/systemd/network/80-ec2.network";
    const LOST: &str = "ens5: DHCP lease lost";

    /// The interface that has lost its lease, and whether it was reconfigured.
    fn lost(lines: &[&str]) -> Option<(String, bool)> {
        let log = format!("{BEFORE}{}\n", lines.join(&format!("\n{BEFORE}")));
        let mut reader = LogReader::new(FileLimits::default());
        reader.file("journal", log.as_bytes(), "2026-01-15T12:00:00Z".parse().ok()).expect("text");
        let journey = reader.of_one_machine();
        let lease = journey.lease;
        assert_eq!(journey.facts.len(), usize::from(lease.lost.is_some()));
        lease.lost.is_some().then_some((lease.link, lease.was_reconfigured))
    }

    #[test]
    fn a_lease_is_lost_until_there_is_a_new_one() {
        let wanted = Some(("ens5".to_owned(), true));
        assert_eq!(lost(&[GOT, RECONFIGURES, LOST]), wanted);
        assert_eq!(lost(&[GOT, LOST]), Some(("ens5".to_owned(), false)));
        assert_eq!(lost(&[GOT, RECONFIGURES, LOST, GOT]), None);
        assert_eq!(lost(&[GOT, RECONFIGURES]), None);
    }

    #[test]
    fn a_stop_of_networkd_is_kept() {
        let stopped = |message: &str| {
            let log = format!("Jan 15 11:51:02 localhost systemd[1]: {message}\n");
            let mut reader = LogReader::new(FileLimits::default());
            reader.file("journal", log.as_bytes(), "2026-01-15T12:00:00Z".parse().ok()).expect("text");
            reader.of_one_machine().lease.stopped.is_some()
        };
        assert!(stopped("Stopped Network Configuration."));
        assert!(stopped("Stopped systemd-networkd.service - Network Configuration."));
        assert!(!stopped("Started Network Configuration."));
        assert!(!stopped("Stopped Wait for Network to be Configured."));
    }

    #[test]
    fn other_interfaces_may_have_none() {
        assert_eq!(lost(&[GOT, &LOST.replace("ens5", "ens6")]), None);
        let other = GOT.replace("ens5", "ens6");
        assert_eq!(lost(&[GOT, LOST, &other]), Some(("ens5".to_owned(), false)));
    }
}
