//! What a pod takes of a node.

use crate::objects::{Container, Pod, quantity};

/// The least and the most of a resource that a pod takes on a node. nodewhy does not read whether an init container
/// keeps running, so both are possible.
/// Source: kubernetes v1.36.3 staging/src/k8s.io/component-helpers/resource/helpers.go `PodRequests`.
pub(crate) fn takes(pod: &Pod, resource: &str) -> (f64, f64) {
    let of =
        |container: &Container| container.resources.requests.get(resource).and_then(quantity::parse).unwrap_or(0.0);
    let main: f64 = pod.spec.containers.iter().map(of).sum();
    let (largest, all) =
        pod.spec.init_containers.iter().map(of).fold((0.0_f64, 0.0), |(largest, all), of| (largest.max(of), all + of));
    (main.max(largest), main + all)
}
