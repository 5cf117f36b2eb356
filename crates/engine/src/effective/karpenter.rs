//! What Karpenter hands to the kubelet: taints, labels and settings of the NodePool and the node class, in the family's
//! own way.

use super::{Kind, Machine, MergeOutcome, Origin, Value};
use crate::objects::{NodePool, Taint};
use crate::upstream::karpenter::{DO_NOT_SYNC_TAINTS_LABEL, UNREGISTERED_TAINT, Version};
use readers::userdata::{DefectKind, Family, Loss, OWNED_BY_KARPENTER, UserData, may_be_cel};
use serde_json::Value as Json;

/// The version whose source these rules were read from; it stands in where none is known.
const NEWEST: Version = Version(1, 15, 0);

/// A field of `spec.kubelet`, the kubelet's flag for it, and Bottlerocket's setting; none where the family has none.
// karpenter-provider-aws v1.14.1, v1.15.0 pkg/providers/amifamily/bootstrap/{bootstrap,bottlerocket}.go
const FIELDS: &[(&str, Option<&str>, Option<&str>)] = &[
    ("clusterDNS", None, Some("cluster-dns-ip")),
    ("maxPods", Some("max-pods"), Some("max-pods")),
    ("podsPerCore", Some("pods-per-core"), None),
    ("systemReserved", Some("system-reserved"), Some("system-reserved")),
    ("kubeReserved", Some("kube-reserved"), Some("kube-reserved")),
    ("evictionHard", Some("eviction-hard"), Some("eviction-hard")),
    ("evictionSoft", Some("eviction-soft"), Some("eviction-soft")),
    ("evictionSoftGracePeriod", Some("eviction-soft-grace-period"), Some("eviction-soft-grace-period")),
    ("evictionMaxPodGracePeriod", Some("eviction-max-pod-grace-period"), Some("eviction-max-pod-grace-period")),
    ("imageGCHighThresholdPercent", Some("image-gc-high-threshold"), Some("image-gc-high-threshold-percent")),
    ("imageGCLowThresholdPercent", Some("image-gc-low-threshold"), Some("image-gc-low-threshold-percent")),
    ("cpuCFSQuota", Some("cpu-cfs-quota"), Some("cpu-cfs-quota-enforced")),
];

const ELSEWHERE: &str = "Karpenter adds it to the Node when it registers, the kubelet is not told";
const NOT_CUSTOM: &str = "with amiFamily Custom Karpenter only reckons with it; the kubelet is not told";

/// Karpenter's part for this machine, and what becomes of it under the user's text.
pub fn values(machine: &Machine, data: &UserData) -> Vec<Value> {
    let mut values = cluster(machine);
    values.extend(kubelet(machine));
    values.extend(passed_on(machine));
    values.extend(taints(machine));
    values.extend(labels(machine));
    values.extend(local_storage(machine));
    let flags_behind = data.defects.iter().any(|d| d.kind == DefectKind::CutAtNewline);
    let before = data.defects.iter().any(|d| d.kind == DefectKind::EndsBeforeKarpenter);
    let called = data.bootstrap_calls.iter().any(|call| call.starts_kubelet);
    for (value, occurrence) in values.iter_mut().zip(20_000..) {
        if value.occurrence == 0 {
            value.occurrence = occurrence;
        }
        let lost = match machine.family {
            Family::Custom => match (value.kind, value.name.as_str()) {
                (_, "node-labels" | "register-with-taints") => Some(ELSEWHERE.to_owned()),
                _ => Some(NOT_CUSTOM.to_owned()),
            },
            Family::Al2 if called => Some(Loss::KubeletRunsAlready.to_string()),
            Family::Al2023 if flags_behind && value.kind == Kind::Flag => Some(Loss::CutAtNewline.to_string()),
            Family::Windows if before => Some("the script ends before Karpenter's own lines".to_owned()),
            _ => None,
        };
        // A call that is perhaps made leaves both possible.
        value.exact &= machine.family != Family::Al2 || called || !data.starts_kubelet_before_karpenter();
        if let (Some(lost), MergeOutcome::Effective) = (lost, &value.outcome) {
            value.outcome = MergeOutcome::Lost(lost);
        }
    }
    values
}

