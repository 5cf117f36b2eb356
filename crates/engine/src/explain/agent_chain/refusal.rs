//! The API server rejects the pods of a DaemonSet: because of a quota, a webhook, a policy, or a missing object that
//! the pod names.

use crate::api::{Blame, Confidence, Evidence, Link};
use crate::case::Case;
use crate::explain::explanation::{Explanation, Proof};
use crate::facts::webhook::{self, ADMISSION};
use crate::objects::input::Input;
use crate::objects::{Event, LabelSelector, Node, Webhook};

/// A DaemonSet whose pods the API server rejects.
#[derive(Debug)]
pub(crate) struct RefusedPods<'c> {
    event: &'c Event,
    namespace: String,
    /// The API server's message.
    pub said: String,
    /// Whether nodewhy could read the pods of the Node: otherwise one may exist.
    read: bool,
}

/// The newest rejection since the Node exists, unless a pod was created after it.
/// Source: kubernetes v1.36.3 pkg/controller/controller_utils.go `FailedCreatePodReason`, `SuccessfulCreatePodReason`.
pub(crate) fn refused<'c>(
    case: &Case<'c>,
    node: &Node,
    name: &str,
    namespace: Option<&str>,
) -> Option<RefusedPods<'c>> {
    let of_set = |event: &&Event| match (&event.involved_object.namespace, namespace) {
        (Some(has), Some(wanted)) => has == wanted,
        _ => true,
    };
    let events = || {
        let events = case.cluster.events("DaemonSet", name).filter(of_set);
        events.filter(|e| e.last_seen() >= node.metadata.creation_timestamp)
    };
    let event = events().filter(|e| e.reason == "FailedCreate").max_by_key(|e| e.last_seen())?;
    if events().any(|e| e.reason == "SuccessfulCreate" && e.last_seen() > event.last_seen()) {
        return None;
    }
    let said = event.said();
    let said = said.trim().trim_end_matches('.');
    let said = said.strip_prefix("Error creating: ").unwrap_or(said);
    // The pod has another name with every try, and what is used of a quota moves.
    let said = said.split_once("\" is forbidden: ").map_or(said, |(_, why)| why);
    let said = said.split(", requested: ").next().unwrap_or(said);
    Some(RefusedPods {
        event,
        namespace: event.involved_object.namespace.as_deref().or(namespace).unwrap_or("kube-system").to_owned(),
        said: said.to_owned(),
        read: case.cluster.missing(Input::Pods).is_none(),
    })
}

