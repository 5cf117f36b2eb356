//! Healthy clusters, judged at every age: nothing may be found, whatever conditions, taints and events they carry.
//!
//! A fleet is a function of time: it shows what `kubectl get` would show so many seconds after its story began, and
//! each machine in it passes its stages at the times that it is given. tests/it/fleets/settled.yaml holds Nodes that
//! only age.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use engine::case::judging::Judging;
use engine::case::stage::Thresholds;
use engine::cluster_state::{ClusterState, Subject};
use engine::diagnose::{Judgement, diagnose, judge};
use engine::lint::{Files, lint};
use engine::objects::input::{Input, Object};
use nodewhy::ingest::dump::{Summary, load_from};
use serde_json::{Value, json};
use std::fmt::Write;
use testkit::objects::fleet::Fate;
use testkit::objects::{CLUSTER, cluster, documents, fleet, incident};

const SETTLED: &str = include_str!("fleets/settled.yaml");

/// Seconds since the story began.
const AGES: [i64; 26] = [
    0, 15, 30, 45, 60, 90, 119, 120, 121, 150, 180, 240, 299, 300, 301, 360, 420, 480, 540, 600, 1_200, 3_600, 7_200,
    21_600, 86_400, 259_200,
];

const MINUTE: i64 = 60;

fn at(age: i64) -> DateTime<Utc> {
    let start: DateTime<Utc> = "2026-01-15T12:00:00Z".parse().expect("a time");
    start + TimeDelta::seconds(age)
}

fn stamp(age: i64) -> String {
    at(age).to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// One Karpenter machine and the seconds at which it passes its stages. `i64::MAX` is never.
#[derive(Clone)]
struct Machine {
    name: &'static str,
    pool: &'static str,
    created: i64,
    launched: i64,
    joined: i64,
    registered: i64,
    /// The cloud controller has removed its taint.
    processed: i64,
    ready: i64,
    /// Startup taints and when their owner removes them.
    startup: &'static [(&'static str, i64)],
    /// What Initialized says between Ready and the end of its wait.
    awaits: (&'static str, &'static str),
    initialized: i64,
    deleted: i64,
    gone: i64,
    /// Merged over the objects (RFC 7386).
    claim: Value,
    node: Value,
}

impl Machine {
    /// A Linux machine that is usable 75 seconds after it was asked for.
    fn new(name: &'static str, created: i64) -> Self {
        Self {
            name,
            pool: "general",
            created,
            launched: created + 4,
            joined: created + 40,
            registered: created + 42,
            processed: created + 50,
            ready: created + 70,
            startup: &[],
            awaits: ("NodeNotReady", "Node status is NotReady"),
            initialized: created + 75,
            deleted: i64::MAX,
            gone: i64::MAX,
            claim: json!({}),
            node: json!({}),
        }
    }

    /// One that has run for two days.
    fn old(name: &'static str) -> Self {
        Self::new(name, -2 * 24 * 60 * MINUTE)
    }

