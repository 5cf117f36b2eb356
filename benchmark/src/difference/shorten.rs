//! Writes a whole dump as the difference from the templates that exist.

use super::identifiers::{self, Renamed};
use super::places::{Scope, bound, step};
use super::{Like, Template, Templates, expand, moment};
use crate::case::{Case, Truth};
use crate::{documents, yaml};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Kinds that a case is about, or that may be to blame: they stay whole.
const WHOLE: [&str; 6] = ["NodePool", "EC2NodeClass", "NodeClass", "NodeOverlay", "Provisioner", "AWSNodeTemplate"];
/// Two days: a time that is further from `created` is written as it is.
const NEAR: i64 = 172_800;

const HEADING: &str =
    "# tests/cases/README.md describes this form. `cargo benchmark export FOLDER CASE` writes the whole dump.\n";

/// The text of `cluster.diff.yaml` for a case that has `cluster.yaml`; or why the case has to stay whole.
pub fn shorten(case: &Case, dump: &str, templates: &Templates) -> Result<String, String> {
    let objects = documents::read(dump).map_err(|error| error.to_string())?;
    let names = templates.names().map_err(|error| error.to_string())?;
    let about = About::of(&case.truth, &objects);
    let mut marked = objects.clone();
    identifiers::mark(&mut marked, dump, |kind, name| about.is_blamed(kind, name));
    let mut entries = Vec::new();
    for object in &marked {
        let like = if about.has(object) { None } else { shortest(object, &names, templates)? };
        entries.push(like);
    }
    let shapes = shapes(&mut entries);
    let text = written(&shapes, &entries, &marked);
    let again = expand(&text, templates)?;
    Renamed::default().compare(&objects, &again)?;
    // A quarter to a third of most dumps is about their fault.
    if text.len() * 10 > dump.len() * 7 {
        return Err("it would save less than 30 %".to_owned());
    }
    Ok(text)
}

/// The objects that a case is about.
struct About {
    /// `Kind/name`
    blamed: BTreeSet<String>,
    machines: BTreeSet<String>,
}

impl About {
    fn of(truth: &Truth, objects: &[Value]) -> Self {
        let sick = [&truth.sick, &truth.sick_other, &truth.sick_alternatives].into_iter().flatten();
        let mut blamed: BTreeSet<String> = sick.clone().cloned().collect();
        blamed.insert(truth.object_to_fix.clone());
        blamed.extend(truth.object_to_fix_alternatives.iter().cloned());
        let mut machines: BTreeSet<String> =
            sick.map(|name| name.rsplit('/').next().unwrap_or(name).to_owned()).collect();
        for object in objects.iter().filter(|object| object["kind"] == "NodeClaim") {
            let claim = documents::text(object, &["metadata", "name"]);
            let node = documents::text(object, &["status", "nodeName"]);
            if machines.contains(claim) || machines.contains(node) {
                machines.extend([claim, node].into_iter().filter(|name| !name.is_empty()).map(str::to_owned));
            }
        }
        Self { blamed, machines }
    }

    fn is_blamed(&self, kind: &str, name: &str) -> bool {
        self.blamed.contains(&format!("{kind}/{name}"))
    }

    fn has(&self, object: &Value) -> bool {
        let kind = documents::text(object, &["kind"]);
        let name = documents::text(object, &["metadata", "name"]);
        let is_machine = ["Node", "NodeClaim", "Machine"].contains(&kind) && self.machines.contains(name);
        let is_on_one = || self.machines.contains(documents::text(object, &["spec", "nodeName"]));
        WHOLE.contains(&kind)
            || self.is_blamed(kind, name)
            || is_machine
            || (kind == "Pod" && is_on_one() && !is_healthy(object))
    }
}

fn is_healthy(pod: &Value) -> bool {
    let runs = ["Running", "Succeeded"].contains(&documents::text(pod, &["status", "phase"]));
    let containers = documents::list(pod, &["status", "containerStatuses"]);
    runs && pod["metadata"]["deletionTimestamp"].is_null() && containers.iter().all(|status| status["ready"] == true)
}

