//! Whose log a verdict leads to: the fewest that can tell, and nobody's where nothing is open.

use engine::api::judged::JudgedBy;
use engine::api::{Confidence, NodeDiagnosis};
use engine::case::judging::Judging;
use engine::case::stage::Thresholds;
use engine::cluster_state::ClusterState;
use engine::diagnose::log_source::{AgentContainer, AgentLog, LogSource, of_survey};
use engine::diagnose::survey::Survey;
use engine::rules;
use nodewhy::ingest::dump::{Summary, load_from};
use serde_json::{Value, json};
use testkit::objects::{examples, over_cluster};

const NOW: &str = "2026-01-15T12:00:00Z";
const NODE: &str = "ip-10-0-2-20.eu-west-1.compute.internal";

fn judged(objects: &[Value]) -> (Vec<LogSource>, Vec<NodeDiagnosis>) {
    let mut state = ClusterState::default();
    for object in objects {
        load_from("objects", object.to_string().as_bytes(), &mut state, &mut Summary::default());
    }
    let (now, thresholds) = (NOW.parse().expect("a time"), Thresholds::default());
    let survey = Survey::of(Judging::new(&state, now, &thresholds), JudgedBy::Given);
    (of_survey(Judging::new(&state, now, &thresholds), &survey, 10), survey.diagnoses)
}

/// A cause's example, with a network plugin whose container is as told, and another agent that does not work either.
fn of_plugin(title: &str, status: &Value) -> Vec<LogSource> {
    let example =
        examples("CniNotReady").into_iter().find(|example| example.title.contains(title)).expect("an example");
    let pod = |name: &str, set: &str| {
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "kube-system", "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": set, "uid": "d"}]},
            "spec": {"nodeName": NODE},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-15T11:01:30Z"}],
                "containerStatuses": [status]}})
    };
    let mut objects: Vec<Value> = over_cluster(&example.objects).into_iter().filter(|o| o["kind"] != "Pod").collect();
    objects.extend([
        pod("aws-node-x1", "aws-node"),
        pod("nvidia-x1", "nvidia-device-plugin"),
        pod("datadog-x1", "datadog"),
    ]);
    judged(&objects).0
}

fn container(waiting: Option<&str>, ended: Option<i64>) -> Value {
    json!({"name": "c", "ready": false, "restartCount": 3,
        "state": waiting.map_or(json!({"running": {}}), |reason| json!({"waiting": {"reason": reason}})),
        "lastState": ended.map_or(json!({}), |code| json!({"terminated": {"reason": "Error", "exitCode": code}}))})
}

fn aws_node(runs: bool, has_previous: bool) -> Vec<LogSource> {
    let containers = vec![AgentContainer { name: "c".to_owned(), runs, has_previous }];
    let (namespace, pod) = ("kube-system".to_owned(), "aws-node-x1".to_owned());
    vec![LogSource::Agent(AgentLog { namespace, pod, program: Some("vpc-cni"), containers })]
}

#[test]
fn the_pod_that_the_chain_names_and_of_its_containers_what_has_logged() {
    const CRASHES: &str = "Example: aws-node crashes";
    // The device plugin fails as well, and the verdict is not about it.
    assert_eq!(of_plugin(CRASHES, &container(Some("CrashLoopBackOff"), Some(1))), aws_node(false, false));
    assert_eq!(of_plugin(CRASHES, &container(None, Some(1))), aws_node(true, true));
    assert_eq!(of_plugin(CRASHES, &container(None, None)), aws_node(true, false));
    // What has never run has no log.
    assert_eq!(of_plugin(CRASHES, &container(Some("ImagePullBackOff"), None)), []);
}

#[test]
fn a_class_or_claim_that_launches_nothing_leads_to_karpenter_and_only_there() {
    let of = |cause: &str, title: &str| {
        let example = examples(cause).into_iter().find(|example| example.title.starts_with(title)).expect("an example");
        judged(&over_cluster(&example.objects)).0
    };
    let karpenter = [LogSource::Karpenter { namespace: "kube-system".to_owned() }];
    assert_eq!(of("LaunchFailed", "Example: an error that Karpenter has no reason for"), karpenter);
    assert_eq!(of("LaunchFailed", "Near miss: Karpenter has not come to it"), karpenter);
    assert_eq!(of("LaunchFailed", "Example: the instance profile is gone"), []);
    assert_eq!(of("NodePoolAtItsLimit", "Example"), []);
    assert_eq!(of("KarpenterNotRunning", "Example: a Node that nobody registers"), karpenter);
    assert_eq!(of("KarpenterNotRunning", "Example: on Fargate, and without a role"), []);
}

