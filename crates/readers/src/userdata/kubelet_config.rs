//! The kubelet's configuration and flags, as it decodes and validates them. Over a value of another type, or one that
//! it does not allow, it exits at its start. It ignores a field that it does not know.
//!
//! `cargo xtask tables` recreates the two tables.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use super::go_values;
use super::known_flags;
use super::yaml::{YamlNode, YamlValue};
use super::{Defect, DefectKind, has_expansion};
use crate::source_text::Span;

const FIELDS: &str = include_str!("kubelet_config.tsv");
const FLAGS: &str = include_str!("kubelet_flags.tsv");

/// Paths and types of a document's fields. A list's items are `path[]`, the values of a map `path.*`.
#[derive(Clone, Copy)]
pub struct Schema {
    /// Whose fields they are: "the kubelet".
    pub reader: &'static str,
    pub paths: fn() -> Vec<&'static str>,
    /// The type at a path.
    pub kind: fn(&str) -> Option<&'static str>,
}

/// The kubelet's configuration below `spec.kubelet.config`.
pub const CONFIG: Schema = Schema { reader: "the kubelet", paths: paths_of_fields, kind: kind_of_field };

/// A mistake in a field.
pub enum Wrong {
    /// Of another type, or of a value that is not allowed.
    Refused(Span, String),
    /// Unknown.
    Ignored(Span, String),
}

fn paths_of_fields() -> Vec<&'static str> {
    FIELDS.lines().filter_map(|row| row.split('\t').next()).collect()
}

fn kind_of_field(path: &str) -> Option<&'static str> {
    FIELDS.lines().find_map(|row| row.strip_prefix(path)?.strip_prefix('\t')?.split('\t').next())
}

/// The type of a flag, and the field of the configuration that it sets.
pub fn flag(name: &str) -> Option<(&'static str, &'static str)> {
    match name {
        "log-flush-frequency" => return Some(("duration", "")),
        "v" => return Some(("int32", "logging.verbosity")),
        _ => {}
    }
    let row = FLAGS.lines().find_map(|row| row.strip_prefix(name)?.strip_prefix('\t'))?;
    row.split_once('\t')
}

/// The fields of a configuration that the kubelet refuses or ignores. `replaced` are fields that never reach it.
pub fn check(text: &str, config: &YamlNode, replaced: &[&str]) -> Vec<Defect> {
    let mut defects = Vec::new();
    for (name, node) in config.entries().iter().filter(|(name, _)| !replaced.contains(&name.as_str())) {
        walk(CONFIG, text, name, node, &mut |wrong| {
            defects.push(match wrong {
                Wrong::Refused(span, message) => Defect {
                    kind: DefectKind::InvalidField,
                    span,
                    message: format!("the kubelet exits over its configuration: {message}"),
                },
                Wrong::Ignored(span, message) => Defect { kind: DefectKind::FieldIgnored, span, message },
            });
        });
    }
    defects
}

/// Goes through the value at `path`.
pub fn walk(schema: Schema, text: &str, path: &str, node: &YamlNode, found: &mut impl FnMut(Wrong)) {
    // A placeholder may become any name.
    if has_expansion(path) {
        return;
    }
    let Some(kind) = known(schema, path) else {
        let near = nearest(schema, path).map_or_else(String::new, |near| format!("; {near} is one"));
        let message = format!("{} has no field {path} and ignores it{near}", schema.reader);
        found(Wrong::Ignored(node.span, message));
        return;
    };
    let written = node.span.of(text);
    let scalar = !matches!(node.value, YamlValue::List(_) | YamlValue::Map(_));
    if node.value == YamlValue::Null || kind == "any" || (scalar && has_expansion(written)) {
        return;
    }
    if let Err(why) = decode(kind, written, &node.value) {
        found(Wrong::Refused(node.span, format!("{path} {why}")));
        return;
    }
    match &node.value {
        YamlValue::Map(entries) => {
            for (name, node) in entries {
                walk(schema, text, &format!("{path}.{name}"), node, found);
            }
        }
        YamlValue::List(items) => {
            for node in items {
                walk(schema, text, &format!("{path}[]"), node, found);
            }
            if let Some(why) = list_refusal(path, items) {
                found(Wrong::Refused(node.span, format!("{path} {why}")));
            }
        }
        YamlValue::Text(value) => {
            if let Some(why) = refusal(path, value) {
                found(Wrong::Refused(node.span, format!("{path} {why}")));
            }
        }
        _ => {
            if let Some(why) = refusal(path, written.trim()) {
                found(Wrong::Refused(node.span, format!("{path} {why}")));
            }
        }
    }
}

