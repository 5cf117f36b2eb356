use super::*;
use crate::api::{Outcome as Ending, REMOVED_ANNOTATION};
use crate::case::judging::Judging;
use crate::case::stage::Thresholds;
use crate::cluster_state::{Availability, Subject};
use crate::diagnose::{Judgement, judge};
use crate::objects::input::{Input, Object};
use crate::rules::taints::stale_cloud_provider_taint::CAUSE;
use crate::triage::change::{Change, Watched};
use crate::triage::{Keep, Triage};
use serde_json::{Value, json};

const CLAIM: &str = "general-a";
const NODE: &str = "ip-10-0-0-1.eu-west-1.compute.internal";

fn at(minutes: i64) -> DateTime<Utc> {
    "2026-11-21T12:00:00Z".parse::<DateTime<Utc>>().unwrap() + TimeDelta::minutes(minutes)
}

fn stamp(minutes: i64) -> String {
    at(minutes).to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
}

/// Everything that one removal reads. At minute 0 no guard has anything against it.
struct Cluster {
    opt_in: OptIn,
    node: Value,
    claim: Value,
    pool: Value,
    /// Other Nodes and their NodeClaims.
    others: Vec<Value>,
    claims: Vec<Value>,
    events: Vec<Value>,
    /// When the verdict was first written down.
    seen: Option<i64>,
    limits: Limits,
    doubts: Doubts,
}

fn taint() -> Value {
    json!({ "key": UNINITIALIZED_TAINT, "value": "true", "effect": "NoSchedule" })
}

fn node(name: &str, uid: &str) -> Value {
    json!({
        "metadata": {
            "name": name, "uid": uid, "resourceVersion": "100", "creationTimestamp": stamp(-60),
            "labels": {
                "karpenter.sh/nodepool": "general",
                "topology.kubernetes.io/zone": "eu-west-1a",
                "topology.kubernetes.io/region": "eu-west-1",
                "node.kubernetes.io/instance-type": "m6i.large",
                "karpenter.sh/registered": "true",
                "beta.kubernetes.io/instance-type": "m6i.large",
            },
            "annotations": {},
            "managedFields": [
                { "manager": "node-labeler", "time": stamp(-50), "fieldsV1": { "f:spec": { "f:taints": {} } } },
                { "manager": "aws-cloud-controller-manager", "time": stamp(-59), "fieldsV1": {
                    "f:metadata": { "f:labels": { "f:beta.kubernetes.io/instance-type": {} } },
                } },
            ],
        },
        "spec": {
            "providerID": format!("aws:///eu-west-1a/i-{uid}"),
            "taints": [{ "key": "dedicated", "value": "x", "effect": "NoSchedule" }, taint()],
        },
        "status": {
            "addresses": [{ "type": "InternalIP", "address": "10.0.0.1" }],
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "KubeletReady",
                "lastHeartbeatTime": stamp(-4), "lastTransitionTime": stamp(-59),
            }],
        },
    })
}

fn untainted(mut node: Value) -> Value {
    node["spec"]["taints"] = json!([]);
    node
}

fn good() -> Cluster {
    let condition = |type_: &str, status: &str, reason: &str| json!({ "type": type_, "status": status, "reason": reason, "lastTransitionTime": stamp(-58) });
    Cluster {
        opt_in: OptIn::Stale,
        node: node(NODE, "1"),
        claim: json!({
            "metadata": { "name": CLAIM, "uid": "c1", "creationTimestamp": stamp(-62), "labels": { "karpenter.sh/nodepool": "general" } },
            "spec": { "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" } },
            "status": {
                "providerID": "aws:///eu-west-1a/i-1", "nodeName": NODE,
                "conditions": [
                    condition("Launched", "True", "Launched"),
                    condition("Registered", "True", "Registered"),
                    condition("Initialized", "Unknown", "KnownEphemeralTaintsExist"),
                ],
            },
        }),
        pool: json!({ "metadata": { "name": "general", "annotations": {} } }),
        others: Vec::new(),
        claims: Vec::new(),
        events: Vec::new(),
        seen: Some(-30),
        limits: Limits { stale: Mode::On, ..Limits::default() },
        doubts: Doubts::default(),
    }
}

/// The same Node without what the cloud controller leaves.
fn never_initialized() -> Cluster {
    let mut cluster = good();
    cluster.opt_in = OptIn::Uninitialized;
    cluster.node["metadata"]["labels"].as_object_mut().unwrap().remove(FINGERPRINT);
    cluster.limits = Limits { uninitialized: Mode::On, ..Limits::default() };
    cluster
}

const FINGERPRINT: &str = "beta.kubernetes.io/instance-type";
const BOTH: [fn() -> Cluster; 2] = [good, never_initialized];

impl Cluster {
    /// Minutes that the verdict must have existed.
    fn wait(&self) -> i64 {
        self.limits.wait(self.opt_in).num_minutes()
    }

    fn cluster(&self) -> ClusterState {
        let mut cluster = ClusterState::default();
        let mut apply =
            |input, object: &Value| drop(cluster.apply(Object::from_value(input, object.clone()).unwrap(), at(-60)));
        self.others.iter().chain([&self.node]).for_each(|node| apply(Input::Nodes, node));
        self.claims.iter().chain([&self.claim]).for_each(|claim| apply(Input::NodeClaims, claim));
        apply(Input::NodePools, &self.pool);
        self.events.iter().for_each(|event| apply(Input::Events, event));
        for input in [Input::Nodes, Input::NodeClaims, Input::NodePools, Input::Events] {
            cluster.mark(input, Availability::Read);
        }
        cluster
    }

    /// The verdict of the engine itself, with what was said before about remediation.
    fn diagnosis(&self) -> NodeDiagnosis {
        let Judgement::Sick(mut diagnosis, _) =
            judge(Judging::new(&self.cluster(), at(0), &Thresholds::default()), &Subject::Claim(CLAIM.to_owned()))
        else {
            panic!("the scene is of a sick machine")
        };
        if let Some(seen) = self.seen {
            say(&mut diagnosis, "False", "TooRecent", seen);
        }
        *diagnosis
    }

