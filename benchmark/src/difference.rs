//! A case as the difference from templates (`cluster.diff.yaml`), and back to whole objects. tests/cases/README.md
//! describes the form.

mod identifiers;
mod moment;
mod places;
pub mod shorten;

use places::{Places, Scope};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// `cluster.diff.yaml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Difference {
    /// What several objects of this case share.
    #[serde(default)]
    shapes: BTreeMap<String, Like>,
    /// In the order of the dump. An object without `like` is whole.
    objects: Vec<Value>,
}

/// What an object differs in from a template or from a shape.
#[derive(Debug, Clone, Default, Deserialize)]
struct Like {
    /// The template, or a shape of the case.
    #[serde(rename = "like")]
    base: String,
    /// Fields that the template has and the object has not.
    #[serde(default)]
    drop: Vec<String>,
    /// Fields that differ from the template's or that it has not.
    #[serde(default)]
    set: Map<String, Value>,
    #[serde(flatten)]
    parameters: Map<String, Value>,
}

/// A file of tests/templates: an object with `${parameter}` places.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Template {
    /// The values of parameters that an object does not name.
    #[serde(default)]
    defaults: Map<String, Value>,
    object: Value,
}

/// The templates of a folder. Each is parsed when a case first needs it.
#[derive(Debug)]
pub struct Templates {
    folder: PathBuf,
    parsed: Mutex<BTreeMap<String, Arc<Template>>>,
}

impl Templates {
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), parsed: Mutex::default() }
    }

    /// tests/templates.
    pub fn of_corpus() -> &'static Self {
        static TEMPLATES: OnceLock<Templates> = OnceLock::new();
        TEMPLATES.get_or_init(|| Self::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/templates")))
    }

    /// `KIND/NAME` of all of them, in order.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        if !self.folder.is_dir() {
            return Ok(names);
        }
        for kind in fs::read_dir(&self.folder)? {
            let kind = kind?;
            for file in fs::read_dir(kind.path())? {
                let path = file?.path();
                let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                names.push(format!("{}/{name}", kind.file_name().to_string_lossy()));
            }
        }
        names.sort();
        Ok(names)
    }

    fn get(&self, name: &str) -> Result<Arc<Template>, String> {
        let mut parsed = self.parsed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(template) = parsed.get(name) {
            return Ok(Arc::clone(template));
        }
        let path = self.folder.join(format!("{name}.yaml"));
        let text = fs::read_to_string(&path).map_err(|error| format!("template {name}: {error}"))?;
        let template: Template = serde_saphyr::from_str(&text).map_err(|error| format!("template {name}: {error}"))?;
        let template = Arc::new(template);
        parsed.insert(name.to_owned(), Arc::clone(&template));
        Ok(template)
    }
}

impl Like {
    fn of(entry: &Value) -> Result<Self, String> {
        Self::deserialize(entry).map_err(|error| format!("{error}: {entry}"))
    }

    /// This shape, with what an object says of itself.
    fn with(&self, entry: Self) -> Self {
        let mut whole = self.clone();
        whole.drop.extend(entry.drop);
        whole.set.extend(entry.set);
        whole.parameters.extend(entry.parameters);
        whole
    }

    /// The object, without generated identifiers.
    fn object(&self, template: &Template) -> Result<Value, String> {
        let known = template.parameters()?;
        if let Some(name) = self.parameters.keys().find(|name| !known.contains(*name)) {
            return Err(format!("template {} has no parameter {name}", self.base));
        }
        let mut places = Places(template.object.clone());
        self.drop.iter().try_for_each(|place| places.drop(place))?;
        self.set.keys().for_each(|place| places.blank(place));
        let scope = Scope { parameters: &self.parameters, defaults: &template.defaults };
        let mut object = Places(scope.fill(&places.0)?);
        // Items of a list are added in their order: /9 before /10.
        let mut set: Vec<(&String, &Value)> = self.set.iter().collect();
        set.sort_by_key(|(place, _)| (place.len(), *place));
        set.into_iter().try_for_each(|(place, value)| object.set(place, value.clone()))?;
        Ok(object.0)
    }
}

impl Difference {
    fn read(text: &str) -> Result<Self, String> {
        serde_saphyr::from_str(text).map_err(|error| error.to_string())
    }

    /// What an entry says, with its shape.
    fn resolve(&self, entry: &Value) -> Result<Like, String> {
        let entry = Like::of(entry)?;
        Ok(match self.shapes.get(&entry.base) {
            Some(shape) => shape.with(entry),
            None => entry,
        })
    }
}

/// The objects of a `cluster.diff.yaml`.
pub fn expand(text: &str, templates: &Templates) -> Result<Vec<Value>, String> {
    let difference = Difference::read(text)?;
    let mut objects = Vec::new();
    for entry in &difference.objects {
        if entry.get("like").is_none() {
            objects.push(entry.clone());
            continue;
        }
        let like = difference.resolve(entry)?;
        let template = templates.get(&like.base)?;
        objects.push(like.object(&template).map_err(|why| format!("{why}: {entry}"))?);
    }
    identifiers::generate(&mut objects);
    Ok(objects)
}

/// The templates that a `cluster.diff.yaml` uses.
pub fn templates_used(text: &str) -> Result<Vec<String>, String> {
    let difference = Difference::read(text)?;
    let entries = difference.objects.iter().filter(|entry| entry.get("like").is_some());
    let used: Result<Vec<String>, String> = entries.map(|entry| Ok(difference.resolve(entry)?.base)).collect();
    if let Some(shape) =
        difference.shapes.keys().find(|shape| !difference.objects.iter().any(|entry| entry["like"] == shape.as_str()))
    {
        return Err(format!("no object is like the shape {shape}"));
    }
    used
}