    fn provider_id(&self) -> String {
        let digits: u64 = self.name.bytes().fold(7, |sum: u64, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        format!("aws:///eu-west-1a/i-0{digits:016x}")
    }

    fn node_name(&self) -> String {
        format!("ip-{}.eu-west-1.compute.internal", self.name)
    }

    fn objects(&self, now: i64) -> Vec<Value> {
        if now < self.created || now >= self.gone {
            return Vec::new();
        }
        let mut objects = vec![self.claim(now)];
        if now >= self.joined {
            objects.push(self.node(now));
        }
        objects
    }

    fn claim(&self, now: i64) -> Value {
        let condition = |type_: &str, since: i64, reason: &str, message: &str| {
            if now >= since {
                json!({"type": type_, "status": "True", "reason": type_, "message": "", "lastTransitionTime": stamp(since)})
            } else {
                json!({"type": type_, "status": "Unknown", "reason": reason, "message": message, "lastTransitionTime": stamp(self.created)})
            }
        };
        let waits = ("AwaitingReconciliation", "object is awaiting reconciliation");
        let registered =
            if now >= self.launched { ("NodeNotFound", "Node not registered with cluster") } else { waits };
        let initialized = match now {
            _ if now < self.registered => registered,
            _ if now < self.ready => ("NodeNotReady", "Node status is NotReady"),
            _ => self.awaits,
        };
        let taint = |(key, _): &(&str, i64)| json!({"key": key, "effect": "NoExecute"});
        let mut claim = json!({
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": {
                "name": self.name,
                "uid": format!("claim-{}", self.name),
                "creationTimestamp": stamp(self.created),
                "labels": {"karpenter.sh/nodepool": self.pool, "kubernetes.io/arch": "amd64"},
                "annotations": {"karpenter.k8s.aws/ec2nodeclass-hash": "1"},
            },
            "spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "requirements": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}],
                "resources": {"requests": {"cpu": "1", "memory": "2Gi"}},
                "startupTaints": self.startup.iter().map(taint).collect::<Vec<_>>(),
            },
            "status": {
                "conditions": [
                    condition("Launched", self.launched, waits.0, waits.1),
                    condition("Registered", self.registered, registered.0, registered.1),
                    condition("Initialized", self.initialized, initialized.0, initialized.1),
                ],
            },
        });
        if now >= self.launched {
            json_patch::merge(
                &mut claim,
                &json!({"status": {"providerID": self.provider_id(), "imageID": "ami-0aaa0000000000001"}}),
            );
        }
        if now >= self.registered {
            json_patch::merge(&mut claim, &json!({"status": {"nodeName": self.node_name()}}));
        }
        if now >= self.deleted {
            json_patch::merge(&mut claim, &json!({"metadata": {"deletionTimestamp": stamp(self.deleted)}}));
        }
        json_patch::merge(&mut claim, &self.claim);
        claim
    }

    fn node(&self, now: i64) -> Value {
        let mut taints: Vec<Value> = Vec::new();
        let mut taint = |until: i64, key: &str, effect: &str| {
            if now < until {
                taints.push(json!({"key": key, "effect": effect}));
            }
        };
        taint(self.registered, "karpenter.sh/unregistered", "NoExecute");
        taint(self.processed, "node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule");
        taint(self.ready, "node.kubernetes.io/not-ready", "NoSchedule");
        for (key, until) in self.startup {
            taint(*until, key, "NoExecute");
        }
        if now >= self.deleted {
            taint(i64::MAX, "karpenter.sh/disrupted", "NoSchedule");
        }
        let ready = if now >= self.ready {
            json!({"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready \
                status", "lastTransitionTime": stamp(self.ready)})
        } else {
            json!({"type": "Ready", "status": "False", "reason": "KubeletNotReady", "lastTransitionTime": stamp(self.joined),
                "message": "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady \
                            message:Network plugin returns error: cni plugin not initialized"})
        };
        let mut node = json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self.node_name(), "creationTimestamp": stamp(self.joined), "labels": {"karpenter.sh/nodepool": self.pool}},
            "spec": {"providerID": self.provider_id(), "taints": taints},
            "status": {
                "conditions": [ready],
                "allocatable": {"cpu": "3920m", "memory": "14Gi"},
                "addresses": [{"type": "InternalIP", "address": "10.0.1.20"}, {"type": "Hostname", "address": self.node_name()}],
            },
        });
        if now >= self.registered {
            json_patch::merge(
                &mut node,
                &json!({"metadata": {"labels": {"karpenter.sh/registered": "true"},
                "ownerReferences": [{"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": self.name, "uid": format!("claim-{}", self.name)}]}}),
            );
        }
        if now >= self.processed {
            json_patch::merge(
                &mut node,
                &json!({"metadata": {"labels": {"beta.kubernetes.io/instance-type": "m6i.large", "failure-domain.beta.kubernetes.io/zone": "eu-west-1a"}}}),
            );
        }
        if now >= self.deleted {
            json_patch::merge(&mut node, &json!({"metadata": {"deletionTimestamp": stamp(self.deleted)}}));
        }
        json_patch::merge(&mut node, &self.node);
        node
    }
}

/// Kubelets go on reporting.
fn beat(object: &mut Value, now: i64) {
    let conditions = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten().filter(|c| c["status"] != "Unknown") {
        condition["lastHeartbeatTime"] = json!(stamp(now));
    }
}

/// What is found in the cluster of the pages with these objects in it.
fn found(objects: Vec<Value>, now: i64) -> Vec<String> {
    let (mut state, mut files, mut summary) = (ClusterState::default(), Files::default(), Summary::default());
    for mut object in documents(CLUSTER).into_iter().chain(objects) {
        if object["kind"] == "Node" {
            beat(&mut object, now);
        }
        let text = object.to_string();
        load_from("fleet", text.as_bytes(), &mut state, &mut summary);
        load_from("fleet", text.as_bytes(), &mut files, &mut Summary::default());
    }
    assert!(summary.complaints.iter().all(|c| c.message.contains("is not judged")), "{:?}", summary.complaints);
    let diagnoses = diagnose(Judging::new(&state, at(now), &Thresholds::default()));
    let stuck =
        diagnoses.iter().map(|d| format!("{}: {}", d.spec.subject.name, d.status.as_ref().expect("a status").summary));
    // Where access entries let the machines in, aws-auth may hold anything: files alone do not tell.
    let linted = lint(files, None)
        .findings
        .into_iter()
        .filter(|finding| finding.blame.kind != "ConfigMap")
        .map(|finding| format!("lint: {}", finding.message));
    stuck.chain(linted).collect()
}

