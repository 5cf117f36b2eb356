//! A value against the structure of its schema: types, forms, limits, and fields that the schema does not have.
//!
//! Source: apiextensions-apiserver v0.37.2 pkg/apiserver/validation, and pkg/apiserver/schema/pruning for unknown
//! fields.

use readers::userdata::has_expansion;
use regex::Regex;
use serde_json::Value;

/// A part of an object that does not fit its schema.
pub struct Misfit {
    /// The keys, and the places in lists, that lead to it.
    pub path: Vec<String>,
    /// What is wrong, behind the name of the field.
    pub says: String,
    /// The kind has no such field, so the API server drops it or refuses the object, as the client asks it to.
    pub is_unknown: bool,
}

/// Everything in the value that does not fit. Placeholders of templates fit everywhere.
pub fn misfits(schema: &Value, value: &Value, extent: Extent) -> Vec<Misfit> {
    let mut walk = Walk { root: schema, path: vec!["spec".to_owned()], extent, misfits: Vec::new() };
    walk.value(schema, value);
    walk.misfits
}

/// How much of an object a file holds. Something may merge a part with the rest: a patch of kustomize.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// It lacks nothing that every object of its kind needs.
    Whole,
    /// It lacks one such field, beside others that only an object has which is meant to be whole.
    AllButOne,
    Part,
}

impl Extent {
    pub fn of(schema: &Value, spec: &Value) -> Self {
        if has_directive(spec) {
            return Self::Part;
        }
        match lacking(schema, spec) {
            0 => Self::Whole,
            1 if has_more(schema, spec) => Self::AllButOne,
            _ => Self::Part,
        }
    }
}

/// Whether it says itself how it is to be merged. Source: kustomize v5 api/krusty, strategic merge patches (`$patch`).
fn has_directive(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_directive),
        Value::Object(fields) => fields.iter().any(|(key, value)| key == "$patch" || has_directive(value)),
        _ => false,
    }
}

/// How many fields it lacks of those that every object of its kind needs, the inner ones counted. A reference that is
/// not complete counts once.
fn lacking(schema: &Value, value: &Value) -> usize {
    let is_reference = required(schema).all(|field| schema["properties"][field]["type"] == "string");
    let each = required(schema).map(|field| {
        let inner = lacking(&schema["properties"][field], &value[field]);
        if is_absent(value, field) { inner.max(1) } else { inner }
    });
    let all: usize = each.sum();
    if is_reference { all.min(1) } else { all }
}

/// A patch changes little: the whole has fields beside those that it needs, or most of those.
fn has_more(schema: &Value, spec: &Value) -> bool {
    let needed = required(schema).count();
    let present = required(schema).filter(|field| !is_absent(spec, field)).count();
    let others = spec.as_object().map_or(0, serde_json::Map::len) - present;
    if needed > 2 { present + 1 == needed } else { others > 0 }
}

