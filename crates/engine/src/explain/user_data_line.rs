//! The line of the user data that sets or calls something.

use crate::api::Blame;
use crate::case::Case;
use readers::source_text::Span;

/// A text in the user data, and the node class to blame, at that text.
pub(crate) struct UserDataLine {
    pub text: &'static str,
    pub blame: Blame,
}

/// The first of these texts that stands in the user data, in no comment and no line with one of the other texts.
pub(crate) fn with(case: &Case, texts: &[&'static str], not: &[&str]) -> Option<UserDataLine> {
    let class = case.class()?;
    let all = class.spec.user_data.as_deref()?;
    let mut start = 0;
    for line in all.split_inclusive('\n') {
        let is_other = line.trim_start().starts_with('#') || not.iter().any(|text| line.contains(text));
        let found = texts.iter().find_map(|text| Some((line.find(text)?, *text))).filter(|_| !is_other);
        if let Some((at, text)) = found {
            let span = Span::new(start + at, start + at + text.len());
            return Some(UserDataLine { text, blame: Blame::class(class).field("spec.userData").at(all, span) });
        }
        start += line.len();
    }
    None
}
