//! YAML as the authenticator's parser (`go.yaml.in/yaml/v2`) takes it: YAML 1.1 scalars, `<<` merges, first document
//! only.
//!
//! The grammar is granit-parser's; what a scalar means, what may be a key and how merges apply is decided here. Known
//! to differ from upstream, all rare: `"x"# comment` without a blank, a quoted scalar that goes on at a smaller
//! indentation, text behind a closed top-level `]`, `!!binary`, and line breaks other than `\n` and `\r\n`.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use serde_saphyr::granit_parser::{self, Event, Parser, ScalarStyle, Tag};

use super::{Broken, mistake, tabs};
use crate::source_text::Span;

/// A node of a [`Document`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeId(usize);

#[derive(Debug)]
pub struct DocumentNode {
    pub span: Span,
    pub content: Content,
}

impl DocumentNode {
    /// Whether it is written as one token: a scalar or an alias.
    fn is_leaf(&self) -> bool {
        !matches!(self.content, Content::List(_) | Content::Map(_))
    }
}

#[derive(Debug)]
pub enum Content {
    Null,
    Text(String),
    /// A boolean or a number, in its own spelling: JSON will not put it into a string.
    Other(String),
    List(Vec<NodeId>),
    Map(Vec<Pair>),
    Alias(NodeId),
}

#[derive(Debug)]
pub struct Pair {
    key: NodeId,
    value: NodeId,
    merge: bool,
}

/// The first document of a text. Nodes live in one vector, so that an alias costs nothing until it is read.
#[derive(Debug)]
pub struct Document {
    nodes: Vec<DocumentNode>,
    pub root: Option<NodeId>,
    /// Where a second document starts; the authenticator never looks there.
    pub next: Option<usize>,
}

impl Document {
    /// The node itself, behind any alias.
    pub fn node(&self, id: NodeId) -> Option<&DocumentNode> {
        let node = self.nodes.get(id.0)?;
        // An alias always names an anchored node, never another alias.
        match node.content {
            Content::Alias(target) => self.nodes.get(target.0),
            _ => Some(node),
        }
    }

    /// Where the node is written: for an alias, the place of the alias.
    pub fn span(&self, id: NodeId) -> Span {
        self.nodes.get(id.0).map_or_else(Span::default, |node| node.span)
    }

    /// The fields of a mapping as Go's JSON decoder meets them: duplicates already settled, merges applied, sorted by
    /// name.
    ///
    /// `encoding/json` writes map keys sorted, so of `RoleARN` and `rolearn` the latter is decoded last and wins.
    pub fn fields<'d>(&'d self, pairs: &'d [Pair]) -> BTreeMap<&'d str, (NodeId, NodeId)> {
        let mut fields = BTreeMap::new();
        self.collect_fields(pairs, &mut fields);
        fields
    }

    // yaml.v2 decode.go mapping(): a merge writes into the same map at its own place, over what came before it.
    fn collect_fields<'d>(&'d self, pairs: &'d [Pair], fields: &mut BTreeMap<&'d str, (NodeId, NodeId)>) {
        for pair in pairs {
            match self.node(pair.key).map(|node| &node.content) {
                Some(Content::Text(_)) if pair.merge => self.merge(pair.value, fields),
                Some(Content::Text(name) | Content::Other(name)) => {
                    fields.insert(name, (pair.key, pair.value));
                }
                _ => {}
            }
        }
    }

    fn merge<'d>(&'d self, value: NodeId, fields: &mut BTreeMap<&'d str, (NodeId, NodeId)>) {
        match self.node(value).map(|node| &node.content) {
            Some(Content::Map(pairs)) => self.collect_fields(pairs, fields),
            // decode.go merge(): "Step backwards as earlier nodes take precedence".
            Some(Content::List(items)) => items.iter().rev().for_each(|&item| {
                if let Some(Content::Map(pairs)) = self.node(item).map(|node| &node.content) {
                    self.collect_fields(pairs, fields);
                }
            }),
            _ => {}
        }
    }

    /// Every scalar written at or below `id`; aliases are not followed.
    pub fn scalars(&self, id: NodeId) -> impl Iterator<Item = &str> {
        let within = self.span(id);
        self.nodes
            .get(id.0..)
            .unwrap_or_default()
            .iter()
            .take_while(move |node| node.span.start <= within.end)
            .filter_map(|node| match &node.content {
                Content::Text(text) | Content::Other(text) => Some(text.as_str()),
                _ => None,
            })
    }
}

