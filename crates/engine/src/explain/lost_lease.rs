//! The machine reaches nothing, because systemd-networkd lost its address and got no new one.

use crate::api::{Blame, Confidence, Evidence};
use crate::case::Case;
use crate::case::finding::Finding;
use crate::explain::logged::Root;
use crate::explain::user_data_line;
use logs::fact::Reason;
use logs::lease::NETWORKD;

/// What to say and do about it.
pub(crate) struct LostLease {
    says: String,
    evidence: Evidence,
    fix: &'static str,
    /// The user data that reconfigures the network.
    pub blame: Option<Blame>,
}

impl LostLease {
    /// The finding with it. That the user data is the reason is likely only.
    pub(crate) fn in_finding(self, finding: Finding) -> Finding {
        let mut finding = if self.says.is_empty() { finding } else { finding.adding(&self.says) };
        finding.confidence = finding.confidence.min(Confidence::Likely);
        finding.with(self.evidence).fix(self.fix)
    }
}

/// The lost lease behind a request that finds no route.
/// Sources: amazonlinux/amazon-ec2-net-utils#168; networkctl(1), netplan-apply(8).
pub(crate) fn behind(case: &Case, root: &Root) -> Option<LostLease> {
    const RECONFIGURES: [&str; 6] = [
        "networkctl reload",
        "networkctl reconfigure",
        "restart systemd-networkd",
        "try-restart systemd-networkd",
        "reload-or-restart systemd-networkd",
        "netplan apply",
    ];
    let is_own = root.fact.program == NETWORKD;
    if !is_own && !root.is_because(&[Reason::NoRoute]) {
        return None;
    }
    let (lease, evidence) = root.lost_lease()?;
    let by_user_data = user_data_line::with(case, &RECONFIGURES, &[]);
    let mut says = Vec::new();
    if !is_own {
        let after = if lease.was_reconfigured { " as it reconfigured the interface," } else { "" };
        says.push(format!("systemd-networkd had lost the DHCP lease of {},{after} and got no new one.", lease.link));
    }
    says.extend(by_user_data.as_ref().map(|line| {
        format!("The user data calls \"{}\", which is the likely reason if it runs while the machine boots.", line.text)
    }));
    let fix = if by_user_data.is_some() {
        "Move the network's configuration from the user data into the image. Only new nodes get the change."
    } else {
        "Find what reconfigures the network while the machine boots, in the image or in the user data, and remove it. \
         Then replace the machine."
    };
    Some(LostLease { says: says.join(" "), evidence, fix, blame: by_user_data.map(|line| line.blame) })
}