/// The type at a path whose map keys people choose.
fn known(schema: Schema, path: &str) -> Option<&'static str> {
    (schema.kind)(path).or_else(|| {
        // A key may hold dots itself: `evictionHard.memory.available`.
        let is_in = |row: &&str| {
            let map = row.strip_suffix(".*");
            map.and_then(|map| path.strip_prefix(map)).is_some_and(|key| key.starts_with('.'))
        };
        (schema.paths)().into_iter().find(is_in).and_then(schema.kind)
    })
}

/// The field beside this one whose name differs by case or by one letter.
fn nearest(schema: Schema, path: &str) -> Option<&'static str> {
    let split = |path: &'_ str| path.rfind('.').map_or(0, |dot| dot + 1);
    let (parent, name) = path.split_at(split(path));
    (schema.paths)().into_iter().find(|row| {
        let (own, last) = row.split_at(split(row));
        own == parent && (last.eq_ignore_ascii_case(name) || known_flags::is_near(last, name))
    })
}

/// Why a value is not of a Go type, as JSON that was YAML.
fn decode(kind: &str, written: &str, value: &YamlValue) -> Result<(), String> {
    let is = match value {
        YamlValue::Null => return Ok(()),
        YamlValue::Boolean(_) => "true or false",
        YamlValue::Number => "a number",
        YamlValue::Text(_) => "a text",
        YamlValue::List(_) => "a list",
        YamlValue::Map(_) => "a map",
    };
    let mismatch = |wanted: &str| Err(format!("must be {wanted}, but is {is}"));
    let quoted = |wanted: &str| match value {
        YamlValue::Number | YamlValue::Boolean(_) => Err(format!("must be {wanted} in quotes, but is {is}")),
        _ => mismatch(wanted),
    };
    let number = || written.trim().replace('_', "").parse::<f64>().ok();
    match (kind, value) {
        ("bool", YamlValue::Boolean(_))
        | ("string" | "base64", YamlValue::Text(_))
        | ("list", YamlValue::List(_))
        | ("map", YamlValue::Map(_))
        | ("float64" | "quantity", YamlValue::Number) => Ok(()),
        ("duration", YamlValue::Text(text)) => match go_values::duration(text) {
            Ok(_) => Ok(()),
            Err(why) => Err(format!("is no duration: {why}")),
        },
        ("quantity", YamlValue::Text(text)) => {
            if go_values::quantity(text).is_some() {
                Ok(())
            } else {
                Err(format!("is no quantity: {text:?}"))
            }
        }
        ("int32" | "int64" | "uint32", YamlValue::Number) => {
            let (least, most) = match kind {
                "int32" => (f64::from(i32::MIN), f64::from(i32::MAX)),
                "uint32" => (0.0, f64::from(u32::MAX)),
                _ => (-9.3e18, 9.3e18),
            };
            match number() {
                Some(number) if number.fract() != 0.0 => Err("must be a whole number".to_owned()),
                Some(number) if number < least || number > most => Err(format!("does not fit into {kind}")),
                _ => Ok(()),
            }
        }
        ("bool", _) => match value {
            YamlValue::Text(_) => Err("must be true or false without quotes, but is a text".to_owned()),
            _ => mismatch("true or false"),
        },
        ("int32" | "int64" | "uint32" | "float64", _) => match value {
            YamlValue::Text(text) if text.parse::<f64>().is_ok() => {
                Err("must be a number without quotes, but is a text".to_owned())
            }
            _ => mismatch("a number"),
        },
        ("string" | "base64", _) => quoted("a text"),
        ("duration", _) => quoted("a duration with a unit"),
        ("quantity", _) => quoted("a quantity"),
        ("list", _) => mismatch("a list"),
        ("map", _) => mismatch("a map"),
        _ => Ok(()),
    }
}

/// Fields that take one of a few words; an empty one is the default.
// kubernetes v1.36.3 pkg/kubelet/apis/config/validation/validation.go; pkg/kubelet/cm/cpumanager/cpu_manager.go,
// memorymanager/memory_manager.go "unknown policy"; cmd/kubelet/app/auth.go BuildAuthz; pkg/kubelet/kubelet.go "unknown
// configmap and secret manager mode"; component-base v0.36.3 cli/flag/ciphersuites_flag.go TLSVersion. Kubelets before
// 1.30 know UnlimitedSwap.
const WORDS: &[(&str, &[&str])] = &[
    ("topologyManagerPolicy", &["none", "best-effort", "restricted", "single-numa-node"]),
    ("topologyManagerScope", &["container", "pod"]),
    ("cpuManagerPolicy", &["none", "static"]),
    ("memoryManagerPolicy", &["None", "Static"]),
    ("hairpinMode", &["hairpin-veth", "promiscuous-bridge", "none"]),
    ("authorization.mode", &["AlwaysAllow", "Webhook"]),
    ("configMapAndSecretChangeDetectionStrategy", &["Get", "Cache", "Watch"]),
    ("memorySwap.swapBehavior", &["LimitedSwap", "NoSwap", "UnlimitedSwap"]),
    ("tlsMinVersion", &["VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13"]),
    ("logging.format", &["text", "json"]),
    (
        "enforceNodeAllocatable[]",
        &[
            "pods",
            "system-reserved",
            "system-reserved-compressible",
            "kube-reserved",
            "kube-reserved-compressible",
            "none",
        ],
    ),
    (
        "imagePullCredentialsVerificationPolicy",
        &["NeverVerify", "NeverVerifyPreloadedImages", "NeverVerifyAllowlistedImages", "AlwaysVerify"],
    ),
    ("memoryReservationPolicy", &["None", "TieredReservation"]),
];