    fn look(&self, diagnoses: &[NodeDiagnosis]) -> Vec<Step> {
        Remediation::new(self.limits).look(&self.cluster(), &diagnoses.iter(), |_| true, &self.doubts, at(0))
    }

    /// The steps after the announcement.
    fn outcome(&self) -> Vec<Step> {
        let mut diagnosis = self.diagnosis();
        assert_eq!(reasons(&self.look(&[diagnosis.clone()])), [REMOVING]);
        say(&mut diagnosis, "False", REMOVING, -30);
        self.look(&[diagnosis])
    }
}

fn say(diagnosis: &mut NodeDiagnosis, status: &str, reason: &str, minute: i64) {
    let conditions = &mut diagnosis.status.as_mut().unwrap().conditions;
    conditions.retain(|c| c.type_ != CONDITION);
    conditions.push(Condition {
        type_: CONDITION.into(),
        status: status.to_owned().into(),
        last_transition_time: at(minute),
        reason: reason.to_owned().into(),
        message: format!("said {reason}").into(),
        observed_generation: None,
    });
}

fn elsewhere(status: &str, reason: &str, minute: i64) -> NodeDiagnosis {
    let mut other = good().diagnosis();
    other.metadata.name = Some(format!("other-{reason}-{minute}"));
    other.spec.node = None;
    say(&mut other, status, reason, minute);
    other
}

fn reasons(steps: &[Step]) -> Vec<&str> {
    steps
        .iter()
        .map(|step| match step {
            Step::Remove(_) => "Remove",
            Step::Say(remark) => remark.reason,
        })
        .collect()
}

#[test]
fn a_stale_taint_on_a_good_node_is_removed_and_the_others_stay() {
    let steps = good().outcome();
    let [Step::Remove(removal)] = steps.as_slice() else { panic!("{steps:?}") };
    assert_eq!((removal.node.as_str(), removal.dry_run), (NODE, false));
    assert_eq!(removal.after, "dedicated=x:NoSchedule");
    assert_eq!(
        serde_json::to_value(&removal.patch).unwrap(),
        json!([
            { "op": "test", "path": "/metadata/resourceVersion", "value": "100" },
            { "op": "test", "path": "/spec/taints/1", "value": taint() },
            { "op": "remove", "path": "/spec/taints/1" },
            { "op": "add", "path": "/metadata/annotations", "value": { REMOVED_ANNOTATION: stamp(0) } },
        ])
    );
    // Others' annotations stay.
    let mut cluster = good();
    cluster.node["metadata"]["annotations"]["example.com/owner"] = json!("them");
    let steps = cluster.outcome();
    let [Step::Remove(removal)] = steps.as_slice() else { panic!("{steps:?}") };
    assert_eq!(
        serde_json::to_value(&removal.patch).unwrap()[3],
        json!({ "op": "add", "path": "/metadata/annotations/nodewhy.dev~1taint-removed", "value": stamp(0) })
    );
}

#[test]
fn where_the_cloud_controller_never_came_and_karpenter_vouches_the_taint_is_removed_too() {
    let cluster = never_initialized();
    let steps = cluster.outcome();
    let [Step::Remove(removal)] = steps.as_slice() else { panic!("{steps:?}") };
    assert_eq!((removal.node.as_str(), removal.after.as_str()), (NODE, "dedicated=x:NoSchedule"));
    // Both draw on one budget: a stale taint that was removed a moment ago is counted.
    let steps = cluster.look(&[cluster.diagnosis(), elsewhere("True", REMOVED, -1)]);
    let [Step::Say(remark)] = steps.as_slice() else { panic!("{steps:?}") };
    assert_eq!(remark.reason, "BudgetSpent");
    assert!(remark.message.contains("the budget allows 1 removal in each"), "{remark:?}");
}

type Break = fn(&mut Cluster, &mut Vec<NodeDiagnosis>);

