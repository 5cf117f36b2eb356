//! One way in: what `kubectl get … -o yaml` or `-o json` printed, in files, directories or on standard input.
//!
//! Each document, and each item of a `List`, is read on its own: what cannot be read is reported with file, document and line,
//! and never hides its neighbours.

use crate::input::{Object, Reading, TypeMeta};
use crate::world::World;
use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Something in a dump that could not be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    pub file: String,
    /// The document in the file, from 1.
    pub document: usize,
    /// The item in a document that is a list, from 1; 0 for the document itself.
    pub item: usize,
    /// The line in the file, from 1.
    pub line: usize,
    pub message: String,
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, document, item, line, message } = self;
        match (document, item) {
            (0, _) => write!(f, "{file}: {message}"),
            (document, 0) => write!(f, "{file}:{line}: document {document}: {message}"),
            (document, item) => write!(f, "{file}:{line}: document {document}, item {item}: {message}"),
        }
    }
}

/// What reading a dump gave beside the world.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Summary {
    /// Objects that rules read.
    pub objects: usize,
    /// Objects of kinds that no rule reads.
    pub ignored: usize,
    pub complaints: Vec<Complaint>,
}

/// Where in a file an object is written.
#[derive(Debug, Clone, Copy)]
pub struct Source<'t> {
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
    fn object(&mut self, object: Object, source: Source<'_>);

    /// Takes a whole file as something else than Kubernetes objects; false leaves it to be read as such.
    fn file(&mut self, _file: &str, _text: &str) -> bool {
        false
    }

    /// Whether a document that is no Kubernetes object is worth a complaint.
    fn expects_only_objects(&self) -> bool {
        true
    }
}

/// Objects of a dump are states, not changes: nothing was seen to happen.
const BEFORE_EVERYTHING: DateTime<Utc> = DateTime::UNIX_EPOCH;

impl Sink for World {
    fn object(&mut self, object: Object, _source: Source<'_>) {
        self.apply(object, BEFORE_EVERYTHING);
    }
}

/// Reads files, directories (every .yaml, .yml and .json below them) and `-`.
pub fn load(paths: &[PathBuf], sink: &mut dyn Sink) -> Summary {
    let mut summary = Summary::default();
    for path in paths {
        load_path(path, sink, &mut summary);
    }
    summary
}

fn load_path(path: &Path, sink: &mut dyn Sink, summary: &mut Summary) {
    let name = path.display().to_string();
    if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        match std::io::stdin().lock().read_to_end(&mut bytes) {
            Ok(_) => load_bytes("standard input", &bytes, sink, summary),
            Err(error) => summary.complaints.push(of_file("standard input", format!("cannot be read: {error}"))),
        }
        return;
    }
    if path.is_dir() {
        match files_of(path) {
            Ok(files) if files.is_empty() => {
                summary.complaints.push(of_file(&name, "no .yaml, .yml or .json file in this directory".to_owned()));
            }
            Ok(files) => files.iter().for_each(|file| load_path(file, sink, summary)),
            Err(error) => summary.complaints.push(of_file(&name, format!("cannot be listed: {error}"))),
        }
        return;
    }
    match std::fs::read(path) {
        Ok(bytes) => load_bytes(&name, &bytes, sink, summary),
        Err(error) => summary.complaints.push(of_file(&name, format!("cannot be read: {error}"))),
    }
}

/// Files in a stable order, subdirectories included.
fn files_of(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut entries = std::fs::read_dir(directory)?.map(|e| e.map(|e| e.path())).collect::<Result<Vec<_>, _>>()?;
    entries.sort();
    Ok(entries
        .into_iter()
        .filter(|path| {
            let extension = path.extension().and_then(|e| e.to_str());
            path.is_dir() || matches!(extension, Some("yaml" | "yml" | "json"))
        })
        .collect())
}

fn of_file(file: &str, message: String) -> Complaint {
    Complaint { file: file.to_owned(), document: 0, item: 0, line: 0, message }
}

