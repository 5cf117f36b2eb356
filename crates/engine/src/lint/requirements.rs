//! Requirements of a NodePool that Karpenter rejects, or that no machine ever meets.

use super::flaw::Flaw;
use super::machine_values;
use crate::objects::intern::Interned;
use crate::objects::{NodePool, Requirement, Taint};
use readers::userdata::has_expansion;

// karpenter v1.14.1 pkg/apis/v1/nodeclaim_validation.go SupportedNodeSelectorOps, and the enum of the NodePool's CRD
const OPERATORS: &[&str] = &["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"];

/// Keys whose values are a closed set, and those values.
// karpenter v1.14.1 pkg/apis/v1/labels.go; karpenter-provider-aws v1.14.1 pkg/apis/v1/labels.go WellKnownArchitectures
// and WellKnownValuesForRequirements, pkg/providers/instancetype/types.go getOS
const VALUES: &[(&str, &[&str])] = &[
    ("karpenter.sh/capacity-type", &["spot", "on-demand", "reserved"]),
    ("kubernetes.io/arch", &["amd64", "arm64"]),
    ("kubernetes.io/os", &["linux", "windows"]),
    ("karpenter.k8s.aws/instance-tenancy", &["default", "dedicated"]),
    // Bare metal has an empty one.
    ("karpenter.k8s.aws/instance-hypervisor", &["nitro", "xen", ""]),
    ("karpenter.k8s.aws/instance-encryption-in-transit-supported", BOOLEANS),
    ("karpenter.k8s.aws/instance-capability-flex", BOOLEANS),
    ("karpenter.k8s.aws/capacity-reservation-interruptible", BOOLEANS),
];

const BOOLEANS: &[&str] = &["true", "false"];

/// Older names that Karpenter reads as the newer ones.
// karpenter v1.14.1 pkg/apis/v1/labels.go NormalizedLabels
const NORMALIZED: &[(&str, &str)] =
    &[("beta.kubernetes.io/arch", "kubernetes.io/arch"), ("beta.kubernetes.io/os", "kubernetes.io/os")];

/// The name under which Karpenter reads a label.
pub fn normalized(key: &str) -> &str {
    NORMALIZED.iter().find(|(older, _)| *older == key).map_or(key, |(_, newer)| newer)
}

/// Common other names of the values, and the values.
const SYNONYMS: &[(&str, &str)] = &[
    ("aarch64", "arm64"),
    ("arm", "arm64"),
    ("x86_64", "amd64"),
    ("x64", "amd64"),
    ("ondemand", "on-demand"),
    ("yes", "true"),
    ("no", "false"),
];

/// Label domains that Karpenter reserves for itself.
// karpenter v1.14.1 and karpenter-provider-aws v1.14.1 pkg/apis/v1/labels.go RestrictedLabelDomains
const DOMAINS: &[&str] = &["karpenter.sh", "karpenter.k8s.aws"];

/// The labels in these domains that a requirement may use.
// karpenter-provider-aws v1.14.1 pkg/apis/crds/karpenter.sh_nodepools.yaml
const WELL_KNOWN: &[&str] = &[
    "karpenter.sh/capacity-type",
    "karpenter.k8s.aws/instance-tenancy",
    "karpenter.k8s.aws/capacity-reservation-type",
    "karpenter.k8s.aws/capacity-reservation-id",
    "karpenter.k8s.aws/capacity-reservation-interruptible",
    "karpenter.k8s.aws/ec2nodeclass",
    "karpenter.k8s.aws/instance-encryption-in-transit-supported",
    "karpenter.k8s.aws/instance-category",
    "karpenter.k8s.aws/instance-hypervisor",
    "karpenter.k8s.aws/instance-family",
    "karpenter.k8s.aws/instance-generation",
    "karpenter.k8s.aws/instance-local-nvme",
    "karpenter.k8s.aws/instance-size",
    "karpenter.k8s.aws/instance-cpu",
    "karpenter.k8s.aws/instance-cpu-manufacturer",
    "karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz",
    "karpenter.k8s.aws/instance-memory",
    "karpenter.k8s.aws/instance-ebs-bandwidth",
    "karpenter.k8s.aws/instance-network-bandwidth",
    "karpenter.k8s.aws/instance-gpu-name",
    "karpenter.k8s.aws/instance-gpu-manufacturer",
    "karpenter.k8s.aws/instance-gpu-count",
    "karpenter.k8s.aws/instance-gpu-memory",
    "karpenter.k8s.aws/instance-accelerator-name",
    "karpenter.k8s.aws/instance-accelerator-manufacturer",
    "karpenter.k8s.aws/instance-accelerator-count",
    "karpenter.k8s.aws/instance-capability-flex",
    "karpenter.k8s.aws/placement-group-id",
    "karpenter.k8s.aws/placement-group-partition",
];

