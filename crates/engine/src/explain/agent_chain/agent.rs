//! The pod of an agent as the sentences about it name it.

use crate::api::{Blame, Link};
use crate::objects::Pod;

pub(super) const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";

/// One pod of an agent, with the names that a sentence about it needs.
pub(super) struct Agent<'c> {
    pub(super) pod: &'c Pod,
    pub(super) name: &'c str,
    pub(super) namespace: &'c str,
    /// Its DaemonSet, which creates the next pod like this one.
    pub(super) blame: Blame,
    pub(super) set: &'c str,
}

impl<'c> Agent<'c> {
    pub(super) fn of(pod: &'c Pod) -> Self {
        let (name, namespace) = (&*pod.metadata.name, pod.metadata.namespace.as_deref().unwrap_or_default());
        let blame = match pod.daemon_set() {
            Some(set) => Blame::object("apps/v1", "DaemonSet", set),
            None => Blame::object("v1", "Pod", name),
        };
        let blame = blame.namespace(namespace);
        Self { pod, name, namespace, blame, set: pod.daemon_set().unwrap_or(name) }
    }

    pub(super) fn link(&self, says: impl Into<String>) -> Link {
        Link::new(format!("Pod/{}", self.name), says)
    }

    pub(super) fn describe(&self) -> String {
        format!("kubectl describe pod -n {} {}", self.namespace, self.name)
    }

    pub(super) fn in_spec(&self, field: &str) -> Blame {
        let blame = self.blame.clone();
        if blame.kind == "DaemonSet" { blame.field(format!("spec.template.spec.{field}")) } else { blame }
    }
}

impl Agent<'_> {
    pub(super) fn account(&self) -> &str {
        if self.pod.spec.service_account_name.is_empty() { self.set } else { &self.pod.spec.service_account_name }
    }

    pub(super) fn image_of(&self, container: &str) -> Option<&str> {
        let mut containers = self.pod.spec.init_containers.iter().chain(&self.pod.spec.containers);
        containers.find(|c| c.name == container).map(|c| c.image.as_str())
    }

    pub(super) fn account_blame(&self) -> Blame {
        Blame::object("v1", "ServiceAccount", self.account())
            .namespace(self.namespace)
            .field("metadata.annotations['eks.amazonaws.com/role-arn']")
    }
}
