//! The configuration that the kubelet of a machine really gets: the defaults of the image, the user's text and
//! Karpenter's part, merged as each layer merges them. Each value has its origin and its outcome.

pub mod difference;
mod image;
mod karpenter;
mod user;

use crate::objects::{NodeClass, NodePool};
use crate::upstream::karpenter::Version;
use readers::source_text::Span;
use readers::userdata::{self, Consequence, Defect, DefectKind, Family, UserData};
use std::collections::HashMap;

/// The inputs that decide how a machine starts.
#[derive(Debug, Clone, Copy)]
pub struct Machine<'a> {
    pub class: &'a NodeClass,
    pub family: Family,
    pub pool: Option<&'a NodePool>,
    /// The version of the AWS provider. `None` means the newest known version.
    pub karpenter: Option<Version>,
    /// The minor version of Kubernetes 1.
    pub kubernetes: Option<u32>,
    /// The cluster that Karpenter works for, as far as it is known.
    pub cluster: ClusterIdentity<'a>,
}

/// A cluster's identity.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClusterIdentity<'a> {
    pub name: Option<&'a str>,
    pub endpoint: Option<&'a str>,
    /// Its certificate authority, in base64.
    pub authority: Option<&'a str>,
}

/// The part of the configuration that a value belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Which cluster the kubelet joins.
    Cluster,
    /// A field of the kubelet's configuration. Each map entry is a field of its own.
    Config,
    /// A flag on the kubelet's command line. Each taint and label is a value of its own.
    Flag,
    /// A setting of Bottlerocket.
    Setting,
    /// A field of a NodeConfig beside those of the kubelet and the cluster.
    NodeConfig,
}

/// The origin of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    UserData(Span),
    /// A field of the node class.
    NodeClass(String),
    /// A field of the NodePool.
    NodePool(String),
    Karpenter,
    Image,
}

/// The outcome of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeOutcome {
    Effective,
    Overridden { by: Origin, because: &'static str },
    Lost(String),
}

/// One value on its way to the kubelet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    pub kind: Kind,
    /// The flag without dashes, or the field.
    pub name: String,
    /// The value. If only the machine will know it, the expression that it is made from.
    pub value: String,
    /// Whether `value` is the value itself.
    pub literal: bool,
    pub origin: Origin,
    pub outcome: MergeOutcome,
    /// False if the text could not be followed with certainty.
    pub exact: bool,
    /// Groups the values of one flag or field. They are overridden together.
    occurrence: u32,
}

/// The merged configuration of a machine of this node class and NodePool.
#[derive(Debug, Clone)]
pub struct Effective {
    /// From the weakest layer to the strongest: image, user data and Karpenter in the order of the family.
    pub values: Vec<Value>,
    pub defects: Vec<Defect>,
    /// From here on user data may change the kubelet in ways that nodewhy does not follow.
    pub not_followed: Option<Span>,
    /// Notes about the family as a whole.
    pub notes: Vec<&'static str>,
    /// The minimum size of the user data that Karpenter renders from this text, in bytes.
    pub rendered: usize,
}

impl Effective {
    /// The first defect that prevents the launch or keeps the machine from joining.
    pub fn stop(&self, family: Family) -> Option<&Defect> {
        self.defects.iter().find(|d| matches!(d.consequence(family), Consequence::NoLaunch | Consequence::NoJoin))
    }
}