/// Numbers and the least and the most that they may be. Where nothing but a default is behind zero, it is allowed.
// kubernetes v1.36.3 pkg/kubelet/apis/config/validation/validation.go, pkg/kubelet/apis/config/v1beta1/defaults.go
const NUMBERS: &[(&str, f64, f64)] = &[
    ("containerLogMaxFiles", 2.0, f64::MAX),
    ("containerLogMaxWorkers", 1.0, f64::MAX),
    ("eventBurst", 0.0, f64::MAX),
    ("eventRecordQPS", 0.0, f64::MAX),
    ("healthzPort", 0.0, 65_535.0),
    ("imageGCHighThresholdPercent", 0.0, 100.0),
    ("imageGCLowThresholdPercent", 0.0, 100.0),
    ("iptablesDropBit", 0.0, 31.0),
    ("iptablesMasqueradeBit", 0.0, 31.0),
    ("kubeAPIBurst", 0.0, f64::MAX),
    ("kubeAPIQPS", 0.0, f64::MAX),
    ("maxOpenFiles", 0.0, f64::MAX),
    ("maxParallelImagePulls", 1.0, f64::MAX),
    ("maxPods", 0.0, f64::MAX),
    ("memoryThrottlingFactor", f64::MIN_POSITIVE, 1.0),
    ("nodeLeaseDurationSeconds", 0.0, f64::MAX),
    ("nodeStatusMaxImages", -1.0, f64::MAX),
    ("oomScoreAdj", -1_000.0, 1_000.0),
    ("podsPerCore", 0.0, f64::MAX),
    ("port", 0.0, 65_535.0),
    ("readOnlyPort", 0.0, 65_535.0),
    ("registryBurst", 0.0, f64::MAX),
    ("registryPullQPS", 0.0, f64::MAX),
];

const SECOND: i128 = 1_000_000_000;

/// Durations and the least and the most that they may be, in nanoseconds; zero where it is the default.
// The same files.
const DURATIONS: &[(&str, i128, i128)] = &[
    ("containerLogMonitorInterval", 3 * SECOND, i128::MAX),
    ("cpuCFSQuotaPeriod", SECOND / 1_000, SECOND),
    ("imageMaximumGCAge", 0, i128::MAX),
    ("imageMinimumGCAge", 0, i128::MAX),
];

// kubernetes v1.36.3 pkg/kubelet/eviction/api/types.go; 1.28 and 1.29 lack containerfs
const SIGNALS: &[&str] = &[
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "containerfs.available",
    "containerfs.inodesFree",
    "allocatableMemory.available",
    "pid.available",
];

// kubernetes v1.36.3 pkg/kubelet/cm/cpumanager/policy_options.go
const CPU_OPTIONS: &[&str] = &[
    "full-pcpus-only",
    "distribute-cpus-across-numa",
    "align-by-socket",
    "distribute-cpus-across-cores",
    "strict-cpu-reservation",
    "prefer-align-cpus-by-uncorecache",
];

