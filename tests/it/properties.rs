//! What must hold for any input: the pages' examples and the real cases, shuffled, trimmed, padded and broken.

use chrono::{DateTime, Utc};
use engine::api::judged::JudgedBy;
use engine::api::{Confidence, NodeDiagnosis};
use engine::case::judging::Judging;
use engine::case::stage::Thresholds;
use engine::cluster_state::{Availability, ClusterState, Subject};
use engine::diagnose::survey::Survey;
use engine::diagnose::{Judgement, diagnose, judge};
use engine::objects::input::{Input, Object};
use engine::objects::sink::{ObjectText, Sink};
use engine::rules;
use nodewhy::ingest::dump::{Summary, load_from};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::RngSeed;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;
use testkit::corpus::{case_folders, case_objects};
use testkit::objects::over_cluster;
use testkit::project;

/// The objects of one cluster at one time.
struct Scene {
    name: String,
    now: DateTime<Utc>,
    objects: Vec<Value>,
    /// What the reader makes of each of them.
    taken: Vec<Taken>,
}

impl Scene {
    fn new(name: String, now: DateTime<Utc>, objects: Vec<Value>) -> Self {
        let taken = objects.iter().map(Taken::of).collect();
        Self { name, now, objects, taken }
    }

    /// The cluster with those objects that are kept.
    fn world(&self, is_kept: impl Fn(&Value) -> bool) -> ClusterState {
        let mut state = ClusterState::default();
        for (_, taken) in self.objects.iter().zip(&self.taken).filter(|(object, _)| is_kept(object)) {
            taken.give(&mut state);
        }
        state
    }

    fn judged(&self, is_kept: impl Fn(&Value) -> bool) -> Vec<NodeDiagnosis> {
        diagnose(Judging::new(&self.world(is_kept), self.now, &Thresholds::default()))
    }
}

/// Most tests judge the same objects many times, so they are read once.
#[derive(Default)]
struct Taken {
    object: Option<Object>,
    unread: Vec<String>,
}

impl Taken {
    fn of(object: &Value) -> Self {
        let mut taken = Self::default();
        load_from("scene", object.to_string().as_bytes(), &mut taken, &mut Summary::default());
        taken
    }

    fn give(&self, sink: &mut dyn Sink) {
        for what in &self.unread {
            sink.unread(what);
        }
        if let Some(object) = &self.object {
            sink.object(object.clone(), ObjectText { file: "scene", text: "", line: 1, column: 1, items: &[] });
        }
    }
}

impl Sink for Taken {
    fn object(&mut self, object: Object, _: ObjectText<'_>) {
        self.object = Some(object);
    }

    fn unread(&mut self, what: &str) {
        self.unread.push(what.to_owned());
    }
}

/// The name is enough to find it.
impl std::fmt::Debug for Scene {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

static SCENES: LazyLock<Vec<Scene>> = LazyLock::new(|| of_pages().into_iter().chain(of_cases()).collect());

/// The examples of the causes over their cluster: every `yaml` fence. tests/it/pages.rs checks what they say.
fn of_pages() -> Vec<Scene> {
    let now = "2026-01-15T12:00:00Z".parse().expect("a time");
    let mut scenes = Vec::new();
    for cause in rules::ALL.iter().map(|rule| rule.cause) {
        let path = project().join(format!("tests/causes/{cause}.md"));
        let text = std::fs::read_to_string(&path).expect("the examples of a cause");
        let fences = text.split("\n```yaml\n").skip(1).filter_map(|rest| rest.split("\n```").next());
        for (number, fence) in fences.enumerate() {
            let objects = over_cluster(fence);
            scenes.push(Scene::new(format!("{cause} example {}", number + 1), now, objects));
        }
    }
    scenes
}

fn of_cases() -> Vec<Scene> {
    let scene = |folder: std::path::PathBuf| {
        let expect = std::fs::read_to_string(folder.join("expect.json")).expect("a file of the case");
        let expect: Value = serde_json::from_str(&expect).expect("JSON");
        let now = expect["now"].as_str().expect("a time").parse().expect("a time");
        Scene::new(folder.display().to_string(), now, case_objects(&folder))
    };
    case_folders().into_iter().map(scene).collect()
}

fn world_of<'o>(objects: impl IntoIterator<Item = &'o Value>) -> ClusterState {
    let (mut state, mut summary) = (ClusterState::default(), Summary::default());
    for object in objects {
        load_from("scene", object.to_string().as_bytes(), &mut state, &mut summary);
    }
    state
}

