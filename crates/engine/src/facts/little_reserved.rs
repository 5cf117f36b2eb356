//! Whether the node class lets the kubelet reserve less memory than EKS images reserve by themselves.

use crate::case::Case;
use crate::effective::{self, ClusterIdentity, Kind, Machine, MergeOutcome, Origin, Value};
use crate::objects::quantity;
use crate::upstream::overhead::MIB;

/// A reservation that the node class or its user data sets.
#[derive(Debug)]
pub(crate) struct LittleReserved {
    /// `kubeReserved.memory=50Mi`, `--kube-reserved=`.
    pub said: String,
    pub origin: Origin,
}

/// What Amazon Linux reserves for the kubelet, beside 11 MiB for each pod. Karpenter reckons with the same.
/// Sources: amazon-eks-ami v20251112 templates/al2/runtime/bootstrap.sh `get_memory_mebibytes_to_reserve`;
/// karpenter-provider-aws v1.14.1 pkg/providers/instancetype/types.go `kubeReservedResources`.
const LEAST: f64 = 255.0 * MIB;

pub(crate) fn little_reserved(case: &Case) -> Option<LittleReserved> {
    let class = case.class()?;
    let machine = Machine {
        class,
        family: class.family()?,
        pool: None,
        karpenter: case.karpenter().map(|karpenter| karpenter.version),
        kubernetes: None,
        cluster: ClusterIdentity::default(),
    };
    let values = effective::resolve(&machine).values;
    // The later one of two wins.
    let last = |field: &str| values.iter().rev().filter(|v| is_set(v)).find_map(|v| Some((v, memory(v, field)?)));
    let (own, for_kubelet) = last("kubereserved")?;
    let for_system = last("systemreserved").map_or(0.0, |(_, memory)| memory);
    let dashes = if own.kind == Kind::Flag { "--" } else { "" };
    (for_kubelet + for_system < LEAST)
        .then(|| LittleReserved { said: format!("{dashes}{}={}", own.name, own.value), origin: own.origin.clone() })
}

/// Whether it reaches the kubelet as the node class or its user data writes it.
fn is_set(value: &Value) -> bool {
    value.literal
        && value.exact
        && value.outcome == MergeOutcome::Effective
        && matches!(value.origin, Origin::UserData(_) | Origin::NodeClass(_))
}

/// The memory in this reservation: an entry of its own, or a list, which replaces all entries.
fn memory(value: &Value, field: &str) -> Option<f64> {
    let plain: String = value.name.chars().filter(|&c| c != '-').collect::<String>().to_ascii_lowercase();
    let text = value.value.trim_matches(['"', '\'']);
    match plain.strip_prefix(field)? {
        "" => {
            let mut entries = text.split(',').filter_map(|entry| entry.split_once('='));
            match entries.find(|(key, _)| key.trim() == "memory") {
                Some((_, amount)) => quantity::parse(amount.trim()),
                None => Some(0.0),
            }
        }
        ".memory" => quantity::parse(text),
        _ => None,
    }
}