/// Reads one file's text.
pub fn load_bytes(file: &str, bytes: &[u8], sink: &mut dyn Sink, summary: &mut Summary) {
    let mut reader = Reader { file, document: 0, item: 0, sink, summary };
    if bytes.starts_with(&[0x1f, 0x8b]) {
        return reader.complain_of_file("this is gzip; unpack it first, for example with zcat FILE | nodewhy diagnose -f -");
    }
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return reader
            .complain_of_file("this is UTF-16, as PowerShell's > writes it; save it as UTF-8, for example with | Out-File -Encoding utf8");
    }
    if bytes.contains(&0) {
        return reader.complain_of_file("this is no text; expected what kubectl get -o yaml or -o json prints");
    }
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start_matches('\u{feff}');
    if text.trim().is_empty() {
        return reader.complain_of_file("the file is empty; expected what kubectl get -o yaml or -o json prints");
    }
    if reader.sink.file(file, text) {
        return;
    }
    if text.trim_start().starts_with(['{', '[']) {
        reader.json(text);
    } else {
        reader.yaml(text);
    }
    if reader.document == 0 {
        reader.complain_of_file("the file is empty but for comments; expected what kubectl get -o yaml or -o json prints");
    }
}

struct Reader<'r> {
    file: &'r str,
    document: usize,
    item: usize,
    sink: &'r mut dyn Sink,
    summary: &'r mut Summary,
}

/// A JSON document, its items not yet read.
#[derive(Deserialize)]
struct JsonEnvelope<'t> {
    #[serde(rename = "apiVersion", default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(borrow)]
    items: Option<Vec<&'t RawValue>>,
}

