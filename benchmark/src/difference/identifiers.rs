//! Identifiers that mean nothing but "the same object": a case does not write them, the name of the object decides them.

use super::places::step;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The places that are filled with an identifier, in the field that their object has for it.
pub(super) const GENERATED: [&str; 7] = ["container_id", "image_id", "machine_id", "suffix", "uid", "uuid", "version"];

/// An object's kind, namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    kind: String,
    namespace: String,
    name: String,
}

impl Identity {
    fn of(object: &Value) -> Self {
        let metadata = &object["metadata"];
        Self { kind: text(&object["kind"]), namespace: text(&metadata["namespace"]), name: text(&metadata["name"]) }
    }

    fn seed(&self) -> String {
        format!("{}/{}/{}", self.kind, self.namespace, self.name)
    }

    /// The object that a reference means. One without a namespace is in the namespace of the object that holds it, or in none.
    fn referred(reference: &Value, holder: &Self) -> Self {
        let namespace = reference["namespace"].as_str().unwrap_or(&holder.namespace).to_owned();
        Self { kind: text(&reference["kind"]), namespace, name: text(&reference["name"]) }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Fills `${uid}` and the like in all objects of a case.
pub(super) fn generate(objects: &mut [Value]) {
    let mut uids = BTreeMap::new();
    for object in &*objects {
        let Some(uid) = object["metadata"]["uid"].as_str() else { continue };
        let identity = Identity::of(object);
        let uid = if uid == "${uid}" { uuid(&identity.seed()) } else { uid.to_owned() };
        uids.entry(identity).or_insert(uid);
    }
    for object in objects {
        let identity = Identity::of(object);
        Generator { seed: identity.seed(), identity, uids: &uids }.walk(object, "");
    }
}

struct Generator<'a> {
    identity: Identity,
    seed: String,
    uids: &'a BTreeMap<Identity, String>,
}

impl Generator<'_> {
    fn walk(&self, value: &mut Value, place: &str) {
        match value {
            Value::Array(items) => {
                for (at, item) in items.iter_mut().enumerate() {
                    self.walk(item, &format!("{place}/{at}"));
                }
            }
            Value::Object(fields) => {
                for (name, field) in fields.iter_mut().filter(|(_, field)| field.is_object() || field.is_array()) {
                    self.walk(field, &(place.to_owned() + &step(name)));
                }
                let is_generated = |field: &Value| field.as_str().is_some_and(|text| text.ends_with('}'));
                let names: Vec<String> =
                    fields.iter().filter(|(_, field)| is_generated(field)).map(|(name, _)| name.clone()).collect();
                for name in names {
                    if let Some(identifier) = self.identifier(value, &name, place) {
                        value[&name] = Value::String(identifier);
                    }
                }
            }
            _ => {}
        }
    }

    /// The identifier for a field of `around`, which is at a place; nothing if its text is another one.
    fn identifier(&self, around: &Value, name: &str, place: &str) -> Option<String> {
        let said = around[name].as_str()?;
        let own = || format!("{}{place}{}", self.seed, step(name));
        match name {
            "uid" if said == "${uid}" && place == "/metadata" => Some(uuid(&self.seed)),
            "uid" if said == "${uid}" => Some(self.uid(&Identity::referred(around, &self.identity))),
            "resourceVersion" if said == "${version}" => Some((100_000 + word(&self.seed, 0) % 9_000_000).to_string()),
            "name" => Some(said.strip_suffix("${suffix}")?.to_owned() + &suffix(&self.seed)),
            "containerID" => Some(said.strip_suffix("${container_id}")?.to_owned() + &hexadecimal(&own(), 64)),
            "imageID" => {
                let image = around["image"].as_str().unwrap_or_default();
                let before = said.strip_suffix("${image_id}")?;
                Some(format!("{before}{}@sha256:{}", repository(image), hexadecimal(image, 64)))
            }
            "bootID" | "systemUUID" if said == "${uuid}" => Some(uuid(&own())),
            "machineID" if said == "${machine_id}" => Some(hexadecimal(&own(), 32)),
            _ => None,
        }
    }

    fn uid(&self, of: &Identity) -> String {
        let anywhere = Identity { namespace: String::new(), ..of.clone() };
        let known = self.uids.get(of).or_else(|| self.uids.get(&anywhere));
        known.cloned().unwrap_or_else(|| uuid(&of.seed()))
    }
}

/// An image without its tag and digest.
pub(super) fn repository(image: &str) -> &str {
    let image = image.split('@').next().unwrap_or(image);
    match image.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => repository,
        _ => image,
    }
}

