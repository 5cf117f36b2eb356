//! Clusters of Karpenter before 0.32: what is found of NodePools, NodeClaims and node classes is found of Provisioners,
//! Machines and AWSNodeTemplates, and said in their words.
//!
//! Each real case is written as it would have been then, and judged both ways.

use engine::api::NodeDiagnosis;
use engine::api::judged::JudgedBy;
use engine::case::judging::Judging;
use engine::case::stage::Thresholds;
use engine::cluster_state::ClusterState;
use engine::diagnose::diagnose;
use engine::diagnose::survey::Survey;
use nodewhy::ingest::dump::{self, Summary};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use testkit::corpus::{case_folders, case_objects};

const KARPENTER: &str = "public.ecr.aws/karpenter/controller:v0.31.5";
const BEFORE_MACHINES: &str = "public.ecr.aws/karpenter/controller:v0.27.6";

fn objects(folder: &Path) -> Vec<Value> {
    let items = |object: Value| object["items"].as_array().cloned().unwrap_or_else(|| vec![object]);
    case_objects(folder).into_iter().flat_map(items).map(of_its_time).collect()
}

fn kind(object: &Value) -> &str {
    object["kind"].as_str().unwrap_or_default()
}

fn remove(object: &mut Value, at: &str, names: &[&str]) {
    if let Some(Value::Object(fields)) = object.pointer_mut(at) {
        fields.retain(|name, _| !names.contains(&name.as_str()));
    }
}

/// Without what there was nothing of.
fn of_its_time(mut object: Value) -> Value {
    match kind(&object) {
        "EC2NodeClass" => {
            let alias = object.pointer("/spec/amiSelectorTerms/0/alias").and_then(Value::as_str).unwrap_or_default();
            let family = ["al2023", "bottlerocket", "windows"].into_iter().find(|name| alias.starts_with(name));
            let family = family.map_or("AL2", |name| match name {
                "al2023" => "AL2023",
                "bottlerocket" => "Bottlerocket",
                _ => "Windows2022",
            });
            if object["spec"]["amiFamily"].is_null() && object["spec"].is_object() {
                object["spec"]["amiFamily"] = family.into();
            }
            let later = ["role", "kubelet", "amiSelectorTerms", "instanceStorePolicy"];
            remove(&mut object, "/spec", &later);
            remove(&mut object, "/spec", &["capacityReservationSelectorTerms", "podSubnetSelectorTerms"]);
            remove(&mut object, "/status", &["conditions", "instanceProfile"]);
            remove(&mut object, "/metadata", &["annotations", "finalizers", "deletionTimestamp"]);
        }
        "NodePool" => {
            remove(&mut object, "/spec", &["replicas", "disruption"]);
            remove(&mut object, "/status", &["conditions"]);
            remove(&mut object, "/spec/template/spec", &["expireAfter", "terminationGracePeriod"]);
        }
        "NodeClaim" => {
            remove(&mut object, "/spec", &["expireAfter", "terminationGracePeriod"]);
            remove(&mut object, "/status", &["imageID"]);
            remove(&mut object, "/metadata", &["annotations"]);
        }
        "Deployment" => {
            let containers = object.pointer_mut("/spec/template/spec/containers").and_then(Value::as_array_mut);
            for container in containers.into_iter().flatten() {
                if container["image"].as_str().is_some_and(|image| image.contains("karpenter/controller")) {
                    container["image"] = KARPENTER.into();
                }
            }
        }
        _ => {}
    }
    object
}

fn pairs(terms: &Value) -> Value {
    let mut selector = Map::new();
    for term in terms.as_array().into_iter().flatten() {
        if let Some(id) = term["id"].as_str() {
            let ids =
                selector.get("aws-ids").and_then(Value::as_str).map_or(id.to_owned(), |ids| format!("{ids},{id}"));
            selector.insert("aws-ids".to_owned(), ids.into());
        }
        selector.extend(term["tags"].as_object().cloned().unwrap_or_default());
    }
    selector.into()
}

fn rename(object: &mut Value, at: &str, from: &str, to: &str) {
    if let Some(Value::Object(fields)) = object.pointer_mut(at)
        && let Some(value) = fields.remove(from)
    {
        fields.insert(to.to_owned(), value);
    }
}