impl Reader<'_> {
    fn complain_of_file(&mut self, message: &str) {
        self.summary.complaints.push(of_file(self.file, message.to_owned()));
    }

    fn complain(&mut self, line: usize, message: String) {
        self.summary.complaints.push(Complaint { file: self.file.to_owned(), document: self.document, item: self.item, line, message });
    }

    fn json(&mut self, text: &str) {
        let mut lines = Lines::new(text);
        let mut from = 0;
        while let Some(rest) = text.get(from..) {
            let mut documents = serde_json::Deserializer::from_str(rest).into_iter::<&RawValue>();
            let Some(broken) = documents.by_ref().find_map(|document| {
                self.document += 1;
                match document {
                    Ok(raw) => self.json_document(raw.get(), &mut lines),
                    Err(error) => return Some(error),
                }
                None
            }) else {
                return;
            };
            // Broken here; kubectl begins each object on a line of its own.
            let line = lines.at(from) + broken.line().saturating_sub(1);
            self.complain(line, format!("this is no JSON: {}", without_place(&broken.to_string())));
            let at = rest.split_inclusive('\n').take(broken.line().saturating_sub(1)).map(str::len).sum::<usize>();
            let Some(next) = rest.get(at..).and_then(|after| after.find("\n{")) else { return };
            from += at + next + 1;
        }
    }

    fn json_document(&mut self, text: &str, lines: &mut Lines) {
        let line = lines.of(text);
        if !text.starts_with('[') {
            return self.json_object(text, lines);
        }
        match serde_json::from_str::<Vec<&RawValue>>(text) {
            Ok(items) => self.json_items(&items, &TypeMeta::default(), lines),
            Err(error) => self.complain(line, format!("this is no JSON: {}", without_place(&error.to_string()))),
        }
    }

    fn json_object(&mut self, text: &str, lines: &mut Lines) {
        let line = lines.of(text);
        match serde_json::from_str::<JsonEnvelope>(text) {
            Err(error) => self.complain(line, format!("{NO_OBJECT}: {}", without_place(&error.to_string()))),
            Ok(JsonEnvelope { api_version, kind, items: Some(items) }) => {
                self.json_items(&items, &type_of_items(&api_version, &kind), lines);
            }
            Ok(JsonEnvelope { api_version, kind, items: None }) => self.json_take(text, &TypeMeta { api_version, kind }, lines),
        }
    }

    fn json_items(&mut self, items: &[&RawValue], item_type: &TypeMeta, lines: &mut Lines) {
        for (number, item) in items.iter().enumerate() {
            self.item = number + 1;
            let own = serde_json::from_str::<TypeMeta>(item.get()).unwrap_or_default();
            if own.kind == "List" {
                self.json_object(item.get(), lines);
                continue;
            }
            self.json_take(item.get(), if own.kind.is_empty() { item_type } else { &own }, lines);
        }
        self.item = 0;
    }

    fn json_take(&mut self, text: &str, type_: &TypeMeta, lines: &mut Lines) {
        let line = lines.of(text);
        let source = Source { file: self.file, text, line, column: lines.column, items: &[] };
        self.take(type_, source, |input| Object::read(input, &mut serde_json::Deserializer::from_str(text)).map_err(|e| e.to_string()));
    }

    fn yaml(&mut self, text: &str) {
        for (line, document) in split(text, |l| l == "---" || l.starts_with("--- ") || l.starts_with("---\t")) {
            let body = document.strip_prefix("---").map_or(document, |rest| rest.split_once('\n').map_or("", |(_, body)| body));
            let line = if body.len() < document.len() { line + 1 } else { line };
            if body.lines().all(|l| l.trim().is_empty() || l.trim_start().starts_with('#') || l == "...") {
                continue;
            }
            self.document += 1;
            match list_items(body) {
                Some((type_, items)) => {
                    for (number, (offset, item)) in items.into_iter().enumerate() {
                        self.item = number + 1;
                        self.yaml_object(&item, line + offset, Some(&type_));
                    }
                    self.item = 0;
                }
                None => self.yaml_object(body, line, None),
            }
        }
    }

    fn yaml_object(&mut self, text: &str, line: usize, item_type: Option<&TypeMeta>) {
        let value = match serde_saphyr::from_str_with_options::<serde_json::Value>(text, yaml_options()) {
            Ok(value) => value,
            Err(error) => {
                let at = error.location().map_or(line, |l| line + usize::try_from(l.line()).unwrap_or(1).saturating_sub(1));
                return self.complain(at, format!("this is no YAML: {}", without_place(&error.to_string())));
            }
        };
        if !value.is_object() && !self.sink.expects_only_objects() {
            self.summary.ignored += 1;
            return;
        }
        if !value.is_object() {
            return self.complain(line, format!("{NO_OBJECT}: expected what kubectl get -o yaml or -o json prints"));
        }
        let source = Source { file: self.file, text, line, column: 1, items: &[] };
        self.yaml_value(value, item_type, source, &mut Vec::new());
    }

    fn yaml_value(&mut self, mut value: serde_json::Value, item_type: Option<&TypeMeta>, source: Source<'_>, items: &mut Vec<usize>) {
        let own = TypeMeta::deserialize(&value).unwrap_or_default();
        if own.kind.ends_with("List")
            && let Some(list) = value.get_mut("items").and_then(serde_json::Value::as_array_mut)
        {
            let item_type = type_of_items(&own.api_version, &own.kind);
            for (number, item) in std::mem::take(list).into_iter().enumerate() {
                items.push(number);
                self.yaml_value(item, Some(&item_type), source, items);
                items.pop();
            }
            return;
        }
        let type_ = if own.kind.is_empty() { item_type.cloned().unwrap_or_default() } else { own };
        let source = Source { items, ..source };
        self.take(&type_, source, |input| Object::from_value(input, value).map_err(|e| e.to_string()));
    }

    fn take(&mut self, type_: &TypeMeta, source: Source<'_>, read: impl FnOnce(crate::input::Input) -> Result<Object, String>) {
        let (kind, line) = (&type_.kind, source.line);
        if kind.is_empty() && !self.sink.expects_only_objects() {
            self.summary.ignored += 1;
            return;
        }
        if kind.is_empty() {
            return self.complain(line, format!("{NO_OBJECT}: it has no kind"));
        }
        match type_.reading() {
            Reading::Ignored => self.summary.ignored += 1,
            Reading::Outdated { served } => {
                self.complain(line, format!("{kind} of {} is not judged; ask the cluster for {served}", type_.api_version));
            }
            Reading::As(input) => match read(input) {
                Ok(object) if object.meta().name.is_empty() => self.complain(line, format!("this {kind} has no metadata.name")),
                Ok(object) => {
                    self.summary.objects += 1;
                    self.sink.object(object, source);
                }
                Err(error) => {
                    let expected = input.command();
                    self.complain(line, format!("this {kind} cannot be read: {}; expected what {expected} prints", without_place(&error)));
                }
            },
        }
    }
}

