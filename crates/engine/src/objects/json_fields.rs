//! The fields of a JSON object one after the other, read no further than they are wanted.

use serde::Deserializer;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use std::ops::ControlFlow;

/// Hands over name and text of each field, in their order, until `take` has enough. What is no object has no fields;
/// what breaks off has those before the break.
pub fn fields(text: &str, take: impl FnMut(&str, &RawValue) -> ControlFlow<()>) {
    struct Fields<F>(F);
    impl<'de, F: FnMut(&str, &RawValue) -> ControlFlow<()>> Visitor<'de> for Fields<F> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
            while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
                if (self.0)(&name, value).is_break() {
                    break;
                }
            }
            Ok(())
        }
    }
    // Where it stops early the deserializer complains of the rest.
    let _ = serde_json::Deserializer::from_str(text).deserialize_map(Fields(take));
}
