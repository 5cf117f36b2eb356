//! A dump means the same in blocks of any size.

use super::{Object, ObjectText, Sink, Summary, load_in_blocks};
use crate::ingest::collect::list;
use chrono::DateTime;
use engine::cluster_state::ClusterState;
use engine::objects::ApiServerFacts;
use engine::objects::input::Input;
use proptest::prelude::*;
use std::io::{self, Read};

/// Longer than any text here.
const WHOLE: usize = 1 << 20;

/// The result of reading a dump, in words.
#[derive(Default)]
struct Seen(Vec<String>);

impl Sink for Seen {
    fn object(&mut self, object: Object, source: ObjectText<'_>) {
        let ObjectText { text, line, column, items, .. } = source;
        self.0.push(format!("{} at {line}:{column}{items:?} in {}", object.meta().name, text.trim()));
    }
}

fn read(text: &[u8], block: usize) -> (Vec<String>, Summary) {
    let (mut seen, mut summary) = (Seen::default(), Summary::default());
    load_in_blocks(block, "dump", text, &mut seen, &mut summary);
    (seen.0, summary)
}

/// Reads a text in blocks of all sizes, and gives the names and lines of its objects, and what was complained of.
#[track_caller]
fn found(text: impl AsRef<[u8]>) -> (Vec<String>, Vec<String>) {
    let text = text.as_ref();
    let (seen, summary) = read(text, WHOLE);
    for block in 1..=text.len() {
        assert_eq!(read(text, block), (seen.clone(), summary.clone()), "in blocks of {block}");
    }
    let objects = seen
        .iter()
        .map(|seen| seen.split(" in ").next().unwrap_or_default().trim_end_matches("[]").to_owned())
        .collect();
    (objects, summary.complaints.iter().map(ToString::to_string).collect())
}

fn is(found: &(Vec<String>, Vec<String>), objects: &[&str], complaints: &[&str]) {
    assert_eq!(found.0, objects, "{:?}", found.1);
    assert_eq!(found.1.len(), complaints.len(), "{:?}", found.1);
    for (said, expected) in found.1.iter().zip(complaints) {
        assert!(said.starts_with(expected), "{said:?} instead of {expected:?}");
    }
}

const YAML: &str = "\
# of a cluster
apiVersion: v1
items:
# the first
- apiVersion: v1
  kind: Node
  metadata:
    annotations:
      note: |
        é

        - kind: List
    name: a

- kind: Node
  apiVersion: v1
  metadata: {name: b}
kind: List
metadata:
  resourceVersion: \"\"
---
apiVersion: v1
kind: Node
metadata: {name: c}
";

#[test]
fn yaml() {
    is(&found(YAML), &["a at 5:1", "b at 15:1", "c at 22:1"], &[]);
    is(&found(YAML.replace('\n', "\r\n")), &["a at 5:1", "b at 15:1", "c at 22:1"], &[]);
    is(&found(format!("\u{feff}---\n{YAML}---\n# the end\n")), &["a at 6:1", "b at 16:1", "c at 23:1"], &[]);
    is(
        &found(YAML.replace("kind: List\nm", "m")),
        &["a at 5:1", "b at 15:1", "c at 21:1"],
        &["dump:5: document 1: this list does not say its kind"],
    );
    let (before, _) = YAML.split_once("kind: List\nm").expect("a list");
    is(&found(before), &["a at 5:1", "b at 15:1"], &["dump:5: document 1: this list does not say its kind"]);
    is(
        &found(YAML.replace("name: b", "name: [")),
        &["a at 5:1", "c at 22:1"],
        &["dump:17: document 1, item 2: this is no YAML"],
    );
}

#[test]
fn yaml_whose_items_have_the_kind_of_their_list() {
    let list = "apiVersion: v1\nitems:\n- metadata: {name: a}\n- metadata: {name: b}\n";
    is(
        &found(format!("{list}kind: NodeList\n---\n{list}")),
        &["a at 3:1", "b at 4:1"],
        &["dump:7: document 2: this is no Kubernetes object"],
    );
    is(&found(format!("kind: NodeList\n{list}")), &["a at 4:1", "b at 5:1"], &[]);
    // Something else that has items.
    is(&found("kind: Wombat\napiVersion: example.com/v1\nitems:\n- a\n- b\n"), &[], &[]);
}

