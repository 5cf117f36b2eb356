//! One way in: what `kubectl get … -o yaml` or `-o json` printed, in files, directories or on standard input.
//!
//! Each document, and each item of a `List`, is read on its own: what cannot be read is reported with file, document and line,
//! and never hides its neighbours.

mod abreast;
mod cut;

use crate::input::{Input, Object, Reading, TypeMeta};
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

/// What a piece of text gave. Nothing but the text was looked at, so that pieces can be read side by side.
enum Piece {
    Object(Box<Object>),
    /// A kind that no rule reads.
    Ignored,
    /// Valid, and nothing of Kubernetes.
    NoObject(String),
    /// It cannot be used, and why; so many lines into the piece.
    Bad(usize, String),
    /// A list in the list.
    List(serde_json::Value),
}

impl Reader<'_> {
    fn complain_of_file(&mut self, message: &str) {
        self.summary.complaints.push(of_file(self.file, message.to_owned()));
    }

    fn complain(&mut self, line: usize, message: String) {
        self.summary.complaints.push(Complaint { file: self.file.to_owned(), document: self.document, item: self.item, line, message });
    }

    fn take(&mut self, piece: Piece, source: Source<'_>) {
        match piece {
            Piece::Object(object) => {
                self.summary.objects += 1;
                self.sink.object(*object, source);
            }
            Piece::Ignored => self.summary.ignored += 1,
            Piece::NoObject(_) if !self.sink.expects_only_objects() => self.summary.ignored += 1,
            Piece::NoObject(message) => self.complain(source.line, message),
            Piece::Bad(lines, message) => self.complain(source.line + lines, message),
            Piece::List(value) => self.yaml_list(value, source, &mut Vec::new()),
        }
    }

    fn json(&mut self, text: &str) {
        let mut lines = Lines::new(text);
        // Nearly always one large list: then it is looked through once, not once for itself and once for its items.
        if let Ok(JsonEnvelope { api_version, kind, items: Some(items) }) = serde_json::from_str::<JsonEnvelope>(text) {
            self.document += 1;
            return self.json_items(&items, &type_of_items(&api_version, &kind), &mut lines);
        }
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
            Ok(JsonEnvelope { api_version, kind, items: None }) => {
                let piece = read_json(text, &TypeMeta { api_version, kind });
                self.json_take(text, piece, lines);
            }
        }
    }

    fn json_items(&mut self, items: &[&RawValue], item_type: &TypeMeta, lines: &mut Lines) {
        let read = |item: &&RawValue| {
            let own = TypeMeta::of_json(item.get());
            (own.kind != "List").then(|| read_json(item.get(), if own.kind.is_empty() { item_type } else { &own }))
        };
        let mut number = 0;
        abreast::read(items, read, |item, piece| {
            number += 1;
            self.item = number;
            match piece {
                Some(piece) => self.json_take(item.get(), piece, lines),
                None => self.json_object(item.get(), lines),
            }
        });
        self.item = 0;
    }

    fn json_take(&mut self, text: &str, piece: Piece, lines: &mut Lines) {
        let line = lines.of(text);
        self.take(piece, Source { file: self.file, text, line, column: lines.column, items: &[] });
    }

    fn yaml(&mut self, text: &str) {
        for (line, document) in cut::documents(text) {
            let body = document.strip_prefix("---").map_or(document, |rest| rest.split_once('\n').map_or("", |(_, body)| body));
            let line = if body.len() < document.len() { line + 1 } else { line };
            if body.lines().all(|l| l.trim().is_empty() || l.trim_start().starts_with('#') || l == "...") {
                continue;
            }
            self.document += 1;
            match cut::list_items(body) {
                Some((type_, items)) => {
                    let read = |(_, item): &(usize, &str)| {
                        // Without the lines that are left out a message would name the wrong one.
                        match read_yaml(&cut::narrow(item), Some(&type_)) {
                            Piece::Bad(..) => read_yaml(&cut::whole(item), Some(&type_)),
                            piece => piece,
                        }
                    };
                    let mut number = 0;
                    abreast::read(&items, read, |(offset, text), piece| {
                        number += 1;
                        self.item = number;
                        self.take(piece, Source { file: self.file, text, line: line + offset, column: 1, items: &[] });
                    });
                    self.item = 0;
                }
                None => self.take(read_yaml(body, None), Source { file: self.file, text: body, line, column: 1, items: &[] }),
            }
        }
    }

    fn yaml_list(&mut self, mut value: serde_json::Value, source: Source<'_>, items: &mut Vec<usize>) {
        let own = TypeMeta::deserialize(&value).unwrap_or_default();
        let item_type = type_of_items(&own.api_version, &own.kind);
        let Some(list) = value.get_mut("items").and_then(serde_json::Value::as_array_mut) else { return };
        for (number, item) in std::mem::take(list).into_iter().enumerate() {
            items.push(number);
            match read_value(item, Some(&item_type)) {
                Piece::List(list) => self.yaml_list(list, source, items),
                piece => self.take(piece, Source { items, ..source }),
            }
            items.pop();
        }
    }
}