/// One guard is broken at a time, for each opt-in that it belongs to. Where a guard is a list of things, each of them
/// is broken.
const BROKEN: &[(&str, Break)] = &[
    ("InputNotCurrent", |c, _| stale(c, Input::Nodes.into())),
    ("InputNotCurrent", |c, _| stale(c, Input::NodeClaims.into())),
    ("InputNotCurrent", |c, _| stale(c, Input::NodePools.into())),
    ("InputNotCurrent", |c, _| stale(c, Watched::Diagnoses)),
    ("ClockInDoubt", |c, _| c.doubts.clock = Some("two answers differ by an hour".to_owned())),
    ("Paused", |c, _| c.node["metadata"]["annotations"][crate::api::PAUSE_ANNOTATION] = json!("true")),
    ("Paused", |c, _| c.node["metadata"]["annotations"][crate::api::PAUSE_ANNOTATION] = json!("")),
    ("Paused", |c, _| c.pool["metadata"]["annotations"][crate::api::PAUSE_ANNOTATION] = json!("until friday")),
    ("NodePoolUnknown", |c, _| c.pool["metadata"]["name"] = json!("renamed")),
    ("NotProven", |_, d| d[0].status.as_mut().unwrap().confidence = crate::api::Confidence::Likely),
    ("NoFingerprint", |c, _| drop(c.node["metadata"]["labels"].as_object_mut().unwrap().remove(FINGERPRINT))),
    ("NoFingerprint", |c, _| c.node["metadata"]["managedFields"] = json!([])),
    // As where a NodePool's template brings the label, or somebody sets it.
    ("NoFingerprint", |c, _| c.node["metadata"]["managedFields"][1]["manager"] = json!("kubelet")),
    ("NoFingerprint", |c, _| c.node["metadata"]["managedFields"][1]["manager"] = json!("kubectl-label")),
    ("NoFingerprint", |c, _| c.node["metadata"]["managedFields"][1]["subresource"] = json!("status")),
    ("Fingerprint", |c, _| c.node["metadata"]["labels"][FINGERPRINT] = json!("m6i.large")),
    ("Fingerprint", |c, _| {
        c.node["status"]["addresses"].as_array_mut().unwrap().push(json!({ "type": "InternalDNS", "address": NODE }));
    }),
    ("UnexpectedTaint", |c, _| c.node["spec"]["taints"][1]["value"] = json!("by-hand")),
    ("UnexpectedTaint", |c, _| c.node["spec"]["taints"][1]["effect"] = json!("NoExecute")),
    ("UnexpectedTaint", |c, _| {
        c.node["spec"]["taints"][0] = json!({ "key": UNINITIALIZED_TAINT, "value": "true", "effect": "NoExecute" });
    }),
    ("NoProviderID", |c, _| {
        c.node["spec"]["providerID"] = json!("");
        c.node["metadata"]["ownerReferences"] =
            json!([{ "apiVersion": "v1", "kind": "NodeClaim", "name": CLAIM, "uid": "c1" }]);
    }),
    ("NotRegistered", |c, _| c.claim["status"]["providerID"] = json!("aws:///eu-west-1a/i-2")),
    ("NotRegistered", |c, _| {
        c.claim["status"]["providerID"] = json!("aws:///eu-west-1a/i-2");
        c.node["metadata"]["ownerReferences"] =
            json!([{ "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": CLAIM, "uid": "c1" }]);
    }),
    ("NotRegistered", |c, _| c.claim["status"]["conditions"][1]["status"] = json!("Unknown")),
    ("NotRegistered", |c, _| c.claim["status"]["conditions"][1]["status"] = json!("False")),
    ("NotRegistered", |c, _| {
        drop(c.node["metadata"]["labels"].as_object_mut().unwrap().remove("karpenter.sh/registered"));
    }),
    ("LabelsMissing", |c, _| c.node["metadata"]["labels"]["topology.kubernetes.io/zone"] = json!("")),
    ("LabelsMissing", |c, _| {
        drop(c.node["metadata"]["labels"].as_object_mut().unwrap().remove("topology.kubernetes.io/region"));
    }),
    ("LabelsMissing", |c, _| {
        drop(c.node["metadata"]["labels"].as_object_mut().unwrap().remove("node.kubernetes.io/instance-type"));
    }),
    ("NoInternalIP", |c, _| c.node["status"]["addresses"] = json!([{ "type": "Hostname", "address": NODE }])),
    ("NoInternalIP", |c, _| c.node["status"]["addresses"][0]["address"] = json!("10.0.0")),
    ("NoInternalIP", |c, _| c.node["status"]["addresses"][0]["address"] = json!("169.254.1.1")),
    ("NoInternalIP", |c, _| c.node["status"]["addresses"][0]["address"] = json!("::")),
    ("OtherFamily", |c, _| {
        c.node["status"]["addresses"][0]["address"] = json!("2600:1f18::1");
        c.others.push(untainted(node("other", "9")));
    }),
    ("OtherFamily", |c, _| {
        let mut other = untainted(node("other", "9"));
        other["status"]["addresses"][0]["address"] = json!("2600:1f18::1");
        c.others.push(other);
    }),
    ("OtherFamily", |c, _| {
        c.others.push(untainted(node("freed-by-hand", "8")));
        for (name, id) in [("other", "9"), ("another", "10")] {
            let mut other = untainted(node(name, id));
            other["status"]["addresses"][0]["address"] = json!("2600:1f18::1");
            c.others.push(other);
        }
    }),
    ("NotReady", |c, _| c.node["status"]["conditions"][0]["status"] = json!("Unknown")),
    ("NotReady", |c, _| c.node["status"]["conditions"] = json!([])),
    ("NoHeartbeat", |c, _| c.node["status"]["conditions"][0]["lastHeartbeatTime"] = json!(stamp(-11))),
    ("NoHeartbeat", |c, _| c.node["status"]["conditions"][0]["lastHeartbeatTime"] = json!(null)),
    ("Deleting", |c, _| c.node["metadata"]["deletionTimestamp"] = json!(stamp(-1))),
    ("Deleting", |c, _| c.claim["metadata"]["deletionTimestamp"] = json!(stamp(-1))),
    ("ShutDown", |c, _| c.node["spec"]["taints"][0]["key"] = json!("node.cloudprovider.kubernetes.io/shutdown")),
    ("Disrupted", |c, _| c.node["spec"]["taints"][0]["key"] = json!("karpenter.sh/disrupted")),
    ("Disrupted", |c, _| c.node["spec"]["taints"][0]["key"] = json!("karpenter.sh/rebooting")),
    ("Disrupted", |c, _| c.node["spec"]["taints"][0]["key"] = json!("ToBeDeletedByClusterAutoscaler")),
    ("Disrupted", |c, _| c.node["spec"]["taints"][0]["key"] = json!("aws-node-termination-handler/spot-itn")),
    ("Cordoned", |c, _| c.node["spec"]["unschedulable"] = json!(true)),
    ("PutBack", |_, d| say(&mut d[0], "False", PUT_BACK, -2000)),
    ("BreakerOpen", |_, d| d.push(elsewhere("False", PUT_BACK, -60))),
    ("ManyNodes", |c, _| c.others.extend((10..15).map(|n| node(&format!("other-{n}"), &n.to_string())))),
    ("TooRecent", |c, d| say(&mut d[0], "False", "NotReady", 1 - c.wait())),
    ("TooRecent", |_, d| d[0].status.as_mut().unwrap().conditions.retain(|c| c.type_ != CONDITION)),
    ("TooRecent", |c, _| c.node["metadata"]["managedFields"][0]["time"] = json!(stamp(1 - c.wait()))),
    // One Node in all: the share allows a single removal.
    ("BudgetSpent", |_, d| d.push(elsewhere("True", REMOVED, -59))),
    ("BudgetSpent", |_, d| d.push(elsewhere("Unknown", "NoAnswer", -59))),
    ("BudgetSpent", |c, _| c.limits.budget = 0),
];

