//! Objects in which a field has another type than its kind has there. The field is left out, or read as what was meant,
//! and named. All other fields are read.
//!
//! No view knows of this. Where a view cannot be read, parts of the object are tried until the one field is found that
//! it stumbles over, and then which types it takes there: so the words are ours, and not a parser's.

use super::input::{Object, Reading};
use readers::userdata::has_expansion;
use serde_json::{Map, Value, json};
use std::fmt;
use std::mem;

/// An object with more odd fields is not read at all.
const MOST: usize = 20;

/// Whether one of the fields is the other, or within it.
pub fn touch(one: &str, other: &str) -> bool {
    let is_within = |inner: &str, outer: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    is_within(one, other) || is_within(other, one)
}

/// A field that does not have the type of its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OddField {
    /// The keys, and the places in lists, that lead to it.
    pub path: Vec<String>,
    /// The line of the object's text where it is written, from 0, if the path alone does not lead there.
    pub line: Option<usize>,
    /// A template will put something else there.
    pub is_placeholder: bool,
    /// It is judged all the same, as what was meant.
    pub is_read: bool,
    says: String,
}

impl OddField {
    /// A key that one map has twice.
    pub fn twice(path: Vec<String>, line: usize) -> Self {
        let says = "is written twice, and only the last one counts".to_owned();
        Self { path, line: Some(line), is_placeholder: false, is_read: true, says }
    }

    /// Its path as users write it.
    pub fn field(&self) -> String {
        self.path.join(".")
    }

    /// Whether `field` is this one, within it, or around it.
    pub fn touches(&self, field: &str) -> bool {
        touch(&self.field(), field)
    }
}

impl fmt::Display for OddField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// The keys come from an unknown author and may be long.
        const LONGEST: usize = 200;
        let field: String = readers::source_text::mask(&self.field()).chars().take(LONGEST).collect();
        write!(f, "{field} {}", self.says)
    }
}

/// Reads an object, and names the fields of other types. The error is the fields that were found where the object could
/// not be read at all.
pub fn read(reading: Reading, value: &Value) -> Result<(Object, Vec<OddField>), Vec<OddField>> {
    let reads = |value: &Value| reading.read(&value.to_string()).is_ok();
    let mut odd = Vec::new();
    let mut value = match reading.read(&value.to_string()) {
        Ok(object) => return Ok((object, odd)),
        Err(_) => value.clone(),
    };
    while odd.len() < MOST {
        match taken_out(&mut value, &reads) {
            Some(field) => odd.push(field),
            None => return Err(odd),
        }
        if let Ok(object) = reading.read(&value.to_string()) {
            return Ok((object, odd));
        }
    }
    Err(odd)
}

/// Takes the first odd field out of a value that cannot be read.
fn taken_out(value: &mut Value, reads: &dyn Fn(&Value) -> bool) -> Option<OddField> {
    let (path, mut part) = first(value, reads)?;
    let here = at(value, &path)?;
    let mut takes = |candidate: Value| {
        at(&mut part, &path).is_some_and(|place| {
            *place = candidate;
            true
        }) && reads(&part)
    };
    let said = says(here, &mut takes);
    let is_placeholder = here.as_str().is_some_and(has_expansion);
    let meant = meant(here).into_iter().find(|meant| takes(meant.clone()));
    let is_read = meant.is_some();
    if let Some(meant) = meant {
        *here = meant;
    } else {
        let in_map = remove(value, &path);
        let mut empty =
            || [json!({}), json!(""), json!([]), json!(0), json!(false)].into_iter().find(|e| takes(e.clone()));
        if !in_map {
            let empty = empty()?;
            *at(value, &path)? = empty;
        }
    }
    Some(OddField { path, line: None, is_placeholder, is_read, says: said })
}

