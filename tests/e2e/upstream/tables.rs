//! A table that is shipped is what `cargo xtask tables` makes of its pinned module.

use std::collections::BTreeMap;
use std::fs;
use testkit::go::module_source;
use testkit::project;
use xtask::tables::instance_types::{self, FILE, MODULE, TABLE};
use xtask::tables::{feature_gates, kubelet};
use xtask::upstream::table::Table;

#[test]
fn the_table_of_instance_types_is_made_of_the_pinned_module() {
    let (module, version) = MODULE.split_once('@').expect("MODULE@VERSION");
    let pinned = &Table::read(project()).expect("the table").pins[module];
    assert!(
        pinned.iter().any(|pin| pin == version),
        "{MODULE} is not pinned: tests/e2e/upstream/table.toml has {pinned:?}"
    );
    let source = fs::read_to_string(module_source(MODULE).join(FILE)).expect("the module has the file");
    let made = instance_types::table(&source, MODULE).expect("the file is shaped as before");
    let shipped = fs::read_to_string(project().join(TABLE)).expect("the table is there");
    assert!(made == shipped, "cargo xtask tables makes another {TABLE}");
    assert!(shipped.lines().count() > 900, "types are missing");
}

#[test]
fn a_file_of_another_shape_makes_no_table() {
    let limits = "// This file was generated at 2026-09-02T16:44:35Z\nvar Limits = {\n\t\"m5.large\": {\n\t\tInterface: 3,\n\t\tIPv4PerInterface: 10,\n\t\tIsTrunkingCompatible: true,\n\t\tBranchInterface: 9,\n\t\tDefaultNetworkCardIndex: 1,\n\t\tNetworkCards: {\n\t\t\t{\n\t\t\t\tMaximumNetworkInterfaces: 2,\n\t\t\t},\n\t\t\t{\n\t\t\t\tMaximumNetworkInterfaces: 3,\n\t\t\t},\n\t\t},\n\t},\n}\n";
    let made = instance_types::table(limits, MODULE).expect("a table");
    assert!(made.contains("as of 2026-09-02\n") && made.ends_with("\nm5.large\t3\t10\t9\n"), "{made}");
    let without_trunk = instance_types::table(&limits.replace("Compatible: true", "Compatible: false"), MODULE);
    assert!(without_trunk.is_some_and(|table| table.ends_with("\nm5.large\t3\t10\t0\n")));
    for part in [
        "generated at ",
        "IPv4PerInterface",
        "BranchInterface",
        "IsTrunking",
        "\t\"m5.large\"",
        "MaximumNetworkInterfaces: 3",
    ] {
        assert_eq!(instance_types::table(&limits.replace(part, ""), MODULE), None, "{part}");
    }
}

#[test]
fn the_table_of_feature_gates_ends_with_the_pinned_kubernetes() {
    let version = &Table::read(project()).expect("the table").pins["k8s.io/kubernetes"][0];
    let newest = version.split('.').nth(1).expect("v1.MINOR.PATCH").parse::<u32>().expect("a number");
    assert_eq!(newest, *feature_gates::MINORS.end(), "cargo xtask tables has to read 1.{newest} too");
    let source = module_source(&format!("k8s.io/kubernetes@{version}")).join("pkg/features/kube_features.go");
    let gates = feature_gates::gates_of(&fs::read_to_string(source).expect("the module has the file"));
    assert!(gates.len() > 150, "gates are missing: {}", gates.len());
    let shipped = fs::read_to_string(project().join(feature_gates::TABLE)).expect("the table is there");
    let rows: BTreeMap<&str, Vec<&str>> = shipped
        .lines()
        .filter_map(|row| row.split_once('\t'))
        .map(|(gate, row)| (gate, row.split('\t').collect()))
        .collect();
    for (gate, locked) in gates {
        let row = rows.get(gate.as_str()).unwrap_or_else(|| panic!("the table lacks {gate}"));
        assert_eq!(row[1], newest.to_string(), "{gate}");
        assert_eq!(row[3], locked.map_or_else(String::new, |to| to.to_string()), "{gate}");
    }
}

#[test]
fn a_gate_is_read_with_what_its_newest_version_locks_it_to() {
    let source = "const (\n\tAppArmor featuregate.Feature = \"AppArmor\"\n\tOld featuregate.Feature = \"OldOne\"\n)\nvar gates = map{\n\tAppArmor: {\n\t\t{Version: version.MustParse(\"1.4\"), Default: true, PreRelease: featuregate.Beta},\n\t\t{Version: version.MustParse(\"1.31\"), Default: true, LockToDefault: true, PreRelease: featuregate.GA},\n\t},\n\tfeatures.Old:     {Default: false, PreRelease: featuregate.Deprecated, LockToDefault: true}, // remove in 1.36\n}\n";
    let gates = feature_gates::gates_of(source);
    assert_eq!(gates, BTreeMap::from([("AppArmor".to_owned(), Some(true)), ("OldOne".to_owned(), Some(false))]));
}

#[test]
fn the_tables_of_the_kubelet_end_with_the_pinned_kubernetes() {
    let version = &Table::read(project()).expect("the table").pins["k8s.io/kubernetes"][0];
    let newest = version.split('.').nth(1).expect("v1.MINOR.PATCH").parse::<u32>().expect("a number");
    assert_eq!(newest, *kubelet::MINORS.end(), "cargo xtask tables has to read 1.{newest} too");
}

#[test]
fn fields_are_read_with_their_types() {
    let source = "type Mode string\ntype KubeletConfiguration struct {\n\tmetav1.TypeMeta `json:\",inline\"`\n\tEnd *metav1.Duration `json:\"end,omitempty\"`\n\tPart Part `json:\"part\"`\n\tGates map[string]bool `json:\"gates\"`\n}\ntype Part struct {\n\t// Modes are many.\n\tModes []Mode `json:\"modes\"`\n}\n";
    let fields: Vec<String> = kubelet::fields(source).iter().map(|f| format!("{} {}", f.path, f.kind)).collect();
    assert_eq!(
        fields,
        [
            "apiVersion string",
            "kind string",
            "end duration",
            "part map",
            "part.modes list",
            "part.modes[] string",
            "gates map",
            "gates.* bool"
        ]
    );
}

#[test]
fn a_gate_without_a_type_is_a_gate_and_what_is_none_changes_no_other() {
    let source = "const (\n\tRelaxed featuregate.Feature = \"Relaxed\"\n\tReload = \"Reload\"\n)\nvar gates = map{\n\tRelaxed: {\n\t\t{Version: version.MustParse(\"1.37\"), Default: true, PreRelease: featuregate.GA, LockToDefault: true},\n\t},\n\tReload: {\n\t\t{Version: version.MustParse(\"1.36\"), Default: false, PreRelease: featuregate.Alpha},\n\t},\n\tother.Unheard: {\n\t\t{Version: version.MustParse(\"1.36\"), Default: false, PreRelease: featuregate.Alpha},\n\t},\n}\nvar needs = map{\n\tRelaxed: {},\n}\n";
    let gates = feature_gates::gates_of(source);
    assert_eq!(gates, BTreeMap::from([("Relaxed".to_owned(), Some(true)), ("Reload".to_owned(), None)]));
}
