//! Fields of the kubelet's configuration that contradict each other. What a kubelet gets is its image's defaults, then
//! the user's fields, then those of the node class, then flags.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value as Json;

use super::{
    Argument, By, Defect, DefectKind, Family, Fate, Setting, UserData, go_values, has_expansion, kubelet_config,
};
use crate::source_text::Span;

/// The value that the kubelet gets for one field, and the place where the user wrote it.
#[derive(Clone)]
struct FieldValue {
    /// `None` where it is not known.
    value: Option<String>,
    span: Option<Span>,
}

/// The merged configuration, as far as it is certain.
struct Merged(BTreeMap<String, FieldValue>);

/// Fields that images for Amazon Linux set, if a rule below looks at them.
// amazon-eks-ami 81fec2e nodeadm/internal/kubelet/config.go; the same in v20251112
// templates/al2/runtime/kubelet-config.json, which reserves no cgroups
const OF_IMAGES: &[(&str, &str)] = &[("serializeImagePulls", "false"), ("kubeReserved.cpu", "70m")];
const OF_NODEADM: &[(&str, &str)] = &[("systemReservedCgroup", "/system"), ("kubeReservedCgroup", "/runtime")];

/// From this minor version on, nodeadm shuts nodes down gracefully.
// amazon-eks-ami b8c7af92 (v20250920) nodeadm/internal/kubelet/config.go withVersionToggles
const GRACEFUL: u32 = 34;
pub const SHUTDOWN: [(&str, &str); 2] = [("shutdownGracePeriod", "2m30s"), ("shutdownGracePeriodCriticalPods", "30s")];

/// The kubelet's own defaults.
// kubernetes v1.36.3 pkg/kubelet/apis/config/v1beta1/defaults.go
const DEFAULTS: &[(&str, &str)] = &[
    ("imageGCHighThresholdPercent", "85"),
    ("imageGCLowThresholdPercent", "80"),
    ("imageMinimumGCAge", "2m"),
    ("cpuManagerPolicy", "none"),
    ("memoryManagerPolicy", "None"),
];

/// The fields that nodeadm's images of this minor version set for a graceful shutdown.
pub fn shutdown_of_image(minor: Option<u32>) -> &'static [(&'static str, &'static str)] {
    if minor.is_some_and(|minor| minor >= GRACEFUL) { &SHUTDOWN } else { &[] }
}

/// Over what of the text, together with the defaults and `spec.kubelet` of the class, a kubelet of this minor version
/// exits.
pub fn refusals(data: &UserData, minor: Option<u32>, class: &BTreeMap<String, Json>) -> Vec<Defect> {
    // Rendering a template may add and remove fields.
    if data.is_open || data.defects.iter().any(|defect| defect.kind == DefectKind::Template) {
        return Vec::new();
    }
    let nodeadm = match data.family {
        Family::Al2023 => true,
        Family::Custom => !data.node_configs.is_empty(),
        Family::Al2 => false,
        Family::Bottlerocket | Family::Windows => return Vec::new(),
    };
    if !nodeadm && !data.arguments.iter().any(super::Argument::is_taken) {
        return Vec::new();
    }
    let mut merged = Merged(BTreeMap::new());
    // Only a NodeConfig tells anything about an image of the user's own.
    if nodeadm || data.family == Family::Al2 {
        merged.extend(DEFAULTS);
        merged.extend(OF_IMAGES);
    }
    if nodeadm {
        merged.extend(OF_NODEADM);
        match minor {
            Some(_) => {
                merged.extend(&SHUTDOWN.map(|(field, _)| (field, "0")));
                merged.extend(shutdown_of_image(minor));
            }
            None => SHUTDOWN.iter().for_each(|(field, _)| merged.set(field, None, None)),
        }
    }
    let (fields, flags): (Vec<&Argument>, Vec<&Argument>) =
        data.arguments.iter().partition(|argument| matches!(argument.setting, Setting::Field(_)));
    for argument in fields {
        merged.field(argument);
    }
    if data.family == Family::Al2023 {
        for (field, value) in class {
            merged.of_class(field, value);
        }
    }
    let mut begun = HashSet::new();
    for argument in flags {
        merged.flag(argument, &mut begun);
    }
    let mut defects: Vec<Defect> = rules(&merged)
        .into_iter()
        .map(|(span, why)| Defect {
            kind: DefectKind::InvalidField,
            span,
            message: format!("the kubelet exits over its configuration: {why}"),
        })
        .collect();
    defects.extend(cloud_provider(data, minor));
    defects
}