#[test]
fn each_guard_refuses_when_it_alone_is_broken_and_says_why() {
    let only = |reason: &str| guard::ALL.iter().find(|guard| guard.reason == reason).unwrap().only;
    let broken =
        BOTH.into_iter().flat_map(|cluster| BROKEN.iter().map(move |(reason, broken)| (cluster(), *reason, broken)));
    for (mut cluster, reason, broken) in
        broken.filter(|(cluster, reason, _)| only(reason).is_none_or(|only| only == cluster.opt_in))
    {
        let mut diagnoses = vec![cluster.diagnosis()];
        broken(&mut cluster, &mut diagnoses);
        let steps = cluster.look(&diagnoses);
        let [Step::Say(remark)] = steps.as_slice() else { panic!("{:?}, {reason}: {steps:?}", cluster.opt_in) };
        assert_eq!((remark.reason, remark.result), (reason, RemovalOutcome::Refused), "{remark:?}");
        assert!(remark.message.contains(NODE) && remark.message.len() > NODE.len() + 60, "{remark:?}");
    }
}

fn stale(cluster: &mut Cluster, watched: Watched) {
    cluster.doubts.not_current.insert(watched, "nodepools: not permitted".to_owned());
}

/// The table of what each guard reads is complete: a guard never agrees while something that it reads is stale, in what
/// is announced already too.
#[test]
fn nothing_is_removed_while_something_that_a_guard_reads_is_not_current() {
    let read: std::collections::BTreeSet<Watched> = guard::ALL.iter().flat_map(|guard| guard.reads).copied().collect();
    let all = [Input::Nodes, Input::NodeClaims, Input::NodePools].map(Watched::Input);
    assert_eq!(read, all.into_iter().chain([Watched::Diagnoses]).collect());
    let of_no_input = guard::ALL.iter().filter(|guard| guard.reads.is_empty()).map(|guard| guard.reason);
    assert_eq!(of_no_input.collect::<Vec<_>>(), ["InputNotCurrent", "ClockInDoubt"]);
    for watched in read {
        for cluster in BOTH {
            let mut cluster = cluster();
            let mut announced = cluster.diagnosis();
            say(&mut announced, "False", REMOVING, -1);
            assert_eq!(reasons(&cluster.look(&[announced.clone()])), ["Remove"]);
            stale(&mut cluster, watched);
            assert_eq!(reasons(&cluster.look(&[announced])), ["InputNotCurrent"], "{watched:?}");
        }
    }
    let mut elsewhere = good();
    stale(&mut elsewhere, Input::Events.into());
    assert_eq!(reasons(&elsewhere.look(&[elsewhere.diagnosis()])), [REMOVING], "no guard reads Events");
}

#[test]
fn a_removal_rests_on_the_claim_and_the_pool_as_they_were_judged() {
    let mut cluster = good();
    let steps = cluster.outcome();
    let [Step::Remove(removal)] = steps.as_slice() else { panic!("{steps:?}") };
    let fresh = |input, object: &Value| Object::from_value(input, object.clone()).unwrap();
    let [of_claim, of_pool] = removal.rests_on.as_slice() else { panic!("{removal:?}") };
    assert_eq!((of_claim.input, of_pool.input), (Input::NodeClaims, Input::NodePools));
    // What Karpenter counts in the status of a NodePool says nothing to a guard.
    cluster.pool["status"] = json!({ "nodes": 7 });
    assert_eq!(of_pool.stands(Some(&fresh(Input::NodePools, &cluster.pool))), Ok(()));
    assert_eq!(of_claim.stands(Some(&fresh(Input::NodeClaims, &cluster.claim))), Ok(()));
    cluster.pool["metadata"]["annotations"] = json!({ "nodewhy.dev/pause-remediation": "true" });
    let paused = of_pool.stands(Some(&fresh(Input::NodePools, &cluster.pool)));
    assert!(paused.as_ref().is_err_and(|why| why.contains("paused")), "{paused:?}");
    cluster.claim["metadata"]["deletionTimestamp"] = json!(stamp(-1));
    assert!(of_claim.stands(Some(&fresh(Input::NodeClaims, &cluster.claim))).is_err());
    assert!(of_claim.stands(None).is_err() && of_pool.stands(None).is_err());
}

#[test]
fn what_is_not_current_just_before_the_patch_is_a_refusal_and_tried_again_later() {
    let mut run = Loop::start(good());
    let removal = run.remove(0);
    let remark = run.remediation.done(&removal, PatchAnswer::NotCurrent("403".to_owned()), at(0)).unwrap();
    assert_eq!((remark.reason, remark.result), ("InputNotCurrent", RemovalOutcome::Refused));
    assert_eq!(run.look(0), []);
}

#[test]
fn every_guard_is_broken_once_and_stands_in_the_docs() {
    let docs = include_str!("../../../../docs/remediation.md");
    for guard in guard::ALL {
        assert!(BROKEN.iter().any(|(reason, _)| reason == &guard.reason), "{} is never broken", guard.reason);
        let row = format!("| `{}` | {} | {} |", guard.reason, guard.demands, guard.only.map_or("both", OptIn::cause));
        assert!(docs.contains(&row), "docs/remediation.md is without\n{row}");
    }
}

