//! Objects of examples: YAML documents, merged over the healthy cluster of the pages.

pub mod fleet;
pub mod incident;

use engine::cluster_state::ClusterState;
use engine::objects::input::Object;
use engine::objects::sink::{ObjectText, Sink};
use engine::objects::{ApiServerFacts, MachineLog};
use logs::{FileLimits, LogReader};
use nodewhy::ingest::collect;
use nodewhy::ingest::dump::{Summary, load_from};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::LazyLock;

/// The healthy cluster that every example of a page starts from.
pub const CLUSTER: &str = include_str!("../../../tests/causes/cluster.yaml");

/// The documents of a YAML text, and the items of its lists; empty ones are none.
pub fn documents(text: &str) -> Vec<Value> {
    without_lists(documents_of(text))
}

/// The documents of a YAML text. Empty ones are none.
pub(crate) fn documents_of(text: &str) -> Vec<Value> {
    let mut all: Vec<Value> =
        serde_saphyr::from_multiple(text).unwrap_or_else(|e| panic!("unreadable YAML: {e}\n{text}"));
    all.retain(|document| !document.is_null());
    all
}

/// The items in the place of each list.
pub(crate) fn without_lists(documents: Vec<Value>) -> Vec<Value> {
    // What a list says of itself is lost without it.
    let is_plain = |list: &serde_json::Map<String, Value>| {
        list.get("metadata").is_none_or(|metadata| metadata["annotations"].is_null())
    };
    let items = |document: Value| match document {
        Value::Object(mut list) if list.get("kind").is_some_and(|kind| kind == "List") && is_plain(&list) => {
            match list.remove("items") {
                Some(Value::Array(items)) => items,
                _ => Vec::new(),
            }
        }
        document => vec![document],
    };
    documents.into_iter().flat_map(items).collect()
}

/// The healthy cluster with these documents merged over it (RFC 7386) by kind and name; new ones are added.
pub fn over_cluster(text: &str) -> Vec<Value> {
    static OBJECTS: LazyLock<Vec<Value>> = LazyLock::new(|| documents(CLUSTER));
    let mut cluster = OBJECTS.clone();
    for patch in documents(text) {
        let same = |o: &&mut Value| o["kind"] == patch["kind"] && o["metadata"]["name"] == patch["metadata"]["name"];
        match cluster.iter_mut().find(same) {
            Some(object) => json_patch::merge(object, &patch),
            None => cluster.push(patch),
        }
    }
    cluster
}

/// That cluster, read.
pub fn cluster(text: &str) -> ClusterState {
    let (mut state, mut summary) = (ClusterState::default(), Summary::default());
    let list = json!({"apiVersion": "v1", "kind": "List", "items": over_cluster(text)});
    load_from("the cluster", list.to_string().as_bytes(), &mut state, &mut summary);
    assert!(summary.complaints.is_empty(), "{:?}", summary.complaints);
    state
}

/// Objects as they are read, one after the other.
#[derive(Default)]
pub struct Objects(pub Vec<Object>, pub ApiServerFacts);

impl Sink for Objects {
    fn object(&mut self, object: Object, _: ObjectText<'_>) {
        self.0.push(object);
    }

    fn of_api_server(&mut self, facts: ApiServerFacts) {
        self.1 = facts;
    }
}

/// What `nodewhy collect` prints of these objects.
pub fn collected(objects: &[Value]) -> String {
    let (mut read, mut summary) = (Objects::default(), Summary::default());
    for object in objects {
        load_from("the cluster", object.to_string().as_bytes(), &mut read, &mut summary);
    }
    assert!(summary.complaints.is_empty(), "{:?}", summary.complaints);
    collect::list(&read.0, [], &read.1, chrono::DateTime::UNIX_EPOCH).expect("a list")
}

/// One example of a cause: objects over the healthy cluster, and what must be found.
pub struct Example {
    pub title: String,
    pub line: usize,
    pub objects: String,
    pub expect: Vec<BTreeMap<String, String>>,
    pub lint: Option<LintDiffers>,
}

/// In what `nodewhy lint` differs from `nodewhy diagnose` about the objects of an example, by design.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LintDiffers {
    /// The causes that only lint finds.
    #[serde(default)]
    pub also: BTreeSet<String>,
    /// The causes that only diagnose finds.
    #[serde(default)]
    pub without: BTreeSet<String>,
    #[expect(dead_code, reason = "for the reader of the example")]
    because: String,
}

/// What of a machine's log becomes an object. Its first line may ask for the log of one of the pods above.
fn logged(text: &str, above: &str) -> String {
    let agent = |object: &str| {
        let is_agent = object.contains("kind: Pod\n") && object.contains("kind: DaemonSet,");
        let (_, name) = object.split_once("metadata: {name: ").filter(|_| is_agent)?;
        Some((name.split(',').next()?.to_owned(), true))
    };
    let pods = above.split("\n---\n").filter_map(agent).collect();
    let mut reader = LogReader::new(FileLimits::default()).of_pods(pods);
    let written = "2026-01-15T12:00:00Z".parse().ok();
    reader.file("machine.log", text.as_bytes(), written).expect("a text");
    let log = |journey| {
        let mut log = serde_json::to_value(MachineLog::new(journey)).expect("JSON");
        log["apiVersion"] = "nodewhy.dev/v1alpha1".into();
        log["kind"] = "MachineLog".into();
        log
    };
    reader.journeys().into_iter().fold(String::new(), |mut all, journey| {
        let _ = writeln!(all, "---\n{}", log(journey));
        all
    })
}

/// The examples of a cause: `tests/causes/NAME.md`.
pub fn examples(cause: &str) -> Vec<Example> {
    let path = crate::project().join(format!("tests/causes/{cause}.md"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    examples_in(&text)
}

/// Pairs of fences: `yaml`, then `yaml expect`; between them may be a `log` and a `yaml lint`. The title is the last
/// heading above.
pub fn examples_in(text: &str) -> Vec<Example> {
    let mut examples = Vec::new();
    let (mut title, mut objects, mut lint, mut line) = (String::new(), None, None, 0);
    let mut lines = text.lines().enumerate();
    while let Some((number, text)) = lines.next() {
        if let Some(heading) = text.strip_prefix('#') {
            heading.trim_start_matches('#').trim().clone_into(&mut title);
        }
        let Some(info @ ("yaml" | "yaml expect" | "yaml lint" | "log")) = text.strip_prefix("```") else { continue };
        let body = lines.by_ref().map(|(_, l)| l).take_while(|l| *l != "```").fold(String::new(), |mut body, l| {
            let _ = writeln!(body, "{l}");
            body
        });
        match (info, objects.take()) {
            ("yaml", _) => (objects, line) = (Some(body), number + 1),
            ("yaml lint", above) => {
                let differs =
                    serde_saphyr::from_str(&body).unwrap_or_else(|e| panic!("{title}: lint is unreadable: {e}"));
                (objects, lint) = (above, Some(differs));
            }
            ("log", above) => {
                let above = above.unwrap_or_default();
                let log = logged(&body, &above);
                objects = Some(above + &log);
            }
            (_, Some(objects)) => {
                let expect = serde_saphyr::from_str(&body)
                    .unwrap_or_else(|e| panic!("{title}: the expectation is unreadable: {e}"));
                examples.push(Example { title: title.clone(), line, objects, expect, lint: lint.take() });
            }
            (_, None) => panic!("{title}: an expectation without objects"),
        }
    }
    examples
}
