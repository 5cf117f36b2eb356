//! One way in: what `kubectl get … -o yaml` or `-o json` printed, in files, directories or on standard input.
//!
//! Each document, and each item of a `List`, is read on its own: what cannot be read is reported with file, document
//! and line, and never hides its neighbours. A list is read block by block, so it may be larger than the memory.

mod json;
mod list;
mod parallel;
mod repeated;
#[cfg(test)]
mod tests;
mod text;
mod yaml;
mod yaml_as_json;

use super::regular;
use chrono::{DateTime, Utc};
use engine::lint::place;
use engine::objects::PodStatus;
use engine::objects::input::{Input, Object, Reading, TypeMeta};
use engine::objects::odd::{self, OddField};
use engine::objects::sink::{ObjectText, Sink};
use serde::Deserialize;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use text::LongText;

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

/// A text of the file, which may be of any length and may hold secrets, for a complaint.
fn shortened(text: &str, most: usize) -> String {
    readers::source_text::mask(text).chars().take(most).collect()
}

/// Facts about a dump besides the state.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Summary {
    /// Objects that rules read.
    pub objects: usize,
    /// Objects of kinds that no rule reads.
    pub ignored: usize,
    pub complaints: Vec<Complaint>,
    /// Texts that nodewhy cannot read and need not read, because they name no kind that it judges.
    pub skipped: Vec<Complaint>,
    /// Files that were found, readable or not.
    files: usize,
    /// Files that may have been cut off: they are valid to their end, but do not end like the output of kubectl.
    pub suspicions: Vec<Complaint>,
    /// When `nodewhy collect` created it. If there are several, the latest time.
    pub collected: Option<DateTime<Utc>>,
    /// When the newest of its files was written. The present for standard input.
    pub written: Option<DateTime<Utc>>,
}

/// Reads files, directories (every .yaml, .yml and .json below them) and `-`.
pub fn load(paths: &[PathBuf], sink: &mut dyn Sink) -> Summary {
    let mut summary = Summary::default();
    for path in paths {
        let before = summary.files;
        load_path(path, sink, &mut summary);
        if path.is_dir() && summary.files == before {
            let name = path.display().to_string();
            summary.complaints.push(of_file(&name, "no .yaml, .yml or .json file in this directory".to_owned()));
        }
    }
    summary
}

fn load_path(path: &Path, sink: &mut dyn Sink, summary: &mut Summary) {
    let name = path.display().to_string();
    if path.as_os_str() == "-" {
        summary.written = Some(Utc::now());
        return load_from("standard input", std::io::stdin().lock(), sink, summary);
    }
    if path.is_dir() {
        match files_of(path) {
            Ok((files, links)) => {
                if links > 0 {
                    summary.suspicions.push(of_file(&name, regular::not_followed(links)));
                }
                for file in &files {
                    load_path(file, sink, summary);
                }
            }
            Err(error) => summary.complaints.push(of_file(&name, format!("cannot be listed: {error}"))),
        }
        return;
    }
    summary.files += 1;
    match regular::open(path) {
        Ok(file) => {
            let written = file.metadata().and_then(|metadata| metadata.modified()).ok().map(DateTime::from);
            summary.written = summary.written.max(written);
            load_from(&name, file, sink, summary);
        }
        Err(error) => summary.complaints.push(of_file(&name, format!("cannot be read: {error}"))),
    }
}

/// Files in a stable order, subdirectories included, and how many links there are.
fn files_of(directory: &Path) -> std::io::Result<(Vec<PathBuf>, usize)> {
    let (mut entries, links) = regular::listed(directory)?;
    entries.retain(|path| {
        let extension = path.extension().and_then(|e| e.to_str());
        path.is_dir() || matches!(extension, Some("yaml" | "yml" | "json"))
    });
    Ok((entries, links))
}

fn of_file(file: &str, message: String) -> Complaint {
    Complaint { file: file.to_owned(), document: 0, item: 0, line: 0, message }
}

