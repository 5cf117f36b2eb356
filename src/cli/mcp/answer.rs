//! What a command said, as the answer of a tool.

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::process::ExitStatus;

/// More verdicts are cut to one of each cause and NodePool: whoever reads them has room for little.
const VERDICTS: usize = 20;
/// Bytes of an answer.
const ANSWER: usize = 256 << 10;
/// Bytes of what a command complains of beside its answer.
const NOTES: usize = 8 << 10;

/// What a command printed.
#[derive(Debug)]
pub(super) struct Printed {
    /// It did what it was to do; findings of lint are no failure.
    done: bool,
    answer: String,
    notes: String,
}

impl Printed {
    pub(super) fn new(status: ExitStatus, out: &[u8], err: &[u8]) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        let mut notes = text(err);
        if notes.len() > NOTES {
            notes.truncate(notes.floor_char_boundary(NOTES));
            notes.push_str("\n… more of this is left out");
        }
        Self { done: matches!(status.code(), Some(0 | 1)), answer: text(out), notes }
    }
}

fn too_long(bytes: usize) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(format!(
        "the answer has {} KiB, which is too long for a tool call. Ask for one name. Or ask a person to run the \
         command of this tool and to save its output in a file. diagnose can read a dump from a file.",
        bytes >> 10
    ))])
}

/// The answer, or why there is none: in words that the agent sees, with what to do about it.
fn said(said: std::io::Result<Printed>) -> Result<Printed, CallToolResult> {
    let refused = |why: String| CallToolResult::error(vec![ContentBlock::text(why)]);
    let said = said.map_err(|error| match error.kind() {
        ErrorKind::TimedOut => refused(error.to_string()),
        _ => refused(format!("nodewhy cannot be run: {error}")),
    })?;
    if said.done { Ok(said) } else { Err(refused(said.notes)) }
}

pub(super) fn text(answer: std::io::Result<Printed>) -> CallToolResult {
    match said(answer) {
        Ok(said) if said.answer.len() > ANSWER => too_long(said.answer.len()),
        Ok(said) => CallToolResult::success(vec![ContentBlock::text(said.answer)]),
        Err(failed) => failed,
    }
}

pub(super) fn json(answer: std::io::Result<Printed>) -> CallToolResult {
    structured(answer, |_| None)
}

/// The list of diagnoses, cut where it is long.
pub(super) fn diagnoses(answer: std::io::Result<Printed>) -> CallToolResult {
    structured(answer, |list| {
        let items = list["items"].as_array_mut()?;
        let stuck = items.len();
        if stuck <= VERDICTS {
            return None;
        }
        let mut seen = BTreeSet::new();
        items.retain(|item| {
            let labels = &item["metadata"]["labels"];
            seen.insert([&labels["nodewhy.dev/cause"], &labels["karpenter.sh/nodepool"]].map(Value::to_string))
        });
        let shown = items.len();
        Some(format!(
            "{stuck} are stuck; {shown} are shown, one of each cause and NodePool. Ask for the others by NodePool or \
             name."
        ))
    })
}

fn structured(answer: std::io::Result<Printed>, cut: impl FnOnce(&mut Value) -> Option<String>) -> CallToolResult {
    let said = match said(answer) {
        Ok(said) => said,
        Err(failed) => return failed,
    };
    let Ok(mut value) = serde_json::from_str(&said.answer) else {
        return CallToolResult::error(vec![ContentBlock::text(said.notes)]);
    };
    let cut = [cut(&mut value), shorten(&mut value)].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let bytes = value.to_string().len();
    if bytes > ANSWER {
        return too_long(bytes);
    }
    let mut result = CallToolResult::structured(value);
    let notes = [cut, said.notes].into_iter().filter(|note| !note.is_empty());
    result.content.extend(notes.map(ContentBlock::text));
    result
}

/// Leaves the last items of a list out, where all of them are too much to be read.
fn shorten(list: &mut Value) -> Option<String> {
    let items = list.get_mut("items")?.as_array_mut()?;
    let all = items.len();
    let mut bytes = 0;
    let fitting = items.iter().take_while(|item| {
        bytes += item.to_string().len();
        bytes <= ANSWER * 3 / 4
    });
    let fitting = fitting.count();
    // One that is too long by itself is no reason to say that there is none.
    if fitting == 0 {
        return None;
    }
    items.truncate(fitting);
    (fitting < all).then(|| {
        format!("Only {fitting} of {all} items fit into this answer. Ask for the others by name, or with fewer files.")
    })
}