/// The labels of other domains that tell machines apart.
// karpenter v1.14.1 pkg/apis/v1/labels.go WellKnownLabels
const OF_MACHINES: &[&str] = &[
    "kubernetes.io/arch",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];

/// Mistakes in the requirements of a NodePool of an EC2NodeClass. Placeholders are ignored, because they may become
/// anything. `launched` says whether the NodePool has machines.
pub fn flaws(pool: &NodePool, launched: bool) -> Vec<Flaw> {
    let mut flaws = Vec::new();
    for (at, requirement) in pool.spec.template.spec.requirements.iter().enumerate() {
        let (key, operator) = (requirement.key.as_str(), requirement.operator.as_str());
        let field = |below: &str| format!("spec.template.spec.requirements.{at}.{below}");
        let values: Vec<&str> = requirement.values.iter().map(Interned::as_str).collect();
        let pool = pool.name();
        if !has_expansion(key) && is_refused(key) {
            flaws.push(Flaw {
                cause: "RefusedRequirementKey",
                message: format!("NodePool {pool} requires the label {key}, which Karpenter refuses in a NodePool."),
                fix: nearest(key, WELL_KNOWN)
                    .map_or_else(|| "Remove it.".into(), |near| format!("Did you mean {near}?")),
                field: field("key"),
                fatal: true,
            });
        }
        if operator.is_empty() {
            flaws.push(Flaw {
                cause: "UnknownOperator",
                message: format!("NodePool {pool} has a requirement of {key} without an operator."),
                fix: "Write an operator, such as In.".into(),
                field: field("operator"),
                fatal: true,
            });
        } else if !has_expansion(operator) && !OPERATORS.contains(&operator) {
            flaws.push(Flaw {
                cause: "UnknownOperator",
                message: format!(
                    "NodePool {pool} has the operator {operator:?} for {key}, and Karpenter knows no such operator."
                ),
                fix: nearest(operator, OPERATORS).map_or_else(
                    || format!("Use one of {}.", OPERATORS.join(", ")),
                    |near| format!("Did you mean {near}?"),
                ),
                field: field("operator"),
                fatal: true,
            });
        }
        let key = normalized(key);
        if let Some(flaw) = bound(pool, requirement, &field("values")) {
            flaws.push(flaw);
            continue;
        }
        let excludes = operator == "NotIn";
        if operator != "In" && !excludes {
            continue;
        }
        let known = VALUES.iter().find(|(of, _)| *of == key).map(|(_, known)| *known);
        let refusal = |value: &str| match known {
            Some(known) if known.contains(&value) => None,
            Some(known) => Some(format!(
                "Use one of {}.",
                known.iter().filter(|k| !k.is_empty()).copied().collect::<Vec<_>>().join(", ")
            )),
            None => machine_values::refusal(key, value),
        };
        let is_unknown = |value: &&str| !has_expansion(value) && refusal(value).is_some();
        let nothing_else = !excludes && values.iter().all(is_unknown);
        for (number, value) in values.iter().enumerate().filter(|(_, value)| is_unknown(value)) {
            let outcome = match (excludes, nothing_else) {
                (true, _) => "so this excludes nothing",
                (_, true) => "so nothing is ever launched for it",
                _ => "so this value selects nothing",
            };
            flaws.push(Flaw {
                cause: "UnknownValue",
                message: format!("NodePool {pool} has the value {value:?} for {key}, which no node has, {outcome}."),
                fix: nearest(value, known.unwrap_or_default())
                    .filter(|near| !near.is_empty())
                    .map(|near| format!("Did you mean {near}?"))
                    .or_else(|| refusal(value))
                    .unwrap_or_default(),
                field: field(&format!("values.{number}")),
                fatal: nothing_else,
            });
        }
    }
    flaws.extend(excluding(pool));
    flaws.extend(excluded_types(pool, launched));
    flaws
}