/// Reads one file's text, which may be larger than the memory.
pub fn load_from(file: &str, from: impl Read, sink: &mut dyn Sink, summary: &mut Summary) {
    /// Enough for some hundred Nodes, few enough to be held.
    const BLOCK: usize = 4 << 20;
    load_in_blocks(BLOCK, file, from, sink, summary);
}

fn load_in_blocks(block: usize, file: &str, mut from: impl Read, sink: &mut dyn Sink, summary: &mut Summary) {
    /// Enough to tell text from what is none, in bytes.
    const HEAD: u64 = 8_192;
    let mut reader = Reader { file, document: 0, item: 0, complaints: 0, without_status: None, sink, summary };
    let mut head = Vec::new();
    if let Err(error) = from.by_ref().take(HEAD).read_to_end(&mut head)
        && head.is_empty()
    {
        return reader.complain_of_file(format!("cannot be read: {error}"));
    }
    if let Some(what) = no_text(&head) {
        return reader.complain_of_file(what);
    }
    let mut from = head.chain(from);
    let mut text = LongText::new(&mut from, block);
    let begins = text.rest().trim_start();
    if !begins.is_empty() && reader.sink.wants_file(file, begins) {
        while !text.is_whole() {
            text.more();
        }
        reader.sink.file(file, text.rest());
    } else {
        if begins.starts_with(['{', '[']) {
            reader.json(&mut text);
        } else {
            reader.yaml(&mut text);
            reader.suspect_the_end(&text);
        }
        if reader.document == 0 && reader.sink.expects_only_objects() {
            reader.complain_of_file(
                "the file is empty, but for comments at most; expected what kubectl get -o yaml or -o json prints",
            );
        } else if reader.document == 0 {
            reader.summary.skipped.push(of_file(file, "empty, or only comments: skipped".to_owned()));
        }
    }
    if let Some(error) = text.error() {
        reader.complain_of_file(format!("cannot be read to its end: {error}"));
    }
    if let Some(more @ 1..) = reader.complaints.checked_sub(MOST_COMPLAINTS) {
        reader.complain_of_file(format!("{more} more of its documents and items cannot be used"));
    }
}

/// The complaint about a file that is not text, from its first bytes.
fn no_text(head: &[u8]) -> Option<&'static str> {
    if head.starts_with(&[0x1f, 0x8b]) {
        Some("this is gzip; unpack it first, for example with zcat FILE | nodewhy diagnose -f -")
    } else if head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]) {
        Some(
            "this is UTF-16, as PowerShell's > writes it; save it as UTF-8, for example with | Out-File -Encoding utf8",
        )
    } else if head.contains(&0) {
        Some("this is no text; expected what kubectl get -o yaml or -o json prints")
    } else {
        None
    }
}

/// Maximum complaints about one file. More would not help if the file is something else.
const MOST_COMPLAINTS: usize = 100;

struct Reader<'r> {
    file: &'r str,
    document: usize,
    item: usize,
    complaints: usize,
    /// Kind and name of the last object, if it came from an API server without its status.
    without_status: Option<String>,
    sink: &'r mut dyn Sink,
    summary: &'r mut Summary,
}

/// The result of reading one piece of text. It depends only on the text, so pieces can be read in parallel.
enum Piece {
    Object(Box<Object>, Vec<OddField>),
    /// An object of this kind that cannot be read because of these fields.
    Unreadable(String, Vec<OddField>),
    /// A kind that no rule reads.
    Ignored,
    /// Valid, but not a Kubernetes object.
    NoObject,
    /// It cannot be used. Contains the line within the piece, and the reason.
    Bad(usize, String),
    /// It does not say its kind.
    Untyped,
    /// A list in the list.
    List(serde_json::Value),
}