/// Why the kubelet refuses this value of a field, of the right type. Map entries are `map.key`.
pub fn refusal(path: &str, value: &str) -> Option<String> {
    let words = WORDS.iter().find(|(field, _)| *field == path);
    if let Some((_, words)) = words.filter(|(_, words)| !value.is_empty() && !words.contains(&value)) {
        return Some(format!("{value:?} must be one of {}", words.join(", ")));
    }
    let number = || value.replace('_', "").parse::<f64>().ok();
    if let Some((_, least, most)) = NUMBERS.iter().find(|(field, ..)| *field == path)
        && number().is_some_and(|number| number < *least || number > *most)
    {
        let upper = if *most < f64::MAX { format!(" and at most {most}") } else { String::new() };
        let lower = if *least <= f64::MIN_POSITIVE && *least > 0.0 {
            "more than 0".to_owned()
        } else {
            format!("at least {least}")
        };
        return Some(format!("{value} must be {lower}{upper}"));
    }
    if let Some((_, least, most)) = DURATIONS.iter().find(|(field, ..)| *field == path)
        && go_values::duration(value).is_ok_and(|own| own < *least || own > *most)
    {
        let (least, most) = (least / 1_000_000, most / 1_000_000);
        let upper = if most > 1_000_000 { String::new() } else { format!(" and at most {most}ms") };
        return Some(format!("{value} must be at least {least}ms{upper}"));
    }
    if matches!(path, "shutdownGracePeriod" | "shutdownGracePeriodCriticalPods")
        && go_values::duration(value).is_ok_and(|own| own < 0 || (own > 0 && own < SECOND))
    {
        return Some(format!("{value} must be zero or at least 1s"));
    }
    match path {
        "containerLogMaxSize" if !value.is_empty() && go_values::quantity(value).is_none() => {
            return Some(format!("{value:?} is no quantity"));
        }
        "reservedSystemCPUs" if !is_cpu_set(value) => return Some(format!("{value:?} is no list of CPUs")),
        _ => {}
    }
    entry_refusal(path, value)
}

/// The same for an entry of a map.
fn entry_refusal(path: &str, value: &str) -> Option<String> {
    let (map, key) = path.split_once('.')?;
    let unknown_signal = || (!SIGNALS.contains(&key)).then(|| format!("is no eviction signal, such as {}", SIGNALS[0]));
    match map {
        "evictionHard" | "evictionSoft" => unknown_signal().or_else(|| threshold_refusal(value)),
        "evictionMinimumReclaim" => unknown_signal().or_else(|| match value.strip_suffix('%') {
            Some(percent) => {
                (!percent.parse::<f64>().is_ok_and(|p| p > 0.0)).then(|| "must be more than 0%".to_owned())
            }
            None => match go_values::quantity(value) {
                None => Some(format!("{value:?} is neither a quantity nor a percentage")),
                Some(sign) => (sign < 0).then(|| format!("{value} must not be negative")),
            },
        }),
        "evictionSoftGracePeriod" => unknown_signal().or_else(|| match go_values::duration(value) {
            Err(why) => Some(format!("is no duration: {why}")),
            Ok(own) => (own < 0).then(|| format!("{value} must not be negative")),
        }),
        "systemReserved" | "kubeReserved" => {
            if !matches!(key, "cpu" | "memory" | "ephemeral-storage" | "pid") {
                return Some("cannot be reserved: only cpu, memory, ephemeral-storage and pid can".to_owned());
            }
            match go_values::quantity(value) {
                None => Some(format!("{value:?} is no quantity")),
                Some(sign) => (sign < 0).then(|| format!("{value} must not be negative")),
            }
        }
        "qosReserved" => {
            let percent = value.strip_suffix('%').and_then(|percent| percent.parse::<i64>().ok());
            (key != "memory" || !percent.is_some_and(|p| (0..=100).contains(&p)))
                .then(|| "must be a percentage of memory".to_owned())
        }
        "cpuManagerPolicyOptions" if !CPU_OPTIONS.contains(&key) => Some("is no option of the CPU manager".to_owned()),
        "cpuManagerPolicyOptions" if go_values::boolean(value).is_none() => {
            Some(format!("{value:?} must be true or false"))
        }
        _ => None,
    }
}

fn threshold_refusal(value: &str) -> Option<String> {
    if let Some(percent) = value.strip_suffix('%') {
        let percent = percent.trim_end_matches('%').parse::<f64>().ok();
        return match percent {
            None => Some(format!("{value:?} is no percentage")),
            Some(percent) => (!(0.0..=100.0).contains(&percent)).then(|| format!("{value} must be within 0% and 100%")),
        };
    }
    match go_values::quantity(value) {
        None => Some(format!("{value:?} is neither a quantity nor a percentage")),
        Some(sign) => (sign <= 0).then(|| format!("{value} must be positive")),
    }
}

/// `0-2,7`
// k8s.io/utils cpuset.Parse
fn is_cpu_set(value: &str) -> bool {
    let one = |range: &str| match range.split_once('-') {
        None => range.parse::<u32>().is_ok(),
        Some((from, to)) => from.parse::<u32>().is_ok_and(|from| to.parse::<u32>().is_ok_and(|to| from <= to)),
    };
    value.is_empty() || value.split(',').all(one)
}

fn list_refusal(path: &str, items: &[YamlNode]) -> Option<String> {
    let texts: Vec<&str> = items.iter().filter_map(YamlNode::text).collect();
    of_levels(&texts).filter(|_| path == "enforceNodeAllocatable")
}