fn required(schema: &Value) -> impl Iterator<Item = &str> {
    schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn is_absent(value: &Value, field: &str) -> bool {
    value.get(field).is_none()
}

/// Whether a template will fill in some of the value.
pub fn has_placeholder(value: &Value) -> bool {
    match value {
        Value::String(text) => has_expansion(text),
        Value::Array(items) => items.iter().any(has_placeholder),
        Value::Object(fields) => fields.iter().any(|(key, value)| has_expansion(key) || has_placeholder(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

struct Walk<'s> {
    root: &'s Value,
    path: Vec<String>,
    extent: Extent,
    misfits: Vec<Misfit>,
}

impl Walk<'_> {
    fn refuse(&mut self, says: String) {
        self.misfits.push(Misfit { path: self.path.clone(), says, is_unknown: false });
    }

    fn within(&mut self, step: &str, schema: &Value, value: &Value) {
        self.path.push(step.to_owned());
        self.value(schema, value);
        self.path.pop();
    }

    fn value(&mut self, schema: &Value, value: &Value) {
        if value.as_str().is_some_and(has_expansion) {
            return;
        }
        if let Some(wanted) = wanted_type(schema, value) {
            self.refuse(format!("must be {wanted}"));
            return;
        }
        if let Some(allowed) = schema["enum"].as_array()
            && !allowed.contains(value)
        {
            let allowed: Vec<String> = allowed.iter().map(shown).collect();
            self.refuse(format!("is {}, but must be one of {}", shown(value), allowed.join(", ")));
            return;
        }
        match value {
            Value::String(text) => self.text(schema, text),
            Value::Number(number) => self.number(schema, number.as_f64().unwrap_or_default()),
            Value::Array(items) => self.list(schema, items),
            Value::Object(fields) => {
                self.missing(schema, value);
                self.map(schema, fields);
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn text(&mut self, schema: &Value, text: &str) {
        if let Some(pattern) = schema["pattern"].as_str()
            && Regex::new(pattern).is_ok_and(|pattern| !pattern.is_match(text))
        {
            let form = form(pattern).unwrap_or(pattern);
            self.refuse(format!("is {}, but must be {form}", shown(&text.into())));
            return;
        }
        let length = text.chars().count() as u64;
        if schema["maxLength"].as_u64().is_some_and(|most| length > most) {
            self.refuse(format!("has {length} characters, but at most {} are allowed", schema["maxLength"]));
        }
        if schema["minLength"].as_u64().is_some_and(|least| length < least) {
            self.refuse(format!("has {length} characters, but at least {} are needed", schema["minLength"]));
        }
    }

    fn number(&mut self, schema: &Value, number: f64) {
        if schema["minimum"].as_f64().is_some_and(|least| number < least) {
            self.refuse(format!("is {number}, but must be at least {}", schema["minimum"]));
        }
        if schema["maximum"].as_f64().is_some_and(|most| number > most) {
            self.refuse(format!("is {number}, but must be at most {}", schema["maximum"]));
        }
    }

    fn list(&mut self, schema: &Value, items: &[Value]) {
        let length = items.len() as u64;
        if schema["maxItems"].as_u64().is_some_and(|most| length > most) {
            self.refuse(format!("has {length} items, but at most {} are allowed", schema["maxItems"]));
        }
        if schema["minItems"].as_u64().is_some_and(|least| length < least) {
            self.refuse(format!("has {length} items, but at least {} are needed", schema["minItems"]));
        }
        for (at, item) in items.iter().enumerate() {
            self.within(&at.to_string(), &schema["items"], item);
        }
    }

    fn map(&mut self, schema: &Value, fields: &serde_json::Map<String, Value>) {
        let length = fields.len() as u64;
        if schema["maxProperties"].as_u64().is_some_and(|most| length > most) {
            self.refuse(format!("has {length} keys, but at most {} are allowed", schema["maxProperties"]));
        }
        let known = schema["properties"].as_object();
        let others = schema.get("additionalProperties").filter(|others| others.is_object());
        let is_open = schema["x-kubernetes-preserve-unknown-fields"] == true;
        for (key, value) in fields {
            if let Some(own) = known.and_then(|known| known.get(key)) {
                self.within(key, own, value);
            } else if let Some(others) = others {
                self.within(key, others, value);
            } else if let Some(known) = known
                && !is_open
                && !has_expansion(key)
            {
                let says = match (nearest(key, known.keys()), the_place_of(key, self.root)) {
                    (Some(near), _) => format!("is unknown. The kind has {near}"),
                    (None, Some(place)) => format!("is unknown. The kind has {place}"),
                    (None, None) => "is unknown".to_owned(),
                };
                let path = self.path.iter().chain([key]).cloned().collect();
                self.misfits.push(Misfit { path, says, is_unknown: true });
            }
        }
    }

    /// What merges a part with the rest replaces lists as a whole, so their items are complete.
    fn missing(&mut self, schema: &Value, fields: &Value) {
        let missing: Vec<&str> = required(schema).filter(|field| is_absent(fields, field)).collect();
        let is_in_list = self.path.iter().any(|step| step.bytes().all(|byte| byte.is_ascii_digit()));
        if has_directive(fields) {
            return;
        }
        if !missing.is_empty() && (is_in_list || self.extent != Extent::Part) {
            self.refuse(format!("lacks {}, which is required", missing.join(" and ")));
        }
    }
}

/// The type that the schema wants, if the value has another one.
fn wanted_type(schema: &Value, value: &Value) -> Option<&'static str> {
    if schema["x-kubernetes-int-or-string"] == true {
        return (!value.is_string() && !value.is_i64() && !value.is_u64()).then_some("an integer or a string");
    }
    let (fits, wanted) = match schema["type"].as_str()? {
        "object" => (value.is_object(), "a map"),
        "array" => (value.is_array(), "a list"),
        "string" => (value.is_string(), "a string"),
        "integer" => (value.is_i64() || value.is_u64(), "an integer"),
        "number" => (value.is_number(), "a number"),
        "boolean" => (value.is_boolean(), "true or false"),
        _ => return None,
    };
    (!fits).then_some(wanted)
}

/// What a pattern wants, in words: patterns say little to people.
pub fn form(pattern: &str) -> Option<&'static str> {
    Some(match pattern {
        r"^(([0-9]+(s|m|h))+|Never)$" => "a duration in hours, minutes and seconds, such as 720h, or Never",
        r"^([0-9]+(s|m|h))+$" => "a duration in hours, minutes and seconds, such as 24h",
        r"^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$" => "a duration in hours and minutes, such as 8h or 1h30m",
        r"^((100|[0-9]{1,2})%|[0-9]+)$" => "a number of nodes, or a percentage up to 100%",
        r"^((?:[1-9][0-9]{0,3}|[1-4][0-9]{4}|[5][0-8][0-9]{3}|59000)Gi|(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|[6][0-3][0-9]{3}|64000)G|([1-9]||[1-5][0-7]|58)Ti|([1-9]||[1-5][0-9]|6[0-3]|64)T)$" => {
            "a size in Gi, G, Ti or T, such as 100Gi"
        }
        r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$" => {
            "a quantity, such as 100, 500m, 192Gi or 192G"
        }
        r"^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$" => {
            "a cron expression of five fields, such as 0 9 * * 1-5, or @daily"
        }
        r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$" => {
            "a name of letters, digits, -, _ and ., such as team or example.com/team"
        }
        r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$" => {
            "letters, digits, -, _ and ., with a letter or a digit at both ends"
        }
        r"^(([+-]{1}(\d*\.?\d+))|(\+{1}\d*\.?\d+%)|(^(-\d{1,2}(\.\d+)?%)$)|(-100%))$" => {
            "an amount or a percentage with its sign, such as +0.05 or -10%"
        }
        r"^\d+(\.\d+)?$" => "a price, such as 0.05",
        r"^[^/]*$" => "a group without a version, such as karpenter.k8s.aws",
        r"^[0-9]{12}$" => "an account of twelve digits",
        "subnet-[0-9a-z]+" => "an id such as subnet-0123456789abcdef0",
        "sg-[0-9a-z]+" => "an id such as sg-0123456789abcdef0",
        "ami-[0-9a-z]+" => "an id such as ami-0123456789abcdef0",
        "^cr-[0-9a-z]+$" => "an id such as cr-0123456789abcdef0",
        "^pg-[0-9a-z]+$" => "an id such as pg-0123456789abcdef0",
        _ => return None,
    })
}

/// A value, quoted and short.
fn shown(value: &Value) -> String {
    const LONGEST: usize = 60;
    let text = value.to_string();
    if text.chars().count() <= LONGEST {
        text
    } else {
        format!("{}…", text.chars().take(LONGEST).collect::<String>())
    }
}

/// The one place of the kind that has a field of this name.
fn the_place_of(name: &str, root: &Value) -> Option<String> {
    fn search(name: &str, schema: &Value, path: &str, found: &mut Vec<String>) {
        for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}.{key}");
            search(name, inner, &path, found);
            if key == name {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    search(name, root, "spec", &mut found);
    let [place] = &mut *found else { return None };
    Some(std::mem::take(place))
}

/// The known key that differs in case, or by one or two letters.
fn nearest<'k>(key: &str, known: impl Iterator<Item = &'k String>) -> Option<&'k str> {
    let near = known.map(|own| (strsim::damerau_levenshtein(&own.to_lowercase(), &key.to_lowercase()), own.as_str()));
    near.filter(|(distance, own)| distance * 3 <= own.len().min(6)).min().map(|(_, own)| own)
}
