//! `cargo xtask upstream`: which pins are behind, what of nodewhy's strings the newest releases no longer have, and
//! which tables change.

pub mod lines;
pub mod look_up;
pub mod report;
pub mod table;
pub mod version;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use look_up::Unpacked;
use programs::{go, pins};
use report::{Behind, Report};
use table::Table;
use version::{Minor, Version, highest, newer};

use crate::tables::{self, feature_gates, instance_types};

/// What [`run`] does.
pub const HELP: &str = "\
Usage: cargo xtask upstream [--markdown]

Compares each pinned Go module with its newest release: the pins of tests/e2e/upstream/table.toml, of crates/programs and
of the go.mod files below crates/programs and tests/e2e. Pre-releases, pseudo-versions and retracted versions do not count.
A folder that ends with a minor, such as kubelet-1.28, is compared within this minor.

For each pin of table.toml that is behind, it downloads the newest release and looks up every string of table.toml and of
crates/logs/table. It prints what vanished, what moved to another file of the module, and which tables
`cargo xtask tables` will change. It needs Go and a module proxy, and it changes no file.

  --markdown  Print the report as the text of an issue

Exit codes:
  0  Every pin is at the newest release
  1  A pin is behind, or a string vanished or moved
  2  Something could not be looked up: the report says what and why, and the rest of it is complete";

/// The module whose minors the tables of the kubelet follow.
const KUBERNETES: &str = "k8s.io/kubernetes";

/// Looks everything up. An error is one of this repository; what the network refuses is part of the report.
pub fn run(root: &Path) -> Result<Report, String> {
    let table = Table::read(root)?;
    let lines = lines::all(root)?;
    let mut report = Report::default();
    let mut listed = Listed::default();
    for (module, versions) in &table.pins {
        let Some(pinned) = highest(versions.iter().map(String::as_str)) else {
            return Err(format!("{}: {module} is pinned to no version", table::FILE));
        };
        let Some((newest, folder)) = listed.newest(module, &pinned, &mut report) else { continue };
        report.add(module, &pinned, &newest, table::FILE);
        match twice(|| go::downloaded(&format!("{module}@{pinned}"))) {
            Ok(before) => {
                let before = Unpacked { module, version: pinned.to_string(), folder: before };
                let newer = Unpacked { module, version: newest.to_string(), folder };
                let (looked_up, differences) = look_up::differences(&table, &lines, &before, &newer);
                report.looked_up += looked_up;
                report.differences.extend(differences);
            }
            Err(why) => report.failures.push(why),
        }
    }
    programs_behind(&table, &mut listed, &mut report)?;
    changed_tables(root, &mut listed, &mut report)?;
    report.without_release.sort();
    report.without_release.dedup();
    report.failures.sort();
    report.failures.dedup();
    Ok(report)
}

/// The pins of what the end-to-end tests build. Several versions in one place are one pin: the highest. A library that
/// the table does not have follows from the others.
fn programs_behind(table: &Table, listed: &mut Listed, report: &mut Report) -> Result<(), String> {
    let mut highest: BTreeMap<(String, String), (Version, Option<Minor>)> = BTreeMap::new();
    for pin in pins::all()?.into_iter().filter(|pin| pin.is_program || table.pins.contains_key(&pin.module)) {
        let version = Version::parse(&pin.version)
            .ok_or_else(|| format!("{}: {} is pinned to {}", pin.place, pin.module, pin.version))?;
        let known = highest.entry((pin.module, pin.place)).or_insert_with(|| (version.clone(), pin.minor));
        known.0 = known.0.clone().max(version);
    }
    for ((module, place), (pinned, within)) in highest {
        let versions = listed.of(&module, report);
        if let Some(newest) = newer(versions.iter().map(String::as_str), &pinned, within).first() {
            report.add(&module, &pinned, newest, &place);
        }
    }
    Ok(())
}

/// The tables of the pinned modules that have newer releases.
fn changed_tables(root: &Path, listed: &mut Listed, report: &mut Report) -> Result<(), String> {
    let (module, version) = instance_types::MODULE.split_once('@').ok_or("the pin of instance types has no version")?;
    let pinned = Version::parse(version).ok_or_else(|| format!("{version} is no version"))?;
    if let Some((newest, _)) = listed.newest(module, &pinned, report) {
        let with = format!("{module}@{newest}");
        match tables::with_module(root, &with) {
            Ok(change) => report.tables.push((with, change)),
            Err(why) => report.failures.push(why),
        }
    }
    let read = *feature_gates::MINORS.end();
    let end = Version::parse(&format!("v1.{read}.999")).ok_or("a minor is a number")?;
    // The tables read the first release of each minor, which the proxy may not serve.
    let Some((newest, _)) = listed.newest(KUBERNETES, &end, report) else { return Ok(()) };
    let minor = u32::try_from(newest.minor().1).map_err(|_| format!("{newest} has no minor"))?;
    match tables::with_minor(read, minor) {
        Ok(changes) => report.tables.extend(changes.map(|change| (format!("{KUBERNETES} 1.{minor}"), change))),
        Err(why) => report.failures.push(why),
    }
    Ok(())
}

impl Report {
    fn add(&mut self, module: &str, pinned: &Version, newest: &Version, place: &str) {
        let same =
            |behind: &&mut Behind| behind.module == module && behind.pinned == *pinned && behind.newest == *newest;
        if let Some(behind) = self.behind.iter_mut().find(same) {
            behind.places.push(place.to_owned());
            return;
        }
        let (pinned, newest, places) = (pinned.clone(), newest.clone(), vec![place.to_owned()]);
        self.behind.push(Behind { module: module.to_owned(), pinned, newest, places });
    }
}

/// What the module proxy lists, asked once a module.
#[derive(Default)]
struct Listed(BTreeMap<String, Vec<String>>);

impl Listed {
    fn of(&mut self, module: &str, report: &mut Report) -> &[String] {
        self.0.entry(module.to_owned()).or_insert_with(|| match twice(|| go::versions(module)) {
            Ok(versions) => {
                if versions.is_empty() {
                    report.without_release.push(module.to_owned());
                }
                versions
            }
            Err(why) => {
                report.failures.push(why);
                Vec::new()
            }
        })
    }

    /// The newest release after `pinned` that can be downloaded, and its folder. A proxy may list what it does not
    /// serve.
    fn newest(&mut self, module: &str, pinned: &Version, report: &mut Report) -> Option<(Version, PathBuf)> {
        let candidates = newer(self.of(module, report).iter().map(String::as_str), pinned, None);
        for version in candidates {
            match twice(|| go::downloaded(&format!("{module}@{version}"))) {
                Ok(folder) => return Some((version, folder)),
                Err(why) => report.failures.push(why),
            }
        }
        None
    }
}

/// Networks fail for a moment.
fn twice<T>(attempt: impl Fn() -> Result<T, String>) -> Result<T, String> {
    attempt().or_else(|_| {
        thread::sleep(Duration::from_secs(2));
        attempt()
    })
}
