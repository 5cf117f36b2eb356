//! A Karpenter fleet of any size, as `kubectl get -o json` prints it: a Node of about 11 KB, a NodeClaim of about 5 KB.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde_json::{Map, Value, json};

/// How machine number `n` fares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Healthy,
    /// Launched and never joined.
    Stuck,
    /// Launched three minutes ago.
    Young,
}

pub fn now() -> DateTime<Utc> {
    "2026-01-15T12:00:00Z".parse().expect("a time")
}

fn ago(seconds: usize) -> String {
    (now() - TimeDelta::seconds(i64::try_from(seconds).expect("a small number")))
        .to_rfc3339_opts(SecondsFormat::Secs, true)
}

const TYPES: [(&str, &str, &str); 6] = [
    ("m6i.large", "m6i", "amd64"),
    ("m6i.xlarge", "m6i", "amd64"),
    ("c7i.2xlarge", "c7i", "amd64"),
    ("r7g.large", "r7g", "arm64"),
    ("m7g.4xlarge", "m7g", "arm64"),
    ("c6a.8xlarge", "c6a", "amd64"),
];
const ZONES: [&str; 3] = ["eu-west-1a", "eu-west-1b", "eu-west-1c"];

fn node_name(n: usize) -> String {
    format!("ip-10-{}-{}-{}.eu-west-1.compute.internal", n / 65_536 % 256, n / 256 % 256, n % 256)
}

pub fn claim_name(n: usize) -> String {
    format!("general-{n:05x}")
}

fn provider_id(n: usize) -> String {
    format!("aws:///{}/i-{n:017x}", ZONES[n % 3])
}

/// The labels that Karpenter puts on claim and Node.
fn labels(n: usize) -> Map<String, Value> {
    let (type_, family, arch) = TYPES[n % TYPES.len()];
    let size = type_.split('.').nth(1).expect("a size");
    let labels = json!({
        "karpenter.k8s.aws/ec2nodeclass": "default",
        "karpenter.k8s.aws/instance-capability-flex": "false",
        "karpenter.k8s.aws/instance-category": &family[..1],
        "karpenter.k8s.aws/instance-cpu": (2 + n % 30).to_string(),
        "karpenter.k8s.aws/instance-cpu-manufacturer": "intel",
        "karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz": "3500",
        "karpenter.k8s.aws/instance-ebs-bandwidth": "10000",
        "karpenter.k8s.aws/instance-encryption-in-transit-supported": "true",
        "karpenter.k8s.aws/instance-family": family,
        "karpenter.k8s.aws/instance-generation": "6",
        "karpenter.k8s.aws/instance-hypervisor": "nitro",
        "karpenter.k8s.aws/instance-memory": (4_096 * (1 + n % 16)).to_string(),
        "karpenter.k8s.aws/instance-network-bandwidth": "781",
        "karpenter.k8s.aws/instance-size": size,
        "karpenter.sh/capacity-type": if n.is_multiple_of(4) { "on-demand" } else { "spot" },
        "karpenter.sh/nodepool": "general",
        "kubernetes.io/arch": arch,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": type_,
        "topology.k8s.aws/zone-id": format!("euw1-az{}", 1 + n % 3),
        "topology.kubernetes.io/region": "eu-west-1",
        "topology.kubernetes.io/zone": ZONES[n % 3],
        "team": "platform",
    });
    labels.as_object().cloned().expect("an object")
}

