//! The machine reaches nothing, because systemd-networkd lost its address and got no new one, or removed its routes.

use crate::api::{Blame, Confidence, Evidence};
use crate::case::Case;
use crate::case::finding::Finding;
use crate::explain::logged::Root;
use crate::explain::user_data_line;
use logs::fact::Reason;
use logs::lease::NETWORKD;

/// What to say and do about it.
pub(crate) struct LostNetwork {
    says: String,
    evidence: Evidence,
    fix: &'static str,
    /// The user data that reconfigures the network.
    pub blame: Option<Blame>,
}

impl LostNetwork {
    /// The finding with it. That the user data is the reason is likely only.
    pub(crate) fn in_finding(self, finding: Finding) -> Finding {
        let mut finding = if self.says.is_empty() { finding } else { finding.adding(&self.says) };
        finding.confidence = finding.confidence.min(Confidence::Likely);
        finding.with(self.evidence).fix(self.fix)
    }
}

/// The lost lease behind a request that finds no route.
/// Sources: amazonlinux/amazon-ec2-net-utils#168; networkctl(1), netplan-apply(8).
pub(crate) fn behind(case: &Case, root: &Root) -> Option<LostNetwork> {
    const RECONFIGURES: [&str; 6] = [
        "networkctl reload",
        "networkctl reconfigure",
        "restart systemd-networkd",
        "try-restart systemd-networkd",
        "reload-or-restart systemd-networkd",
        "netplan apply",
    ];
    let is_own = root.fact.program == NETWORKD;
    let lost = root.lost_lease().filter(|_| is_own || root.is_because(&[Reason::NoRoute]));
    let Some((lease, evidence)) = lost else { return removed_routes(root) };
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
    Some(LostNetwork { says: says.join(" "), evidence, fix, blame: by_user_data.map(|line| line.blame) })
}

/// When it starts, systemd-networkd removes rules and routes that its files do not name. Network plugins set up such.
/// Source: systemd v252 man/networkd.conf.xml `ManageForeignRoutingPolicyRules`, `ManageForeignRoutes` (both yes).
fn removed_routes(root: &Root) -> Option<LostNetwork> {
    if !root.is_because(&[Reason::NoRoute, Reason::Timeout, Reason::NameNotFound]) {
        return None;
    }
    let (before, evidence) = root.restarted_network()?;
    let says = format!(
        "systemd-networkd had been restarted {} before: it then removes the rules and routes that its own files do not \
         name, such as those of the network plugin.",
        crate::case::duration(before)
    );
    let fix = "Set ManageForeignRoutingPolicyRules=no and ManageForeignRoutes=no in networkd.conf, and turn off what \
               restarts systemd-networkd, such as unattended upgrades, in the image. A restart of the network plugin's \
               pod sets up its rules again, and so does a replacement of the machine.";
    Some(LostNetwork { says, evidence, fix, blame: None })
}
