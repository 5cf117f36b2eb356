//! The places of a template: `${parameter}`, `${time+seconds}`, and JSON pointers to fields that differ.

use super::identifiers::GENERATED;
use super::{Template, moment};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Defaults name other parameters, but never through so many.
const DEEPEST: usize = 64;

impl Template {
    /// The parameters that the object or a default names.
    pub(super) fn parameters(&self) -> Result<BTreeSet<String>, String> {
        let mut names = BTreeSet::new();
        collect(&self.object, &mut names)?;
        self.defaults.values().try_for_each(|value| collect(value, &mut names))?;
        match self.defaults.keys().find(|name| !names.contains(*name)) {
            Some(unused) => Err(format!("the default of {unused} is for no place")),
            None => Ok(names),
        }
    }
}

fn collect(value: &Value, names: &mut BTreeSet<String>) -> Result<(), String> {
    match value {
        Value::String(text) => {
            for part in parts(text)? {
                let Part::Expression(expression) = part else { continue };
                let operands = expression.split('+').filter(|operand| operand.parse::<i64>().is_err());
                names.extend(operands.filter(|name| !GENERATED.contains(name)).map(str::to_owned));
            }
            Ok(())
        }
        Value::Array(items) => items.iter().try_for_each(|item| collect(item, names)),
        Value::Object(fields) => fields.values().try_for_each(|field| collect(field, names)),
        _ => Ok(()),
    }
}

/// A part of a template's text.
enum Part<'a> {
    Text(&'a str),
    Expression(&'a str),
}

fn parts(text: &str) -> Result<Vec<Part<'_>>, String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("${") {
        let (expression, behind) = behind.split_once('}').ok_or_else(|| format!("a place without an end: {text}"))?;
        if !before.is_empty() {
            parts.push(Part::Text(before));
        }
        parts.push(Part::Expression(expression));
        rest = behind;
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest));
    }
    Ok(parts)
}

/// The name in a place that is one parameter: `${name}`, or `${created+name}`.
pub(super) fn bound(text: &str) -> Option<&str> {
    let expression = text.strip_prefix("${")?.strip_suffix('}')?;
    let name = expression.strip_prefix("created+").unwrap_or(expression);
    let is_name = name.parse::<i64>().is_err() && !name.contains(['+', '$', '}']);
    (is_name && !GENERATED.contains(&name)).then_some(name)
}

/// What parameters are worth.
pub(super) struct Scope<'a> {
    pub parameters: &'a Map<String, Value>,
    pub defaults: &'a Map<String, Value>,
}

impl Scope<'_> {
    /// A value with its places filled.
    pub fn fill(&self, value: &Value) -> Result<Value, String> {
        self.filled(value, 0)
    }

    pub fn parameter(&self, name: &str) -> Result<Value, String> {
        self.worth(name, 0)
    }

    fn filled(&self, value: &Value, depth: usize) -> Result<Value, String> {
        Ok(match value {
            Value::String(text) => self.text(text, depth)?,
            Value::Array(items) => {
                let items: Result<_, String> = items.iter().map(|item| self.filled(item, depth)).collect();
                Value::Array(items?)
            }
            Value::Object(fields) => {
                let filled = fields.iter().map(|(name, field)| Ok((name.clone(), self.filled(field, depth)?)));
                Value::Object(filled.collect::<Result<_, String>>()?)
            }
            other => other.clone(),
        })
    }

    fn text(&self, text: &str, depth: usize) -> Result<Value, String> {
        let parts = parts(text)?;
        if let [Part::Expression(expression)] = parts[..] {
            return self.expression(expression, depth);
        }
        let mut filled = String::new();
        for part in parts {
            match part {
                Part::Text(text) => filled += text,
                Part::Expression(expression) => match self.expression(expression, depth)? {
                    Value::String(text) => filled += &text,
                    other => return Err(format!("{other} is no text for {text}")),
                },
            }
        }
        Ok(Value::String(filled))
    }

    fn expression(&self, expression: &str, depth: usize) -> Result<Value, String> {
        if GENERATED.contains(&expression) {
            return Ok(Value::String(format!("${{{expression}}}")));
        }
        let Some((time, later)) = expression.split_once('+') else { return self.worth(expression, depth) };
        let later = match later.parse::<i64>() {
            Ok(seconds) => Value::from(seconds),
            Err(_) => self.worth(later, depth)?,
        };
        // A time that is no number of seconds later is a time itself.
        let Some(seconds) = later.as_i64() else { return Ok(later) };
        let time = self.worth(time, depth)?;
        let from = time.as_str().and_then(moment::seconds).ok_or_else(|| format!("{time} is no time"))?;
        Ok(Value::String(moment::text_of(from + seconds)))
    }

    fn worth(&self, name: &str, depth: usize) -> Result<Value, String> {
        if let Some(value) = self.parameters.get(name) {
            return Ok(value.clone());
        }
        match self.defaults.get(name) {
            Some(default) if depth < DEEPEST => self.filled(default, depth + 1),
            _ => Err(format!("the parameter {name} is missing")),
        }
    }
}

/// An object whose fields JSON pointers (RFC 6901) name.
pub(super) struct Places(pub Value);

impl Places {
    pub fn drop(&mut self, place: &str) -> Result<(), String> {
        let (above, name) = split(place)?;
        let dropped = self.0.pointer_mut(above).and_then(Value::as_object_mut).and_then(|fields| fields.remove(&name));
        dropped.map(drop).ok_or_else(|| format!("the template has no {place}"))
    }

    /// Empties a place that is set later: its parameters need no value.
    pub fn blank(&mut self, place: &str) {
        if let Some(value) = self.0.pointer_mut(place) {
            *value = Value::Null;
        }
    }

    pub fn set(&mut self, place: &str, value: Value) -> Result<(), String> {
        let (above, name) = split(place)?;
        match self.0.pointer_mut(above) {
            Some(Value::Object(fields)) => {
                fields.insert(name, value);
            }
            Some(Value::Array(items)) => match name.parse::<usize>() {
                Ok(at) if at < items.len() => items[at] = value,
                Ok(at) if at == items.len() => items.push(value),
                _ => return Err(format!("{place} is behind the end of the list")),
            },
            _ => return Err(format!("the template has no {above}")),
        }
        Ok(())
    }
}

fn split(place: &str) -> Result<(&str, String), String> {
    let (above, name) = place.rsplit_once('/').ok_or_else(|| format!("{place} is no place"))?;
    Ok((above, name.replace("~1", "/").replace("~0", "~")))
}

/// A step of a JSON pointer.
pub(super) fn step(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}