/// Judges a fleet at every age.
fn is_healthy(fleet: impl Fn(i64) -> Vec<Value>) {
    let mut alarms = String::new();
    for age in AGES {
        for alarm in found(fleet(age), age) {
            let _ = writeln!(alarms, "after {age} s: {alarm}");
        }
    }
    assert!(alarms.is_empty(), "\n{alarms}");
}

fn event(kind: &str, name: &str, reason: &str, message: &str, age: i64) -> Value {
    json!({"apiVersion": "v1", "kind": "Event", "type": "Warning", "metadata": {"name": format!("{name}.{reason}.{age}"), "namespace": "default"},
        "involvedObject": {"kind": kind, "name": name}, "reason": reason, "message": message, "source": {"component": "karpenter"},
        "firstTimestamp": stamp(age), "lastTimestamp": stamp(age), "count": 1})
}

fn daemon_set(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name, "namespace": "kube-system"}, "spec": {"template": {"spec": spec}}})
}

fn daemon_pod(set: &str, machine: &Machine, status: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "status": status, "spec": {"nodeName": machine.node_name()},
        "metadata": {"name": format!("{set}-{}", machine.name), "namespace": "kube-system", "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": set, "uid": "d"}]}})
}

fn pool(name: &str, class: &Value) -> Value {
    json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name, "creationTimestamp": stamp(-3_600)},
        "spec": {"template": {"spec": {"nodeClassRef": class, "requirements": []}}},
        "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "lastTransitionTime": stamp(-3_590)}]}})
}

#[test]
fn nodes_that_only_age_stay_healthy() {
    is_healthy(|_| documents(SETTLED));
}

#[test]
fn an_ordinary_machine_passes_its_gates() {
    is_healthy(|now| Machine::new("general-a", 0).objects(now));
}

#[test]
fn a_claim_four_minutes_in_launch_retries_and_one_minute_into_joining_is_in_time() {
    // A throttled launch: retried, then done. The join counts from the launch.
    let slow = Machine {
        launched: 100,
        joined: 100 + 240,
        registered: 345,
        processed: 350,
        ready: 400,
        initialized: 405,
        ..Machine::new("general-b", 0)
    };
    is_healthy(|now| slow.objects(now));
}

#[test]
fn a_burst_of_machines_passes_its_gates() {
    const NAMES: [&str; 6] = ["general-c0", "general-c1", "general-c2", "general-c3", "general-c4", "general-c5"];
    is_healthy(|now| {
        NAMES
            .iter()
            .zip(0..)
            .flat_map(|(name, i)| {
                Machine {
                    joined: 40 + 35 * i,
                    registered: 43 + 35 * i,
                    processed: 60 + 35 * i,
                    ready: 75 + 35 * i,
                    initialized: 80 + 35 * i,
                    ..Machine::new(name, i)
                }
                .objects(now)
            })
            .collect()
    });
}

#[test]
fn windows_joins_after_seven_minutes() {
    let windows = Machine {
        joined: 7 * MINUTE,
        registered: 7 * MINUTE + 3,
        processed: 7 * MINUTE + 5,
        ready: 8 * MINUTE,
        initialized: 8 * MINUTE + 4,
        claim: json!({"spec": {"requirements": [{"key": "kubernetes.io/os", "operator": "In", "values": ["windows"]}]}}),
        node: json!({"metadata": {"labels": {"kubernetes.io/os": "windows"}}, "status": {"nodeInfo": {"operatingSystem": "windows"}}}),
        ..Machine::new("general-w", 0)
    };
    is_healthy(|now| windows.objects(now));
}

#[test]
fn bare_metal_joins_after_nine_minutes() {
    let metal = Machine {
        joined: 9 * MINUTE,
        registered: 9 * MINUTE + 3,
        processed: 9 * MINUTE + 5,
        ready: 10 * MINUTE,
        initialized: 10 * MINUTE + 4,
        claim: json!({"metadata": {"labels": {"node.kubernetes.io/instance-type": "m7i.metal-24xl"}}}),
        ..Machine::new("general-m", 0)
    };
    is_healthy(|now| metal.objects(now));
}