/// The shortest way to write an object; nothing if no template saves a quarter of it.
fn shortest(object: &Value, names: &[String], templates: &Templates) -> Result<Option<Like>, String> {
    let kind = documents::text(object, &["kind"]).to_lowercase();
    // What a template's places look like can only stand in a whole object.
    if kind.is_empty() || identifiers::has_other_places(object) {
        return Ok(None);
    }
    let mut best: Option<(usize, Like)> = None;
    for name in names.iter().filter(|name| name.split('/').next() == Some(&kind)) {
        let Some(like) = difference(name, &*templates.get(name)?, object) else { continue };
        let length = yaml::flow(&Value::Object(like.entry())).len();
        if best.as_ref().is_none_or(|(shortest, _)| length < *shortest) {
            best = Some((length, like));
        }
    }
    Ok(best.filter(|(length, _)| length * 4 <= object.to_string().len() * 3).map(|(_, like)| like))
}

/// What an object differs in from a template; nothing if that cannot be written.
fn difference(name: &str, template: &Template, object: &Value) -> Option<Like> {
    let mut like = Like { base: name.to_owned(), ..Like::default() };
    bind(&mut like.parameters, template, object);
    let mut parameters = like.parameters.clone();
    for name in template.parameters().ok()? {
        let scope = Scope { parameters: &parameters, defaults: &template.defaults };
        if scope.parameter(&name).is_err() {
            parameters.insert(name, Value::Null);
        }
    }
    let filled = Scope { parameters: &parameters, defaults: &template.defaults }.fill(&template.object).ok()?;
    compare(&filled, object, "", &mut like);
    (like.object(template).as_ref() == Ok(object)).then_some(like)
}

/// Reads the parameters off an object. Those that have a default follow those that it may name.
fn bind(parameters: &mut Map<String, Value>, template: &Template, object: &Value) {
    let mut places = BTreeMap::new();
    collect(&template.object, String::new(), &mut places);
    let mut waiting: Vec<(String, String, &Value)> = Vec::new();
    for (name, (place, said)) in places {
        let Some(value) = object.pointer(&place) else { continue };
        if template.defaults.contains_key(&name) || said.contains('+') {
            waiting.push((name, said, value));
        } else {
            parameters.insert(name, value.clone());
        }
    }
    while !waiting.is_empty() {
        let before = waiting.len();
        waiting.retain(|(name, said, value)| {
            let place = Value::from(said.as_str());
            let scope = Scope { parameters, defaults: &template.defaults };
            if template.defaults.contains_key(name) {
                match scope.fill(&place) {
                    Ok(filled) if filled == **value => return false,
                    Err(_) if waits_for_another(&scope, template, name) => return true,
                    _ => {}
                }
            }
            let told = told(parameters, said, value);
            parameters.insert(name.clone(), told);
            false
        });
        if waiting.len() == before {
            let (name, said, value) = waiting.remove(0);
            let told = told(parameters, &said, value);
            parameters.insert(name, told);
        }
    }
}

fn waits_for_another(scope: &Scope<'_>, template: &Template, name: &str) -> bool {
    template.defaults.get(name).is_some_and(|default| scope.fill(default).is_err())
}

/// The value of a parameter: where its place adds it to the time of creation, in seconds if it is near.
fn told(parameters: &Map<String, Value>, said: &str, value: &Value) -> Value {
    let seconds = |value: &Value| value.as_str().and_then(moment::seconds);
    let created = parameters.get("created").and_then(seconds);
    match (created, seconds(value)) {
        (Some(created), Some(at)) if said.contains('+') && (at - created).abs() <= NEAR => json!(at - created),
        _ => value.clone(),
    }
}

/// The first place of each parameter that has one for itself.
fn collect(value: &Value, place: String, places: &mut BTreeMap<String, (String, String)>) {
    match value {
        Value::String(text) => {
            if let Some(name) = bound(text) {
                places.entry(name.to_owned()).or_insert_with(|| (place, text.clone()));
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                collect(item, format!("{place}/{at}"), places);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                collect(field, place.clone() + &step(name), places);
            }
        }
        _ => {}
    }
}

