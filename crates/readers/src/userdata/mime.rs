//! MIME multipart archives, as Go's `mime/multipart` reads them for Karpenter and nodeadm.

use crate::source_text::Span;

/// One part of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The media type in lower case, without parameters; empty where the part names none.
    pub media_type: String,
    /// Whether a transfer encoding hides the body.
    pub encoded: bool,
    pub body: Span,
    /// The first line of its header that is no header of MIME's: most likely the body begins there.
    pub swallowed: Option<Span>,
}

/// An archive and the first thing in it that Go refuses.
#[derive(Debug, Default)]
pub struct Archive {
    pub entries: Vec<Entry>,
    pub fault: Option<(Span, &'static str)>,
    /// The boundary, where no line of the text is a delimiter: Go takes that for an archive without parts.
    pub unused_boundary: Option<(Span, String)>,
}

/// Karpenter's own test for user data that is an archive.
// karpenter-provider-aws v1.14.1 pkg/providers/amifamily/bootstrap/{nodeadm,eksbootstrap}.go
pub fn is_archive(text: &str) -> bool {
    let text = text.trim();
    text.starts_with("MIME-Version:") || text.starts_with("Content-Type:")
}

/// cloud-init's test, which stands in for Karpenter's where user data is passed through unread.
// cloud-init cloudinit/user_data.py convert_string
pub fn is_archive_for_cloud_init(text: &str) -> bool {
    let head = text.as_bytes().get(..4096).unwrap_or(text.as_bytes());
    String::from_utf8_lossy(head).to_ascii_lowercase().contains("mime-version:")
}

/// Splits `text` into the parts of its archive.
// Go 1.25 net/mail ReadMessage, mime ParseMediaType, mime/multipart Reader.NextPart
pub fn read(text: &str) -> Archive {
    let mut archive = Archive::default();
    let mut lines = Lines { text, at: 0 };
    let start = lines.at;
    let header = lines.header();
    let here = Span::new(start, lines.at.max(start));
    let fault = |message| Some((here, message));
    if header.malformed.is_some() {
        archive.fault = header.malformed.map(|span| (span, "this line of the header is no `Name: value`"));
        return archive;
    }
    if !header.content_type.to_ascii_lowercase().starts_with("multipart/") {
        archive.fault =
            fault("the header does not say `Content-Type: multipart/…`; it must begin on the very first line");
        return archive;
    }
    let parameters = match parameters(&header.content_type) {
        Ok(parameters) => parameters,
        Err(message) => {
            archive.fault = Some((header.content_type_at.unwrap_or(here), message));
            return archive;
        }
    };
    let boundary = parameters.into_iter().find(|(name, _)| name == "boundary").map(|(_, value)| value);
    let Some(boundary) = boundary.filter(|b| !b.is_empty()) else {
        archive.fault = fault("the Content-Type names no boundary");
        return archive;
    };
    let delimiter = format!("--{boundary}");
    let mut open: Option<(Header, usize)> = None;
    // What ends the line of every delimiter: as the first one's does.
    let mut line_end = "\r\n";
    while let Some(line) = lines.next() {
        let Some(rest) = line.of(text).strip_prefix(&delimiter) else { continue };
        let ends = |rest: &str| match rest.trim_start_matches([' ', '\t']) {
            "" if line.end == text.len() => Some(""),
            "" => Some("\n"),
            "\r" if line.end < text.len() => Some("\r\n"),
            _ => None,
        };
        let end = ends(rest);
        if open.is_none() && end == Some("\n") {
            line_end = "\n";
        }
        let closes = rest.strip_prefix("--").and_then(ends).is_some_and(|end| end.is_empty() || end == line_end);
        let begins = end == Some(line_end);
        let stands_out = rest.is_empty() || rest.starts_with([' ', '\t', '\r']) || rest.starts_with("--");
        if !begins && !closes && (open.is_none() || !stands_out) {
            continue;
        }
        archive.entries.extend(open.take().map(|part| entry(text, &part, line.start)));
        // Karpenter takes an archive that ends outside of a part for one that is closed.
        if closes || line.end == text.len() {
            return archive;
        }
        if !begins {
            archive.fault = Some((
                line,
                "this line begins with the boundary and is neither a delimiter nor the end of the archive",
            ));
            return archive;
        }
        let header = lines.header();
        if let Some(span) = header.malformed {
            archive.fault = Some((
                header.foreign.unwrap_or(span),
                "this line is read as the header of a MIME part, where every line must be `Name: value`. An empty line \
                 must end the header before this line",
            ));
            return archive;
        }
        if !header.ended {
            return archive;
        }
        open = Some((header, lines.at));
    }
    if archive.entries.is_empty() && open.is_none() {
        archive.unused_boundary = Some((header.content_type_at.unwrap_or(here), boundary));
    }
    if let Some(part) = open {
        let end = Span::new(text.len(), text.len());
        archive.fault = Some((end, "the archive is not closed by its boundary and `--`"));
        archive.entries.push(entry(text, &part, text.len()));
    }
    archive
}

fn entry(text: &str, (header, start): &(Header, usize), delimiter: usize) -> Entry {
    // The line end in front of a delimiter belongs to the delimiter.
    let body = Span::new(*start, delimiter.max(*start)).of(text);
    let body = body.strip_suffix('\n').unwrap_or(body);
    let body = body.strip_suffix('\r').unwrap_or(body);
    let media_type = header.content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let body = Span::new(*start, start + body.len());
    Entry { media_type, encoded: header.encoded, body, swallowed: header.foreign }
}

#[derive(Default)]
struct Header {
    content_type: String,
    content_type_at: Option<Span>,
    encoded: bool,
    malformed: Option<Span>,
    /// The first line whose name is none that cloud-init, nodeadm or MIME know.
    foreign: Option<Span>,
    /// Whether an empty line ends it.
    ended: bool,
}

struct Lines<'a> {
    text: &'a str,
    at: usize,
}