/// Merges everything that reaches the kubelet of `machine`.
pub fn resolve(machine: &Machine) -> Effective {
    let text = machine.class.spec.user_data.as_deref().unwrap_or_default();
    let mut data = userdata::read(text, machine.family);
    if machine.class.sets_up_local_disks() {
        data.override_local_disks();
    }
    let mut defects = data.defects.clone();
    let removed = machine
        .kubernetes
        .into_iter()
        .flat_map(|minor| data.removed_flags(minor))
        .filter(|(argument, _)| argument.is_certain_of(argument.name()));
    defects.extend(removed.map(|(argument, since)| Defect {
        kind: DefectKind::RemovedFlag,
        span: argument.span,
        message: format!("the kubelet exits over this flag: --{} is gone since Kubernetes 1.{since}", argument.name()),
    }));
    defects.extend(data.contradictions(machine.kubernetes, &machine.class.spec.kubelet));
    defects.extend(data.other_cluster(machine.cluster.name, machine.cluster.endpoint).map(|(named, own)| Defect {
        kind: DefectKind::OtherCluster,
        span: named.span,
        message: format!("this is another cluster: Karpenter works for {own}"),
    }));
    let mut values = image::values(machine, &data);
    values.extend(user::values(&data));
    values.extend(karpenter::values(machine, &data));
    // Fields before flags, and within them image, user, Karpenter: each overrides the ones before it.
    values.sort_by_key(|value| value.kind == Kind::Flag);
    settle(&mut values);
    defects.extend(dropped_taints(&values));
    defects.extend(machine.cluster.authority.and_then(|own| other_authority(&values, own)));
    defects.sort_by_key(|defect| defect.span.start);
    let rendered = karpenter::rendered(machine, text, &values);
    if rendered > userdata::LARGEST && text.len() <= userdata::LARGEST {
        defects.push(userdata::too_large(text, rendered));
    }
    Effective { values, defects, not_followed: data.unread_from, notes: notes(machine, &data), rendered }
}

/// A defect if the text gives the kubelet another certificate authority than the cluster's `own`.
fn other_authority(values: &[Value], own: &str) -> Option<Defect> {
    let literal = |v: &&Value| {
        v.name == "certificateAuthority"
            && v.exact
            && v.outcome == MergeOutcome::Effective
            && !v.value.contains(['$', '`'])
    };
    let bare = |text: &str| text.split_whitespace().collect::<String>();
    let given = values.iter().filter(literal).find(|v| !v.value.is_empty() && bare(&v.value) != bare(own))?;
    let Origin::UserData(span) = given.origin else { return None };
    let message = "this is not the certificate authority of the cluster that Karpenter works for: the kubelet trusts \
                   no answer of its API server";
    Some(Defect { kind: DefectKind::OtherCluster, span, message: message.to_owned() })
}

/// A defect if the text's own list of taints replaces the list of Karpenter and the NodePool.
fn dropped_taints(values: &[Value]) -> Option<Defect> {
    let dropped = values
        .iter()
        .filter(|v| matches!(v.name.as_str(), "registerWithTaints" | "register-with-taints" | "node-taints"));
    let by_user = dropped.filter(|v| !matches!(v.origin, Origin::UserData(_))).filter_map(|v| match &v.outcome {
        MergeOutcome::Overridden { by: Origin::UserData(span), .. } => Some((v.value.as_str(), *span)),
        _ => None,
    });
    let (taints, spans): (Vec<_>, Vec<_>) = by_user.unzip();
    let span = *spans.first()?;
    let message = format!("the Node comes without {}: this flag replaces the whole list of taints", taints.join(", "));
    Some(Defect { kind: DefectKind::DropsTaints, span, message })
}

fn notes(machine: &Machine, data: &UserData) -> Vec<&'static str> {
    let mut notes = Vec::new();
    match machine.family {
        Family::Custom => notes.push(
            "amiFamily Custom: Karpenter passes user data through unchanged and adds nothing; what the image does by \
             itself is not known here",
        ),
        Family::Windows => notes.push("PowerShell is recognized, not followed: what user data asks for is a guess"),
        Family::Bottlerocket => notes.push("Bottlerocket's own defaults are not listed"),
        Family::Al2 | Family::Al2023 => {}
    }
    if machine.karpenter.is_none() && machine.family != Family::Custom {
        notes.push("the version of Karpenter is not known; its part is that of 1.14");
    }
    if machine.kubernetes.is_none() && data.arguments.iter().any(userdata::Argument::is_taken) {
        notes.push("the version of Kubernetes is not known; flags that newer kubelets have lost are not looked for");
    }
    notes
}

