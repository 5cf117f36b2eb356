//! States of a cluster that tests start from, each brought about the way it comes about in the field where that is
//! possible.

use std::{thread, time::Duration};

use chrono::{SecondsFormat, Utc};
use serde_json::{Value, json};

use super::ControlPlane;
use crate::patience::Patience;

/// What comes at once comes within this time.
pub const SOON: Duration = Duration::from_mins(1);

/// Polls until the closure returns something; panics when it does not in time.
#[track_caller]
pub fn wait_until<T>(timeout: Duration, state: impl FnMut() -> Option<T>) -> T {
    wait_or(timeout, state, String::new)
}

/// The same, and `shown` says what is there instead.
#[track_caller]
pub fn wait_or<T>(timeout: Duration, mut state: impl FnMut() -> Option<T>, shown: impl Fn() -> String) -> T {
    let patience = Patience::of(timeout);
    loop {
        if let Some(value) = state() {
            return value;
        }
        assert!(!patience.is_over(), "not so after {timeout:?}, as long as this machine takes for that: {}", shown());
        thread::sleep(Duration::from_millis(200));
    }
}

/// A `NodePool` and the `KWOKNodeClass` it names, both `name`. Karpenter leaves its empty nodes alone.
pub fn nodepool(control_plane: &ControlPlane, name: &str) {
    nodepool_of_class(control_plane, name, json!({}));
}

/// The same, but its machines never become nodes: `NodeNotFound`. A test may make the Node itself, with the claim's
/// `status.providerID`. Karpenter 1.4.0 and later.
pub fn nodepool_without_nodes(control_plane: &ControlPlane, name: &str) {
    nodepool_of_class(control_plane, name, json!({ "nodeRegistrationDelay": "24h" }));
}

fn nodepool_of_class(control_plane: &ControlPlane, name: &str, class: Value) {
    let mut node_class =
        json!({ "apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": { "name": name } });
    // Karpenter 1.0's KWOKNodeClass has no spec at all.
    if class != json!({}) {
        node_class["spec"] = class;
    }
    control_plane.apply(node_class);
    control_plane.apply(json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": { "name": name },
        "spec": {
            "disruption": { "consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never" },
            "template": { "spec": { "nodeClassRef": node_class_ref(name), "requirements": [], "expireAfter": "Never" } },
        },
    }));
}

/// The `NodePool` `general` of the `EC2NodeClass` `default`. Nobody launches its machines.
pub fn ec2_nodepool(control_plane: &ControlPlane) {
    control_plane.apply(json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": { "name": "default" },
        "spec": {
            "role": "KarpenterNodeRole-test",
            "amiSelectorTerms": [{ "alias": "al2023@v20251112" }],
            "subnetSelectorTerms": [{ "tags": { "karpenter.sh/discovery": "test" } }],
            "securityGroupSelectorTerms": [{ "tags": { "karpenter.sh/discovery": "test" } }],
        },
    }));
    control_plane.apply(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": { "name": "general" },
        "spec": { "template": { "spec": { "nodeClassRef": ec2_node_class_ref(), "requirements": [], "expireAfter": "Never" } } },
    }));
}

/// How that pool and its claims name that class.
pub fn ec2_node_class_ref() -> Value {
    json!({ "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" })
}

/// A `NodeClaim` as Karpenter makes it for a pod that found no place. Its Node has the label `kubernetes.io/hostname:
/// NAME`.
pub fn nodeclaim(control_plane: &ControlPlane, name: &str, nodepool: &str) {
    nodeclaim_with(control_plane, name, nodepool, json!({}));
}

/// The same with more in its `spec`.
pub fn nodeclaim_with(control_plane: &ControlPlane, name: &str, nodepool: &str, spec: Value) {
    labelled_nodeclaim(control_plane, name, nodepool, &json!({}), spec);
}

/// Many of them at once.
pub fn nodeclaims_with(control_plane: &ControlPlane, names: &[String], nodepool: &str, spec: &Value) {
    let uid = uid_of_ready(control_plane, nodepool);
    let claims: Vec<_> = names.iter().map(|name| claim(name, nodepool, &uid, &json!({}), spec.clone())).collect();
    control_plane.apply(json!({ "apiVersion": "v1", "kind": "List", "items": claims }));
}

