//! Who takes in objects that are read from text, and where in a file each is written.

use super::ApiServerFacts;
use super::input::{Input, Object};

/// Where in a file an object is written.
#[derive(Debug, Clone, Copy)]
pub struct ObjectText<'t> {
    pub file: &'t str,
    /// The piece of the file that holds the object: a document, or an item of a list. Its lines are the file's lines.
    pub text: &'t str,
    /// The line on which the piece begins, from 1.
    pub line: usize,
    /// The column in which the piece begins, from 1.
    pub column: usize,
    /// Which of the `items`, of lists in lists, where the piece holds more than the object.
    pub items: &'t [usize],
}

/// Who takes in what is read.
pub trait Sink {
    /// Takes an object.
    fn object(&mut self, object: Object, text: ObjectText<'_>);

    /// All objects of this kind that were asked for were taken, also where there are none.
    fn was_read(&mut self, _input: Input) {}

    /// Takes what is known of the API server that the objects are of.
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

    /// Whether kinds of before Karpenter 0.32 are taken: what shows places in their text has to know their fields.
    fn takes_former_kinds(&self) -> bool {
        true
    }
}
