//! PowerShell user data: only a call of `Start-EKSBootstrap.ps1` is looked for, and its quoting is not proven.

use super::traced::Traced;
use crate::source_text::Span;

const EXTRA_ARGS: &str = "-kubeletextraargs";

/// The value of each `-KubeletExtraArgs` in `span`, without its quotes.
pub fn extra_args(text: &str, span: Span) -> Vec<Traced> {
    let lower = span.of(text).to_ascii_lowercase();
    let mut values = Vec::new();
    for (at, _) in lower.match_indices(EXTRA_ARGS) {
        let after = at + EXTRA_ARGS.len();
        let rest = span.of(text).get(after..).unwrap_or_default();
        let value = rest.trim_start_matches([' ', '\t', ':', '`']);
        let start = span.start + after + (rest.len() - value.len());
        let value = match value.chars().next() {
            Some(quote @ ('\'' | '"')) => value.get(1..).and_then(|v| v.split(quote).next()).map(|v| (v, start + 1)),
            Some(_) => value.split([' ', '\t', '\r', '\n']).next().map(|v| (v, start)),
            None => None,
        };
        values.extend(value.map(|(value, start)| Traced::written_at(value, start)));
    }
    values
}

/// A statement at the beginning of a line that ends the script before Karpenter's own lines, which stand behind the
/// user's.
// karpenter-provider-aws v1.14.1 pkg/providers/amifamily/bootstrap/windows.go
pub fn ends_at(text: &str, span: Span) -> Option<Span> {
    let mut at = span.start;
    for line in span.of(text).split_inclusive('\n') {
        let word = line.split([' ', '\t', '\r', '\n', ';']).next().unwrap_or_default();
        if ["exit", "throw", "return"].iter().any(|end| word.eq_ignore_ascii_case(end)) {
            return Some(Span::new(at, at + word.len()));
        }
        at += line.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extra_arguments_are_found() {
        let text = "& $f -EKSClusterName prod -KubeletExtraArgs '--node-labels=a=b --v=2' -X";
        let values = extra_args(text, Span::new(0, text.len()));
        assert_eq!(values[0].as_str(), "--node-labels=a=b --v=2");
        assert_eq!(values[0].span().of(text), "--node-labels=a=b --v=2");
    }

    #[test]
    fn an_exit_in_the_first_column_ends_the_script() {
        let text = "Write-Host hi\nif ($x) {\n  exit 1\n}\nExit 0\n";
        assert_eq!(ends_at(text, Span::new(0, text.len())).unwrap().of(text), "Exit");
    }
}
