//! The schemas that `nodewhy lint` judges by are those of the pinned Karpenter, and a real API server refuses what lint
//! calls refused.

use serde_json::{Value, json};
use std::fs;
use std::process::Command;
use testkit::control_plane::{ControlPlane, NEWEST_KARPENTER};
use testkit::go::module_source;
use testkit::project;

/// `spec` of a version of a kind, without its descriptions.
fn spec_of(definition: &str, version: &str) -> Value {
    let module = module_source(&format!("github.com/aws/karpenter-provider-aws@v{NEWEST_KARPENTER}"));
    let path = module.join("pkg/apis/crds").join(definition);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let definition: Value = serde_saphyr::from_str(&text).expect("a definition");
    let versions = definition["spec"]["versions"].as_array().expect("versions");
    let version = versions.iter().find(|own| own["name"] == version).expect("the version");
    let mut spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"].clone();
    undescribed(&mut spec);
    spec
}

fn undescribed(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.get("description").is_some_and(Value::is_string) {
                fields.remove("description");
            }
            fields.values_mut().for_each(undescribed);
        }
        Value::Array(items) => items.iter_mut().for_each(undescribed),
        _ => {}
    }
}

#[test]
fn the_schemas_are_those_of_the_pinned_karpenter() {
    for (definition, version, file) in [
        ("karpenter.k8s.aws_ec2nodeclasses.yaml", "v1", "ec2nodeclass.json"),
        ("karpenter.sh_nodepools.yaml", "v1", "nodepool.json"),
        ("karpenter.sh_nodeoverlays.yaml", "v1alpha1", "nodeoverlay.json"),
    ] {
        let (theirs, path) =
            (spec_of(definition, version), project().join("crates/engine/src/upstream/schemas").join(file));
        if std::env::var_os("NODEWHY_UPDATE").is_some() {
            let text = serde_json::to_string_pretty(&theirs).expect("JSON");
            fs::write(&path, text + "\n").expect("the file is ours");
        }
        let ours: Value = serde_json::from_str(&fs::read_to_string(&path).expect("a file")).expect("JSON");
        assert!(ours == theirs, "{file} is not that of {NEWEST_KARPENTER}");
    }
    assert_eq!(engine::upstream::schemas::KARPENTER, NEWEST_KARPENTER);
}

fn class() -> Value {
    json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "batch"},
        "spec": {
            "amiSelectorTerms": [{"alias": "al2023@v20260108"}], "role": "KarpenterNodeRole-shop",
            "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "shop"}}],
            "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "shop"}}],
        },
    })
}

fn pool() -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "batch"},
        "spec": {"template": {"spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "batch"},
            "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}],
        }}},
    })
}

fn overlay() -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": {"name": "dearer"},
        "spec": {
            "requirements": [{"key": "karpenter.k8s.aws/instance-generation", "operator": "In", "values": ["5"]}],
            "priceAdjustment": "+30%",
        },
    })
}

/// A change of an object, by the path of the changed field.
fn changed(object: Value, pointer: &str, value: Value) -> Value {
    let mut patch = json!([{"op": "add", "path": pointer}]);
    patch[0]["value"] = value;
    let mut object = object;
    json_patch::patch(&mut object, &serde_json::from_value::<json_patch::Patch>(patch).expect("a patch"))
        .expect(pointer);
    object
}

