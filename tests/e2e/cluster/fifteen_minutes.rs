//! The real Karpenter's real timeout, nothing backdated: `cargo xtask e2e fifteen_minutes --run-ignored only` takes
//! 16 minutes.

use crate::cluster::identity::Kubelet;
use crate::cluster::operator::{diagnosis, install};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use std::time::Duration;
use testkit::control_plane::recipes::{SOON, condition, nodeclaim, nodepool_without_nodes, wait_until};
use testkit::control_plane::{ControlPlane, NEWEST_KARPENTER};

const NAME: &str = "ip-10-0-0-1.corp.example.com";

fn time(value: &Value) -> DateTime<Utc> {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{value} is no time"))
}

#[test]
#[ignore = "takes as long as Karpenter does: 16 minutes"]
fn the_verdict_comes_ten_minutes_before_the_kill_and_the_post_mortem_is_complete() {
    let control_plane = ControlPlane::start();
    let rights = install(&control_plane);
    let _karpenter = control_plane.karpenter(NEWEST_KARPENTER);
    let nodewhy = control_plane.nodewhy(&rights, &[]);
    nodepool_without_nodes(&control_plane, "default");
    nodeclaim(&control_plane, "late", "default");
    wait_until(SOON, || {
        (condition(&control_plane, "nodeclaim", "late", "Registered")? == "Unknown NodeNotFound").then_some(())
    });
    let created = time(&control_plane.get(&["nodeclaim", "late"]).expect("the claim")["metadata"]["creationTimestamp"]);
    // A kubelet that is a node, under a name that it may not use. It reports once in five minutes, as client-go lets
    // it.
    let kubelet = Kubelet::new(&control_plane, NAME, "system:node:ip-10-0-0-1.ec2.internal", "system:nodes");
    let mut reported = (0, Utc::now());
    let mut live = None;
    wait_until(Duration::from_mins(17), || {
        if reported.0 == 0 || Utc::now() - reported.1 > TimeDelta::minutes(5) {
            reported = (reported.0 + 5, Utc::now());
            kubelet.reports(reported.0).expect("nodes may write events");
        }
        std::thread::sleep(Duration::from_secs(2));
        if live.is_none() {
            live =
                diagnosis(&control_plane, "late").filter(|d| d["status"]["cause"].is_string()).map(|d| (d, Utc::now()));
        }
        control_plane.get(&["nodeclaim", "late"]).is_none().then_some(())
    });
    let gone = Utc::now();
    let (live, said) =
        live.unwrap_or_else(|| panic!("nothing was said while the machine lived; {}", nodewhy.process.log()));
    assert_eq!(live["status"]["cause"], "NodeNameRefused", "{live:#}");
    assert!(said - created < TimeDelta::minutes(6), "said after {}", said - created);
    assert!(gone - created > TimeDelta::minutes(14), "killed after {}", gone - created);
    let foretold = time(&live["status"]["terminatesAt"]);
    assert!((foretold - gone).abs() < TimeDelta::minutes(1), "{foretold} was foretold, and it went at {gone}");

    let ended = wait_until(SOON, || diagnosis(&control_plane, "late").filter(|d| d["status"]["outcome"].is_string()));
    println!(
        "said after {} s, killed after {} s: {ended:#}",
        (said - created).num_seconds(),
        (gone - created).num_seconds()
    );
    let status = &ended["status"];
    assert_eq!(
        (&status["cause"], &status["outcome"], &status["stage"]),
        (&json!("NodeNameRefused"), &json!("Terminated"), &json!("Join"))
    );
    assert!((time(&status["endedAt"]) - gone).abs() < TimeDelta::minutes(1));
    let conditions = status["conditions"].as_array().expect("conditions");
    assert!(conditions.iter().any(|c| c["type"] == "Ended" && c["reason"] == "RegistrationTimeout"), "{ended:#}");
    let evidence = status["evidence"].as_array().expect("evidence");
    assert!(evidence.iter().any(|e| e["object"] == format!("Event/{NAME}.1")), "{ended:#}");
    assert!(evidence.iter().any(|e| e["object"] == "NodeClaim/late"), "{ended:#}");
    for list in ["ruledOut", "unknowns"] {
        assert!(status[list].as_array().is_some_and(|list| !list.is_empty()), "{list}: {ended:#}");
    }
    // Which node class it is nodewhy may not read here: kwok's is of another provider.
    assert_eq!(status["blame"]["object"], "NodeClaim/late", "{ended:#}");
    assert!(status["fix"]["summary"].is_string(), "{ended:#}");
    assert_eq!(ended["spec"]["nodePool"]["name"], "default");
}
