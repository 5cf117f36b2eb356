//! What a command said, as the answer of a tool.

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Output;

/// More verdicts are cut to one of each cause and NodePool: whoever reads them has room for little.
const VERDICTS: usize = 20;
/// Bytes of a text that is given as it is.
const TEXT: usize = 256 << 10;

/// What a command printed.
#[derive(Debug)]
pub(super) struct Printed {
    /// It did what it was to do; findings of lint are no failure.
    done: bool,
    answer: String,
    notes: String,
}

impl From<Output> for Printed {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8_lossy(bytes).trim().to_owned();
        let done = matches!(output.status.code(), Some(0 | 1));
        Self { done, answer: text(&output.stdout), notes: text(&output.stderr) }
    }
}

/// The answer, or why there is none: in words that the agent sees, with what to do about it.
fn said(said: std::io::Result<Printed>) -> Result<Printed, CallToolResult> {
    let refused = |why: String| CallToolResult::error(vec![ContentBlock::text(why)]);
    let said = said.map_err(|error| refused(format!("nodewhy cannot be run: {error}")))?;
    if said.done { Ok(said) } else { Err(refused(said.notes)) }
}

pub(super) fn text(answer: std::io::Result<Printed>) -> CallToolResult {
    match said(answer) {
        Ok(said) if said.answer.len() > TEXT => CallToolResult::error(vec![ContentBlock::text(format!(
            "the answer has {} KiB, too much to be read here: run the command of this tool with its output in a file; diagnose takes the file of a dump",
            said.answer.len() >> 10
        ))]),
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
            "{stuck} are stuck; {shown} are shown, one of each cause and NodePool. Ask for the others by NodePool or name."
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
    let cut = cut(&mut value);
    let mut result = CallToolResult::structured(value);
    let notes = [cut.unwrap_or_default(), said.notes].into_iter().filter(|note| !note.is_empty());
    result.content.extend(notes.map(ContentBlock::text));
    result
}
