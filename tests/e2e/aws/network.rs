//! The machine's way to the API server and to AWS, in VPCs that moto has: each fault is named, and what is well, or not
//! understood, is none.

use super::{JOINING, MACHINE, Run, questions};
use serde_json::{Value, json};
use testkit::moto::{Moto, moto};

/// The Node of the healthy cluster.
const READY: &str = "i-0c0000000000000a1";
/// What a private cluster needs.
const ENDPOINTS: [&str; 6] = ["ec2", "ecr.api", "ecr.dkr", "s3", "sts", "eks"];

/// Builds a network with the machine in it; gives the ids.
fn network(moto: &Moto, mut shape: Value) -> Value {
    moto.tell("reset", &json!({}));
    shape["instance"] = MACHINE.into();
    moto.tell("network", &shape)
}

#[test]
fn each_fault_of_the_way_is_named_with_the_thing_to_change() {
    let moto = moto();
    let run = Run::of(&moto, JOINING);
    let denial = |egress: bool, from: u16, to: u16| json!({"Egress": egress, "PortRange": {"From": from, "To": to}});
    for (shape, cause, confidence, kind, thing) in [
        (json!({"route": "none"}), "NoRouteOut", "Likely", "RouteTable", "node_table"),
        (json!({"route": "none", "private": false}), "NoRouteOut", "Certain", "RouteTable", "node_table"),
        (json!({"route": "blackhole", "private": false}), "NoRouteOut", "Certain", "RouteTable", "node_table"),
        (json!({"nat_route": false, "private": false}), "NoRouteOut", "Certain", "RouteTable", "public_table"),
        (json!({"route": "igw", "private": false}), "PublicSubnetWithoutPublicIp", "Certain", "Subnet", "node"),
        (json!({"admits": "other"}), "SecurityGroupBlocksKubelet", "Certain", "SecurityGroup", "cluster_group"),
        (json!({"permits": false}), "SecurityGroupBlocksKubelet", "Certain", "SecurityGroup", "node_group"),
        (json!({"denial": denial(true, 443, 443)}), "SecurityGroupBlocksKubelet", "Certain", "NetworkAcl", "acl"),
        (json!({"denial": denial(false, 1024, 65535)}), "SecurityGroupBlocksKubelet", "Certain", "NetworkAcl", "acl"),
        (json!({"dns_support": false}), "PrivateEndpointUnresolved", "Certain", "VPC", "vpc"),
        (
            json!({"dns_host_names": false, "route": "none", "endpoints": ENDPOINTS}),
            "PrivateEndpointUnresolved",
            "Certain",
            "VPC",
            "vpc",
        ),
        (
            json!({"route": "none", "endpoints": ENDPOINTS, "private_dns": false}),
            "PrivateDnsMissing",
            "Likely",
            "VpcEndpoint",
            "ec2",
        ),
        (json!({"route": "none", "endpoints": ["sts"]}), "NoRouteOut", "Likely", "RouteTable", "node_table"),
    ] {
        let ids = network(&moto, shape.clone());
        let status = run.assert(cause, confidence);
        assert_eq!(
            (status["blame"]["kind"].as_str(), &status["blame"]["name"]),
            (Some(kind), &ids[thing]),
            "{shape}: {status:#}"
        );
        assert!(status["fix"].to_string().contains(ids[thing].as_str().expect("an id")), "{shape}: {status:#}");
    }
    network(&moto, json!({"private": false, "cidrs": ["203.0.113.0/24"]}));
    let status = run.assert("EndpointAccessRefuses", "Certain");
    assert_eq!(status["blame"]["name"], "shop", "{status:#}");
}

#[test]
fn a_network_that_is_well_or_not_understood_is_no_fault() {
    let moto = moto();
    let run = Run::of(&moto, JOINING);
    let causes = [
        "NoRouteOut",
        "PublicSubnetWithoutPublicIp",
        "SecurityGroupBlocksKubelet",
        "PrivateEndpointUnresolved",
        "PrivateDnsMissing",
        "EndpointAccessRefuses",
    ];
    for (shape, is_known) in [
        (json!({}), true),
        (json!({"private": false, "cidrs": ["EIP/32"]}), true),
        (json!({"route": "igw", "address": true, "private": false}), true),
        (json!({"route": "none", "endpoints": ENDPOINTS, "public": false}), true),
        (json!({"endpoints": ENDPOINTS, "private_dns": false}), true),
        (json!({"route": "tgw", "private": false}), false),
        (json!({"route": "none", "name_servers": ["10.0.0.53"]}), false),
        (json!({"route": "none", "endpoints": ENDPOINTS, "policy": "{\"Statement\": []}"}), false),
    ] {
        network(&moto, shape.clone());
        let status = run.assert("Unknown", "Possible");
        let ruled_out: Vec<&str> =
            status["ruledOut"].as_array().into_iter().flatten().filter_map(|r| r["cause"].as_str()).collect();
        for cause in causes {
            assert_eq!(ruled_out.contains(&cause), is_known, "{shape}: {cause} {status:#}");
        }
    }
}

