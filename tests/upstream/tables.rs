//! A table that is shipped is what `cargo xtask tables` makes of its pinned module.

use std::fs;
use testkit::go::module_source;
use xtask::tables::{FILE, MODULE, TABLE, instance_types};

use crate::table::Table;

#[test]
fn the_table_of_instance_types_is_made_of_the_pinned_module() {
    let (module, version) = MODULE.split_once('@').expect("MODULE@VERSION");
    let pinned = &Table::read().pins[module];
    assert!(
        pinned.iter().any(|pin| pin == version),
        "{MODULE} is not pinned: tests/upstream/table.toml has {pinned:?}"
    );
    let source = fs::read_to_string(module_source(MODULE).join(FILE)).expect("the module has the file");
    let made = instance_types(&source).expect("the file is shaped as before");
    let shipped = fs::read_to_string(testkit::project().join(TABLE)).expect("the table is there");
    assert!(made == shipped, "cargo xtask tables makes another {TABLE}");
    assert!(shipped.lines().count() > 900, "types are missing");
}

#[test]
fn a_file_of_another_shape_makes_no_table() {
    let limits = "// This file was generated at 2026-09-02T16:44:35Z\nvar Limits = {\n\t\"m5.large\": {\n\t\tInterface: 3,\n\t\tIPv4PerInterface: 10,\n\t\tIsTrunkingCompatible: true,\n\t\tBranchInterface: 9,\n\t\tDefaultNetworkCardIndex: 1,\n\t\tNetworkCards: {\n\t\t\t{\n\t\t\t\tMaximumNetworkInterfaces: 2,\n\t\t\t},\n\t\t\t{\n\t\t\t\tMaximumNetworkInterfaces: 3,\n\t\t\t},\n\t\t},\n\t},\n}\n";
    let made = instance_types(limits).expect("a table");
    assert!(made.contains("as of 2026-09-02\n") && made.ends_with("\nm5.large\t3\t10\t9\n"), "{made}");
    let without_trunk = instance_types(&limits.replace("Compatible: true", "Compatible: false"));
    assert!(without_trunk.is_some_and(|table| table.ends_with("\nm5.large\t3\t10\t0\n")));
    for part in [
        "generated at ",
        "IPv4PerInterface",
        "BranchInterface",
        "IsTrunking",
        "\t\"m5.large\"",
        "MaximumNetworkInterfaces: 3",
    ] {
        assert_eq!(instance_types(&limits.replace(part, "")), None, "{part}");
    }
}
