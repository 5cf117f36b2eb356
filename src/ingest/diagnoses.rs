//! The NodeDiagnoses of a file: what `kubectl get nodediagnoses -o yaml` or `-o json` prints, one or a list.

use super::dump::without_place;
use super::regular;
use engine::api::NodeDiagnosis;
use readers::userdata::yaml_mistake;
use serde_json::Value;
use std::path::Path;

/// Reads all NodeDiagnoses of a file, `-` for standard input; other objects are passed over.
pub fn load(file: &Path) -> Result<Vec<NodeDiagnosis>, String> {
    /// A NodeDiagnosis has some 10 KiB: enough for 50,000 of them.
    const MOST: u64 = 512 << 20;
    let shown = file.display();
    let text = regular::read_text(file, MOST).map_err(|error| format!("{shown} cannot be read: {error}"))?;
    let documents: Vec<Value> = match serde_json::from_str(&text) {
        Ok(document) => vec![document],
        Err(_) => serde_saphyr::from_multiple(&text)
            .map_err(|error| format!("{shown} is no YAML: {}", without_place(&yaml_mistake(&error))))?,
    };
    let mut all = Vec::new();
    for document in documents {
        match document {
            Value::Object(mut list) if matches!(list.get("items"), Some(Value::Array(_))) => {
                if let Some(Value::Array(items)) = list.remove("items") {
                    all.extend(items);
                }
            }
            other => all.push(other),
        }
    }
    let diagnoses = all.into_iter().filter(|object| object["kind"] == "NodeDiagnosis");
    diagnoses
        .map(|object| {
            serde_json::from_value(object).map_err(|error| format!("{shown}: {}", without_place(&error.to_string())))
        })
        .collect()
}