impl RefusedPods<'_> {
    pub(crate) fn confidence(&self) -> Confidence {
        if self.read { Confidence::Certain } else { Confidence::Likely }
    }

    pub(crate) fn evidence(&self) -> Evidence {
        Evidence::new(
            format!("Event DaemonSet/{}", self.event.involved_object.name),
            "message",
            self.said.clone(),
            "the DaemonSet controller retries with growing pauses",
        )
        .figures(self.event.said())
    }

    pub(crate) fn explanation(&self, case: &Case, name: &str) -> Explanation {
        let namespace = &self.namespace;
        let (blame, says, fix) = self.reason(case, name);
        let why = format!("the API server rejects the pods of DaemonSet {name}: {}", self.said);
        let deepest = blame.as_ref().map(|blame| Link::new(&blame.object, says));
        let set = Blame::object("apps/v1", "DaemonSet", name).namespace(namespace);
        let link = Link::new(format!("DaemonSet/{name}"), self.said.clone());
        let admission = format!(
            "kubectl get resourcequotas,limitranges -n {namespace}; kubectl get \
             validatingwebhookconfigurations,mutatingwebhookconfigurations"
        );
        let see = blame.as_ref().and_then(|blame| see(blame, namespace));
        let mut explanation =
            Explanation::new(if self.read { Proof::Settled } else { Proof::Open }, why, blame.unwrap_or(set), link)
                .fix(fix)
                .inspect("See the DaemonSet's events", format!("kubectl describe daemonset -n {namespace} {name}"))
                .inspect("See the quotas and webhooks that may reject pods", admission);
        explanation.links.extend(deepest);
        if let Some(command) = see {
            explanation = explanation.inspect("See the object that rejects the pods", command);
        }
        if !self.read {
            explanation = explanation.ask(
                format!("Does the Node have a pod of DaemonSet {name} nevertheless?"),
                format!("kubectl get pods -n {namespace} -o wide"),
            );
        }
        explanation
    }

    /// The object that rejects the pods, if the message names it.
    fn reason(&self, case: &Case, name: &str) -> (Option<Blame>, &'static str, String) {
        let (said, namespace) = (self.said.as_str(), &self.namespace);
        let named = |before: &str, until: &[char]| {
            let (_, rest) = said.split_once(before)?;
            rest.split(until).next().filter(|name| !name.is_empty())
        };
        // Source: k8s.io/apiserver v0.36.3 pkg/admission/plugin/resourcequota/controller.go `CheckRequest`.
        if let Some(quota) = named("quota: ", &[',', ':', ' ']) {
            let blame = Blame::object("v1", "ResourceQuota", quota).namespace(namespace).field("spec.hard");
            let fix = if said.contains("must specify") {
                format!(
                    "Delete ResourceQuota {quota}, remove the limits that system pods do not set, or give namespace \
                     {namespace} a LimitRange with defaults. None of this disrupts running pods."
                )
            } else {
                format!(
                    "Raise ResourceQuota {quota} of namespace {namespace}, or delete it: an exceeded quota rejects \
                     system pods too. Neither disrupts running pods."
                )
            };
            return (Some(blame), "it refuses the pod", fix);
        }
        if let Some(webhook) = webhook::named(said) {
            let (blame, held) = match webhook::holder(case, webhook) {
                Some((kind, config, webhook)) => {
                    (webhook::blame(kind, &config.metadata.name), format!(" ({})", told(webhook)))
                }
                None => (Blame::object(ADMISSION, "MutatingWebhookConfiguration", webhook), String::new()),
            };
            let fix = format!(
                "Exclude namespace {namespace} in the webhook {webhook}{held}, or get its service running. If that \
                 service only runs on nodes that wait for it, nothing ever starts."
            );
            return (Some(blame), "its webhook rejects the pod", fix);
        }
        if let Some(policy) = webhook::named_policy(said) {
            let blame = Blame::object(ADMISSION, "ValidatingAdmissionPolicy", policy);
            let fix = format!(
                "Exclude namespace {namespace} in ValidatingAdmissionPolicy {policy} or in its binding. This disrupts \
                 no running pod."
            );
            return (Some(blame), "it denies the pod", fix);
        }
        // Source: k8s.io/pod-security-admission v0.36.3 admission/admission.go `EvaluatePod`.
        if said.contains("violates PodSecurity") {
            let blame = Blame::object("v1", "Namespace", namespace)
                .field("metadata.labels['pod-security.kubernetes.io/enforce']");
            let fix = format!(
                "Set the level of namespace {namespace} to privileged, because agents of a node need the host. This \
                 disrupts no running pod."
            );
            return (Some(blame), "its level of Pod Security rejects the pod", fix);
        }
        // It does not say which: kubernetes v1.36.3 plugin/pkg/admission/limitranger/admission.go.
        if ["usage per Container is ", "usage per Pod is ", "limit to request ratio per "]
            .iter()
            .any(|w| said.contains(w))
        {
            let set = Blame::object("apps/v1", "DaemonSet", name).namespace(namespace);
            let blame = set.field("spec.template.spec.containers.resources");
            let fix = format!(
                "Change the LimitRange of namespace {namespace} to allow what agents request, or delete it. Or change \
                 the requests of DaemonSet {name} to fit."
            );
            return (Some(blame), "the requests are outside of the namespace's LimitRange", fix);
        }
        // Source: kubernetes v1.36.3 plugin/pkg/admission/priority/admission.go.
        if let Some(class) = named("no PriorityClass with name ", &[' ']) {
            let blame = Blame::object("scheduling.k8s.io/v1", "PriorityClass", class);
            let fix = format!("Create PriorityClass {class}, or name one that exists in DaemonSet {name}.");
            return (Some(blame), "it does not exist", fix);
        }
        // Source: kubernetes v1.36.3 plugin/pkg/admission/serviceaccount/admission.go.
        if let Some(account) = named("error looking up service account ", &[':']) {
            let account = account.rsplit('/').next().unwrap_or(account);
            let blame = Blame::object("v1", "ServiceAccount", account).namespace(namespace);
            let fix =
                format!("Create ServiceAccount {account} in namespace {namespace}, which DaemonSet {name} names.");
            return (Some(blame), "it does not exist", fix);
        }
        (
            None,
            "",
            "Change the admission control that the message names so that it accepts the DaemonSet's pods.".to_owned(),
        )
    }
}

/// The part of the configuration that matters here.
fn told(webhook: &Webhook) -> String {
    let service = webhook.client_config.service.as_ref();
    let service = service.map_or_else(String::new, |s| format!(", service {}/{}", s.namespace, s.name));
    let whole = webhook.namespace_selector == LabelSelector::default();
    let everywhere = if whole { ", every namespace" } else { "" };
    // Fail is the default of v1.
    let policy = if webhook.failure_policy.is_empty() { "Fail" } else { &webhook.failure_policy };
    format!("failurePolicy {policy}{service}{everywhere}")
}

/// The command that shows the object that the message names, if it can be read.
fn see(blame: &Blame, namespace: &str) -> Option<String> {
    let name = &blame.name;
    Some(match blame.kind.as_str() {
        "DaemonSet" => format!("kubectl describe limitranges -n {namespace}"),
        "ResourceQuota" => format!("kubectl describe resourcequota -n {namespace} {name}"),
        "ValidatingAdmissionPolicy" => format!("kubectl get validatingadmissionpolicies {name} -o yaml"),
        "MutatingWebhookConfiguration" if blame.field.is_none() => format!(
            "kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations -o yaml | grep -e '^    name:' \
             -e {name}"
        ),
        "MutatingWebhookConfiguration" => format!("kubectl get mutatingwebhookconfigurations {name} -o yaml"),
        "ValidatingWebhookConfiguration" => format!("kubectl get validatingwebhookconfigurations {name} -o yaml"),
        "Namespace" => format!("kubectl get namespace {name} -o yaml"),
        _ => return None,
    })
}