fn value(kind: Kind, name: &str, text: impl Into<String>, origin: Origin) -> Value {
    let (name, value) = (name.to_owned(), text.into());
    Value { kind, name, value, literal: true, origin, outcome: MergeOutcome::Effective, exact: true, occurrence: 0 }
}

fn cluster(machine: &Machine) -> Vec<Value> {
    let (kind, names) = match machine.family {
        Family::Custom => return Vec::new(),
        Family::Bottlerocket => (Kind::Setting, ["cluster-name", "api-server", "cluster-certificate"]),
        Family::Al2 | Family::Al2023 | Family::Windows => {
            (Kind::Cluster, ["name", "apiServerEndpoint", "certificateAuthority"])
        }
    };
    let known = [machine.cluster.name, machine.cluster.endpoint, None];
    let sources = ["CLUSTER_NAME of Karpenter's Deployment", "asked of EKS by Karpenter", "asked of EKS by Karpenter"];
    let facts = names.into_iter().zip(known).zip(sources);
    let fact = |((name, known), source): ((&str, Option<&str>), &str)| Value {
        literal: known.is_some(),
        ..value(kind, name, known.unwrap_or(source), Origin::Karpenter)
    };
    facts.map(fact).collect()
}

fn kubelet(machine: &Machine) -> Vec<Value> {
    let class = &machine.class.spec.kubelet;
    let mut values = Vec::new();
    for (field, flag, setting) in FIELDS {
        let given = class.get(*field).filter(|given| !given.is_null());
        let origin = given.map_or(Origin::Karpenter, |_| Origin::NodeClass(format!("spec.kubelet.{field}")));
        let (text, literal) = match (given, *field) {
            (Some(given), _) => (written(given, separator(field)), !has_expression(field, given)),
            (None, "maxPods") if machine.family != Family::Custom => ("by the instance's type".to_owned(), false),
            (None, "clusterDNS") if machine.family != Family::Custom => {
                ("the address of the cluster's DNS service".to_owned(), false)
            }
            _ => continue,
        };
        let one = |kind, name: &str, text: String| Value { literal, ..value(kind, name, text, origin.clone()) };
        match (machine.family, flag, setting) {
            // bootstrap.sh and Start-EKSBootstrap.ps1 write this one into the configuration.
            (Family::Al2 | Family::Windows, None, _) => values.push(one(Kind::Config, field, text)),
            (Family::Al2 | Family::Windows, Some(flag), _) => values.push(one(Kind::Flag, flag, text)),
            (Family::Bottlerocket, _, Some(setting)) => values.push(one(Kind::Setting, setting, text)),
            (Family::Bottlerocket, _, None) => {
                let lost = MergeOutcome::Lost("Bottlerocket has no setting for it".to_owned());
                values.push(Value { outcome: lost, ..one(Kind::Config, field, text) });
            }
            (Family::Al2023 | Family::Custom, ..) => match given {
                Some(Json::Object(entries)) => {
                    values.extend(entries.iter().map(|(key, entry)| {
                        let path = format!("{field}.{key}");
                        let literal = !is_expression(&path, entry);
                        Value { literal, ..one(Kind::Config, &path, written(entry, "=")) }
                    }));
                }
                _ => values.push(one(Kind::Config, field, text)),
            },
        }
    }
    values
}