/// As kubectl prints it.
fn pretty(items: &[&str]) -> String {
    let items: Vec<String> = items.iter().map(|item| format!("        {{\n            {item}\n        }}")).collect();
    format!(
        "{{\n    \"apiVersion\": \"v1\",\n    \"items\": [\n{}\n    ],\n    \"kind\": \"List\"\n}}\n",
        items.join(",\n")
    )
}

fn node(name: &str) -> String {
    format!(
        r#""apiVersion": "v1", "kind": "Node", "metadata": {{"name": "{name}", "annotations": {{"note": "\"]}}é\\"}}}}"#
    )
}

#[test]
fn json() {
    let (a, b, c) = (node("a"), node("b"), node("c"));
    let list = pretty(&[&a, &b]);
    is(
        &found(format!("{list}{{{c}}}\n[{{{c}}}, {{{a}}}] {{{b}}}")),
        &["a at 4:9", "b at 7:9", "c at 13:1", "c at 14:2", "a at 14:103", "b at 14:204"],
        &[],
    );
    is(&found(list.split_whitespace().collect::<String>()), &["a at 1:29", "b at 1:120"], &[]);
    let nested = list.replace('\n', " ");
    is(
        &found(pretty(&[&a, nested.trim().trim_matches(['{', '}']), &b])),
        &["a at 4:9", "a at 7:9[0]", "b at 7:9[1]", "b at 10:9"],
        &[],
    );
}

