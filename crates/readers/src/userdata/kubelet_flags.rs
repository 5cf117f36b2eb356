//! What the kubelet makes of its own flags: words to flags, and the grammars of taints and labels.

use std::collections::{HashMap, HashSet};

use super::known_flags::{self, Recognized};
use super::traced::Traced;
use crate::source_text::Span;

/// A taint as the kubelet registers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredTaint {
    pub key: String,
    pub value: String,
    pub effect: String,
}

/// Why the kubelet refuses a flag's value; `span` lies in the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlagError {
    pub message: String,
    pub span: Span,
}

/// One flag of a command line; `value` is empty where none was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    /// Without dashes, `_` written as `-`.
    pub name: String,
    pub value: Traced,
    pub span: Span,
}

/// A command line as the kubelet reads it.
#[derive(Debug, Default)]
pub struct CommandLine {
    pub flags: Vec<Flag>,
    /// Words that are no flags: the kubelet exits with `unknown command`.
    pub stray: Vec<Span>,
    /// Long names behind one dash: the kubelet exits with `unknown shorthand flag`.
    pub single_dash: Vec<Span>,
    /// A last flag whose value is missing: the kubelet exits with `flag needs an argument`.
    pub without_value: Option<Span>,
}

/// Reads `words` as pflag does: `--name=value`, or `--name value` where the flag is no switch.
pub fn command_line(words: &[Traced]) -> CommandLine {
    let mut line = CommandLine::default();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let text = word.as_str();
        if text == "--" {
            line.stray.extend(rest.by_ref().map(Traced::span));
            break;
        }
        // "-" alone and words without a dash are operands.
        if !text.starts_with('-') || text.len() == 1 {
            line.stray.push(word.span());
            continue;
        }
        let equals = text.find('=');
        let long = text.starts_with("--");
        // "-v" is the one shorthand the kubelet has, and "-h"; they may stand together with their value.
        if !long && !text.starts_with("-v") && text != "-h" {
            line.single_dash.push(word.span());
        }
        let name = match equals {
            _ if text.starts_with("-v") => "v".to_owned(),
            at => normalised(text.get(if long { 2 } else { 1 }..at.unwrap_or(text.len())).unwrap_or_default()),
        };
        let (value, span) = match equals {
            Some(at) => (word.from(at + 1), word.span()),
            None if known_flags::is_switch(&name) => (Traced::default(), word.span()),
            None if text.starts_with("-v") && text.len() > 2 => (word.from(2), word.span()),
            None => {
                let value = rest.next();
                // Of a flag that is not known nothing is: it may be a switch.
                if value.is_none() && known_flags::look_up(&name) != Recognized::No {
                    line.without_value = Some(word.span());
                }
                let end = value.map_or(0, |value| value.span().end).max(word.span().end);
                (value.cloned().unwrap_or_default(), Span::new(word.span().start, end))
            }
        };
        line.flags.push(Flag { name, value, span });
    }
    line
}

/// The kubelet takes `--register_with_taints` for `--register-with-taints`.
// k8s.io/component-base v0.36.3 cli/flag/flags.go WordSepNormalizeFunc
fn normalised(name: &str) -> String {
    name.replace('_', "-")
}

/// Reads the value of `--register-with-taints`. An empty value is no taint at all.
// kubernetes v1.36.3 pkg/util/flag/flags.go RegisterWithTaintsVar.Set, pkg/util/taints/taints.go ParseTaints
pub fn parse_taints(value: &str) -> Result<Vec<RegisteredTaint>, FlagError> {
    let mut taints = Vec::new();
    let mut seen = HashSet::new();
    if value.is_empty() {
        return Ok(taints);
    }
    for (spec, span) in split(value) {
        // A spec that ends in "-" asks for a removal: it is checked, then dropped without a word.
        let removal = spec.strip_suffix('-');
        let taint = parse_taint(removal.unwrap_or(spec)).map_err(|message| FlagError { message, span })?;
        if removal.is_some() {
            continue;
        }
        if taint.effect.is_empty() {
            return Err(FlagError { message: format!("invalid taint spec: {spec}"), span });
        }
        if !seen.insert((taint.key.clone(), taint.effect.clone())) {
            return Err(FlagError {
                message: format!("duplicated taints with the same key and effect: {}:{}", taint.key, taint.effect),
                span,
            });
        }
        taints.push(taint);
    }
    Ok(taints)
}

