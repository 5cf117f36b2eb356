//! What nodewhy reads of a kind, asked of its own types: a deserializer that answers whatever it is asked for and
//! writes down the question. So a field that is read tomorrow is mutated tomorrow.

use engine::objects::input::{Input, Object};
use serde::de::value::{Error, StrDeserializer};
use serde::de::{DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::collections::BTreeSet;

/// A text that every text field takes, times too.
pub const TEXT: &str = "2026-01-15T11:50:00Z";

/// An object with every field that is read; of lists and maps one entry.
pub fn skeleton(input: Input) -> Value {
    let asked = RefCell::default();
    loop {
        let mut object = Value::Null;
        match Object::read(input, Ask(&mut object, &asked)) {
            Ok(_) => return object,
            // Two names of one field: the first will do. And of an enum one that holds nothing: the real objects have
            // the others.
            Err(error)
                if ["duplicate field", "invalid type: unit variant"]
                    .iter()
                    .any(|known| error.to_string().starts_with(known)) =>
            {
                let Asked { aliases, last } = &mut *asked.borrow_mut();
                assert!(aliases.insert(last), "{error}");
            }
            Err(error) => panic!("{}: {error}", input.name()),
        }
    }
}

#[derive(Default)]
struct Asked {
    aliases: BTreeSet<&'static str>,
    last: &'static str,
}

struct Ask<'v>(&'v mut Value, &'v RefCell<Asked>);

macro_rules! answer {
    ($($method:ident: $visit:ident($value:expr)),* $(,)?) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            *self.0 = Value::from($value);
            visitor.$visit($value)
        })*
    };
}

impl<'de> Deserializer<'de> for Ask<'_> {
    type Error = Error;

    answer! {
        deserialize_any: visit_str(TEXT), deserialize_str: visit_str(TEXT), deserialize_string: visit_str(TEXT),
        deserialize_identifier: visit_str(TEXT), deserialize_bool: visit_bool(true),
        deserialize_i8: visit_i8(1), deserialize_i16: visit_i16(1), deserialize_i32: visit_i32(1), deserialize_i64: visit_i64(1),
        deserialize_u8: visit_u8(1), deserialize_u16: visit_u16(1), deserialize_u32: visit_u32(1), deserialize_u64: visit_u64(1),
        deserialize_f32: visit_f32(1.0), deserialize_f64: visit_f64(1.0),
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        *self.0 = Value::Array(vec![Value::Null]);
        visitor.visit_seq(One(self.0.get_mut(0), self.1))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.fields(&["key"], visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.fields(fields, visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        *self.0 = Value::Object(Map::new());
        visitor.visit_unit()
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let variant =
            variants.iter().find(|variant| !self.1.borrow().aliases.contains(*variant)).copied().unwrap_or_default();
        self.1.borrow_mut().last = variant;
        *self.0 = Value::from(variant);
        let variant: StrDeserializer<'_, Error> = variant.into_deserializer();
        visitor.visit_enum(variant)
    }

    serde::forward_to_deserialize_any! { char bytes byte_buf unit unit_struct tuple tuple_struct }
}

impl Ask<'_> {
    fn fields<'de, V: Visitor<'de>>(self, names: &'static [&'static str], visitor: V) -> Result<V::Value, Error> {
        *self.0 = Value::Object(Map::new());
        visitor.visit_map(Fields { object: self.0, names: names.iter(), asked: self.1 })
    }
}

struct One<'v>(Option<&'v mut Value>, &'v RefCell<Asked>);

impl<'de> SeqAccess<'de> for One<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        self.0.take().map(|element| seed.deserialize(Ask(element, self.1))).transpose()
    }
}

struct Fields<'v> {
    object: &'v mut Value,
    names: std::slice::Iter<'static, &'static str>,
    asked: &'v RefCell<Asked>,
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let Some(name) = self.names.find(|name| !self.asked.borrow().aliases.contains(*name)) else { return Ok(None) };
        self.asked.borrow_mut().last = name;
        let name: StrDeserializer<'_, Error> = name.into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Error> {
        let name = self.asked.borrow().last;
        seed.deserialize(Ask(&mut self.object[name], self.asked))
    }
}
