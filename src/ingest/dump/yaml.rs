//! YAML as kubectl prints it, cut apart by its lines: documents, and the items of a `List`.

use super::list::{ListHead, Notation, Stop};
use super::text::LongText;
use super::yaml_as_json::YamlAsJson;
use super::{Piece, Reader, read_json, repeated, without_place};
use engine::objects::input::TypeMeta;
use engine::objects::odd::OddField;
use readers::userdata::yaml_mistake;
use serde_saphyr::options::DuplicateKeyPolicy;

pub(super) struct Yaml;

impl Notation for Yaml {
    fn items<'t>(text: &'t str, whole: bool, items: &mut Vec<&'t str>) -> (usize, Stop) {
        let mut began = 0;
        for (at, line) in lines(text, whole) {
            let ends = separates(line) || !(begins_item(line) || goes_on(line));
            if at > began && (ends || begins_item(line)) {
                items.push(&text[began..at]);
                began = at;
            }
            if ends {
                return (at, Stop::End);
            }
        }
        if whole && began < text.len() {
            items.push(&text[began..]);
            began = text.len();
        }
        (began, if whole { Stop::End } else { Stop::More })
    }

    fn fields(text: &str, whole: bool, head: &mut ListHead) -> (usize, Stop) {
        let mut items = false;
        for (at, line) in lines(text, whole) {
            if separates(line) {
                return (at, Stop::End);
            }
            if items && begins_item(line) {
                return (at, Stop::Items);
            }
            match line.split_once(": ") {
                Some(("apiVersion", value)) => plain(value).clone_into(&mut head.type_.api_version),
                Some(("kind", value)) => plain(value).clone_into(&mut head.type_.kind),
                Some((key, value)) if ListHead::ANNOTATIONS.contains(&key.trim_start()) => {
                    head.annotation(key.trim_start(), plain(value));
                }
                _ => items = line.trim_end() == "items:" || (items && line.starts_with('#')),
            }
        }
        if whole { (text.len(), Stop::End) } else { (0, Stop::More) }
    }

    fn read(item: &str, type_of_items: &TypeMeta) -> Piece {
        // A document of its own, in the lines and columns that it has in the list.
        read(&item.replacen('-', " ", 1), type_of_items)
    }
}

/// A scalar without blanks and quotes around it.
fn plain(value: &str) -> &str {
    value.trim().trim_matches(['"', '\''])
}

/// The lines of a text, each with the place where it begins. One that may go on, as more text is to come, is none yet.
fn lines(text: &str, whole: bool) -> impl Iterator<Item = (usize, &str)> {
    let mut end = 0;
    text.split_inclusive('\n').filter(move |line| whole || line.ends_with('\n')).map(move |line| {
        end += line.len();
        (end - line.len(), line)
    })
}

/// Whether a line separates documents.
fn separates(line: &str) -> bool {
    line.strip_prefix("---")
        .is_some_and(|rest| matches!(rest.bytes().next(), None | Some(b' ' | b'\t' | b'\r' | b'\n')))
}

/// Whether an item of a list begins in this line: as kubectl prints it, in the first column.
fn begins_item(line: &str) -> bool {
    line.strip_prefix('-').is_some_and(|rest| matches!(rest.bytes().next(), None | Some(b' ' | b'\r' | b'\n')))
}

/// Whether a line belongs to the item before it.
fn goes_on(line: &str) -> bool {
    matches!(line.bytes().next(), None | Some(b' ' | b'\t' | b'\r' | b'\n' | b'#'))
}

/// The items of a list that is held from its beginning to its end. `None` where the document is no such list.
fn list(document: &str) -> Option<(ListHead, Vec<&str>)> {
    let (mut head, mut items) = (ListHead::default(), Vec::new());
    let mut rest = document;
    while let (bytes, Stop::Items) = Yaml::fields(rest, true, &mut head) {
        rest = &rest[bytes..];
        rest = &rest[Yaml::items(rest, true, &mut items).0..];
    }
    (head.type_.kind.ends_with("List") && !items.is_empty()).then_some((head, items))
}

/// Whether the first item says its kind itself, as kubectl prints it; `None` where it may still come.
fn first_says_its_kind(text: &str, whole: bool) -> Option<bool> {
    for (at, line) in lines(text, whole) {
        if at > 0 && !goes_on(line) {
            return Some(false);
        }
        let field = line.strip_prefix("- ").or_else(|| line.strip_prefix("  "));
        if field.is_some_and(|field| field.split(':').next() == Some("kind")) {
            return Some(true);
        }
    }
    whole.then_some(false)
}

/// The end of the first document of a text. `None` if the document may continue after the text.
fn end_of_document(text: &str, whole: bool) -> Option<usize> {
    lines(text, whole).find(|(_, line)| separates(line)).map(|(at, _)| at).or(whole.then_some(text.len()))
}

