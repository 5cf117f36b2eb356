//! JSON as kubectl prints it: documents one after the other, nearly always one long `List`.
//!
//! serde_json finds where each value ends. Between the items of a list nobody insists on commas: what can be read is.

use super::list::{ListHead, Notation, Stop};
use super::text::LongText;
use super::{Piece, Reader, read, without_place};
use engine::objects::input::TypeMeta;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

pub(super) struct Json;

impl Notation for Json {
    fn items<'t>(text: &'t str, whole: bool, items: &mut Vec<&'t str>) -> (usize, Stop) {
        let mut rest = text;
        let stop = loop {
            rest = rest.trim_start_matches(BETWEEN);
            if let Some(behind) = rest.strip_prefix(']') {
                rest = behind;
                break Stop::End;
            }
            match value(rest) {
                Ok(item) if whole || item.len() < rest.len() => {
                    items.push(item);
                    rest = &rest[item.len()..];
                }
                // A number that ends where the text does may go on.
                Ok(_) => break Stop::More,
                Err(error) => break stop(&error, 0, whole),
            }
        };
        (text.len() - rest.len(), stop)
    }

    fn fields(text: &str, whole: bool, head: &mut ListHead) -> (usize, Stop) {
        let mut rest = text.trim_start_matches(BETWEEN);
        while !rest.starts_with('}') {
            match field(rest, head) {
                Ok((length, Stop::Items)) => return (text.len() - rest.len() + length, Stop::Items),
                Ok((length, _)) => rest = rest[length..].trim_start_matches(BETWEEN),
                Err((at, error)) => {
                    let before = text[..text.len() - rest.len() + at].matches('\n').count();
                    return (0, stop(&error, before, whole));
                }
            }
        }
        (text.len() - rest.len() + 1, Stop::End)
    }

    fn read(item: &str, type_of_items: &TypeMeta) -> Piece {
        let own = TypeMeta::of_json(item);
        if own.kind == "List" {
            return serde_json::from_str(item)
                .map_or_else(|error| Piece::Bad(lines_before(&error), no_json(&error)), Piece::List);
        }
        let type_ = if own.kind.is_empty() { type_of_items } else { &own };
        read(type_, item)
    }
}

/// What stands between values.
const BETWEEN: [char; 6] = [' ', '\t', '\r', '\n', ',', ':'];

/// The value at the beginning of a text, nothing of what follows.
fn value(text: &str) -> serde_json::Result<&str> {
    <&RawValue>::deserialize(&mut serde_json::Deserializer::from_str(text)).map(RawValue::get)
}

/// The field at the beginning of a text: its length, or as far as its first item. An error comes with the place of what
/// is broken.
fn field(text: &str, head: &mut ListHead) -> Result<(usize, Stop), (usize, serde_json::Error)> {
    let quoted = value(text).map_err(|error| (0, error))?;
    let name: String = serde_json::from_str(quoted).map_err(|error| (0, error))?;
    let at = text.len() - text[quoted.len()..].trim_start_matches(BETWEEN).len();
    if name == "items" && text[at..].starts_with('[') {
        return Ok((at + 1, Stop::Items));
    }
    let said = value(&text[at..]).map_err(|error| (at, error))?;
    match name.as_str() {
        "apiVersion" => head.type_.api_version = serde_json::from_str(said).unwrap_or_default(),
        "kind" => head.type_.kind = serde_json::from_str(said).unwrap_or_default(),
        "metadata" => annotations(said).iter().for_each(|(key, value)| head.annotation(key, value)),
        _ => {}
    }
    Ok((at + said.len(), Stop::End))
}

fn annotations(metadata: &str) -> BTreeMap<String, String> {
    #[derive(Deserialize)]
    struct Metadata {
        annotations: BTreeMap<String, String>,
    }
    serde_json::from_str(metadata).map_or_else(|_| BTreeMap::new(), |Metadata { annotations }| annotations)
}

/// Goes over the document at the beginning of a text, to its items or its end, and tells how many bytes it went.
fn document(text: &str, whole: bool, head: &mut ListHead) -> (usize, Stop) {
    if text.starts_with('[') {
        return (1, Stop::Items);
    }
    if let Some(behind) = text.strip_prefix('{') {
        match Json::fields(behind, whole, head) {
            (bytes, Stop::Items) => return (1 + bytes, Stop::Items),
            (_, Stop::End) => {}
            stopped => return stopped,
        }
    }
    match value(text) {
        Ok(value) if whole || value.len() < text.len() => (value.len(), Stop::End),
        Ok(_) => (0, Stop::More),
        Err(error) => (0, stop(&error, 0, whole)),
    }
}

/// Why reading stops, so many lines below where it began.
fn stop(error: &serde_json::Error, lines: usize, whole: bool) -> Stop {
    if error.is_eof() && !whole { Stop::More } else { Stop::Broken(lines + lines_before(error), no_json(error)) }
}

/// The lines before that of the error. What ends with its line is complained of in column 0 of the next one, where
/// there is more text: not so at the end of a block.
fn lines_before(error: &serde_json::Error) -> usize {
    let is_behind = error.column() == 0 && !error.is_eof();
    error.line().saturating_sub(1 + usize::from(is_behind))
}

fn no_json(error: &serde_json::Error) -> String {
    format!("this is no JSON: {}", without_place(&error.to_string()))
}

impl Reader<'_> {
    pub(super) fn json(&mut self, text: &mut LongText<'_>) {
        while text.pass_blank() {
            self.document += 1;
            self.json_document(text);
        }
    }

    fn json_document(&mut self, text: &mut LongText<'_>) {
        loop {
            let rest = text.rest();
            let mut head = ListHead::default();
            match document(rest, text.is_whole(), &mut head) {
                (_, Stop::More) => text.more(),
                (bytes, Stop::Items) => {
                    let in_object = rest.starts_with('{');
                    text.pass(bytes);
                    self.list::<Json>(text, head, in_object);
                    return;
                }
                (bytes, Stop::End) => {
                    let document = &rest[..bytes];
                    self.take(Json::read(document, &TypeMeta::default()), text.source(self.file, document));
                    return text.pass(bytes);
                }
                (_, Stop::Broken(lines, message)) => {
                    self.unreadable(rest, text.line() + lines, message);
                    return text.pass_broken(lines);
                }
            }
        }
    }
}
