//! Receivers of objects that are read from text, and the place of each object in its file.

use super::ApiServerFacts;
use super::input::{Input, Object};
use super::odd::OddField;

/// The place of an object in a file.
#[derive(Debug, Clone, Copy)]
pub struct ObjectText<'t> {
    pub file: &'t str,
    /// The piece of the file that holds the object: a document, or an item of a list. Its lines are the file's lines.
    pub text: &'t str,
    /// The line on which the piece begins, from 1.
    pub line: usize,
    /// The column in which the piece begins, from 1.
    pub column: usize,
    /// The index in `items`, for each level of nested lists, if the piece holds more than the object.
    pub items: &'t [usize],
}

/// A receiver of the objects and files that are read.
pub trait Sink {
    /// Takes an object.
    fn object(&mut self, object: Object, text: ObjectText<'_>);

    /// Takes the fields of the next object whose type is not the expected one. False asks the reader to complain of
    /// them.
    fn odd_fields(&mut self, _object: &Object, _odd: &[OddField], _text: ObjectText<'_>) -> bool {
        false
    }

    /// Takes one sentence about something that nodewhy could not read. Every later answer may lack it.
    fn unread(&mut self, _what: &str) {}

    /// Whether unreadable text deserves a complaint. If not, a note is enough.
    fn may_hold_objects(&self, _text: &str) -> bool {
        true
    }

    /// Called when all requested objects of this kind have been passed on, even if there are none.
    fn was_read(&mut self, _input: Input) {}

    /// Takes the facts about the API server that the objects come from.
    fn of_api_server(&mut self, _facts: ApiServerFacts) {}

    /// Whether a file that begins like this is wanted whole, as something else than Kubernetes objects.
    fn wants_file(&self, _file: &str, _begins: &str) -> bool {
        false
    }

    /// Takes a file that was wanted whole.
    fn file(&mut self, _file: &str, _text: &str) {}

    /// Whether a document that is no Kubernetes object is worth a complaint.
    fn expects_only_objects(&self) -> bool {
        true
    }
}