/// Kubelet flags and configuration fields whose names differ by more than their spelling.
// kubernetes v1.36.3 cmd/kubelet/app/options/options.go AddKubeletConfigFlags
const ALIASES: &[(&str, &str)] = &[
    ("v", "logging.verbosity"),
    ("pod-max-pids", "podPidsLimit"),
    ("event-qps", "eventRecordQPS"),
    ("registry-qps", "registryPullQPS"),
    ("rotate-server-certificates", "serverTLSBootstrap"),
    ("image-gc-high-threshold", "imageGCHighThresholdPercent"),
    ("image-gc-low-threshold", "imageGCLowThresholdPercent"),
    ("pod-manifest-path", "staticPodPath"),
    ("resolv-conf", "resolvConf"),
];

/// The key of a value. A flag and its field share one key. Each label has its own.
fn key(value: &Value) -> String {
    let name = match value.kind {
        Kind::Flag => {
            ALIASES.iter().find(|(flag, _)| *flag == value.name).map_or(value.name.as_str(), |(_, field)| field)
        }
        _ => value.name.as_str(),
    };
    // ClusterIdentity facts and Bottlerocket's settings share no names with the kubelet's.
    let plain: String = name.chars().filter(|&c| c != '-').map(|c| c.to_ascii_lowercase()).collect();
    match value.kind {
        _ if value.name == "node-labels" => format!("label {}", value.value.split('=').next().unwrap_or_default()),
        Kind::Cluster => format!("cluster {plain}"),
        Kind::Setting => format!("setting {plain}"),
        Kind::NodeConfig => format!("nodeadm {plain}"),
        Kind::Config | Kind::Flag => plain,
    }
}

/// Marks the values that a later value of the same key overrides.
fn settle(values: &mut [Value]) {
    let mut later: HashMap<String, (u32, Origin, Kind)> = HashMap::new();
    for value in values.iter_mut().rev().filter(|value| value.outcome == MergeOutcome::Effective) {
        let key = key(value);
        // A flag for a map replaces the whole map of the file, but for feature gates.
        // kubernetes v1.36.3 cmd/kubelet/app/server.go kubeletConfigFlagPrecedence
        let map =
            key.split_once('.').map(|(map, _)| map).filter(|map| value.kind == Kind::Config && *map != "featuregates");
        let winner =
            later.get(&key).or_else(|| map.and_then(|map| later.get(map)).filter(|(.., kind)| *kind == Kind::Flag));
        if let Some((occurrence, origin, kind)) = winner {
            let adds = value.kind == Kind::Flag && is_map_flag(&value.name);
            if *occurrence != value.occurrence && !adds {
                value.outcome = MergeOutcome::Overridden { by: origin.clone(), because: because(value, *kind, origin) };
            }
        } else if value.exact {
            // A value that may not be applied overrides nothing.
            later.insert(key, (value.occurrence, value.origin.clone(), value.kind));
        }
    }
}

/// Flags whose occurrences add up.
// kubernetes v1.36.3 cmd/kubelet/app/options/options.go: MapStringString and MapStringBool variables
fn is_map_flag(name: &str) -> bool {
    matches!(
        name,
        "feature-gates"
            | "kube-reserved"
            | "system-reserved"
            | "eviction-hard"
            | "eviction-soft"
            | "eviction-soft-grace-period"
            | "eviction-minimum-reclaim"
            | "qos-reserved"
    )
}

fn because(value: &Value, winner: Kind, by: &Origin) -> &'static str {
    match (value.name.as_str(), value.kind, winner) {
        ("registerWithTaints", _, Kind::Flag) => {
            "a flag beats the configuration file and replaces its whole list of taints"
        }
        ("register-with-taints" | "node-taints" | "registerWithTaints", ..) => {
            "the last list of taints replaces the others"
        }
        ("node-labels", ..) => "the last label of a key wins",
        (_, Kind::Config, Kind::Flag) => "a flag beats the configuration file",
        (_, Kind::Config | Kind::Setting | Kind::Cluster | Kind::NodeConfig, _)
            if matches!(by, Origin::Karpenter | Origin::NodeClass(_)) =>
        {
            "Karpenter's part is merged last"
        }
        (_, Kind::Config | Kind::NodeConfig, _) => "the later document wins",
        _ => "the last occurrence wins",
    }
}
