//! Every cause has a page in docs/causes and examples in tests/causes. The examples are judged, and nothing but what
//! they expect may be found.

use engine::api::NodeDiagnosis;
use engine::case::judging::Judging;
use engine::case::stage::Thresholds;
use engine::cluster_state::ClusterState;
use engine::diagnose::diagnose;
use engine::rules;
use engine::suspects;
use nodewhy::ingest::dump::{Summary, load_from};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use testkit::objects::{Example, collected, examples, over_cluster};

const NOW: &str = "2026-01-15T12:00:00Z";

fn world_of(objects: &str) -> ClusterState {
    read(over_cluster(objects).iter().map(ToString::to_string))
}

fn read(texts: impl Iterator<Item = String>) -> ClusterState {
    let (mut state, mut summary) = (ClusterState::default(), Summary::default());
    for text in texts {
        load_from("page", text.as_bytes(), &mut state, &mut summary);
    }
    assert_eq!(summary.complaints, [], "an object of the example cannot be read");
    state
}

fn shown(diagnosis: &NodeDiagnosis) -> BTreeMap<String, String> {
    let status = diagnosis.status.as_ref().expect("the engine fills in the status");
    let subject = &diagnosis.spec.subject;
    let mut shown = BTreeMap::from([
        ("subject".to_owned(), format!("{}/{}", subject.kind, subject.name)),
        ("stage".to_owned(), format!("{:?}", status.stage)),
        ("cause".to_owned(), status.cause.to_string()),
        ("confidence".to_owned(), format!("{:?}", status.confidence)),
        ("summary".to_owned(), status.summary.to_string()),
    ]);
    if !status.suspects.is_empty() {
        let causes: Vec<&str> = status.suspects.iter().map(|suspect| &*suspect.grounds.cause).collect();
        shown.insert("suspects".to_owned(), causes.join(", "));
    }
    shown.insert("blame".to_owned(), "none".to_owned());
    if let Some(blame) = &status.blame {
        let field = blame.field.as_deref().map_or_else(String::new, |f| format!(" {f}"));
        let place = blame.line.zip(blame.column).map_or_else(String::new, |(l, c)| format!(":{l}:{c}"));
        shown.insert("blame".to_owned(), format!("{}{field}{place}", blame.object));
    }
    shown
}

/// Every finding is expected, every expectation found; an expectation names as many fields as it cares for, `summary`
/// in part, or its `ending`, of `suspects` the first.
fn differences(found: &[BTreeMap<String, String>], expect: &[BTreeMap<String, String>]) -> Vec<String> {
    let fits = |found: &BTreeMap<String, String>, expect: &BTreeMap<String, String>| {
        expect.iter().all(|(key, want)| {
            found.get(if key == "ending" { "summary" } else { key }).is_some_and(|have| match key.as_str() {
                "ending" => have.ends_with(want),
                "summary" => have.contains(want),
                "suspects" => have.split(", ").take(want.split(", ").count()).eq(want.split(", ")),
                _ => have == want,
            })
        })
    };
    let missed = expect.iter().filter(|e| !found.iter().any(|f| fits(f, e))).map(|e| format!("not found: {e:?}"));
    let extra = found.iter().filter(|f| !expect.iter().any(|e| fits(f, e))).map(|f| format!("found: {f:?}"));
    missed.chain(extra).collect()
}

fn pages() -> Vec<(&'static str, &'static str)> {
    let of_rules = rules::ALL.iter().map(|r| (r.cause, r.page)).chain([(rules::unknown::CAUSE, rules::unknown::PAGE)]);
    of_rules.chain(suspects::PAGES.iter().map(|page| (page.cause, page.text))).collect()
}