fn judged<'o>(objects: impl IntoIterator<Item = &'o Value>, now: DateTime<Utc>) -> Vec<NodeDiagnosis> {
    diagnose(Judging::new(&world_of(objects), now, &Thresholds::default()))
}

/// Machines that are not called stuck yet, though they wait.
fn waiting(scene: &Scene) -> BTreeSet<String> {
    let state = scene.world(|_| true);
    let waits = |subject: &Subject| {
        matches!(judge(Judging::new(&state, scene.now, &Thresholds::default()), subject), Judgement::Waiting(_))
    };
    let name = |subject| match subject {
        Subject::Claim(name) => format!("NodeClaim/{name}"),
        Subject::Node(name) => format!("Node/{name}"),
        Subject::Pool(name) => format!("NodePool/{name}"),
        Subject::Class(kind, name) => format!("{kind}/{name}"),
        Subject::Instance(name) => format!("Instance/{name}"),
        Subject::Karpenter(name) => format!("Deployment/{name}"),
    };
    state.subjects().filter(waits).map(name).collect()
}

fn bytes(diagnoses: &[NodeDiagnosis]) -> String {
    serde_json::to_string(diagnoses).expect("JSON")
}

fn verdicts(diagnoses: &[NodeDiagnosis]) -> BTreeMap<String, (String, Confidence)> {
    let verdict = |d: &NodeDiagnosis| {
        let status = d.status.as_ref().expect("a status");
        (format!("{}/{}", d.spec.subject.kind, d.spec.subject.name), (status.cause.to_string(), status.confidence))
    };
    diagnoses.iter().map(verdict).collect()
}

fn scene() -> impl Strategy<Value = &'static Scene> {
    any::<Index>().prop_map(|index| index.get(&SCENES))
}

#[test]
fn there_are_scenes() {
    assert!(SCENES.len() > 60, "{} scenes", SCENES.len());
}

#[test]
fn judging_twice_gives_equal_bytes() {
    for scene in SCENES.iter() {
        assert_eq!(bytes(&scene.judged(|_| true)), bytes(&scene.judged(|_| true)), "{}", scene.name);
    }
}

/// Whether the witness of an exclusion is this object, or this answer of AWS.
fn is_witness(object: &Value, witness: &str) -> bool {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let kind = text("/kind");
    match witness.split_once('/') {
        _ if kind == "AwsObservation" => witness == format!("{} {}", text("/call"), text("/about")),
        Some((of_kind, name)) => of_kind == kind && name == text("/metadata/name"),
        // It has no name.
        None => witness == "SubjectAccessReview" && kind == witness,
    }
}

