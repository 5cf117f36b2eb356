//! What the image gives its kubelet, of what user data and Karpenter also set.

use super::{Kind, Machine, MergeOutcome, Origin, Value};
use readers::userdata::{self, Family, UserData};

/// Name, value, and whether the value is that text or only made from it.
type Default = (Kind, &'static str, &'static str, bool);

// amazon-eks-ami v20251112 templates/al2/runtime/{bootstrap.sh,kubelet-config.json}
const AL2: &[Default] = &[
    (Kind::Config, "clusterDNS", "from the VPC's address range", false),
    (Kind::Config, "evictionHard.memory.available", "100Mi", true),
    (Kind::Config, "evictionHard.nodefs.available", "10%", true),
    (Kind::Config, "evictionHard.nodefs.inodesFree", "5%", true),
    (Kind::Config, "kubeReserved", "by the instance's size", false),
    (Kind::Config, "protectKernelDefaults", "true", true),
    (Kind::Config, "serverTLSBootstrap", "true", true),
    (Kind::Flag, "node-ip", "the instance's address", false),
    (Kind::Flag, "v", "2", true),
    (Kind::Flag, "hostname-override", "EC2's private DNS name", false),
    (Kind::Flag, "cloud-provider", "external", true),
];

// amazon-eks-ami 81fec2e nodeadm/internal/kubelet/config.go
const AL2023: &[Default] = &[
    (Kind::Config, "clusterDNS", "from the cluster's CIDR", false),
    (Kind::Config, "evictionHard.memory.available", "100Mi", true),
    (Kind::Config, "evictionHard.nodefs.available", "10%", true),
    (Kind::Config, "evictionHard.nodefs.inodesFree", "5%", true),
    (Kind::Config, "kubeReserved.cpu", "by the instance's size", false),
    (Kind::Config, "kubeReserved.ephemeral-storage", "1Gi", true),
    (Kind::Config, "kubeReserved.memory", "by maxPods", false),
    (Kind::Config, "logging.verbosity", "2", true),
    (Kind::Config, "maxPods", "by the instance's type", false),
    (Kind::Config, "protectKernelDefaults", "true", true),
    (Kind::Config, "serverTLSBootstrap", "true", true),
    (Kind::Flag, "node-ip", "the instance's address", false),
    (Kind::Flag, "cloud-provider", "external", true),
    (Kind::Flag, "hostname-override", "EC2's private DNS name, or the instance's id", false),
    (Kind::Flag, "runtime-cgroups", "/runtime.slice/containerd.service", true),
];

/// The defaults of the family's images, as far as their source is known here.
pub fn values(machine: &Machine, data: &UserData) -> Vec<Value> {
    let defaults = match machine.family {
        Family::Al2 => AL2,
        Family::Al2023 => AL2023,
        Family::Bottlerocket | Family::Windows | Family::Custom => &[],
    };
    let since = if machine.family == Family::Al2023 { userdata::shutdown_of_image(machine.kubernetes) } else { &[] };
    let mut further: Vec<Default> = since.iter().map(|(name, value)| (Kind::Config, *name, *value, true)).collect();
    // Karpenter's own call says --use-max-pods false. The user's comes before it, and mostly says nothing.
    let own = data.bootstrap_calls.iter().find(|call| call.starts_kubelet);
    if machine.family == Family::Al2 && own.is_some_and(uses_max_pods) {
        further.push((Kind::Config, "maxPods", "by the instance's type", false));
    }
    let value = |(occurrence, &(kind, name, value, literal)): (u32, &Default)| Value {
        kind,
        name: name.to_owned(),
        value: value.to_owned(),
        literal,
        origin: Origin::Image,
        outcome: MergeOutcome::Effective,
        exact: true,
        occurrence: 10_000 + occurrence,
    };
    (1..).zip(defaults.iter().chain(&further)).map(value).collect()
}

/// Whether a call of bootstrap.sh lets the script set maxPods.
// amazon-eks-ami v20251112 templates/al2/runtime/bootstrap.sh USE_MAX_PODS
fn uses_max_pods(call: &userdata::BootstrapCall) -> bool {
    let last = call.options.iter().rev().find(|(option, _)| option == "--use-max-pods");
    last.is_none_or(|(_, value)| value.value == "true")
}