impl Lines<'_> {
    /// The header up to the empty line that ends it.
    fn header(&mut self) -> Header {
        let mut header = Header::default();
        let mut name = String::new();
        while let Some(span) = self.next() {
            let line = span.of(self.text).trim_end_matches('\r');
            if line.is_empty() {
                header.ended = true;
                break;
            }
            let continued = line.starts_with([' ', '\t']) && !name.is_empty();
            let value = match line.split_once(':') {
                _ if continued => line.trim(),
                Some((key, value)) if !key.contains([' ', '\t']) && !key.is_empty() => {
                    name = key.to_ascii_lowercase();
                    value.trim()
                }
                _ => {
                    header.malformed.get_or_insert(span);
                    header.foreign.get_or_insert(span);
                    continue;
                }
            };
            if !continued && !is_header(&name) {
                header.foreign.get_or_insert(span);
            }
            // Go looks at the first of its name.
            if name == "content-type" && !continued && !header.content_type.is_empty() {
                "x-repeated".clone_into(&mut name);
            }
            match name.as_str() {
                "content-type" => {
                    header.content_type.push_str(value);
                    header.content_type_at.get_or_insert(span);
                }
                "content-transfer-encoding" => {
                    header.encoded = !matches!(value.to_ascii_lowercase().as_str(), "7bit" | "8bit" | "binary");
                }
                _ => {}
            }
        }
        header
    }
}

impl Iterator for Lines<'_> {
    type Item = Span;

    fn next(&mut self) -> Option<Span> {
        let rest = self.text.get(self.at..).filter(|rest| !rest.is_empty())?;
        let end = rest.find('\n').map_or(self.text.len(), |at| self.at + at);
        let line = Span::new(self.at, end);
        self.at = (end + 1).min(self.text.len());
        Some(line)
    }
}

/// RFC 2045 section 9, and the headers of cloud-init's own: cloudinit/user_data.py `_process_msg`.
fn is_header(name: &str) -> bool {
    const OF_CLOUD_INIT: [&str; 3] = ["number-attachments", "launch-index", "merge-type"];
    name == "mime-version" || name.starts_with("content-") || name.starts_with("x-") || OF_CLOUD_INIT.contains(&name)
}

/// The parameters behind the media type, each with its value.
// Go 1.25 mime ParseMediaType, consumeMediaParam, consumeValue
fn parameters(content_type: &str) -> Result<Vec<(String, String)>, &'static str> {
    const INVALID: &str = "the Content-Type has an invalid media parameter: a boundary with other characters than \
                           letters, digits and -_.+ needs quotes";
    let mut parameters: Vec<(String, String)> = Vec::new();
    let mut rest =
        content_type.split_once(';').map_or("", |(base, _)| content_type.get(base.len()..).unwrap_or_default());
    loop {
        rest = rest.trim_start();
        // A semicolon at the end is no mistake.
        if rest.is_empty() || rest.trim() == ";" {
            return Ok(parameters);
        }
        let behind = rest.strip_prefix(';').ok_or(INVALID)?.trim_start();
        let (name, behind) = token(behind);
        let behind = behind.trim_start().strip_prefix('=').filter(|_| !name.is_empty()).ok_or(INVALID)?.trim_start();
        let (value, behind) = if let Some(quoted) = behind.strip_prefix('"') {
            unquoted(quoted).ok_or(INVALID)?
        } else {
            let (value, behind) = token(behind);
            if value.is_empty() {
                return Err(INVALID);
            }
            (value.to_owned(), behind)
        };
        let name = name.to_ascii_lowercase();
        if parameters.iter().any(|(other, own)| *other == name && *own != value) {
            return Err("the Content-Type has a parameter twice");
        }
        parameters.push((name, value));
        rest = behind;
    }
}

const SPECIALS: &str = "()<>@,;:\\\"/[]?=";

/// The token that `text` begins with, and what is behind it.
fn token(text: &str) -> (&str, &str) {
    let ends = |c: char| !c.is_ascii_graphic() || SPECIALS.contains(c);
    text.split_at(text.find(ends).unwrap_or(text.len()))
}