/// Forged writes of an identity that is not the cloud controller and may not remove taints. SECURITY.md has the table.
#[test]
fn whoever_may_not_write_taints_gets_none_removed_by_a_forgery() {
    let unsigned = |c: &mut Cluster, by: &str| {
        c.node["metadata"]["labels"][FINGERPRINT] = json!("m6i.large");
        let field = json!({ "manager": by, "time": stamp(-59), "fieldsV1": {
            "f:metadata": { "f:labels": { (format!("f:{FINGERPRINT}")): {} } },
        } });
        c.node["metadata"]["managedFields"][1] = field;
    };
    let no_controller = || {
        let mut cluster = never_initialized();
        cluster.limits.stale = Mode::On;
        cluster
    };
    // An identity that edits NodePools: the label comes through the template, the NodeClaim and the kubelet.
    let mut by_pool = no_controller();
    unsigned(&mut by_pool, "kubelet");
    by_pool.claim["metadata"]["labels"][FINGERPRINT] = json!("m6i.large");
    assert_eq!(reasons(&by_pool.look(&[by_pool.diagnosis()])), ["NotProven"]);
    // The same without a known writer.
    by_pool.node["metadata"]["managedFields"] = json!([]);
    assert_eq!(reasons(&by_pool.look(&[by_pool.diagnosis()])), ["NotProven"]);
    // An identity that labels Nodes.
    let mut by_label = no_controller();
    unsigned(&mut by_label, "kubectl-label");
    assert_eq!(reasons(&by_label.look(&[by_label.diagnosis()])), ["NotProven"]);
    // An identity that creates Events.
    let mut by_event = no_controller();
    by_event.events.push(json!({
        "metadata": { "name": "forged", "namespace": "default" }, "reason": "Synced", "message": "Node synced \
            successfully",
        "involvedObject": { "kind": "Node", "name": NODE, "uid": "1" }, "source": { "component": "cloud-node-controller" },
        "lastTimestamp": stamp(-59),
    }));
    assert_eq!(by_event.diagnosis().status.unwrap().cause, CAUSE);
    assert_eq!(reasons(&by_event.look(&[by_event.diagnosis()])), ["NotProven"]);
    // An identity that writes NodeDiagnoses: the guards look at the Node.
    let by_diagnosis = no_controller();
    let mut forged = by_diagnosis.diagnosis();
    forged.status.as_mut().unwrap().cause = CAUSE.into();
    assert_eq!(reasons(&by_diagnosis.look(&[forged])), ["NoFingerprint"]);
}

/// Just inside of each limit.
#[test]
fn what_a_guard_does_not_mean_passes() {
    let passes: &[Break] = &[
        |c, _| c.node["metadata"]["annotations"][crate::api::PAUSE_ANNOTATION] = json!("false"),
        |c, _| c.node["status"]["conditions"][0]["lastHeartbeatTime"] = json!(stamp(-10)),
        |c, _| c.node["status"]["addresses"][0]["address"] = json!("2600:1f18::1"),
        |c, _| c.others.push(untainted(node("other", "9"))),
        |c, _| c.node["spec"]["taints"][0]["key"] = json!("node.kubernetes.io/memory-pressure"),
        |c, d| say(&mut d[0], "False", "NotReady", -c.wait()),
        |c, _| c.node["metadata"]["managedFields"][0]["time"] = json!(stamp(-c.wait())),
        |c, _| c.others.extend((10..14).map(|n| node(&format!("other-{n}"), &n.to_string()))),
        |c, _| {
            c.others.extend((10..60).map(|n| {
                let mut young = node(&format!("other-{n}"), &n.to_string());
                young["metadata"]["creationTimestamp"] = json!(stamp(-1));
                young
            }));
        },
        |_, d| d.push(elsewhere("True", REMOVED, -61)),
        |_, d| d.push(elsewhere("False", PUT_BACK, -24 * 60 - 1)),
        |_, d| d.push(elsewhere("False", "NotPermitted", -5)),
    ];
    let changed =
        BOTH.into_iter().flat_map(|cluster| passes.iter().enumerate().map(move |(n, change)| (cluster(), n, change)));
    for (mut cluster, n, change) in changed {
        let mut diagnoses = vec![cluster.diagnosis()];
        change(&mut cluster, &mut diagnoses);
        assert_eq!(reasons(&cluster.look(&diagnoses)), [REMOVING], "{:?}, change {n}", cluster.opt_in);
    }
}

#[test]
fn nothing_is_done_or_said_where_it_is_off_or_the_cause_is_another() {
    for cluster in BOTH {
        let mut cluster = cluster();
        let diagnoses = [cluster.diagnosis()];
        assert_eq!(diagnoses[0].status.as_ref().unwrap().cause, cluster.opt_in.cause());
        for mode in [Mode::Off, Mode::DryRun, Mode::On] {
            // Only the other is asked for.
            cluster.limits = match cluster.opt_in {
                OptIn::Stale => Limits { uninitialized: mode, ..Limits::default() },
                OptIn::Uninitialized => Limits { stale: mode, ..Limits::default() },
            };
            assert_eq!(cluster.look(&diagnoses), [], "{:?} {mode:?}", cluster.opt_in);
            assert!(Remediation::new(cluster.limits).kept(diagnoses.iter(), at(0)).is_empty());
        }
    }
    let mut ended = good().diagnosis();
    ended.status.as_mut().unwrap().outcome = Some(Ending::Recovered);
    let mut other = good().diagnosis();
    other.status.as_mut().unwrap().cause = "KubeletNotReady".into();
    let mut elsewhere = good().diagnosis();
    elsewhere.spec.node.as_mut().unwrap().uid = "an earlier Node of the name".to_owned();
    assert_eq!(good().look(&[ended, other, elsewhere]), []);
}

/// The cloud controller, whose labels a guard would refuse, or somebody by hand.
#[test]
fn nothing_is_said_of_a_taint_that_somebody_else_has_removed() {
    for cluster in BOTH {
        let mut cluster = cluster();
        let open = [cluster.diagnosis()];
        cluster.node = untainted(cluster.node);
        cluster.node["metadata"]["labels"][FINGERPRINT] = json!("m6i.large");
        assert_eq!(cluster.look(&open), [], "{:?}", cluster.opt_in);
    }
}

#[test]
fn the_budget_is_the_smaller_of_number_and_share_but_never_less_than_one_in_a_small_cluster() {
    let limits = Limits::default();
    assert_eq!([1, 19, 20, 60, 100, 100_000].map(|nodes| limits.budget(nodes)), [1, 1, 1, 3, 5, 5]);
    // Seven Nodes at once stop at the budget, whoever comes first.
    let mut cluster = good();
    cluster.limits = Limits { stale: Mode::On, many: 100, ..Limits::default() };
    let mut diagnoses = vec![cluster.diagnosis()];
    for n in 10..70 {
        let mut fine = node(&format!("other-{n}"), &n.to_string());
        if n >= 16 {
            fine["spec"]["taints"] = json!([]);
        }
        cluster.others.push(fine);
        let mut claim = cluster.claim.clone();
        (claim["metadata"]["name"], claim["metadata"]["uid"]) = (json!(format!("claim-{n}")), json!(format!("c{n}")));
        claim["status"]["providerID"] = json!(format!("aws:///eu-west-1a/i-{n}"));
        claim["status"]["nodeName"] = json!(format!("other-{n}"));
        cluster.claims.push(claim);
        let mut diagnosis = cluster.diagnosis();
        diagnosis.metadata.name = Some(format!("claim-{n}"));
        diagnosis.spec.node = Some(crate::api::NamedUid { name: format!("other-{n}"), uid: n.to_string() });
        diagnoses.push(diagnosis);
    }
    let steps = cluster.look(&diagnoses[..7]);
    assert_eq!(reasons(&steps).iter().filter(|r| **r == REMOVING).count(), 3, "5 % of 61 Nodes");
    assert_eq!(reasons(&steps).iter().filter(|r| **r == "BudgetSpent").count(), 4);
}