/// A bound that the API server refuses.
// karpenter v1.14.1 pkg/apis/crds/karpenter.sh_nodepools.yaml: a single positive integer, or zero
fn bound(pool: &str, requirement: &Requirement, field: &str) -> Option<Flaw> {
    let operator = requirement.operator.as_str();
    let values = &requirement.values;
    let is_bound = matches!(operator, "Gt" | "Lt" | "Gte" | "Lte");
    if !is_bound || values.iter().any(|value| has_expansion(value)) {
        return None;
    }
    let is_number = |value: &Interned| value.parse::<i32>().is_ok_and(|number| number >= 0);
    if values.len() == 1 && values.iter().all(is_number) {
        return None;
    }
    let shown: Vec<&str> = values.iter().map(Interned::as_str).collect();
    Some(Flaw {
        cause: "UnknownValue",
        message: format!(
            "NodePool {pool} has the values {shown:?} for {} with the operator {operator}, which takes one whole \
             number. The API server rejects it.",
            requirement.key
        ),
        fix: "Write one whole number in quotes.".into(),
        field: field.to_owned(),
        fatal: true,
    })
}

/// The values that the requirements of one label allow together.
struct Allowed<'r> {
    /// The values of `In`. `None` allows all values.
    values: Option<Vec<&'r str>>,
    without: Vec<&'r str>,
    least: Option<i64>,
    most: Option<i64>,
}

impl<'r> Allowed<'r> {
    // karpenter v1.14.1 pkg/scheduling/requirement.go NewRequirementWithFlexibility, Intersection
    fn of(requirements: impl Iterator<Item = &'r Requirement>) -> Self {
        let mut allowed = Self { values: None, without: Vec::new(), least: None, most: None };
        for requirement in requirements {
            let own: Vec<&str> = requirement.values.iter().map(Interned::as_str).collect();
            let number = || own.first().and_then(|value| value.parse::<i64>().ok());
            let least = |least: Option<i64>, own: Option<i64>| least.max(own);
            let most = |most: Option<i64>, own: Option<i64>| match (most, own) {
                (Some(most), Some(own)) => Some(most.min(own)),
                (most, own) => most.or(own),
            };
            match requirement.operator.as_str() {
                "In" => {
                    allowed.values = Some(match allowed.values {
                        None => own,
                        Some(values) => values.into_iter().filter(|value| own.contains(value)).collect(),
                    });
                }
                "NotIn" => allowed.without.extend(own),
                "Gt" => allowed.least = least(allowed.least, number().and_then(|n| n.checked_add(1))),
                "Gte" => allowed.least = least(allowed.least, number()),
                "Lt" => allowed.most = most(allowed.most, number().and_then(|n| n.checked_sub(1))),
                "Lte" => allowed.most = most(allowed.most, number()),
                _ => {}
            }
        }
        allowed
    }

    /// Whether this value is left.
    fn allows(&self, value: &str) -> bool {
        let is_bounded = self.least.is_some() || self.most.is_some();
        let is_within =
            |number: i64| self.least.is_none_or(|least| number >= least) && self.most.is_none_or(|most| number <= most);
        self.values.as_ref().is_none_or(|values| values.contains(&value))
            && !self.without.contains(&value)
            && (!is_bounded || value.parse().is_ok_and(is_within))
    }

