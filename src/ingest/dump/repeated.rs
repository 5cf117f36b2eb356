//! Keys that a map has twice.

use serde_saphyr::granit_parser::{self, Event, Parser};
use std::collections::HashSet;

/// A collection that is open.
struct Open {
    keys: Option<HashSet<String>>,
    /// The key whose value comes next, of a map.
    key: Option<String>,
    next: usize,
}

/// The path and the line, from 0, of each key that its map already has.
pub(super) fn keys(text: &str) -> Vec<(Vec<String>, usize)> {
    let (mut open, mut path, mut found) = (Vec::<Open>::new(), Vec::<String>::new(), Vec::new());
    for event in Parser::new_from_str_with_options(text, granit_parser::options! { emit_comments: false }) {
        let Ok((event, span)) = event else { return found };
        let begins = match &event {
            Event::MappingStart(..) => Some(true),
            Event::SequenceStart(..) => Some(false),
            Event::Scalar(..) | Event::Alias(_) => None,
            Event::MappingEnd | Event::SequenceEnd => {
                open.pop();
                path.pop();
                continue;
            }
            Event::DocumentEnd => return found,
            _ => continue,
        };
        let step = match open.last_mut() {
            None => String::new(),
            Some(Open { keys: Some(keys), key: key @ None, .. }) if begins.is_none() => {
                let Event::Scalar(name, ..) = &event else {
                    *key = Some(String::new());
                    continue;
                };
                *key = Some(name.to_string());
                if !keys.insert(name.to_string()) {
                    let path = path.iter().skip(1).cloned().chain([name.to_string()]).collect();
                    found.push((path, span.start.line().saturating_sub(1)));
                }
                continue;
            }
            Some(Open { keys: Some(_), key, .. }) => key.take().unwrap_or_else(|| {
                // A collection as a key.
                *key = Some(String::new());
                String::new()
            }),
            Some(Open { next, .. }) => {
                *next += 1;
                (*next - 1).to_string()
            }
        };
        if let Some(is_map) = begins {
            open.push(Open { keys: is_map.then(HashSet::new), key: None, next: 0 });
            path.push(step);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_key_that_comes_again_is_told_with_its_path_and_line() {
        let found = super::keys("a: 1\nb: [{c: 1, d: {}}, {c: 2, e: x, c: 3}]\nf:\n  g: 1\n  h: 2\n  g: 3\na: 4\n");
        let found: Vec<_> = found.iter().map(|(path, line)| (path.join("."), *line)).collect();
        assert_eq!(found, [("b.1.c".to_owned(), 1), ("f.g".to_owned(), 5), ("a".to_owned(), 6)]);
        assert!(super::keys("a: {b: 1}\nc: {b: 1}\n? [x]\n: {a: 1}\n").is_empty());
        assert!(super::keys("? [x]\n: a\nb: &c a\n? *c\n: b\na: 1\n").is_empty());
    }
}
