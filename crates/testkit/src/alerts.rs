//! The sentences that alerts carry.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crate::project;

/// The first paragraph under "Fix" of a cause's page, as text; a table, or commands alone, is no sentence.
fn sentence(page: &str) -> Option<String> {
    let (_, rest) = page.split_once("\n## Fix\n")?;
    // An alert carries the fix in one line, so the items of a list follow one another.
    let lines = rest.trim_start().split("\n\n").next()?.lines().map(str::trim_start);
    let paragraph = lines.map(|line| line.strip_prefix("- ").unwrap_or(line)).collect::<Vec<_>>().join(" ");
    if paragraph.starts_with(['|', '`', ' ']) || rest.trim_start_matches('\n').starts_with("    ") {
        return None;
    }
    let mut text = String::new();
    let mut rest = paragraph.as_str();
    // Of a link, what is read.
    while let Some((before, (label, after))) =
        rest.split_once('[').and_then(|(before, link)| Some((before, link.split_once("](")?)))
    {
        text += before;
        text += label;
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    text += rest;
    // What a last sentence announces stands on the page alone.
    let told = match text.strip_suffix(':') {
        Some(announced) => announced.rsplit_once(". ").map_or(announced, |(before, _)| before).to_owned() + ".",
        None => text,
    };
    Some(told.replace("**", ""))
}

/// Each cause that a machine may be given, and the sentence with its fix.
pub fn fix_sentences() -> BTreeMap<String, String> {
    let pages =
        fs::read_dir(project().join("docs/causes")).expect("the pages").map(|entry| entry.expect("a page").path());
    let named = |page: PathBuf| Some((page.file_stem()?.to_str()?.to_owned(), fs::read_to_string(&page).ok()?));
    pages.filter_map(named).filter_map(|(cause, page)| Some((cause, sentence(&page)?))).collect()
}
