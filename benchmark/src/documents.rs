//! The objects of a dump, as they are.

use serde_json::Value;
use std::io;

/// All objects of a text of YAML documents and lists.
pub fn read(text: &str) -> io::Result<Vec<Value>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(io::Error::other)?;
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
