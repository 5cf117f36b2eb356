//! The objects of a dump, as they are.

use serde_json::Value;
use std::fs;
use std::io;
use std::path::Path;

/// All objects of a file of YAML documents and lists.
pub fn read(path: &Path) -> io::Result<Vec<Value>> {
    let text = fs::read_to_string(path)?;
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(&text).map_err(|error| io::Error::other(format!("{}: {error}", path.display())))?;
    let mut objects = Vec::new();
    for mut document in documents {
        match document.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => objects.extend(items),
            _ if document.is_object() => objects.push(document),
            _ => {}
        }
    }
    Ok(objects)
}

/// A text at a path of fields; empty where there is none.
pub fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    path.iter().fold(value, |value, field| &value[*field]).as_str().unwrap_or_default()
}

/// A list at a path of fields.
pub fn list<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    path.iter().fold(value, |value, field| &value[*field]).as_array().map_or(&[], Vec::as_slice)
}