fn parse_taint(spec: &str) -> Result<RegisteredTaint, String> {
    let invalid = || format!("invalid taint spec: {spec}");
    let mut parts = spec.split(':');
    let (body, effect) = (parts.next().unwrap_or_default(), parts.next());
    if parts.next().is_some() {
        return Err(invalid());
    }
    if let Some(effect) = effect.filter(|e| !matches!(*e, "NoSchedule" | "PreferNoSchedule" | "NoExecute")) {
        return Err(format!("invalid taint effect: {effect}, unsupported taint effect"));
    }
    // Without an effect the whole text is the key, "=" and all, which then is no qualified name.
    let (key, value) = if effect.is_some() { body.split_once('=').unwrap_or((body, "")) } else { (body, "") };
    if value.contains('=') || !is_label_value(value) || !is_qualified_name(key) {
        return Err(invalid());
    }
    Ok(RegisteredTaint { key: key.to_owned(), value: value.to_owned(), effect: effect.unwrap_or_default().to_owned() })
}

/// The pairs of `--node-labels`, each key with its value and its place in `text`. A key without `=` has an empty value.
// k8s.io/component-base v0.36.3 cli/flag/configuration_map.go ConfigurationMap.Set
pub fn parse_labels(text: &str) -> impl Iterator<Item = (&str, &str, Span)> {
    split(text).filter(|(pair, _)| !pair.is_empty()).map(|(pair, span)| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (key.trim(), value.trim(), span)
    })
}

/// The keys of `--node-labels` for which the kubelet exits: names in the Kubernetes domains that are not the kubelet's
/// to set.
// kubernetes v1.36.3 cmd/kubelet/app/options/options.go ValidateKubeletFlags
pub fn refused_labels(value: &str) -> Vec<(String, Span)> {
    parse_labels(value).filter(|(key, ..)| is_refused_label(key)).map(|(key, _, span)| (key.to_owned(), span)).collect()
}

/// The first label with an illegal key or value: `invalid node labels`, and the kubelet exits. A repeated key has its
/// last value.
pub fn invalid_label(value: &str) -> Option<FlagError> {
    invalid_label_of(value, &|_| true)
}

/// The first illegal label among the pairs that are certain.
pub(super) fn invalid_label_of(value: &str, is_certain: &dyn Fn(&str) -> bool) -> Option<FlagError> {
    let last: HashMap<&str, Span> = parse_labels(value).map(|(key, _, span)| (key, span)).collect();
    let mut kept =
        parse_labels(value).filter(|(key, _, span)| last.get(key) == Some(span) && is_certain(span.of(value)));
    let (key, _, span) = kept.find(|(key, value, _)| !is_qualified_name(key) || !is_label_value(value))?;
    Some(FlagError { message: format!("invalid node labels: {key}"), span })
}

// k8s.io/kubelet v0.36.3 pkg/apis/well_known_labels.go
const KUBELET_LABELS: &[&str] = &[
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "beta.kubernetes.io/instance-type",
    "node.kubernetes.io/instance-type",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
];

fn is_refused_label(key: &str) -> bool {
    let Some((namespace, _)) = key.split_once('/') else { return false };
    let under =
        |domain: &str| namespace.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    let kubernetes = under("kubernetes.io") || under("k8s.io");
    let kubelets = KUBELET_LABELS.contains(&key) || under("kubelet.kubernetes.io") || under("node.kubernetes.io");
    kubernetes && !kubelets
}

// apimachinery v0.36.3 pkg/util/validation IsQualifiedName
fn is_qualified_name(key: &str) -> bool {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    prefix.is_none_or(is_dns_subdomain) && is_name(name)
}

// apimachinery v0.36.3 pkg/util/validation IsValidLabelValue
fn is_label_value(value: &str) -> bool {
    value.is_empty() || is_name(value)
}