/// A loop as the operator's, with one diagnosis.
struct Loop {
    cluster: Cluster,
    diagnosis: NodeDiagnosis,
    remediation: Remediation,
}

impl Loop {
    fn start(cluster: Cluster) -> Self {
        Self { diagnosis: cluster.diagnosis(), remediation: Remediation::new(cluster.limits), cluster }
    }

    fn look(&mut self, minute: i64) -> Vec<Step> {
        self.remediation.look(
            &self.cluster.cluster(),
            &[&self.diagnosis].into_iter(),
            |_| true,
            &Doubts::default(),
            at(minute),
        )
    }

    /// Announced, where nobody only tries, and then ordered.
    fn remove(&mut self, minute: i64) -> Removal {
        let mut steps = self.look(minute);
        if reasons(&steps) == [REMOVING] {
            let since = remediated(&self.diagnosis).unwrap().last_transition_time;
            say(&mut self.diagnosis, "False", REMOVING, (since - at(0)).num_minutes());
            steps = self.look(minute);
        }
        match steps.as_slice() {
            [Step::Remove(removal)] => removal.clone(),
            other => panic!("{other:?}"),
        }
    }

    fn done(&mut self, removal: &Removal, answer: PatchAnswer, minute: i64) -> Remark {
        let remark = self.remediation.done(removal, answer, at(minute)).unwrap();
        say(&mut self.diagnosis, remark.result.status(), remark.reason, minute);
        remark
    }
}

#[test]
fn a_conflict_is_judged_again_from_the_new_node_and_not_before() {
    let mut run = Loop::start(good());
    let removal = run.remove(0);
    assert_eq!(run.look(0), [], "one at a time");
    assert_eq!(run.done(&removal, PatchAnswer::Conflict, 0).reason, "Conflict");
    run.diagnosis = run.cluster.diagnosis();
    assert_eq!(run.look(1), [], "the same resourceVersion is not tried again");
    run.cluster.node["metadata"]["resourceVersion"] = json!("101");
    run.cluster.node["spec"]["unschedulable"] = json!(true);
    assert_eq!(reasons(&run.look(1)), ["Cordoned"], "the new Node is judged, not the old one retried");
    run.cluster.node["spec"]["unschedulable"] = json!(false);
    run.cluster.node["spec"]["taints"].as_array_mut().unwrap().swap(0, 1);
    let again = run.remove(1);
    assert_eq!(again.version, "101");
    assert_eq!(serde_json::to_value(&again.patch).unwrap()[2]["path"], "/spec/taints/0");
}

#[test]
fn what_is_announced_again_after_a_conflict_is_news_to_the_api_server() {
    let announced = |steps: Vec<Step>| match steps.as_slice() {
        [Step::Say(remark)] if remark.reason == REMOVING => remark.message.clone(),
        other => panic!("{other:?}"),
    };
    let mut run = Loop::start(good());
    let first = announced(run.look(0));
    let removal = run.remove(0);
    run.done(&removal, PatchAnswer::Conflict, 0);
    run.diagnosis = run.cluster.diagnosis();
    run.cluster.node["metadata"]["resourceVersion"] = json!("101");
    assert_ne!(announced(run.look(0)), first);
}

#[test]
fn a_writer_that_gives_no_name_is_called_so() {
    let mut node = good().node;
    node["metadata"]["managedFields"] =
        json!([{ "manager": "unknown", "time": stamp(1), "fieldsV1": { "f:spec": { "f:taints": {} } } }]);
    let node: Node = serde_json::from_value(node).unwrap();
    let (said, _) = stamp::put_back(&node, node.taint(UNINITIALIZED_TAINT).unwrap());
    assert!(said.ends_with("re-added by a client without a name."), "{said}");
}

#[test]
fn a_taint_that_comes_back_opens_the_breaker_and_names_who_put_it_back() {
    let mut run = Loop::start(good());
    let removal = run.remove(0);
    let remark = run.done(&removal, PatchAnswer::Done("105".to_owned()), 0);
    assert_eq!((remark.result, remark.reason), (RemovalOutcome::Removed, REMOVED));
    assert!(remark.message.contains("before: dedicated=x:NoSchedule, node.cloudprovider"), "{}", remark.message);
    assert!(remark.message.ends_with("after: dedicated=x:NoSchedule."), "{}", remark.message);
    // The watch is behind: what it shows is the Node before the removal.
    run.cluster.node["metadata"]["resourceVersion"] = json!("99");
    assert_eq!(run.look(0), []);
    run.cluster.node["metadata"]["resourceVersion"] = json!("1010");
    run.cluster.node["metadata"]["managedFields"] = json!([
        { "manager": "nodewhy", "time": stamp(1), "fieldsV1": { "f:spec": { "f:taints": {} } } },
        { "manager": "node-labeler", "time": stamp(1), "fieldsV1": { "f:spec": { "f:taints": {} } } },
    ]);
    // Ended or not: a Node that Karpenter calls usable has no open diagnosis any more.
    run.diagnosis.status.as_mut().unwrap().outcome = Some(Ending::Recovered);
    let steps = run.look(1);
    let [Step::Say(remark)] = steps.as_slice() else { panic!("{steps:?}") };
    assert_eq!((remark.result, remark.reason), (RemovalOutcome::PutBack, PUT_BACK));
    assert!(remark.message.contains("re-added by node-labeler"), "{}", remark.message);
    // From then on nothing is removed anywhere.
    let mut diagnoses = vec![good().diagnosis()];
    say(&mut run.diagnosis, remark.result.status(), remark.reason, -1);
    run.diagnosis.metadata.name = Some("the first".to_owned());
    diagnoses.push(run.diagnosis);
    let steps = good().look(&diagnoses);
    let [Step::Say(remark)] = steps.as_slice() else { panic!("{steps:?}") };
    assert_eq!(remark.reason, "BreakerOpen");
    assert!(remark.message.contains("said PutBack"), "{}", remark.message);
}

