//! Finds the place of an object's field in a file, and a place within the text of that field.
//!
//! Exact for literal block scalars (`|`), in which each line of the value is a line of the file. In folded, quoted and
//! plain scalars the lines of the value are not those of the file: there it is the place where the scalar begins.

use crate::objects::sink::ObjectText;
use serde_json::Value;
use serde_saphyr::granit_parser::{self, Event, Marker, Parser, ScalarStyle};

/// The piece of a file that holds an object.
#[derive(Debug, Clone)]
pub struct Piece {
    pub file: String,
    text: String,
    line: usize,
    column: usize,
    items: Vec<usize>,
    /// Kustomize merges it into another object, so it may lack what that one has.
    pub is_patch: bool,
}

/// A place in a file, from 1; the column in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub line: usize,
    pub column: usize,
    /// False if this is only the start of the field's text.
    pub exact: bool,
}

impl From<ObjectText<'_>> for Piece {
    fn from(source: ObjectText<'_>) -> Self {
        let ObjectText { file, text, line, column, items } = source;
        // An item of a list begins with its dash.
        let text = if text.starts_with('-') { text.replacen('-', " ", 1) } else { text.to_owned() };
        Self { file: file.to_owned(), text, line, column, items: items.to_vec(), is_patch: false }
    }
}

impl Piece {
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The line on which it begins.
    pub const fn line(&self) -> usize {
        self.line
    }

    /// The place of a field, such as `spec.userData`, and of a line and column in its text. A field that is not written
    /// gets the place of the nearest written one around it.
    pub fn place(&self, field: Option<&str>, within: Option<(u32, u32)>) -> Place {
        let spot = self.find(&field.map(steps).unwrap_or_default());
        let Some((line, column)) = within else { return self.in_file(spot.name.unwrap_or(spot.nearest), true) };
        match spot.scalar {
            Some(Scalar { at, style: ScalarStyle::Literal, value }) => {
                match self.in_literal(at, &value, line, column) {
                    Some((line, column)) => Place { line: self.line + line - 1, column, exact: true },
                    None => self.in_file(at, false),
                }
            }
            Some(Scalar { at, .. }) => self.in_file(at, false),
            None => self.in_file(spot.name.unwrap_or(spot.nearest), false),
        }
    }

    /// The place of the field that this path leads to.
    pub fn place_of(&self, path: &[String]) -> Place {
        let spot = self.find(path);
        self.in_file(spot.name.unwrap_or(spot.nearest), true)
    }

    /// The file as findings name it.
    pub fn name(&self) -> &str {
        self.file.strip_prefix("./").unwrap_or(&self.file)
    }

    /// The object, if its text can be read without changes.
    pub fn value(&self) -> Option<Value> {
        let mut value: Value = serde_saphyr::from_str(&self.text).ok()?;
        for item in &self.items {
            value = value.get_mut("items")?.as_array_mut()?.get_mut(*item)?.take();
        }
        Some(value)
    }

    /// Whether the field is written.
    pub fn has(&self, field: &str) -> bool {
        self.find(&steps(field)).name.is_some()
    }

    fn find(&self, path: &[String]) -> Spot {
        let items: Vec<String> = self.items.iter().flat_map(|item| ["items".to_owned(), item.to_string()]).collect();
        let object = items.len();
        find(&self.text, &[&items, path].concat(), object)
    }

    fn in_file(&self, at: Marker, exact: bool) -> Place {
        let before = if at.line() == 1 { self.column } else { 1 };
        Place { line: self.line + at.line().saturating_sub(1), column: before + at.col(), exact }
    }

    /// The line of the piece that holds this line of the value, if it does: behind nothing but its indentation.
    ///
    /// The parser's mark is at the first line that is not empty.
    fn in_literal(&self, at: Marker, value: &str, line: u32, column: u32) -> Option<(usize, usize)> {
        let (line, column) = (usize::try_from(line).ok()?, usize::try_from(column).ok()?);
        let empty = value.bytes().take_while(|&b| b == b'\n').count();
        let number = (at.line() + line).checked_sub(empty + 1)?;
        let wanted = value.split('\n').nth(line.checked_sub(1)?)?.trim_end_matches('\r');
        let written = self.text.split('\n').nth(number.checked_sub(1)?)?.trim_end_matches('\r');
        if wanted.is_empty() {
            return written.trim().is_empty().then_some((number, column));
        }
        let indent = written.strip_suffix(wanted)?;
        indent.bytes().all(|b| b == b' ').then_some((number, indent.len() + column))
    }
}

