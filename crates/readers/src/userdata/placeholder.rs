//! Placeholders: what a template engine fills in before a machine reads the text.
//!
//! Nobody knows which text a placeholder will become. A mistake in text with a placeholder is a finding only if the
//! placeholder cannot change it.

use super::{Defect, DefectKind, UserData};
use crate::source_text::Span;

/// Words that begin a directive of Terraform, Helm or Jinja: lines come and go with it.
const DIRECTIVES: [&str; 12] =
    ["if", "for", "else", "elif", "endif", "endfor", "range", "with", "end", "include", "template", "define"];

/// Whether a part of this text will be filled in: `${x}`, `{{ x }}`, `%{ if x }`, `<NAME>`, `__NAME__`.
pub fn has_placeholder(text: &str) -> bool {
    text.contains("${")
        || text.contains("{{")
        || is_named(text)
        || is_between_underscores(text)
        || text.lines().any(|line| starts(line).is_some())
}

/// Whether the text begins with one.
pub(super) fn begins(text: &str) -> bool {
    let text = text.trim_start();
    ["${", "{{"].iter().any(|mark| text.starts_with(mark)) || text.lines().next().and_then(starts) == Some(0)
}

/// `<CLUSTER_NAME>`, as people mark a value that the reader has to fill in.
fn is_named(text: &str) -> bool {
    text.match_indices('<').any(|(at, _)| {
        let Some((name, _)) = text.get(at + 1..).and_then(|rest| rest.split_once('>')) else { return false };
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ');
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.ends_with(|c: char| c.is_ascii_alphanumeric())
            && name.chars().all(is_word)
    })
}

/// `__CPU_LIMIT__`, as scripts with sed have them.
fn is_between_underscores(text: &str) -> bool {
    let is_capital = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    text.split_once("__").is_some_and(|(_, rest)| {
        let word = rest.split(|c| !is_capital(c)).next().unwrap_or_default();
        word.ends_with("__") && word.starts_with(|c: char| c.is_ascii_uppercase())
    })
}

/// The byte of a line at which a directive begins: `%{ if x ~}` anywhere, `{{- if x }}` and `{% if x %}` at the
/// beginning.
fn starts(line: &str) -> Option<usize> {
    let is_directive = |rest: &str| {
        let rest = rest.trim_start_matches(['-', '~', '+', ' ']);
        let word = rest.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
        DIRECTIVES.contains(&word)
    };
    let indent = line.len() - line.trim_start().len();
    let begins = |mark: &str| line.trim_start().strip_prefix(mark).filter(|rest| is_directive(rest)).map(|_| indent);
    let of_terraform = || {
        line.match_indices("%{")
            .find(|(at, mark)| line.get(at + mark.len()..).is_some_and(is_directive))
            .map(|(at, _)| at)
    };
    begins("{{").or_else(|| begins("{%")).or_else(of_terraform)
}

/// The first directive of a text.
fn directive(text: &str) -> Option<Span> {
    let mut start = 0;
    text.split_inclusive('\n').find_map(|line| {
        let at = start + starts(line).unwrap_or_default();
        start += line.len();
        starts(line).map(|_| Span::new(at, at + line.trim().len().max(1)))
    })
}

/// Takes out each finding that a placeholder of the text may change.
pub(super) fn settle(text: &str, data: &mut UserData) {
    if let Some(span) = directive(text) {
        let message = "this is a template; render it first, because this directive adds and removes lines".to_owned();
        data.defects = vec![Defect { kind: DefectKind::Template, span, message }];
        for argument in &mut data.arguments {
            (argument.exact, argument.settled) = (false, false);
        }
        for call in &mut data.bootstrap_calls {
            (call.exact, call.extra_args_exact) = (false, false);
        }
        data.unread_from.get_or_insert(Span::new(0, 0));
        return;
    }
    let mut unread = None;
    data.defects.retain_mut(|defect| match changes(text, defect) {
        Changes::Nothing => true,
        Changes::Value => false,
        Changes::Reading => {
            unread.get_or_insert(defect.span);
            defect.kind = DefectKind::Template;
            "this is a template; render it first, because nodewhy cannot read it before"
                .clone_into(&mut defect.message);
            true
        }
    });
    data.unread_from = data.unread_from.or(unread);
}

/// The part of a defect that a placeholder may change.
enum Changes {
    Nothing,
    /// The value that is found wrong.
    Value,
    /// Whether the text can be read at all.
    Reading,
}

fn changes(text: &str, defect: &Defect) -> Changes {
    use DefectKind as D;
    match defect.kind {
        D::MimeUnreadable
        | D::NodeConfigUnreachable
        | D::NodeConfigUnreadable
        | D::MisreadAsShell
        | D::BodyInHeader
        | D::TomlInvalid
            if has_placeholder(lines_around(text, defect.span)) =>
        {
            Changes::Reading
        }
        D::NodeConfigWrongType | D::TomlWrongType | D::SettingRefused | D::InvalidField | D::InvalidFlagValue => {
            let written = defect.span.of(text);
            // In quotes it stays a string, whatever it holds.
            if has_placeholder(written) && !written.starts_with(['"', '\'']) {
                Changes::Value
            } else {
                Changes::Nothing
            }
        }
        D::ContainerdConfigUnreadable
        | D::ContainerdConfigRefused
        | D::BootImageUnreachable
        | D::ContainerImageUnreachable
        | D::KernelParameterRefused
        | D::UnknownSetting
        | D::UnfamiliarSetting
        | D::NodeConfigWrongKind
        | D::MisreadAsNodeConfig
        | D::DocumentIgnored
            if has_placeholder(defect.span.of(text)) =>
        {
            Changes::Value
        }
        _ => Changes::Nothing,
    }
}

/// The lines in which a span lies, and the one before them: parsers stop behind what they do not understand.
fn lines_around(text: &str, span: Span) -> &str {
    let before = text.get(..span.start.min(text.len())).unwrap_or_default();
    let line = before.rfind('\n').unwrap_or_default();
    let start = before.get(..line).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
    let rest = text.get(span.end.min(text.len())..).unwrap_or_default();
    let end = text.len() - rest.len() + rest.find('\n').unwrap_or(rest.len());
    text.get(start..end.max(start)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_told_from_what_only_looks_like_them() {
        for text in [
            "a=${b}",
            "x {{ .Values.y }}",
            "<CLUSTER_NAME>",
            "__CPU_LIMIT__",
            "<your role>",
            "%{ if x ~}",
            "a%{ endfor ~}",
        ] {
            assert!(has_placeholder(text), "{text}");
        }
        for text in [
            "cat <in >out",
            "a < b > c",
            "%{http_code}",
            "$HOME",
            "$(date)",
            "<<EOF",
            "memory.available<5%",
            "__name__",
            "a__B",
        ] {
            assert!(!has_placeholder(text), "{text}");
        }
        for text in ["${x}", "\n  {{- if x }}", "%{ if x }"] {
            assert!(begins(text), "{text}");
        }
        assert!(!begins("#!/bin/bash\n${x}"));
    }

    #[test]
    fn a_directive_is_told_from_formats() {
        assert_eq!(directive("a\n  %{ if x ~}\n").map(|span| span.start), Some(4));
        assert!(directive("{{ end }}\n").is_some() && directive("{% for a in b %}").is_some());
        for text in
            ["docker ps --format '{{ .ID }}'\n", "curl -w '%{http_code}'\n", "{{ .Values.x }}\n", "x {{ if y }}"]
        {
            assert_eq!(directive(text), None, "{text}");
        }
    }
}
