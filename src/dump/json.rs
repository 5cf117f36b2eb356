//! JSON as kubectl prints it: documents one after the other, nearly always one long `List`.
//!
//! serde_json finds where each value ends. Between the items of a list nobody insists on commas: what can be read is.

use super::list::{Notation, Stop};
use super::text::Text;
use super::{Piece, Reader, read, without_place};
use crate::input::{Object, TypeMeta};
use serde::Deserialize;
use serde_json::value::RawValue;

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
                Err(error) => break stop(&error, whole),
            }
        };
        (text.len() - rest.len(), stop)
    }

    fn fields(text: &str, whole: bool, type_: &mut TypeMeta) -> (usize, Stop) {
        fields(text, type_).unwrap_or_else(|error| (0, stop(&error, whole)))
    }

    fn read(item: &str, type_of_items: &TypeMeta) -> Piece {
        let own = TypeMeta::of_json(item);
        if own.kind == "List" {
            return serde_json::from_str(item).map_or_else(|error| Piece::Bad(error.line() - 1, no_json(&error)), Piece::List);
        }
        let type_ = if own.kind.is_empty() { type_of_items } else { &own };
        read(type_, |input| Object::read(input, &mut serde_json::Deserializer::from_str(item)).map_err(|e| e.to_string()))
    }
}

/// What stands between values.
const BETWEEN: [char; 6] = [' ', '\t', '\r', '\n', ',', ':'];

/// The value at the beginning of a text, nothing of what follows.
fn value(text: &str) -> serde_json::Result<&str> {
    <&RawValue>::deserialize(&mut serde_json::Deserializer::from_str(text)).map(RawValue::get)
}

/// Goes over the fields of an object, from behind its brace, a field or its items.
fn fields(text: &str, type_: &mut TypeMeta) -> serde_json::Result<(usize, Stop)> {
    let mut rest = text.trim_start_matches(BETWEEN);
    while !rest.starts_with('}') {
        let quoted = value(rest)?;
        let name: String = serde_json::from_str(quoted)?;
        let field = rest[quoted.len()..].trim_start_matches(BETWEEN);
        if let Some(items) = field.strip_prefix('[').filter(|_| name == "items") {
            return Ok((text.len() - items.len(), Stop::Items));
        }
        let said = value(field)?;
        match name.as_str() {
            "apiVersion" => type_.api_version = serde_json::from_str(said).unwrap_or_default(),
            "kind" => type_.kind = serde_json::from_str(said).unwrap_or_default(),
            _ => {}
        }
        rest = field[said.len()..].trim_start_matches(BETWEEN);
    }
    Ok((text.len() - rest.len() + 1, Stop::End))
}

fn stop(error: &serde_json::Error, whole: bool) -> Stop {
    if error.is_eof() && !whole { Stop::More } else { Stop::Broken(error.line().saturating_sub(1), no_json(error)) }
}

fn no_json(error: &serde_json::Error) -> String {
    format!("this is no JSON: {}", without_place(&error.to_string()))
}

impl Reader<'_> {
    pub(super) fn json(&mut self, text: &mut Text<'_>) {
        while text.pass_blank() {
            self.document += 1;
            self.json_document(text);
        }
    }

    fn json_document(&mut self, text: &mut Text<'_>) {
        loop {
            let (rest, whole) = (text.rest(), text.is_whole());
            let mut type_ = TypeMeta::default();
            if rest.starts_with('[') {
                text.pass(1);
                self.list::<Json>(text, type_, false);
                return;
            }
            if let Some(Ok((bytes, Stop::Items))) = rest.strip_prefix('{').map(|behind| fields(behind, &mut type_)) {
                text.pass(1 + bytes);
                self.list::<Json>(text, type_, true);
                return;
            }
            let stop = match value(rest) {
                Ok(document) if whole || document.len() < rest.len() => {
                    let bytes = document.len();
                    self.take(Json::read(document, &TypeMeta::default()), text.source(self.file, document));
                    return text.pass(bytes);
                }
                Ok(_) => Stop::More,
                Err(error) => stop(&error, whole),
            };
            if let Stop::Broken(lines, message) = stop {
                self.complain(text.line() + lines, message);
                return text.pass_broken(lines);
            }
            text.more();
        }
    }
}