#[test]
fn an_exclusion_stands_and_falls_with_an_object_that_was_seen() {
    let (mut violations, mut looked_at) = (Vec::new(), BTreeSet::new());
    for scene in SCENES.iter() {
        // Many exclusions have the same witness.
        let mut without: BTreeMap<BTreeSet<String>, Vec<NodeDiagnosis>> = BTreeMap::new();
        for diagnosis in scene.judged(|_| true) {
            let subject = diagnosis.spec.subject;
            for ruled_out in diagnosis.status.expect("a status").ruled_out {
                let (mut witness, mut gone) = (ruled_out.witness.to_string(), BTreeSet::new());
                // Another one may step in for it.
                loop {
                    let is_gone = |gone: &BTreeSet<String>, o: &Value| gone.iter().any(|name| is_witness(o, name));
                    if !scene.objects.iter().any(|o| is_witness(o, &witness) && !is_gone(&gone, o)) {
                        violations.push(format!("{}: {ruled_out:?}: there is no {witness}", scene.name));
                        break;
                    }
                    gone.insert(witness);
                    let again =
                        without.entry(gone.clone()).or_insert_with(|| scene.judged(|object| !is_gone(&gone, object)));
                    let again = again.iter().find(|d| d.spec.subject == subject);
                    let mut again =
                        again.and_then(|d| d.status.as_ref()).into_iter().flat_map(|status| &status.ruled_out);
                    match again.find(|r| r.cause == ruled_out.cause) {
                        None => break,
                        Some(other) => witness = other.witness.to_string(),
                    }
                }
                looked_at.insert(ruled_out.cause);
            }
        }
    }
    assert!(violations.is_empty(), "\n{}", violations.join("\n"));
    assert!(looked_at.len() > 20, "{looked_at:?}");
}

#[test]
fn nobody_is_told_to_edit_an_aws_auth_that_does_not_exist() {
    let mut with_one = 0;
    for scene in SCENES.iter() {
        let edits = |state: &ClusterState| -> Vec<String> {
            let diagnoses = diagnose(Judging::new(state, scene.now, &Thresholds::default()));
            let steps = diagnoses.into_iter().filter_map(|d| d.status?.fix).flat_map(|fix| fix.steps);
            steps.filter_map(|step| step.command).filter(|c| c.contains("configmap -n kube-system aws-auth")).collect()
        };
        with_one += edits(&scene.world(|_| true)).len();
        let mut without = scene.world(|object| object["metadata"]["name"] != "aws-auth");
        without.mark(Input::AwsAuth, Availability::Read);
        assert_eq!(edits(&without), Vec::<String>::new(), "{}", scene.name);
    }
    assert!(with_one > 10, "{with_one}");
}

/// Each kind that a person may have no permission for, as a whole.
#[test]
fn what_cannot_be_read_never_makes_a_verdict_surer_nor_another_machine_sick() {
    const INPUTS: [(&str, Option<&str>); 9] = [
        ("Event", None),
        ("Pod", None),
        ("CertificateSigningRequest", None),
        ("ConfigMap", None),
        ("DaemonSet", None),
        ("Deployment", None),
        ("ServiceAccount", None),
        ("SubjectAccessReview", None),
        ("Event", Some("DisruptionBlocked")),
    ];
    let mut violations = Vec::new();
    for scene in SCENES.iter() {
        let whole = verdicts(&scene.judged(|_| true));
        for (kind, reason) in INPUTS {
            let is_kept = |o: &Value| o["kind"] != kind || reason.is_some_and(|r| o["reason"] != r);
            // Without any of the kind it is the same cluster.
            if scene.objects.iter().all(is_kept) {
                continue;
            }
            for (subject, (cause, confidence)) in verdicts(&scene.judged(is_kept)) {
                match whole.get(&subject) {
                    // It waits longer than is normal, and what was taken away had asked for patience: a pod that has
                    // just come up.
                    None if confidence < Confidence::Certain && waiting(scene).contains(&subject) => {}
                    // What the API server's answer clears is the best explanation without it, and the verdict says what
                    // was not asked.
                    Some(_) if kind == "SubjectAccessReview" && confidence < Confidence::Certain => {}
                    None => violations.push(format!("{}: without {kind}, {subject} becomes sick: {cause}", scene.name)),
                    Some((before, sure)) if confidence > *sure => violations.push(format!(
                        "{}: without {kind}, {subject} goes from {before} ({sure:?}) to {cause} ({confidence:?})",
                        scene.name
                    )),
                    Some(_) => {}
                }
            }
        }
    }
    assert!(violations.is_empty(), "\n{}", violations.join("\n"));
}