#[test]
fn json_whose_items_have_the_kind_of_their_list() {
    let list = |first: &str, last: &str| {
        format!(r#"{{{first} "items": [{{"metadata": {{"name": "a"}}}}, {{"metadata": {{"name": "b"}}}}]{last}}}"#)
    };
    is(
        &found(list(r#""kind": "NodeList", "apiVersion": "v1","#, r#", "metadata": {"remainingItemCount": 7}"#)),
        &["a at 1:52", "b at 1:81"],
        &[],
    );
    is(&found(list("", r#", "kind": "NodeList", "apiVersion": "v1""#)), &["a at 1:13", "b at 1:42"], &[]);
    let no_object = "this is no Kubernetes object: it has no kind";
    is(
        &found(list("", "")),
        &[],
        &[&format!("dump:1: document 1, item 1: {no_object}"), &format!("dump:1: document 1, item 2: {no_object}")],
    );
}

#[test]
fn broken_json_costs_what_is_broken() {
    let (a, b, c) = (node("a"), node("b"), node("c"));
    let list = pretty(&[&a, r#""kind": "Node" "metadata": {}"#, &b]);
    is(
        &found(format!("{list}{{{c}}}")),
        &["a at 4:9", "b at 10:9", "c at 16:1"],
        &["dump:8: document 1, item 2: this is no JSON"],
    );
    // The same behind the items.
    let broken = pretty(&[&a]).replace("\"kind\": \"List\"", "\"kind\":\n    \"Li");
    is(
        &found(format!("{broken}{{{c}}}")),
        &["a at 4:9", "c at 11:1"],
        &["dump:9: document 1: this is no JSON: control character"],
    );
    // An item that does not end, and a list.
    let list = pretty(&[&a, r#""kind": {"#, &b]);
    is(
        &found(format!("{list}{{{c}}}")),
        &["a at 4:9", "b at 10:9", "c at 16:1"],
        &["dump:10: document 1, item 2: this is no JSON"],
    );
    let (list, _) = list.split_once("        {\n            \"kind").expect("an item");
    is(&found(list), &["a at 4:9"], &["dump:7: document 1, item 2: this is no JSON: EOF"]);
    is(&found(format!("{{\"a\": {{\n{{{c}}}\n")), &["c at 2:1"], &["dump:2: document 1: this is no JSON"]);
}

#[test]
fn what_is_no_utf_8_is_shown_as_such() {
    let mut text = YAML.as_bytes().to_vec();
    let at = text.iter().position(|byte| *byte == 0xc3).expect("a letter");
    text[at + 1] = b'(';
    is(&found(&text), &["a at 5:1", "b at 15:1", "c at 22:1"], &[]);
    text.extend([0xe2, 0x82]);
    assert_eq!(read(&text, 7), read(&text, WHOLE));
}

#[test]
fn what_comes_before_a_failing_read_is_taken_in() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _into: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is gone"))
        }
    }
    let (before, _) = YAML.split_once("kind: List\nm").expect("a list");
    for block in [1, 20, WHOLE] {
        let (mut seen, mut summary) = (Seen::default(), Summary::default());
        load_in_blocks(block, "dump", before.as_bytes().chain(Failing), &mut seen, &mut summary);
        let [cut_off, error] = &summary.complaints[..] else { panic!("{summary:?}") };
        assert_eq!((seen.0.len(), cut_off.line), (2, 5));
        assert_eq!(error.to_string(), "dump: cannot be read to its end: the disk is gone");
    }
}

#[test]
fn an_empty_list_that_says_of_what_was_read_and_another_was_not() {
    let typed = [
        "apiVersion: apps/v1\nitems: []\nkind: DaemonSetList\n",
        r#"{"kind":"DaemonSetList","apiVersion":"apps/v1","items":[]}"#,
    ];
    let collected =
        list(&[], [Input::DaemonSets, Input::AwsAuth], &ApiServerFacts::default(), DateTime::UNIX_EPOCH).unwrap();
    let untyped = "apiVersion: v1\nitems: []\nkind: List\nmetadata:\n  resourceVersion: \"\"\n";
    let missing = |text: &str| {
        let (mut state, mut summary) = (ClusterState::default(), Summary::default());
        load_in_blocks(WHOLE, "dump", text.as_bytes(), &mut state, &mut summary);
        assert_eq!(summary.complaints, []);
        [Input::DaemonSets, Input::AwsAuth].map(|input| state.missing(input).is_some())
    };
    assert_eq!(typed.map(missing), [[false, true]; 2]);
    assert_eq!(missing(&collected), [false, false]);
    assert_eq!(missing(untyped), [true, true]);
}

#[test]
fn a_dump_says_of_which_api_server_it_is() {
    let facts = ApiServerFacts {
        address: Some("https://NEW0.gr7.eu-west-1.eks.amazonaws.com".into()),
        version: Some("v1.34.2".into()),
    };
    let read = |text: &str| {
        let (mut state, mut summary) = (ClusterState::default(), Summary::default());
        load_in_blocks(WHOLE, "dump", text.as_bytes(), &mut state, &mut summary);
        state.api_server().clone()
    };
    let collected = |facts| list(&[], [], facts, DateTime::UNIX_EPOCH).unwrap();
    assert_eq!(read(&collected(&facts)), facts);
    let yaml = "apiVersion: v1\nkind: List\nmetadata:\n  annotations:\n    nodewhy.dev/server: \
                https://NEW0.gr7.eu-west-1.eks.amazonaws.com\n    nodewhy.dev/version: v1.34.2\nitems:\n- apiVersion: \
                v1\n  kind: Node\n  metadata:\n    name: a\n";
    assert_eq!(read(yaml), facts);
    let unknown = ApiServerFacts::default();
    assert!(!collected(&unknown).contains("nodewhy.dev/server"));
    assert_eq!(read(&collected(&unknown)), unknown);
}

proptest! {
    /// A broken text gives the same result for every block size.
    #[test]
    fn broken_texts(at in any::<proptest::sample::Index>(), lost in 0_usize..40, put in "[-{}\\[\\]\",:# \
        \n\u{0}é]{0,3}", block in 1_usize..200, form in 0..4) {
        let (a, b) = (node("a"), node("b"));
        let text = match form {
            0 => YAML.to_owned(),
            1 => format!("{}{{{a}}}\n{{{b}}}\n", pretty(&[&a, &b])),
            2 => format!("{{{a}}}\n{{{b}}}\n[{{{b}}},\n{{{a}}}]"),
            _ => pretty(&[&a, &b]).split_whitespace().collect(),
        };
        let from = at.index(text.len());
        let to = (from + lost).min(text.len());
        let text = [&text.as_bytes()[..from], put.as_bytes(), &text.as_bytes()[to..]].concat();
        prop_assert_eq!(read(&text, block), read(&text, WHOLE));
    }
}

#[test]
fn a_number_that_ends_with_its_line_is_complained_of_there_in_all_blocks() {
    let (a, b) = (node("a"), node("b"));
    let text = pretty(&[&a, &b]).replacen("\"v1\"", "-\n", 1);
    for block in 1..200 {
        assert_eq!(read(text.as_bytes(), block), read(text.as_bytes(), WHOLE), "{block}");
    }
}
