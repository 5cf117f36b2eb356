//! `nodewhy run --aws`: what only AWS knows comes into the NodeDiagnosis by itself, and outlives a restart.

use crate::cluster::operator::{diagnosis, install};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use testkit::control_plane::recipes::{SOON, wait_until};
use testkit::control_plane::{ControlPlane, NEWEST_KARPENTER, Process};
use testkit::moto::{Moto, moto};
use testkit::patience::Patience;

const MACHINE: &str = "i-0a0000000000000b1";

fn operator(control_plane: &ControlPlane, rights: &Path, moto: &Moto, name: &str) -> Process {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nodewhy"));
    command.env("KUBECONFIG", rights).env("AWS_ENDPOINT_URL", moto.url());
    command.env("AWS_ACCESS_KEY_ID", "AKIATESTTESTTESTTEST").env("AWS_SECRET_ACCESS_KEY", "secret");
    command.args(["run", "--listen=127.0.0.1:0", "--aws"]);
    control_plane.spawn(name, &command)
}

/// A machine that was launched ten minutes ago and has no Node.
fn joining(control_plane: &ControlPlane) {
    let class = json!({ "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" });
    let tags = json!([{ "tags": { "karpenter.sh/discovery": "shop" } }]);
    control_plane.apply(json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": { "name": "default" },
        "spec": {
            "role": "KarpenterNodeRole-shop", "amiSelectorTerms": [{ "alias": "al2023@v20251112" }],
            "subnetSelectorTerms": tags, "securityGroupSelectorTerms": tags,
        },
    }));
    control_plane.apply(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": { "name": "general" },
        "spec": { "template": { "spec": { "nodeClassRef": class, "requirements": [], "expireAfter": "Never" } } },
    }));
    control_plane.apply(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": { "name": "general-7xk2p", "labels": { "karpenter.sh/nodepool": "general" } },
        "spec": { "nodeClassRef": class, "requirements": [], "expireAfter": "Never" },
    }));
    let since =
        (chrono::Utc::now() - chrono::TimeDelta::minutes(10)).to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
    let condition = |type_: &str, status: &str, reason: &str| json!({ "type": type_, "status": status, "reason": reason, "message": reason, "lastTransitionTime": since });
    let conditions = [condition("Launched", "True", "Launched"), condition("Registered", "Unknown", "NodeNotFound")];
    let status =
        json!({ "status": { "providerID": format!("aws:///eu-west-1a/{MACHINE}"), "conditions": conditions } });
    control_plane.patch_status("nodeclaim", "general-7xk2p", "merge", &status);
    control_plane.kubectl(&[
        "create",
        "deployment",
        "karpenter",
        "-n",
        "kube-system",
        &format!("--image=public.ecr.aws/karpenter/controller:{NEWEST_KARPENTER}"),
    ]);
    control_plane.kubectl(&[
        "label",
        "deployment",
        "karpenter",
        "-n",
        "kube-system",
        "app.kubernetes.io/name=karpenter",
    ]);
    control_plane.kubectl(&["set", "env", "deployment/karpenter", "-n", "kube-system", "CLUSTER_NAME=shop"]);
}

fn verdict(control_plane: &ControlPlane, nodewhy: &Process, cause: &str) -> Value {
    let patience = Patience::of(SOON);
    loop {
        let found = diagnosis(control_plane, "general-7xk2p");
        match found {
            Some(found) if found["status"]["cause"] == cause => return found,
            found => assert!(!patience.is_over(), "{found:#?}\n{}", nodewhy.log()),
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}

#[test]
fn what_aws_knows_comes_into_the_verdict_and_outlives_a_restart() {
    let control_plane = ControlPlane::start();
    control_plane.karpenter_crds(NEWEST_KARPENTER);
    control_plane.ec2nodeclass_crd();
    let rights = install(&control_plane);
    let moto = moto();
    moto.tell("instance", &json!({ "id": MACHINE }));
    moto.tell("cluster", &json!({ "name": "shop", "mode": "API" }));
    let role = json!({ "cluster": "shop", "principalArn": "arn:aws:iam::123456789012:role/KarpenterNodeRole-shop", "type": "STANDARD" });
    moto.tell("entry", &role);
    joining(&control_plane);

    let nodewhy = operator(&control_plane, &rights, &moto, "nodewhy-aws-1");
    let found = verdict(&control_plane, &nodewhy, "AccessEntryWrongType");
    assert_eq!(found["status"]["confidence"], "Certain", "{found:#}");
    let asked = moto.calls();
    assert!(asked.contains(&"eks:DescribeAccessEntry".to_owned()), "{asked:?}");
    std::thread::sleep(Duration::from_secs(12));
    assert_eq!(moto.calls(), [""; 0], "what was just told is not asked again");
    let found = verdict(&control_plane, &nodewhy, "AccessEntryWrongType");
    assert!(nodewhy.terminate().success());

    // AWS is away when the next one starts: the verdict stands.
    moto.tell("fault", &json!({ "kind": "error", "status": 503, "code": "ServiceUnavailable" }));
    let nodewhy = operator(&control_plane, &rights, &moto, "nodewhy-aws-2");
    wait_until(SOON, || moto.calls().into_iter().next());
    std::thread::sleep(Duration::from_secs(5));
    let after = verdict(&control_plane, &nodewhy, "AccessEntryWrongType");
    assert_eq!(after["metadata"]["resourceVersion"], found["metadata"]["resourceVersion"], "{found:#}{after:#}");
    assert!(nodewhy.terminate().success());
}