/// All NodeDiagnoses were deleted while nodewhy did not run; what it did is on the Nodes.
#[test]
fn whoever_deletes_diagnoses_gets_no_second_removal_no_new_budget_and_no_closed_breaker() {
    let stamped = |mut node: Value, stamp: &str| {
        node["metadata"]["annotations"][REMOVED_ANNOTATION] = json!(stamp);
        node
    };
    for cluster in BOTH {
        // Never twice: however long ago it was, and whatever stands in the annotation.
        for when in [stamp(-10), stamp(-100_000), stamp(100), String::new(), "yesterday".to_owned()] {
            let mut again = cluster();
            again.node = stamped(again.node, &when);
            let steps = again.look(&[again.diagnosis()]);
            let [Step::Say(remark)] = steps.as_slice() else { panic!("{steps:?}") };
            assert_eq!((remark.result, remark.reason), (RemovalOutcome::PutBack, PUT_BACK), "{when}");
            assert!(remark.message.contains("re-added by node-labeler"), "{}", remark.message);
            // And once that is said, a guard refuses.
            let mut diagnosis = again.diagnosis();
            say(&mut diagnosis, "False", PUT_BACK, -2000);
            assert_eq!(reasons(&again.look(&[diagnosis])), [PUT_BACK], "{when}");
        }
        // The budget of one: spent on a Node of which no diagnosis tells, within the window and not before it.
        for (when, reason) in [(-59, "BudgetSpent"), (-61, REMOVING)] {
            let mut spent = cluster();
            spent.others.push(stamped(untainted(node("other", "9")), &stamp(when)));
            assert_eq!(reasons(&spent.look(&[spent.diagnosis()])), [reason]);
        }
        // A removal that both tell of is one.
        let mut both = cluster();
        both.limits = Limits { budget: 2, share: 100, ..both.limits };
        both.others.push(stamped(untainted(node("other", "9")), &stamp(-1)));
        let mut told = elsewhere("True", REMOVED, -1);
        told.status.as_mut().unwrap().outcome = Some(Ending::Recovered);
        told.spec.node = Some(crate::api::NamedUid { name: "other".to_owned(), uid: "9".to_owned() });
        assert_eq!(reasons(&both.look(&[both.diagnosis(), told.clone()])), [REMOVING]);
        // The breaker: the taint of another Node came back, and no diagnosis tells of it.
        let written = |minute: i64| {
            let mut back = stamped(node("other", "9"), &stamp(-3000));
            back["metadata"]["managedFields"][0]["time"] = json!(stamp(minute));
            back
        };
        for (minute, reason) in [(-23 * 60, "BreakerOpen"), (-25 * 60, REMOVING)] {
            let mut broken = cluster();
            broken.others.push(written(minute));
            assert_eq!(reasons(&broken.look(&[broken.diagnosis()])), [reason]);
        }
        // Where one does, its time counts: the list is written for other reasons too.
        let mut old = cluster();
        old.others.push(written(-1));
        say(&mut told, "False", PUT_BACK, -25 * 60);
        assert_eq!(reasons(&old.look(&[old.diagnosis(), told])), [REMOVING]);
    }
}

#[test]
fn a_taint_that_came_back_while_nobody_looked_is_seen_after_the_restart() {
    let mut diagnosis = good().diagnosis();
    say(&mut diagnosis, "True", REMOVED, -300);
    assert_eq!(reasons(&good().look(&[diagnosis])), [PUT_BACK]);
}

/// What the alert looks at.
#[test]
fn what_is_kept_is_counted_by_reason_for_as_long_as_it_waits_or_stops_everything() {
    let remediation = Remediation::new(good().limits);
    let ended = |mut diagnosis: NodeDiagnosis| {
        diagnosis.status.as_mut().unwrap().outcome = Some(Ending::Recovered);
        diagnosis
    };
    let diagnoses = [
        elsewhere("False", "ManyNodes", -1),
        elsewhere("False", "ManyNodes", -2),
        ended(elsewhere("False", "BreakerOpen", -1)),
        elsewhere("True", REMOVED, -1),
        ended(elsewhere("False", PUT_BACK, -1)),
        ended(elsewhere("False", PUT_BACK, -24 * 60)),
        never_initialized().diagnosis(),
    ];
    let kept = remediation.kept(diagnoses.iter(), at(0));
    assert_eq!(kept, BTreeMap::from([("ManyNodes".to_owned(), 2), (PUT_BACK.to_owned(), 1)]));
}

#[test]
fn what_is_not_permitted_is_said_and_tried_again_later() {
    let mut run = Loop::start(good());
    let removal = run.remove(0);
    let remark = run.done(&removal, PatchAnswer::NotPermitted("nodes is forbidden".to_owned()), 0);
    assert_eq!((remark.result, remark.reason), (RemovalOutcome::Rejected, "NotPermitted"));
    assert!(remark.message.contains("manifests/components/remediation"));
    say(&mut run.diagnosis, "False", "NotPermitted", -30);
    assert_eq!(run.look(0), []);
    run.remove(1);
}

#[test]
fn a_dry_run_says_what_it_would_do_once() {
    let mut cluster = good();
    cluster.limits.stale = Mode::DryRun;
    let mut run = Loop::start(cluster);
    let removal = run.remove(0);
    assert!(removal.dry_run);
    let remark = run.done(&removal, PatchAnswer::Done("100".to_owned()), 0);
    assert_eq!((remark.result, remark.reason, remark.result.status()), (RemovalOutcome::DryRun, DRY_RUN, "False"));
    say(&mut run.diagnosis, "False", DRY_RUN, -30);
    run.cluster.node["metadata"]["resourceVersion"] = json!("101");
    assert_eq!(run.look(1), []);
}

