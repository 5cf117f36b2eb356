//! The same by the watches: in the first list, and as events after it.

use super::{ODD, corpus, mutation, neighbour, now, odd_object, schema, seeds};
use axum::body::Body as Answer;
use engine::case::stage::Thresholds;
use engine::objects::input::{ApiSource, Input, Object};
use engine::triage::change::{Change, Watched};
use engine::triage::{Keep, Order, Triage};
use fastrand::Rng;
use futures::{StreamExt, stream};
use kube::Client;
use kube::client::Body;
use nodewhy::operator::metrics::Metrics;
use nodewhy::operator::watch::{Pods, Watches};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// An API server that lists some objects of each kind, by its plural and its field selector, and then tells of others.
#[derive(Default)]
struct ApiServer {
    listed: BTreeMap<String, Vec<Value>>,
    told: BTreeMap<String, Vec<Value>>,
}

/// Where the objects of an input are asked for: its first source.
fn place(source: &ApiSource) -> String {
    format!("/{}?{}", source.plural, source.fields.unwrap_or_default())
}

impl ApiServer {
    fn answer(&self, address: &http::Uri) -> Answer {
        let plural = address.path().rsplit('/').next().unwrap_or_default();
        let query: BTreeMap<_, _> =
            address.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('=')).collect();
        let fields =
            query.get("fieldSelector").map(|fields| fields.replace("%3D", "=").replace("%2C", ",")).unwrap_or_default();
        let fields = if fields.starts_with("involvedObject") { fields } else { String::new() };
        let asked = format!("/{plural}?{fields}");
        let empty = Vec::new();
        if query.contains_key("watch") {
            let told = self.told.get(&asked).unwrap_or(&empty);
            // Then it stays open, and nothing happens.
            let line = |object| format!("{{\"type\":\"MODIFIED\",\"object\":{object}}}\n");
            let lines: Vec<String> = told.iter().map(line).collect();
            let chunk = Ok::<_, std::io::Error>(mutation::finish(&lines.concat()));
            return Answer::from_stream(stream::once(async { chunk }).chain(stream::pending()));
        }
        let items = self.listed.get(&asked).unwrap_or(&empty);
        let list =
            json!({ "kind": "List", "apiVersion": "v1", "metadata": { "resourceVersion": "1" }, "items": items })
                .to_string();
        Answer::from(mutation::finish(&list))
    }
}

/// An object that is in order, and has the name.
fn sound(objects: &[Value], name: &str) -> Value {
    let mut object = objects[0].clone();
    object["metadata"]["name"] = json!(name);
    object["metadata"]["resourceVersion"] = json!("2");
    object
}

/// The API server stores no object without these, and kube begins a watch anew where one lacks its version.
fn keeps_its_name(done: &[String]) -> bool {
    let place = |how: &String| how.split(' ').next().unwrap_or_default().to_owned();
    let vital = ["/metadata", "/metadata/name", "/metadata/namespace", "/metadata/resourceVersion"];
    done.iter().all(|how| !vital.contains(&place(how).as_str()))
}

