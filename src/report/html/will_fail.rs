//! The mistakes of the configuration that no node has met yet.

use crate::report::{judged, lint};
use engine::lint::{Level, LintFinding};
use maud::{Markup, html};

/// Rows that the page shows.
const MOST: usize = 200;

/// A row for each finding, errors first.
pub(super) fn section(findings: &[&LintFinding]) -> Markup {
    let mut findings = findings.to_vec();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.level));
    let more = findings.len().saturating_sub(MOST);
    html! {
        @if !findings.is_empty() {
            section.card {
                h2 { "Will fail" }
                p {
                    "These mistakes will keep new nodes from joining, or may do so. No node has failed because of them "
                    "as far as nodewhy sees."
                }
                div.wide tabindex="0" role="group" aria-label="Mistakes of the configuration" {
                    table {
                        thead {
                            tr {
                                @for name in ["Place", "New nodes", "Finding", "What is wrong", "Fix"] {
                                    th scope="col" { (name) }
                                }
                            }
                        }
                        tbody {
                            @for finding in findings.iter().take(MOST) { (row(finding)) }
                        }
                    }
                }
                @if more > 0 {
                    p { (judged::counted_as(more, "more finding")) " not shown: run " code { "nodewhy lint" } "." }
                }
            }
        }
    }
}

fn row(finding: &LintFinding) -> Markup {
    html! {
        tr {
            th scope="row" { (lint::in_object(finding)) }
            td { @if finding.level == Level::Error { "will fail" } @else { "may fail" } }
            td {
                @if let Some(page) = &finding.documentation {
                    a href=(page) rel="noreferrer" { (finding.cause) }
                } @else {
                    (finding.cause)
                }
            }
            td.text { (finding.message) }
            td.text { @if let Some(fix) = &finding.fix { (fix) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST, section};
    use engine::api::Blame;
    use engine::lint::{Level, LintFinding};

    fn finding(level: Level, name: &str) -> LintFinding {
        LintFinding {
            file: String::new(),
            line: 6,
            column: 9,
            exact: true,
            level,
            cause: "KubeletRefusesLabels".to_owned(),
            message: "<b>It fails.</b>".to_owned(),
            fix: Some("Use another prefix.".to_owned()),
            documentation: Some("https://example.com/page".to_owned()),
            blame: Blame::object("karpenter.k8s.aws/v1", "EC2NodeClass", name).field("spec.userData"),
        }
    }

    #[test]
    fn a_finding_is_a_row_and_its_text_stays_text() {
        let (warning, error) = (finding(Level::Warning, "spot"), finding(Level::Error, "batch"));
        let page = section(&[&warning, &error]).into_string();
        assert!(page.contains("EC2NodeClass/batch spec.userData:6:9") && !page.contains("<b>"), "{page}");
        let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text} is not in {page}"));
        assert!(place("will fail</td>") < place("may fail</td>"), "errors come first: {page}");
    }

    #[test]
    fn there_is_no_section_without_findings_and_none_without_end() {
        assert_eq!(section(&[]).into_string(), "");
        let all: Vec<_> = (0..MOST + 7).map(|n| finding(Level::Error, &format!("class-{n}"))).collect();
        let page = section(&all.iter().collect::<Vec<_>>()).into_string();
        assert_eq!(page.matches("<tr>").count(), MOST + 1);
        assert!(page.contains("7 more findings not shown"), "{page}");
    }
}
