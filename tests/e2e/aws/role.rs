//! What EC2, IAM and EKS say of the machine's role: which it is, whether it is one, and whether it is let in.

use super::{JOINING, MACHINE, ROLE, Run, cluster, entry, policy_without, questions};
use serde_json::{Value, json};
use testkit::moto::{Moto, moto};

const PROFILE: &str = "shop_1";

/// A machine that runs with a profile of its own; its class names none.
fn running(moto: &Moto, profile: &Value) {
    moto.tell("instance", &json!({"id": MACHINE, "profile": PROFILE}));
    let mut of_iam = json!({"name": PROFILE});
    json_patch::merge(&mut of_iam, profile);
    moto.tell("profile", &of_iam);
    cluster(moto, "API_AND_CONFIG_MAP");
    entry(moto, ROLE, "EC2_LINUX");
}

#[test]
fn the_access_entry_decides() {
    let moto = moto();
    moto.tell("instance", &json!({"id": MACHINE}));
    let run = Run::of(&moto, JOINING);
    cluster(&moto, "API");
    // More than one page, and a role whose name ends alike.
    for other in ["a", "b", "x-KarpenterNodeRole-shop", "path/other"] {
        entry(&moto, &format!("arn:aws:iam::123456789012:role/{other}"), "EC2_LINUX");
    }
    run.assert("NodeRoleHasNoAccessEntry", "Certain");
    cluster(&moto, "CONFIG_MAP");
    run.assert("Unknown", "Possible");
    assert!(!run.calls().is_empty());
    cluster(&moto, "API_AND_CONFIG_MAP");
    entry(&moto, ROLE, "STANDARD");
    let status = run.assert("AccessEntryWrongType", "Certain");
    assert!(status["fix"].to_string().contains(ROLE), "{status:#}");
}

#[test]
fn a_role_that_is_younger_than_its_entry_is_another_one() {
    let moto = moto();
    moto.tell("instance", &json!({"id": MACHINE}));
    cluster(&moto, "API");
    entry(&moto, ROLE, "EC2_LINUX");
    let profile = "---\napiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: default}\nstatus: \
                   {instanceProfile: shop_1}\n";
    let run = Run::of(&moto, &(JOINING.to_owned() + profile));
    moto.tell(
        "profile",
        &json!({"name": "shop_1", "role": "KarpenterNodeRole-shop", "created": "2025-12-01T09:00:00+00:00"}),
    );
    run.assert("AccessEntryOutlivedRole", "Certain");
}

#[test]
fn a_machine_without_a_role_is_told_from_one_whose_role_ec2_may_not_assume() {
    for (profile, said, blamed) in [
        (json!({}), "The instance profile shop_1 of the instance has no role", "InstanceProfile/shop_1"),
        (
            json!({"role": "KarpenterNodeRole-shop", "trusts": "eks.amazonaws.com"}),
            "The trust policy of the node role KarpenterNodeRole-shop",
            "IAMRole/KarpenterNodeRole-shop",
        ),
    ] {
        let moto = moto();
        running(&moto, &profile);
        moto.tell("policy", &policy_without(&[]));
        let status = Run::of(&moto, JOINING).assert("MachineGetsNoCredentials", "Certain");
        assert!(status["summary"].as_str().is_some_and(|summary| summary.starts_with(said)), "{status:#}");
        assert_eq!(status["blame"]["object"], blamed, "{status:#}");
    }
    let moto = moto();
    moto.tell("instance", &json!({"id": MACHINE, "profile": "gone"}));
    Run::of(&moto, JOINING).assert("MachineGetsNoCredentials", "Certain");
}

#[test]
fn the_role_in_the_machines_own_profile_goes_before_that_of_its_class() {
    let moto = moto();
    let policy = "arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy";
    running(&moto, &json!({"role": "another-role", "attached": [policy]}));
    cluster(&moto, "API");
    let status = Run::of(&moto, JOINING).assert("NodeRoleHasNoAccessEntry", "Certain");
    assert!(status["summary"].as_str().is_some_and(|s| s.contains("The node role another-role")), "{status:#}");
    assert!(status["evidence"].to_string().contains("iam:GetInstanceProfile shop_1"), "{status:#}");
}

#[test]
fn a_role_that_may_not_ask_ec2_is_told_by_its_policies() {
    let of_aws = |name: &str| format!("arn:aws:iam::aws:policy/{name}");
    let minimal = of_aws("AmazonEKSWorkerNodeMinimalPolicy");
    for (attached, inline, cause) in [
        (vec![minimal.clone()], json!([]), "NodeRoleLacksPolicy"),
        (vec![], json!([]), "NodeRoleLacksPolicy"),
        (vec![minimal.clone()], json!(["nodes"]), "Unknown"),
        (vec![minimal, of_aws("AmazonEKSWorkerNodePolicy")], json!([]), "Unknown"),
    ] {
        let moto = moto();
        running(&moto, &json!({"role": "KarpenterNodeRole-shop", "attached": attached, "inline": inline}));
        moto.tell("policy", &policy_without(&[]));
        let (status, said) = Run::of(&moto, JOINING).judge();
        assert_eq!(status["cause"], cause, "{attached:?} {inline}: {status:#}\n{said}");
    }
}

#[test]
fn without_the_right_to_list_policies_nothing_is_said_of_them() {
    for action in ["iam:ListAttachedRolePolicies", "iam:ListRolePolicies"] {
        let moto = moto();
        running(&moto, &json!({"role": "KarpenterNodeRole-shop"}));
        moto.tell("policy", &policy_without(&[action]));
        let status = Run::of(&moto, JOINING).assert("Unknown", "Possible");
        assert!(questions(&status).contains(&format!("not permitted to call {action}")), "{status:#}");
    }
}