#[test]
fn a_newer_resource_version_has_more_digits_or_greater_ones() {
    assert!(is_newer("101", "100") && is_newer("1000", "999"));
    assert!(!is_newer("99", "100") && !is_newer("100", "100"));
}

#[test]
fn what_was_done_outlives_a_verdict_and_what_was_refused_goes_with_its_cause() {
    let mut cluster = good();
    let mut triage = Triage::new(Thresholds::default(), Keep::default());
    triage.take(Change::Diagnosis(Box::new(cluster.diagnosis())), at(0));
    triage.start();
    triage.lead();
    let told = |triage: &mut Triage, cluster: &Cluster, minute: i64| {
        let objects =
            [(Input::NodePools, &cluster.pool), (Input::Nodes, &cluster.node), (Input::NodeClaims, &cluster.claim)];
        for (input, object) in objects {
            triage.take(Change::Applied(Box::new(Object::from_value(input, object.clone()).unwrap())), at(minute));
        }
        for input in [Input::Nodes, Input::NodeClaims, Input::NodePools, Input::Events] {
            triage.mark(input, Availability::Read);
        }
        triage.look(at(minute));
    };
    let shown = |triage: &Triage| {
        let diagnosis = triage.diagnoses().next().unwrap();
        let status = diagnosis.status.as_ref().unwrap();
        let done = remediated(diagnosis).map(|c| (c.status.to_string(), c.reason.to_string(), c.last_transition_time));
        (status.cause.to_string(), status.outcome, done)
    };
    let remark = |result, reason| Remark { diagnosis: CLAIM.to_owned(), result, reason, message: String::new() };
    told(&mut triage, &cluster, 0);
    assert!(triage.note(&remark(RemovalOutcome::Refused, "NotReady"), at(1)).is_some());
    assert!(triage.note(&remark(RemovalOutcome::Refused, "NotReady"), at(2)).is_none(), "said once");
    assert!(!triage.look(at(2)).is_empty(), "and written");
    told(&mut triage, &cluster, 3);
    // The status has not changed since the verdict was first acted on, so neither has its time.
    assert_eq!(shown(&triage), (CAUSE.to_owned(), None, Some(("False".to_owned(), "NotReady".to_owned(), at(-30)))));

    let fingerprint = cluster.node["metadata"]["labels"].as_object_mut().unwrap().remove(FINGERPRINT).unwrap();
    told(&mut triage, &cluster, 4);
    told(&mut triage, &cluster, 6);
    assert_eq!(shown(&triage), ("CloudControllerNeverInitialized".to_owned(), None, None));
    cluster.node["metadata"]["labels"][FINGERPRINT] = fingerprint;
    told(&mut triage, &cluster, 7);
    told(&mut triage, &cluster, 9);
    assert_eq!(shown(&triage), (CAUSE.to_owned(), None, None), "the clock starts anew");

    triage.note(&remark(RemovalOutcome::Removed, REMOVED), at(11));
    cluster.node["spec"]["taints"] = json!([]);
    cluster.claim["status"]["conditions"][2] =
        json!({ "type": "Initialized", "status": "True", "lastTransitionTime": stamp(11) });
    told(&mut triage, &cluster, 12);
    let removed = Some(("True".to_owned(), REMOVED.to_owned(), at(11)));
    assert_eq!(shown(&triage), (CAUSE.to_owned(), Some(Ending::Recovered), removed.clone()));
    // It falls ill again, of the same or of something else: that the taint was removed once stays known.
    cluster.node["status"]["conditions"][0]["status"] = json!("False");
    cluster.node["status"]["conditions"][0]["lastTransitionTime"] = json!(stamp(13));
    told(&mut triage, &cluster, 65);
    told(&mut triage, &cluster, 66);
    let (cause, outcome, done) = shown(&triage);
    assert_ne!(cause, CAUSE);
    assert_eq!((outcome, done), (None, removed));
}

#[test]
fn nothing_is_sent_before_its_announcement_is_written() {
    let cluster = good();
    let mut diagnosis = cluster.diagnosis();
    say(&mut diagnosis, "False", REMOVING, -30);
    let look = |is_written: bool| {
        Remediation::new(cluster.limits).look(
            &cluster.cluster(),
            &[&diagnosis].into_iter(),
            |_| is_written,
            &Doubts::default(),
            at(0),
        )
    };
    assert_eq!(look(false), []);
    assert_eq!(reasons(&look(true)), ["Remove"]);
}

/// The replica that announced it is dead. Nothing shows whether it sent the patch.
#[test]
fn what_was_announced_is_counted_and_taken_up_by_the_next_replica() {
    let mut cluster = good();
    let mut announced = cluster.diagnosis();
    say(&mut announced, "False", REMOVING, -300);
    // Not sent: it is sent now, and only if the guards still agree. It takes no second place in the budget of one.
    assert_eq!(reasons(&cluster.look(&[announced.clone()])), ["Remove"]);
    assert_eq!(reasons(&cluster.look(&[cluster.diagnosis(), elsewhere("False", REMOVING, -300)])), ["BudgetSpent"]);
    cluster.node["spec"]["unschedulable"] = json!(true);
    assert_eq!(reasons(&cluster.look(&[announced.clone()])), ["Cordoned"]);
    // Sent: it counts from now on as what it is, whatever the verdict says by then.
    cluster.node["spec"]["taints"] = json!([]);
    announced.status.as_mut().unwrap().outcome = Some(Ending::Recovered);
    let steps = cluster.look(&[announced]);
    let [Step::Say(remark)] = steps.as_slice() else { panic!("{steps:?}") };
    assert_eq!((remark.result, remark.reason), (RemovalOutcome::Removed, REMOVED));
}

#[test]
fn what_was_not_sent_because_another_replica_leads_is_free_to_be_judged_again() {
    let mut run = Loop::start(good());
    let removal = run.remove(0);
    assert_eq!(run.remediation.done(&removal, PatchAnswer::Void, at(0)), None);
    run.remove(1);
}
