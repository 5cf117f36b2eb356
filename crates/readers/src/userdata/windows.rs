//! User data of Windows: the tags around its script, what ends it early, and the arguments of `Start-EKSBootstrap.ps1`,
//! whose quoting is not proven.

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

const TAG: &str = "<powershell>";

/// The tag with which the script begins, at the beginning of a line.
pub fn tag(text: &str, span: Span) -> Option<Span> {
    let mut at = span.start;
    for line in span.of(text).to_ascii_lowercase().split_inclusive('\n') {
        let bare = line.trim_start();
        if bare.starts_with(TAG) {
            let start = at + line.len() - bare.len();
            return Some(Span::new(start, start + TAG.len()));
        }
        at += line.len();
    }
    None
}

/// The script between the tags.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/user-data.html#user-data-yaml-scripts, "Syntax for Windows
// PowerShell scripts"
pub fn between_tags(text: &str, span: Span) -> Option<Span> {
    let start = tag(text, span)?.end;
    let length = text.get(start..span.end)?.to_ascii_lowercase().find("</powershell>")?;
    Some(Span::new(start, start + length))
}

/// Whether a script calls the program that joins the cluster.
pub fn calls_bootstrap(script: &str) -> bool {
    script.to_ascii_lowercase().contains("start-eksbootstrap")
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

    #[test]
    fn a_script_stands_between_its_tags() {
        let text = "<Powershell>\nWrite-Host hi\n</powershell>\n<persist>true</persist>\n";
        let whole = Span::new(0, text.len());
        assert_eq!(between_tags(text, whole).unwrap().of(text), "\nWrite-Host hi\n");
        for text in ["Write-Host '<powershell>'\n</powershell>", "<powershell>\nWrite-Host hi\n"] {
            assert_eq!(between_tags(text, Span::new(0, text.len())), None, "{text}");
        }
    }
}