/// The path to the first field that cannot be read, and a part of the value that shows it: with that field it cannot be
/// read, without it can.
fn first(value: &Value, reads: &dyn Fn(&Value) -> bool) -> Option<(Vec<String>, Value)> {
    let (mut path, mut part) = (Vec::new(), value.clone());
    loop {
        let here = at(&mut part, &path)?;
        let empty = match here {
            Value::Object(_) => json!({}),
            Value::Array(_) => json!([]),
            _ => break,
        };
        let whole = mem::replace(here, empty);
        if !reads(&part) {
            *at(&mut part, &path)? = whole;
            break;
        }
        // The first so many can be read, and the first so many cannot.
        let (mut good, mut bad) = (0, len(&whole));
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            *at(&mut part, &path)? = beginning(&whole, middle);
            if reads(&part) {
                good = middle;
            } else {
                bad = middle;
            }
        }
        *at(&mut part, &path)? = beginning(&whole, bad);
        if bad == 0 || reads(&part) {
            // No single entry makes it unreadable.
            *at(&mut part, &path)? = whole;
            break;
        }
        let name = name(&whole, good)?;
        if let Value::Object(mut fields) = whole
            && let Some(own) = fields.remove(&name)
        {
            // Alone it is tried faster.
            let before = mem::replace(at(&mut part, &path)?, json!({ &*name: own }));
            if reads(&part) {
                *at(&mut part, &path)? = before;
            }
        }
        path.push(name);
    }
    (!path.is_empty()).then_some((path, part))
}

fn at<'v>(value: &'v mut Value, path: &[String]) -> Option<&'v mut Value> {
    path.iter().try_fold(value, |value, step| match value {
        Value::Object(fields) => fields.get_mut(step),
        Value::Array(items) => items.get_mut(step.parse::<usize>().ok()?),
        _ => None,
    })
}

fn len(value: &Value) -> usize {
    match value {
        Value::Object(fields) => fields.len(),
        Value::Array(items) => items.len(),
        _ => 0,
    }
}

fn beginning(value: &Value, count: usize) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields.iter().take(count).map(|(key, value)| (key.clone(), value.clone())).collect::<Map<_, _>>(),
        ),
        Value::Array(items) => Value::Array(items.iter().take(count).cloned().collect()),
        other => other.clone(),
    }
}

fn name(value: &Value, at: usize) -> Option<String> {
    match value {
        Value::Object(fields) => fields.keys().nth(at).cloned(),
        _ => Some(at.to_string()),
    }
}

/// Removes a field of a map; false where the path leads to an item of a list, which keeps the place of the others.
fn remove(value: &mut Value, path: &[String]) -> bool {
    let Some((last, before)) = path.split_last() else { return false };
    match at(value, before) {
        Some(Value::Object(fields)) => fields.remove(last).is_some(),
        _ => false,
    }
}

/// The value that its author may have meant: a number as text, and the reverse.
fn meant(value: &Value) -> Option<Value> {
    match value {
        Value::Number(number) => Some(Value::String(number.to_string())),
        Value::Bool(yes) => Some(Value::String(yes.to_string())),
        Value::String(text) => match text.as_str() {
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            text => text.parse::<i64>().ok().map(Value::from),
        },
        _ => None,
    }
}

