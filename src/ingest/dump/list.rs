//! A list of any length. Its items are read block by block and then dropped.

use super::text::{Lines, LongText};
use super::{ObjectText, Piece, Reader, parallel, type_of_items};
use crate::ingest::collect::{COLLECTED_AT, READ, SERVER, VERSION};
use chrono::{DateTime, Utc};
use engine::objects::ApiServerFacts;
use engine::objects::input::{Input, TypeMeta};

/// The metadata of a list.
#[derive(Debug, Default)]
pub(super) struct ListHead {
    pub type_: TypeMeta,
    /// When `nodewhy collect` created it.
    pub collected: Option<DateTime<Utc>>,
    /// The inputs that `nodewhy collect` has read.
    pub read: Vec<Input>,
    pub api_server: ApiServerFacts,
}

impl ListHead {
    /// The annotations that it reads.
    pub(super) const ANNOTATIONS: [&str; 4] = [COLLECTED_AT, READ, SERVER, VERSION];

    /// Reads an annotation.
    pub(super) fn annotation(&mut self, key: &str, value: &str) {
        match key {
            COLLECTED_AT => self.collected = value.parse().ok(),
            READ => self.read = value.split(',').filter_map(Input::named).collect(),
            SERVER => self.api_server.address = Some(value.to_owned()),
            VERSION => self.api_server.version = Some(value.to_owned()),
            _ => {}
        }
    }
}

/// A notation of lists.
pub(super) trait Notation {
    /// Splits the items at the beginning of a text, and returns how many bytes it read.
    fn items<'t>(text: &'t str, whole: bool, items: &mut Vec<&'t str>) -> (usize, Stop);

    /// Reads the fields of the object or document that contains the list, and returns how many bytes it read.
    fn fields(text: &str, whole: bool, head: &mut ListHead) -> (usize, Stop);

    /// Reads an item. An item without a kind has the kind of its list.
    fn read(item: &str, type_of_items: &TypeMeta) -> Piece;
}

/// The reason why reading the buffered text stops.
pub(super) enum Stop {
    /// The buffered text ends.
    More,
    /// The items of a list begin.
    Items,
    /// The list, object or document ends.
    End,
    /// A mistake. Contains how many lines below it is, and the reason.
    Broken(usize, String),
}

/// An item without a kind, of a list that has not stated its kind yet.
struct Kept {
    number: usize,
    line: usize,
    column: usize,
    text: String,
}

/// The list while its items are read.
#[derive(Default)]
struct List {
    head: ListHead,
    count: usize,
    kept: Vec<Kept>,
}

impl Reader<'_> {
    /// Reads a list from its first item, and the fields after its items where it stands in an object.
    pub(super) fn list<N: Notation>(&mut self, text: &mut LongText<'_>, head: ListHead, in_object: bool) -> TypeMeta {
        let mut list = List { head, ..List::default() };
        let mut in_items = true;
        loop {
            let (rest, whole) = (text.rest(), text.is_whole());
            let mut cut = Vec::new();
            let (bytes, stop) =
                if in_items { N::items(rest, whole, &mut cut) } else { N::fields(rest, whole, &mut list.head) };
            self.items::<N>(&cut, text.lines(), &mut list);
            text.pass(bytes);
            match stop {
                Stop::More => text.more(),
                Stop::Items => in_items = true,
                Stop::End if in_items && in_object => in_items = false,
                Stop::End => break,
                Stop::Broken(lines, message) => {
                    list.count += usize::from(in_items);
                    self.item = if in_items { list.count } else { 0 };
                    self.complain(text.line() + lines, message);
                    let column = text.column();
                    text.pass_broken(lines);
                    in_items = text.column() == column && !text.rest().is_empty();
                    if !in_items {
                        break;
                    }
                }
            }
        }
        self.kept::<N>(&mut list);
        self.all_of(&list.head);
        list.head.type_
    }

    /// Reads a list that is held from its first item to its last.
    pub(super) fn held_list<N: Notation>(&mut self, items: &[&str], lines: Lines<'_>, head: ListHead) {
        let mut list = List { head, ..List::default() };
        self.items::<N>(items, lines, &mut list);
        self.kept::<N>(&mut list);
        self.all_of(&list.head);
    }

    /// Takes what a list says of itself, once all its items were read.
    pub(super) fn all_of(&mut self, head: &ListHead) {
        self.summary.collected = self.summary.collected.max(head.collected);
        for input in head.read.iter().copied().chain(head.type_.lists()) {
            self.sink.was_read(input);
        }
        if head.api_server != ApiServerFacts::default() {
            self.sink.of_api_server(head.api_server.clone());
        }
    }

    /// Reads items side by side, and takes them in in their order.
    fn items<N: Notation>(&mut self, items: &[&str], mut lines: Lines<'_>, list: &mut List) {
        let type_of_items = type_of_items(&list.head.type_);
        parallel::read(
            items,
            |item| N::read(item, &type_of_items),
            |item, piece| {
                list.count += 1;
                self.item = list.count;
                let (line, column) = (lines.of(item), lines.column);
                match piece {
                    Piece::Untyped => {
                        list.kept.push(Kept { number: list.count, line, column, text: (*item).to_owned() });
                    }
                    piece => self.take(piece, ObjectText { file: self.file, text: item, line, column, items: &[] }),
                }
            },
        );
        self.item = 0;
    }

    /// Reads what waited for the list to say its kind.
    fn kept<N: Notation>(&mut self, list: &mut List) {
        let type_of_items = type_of_items(&list.head.type_);
        for Kept { number, line, column, text } in list.kept.drain(..) {
            self.item = number;
            self.take(
                N::read(&text, &type_of_items),
                ObjectText { file: self.file, text: &text, line, column, items: &[] },
            );
        }
        self.item = 0;
    }
}
