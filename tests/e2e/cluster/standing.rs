//! The standing check of `nodewhy run`, and `nodewhy lint` of a live cluster, on a real API server with the rights that
//! are shipped and no others.

use crate::cluster::operator::{install, metric};
use serde_json::{Value, json};
use std::process::Command;
use testkit::control_plane::ControlPlane;
use testkit::control_plane::recipes::{SOON, wait_until};

const CONFIG: &str = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    flags:\n";

/// The user data of a NodeConfig with this flag of the kubelet.
fn user_data(flag: &str) -> String {
    format!("{CONFIG}    - {flag}\n")
}

fn class(name: &str, flag: &str) -> Value {
    json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": name},
        "spec": {
            "amiSelectorTerms": [{"alias": "al2023@latest"}], "role": "KarpenterNodeRole-shop", "userData": user_data(flag),
            "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "shop"}}],
            "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "shop"}}],
        },
    })
}

/// Type, reason and note of each Event of the standing check in this namespace.
fn events(control_plane: &ControlPlane, namespace: &str) -> Vec<(String, String, String)> {
    let list = control_plane.get(&["events.v1.events.k8s.io", &format!("--namespace={namespace}")]).expect("a list");
    let own = list["items"].as_array().into_iter().flatten().filter(|event| event["action"] == "Lint");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    own.map(|event| (text(&event["type"]), text(&event["reason"]), text(&event["note"]))).collect()
}

#[test]
fn a_class_that_will_fail_has_one_event_also_after_a_restart_and_another_when_it_is_corrected() {
    let control_plane = ControlPlane::start();
    control_plane.karpenter_crds("1.14.1");
    control_plane.ec2nodeclass_crd();
    let rights = install(&control_plane);
    let nodewhy = control_plane.nodewhy(&rights, &[]);
    let refused = "--node-labels=node-role.kubernetes.io/batch=true";
    control_plane.apply(class("batch", refused));
    wait_until(SOON, || metric(&nodewhy, "nodewhy_config_findings{").then_some(()));
    let first = wait_until(SOON, || Some(events(&control_plane, "default")).filter(|events| !events.is_empty()));
    let [(type_, reason, note)] = &*first else { panic!("{first:#?}") };
    assert_eq!((&**type_, &**reason), ("Warning", "KubeletRefusesLabels"));
    assert!(note.starts_with("New nodes will fail: userData of EC2NodeClass batch, line 6"), "{note}");
    let described = control_plane.kubectl(&["describe", "ec2nodeclass", "batch"]);
    assert!(described.contains("New nodes will fail"), "{described}");

    assert!(nodewhy.process.terminate().success());
    let nodewhy = control_plane.nodewhy(&rights, &[]);
    wait_until(SOON, || metric(&nodewhy, "nodewhy_config_findings{").then_some(()));
    // Events are sent in order: after the one of a later mistake, no second one of the first is on its way.
    control_plane.apply(class("later", refused));
    let of = |class: &str| {
        let of_class = format!("EC2NodeClass {class},");
        events(&control_plane, "default").into_iter().filter(|(.., note)| note.contains(&of_class)).collect::<Vec<_>>()
    };
    wait_until(SOON, || (!of("later").is_empty()).then_some(()));
    assert_eq!(of("batch"), first, "the restarted operator sends no second one");

    control_plane.apply(class("batch", "--v=4"));
    control_plane.apply(class("later", "--v=4"));
    for name in ["batch", "later"] {
        let all = wait_until(SOON, || Some(of(name)).filter(|events| events.len() > 1));
        let normal: Vec<_> = all.iter().filter(|(type_, ..)| type_ == "Normal").collect();
        let [(_, reason, note)] = &*normal else { panic!("{all:#?}") };
        assert_eq!(reason, "KubeletRefusesLabels");
        assert!(note.starts_with("nodewhy no longer finds this: "), "{note}");
    }
    wait_until(SOON, || (!metric(&nodewhy, "nodewhy_config_findings{")).then_some(()));
    let diagnoses = control_plane.get(&["nodediagnoses"]).expect("a list");
    assert_eq!(diagnoses["items"], json!([]), "nothing has failed");
    assert!(nodewhy.process.terminate().success());
}

#[test]
fn a_flaw_of_aws_auth_is_an_event_in_its_namespace_and_lint_of_the_cluster_finds_it() {
    let control_plane = ControlPlane::start();
    control_plane.karpenter_crds("1.14.1");
    control_plane.ec2nodeclass_crd();
    let rights = install(&control_plane);
    let nodewhy = control_plane.nodewhy(&rights, &[]);
    // The template is spelled EC2PrivateDNSName.
    let map_roles = "- rolearn: arn:aws:iam::111122223333:role/KarpenterNodeRole-shop\n  \
        username: system:node:{{EC2PrivateDnsName}}\n  groups: [system:bootstrappers, system:nodes]\n";
    control_plane.apply(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "aws-auth", "namespace": "kube-system"},
        "data": {"mapRoles": map_roles},
    }));
    let told = wait_until(SOON, || Some(events(&control_plane, "kube-system")).filter(|events| !events.is_empty()));
    let [(type_, reason, note)] = &*told else { panic!("{told:#?}") };
    assert_eq!((&**type_, &**reason), ("Warning", "AwsAuthEntryIncomplete"));
    assert!(note.starts_with("New nodes may fail: "), "{note}");
    assert!(nodewhy.process.terminate().success());

    let mut lint = Command::new(env!("CARGO_BIN_EXE_nodewhy"));
    let output = lint.args(["lint", "-o", "json"]).env("KUBECONFIG", &rights).output().expect("nodewhy runs");
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let list: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let finding = &list["items"][0];
    assert_eq!(
        (&finding["cause"], &finding["blame"]["object"]),
        (&json!("AwsAuthEntryIncomplete"), &json!("ConfigMap/aws-auth"))
    );
    assert!(finding.get("file").is_none() && finding["line"].is_u64(), "{finding:#}");
}