/// The first minor version whose kubelet has no provider for AWS of its own.
pub const NO_CLOUD_PROVIDER: u32 = 27;

/// The kubelet of 1.27 lost its own provider for AWS. From 1.32 on it refuses every name but `external`.
// kubernetes v1.27.0 to v1.31.0 cmd/kubelet/app/server.go: cloudprovider.InitCloudProvider, "unknown cloud provider";
// v1.32.0 to v1.36.3 pkg/kubelet/kubelet.go: "built-in cloud providers are disabled"
fn cloud_provider(data: &UserData, minor: Option<u32>) -> Option<Defect> {
    let minor = minor.filter(|minor| *minor >= NO_CLOUD_PROVIDER)?;
    let argument = data.effective("cloud-provider").filter(|argument| argument.exact)?;
    let provider = argument.value.as_str();
    let is_known = provider.is_empty() || provider == "external" || has_expansion(provider);
    if is_known || (minor < 32 && provider != "aws") {
        return None;
    }
    let message =
        format!("the kubelet exits over --cloud-provider={provider}: Kubernetes 1.{minor} takes only `external`");
    Some(Defect { kind: DefectKind::InvalidFlagValue, span: argument.span, message })
}

impl Merged {
    fn set(&mut self, field: &str, value: Option<String>, span: Option<Span>) {
        self.0.insert(field.to_owned(), FieldValue { value, span });
    }

    fn extend(&mut self, defaults: &[(&str, &str)]) {
        for (field, value) in defaults {
            self.set(field, Some((*value).to_owned()), None);
        }
    }

    fn field(&mut self, argument: &Argument) {
        if matches!(argument.fate, Fate::Lost(_) | Fate::Overridden(By::Karpenter)) || argument.value.trim() == "null" {
            return;
        }
        let known = argument.exact && !has_expansion(&argument.value);
        self.set(argument.name(), known.then(|| argument.value.trim().to_owned()), Some(argument.span));
    }

    fn of_class(&mut self, field: &str, value: &Json) {
        let text = |value: &Json| match value {
            Json::String(text) => (!has_expansion(text)).then(|| text.clone()),
            Json::Number(number) => Some(number.to_string()),
            Json::Bool(value) => Some(value.to_string()),
            _ => None,
        };
        match value {
            Json::Object(entries) => {
                for (key, value) in entries {
                    self.set(&format!("{field}.{key}"), text(value), None);
                }
            }
            Json::Null | Json::Array(_) => {}
            value => self.set(field, text(value), None),
        }
    }

    fn flag(&mut self, argument: &Argument, begun: &mut HashSet<String>) {
        if matches!(argument.fate, Fate::Lost(_) | Fate::Overridden(By::Karpenter)) {
            return;
        }
        let Some((kind, path)) = kubelet_config::flag(argument.name()).filter(|(_, path)| !path.is_empty()) else {
            return;
        };
        let known = argument.exact && !has_expansion(&argument.value);
        if !kind.starts_with("map") {
            let value = if kind == "bool" && argument.value.is_empty() { "true" } else { argument.value.as_str() };
            self.set(path, known.then(|| value.to_owned()), Some(argument.span));
            return;
        }
        // The first occurrence of a flag replaces the whole map of the file, and the others add to it.
        // kubernetes v1.36.3 cmd/kubelet/app/server.go kubeletConfigFlagPrecedence
        if begun.insert(path.to_owned()) && path != "featureGates" {
            self.0.retain(|field, _| !field.strip_prefix(path).is_some_and(|rest| rest.starts_with('.')));
        }
        if !known {
            self.set(&format!("{path}.?"), None, Some(argument.span));
            return;
        }
        let separator = if kind == "map[string<string]" { '<' } else { '=' };
        for (key, value) in argument.value.split(',').filter_map(|pair| pair.split_once(separator)) {
            self.set(&format!("{path}.{}", key.trim()), Some(value.trim().to_owned()), Some(argument.span));
        }
    }

