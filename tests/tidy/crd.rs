//! The CustomResourceDefinition in `crds/` is the one that the Rust types make.

use engine::api::crd::crd_yaml;

#[test]
fn the_crd_in_the_repository_is_up_to_date() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/crds/nodewhy.dev_nodediagnoses.yaml");
    let made = crd_yaml().unwrap();
    if std::env::var_os("NODEWHY_UPDATE").is_some() {
        std::fs::write(file, &made).unwrap();
    }
    assert!(std::fs::read_to_string(file).unwrap() == made, "stale: run `NODEWHY_UPDATE=1 cargo xtask tidy crd`");
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
