//! Each row of the log table of a program that `tests/e2e/real_logs` runs stands in a test there, or has a reason under
//! `NOT_HERE`. Whether the programs print the rows, only these tests can say.

use crate::literals;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use testkit::log_rows::{account, excused_by, rows_of};
use testkit::project;

const FOLDER: &str = "tests/e2e/real_logs";

/// The constants of a test that `tests/e2e/real_logs.rs` explains.
const NOT_HERE: &str = "NOT_HERE";
const BESIDE: &str = "BESIDE";

/// The call that compares a program's rows with what it printed.
const COMPLETE: &str = "assert_complete(\"";

/// The rows that a test names: those in its lists with their lines.
#[derive(Debug, Default)]
struct Named {
    /// By cases and by code. There are other literals among them.
    expected: BTreeSet<String>,
    beside: BTreeMap<String, usize>,
    not_here: BTreeMap<String, usize>,
}

/// Reads the source of a test.
fn named_in(source: &str) -> Named {
    let mut named = Named::default();
    let mut is_reason = false;
    for literal in literals::of(source) {
        match literal.constant.as_str() {
            // Pairs of rows and their reason.
            NOT_HERE if is_reason => is_reason = false,
            NOT_HERE => {
                is_reason = true;
                let rows = excused_by(&literal.text).enumerate();
                named.not_here.extend(rows.map(|(after, row)| (row.to_owned(), literal.line + after)));
            }
            BESIDE => {
                named.beside.insert(literal.text, literal.line);
            }
            _ => {
                named.expected.insert(literal.text);
            }
        }
    }
    named
}

/// What is wrong with the source of a test, beside the table of its program. Both have a path.
fn complaints((test, source): (&str, &str), (path, table): (&str, &str)) -> Vec<String> {
    let (named, known) = (named_in(source), rows_of(table));
    let rows = |of: &BTreeMap<String, usize>| -> BTreeSet<String> { of.keys().cloned().collect() };
    let (expected, beside, not_here) = (&named.expected, rows(&named.beside), rows(&named.not_here));
    let excused: BTreeSet<&str> = not_here.iter().map(String::as_str).collect();
    let shown: BTreeSet<&str> = expected.union(&beside).map(String::as_str).collect();
    let accounted = account(&known, &shown, &excused);
    let left = accounted.left.into_iter().map(|row| {
        format!(
            "{path}:{}: {row}\n  {test} does not name it. Add a case whose `says` it is, add it to {BESIDE} if a case \
             prints it beside another row, or add it to {NOT_HERE} with the reason why no case can print it",
            line_of(table, row)
        )
    });
    let excuse = |row: &str| format!("{test}:{}: {row}\n ", named.not_here[row]);
    let printed = accounted
        .printed
        .into_iter()
        .map(|row| format!("{} a case expects it. Take it out of {NOT_HERE}", excuse(row)));
    let unknown = accounted.unknown.into_iter().map(|row| {
        format!("{} {path} does not have it. Take it out of {NOT_HERE}, or write it as the table does", excuse(row))
    });
    let idle = beside.iter().filter(|row| expected.contains(*row) || !known.contains(*row)).map(|row| {
        format!(
            "{test}:{}: {row}\n  A case names it, or {path} does not have it. Take it out of {BESIDE}",
            named.beside[row]
        )
    });
    left.chain(printed).chain(unknown).chain(idle).collect()
}

/// The line of a row in the text of its table.
fn line_of(table: &str, row: &str) -> usize {
    let says = |line: &str| toml::from_str::<toml::Table>(line).ok()?.get("says")?.as_str().map(str::to_owned);
    let is_it = |line: &str| line.starts_with("says = ") && says(line).is_some_and(|says| says == row);
    table.lines().position(is_it).map_or(1, |at| at + 1)
}

#[test]
fn every_row_of_a_program_that_is_run_is_expected_or_excused() {
    let (mut wrong, mut programs) = (Vec::new(), BTreeSet::new());
    for entry in fs::read_dir(project().join(FOLDER)).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let source = fs::read_to_string(&path).expect("source is UTF-8");
        let Some((_, call)) = source.split_once(COMPLETE) else { continue };
        let program = call.split('"').next().unwrap_or_default();
        let test = format!("{FOLDER}/{}", path.file_name().unwrap_or_default().display());
        let table = format!("crates/logs/table/{}.toml", program.replace('-', "_"));
        let rows =
            fs::read_to_string(project().join(&table)).unwrap_or_else(|error| panic!("{test}: {table}: {error}"));
        wrong.extend(complaints((test.as_str(), source.as_str()), (table.as_str(), rows.as_str())));
        programs.insert(program.to_owned());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(programs.len() >= 9, "tests of programs are gone: {programs:?} are left");
}

#[test]
fn a_row_that_nothing_names_and_an_idle_excuse_are_told() {
    let row = |says: &str| {
        format!("[[row]]\nsays = '{says}'\nmeans = \"x\"\nsource = \"x\"\nsample = \"x\"\nharmless = \"x\"\n")
    };
    let table = ["shown", "said too", "excused", "first", "forgotten"].map(row).concat();
    let source = "\
const NOT_HERE: &[(&str, &str)] = &[
    (
        \"excused
        first\",
        \"forgotten\",
    ),
    (\"gone\", \"x\"), (\"shown\", \"x\"),
];
const BESIDE: &[&str] = &[\"said too\", \"none\"];
fn cases() -> [&str; 1] {
    [\"shown\"]
}
";
    let told = complaints(("test.rs", source), ("table.toml", table.as_str()));
    let places: Vec<&str> = told.iter().filter_map(|told| told.lines().next()).collect();
    assert_eq!(places, ["table.toml:26: forgotten", "test.rs:7: shown", "test.rs:7: gone", "test.rs:9: none"]);
}