/// The same with more labels: kwok gives them to the Node as it makes it.
pub fn labelled_nodeclaim(control_plane: &ControlPlane, name: &str, nodepool: &str, labels: &Value, spec: Value) {
    control_plane.apply(claim(name, nodepool, &uid_of_ready(control_plane, nodepool), labels, spec));
}

/// Waits until the NodePool is Ready, if Karpenter is installed. Karpenter deletes a NodeClaim whose node class is not
/// Ready yet (pkg/controllers/nodeclaim/lifecycle/launch.go, 1.0.5 and 1.15.0), so a claim that comes earlier can vanish.
fn uid_of_ready(control_plane: &ControlPlane, nodepool: &str) -> Value {
    if control_plane.get(&["deployment", "karpenter", "--namespace=kube-system"]).is_some() {
        wait_or(
            Duration::from_secs(30),
            || condition(control_plane, "nodepool", nodepool, "Ready").filter(|ready| ready.starts_with("True")),
            || format!("NodePool {nodepool} is not Ready"),
        );
    }
    control_plane.get(&["nodepool", nodepool]).expect("make the NodePool first")["metadata"]["uid"].clone()
}

fn claim(name: &str, nodepool: &str, uid: &Value, labels: &Value, spec: Value) -> Value {
    let one_of = |key: &str, value: &str| json!({ "key": key, "operator": "In", "values": [value] });
    let mut claim = json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {
            "name": name,
            "labels": { "karpenter.sh/nodepool": nodepool },
            "ownerReferences": [{
                "apiVersion": "karpenter.sh/v1",
                "kind": "NodePool",
                "name": nodepool,
                "uid": uid,
                "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "nodeClassRef": node_class_ref(nodepool),
            "requirements": [
                one_of("node.kubernetes.io/instance-type", "c-4x-amd64-linux"),
                one_of("karpenter.sh/capacity-type", "on-demand"),
                one_of("topology.kubernetes.io/zone", "test-zone-a"),
            ],
            "resources": { "requests": { "cpu": "1" } },
            "expireAfter": "Never",
        },
    });
    if let (Some(own), Value::Object(more)) = (claim["spec"].as_object_mut(), spec) {
        own.extend(more);
    }
    if let (Some(own), Value::Object(more)) = (claim["metadata"]["labels"].as_object_mut(), labels) {
        own.extend(more.clone());
    }
    claim
}

fn node_class_ref(name: &str) -> Value {
    json!({ "group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": name })
}

/// From now on the pool's nodes join without Karpenter's taint, as with a bootstrap script that does not pass it to
/// kubelet. Karpenter 1.0.0 to 1.0.5, 1.1.0, 1.1.1 and 1.2.0 give such a node up: `UnregisteredTaintNotFound`.
pub fn join_without_unregistered_taint(control_plane: &ControlPlane, nodepool: &str) {
    let name = format!("{nodepool}-without-unregistered-taint");
    let policy = json!({
            "matchConditions": [{ "name": "tainted", "expression": "has(object.spec.taints)" }],
            "reinvocationPolicy": "Never",
            "mutations": [{
                "patchType": "JSONPatch",
                // A list of the taints that stay is no JSON to the API server of 1.37.
                "jsonPatch": { "expression": concat!(
                    r#"[0, 1, 2, 3].filter(at, at < size(object.spec.taints) && "#,
                    r#"object.spec.taints[at].key == "karpenter.sh/unregistered")"#,
                    r#".map(at, JSONPatch{op: "remove", path: "/spec/taints/" + string(at)})"#,
                ) },
            }],
    });
    policy_on_new_nodes(control_plane, "MutatingAdmissionPolicy", &name, nodepool, policy, json!({}));
    // The API server takes a moment to act on a new policy.
    let node = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": { "name": name, "labels": { "karpenter.sh/nodepool": nodepool } },
        "spec": { "taints": [{ "key": "karpenter.sh/unregistered", "effect": "NoExecute" }] },
    });
    wait_until(SOON, || {
        let created = control_plane
            .try_kubectl_with_input(&["create", "--dry-run=server", "--output=json", "--filename=-"], &node);
        (!created.expect("a dry run changes nothing").contains("karpenter.sh/unregistered")).then_some(())
    });
}