// kubernetes v1.36.3 pkg/kubelet/apis/config/validation/validation.go
fn of_levels(levels: &[&str]) -> Option<String> {
    if levels.len() > 1 && levels.contains(&"none") {
        return Some("may hold nothing beside \"none\"".to_owned());
    }
    levels
        .iter()
        .enumerate()
        .find(|(at, level)| levels.iter().take(*at).any(|before| before == *level))
        .map(|(_, level)| format!("holds {level:?} twice"))
}

/// Why the kubelet refuses this value of a flag, and where in the value.
// pflag v1.0.9 int32.go, bool.go, duration.go; component-base v0.36.3 cli/flag/map_string_string.go,
// map_string_bool.go, langle_separated_map_string_string.go; kubernetes v1.36.3 pkg/util/flag/flags.go IPVar
pub fn flag_refusal(name: &str, value: &str) -> Option<(Span, String)> {
    let (kind, path) = flag(name)?;
    let whole = Span::new(0, value.len());
    let at_all = |why: String| Some((whole, why));
    match kind {
        _ if value.is_empty() => None,
        "bool" => match go_values::boolean(value) {
            None => at_all(format!("{value:?} must be true or false")),
            Some(_) => None,
        },
        "int32" | "int64" => match go_values::integer(value) {
            None => at_all(format!("{value:?} must be a whole number")),
            Some(number) if kind == "int32" && i32::try_from(number).is_err() => {
                at_all(format!("{value} is too large"))
            }
            Some(number) => refusal(path, &number.to_string()).map(|why| (whole, why)),
        },
        "duration" => match go_values::duration(value) {
            Err(why) => at_all(why),
            Ok(_) => refusal(path, value).map(|why| (whole, why)),
        },
        "ip" if value.parse::<std::net::IpAddr>().is_err() => at_all(format!("{value:?} is no address")),
        "string" => refusal(path, value).map(|why| (whole, why)),
        "[]string" if path == "enforceNodeAllocatable" => {
            let levels: Vec<&str> = value.split(',').collect();
            let unknown = levels.iter().find_map(|level| refusal("enforceNodeAllocatable[]", level));
            unknown.or_else(|| of_levels(&levels)).map(|why| (whole, why))
        }
        "map[string]string" | "map[string<string]" | "map[string]bool" => pairs(value).find_map(|(pair, span)| {
            let separator = if kind == "map[string<string]" { '<' } else { '=' };
            let Some((key, value)) = pair.split_once(separator) else {
                return Some((span, format!("{pair:?} must be KEY{separator}VALUE")));
            };
            let (key, value) = (key.trim(), value.trim());
            if kind == "map[string]bool" {
                return go_values::boolean(value)
                    .is_none()
                    .then(|| (span, format!("{pair:?} must end in =true or =false")));
            }
            refusal(&format!("{path}.{key}"), value).map(|why| (span, format!("{key} {why}")))
        }),
        _ => None,
    }
}

/// The field of `spec.kubelet` that Karpenter sets itself. Since 1.15 it refuses a class that has the field.
// karpenter-provider-aws v1.15.0 pkg/apis/v1/kubeletconfiguration_validation.go karpenterOwnedFields
pub const OWNED_BY_KARPENTER: &str = "registerWithTaints";

/// The fields of `spec.kubelet` of a node class whose values the API server, Karpenter or a kubelet refuses: each with
/// its path below `spec.kubelet`, and why. Karpenter refuses [`OWNED_BY_KARPENTER`] whatever its value is.
// karpenter-provider-aws v1.14.1 pkg/apis/crds/karpenter.k8s.aws_ec2nodeclasses.yaml; v1.15.0
// pkg/apis/v1/kubeletconfiguration_validation.go, which takes every field of the kubelet's, and CEL in maxPods,
// kubeReserved and systemReserved
pub fn class_refusals(class: &BTreeMap<String, Json>) -> Vec<(String, String)> {
    let mut refused = Vec::new();
    for (field, value) in class.iter().filter(|(field, _)| *field != OWNED_BY_KARPENTER) {
        of_class(field, value, &mut refused);
    }
    let number = |field: &str, default: i64| class.get(field).map_or(Some(default), Json::as_i64);
    let [low, high] = ["imageGCLowThresholdPercent", "imageGCHighThresholdPercent"];
    // A field that is not set has the kubelet's default.
    if let (Some(least), Some(most)) = (number(low, 80), number(high, 85))
        && let Some(field) = [high, low].into_iter().find(|field| class.contains_key(*field))
        && least >= most
    {
        refused.push((field.to_owned(), format!("must leave {low} {least} below {high} {most}")));
    }
    let keys = |field: &str| {
        let entries = class.get(field).and_then(Json::as_object);
        entries.into_iter().flat_map(|entries| entries.keys().map(String::as_str)).collect::<BTreeSet<&str>>()
    };
    let [soft, grace] = ["evictionSoft", "evictionSoftGracePeriod"].map(keys);
    for key in soft.difference(&grace) {
        refused.push((format!("evictionSoft.{key}"), "needs an evictionSoftGracePeriod of the same signal".to_owned()));
    }
    for key in grace.difference(&soft) {
        refused.push((format!("evictionSoftGracePeriod.{key}"), "needs an evictionSoft of the same signal".to_owned()));
    }
    refused
}