/// Reads the first document of `text`.
pub fn parse(text: &str) -> Result<Document, Broken> {
    // yaml.v2 readerc.go yaml_parser_update_buffer
    if let Some((at, found)) = text.char_indices().find(|&(_, c)| !is_allowed(c)) {
        let message = format!("control characters are not allowed in YAML (U+{:04X})", u32::from(found));
        return Err(Broken { message, span: Span::new(at, at + found.len_utf8()) });
    }
    let mut builder =
        Builder { text, nodes: Vec::new(), weights: Vec::new(), anchors: HashMap::new(), open: Vec::new(), root: None };
    let options = granit_parser::options! { emit_comments: false };
    let mut parser = Parser::new_from_str_with_options(text, options);
    while let Some(event) = parser.next_event() {
        let (event, place) = match event {
            Ok(event) => event,
            // The authenticator has stopped reading at the end of the top node.
            Err(_) if builder.root.is_some() && builder.open.is_empty() => break,
            Err(error) => return Err(builder.syntax_error(&error)),
        };
        let span = place.byte_range().map_or_else(Span::default, |range| Span::new(range.start, range.end));
        if matches!(event, Event::DocumentEnd) {
            break;
        }
        builder.accept(event, span)?;
    }
    builder.check_aliasing()?;
    if let Some(top) = builder.nodes.first() {
        let leaves = builder.nodes.iter().filter(|node| node.is_leaf()).map(|node| node.span);
        tabs::check(text, leaves, top.span, !top.is_leaf() && !top.span.of(text).starts_with(['[', '{']))?;
    }
    let next = match parser.next_event() {
        Some(Ok((Event::DocumentStart(..), place))) => place.start.byte_offset(),
        _ => None,
    };
    Ok(Document { nodes: builder.nodes, root: builder.root, next })
}

fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

fn escapes_slash(quoted: &str) -> bool {
    let mut escaped = false;
    quoted.bytes().any(|b| {
        let found = escaped && b == b'/';
        escaped = !escaped && b == b'\\';
        found
    })
}

/// A collection whose end has not been seen.
struct Open {
    id: NodeId,
    is_map: bool,
    children: Vec<NodeId>,
}

/// What a node costs to decode once its aliases are followed.
#[derive(Clone, Copy, Default)]
struct Weight {
    nodes: u64,
    aliased: u64,
    depth: u32,
}

impl Weight {
    fn add(&mut self, child: Self) {
        self.nodes = self.nodes.saturating_add(child.nodes);
        self.aliased = self.aliased.saturating_add(child.aliased);
        self.depth = self.depth.max(child.depth.saturating_add(1));
    }
}

/// Deeper than any list of mappings; keeps the walk over merges off the end of the stack.
const DEPTH_LIMIT: u32 = 600;

struct Builder<'t> {
    text: &'t str,
    nodes: Vec<DocumentNode>,
    weights: Vec<Weight>,
    anchors: HashMap<usize, NodeId>,
    open: Vec<Open>,
    root: Option<NodeId>,
}

