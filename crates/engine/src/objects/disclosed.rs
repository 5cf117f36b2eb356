//! How views are read and written where people put in what they like: without secrets.

use readers::source_text::{hide_secrets, hide_secrets_by_line};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::collections::BTreeMap;

/// Somebody's message. Its secrets are hidden as it is read, so no rule, verdict or log line can hold one.
pub(super) mod message {
    use super::hide_secrets;
    use serde::{Deserialize, Deserializer, Serializer};
    use std::ops::Deref;

    pub(in crate::objects) fn deserialize<'de, T: From<String> + Default, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?.filter(|text| !text.is_empty());
        Ok(text.map_or_else(T::default, |text| T::from(hide_secrets(&text))))
    }

    /// Hidden once more: a view may have been made by hand.
    pub(in crate::objects) fn serialize<T: Deref<Target = str>, S: Serializer>(
        text: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hide_secrets(text))
    }
}

/// The same of a message that may be absent.
pub(super) fn message_read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.map(|text| hide_secrets_by_line(&text)))
}

/// Somebody's file.
#[expect(clippy::ref_option, reason = "serde hands over the field")]
pub(super) fn masked_by_line<S: Serializer>(text: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    text.as_deref().map(hide_secrets_by_line).serialize(serializer)
}

/// Settings by their names, which tell the secret ones.
pub(super) fn masked_values<S: Serializer>(values: &BTreeMap<String, Value>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(values.iter().map(|(name, value)| (name, masked_value(&[name], value))))
}

/// A value below these names, of which each may tell that it is secret: `dbPassword: {value: x}`.
fn masked_value(names: &[&str], value: &Value) -> Value {
    match value {
        Value::String(text) => hidden(names, text).unwrap_or_else(|| text.clone()).into(),
        Value::Number(number) => hidden(names, &number.to_string()).map_or_else(|| value.clone(), Value::from),
        Value::Array(values) => values.iter().map(|value| masked_value(names, value)).collect(),
        Value::Object(values) => values
            .iter()
            .map(|(name, value)| (name.clone(), masked_value(&[names, &[name.as_str()]].concat(), value)))
            .collect(),
        Value::Bool(_) | Value::Null => value.clone(),
    }
}

/// The text without its secrets; `None` where it has none.
fn hidden(names: &[&str], text: &str) -> Option<String> {
    let below = names.iter().find_map(|name| {
        let masked = hide_secrets(&format!("{name}={text}"));
        masked.strip_prefix(&format!("{name}=")).filter(|masked| *masked != text).map(str::to_owned)
    });
    below.or_else(|| Some(hide_secrets(text)).filter(|masked| masked != text))
}
