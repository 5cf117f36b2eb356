//! The kubelet's log says that it does not trust the API server's certificate, or that a clock is wrong.

use crate::explain::logged;
use crate::rules::prelude::*;
use logs::fact::{Reason, Trouble};

rule! {
    cause: ApiServerUntrusted,
    summary: "The kubelet logged that the API server's certificate has another authority, or that its time is wrong",
    stages: [Join, Register, Ready],
    reads: [Nodes, NodeClasses, Pods, Logs],
    versions: "all; seen only in logs",
}

fn check(case: &Case) -> Option<Opinion> {
    let root = logged::root(case, &[Trouble::ApiServerUntrusted, Trouble::ClockWrong])?;
    let fix = if root.fact.trouble == Trouble::ClockWrong {
        "Correct the instance's clock: chronyd needs a source that the subnet reaches, such as 169.254.169.123. It \
         must run before the kubelet. Only new nodes get the change."
    } else if case.is_elsewhere() {
        "Give new nodes the certificate authority that the cluster has now: it was rotated, or theirs is another \
         cluster's. Look for an old one at Karpenter's sources: an instance template of a node pool from before the \
         rotation, the image, or its own settings, which it reads when it starts."
    } else {
        "Give the instance the certificate authority of this cluster: remove an old one from the user data or the \
         image, and keep proxies from breaking TLS to the endpoint. Only new nodes get the change."
    };
    let finding = root.finding(case).fix(fix).inspect("Read the whole console", logged::command(case));
    let blamed = match root.fact.trouble {
        Trouble::ClockWrong if !root.is_because(&[Reason::Clock]) => sets_clock(case),
        _ => root.user_data(case),
    };
    finding.blaming(blamed).into()
}

/// Who says where the time comes from: the user data, else the image.
fn sets_clock(case: &Case) -> Option<Blame> {
    let of_user_data = case.user_data_naming(&["chrony", "ntpd", "ntp.conf", "timesyncd", "timedatectl"]);
    of_user_data.or_else(|| case.class_field("spec.amiSelectorTerms"))
}
