//! `/etc/eks/bootstrap.sh` of Amazon Linux 2: its argument loop.

use super::shell::Word;
use super::traced::Traced;
use super::{Defect, DefectKind, Located};
use crate::source_text::Span;

/// One call of bootstrap.sh.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, and they occur together")]
pub struct BootstrapCall {
    pub span: Span,
    /// The first word that the loop does not know, whatever it is: the script's cluster name.
    pub cluster_name: Option<Located<String>>,
    /// The options the loop takes, in their order, each with its value.
    pub options: Vec<(String, Located<String>)>,
    /// Whether every word is certain.
    pub exact: bool,
    /// Whether the value of `--kubelet-extra-args` is certain, or that there is none, whatever the other words hold.
    pub extra_args_exact: bool,
    /// Whether the script gets past its arguments.
    pub completes: bool,
    /// Whether this call starts the kubelet, whatever else the script does.
    pub starts_kubelet: bool,
}

/// A call with the texts that are, or are not, the kubelet's extra arguments.
#[derive(Debug)]
pub(super) struct CallParts {
    pub call: BootstrapCall,
    pub extra_args: Option<Word>,
    /// Whether those are the extra arguments for certain, but for the expansions in them.
    pub settled: bool,
    /// Values of `--kubelet-extra-args` that a later one replaces.
    pub replaced: Vec<Word>,
    /// Values of `--kubelet-extra-args=…`, which the loop does not know.
    pub equals_forms: Vec<Traced>,
    /// Kubelet flags that are words of their own, outside the one value.
    pub loose: Vec<Traced>,
    pub defects: Vec<Defect>,
}

// amazon-eks-ami v20251112 templates/al2/runtime/bootstrap.sh
const OPTIONS: &[&str] = &[
    "--use-max-pods",
    "--b64-cluster-ca",
    "--apiserver-endpoint",
    "--kubelet-extra-args",
    "--enable-docker-bridge",
    "--aws-api-retry-attempts",
    "--docker-config-json",
    "--containerd-config-file",
    "--pause-container-account",
    "--pause-container-version",
    "--dns-cluster-ip",
    "--container-runtime",
    "--ip-family",
    "--service-ipv4-cidr",
    "--service-ipv6-cidr",
    "--enable-local-outpost",
    "--cluster-id",
    "--mount-bpf-fs",
    "--local-disks",
];

/// Whether the script takes this flag itself.
pub(super) fn is_option(flag: &str) -> bool {
    OPTIONS.contains(&flag)
}

const EXTRA_ARGS: &str = "--kubelet-extra-args";

/// Reads the words behind the script's name as its `while [[ $# -gt 0 ]]` loop does.
// amazon-eks-ami v20251112 templates/al2/runtime/bootstrap.sh
pub(super) fn read(arguments: &[Word], span: Span) -> CallParts {
    let exact = arguments.iter().all(|word| word.exact);
    let mut reading = CallParts {
        call: BootstrapCall {
            span,
            cluster_name: None,
            options: Vec::new(),
            exact,
            extra_args_exact: false,
            completes: true,
            starts_kubelet: false,
        },
        extra_args: None,
        settled: true,
        replaced: Vec::new(),
        equals_forms: Vec::new(),
        loose: Vec::new(),
        defects: Vec::new(),
    };
    let mut positional = Vec::new();
    let mut values_are_whole = true;
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        let text = word.text.as_str();
        if matches!(text, "-h" | "--help") {
            reading.call.completes = false;
            break;
        }
        if !OPTIONS.contains(&text) {
            // What falls apart may hold the option itself; one that comes later counts.
            reading.settled &= !word.vague;
            positional.push(word);
            continue;
        }
        let Some(value) = rest.next() else {
            let message = format!("bootstrap.sh exits here: {text} is its last word and has no value");
            reading.defect(DefectKind::OptionWithoutValue, word.text.span(), message);
            reading.call.completes = false;
            break;
        };
        if text == EXTRA_ARGS {
            reading.settled = values_are_whole;
            reading.replaced.extend(reading.extra_args.replace(value.clone()));
        }
        // One that is no word at all lets the option take the next.
        values_are_whole &= !value.vague;
        reading.settled &= !value.vague;
        let located = Located { value: value.text.as_str().to_owned(), span: value.text.span() };
        reading.call.options.push((text.to_owned(), located));
    }
    reading.call.extra_args_exact = reading.settled && reading.extra_args.as_ref().is_none_or(|word| word.exact);
    reading.positional(&positional);
    reading
}

impl CallParts {
    fn defect(&mut self, kind: DefectKind, span: Span, message: String) {
        self.defects.push(Defect { kind, span, message });
    }