    fn value(&self, field: &str) -> Option<&str> {
        self.0.get(field)?.value.as_deref()
    }

    fn number(&self, field: &str) -> Option<f64> {
        self.value(field)?.replace('_', "").parse().ok()
    }

    fn duration(&self, field: &str) -> Option<i128> {
        go_values::duration(self.value(field)?.trim_matches(['"', '\''])).ok()
    }

    /// The place of the last of these fields that the user wrote.
    fn place(&self, fields: &[&str]) -> Option<Span> {
        fields.iter().filter_map(|field| self.0.get(*field)?.span).max_by_key(|span| span.start)
    }

    /// The keys of a map, and whether all of them are known.
    fn keys<'m>(&'m self, map: &str) -> (Vec<(&'m str, &'m FieldValue)>, bool) {
        let of_map = |field: &'m String| field.strip_prefix(map)?.strip_prefix('.');
        let keys: Vec<_> = self.0.iter().filter_map(|(field, told)| Some((of_map(field)?, told))).collect();
        let known = keys.iter().all(|(key, _)| *key != "?" && !has_expansion(key)) && !self.0.contains_key(map);
        (keys, known)
    }
}

// kubernetes v1.36.3 pkg/kubelet/apis/config/validation/validation.go; pkg/kubelet/eviction/helpers.go
// ParseThresholdConfig; pkg/kubelet/cm/cpumanager/policy_none.go; pkg/kubelet/cm/memorymanager/policy_static.go
fn rules(merged: &Merged) -> Vec<(Span, String)> {
    let told = [
        shutdown(merged),
        shutdown_twice(merged),
        image_percent(merged),
        image_age(merged),
        parallel_pulls(merged),
        soft_eviction(merged),
        reserved_cpus(merged),
        cpu_options(merged),
        static_memory(merged),
    ];
    told.into_iter().flatten().collect()
}

fn shutdown(merged: &Merged) -> Option<(Span, String)> {
    let [total, critical] = SHUTDOWN.map(|(field, _)| field);
    let shows = |field| merged.value(field).unwrap_or_default();
    let exceeds = merged.duration(critical)? > merged.duration(total)?;
    let place = merged.place(&[total, critical]).filter(|_| exceeds)?;
    Some((place, format!("{critical} {} must be <= {total} {}", shows(critical), shows(total))))
}

/// Both ways of a graceful shutdown, each of them the user's own.
fn shutdown_twice(merged: &Merged) -> Option<(Span, String)> {
    let by_priority = merged.0.get("shutdownGracePeriodByPodPriority")?;
    let is_empty = by_priority.value.as_deref().is_none_or(|value| value.trim() == "[]");
    let own = |field: &&str| merged.place(&[field]).is_some() && merged.duration(field).is_some_and(|d| d > 0);
    SHUTDOWN.iter().map(|(field, _)| *field).find(|field| own(field)).filter(|_| !is_empty)?;
    Some((by_priority.span?, "shutdownGracePeriodByPodPriority and shutdownGracePeriod cannot both be set".to_owned()))
}

fn image_percent(merged: &Merged) -> Option<(Span, String)> {
    let [low, high] = ["imageGCLowThresholdPercent", "imageGCHighThresholdPercent"];
    let (least, most) = (merged.number(low)?, merged.number(high)?);
    let place = merged.place(&[low, high]).filter(|_| least >= most)?;
    Some((place, format!("{low} {least} must be less than {high} {most}")))
}

fn image_age(merged: &Merged) -> Option<(Span, String)> {
    let [least, most] = ["imageMinimumGCAge", "imageMaximumGCAge"];
    let age = merged.duration(most).filter(|age| *age > 0)?;
    let place = merged.place(&[least, most]).filter(|_| merged.duration(least).is_some_and(|least| age <= least))?;
    Some((place, format!("{most} must be greater than {least} {}", merged.value(least)?)))
}