/// As Karpenter 0.31 would have had it.
fn before(mut object: Value) -> Value {
    let meta = object["metadata"].clone();
    match kind(&object) {
        "NodePool" if object["apiVersion"].as_str().is_some_and(|v| v.starts_with("karpenter.sh/")) => {
            let template = &object["spec"]["template"];
            let spec = &template["spec"];
            let name = &spec["nodeClassRef"]["name"];
            json!({
                "apiVersion": "karpenter.sh/v1alpha5", "kind": "Provisioner", "metadata": meta,
                "spec": {
                    "labels": template["metadata"]["labels"], "requirements": spec["requirements"],
                    "taints": spec["taints"], "startupTaints": spec["startupTaints"],
                    "kubeletConfiguration": spec["kubelet"], "limits": { "resources": object["spec"]["limits"] },
                    "providerRef": { "name": name },
                },
            })
        }
        "NodeClaim" => {
            object["apiVersion"] = "karpenter.sh/v1alpha5".into();
            object["kind"] = "Machine".into();
            rename(&mut object, "/metadata/labels", "karpenter.sh/nodepool", "karpenter.sh/provisioner-name");
            rename(&mut object, "/spec", "nodeClassRef", "machineTemplateRef");
            for condition in object["status"]["conditions"].as_array_mut().into_iter().flatten() {
                condition["type"] = format!("Machine{}", condition["type"].as_str().unwrap_or_default()).into();
            }
            object
        }
        "EC2NodeClass" => {
            object["apiVersion"] = "karpenter.k8s.aws/v1alpha1".into();
            object["kind"] = "AWSNodeTemplate".into();
            for (from, to) in
                [("subnetSelectorTerms", "subnetSelector"), ("securityGroupSelectorTerms", "securityGroupSelector")]
            {
                rename(&mut object, "/spec", from, to);
                if !object["spec"][to].is_null() {
                    object["spec"][to] = pairs(&object["spec"][to]);
                }
            }
            object
        }
        "Node" => {
            rename(&mut object, "/metadata/labels", "karpenter.sh/nodepool", "karpenter.sh/provisioner-name");
            object
        }
        "Event" => {
            let about = object["involvedObject"]["kind"].as_str().unwrap_or_default();
            let now = [("NodePool", "Provisioner"), ("NodeClaim", "Machine"), ("EC2NodeClass", "AWSNodeTemplate")];
            if let Some((_, before)) = now.into_iter().find(|(kind, _)| *kind == about) {
                object["involvedObject"]["kind"] = before.into();
            }
            object
        }
        _ => object,
    }
}

fn written_before(objects: Vec<Value>) -> Vec<Value> {
    objects.into_iter().map(before).collect()
}

fn judged(folder: &Path, objects: &[Value]) -> Vec<NodeDiagnosis> {
    let expect = std::fs::read_to_string(folder.join("expect.json")).expect("an expectation");
    let expect: Value = serde_json::from_str(&expect).expect("JSON");
    let (mut state, mut summary) = (ClusterState::default(), Summary::default());
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects }).to_string();
    dump::load_from("a case", list.as_bytes(), &mut state, &mut summary);
    let now = expect["now"].as_str().expect("a time").parse().expect("a time");
    let survey = Survey::of(Judging::new(&state, now, &Thresholds::default()), JudgedBy::Given);
    // Whoever asks by the name that is shown is answered.
    for subject in survey.diagnoses.iter().map(|diagnosis| &diagnosis.spec.subject) {
        let name = format!("{}/{}", subject.kind.to_ascii_lowercase(), subject.name);
        let found = survey.clone().of_name(&state, &name).unwrap_or_else(|| panic!("{}: {name}", folder.display()));
        let is_there = found.diagnoses.iter().any(|diagnosis| diagnosis.spec.subject == *subject);
        assert!(is_there, "{}: {name}", folder.display());
    }
    survey.diagnoses
}

fn verdicts(diagnoses: &[NodeDiagnosis]) -> BTreeSet<String> {
    let verdict = |diagnosis: &NodeDiagnosis| {
        let status = diagnosis.status.as_ref().expect("a status");
        let blame = status.blame.as_ref().map_or("", |blame| &blame.name);
        format!("{} {:?} {} {blame}", diagnosis.spec.subject.name, status.confidence, status.cause)
    };
    diagnoses.iter().map(verdict).collect()
}