    /// `CLUSTER_NAME="$1"`: the first word left over is the name, the others are dropped.
    fn positional(&mut self, words: &[&Word]) {
        let name = words.first().filter(|word| !word.text.is_empty());
        self.call.cluster_name =
            name.map(|word| Located { value: word.text.as_str().to_owned(), span: word.text.span() });
        if let Some(word) = name.filter(|word| word.text.as_str().starts_with("--")) {
            let message = "bootstrap.sh takes this whole text for the cluster's name: it is the first word that it \
                           does not know as an option";
            self.defect(DefectKind::ClusterNameIsOption, word.text.span(), message.to_owned());
        }
        if name.is_none() && self.call.completes && self.call.exact {
            self.call.completes = false;
            self.defect(
                DefectKind::ClusterNameMissing,
                self.call.span,
                "bootstrap.sh exits: cluster name is not defined".to_owned(),
            );
        }
        for word in words {
            let text = word.text.as_str();
            let option = text.split_once('=').map(|(option, _)| option).filter(|option| OPTIONS.contains(option));
            match option {
                Some(option) => {
                    if option == EXTRA_ARGS {
                        self.equals_forms.push(word.text.from(option.len() + 1));
                    }
                    let message = format!(
                        "bootstrap.sh takes {option} and its value as two words; written with `=` the whole option is \
                         ignored"
                    );
                    self.defect(DefectKind::OptionWithEquals, word.text.span(), message);
                }
                None if text.starts_with('-') => self.loose.push(word.text.clone()),
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::shell;
    use super::*;

    fn call(text: &str) -> CallParts {
        let script = shell::read(&Traced::written_at(text, 0));
        let command = &script.commands[0];
        read(&command.words[1..], command.span)
    }

    fn name(reading: &CallParts) -> Option<&str> {
        reading.call.cluster_name.as_ref().map(|n| n.value.as_str())
    }

    fn kinds(reading: &CallParts) -> Vec<DefectKind> {
        reading.defects.iter().map(|d| d.kind).collect()
    }

    #[test]
    fn the_value_after_a_blank_is_taken() {
        let reading = call("bootstrap.sh prod --kubelet-extra-args '--v=2' --use-max-pods false");
        assert_eq!(reading.extra_args.as_ref().unwrap().text.as_str(), "--v=2");
        assert_eq!(name(&reading), Some("prod"));
        assert!(reading.defects.is_empty() && reading.call.completes);
    }

    #[test]
    fn the_value_after_an_equals_sign_is_ignored() {
        let reading = call("bootstrap.sh prod --kubelet-extra-args='--v=2'");
        assert!(reading.extra_args.is_none());
        assert_eq!(reading.equals_forms[0].as_str(), "--v=2");
        assert_eq!(name(&reading), Some("prod"));
        assert_eq!(kinds(&reading), [DefectKind::OptionWithEquals]);
    }

    #[test]
    fn an_equals_form_before_the_name_becomes_the_name() {
        let reading = call("bootstrap.sh --kubelet-extra-args='--v=2' prod");
        assert_eq!(name(&reading), Some("--kubelet-extra-args=--v=2"));
        assert_eq!(kinds(&reading), [DefectKind::ClusterNameIsOption, DefectKind::OptionWithEquals]);
    }

    #[test]
    fn unquoted_flags_fall_out_of_the_value_and_may_become_the_name() {
        let reading =
            call("bootstrap.sh --kubelet-extra-args --node-labels=a=b --register-with-taints=x:NoExecute prod");
        assert_eq!(reading.extra_args.as_ref().unwrap().text.as_str(), "--node-labels=a=b");
        assert_eq!(reading.loose[0].as_str(), "--register-with-taints=x:NoExecute");
        assert_eq!(name(&reading), Some("--register-with-taints=x:NoExecute"));
        let reading =
            call("bootstrap.sh prod --kubelet-extra-args --node-labels=a=b --register-with-taints=x:NoExecute");
        assert_eq!(name(&reading), Some("prod"));
        assert_eq!(reading.loose.len(), 1);
    }

    #[test]
    fn an_option_given_twice_counts_once() {
        let reading = call("bootstrap.sh prod --kubelet-extra-args a --kubelet-extra-args b");
        assert_eq!(reading.extra_args.as_ref().unwrap().text.as_str(), "b");
        assert_eq!(reading.replaced[0].text.as_str(), "a");
    }

    #[test]
    fn no_name_and_no_value_end_the_script() {
        assert_eq!(kinds(&call("bootstrap.sh --use-max-pods false")), [DefectKind::ClusterNameMissing]);
        let reading = call("bootstrap.sh prod --kubelet-extra-args");
        assert_eq!(kinds(&reading), [DefectKind::OptionWithoutValue]);
        assert!(!reading.call.completes);
    }
}