impl Builder<'_> {
    fn accept(&mut self, event: Event<'_>, span: Span) -> Result<(), Broken> {
        match event {
            Event::Scalar(value, style, anchor, tag) => {
                let end = span.start + span.of(self.text).trim_end().len();
                let span = Span::new(span.start, end.max(span.start));
                // yaml.v2 scannerc.go has no escape for the slash, which JSON has.
                if style == ScalarStyle::DoubleQuoted && escapes_slash(span.of(self.text)) {
                    return Err(Broken { message: "found unknown escape character `\\/`".to_owned(), span });
                }
                let content = scalar(value, style, tag.as_deref()).map_err(|message| Broken { message, span })?;
                self.add(span, content, anchor, Weight { nodes: 1, ..Weight::default() });
            }
            Event::Alias(anchor) => {
                let target = self.anchors.get(&anchor).copied();
                // yaml.v2 decode.go alias(): an anchor must be complete before it can be used.
                let Some(target) = target.filter(|target| self.open.iter().all(|open| open.id != *target)) else {
                    return Err(Broken { message: "this anchor's value contains itself".to_owned(), span });
                };
                let behind = self.weights.get(target.0).copied().unwrap_or_default();
                let nodes = behind.nodes.saturating_add(1);
                self.add(
                    span,
                    Content::Alias(target),
                    0,
                    Weight { nodes, aliased: behind.nodes, depth: behind.depth.saturating_add(1) },
                );
            }
            Event::SequenceStart(_, anchor, _) => self.begin(span, anchor, false),
            Event::MappingStart(_, anchor, _) => self.begin(span, anchor, true),
            Event::SequenceEnd | Event::MappingEnd => self.end(span)?,
            _ => {}
        }
        Ok(())
    }

    fn add(&mut self, span: Span, content: Content, anchor: usize, weight: Weight) -> NodeId {
        let id = NodeId(self.nodes.len());
        self.nodes.push(DocumentNode { span, content });
        self.weights.push(weight);
        if anchor != 0 {
            self.anchors.insert(anchor, id);
        }
        match self.open.last_mut() {
            Some(parent) => parent.children.push(id),
            None => self.root = Some(id),
        }
        id
    }

    fn begin(&mut self, span: Span, anchor: usize, is_map: bool) {
        let id = self.add(span, Content::Null, anchor, Weight::default());
        self.open.push(Open { id, is_map, children: Vec::new() });
    }

    fn end(&mut self, span: Span) -> Result<(), Broken> {
        let Some(Open { id, is_map, children }) = self.open.pop() else { return Ok(()) };
        let mut weight = Weight { nodes: 1, ..Weight::default() };
        for child in &children {
            weight.add(self.weights.get(child.0).copied().unwrap_or_default());
        }
        let start = self.nodes.get(id.0).map_or(0, |node| node.span.start);
        // A block collection "ends" where the next thing begins; what a reader calls its end is its last item's.
        let closes_itself = matches!(span.of(self.text), "]" | "}");
        let last = children.last().and_then(|child| self.nodes.get(child.0)).map_or(start, |child| child.span.end);
        let span = Span::new(start, if closes_itself { span.end } else { last.max(start) });
        if weight.depth > DEPTH_LIMIT {
            return Err(Broken { message: "nested too deeply".to_owned(), span });
        }
        let content = if is_map { Content::Map(self.pairs(&children)?) } else { Content::List(children) };
        if let (Some(node), Some(slot)) = (self.nodes.get_mut(id.0), self.weights.get_mut(id.0)) {
            *node = DocumentNode { span, content };
            *slot = weight;
        }
        Ok(())
    }

    fn pairs(&self, children: &[NodeId]) -> Result<Vec<Pair>, Broken> {
        children
            .chunks_exact(2)
            .filter_map(|pair| <[NodeId; 2]>::try_from(pair).ok())
            .map(|[key, value]| self.pair(key, value))
            .collect()
    }

    fn pair(&self, key: NodeId, value: NodeId) -> Result<Pair, Broken> {
        let span = self.nodes.get(key.0).map_or_else(Span::default, |node| node.span);
        let fail = |message: &str| Err(Broken { message: message.to_owned(), span });
        let plain = !span.of(self.text).starts_with(['"', '\'', '|', '>']);
        match self.content(key) {
            // sigs.k8s.io/yaml yaml.go convertToJSONableObject: "unsupported map key of type"
            Content::Null => fail("a key is missing before ':'"),
            // yaml.v2 decode.go mapping(): "invalid map key". What people mean is mostly a template.
            Content::List(_) | Content::Map(_) => match mistake::near(self.text, span.start) {
                Some(broken) => Err(broken),
                None => fail("a list or mapping cannot be a key"),
            },
            Content::Text(text) if text == "<<" && plain => {
                let is_map = |id: NodeId| matches!(self.content(id), Content::Map(_));
                match self.content(value) {
                    Content::Map(_) => {}
                    Content::List(items) if items.iter().all(|&item| is_map(item)) => {}
                    _ => return fail("map merge requires map or sequence of maps as the value"),
                }
                Ok(Pair { key, value, merge: true })
            }
            _ => Ok(Pair { key, value, merge: false }),
        }
    }

    fn content(&self, id: NodeId) -> &Content {
        match self.nodes.get(id.0).map(|node| &node.content) {
            Some(Content::Alias(target)) => self.nodes.get(target.0).map_or(&Content::Null, |node| &node.content),
            Some(content) => content,
            None => &Content::Null,
        }
    }

    // yaml.v2 decode.go unmarshal(), allowedAliasRatio(); theirs counts while it decodes, ours once at the end.
    fn check_aliasing(&self) -> Result<(), Broken> {
        let Some(Weight { nodes, aliased, .. }) = self.root.and_then(|root| self.weights.get(root.0)) else {
            return Ok(());
        };
        let past_low = nodes.saturating_sub(400_000).min(3_600_000);
        let allowed_percent = 99 - past_low * 89 / 3_600_000;
        if *aliased > 100
            && *nodes > 1000
            && u128::from(*aliased) * 100 > u128::from(*nodes) * u128::from(allowed_percent)
        {
            return Err(Broken {
                message: "document contains excessive aliasing".to_owned(),
                span: Span::new(0, self.text.len()),
            });
        }
        Ok(())
    }

    fn syntax_error(&self, error: &granit_parser::ScanError) -> Broken {
        let at = error.marker().byte_offset().unwrap_or(self.text.len()).min(self.text.len());
        mistake::near(self.text, at).unwrap_or_else(|| Broken { message: error.info(), span: Span::new(at, at) })
    }
}