struct Scalar {
    at: Marker,
    style: ScalarStyle,
    value: String,
}

/// The path to a field: `spec.capacity['example.com/gpu']` has three steps, and `volumes[0].name` too.
fn steps(field: &str) -> Vec<String> {
    let mut steps = Vec::new();
    let mut rest = field;
    while !rest.is_empty() {
        let (step, after) = match rest.strip_prefix('[') {
            Some(inner) => inner.split_once(']').unwrap_or((inner, "")),
            None => rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len())),
        };
        steps.push(step.trim_matches('\'').to_owned());
        rest = after.strip_prefix('.').unwrap_or(after);
    }
    steps
}

/// The written elements on the path to a field.
#[derive(Default)]
struct Spot {
    /// The key of the field, or the field itself if it is an item of a list.
    name: Option<Marker>,
    /// Its value, if it is written here as one scalar.
    scalar: Option<Scalar>,
    /// The last written element on the path.
    nearest: Marker,
}

/// A collection that is open.
struct Open {
    is_map: bool,
    /// Whether it is on the way.
    on_path: bool,
    /// A key was read, and its value comes next: whether that is the one on the way.
    key: Option<bool>,
    next: usize,
}

/// Follows `path` through the first document of `text`; the first `object` steps lead to the object itself.
fn find(text: &str, path: &[String], object: usize) -> Spot {
    let mut spot = Spot { nearest: Marker::new(0, 1, 0), ..Spot::default() };
    let mut open: Vec<Open> = Vec::new();
    for event in Parser::new_from_str_with_options(text, granit_parser::options! { emit_comments: false }) {
        let Ok((event, span)) = event else { return spot };
        let begins = match event {
            Event::MappingStart(..) => Some(true),
            Event::SequenceStart(..) => Some(false),
            Event::Scalar(..) | Event::Alias(_) => None,
            Event::MappingEnd | Event::SequenceEnd => {
                open.pop();
                continue;
            }
            Event::DocumentEnd => return spot,
            _ => continue,
        };
        let depth = open.len();
        let on_path = match open.last_mut() {
            None => true,
            Some(Open { is_map: true, on_path, key: key @ None, .. }) if begins.is_none() => {
                let named =
                    matches!(&event, Event::Scalar(name, ..) if path.get(depth - 1).is_some_and(|step| step == name));
                *key = Some(*on_path && named);
                if *on_path && named && depth > object {
                    spot.nearest = span.start;
                    spot.name = (depth == path.len()).then_some(span.start);
                }
                continue;
            }
            Some(Open { is_map: true, key, .. }) => {
                let taken = key.take();
                // A collection as a key: nothing of Kubernetes is below it.
                if taken.is_none() {
                    *key = Some(false);
                }
                taken == Some(true)
            }
            Some(Open { is_map: false, on_path, next, .. }) => {
                *next += 1;
                *on_path && path.get(depth - 1).is_some_and(|step| *step == (*next - 1).to_string())
            }
        };
        if on_path && depth == object {
            spot.nearest = span.start;
        }
        if on_path && depth == path.len() {
            spot.name = spot.name.or(Some(span.start));
            if let Event::Scalar(value, style, ..) = event {
                spot.scalar = Some(Scalar { at: span.start, style, value: value.into_owned() });
            }
            return spot;
        }
        if let Some(is_map) = begins {
            open.push(Open { is_map, on_path, key: None, next: 0 });
        }
    }
    spot
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(text: &str) -> Piece {
        ObjectText { file: "f", text, line: 10, column: 1, items: &[] }.into()
    }

    /// Line and column, and whether they are exact.
    #[track_caller]
    fn stands(text: &str, within: Option<(u32, u32)>, wanted: (usize, usize, bool)) {
        let Place { line, column, exact } = piece(text).place(Some("spec.userData"), within);
        assert_eq!((line, column, exact), wanted, "{text:?}");
    }

    #[test]
    fn each_line_of_a_literal_block_is_a_line_of_the_file() {
        let line_2 = Some((2, 3));
        stands("spec:\n  userData: |\n    one\n    two\n", line_2, (13, 7, true));
        stands("spec:\n  userData: |-\n      one\n      two", line_2, (13, 9, true));
        stands("spec:\n  userData: |+\n    one\n    two\n\n\n", line_2, (13, 7, true));
        // The value begins with blanks: only the indicator says where its indentation ends.
        stands("spec:\n  userData: |2\n      one\n      two\n", line_2, (13, 7, true));
        stands("spec:\n  userData: |2-\n      one\n    two\n", line_2, (13, 7, true));
        stands("spec:\n  userData: !!str &u |  # a comment\n    one\n    two\n", line_2, (13, 7, true));
        stands("spec:\n  userData:\n    |\n    one\n    two\n", line_2, (14, 7, true));
        stands("spec:\n  userData: |\n\n    two\n", line_2, (13, 7, true));
        stands("spec:\r\n  userData: |\r\n    one\r\n    two\r\n", line_2, (13, 7, true));
        stands("spec:\n  userData: |\n    zw\u{f6}lf\n    \u{fc}ber\n", line_2, (13, 7, true));
        stands("spec:\n  userData: |\n    one\n\n    three\n", Some((2, 1)), (13, 1, true));
    }

    #[test]
    fn elsewhere_the_place_is_where_the_text_begins_and_says_so() {
        stands("spec:\n  userData: \"one\\ntwo\"\n", Some((2, 1)), (11, 13, false));
        stands("spec:\n  userData: >\n    one\n\n    two\n", Some((2, 1)), (12, 5, false));
        stands("spec:\n  userData: 'one\n\n    two'\n", Some((2, 1)), (11, 13, false));
        stands("{\"spec\": {\"userData\": \"one\\ntwo\"}}", Some((2, 1)), (10, 23, false));
        stands("a: &u |\n  one\n  two\nspec:\n  userData: *u\n", Some((2, 1)), (14, 3, false));
        // A line that does not exist.
        stands("spec:\n  userData: |\n    one\n  role: r\n", Some((7, 1)), (12, 5, false));
    }

    #[test]
    fn a_field_stands_at_its_key_and_one_that_is_not_written_at_the_nearest_around_it() {
        stands("kind: X\nspec:\n  role: r\n  userData: u\n", None, (13, 3, true));
        stands("kind: X\nspec:\n  role: r\n", None, (11, 1, true));
        stands("\nkind: X\n", None, (11, 1, true));
        stands("metadata: {spec: {userData: x}}\nspec: {userData: y}\n", None, (11, 8, true));
        stands("[a, b]: {spec: {userData: x}}\nspec: {userData: y}\n", None, (11, 8, true));
        stands(": [", None, (10, 1, true));
    }

    #[test]
    fn a_name_with_dots_is_one_step_of_the_path() {
        let piece = piece("spec:\n  capacity:\n    a.b/c: 1\n  terms:\n  - id: x\n  - id: y\n");
        let line = |field| piece.place(Some(field), None).line;
        assert_eq!(line("spec.capacity['a.b/c']"), 12);
        assert_eq!(line("spec.capacity['a.b/d']"), 11, "it is not written");
        assert_eq!((line("spec.terms[1].id"), line("spec.terms.0.id")), (15, 14));
    }

    #[test]
    fn lists_in_lists_are_followed() {
        let text = "items:\n- kind: X\n- items:\n  - spec:\n      userData: |\n        one\n        two\n";
        let piece: Piece = ObjectText { file: "f", text, line: 1, column: 1, items: &[1, 0] }.into();
        assert_eq!(piece.place(Some("spec.userData"), Some((2, 1))), Place { line: 7, column: 9, exact: true });
        assert_eq!(piece.place(Some("spec.role"), None), Place { line: 4, column: 5, exact: true });
        assert_eq!(piece.place(Some("metadata.name"), None), Place { line: 4, column: 5, exact: true });
    }
}