#[test]
fn lint_calls_refused_what_a_real_api_server_refuses() {
    let control_plane = ControlPlane::start();
    control_plane.karpenter_crds(NEWEST_KARPENTER);
    control_plane.ec2nodeclass_crd();
    let folder = tempfile::tempdir().expect("a folder");
    let refused = [
        changed(class(), "/spec/instanceProfile", json!("KarpenterNodeProfile")),
        changed(class(), "/spec/amiFamily", json!("Bottlerocket")),
        changed(class(), "/spec/amiSelectorTerms/0", json!({"id": "ami-0123456789abcdef0"})),
        changed(class(), "/spec/amiSelectorTerms/1", json!({"id": "ami-0123456789abcdef0"})),
        changed(class(), "/spec/amiSelectorTerms/0/alias", json!("al2024@latest")),
        changed(class(), "/spec/subnetSelectorTerms/0", json!({"tags": {"a": ""}})),
        changed(class(), "/spec/tags", json!({"kubernetes.io/cluster/shop": "owned"})),
        changed(class(), "/spec/metadataOptions", json!({"httpTokens": "mandatory"})),
        changed(
            class(),
            "/spec/blockDeviceMappings",
            json!([{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "100GB"}}]),
        ),
        changed(class(), "/spec/blockDeviceMappings", json!([{"deviceName": "/dev/xvda", "ebs": {"encrypted": true}}])),
        changed(pool(), "/spec/template/spec/expireAfter", json!("7d")),
        changed(pool(), "/spec/template/spec/terminationGracePeriod", json!("Never")),
        changed(pool(), "/spec/weight", json!(101)),
        changed(
            pool(),
            "/spec/disruption",
            json!({"consolidateAfter": "1m", "budgets": [{"nodes": "1", "schedule": "@daily"}]}),
        ),
        changed(pool(), "/spec/disruption", json!({"consolidateAfter": "1m", "budgets": [{"nodes": "10.5%"}]})),
        changed(pool(), "/spec/template/metadata", json!({"labels": {"karpenter.sh/initialized": "true"}})),
        changed(pool(), "/spec/template/spec/requirements/0/minValues", json!(3)),
        changed(pool(), "/spec/template/spec/taints", json!([{"key": "a", "effect": "Never"}])),
        changed(changed(pool(), "/spec/replicas", json!(2)), "/spec/weight", json!(5)),
        changed(overlay(), "/spec/priceAdjustment", json!("30%")),
        changed(overlay(), "/spec/price", json!("0.3")),
        changed(overlay(), "/spec/capacity", json!({"cpu": "4"})),
        changed(overlay(), "/apiVersion", json!("karpenter.sh/v1")),
    ];
    let taken = [
        class(),
        pool(),
        overlay(),
        changed(overlay(), "/spec/priceAdjustment", json!("-0.05")),
        changed(overlay(), "/spec/capacity", json!({"nvidia.com/gpu": 4})),
        changed(class(), "/spec/amiFamily", json!("Custom")),
        changed(
            class(),
            "/spec/blockDeviceMappings",
            json!([{"deviceName": "/dev/xvda", "rootVolume": true, "ebs": {"volumeSize": "1Ti"}}]),
        ),
        changed(pool(), "/spec/template/spec/expireAfter", json!("Never")),
        changed(pool(), "/spec/template/spec/expireAfter", json!("36h30m")),
        changed(pool(), "/spec/limits", json!({"cpu": 100, "memory": "1000Gi"})),
        changed(
            pool(),
            "/spec/disruption",
            json!({"consolidateAfter": "0s", "budgets": [{"nodes": "100%", "schedule": "@daily", "duration": "1h", "reasons": ["Drifted"]}]}),
        ),
    ];
    let of_schema = |object: &Value| {
        let file = folder.path().join("object.json");
        fs::write(&file, object.to_string()).expect("a file");
        let mut lint = Command::new(env!("CARGO_BIN_EXE_nodewhy"));
        let output = lint.args(["lint", "-o", "json"]).arg(&file).output().expect("nodewhy runs");
        let list: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let items = list["items"].as_array().expect("items").clone();
        items.into_iter().filter(|item| item["level"] == "error").collect::<Vec<_>>()
    };
    let applied =
        |object: &Value| control_plane.try_kubectl_with_input(&["apply", "--dry-run=server", "--filename=-"], object);
    for object in &refused {
        let answer = applied(object).expect_err(&object.to_string());
        assert!(!of_schema(object).is_empty(), "lint finds nothing, but: {answer}");
    }
    for object in &taken {
        applied(object).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(of_schema(object), Vec::<Value>::new());
    }
}
