//! A cluster in memory: the objects that nodewhy reads, as watches show them, and an API server for what it writes,
//! with faults.

use chrono::{DateTime, Utc};
use engine::api::NodeDiagnosis;
use engine::objects::input::{Input, Object, Reading, TypeMeta};
use engine::triage::change::Change;
use fastrand::Rng;
use kube::client::Body;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tower::ServiceExt;

/// An object as a watch knows it.
#[derive(Debug, Clone)]
enum Seen {
    Is(Value),
    Gone(Value),
}

/// What one watch has still to deliver, and what it has shown: within one watch the order holds, between two it does
/// not.
#[derive(Debug, Default)]
struct Stream {
    queue: VecDeque<Seen>,
    shown: BTreeMap<String, Value>,
}

/// Which watch: an input, or that of the NodeDiagnoses.
pub type Watch = Option<Input>;

#[derive(Debug)]
pub struct Cluster {
    pub rng: Rng,
    objects: BTreeMap<(Input, String), Value>,
    diagnoses: BTreeMap<String, Value>,
    streams: BTreeMap<Watch, Stream>,
    uids: u32,
    pub faulty: bool,
    /// Writes of NodeDiagnoses that were carried out.
    pub writes: usize,
}

pub type Shared = Arc<Mutex<Cluster>>;

pub fn lock(cluster: &Shared) -> MutexGuard<'_, Cluster> {
    cluster.lock().expect("nobody panics while holding it")
}

pub fn name_of(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

fn input_of(object: &Value) -> Option<Input> {
    let meta: TypeMeta = serde_json::from_value(object.clone()).ok()?;
    if let Reading::As(input) = meta.reading() { Some(input) } else { None }
}

impl Cluster {
    pub fn new(seed: u64, objects: Vec<Value>) -> Shared {
        let mut cluster = Self {
            rng: Rng::with_seed(seed ^ 0x5EED),
            objects: BTreeMap::new(),
            diagnoses: BTreeMap::new(),
            streams: BTreeMap::new(),
            uids: 0,
            faulty: true,
            writes: 0,
        };
        for object in objects {
            cluster.put(object);
        }
        Arc::new(Mutex::new(cluster))
    }

    pub fn uid(&mut self) -> String {
        self.uids += 1;
        format!("uid-{}", self.uids)
    }

    pub fn get(&self, input: Input, name: &str) -> Option<&Value> {
        self.objects.get(&(input, name.to_owned()))
    }

    /// Stores an object of a kind that nodewhy reads.
    pub fn put(&mut self, object: Value) {
        let Some(input) = input_of(&object) else { return };
        // Pods are listed, never watched.
        if input != Input::Pods {
            self.streams.entry(Some(input)).or_default().queue.push_back(Seen::Is(object.clone()));
            self.objects.insert((input, name_of(&object)), object);
        }
    }

    pub fn change(&mut self, input: Input, name: &str, how: impl FnOnce(&mut Value)) {
        let Some(mut object) = self.get(input, name).cloned() else { return };
        how(&mut object);
        self.put(object);
    }

    pub fn delete(&mut self, input: Input, name: &str) {
        if let Some(object) = self.objects.remove(&(input, name.to_owned())) {
            self.streams.entry(Some(input)).or_default().queue.push_back(Seen::Gone(object));
        }
    }

    pub fn objects(&self) -> impl Iterator<Item = Object> {
        self.objects
            .iter()
            .map(|((input, _), object)| Object::from_value(*input, object.clone()).expect("an object of its kind"))
    }

    pub fn diagnoses(&self) -> impl Iterator<Item = NodeDiagnosis> {
        self.diagnoses.values().map(|value| serde_json::from_value(value.clone()).expect("as it was written"))
    }

    /// Somebody deletes a NodeDiagnosis by hand, or nodewhy does.
    pub fn delete_diagnosis(&mut self, name: &str) {
        if let Some(object) = self.diagnoses.remove(name) {
            self.streams.entry(None).or_default().queue.push_back(Seen::Gone(object));
        }
    }

    pub fn watches(&self) -> Vec<Watch> {
        self.streams.keys().copied().collect()
    }

    /// Delivers the next of one watch, sometimes twice.
    pub fn deliver(&mut self, watch: Watch) -> Vec<Change> {
        let twice = self.faulty && self.rng.u8(..) < 25;
        let Some(stream) = self.streams.get_mut(&watch) else { return Vec::new() };
        let Some(seen) = stream.queue.pop_front() else { return Vec::new() };
        match &seen {
            Seen::Is(object) => drop(stream.shown.insert(name_of(object), object.clone())),
            Seen::Gone(object) => drop(stream.shown.remove(&name_of(object))),
        }
        (0..=usize::from(twice)).map(|_| said(watch, &seen, true)).collect()
    }

    /// The watch breaks off, loses what it had to deliver, and lists anew. The objects come in any order, then what
    /// vanished.
    pub fn relist(&mut self, watch: Watch, loses_removals: bool) -> Vec<Change> {
        let now: BTreeMap<String, Value> = match watch {
            Some(input) => self
                .objects
                .iter()
                .filter(|((i, _), _)| *i == input)
                .map(|((_, name), object)| (name.clone(), object.clone()))
                .collect(),
            None => self.diagnoses.clone(),
        };
        let stream = self.streams.entry(watch).or_default();
        stream.queue.clear();
        let before = std::mem::replace(&mut stream.shown, now.clone());
        let vanished: Vec<Value> =
            before.into_iter().filter(|(name, _)| !now.contains_key(name)).map(|(_, object)| object).collect();
        let mut listed: Vec<Value> = now.into_values().collect();
        self.rng.shuffle(&mut listed);
        let mut changes: Vec<Change> = listed.into_iter().map(|object| said(watch, &Seen::Is(object), true)).collect();
        if !loses_removals {
            changes.extend(vanished.into_iter().map(|object| said(watch, &Seen::Gone(object), false)));
            if watch.is_none() {
                changes.push(Change::DiagnosesListed(stream.shown.keys().cloned().collect()));
            }
        }
        changes
    }

    pub fn settled(&self) -> bool {
        self.streams.values().all(|stream| stream.queue.is_empty())
    }

    /// Names that nothing knows any more are forgotten by the watches of an operator that starts anew.
    pub fn forget_what_was_shown(&mut self) {
        let watches: BTreeSet<Watch> = self.streams.keys().copied().collect();
        for watch in watches {
            self.streams.insert(watch, Stream::default());
        }
    }

    fn store_diagnosis(&mut self, name: &str, object: Value) {
        if self.diagnoses.get(name) != Some(&object) {
            self.writes += 1;
            self.streams.entry(None).or_default().queue.push_back(Seen::Is(object.clone()));
            self.diagnoses.insert(name.to_owned(), object);
        }
    }

    /// What the API server does with a request for a NodeDiagnosis.
    fn serve(&mut self, method: &http::Method, path: &str, body: &Value) -> (u16, Value) {
        let Some((_, rest)) = path.split_once("/nodediagnoses/") else { return (201, body.clone()) };
        let (name, subresource) = rest.split_once('/').unwrap_or((rest, ""));
        match (method.as_str(), subresource, self.diagnoses.get(name).cloned()) {
            ("PATCH", "", existing) => {
                let mut object = existing.unwrap_or_else(|| json!({"metadata": {"name": name, "uid": self.uid()}}));
                if object["spec"]["subject"].is_object() && object["spec"]["subject"] != body["spec"]["subject"] {
                    return (422, refusal(422, "Invalid", "spec.subject is immutable"));
                }
                for key in ["apiVersion", "kind", "spec"] {
                    object[key] = body[key].clone();
                }
                object["metadata"]["labels"] = body["metadata"]["labels"].clone();
                self.store_diagnosis(name, object.clone());
                (200, object)
            }
            ("PATCH", "status", Some(mut object)) => {
                object["status"] = body["status"].clone();
                self.store_diagnosis(name, object.clone());
                (200, object)
            }
            ("DELETE", _, Some(object)) => {
                let meant = &body["preconditions"]["uid"];
                if meant.is_string() && *meant != object["metadata"]["uid"] {
                    return (409, refusal(409, "Conflict", "another uid"));
                }
                self.writes += 1;
                self.delete_diagnosis(name);
                (200, object)
            }
            _ => (404, refusal(404, "NotFound", "not found")),
        }
    }
}

fn refusal(code: u16, reason: &str, message: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message})
}

