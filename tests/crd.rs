//! The CustomResourceDefinition in `crds/` is the one that the Rust types make.

use engine::api::crd::crd_yaml;

#[test]
fn the_crd_in_the_repository_is_up_to_date() {
    let kept = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/crds/nodewhy.dev_nodediagnoses.yaml")).unwrap();
    let made = crd_yaml().unwrap();
    assert!(kept == made, "stale: run `cargo run -- crd > crds/nodewhy.dev_nodediagnoses.yaml`");
}

/// `kubectl explain` is the reference that people have at hand.
#[test]
fn every_field_has_a_description() {
    let crd: serde_json::Value = serde_saphyr::from_str(&crd_yaml().unwrap()).unwrap();
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let mut bare = Vec::new();
    without_description(schema, "", &mut bare);
    assert_eq!(bare, [""; 0]);
}

fn without_description(schema: &serde_json::Value, path: &str, bare: &mut Vec<String>) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        if field["description"].as_str().is_none_or(str::is_empty) {
            bare.push(path.clone());
        }
        without_description(field, &path, bare);
        without_description(&field["items"], &path, bare);
    }
}