    /// Whether no value is left.
    fn is_empty(&self) -> bool {
        match &self.values {
            Some(values) => !values.iter().any(|value| self.allows(value)),
            None => self.least.zip(self.most).is_some_and(|(least, most)| least > most),
        }
    }
}

/// Requirements of one label that leave no value: Karpenter takes what all of them allow. Of labels that people make
/// up, a machine then simply has none.
// karpenter v1.14.1 pkg/scheduling/requirements.go Add, requirement.go Intersection
fn excluding(pool: &NodePool) -> Vec<Flaw> {
    let requirements = &pool.spec.template.spec.requirements;
    let mut seen: Vec<&str> = Vec::new();
    let mut flaws = Vec::new();
    for requirement in requirements {
        let key = requirement.key.as_str();
        let of_machines = WELL_KNOWN.contains(&key) || OF_MACHINES.contains(&key);
        if !of_machines || seen.contains(&key) {
            continue;
        }
        seen.push(key);
        let own = || requirements.iter().enumerate().filter(|(_, r)| r.key == key);
        let open = own().flat_map(|(_, r)| r.values.iter()).any(|value| has_expansion(value));
        let Some((last, _)) = own().skip(1).last().filter(|_| !open) else { continue };
        if !Allowed::of(own().map(|(_, r)| r)).is_empty() {
            continue;
        }
        flaws.push(Flaw {
            cause: "ExcludingRequirements",
            message: format!(
                "NodePool {} has requirements of {key} that leave no value, so nothing is ever launched for it.",
                pool.name()
            ),
            fix: "Keep one of them, or let them share a value.".into(),
            field: format!("spec.template.spec.requirements.{last}.key"),
            fatal: true,
        });
    }
    flaws
}

/// Labels whose values name instance types.
const TYPES: [&str; 2] = ["node.kubernetes.io/instance-type", "karpenter.k8s.aws/instance-family"];

/// Instance types or families that other requirements exclude, all of them. The labels are read off the names, so
/// machines of the NodePool may say otherwise.
// karpenter v1.15.0 pkg/cloudprovider/types.go InstanceTypes.Compatible
fn excluded_types(pool: &NodePool, launched: bool) -> Option<Flaw> {
    let outcome = if launched {
        "It has nodes, so the requirements have changed since, or the name means something else"
    } else {
        "Nothing is ever launched for it"
    };
    let requirements = &pool.spec.template.spec.requirements;
    let of = |key: &str| requirements.iter().filter(|r| normalized(&r.key) == key).collect::<Vec<_>>();
    // A placeholder may hold anything.
    let allowed = |key: &str| {
        let own = of(key);
        let is_open = own.iter().any(|r| has_expansion(&r.operator) || r.values.iter().any(|v| has_expansion(v)));
        let allowed = Allowed::of(own.into_iter());
        (!is_open && !allowed.is_empty()).then_some(allowed)
    };
    TYPES.into_iter().find_map(|key| {
        let named: Vec<&str> = allowed(key)?.values?;
        if named.iter().any(|name| machine_values::refusal(key, name).is_some()) {
            return None;
        }
        let excluded = |name: &&str| {
            let mut labels = machine_values::derived(name).into_iter();
            labels.find(|(label, value)| allowed(label).is_some_and(|allowed| !allowed.allows(value)))
        };
        let all = named.iter().map(excluded).collect::<Option<Vec<_>>>()?;
        let (name, (label, value)) = named.first().zip(all.first())?;
        let at = requirements.iter().position(|r| r.key == key && r.operator == "In")?;
        Some(Flaw {
            cause: "ExcludingRequirements",
            message: format!(
                "NodePool {} requires {}, and its other requirements exclude that: {name} has {label}={value}. \
                 {outcome}.",
                pool.name(),
                requirements.get(at)?.shown()
            ),
            fix: format!("Name other types, or allow {value} in {label}."),
            field: format!("spec.template.spec.requirements.{at}.values"),
            fatal: !launched,
        })
    })
}