/// The device plugin's pod starts late, and may crash until the driver is there.
#[test]
fn a_gpu_appears_after_eight_minutes() {
    let gpu = Machine {
        awaits: ("ResourceNotRegistered", r#"Resource "nvidia.com/gpu" was requested but not registered"#),
        initialized: 8 * MINUTE,
        claim: json!({"spec": {"resources": {"requests": {"nvidia.com/gpu": "1"}}}}),
        ..Machine::new("general-g", 0)
    };
    let driven = |now: i64| {
        let has_gpu = now >= 8 * MINUTE;
        let allocatable = if has_gpu { json!({"nvidia.com/gpu": "1"}) } else { json!({}) };
        Machine { node: json!({"status": {"allocatable": allocatable}}), ..gpu.clone() }.objects(now)
    };
    let crash = json!({"phase": "Running", "containerStatuses": [{"name": "plugin", "ready": false, "restartCount": 2,
        "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"reason": "Error", "exitCode": 1}}}]});
    let tolerant = json!({"tolerations": [{"operator": "Exists"}]});
    is_healthy(driven);
    is_healthy(|now| {
        let pod = (now >= gpu.ready && now < 8 * MINUTE).then(|| daemon_pod("nvidia-device-plugin", &gpu, &crash));
        driven(now).into_iter().chain([daemon_set("nvidia-device-plugin", &tolerant)]).chain(pod).collect()
    });
    // The GPU operator's node selector waits for a label that the operator sets once the driver is in place.
    let operator = json!({"tolerations": [{"operator": "Exists"}], "nodeSelector": {"nvidia.com/gpu.deploy.device-plugin": "true"}});
    is_healthy(|now| {
        driven(now).into_iter().chain([daemon_set("nvidia-device-plugin-daemonset", &operator)]).collect()
    });
}

#[test]
fn cilium_takes_its_startup_taint_away_after_four_minutes() {
    let startup: &[(&str, i64)] = &[("node.cilium.io/agent-not-ready", 4 * MINUTE)];
    let awaits = ("StartupTaintsExist", r#"StartupTaint "node.cilium.io/agent-not-ready:NoExecute" still exists"#);
    let machine = Machine { startup, awaits, initialized: 4 * MINUTE + 5, ..Machine::new("general-d", 0) };
    let starting = json!({"phase": "Pending", "containerStatuses": [{"name": "cilium-agent", "ready": false, "state": {"waiting": {"reason": "PodInitializing"}}}]});
    let restarted = json!({"phase": "Running", "containerStatuses": [{"name": "cilium-agent", "ready": false, "restartCount": 1, "state": {"running": {}},
        "lastState": {"terminated": {"reason": "Error", "exitCode": 1}}}]});
    let ready = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
    for early in [&starting, &restarted] {
        is_healthy(|now| {
            let status = if now < 4 * MINUTE { early } else { &ready };
            let pod = (now >= machine.joined).then(|| daemon_pod("cilium", &machine, status));
            let set = daemon_set("cilium", &json!({"tolerations": [{"operator": "Exists"}]}));
            machine.objects(now).into_iter().chain([set]).chain(pod).collect()
        });
    }
}

#[test]
fn node_readiness_taints_pass_in_time() {
    let startup: &[(&str, i64)] =
        &[("readiness.k8s.io/network-ready", 3 * MINUTE), ("readiness.k8s.io/storage-ready", 4 * MINUTE)];
    let awaits = ("StartupTaintsExist", r#"StartupTaint "readiness.k8s.io/storage-ready:NoExecute" still exists"#);
    let machine = Machine { startup, awaits, initialized: 4 * MINUTE + 5, ..Machine::new("general-e", 0) };
    is_healthy(|now| machine.objects(now));
    // The controller may also guard a Node in service: its taint comes and goes, the Node is Ready.
    let guarded = Machine {
        node: json!({"spec": {"taints": [{"key": "readiness.k8s.io/dns", "effect": "NoSchedule"}]}}),
        ..Machine::old("general-e2")
    };
    is_healthy(|now| guarded.objects(now));
}

#[test]
fn drift_replaces_a_machine_by_one_that_works() {
    let drifted = json!({"status": {"conditions": [
        {"type": "Launched", "status": "True", "reason": "Launched", "lastTransitionTime": stamp(-3_600)},
        {"type": "Registered", "status": "True", "reason": "Registered", "lastTransitionTime": stamp(-3_550)},
        {"type": "Initialized", "status": "True", "reason": "Initialized", "lastTransitionTime": stamp(-3_500)},
        {"type": "Drifted", "status": "True", "reason": "AMIDrift", "message": "AMIDrift", "lastTransitionTime": stamp(-60)}],
        "imageID": "ami-0aaa0000000000000"}});
    let old = Machine { deleted: 80, gone: 20 * MINUTE, claim: drifted, ..Machine::old("general-f") };
    is_healthy(|now| {
        let launching =
            event("NodeClaim", "general-f", "DisruptionLaunching", "Launching NodeClaim: Drifted/Replace", 0);
        [old.objects(now), Machine::new("general-f2", 0).objects(now), vec![launching]].concat()
    });
}

#[test]
fn consolidation_drains_for_half_an_hour() {
    let draining = Machine {
        deleted: -30 * MINUTE,
        claim: json!({"metadata": {"finalizers": ["karpenter.sh/termination"]}}),
        ..Machine::old("general-h")
    };
    let failed = |now| {
        event(
            "Node",
            &draining.node_name(),
            "FailedDraining",
            "Failed to drain node, 3 pods are waiting to be evicted",
            now,
        )
    };
    is_healthy(|now| [draining.objects(now), vec![failed(now)]].concat());
}

#[test]
fn an_expired_machine_is_replaced() {
    let expired = Machine { deleted: 0, gone: 10 * MINUTE, ..Machine::old("general-i") };
    is_healthy(|now| [expired.objects(now), Machine::new("general-i2", 5).objects(now)].concat());
}

#[test]
fn a_spot_interruption_takes_a_machine() {
    // Two minutes' notice, then the instance stops, and the kubelet with it.
    let spot = Machine { deleted: 5, gone: 4 * MINUTE, ..Machine::old("general-j") };
    is_healthy(|now| {
        let dead = json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet \
            stopped posting node status.", "lastTransitionTime": stamp(160)}]}});
        let spot = if now >= 160 { Machine { node: dead, ..spot.clone() } } else { spot.clone() };
        let events = ["SpotInterrupted", "TerminatingOnInterruption", "InstanceTerminating"]
            .map(|reason| event("NodeClaim", "general-j", reason, "Spot interruption warning was triggered", 3));
        [spot.objects(now), Machine::new("general-j2", 8).objects(now), events.to_vec()].concat()
    });
}

#[test]
fn one_refusal_for_lack_of_capacity_and_a_launch_after_it_is_everyday_life() {
    let message = "NodeClaim general-k1 event: creating instance, insufficient capacity, with fleet error(s), \
                   UnfulfillableCapacity";
    let refused = Machine {
        launched: i64::MAX,
        joined: i64::MAX,
        registered: i64::MAX,
        ready: i64::MAX,
        initialized: i64::MAX,
        deleted: 2,
        gone: 20,
        ..Machine::new("general-k1", 0)
    };
    is_healthy(|now| {
        let event = (now >= 2).then(|| event("NodeClaim", "general-k1", "InsufficientCapacityError", message, 2));
        [refused.objects(now), Machine::new("general-k2", 12).objects(now)].concat().into_iter().chain(event).collect()
    });
    // Nothing comes after it: the pod has gone elsewhere.
    is_healthy(|_| vec![event("NodeClaim", "general-k1", "InsufficientCapacityError", message, 0)]);
    // One refusal now, one long ago, and a machine between them that has already gone.
    is_healthy(|_| {
        [-3_000, 0].map(|age| event("NodeClaim", "general-k1", "InsufficientCapacityError", message, age)).to_vec()
    });
    // Two pods, two refusals in one second, and both launched elsewhere after a minute.
    is_healthy(|now| {
        let events =
            ["general-k3", "general-k4"].map(|name| event("NodeClaim", name, "InsufficientCapacityError", message, 0));
        [Machine::new("general-k5", 60).objects(now), events.to_vec()].concat()
    });
}

#[test]
fn a_new_node_class_takes_twenty_seconds() {
    is_healthy(|now| {
        let ready = if now < 20 { "Unknown" } else { "True" };
        let condition = |type_: &str| json!({"type": type_, "status": ready, "reason": if now < 20 { "AwaitingReconciliation" } else { type_ }, "lastTransitionTime": stamp(if now < 20 { 0 } else { 20 })});
        let class = json!({"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "new", "creationTimestamp": stamp(0)},
            "spec": {"amiSelectorTerms": [{"alias": "al2023@latest"}], "role": "KarpenterNodeRole-shop"},
            "status": {"conditions": [condition("SubnetsReady"), condition("AMIsReady"), condition("Ready")]}});
        vec![class, pool("new", &json!({"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "new"}))]
    });
}

/// Nobody launches from it, so nothing is held up: `nodewhy lint` is the place for it.
#[test]
fn a_node_class_that_nobody_names_is_nobodys_trouble() {
    is_healthy(|_| {
        vec![
            json!({"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "draft", "creationTimestamp": stamp(-86_400)},
            "spec": {"amiSelectorTerms": [{"alias": "al2023@latest"}]},
            "status": {"conditions": [{"type": "SubnetsReady", "status": "False", "reason": "SubnetsNotFound", "lastTransitionTime": stamp(-86_390)},
                {"type": "Ready", "status": "False", "reason": "UnhealthyDependents", "lastTransitionTime": stamp(-86_390)}]}}),
        ]
    });
}

#[test]
fn a_managed_node_group_is_upgraded() {
    let managed = |name: &str, node: &Value| {
        let mut object = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"eks.amazonaws.com/nodegroup": "core"}},
            "spec": {"providerID": format!("aws:///eu-west-1a/i-0{name}")}});
        json_patch::merge(&mut object, node);
        object
    };
    is_healthy(|now| {
        // Drained and terminated: the cordoned Node is NotReady until the cloud controller deletes it, late.
        let leaving = json!({"metadata": {"creationTimestamp": stamp(-86_400)}, "spec": {"unschedulable": true, "taints": [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]},
            "status": {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet \
                stopped posting node status.", "lastTransitionTime": stamp(-60)}]}});
        // Its successor boots.
        let ready = now >= 90;
        let coming = json!({"metadata": {"creationTimestamp": stamp(0)}, "spec": {"taints": if ready { json!([]) } else { json!([{"key": "node.cloudprovider.kubernetes.io/uninitialized", "effect": "NoSchedule"}]) }},
            "status": {"conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }, "reason": if ready { "KubeletReady" } else { "KubeletNotReady" }, "lastTransitionTime": stamp(if ready { 90 } else { 0 })}]}});
        vec![managed("leaving", &leaving), managed("coming", &coming)]
    });
}

#[test]
fn a_node_of_the_cluster_autoscaler_is_removed() {
    is_healthy(|_| {
        vec![
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "ca", "creationTimestamp": stamp(-86_400)},
            "spec": {"providerID": "aws:///eu-west-1a/i-0ca", "taints": [{"key": "ToBeDeletedByClusterAutoscaler", "value": "1768478400", "effect": "NoSchedule"}]},
            "status": {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "lastTransitionTime": stamp(-30)}]}}),
        ]
    });
}

#[test]
fn a_node_reboots_while_another_is_broken() {
    let down = |since: i64| {
        json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet \
            stopped posting node status.", "lastTransitionTime": stamp(since)}]}})
    };
    let broken = Machine { node: down(-1_800), ..Machine::old("general-l1") };
    let rebooting = Machine { node: down(0), ..Machine::old("general-l2") };
    for age in [0, 60, 120, 180, 240, 299] {
        let found = found([broken.objects(age), rebooting.objects(age)].concat(), age);
        assert!(found.len() == 1 && found[0].starts_with("general-l1"), "after {age} s: {found:?}");
    }
}

#[test]
fn machines_come_by_access_entries_alone() {
    // Without the ConfigMap, and with one whose leftover entry for the role would not do.
    let leftover = "- rolearn: arn:aws:iam::111122223333:role/KarpenterNodeRole-shop\n  username: kubelet\n  groups: \
                    [nonsense]\n- rolearn: not-an-arn\n";
    let csr = |name: &str, groups: &Value| {
        json!({"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": name, "creationTimestamp": stamp(-600)},
            "spec": {"signerName": "kubernetes.io/kubelet-serving", "username": "system:node:ip-10-0-1-10.eu-west-1.compute.internal", "groups": groups},
            "status": {"conditions": [{"type": "Approved", "status": "True"}]}})
    };
    let entries = json!(["system:nodes", "system:authenticated"]);
    let slow = |name, created: i64| Machine {
        joined: created + 200,
        registered: created + 203,
        processed: created + 210,
        ready: created + 230,
        initialized: created + 235,
        ..Machine::new(name, created)
    };
    for roles in ["", leftover] {
        let config_map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "aws-auth", "namespace": "kube-system"}, "data": {"mapRoles": roles}});
        // A machine of the role runs already.
        is_healthy(|now| {
            [vec![config_map.clone()], Machine::old("general-n1").objects(now), slow("general-n2", 0).objects(now)]
                .concat()
        });
        // The first one of the role, where other Nodes are known to have come by access entries.
        is_healthy(|now| {
            [vec![config_map.clone(), csr("csr-1", &entries)], slow("general-n3", 0).objects(now)].concat()
        });
    }
}

#[test]
fn static_capacity_is_launched_at_once() {
    let fixed = |name, created| Machine {
        pool: "fixed",
        claim: json!({"metadata": {"labels": {"karpenter.sh/nodepool": "fixed"}}}),
        ..Machine::new(name, created)
    };
    is_healthy(|now| {
        let mut pool = pool("fixed", &json!({"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}));
        json_patch::merge(&mut pool, &json!({"spec": {"replicas": 3}, "status": {"nodes": 3}}));
        [
            vec![pool],
            fixed("fixed-1", 0).objects(now),
            fixed("fixed-2", 1).objects(now),
            fixed("fixed-3", 1).objects(now),
        ]
        .concat()
    });
}

#[test]
fn auto_mode_launches_a_machine() {
    let class = json!({"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "default"});
    let machine = Machine {
        pool: "general-purpose",
        claim: json!({"spec": {"nodeClassRef": class}, "status": {"imageID": "ami-auto"}}),
        node: json!({"metadata": {"labels": {"eks.amazonaws.com/compute-type": "auto"}}}),
        ..Machine::new("general-purpose-a", 0)
    };
    is_healthy(|now| {
        let node_class = json!({"apiVersion": "eks.amazonaws.com/v1", "kind": "NodeClass", "metadata": {"name": "default"}, "spec": {"role": "auto"},
            "status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": stamp(-3_600)}]}});
        [vec![pool("general-purpose", &class), node_class], machine.objects(now)].concat()
    });
}

#[test]
fn a_machine_is_noisy() {
    let noisy = Machine::old("general-q");
    is_healthy(|now| {
        let reasons = [
            "DisruptionBlocked",
            "FailedConsistencyCheck",
            "Unconsolidatable",
            "UnregisteredTaintMissing",
            "InstanceUnhealthy",
            "NodeRepairBlocked",
            "KernelReady",
            "NetworkingReady",
            "InvalidDiskCapacity",
            "NodeNotReady",
            "Rebooted",
        ];
        let events = reasons
            .iter()
            .flat_map(|r| [event("NodeClaim", "general-q", r, r, now), event("Node", &noisy.node_name(), r, r, now)]);
        noisy.objects(now).into_iter().chain(events).collect()
    });
}

/// The node monitoring agent reads logs: one line at boot may set its condition for good
/// (aws/eks-node-monitoring-agent#215).
#[test]
fn conditions_that_an_agent_never_takes_back_are_no_sickness() {
    let stale = |type_: &str, reason: &str| json!({"type": type_, "status": "False", "reason": reason, "lastTransitionTime": stamp(72)});
    for (type_, reason) in [
        ("NetworkingReady", "IPAMDNotReady"),
        ("KernelReady", "ForkFailedOutOfPIDs"),
        ("ContainerRuntimeReady", "PodStuckTerminating"),
        ("StorageReady", "XFSSmallAverageClusterSize"),
    ] {
        is_healthy(|now| {
            let mut objects = Machine::new("general-r", 0).objects(now);
            if let Some(conditions) =
                objects.get_mut(1).and_then(|node| node["status"]["conditions"].as_array_mut()).filter(|_| now >= 72)
            {
                conditions.push(stale(type_, reason));
            }
            objects
        });
    }
}

/// Between two warm addresses a pod waits for some seconds, and says so for an hour.
#[test]
fn pods_wait_a_moment_for_their_addresses() {
    let machine = Machine::new("general-s", 0);
    is_healthy(|now| {
        let message = "Failed to create pod sandbox: plugin type=\"aws-cni\" name=\"aws-cni\" failed (add): add cmd: \
                       failed to assign an IP address to container";
        let refused = [80, 95, 110].map(|age| {
            let mut refused = event("Pod", "web-1", "FailedCreatePodSandBox", message, age);
            json_patch::merge(&mut refused, &json!({"source": {"component": "kubelet", "host": machine.node_name()}}));
            refused
        });
        let seen = refused.into_iter().filter(|_| (120..3_720).contains(&now));
        machine.objects(now).into_iter().chain(seen).collect()
    });
}

/// aws-node may fail while the Pod Identity agent, kube-proxy or its role's permissions are on their way.
#[test]
fn the_vpc_cni_takes_two_attempts() {
    let machine = Machine::new("general-t", 0);
    let crash = json!({"phase": "Running", "containerStatuses": [{"name": "aws-node", "ready": false, "restartCount": 1,
        "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"reason": "Error", "exitCode": 1}}}]});
    let ready = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
    let env = json!([{"name": "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", "value": "true"}, {"name": "ENI_CONFIG_LABEL_DEF", "value": "topology.kubernetes.io/zone"}]);
    is_healthy(|now| {
        let mut pod = daemon_pod("aws-node", &machine, if now < machine.ready { &crash } else { &ready });
        json_patch::merge(
            &mut pod,
            &json!({"spec": {"containers": [{"name": "aws-node", "image": "amazon-k8s-cni:v1.20.4",
                "env": [{"name": "AWS_CONTAINER_CREDENTIALS_FULL_URI", "value": "http://169.254.170.23/v1/credentials"}]}]}}),
        );
        let denied = "Unauthorized operation: failed to call ec2:DescribeNetworkInterfaces due to missing permissions.";
        let denied = event("Pod", "aws-node-general-t", "MissingIAMPermissions", denied, 50);
        let set = daemon_set(
            "aws-node",
            &json!({"tolerations": [{"operator": "Exists"}], "containers": [{"name": "aws-node", "env": env}]}),
        );
        let config = json!({"apiVersion": "crd.k8s.amazonaws.com/v1alpha1", "kind": "ENIConfig", "metadata": {"name": "eu-west-1a"}, "spec": {"subnet": "subnet-1"}});
        let there = (now >= machine.joined).then_some([pod, denied]).into_iter().flatten();
        machine.objects(now).into_iter().chain([set, config]).chain(there).collect()
    });
}

#[test]
fn a_drain_takes_days_where_a_pod_wants_it() {
    let conditions = json!([
        {"type": "Launched", "status": "True", "lastTransitionTime": stamp(-90_000)},
        {"type": "Registered", "status": "True", "lastTransitionTime": stamp(-89_960)},
        {"type": "Initialized", "status": "True", "lastTransitionTime": stamp(-89_900)},
        {"type": "Drifted", "status": "True", "reason": "NodePoolDrifted", "lastTransitionTime": stamp(-100)},
        {"type": "Drained", "status": "Unknown", "reason": "Draining", "lastTransitionTime": stamp(0)},
    ]);
    let draining = Machine {
        deleted: 0,
        claim: json!({"metadata": {"finalizers": ["karpenter.sh/termination"]}, "status": {"conditions": conditions}}),
        node: json!({"metadata": {"finalizers": ["karpenter.sh/termination"]}}),
        ..Machine::old("general-u")
    };
    is_healthy(|now| {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "batch", "namespace": "jobs", "annotations": {"karpenter.sh/do-not-disrupt": "true"}},
            "spec": {"nodeName": draining.node_name()}, "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
        let failed = event(
            "Node",
            &draining.node_name(),
            "FailedDraining",
            "Failed to drain node, 1 pods are waiting to be evicted",
            now,
        );
        draining.objects(now).into_iter().chain([pod, failed]).collect()
    });
}

/// Without an interruption queue the cloud controller is the first to see that the instance is gone; Karpenter follows.
#[test]
fn a_node_goes_before_its_claim() {
    let machine = Machine { gone: 4 * MINUTE, ..Machine::old("general-v") };
    is_healthy(|now| {
        let message = format!("Deleting node {} because it does not exist in the cloud provider", machine.node_name());
        let deleting =
            (60..3_660).contains(&now).then(|| event("Node", &machine.node_name(), "DeletingNode", &message, 60));
        let objects = machine.objects(now).into_iter().filter(|o| now < 60 || o["kind"] != "Node");
        objects.chain(deleting).collect()
    });
}

/// Bare metal shuts down for half an hour after Karpenter has asked for it.
#[test]
fn bare_metal_takes_its_time_to_go() {
    let gone = |type_: &str, age: i64| json!({"type": type_, "status": "True", "reason": type_, "lastTransitionTime": stamp(age)});
    let conditions = json!([
        gone("Launched", -90_000),
        gone("Registered", -89_000),
        gone("Initialized", -88_900),
        gone("Drained", 20),
        gone("VolumesDetached", 22),
        gone("InstanceTerminating", 25)
    ]);
    let leaving = Machine {
        deleted: 0,
        gone: 35 * MINUTE,
        claim: json!({"status": {"conditions": conditions}}),
        ..Machine::old("general-x")
    };
    is_healthy(|now| leaving.objects(now));
}

#[test]
fn what_holds_up_many_machines_at_once_is_named_on_each_of_them_and_on_no_other() {
    for incident in &incident::ALL {
        let state = incident.fleet(60);
        let found = diagnose(Judging::new(&state, fleet::now(), &Thresholds::default()));
        let told = found
            .iter()
            .filter_map(|d| Some((d.spec.node_claim.as_ref()?.name.clone(), d.status.as_ref()?.cause.to_string())));
        let stuck =
            (0..60).filter(|n| incident.is_stuck(*n)).map(|n| (fleet::claim_name(n), incident.cause.to_owned()));
        assert_eq!(told.collect::<Vec<_>>(), stuck.collect::<Vec<_>>(), "{}", incident.what);
    }
}

/// What machines of a group share is worked out for whichever is judged first.
#[test]
fn a_machine_judged_first_has_the_verdict_that_it_has_among_all() {
    const MACHINES: usize = 24;
    let fates: [fn(usize) -> Fate; 2] =
        [|_| Fate::Stuck, |n| if n.is_multiple_of(5) { Fate::Healthy } else { Fate::Stuck }];
    for fate in fates {
        let state = || {
            let mut state = cluster("");
            for n in 0..MACHINES {
                let node = (fate(n) == Fate::Healthy).then(|| (Input::Nodes, fleet::node(n)));
                for (input, value) in node.into_iter().chain([(Input::NodeClaims, fleet::claim(n, fate(n)))]) {
                    state.apply(Object::from_value(input, value).expect("an object"), fleet::now());
                }
            }
            state
        };
        let among_all = diagnose(Judging::new(&state(), fleet::now(), &Thresholds::default()));
        assert_eq!(among_all.len(), (0..MACHINES).filter(|n| fate(*n) == Fate::Stuck).count());
        for diagnosis in among_all {
            assert_ne!(diagnosis.status.as_ref().expect("a status").suspects, []);
            let subject = Subject::Claim(diagnosis.spec.subject.name.clone());
            match judge(Judging::new(&state(), fleet::now(), &Thresholds::default()), &subject) {
                Judgement::Sick(first, _) => assert_eq!(*first, diagnosis),
                other => panic!("{other:?}"),
            }
        }
    }
}