fn uuid(seed: &str) -> String {
    let digits = hexadecimal(seed, 32);
    format!("{}-{}-5{}-8{}-{}", &digits[..8], &digits[8..12], &digits[13..16], &digits[17..20], &digits[20..])
}

/// What the API server appends to a generated name.
fn suffix(seed: &str) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let (mut rest, mut suffix) = (word(seed, 0), String::new());
    for _ in 0..5 {
        suffix.push(char::from(LETTERS[(rest % 27) as usize]));
        rest /= 27;
    }
    suffix
}

fn hexadecimal(seed: &str, digits: usize) -> String {
    let words = (0..digits.div_ceil(16)).map(|at| format!("{:016x}", word(seed, at)));
    words.collect::<String>()[..digits].to_owned()
}

/// One of any number of words that a seed has: FNV-1a, whose bits splitmix64 then mixes. Unlike the hasher of the standard
/// library, it is the same in every version.
fn word(seed: &str, at: usize) -> u64 {
    let text = format!("{at}/{seed}");
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let hash = hash.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

/// Kinds whose uid an answer quotes, or that a case is about.
const WITH_THEIR_UID: [&str; 10] = [
    "",
    "AWSNodeTemplate",
    "Deployment",
    "EC2NodeClass",
    "Machine",
    "Node",
    "NodeClaim",
    "NodeClass",
    "NodePool",
    "Provisioner",
];

/// Replaces identifiers by the places that `generate` fills. `is_blamed` tells of a kind and a name.
pub(super) fn mark(objects: &mut [Value], dump: &str, is_blamed: impl Fn(&str, &str) -> bool) {
    let mut uids: BTreeMap<Identity, String> = BTreeMap::new();
    for object in &*objects {
        if let Some(uid) = object["metadata"]["uid"].as_str() {
            uids.entry(Identity::of(object)).or_insert_with(|| uid.to_owned());
        }
    }
    let mut named: BTreeMap<String, Uses> = BTreeMap::new();
    for object in &*objects {
        let holder = Identity::of(object);
        each_uid(object, "", &holder, &uids, &mut |of, uid| {
            let uses = named.entry(uid.to_owned()).or_default();
            uses.fields += 1;
            uses.of.insert(of);
        });
    }
    let mut of: BTreeMap<&Identity, usize> = BTreeMap::new();
    named.values().flat_map(|uses| &uses.of).for_each(|identity| *of.entry(identity).or_default() += 1);
    let is_free = |uid: &str| {
        let Some(uses) = named.get(uid) else { return false };
        let Some(identity) = uses.of.first().filter(|_| uses.of.len() == 1) else { return false };
        !WITH_THEIR_UID.contains(&identity.kind.as_str())
            && !is_blamed(&identity.kind, &identity.name)
            && is_uuid(uid)
            && of.get(identity) == Some(&1)
            && dump.matches(uid).count() == uses.fields
    };
    for object in objects {
        let is_node = object["kind"] == "Node";
        mark_in(object, "", is_node, &is_free);
        mark_access_token(object);
    }
}

/// Where a uid is used.
#[derive(Default)]
struct Uses {
    fields: usize,
    of: BTreeSet<Identity>,
}

fn each_uid(
    value: &Value,
    place: &str,
    holder: &Identity,
    uids: &BTreeMap<Identity, String>,
    each: &mut impl FnMut(Identity, &str),
) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| each_uid(item, "/", holder, uids, each)),
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    Value::String(uid) if name == "uid" => {
                        let mut of = holder.clone();
                        if place != "/metadata" {
                            of = Identity::referred(value, holder);
                            let anywhere = Identity { namespace: String::new(), ..of.clone() };
                            if !uids.contains_key(&of) && uids.contains_key(&anywhere) {
                                of = anywhere;
                            }
                        }
                        each(of, uid);
                    }
                    field => each_uid(field, &(place.to_owned() + &step(name)), holder, uids, each),
                }
            }
        }
        _ => {}
    }
}

