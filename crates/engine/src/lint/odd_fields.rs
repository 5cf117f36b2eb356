//! Fields that do not have the type of their kind: the API server refuses the object over them.

use super::place::{Piece, Place};
use super::{Level, Mistake};
use crate::api::Blame;
use crate::objects::input::Object;
use crate::objects::odd::OddField;

/// A note about a field of an object that lint does not judge itself.
pub fn note(object: &Object, piece: &Piece, field: &OddField) -> String {
    told(&format!("{}/{}", object.type_meta().kind, object.meta().name), piece, field)
}

fn told(object: &str, piece: &Piece, field: &OddField) -> String {
    let file = piece.file.strip_prefix("./").unwrap_or(&piece.file);
    format!("{file}:{}: {object}: {field}; not judged", piece.place_of(&field.path).line)
}

/// The mistakes in these fields of an object, each with its place. The notes say which fields lint cannot judge.
pub fn flaws(blame: &Blame, piece: &Piece, odd: &[OddField], notes: &mut Vec<String>) -> Vec<(Mistake, Place)> {
    let mut mistakes = Vec::new();
    for field in odd {
        let mut place = piece.place_of(&field.path);
        if let Some(line) = field.line {
            place = Place { line: piece.line() + line, column: 1, exact: true };
        }
        if field.is_placeholder {
            notes.push(told(&blame.object, piece, field));
            continue;
        }
        let (level, cause, what, fix) = if field.line.is_some() {
            (Level::Warning, "FieldTwice", String::new(), "Remove one of the two.")
        } else {
            let fix = if field.is_read {
                "Add or remove the quotes."
            } else {
                "Write a value of the type that the message names."
            };
            (Level::Error, "WrongType", ". The API server rejects the object".to_owned(), fix)
        };
        let mistake = Mistake {
            level,
            cause: cause.to_owned(),
            message: format!("{}: {field}{what}.", blame.object),
            fix: Some(fix.to_owned()),
            blame: blame.clone().field(field.field()),
            grave: false,
        };
        mistakes.push((mistake, place));
    }
    mistakes
}
