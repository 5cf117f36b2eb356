//! The messages of Kubernetes that nodewhy reads as protobuf.

use nodewhy::kube_client::protobuf::schema::{ANSWERS, Message, Shape};
use std::collections::BTreeMap;

/// Everything that is read, by its name.
pub fn messages() -> BTreeMap<&'static str, &'static Message> {
    let mut messages = BTreeMap::new();
    for message in ANSWERS {
        below(message, &mut messages);
    }
    messages
}

/// All messages below this one, with itself.
fn below(message: &'static Message, known: &mut BTreeMap<&'static str, &'static Message>) {
    known.insert(message.name, message);
    for field in message.fields {
        if let Shape::Object(inner) | Shape::Only(inner) = field.shape {
            below(inner, known);
        }
    }
}
