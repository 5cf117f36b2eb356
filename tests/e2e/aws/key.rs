//! What KMS says of the key for which an instance ended.

use super::{JOINING, MACHINE, Run, policy_without, questions};
use serde_json::{Value, json};
use testkit::moto::{Moto, moto};

/// A machine of a class that encrypts with this key, and that EC2 ended at its launch.
fn ended_for_its_key(moto: &Moto, key: &str) -> String {
    let code = "Client.InternalError";
    moto.tell("instance", &json!({"id": MACHINE, "state": "terminated", "code": code, "message": code}));
    let volumes = json!([{"deviceName": "/dev/xvda", "ebs": {"encrypted": true, "kmsKeyID": key}}]);
    let class = "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: default}\nspec:";
    format!("{JOINING}---\n{class} {{blockDeviceMappings: {volumes}}}\n")
}

#[test]
fn the_state_of_the_key_decides_where_it_is_told() {
    for (state, confidence, told) in [
        ("Disabled", "Certain", "because it is Disabled"),
        ("PendingDeletion", "Certain", "because it is PendingDeletion"),
        ("Enabled", "Likely", "though it is enabled"),
    ] {
        let moto = moto();
        let key = moto.tell("key", &json!({"state": state}))["arn"].as_str().expect("an ARN").to_owned();
        let run = Run::of(&moto, &ended_for_its_key(&moto, &key));
        moto.tell("policy", &policy_without(&[]));
        let status = run.assert("VolumeKeyRefused", confidence);
        assert!(status["summary"].as_str().is_some_and(|summary| summary.contains(told)), "{status:#}");
        assert!(status["evidence"].to_string().contains(&format!("kms:DescribeKey {key}")), "{status:#}");
    }
    let moto = moto();
    let nowhere = "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-4000-8000-000000000000";
    let run = Run::of(&moto, &ended_for_its_key(&moto, nowhere));
    let status = run.assert("VolumeKeyRefused", "Certain");
    assert!(status["summary"].as_str().is_some_and(|summary| summary.contains("no such key")), "{status:#}");
}

#[test]
fn a_key_that_may_not_be_asked_about_leaves_it_open() {
    let moto = moto();
    let key = moto.tell("key", &json!({}))["arn"].as_str().expect("an ARN").to_owned();
    let objects = ended_for_its_key(&moto, &key);
    moto.tell("policy", &policy_without(&["kms:DescribeKey"]));
    let run = Run::of(&moto, &objects);
    let status = run.assert("VolumeKeyRefused", "Likely");
    assert!(questions(&status).contains("not permitted to call kms:DescribeKey"), "{status:#}");
    assert!(run.calls().contains(&"kms:DescribeKey".to_owned()));
}

const CONTROLLER: &str = "arn:aws:iam::111122223333:role/KarpenterController-shop";
const OF_SPOT: &str = "arn:aws:iam::123456789012:role/aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot";
const ROOT: &str = "arn:aws:iam::123456789012:root";

/// A key that is enabled, whose policy names these and which has these grants; nodewhy is not allowed to call
/// `without`.
#[track_caller]
fn used_by(moto: &Moto, named: &[&str], granted: &[&str], capacity: &str, without: &[&str]) -> (Value, String) {
    let key =
        moto.tell("key", &json!({"named": named, "granted": granted}))["arn"].as_str().expect("an ARN").to_owned();
    moto.tell("policy", &policy_without(without));
    let label = format!("labels: {{karpenter.sh/capacity-type: {capacity}, ");
    let run = Run::of(moto, &ended_for_its_key(moto, &key).replacen("labels: {", &label, 1));
    let (status, said) = run.judge();
    assert_eq!(status["cause"], "VolumeKeyRefused", "{status:#}\n{said}");
    (status, key)
}

#[test]
fn a_key_that_leaves_out_who_launches_is_what_to_change() {
    for (named, capacity, confidence, who) in [
        (&["arn:aws:iam::123456789012:role/admin"][..], "on-demand", "Certain", CONTROLLER),
        (&[ROOT, CONTROLLER], "spot", "Likely", "AWSServiceRoleForEC2Spot"),
    ] {
        let moto = moto();
        let (status, key) = used_by(&moto, named, &[], capacity, &[]);
        assert_eq!(status["confidence"], confidence, "{status:#}");
        let said = format!("neither its policy nor a grant names {who}");
        assert!(status["summary"].as_str().is_some_and(|summary| summary.contains(&said)), "{status:#}");
        assert_eq!(status["blame"]["object"], format!("KMSKey/{key}"), "{status:#}");
    }
}

#[test]
fn a_key_that_names_who_launches_or_leaves_it_to_iam_is_not_blamed() {
    for (named, granted, capacity) in [
        (&[CONTROLLER][..], &[][..], "on-demand"),
        (&[ROOT], &[], "on-demand"),
        (&["*"], &[], "on-demand"),
        (&["arn:aws:iam::123456789012:role/admin"], &[CONTROLLER], "on-demand"),
        (&[ROOT], &[OF_SPOT], "spot"),
        (&[ROOT, OF_SPOT], &[], "spot"),
    ] {
        let moto = moto();
        let (status, _) = used_by(&moto, named, granted, capacity, &[]);
        assert_eq!(status["confidence"], "Likely", "{named:?} {granted:?}: {status:#}");
        assert_eq!(status["blame"]["object"], "EC2NodeClass/default", "{named:?} {granted:?}: {status:#}");
    }
}

#[test]
fn policy_and_grants_that_may_not_be_read_leave_it_open() {
    for action in ["kms:GetKeyPolicy", "kms:ListGrants"] {
        let moto = moto();
        let (status, _) = used_by(&moto, &["arn:aws:iam::123456789012:role/admin"], &[], "on-demand", &[action]);
        assert_eq!(status["confidence"], "Likely", "{status:#}");
        assert!(questions(&status).contains(&format!("not permitted to call {action}")), "{status:#}");
    }
}
