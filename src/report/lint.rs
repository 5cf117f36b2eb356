//! How findings of `nodewhy lint` are shown: as a compiler does, as JSON, SARIF and JUnit, and as annotations of a
//! GitHub workflow.

mod junit;
mod sarif;
mod upgrade;

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
/// of kinds that no rule reads. SARIF and JUnit have findings only, for all in them has a place in a file.
pub fn render(report: &Report, unknown: usize, format: LintFormat, color: bool) -> Result<String, Error> {
    let findings = &report.findings;
    let upgrade = report.upgrade.as_ref();
    Ok(match format {
        LintFormat::Text => {
            let parts = findings.iter().map(|finding| text(finding, color));
            let answer = upgrade.map(|upgrade| upgrade::text(report, upgrade, color));
            parts.chain(answer).collect::<Vec<_>>().join("\n")
        }
        LintFormat::Json => {
            let mut list = json!({"apiVersion": "nodewhy.dev/v1alpha1", "kind": "LintFindingList", "checked": report.looked_at, "notKnown": unknown, "items": findings});
            if let Some(upgrade) = upgrade {
                list["upgrade"] = upgrade::json(report, upgrade);
            }
            super::json(&list)? + "\n"
        }
        LintFormat::Sarif => super::json(&sarif::log(findings))? + "\n",
        LintFormat::Junit => junit::report(findings)?,
        LintFormat::Github => findings.iter().map(annotation).chain(upgrade.map(upgrade::annotations)).collect(),
    })
}

const fn level(level: Level) -> &'static str {
    match level {
        Level::Error => "error",
        Level::Warning => "warning",
    }
}

fn text(finding: &LintFinding, color: bool) -> String {
    let LintFinding { line, exact, cause, blame, .. } = finding;
    let mut out = String::new();
    let head = format!("{}[{cause}]", level(finding.level));
    let code = if finding.level == Level::Error { "1;31" } else { "1;33" };
    let shown = if color { format!("\x1b[{code}m{head}\x1b[0m") } else { head.clone() };
    let message = paragraph(&format!("{}[{cause}]: ", level(finding.level)), 2, &finding.message);
    out.push_str(&message.replacen(&head, &shown, 1));
    let _ = writeln!(out, "{}", in_a_line(&format!("  --> {}", place(finding))));
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

/// `class.yaml:6:3 (EC2NodeClass/batch spec.userData)`, or `EC2NodeClass/batch spec.userData:6:3` of a cluster.
fn place(finding: &LintFinding) -> String {
    let LintFinding { file, line, column, exact, blame, .. } = finding;
    if is_of_cluster(finding) {
        return in_object(finding);
    }
    let within = if *exact { None } else { blame.line.zip(blame.column) };
    let within = within.map_or_else(String::new, |(line, column)| format!(", its line {line}, column {column}"));
    let field = blame.field.as_deref().map_or_else(String::new, |field| format!(" ({} {field}{within})", blame.object));
    format!("{file}:{line}:{column}{field}")
}

const fn is_of_cluster(finding: &LintFinding) -> bool {
    finding.file.is_empty()
}

/// The object and the field, with line and column if the field holds a text.
pub(super) fn in_object(finding: &LintFinding) -> String {
    let LintFinding { line, column, blame, .. } = finding;
    let field = blame.field.as_deref().map_or_else(String::new, |field| format!(" {field}"));
    let within = if *line == 0 { String::new() } else { format!(":{line}:{column}") };
    format!("{}{field}{within}", blame.object)
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
    let (head, title) = (level(finding.level), property(cause));
    if is_of_cluster(finding) {
        let message = data(&format!("{}: {message}{fix}", in_object(finding)));
        return format!("::{head} title={title}::{message}\n");
    }
    let message = data(&format!("{message}{fix}"));
    format!("::{head} file={},line={line},col={column},title={title}::{message}\n", property(file))
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
    use engine::api::Blame;

    /// A finding about the third line of the user data of a class, in this file.
    fn finding(file: &str) -> LintFinding {
        LintFinding {
            file: file.to_owned(),
            line: 3,
            column: 5,
            exact: true,
            level: Level::Error,
            cause: "Cause".to_owned(),
            message: "It fails.".to_owned(),
            fix: None,
            documentation: None,
            blame: Blame::object("karpenter.k8s.aws/v1", "EC2NodeClass", "batch").field("spec.userData"),
        }
    }

    #[test]
    fn a_finding_of_a_cluster_names_the_object_in_place_of_a_file() {
        let of_file = finding("class.yaml");
        assert_eq!(place(&of_file), "class.yaml:3:5 (EC2NodeClass/batch spec.userData)");
        assert_eq!(annotation(&of_file), "::error file=class.yaml,line=3,col=5,title=Cause::It fails.\n");
        let mut of_cluster = finding("");
        assert_eq!(place(&of_cluster), "EC2NodeClass/batch spec.userData:3:5");
        let annotated = "::error title=Cause::EC2NodeClass/batch spec.userData:3:5: It fails.\n";
        assert_eq!(annotation(&of_cluster), annotated);
        (of_cluster.line, of_cluster.column) = (0, 0);
        assert_eq!(place(&of_cluster), "EC2NodeClass/batch spec.userData");
        let json = serde_json::to_value(&of_cluster).unwrap();
        assert!(["file", "line", "column"].iter().all(|key| json.get(key).is_none()), "{json}");
    }

    #[test]
    fn what_would_end_a_workflow_command_is_escaped() {
        assert_eq!(data("50% of\r\na: b, c"), "50%25 of%0D%0Aa: b, c");
        assert_eq!(property("a,b:c%\n"), "a%2Cb%3Ac%25%0A");
    }
}
