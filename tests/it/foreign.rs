//! Objects of every kind that nodewhy reads, made odd at every place that it reads: nothing panics, the neighbours are
//! judged, and each that cannot be read is named.
//!
//! The places are those of nodewhy's own types and of the objects of real cases. `NODEWHY_SEEDS=1000` tries more,
//! `NODEWHY_SEED=17` replays one.

mod mutation;
mod schema;
mod watched;

use chrono::{DateTime, Utc};
use engine::case::judging::Judging;
use engine::case::stage::Thresholds;
use engine::cluster_state::ClusterState;
use engine::diagnose::diagnose;
use engine::objects::input::{Input, Object, Reading, TypeMeta};
use fastrand::Rng;
use nodewhy::ingest::dump::{Summary, load_from};
use nodewhy::kube_client::protobuf::schema::{ANSWERS, Message, MessageField, PATHS, Shape};
use readers::source_text;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::LazyLock;
use testkit::corpus::{case_folders, case_objects};
use testkit::objects::{CLUSTER, documents, examples_in};

/// Seeds of every run.
const SEEDS: u64 = 3;
/// Odd objects of one kind at once, for each seed.
const ODD: usize = 24;

fn seeds() -> Vec<u64> {
    let number =
        |name: &str| std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")));
    number("NODEWHY_SEED").map_or_else(|| (0..number("NODEWHY_SEEDS").unwrap_or(SEEDS)).collect(), |seed| vec![seed])
}

fn now() -> DateTime<Utc> {
    "2026-01-15T12:00:00Z".parse().expect("a time")
}

fn input_of(object: &Value) -> Option<Input> {
    match serde_json::from_value::<TypeMeta>(object.clone()).ok()?.reading() {
        Reading::As(input) => {
            Some(Object::from_value(input, object.clone()).map_or(input, |object| object.by_its_name().input()))
        }
        _ => None,
    }
}

/// The objects of the pages and of the real cases, by what they are; each with every field that is read.
fn corpus() -> &'static BTreeMap<Input, Vec<Value>> {
    static CORPUS: LazyLock<BTreeMap<Input, Vec<Value>>> = LazyLock::new(read_corpus);
    &CORPUS
}

fn read_corpus() -> BTreeMap<Input, Vec<Value>> {
    let pages = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/causes")).expect("the pages").flatten();
    let mut pages: Vec<_> =
        pages.map(|page| page.path()).filter(|p| p.extension().is_some_and(|e| e == "md")).collect();
    // A folder has no order, and a seed gives the same objects everywhere.
    pages.sort();
    let pages = pages.iter().map(std::fs::read_to_string);
    let of_pages = pages.flat_map(|page| examples_in(&page.expect("a page"))).map(|example| example.objects);
    let of_cases = case_folders().into_iter().flat_map(|folder| case_objects(&folder));
    let mut corpus: BTreeMap<Input, Vec<Value>> = BTreeMap::new();
    let texts: Vec<String> = [CLUSTER.to_owned()].into_iter().chain(of_pages).collect();
    for object in texts.iter().flat_map(|text| documents(text)).chain(of_cases) {
        let items = object["items"].as_array().cloned().unwrap_or_else(|| vec![object]);
        for item in items {
            // What a machine logged is no object of anybody else's.
            if let Some(input) = input_of(&item).filter(|input| *input != Input::Logs) {
                corpus.entry(input).or_default().push(item);
            }
        }
    }
    for (input, objects) in &mut corpus {
        let skeleton = schema::skeleton(*input);
        objects.push(json!({ "apiVersion": objects[0]["apiVersion"], "kind": objects[0]["kind"] }));
        for object in objects.iter_mut() {
            mutation::fill(object, &skeleton);
        }
    }
    corpus
}