/// Taints with the same key and effect, in one of the lists or in both: Karpenter takes the NodePool for invalid.
/// Source: karpenter v1.14.1 pkg/apis/v1/nodeclaim_validation.go `validateTaintsField` (v1.0.5 the same).
pub fn taints_twice(pool: &NodePool) -> Vec<Flaw> {
    let spec = &pool.spec.template.spec;
    let lists = [("taints", &spec.taints), ("startupTaints", &spec.startup_taints)];
    let all: Vec<(String, &Taint)> = lists
        .into_iter()
        .flat_map(|(list, taints)| taints.iter().enumerate().map(move |(at, taint)| (format!("{list}.{at}"), taint)))
        .collect();
    let is_same = |one: &Taint, other: &Taint| one.key == other.key && one.effect == other.effect;
    let twice = all.iter().enumerate().filter(|(at, (_, taint))| all.iter().take(*at).any(|(_, t)| is_same(t, taint)));
    twice
        .map(|(_, (place, taint))| Flaw {
            cause: "TaintTwice",
            message: format!(
                "NodePool {} has the taint {}:{} twice among taints and startupTaints: Karpenter takes the NodePool \
                 for invalid and launches nothing.",
                pool.name(),
                taint.key,
                taint.effect
            ),
            fix: "Keep one of them: in startupTaints if something removes it, else in taints.".into(),
            field: format!("spec.template.spec.{place}.key"),
            fatal: true,
        })
        .collect()
}

fn is_refused(key: &str) -> bool {
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    let kept =
        DOMAINS.iter().any(|kept| domain.strip_suffix(kept).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')));
    // karpenter v1.14.1 pkg/apis/v1/labels.go RestrictedLabels
    (kept && !WELL_KNOWN.contains(&key)) || key == "kubernetes.io/hostname"
}

/// The value that the user probably meant. It differs only in case and separators, is a synonym, or differs in at most
/// two letters.
fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let bare = |text: &str| {
        text.chars().filter(|c| !matches!(c, '-' | '_' | ' ')).flat_map(char::to_lowercase).collect::<String>()
    };
    let meant = SYNONYMS.iter().find(|(other, _)| bare(other) == bare(word)).map_or(word, |(_, value)| value);
    known.iter().find(|k| bare(k) == bare(meant)).or_else(|| known.iter().find(|k| within_two(word, k))).copied()
}

/// Whether the words differ in at most two letters between a common start and a common end.
fn within_two(one: &str, other: &str) -> bool {
    let same = |a: &mut dyn Iterator<Item = char>, b: &mut dyn Iterator<Item = char>| {
        a.zip(b).take_while(|(a, b)| a == b).count()
    };
    let (long, short) =
        (one.chars().count().max(other.chars().count()), one.chars().count().min(other.chars().count()));
    let begins = same(&mut one.chars(), &mut other.chars());
    let ends = same(&mut one.chars().rev(), &mut other.chars().rev()).min(short - begins);
    short > 2 && long - begins - ends <= 2
}

#[cfg(test)]
mod tests {
    use super::flaws;
    use crate::objects::NodePool;
    use serde_json::json;

    #[test]
    fn excluded_types_are_no_error_if_the_nodepool_has_machines() {
        let pool = json!({"metadata": {"name": "general"}, "spec": {"template": {"spec": {"requirements": [
            {"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["m5"]},
            {"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]},
        ]}}}});
        let pool: NodePool = serde_json::from_value(pool).expect("a NodePool");
        let told = |launched: bool| flaws(&pool, launched).iter().map(|f| (f.cause, f.fatal)).collect::<Vec<_>>();
        assert_eq!(told(false), [("ExcludingRequirements", true)]);
        assert_eq!(told(true), [("ExcludingRequirements", false)]);
    }
}
