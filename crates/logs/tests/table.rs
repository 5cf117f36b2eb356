//! Every row of the table knows its own sample, and nothing of what only looks like it.

use logs::fact::{Fact, Trouble};
use logs::journey::Journey;
use logs::table::{FILES, Row, reasons, rows};
use logs::{FileLimits, LogReader};
use std::collections::BTreeSet;

fn read(line: &str) -> Journey {
    let mut reader = LogReader::new(FileLimits::default());
    let written = "2026-01-15T12:00:00Z".parse().ok();
    reader.file("a.log", line.as_bytes(), written).expect("text");
    reader.journeys().into_iter().next().unwrap_or_default()
}

fn all() -> impl Iterator<Item = (&'static str, Row)> {
    FILES.into_iter().flat_map(|(program, text)| {
        rows(text).unwrap_or_else(|error| panic!("{program}: {error}")).into_iter().map(move |row| (program, row))
    })
}

fn told(journey: &Journey) -> Vec<&str> {
    let passed = journey.milestones.values().map(|milestone| milestone.first.text.as_str());
    journey.facts.iter().map(|fact| fact.means.as_str()).chain(passed).collect()
}

#[test]
fn every_row_knows_its_sample() {
    let mut faults = Vec::new();
    for (program, row) in all().filter(|(_, row)| row.undoes.is_none()) {
        let journey = read(&row.sample);
        let fits = |fact: &Fact| {
            fact.means == row.means
                && fact.ends == row.ends
                && fact.vague == row.vague
                && Some(fact.blocks) == row.blocks
        };
        let is_trouble = row.proves.is_some() || row.asks.is_some();
        let known = row.passes.is_none_or(|phase| journey.milestones.contains_key(&phase))
            && (!row.is_up || journey.came_up.contains_key(program))
            && (!is_trouble || journey.facts.iter().any(fits));
        if !known {
            faults.push(format!("{program}: {}\n    {:?}", row.says, told(&journey)));
        }
        let gets_further = row.passes.is_some_and(|phase| row.blocks.is_none_or(|blocked| phase < blocked));
        if !(gets_further || row.is_up || is_trouble && row.passes.is_none()) {
            faults.push(format!("{program}: {}: passes, comes up, proves or asks", row.says));
        }
        let is_minor = |version: &String| version.strip_prefix("1.").is_some_and(|minor| minor.parse::<u32>().is_ok());
        if ![&row.since, &row.until].into_iter().flatten().all(is_minor) {
            faults.push(format!("{program}: {}: since and until are minor versions", row.says));
        }
        if is_trouble != row.blocks.is_some() {
            faults.push(format!("{program}: {}: what proves, blocks", row.says));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn that_the_limit_of_interfaces_is_reached_stops_no_machine() {
    let is_limit = |row: &Row| row.proves == Some(Trouble::InterfaceLimit);
    let (_, row) = all().find(|(_, row)| is_limit(row)).expect("a row of the VPC CNI");
    let journey = read(&row.sample);
    assert_eq!((journey.facts.len(), journey.open().len(), journey.complains()), (1, 0, false));
}

#[test]
fn what_a_row_takes_back_is_a_row_and_no_trouble_any_more() {
    let undoing: Vec<_> = all().filter_map(|(program, row)| Some((program, row.undoes.clone()?, row))).collect();
    assert!(!undoing.is_empty());
    for (program, undone, row) in undoing {
        let told = all().find(|(of, told)| *of == program && told.means == undone);
        let sample = told.unwrap_or_else(|| panic!("{program}: no row means {undone:?}")).1.sample;
        let facts = |lines: &[&str]| read(&lines.join("\n")).facts.len();
        assert_eq!(facts(&[&sample, &row.sample]), 0, "{}", row.says);
        assert_eq!(facts(&[&sample, &row.harmless]), 1, "{}", row.says);
        assert_eq!(facts(&[&row.sample, &sample]), 1, "{}", row.says);
    }
}

#[test]
fn no_row_takes_its_neighbor_for_trouble() {
    let faults: Vec<String> = all()
        .filter_map(|(program, row)| {
            let journey = read(&row.harmless);
            // What no row knows is no row's.
            let is_trouble = journey.facts.iter().any(|fact| fact.trouble != Trouble::Unexplained);
            let wrong = row.passes.is_some_and(|phase| journey.milestones.contains_key(&phase))
                || is_trouble && (row.passes.is_none() || row.blocks.is_some())
                || row.is_up && journey.came_up.contains_key(program);
            wrong.then(|| format!("{program}: {}\n    {}\n    {:?}", row.says, row.harmless, told(&journey)))
        })
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_reason_is_told_from_the_others() {
    let mut faults = Vec::new();
    for row in reasons().expect("the reasons") {
        let of = |text: &str| {
            let line = format!(
                "E0115 11:52:07.123456    1629 x.go:1] \"Unable to register node with API server\" err=\"{text}\""
            );
            read(&line).facts.first().and_then(|fact| fact.reason)
        };
        if of(&row.sample) != Some(row.reason) {
            faults.push(format!("{}: {:?}", row.says, of(&row.sample)));
        }
        if of(&row.harmless) == Some(row.reason) {
            faults.push(format!("{}: so is {}", row.says, row.harmless));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_table_is_large_and_says_nothing_twice() {
    let mut seen = BTreeSet::new();
    let twice: Vec<String> =
        all().filter(|(program, row)| !seen.insert((*program, row.says.clone()))).map(|(_, row)| row.says).collect();
    assert_eq!(twice, [""; 0]);
    assert!(seen.len() >= 190, "{}", seen.len());
}

#[test]
fn an_id_in_a_file_of_its_own_names_the_machine_whose_files_stand_nearest() {
    let line = |host: &str| {
        format!("2026-01-15T11:51:34+00:00 {host} kubelet[1629]: I0115 11:51:34.123456    1629 server.go:1] x\n")
    };
    let ids = ["i-0a0000000000000b1", "i-0a0000000000000b2"];
    let named = |files: &[(&str, String)]| {
        let mut reader = LogReader::new(FileLimits::default());
        for (name, text) in files {
            reader.file(name, text.as_bytes(), None).expect("text");
        }
        let names = |journey: Journey| {
            journey.identity.instances.into_iter().chain(journey.identity.hosts).collect::<Vec<_>>().join(" ")
        };
        reader.journeys().into_iter().map(names).collect::<BTreeSet<String>>()
    };
    let id = |n: usize| format!("{}\n", ids[n]);
    let apart = [
        ("a/kubelet/kubelet.log", line("one")),
        ("a/system/instance-id.txt", id(0)),
        ("b/kubelet/kubelet.log", line("two")),
        ("b/system/instance-id.txt", id(1)),
    ];
    assert_eq!(named(&apart), BTreeSet::from([format!("{} one", ids[0]), format!("{} two", ids[1])]));
    // Nothing tells which of two it names, nor which of two names it.
    let of_two = [("a/one.log", line("one")), ("a/two.log", line("two")), ("a/id.txt", id(0))];
    assert_eq!(named(&of_two), BTreeSet::from([ids[0].to_owned(), "one".to_owned(), "two".to_owned()]));
    let by_two = [("a/one.log", line("one")), ("a/id.txt", id(0)), ("a/other.txt", id(1))];
    assert_eq!(named(&by_two), BTreeSet::from([ids[0].to_owned(), ids[1].to_owned(), "one".to_owned()]));
}