/// From now on nobody can create a Node of the pool, as under a policy that demands labels which Karpenter's Nodes
/// lack.
pub fn deny_nodes(control_plane: &ControlPlane, nodepool: &str) {
    let name = format!("{nodepool}-no-nodes");
    let policy = json!({ "validations": [{ "expression": "false", "message": "a Node needs the label team" }] });
    policy_on_new_nodes(
        control_plane,
        "ValidatingAdmissionPolicy",
        &name,
        nodepool,
        policy,
        json!({ "validationActions": ["Deny"] }),
    );
    // The API server takes a moment to act on a new policy.
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name, "labels": { "karpenter.sh/nodepool": nodepool } } });
    wait_until(SOON, || {
        control_plane
            .try_kubectl_with_input(&["create", "--dry-run=server", "--filename=-"], &node)
            .is_err()
            .then_some(())
    });
}

/// From now on nobody can write the status of the pool's `NodeClaims`, as under a policy that demands annotations which
/// Karpenter's lack. It is called `NODEPOOL-no-status`.
pub fn deny_status_of_claims(control_plane: &ControlPlane, nodepool: &str) {
    deny_updates(control_plane, nodepool, "status", ("karpenter.sh", "nodeclaims/status"));
}

/// From now on nobody can change a Node of the pool, which Karpenter does to register it. The policy is called
/// `NODEPOOL-no-changes`.
pub fn deny_changes_of_nodes(control_plane: &ControlPlane, nodepool: &str) {
    deny_updates(control_plane, nodepool, "changes", ("", "nodes"));
}

fn deny_updates(control_plane: &ControlPlane, nodepool: &str, of: &str, (group, resource): (&str, &str)) {
    let name = format!("{nodepool}-no-{of}");
    let policy = json!({ "validations": [{ "expression": "false", "message": format!("{resource} need the annotation \
        owner") }] });
    let rules = json!([
        { "apiGroups": [group], "apiVersions": ["v1"], "resources": [resource], "operations": ["UPDATE"] },
        { "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"] },
    ]);
    bind_policy(
        control_plane,
        "ValidatingAdmissionPolicy",
        &name,
        nodepool,
        &rules,
        policy,
        json!({ "validationActions": ["Deny"] }),
    );
    // The API server takes a moment to act on a new policy. A ConfigMap tells, since nothing else is there yet.
    let probe = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name, "namespace": "default", "labels": { "karpenter.sh/nodepool": nodepool } },
    });
    wait_until(SOON, || {
        control_plane
            .try_kubectl_with_input(&["create", "--dry-run=server", "--filename=-"], &probe)
            .is_err()
            .then_some(())
    });
}

/// From now on Karpenter can write no Event.
pub fn deny_events_of_karpenter(control_plane: &ControlPlane) {
    let rules = json!([{ "apiGroups": [""], "apiVersions": ["v1"], "resources": ["events"], "operations": ["CREATE", "UPDATE"] }]);
    let policy = json!({
        "matchConstraints": { "resourceRules": rules },
        "matchConditions": [{ "name": "karpenter", "expression": r#"has(object.source) && object.source.component == "karpenter""# }],
        "validations": [{ "expression": "false", "message": "no Events" }],
    });
    let binding = json!({ "policyName": "no-events", "validationActions": ["Deny"] });
    for (kind, spec) in [("ValidatingAdmissionPolicy", policy), ("ValidatingAdmissionPolicyBinding", binding)] {
        control_plane.apply(json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": { "name": "no-events" }, "spec": spec,
        }));
    }
    // The API server takes a moment to act on a new policy.
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": { "name": "probe", "namespace": "default" },
        "involvedObject": { "kind": "Node", "name": "probe" }, "source": { "component": "karpenter" },
    });
    wait_until(SOON, || {
        control_plane
            .try_kubectl_with_input(&["create", "--dry-run=server", "--filename=-"], &event)
            .is_err()
            .then_some(())
    });
}

