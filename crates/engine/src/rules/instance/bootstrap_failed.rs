//! The instance's log says that its bootstrap failed.

use crate::explain::{device_reason, early_panic, logged, selinux};
use crate::objects::NodeClass;
use crate::rules::prelude::*;
use logs::fact::Trouble;

rule! {
    cause: BootstrapFailed,
    summary: "nodeadm, bootstrap.sh, a script or another step of the boot says that it failed, so no kubelet starts",
    stages: [Join, Ready],
    reads: [Nodes, NodeClaims, NodeClasses, Pods, Logs],
    versions: "all; seen only in logs, also of the console that EC2 shows (--aws)",
}

fn check(case: &Case) -> Option<Opinion> {
    let troubles = [Trouble::ScriptFailed, Trouble::BootstrapFailed, Trouble::KernelPanicked, Trouble::DiskFails];
    case.cluster.asks(Input::NodeClaims);
    let root = logged::root(case, &troubles)?;
    if let Some(panic) = early_panic::of(case, &root) {
        let finding = root.finding(case).adding("It panicked before any script could run.");
        let finding = finding.with_all(panic.evidence).fix(panic.fix);
        return finding.inspect("Read the whole console", logged::command(case)).blaming(panic.blame).into();
    }
    // Before 2.10.0 Ignition may fetch user data without a token: coreos/ignition v2.14.0 NEWS,
    // internal/resource/http.go.
    let requires_token = |class: &NodeClass| class.spec.metadata_options.http_tokens.as_deref() == Some("required");
    let lacks_token =
        root.is_unit_that_said("ignition", "GET result: Unauthorized") && case.class().is_some_and(requires_token);
    let calls_in_vain = root.calls_without_token().is_some() && case.class().is_some_and(requires_token);
    let knows_no_type = root.fact.names.contains_key("type");
    let fix = if lacks_token {
        "Use an image with Ignition 2.10.0 or later, which fetches user data with a token. Or set \
         metadataOptions.httpTokens to optional, which also lets pods on the node call the metadata service without a \
         token."
    } else if calls_in_vain {
        "Request a token first (PUT http://169.254.169.254/latest/api/token) and send it as X-aws-ec2-metadata-token. \
         Only new nodes get the change."
    } else if knows_no_type {
        "Use a newer image that supports the instance type, or exclude the type in the NodePool's requirements (NotIn)."
    } else if root.is_of_cycle() {
        "Remove the ordering that closes the cycle, in the image or in the files that its user data writes. The quoted \
         lines name the units: compare After=, Before= and WantedBy= (systemctl cat UNIT). Then replace the node."
    } else if root.is_unit_of_boot() || root.fact.names.contains_key("what") {
        "Boot an image in which the unit starts: an earlier version, or a newer one that fixes it. Correct the user \
         data if the quoted lines name something from it. Also check for a disk that differs from what the image \
         expects, such as a snapshot with other contents."
    } else {
        "Correct what the line names: the script of the user data, the image, or a disk of the instance."
    };
    let finding = root.finding(case);
    let finding = if lacks_token {
        finding.adding(
            "The node class requires a token of the metadata service (httpTokens: required), and Ignition before \
             2.10.0 fetches user data without one.",
        )
    } else if calls_in_vain {
        finding.adding(
            "Its call to the metadata service has no token, which the node class requires (httpTokens: required).",
        )
    } else {
        finding
    };
    let of_selinux = root.selinux_refusal().map(|_| selinux::fix(case));
    let of_device = root.device().map(|device| device_reason::fix(case, &device.line));
    let finding = match (root.module_fix().or(of_device), &of_selinux) {
        (Some(of_module), _) => finding.fix(of_module),
        (None, Some((of_selinux, _))) => finding.fix(*of_selinux),
        (None, None) => finding.fix(fix),
    };
    let finding = finding.inspect("Read the whole console", logged::command(case));
    let finding = match root.unit_log() {
        Some(command) => finding.inspect(format!("Read the log of the unit on the instance ({command})"), None),
        None => finding,
    };
    let blamed = if let Some((_, blamed)) = of_selinux {
        blamed
    } else if lacks_token {
        case.class_field("spec.metadataOptions.httpTokens")
    } else if knows_no_type || root.is_of_cycle() || root.device().is_some() {
        case.class_field("spec.amiSelectorTerms")
    } else {
        root.user_data(case)
    };
    finding.blaming(blamed).into()
}