#[test]
fn a_node_that_is_ready_in_the_same_place_knows_better() {
    let moto = moto();
    let run = Run::of(&moto, JOINING);
    network(&moto, json!({"admits": "other"}));
    run.assert("SecurityGroupBlocksKubelet", "Certain");
    network(&moto, json!({"admits": "other", "witness": READY}));
    run.assert("Unknown", "Possible");
}

#[test]
fn what_the_machine_says_itself_leaves_no_doubt() {
    let moto = moto();
    let run = Run::of(&moto, JOINING);
    let text = "[   12.3] nodeadm[1629]: Command failed: operation error EC2: DescribeInstances, i/o timeout\n";
    network(&moto, json!({"route": "none"}));
    moto.tell("console", &json!({"id": MACHINE, "text": text}));
    run.assert("NoRouteOut", "Certain");
    network(&moto, json!({}));
    moto.tell("console", &json!({"id": MACHINE, "text": text}));
    run.assert("AwsUnreachable", "Certain");
}

#[test]
fn a_proxy_goes_its_own_ways() {
    let moto = moto();
    let class = "---\napiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: default}\nspec: \
                 {userData: \"#!/bin/bash\\nexport https_proxy=http://10.0.3.9:3128\\n\"}\n";
    let run = Run::of(&moto, &(JOINING.to_owned() + class));
    network(&moto, json!({"route": "none", "private": false}));
    run.assert("Unknown", "Possible");
}

#[test]
fn what_ec2_does_not_tell_is_asked_and_no_fault() {
    let moto = moto();
    let run = Run::of(&moto, JOINING);
    for action in ["ec2:DescribeRouteTables", "ec2:DescribeSubnets", "ec2:DescribeVpcs", "ec2:DescribeVpcAttribute"] {
        network(&moto, json!({"route": "none", "private": false}));
        moto.tell("fault", &json!({"kind": "error", "action": action, "status": 403, "code": "UnauthorizedOperation"}));
        let status = run.assert("Unknown", "Possible");
        assert!(questions(&status).contains(&format!("not permitted to call {action}")), "{status:#}");
        network(&moto, json!({"route": "none", "private": false}));
        moto.tell("fault", &json!({"kind": "body", "action": action, "text": "<html/>"}));
        run.assert("Unknown", "Possible");
    }
}

/// The machine that has joined, and whose network plugin does not come up.
const NOT_READY: &str = r#"
---
apiVersion: v1
kind: Node
metadata: {name: ip-10-0-1-4.eu-west-1.compute.internal, creationTimestamp: "2026-01-15T11:51:00Z", labels: {karpenter.sh/nodepool: general, karpenter.sh/registered: "true"}}
spec: {providerID: "aws:///eu-west-1a/i-0a0000000000000b1"}
status:
  conditions:
  - {type: Ready, status: "False", reason: KubeletNotReady, message: "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized", lastTransitionTime: "2026-01-15T11:51:00Z"}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: kube-proxy, namespace: kube-system}
spec: {template: {spec: {containers: [{name: kube-proxy, image: "602401143452.dkr.ecr.eu-west-1.amazonaws.com/eks/kube-proxy:v1.34.1"}]}}}
"#;

#[test]
fn a_node_without_a_network_plugin_may_lack_the_way_to_its_image() {
    let moto = moto();
    let joined = JOINING.replace(
        "status: Unknown, reason: NodeNotFound, message: Node not registered with cluster,",
        "status: \"True\",",
    );
    let run = Run::of(&moto, &(joined.clone() + NOT_READY));
    let ids = network(&moto, json!({"route": "none", "endpoints": ["ec2"]}));
    let status = run.assert("NoRouteOut", "Likely");
    assert_eq!(status["blame"]["name"], ids["node_table"], "{status:#}");
    network(&moto, json!({"route": "none", "endpoints": ENDPOINTS}));
    run.assert("CniNotReady", "Likely");
    // Images from a mirror need no way to ECR.
    let mirrored = Run::of(
        &moto,
        &(joined + &NOT_READY.replace("602401143452.dkr.ecr.eu-west-1.amazonaws.com", "mirror.example.com")),
    );
    network(&moto, json!({"route": "none", "endpoints": ["ec2"]}));
    mirrored.assert("CniNotReady", "Likely");
}