/// What a scalar is to Go: yaml.v2 decode.go `scalar` and resolve.go `resolve`.
fn scalar(value: Cow<'_, str>, style: ScalarStyle, tag: Option<&Tag>) -> Result<Content, String> {
    let Some(tag) = tag else {
        let plain = style == ScalarStyle::Plain;
        return match if plain { resolve(&value) } else { Kind::Text } {
            // encoding/json UnsupportedValueError
            Kind::NotFinite => Err(format!("{value} has no place in JSON")),
            kind => Ok(kind.content(value)),
        };
    };
    let kind = resolve(&value);
    let fits = match tag.core_suffix() {
        Some("bool") => kind == Kind::Bool,
        Some("int") => kind == Kind::Int,
        Some("float") => matches!(kind, Kind::Int | Kind::Float),
        Some("null") => kind == Kind::Null,
        _ => return Ok(Content::Text(value.into_owned())),
    };
    if fits { Ok(kind.content(value)) } else { Err(format!("cannot decode `{value}` as a {}", tag.original())) }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Null,
    Bool,
    Int,
    Float,
    NotFinite,
}

impl Kind {
    fn content(self, value: Cow<'_, str>) -> Content {
        match self {
            Self::Null => Content::Null,
            Self::Text => Content::Text(value.into_owned()),
            Self::Bool | Self::Int | Self::Float | Self::NotFinite => Content::Other(value.into_owned()),
        }
    }
}

/// yaml.v2 resolve.go: the words of YAML 1.1, then numbers. Timestamps stay text for an untyped target.
fn resolve(plain: &str) -> Kind {
    match plain {
        "" | "~" | "null" | "Null" | "NULL" => Kind::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" | "n" | "N" | "no" | "No"
        | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Kind::Bool,
        ".nan" | ".NaN" | ".NAN" | ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" | "-.inf" | "-.Inf"
        | "-.INF" => Kind::NotFinite,
        _ if plain.starts_with('.') => {
            if is_float(plain) {
                Kind::Float
            } else {
                Kind::Text
            }
        }
        _ if plain.starts_with(|c: char| c.is_ascii_digit() || c == '+' || c == '-') => {
            let digits = plain.replace('_', "");
            if is_int(&digits) {
                Kind::Int
            } else if is_float(&digits) {
                Kind::Float
            } else {
                Kind::Text
            }
        }
        _ => Kind::Text,
    }
}

// Go strconv.ParseInt(s, 0, 64) or ParseUint(s, 0, 64)
fn is_int(text: &str) -> bool {
    let (signed, digits) = match text.strip_prefix(['+', '-']) {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = match (lower.get(..2), lower.get(2..)) {
        (Some("0x"), Some(rest)) => (16, rest),
        (Some("0o"), Some(rest)) => (8, rest),
        (Some("0b"), Some(rest)) => (2, rest),
        _ if lower.len() > 1 && lower.starts_with('0') => (8, lower.as_str()),
        _ => (10, lower.as_str()),
    };
    // Rust would take a second sign.
    let fits = |value: u64| !signed || value <= i64::MAX.unsigned_abs() + u64::from(text.starts_with('-'));
    digits.starts_with(|c: char| c.is_ascii_hexdigit()) && u64::from_str_radix(digits, radix).is_ok_and(fits)
}

// yaml.v2 resolve.go yamlStyleFloat; a value beyond a double stays text.
fn is_float(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'))
        && text.parse::<f64>().is_ok_and(f64::is_finite)
}