fn said(watch: Watch, seen: &Seen, with_last: bool) -> Change {
    match (watch, seen) {
        (None, Seen::Is(object)) => {
            Change::Diagnosis(serde_json::from_value(object.clone()).expect("as it was written"))
        }
        (None, Seen::Gone(object)) => Change::DiagnosisGone(name_of(object)),
        (Some(input), Seen::Is(object)) => {
            Change::Applied(Box::new(Object::from_value(input, object.clone()).expect("an object of its kind")))
        }
        (Some(input), Seen::Gone(object)) => Change::Removed {
            input,
            namespace: object["metadata"]["namespace"].as_str().map(str::to_owned),
            name: name_of(object),
            last: with_last
                .then(|| Box::new(Object::from_value(input, object.clone()).expect("an object of its kind"))),
        },
    }
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy)]
enum Luck {
    Fine,
    /// An error, and nothing was done.
    Refused,
    /// Done, and the answer is lost.
    Lost,
    /// Nothing is done, and nothing is ever said.
    Hangs,
}

/// A client of the API server.
pub fn client(cluster: &Shared) -> kube::Client {
    let cluster = Arc::clone(cluster);
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let cluster = Arc::clone(&cluster);
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await?;
            let body: Value = serde_json::from_slice(&body).unwrap_or_default();
            let (luck, delay) = {
                let cluster = &mut *lock(&cluster);
                let luck = match (cluster.faulty, cluster.rng.u8(..)) {
                    (true, 0..30) => Luck::Refused,
                    (true, 30..50) => Luck::Lost,
                    (true, 50..55) => Luck::Hangs,
                    _ => Luck::Fine,
                };
                (luck, cluster.rng.u64(0..2_000))
            };
            tokio::time::sleep(Duration::from_millis(delay)).await;
            if let Luck::Hangs = luck {
                std::future::pending::<()>().await;
            }
            let (code, answer) = match luck {
                Luck::Refused => (500, refusal(500, "InternalError", "etcd is away")),
                Luck::Lost => {
                    lock(&cluster).serve(&parts.method, parts.uri.path(), &body);
                    (504, refusal(504, "Timeout", "the answer is lost"))
                }
                Luck::Fine | Luck::Hangs => lock(&cluster).serve(&parts.method, parts.uri.path(), &body),
            };
            let response = http::Response::builder().status(code).body(Body::from(answer.to_string().into_bytes()));
            Ok::<_, tower::BoxError>(response?)
        }
    });
    kube::Client::new(service.boxed_clone(), "default")
}

pub fn stamp(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
}