/// A dump may be large and deep; anchors that blow up may not. What a text says once is no longer than the text, so all
/// that its aliases repeat may be as long again, and a little more where it is short.
fn options(text: &str, policy: DuplicateKeyPolicy) -> serde_saphyr::Options {
    const LITTLE: usize = 1 << 20;
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_reader_input_bytes: None,
            max_documents: usize::MAX,
            max_nodes: usize::MAX,
            max_events: usize::MAX,
            max_total_scalar_bytes: text.len().saturating_mul(2).saturating_add(LITTLE),
            // serde_json reads no deeper.
            max_depth: 127,
            max_aliases: 10_000,
            max_anchors: 10_000,
        },
        with_snippet: false,
        duplicate_keys: policy,
        // A hash such as 73e537175, written without quotes, is no reason to lose the object.
        non_finite_float_policy: serde_saphyr::NonFiniteFloatPolicy::AsString,
    }
}

fn read(text: &str, type_of_items: &TypeMeta) -> Piece {
    match serde_saphyr::from_str_with_options::<YamlAsJson>(text, options(text, DuplicateKeyPolicy::Error)) {
        Ok(YamlAsJson(json)) => read_json(&json, type_of_items),
        Err(serde_saphyr::Error::DuplicateMappingKey { .. }) => read_repeated(text, type_of_items),
        Err(error) => no_yaml(text, &error),
    }
}

/// Reads text in which a map has a key twice, as kubectl does: the last one counts.
fn read_repeated(text: &str, type_of_items: &TypeMeta) -> Piece {
    let options = options(text, DuplicateKeyPolicy::LastWins);
    let value = match serde_saphyr::from_str_with_options::<serde_json::Value>(text, options) {
        Ok(value) => value,
        Err(error) => return no_yaml(text, &error),
    };
    match read_json(&value.to_string(), type_of_items) {
        Piece::Object(object, mut odd) => {
            odd.extend(repeated::keys(text).into_iter().map(|(path, line)| OddField::twice(path, line)));
            Piece::Object(object, odd)
        }
        piece => piece,
    }
}

/// Why text is no YAML, at the line that has to change.
fn no_yaml(text: &str, error: &serde_saphyr::Error) -> Piece {
    let ends_document = |line: &str| line.trim_end() == "...";
    if let serde_saphyr::Error::MultipleDocuments { .. } = error
        && let Some(at) = text.lines().position(ends_document)
    {
        let message = "this line `...` ends the document, so the text below it belongs to no object; remove the line";
        return Piece::Bad(at, message.to_owned());
    }
    let line = error.location().map_or(0, |l| usize::try_from(l.line()).unwrap_or(1).saturating_sub(1));
    Piece::Bad(line, format!("this is no YAML: {}", without_place(&yaml_mistake(error))))
}

impl Reader<'_> {
    pub(super) fn yaml(&mut self, text: &mut LongText<'_>) {
        while !text.rest().is_empty() {
            self.yaml_document(text);
            // The line that separates it from the next one.
            text.pass_line();
        }
    }

    fn yaml_document(&mut self, text: &mut LongText<'_>) {
        loop {
            let (rest, whole) = (text.rest(), text.is_whole());
            let mut head = ListHead::default();
            let end = match Yaml::fields(rest, whole, &mut head) {
                (first, Stop::Items) => match first_says_its_kind(&rest[first..], whole) {
                    Some(true) => {
                        text.pass(first);
                        return self.yaml_list(text, head);
                    }
                    Some(false) => end_of_document(rest, whole),
                    None => None,
                },
                (end, Stop::End) => Some(end),
                _ => None,
            };
            if let Some(end) = end {
                self.yaml_held(&rest[..end], text);
                return text.pass(end);
            }
            text.more();
        }
    }

    /// Reads a list from its first item.
    fn yaml_list(&mut self, text: &mut LongText<'_>, head: ListHead) {
        self.document += 1;
        let line = text.line();
        let type_ = self.list::<Yaml>(text, head, true);
        if type_.kind.is_empty() && self.sink.expects_only_objects() {
            self.complain(
                line,
                "this list does not say its kind, which kubectl prints behind its items: the file may be cut off"
                    .to_owned(),
            );
        }
    }

    /// Reads a document that is held from its beginning to its end.
    fn yaml_held(&mut self, document: &str, text: &LongText<'_>) {
        if document.lines().all(|l| l.trim().is_empty() || l.trim_start().starts_with('#') || l == "...") {
            return;
        }
        self.document += 1;
        match list(document) {
            Some((head, items)) => self.held_list::<Yaml>(&items, text.lines(), head),
            None => self.take(read(document, &TypeMeta::default()), text.source(self.file, document)),
        }
    }
}