impl Reader<'_> {
    fn complain_of_file(&mut self, message: impl Into<String>) {
        let complaint = of_file(self.file, message.into());
        self.sink.unread(&complaint.to_string());
        self.summary.complaints.push(complaint);
    }

    fn complain(&mut self, line: usize, message: String) {
        self.complaints += 1;
        if self.complaints <= MOST_COMPLAINTS {
            let complaint = self.complaint(line, message);
            self.sink.unread(&complaint.to_string());
            self.summary.complaints.push(complaint);
        }
    }

    fn complaint(&self, line: usize, message: String) -> Complaint {
        let Self { document, item, .. } = *self;
        Complaint { file: self.file.to_owned(), document, item, line, message }
    }

    /// Takes text that cannot be read: a complaint if it may hold an object that the sink wants, else a note.
    fn unreadable(&mut self, text: &str, line: usize, message: String) {
        if self.sink.may_hold_objects(text) {
            return self.complain(line, message);
        }
        self.complaints += 1;
        if self.complaints <= MOST_COMPLAINTS {
            let complaint = self.complaint(line, message + "; skipped");
            self.summary.skipped.push(complaint);
        }
    }

    /// Complains of each field at its own line.
    fn odd_fields(&mut self, of: &str, odd: &[OddField], source: ObjectText<'_>) {
        let piece = place::Piece::from(source);
        for field in odd {
            let line = field.line.map_or_else(|| piece.place_of(&field.path).line, |line| source.line + line);
            self.complain(line, format!("{of}: {}", shortened(&field.to_string(), 300)));
        }
    }

    /// Reports a file that is valid to its end but may have been cut off there.
    fn suspect_the_end(&mut self, text: &LongText<'_>) {
        let message = if let Some(object) = self.without_status.take() {
            format!("the file ends with {object}, whose status is missing: it may be cut off here")
        } else if !text.ends_a_line() && self.sink.expects_only_objects() {
            "the last line does not end, as the last one that kubectl prints does: the file may be cut off here"
                .to_owned()
        } else {
            return;
        };
        let Self { document, .. } = *self;
        self.summary.suspicions.push(Complaint {
            file: self.file.to_owned(),
            document,
            item: 0,
            line: text.last_line(),
            message,
        });
    }

    fn take(&mut self, piece: Piece, source: ObjectText<'_>) {
        match piece {
            Piece::Object(mut object, odd) => {
                self.summary.objects += 1;
                if !odd.is_empty() && !self.sink.odd_fields(&object, &odd, source) {
                    let kind = object.former_kind().map_or_else(|| object.type_meta().kind, str::to_owned);
                    self.odd_fields(&format!("{kind} {}", shortened(&object.meta().name, 63)), &odd, source);
                }
                if let Some(own) = object.provider_apart() {
                    self.sink.object(own, source);
                }
                // The list itself reports an item that breaks off.
                self.without_status = if self.item == 0 { without_status(&object) } else { None };
                self.sink.object(*object, source);
            }
            Piece::Ignored => self.summary.ignored += 1,
            Piece::Untyped | Piece::NoObject if !self.sink.expects_only_objects() => self.summary.ignored += 1,
            Piece::Untyped => self.complain(source.line, format!("{NO_OBJECT}: it has no kind")),
            Piece::NoObject => {
                self.complain(source.line, format!("{NO_OBJECT}: expected what kubectl get -o yaml or -o json prints"));
            }
            Piece::Bad(lines, message) => self.unreadable(source.text, source.line + lines, message),
            Piece::Unreadable(kind, odd) => self.odd_fields(&format!("this {kind} cannot be read"), &odd, source),
            Piece::List(list) => self.nested_list(list, source, &mut Vec::new()),
        }
    }

    fn nested_list(&mut self, mut value: serde_json::Value, source: ObjectText<'_>, items: &mut Vec<usize>) {
        let own = TypeMeta::deserialize(&value).unwrap_or_default();
        let type_of_items = type_of_items(&own);
        // Without items it tells at most its type.
        own.lists().into_iter().for_each(|input| self.sink.was_read(input));
        let Some(list) = value.get_mut("items").and_then(serde_json::Value::as_array_mut) else { return };
        for (number, item) in std::mem::take(list).into_iter().enumerate() {
            items.push(number);
            match read_json(&item.to_string(), &type_of_items) {
                Piece::List(list) => self.nested_list(list, source, items),
                piece => self.take(piece, ObjectText { items, ..source }),
            }
            items.pop();
        }
    }
}