/// What server-side apply and updates leave behind: one entry a writer, naming each of its fields.
fn managed_fields(writers: &[(&str, &str, &[&str])], created: usize) -> Value {
    let entry = |(manager, field, names): &(&str, &str, &[&str])| {
        let owned: Map<String, Value> = names.iter().map(|name| (format!("f:{name}"), json!({}))).collect();
        let top = format!("f:{field}");
        let fields = if *field == "status" {
            json!({top: {"f:conditions": {"k:{\"type\":\"Ready\"}": owned}, "f:images": {}, "f:allocatable": owned}})
        } else {
            json!({top: owned, "f:metadata": {"f:annotations": {".": {}, "f:node.alpha.kubernetes.io/ttl": {}}, "f:labels": owned}})
        };
        let mut entry = json!({"apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields, "manager": manager, "operation": "Update", "time": ago(created)});
        if *field == "status" {
            entry["subresource"] = json!("status");
        }
        entry
    };
    writers.iter().map(entry).collect()
}

/// A Node that joined a minute after its claim was made.
pub fn node(n: usize) -> Value {
    let created = 3_600 + n % 80_000;
    let (type_, ..) = TYPES[n % TYPES.len()];
    let name = node_name(n);
    let mut labels = labels(n);
    labels.insert("beta.kubernetes.io/arch".to_owned(), labels["kubernetes.io/arch"].clone());
    labels.insert("beta.kubernetes.io/instance-type".to_owned(), json!(type_));
    labels.insert("failure-domain.beta.kubernetes.io/zone".to_owned(), json!(ZONES[n % 3]));
    labels.insert("failure-domain.beta.kubernetes.io/region".to_owned(), json!("eu-west-1"));
    labels.insert("karpenter.sh/initialized".to_owned(), json!("true"));
    labels.insert("karpenter.sh/registered".to_owned(), json!("true"));
    labels.insert("kubernetes.io/hostname".to_owned(), json!(name));
    let names: Vec<String> = labels.keys().cloned().collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let condition = |type_: &str, status: &str, reason: &str, message: &str| json!({"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": ago(created), "lastHeartbeatTime": ago(n % 300)});
    let image = |i: usize| {
        json!({
            "names": [
                format!("111122223333.dkr.ecr.eu-west-1.amazonaws.com/team/service-{i}@sha256:{:064x}", i * 7_919),
                format!("111122223333.dkr.ecr.eu-west-1.amazonaws.com/team/service-{i}:v1.{i}.0")
            ],
            "sizeBytes": 90_000_000 + i
        })
    };
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": format!("0a000000-0000-4000-8000-{n:012x}"),
            "resourceVersion": (1_000_000 + n).to_string(),
            "creationTimestamp": ago(created),
            "labels": labels,
            "annotations": {
                "alpha.kubernetes.io/provided-node-ip": "10.0.0.1",
                "csi.volume.kubernetes.io/nodeid": format!("{{\"ebs.csi.aws.com\":\"i-{n:017x}\"}}"),
                "karpenter.k8s.aws/ec2nodeclass-hash": "8154263452117890123",
                "node.alpha.kubernetes.io/ttl": "0",
                "volumes.kubernetes.io/controller-managed-attach-detach": "true"
            },
            "finalizers": ["karpenter.sh/termination"],
            "ownerReferences": [{"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": claim_name(n), "uid": format!("0b000000-0000-4000-8000-{n:012x}"), "blockOwnerDeletion": true}],
            "managedFields": managed_fields(&[("kubelet", "spec", &names), ("karpenter", "spec", &["taints"]), ("aws-cloud-controller-manager", "spec", &["providerID"]), ("kubelet", "status", &["cpu", "memory", "pods"])], created)
        },
        "spec": {"providerID": provider_id(n)},
        "status": {
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "InternalDNS", "address": name}, {"type": "Hostname", "address": name}],
            "allocatable": {"cpu": "1930m", "ephemeral-storage": "18242267924", "hugepages-1Gi": "0", "hugepages-2Mi": "0", "memory": "7220184Ki", "pods": "29"},
            "capacity": {"cpu": "2", "ephemeral-storage": "20959212Ki", "hugepages-1Gi": "0", "hugepages-2Mi": "0", "memory": "7910360Ki", "pods": "29"},
            "conditions": [
                condition("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory \
                    available"),
                condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
                condition("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
                condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
                condition("KernelReady", "True", "KernelIsReady", "Monitoring for the Kernel system is active"),
                condition("NetworkingReady", "True", "NetworkingIsReady", "Monitoring for the Networking system is \
                    active")
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "images": (0..30).map(image).collect::<Vec<_>>(),
            "nodeInfo": {
                "architecture": "amd64", "bootID": format!("0c000000-0000-4000-8000-{n:012x}"), "containerRuntimeVersion": "containerd://2.1.4",
                "kernelVersion": "6.12.40-64.114.amzn2023.x86_64", "kubeProxyVersion": "", "kubeletVersion": "v1.34.1-eks-113cf36",
                "machineID": format!("{n:032x}"), "operatingSystem": "linux", "osImage": "Amazon Linux \
                    2023.9.20251027", "systemUUID": format!("ec200000-0000-4000-8000-{n:012x}")
            }
        }
    })
}