fn is_name(name: &str) -> bool {
    let edge = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = name.as_bytes();
    bytes.len() <= 63
        && edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

fn is_dns_subdomain(name: &str) -> bool {
    let letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let label = |label: &str| {
        let bytes = label.as_bytes();
        bytes.first().copied().is_some_and(letter)
            && bytes.last().copied().is_some_and(letter)
            && bytes.iter().all(|&b| letter(b) || b == b'-')
    };
    name.len() <= 253 && name.split('.').all(label)
}

/// The parts between commas, each with its place.
fn split(value: &str) -> impl Iterator<Item = (&str, Span)> {
    let mut start = 0;
    value.split(',').map(move |part| {
        let span = Span::new(start, start + part.len());
        start = span.end + 1;
        (part, span)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taints(value: &str) -> Result<Vec<String>, String> {
        parse_taints(value)
            .map(|t| t.iter().map(|t| format!("{}={}:{}", t.key, t.value, t.effect)).collect())
            .map_err(|e| e.message)
    }

    #[test]
    fn taints_are_read_as_the_kubelet_reads_them() {
        assert_eq!(taints("karpenter.sh/unregistered:NoExecute").unwrap(), ["karpenter.sh/unregistered=:NoExecute"]);
        assert_eq!(taints("karpenter.sh/unregistered=:NoExecute,a=b:NoSchedule").unwrap().len(), 2);
        assert!(taints("").unwrap().is_empty());
    }

    #[test]
    fn a_taint_that_ends_in_a_dash_vanishes_without_an_error() {
        assert!(taints("a=true:NoSchedule-").unwrap().is_empty());
        assert!(taints("a-").unwrap().is_empty());
    }

    #[test]
    fn what_the_kubelet_refuses_is_refused() {
        for bad in [
            "a",
            "a=b",
            "a=b:noschedule",
            "a:NoSchedule,",
            "a:NoSchedule;b:NoSchedule",
            "a:NoSchedule, b:NoSchedule",
            "a=b=c:NoExecute",
        ] {
            assert!(taints(bad).is_err(), "{bad}");
        }
        assert!(taints("a=b:NoSchedule,a=c:NoSchedule").unwrap_err().starts_with("duplicated taints"));
        assert!(taints("a=b:NoSchedule,a=b:NoExecute").is_ok());
        assert_eq!(
            taints("\"a=b:NoSchedule\"").unwrap_err(),
            "invalid taint effect: NoSchedule\", unsupported taint effect"
        );
        assert_eq!(parse_taints("a:NoSchedule,b:Never").unwrap_err().span, Span::new(13, 20));
    }

    #[test]
    fn labels_of_the_kubernetes_domains_are_refused_unless_they_are_the_kubelets() {
        let keys = |value| refused_labels(value).into_iter().map(|(key, _)| key).collect::<Vec<_>>();
        assert_eq!(keys("kubernetes.io/lifecycle=spot,workload=batch"), ["kubernetes.io/lifecycle"]);
        assert_eq!(keys("node-role.kubernetes.io/worker="), ["node-role.kubernetes.io/worker"]);
        assert_eq!(keys("x.node-restriction.kubernetes.io/a=b"), ["x.node-restriction.kubernetes.io/a"]);
        assert!(
            keys("node.kubernetes.io/lifecycle=normal,topology.kubernetes.io/zone=a,mykubernetes.io/x=y,eks.amazonaws.com/nodegroup=x")
                .is_empty()
        );
    }

    #[test]
    fn a_label_without_an_equals_sign_has_an_empty_value() {
        assert_eq!(
            parse_labels("a=b,c").map(|(key, value, _)| (key, value)).collect::<Vec<_>>(),
            [("a", "b"), ("c", "")]
        );
        assert!(invalid_label("a=b,c").is_none());
        assert!(invalid_label("a=b c=d").is_some());
        assert!(invalid_label("a=b,,c=d").is_none());
        let certain = |value| invalid_label_of(value, &|pair| !pair.contains('$'));
        assert!(certain("a=${b},c=d").is_none() && certain("a=${b},c=d e").is_some());
    }

    #[test]
    fn a_flag_takes_the_next_word_unless_it_is_a_switch() {
        let words: Vec<Traced> = ["--register_with_taints", "a:NoExecute", "--register-node", "--v=2", "stray"]
            .iter()
            .map(|w| Traced::written_at(w, 0))
            .collect();
        let line = command_line(&words);
        assert_eq!(
            line.flags.iter().map(|f| (f.name.as_str(), f.value.as_str())).collect::<Vec<_>>(),
            [("register-with-taints", "a:NoExecute"), ("register-node", ""), ("v", "2")]
        );
        assert_eq!(line.stray.len(), 1);
    }

    #[test]
    fn one_dash_is_for_the_verbosity_only() {
        let line = |words: &[&str]| command_line(&words.iter().map(|w| Traced::written_at(w, 0)).collect::<Vec<_>>());
        let verbosity = line(&["-v=2", "-v", "3", "-v4"]);
        assert_eq!(verbosity.flags.iter().map(|f| f.value.as_str()).collect::<Vec<_>>(), ["2", "3", "4"]);
        assert!(verbosity.single_dash.is_empty());
        assert_eq!(line(&["-node-labels=a=b"]).single_dash.len(), 1);
    }

    #[test]
    fn only_a_last_flag_that_takes_a_value_lacks_it() {
        let lacks = |words: &[&str]| {
            let words: Vec<Traced> = words.iter().map(|w| Traced::written_at(w, 0)).collect();
            command_line(&words).without_value.is_some()
        };
        assert!(lacks(&["--v=2", "--container-runtime"]));
        // The next word is its value, whatever it looks like.
        assert!(!lacks(&["--container-runtime", "--v=2"]));
        assert!(!lacks(&["--node-labels="]));
        assert!(!lacks(&["--fail-swap-on"]));
        assert!(!lacks(&["--some-new-switch"]));
    }
}