fn parallel_pulls(merged: &Merged) -> Option<(Span, String)> {
    let [serial, parallel] = ["serializeImagePulls", "maxParallelImagePulls"];
    let both = go_values::boolean(merged.value(serial)?)? && merged.number(parallel)? > 1.0;
    let place = merged.place(&[serial, parallel]).filter(|_| both)?;
    Some((place, format!("{parallel} cannot be larger than 1 unless {serial} is false")))
}

fn soft_eviction(merged: &Merged) -> Option<(Span, String)> {
    let (thresholds, _) = merged.keys("evictionSoft");
    let (periods, true) = merged.keys("evictionSoftGracePeriod") else { return None };
    // Thresholds of 0% and 100% are none.
    let counts = |told: &FieldValue| told.value.as_deref().is_some_and(|value| !matches!(value, "0%" | "100%"));
    let periods: HashSet<&str> = periods.iter().map(|(period, _)| *period).collect();
    let lacks = |key: &str| !periods.contains(key);
    let (key, told) = thresholds.into_iter().find(|(key, told)| counts(told) && told.span.is_some() && lacks(key))?;
    Some((told.span?, format!("evictionSoftGracePeriod.{key} must be specified for the soft threshold of {key}")))
}

fn reserved_cpus(merged: &Merged) -> Option<(Span, String)> {
    let cpus = "reservedSystemCPUs";
    merged.value(cpus).filter(|value| !value.trim_matches(['"', '\'']).is_empty())?;
    let cgroup = |field: &&str| merged.value(field).is_some_and(|value| !value.trim_matches(['"', '\'']).is_empty());
    let cgroup = ["systemReservedCgroup", "kubeReservedCgroup"].into_iter().find(cgroup)?;
    let by = if merged.place(&[cgroup]).is_none() { ", which nodeadm sets" } else { "" };
    Some((merged.place(&[cpus])?, format!("{cpus} cannot be used with {cgroup}{by}")))
}

fn cpu_options(merged: &Merged) -> Option<(Span, String)> {
    let (options, _) = merged.keys("cpuManagerPolicyOptions");
    let place = options.iter().find_map(|(_, told)| told.span)?;
    (merged.value("cpuManagerPolicy")? == "none")
        .then(|| (place, "cpuManagerPolicyOptions need the cpuManagerPolicy static".to_owned()))
}

