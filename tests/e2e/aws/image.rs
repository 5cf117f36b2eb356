//! What EC2 says of the image settles a launch that is refused without a reason, and an instance that ends at once.

use super::{JOINING, MACHINE, Run, lint, policy_without, questions};
use serde_json::{Value, json};
use testkit::moto::{Moto, moto};

const IMAGE: &str = "ami-0bbb0000000000002";
const CLASS: &str = "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: default}\n";

/// A claim whose launch Karpenter 1.2 and later call failed, without a word more, and its class.
fn refused(types: &str, class: &str) -> String {
    format!(
        r#"{CLASS}spec: {{amiSelectorTerms: [{{name: "shop-golden-*"}}], amiFamily: AL2023{class}}}
status: {{amis: [{{id: {IMAGE}, name: shop-golden-2026-01-15}}]}}
---
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {{name: general-7xk2p, uid: c1, creationTimestamp: "2026-01-15T11:56:00Z", labels: {{karpenter.sh/nodepool: general}}}}
spec:
  nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}
  requirements: [{{key: node.kubernetes.io/instance-type, operator: In, values: [{types}]}}]
status:
  conditions:
  - {{type: Launched, status: Unknown, reason: LaunchFailed, message: Instance launch failed, lastTransitionTime: "2026-01-15T11:56:00Z"}}
"#
    )
}

fn image(moto: &Moto, more: &Value) {
    let mut image = json!({"id": IMAGE, "name": "shop-golden-2026-01-15", "root_device_name": "/dev/xvda"});
    json_patch::merge(&mut image, more);
    moto.tell("image", &image);
}

#[track_caller]
fn settles(image_is: &Value, types: &str, cause: &str, confidence: &str, said: &str) {
    let moto = moto();
    image(&moto, image_is);
    moto.tell("policy", &policy_without(&[]));
    let status = Run::of(&moto, &refused(types, "")).assert(cause, confidence);
    assert!(status["summary"].as_str().is_some_and(|summary| summary.contains(said)), "{said}: {status:#}");
}

#[test]
fn an_image_that_no_allowed_type_takes_is_named_with_what_it_wants() {
    let found = |image: Value, types, said| settles(&image, types, "ImageDoesNotFit", "Certain", said);
    found(json!({"gib": 50, "boot_mode": "uefi-preferred"}), "m5.large", "has 50 GiB");
    found(json!({"boot_mode": "uefi"}), "m4.large", "boots by uefi only");
    found(json!({"boot_mode": "uefi-preferred", "architecture": "arm64"}), "m4.large, m5.large", "is for arm64");
    found(json!({"boot_mode": "uefi-preferred", "ena": false}), "m5.large", "without ENA");
}

#[test]
fn an_image_that_one_type_takes_is_not_accused() {
    for (image, types) in [
        (json!({"boot_mode": "uefi"}), "m4.large, m5.large"),
        (json!({"boot_mode": "uefi-preferred", "ena": false}), "m4.large, m5.large"),
        (json!({"boot_mode": "uefi-preferred", "gib": 20}), "m4.large"),
        // EC2 knows no such type: what it takes nobody knows.
        (json!({"boot_mode": "uefi"}), "m4.large, m4.huge"),
    ] {
        settles(&image, types, "LaunchFailed", "Likely", "Instance launch failed");
    }
}

#[test]
fn types_are_asked_about_together_and_only_where_the_image_may_be_it() {
    let moto = moto();
    image(&moto, &json!({"boot_mode": "uefi"}));
    let run = Run::of(&moto, &refused("m4.large, m4.xlarge, m4.2xlarge", ""));
    run.assert("ImageDoesNotFit", "Certain");
    assert_eq!(run.calls(), ["ec2:DescribeImages", "ec2:DescribeInstanceTypes"]);
    // The size of the volume is enough.
    image(&moto, &json!({"boot_mode": "uefi", "gib": 50}));
    run.assert("ImageDoesNotFit", "Certain");
    assert_eq!(run.calls(), ["ec2:DescribeImages"]);
    // Without the right to ask it stays open, and says so.
    image(&moto, &json!({"boot_mode": "uefi"}));
    moto.tell("policy", &policy_without(&["ec2:DescribeInstanceTypes"]));
    let status = run.assert("LaunchFailed", "Likely");
    assert!(questions(&status).contains("not permitted to call ec2:DescribeInstanceTypes"), "{status:#}");
}

#[test]
fn an_encrypted_snapshot_is_what_an_instance_ends_for_whose_class_encrypts_nothing() {
    let code = "Client.InternalError";
    for (encrypted, cause) in [(true, "VolumeKeyRefused"), (false, "InstanceEnded")] {
        let moto = moto();
        image(&moto, &json!({"encrypted": encrypted}));
        let ended = json!({"id": MACHINE, "state": "terminated", "code": code, "message": code, "image": IMAGE});
        moto.tell("instance", &ended);
        let (status, said) = Run::of(&moto, JOINING).judge();
        assert_eq!(status["cause"], cause, "{status:#}\n{said}");
        if encrypted {
            assert_eq!(status["confidence"], "Likely", "{status:#}");
            assert!(
                status["summary"].as_str().is_some_and(|s| s.contains("a snapshot in its image ami-0bbb")),
                "{status:#}"
            );
            assert!(
                status["blame"]["field"].as_str().is_some_and(|f| f.starts_with("spec.amiSelectorTerms")),
                "{status:#}"
            );
        }
    }
}

#[test]
fn lint_tells_of_a_volume_that_is_too_small_for_the_image() {
    let class = |size| {
        format!(
            "{CLASS}spec:\n  role: r\n  amiFamily: AL2023\n  amiSelectorTerms:\n  - name: shop-golden-*\n  \
             blockDeviceMappings:\n  - {{deviceName: /dev/xvda, ebs: {{volumeSize: {size}}}}}\n"
        )
    };
    let moto = moto();
    image(&moto, &json!({"gib": 50}));
    let run = Run::of(&moto, "");
    let (found, fine) = lint(&run, &class("20Gi"));
    assert!(!fine && found["items"][0]["cause"] == "ImageDoesNotFit", "{found:#}");
    assert_eq!(found["items"][0]["line"], 9, "{found:#}");
    let (found, fine) = lint(&run, &class("50Gi"));
    assert!(fine, "{found:#}");
}