/// The NodeClaim of machine `n`.
pub fn claim(n: usize, fate: Fate) -> Value {
    let created = match fate {
        Fate::Healthy => 3_660 + n % 80_000,
        Fate::Stuck => 400 + n % 300,
        Fate::Young => 180,
    };
    let labels = labels(n);
    let names: Vec<&str> = labels.keys().map(String::as_str).collect();
    let requirement = |(key, value): (&String, &Value)| json!({"key": key, "operator": "In", "values": [value]});
    let condition = |type_: &str, status: &str, reason: &str, message: &str| json!({"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": ago(created), "observedGeneration": 1});
    let is = |type_: &str| condition(type_, "True", type_, "");
    let mut conditions = vec![is("Launched")];
    let mut status = json!({
        "providerID": provider_id(n),
        "imageID": "ami-0aaa0000000000001",
        "allocatable": {"cpu": "1930m", "ephemeral-storage": "17Gi", "memory": "7134Mi", "pods": "29", "vpc.amazonaws.com/pod-eni": "9"},
        "capacity": {"cpu": "2", "ephemeral-storage": "20Gi", "memory": "7680Mi", "pods": "29", "vpc.amazonaws.com/pod-eni": "9"},
    });
    if fate == Fate::Healthy {
        conditions.extend(["Registered", "Initialized", "Ready", "Consolidatable"].map(is));
        status["nodeName"] = json!(node_name(n));
    } else {
        conditions.push(condition("Registered", "Unknown", "NodeNotFound", "Node not registered with cluster"));
        conditions.push(condition(
            "Initialized",
            "Unknown",
            "AwaitingReconciliation",
            "object is awaiting reconciliation",
        ));
        conditions.push(condition(
            "Ready",
            "Unknown",
            "ReconcilingDependents",
            "Registered=Unknown, Initialized=Unknown",
        ));
    }
    status["conditions"] = json!(conditions);
    json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {
            "name": claim_name(n),
            "uid": format!("0b000000-0000-4000-8000-{n:012x}"),
            "resourceVersion": (2_000_000 + n).to_string(),
            "generation": 1,
            "creationTimestamp": ago(created),
            "labels": labels,
            "annotations": {"karpenter.k8s.aws/ec2nodeclass-hash": "8154263452117890123", "karpenter.k8s.aws/ec2nodeclass-hash-version": "v4", "karpenter.sh/nodepool-hash": "1234567890123456789", "karpenter.sh/nodepool-hash-version": "v3"},
            "finalizers": ["karpenter.sh/termination"],
            "ownerReferences": [{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": "general", "uid": "0d000000-0000-4000-8000-000000000001", "blockOwnerDeletion": true}],
            "managedFields": managed_fields(&[("karpenter", "spec", &names), ("karpenter", "status", &["cpu", "memory", "pods"])], created)
        },
        "spec": {
            "expireAfter": "720h",
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            "requirements": labels.iter().map(requirement).collect::<Vec<_>>(),
            "resources": {"requests": {"cpu": "1830m", "memory": "3462Mi", "pods": "12"}}
        },
        "status": status
    })
}
