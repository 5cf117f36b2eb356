//! Every row of the table knows its own sample, and nothing of what only looks like it.

use logs::fact::Fact;
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
    for (program, row) in all() {
        let journey = read(&row.sample);
        let fits = |fact: &Fact| {
            fact.means == row.means
                && fact.ends == row.ends
                && fact.vague == row.vague
                && Some(fact.blocks) == row.blocks
        };
        let known = match row.passes {
            Some(phase) => journey.milestones.contains_key(&phase),
            None if row.is_up => journey.came_up.contains_key(program),
            None => journey.facts.iter().any(fits),
        };
        if !known {
            faults.push(format!("{program}: {}\n    {:?}", row.says, told(&journey)));
        }
        let is_good = row.passes.is_some() || row.is_up;
        if is_good == (row.proves.is_some() || row.asks.is_some()) {
            faults.push(format!("{program}: {}: either passes or is up, or proves or asks", row.says));
        }
        if is_good == row.blocks.is_some() {
            faults.push(format!("{program}: {}: what proves, blocks", row.says));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn no_row_takes_its_neighbor_for_trouble() {
    let faults: Vec<String> = all()
        .filter_map(|(program, row)| {
            let journey = read(&row.harmless);
            let wrong = match row.passes {
                Some(phase) => journey.milestones.contains_key(&phase),
                None => !journey.facts.is_empty() || row.is_up && journey.came_up.contains_key(program),
            };
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
