//! The configuration of Ignition, which sets up Fedora CoreOS and Flatcar at their first boot. nodewhy tells it apart
//! from other texts, and does not judge it.

use super::has_placeholder;
use serde_json::Value;

/// Whether `text` is an Ignition configuration: a JSON object that names the version of Ignition's specification.
// coreos/ignition 129ef9c config/v3_1/config.go Parse, docs/supported-platforms.md (AWS: the whole user data)
pub(super) fn is_config(text: &str) -> bool {
    match serde_json::from_str::<Value>(text) {
        Ok(config) => config.pointer("/ignition/version").is_some_and(Value::is_string),
        // A template may become JSON only when it is rendered.
        Err(_) => has_placeholder(text) && text.trim_start().starts_with('{') && text.contains("\"ignition\""),
    }
}
