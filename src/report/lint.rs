//! How findings of `nodewhy lint` are shown: as a compiler does, as JSON, SARIF and JUnit, and as annotations of a
//! GitHub workflow.

mod junit;
mod sarif;

use super::WIDTH;
use super::snippet;
use super::text::wrap;
use super::visible::{in_a_line, visible};
use clap::ValueEnum;
use engine::lint::{Level, LintFinding, Report};
use serde_json::json;
use std::fmt::Write;

/// An output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum LintFormat {
    /// For people, like a compiler's messages.
    #[default]
    Text,
    /// A LintFindingList.
    Json,
    /// Annotations for a GitHub workflow.
    Github,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// JUnit XML: each finding is a failed test.
    Junit,
}

/// What could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Junit(#[from] quick_junit::SerializeError),
}

/// The findings in the given format; nothing, but for JSON, SARIF and JUnit, where there is none. `unknown` objects are
/// of kinds that no rule reads.
pub fn render(report: &Report, unknown: usize, format: LintFormat, color: bool) -> Result<String, Error> {
    let findings = &report.findings;
    Ok(match format {
        LintFormat::Text => findings.iter().map(|finding| text(finding, color)).collect::<Vec<_>>().join("\n"),
        LintFormat::Json => {
            let list = json!({"apiVersion": "nodewhy.dev/v1alpha1", "kind": "LintFindingList", "checked": report.looked_at, "notKnown": unknown, "items": findings});
            super::json(&list)? + "\n"
        }
        LintFormat::Sarif => super::json(&sarif::log(findings))? + "\n",
        LintFormat::Junit => junit::report(findings)?,
        LintFormat::Github => findings.iter().map(annotation).collect(),
    })
}

const fn level(level: Level) -> &'static str {
    match level {
        Level::Error => "error",
        Level::Warning => "warning",
    }
}

fn text(finding: &LintFinding, color: bool) -> String {
    let LintFinding { file, line, column, exact, cause, blame, .. } = finding;
    let mut out = String::new();
    let head = format!("{}[{cause}]", level(finding.level));
    let code = if finding.level == Level::Error { "1;31" } else { "1;33" };
    let shown = if color { format!("\x1b[{code}m{head}\x1b[0m") } else { head.clone() };
    let message = paragraph(&format!("{}[{cause}]: ", level(finding.level)), 2, &finding.message);
    out.push_str(&message.replacen(&head, &shown, 1));
    let within = if *exact { None } else { blame.line.zip(blame.column) };
    let within = within.map_or_else(String::new, |(line, column)| format!(", its line {line}, column {column}"));
    let field = blame.field.as_deref().map_or_else(String::new, |field| format!(" ({} {field}{within})", blame.object));
    let _ = writeln!(out, "{}", in_a_line(&format!("  --> {file}:{line}:{column}{field}")));
    let number = if *exact { Some(*line) } else { blame.line.and_then(|line| usize::try_from(line).ok()) };
    if let (Some(excerpt), Some(number)) = (&blame.excerpt, number) {
        out.push_str(&snippet::render(blame, excerpt, number, color, WIDTH));
    }
    if let Some(fix) = &finding.fix {
        out.push_str(&paragraph("  fix: ", 7, fix));
    }
    if finding.documentation.is_some() {
        let _ = writeln!(out, "  more: nodewhy explain {cause}");
    }
    out
}

/// A wrapped text behind its first words, its other lines that far in.
fn paragraph(first: &str, hang: usize, text: &str) -> String {
    // Letters hold the place of the first words while the text is wrapped.
    let held = first.chars().count();
    let lines = wrap(&format!("{}{text}", "x".repeat(held)), WIDTH - hang);
    lines.into_iter().enumerate().fold(String::new(), |mut out, (at, line)| {
        let _ = if at == 0 {
            writeln!(out, "{first}{}", line.chars().skip(held).collect::<String>())
        } else {
            writeln!(out, "{:hang$}{line}", "")
        };
        out
    })
}

/// actions/toolkit `packages/core/src/command.ts`: `::error file=…,line=…,col=…,title=…::message`.
fn annotation(finding: &LintFinding) -> String {
    let LintFinding { file, line, column, cause, message, fix, .. } = finding;
    let fix = fix.as_deref().map_or_else(String::new, |fix| format!("\n{fix}"));
    format!(
        "::{} file={},line={line},col={column},title={}::{}\n",
        level(finding.level),
        property(file),
        property(cause),
        data(&format!("{message}{fix}"))
    )
}

/// command.ts `escapeData`.
fn data(text: &str) -> String {
    visible(&text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A"))
}

/// command.ts `escapeProperty`.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_end_a_workflow_command_is_escaped() {
        assert_eq!(data("50% of\r\na: b, c"), "50%25 of%0D%0Aa: b, c");
        assert_eq!(property("a,b:c%\n"), "a%2Cb%3Ac%25%0A");
    }
}
