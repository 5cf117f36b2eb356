//! How views are written where people put in what they like: without secrets.

use readers::source_text::{hide_secrets, hide_secrets_by_line};
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Deref;

/// Somebody's message.
pub(super) fn masked<T: Deref<Target = str>, S: Serializer>(text: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&hide_secrets(text))
}

/// Somebody's file.
#[expect(clippy::ref_option, reason = "serde hands over the field")]
pub(super) fn masked_by_line<S: Serializer>(text: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    text.as_deref().map(hide_secrets_by_line).serialize(serializer)
}

/// Settings by their names, which tell the secret ones.
pub(super) fn masked_values<S: Serializer>(values: &BTreeMap<String, Value>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(values.iter().map(|(name, value)| (name, masked_value(name, value))))
}

fn masked_value(name: &str, value: &Value) -> Value {
    match value {
        Value::String(text) => {
            let masked = hide_secrets(&format!("{name}={text}"));
            masked.split_once('=').map(|(_, text)| text).unwrap_or_default().into()
        }
        Value::Array(values) => values.iter().map(|value| masked_value(name, value)).collect(),
        Value::Object(values) => values.iter().map(|(name, value)| (name.clone(), masked_value(name, value))).collect(),
        other => other.clone(),
    }
}