fn mark_in(value: &mut Value, place: &str, is_node: bool, is_free: &impl Fn(&str) -> bool) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| mark_in(item, "/", is_node, is_free)),
        Value::Object(fields) => {
            let image = fields.get("image").and_then(Value::as_str).map(|image| repository(image).to_owned());
            for (name, field) in fields {
                let Value::String(text) = field else {
                    mark_in(field, &(place.to_owned() + &step(name)), is_node, is_free);
                    continue;
                };
                let marked = match name.as_str() {
                    "uid" => is_free(text).then(|| "${uid}".to_owned()),
                    "resourceVersion" if place == "/metadata" => {
                        let is_number = text.len() > 1 && text.bytes().all(|byte| byte.is_ascii_digit());
                        is_number.then(|| "${version}".to_owned())
                    }
                    "containerID" => text
                        .split_once("://")
                        .filter(|(_, id)| is_hexadecimal(id, 64))
                        .map(|(runtime, _)| format!("{runtime}://${{container_id}}")),
                    "imageID" => image.as_ref().and_then(|image| {
                        let (named, digest) = text.rsplit_once("@sha256:")?;
                        let before = named.strip_suffix(image.as_str())?;
                        let is_known = is_hexadecimal(digest, 64) && ["", "docker-pullable://"].contains(&before);
                        is_known.then(|| format!("{before}${{image_id}}"))
                    }),
                    "bootID" | "systemUUID" if is_node => is_uuid(text).then(|| "${uuid}".to_owned()),
                    "machineID" if is_node => is_hexadecimal(text, 32).then(|| "${machine_id}".to_owned()),
                    _ => None,
                };
                if let Some(marked) = marked {
                    *text = marked;
                }
            }
        }
        _ => {}
    }
}

/// The volume with the token of a pod's ServiceAccount has a generated name.
fn mark_access_token(object: &mut Value) {
    const PREFIX: &str = "kube-api-access-";
    let volumes = object["spec"]["volumes"].as_array().map_or(&[][..], Vec::as_slice);
    let names: Vec<&str> = volumes.iter().filter_map(|volume| volume["name"].as_str()).collect();
    let mut generated = names.into_iter().filter(|name| name.strip_prefix(PREFIX).is_some_and(|end| end.len() == 5));
    let (Some(name), None) = (generated.next().map(str::to_owned), generated.next()) else { return };
    rename(object, &name, &format!("{PREFIX}${{suffix}}"));
}

fn rename(value: &mut Value, from: &str, to: &str) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, from, to)),
        Value::Object(fields) => {
            for (name, field) in fields {
                if name == "name" && *field == from {
                    *field = Value::from(to);
                } else {
                    rename(field, from, to);
                }
            }
        }
        _ => {}
    }
}

fn is_hexadecimal(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_uuid(text: &str) -> bool {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

/// Whether an object's own text has `${`, which in a template is a place.
pub(super) fn has_other_places(value: &Value) -> bool {
    match value {
        Value::String(text) => match text.split_once("${") {
            Some((_, behind)) => !GENERATED.contains(&behind.trim_end_matches('}')),
            None => false,
        },
        Value::Array(items) => items.iter().any(has_other_places),
        Value::Object(fields) => fields.iter().any(|(name, field)| name.contains("${") || has_other_places(field)),
        _ => false,
    }
}

/// Which identifiers became which.
#[derive(Debug, Default)]
pub(super) struct Renamed {
    old: BTreeMap<String, String>,
    new: BTreeMap<String, String>,
}

impl Renamed {
    /// Refuses objects that differ in more than identifiers, and uids that no longer mean the same object.
    pub fn compare(&mut self, before: &[Value], after: &[Value]) -> Result<(), String> {
        if before.len() != after.len() {
            return Err(format!("{} objects became {}", before.len(), after.len()));
        }
        for (before, after) in before.iter().zip(after) {
            self.same(before, after, "", "").map_err(|why| format!("{}: {why}", Identity::of(before).seed()))?;
        }
        Ok(())
    }

    fn same(&mut self, before: &Value, after: &Value, name: &str, place: &str) -> Result<(), String> {
        match (before, after) {
            (Value::Array(old), Value::Array(new)) if old.len() == new.len() => old
                .iter()
                .zip(new)
                .enumerate()
                .try_for_each(|(at, (old, new))| self.same(old, new, "", &format!("{place}/{at}"))),
            (Value::Object(old), Value::Object(new)) if old.len() == new.len() => {
                old.iter().try_for_each(|(name, old)| {
                    let new = new.get(name).ok_or_else(|| format!("{place} lost {name}"))?;
                    self.same(old, new, name, &(place.to_owned() + &step(name)))
                })
            }
            (Value::String(old), Value::String(new)) if name == "uid" => {
                let became = self.old.entry(old.clone()).or_insert_with(|| new.clone());
                let was = self.new.entry(new.clone()).or_insert_with(|| old.clone());
                if became == new && was == old { Ok(()) } else { Err(format!("{place}: {old} is of two objects")) }
            }
            (Value::String(old), Value::String(_)) if is_generated(name, old) => Ok(()),
            (old, new) if old == new => Ok(()),
            (old, new) => Err(format!("{place}: {old} became {new}")),
        }
    }
}

/// Whether a field may get another identifier.
fn is_generated(name: &str, text: &str) -> bool {
    match name {
        "resourceVersion" | "containerID" | "imageID" | "bootID" | "systemUUID" | "machineID" => true,
        "name" => text.starts_with("kube-api-access-"),
        _ => false,
    }
}
