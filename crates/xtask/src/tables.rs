//! `cargo xtask tables`: what nodewhy knows by heart of upstream's own tables, made anew from the pinned modules.

pub mod feature_gates;
pub mod instance_types;
pub mod kubelet;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use programs::go::downloaded;

/// Writes the tables, and says where.
pub fn write(root: &Path) -> Result<String, String> {
    let tables = [
        (instance_types::TABLE, instance_types(instance_types::MODULE)?),
        (feature_gates::TABLE, feature_gates::table(&downloaded, feature_gates::MINORS)?),
        (kubelet::CONFIG_TABLE, kubelet::config(&downloaded, kubelet::MINORS)?),
        (kubelet::FLAGS_TABLE, kubelet::flags(&downloaded, *kubelet::MINORS.end())?),
    ];
    for (table, text) in &tables {
        fs::write(root.join(table), text).map_err(|error| format!("{table}: {error}"))?;
    }
    Ok(tables.map(|(table, _)| table).join(", "))
}

/// The table of instance types of that module, MODULE@VERSION.
fn instance_types(module: &str) -> Result<String, String> {
    let limits = downloaded(module)?.join(instance_types::FILE);
    let text = fs::read_to_string(&limits).map_err(|error| format!("{}: {error}", limits.display()))?;
    instance_types::table(&text, module).ok_or_else(|| format!("{} reads otherwise than before", limits.display()))
}

/// How a table changes with a newer version of what it is made of.
#[derive(Debug, PartialEq, Eq)]
pub struct Change {
    pub table: &'static str,
    pub added: Vec<String>,
    pub removed: Vec<String>,
    pub changed: Vec<String>,
}

/// How the table of instance types changes with another version of its module.
pub fn with_module(root: &Path, module: &str) -> Result<Change, String> {
    let table = instance_types::TABLE;
    let shipped = fs::read_to_string(root.join(table)).map_err(|error| format!("{table}: {error}"))?;
    Ok(change(table, [&shipped, &instance_types(module)?], &[0, 1, 2, 3]))
}

/// How the tables of the kubelet change from one minor of Kubernetes to another. `cargo xtask tables` also reads all
/// minors before; what these say has not changed.
pub fn with_minor(old: u32, new: u32) -> Result<[Change; 3], String> {
    let gates = |minor| feature_gates::table(&downloaded, minor..=minor);
    let fields = |minor| kubelet::config(&downloaded, minor..=minor);
    let flags = |minor| kubelet::flags(&downloaded, minor);
    // The other columns have the minor's number.
    Ok([
        change(feature_gates::TABLE, [&gates(old)?, &gates(new)?], &[0, 4]),
        change(kubelet::CONFIG_TABLE, [&fields(old)?, &fields(new)?], &[0, 1]),
        change(kubelet::FLAGS_TABLE, [&flags(old)?, &flags(new)?], &[0, 1, 2]),
    ])
}

/// The rows that differ, by their first column, where only `columns` count.
fn change(table: &'static str, [old, new]: [&str; 2], columns: &[usize]) -> Change {
    let rows = |text: &str| -> BTreeMap<String, Vec<String>> {
        let rows = text.lines().filter(|line| !line.starts_with('#'));
        let cells = rows.map(|row| row.split('\t').map(str::to_owned).collect::<Vec<_>>());
        cells.map(|cells| (cells[0].clone(), columns.iter().filter_map(|n| cells.get(*n).cloned()).collect())).collect()
    };
    let (old, new) = (rows(old), rows(new));
    let without = |some: &BTreeMap<String, Vec<String>>, others: &BTreeMap<String, Vec<String>>| -> Vec<String> {
        some.keys().filter(|name| !others.contains_key(*name)).cloned().collect()
    };
    let changed = new.iter().filter(|(name, cells)| old.get(*name).is_some_and(|before| before != *cells));
    Change {
        table,
        added: without(&new, &old),
        removed: without(&old, &new),
        changed: changed.map(|(name, _)| name.clone()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_came_went_or_differ_are_told() {
        let old = "# as of 1\n# gate\tminor\tto\nA\t36\ttrue\nB\t36\t\nC\t36\t\n";
        let new = "# as of 2\n# gate\tminor\tto\nA\t37\tfalse\nC\t37\t\nD\t37\t\n";
        let told = change("t.tsv", [old, new], &[0, 2]);
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let wanted = Change { table: "t.tsv", added: names(&["D"]), removed: names(&["B"]), changed: names(&["A"]) };
        assert_eq!(told, wanted);
        assert_eq!(change("t.tsv", [old, new], &[0, 1]).changed, ["A", "C"]);
    }
}