/// What it leaves out, and why it gets through no round, Karpenter's log alone says: no verdict leads there.
#[test]
fn pods_that_have_waited_for_a_node_pool_of_which_nothing_is_said_lead_to_karpenter() {
    let pod = |made: &str, node: &str, owner: &str| {
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "api-1", "namespace": "shop", "creationTimestamp": made, "ownerReferences": [{"apiVersion": "apps/v1", "kind": owner, "name": "api", "uid": "a"}]},
            "spec": {"nodeName": node},
            "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 \
                nodes are available: 1 Insufficient cpu."}]}})
    };
    let of = |more: &[Value]| {
        let (sources, diagnoses) =
            judged(&over_cluster("").into_iter().chain(more.iter().cloned()).collect::<Vec<_>>());
        assert!(diagnoses.is_empty(), "{diagnoses:#?}");
        sources
    };
    let late = pod("2026-01-15T11:40:00Z", "", "ReplicaSet");
    assert_eq!(of(std::slice::from_ref(&late)), [LogSource::Karpenter { namespace: "kube-system".to_owned() }]);
    assert_eq!(of(&[]), []);
    assert_eq!(of(&[pod("2026-01-15T11:58:30Z", "", "ReplicaSet")]), [], "it is young");
    assert_eq!(of(&[pod("2026-01-15T11:40:00Z", NODE, "ReplicaSet")]), [], "it has a Node");
    assert_eq!(of(&[pod("2026-01-15T11:40:00Z", "", "DaemonSet")]), [], "no machine is made for it");
    let claim = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": "general-7xk2p", "creationTimestamp": "2026-01-15T11:59:00Z", "labels": {"karpenter.sh/nodepool": "general"}},
        "spec": {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}}});
    assert_eq!(of(&[late, claim]), [], "a machine is on its way");
}

/// Over all that any page shows: of pods that wait in vain, and of which no verdict is, there is one log.
#[test]
fn nobodys_log_is_read_where_nothing_is_open() {
    let (mut clusters, mut asked) = (0, 0);
    for rule in rules::ALL {
        for example in examples(rule.cause) {
            let objects: Vec<Value> =
                over_cluster(&example.objects).into_iter().filter(|object| object["kind"] != "MachineLog").collect();
            let waits = objects.iter().any(|object| object["kind"] == "Pod" && object["status"]["phase"] == "Pending");
            let (sources, diagnoses) = judged(&objects);
            // Why Karpenter ends stands in its log alone.
            let open = |d: &NodeDiagnosis| {
                d.cause() == Some("KarpenterNotRunning")
                    || d.status.as_ref().is_some_and(|s| s.confidence != Confidence::Certain)
            };
            let is_open = diagnoses.iter().any(open);
            let of_waiting = waits && matches!(sources.as_slice(), [LogSource::Karpenter { .. }]);
            assert!(is_open || of_waiting || sources.is_empty(), "{}: {}: {sources:?}", rule.cause, example.title);
            clusters += 1;
            asked += usize::from(!sources.is_empty());
        }
    }
    assert!(asked > 10 && asked * 4 < clusters, "{asked} of {clusters}");
}

/// The pod that serves an agent runs on another Node, and only its own log says why it ends.
#[test]
fn a_verdict_that_names_the_pod_behind_an_agent_leads_to_both() {
    let example = examples("CniNotReady").swap_remove(0);
    let pod = |name: &str, owner: Value, node: &str| {
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "kube-system", "ownerReferences": [owner]},
            "spec": {"nodeName": node, "containers": [{"name": "c", "image": "x:1"}]},
            "status": {"phase": "Running", "containerStatuses": [container(Some("CrashLoopBackOff"), Some(1))]}})
    };
    let set = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "cilium", "uid": "d"});
    let replicas = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "cilium-operator-6c", "uid": "r"});
    let mut objects: Vec<Value> = over_cluster(&example.objects).into_iter().filter(|o| o["kind"] != "Pod").collect();
    objects.extend([pod("cilium-x1", set, NODE), pod("cilium-operator-6c-x1", replicas, "another")]);
    let pods: Vec<String> = judged(&objects)
        .0
        .into_iter()
        .filter_map(|source| match source {
            LogSource::Agent(agent) => Some(agent.pod),
            LogSource::Karpenter { .. } => None,
        })
        .collect();
    assert_eq!(pods, ["cilium-x1", "cilium-operator-6c-x1"]);
}
