//! Incidents that hold up thousands of machines of a fleet at once, each by one cause.

use super::cluster;
use super::fleet::{Fate, claim, node, now};
use engine::cluster_state::ClusterState;
use engine::objects::input::{Input, Object};
use serde_json::{Value, json};

pub struct Incident {
    pub what: &'static str,
    /// The verdict on every machine that is stuck.
    pub cause: &'static str,
    /// Documents over the healthy cluster.
    pub cluster: &'static str,
    is_stuck: fn(usize) -> bool,
    /// Whether those had joined before, or never do.
    had_joined: bool,
    /// What else differs from a healthy machine, or from one that never joins: of its Node, of its NodeClaim.
    changes: fn(usize) -> (Value, Value),
}

pub const ALL: [Incident; 6] = [
    Incident {
        what: "half replaced for a new image that never joins",
        cause: "AmiDriftReplacementsFail",
        cluster: NEW_IMAGE,
        is_stuck: |n| n % 2 == 1,
        had_joined: false,
        changes: |n| {
            let old = json!({
                "metadata": {"annotations": {"karpenter.k8s.aws/ec2nodeclass-hash": "1"}},
                "status": {"imageID": "ami-0aaa0000000000000", "conditions": with(n, &condition("Drifted", "True", "AMIDrift", "AMIDrift"))}
            });
            (
                json!({}),
                if n.is_multiple_of(2) {
                    old
                } else {
                    json!({"metadata": {"annotations": {"karpenter.k8s.aws/ec2nodeclass-hash": "2"}}})
                },
            )
        },
    },
    Incident {
        what: "those of one zone never join",
        cause: "ZoneNeverJoins",
        cluster: "",
        is_stuck: |n| n.is_multiple_of(3),
        had_joined: false,
        changes: |_| (json!({}), json!({})),
    },
    Incident {
        what: "half with a newer kubelet, which exits over a flag",
        cause: "KubeletFlagRemoved",
        cluster: REMOVED_FLAG,
        is_stuck: |n| n % 2 == 1,
        had_joined: false,
        changes: |n| {
            (
                json!({}),
                if n.is_multiple_of(2) { json!({"status": {"imageID": "ami-0bbb0000000000001"}}) } else { json!({}) },
            )
        },
    },
    Incident {
        what: "the cloud controller is down",
        cause: "CloudControllerNeverInitialized",
        cluster: "",
        is_stuck: |_| true,
        had_joined: true,
        changes: |n| {
            let why =
                r#"KnownEphemeralTaint "node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule" still exists"#;
            let waits = uninitialized(n, "KnownEphemeralTaintsExist", why);
            let gone = [
                "beta.kubernetes.io/arch",
                "beta.kubernetes.io/instance-type",
                "failure-domain.beta.kubernetes.io/zone",
                "failure-domain.beta.kubernetes.io/region",
                "karpenter.sh/initialized",
            ];
            let labels: serde_json::Map<String, Value> =
                gone.into_iter().map(|label| (label.to_owned(), Value::Null)).collect();
            let taint = json!({"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule"});
            let node = json!({
                "metadata": {"labels": labels, "annotations": {"alpha.kubernetes.io/provided-node-ip": null}, "managedFields": []},
                "spec": {"taints": [taint]},
                "status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}
            });
            (node, json!({"status": {"conditions": waits}}))
        },
    },
    Incident {
        what: "aws-auth was overwritten and all fall silent",
        cause: "AwsAuthLostItsNodes",
        cluster: OVERWRITTEN,
        is_stuck: |_| true,
        had_joined: true,
        changes: |_| {
            (
                json!({"status": {"conditions": [condition("Ready", "Unknown", "NodeStatusUnknown", "Kubelet stopped \
                    posting node status.")]}}),
                json!({}),
            )
        },
    },
    Incident {
        what: "no device plugin offers their GPUs",
        cause: "ExtendedResourceMissing",
        cluster: "",
        is_stuck: |_| true,
        had_joined: true,
        changes: |n| {
            let waits = uninitialized(
                n,
                "ResourceNotRegistered",
                r#"Resource "nvidia.com/gpu" was requested but not registered"#,
            );
            let claim =
                json!({"spec": {"resources": {"requests": {"nvidia.com/gpu": "1"}}}, "status": {"conditions": waits}});
            (json!({"metadata": {"labels": {"karpenter.sh/initialized": null}}}), claim)
        },
    },
];

const NEW_IMAGE: &str = r#"
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default, annotations: {karpenter.k8s.aws/ec2nodeclass-hash: "2"}}
"#;

const REMOVED_FLAG: &str = r"
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec:
  userData: |
    apiVersion: node.eks.aws/v1alpha1
    kind: NodeConfig
    spec: {kubelet: {flags: [--pod-infra-container-image=registry.example.com/pause:3.10]}}
status:
  amis: [{id: ami-0aaa0000000000001, name: amazon-eks-node-al2023-x86_64-standard-1.35-v20260108}]
";

const OVERWRITTEN: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: aws-auth, namespace: kube-system}
data:
  mapRoles: |
    - rolearn: arn:aws:iam::111122223333:role/Admin
      username: admin
      groups: [system:masters]
---
apiVersion: v1
kind: Node
metadata: {name: ip-10-0-1-10.eu-west-1.compute.internal}
status: {conditions: [{type: Ready, status: Unknown, reason: NodeStatusUnknown, lastTransitionTime: "2026-01-15T11:40:00Z"}]}
"#;

fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": "2026-01-15T11:40:00Z"})
}

/// The conditions of a claim that is registered and waits for the end of its initialization.
fn uninitialized(n: usize, reason: &str, message: &str) -> Value {
    with(n, &condition("Initialized", "Unknown", reason, message))
}

/// The conditions of a healthy claim, with this one among them.
fn with(n: usize, other: &Value) -> Value {
    let mut conditions = claim(n, Fate::Healthy)["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.retain(|c| c["type"] != other["type"]);
    conditions.push(other.clone());
    conditions.into()
}

impl Incident {
    pub fn is_stuck(&self, machine: usize) -> bool {
        (self.is_stuck)(machine)
    }

    /// A fleet of so many machines.
    pub fn fleet(&self, machines: usize) -> ClusterState {
        let mut state = cluster(self.cluster);
        for (input, object) in (0..machines).flat_map(|n| self.machine(n)) {
            state.apply(Object::from_value(input, object).expect("an object"), now());
        }
        state
    }

    fn machine(&self, n: usize) -> Vec<(Input, Value)> {
        let (of_node, of_claim) = (self.changes)(n);
        let never_joined = self.is_stuck(n) && !self.had_joined;
        let mut claim = claim(n, if never_joined { Fate::Stuck } else { Fate::Healthy });
        json_patch::merge(&mut claim, &of_claim);
        let mut objects = vec![(Input::NodeClaims, claim)];
        if !never_joined {
            let mut node = node(n);
            json_patch::merge(&mut node, &of_node);
            objects.push((Input::Nodes, node));
        }
        objects
    }
}