fn static_memory(merged: &Merged) -> Option<(Span, String)> {
    let policy = "memoryManagerPolicy";
    (merged.value(policy)? == "Static" && !merged.0.contains_key("reservedMemory")).then_some(())?;
    let message =
        format!("{policy} Static needs reservedMemory: all that kubeReserved, systemReserved and evictionHard take");
    Some((merged.place(&[policy])?, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(kubelet: &str, minor: Option<u32>, class: &str) -> Vec<String> {
        let lines = kubelet.lines().fold(String::new(), |all, line| all + "    " + line + "\n");
        let text = format!("apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n{lines}");
        let data = super::super::read(&text, Family::Al2023);
        let class = serde_json::from_str(class).unwrap();
        refusals(&data, minor, &class).into_iter().map(|defect| defect.message).collect()
    }

    #[test]
    fn fields_that_contradict_each_other_are_found() {
        for (kubelet, minor, why) in [
            ("config:\n  imageGCHighThresholdPercent: 60\n  imageGCLowThresholdPercent: 80", None, "less than"),
            ("config:\n  imageGCHighThresholdPercent: 70", None, "imageGCLowThresholdPercent 80"),
            ("config:\n  imageGCLowThresholdPercent: 90", None, "imageGCHighThresholdPercent 85"),
            ("flags: [--image-gc-high-threshold=75]", None, "imageGCLowThresholdPercent 80"),
            ("config:\n  serializeImagePulls: true\n  maxParallelImagePulls: 5", None, "larger than 1"),
            ("config:\n  evictionSoft: {memory.available: 500Mi}", None, "must be specified"),
            (
                "config:\n  evictionSoft: {memory.available: 5%}\n  evictionSoftGracePeriod: {nodefs.available: 1m}",
                None,
                "of memory",
            ),
            ("flags: [\"--eviction-soft=memory.available<500Mi\"]", None, "must be specified"),
            ("config:\n  shutdownGracePeriod: 20s", Some(35), "30s must be <= shutdownGracePeriod 20s"),
            ("config:\n  shutdownGracePeriodCriticalPods: 10s", Some(33), "must be <="),
            ("config:\n  shutdownGracePeriod: 20s\n  shutdownGracePeriodCriticalPods: 30s", None, "must be <="),
            ("config:\n  reservedSystemCPUs: 0-1", None, "which nodeadm sets"),
            ("config:\n  cpuManagerPolicyOptions: {full-pcpus-only: \"true\"}", None, "static"),
            ("config:\n  memoryManagerPolicy: Static", None, "reservedMemory"),
            ("config:\n  imageMaximumGCAge: 1m", None, "greater than"),
            ("flags: [--cloud-provider=aws]", Some(30), "takes only `external`"),
            ("flags: [--cloud-provider=aws]", Some(33), "takes only `external`"),
            ("flags: [--cloud-provider=gce]", Some(32), "takes only `external`"),
        ] {
            let found = found(kubelet, minor, "{}");
            assert!(found.len() == 1 && found[0].contains(why), "{kubelet}: {found:?}");
        }
    }

    #[test]
    fn fields_that_agree_are_not() {
        for (kubelet, minor, class) in [
            ("config:\n  imageGCHighThresholdPercent: 70\n  imageGCLowThresholdPercent: 60", None, "{}"),
            ("config:\n  imageGCHighThresholdPercent: 70", None, r#"{"imageGCLowThresholdPercent": 50}"#),
            ("config:\n  imageGCHighThresholdPercent: ${high}", None, "{}"),
            ("config:\n  imageGCHighThresholdPercent: 60\nflags: [--image-gc-low-threshold=50]", None, "{}"),
            ("config:\n  maxParallelImagePulls: 5", None, "{}"),
            ("config:\n  serializeImagePulls: true\n  maxParallelImagePulls: 1", None, "{}"),
            (
                "config:\n  evictionSoft: {memory.available: 5%}\n  evictionSoftGracePeriod: {memory.available: 1m}",
                None,
                "{}",
            ),
            ("config:\n  evictionSoft: {memory.available: 100%}", None, "{}"),
            (
                "config:\n  evictionSoft: {memory.available: 5%}",
                None,
                r#"{"evictionSoftGracePeriod": {"memory.available": "1m"}}"#,
            ),
            ("config:\n  evictionSoftGracePeriod: {memory.available: 1m}", None, "{}"),
            ("config:\n  shutdownGracePeriod: 20s", None, "{}"),
            ("config:\n  shutdownGracePeriod: 20s", Some(33), "{}"),
            ("config:\n  shutdownGracePeriod: 45s", Some(35), "{}"),
            ("config:\n  shutdownGracePeriodCriticalPods: 1m", Some(35), "{}"),
            (
                "config:\n  reservedSystemCPUs: 0-1\n  systemReservedCgroup: \"\"\n  kubeReservedCgroup: \"\"",
                None,
                "{}",
            ),
            ("config:\n  cpuManagerPolicy: static\n  cpuManagerPolicyOptions: {full-pcpus-only: \"true\"}", None, "{}"),
            (
                "config:\n  memoryManagerPolicy: Static\n  reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]",
                None,
                "{}",
            ),
            ("flags: [--cloud-provider=external]", Some(30), "{}"),
            ("flags: [--cloud-provider=gce]", Some(31), "{}"),
            ("flags: [\"--cloud-provider=${provider}\"]", Some(33), "{}"),
            ("flags: [--cloud-provider=aws]", None, "{}"),
        ] {
            assert_eq!(found(kubelet, minor, class), Vec::<String>::new(), "{kubelet}");
        }
    }

    #[test]
    fn flags_of_an_old_image_are_compared_with_the_defaults() {
        let text = "#!/bin/bash\n/etc/eks/bootstrap.sh shop --kubelet-extra-args '--image-gc-high-threshold=70'\n";
        let refused = |text: &str| refusals(&super::super::read(text, Family::Al2), None, &BTreeMap::new()).len();
        assert_eq!(refused(text), 1);
        assert_eq!(refused(&text.replace("70'", "70 --image-gc-low-threshold=60'")), 0);
        assert_eq!(refused("#!/bin/bash\necho\n"), 0);
    }
}
