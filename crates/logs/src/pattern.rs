//! What a line must say: pieces of text in their order, with names for what stands between them.
//!
//! `failed to resolve reference "{image}": {why}`. A name takes what is up to the next piece; no other part of a line
//! is looked at twice, so matching is linear.

/// A piece of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Name(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    parts: Vec<Part>,
}

impl Pattern {
    /// `None` where it says nothing, or where two names touch.
    pub(crate) fn new(says: &str) -> Option<Self> {
        let mut parts = Vec::new();
        let mut rest = says;
        while let Some((text, after)) = rest.split_once('{') {
            let (name, behind) = after.split_once('}')?;
            if !text.is_empty() {
                parts.push(Part::Text(text.to_owned()));
            } else if matches!(parts.last(), Some(Part::Name(_))) {
                return None;
            }
            parts.push(Part::Name(name.to_owned()));
            rest = behind;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        parts.iter().any(|part| matches!(part, Part::Text(_))).then_some(Self { parts })
    }

    /// What the pieces say, without the names.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| if let Part::Text(text) = part { Some(text.as_str()) } else { None })
    }

    /// The longest part of it that stands in a raw line too, where quotes may be escaped.
    pub(crate) fn needle(&self) -> &str {
        let pieces = self.texts().flat_map(|text| text.split(['"', '\\', '\n', '\t', '<', '>', '&']));
        pieces.max_by_key(|piece| piece.len()).unwrap_or_default()
    }

    /// What the names stand for, where the line says it; an empty name is not kept.
    pub(crate) fn read<'l>(&self, line: &'l str) -> Option<Vec<(&str, &'l str)>> {
        let mut names = Vec::new();
        let (mut rest, mut waiting) = (line, None);
        let mut begun = false;
        for part in &self.parts {
            match part {
                Part::Name(name) => waiting = Some(name.as_str()),
                Part::Text(text) => {
                    let at = rest.find(text.as_str())?;
                    let behind = rest.get(at + text.len()..)?;
                    if let Some(name) = waiting.take()
                        && begun
                    {
                        names.push((name, rest.get(..at)?));
                    }
                    (rest, begun) = (behind, true);
                }
            }
        }
        if let Some(name) = waiting {
            names.push((name, rest));
        }
        names.retain(|(name, _)| !name.is_empty());
        Some(names)
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn names_take_what_stands_between_the_pieces() {
        let pattern = Pattern::new(r#"failed to resolve reference "{image}": {why}"#).unwrap();
        let line = r#"retries exhausted: failed to resolve reference "docker.io/x": object required"#;
        assert_eq!(pattern.read(line), Some(vec![("image", "docker.io/x"), ("why", "object required")]));
        assert_eq!(pattern.read("failed to resolve"), None);
        assert_eq!(pattern.needle(), "failed to resolve reference ");
    }

    #[test]
    fn pieces_must_come_in_their_order() {
        let pattern = Pattern::new("one{}two").unwrap();
        assert!(pattern.read("one and two").is_some());
        assert!(pattern.read("two and one").is_none());
        assert_eq!((Pattern::new("{a}{b}"), Pattern::new("{a}")), (None, None));
    }
}