/// Since 1.15, `spec.kubelet` takes every field of the kubelet, and Karpenter hands those beyond [`FIELDS`] to nodeadm
/// as they are. A class of another family with such a field is not Ready. The schema before 1.15 drops the field.
// karpenter-provider-aws v1.15.0 pkg/providers/amifamily/bootstrap/nodeadm.go generateInlineKubeletConfiguration,
// pkg/controllers/nodeclass/validation.go validateKubeletFieldsSupported; v1.14.1 pkg/apis/v1/ec2nodeclass.go
fn passed_on(machine: &Machine) -> Vec<Value> {
    let lost = if machine.karpenter.unwrap_or(NEWEST) < Version(1, 15, 0) {
        Some("spec.kubelet has this field since Karpenter 1.15")
    } else if !matches!(machine.family, Family::Al2023 | Family::Custom) {
        Some("Karpenter hands this field on with amiFamily AL2023 only, and calls this class not Ready")
    } else {
        None
    };
    let outcome = lost.map_or(MergeOutcome::Effective, |why| MergeOutcome::Lost(why.to_owned()));
    let mut values = Vec::new();
    for (field, given) in &machine.class.spec.kubelet {
        let is_other = !FIELDS.iter().any(|(known, ..)| known == field) && field != OWNED_BY_KARPENTER;
        if !is_other || given.is_null() {
            continue;
        }
        let origin = Origin::NodeClass(format!("spec.kubelet.{field}"));
        let one = |name: &str, given: &Json| Value {
            outcome: outcome.clone(),
            ..value(Kind::Config, name, written(given, "="), origin.clone())
        };
        match given {
            Json::Object(entries) => {
                values.extend(entries.iter().map(|(key, entry)| one(&format!("{field}.{key}"), entry)));
            }
            _ => values.push(one(field, given)),
        }
    }
    values
}

/// Whether Karpenter computes a value from an expression, for each instance type.
fn has_expression(field: &str, value: &Json) -> bool {
    match value {
        Json::Object(entries) => entries.iter().any(|(key, entry)| is_expression(&format!("{field}.{key}"), entry)),
        value => is_expression(field, value),
    }
}

fn is_expression(path: &str, value: &Json) -> bool {
    value.as_str().is_some_and(|text| may_be_cel(path, text))
}

/// Thresholds are written with `<`.
fn separator(field: &str) -> &'static str {
    if matches!(field, "evictionHard" | "evictionSoft") { "<" } else { "=" }
}

/// A value of `spec.kubelet` as Karpenter writes it into a flag.
fn written(value: &Json, separator: &str) -> String {
    let one = |value: &Json| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match value {
        Json::Object(entries) => {
            entries.iter().map(|(k, v)| format!("{k}{separator}{}", one(v))).collect::<Vec<_>>().join(",")
        }
        Json::Array(items) => items.iter().map(one).collect::<Vec<_>>().join(","),
        value => one(value),
    }
}

/// NodePool taints, startup taints, and the one by which Karpenter knows a Node that it has not registered.
// karpenter-provider-aws v1.14.1 pkg/providers/amifamily/resolver.go resolveLaunchTemplates
fn taints(machine: &Machine) -> Vec<Value> {
    let (kind, name) = match machine.family {
        Family::Al2023 => (Kind::Config, "registerWithTaints"),
        Family::Bottlerocket => (Kind::Setting, "node-taints"),
        Family::Al2 | Family::Windows | Family::Custom => (Kind::Flag, "register-with-taints"),
    };
    let unregistered = Taint { key: UNREGISTERED_TAINT.into(), effect: "NoExecute".into(), ..Taint::default() };
    let spec = machine.pool.map(|pool| &pool.spec.template.spec);
    let of_pool = spec.into_iter().flat_map(|spec| {
        let taints = spec.taints.iter().map(|taint| (taint, "spec.template.spec.taints"));
        taints.chain(spec.startup_taints.iter().map(|taint| (taint, "spec.template.spec.startupTaints")))
    });
    let mut values: Vec<Value> = of_pool
        .clone()
        .map(|(taint, field)| value(kind, name, taint.to_string(), Origin::NodePool(field.to_owned())))
        .collect();
    if machine.family != Family::Custom && !of_pool.clone().any(|(taint, _)| taint.matches(&unregistered)) {
        values.push(value(kind, name, unregistered.to_string(), Origin::Karpenter));
    }
    for value in &mut values {
        value.occurrence = 19_999;
    }
    values
}

