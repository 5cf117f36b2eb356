//! User data of Windows: the tags around its script, what ends it early, and the arguments of `Start-EKSBootstrap.ps1`,
//! whose quoting is not proven.

use super::traced::Traced;
use crate::source_text::Span;
use std::ops::Range;

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

/// An option as bootstrap.sh takes it, in a call of `Start-EKSBootstrap.ps1`: for PowerShell it is an argument, not the
/// name of a parameter, for those have one dash.
// PowerShell 7.5 docs about_Parsing, about_Parameters; awslabs/amazon-eks-ami#348
pub fn linux_option(text: &str, span: Span) -> Option<Span> {
    const MANDATORY: &str = "-eksclustername";
    let script = span.of(text);
    let lower = script.to_ascii_lowercase();
    lower.match_indices(MANDATORY).find_map(|(at, _)| {
        let begin = command_begin(script, at);
        let command = script.get(begin..)?;
        let option = option_in(command)?;
        let start = span.start + begin;
        Some(Span::new(start + option.start, start + option.end))
    })
}

/// Where the command begins that is at this place: a backtick at the end of a line takes the next one along.
fn command_begin(script: &str, at: usize) -> usize {
    let mut begin = at;
    loop {
        let before = script.get(..begin).unwrap_or_default();
        let Some(newline) = before.rfind('\n') else { return 0 };
        let line_before = before.get(..newline).unwrap_or_default();
        if !line_before.trim_end_matches('\r').ends_with('`') {
            return newline + 1;
        }
        begin = newline;
    }
}

/// The first word of a command with two dashes that is no parameter's value.
fn option_in(command: &str) -> Option<Range<usize>> {
    let mut takes_value = false;
    for range in words(command) {
        let word = command.get(range.clone()).unwrap_or_default();
        if word.starts_with('#') {
            return None;
        }
        let begins_with_letter = |name: &str| name.starts_with(|c: char| c.is_ascii_alphabetic());
        if !takes_value && word.strip_prefix("--").is_some_and(begins_with_letter) {
            let end = word.find('=').unwrap_or(word.len());
            return Some(range.start..range.start + end);
        }
        takes_value = word.strip_prefix('-').is_some_and(begins_with_letter) && !word.contains(':');
    }
    None
}

/// The words of the first command, with their quotes.
fn words(command: &str) -> Vec<Range<usize>> {
    let mut words = Vec::new();
    let mut begin: Option<usize> = None;
    let mut quote: Option<char> = None;
    let mut is_escaped = false;
    let mut end = command.len();
    for (at, c) in command.char_indices() {
        if is_escaped {
            // A line may end in both.
            is_escaped = c == '\r';
            continue;
        }
        match (quote, c) {
            (None | Some('"'), '`') => is_escaped = true,
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\n' | ';' | '|') => {
                end = at;
                break;
            }
            (None, _) if c.is_whitespace() => words.extend(begin.take().map(|begin| begin..at)),
            (None, _) => {
                begin.get_or_insert(at);
                quote = ['\'', '"'].contains(&c).then_some(c);
            }
        }
    }
    words.extend(begin.map(|begin| begin..end));
    words
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

    fn linux(text: &str) -> Option<&str> {
        linux_option(text, Span::new(0, text.len())).map(|span| span.of(text))
    }

    #[test]
    fn an_option_of_bootstrap_sh_is_found() {
        let call = "[string]$f = 'x'\n& $f -EKSClusterName \"shop a\" -DNSClusterIP '1.2.3.4'";
        assert_eq!(linux(&format!("{call} --kubelet-extra-args '--v=2'\n")), Some("--kubelet-extra-args"));
        assert_eq!(linux(&format!("{call} `\r\n  --kubelet-extra-args=x")), Some("--kubelet-extra-args"));
        assert_eq!(linux("& $f --b64-cluster-ca abc `\n -EKSClusterName shop"), Some("--b64-cluster-ca"));
    }

    #[test]
    fn two_dashes_of_the_kubelets_own_flags_are_no_option() {
        let call = "& $f -EKSClusterName shop";
        for rest in [
            " -KubeletExtraArgs '--node-labels=a=b --v=2'",
            " -KubeletExtraArgs \"--node-labels=`\"a`\" --v=2\"",
            " -KubeletExtraArgs --node-labels=a=b",
            " -KubeletExtraArgs:--v=2",
            "; tool --flag x",
            "\ntool --flag x",
            " # not --kubelet-extra-args",
        ] {
            assert_eq!(linux(&format!("{call}{rest}")), None, "{rest}");
        }
        assert_eq!(linux("# & $f -EKSClusterName shop --kubelet-extra-args x"), None);
        assert_eq!(linux("tool --cluster shop\n& $f -EKSClusterName shop"), None);
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
