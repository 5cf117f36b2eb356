//! Whether every row of a program's log table is accounted for: a real program prints it, or a reason says why none
//! can.

use logs::table::rows;
use std::collections::BTreeSet;

/// The faults of a program's rows.
#[derive(Debug, PartialEq, Eq)]
pub struct Account<'r> {
    /// They are neither printed nor excused.
    pub left: Vec<&'r str>,
    /// They are excused, although they are printed.
    pub printed: Vec<&'r str>,
    /// They are excused, and the table does not have them.
    pub unknown: Vec<&'r str>,
}

/// The rows of a file of `crates/logs/table`, by what they say.
pub fn rows_of(table: &str) -> BTreeSet<String> {
    rows(table).expect("the table").into_iter().map(|row| row.says).collect()
}

/// The rows of an excuse, which has one on each line.
pub fn excused_by(excuse: &str) -> impl Iterator<Item = &str> {
    excuse.lines().map(str::trim_start)
}

/// Compares the rows of a table with those that are printed and those that are excused.
pub fn account<'r>(
    known: &'r BTreeSet<String>,
    printed: &BTreeSet<&'r str>,
    excused: &BTreeSet<&'r str>,
) -> Account<'r> {
    let known: BTreeSet<&str> = known.iter().map(String::as_str).collect();
    Account {
        left: kept(&known, |row| !printed.contains(row) && !excused.contains(row)),
        printed: kept(excused, |row| printed.contains(row)),
        unknown: kept(excused, |row| !known.contains(row)),
    }
}

fn kept<'r>(rows: &BTreeSet<&'r str>, is_kept: impl Fn(&str) -> bool) -> Vec<&'r str> {
    rows.iter().copied().filter(|row| is_kept(row)).collect()
}