/// A machine that is stuck and stands between odd objects.
fn neighbour(number: usize) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": { "name": format!("neighbour-{number}"), "uid": format!("uid-{number}"), "creationTimestamp": "2026-01-15T11:30:00Z" },
        "spec": { "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "neighbours" } },
        "status": {
            "providerID": format!("aws:///eu-west-1a/i-neighbour-{number}"),
            "conditions": [
                { "type": "Launched", "status": "True", "reason": "Launched", "lastTransitionTime": "2026-01-15T11:30:05Z" },
                { "type": "Registered", "status": "Unknown", "reason": "NodeNotFound", "lastTransitionTime": "2026-01-15T11:30:00Z" },
            ],
        },
    })
}

/// An object of the corpus, odd at one to three places, and what was done to it, place first.
fn odd_object(objects: &[Value], rng: &mut Rng) -> (Value, Vec<String>) {
    let mut object = rng.choice(objects).expect("objects of every kind").clone();
    let mut done = Vec::new();
    for _ in 0..rng.usize(1..=3) {
        let places = mutation::places(&object);
        let Some(at) = rng.choice(&places) else { break };
        done.push(mutation::mutate(&mut object, at, rng));
    }
    (object, done)
}

#[test]
fn every_field_that_is_read_is_known_and_every_kind_has_objects() {
    let corpus = corpus();
    let of_others: Vec<_> = Input::ALL.iter().copied().filter(|input| *input != Input::Logs).collect();
    assert_eq!(corpus.keys().copied().collect::<Vec<_>>(), of_others);
    let node = mutation::places(&schema::skeleton(Input::Nodes));
    for place in [
        "/metadata/managedFields/0/fieldsV1/f:spec/f:taints",
        "/metadata/managedFields/0/fieldsV1/f:metadata/f:labels/f:beta.kubernetes.io~1instance-type",
        "/spec/taints/0/timeAdded",
        "/status/nodeInfo/kubeletVersion",
    ] {
        assert!(node.iter().any(|known| known == place), "{place} is not among {node:#?}");
    }
    for (input, objects) in corpus {
        println!(
            "{}: {} objects, {} places read",
            input.name(),
            objects.len(),
            mutation::places(&schema::skeleton(*input)).len()
        );
    }
}