/// The same inputs in every run. `NODEWHY_SEED=17` makes others, `NODEWHY_SEED=random` such as nobody has tried; a test
/// that fails prints the seed.
fn config(cases: u32) -> ProptestConfig {
    let seed = match std::env::var("NODEWHY_SEED").as_deref() {
        Ok("random") => fastrand::u64(..),
        Ok(seed) => seed.parse().expect("NODEWHY_SEED is a number, or random"),
        Err(_) => 1,
    };
    println!("NODEWHY_SEED={seed}");
    ProptestConfig { cases, failure_persistence: None, rng_seed: RngSeed::Fixed(seed), ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(192))]

    #[test]
    fn order_never_matters(scene in scene(), seed in proptest::collection::vec(any::<u32>(), 200)) {
        let mut shuffled: Vec<(u32, &Value)> = seed.iter().copied().cycle().zip(&scene.objects).collect();
        shuffled.sort_by_key(|(key, _)| *key);
        let shuffled = judged(shuffled.into_iter().map(|(_, o)| o), scene.now);
        prop_assert_eq!(bytes(&shuffled), bytes(&judged(&scene.objects, scene.now)), "{}", scene.name);
    }

    #[test]
    fn labels_annotations_and_kinds_of_others_never_matter(scene in scene(), key in "[a-z]{1,12}", value in "[ \
        -~]{0,40}", which in any::<Index>()) {
        let mut objects = scene.objects.clone();
        let noisy = which.get_mut(&mut objects);
        json_patch::merge(noisy, &json!({"metadata": {
            "labels": {format!("example.com/{key}"): value},
            "annotations": {format!("example.org/{key}"): value, "kubectl.kubernetes.io/last-applied-configuration": value},
            "managedFields": [{"manager": key, "operation": "Apply", "fieldsV1": {"f:metadata": {}}}]}}));
        // The labels of a Node are compared with those of the others.
        if noisy["kind"] == "Node" {
            noisy["metadata"]["labels"] = scene.objects[which.index(scene.objects.len())]["metadata"]["labels"].clone();
        }
        // An example may be about who wrote the taints.
        if let Some(fields) = scene.objects[which.index(scene.objects.len())].pointer("/metadata/managedFields") {
            noisy["metadata"]["managedFields"] = fields.clone();
        }
        objects.push(json!({"apiVersion": "example.com/v1", "kind": "Node", "metadata": {"name": key}, "status": {"conditions": 7}}));
        objects.push(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": key}, "data": {"password": value}}));
        objects.push(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "aws-auth", "namespace": "elsewhere"}, "data": {"mapRoles": value}}));
        prop_assert_eq!(bytes(&judged(&objects, scene.now)), bytes(&judged(&scene.objects, scene.now)), "{}", scene.name);
    }

    #[test]
    fn a_healthy_cluster_with_noise_in_it_stays_healthy(
        reason in "[A-Za-z]{3,20}",
        message in ".{0,200}",
        name in "[a-z]{3,10}",
        key in "[a-z.]{3,20}/[a-z]{3,20}",
    ) {
        let now: DateTime<Utc> = "2026-01-15T12:00:00Z".parse().expect("a time");
        let node = "ip-10-0-1-10.eu-west-1.compute.internal";
        let mut objects = over_cluster("");
        for object in objects.iter_mut().filter(|o| o["kind"] == "Node") {
            object["spec"]["taints"] = json!([{"key": key, "effect": "NoSchedule"}]);
            let conditions = object["status"]["conditions"].as_array_mut().expect("conditions");
            conditions.push(json!({"type": reason, "status": "True", "reason": reason, "message": message}));
            conditions.insert(0, json!({"type": name, "status": "False", "reason": reason, "message": message}));
        }
        for kind in ["Node", "NodeClaim", "NodePool", "EC2NodeClass"] {
            objects.push(json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": format!("{kind}.{name}"), "namespace": "default"}, "type": "Warning",
                "reason": reason, "message": message, "involvedObject": {"kind": kind, "name": if kind == "Node" { node } else { "general-x" }}, "lastTimestamp": "2026-01-15T11:59:00Z"}));
        }
        objects.push(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": name}, "spec": {"nodeName": node},
            "status": {"phase": "Failed", "reason": reason, "message": message}}));
        prop_assert_eq!(bytes(&judged(&objects, now)), "[]");
    }
}

