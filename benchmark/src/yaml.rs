//! Writes objects as YAML that people can read: what fits on a line is one, and texts of several lines stay so.

use serde_json::{Map, Value};
use std::fmt::Write;

/// A line that is longer is broken where possible.
const WIDTH: usize = 140;
/// Words that some reader of YAML takes for no text.
const NOT_TEXT: [&str; 14] =
    ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "t", "f", "inf", "nan", "infinity"];

/// A `List` of objects, as `kubectl get -o yaml` prints it.
pub fn list(objects: &[Value]) -> String {
    let mut text = "apiVersion: v1\nkind: List\nitems:\n".to_owned();
    for object in objects {
        item(&mut text, object, 0);
    }
    text
}

/// An item of a list at an indentation, over as many lines as it needs.
pub fn item(text: &mut String, value: &Value, indent: usize) {
    let _ = write!(text, "{:indent$}- ", "");
    match value {
        Value::Object(fields) if !fields.is_empty() => mapping(text, fields, indent + 2, true),
        other => inline(text, other, indent + 2),
    }
}

/// A mapping on one line, or broken between its fields.
pub fn flow_mapping(text: &mut String, before: &str, indent: usize, fields: &Map<String, Value>) {
    let mut line = format!("{before}{{");
    let last = fields.len().saturating_sub(1);
    for (at, (name, value)) in fields.iter().enumerate() {
        let end = if at == last { '}' } else { ',' };
        let part = format!("{}: {}{end}", key(name), flow(value));
        if at > 0 && line.chars().count() + part.chars().count() > WIDTH {
            text.push_str(&line);
            text.push('\n');
            line = format!("{:1$}", "", indent + 1);
        } else if at > 0 {
            line.push(' ');
        }
        line += &part;
    }
    text.push_str(&line);
    text.push('\n');
}

fn mapping(text: &mut String, fields: &Map<String, Value>, indent: usize, behind_dash: bool) {
    for (at, (name, value)) in fields.iter().enumerate() {
        let indentation = if at == 0 && behind_dash { 0 } else { indent };
        let _ = write!(text, "{:indentation$}{}:", "", key(name));
        match value {
            Value::Object(below) if !below.is_empty() && !fits(value, indent + name.len()) => {
                text.push('\n');
                mapping(text, below, indent + 2, false);
            }
            Value::Array(items) if !items.is_empty() && !fits(value, indent + name.len()) => {
                text.push('\n');
                for value in items {
                    if fits(value, indent) {
                        let _ = writeln!(text, "{:indent$}- {}", "", flow(value));
                    } else {
                        item(text, value, indent);
                    }
                }
            }
            other => {
                text.push(' ');
                inline(text, other, indent + 2);
            }
        }
    }
}

/// A value behind its key or dash.
fn inline(text: &mut String, value: &Value, indent: usize) {
    let Some((header, lines)) = value.as_str().and_then(literal) else {
        let _ = writeln!(text, "{}", flow(value));
        return;
    };
    let _ = writeln!(text, "{header}");
    for line in lines.lines() {
        let indent = if line.is_empty() { 0 } else { indent };
        let _ = writeln!(text, "{:indent$}{line}", "");
    }
}

/// Whether a value is short enough for one line, and no text in it has several.
fn fits(value: &Value, used: usize) -> bool {
    !has_lines(value) && used + flow(value).chars().count() <= WIDTH
}

fn has_lines(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\n'),
        Value::Array(items) => items.iter().any(has_lines),
        Value::Object(fields) => fields.values().any(has_lines),
        _ => false,
    }
}

/// The header of a block scalar and its text, if one can hold the text without an escape.
fn literal(text: &str) -> Option<(&'static str, &str)> {
    let (header, lines) = text.strip_suffix('\n').map_or(("|-", text), |lines| ("|", lines));
    let starts_badly = text.starts_with(['\n', ' ', '\t']);
    let is_plain = |line: &str| !line.ends_with([' ', '\t']) && line.chars().all(|c| c == '\t' || is_printable(c));
    let is_literal = text.contains('\n') && !starts_badly && !lines.ends_with('\n') && lines.split('\n').all(is_plain);
    is_literal.then_some((header, lines))
}

fn is_printable(c: char) -> bool {
    !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}')
}

/// A value on one line.
pub fn flow(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        Value::String(text) => quoted(text),
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(name, value)| format!("{}: {}", key(name), flow(value))).collect();
            format!("{{{}}}", fields.join(", "))
        }
        other => other.to_string(),
    }
}

fn key(name: &str) -> String {
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || "_/".contains(c))
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "_./~-".contains(c))
        && !is_word(name);
    if is_plain { name.to_owned() } else { quoted(name) }
}

fn is_word(text: &str) -> bool {
    NOT_TEXT.contains(&text.to_ascii_lowercase().as_str())
}

/// Whether a text needs no quotes: words, times, and IPv4 addresses.
fn is_plain(text: &str) -> bool {
    let is_address = |text: &str| {
        text.split('.').count() == 4
            && text.split('.').all(|part| part.parse::<u8>().is_ok_and(|n| n.to_string() == part))
    };
    let is_time = |text: &str| {
        text.len() == 20
            && text
                .bytes()
                .zip(b"0000-00-00T00:00:00Z".iter())
                .all(|(byte, form)| if *form == b'0' { byte.is_ascii_digit() } else { byte == *form })
    };
    let is_words = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "_./@+=-: ".contains(c))
            && !text.ends_with([':', ' '])
            && !text.contains(": ")
            && !text.contains("  ")
    };
    !is_word(text) && (is_words(text) || is_address(text) || is_time(text))
}

/// As JSON writes it, without characters that YAML does not allow.
fn quoted(text: &str) -> String {
    let json = Value::from(text).to_string();
    json.chars().fold(String::new(), |mut quoted, c| {
        if is_printable(c) {
            quoted.push(c);
        } else {
            let _ = write!(quoted, "\\u{:04x}", u32::from(c));
        }
        quoted
    })
}

#[cfg(test)]
mod tests {
    use super::list;
    use serde_json::{Value, json};

    #[test]
    fn what_is_written_is_read_again() {
        let long = "word ".repeat(60) + "end";
        let objects = [json!({
            "metadata": {"name": "a", "labels": {"y": "on", "a/b": "0123", "é": "1e5", "x": "", "-": "- a"}},
            "texts": [long, "one\ntwo\n", "one\n\n  two", "\nlate", "end\n\n", "tail \nx", "a: b", "a #b", "\u{7f}\u{2028}"],
            "numbers": [1, -1, 1.5, true, null, {}, [], [[1, "2"]], "2026-01-15T12:00:00Z", "10.0.0.1", "1.5"],
            "deep": {"list": [{"text": "x\ny\n", "other": ["${a}", "{", "a,b"]}]},
        })];
        let text = list(&objects);
        let read: Value = serde_saphyr::from_str(&text).expect("YAML");
        assert_eq!(read["items"], json!(objects), "{text}");
    }
}