/// Reads a document that was YAML, or an item of a list within a list.
fn read_json(text: &str, type_of_items: &TypeMeta) -> Piece {
    if !text.starts_with('{') {
        return Piece::NoObject;
    }
    let own = TypeMeta::of_json(text);
    if own.kind.ends_with("List")
        && let Ok(list) = serde_json::from_str::<serde_json::Value>(text)
        && list.get("items").is_some_and(serde_json::Value::is_array)
    {
        return Piece::List(list);
    }
    read(if own.kind.is_empty() { type_of_items } else { &own }, text)
}

fn read(type_: &TypeMeta, json: &str) -> Piece {
    if type_.kind.is_empty() {
        return Piece::Untyped;
    }
    // Kubernetes has no kind longer than a label, nor a version.
    let told = |name: &str| shortened(name, 63);
    let kind = || told(&type_.kind);
    let reading = type_.reading();
    let (input, command) = match reading {
        Reading::Ignored => return Piece::Ignored,
        Reading::Outdated { served } => {
            let version = told(&type_.api_version);
            return Piece::Bad(0, format!("{} of {version} is not judged; Karpenter knows {served}", kind()));
        }
        Reading::Misspelt { kind: own } => {
            return Piece::Bad(0, format!("the API server knows no kind {}; write kind: {own}", kind()));
        }
        Reading::As(input) => (input, input.command()),
        Reading::Former(former) => (former.input(), former.command()),
    };
    let read = match reading.read(json) {
        Ok(object) => Ok((object, Vec::new())),
        Err(_) => match serde_json::from_str(json) {
            Ok(value) => odd::read(reading, &value),
            Err(_) => Err(Vec::new()),
        },
    };
    match read {
        Ok((object, odd)) if object.meta().name.is_empty() && input != Input::AccessReviews => {
            let of_name = odd.into_iter().filter(|field| field.touches("metadata.name")).collect::<Vec<_>>();
            if of_name.is_empty() {
                return Piece::Bad(0, format!("this {} has no metadata.name", kind()));
            }
            Piece::Unreadable(kind(), of_name)
        }
        Ok((object, odd)) => Piece::Object(Box::new(object.by_its_name()), odd),
        Err(odd) if odd.is_empty() => {
            Piece::Bad(0, format!("this {} cannot be read; expected what {command} prints", kind()))
        }
        Err(odd) => Piece::Unreadable(kind(), odd),
    }
}

/// An object that an API server has stored, of a kind that always has a status there, and that has none.
fn without_status(object: &Object) -> Option<String> {
    let (kind, is_empty) = match object {
        Object::Node(node) => ("Node", node.status.conditions.is_empty()),
        Object::NodeClaim(claim) => ("NodeClaim", claim.status.conditions.is_empty()),
        Object::Pod(pod) => ("Pod", pod.status == PodStatus::default()),
        _ => return None,
    };
    let meta = object.meta();
    (is_empty && !meta.uid.is_empty()).then(|| format!("{kind} {}", meta.name))
}

/// `NodeList` holds Nodes that do not say so themselves.
fn type_of_items(list: &TypeMeta) -> TypeMeta {
    TypeMeta {
        api_version: list.api_version.clone(),
        kind: list.kind.strip_suffix("List").unwrap_or(&list.kind).to_owned(),
    }
}

const NO_OBJECT: &str = "this is no Kubernetes object";

/// A parser's message without the line and column, which it counts from the start of its own piece of the file, and
/// without the value that it stumbled over, which may be a secret.
pub(super) fn without_place(message: &str) -> String {
    /// More tells nobody more: names of fields and variants may be a stranger's too.
    const LONGEST: usize = 300;
    let first = message.lines().next().unwrap_or_default();
    let said = first.split_once(" at line ").map_or(first, |(said, _)| said);
    let variant = said
        .strip_prefix("unknown variant `")
        .map(|rest| rest.rsplit_once("`, expected ").map_or("one", |(_, expected)| expected));
    let said = match (variant, said.split_once("string \""), said.rsplit_once('"')) {
        (Some(expected), ..) => format!("unknown variant, expected {expected}"),
        (_, Some((before, _)), Some((_, after))) => format!("{before}string{after}"),
        _ => readers::source_text::mask(said),
    };
    said.chars().take(LONGEST).collect()
}
