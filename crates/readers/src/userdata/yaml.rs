//! YAML as a tree whose every node knows its place.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use super::traced::Traced;
use crate::source_text::{self, Span};

/// Nobody nests a `NodeConfig` deeper, and each level costs stack.
const DEEPEST: usize = 16;

/// More than user data of 16 KiB can write down without aliases that repeat each other.
const MOST_NODES: usize = 20_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct YamlNode {
    pub value: YamlValue,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum YamlValue {
    Null,
    Boolean(bool),
    Number,
    Text(String),
    List(Vec<YamlNode>),
    Map(Vec<(String, YamlNode)>),
}

/// Why a text is no YAML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    pub message: String,
    pub span: Span,
}

impl YamlNode {
    /// The value below `key`; the last one where the key is repeated, as Go's YAML has it.
    pub fn get(&self, key: &str) -> Option<&YamlNode> {
        self.entries().iter().rev().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    pub fn entries(&self) -> &[(String, YamlNode)] {
        match &self.value {
            YamlValue::Map(entries) => entries,
            _ => &[],
        }
    }

    pub fn items(&self) -> &[YamlNode] {
        match &self.value {
            YamlValue::List(items) => items,
            _ => &[],
        }
    }

    pub fn text(&self) -> Option<&str> {
        match &self.value {
            YamlValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The text of a scalar with the places of its characters in `source`.
    pub fn traced(&self, source: &str) -> Option<Traced> {
        self.text().map(|text| Traced::decoded(text, self.span.of(source), self.span.start))
    }
}

/// Reads the first document of the `span` of `source`: Go's YAML looks at no other.
pub fn read(source: &str, span: Span) -> Result<YamlNode, Error> {
    let text = first_document(span.of(source));
    // Duplicate keys pass here as they pass sigs.k8s.io/yaml; `YamlNode::get` takes the last.
    let options = serde_saphyr::options! {
        duplicate_keys: serde_saphyr::options::DuplicateKeyPolicy::LastWins,
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_depth: DEEPEST,
            max_nodes: MOST_NODES,
            // What aliases repeat may be as long as the text.
            max_total_scalar_bytes: text.len().saturating_mul(2).saturating_add(1 << 16),
        },
    };
    let read = serde_saphyr::from_str_with_options::<Spanned<Raw>>(text, options);
    match read {
        Ok(root) => {
            let mut root = node(root, span.start);
            of_yaml_1_1(&mut root, source);
            Ok(root)
        }
        Err(error) => {
            let at = error.location().map_or(0, |location| offset(text, location));
            Err(Error { message: mistake(&error), span: Span::new(span.start + at, span.start + at) })
        }
    }
}

/// Go's YAML takes `yes` and `off` without quotes for booleans, as YAML 1.1 has it.
// sigs.k8s.io/yaml goyaml.v2/resolve.go
fn of_yaml_1_1(node: &mut YamlNode, source: &str) {
    match &mut node.value {
        YamlValue::Map(entries) => entries.iter_mut().for_each(|(_, node)| of_yaml_1_1(node, source)),
        YamlValue::List(items) => items.iter_mut().for_each(|node| of_yaml_1_1(node, source)),
        YamlValue::Text(text) if node.span.of(source).trim() == text => {
            let value = match text.as_str() {
                "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => true,
                "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => false,
                _ => return,
            };
            node.value = YamlValue::Boolean(value);
        }
        _ => {}
    }
}

/// The mistake in a text, without its place, and without advice to whoever calls the parser.
pub fn mistake(error: &serde_saphyr::Error) -> String {
    use serde_saphyr::Error as E;
    const TOO_DEEP: &str = "it nests too deeply, or its aliases repeat too much text";
    match error.without_snippet() {
        E::DuplicateMappingKey { key: Some(key), .. } => {
            format!("the key {} is written twice in one map", source_text::mask(key))
        }
        E::DuplicateMappingKey { .. } => "a key is written twice in one map".to_owned(),
        E::MultipleDocuments { .. } => "`...` above ends the document".to_owned(),
        E::Budget { .. }
        | E::AliasReplayCounterOverflow { .. }
        | E::AliasReplayLimitExceeded { .. }
        | E::AliasExpansionLimitExceeded { .. }
        | E::AliasReplayStackDepthExceeded { .. } => TOO_DEEP.to_owned(),
        _ => {
            let said = error.render_with_formatter(&serde_saphyr::UserMessageFormatter);
            let first = said.lines().next().unwrap_or_default();
            let first = first.split_once(" at line ").map_or(first, |(said, _)| said);
            // With a snippet the place comes first: `error: line 1 column 4: …`.
            let behind = first.strip_prefix("error: line ").and_then(|rest| rest.split_once(": "));
            let first = behind.map_or(first, |(_, said)| said);
            if first.contains("recursion limit") { TOO_DEEP.to_owned() } else { first.to_owned() }
        }
    }
}

fn offset(text: &str, location: serde_saphyr::Location) -> usize {
    if let Some(at) = location.span().byte_offset().and_then(|at| usize::try_from(at).ok()) {
        return at.min(text.len());
    }
    let line_number = usize::try_from(location.line()).unwrap_or(1).max(1);
    let column = usize::try_from(location.column()).unwrap_or(1).max(1);
    let line_start: usize = text.split_inclusive('\n').take(line_number - 1).map(str::len).sum();
    let line = text.get(line_start..).unwrap_or_default();
    line_start + line.char_indices().nth(column - 1).map_or(line.len(), |(at, _)| at)
}

/// `text` up to the marker that ends its first document.
fn first_document(text: &str) -> &str {
    let mut at = 0;
    let mut begun = false;
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end();
        let marker = |m: &str| bare == m || bare.strip_prefix(m).is_some_and(|rest| rest.starts_with([' ', '\t']));
        if begun && (marker("---") || marker("...")) {
            return text.get(..at).unwrap_or(text);
        }
        begun |= marker("---") || !(bare.is_empty() || bare.trim_start().starts_with('#') || bare.starts_with('%'));
        at += line.len();
    }
    text
}

/// The text behind the first document, from the first line that says something.
pub fn behind_first_document(source: &str, span: Span) -> Option<Span> {
    let text = span.of(source);
    let mut at = first_document(text).len();
    for line in text.get(at..)?.split_inclusive('\n') {
        let bare = line.trim();
        let says_nothing = bare.is_empty() || bare.starts_with('#') || matches!(bare, "---" | "...");
        if !says_nothing {
            return Some(Span::new(span.start + at, span.start + at + line.trim_end().len()));
        }
        at += line.len();
    }
    None
}

fn node(raw: Spanned<Raw>, start: usize) -> YamlNode {
    let place = raw.referenced.span();
    let at = place.byte_offset().and_then(|at| usize::try_from(at).ok()).unwrap_or_default() + start;
    let length = place.byte_len().and_then(|length| usize::try_from(length).ok()).unwrap_or_default();
    let mut span = Span::new(at, at + length);
    let value = match raw.value {
        Raw::Null => YamlValue::Null,
        Raw::Boolean(value) => YamlValue::Boolean(value),
        Raw::Number => YamlValue::Number,
        Raw::Text(text) => YamlValue::Text(text),
        Raw::List(items) => YamlValue::List(items.into_iter().map(|item| node(item, start)).collect()),
        Raw::Map(entries) => YamlValue::Map(entries.into_iter().map(|(key, item)| (key, node(item, start))).collect()),
    };
    // A collection spans what it holds.
    let last = match &value {
        YamlValue::List(items) => items.last().map(|item| item.span.end),
        YamlValue::Map(entries) => entries.last().map(|(_, item)| item.span.end),
        _ => None,
    };
    span.end = span.end.max(last.unwrap_or_default());
    YamlNode { value, span }
}

enum Raw {
    Null,
    Boolean(bool),
    Number,
    Text(String),
    List(Vec<Spanned<Raw>>),
    Map(Vec<(String, Spanned<Raw>)>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("YAML")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Boolean(value))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Raw, E> {
        Ok(Raw::Number)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Raw, E> {
        Ok(Raw::Number)
    }

    fn visit_i128<E>(self, _: i128) -> Result<Raw, E> {
        Ok(Raw::Number)
    }

    fn visit_u128<E>(self, _: u128) -> Result<Raw, E> {
        Ok(Raw::Number)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Raw, E> {
        Ok(Raw::Number)
    }

    fn visit_str<E>(self, text: &str) -> Result<Raw, E> {
        Ok(Raw::Text(text.to_owned()))
    }

    fn visit_bytes<E: serde::de::Error>(self, _: &[u8]) -> Result<Raw, E> {
        Err(E::custom("binary value"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key::<Raw>()? {
            let key = match key {
                Raw::Text(text) => text,
                // A key that is no text is none of ours, whatever it is called.
                Raw::Null | Raw::Boolean(_) | Raw::Number => String::new(),
                Raw::List(_) | Raw::Map(_) => return Err(A::Error::custom("a collection cannot be a key")),
            };
            entries.push((key, map.next_value()?));
        }
        Ok(Raw::Map(entries))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Raw, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Raw::List(items))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Result<YamlNode, Error> {
        read(text, Span::new(0, text.len()))
    }

    #[test]
    fn nodes_know_their_places() {
        let text = "zwölf: x\nspec: {flags: [\"--a\", b]}\n";
        let root = whole(text).unwrap();
        let flags = root.get("spec").unwrap().get("flags").unwrap();
        assert_eq!(flags.items()[1].span.of(text), "b");
        assert_eq!(flags.items()[0].traced(text).unwrap().span().of(text), "--a");
    }

    #[test]
    fn only_the_first_document_counts() {
        assert!(whole("# c\n---\na: b\n---\nc: [").unwrap().get("a").is_some());
    }

    #[test]
    fn booleans_are_those_of_yaml_1_1() {
        let root = whole("a: yes\nb: \"yes\"\nc: [off, 'off', offset]\n").unwrap();
        assert_eq!(root.get("a").unwrap().value, YamlValue::Boolean(true));
        assert_eq!(root.get("b").unwrap().text(), Some("yes"));
        let items = root.get("c").unwrap().items();
        assert_eq!(items[0].value, YamlValue::Boolean(false));
        assert_eq!((items[1].text(), items[2].text()), (Some("off"), Some("offset")));
    }

    #[test]
    fn an_error_has_a_place() {
        let error = whole("a: b\nc:\n\td: e\n").unwrap_err();
        assert_eq!(crate::source_text::position("a: b\nc:\n\td: e\n", error.span.start).line, 3);
        assert!(!error.message.contains("line"), "{}", error.message);
    }

    #[test]
    fn a_mistake_is_about_the_text_and_not_about_the_parser() {
        let told = |text: &str| mistake(&serde_saphyr::from_str::<serde_json::Value>(text).unwrap_err());
        assert_eq!(told("a: 1\na: 2\n"), "the key a is written twice in one map");
        assert_eq!(told("a: 1\n...\nb: 2\n"), "`...` above ends the document");
        assert_eq!(told(&"[".repeat(10_000)), "it nests too deeply, or its aliases repeat too much text");
        assert_eq!(told("a: *b\n"), "reference to unknown value");
    }

    #[test]
    fn deep_nesting_is_an_error_and_no_overflow() {
        assert!(whole(&"[".repeat(16 * 1024)).is_err());
        assert!(whole(&"{a: ".repeat(4 * 1024)).is_err());
        let _ = whole(&"- ".repeat(8 * 1024));
    }
}