fn of_class(path: &str, value: &Json, refused: &mut Vec<(String, String)>) {
    let Some(kind) = known(CONFIG, path) else { return };
    // A bare number in a map of texts is one in YAML too: there the API server refuses it as well.
    let (node, written) = match value {
        Json::Null => return,
        Json::String(text) if has_expansion(text) || may_be_cel(path, text) => return,
        Json::String(text) => (YamlValue::Text(text.clone()), text.clone()),
        Json::Bool(value) => (YamlValue::Boolean(*value), value.to_string()),
        Json::Number(number) => (YamlValue::Number, number.to_string()),
        Json::Array(_) => (YamlValue::List(Vec::new()), String::new()),
        Json::Object(_) => (YamlValue::Map(Vec::new()), String::new()),
    };
    if let Err(why) = decode(kind, &written, &node) {
        refused.push((path.to_owned(), why));
        return;
    }
    match value {
        Json::Object(entries) => {
            entries.iter().for_each(|(key, value)| of_class(&format!("{path}.{key}"), value, refused));
        }
        Json::Array(_) => {}
        _ => refused.extend(refusal(path, &written).map(|why| (path.to_owned(), why))),
    }
}

/// The numbers that such an expression may name.
// karpenter-provider-aws v1.15.0 pkg/cel/environment.go celVars
const CEL_VARIABLES: [&str; 5] = ["vcpus", "memory_mib", "default_enis", "ips_per_eni", "max_pods"];

/// Whether this text of `spec.kubelet` may be an expression, which Karpenter 1.15 computes for each instance type.
pub fn may_be_cel(path: &str, text: &str) -> bool {
    let of_reservation = path.starts_with("kubeReserved.") || path.starts_with("systemReserved.");
    let is_computed = || {
        text.contains(['(', '*', '+', '?', ' ', '/']) || CEL_VARIABLES.iter().any(|variable| text.starts_with(variable))
    };
    path == "maxPods" || (of_reservation && is_computed())
}

