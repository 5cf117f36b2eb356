//! Objects that are looked at when a machine is judged, which is again soon while it is stuck. None of them triggers a
//! new verdict when it comes or goes.

use super::{Key, key_of};
use crate::objects::input::{Input, Object};
use crate::objects::{
    CertificateSigningRequest, ClusterService, CustomResourceDefinition, PodDisruptionBudget, ServiceAccount,
    VolumeAttachment, WebhookConfiguration,
};
use std::collections::BTreeMap;

/// The groups whose CustomResourceDefinitions are kept.
const OF_KARPENTER: [&str; 2] = ["karpenter.sh", "karpenter.k8s.aws"];

#[derive(Debug, Default)]
pub(super) struct LookedUp {
    pub(super) custom_resources: BTreeMap<String, CustomResourceDefinition>,
    pub(super) services: BTreeMap<Key, ClusterService>,
    /// Those with a role in AWS.
    pub(super) service_accounts: BTreeMap<Key, ServiceAccount>,
    pub(super) csrs: BTreeMap<String, CertificateSigningRequest>,
    pub(super) mutating_webhooks: BTreeMap<String, WebhookConfiguration>,
    pub(super) validating_webhooks: BTreeMap<String, WebhookConfiguration>,
    pub(super) disruption_budgets: BTreeMap<Key, PodDisruptionBudget>,
    pub(super) volume_attachments: BTreeMap<String, VolumeAttachment>,
}

impl LookedUp {
    /// Keeps an object of one of these kinds. It replaces the one of the same name.
    pub(super) fn insert(&mut self, object: Object) {
        let key = key_of(object.meta());
        match object {
            Object::MutatingWebhooks(config) => drop(self.mutating_webhooks.insert(key.1, config)),
            Object::ValidatingWebhooks(config) => drop(self.validating_webhooks.insert(key.1, config)),
            Object::DisruptionBudget(budget) => drop(self.disruption_budgets.insert(key, budget)),
            Object::VolumeAttachment(attachment) => drop(self.volume_attachments.insert(key.1, attachment)),
            Object::CustomResource(definition) if OF_KARPENTER.contains(&&*definition.spec.group) => {
                self.custom_resources.insert(key.1, definition);
            }
            Object::Service(service) => drop(self.services.insert(key, service)),
            Object::ServiceAccount(account) if account.role_arn().is_some() => {
                self.service_accounts.insert(key, account);
            }
            Object::CertificateSigningRequest(csr) => drop(self.csrs.insert(key.1, csr)),
            _ => {}
        }
    }

    /// Forgets the object of this name.
    pub(super) fn remove(&mut self, input: Input, key: &Key) {
        match input {
            Input::MutatingWebhooks => drop(self.mutating_webhooks.remove(&key.1)),
            Input::ValidatingWebhooks => drop(self.validating_webhooks.remove(&key.1)),
            Input::DisruptionBudgets => drop(self.disruption_budgets.remove(key)),
            Input::VolumeAttachments => drop(self.volume_attachments.remove(&key.1)),
            Input::CustomResources => drop(self.custom_resources.remove(&key.1)),
            Input::Services => drop(self.services.remove(key)),
            Input::ServiceAccounts => drop(self.service_accounts.remove(key)),
            Input::CertificateSigningRequests => drop(self.csrs.remove(&key.1)),
            _ => {}
        }
    }
}