/// The object with what is masked where it is written: half a certificate looks like a key. Most texts come in
/// thousands of objects, and are looked through once.
fn without_secrets(value: &Value, known: &mut HashMap<String, String>) -> Value {
    match value {
        Value::String(text) => {
            if let Some(masked) = known.get(text) {
                return json!(masked);
            }
            let masked = source_text::hide_secrets_by_line(text);
            known.insert(text.clone(), masked.clone());
            json!(masked)
        }
        Value::Array(items) => items.iter().map(|item| without_secrets(item, known)).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), without_secrets(value, known)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

/// `nodewhy collect` prints views as they are written. A field that is read and not written, or under another name,
/// would be lost.
#[test]
fn a_view_is_written_as_it_is_read() {
    let mut known = HashMap::new();
    for (input, objects) in corpus() {
        // Many cases have the same agents.
        let mut seen = HashSet::new();
        let objects = objects.iter().filter(|object| seen.insert(object.to_string()));
        // An Event that has a field under both of its names is no Event.
        let read = objects.filter_map(|object| Object::from_value(*input, without_secrets(object, &mut known)).ok());
        let read: Vec<_> = read.collect();
        assert!(!read.is_empty(), "{}", input.name());
        for read in read {
            let written = serde_json::to_value(&read).expect("JSON");
            let again = Object::from_value(*input, written.clone()).expect("the same object");
            assert_eq!(again, read);
            // What passes is equal whatever it is, but not as text.
            assert_eq!(serde_json::to_value(&again).expect("JSON"), written);
        }
    }
}

/// As files: JSON one after the other, as a List, and YAML documents.
#[test]
fn odd_objects_in_a_dump_hide_nothing_and_each_is_accounted_for() {
    let corpus = corpus();
    for seed in seeds() {
        for (number, (input, objects)) in corpus.iter().enumerate() {
            let mut rng = Rng::with_seed(seed << 8 | number as u64);
            let (mut all, mut done) = (Vec::new(), Vec::new());
            for number in 0..ODD {
                let (object, how) = odd_object(objects, &mut rng);
                all.extend([neighbour(number), object]);
                done.push(how);
            }
            let as_json = |object: &Value| format!("{object}\n");
            let as_yaml = |object: &Value| format!("---\n{}", serde_saphyr::to_string(object).expect("YAML"));
            let written = [
                ("documents.json", all.iter().map(as_json).collect::<Vec<_>>().concat()),
                ("list.json", json!({ "apiVersion": "v1", "kind": "List", "items": all }).to_string()),
                ("documents.yaml", all.iter().map(as_yaml).collect::<Vec<_>>().concat()),
            ];
            for (file, text) in written {
                let (mut state, mut summary) = (ClusterState::default(), Summary::default());
                load_from(file, mutation::finish(&text).as_bytes(), &mut state, &mut summary);
                let said = || format!("seed {seed}, {} in {file}: {done:#?}\n{:#?}", input.name(), summary.complaints);
                for number in 0..ODD {
                    assert!(
                        state.claim(&format!("neighbour-{number}")).is_some(),
                        "neighbour-{number} is hidden; {}",
                        said()
                    );
                }
                // An object with an odd field is read without it, and the complaint begins with the kind.
                let kinds: BTreeSet<&str> = objects.iter().filter_map(|object| object["kind"].as_str()).collect();
                let is_of_field = |message: &str| message.split_once(' ').is_some_and(|(kind, _)| kinds.contains(kind));
                let unread = summary.complaints.iter().filter(|c| !is_of_field(&c.message));
                let unread: BTreeSet<_> = unread.map(|c| (c.document, c.item)).collect();
                assert_eq!(summary.objects + summary.ignored + unread.len(), all.len(), "{}", said());
                for complaint in &summary.complaints {
                    let place =
                        (complaint.file.as_str(), complaint.line > 0, complaint.document > 0 || complaint.item > 0);
                    assert_eq!(place, (file, true, true), "{complaint}; {}", said());
                    assert!(complaint.message.len() < 500 && !complaint.message.contains('\u{1b}'), "{complaint}");
                }
                let diagnoses = diagnose(Judging::new(&state, now(), &Thresholds::default()));
                let judged = diagnoses.iter().filter(|d| d.spec.subject.name.starts_with("neighbour-")).count();
                assert!(judged >= ODD - 1, "{judged} of {ODD} neighbours are judged; {}", said());
            }
        }
    }
}

/// Collects the fields of a view that the schema of its message lacks.
fn is_in_schema(message: &Message, view: &Value, at: &str, missing: &mut Vec<String>) {
    for (name, value) in view.as_object().into_iter().flatten() {
        let at = format!("{at}/{name}");
        match message.fields.iter().find(|field| field.name == name) {
            None => missing.push(at),
            Some(MessageField { shape: Shape::Object(inner), .. }) => {
                is_in_schema(inner, value.get(0).unwrap_or(value), &at, missing);
            }
            Some(_) => {}
        }
    }
}

/// A field that a view reads, and the schema of protobuf lacks, would be empty in a cluster and full in a dump.
#[test]
fn protobuf_has_every_field_that_is_read() {
    for (input, name) in [(Input::Nodes, "Node"), (Input::Events, "Event")] {
        assert!(PATHS.contains(&format!("/api/v1/{}", input.sources()[0].plural).as_str()));
        let message = ANSWERS.into_iter().find(|message| message.name == name).expect("a message");
        // As it is written: an Event of events.k8s.io calls its fields otherwise.
        let full = Object::from_value(input, schema::skeleton(input)).expect("a view");
        let mut missing = Vec::new();
        is_in_schema(message, &serde_json::to_value(&full).expect("JSON"), "", &mut missing);
        assert_eq!(missing, [""; 0], "{name}");
    }
}