/// The text up to the closing quote, and the text behind it.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => return Some((value, text.get(at + 1..).unwrap_or_default())),
            '\\' => {
                let next = text.get(at + 1..).and_then(|rest| rest.chars().next());
                match next.filter(|next| SPECIALS.contains(*next)) {
                    Some(next) => {
                        value.push(next);
                        characters.next();
                    }
                    None => value.push(c),
                }
            }
            c => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARCHIVE: &str = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n\n--//\nContent-Type: \
                           text/x-shellscript; charset=\"us-ascii\"\n\n#!/bin/bash\necho\n\n--//\nContent-Type: \
                           application/node.eks.aws\n\nkind: NodeConfig\n--//--\n";

    #[test]
    fn parts_end_before_the_line_end_of_the_delimiter() {
        let archive = read(ARCHIVE);
        let parts: Vec<_> = archive.entries.iter().map(|e| (e.media_type.as_str(), e.body.of(ARCHIVE))).collect();
        assert_eq!(
            parts,
            [("text/x-shellscript", "#!/bin/bash\necho\n"), ("application/node.eks.aws", "kind: NodeConfig")]
        );
        assert_eq!(archive.fault, None);
    }

    #[test]
    fn carriage_returns_change_nothing() {
        let text = ARCHIVE.replace('\n', "\r\n");
        let archive = read(&text);
        assert_eq!(archive.entries.len(), 2);
        assert_eq!(archive.fault, None);
    }

    #[test]
    fn a_body_in_the_header_is_found_where_it_begins() {
        let text = ARCHIVE.replace("us-ascii\"\n\n", "us-ascii\"\n");
        assert_eq!(read(&text).fault.unwrap().0.of(&text), "#!/bin/bash");
        let text = ARCHIVE.replace("eks.aws\n\nkind: NodeConfig", "eks.aws\nkind: NodeConfig");
        assert_eq!(read(&text).fault.unwrap().0.of(&text), "kind: NodeConfig");
        let text = ARCHIVE.replace("eks.aws\n\nkind: NodeConfig", "eks.aws\nkind: NodeConfig\n\nspec:");
        let archive = read(&text);
        assert_eq!((archive.fault, archive.entries[1].swallowed.unwrap().of(&text)), (None, "kind: NodeConfig"));
        assert_eq!(archive.entries[0].swallowed, None);
    }

    #[test]
    fn parameters_are_those_of_go() {
        let boundary = |text: &str| {
            let found = parameters(&format!("multipart/mixed{text}"))?;
            Ok::<_, &str>(found.into_iter().find(|(name, _)| name == "boundary").map(|(_, value)| value))
        };
        for (text, value) in [
            ("; boundary=\"//\"", "//"),
            ("; BOUNDARY = BOUNDARY;", "BOUNDARY"),
            (";charset=utf-8;boundary=a-b_c.d+e", "a-b_c.d+e"),
            ("; boundary=\"a\\\"b\"", "a\"b"),
        ] {
            assert_eq!(boundary(text).unwrap().as_deref(), Some(value), "{text}");
        }
        for text in ["; boundary=//", "; boundary===", "; boundary=a/b", "; boundary=\"//", "; boundary", "; a=b c"] {
            assert!(boundary(text).is_err(), "{text}");
        }
        assert!(boundary("; boundary=a; boundary=b").unwrap_err().contains("twice"));
    }

    #[test]
    fn a_boundary_that_no_line_has_leaves_nothing() {
        for text in [
            ARCHIVE.replace("boundary=\"//\"", "boundary=\"BOUNDARY\""),
            ARCHIVE.replace("\n--//", "\n  --//"),
            "Content-Type: multipart/mixed; boundary=B\n\nno part\n".to_owned(),
        ] {
            let archive = read(&text);
            assert_eq!((archive.entries.len(), archive.fault), (0, None), "{text}");
            let (span, boundary) = archive.unused_boundary.unwrap();
            assert!(span.of(&text).starts_with("Content-Type: multipart") && !boundary.is_empty());
        }
        assert_eq!(read(ARCHIVE).unused_boundary, None);
    }

    #[test]
    fn what_go_refuses_is_a_fault() {
        let fault = |text: &str| read(text).fault.map(|(_, message)| message);
        assert!(fault(&format!("\n{ARCHIVE}")).unwrap().contains("very first line"));
        assert!(fault(&ARCHIVE.replace("; boundary=\"//\"", "")).unwrap().contains("boundary"));
        assert!(fault(&ARCHIVE.replace("--//--", "")).unwrap().contains("not closed"));
        assert!(fault(&ARCHIVE.replace("--//--", "--// x")).unwrap().contains("neither a delimiter"));
        assert_eq!(fault("Content-Type: multipart/mixed; boundary=B\n\nno part\n"), None);
        assert!(fault(&ARCHIVE.replace("us-ascii\"\n\n", "us-ascii\"\n")).unwrap().contains("header of a MIME part"));
        assert!(fault("Content-Type: text/x-shellscript\n\n#!/bin/bash\n").unwrap().contains("multipart"));
    }
}
