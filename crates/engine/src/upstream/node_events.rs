//! Events about pods that cannot start, and about Nodes that are gone.

use crate::objects::Event;

/// Whether the runtime could not make a container out of an image that is there.
/// Source: containerd v2.1 internal/cri/server/container_create.go; of a failure before that, such as the container's
/// spec, the pod's own text may be at fault.
pub fn refuses_container(event: &Event) -> bool {
    event.reason == "Failed" && event.message.contains("failed to create containerd container")
}

/// Whether Karpenter says that a NodeClaim has no Node.
/// Source: core pkg/controllers/state/statenode.go `ValidateNodeDisruptable` (v1.0.5, v1.14.3).
pub fn misses_node(event: &Event) -> bool {
    event.reason == "DisruptionBlocked"
        && (event.message.contains("does not have an associated node")
            || event.message.contains("doesn't contain both a node and a nodeclaim"))
}

/// Whether the cloud controller says that it deletes a Node whose instance it does not find.
pub fn deletes_node(event: &Event) -> bool {
    event.reason == "DeletingNode" && event.message.contains("does not exist in the cloud provider")
}

/// The thing that the kubelet lacks to start a pod's sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sandbox {
    /// An address.
    Address,
    /// The image of the pause container.
    Image,
    /// Whatever else the network plugin needs.
    Network,
    /// Whatever else the container runtime says.
    Runtime,
    /// A unit of systemd, without which no volume is mounted.
    Unit,
}

/// systemd, which mounts volumes for the kubelet, starts no unit any more.
/// Sources: systemd v219 src/run/run.c `start_transient_scope`; k8s.io/mount-utils v0.36.3 mount_linux.go `doMount`.
pub const NO_UNIT_STARTS: &str = "Failed to start transient scope unit: ";

/// The image is there, and what lays out its layers fails.
pub const UNPACKING_FAILS: &str = "error unpacking image";

/// Why the sandbox of a pod could not be made, where it is the Node's affair.
pub fn refused_sandbox(event: &Event) -> Option<Sandbox> {
    if event.reason == "FailedMount" && event.message.contains(NO_UNIT_STARTS) {
        return Some(Sandbox::Unit);
    }
    if event.reason != "FailedCreatePodSandBox" {
        return None;
    }
    if lacks_addresses(&event.message) {
        return Some(Sandbox::Address);
    }
    // containerd v2.1 internal/cri/server/podsandbox/sandbox_run.go; of Docker kubernetes v1.15.0
    // pkg/kubelet/dockershim/helpers.go `ensureSandboxImageExists`.
    if ["sandbox image", "desc = failed pulling image"].iter().any(|part| event.message.contains(part)) {
        return Some(Sandbox::Image);
    }
    // containerd v2.1 client/container_opts.go `WithNewSnapshot`; of a sandbox it is the pause image.
    if event.message.contains("failed to start sandbox") && event.message.contains(UNPACKING_FAILS) {
        return Some(Sandbox::Image);
    }
    // containerd v2.1 internal/cri/server/sandbox_run.go; of Docker kubernetes v1.23.0
    // pkg/kubelet/dockershim/network/plugins.go `SetUpPod`.
    let of_network = ["failed to setup network for sandbox", "networkPlugin cni failed to set up pod"];
    if of_network.iter().any(|part| event.message.contains(part)) {
        return Some(Sandbox::Network);
    }
    // A RuntimeClass is the choice of a pod.
    (!event.message.contains("no runtime for")).then_some(Sandbox::Runtime)
}

/// Whether a network plugin says that it has no address for a pod.
pub fn lacks_addresses(said: &str) -> bool {
    // amazon-vpc-cni-k8s v1.20.4 cmd/routed-eni-cni-plugin/cni.go `add`; cilium v1.17 pkg/ipam (`ErrFull`, of the
    // instance's own addresses `No more IPs available`, later `no IPs currently available on the node`, of several
    // pools `cidrPool.allocateNext`); containernetworking/plugins v1.7 host-local backend/allocator/allocator.go;
    // calico v3.30 libcalico-go lib/ipam/ipam_types.go `PartialFulfillmentError`.
    const NO_ADDRESS: [&str; 7] = [
        "failed to assign an IP address to container",
        "postIpamFailure range is full",
        "postIpamFailure No more IPs available",
        "no IPs currently available on the node",
        "all CIDR ranges are exhausted",
        "no IP addresses available in range set",
        "Assigned 0 out of 1 requested IPv4 addresses",
    ];
    NO_ADDRESS.iter().any(|text| said.contains(text))
}
