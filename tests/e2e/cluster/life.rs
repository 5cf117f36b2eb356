//! The life of NodeDiagnoses, and of replicas: incidents, failover, retention, rights. No Karpenter runs here: the
//! tests say what it would.

use crate::cluster::operator::diagnosis;
use futures::{StreamExt, stream};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use testkit::control_plane::recipes::{SOON, ec2_node_class_ref, ec2_nodepool, wait_until};
use testkit::control_plane::{ControlPlane, NEWEST_KARPENTER, Nodewhy};
use testkit::patience::Patience;
use testkit::patience::{patience, settled};
use testkit::programs::monitoring;
use testkit::rights::{needed, needed_for_the_lease};

pub(crate) const ACCOUNT: &str = "system:serviceaccount:nodewhy:nodewhy";
pub(crate) const CAUSE: &str = "UnregisteredTaintMissing";

/// A cluster with Karpenter's kinds, one NodePool, one node class and the component for more than one replica.
pub(crate) fn cluster() -> (ControlPlane, PathBuf) {
    let control_plane = ControlPlane::start();
    control_plane.karpenter_crds(NEWEST_KARPENTER);
    control_plane.ec2nodeclass_crd();
    let rights = control_plane.install("tests/e2e/cluster/ha");
    ec2_nodepool(&control_plane);
    (control_plane, rights)
}

pub(crate) fn claim_names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("general-{number:03}")).collect()
}

pub(crate) fn claims(client: &kube::Client) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &ApiResource::from_gvk(&GroupVersionKind::gvk("karpenter.sh", "v1", "NodeClaim")))
}

/// Claims whose Nodes Karpenter refuses: stuck from the first second.
pub(crate) async fn refuse(client: &kube::Client, names: &[String]) {
    let api = claims(client);
    let now = chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
    let condition = |type_: &str, status: &str, reason: &str| json!({ "type": type_, "status": status, "reason": reason, "message": reason, "lastTransitionTime": now });
    let conditions =
        [condition("Launched", "True", "Launched"), condition("Registered", "False", "UnregisteredTaintNotFound")];
    stream::iter(names)
        .for_each_concurrent(16, |name| {
            let (api, conditions) = (api.clone(), &conditions);
            async move {
                let claim = json!({
                    "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
                    "metadata": { "name": name, "labels": { "karpenter.sh/nodepool": "general" } },
                    "spec": { "nodeClassRef": ec2_node_class_ref(), "requirements": [], "expireAfter": "Never" },
                });
                api.create(&PostParams::default(), &serde_json::from_value(claim).unwrap()).await.unwrap();
                let status = json!({ "status": { "providerID": format!("aws:///eu-west-1a/i-{name}"), "conditions": conditions } });
                api.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
            }
        })
        .await;
}

pub(crate) async fn remove(client: &kube::Client, names: &[String]) {
    let api = claims(client);
    stream::iter(names)
        .for_each_concurrent(16, |name| {
            let api = api.clone();
            async move { drop(api.delete(name, &kube::api::DeleteParams::default()).await.unwrap()) }
        })
        .await;
}

/// The names of the machines that have a verdict.
pub(crate) fn diagnosed(control_plane: &ControlPlane) -> BTreeSet<String> {
    let list = control_plane.get(&["nodediagnoses"]).expect("a list");
    let with_verdict = list["items"].as_array().into_iter().flatten().filter(|d| d["status"]["cause"] == CAUSE);
    let of_machines = with_verdict.filter(|d| d["spec"]["subject"]["kind"] == "NodeClaim");
    of_machines.filter_map(|d| d["metadata"]["name"].as_str().map(str::to_owned)).collect()
}

pub(crate) fn is_ready(nodewhy: &Nodewhy) -> bool {
    nodewhy.get("/readyz").starts_with("HTTP/1.0 200")
}

pub(crate) fn leads(nodewhy: &Nodewhy) -> bool {
    nodewhy.get("/metrics").lines().any(|line| line == "nodewhy_leader 1")
}