/// All places in a document, as JSON pointers.
fn pointers(value: &Value, at: &str, out: &mut Vec<String>) {
    let escape = |key: &str| key.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Object(map) => {
            map.iter().for_each(|(key, child)| pointers(child, &format!("{at}/{}", escape(key)), out));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, child)| pointers(child, &format!("{at}/{i}"), out));
        }
        _ => {}
    }
    if !at.is_empty() {
        out.push(at.to_owned());
    }
}

fn wrong_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        Just(json!({})),
        Just(json!([])),
        Just(json!("")),
        Just(json!(-1)),
        Just(json!(1e300)),
        Just(json!(true)),
        Just(json!([null, {}, "x", 3])),
        Just(json!("9999-12-31T23:59:59Z")),
        Just(json!("-262143-01-01T00:00:00Z")),
        Just(json!("+262142-12-31T23:59:59Z")),
        ".{0,60}".prop_map(Value::from),
        "[\\PC\n\t\"'\\\\$`{}:#-]{0,300}".prop_map(Value::from),
    ]
}

proptest! {
    #![proptest_config(config(1_024))]

    /// Whatever field is missing or of another type: an answer, and the rest is judged.
    #[test]
    fn no_field_is_so_wrong_that_it_panics(
        scene in scene(),
        wrong in proptest::collection::vec((any::<Index>(), any::<Index>(), proptest::option::of(wrong_value())), 1..6),
        shift in -100_000_i64..10_000_000,
    ) {
        let mut objects = scene.objects.clone();
        for (which, place, value) in wrong {
            let object = which.get_mut(&mut objects);
            let mut places = Vec::new();
            pointers(object, "", &mut places);
            if places.is_empty() {
                continue;
            }
            let place = place.get(&places);
            match (value, place.rsplit_once('/')) {
                (Some(value), _) => *object.pointer_mut(place).expect("a place of the document") = value,
                (None, Some((parent, key))) => match object.pointer_mut(parent) {
                    Some(Value::Object(map)) => drop(map.remove(&key.replace("~1", "/").replace("~0", "~"))),
                    Some(Value::Array(items)) => drop(items.pop()),
                    _ => {}
                },
                (None, None) => {}
            }
        }
        let at = scene.now + chrono::TimeDelta::seconds(shift);
        let world = world_of(&objects);
        let survey = Survey::of(Judging::new(&world, at, &Thresholds::default()), JudgedBy::Given);
        let background = nodewhy::report::Background { cluster: &world, notes: &[] };
        for format in <nodewhy::report::Format as clap::ValueEnum>::value_variants().iter().copied() {
            let style = nodewhy::report::Style { format, color: false, now: scene.now, width: nodewhy::report::WIDTH, details: true };
            prop_assert!(nodewhy::report::render(survey.clone(), &background, style).is_ok());
        }
    }

    /// Text that is no object at all.
    #[test]
    fn no_text_is_so_wrong_that_it_panics(text in "[\\PC\n\t{}\\[\\]:\"'#&*|>-]{0,400}", bytes in proptest::collection::vec(any::<u8>(), 0..200), scene in scene(), cut in any::<Index>()) {
        let (mut state, mut summary) = (ClusterState::default(), Summary::default());
        load_from("text", text.as_bytes(), &mut state, &mut summary);
        load_from("bytes", &bytes[..], &mut state, &mut summary);
        let whole = cut.get(&scene.objects).to_string();
        let cut = cut.index(whole.len());
        load_from("cut", &whole.as_bytes()[..cut], &mut state, &mut summary);
        let yaml = serde_saphyr::to_string(&scene.objects[0]).expect("YAML");
        load_from("yaml", &yaml.as_bytes()[..cut.min(yaml.len())], &mut state, &mut summary);
        let _ = diagnose(Judging::new(&state, scene.now, &Thresholds::default()));
    }
}