/// The type of the value, and the types that the view takes there.
fn says(value: &Value, takes: &mut dyn FnMut(Value) -> bool) -> String {
    let is = match value {
        Value::Null => "is empty",
        Value::Bool(_) => "is true or false",
        Value::Number(_) => "is a number",
        Value::String(text) if has_expansion(text) => return "is a placeholder".to_owned(),
        Value::String(_) => "is text",
        Value::Array(_) => "is a list",
        Value::Object(_) => "is a map",
    };
    let is_map = takes(json!({}));
    let kinds: [(&str, &str, bool); 5] = [
        ("is a map", "a map", is_map),
        // A view that is a map takes a list as its fields.
        ("is a list", "a list", !is_map && takes(json!([]))),
        ("is a number", "a whole number", takes(json!(1))),
        ("is true or false", "true or false", takes(json!(true))),
        ("is text", "text", takes(json!(""))),
    ];
    let wanted: Vec<&str> = kinds.iter().filter(|(.., taken)| *taken).map(|(_, name, _)| *name).collect();
    if kinds.iter().any(|(own, _, taken)| *own == is && *taken) {
        return match is {
            "is a number" => "is a number that is out of range".to_owned(),
            _ => "has another form than it has in its kind".to_owned(),
        };
    }
    if wanted.is_empty() && takes(json!("2026-01-31T12:00:00Z")) {
        return "must be a time such as 2026-01-31T12:00:00Z".to_owned();
    }
    if wanted.is_empty() {
        return "has another form than it has in its kind".to_owned();
    }
    format!("{is}, but must be {}", wanted.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::input::Input;

    fn odd(input: Input, value: &Value) -> (Object, Vec<String>) {
        let (object, odd) = read(Reading::As(input), value).unwrap();
        (object, odd.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn each_odd_field_is_named_and_the_rest_is_read() {
        let class = json!({"kind": "EC2NodeClass", "metadata": {"name": 7}, "spec": {
            "role": "r", "amiSelectorTerms": [{"alias": "al2023@latest"}, "al2"], "subnetSelectorTerms": "${subnets}",
            "blockDeviceMappings": [{"ebs": {"iops": "3000", "encrypted": "yes", "volumeSize": 80}}],
            "securityGroupSelectorTerms": [{"tags": ["a"]}]}});
        let (object, odd) = odd(Input::NodeClasses, &class);
        assert_eq!(
            odd,
            [
                "metadata.name is a number, but must be text",
                "spec.amiSelectorTerms.1 is text, but must be a map",
                "spec.blockDeviceMappings.0.ebs.encrypted is text, but must be true or false",
                "spec.blockDeviceMappings.0.ebs.iops is text, but must be a whole number",
                "spec.securityGroupSelectorTerms.0.tags is a list, but must be a map",
                "spec.subnetSelectorTerms is a placeholder",
            ]
        );
        let Object::NodeClass(class) = object else { panic!() };
        assert_eq!((class.name(), class.spec.role.as_deref()), ("7", Some("r")));
        assert_eq!(class.spec.ami_selector_terms.len(), 2);
        let ebs = class.spec.block_device_mappings[0].ebs.as_ref().unwrap();
        assert_eq!((ebs.iops, ebs.encrypted, ebs.volume_size.as_deref()), (Some(3_000), None, Some("80")));
    }

    #[test]
    fn what_both_types_are_taken_for_is_not_odd() {
        let pool = json!({"metadata": {"name": "p"}, "spec": {"limits": {"cpu": 100, "memory": "1Gi"}}});
        assert_eq!(odd(Input::NodePools, &pool).1, [""; 0]);
        let budget = json!({"metadata": {"name": "b"}, "spec": {"maxUnavailable": 1, "minAvailable": "50%"}});
        assert_eq!(odd(Input::DisruptionBudgets, &budget).1, [""; 0]);
    }

    #[test]
    fn times_and_ranges_have_their_own_words() {
        let claim = json!({"metadata": {"name": "c", "creationTimestamp": "yesterday"}});
        assert_eq!(
            odd(Input::NodeClaims, &claim).1,
            ["metadata.creationTimestamp must be a time such as 2026-01-31T12:00:00Z"]
        );
        let deployment = json!({"metadata": {"name": "d"}, "spec": {"replicas": -1}});
        assert_eq!(odd(Input::Deployments, &deployment).1, ["spec.replicas is a number that is out of range"]);
    }

    #[test]
    fn what_is_no_object_at_all_is_an_error() {
        assert!(read(Reading::As(Input::Nodes), &json!("text")).is_err());
        assert!(read(Reading::Ignored, &json!({})).is_err());
        let many: Map<String, Value> = (0..50).map(|n| (format!("k{n}"), json!({}))).collect();
        assert_eq!(read(Reading::As(Input::Nodes), &json!({"metadata": {"labels": many}})).unwrap_err().len(), MOST);
    }

    #[test]
    fn a_field_touches_what_is_within_and_around_it() {
        let field = OddField::twice(vec!["spec".into(), "role".into()], 0);
        assert!(field.touches("spec") && field.touches("spec.role") && field.touches("spec.role.x"));
        assert!(!field.touches("spec.roles") && !field.touches("metadata"));
    }
}