pub(crate) fn replica(control_plane: &ControlPlane, rights: &Path, name: &str) -> Nodewhy {
    let nodewhy =
        control_plane.nodewhy(rights, &["--leader-elect", "--lease-namespace=nodewhy", &format!("--identity={name}")]);
    wait_until(SOON, || is_ready(&nodewhy).then_some(()));
    nodewhy
}

/// How often each name was written, by resource and subresource.
pub(crate) fn writes(control_plane: &ControlPlane) -> BTreeMap<(String, String), usize> {
    let mut counts = BTreeMap::new();
    for event in control_plane
        .writes_of(ACCOUNT)
        .iter()
        .filter(|event| event["responseStatus"]["code"].as_i64().is_some_and(|code| code < 300))
    {
        let of = &event["objectRef"];
        let resource =
            [&of["resource"], &of["subresource"]].into_iter().filter_map(Value::as_str).collect::<Vec<_>>().join("/");
        *counts.entry((resource, of["name"].as_str().unwrap_or_default().to_owned())).or_default() += 1;
    }
    counts
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_leader_is_killed_amid_an_incident_the_other_replica_loses_and_doubles_nothing() {
    const CLAIMS: usize = 1000;
    let (control_plane, rights) = cluster();
    let deployment = control_plane.get(&["deployment", "nodewhy", "--namespace=nodewhy"]).expect("it is shipped");
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(deployment["spec"]["replicas"], 2);
    assert_eq!(container["args"][0], "run", "what the base says stays: {container:#}");
    assert_eq!(container["env"][0], json!({ "name": "NODEWHY_LEADER_ELECT", "value": "true" }));

    let first = replica(&control_plane, &rights, "first");
    wait_until(SOON, || leads(&first).then_some(()));
    let second = replica(&control_plane, &rights, "second");
    assert!(!leads(&second), "a standby is ready, and writes nothing");

    let names = claim_names(CLAIMS);
    refuse(&control_plane.client().await, &names).await;
    wait_until(SOON, || (diagnosed(&control_plane).len() >= 50).then_some(()));
    drop(first); // SIGKILL
    let killed = Instant::now();
    let before = diagnosed(&control_plane).len();
    assert!(before < CLAIMS, "the incident was over before the leader was killed");
    wait_until(SOON, || leads(&second).then_some(()));
    let taken_over = killed.elapsed();
    wait_until(Duration::from_mins(2), || (diagnosed(&control_plane).len() == CLAIMS).then_some(()));
    println!(
        "{before} of {CLAIMS} written, leader killed, taken over after {taken_over:.1?}, all written after {:.1?}",
        killed.elapsed()
    );
    settled(|| writes(&control_plane).into_iter().filter(|((resource, _), _)| resource != "leases").count());

    assert_eq!(diagnosed(&control_plane), names.iter().cloned().collect());
    let written = writes(&control_plane);
    let times = |name: &String| written.get(&("nodediagnoses/status".to_owned(), name.clone())).copied();
    let twice: Vec<_> = names.iter().filter(|name| times(name) > Some(1)).collect();
    assert!(twice.is_empty(), "verdicts written more than once: {twice:?}");
    // What was under way when the leader died is stored, and answered to nobody.
    let unanswered: Vec<_> = names.iter().filter(|name| times(name).is_none()).collect();
    assert!(unanswered.len() <= 4, "{unanswered:?}");
    let events = control_plane.get(&["events", "--namespace=default"]).expect("a list");
    let mut told: BTreeMap<&str, usize> = BTreeMap::new();
    for event in
        events["items"].as_array().unwrap().iter().filter(|event| event["involvedObject"]["kind"] == "NodeClaim")
    {
        *told.entry(event["involvedObject"]["name"].as_str().unwrap()).or_default() += 1;
    }
    assert!(told.values().all(|times| *times == 1));
    // The next leader has sent those again that were under way when the first one died.
    assert_eq!(told.len(), CLAIMS);

    // One that ends in order gives the Lease back: the other need not wait for its end.
    let third = replica(&control_plane, &rights, "third");
    assert!(!leads(&third));
    let ended = Instant::now();
    assert!(second.process.terminate().success());
    let lease = control_plane.get(&["lease", "nodewhy", "--namespace=nodewhy"]).expect("it was made");
    let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
    assert!(holder.is_empty() || holder == "third", "{lease:#}");
    wait_until(SOON, || leads(&third).then_some(()));
    println!("the Lease was given back and taken in {:.1?}", ended.elapsed());

    // Nothing happens any more: nothing is written but the Lease.
    let counted = || diagnosis(&control_plane, "nodepool-general")?["status"]["machines"]["stuck"].as_u64();
    wait_until(SOON, || (counted()? == CLAIMS as u64).then_some(()));
    let but_the_lease =
        || writes(&control_plane).into_iter().filter(|((resource, _), _)| resource != "leases").collect::<Vec<_>>();
    settled(but_the_lease);
    let settled = writes(&control_plane);
    let idle = std::env::var("NODEWHY_IDLE_SECONDS").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(20);
    std::thread::sleep(Duration::from_secs(idle));
    let now = writes(&control_plane);
    let lease = ("leases".to_owned(), "nodewhy".to_owned());
    println!("{idle} s at rest: {} writes of the Lease", now[&lease] - settled[&lease]);
    let changed: Vec<_> = now.iter().filter(|(of, times)| settled.get(of) != Some(times)).map(|(of, _)| of).collect();
    assert_eq!(changed, [&lease]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ended_is_kept_up_to_the_limit_and_for_the_retention_time() {
    let (control_plane, rights) = cluster();
    let client = control_plane.client().await;
    // Long enough to be seen, on a machine that has much to do too.
    let retention = format!("--retention={}", patience(Duration::from_secs(20)).as_secs());
    let _nodewhy = control_plane.nodewhy(&rights, &["--history-limit=2", &retention]);
    let names = claim_names(6);
    for name in &names {
        refuse(&client, std::slice::from_ref(name)).await;
        wait_until(SOON, || diagnosed(&control_plane).contains(name).then_some(()));
    }
    // A diagnosis that is deleted while its machine is stuck comes back.
    control_plane.kubectl(&["delete", "nodediagnosis", &names[0]]);
    wait_until(SOON, || diagnosed(&control_plane).contains(&names[0]).then_some(()));

    remove(&client, &names).await;
    let last: BTreeSet<_> = names[4..].iter().cloned().collect();
    wait_until(SOON, || (diagnosed(&control_plane) == last).then_some(()));
    let post_mortem =
        wait_until(SOON, || diagnosis(&control_plane, &names[5]).filter(|d| d["status"]["outcome"].is_string()));
    assert_eq!(post_mortem["status"]["recurrences"], 5, "{post_mortem:#}");
    assert_eq!(post_mortem["status"]["outcome"], "Deleted");
    let evidence = post_mortem["status"]["evidence"].as_array().unwrap();
    assert!(
        evidence.iter().any(|e| e["observed"].as_str().unwrap().starts_with("False UnregisteredTaintNotFound")),
        "{post_mortem:#}"
    );
    wait_until(SOON, || diagnosed(&control_plane).is_empty().then_some(()));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cause_is_in_kubectl_describe_and_promtool_likes_the_metrics() {
    let (control_plane, rights) = cluster();
    control_plane.apply(json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": "ip-10-0-0-1" }, "spec": { "providerID": "aws:///eu-west-1a/i-general-000" },
    }));
    let nodewhy = control_plane.nodewhy(&rights, &[]);
    refuse(&control_plane.client().await, &claim_names(1)).await;
    for object in ["nodeclaim/general-000", "node/ip-10-0-0-1", "nodepool/general", "ec2nodeclass/default"] {
        let described =
            wait_until(SOON, || Some(control_plane.kubectl(&["describe", object])).filter(|text| text.contains(CAUSE)));
        let event = described.split("Events:").nth(1).unwrap();
        assert!(
            event.contains("Warning") && event.contains("nodewhy") && event.contains("NodeClaim general-000"),
            "{object}: {described}"
        );
    }
    wait_until(SOON, || {
        nodewhy.get("/metrics").contains("nodewhy_soonest_termination_timestamp_seconds{").then_some(())
    });
    let answer = nodewhy.get("/metrics");
    let (_, metrics) = answer.split_once("\r\n\r\n").expect("a body");
    assert!(metrics.contains(&format!(r#"nodewhy_diagnosed_total{{cause="{CAUSE}"}} 1"#)), "{metrics}");
    let mut promtool = Command::new(monitoring::prometheus("promtool"))
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool");
    promtool.stdin.take().expect("stdin").write_all(metrics.as_bytes()).expect("promtool reads");
    let said = promtool.wait_with_output().expect("promtool ends");
    let said = (
        said.status.success(),
        String::from_utf8_lossy(&said.stdout).into_owned() + &String::from_utf8_lossy(&said.stderr),
    );
    assert_eq!(said, (true, String::new()), "{metrics}");
}

/// Resources by group, those that nodewhy reads and those that nobody should give it.
const RESOURCES: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "nodes",
            "nodes/proxy",
            "nodes/status",
            "pods",
            "pods/exec",
            "pods/attach",
            "pods/log",
            "pods/eviction",
            "secrets",
            "configmaps",
            "events",
            "namespaces",
            "serviceaccounts",
            "serviceaccounts/token",
            "persistentvolumes",
        ],
    ),
    ("apps", &["daemonsets", "deployments", "replicasets", "statefulsets"]),
    ("certificates.k8s.io", &["certificatesigningrequests", "certificatesigningrequests/approval"]),
    ("authorization.k8s.io", &["subjectaccessreviews", "localsubjectaccessreviews"]),
    ("karpenter.sh", &["nodeclaims", "nodeclaims/status", "nodepools"]),
    ("karpenter.k8s.aws", &["ec2nodeclasses"]),
    ("nodewhy.dev", &["nodediagnoses", "nodediagnoses/status"]),
    ("events.k8s.io", &["events"]),
    ("coordination.k8s.io", &["leases"]),
    ("rbac.authorization.k8s.io", &["clusterroles", "clusterrolebindings", "roles", "rolebindings"]),
    ("admissionregistration.k8s.io", &["mutatingwebhookconfigurations"]),
    ("apiextensions.k8s.io", &["customresourcedefinitions"]),
    ("policy", &["poddisruptionbudgets"]),
    ("storage.k8s.io", &["volumeattachments"]),
];
const VERBS: &[&str] = &[
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
    "escalate",
    "bind",
    "impersonate",
];
const NAMESPACES: &[&str] = &["default", "kube-system", "nodewhy", "kube-node-lease"];
const NAMES: &[&str] = &["", "aws-auth", "nodewhy", "other"];

#[tokio::test(flavor = "multi_thread")]
async fn every_verb_that_the_code_does_not_need_is_refused() {
    let (control_plane, _) = cluster();
    let client = control_plane.client().await;
    let rights = needed().union(&needed_for_the_lease()).cloned().collect::<BTreeSet<_>>();
    let is_needed = |namespace: &str, group: &str, resource: &str, name: &str, verb: &str| {
        rights.iter().any(|(n, g, r, of, v)| {
            n.as_deref().is_none_or(|n| n == namespace)
                && (g, r, v) == (&group.to_owned(), &resource.to_owned(), &verb.to_owned())
                && of.as_deref().is_none_or(|of| of == name)
        })
    };
    let mut questions = Vec::new();
    for (group, resources) in RESOURCES {
        for (resource, verb) in resources.iter().flat_map(|resource| VERBS.iter().map(move |verb| (resource, verb))) {
            // Only these are given by name.
            let names = if ["configmaps", "leases"].contains(resource) { NAMES } else { &[""] };
            questions.extend(
                NAMESPACES
                    .iter()
                    .flat_map(|namespace| names.iter().map(move |name| (*namespace, *group, *resource, *name, *verb))),
            );
        }
    }
    let asked = questions.len();
    let reviews: Api<SubjectAccessReview> = Api::all(client);
    let answers: Vec<_> =
        stream::iter(questions)
            .map(|question| {
                let (namespace, group, resource, name, verb) = question;
                let (resource, subresource) =
                    resource.split_once('/').map_or((resource, None), |(r, s)| (r, Some(s.to_owned())));
                let text = |text: &str| Some(text.to_owned());
                let attributes = ResourceAttributes {
                    namespace: text(namespace),
                    group: text(group),
                    resource: text(resource),
                    subresource,
                    name: text(name),
                    verb: text(verb),
                    ..ResourceAttributes::default()
                };
                let spec = SubjectAccessReviewSpec {
                    user: text(ACCOUNT),
                    resource_attributes: Some(attributes),
                    ..SubjectAccessReviewSpec::default()
                };
                let (reviews, review) =
                    (reviews.clone(), SubjectAccessReview { spec, ..SubjectAccessReview::default() });
                async move {
                    (question, reviews.create(&PostParams::default(), &review).await.unwrap().status.unwrap().allowed)
                }
            })
            .buffer_unordered(8)
            .collect()
            .await;
    let wrong: Vec<_> = answers
        .iter()
        .filter(|((namespace, group, resource, name, verb), allowed)| {
            *allowed != is_needed(namespace, group, resource, name, verb)
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    let allowed = answers.iter().filter(|(_, allowed)| *allowed).count();
    println!("{asked} questions, {allowed} allowed");
    assert!(allowed > 50 && asked - allowed > 1000);
}

/// What people, dashboards and scripts see of a NodeDiagnosis: columns, selectors, `kubectl wait`, what is refused.
#[tokio::test(flavor = "multi_thread")]
async fn what_has_ended_looks_so_and_what_is_unknown_can_be_waited_for() {
    let (control_plane, rights) = cluster();
    let client = control_plane.client().await;
    refuse(&client, &claim_names(2)).await;
    // Launched, and nothing is heard of it.
    refuse(&client, &["general-silent".to_owned()]).await;
    let now = chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
    let condition = |type_: &str, status: &str| json!({ "type": type_, "status": status, "reason": type_, "message": "", "lastTransitionTime": now });
    let conditions =
        json!({ "status": { "conditions": [condition("Launched", "True"), condition("Registered", "Unknown")] } });
    control_plane.patch_status("nodeclaim", "general-silent", "merge", &conditions);
    let nodewhy = control_plane.nodewhy(&rights, &["--join-threshold=1", "--proven-threshold=0"]);
    wait_until(SOON, || is_ready(&nodewhy).then_some(()));
    wait_until(SOON, || diagnosis(&control_plane, "general-silent"));
    control_plane.kubectl(&["wait", "--for=condition=Judged", "--timeout=30s", "ndx/general-silent"]);
    let unknown = diagnosis(&control_plane, "general-silent").unwrap();
    let of = |diagnosis: &Value, type_: &str| {
        let all = diagnosis["status"]["conditions"].as_array().cloned().unwrap_or_default();
        all.into_iter().find(|c| c["type"] == type_).unwrap_or_default()
    };
    assert_eq!(
        (&unknown["status"]["cause"], &of(&unknown, "Diagnosed")["status"]),
        (&json!("Unknown"), &json!("False"))
    );

    wait_until(SOON, || (diagnosed(&control_plane).len() == 2).then_some(()));
    remove(&client, &claim_names(1)).await;
    wait_until(SOON, || diagnosis(&control_plane, "general-000").filter(|d| d["status"]["outcome"] == "Deleted"));
    let lines = |arguments: &[&str]| {
        let shown = control_plane.kubectl(&[&["get", "ndx"], arguments].concat());
        shown.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let table = lines(&[]);
    let heads: Vec<_> = table[0].split_whitespace().collect();
    let contract = ["NAME", "CAUSE", "STAGE", "MACHINES", "NODEPOOL", "NODE", "TERMINATES", "OUTCOME", "ENDED", "AGE"];
    assert_eq!(heads, contract, "{table:#?}");
    // Without a Node and without a timeout that still runs.
    let ended: Vec<_> = table[1].split_whitespace().collect();
    assert_eq!(ended[..5], ["general-000", CAUSE, "Register", "general", "Deleted"], "{table:#?}");
    assert_eq!(ended.len(), 7, "{table:#?}");
    for arguments in [&["-l", "nodewhy.dev/outcome=Deleted"], &["--field-selector", "status.outcome=Deleted"]] {
        let selected = lines(arguments);
        assert!(selected.len() == 2 && selected[1].starts_with("general-000 "), "{arguments:?}: {selected:#?}");
    }
    for arguments in [&["-l", "!nodewhy.dev/outcome"], &["--field-selector", "status.outcome="]] {
        // Two machines, and their NodePool.
        assert_eq!(lines(arguments).len(), 4, "{arguments:?}");
    }
    let by_fields = "--field-selector=status.cause=Unknown,status.confidence!=Certain,spec.nodePool.name=general";
    assert!(lines(&[by_fields])[1].starts_with("general-silent "));

    let list = control_plane.get(&["nodediagnoses"]).unwrap();
    for diagnosis in list["items"].as_array().unwrap() {
        let created = diagnosis["metadata"]["creationTimestamp"].as_str().unwrap();
        for condition in diagnosis["status"]["conditions"].as_array().unwrap() {
            assert!(condition["lastTransitionTime"].as_str().unwrap() >= created, "{diagnosis:#}");
        }
    }
    let wrong = json!([{ "op": "replace", "path": "/status/conditions/0/status", "value": "Yes" }]).to_string();
    let patch = ["patch", "ndx", "general-001", "--subresource=status", "--type=json", "-p", &wrong];
    let refused = control_plane.try_kubectl(&patch).expect_err("no status of a condition");
    assert!(refused.contains("Unsupported value"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_diagnosis_that_is_not_called_as_its_subject_is_refused_and_one_that_is_there_is_deleted() {
    let (control_plane, rights) = cluster();
    let client = control_plane.client().await;
    let of = |name: &str, kind: &str| {
        json!({
            "apiVersion": "nodewhy.dev/v1alpha1", "kind": "NodeDiagnosis", "metadata": { "name": name },
            "spec": { "subject": { "apiVersion": "v1", "kind": kind, "name": "general-000", "uid": "1" } },
        })
    };
    let api: Api<DynamicObject> = Api::all_with(
        client.clone(),
        &ApiResource::from_gvk_with_plural(
            &GroupVersionKind::gvk("nodewhy.dev", "v1alpha1", "NodeDiagnosis"),
            "nodediagnoses",
        ),
    );
    let create =
        async |object: Value| api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await;
    for (name, kind) in [("another", "NodeClaim"), ("general-000", "NodePool"), ("NodePool-general-000", "NodePool")] {
        assert!(create(of(name, kind)).await.is_err(), "{name} {kind}");
    }
    for (name, kind) in [("nodepool-general-000", "NodePool"), ("ec2nodeclass-general-000", "EC2NodeClass")] {
        create(of(name, kind)).await.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    // As before there was the rule.
    let without =
        json!([{ "op": "remove", "path": "/spec/versions/0/schema/openAPIV3Schema/x-kubernetes-validations" }]);
    control_plane.kubectl(&["patch", "crd", "nodediagnoses.nodewhy.dev", "--type=json", "-p", &without.to_string()]);
    let patience = Patience::of(SOON);
    while let Err(error) = create(of("another", "NodeClaim")).await {
        assert!(!patience.is_over(), "{error}");
        std::thread::sleep(Duration::from_millis(300));
    }
    let nodewhy = control_plane.nodewhy(&rights, &[]);
    wait_until(SOON, || is_ready(&nodewhy).then_some(()));
    wait_until(SOON, || diagnosis(&control_plane, "another").is_none().then_some(()));
}
