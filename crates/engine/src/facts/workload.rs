//! The owner of a pod, where you make a change for all pods like it.

use crate::api::Blame;
use crate::objects::Pod;

pub(crate) struct PodWorkload<'p> {
    kind: &'p str,
    name: &'p str,
    namespace: &'p str,
}

impl<'p> PodWorkload<'p> {
    /// The owner of the pod with this name; the pod itself if nodewhy did not read it.
    pub(crate) fn of(pod: Option<&'p Pod>, namespace: &'p str, name: &'p str) -> Self {
        let (kind, name) = pod.map_or(("Pod", name), Pod::workload);
        Self { kind, name, namespace }
    }

    /// `Deployment web`
    pub(crate) fn shown(&self) -> String {
        format!("{} {}", self.kind, self.name)
    }

    /// The field with the requests of its pods.
    pub(crate) fn spec(&self) -> &'static str {
        if self.kind == "Pod" { "spec" } else { "spec.template.spec" }
    }

    pub(crate) fn blame(&self) -> Blame {
        let api_version = match self.kind {
            "Pod" => "v1",
            "Job" => "batch/v1",
            _ => "apps/v1",
        };
        Blame::object(api_version, self.kind, self.name).namespace(self.namespace)
    }

    pub(crate) fn edit(&self) -> String {
        format!("kubectl edit {} -n {} {}", self.kind.to_ascii_lowercase(), self.namespace, self.name)
    }
}