#[test]
fn what_is_found_of_present_kinds_is_found_of_those_before_them() {
    let mut report = String::new();
    let mut alike = 0;
    for folder in case_folders() {
        let objects = objects(&folder);
        // EKS Auto Mode came later, and so did capacity reservations.
        let is_later = |object: &Value| {
            kind(object) == "NodeClass" || kind(object) == "NodePool" && object.to_string().contains("\"reserved\"")
        };
        if objects.iter().any(is_later) {
            continue;
        }
        let now = judged(&folder, &objects);
        let then = judged(&folder, &written_before(objects));
        if verdicts(&now) == verdicts(&then) {
            alike += now.len();
        } else {
            let (now, then) = (verdicts(&now), verdicts(&then));
            let (lost, new): (Vec<_>, Vec<_>) = (now.difference(&then).collect(), then.difference(&now).collect());
            let _ = writeln!(report, "{}: lost {lost:#?}, new {new:#?}", folder.display());
        }
    }
    assert!(report.is_empty(), "{alike} alike\n{report}");
    assert!(alike > 600, "{alike}");
}

/// What no Karpenter before 0.32 had, wherever it is said.
#[test]
fn no_verdict_speaks_of_kinds_that_the_user_does_not_have() {
    const LATER: [&str; 7] = [
        "NodePool",
        "NodeClaim",
        "EC2NodeClass",
        "SelectorTerms",
        "spec.template.spec.requirements",
        "nodeClassRef",
        "karpenter.sh/nodepool",
    ];
    const COMMANDS: [&str; 3] = [" nodepool", " nodeclaim", " ec2nodeclass"];
    let is_later = |text: &String| {
        LATER.iter().any(|later| text.contains(later))
            || text.starts_with("kubectl") && COMMANDS.iter().any(|later| text.contains(later))
    };
    let mut report = BTreeSet::new();
    for folder in case_folders() {
        let objects = objects(&folder);
        let is_auto_mode = objects.iter().any(|object| kind(object) == "NodeClass");
        if is_auto_mode || !objects.iter().any(|object| kind(object) == "NodePool") {
            continue;
        }
        for diagnosis in judged(&folder, &written_before(objects)) {
            let cause = diagnosis.status.as_ref().expect("a status").cause.clone();
            let mut said = Vec::new();
            strings("", &serde_json::to_value(&diagnosis).expect("JSON"), &mut said);
            for text in said.iter().filter(|text| is_later(text)) {
                report.insert(format!("{cause}: {text}"));
            }
        }
    }
    assert!(report.is_empty(), "{report:#?}");
}

fn strings(field: &str, value: &Value, said: &mut Vec<String>) {
    match value {
        Value::String(text) if !["cause", "reason", "documentation", "nodewhy.dev/cause"].contains(&field) => {
            said.push(text.clone());
        }
        Value::Array(values) => values.iter().for_each(|value| strings(field, value, said)),
        Value::Object(fields) => fields.iter().for_each(|(name, value)| strings(name, value, said)),
        _ => {}
    }
}

