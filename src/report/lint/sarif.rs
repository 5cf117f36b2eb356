//! Findings of `nodewhy lint` as SARIF 2.1.0, as GitHub's code scanning takes it.
//!
//! <https://docs.github.com/en/code-security/code-scanning/integrating-with-code-scanning/sarif-support-for-code-scanning>

use super::{in_object, is_of_cluster, level};
use engine::lint::{self, LintFinding};
use engine::rules;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;

/// One run, with a rule for each cause that was found.
pub fn log(findings: &[LintFinding]) -> Value {
    let causes: BTreeSet<&str> = findings.iter().map(|finding| finding.cause.as_str()).collect();
    let index = |cause: &str| causes.iter().position(|known| *known == cause);
    let results: Vec<Value> = findings
        .iter()
        .map(|finding| {
            let fix = finding.fix.as_deref().map_or_else(String::new, |fix| format!("\n{fix}"));
            json!({
                "ruleId": finding.cause,
                "ruleIndex": index(&finding.cause),
                "level": level(finding.level),
                "message": {"text": format!("{}{fix}", finding.message)},
                "locations": [location(finding)],
            })
        })
        .collect();
    let driver = json!({
        "name": "nodewhy",
        "version": env!("CARGO_PKG_VERSION"),
        "informationUri": env!("CARGO_PKG_REPOSITORY"),
        "rules": causes.iter().map(|cause| rule(cause)).collect::<Vec<_>>(),
    });
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}],
    })
}

/// The place in a file, or the object of a cluster.
fn location(finding: &LintFinding) -> Value {
    if is_of_cluster(finding) {
        return json!({"logicalLocations": [{"fullyQualifiedName": in_object(finding)}]});
    }
    json!({"physicalLocation": {
        "artifactLocation": {"uri": uri(&finding.file)},
        "region": {"startLine": finding.line, "startColumn": finding.column},
    }})
}

fn rule(cause: &str) -> Value {
    let Some(rule) = rules::by_cause(cause) else {
        let text = json!({"text": cause});
        let help = lint::page::page(cause).map_or_else(|| text.clone(), |page| json!({"text": page, "markdown": page}));
        let uri = lint::page::documentation(cause);
        return json!({"id": cause, "shortDescription": text, "fullDescription": text, "help": help, "helpUri": uri});
    };
    let page = rule.page.trim_end();
    let summary = json!({"text": rule.summary});
    json!({
        "id": cause,
        "shortDescription": summary,
        "fullDescription": summary,
        "help": {"text": page, "markdown": page},
        "helpUri": rules::documentation(cause),
    })
}

/// A path as a URI reference.
fn uri(path: &str) -> String {
    path.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_becomes_a_uri() {
        assert_eq!(uri("karpenter/my class.yaml"), "karpenter/my%20class.yaml");
        assert_eq!(uri("a:b%\u{fc}"), "a%3Ab%25%C3%BC");
    }
}
