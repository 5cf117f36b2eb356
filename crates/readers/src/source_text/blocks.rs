//! Secrets that stand on lines of their own, below the line that names them: private keys, blocks of YAML,
//! here-documents.

use super::Span;
use super::commands::is_of_secret;
use super::names::{is_block_header, is_secret_name};

/// What the lines below belong to.
enum Within {
    Nothing,
    /// A private key, to its last line.
    Key,
    /// What is indented more than its key: a scalar as `|` begins one, or a plain one.
    Scalar {
        column: usize,
    },
    /// What is indented more than its key and may have keys of its own: a list of scalars, or one scalar.
    Below {
        column: usize,
    },
    /// The same, where every value below is secret, whatever it is called.
    Values {
        column: usize,
    },
    /// To the line that holds this and nothing else.
    To(String),
}

/// The secret part of each line that belongs to such a block.
pub(super) fn blocks(text: &str) -> Vec<Span> {
    let mut found = Vec::new();
    let mut within = Within::Nothing;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let content = line.trim();
        let content_at = start + (line.len() - line.trim_start().len());
        if line.contains("PRIVATE KEY-----") {
            within = if line.contains("-----BEGIN") { Within::Key } else { Within::Nothing };
            continue;
        }
        if content.is_empty() {
            continue;
        }
        let whole = Span::new(content_at, content_at + content.len());
        let indent = indent(line);
        match &within {
            Within::Key => {
                if content.chars().all(super::tokens::is_base64) {
                    found.push(whole);
                }
                continue;
            }
            Within::Scalar { column } if indent > *column => {
                found.push(whole);
                continue;
            }
            Within::Below { column }
                if (indent > *column || (indent == *column && content.starts_with("- "))) && key(content).is_none() =>
            {
                let item = content.trim_start_matches(['-', ' ']);
                found.push(Span::new(whole.end - item.len(), whole.end));
                continue;
            }
            Within::Values { column } if indent > *column => {
                match key(content) {
                    Some((_, value)) if value.is_empty() || is_block_header(value) => {}
                    Some(("expire" | "name" | "type" | "list" | "users", _)) => {}
                    Some((_, value)) => found.push(Span::new(whole.end - value.len(), whole.end)),
                    None => found.push(whole),
                }
                continue;
            }
            Within::To(end) => {
                if content.trim_end_matches([';', ')', '"', '\'']) == end
                    || content.starts_with(end.as_str()) && end.starts_with(['"', '\''])
                {
                    within = Within::Nothing;
                } else {
                    found.push(whole);
                }
                continue;
            }
            Within::Nothing | Within::Scalar { .. } | Within::Below { .. } | Within::Values { .. } => {}
        }
        within = begun(line, content, indent);
    }
    found
}

/// What a line begins.
fn begun(line: &str, content: &str, indent: usize) -> Within {
    /// Nobody writes longer ones by hand.
    const LONGEST: usize = 4_096;
    if line.len() > LONGEST {
        return Within::Nothing;
    }
    if let Some(end) = here_document(content) {
        return Within::To(end);
    }
    // `password = """` of TOML, `$password = @"` of PowerShell.
    if let Some((name, open)) = content.split_once('=')
        && is_secret_name(name.trim())
    {
        match open.trim() {
            open @ ("\"\"\"" | "'''") => return Within::To(open.to_owned()),
            "@\"" => return Within::To("\"@".to_owned()),
            "@'" => return Within::To("'@".to_owned()),
            _ => {}
        }
    }
    let Some((name, value)) = key(content) else {
        return if ends_with_header(content) { Within::Scalar { column: indent } } else { Within::Nothing };
    };
    let column = indent + (content.len() - content.trim_start_matches(['-', ' ']).len());
    let is_empty = value.is_empty() || value.starts_with('#');
    if is_empty && matches!(name, "stringData" | "chpasswd") {
        return Within::Values { column };
    }
    if !is_secret_name(name) {
        return if ends_with_header(content) { Within::Scalar { column } } else { Within::Nothing };
    }
    if is_block_header(value) {
        Within::Scalar { column }
    } else if is_empty && !name.eq_ignore_ascii_case("secrets") {
        Within::Below { column }
    } else {
        Within::Nothing
    }
}

/// By how many spaces and tabs a line is indented.
fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches([' ', '\t']).len()
}

/// A key of YAML and what stands behind it on its line.
fn key(content: &str) -> Option<(&str, &str)> {
    let content = content.trim_start_matches(['-', ' ']);
    let (name, value) = content.split_once(':')?;
    let name = name.trim_matches(['"', '\'', ' ', '?']);
    let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-./".contains(&b));
    (is_name && (value.is_empty() || value.starts_with([' ', '\t', '\r']))).then(|| (name, value.trim()))
}

/// Whether a line ends in a secret key and the header of its block: `data: {password: |`, or a comment that holds one.
fn ends_with_header(content: &str) -> bool {
    let Some((before, header)) = content.rsplit_once(':') else { return false };
    let before = before.trim_end_matches(['"', '\'']);
    let start = before.rfind(|c: char| !(c.is_ascii_alphanumeric() || "_-.".contains(c))).map_or(0, |at| at + 1);
    is_block_header(header.trim()) && before.get(start..).is_some_and(is_secret_name)
}

/// The last line of a here-document whose text is secret: given to `chpasswd` or another command that reads a password,
/// or written to a variable or a file of a secret's name.
fn here_document(content: &str) -> Option<String> {
    let (before, behind) = content.split_once("<<").filter(|(_, behind)| !behind.starts_with('<'))?;
    let behind = behind.trim_start_matches(['-', '~', ' ']);
    let quoted = behind.trim_start_matches(['"', '\'', '\\']);
    let len = quoted.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(quoted.len());
    let (end, rest) = quoted.split_at(len);
    if end.is_empty() || !end.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        return None;
    }
    let mut words = before.split_whitespace().chain(rest.split_whitespace());
    words.any(is_of_secret).then(|| end.to_owned())
}
