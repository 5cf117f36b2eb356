//! One object made odd, at any place that is read or that stands in it.

use super::schema::TEXT;
use fastrand::Rng;
use serde_json::{Value, json};

/// Stands for what no tree can hold: nesting a thousand deep, and a key that is there twice.
const DEEP: &str = "DEEP-a-thousand";
const TWICE: &str = "TWICE-";

/// Puts what only the skeleton has into a real object; the first entries of lists too.
pub fn fill(object: &mut Value, skeleton: &Value) {
    match (object, skeleton) {
        (Value::Object(object), Value::Object(skeleton)) => {
            for (key, more) in skeleton {
                fill(object.entry(key.clone()).or_insert(Value::Null), more);
            }
        }
        (Value::Array(list), Value::Array(more)) => {
            if let (Some(first), Some(more)) = (list.first_mut(), more.first()) {
                fill(first, more);
            }
        }
        (object @ Value::Null, skeleton) => *object = skeleton.clone(),
        _ => {}
    }
}

/// The pointers of every value in it.
pub fn places(value: &Value) -> Vec<String> {
    fn walk(value: &Value, at: &str, all: &mut Vec<String>) {
        let escaped = |key: &str| key.replace('~', "~0").replace('/', "~1");
        let inner: Vec<(String, &Value)> = match value {
            Value::Object(fields) => fields.iter().map(|(key, value)| (escaped(key), value)).collect(),
            Value::Array(items) => items.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect(),
            _ => Vec::new(),
        };
        for (key, value) in inner {
            let at = format!("{at}/{key}");
            all.push(at.clone());
            walk(value, &at, all);
        }
    }
    let mut all = Vec::new();
    walk(value, "", &mut all);
    all
}

/// Makes the object odd at one place, and says how.
pub fn mutate(object: &mut Value, at: &str, rng: &mut Rng) -> String {
    let (parent, key) = at.rsplit_once('/').expect("a pointer");
    let key = key.replace("~1", "/").replace("~0", "~");
    let how = rng.usize(..ODD.len() + 2);
    match (how, object.pointer_mut(parent).expect("a place in it")) {
        (0, Value::Object(fields)) => drop(fields.remove(&key)),
        (1, Value::Object(fields)) => {
            let value = if rng.bool() { fields[&key].clone() } else { odd(rng.usize(..ODD.len())) };
            fields.insert(format!("{TWICE}{key}"), value);
        }
        _ => {
            let place = object.pointer_mut(at).expect("a place in it");
            *place = match (rng.u8(..8), &*place) {
                // Nearly right.
                (0, Value::String(text)) => json!([text]),
                (1, Value::String(text)) => json!(text.chars().rev().collect::<String>()),
                (2, Value::String(text)) => json!(text.repeat(40)),
                (0, Value::Array(items)) => json!({ "items": items }),
                (1, Value::Array(items)) => Value::Array(items.iter().cycle().take(40).cloned().collect()),
                (2, Value::Array(items)) => Value::Array(items.iter().cloned().chain([Value::Null]).collect()),
                (0, Value::Object(fields)) => fields.values().cloned().collect(),
                _ => odd(how.saturating_sub(2)),
            };
        }
    }
    format!("{at} {}", ["is missing", "is there twice"].get(how).copied().unwrap_or("is odd"))
}

type Odd = fn() -> Value;

const ODD: [Odd; 18] = [
    || Value::Null,
    || json!(true),
    || json!(-1),
    || json!(i64::MIN),
    || json!(u64::MAX),
    || json!(1.5e300),
    || json!(""),
    || json!("text"),
    || json!(TEXT),
    || json!("9999-99-99T99:99:99Z"),
    || json!([]),
    || json!({}),
    || json!([null]),
    || json!([[], {}, "", 0]),
    || json!({ "": null, "key": { "key": [1] } }),
    || json!("\u{0}\u{1b}[31m\u{85}\u{202e}\u{2028}\u{feff}\u{fffd}😀e\u{301}\r\n---\n...\n# - : {{ %"),
    || json!("ü".repeat(5_000)),
    || json!(DEEP),
];

fn odd(index: usize) -> Value {
    ODD[index.min(ODD.len() - 1)]()
}

/// What a tree cannot hold, put into its text.
pub fn finish(text: &str) -> String {
    let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
    text.replace(&format!("\"{DEEP}\""), &deep).replace(DEEP, &deep).replace(TWICE, "")
}
