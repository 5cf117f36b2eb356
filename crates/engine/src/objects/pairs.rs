//! Texts by their keys: labels, annotations, resource lists.

use crate::objects::intern::Interned;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt::{self, Write};

/// Texts by their keys. Each is stored with its key as one word, `team=platform`, for most pairs are many machines'; no
/// key holds an equals sign. Source: kubernetes staging/src/k8s.io/apimachinery/pkg/util/validation/validation.go
/// `IsQualifiedName` (v1.36).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pairs(Box<[Interned]>);

/// The key and its equals sign, by which pairs are ordered: what begins a pair is found without looking where its key
/// ends.
fn start(pair: &Interned) -> &str {
    pair.split_inclusive('=').next().unwrap_or_default()
}

fn split(pair: &Interned) -> (&str, &str) {
    pair.split_once('=').unwrap_or((pair, ""))
}

impl Pairs {
    pub fn get(&self, key: &str) -> Option<&str> {
        let found = self.0.binary_search_by(|pair| {
            let (start, rest) = pair.as_bytes().split_at(key.len().min(pair.len()));
            start.cmp(key.as_bytes()).then_with(|| rest.first().cmp(&Some(&b'=')))
        });
        self.0.get(found.ok()?)?.get(key.len() + 1..)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those whose value fits.
    pub(super) fn with_values(self, fits: impl Fn(&str) -> bool) -> Self {
        let fits = |pair: &Interned| pair.split_once('=').is_some_and(|(_, value)| fits(value));
        Self(self.0.into_iter().filter(fits).collect())
    }

    /// With one pair more, or another text of its key.
    #[must_use]
    pub(super) fn with(self, key: &str, text: &str) -> Self {
        Self::of(self.0.into_iter().chain([format!("{key}={text}").into()]).collect())
    }

    /// Keys and texts.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(split)
    }

    /// The last of equal keys counts.
    fn of(mut pairs: Vec<Interned>) -> Self {
        // As the API server writes them they are in order and differ, and nothing is moved.
        pairs.sort_by(|a, b| start(a).cmp(start(b)));
        pairs.dedup_by(|later, earlier| {
            let equal = start(later) == start(earlier);
            if equal {
                std::mem::swap(later, earlier);
            }
            equal
        });
        Self(pairs.into_boxed_slice())
    }
}

/// The last of equal keys counts.
impl<'t> FromIterator<(&'t str, &'t str)> for Pairs {
    fn from_iter<I: IntoIterator<Item = (&'t str, &'t str)>>(pairs: I) -> Self {
        Self::of(pairs.into_iter().map(|(key, text)| format!("{key}={text}").into()).collect())
    }
}

impl Serialize for Pairs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Map;
        impl<'de> Visitor<'de> for Map {
            type Value = Pairs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of texts")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::with_capacity(map.size_hint().unwrap_or(32));
                let mut pair = String::with_capacity(128);
                while map.next_key_seed(Onto(&mut pair))?.is_some() {
                    // kubectl's copy of the whole object is nothing to judge by, and may hold what its userData holds.
                    if pair == "kubectl.kubernetes.io/last-applied-configuration" {
                        map.next_value::<IgnoredAny>()?;
                    } else {
                        pair.push('=');
                        map.next_value_seed(Onto(&mut pair))?;
                        pairs.push(pair.as_str().into());
                    }
                    pair.clear();
                }
                Ok(Pairs::of(pairs))
            }
        }
        deserializer.deserialize_map(Map)
    }
}

/// Puts a text at the end of another. A quantity may be written as a number, and `null` is what a hand-written manifest
/// leaves where it meant an empty text.
struct Onto<'t>(&'t mut String);

impl<'de> DeserializeSeed<'de> for Onto<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Onto<'_> {
    fn shown<E: serde::de::Error>(self, value: impl fmt::Display) -> Result<(), E> {
        write!(self.0, "{value}").map_err(E::custom)
    }
}

impl Visitor<'_> for Onto<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.0.push_str(text);
        Ok(())
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<(), E> {
        self.shown(number)
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<(), E> {
        self.shown(number)
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<(), E> {
        self.shown(number)
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_equal_keys_the_last_counts_and_the_copy_of_the_whole_object_is_left_out() {
        let text = r#"{"b":"1","a":"x","b":"2","c":null,"kubectl.kubernetes.io/last-applied-configuration":"TOKEN=hunter2","b":"3"}"#;
        let pairs: Pairs = serde_json::from_str(text).unwrap();
        let all: Vec<_> = pairs.iter().collect();
        assert_eq!(all, [("a", "x"), ("b", "3"), ("c", "")]);
        assert_eq!((pairs.get("b"), pairs.get("d")), (Some("3"), None));
    }

    /// `-` and `.` come before `=`, letters after it.
    #[test]
    fn keys_are_found_whatever_follows_them() {
        let text = r#"{"a.b":"1","a":"=2=","a-b":"3","ab":"4","pods":29,"cpu":1.5}"#;
        let pairs: Pairs = serde_json::from_str(text).unwrap();
        let found: Vec<_> =
            ["a", "a-b", "a.b", "ab", "pods", "cpu"].into_iter().map(|key| pairs.get(key).unwrap()).collect();
        assert_eq!(found, ["=2=", "3", "1", "4", "29", "1.5"]);
        assert_eq!(pairs.iter().collect::<Pairs>(), pairs);
        assert!(serde_json::from_str::<Pairs>(r#"{"a":{}}"#).is_err());
    }
}