/// What a change speaks of.
fn spoken_of(change: &Change) -> Option<(Input, String)> {
    match change {
        Change::Applied(object) => Some((object.input(), object.meta().name.to_string())),
        Change::Unreadable { what: Watched::Input(input), object, .. } => {
            Some((*input, object.split_once('/')?.1.to_owned()))
        }
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn odd_objects_of_a_watch_hide_nothing_and_each_is_named() {
    let corpus = corpus();
    for seed in seeds() {
        let mut server = ApiServer::default();
        let mut expected: BTreeSet<(Input, String)> = BTreeSet::new();
        let mut done = BTreeMap::new();
        for (number, (input, objects)) in corpus
            .iter()
            .enumerate()
            .filter(|(_, (input, _))| input.sources().first().is_some_and(|source| source.watched))
        {
            let mut rng = Rng::with_seed(seed << 8 | number as u64);
            let source = &input.sources()[0];
            for list in [server.listed.entry(place(source)).or_default(), server.told.entry(place(source)).or_default()]
            {
                while list.len() < 2 * ODD {
                    let name = format!("sound-{}-{}", list.len(), expected.len());
                    list.push(sound(objects, &name));
                    expected.insert((*input, name));
                    let (mut object, how) = loop {
                        let odd = odd_object(objects, &mut rng);
                        if keeps_its_name(&odd.1) {
                            break odd;
                        }
                    };
                    let name = format!("odd-{}-{}", list.len(), expected.len());
                    object["metadata"]["name"] = json!(name);
                    object["metadata"]["resourceVersion"] = json!("3");
                    expected.insert((*input, name.clone()));
                    done.insert(name, how);
                    list.push(object);
                }
            }
        }
        server.listed.entry(place(&Input::NodeClaims.sources()[0])).or_default().push(neighbour(0));
        expected.insert((Input::NodeClaims, "neighbour-0".to_owned()));
        let server = Arc::new(server);
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let server = Arc::clone(&server);
            async move { Ok::<_, tower::BoxError>(http::Response::new(server.answer(request.uri()))) }
        });
        let (changes, mut changed) = mpsc::channel(1024);
        let _watches = Watches::start(Client::new(service, "default"), changes, Arc::new(Metrics::default()));
        let mut triage =
            Triage::new(Thresholds::default(), Keep { retention: chrono::TimeDelta::hours(1), history: 10 });
        let mut missing = expected.clone();
        // Before the watches end and are begun anew.
        let begun = tokio::time::Instant::now();
        while !missing.is_empty() && begun.elapsed() < Duration::from_secs(50) {
            let change = timeout(Duration::from_secs(50), changed.recv()).await.ok().flatten();
            let Some(change) = change else { break };
            if let Some(of) = spoken_of(&change) {
                missing.remove(&of);
            }
            triage.take(change, now());
        }
        let missing: Vec<_> = missing.iter().map(|of| (of, done.get(&of.1))).collect();
        assert!(missing.is_empty(), "seed {seed}: nothing is said of {missing:#?}");
        triage.start();
        triage.lead();
        let is_judged =
            |order: &Order| matches!(order, Order::Write(w) if w.diagnosis.spec.subject.name == "neighbour-0");
        assert!(triage.look(now()).iter().any(is_judged), "seed {seed}: the neighbour is not judged");
    }
}

/// The pods of a Node are listed, not watched.
#[tokio::test(start_paused = true)]
async fn odd_pods_hide_no_others() {
    let corpus = corpus();
    for seed in seeds() {
        let mut rng = Rng::with_seed(seed);
        let objects = &corpus[&Input::Pods];
        let items: Vec<Value> = (0..ODD)
            .flat_map(|number| [sound(objects, &format!("sound-{number}")), odd_object(objects, &mut rng).0])
            .collect();
        let server =
            Arc::new(ApiServer { listed: BTreeMap::from([("/pods?".to_owned(), items)]), ..ApiServer::default() });
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let server = Arc::clone(&server);
            async move { Ok::<_, tower::BoxError>(http::Response::new(server.answer(request.uri()))) }
        });
        let (changes, mut changed) = mpsc::channel(16);
        let mut tasks = JoinSet::new();
        Pods::start(Client::new(service, "default"), changes, &mut tasks).ask("a-node".to_owned());
        let Some(Change::Pods { pods: Ok(pods), .. }) = changed.recv().await else { panic!("seed {seed}: no pods") };
        let names: BTreeSet<&str> = pods.iter().map(|pod: &Object| pod.meta().name.as_str()).collect();
        assert!((0..ODD).all(|number| names.contains(format!("sound-{number}").as_str())), "seed {seed}: {names:?}");
    }
    assert!(schema::skeleton(Input::Pods).is_object());
}