/// Labels of the NodePool that the kubelet may set, and Karpenter's own.
// karpenter-provider-aws v1.14.1 pkg/providers/launchtemplate/launchtemplate.go EnsureAll, InjectDoNotSyncTaintsLabel,
// pkg/providers/amifamily/resolver.go RejectForbiddenLabels
fn labels(machine: &Machine) -> Vec<Value> {
    let kind = if machine.family == Family::Bottlerocket { Kind::Setting } else { Kind::Flag };
    let label = |key: &str, text: &str, origin: Origin| value(kind, "node-labels", format!("{key}={text}"), origin);
    let mut values = Vec::new();
    if let Some(pool) = machine.pool {
        values.extend(pool_labels(pool).map(|(key, text, field)| label(key, text, Origin::NodePool(field))));
        values.push(label("karpenter.sh/nodepool", pool.name(), Origin::Karpenter));
    }
    if !machine.class.name().is_empty() {
        values.push(label("karpenter.k8s.aws/ec2nodeclass", machine.class.name(), Origin::Karpenter));
    }
    if machine.family != Family::Custom && machine.karpenter.unwrap_or(NEWEST) >= Version(1, 5, 0) {
        values.push(label(DO_NOT_SYNC_TAINTS_LABEL, "true", Origin::Karpenter));
    }
    let types = machine.pool.into_iter().flat_map(|pool| pool.spec.template.spec.requirements.iter());
    let one = types.filter(|r| r.key == CAPACITY_TYPE && r.operator == "In").find_map(|r| match &*r.values {
        [one] => Some(one.as_str()),
        _ => None,
    });
    let capacity = label(CAPACITY_TYPE, one.unwrap_or("that of the instance"), Origin::Karpenter);
    values.push(Value { literal: one.is_some(), ..capacity });
    values
}

const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";

/// The disks in Karpenter's own NodeConfig.
// karpenter-provider-aws v1.14.1 pkg/providers/amifamily/bootstrap/nodeadm.go getNodeConfigYAML
fn local_storage(machine: &Machine) -> Option<Value> {
    let policy = machine.class.spec.instance_store_policy.as_deref().filter(|policy| *policy == "RAID0")?;
    let origin = Origin::NodeClass("spec.instanceStorePolicy".to_owned());
    (machine.family == Family::Al2023)
        .then(|| value(Kind::NodeConfig, "instance.localStorage.strategy", policy, origin))
}

fn pool_labels(pool: &NodePool) -> impl Iterator<Item = (&str, &str, String)> {
    let template = &pool.spec.template;
    let labels = template.metadata.labels.iter().map(|(k, v)| (k, v, "spec.template.metadata.labels".to_owned()));
    let required = template.spec.requirements.iter().filter_map(|r| match &*r.values {
        [one] if r.operator == "In" && !is_well_known(&r.key) => {
            Some((r.key.as_str(), one.as_str(), "spec.template.spec.requirements".to_owned()))
        }
        _ => None,
    });
    labels.filter(|(key, ..)| !is_under(key, &["kubernetes.io", "k8s.io"])).chain(required)
}

/// Requirements about these say which machine is meant, and are no labels for the kubelet.
// core v1.14.3 pkg/apis/v1/labels.go IsRestrictedNodeLabel
fn is_well_known(key: &str) -> bool {
    is_under(key, &["kubernetes.io", "k8s.io", "karpenter.sh", "karpenter.k8s.aws"])
}

fn is_under(key: &str, domains: &[&str]) -> bool {
    let Some((own, _)) = key.split_once('/') else { return false };
    domains.iter().any(|domain| own.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
}

/// The least that Karpenter renders: the user's text, what it adds of what is known, and the frame around both.
// karpenter-provider-aws v1.14.1 pkg/providers/amifamily/bootstrap/{eksbootstrap,nodeadm}.go, mime/mime.go
pub fn rendered(machine: &Machine, text: &str, values: &[Value]) -> usize {
    /// Boundary lines and headers of a MIME archive with one part of the user's and one of Karpenter's.
    const FRAME: usize = 180;
    /// The smallest certificate authority of a cluster in base64; EKS's are near 1,470.
    const CERTIFICATE: usize = 1_000;
    let own = values.iter().filter(|v| v.literal && !matches!(v.origin, Origin::UserData(_) | Origin::Image));
    let added: usize = own.map(|v| v.value.len() + 1).sum();
    match machine.family {
        Family::Custom => text.len(),
        Family::Al2 | Family::Al2023 => text.len() + FRAME + CERTIFICATE + added,
        Family::Bottlerocket | Family::Windows => text.len() + CERTIFICATE + added,
    }
}