/// An admission policy for the Nodes of a pool as they are created, and its binding.
fn policy_on_new_nodes(
    control_plane: &ControlPlane,
    kind: &str,
    name: &str,
    nodepool: &str,
    policy: Value,
    binding: Value,
) {
    let nodes = json!([{ "apiGroups": [""], "apiVersions": ["v1"], "resources": ["nodes"], "operations": ["CREATE"] }]);
    bind_policy(control_plane, kind, name, nodepool, &nodes, policy, binding);
}

/// An admission policy for what belongs to a pool, and its binding.
fn bind_policy(
    control_plane: &ControlPlane,
    kind: &str,
    name: &str,
    nodepool: &str,
    rules: &Value,
    mut policy: Value,
    mut binding: Value,
) {
    policy["matchConstraints"] = json!({
        "objectSelector": { "matchLabels": { "karpenter.sh/nodepool": nodepool } },
        "resourceRules": rules,
    });
    binding["policyName"] = json!(name);
    for (kind, spec) in [(kind.to_owned(), policy), (format!("{kind}Binding"), binding)] {
        control_plane.apply(json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": { "name": name }, "spec": spec,
        }));
    }
}

/// Says what kubelet says when the node can run pods, and takes off the taint that kube-controller-manager takes off
/// then.
pub fn mark_ready(control_plane: &ControlPlane, node: &str) {
    patch_condition(control_plane, node, "Ready", "True", "KubeletReady").expect("the node exists");
    // Not there: kube-controller-manager runs in this test and was faster.
    let _ = control_plane.try_kubectl(&["taint", "node", node, "node.kubernetes.io/not-ready-"]);
}

fn patch_condition(
    control_plane: &ControlPlane,
    node: &str,
    kind: &str,
    status: &str,
    reason: &str,
) -> Result<String, String> {
    let now = Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true);
    let condition = json!({ "type": kind, "status": status, "reason": reason, "lastHeartbeatTime": now, "lastTransitionTime": now });
    let patch = json!({ "status": { "conditions": [condition] } });
    control_plane.try_patch_status("node", node, "strategic", &patch)
}

/// Posts every Node's status once, as kubelet does every few minutes, and sooner when something changed.
///
/// Karpenter 1.0 looks at a claim again only when its Node changes: a Node that came before the claim's
/// `status.providerID` was known is not looked at until then. (karpenter v1.0.5
/// pkg/controllers/nodeclaim/lifecycle/controller.go)
pub fn heartbeat(control_plane: &ControlPlane) {
    let nodes = control_plane.get(&["nodes"]).expect("a list always exists");
    for node in nodes["items"].as_array().into_iter().flatten().filter_map(|node| node["metadata"]["name"].as_str()) {
        // Karpenter may delete the Node meanwhile.
        let _ = patch_condition(control_plane, node, "MemoryPressure", "False", "KubeletHasSufficientMemory");
    }
}

/// Makes Karpenter believe that the claim has waited 20 minutes for its node, longer than the 15 it grants.
pub fn backdate_registration(control_plane: &ControlPlane, claim: &str) {
    let object = control_plane.get(&["nodeclaim", claim]).expect("the claim exists");
    let conditions = object["status"]["conditions"].as_array().expect("Karpenter has seen the claim");
    let index = conditions
        .iter()
        .position(|condition| condition["type"] == "Registered")
        .expect("Karpenter has looked for the node");
    let pointer = |field: &str| format!("/status/conditions/{index}/{field}");
    let past = (Utc::now() - Duration::from_mins(20)).to_rfc3339_opts(SecondsFormat::Secs, true);
    let patch = json!([
        { "op": "test", "path": pointer("type"), "value": "Registered" },
        { "op": "replace", "path": pointer("lastTransitionTime"), "value": past },
    ]);
    control_plane.patch_status("nodeclaim", claim, "json", &patch);
}

/// Status and reason of a condition, `False UnregisteredTaintNotFound`; nothing while the object or the condition is
/// missing.
pub fn condition(control_plane: &ControlPlane, kind: &str, name: &str, condition: &str) -> Option<String> {
    let object = control_plane.get(&[kind, name])?;
    let found = object["status"]["conditions"].as_array()?.iter().find(|candidate| candidate["type"] == condition)?;
    Some(format!("{} {}", found["status"].as_str()?, found["reason"].as_str().unwrap_or_default()))
}