/// `NodeList` holds Nodes that do not say so themselves.
fn type_of_items(api_version: &str, kind: &str) -> TypeMeta {
    TypeMeta { api_version: api_version.to_owned(), kind: kind.strip_suffix("List").unwrap_or(kind).to_owned() }
}

/// A dump may be large and deep; anchors that blow up may not.
fn yaml_options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_reader_input_bytes: None,
            max_documents: usize::MAX,
            max_nodes: usize::MAX,
            max_events: usize::MAX,
            max_total_scalar_bytes: usize::MAX,
            max_depth: 200,
            max_aliases: 10_000,
            max_anchors: 10_000,
        },
        with_snippet: false,
    }
}

const NO_OBJECT: &str = "this is no Kubernetes object";

/// A parser's message without the line and column, which it counts from the start of its own piece of the file, and without the
/// value that it stumbled over, which may be a secret.
fn without_place(message: &str) -> String {
    let first = message.lines().next().unwrap_or_default();
    let said = first.split_once(" at line ").map_or(first, |(said, _)| said);
    match (said.split_once("string \""), said.rsplit_once('"')) {
        (Some((before, _)), Some((_, after))) => format!("{before}string{after}"),
        _ => crate::text::mask(said),
    }
}

/// Line numbers of places in a text that are asked for from front to back, so that the text is read once.
struct Lines<'t> {
    text: &'t str,
    offset: usize,
    line: usize,
    /// The column of the last place that was asked for.
    column: usize,
}

impl<'t> Lines<'t> {
    const fn new(text: &'t str) -> Self {
        Self { text, offset: 0, line: 1, column: 1 }
    }

    fn at(&mut self, offset: usize) -> usize {
        if let Some(passed) = self.text.get(self.offset..offset) {
            self.line += passed.bytes().filter(|&b| b == b'\n').count();
            self.column = match passed.rsplit_once('\n') {
                Some((_, last)) => last.chars().count() + 1,
                None => self.column + passed.chars().count(),
            };
            self.offset = offset;
        }
        self.line
    }

    /// The line on which a part of the text begins.
    fn of(&mut self, part: &str) -> usize {
        self.at(part.as_ptr().addr().saturating_sub(self.text.as_ptr().addr()))
    }
}

/// Cuts a text before each line that `starts` a part; each part with the number of its first line, from 1.
fn split(text: &str, starts: impl Fn(&str) -> bool) -> Vec<(usize, &str)> {
    let mut parts = Vec::new();
    let (mut start, mut start_line, mut at) = (0, 1, 0);
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if at > start && starts(line.trim_end_matches(['\n', '\r'])) {
            parts.push((start_line, &text[start..at]));
            (start, start_line) = (at, number + 1);
        }
        at += line.len();
    }
    parts.push((start_line, &text[start..]));
    parts
}

/// The items of a `List` as kubectl prints it, cut apart without reading them: `items:` and `- ` stand in the first column.
///
/// Each with the number of lines before it. `None` where the document is no such list.
fn list_items(document: &str) -> Option<(TypeMeta, Vec<(usize, String)>)> {
    let mut type_ = TypeMeta::default();
    let mut in_items = false;
    let mut items: Vec<(usize, String)> = Vec::new();
    for (number, line) in document.lines().enumerate() {
        let first = line.chars().next();
        if in_items && (line.starts_with("- ") || line == "-") {
            items.push((number, format!("  {}\n", line.get(2..).unwrap_or_default())));
        } else if in_items && matches!(first, Some(' ' | '\t') | None) {
            let (_, item) = items.last_mut()?;
            item.push_str(line);
            item.push('\n');
        } else if first == Some('#') {
        } else {
            in_items = line.trim_end() == "items:";
            match line.split_once(": ") {
                Some(("apiVersion", value)) => value.trim().trim_matches(['"', '\'']).clone_into(&mut type_.api_version),
                Some(("kind", value)) => value.trim().trim_matches(['"', '\'']).clone_into(&mut type_.kind),
                _ => {}
            }
        }
    }
    (type_.kind.ends_with("List") && !items.is_empty()).then(|| (type_of_items(&type_.api_version, &type_.kind), items))
}
