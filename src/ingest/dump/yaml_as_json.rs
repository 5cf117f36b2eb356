//! YAML as the JSON text of the same value, without a tree of all its values between: every view is read from JSON.

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Number;
use std::fmt;

/// The JSON text of one value.
pub(super) struct YamlAsJson(pub String);

impl<'de> Deserialize<'de> for YamlAsJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut json = Vec::new();
        Json(&mut json).deserialize(deserializer)?;
        String::from_utf8(json).map(Self).map_err(D::Error::custom)
    }
}

/// What is written so far. It takes what `serde_json::Value` takes.
struct Json<'t>(&'t mut Vec<u8>);

impl Json<'_> {
    fn write<E: Error>(self, value: &impl Serialize) -> Result<(), E> {
        serde_json::to_writer(self.0, value).map_err(E::custom)
    }
}

impl<'de> DeserializeSeed<'de> for Json<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Json<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.write(&value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.write(&value)
    }

    fn visit_i128<E: Error>(self, value: i128) -> Result<(), E> {
        self.write(&Number::from_i128(value).ok_or_else(|| E::custom("JSON number out of range"))?)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.write(&value)
    }

    fn visit_u128<E: Error>(self, value: u128) -> Result<(), E> {
        self.write(&Number::from_u128(value).ok_or_else(|| E::custom("JSON number out of range"))?)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        // Not a number, and the infinite, are null.
        self.write(&Number::from_f64(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        self.write(&value)
    }

    fn visit_none<E: Error>(self) -> Result<(), E> {
        self.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.write(&())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.0.push(b'[');
        let mut begins = true;
        loop {
            let before = self.0.len();
            if !begins {
                self.0.push(b',');
            }
            if items.next_element_seed(Json(self.0))?.is_none() {
                self.0.truncate(before);
                break;
            }
            begins = false;
        }
        self.0.push(b']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        self.0.push(b'{');
        let mut begins = true;
        while let Some(key) = fields.next_key::<String>()? {
            if !begins {
                self.0.push(b',');
            }
            begins = false;
            Json(self.0).write(&key)?;
            self.0.push(b':');
            fields.next_value_seed(Json(self.0))?;
        }
        self.0.push(b'}');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn it_says_what_the_tree_of_values_says() {
        for yaml in [
            "{}",
            "[]",
            "~",
            "a: [1, -2, 3.5, 1e3, .nan, .inf, true, null, ~, '1', \"\\n\\u263a\", 18446744073709551615]",
            "a: &x {b: {c: [[], {}, [[1]]]}}\nd: *x\ne: {<<: *x, f: |\n  one\n  two\n}",
            "1: a\ntrue: b\n'': c\n'\"': d",
            "- 0x10\n- 0o7\n- 1_000\n- 2026-01-15T12:00:00Z\n- !!str 7\n- !x y",
            "a: 99999999999999999999999999",
            "text: 'a\tb \\ / \u{7f}'",
        ] {
            let tree = serde_saphyr::from_str::<Value>(yaml);
            let text = serde_saphyr::from_str::<YamlAsJson>(yaml);
            match (tree, text) {
                (Ok(tree), Ok(YamlAsJson(text))) => {
                    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), tree, "{yaml}: {text}");
                }
                (Err(of_tree), Err(of_text)) => assert_eq!(of_text.to_string(), of_tree.to_string(), "{yaml}"),
                (tree, text) => panic!("{yaml}: {tree:?}, {:?}", text.map(|text| text.0)),
            }
        }
    }
}
