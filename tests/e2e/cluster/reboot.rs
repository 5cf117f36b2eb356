//! The real Karpenter repairs a Node by a reboot in place. The machine is out of service meanwhile, by design.

use crate::cluster::operator::{diagnosis, install};
use chrono::{SecondsFormat, TimeDelta, Utc};
use serde_json::json;
use std::time::Duration;
use testkit::control_plane::recipes::{
    SOON, condition, heartbeat, mark_ready, nodeclaim, nodeclaim_with, nodepool, wait_or, wait_until,
};
use testkit::control_plane::{ControlPlane, NEWEST_KARPENTER};

/// Shorter than the reboot here, and than any of Karpenter's own limits.
const SHORT: [&str; 2] = ["--initialize-threshold=20", "--proven-threshold=2"];
/// kwok's policies repair a Node with this condition by a reboot, after half a minute.
/// Source: core kwok/cloudprovider/cloudprovider.go `KWOKRebootRequiredCondition` (v1.15.0).
const FAULT: &str = "KWOKRebootRequired";

/// The kubelet has a fault, or none, and is Ready with none. kwok gives the Node another boot id when it is to reboot.
fn set_fault(control_plane: &ControlPlane, node: &str, is_faulty: bool) {
    let since = (Utc::now() - TimeDelta::minutes(1)).to_rfc3339_opts(SecondsFormat::Secs, true);
    let [fault, ready] = [is_faulty, !is_faulty].map(|is_true| if is_true { "True" } else { "False" });
    let condition = |kind: &str, status: &str| json!({ "type": kind, "status": status, "reason": "Tested", "lastTransitionTime": since });
    let status = json!({ "status": { "conditions": [condition(FAULT, fault), condition("Ready", ready)] } });
    control_plane.patch_status("node", node, "strategic", &status);
}

#[test]
fn a_node_that_karpenter_reboots_is_not_stuck_and_one_that_waits_as_long_is() {
    let control_plane = ControlPlane::start();
    let rights = install(&control_plane);
    let karpenter = control_plane.karpenter_with(NEWEST_KARPENTER, &[("FEATURE_GATES", "NodeRepair=true")]);
    let nodewhy = control_plane.nodewhy(&rights, &SHORT);
    nodepool(&control_plane, "default");
    nodeclaim(&control_plane, "faulty", "default");
    let node = wait_until(SOON, || {
        heartbeat(&control_plane);
        let claim = control_plane.get(&["nodeclaim", "faulty"])?;
        claim["status"]["nodeName"].as_str().filter(|name| !name.is_empty()).map(str::to_owned)
    });
    mark_ready(&control_plane, &node);
    let is = |kind: &str, status: &str| {
        let said = || condition(&control_plane, "nodeclaim", "faulty", kind);
        let is_so = || (said()? == status).then_some(());
        wait_or(SOON, is_so, || format!("{kind}: {:?}\n{}", said(), karpenter.log()));
    };
    is("Initialized", "True Initialized");

    set_fault(&control_plane, &node, true);
    is("Rebooting", "True RebootIssued");
    is("Initialized", "Unknown Rebooting");
    // This one is made when the other's reboot has begun, and has waited for less when it is called stuck.
    let taint = json!({ "startupTaints": [{ "key": "example.com/agent-not-ready", "effect": "NoSchedule" }] });
    nodeclaim_with(&control_plane, "waiting", "default", taint);
    let called_stuck = || {
        heartbeat(&control_plane);
        let waiting = control_plane.get(&["nodeclaim", "waiting"])?;
        mark_ready(&control_plane, waiting["status"]["nodeName"].as_str().filter(|name| !name.is_empty())?);
        (diagnosis(&control_plane, "waiting")?["status"]["cause"] == "StartupTaintStays").then_some(())
    };
    wait_or(Duration::from_secs(90), called_stuck, || nodewhy.process.log());
    std::thread::sleep(Duration::from_secs(12));
    is("Rebooting", "True RebootIssued");
    let rebooting = diagnosis(&control_plane, "faulty");
    assert!(rebooting.is_none(), "{rebooting:#?}");

    set_fault(&control_plane, &node, false);
    is("Rebooting", "False RebootSucceeded");
    is("Initialized", "True Initialized");
    std::thread::sleep(Duration::from_secs(12));
    let rebooted = diagnosis(&control_plane, "faulty");
    assert!(rebooted.is_none(), "{rebooted:#?}");
}
