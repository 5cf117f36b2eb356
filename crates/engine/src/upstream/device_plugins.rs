//! The DaemonSets that make devices of a machine known to the scheduler, as their charts and manifests call them.

/// A part of each DaemonSet's name, and the prefix of the resources that it offers.
///
/// Sources: NVIDIA/k8s-device-plugin deployments/helm, gpu-operator assets (nvidia-device-plugin-daemonset,
/// nvidia-driver-daemonset, nvidia-container-toolkit-daemonset); aws-neuron-sdk k8s-neuron-device-plugin.yml;
/// eks-charts stable/aws-efa-k8s-device-plugin; ROCm/k8s-device-plugin k8s-ds-amdgpu-dp.yaml;
/// habanalabs-device-plugin.yaml.
const PLUGINS: [(&str, &str); 8] = [
    ("nvidia-device-plugin", "nvidia.com/"),
    ("nvidia-driver-daemonset", "nvidia.com/"),
    ("nvidia-container-toolkit", "nvidia.com/"),
    ("neuron-device-plugin", "aws.amazon.com/neuron"),
    ("efa-k8s-device-plugin", "vpc.amazonaws.com/efa"),
    ("efa-device-plugin", "vpc.amazonaws.com/efa"),
    ("amdgpu-device-plugin", "amd.com/gpu"),
    ("habanalabs-device-plugin", "habana.ai/gaudi"),
];

/// Whether a DaemonSet of this name makes this resource known, or what does waits for it.
pub fn offers(daemon_set: &str, resource: &str) -> bool {
    PLUGINS.iter().any(|(part, prefix)| daemon_set.contains(part) && resource.starts_with(prefix))
}

/// Whether a DaemonSet of this name makes any device known.
pub fn is_plugin(daemon_set: &str) -> bool {
    PLUGINS.iter().any(|(part, _)| daemon_set.contains(part))
}

/// The state of slicing the node's GPUs: `success`, `pending`, `rebooting`, `failed`.
/// Source: NVIDIA/mig-parted deployments/container/reconfigure-mig.sh.
pub const MIG_STATE: &str = "nvidia.com/mig.config.state";
/// The requested slicing.
pub const MIG_CONFIG: &str = "nvidia.com/mig.config";
/// The prefix of the resource names of slices.
pub const MIG_SLICE: &str = "nvidia.com/mig-";

/// The suffix that a plugin adds to the resource name of shared devices, if its configuration says so.
/// Source: NVIDIA/k8s-device-plugin v0.17 api/config/v1/replicas.go `RenameByDefault`, internal/resource.
pub const SHARED: &str = ".shared";

/// Whether instances of this family have such devices: `trn1`, `inf2`; `g5`, `p4d`, and none of `g4ad`, which are
/// AMD's. Source: <https://docs.aws.amazon.com/ec2/latest/instancetypes/ac.html>.
pub fn has_devices(family: &str, resource: &str) -> bool {
    let series = family.trim_start_matches(|c: char| c.is_ascii_lowercase());
    let letters = &family[..family.len() - series.len()];
    match resource {
        "nvidia.com/gpu" => matches!(letters, "g" | "gr" | "p") && family != "g4ad",
        "aws.amazon.com/neuron" | "aws.amazon.com/neuroncore" | "aws.amazon.com/neurondevice" => {
            matches!(letters, "trn" | "inf")
        }
        _ => false,
    }
}
