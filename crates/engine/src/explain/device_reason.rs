//! What to do about an accelerator that does not work, by the line that says why.

use crate::case::Case;
use crate::objects::NodeClaim;
use logs::fact::LogLine;

/// What the proprietary kernel module of NVIDIA's driver says of a GPU that it does not support.
/// Source: bottlerocket-os/bottlerocket#4889, awslabs/amazon-eks-ami#2768 (driver 580).
const NEEDS_OPEN_MODULES: &str = "requires use of the NVIDIA open kernel modules";

/// Source: NVIDIA/open-gpu-kernel-modules kernel-open/nvidia/nv.c.
const NO_GPU: &str = "No NVIDIA GPU found";

const FIX: &str = "Use an image that has a driver for this accelerator, or a newer release of it. If it has one and \
     other nodes with it work, replace the node, which evicts its pods.";

/// The fix for what this line says.
pub(crate) fn fix(case: &Case, line: &LogLine) -> String {
    if needs_open_modules(line) {
        open_modules(case)
    } else if line.text.contains(NO_GPU) {
        "Use an image without the NVIDIA driver for instance types that have no NVIDIA GPU. Or let the NodePool launch \
         only types that have one. New nodes get the change."
            .to_owned()
    } else {
        FIX.to_owned()
    }
}

/// Whether another image helps, and nothing else does: then the node class is to blame, not its user data.
pub(crate) fn needs_open_modules(line: &LogLine) -> bool {
    line.text.contains(NEEDS_OPEN_MODULES)
}

/// AWS's images select the kernel module by a list of GPUs, in which new GPUs come late.
/// Sources: awslabs/amazon-eks-ami templates/al2023/runtime/gpu/nvidia-kmod-load.sh (2026-07);
/// bottlerocket-os/bottlerocket-core-kit#114 (`ghostdog match-nvidia-driver`).
fn open_modules(case: &Case) -> String {
    const TYPE: &str = "node.kubernetes.io/instance-type";
    let label = case.claim.and_then(|claim| claim.metadata.label(TYPE));
    let label = label.or_else(|| case.node.and_then(|node| node.metadata.label(TYPE)));
    let pool = case.claim.and_then(NodeClaim::node_pool).map_or_else(String::new, |pool| format!(" {pool}"));
    let (gpu, family) = match label.and_then(|label| Some((label, label.split_once('.')?.0))) {
        Some((label, family)) => (label.to_owned(), format!("the instance family {family}")),
        None => ("this GPU".to_owned(), "the instance family".to_owned()),
    };
    format!(
        "Use an image that loads NVIDIA's open kernel modules for {gpu}: a release of Bottlerocket or of the AL2023 \
         NVIDIA image that supports it. Until there is one, exclude {family} in the requirements of NodePool{pool} \
         (NotIn). New nodes get the change."
    )
}