fn read_json(text: &str, type_: &TypeMeta) -> Piece {
    read(type_, |input| Object::read(input, &mut serde_json::Deserializer::from_str(text)).map_err(|e| e.to_string()))
}

fn read_yaml(text: &str, item_type: Option<&TypeMeta>) -> Piece {
    match serde_saphyr::from_str_with_options::<serde_json::Value>(text, yaml_options()) {
        Ok(value) => read_value(value, item_type),
        Err(error) => {
            let lines = error.location().map_or(0, |l| usize::try_from(l.line()).unwrap_or(1).saturating_sub(1));
            Piece::Bad(lines, format!("this is no YAML: {}", without_place(&error.to_string())))
        }
    }
}

fn read_value(value: serde_json::Value, item_type: Option<&TypeMeta>) -> Piece {
    if !value.is_object() {
        return Piece::NoObject(format!("{NO_OBJECT}: expected what kubectl get -o yaml or -o json prints"));
    }
    let own = TypeMeta::deserialize(&value).unwrap_or_default();
    if own.kind.ends_with("List") && value.get("items").is_some_and(serde_json::Value::is_array) {
        return Piece::List(value);
    }
    let type_ = if own.kind.is_empty() { item_type.cloned().unwrap_or_default() } else { own };
    read(&type_, |input| Object::from_value(input, value).map_err(|e| e.to_string()))
}

fn read(type_: &TypeMeta, read: impl FnOnce(Input) -> Result<Object, String>) -> Piece {
    if type_.kind.is_empty() {
        return Piece::NoObject(format!("{NO_OBJECT}: it has no kind"));
    }
    // A stranger's text, of any length. Kubernetes has no kind longer than a label, nor a version.
    let told = |name: &str| crate::text::mask(name).chars().take(63).collect::<String>();
    let kind = || told(&type_.kind);
    match type_.reading() {
        Reading::Ignored => Piece::Ignored,
        Reading::Outdated { served } => {
            Piece::Bad(0, format!("{} of {} is not judged; ask the cluster for {served}", kind(), told(&type_.api_version)))
        }
        Reading::As(input) => match read(input) {
            Ok(object) if object.meta().name.is_empty() && input != Input::AccessReviews => {
                Piece::Bad(0, format!("this {} has no metadata.name", kind()))
            }
            Ok(object) => Piece::Object(Box::new(object)),
            Err(error) => {
                let expected = input.command();
                Piece::Bad(0, format!("this {} cannot be read: {}; expected what {expected} prints", kind(), without_place(&error)))
            }
        },
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
    /// More tells nobody more: names of fields and variants may be a stranger's too.
    const LONGEST: usize = 300;
    let first = message.lines().next().unwrap_or_default();
    let said = first.split_once(" at line ").map_or(first, |(said, _)| said);
    let variant =
        said.strip_prefix("unknown variant `").map(|rest| rest.rsplit_once("`, expected ").map_or("one", |(_, expected)| expected));
    let said = match (variant, said.split_once("string \""), said.rsplit_once('"')) {
        (Some(expected), ..) => format!("unknown variant, expected {expected}"),
        (_, Some((before, _)), Some((_, after))) => format!("{before}string{after}"),
        _ => crate::text::mask(said),
    };
    said.chars().take(LONGEST).collect()
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
