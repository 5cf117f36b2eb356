//! The findings that a change introduces: the findings of the new files, without the ones that the old files have too.

use super::{Level, LintFinding, USER_DATA};
use std::collections::BTreeMap;
use std::path::Path;

/// The findings of `new` that `old` lacks. A finding that moved to another line or another file is not introduced.
pub fn introduced(old: &[LintFinding], new: Vec<LintFinding>) -> Vec<LintFinding> {
    let mut known: BTreeMap<Key, usize> = BTreeMap::new();
    for finding in old {
        *known.entry(key(finding)).or_default() += 1;
    }
    let mut introduced = Vec::new();
    for finding in new {
        match known.get_mut(&key(&finding)) {
            Some(times @ 1..) => *times -= 1,
            _ => introduced.push(finding),
        }
    }
    introduced
}

/// Level, cause, object, field, and the text of the place.
pub(crate) type Key = (Level, String, String, Option<String>, String);

/// What a finding is known by, wherever its line moves.
pub(crate) fn key(finding: &LintFinding) -> Key {
    let blame = &finding.blame;
    // A file of user data is named by its path, and the two versions are in two folders.
    let object = if blame.kind == USER_DATA {
        Path::new(&finding.file).file_name().unwrap_or_default().to_string_lossy().into_owned()
    } else {
        blame.object.clone()
    };
    // A message may name a line, which moves. It is the last resort.
    let text = blame.excerpt.as_ref().unwrap_or(&finding.message).trim().to_owned();
    (finding.level, finding.cause.clone(), object, blame.field.clone(), text)
}