/// Notes what has to be dropped from `from` and set in it to get `to`.
fn compare(from: &Value, to: &Value, place: &str, like: &mut Like) {
    match (from, to) {
        (Value::Object(from), Value::Object(to)) if !from.is_empty() && !to.is_empty() => {
            let added = to.iter().filter(|(name, _)| !from.contains_key(*name));
            like.set.extend(added.map(|(name, value)| (place.to_owned() + &step(name), value.clone())));
            for (name, value) in from {
                let below = place.to_owned() + &step(name);
                match to.get(name) {
                    Some(other) => compare(value, other, &below, like),
                    None => like.drop.push(below),
                }
            }
        }
        (Value::Array(from), Value::Array(items)) if !from.is_empty() && items.len() >= from.len() => {
            let mut within = Like::default();
            for (at, (value, other)) in from.iter().zip(items).enumerate() {
                compare(value, other, &format!("{place}/{at}"), &mut within);
            }
            let added = items.iter().enumerate().skip(from.len());
            within.set.extend(added.map(|(at, value)| (format!("{place}/{at}"), value.clone())));
            if Value::Object(within.entry()).to_string().len() < to.to_string().len() + 30 {
                like.set.extend(within.set);
                like.drop.extend(within.drop);
            } else {
                like.set.insert(place.to_owned(), to.clone());
            }
        }
        (from, to) if from != to => {
            like.set.insert(place.to_owned(), to.clone());
        }
        _ => {}
    }
}

impl Like {
    /// As `cluster.diff.yaml` has it.
    fn entry(&self) -> Map<String, Value> {
        let mut entry = self.parameters.clone();
        entry.insert("like".to_owned(), json!(self.base));
        if !self.drop.is_empty() {
            entry.insert("drop".to_owned(), json!(self.drop));
        }
        if !self.set.is_empty() {
            entry.insert("set".to_owned(), Value::Object(self.set.clone()));
        }
        entry
    }
}

/// Takes what several entries share out of them.
fn shapes(entries: &mut [Option<Like>]) -> BTreeMap<String, Like> {
    let mut alike: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, like) in entries.iter().enumerate() {
        if let Some(like) = like {
            let what = json!([like.base, like.drop, like.set]).to_string();
            alike.entry(what).or_default().push(at);
        }
    }
    let mut shapes = BTreeMap::new();
    for places in alike.into_values().filter(|places| places.len() > 1) {
        let all: Vec<&Like> = places.iter().filter_map(|at| entries[*at].as_ref()).collect();
        let Some((first, others)) = all.split_first() else { continue };
        let mut shape = (*first).clone();
        shape.parameters.retain(|name, value| {
            name != "created" && others.iter().all(|other| other.parameters.get(name) == Some(value))
        });
        if shape.parameters.is_empty() && shape.set.is_empty() && shape.drop.is_empty() {
            continue;
        }
        let name = free_name(&shape.base, &shapes);
        for at in places {
            let Some(like) = &mut entries[at] else { continue };
            like.parameters.retain(|parameter, _| !shape.parameters.contains_key(parameter));
            *like = Like { base: name.clone(), parameters: std::mem::take(&mut like.parameters), ..Like::default() };
        }
        shapes.insert(name, shape);
    }
    shapes
}

/// The template's name, without a slash so that it is not taken for a template.
fn free_name(template: &str, taken: &BTreeMap<String, Like>) -> String {
    let name = template.strip_prefix("pod/").unwrap_or(template).replace('/', "-");
    let mut numbered = (2..).map(|number| format!("{name}-{number}"));
    if taken.contains_key(&name) { numbered.find(|name| !taken.contains_key(name)).unwrap_or(name) } else { name }
}

fn written(shapes: &BTreeMap<String, Like>, entries: &[Option<Like>], objects: &[Value]) -> String {
    let mut text = HEADING.to_owned();
    if !shapes.is_empty() {
        text += "shapes:\n";
    }
    for (name, shape) in shapes {
        yaml::flow_mapping(&mut text, &format!("  {name}: "), 4, &shape.entry());
    }
    text += "objects:\n";
    for (like, object) in entries.iter().zip(objects) {
        match like {
            Some(like) => yaml::flow_mapping(&mut text, "- ", 2, &like.entry()),
            None => yaml::item(&mut text, object, 0),
        }
    }
    text
}