/// The pairs between commas, each with its place.
fn pairs(value: &str) -> impl Iterator<Item = (&str, Span)> {
    let mut start = 0;
    let all = value.split(',').map(move |pair| {
        let span = Span::new(start, start + pair.len());
        start = span.end + 1;
        (pair, span)
    });
    all.filter(|(pair, _)| !pair.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::userdata::yaml;

    fn found(config: &str) -> Vec<(DefectKind, String)> {
        let root = yaml::read(config, Span::new(0, config.len())).unwrap();
        check(config, &root, &["maxPods"]).into_iter().map(|defect| (defect.kind, defect.message)).collect()
    }

    #[test]
    fn what_the_kubelet_exits_over_is_found() {
        for (config, why) in [
            ("shutdownGracePeriod: 30sec", "unknown unit \"sec\""),
            ("shutdownGracePeriod: 30", "in quotes, but is a number"),
            ("evictionHard: {memory.available: 100}", "in quotes"),
            ("evictionHard: {memory.avail: 100Mi}", "no eviction signal"),
            ("evictionHard: {memory.available: 100MB}", "neither a quantity"),
            ("evictionHard: {memory.available: 110%}", "within"),
            ("evictionHard: {memory.available: \"0\"}", "positive"),
            ("evictionSoftGracePeriod: {memory.available: 90}", "in quotes"),
            ("evictionSoftGracePeriod: {memory.available: \"90\"}", "missing unit"),
            ("evictionHard: [memory.available]", "a map"),
            ("systemReserved: {cpu: 1}", "in quotes"),
            ("systemReserved: {memory: 500MB}", "no quantity"),
            ("kubeReserved: {mem: 500Mi}", "cannot be reserved"),
            ("featureGates: {MemoryQoS: \"true\"}", "without quotes"),
            ("failSwapOn: \"false\"", "without quotes"),
            ("failSwapOn: 0", "true or false"),
            ("containerLogMaxSize: 10", "in quotes"),
            ("containerLogMaxSize: 10MB", "no quantity"),
            ("containerLogMaxFiles: 1", "at least 2"),
            ("containerLogMaxFiles: \"5\"", "without quotes"),
            ("podPidsLimit: 1.5", "whole number"),
            ("registryBurst: 3000000000", "does not fit"),
            ("cpuManagerPolicy: Static", "one of none, static"),
            ("memoryManagerPolicy: static", "one of None, Static"),
            ("topologyManagerPolicy: single-numa", "one of"),
            ("imageGCHighThresholdPercent: 101", "at most 100"),
            ("imageGCHighThresholdPercent: 85%", "a number"),
            ("registryPullQPS: -1", "at least 0"),
            ("maxParallelImagePulls: 0", "at least 1"),
            ("cpuCFSQuotaPeriod: 10us", "at least 1ms"),
            ("authentication: {anonymous: {enabled: no thanks}}", "true or false"),
            ("authentication: true", "a map"),
            ("clusterDomain: [a]", "a text"),
            ("allowedUnsafeSysctls: net.core.somaxconn", "a list"),
            ("allowedUnsafeSysctls: [1]", "in quotes"),
            ("enforceNodeAllocatable: [pod]", "one of"),
            ("enforceNodeAllocatable: [pods, pods]", "twice"),
            ("enforceNodeAllocatable: [none, pods]", "nothing beside"),
            ("reservedSystemCPUs: 0-", "no list of CPUs"),
            ("reservedMemory: [{numaNode: \"0\"}]", "without quotes"),
            ("reservedMemory: [{numaNode: 0, limits: {memory: 1GB}}]", "no quantity"),
            ("tlsMinVersion: TLS1.2", "one of"),
            ("shutdownGracePeriodByPodPriority: [{priority: 0, shutdownGracePeriodSeconds: 10s}]", "a number"),
            ("logging: {verbosity: \"4\"}", "without quotes"),
            ("cpuManagerPolicyOptions: {full-pcpus: \"true\"}", "no option"),
            ("cpuManagerPolicyOptions: {full-pcpus-only: true}", "in quotes"),
        ] {
            let found = found(config);
            assert_eq!(found.len(), 1, "{config}: {found:?}");
            assert_eq!(found[0].0, DefectKind::InvalidField, "{config}");
            assert!(found[0].1.contains(why), "{config}: {}", found[0].1);
        }
    }

    #[test]
    fn what_the_kubelet_takes_is_taken() {
        for config in [
            "shutdownGracePeriod: 1m30s",
            "shutdownGracePeriod: \"0\"",
            "shutdownGracePeriod: ${grace}",
            "shutdownGracePeriod: null",
            "shutdownGracePeriod:",
            "evictionHard: \
             {memory.available: 100Mi, nodefs.available: 10%, imagefs.inodesFree: \"0%\", pid.available: \"500\"}",
            "evictionHard: {memory.available: \"${hard}\"}",
            "evictionMinimumReclaim: {nodefs.available: 500Mi, memory.available: 0Mi, imagefs.available: 5%}",
            "systemReserved: {cpu: \"1\", memory: \"1e9\", ephemeral-storage: 1Gi, pid: \"1000\"}",
            "featureGates: {MemoryQoS: true, Other: yes}",
            "failSwapOn: off",
            "containerLogMaxSize: 10Mi",
            "containerLogMaxFiles: 5.0",
            "cpuManagerPolicy: static",
            "cpuManagerPolicyOptions: {full-pcpus-only: \"true\"}",
            "imageGCHighThresholdPercent: 100",
            "memoryThrottlingFactor: 0.9",
            "enforceNodeAllocatable: [pods, kube-reserved]",
            "reservedSystemCPUs: 0-1,8",
            "reservedMemory: [{numaNode: 0, limits: {memory: 1Gi, hugepages-2Mi: 2}}]",
            "registerWithTaints: [{key: a, effect: NoSchedule}]",
            "maxPods: \"58\"",
            "podPidsLimit: -1",
            "logging: {flushFrequency: 5s, verbosity: 4}",
            "logging: {flushFrequency: 5}",
            "kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1",
            "authentication: {anonymous: {enabled: false}, webhook: {cacheTTL: 2m0s}}",
        ] {
            assert_eq!(found(config), [], "{config}");
        }
    }

    #[test]
    fn a_field_that_the_kubelet_lacks_is_ignored() {
        let told = |config: &str| match found(config).as_slice() {
            [(DefectKind::FieldIgnored, message)] => message.clone(),
            other => panic!("{config}: {other:?}"),
        };
        assert!(told("shutdowngraceperiod: 30s").contains("shutdownGracePeriod is one"));
        assert!(told("imageGCHighTresholdPercent: 80").contains("imageGCHighThresholdPercent is one"));
        assert!(told("frobnicate: 1").ends_with("ignores it"));
        assert!(
            told("authentication: {anonymous: {enable: true}}").contains("authentication.anonymous.enabled is one")
        );
    }

    #[test]
    fn what_is_refused_in_a_node_class_is_found() {
        let told = |kubelet: &str| class_refusals(&serde_json::from_str(kubelet).unwrap());
        for (kubelet, path) in [
            (r#"{"evictionHard": {"memory.available": "100MB"}}"#, "evictionHard.memory.available"),
            (r#"{"evictionHard": {"memory.free": "100Mi"}}"#, "evictionHard.memory.free"),
            (r#"{"evictionHard": {"memory.available": 100}}"#, "evictionHard.memory.available"),
            (r#"{"kubeReserved": {"cpu": 1}}"#, "kubeReserved.cpu"),
            (r#"{"kubeReserved": {"mem": "1Gi"}}"#, "kubeReserved.mem"),
            (r#"{"kubeReserved": {"memory": "1GB"}}"#, "kubeReserved.memory"),
            (r#"{"systemReserved": {"memory": "-1Gi"}}"#, "systemReserved.memory"),
            (r#"{"evictionSoft": {"memory.available": "5%"}}"#, "evictionSoft.memory.available"),
            (r#"{"evictionSoftGracePeriod": {"memory.available": "1m"}}"#, "evictionSoftGracePeriod.memory.available"),
            (r#"{"imageGCHighThresholdPercent": 101}"#, "imageGCHighThresholdPercent"),
            (r#"{"imageGCHighThresholdPercent": 70}"#, "imageGCHighThresholdPercent"),
            (r#"{"podsPerCore": -1}"#, "podsPerCore"),
            (r#"{"cpuCFSQuota": "false"}"#, "cpuCFSQuota"),
            (r#"{"clusterDNS": "10.100.0.10"}"#, "clusterDNS"),
        ] {
            let told = told(kubelet);
            assert!(told.len() == 1 && told[0].0 == path, "{kubelet}: {told:?}");
        }
        for kubelet in [
            r#"{"evictionHard": {"memory.available": "5%", "nodefs.inodesFree": "10%"}, "maxPods": 58}"#,
            r#"{"evictionSoft": {"memory.available": "5%"}, "evictionSoftGracePeriod": {"memory.available": "1m"}}"#,
            r#"{"imageGCHighThresholdPercent": 70, "imageGCLowThresholdPercent": 60}"#,
            r#"{"registerWithTaints": "a=b:NoSchedule"}"#,
            r#"{"maxPods": "min(110, enis * 2)", "kubeReserved": {"memory": "11 * maxPods + 255", "pid": "max_pods"}}"#,
            r#"{"kubeReserved": {"cpu": "${cpu}", "memory": "1Gi"}, "clusterDNS": ["10.100.0.10"], "cpuCFSQuota": true}"#,
        ] {
            assert_eq!(told(kubelet), [], "{kubelet}");
        }
    }

    #[test]
    fn flags_are_parsed_by_their_types() {
        let told =
            |name: &str, value: &str| flag_refusal(name, value).map(|(span, why)| (span.of(value).to_owned(), why));
        for (name, value, place, why) in [
            ("max-pods", "abc", "abc", "whole number"),
            ("max-pods", "-5", "-5", "at least 0"),
            ("protect-kernel-defaults", "yes", "yes", "true or false"),
            ("node-status-update-frequency", "10", "10", "missing unit"),
            ("eviction-hard", "nodefs.available<10%,memory.available=100Mi", "memory.available=100Mi", "KEY<VALUE"),
            ("eviction-hard", "memory.available<100MB", "memory.available<100MB", "neither a quantity"),
            ("system-reserved", "cpu:500m,memory:1Gi", "cpu:500m", "KEY=VALUE"),
            ("system-reserved", "cpu=500m,memory=1GB", "memory=1GB", "no quantity"),
            ("feature-gates", "A=true,B=on", "B=on", "=true or =false"),
            ("topology-manager-policy", "single-numa", "single-numa", "one of"),
            ("address", "localhost", "localhost", "no address"),
            ("image-gc-high-threshold", "101", "101", "at most 100"),
            ("enforce-node-allocatable", "pods,kube", "pods,kube", "one of"),
        ] {
            let (at, told) = told(name, value).unwrap_or_else(|| panic!("--{name}={value}"));
            assert!(at == place && told.contains(why), "--{name}={value}: {at}: {told}");
        }
        for (name, value) in [
            ("max-pods", "110"),
            ("protect-kernel-defaults", "TRUE"),
            ("node-status-update-frequency", "10s"),
            ("eviction-hard", "memory.available<100Mi,nodefs.available<10%,"),
            ("system-reserved", "cpu=500m,memory=1Gi"),
            ("feature-gates", "A=true,B=0"),
            ("register-node", ""),
            ("node-labels", "a,b=c"),
            ("cluster-dns", "x"),
            ("v", "4"),
            ("frobnicate", "x"),
        ] {
            assert_eq!(told(name, value), None, "--{name}={value}");
        }
    }
}