/// As Karpenter 0.27 would have had it: no Machines, and a Node for each from the launch on.
fn before_machines(objects: Vec<Value>) -> Vec<Value> {
    let is_claim = |object: &Value| kind(object) == "NodeClaim";
    let (claims, mut others): (Vec<Value>, Vec<Value>) = objects.into_iter().partition(is_claim);
    let id_of = |node: &Value| node["spec"]["providerID"].as_str().unwrap_or_default().to_owned();
    let mut made = Vec::new();
    for claim in claims {
        let id = claim["status"]["providerID"].as_str().unwrap_or_default();
        if id.is_empty() {
            continue;
        }
        let conditions = claim["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let is = |type_: &str| conditions.iter().any(|c| c["type"] == type_ && c["status"] == "True");
        let mut found = false;
        for node in others.iter_mut().filter(|node| kind(node) == "Node" && id_of(node) == id) {
            found = true;
            node["metadata"]["finalizers"] = json!(["karpenter.sh/termination"]);
            if is("Initialized") {
                node["metadata"]["labels"]["karpenter.sh/initialized"] = "true".into();
            }
        }
        if !found && is("Launched") && !is("Registered") {
            let at = &claim["metadata"]["creationTimestamp"];
            let ready = json!({ "type": "Ready", "status": "Unknown", "reason": "NodeStatusNeverUpdated", "lastTransitionTime": at });
            made.push(json!({
                "apiVersion": "v1", "kind": "Node",
                "metadata": {
                    "name": claim["metadata"]["name"], "creationTimestamp": at, "labels": claim["metadata"]["labels"],
                    "finalizers": ["karpenter.sh/termination"],
                },
                "spec": { "providerID": id },
                "status": { "conditions": [ready] },
            }));
        }
    }
    others.extend(made);
    others.into_iter().map(before).collect()
}

/// The stage and the cause, for the machine itself is a Node then.
fn kinds(diagnoses: &[NodeDiagnosis]) -> Vec<String> {
    let told = |diagnosis: &NodeDiagnosis| {
        let status = diagnosis.status.as_ref().expect("a status");
        format!("{:?} {:?} {}", status.stage, status.confidence, status.cause)
    };
    let mut kinds: Vec<String> = diagnoses.iter().map(told).collect();
    kinds.sort();
    kinds
}

#[test]
fn nodes_are_machines_where_there_were_no_others() {
    let (mut alike, mut all) = (0, 0);
    for folder in case_folders() {
        let text = serde_json::to_string(&objects(&folder)).expect("JSON").replace(KARPENTER, BEFORE_MACHINES);
        let objects: Vec<Value> = serde_json::from_str(&text).expect("JSON");
        // Some are of a Karpenter with Machines themselves.
        if objects.iter().any(|object| matches!(kind(object), "NodeClass" | "Machine")) {
            continue;
        }
        let (now, then) = (judged(&folder, &objects), judged(&folder, &before_machines(objects)));
        for diagnosis in &then {
            let subject = &diagnosis.spec.subject;
            assert!(!matches!(&*subject.kind, "NodeClaim" | "Machine"), "{}: {}", folder.display(), subject.name);
        }
        let of_machines = |diagnoses: &[NodeDiagnosis]| {
            let mut kinds = kinds(diagnoses);
            kinds.retain(|told| !told.starts_with("Launch") && !told.starts_with("Terminate"));
            kinds
        };
        all += 1;
        alike += usize::from(of_machines(&now) == of_machines(&then));
    }
    // What a machine asked for and who refused it, only NodeClaims tell.
    assert!(alike * 100 >= all * 90, "{alike} of {all}");
}

#[test]
fn what_an_upgrade_left_is_told_of_and_not_judged() {
    let machine = json!({
        "apiVersion": "karpenter.sh/v1alpha5", "kind": "Machine",
        "metadata": { "name": "left", "creationTimestamp": "2026-01-15T09:00:00Z" },
        "status": { "conditions": [{
            "type": "Launched", "status": "False", "reason": "LaunchFailed",
            "lastTransitionTime": "2026-01-15T09:00:00Z",
        }] },
    });
    let karpenter = |tag: &str| {
        let image = format!("public.ecr.aws/karpenter/controller:{tag}");
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": "karpenter", "namespace": "kube-system" },
            "spec": { "template": { "spec": { "containers": [{ "name": "controller", "image": image }] } } },
        })
    };
    let pool = |version: &str| {
        let api_version = format!("karpenter.sh/{version}");
        json!({ "apiVersion": api_version, "kind": "NodePool", "metadata": { "name": "general" } })
    };
    let now = "2026-01-15T12:00:00Z".parse().expect("a time");
    for (beside, left) in [
        (karpenter("v0.31.5"), 0),
        (karpenter("v0.32.10"), 0),
        (karpenter("0.33.0"), 1),
        (pool("v1beta1"), 0),
        (pool("v1"), 1),
    ] {
        let mut state = ClusterState::default();
        for object in [&machine, &beside] {
            dump::load_from("the cluster", object.to_string().as_bytes(), &mut state, &mut Summary::default());
        }
        let judged = diagnose(Judging::new(&state, now, &Thresholds::default()));
        let sick = judged.iter().filter(|diagnosis| diagnosis.spec.subject.name == "left").count();
        assert_eq!((sick, state.left_behind()), (1 - left, left), "{beside}");
    }
}
