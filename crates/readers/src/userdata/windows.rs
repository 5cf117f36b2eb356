//! User data of Windows: the tags around its script, what ends it early, and the arguments of `Start-EKSBootstrap.ps1`,
//! whose quoting is not proven.

use super::powershell;
use super::traced::Traced;
use crate::source_text::Span;

const EXTRA_ARGS: &str = "-kubeletextraargs";

/// The value of each `-KubeletExtraArgs` in `span`, without its quotes.
pub fn extra_args(text: &str, span: Span) -> Vec<Traced> {
    let lower = span.of(text).to_ascii_lowercase();
    let mut values = Vec::new();
    let mut read = span.start;
    for (at, _) in lower.match_indices(EXTRA_ARGS) {
        // The name may be in a value. No value is read twice.
        if span.start + at < read {
            continue;
        }
        let after = at + EXTRA_ARGS.len();
        let rest = span.of(text).get(after..).unwrap_or_default();
        let value = rest.trim_start_matches([' ', '\t', ':', '`']);
        let start = span.start + after + (rest.len() - value.len());
        let value = match value.chars().next() {
            Some(quote @ ('\'' | '"')) => value.get(1..).and_then(|v| v.split(quote).next()).map(|v| (v, start + 1)),
            Some(_) => value.split([' ', '\t', '\r', '\n']).next().map(|v| (v, start)),
            None => None,
        };
        if let Some((value, start)) = value {
            values.push(Traced::written_at(value, start));
            read = start + value.len();
        }
    }
    values
}

/// An option as bootstrap.sh takes it, in a call of `Start-EKSBootstrap.ps1`: for PowerShell it is an argument, not the
/// name of a parameter, for those have one dash.
// PowerShell 7.5 docs about_Parsing, about_Parameters; awslabs/amazon-eks-ami#348
pub fn linux_option(text: &str, span: Span) -> Option<Span> {
    let script = span.of(text);
    let commands = powershell::commands(script);
    let mut calls = commands.iter().filter(|words| words.iter().any(|word| is_mandatory(word.of(script))));
    calls.find_map(|words| option_in(script, words)).map(|option| option.shifted(span.start))
}

/// Whether a word is the parameter that each call of `Start-EKSBootstrap.ps1` needs.
fn is_mandatory(word: &str) -> bool {
    const NAME: &str = "-EKSClusterName";
    let (name, value) = word.split_at_checked(NAME.len()).unwrap_or_default();
    name.eq_ignore_ascii_case(NAME) && (value.is_empty() || value.starts_with(':'))
}

/// The first word of a command with two dashes that is no parameter's value.
fn option_in(script: &str, words: &[Span]) -> Option<Span> {
    let mut is_value = false;
    for span in words {
        let word = span.of(script);
        if !is_value && word.strip_prefix("--").is_some_and(begins_with_letter) {
            let end = word.find('=').unwrap_or(word.len());
            return Some(Span::new(span.start, span.start + end));
        }
        is_value = takes_value(word);
    }
    None
}

fn begins_with_letter(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// Whether a word is a parameter without its value. It looks no further than the name, for the word may hold commands
/// in brackets.
fn takes_value(word: &str) -> bool {
    let name = word.strip_prefix('-').filter(|name| begins_with_letter(name));
    name.is_some_and(|name| !name.trim_start_matches(|c: char| c.is_ascii_alphanumeric()).starts_with(':'))
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

/// Whether of these two parts of a script only what is behind joins the node: Karpenter's own lines, if they follow, or
/// the call of an own script.
pub fn joins_behind(before: &str, behind: &str, karpenter_follows: bool) -> bool {
    let calls = |script: &str| script.to_ascii_lowercase().contains("-eksclustername");
    !calls(before) && (karpenter_follows || calls(behind))
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

    /// If the rest were read again for each name, these would take minutes and gigabytes.
    #[test]
    fn a_mebibyte_of_names_is_read_to_its_end() {
        for name in ["-KubeletExtraArgs", "-KubeletExtraArgs'", "-KubeletExtraArgs "] {
            let text = name.repeat((1 << 20) / name.len());
            let values = extra_args(&text, Span::new(0, text.len()));
            assert!(values.iter().map(Traced::len).sum::<usize>() <= text.len(), "{name}");
        }
        for name in ["-EKSClusterName ", "-EKSClusterName `\n", "-EKSClusterName -a{"] {
            assert_eq!(linux(&name.repeat((1 << 20) / name.len())), None, "{name}");
        }
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
            " -APIServerEndpoint (aws eks describe-cluster --query cluster.endpoint)",
            " <# --kubelet-extra-args #>",
            " -ContainerRuntime a, --b",
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
    fn what_joins_the_node_is_behind() {
        let call = "& $f -EKSClusterName shop";
        assert!(joins_behind("$f = 'x'", "New-Itm", true) && joins_behind("$f = 'x'", call, false));
        assert!(!joins_behind("$f = 'x'", "New-Itm", false) && !joins_behind(call, "New-Itm", true));
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