#[test]
fn every_example_gives_what_its_page_says() {
    let now = NOW.parse().expect("a time");
    let mut failures = String::new();
    for (cause, _) in pages() {
        for example in examples(cause) {
            let found: Vec<_> = diagnose(Judging::new(&world_of(&example.objects), now, &Thresholds::default()))
                .iter()
                .map(shown)
                .collect();
            for difference in differences(&found, &example.expect) {
                let _ =
                    writeln!(failures, "tests/causes/{cause}.md:{} {}\n    {difference}", example.line, example.title);
            }
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

#[test]
fn that_there_is_none_of_a_kind_is_known_where_its_list_was_read() {
    let mut objects = over_cluster(&examples("EniConfigMissing").first().expect("an example").objects);
    objects.retain(|object| object["kind"] != "ENIConfig");
    let causes = |lists: &[&str]| -> Vec<_> {
        let texts = objects.iter().map(ToString::to_string).chain(lists.iter().map(ToString::to_string));
        let diagnoses = diagnose(Judging::new(&read(texts), NOW.parse().expect("a time"), &Thresholds::default()));
        diagnoses.iter().map(|d| shown(d)["cause"].clone()).collect()
    };
    let empty = r#"{"apiVersion": "crd.k8s.amazonaws.com/v1alpha1", "kind": "ENIConfigList", "items": []}"#;
    assert_eq!(causes(&[empty]), ["EniConfigMissing"]);
    assert_ne!(causes(&[]), ["EniConfigMissing"], "nobody has looked");
}

/// Where an exclusion is wrong, nobody looks there again.
#[test]
fn no_example_has_its_cause_among_the_exclusions() {
    let now = NOW.parse().expect("a time");
    let mut failures = String::new();
    for (cause, _) in pages() {
        for example in examples(cause) {
            let expected: Vec<_> = example.expect.iter().filter_map(|e| e.get("cause")).collect();
            for diagnosis in diagnose(Judging::new(&world_of(&example.objects), now, &Thresholds::default())) {
                let ruled_out = diagnosis.status.expect("the engine fills in the status").ruled_out;
                // Of two machines each may have a cause of its own.
                if let [truth] = expected.as_slice()
                    && let Some(wrong) = ruled_out.iter().find(|r| r.cause == truth.as_str())
                {
                    let _ = writeln!(failures, "tests/causes/{cause}.md:{} {}: {wrong:?}", example.line, example.title);
                }
            }
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

#[test]
fn what_is_collected_of_an_example_gives_the_same_verdict_to_the_byte() {
    let now = NOW.parse().expect("a time");
    let judged = |state: &ClusterState| {
        serde_json::to_string(&diagnose(Judging::new(state, now, &Thresholds::default()))).expect("JSON")
    };
    let mut failures = String::new();
    for (cause, _) in pages() {
        for example in examples(cause) {
            let dump = collected(&over_cluster(&example.objects));
            let (live, offline) = (judged(&world_of(&example.objects)), judged(&read(std::iter::once(dump))));
            if live != offline {
                let _ = writeln!(
                    failures,
                    "tests/causes/{cause}.md:{} {}\n    {live}\n    {offline}",
                    example.line, example.title
                );
            }
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

#[test]
fn every_page_has_a_hit_and_a_near_miss_and_begins_with_the_message_that_users_search_for() {
    for (cause, page) in pages() {
        let mut lines = page.lines().filter(|l| !l.is_empty());
        assert_eq!(lines.next(), Some(format!("# {cause}").as_str()));
        assert!(lines.next().is_some_and(|l| l.starts_with("> ")), "{cause}: the exact message must follow the title");
        // A cause that no rule can prove is named as a suspect, and nowhere as the verdict.
        let key = if suspects::page(cause).is_some() { "suspects" } else { "cause" };
        let names_it =
            |e: &&Example| e.expect.iter().any(|e| e.get(key).is_some_and(|of| of.split(", ").any(|c| c == cause)));
        let examples = examples(cause);
        assert!(examples.iter().any(|e| names_it(&e)), "{cause}: no example finds it");
        assert!(examples.iter().any(|e| !names_it(&e)), "{cause}: no near miss");
    }
}

/// `[owner/repo#1](https://github.com/owner/repo/issues/1)`, or a repository that exists because of it.
#[test]
fn every_page_links_the_reports_it_rests_on_or_says_that_there_is_none() {
    for (cause, page) in pages() {
        let Some((_, reports)) = page.split_once("\nSeen in:\n") else {
            assert!(page.contains("No report by a user is known."), "{cause}: where was it seen?");
            continue;
        };
        let reports = reports.split("\n\n").next().unwrap_or_default();
        for link in reports.trim_end().trim_end_matches('.').split(",\n") {
            let parts = link.strip_prefix('[').and_then(|l| l.strip_suffix(')')).and_then(|l| l.split_once("]("));
            let (label, address) = parts.unwrap_or_else(|| panic!("{cause}: {link} is no link"));
            assert_eq!(
                address,
                format!("https://github.com/{}", label.replace('#', "/issues/")),
                "{cause}: the link goes elsewhere"
            );
        }
    }
}

#[test]
fn every_page_in_the_folder_belongs_to_a_cause() {
    let known = pages();
    for folder in ["docs/causes", "tests/causes"] {
        let entries = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).expect(folder);
        for entry in entries {
            let name = entry.expect("an entry").file_name().into_string().expect("a name");
            if let Some(cause) = name.strip_suffix(".md").filter(|c| !matches!(*c, "README" | "not-visible")) {
                assert!(known.iter().any(|(k, _)| *k == cause), "{folder}/{name} is no cause's page");
            }
        }
    }
}

#[test]
fn the_cluster_that_examples_start_from_is_healthy() {
    let now = NOW.parse().expect("a time");
    assert_eq!(diagnose(Judging::new(&world_of(""), now, &Thresholds::default())), []);
}

#[test]
fn the_list_of_causes_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/causes/README.md");
    if std::env::var_os("NODEWHY_UPDATE").is_some() {
        std::fs::write(&path, suspects::index()).expect("the list of causes");
    }
    let written = std::fs::read_to_string(&path).expect("the list of causes");
    assert_eq!(
        written,
        suspects::index(),
        "docs/causes/README.md is stale: NODEWHY_UPDATE=1 cargo test --test it pages"
    );
}
