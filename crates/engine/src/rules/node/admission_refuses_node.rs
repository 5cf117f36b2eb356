//! A webhook that handles each change of a Node does not run and fails closed.

use crate::cluster_state::memo::Memo;
use crate::facts::webhook;
use crate::objects::{Node, NodeClaim, Pod, Webhook, WebhookConfiguration, WebhookService};
use crate::rules::prelude::*;
use crate::upstream::karpenter::UNREGISTERED_TAINT;
use chrono::{DateTime, Utc};

rule! {
    cause: AdmissionRefusesNode,
    summary: "A webhook whose pods do not run rejects every change of a Node, so Karpenter cannot register it",
    stages: [Register],
    reads: [NodeClaims, Pods, MutatingWebhooks, ValidatingWebhooks],
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let (node, claim) = (case.node?, case.claim?);
    let waits = node.spec.taints.iter().any(|taint| taint.key == UNREGISTERED_TAINT);
    if claim.is_true("Registered") || !waits {
        return None;
    }
    // Where another Node was changed since, it is not refused to this one.
    let newest = case.cluster.once(&NEWEST, "", || {
        case.cluster.claims().filter_map(|claim: &NodeClaim| claim.true_since("Registered")).max()
    });
    if newest.is_some_and(|at| Some(at) > node.metadata.creation_timestamp) {
        return None;
    }
    let asked = case.cluster.all_webhooks().filter(|(.., webhook)| is_asked(webhook, node));
    let mut found = asked.filter_map(|(kind, config, webhook)| {
        let service = webhook.client_config.service.as_ref()?;
        Some((kind, config, webhook, service, unanswered(case, service)?))
    });
    match found.next() {
        Some((kind, config, webhook, service, pod)) => {
            refused(case, node, (kind, config, webhook), service, pod).into()
        }
        None => None,
    }
}

/// The time of the last registration of a NodeClaim.
static NEWEST: Memo<Option<DateTime<Utc>>> = Memo::new("when a NodeClaim was registered last");

/// Whether a change of the Node waits for the webhook, and the API server rejects it if the webhook does not answer.
/// Its namespaceSelector does not matter: Nodes have no namespace.
/// Sources: k8s.io/apiserver v0.36.3 pkg/admission/plugin/webhook/predicates/rules/rules.go `Matches`,
/// predicates/namespace/matcher.go `MatchNamespaceSelector`.
fn is_asked(webhook: &Webhook, node: &Node) -> bool {
    let any = |items: &[String], wanted: &[&str]| items.iter().any(|item| wanted.contains(&item.as_str()));
    let of_node = webhook.rules.iter().any(|rule| {
        any(&rule.operations, &["UPDATE", "*"])
            && any(&rule.api_groups, &["", "*"])
            && any(&rule.resources, &["nodes", "*", "nodes/*", "*/*"])
            && rule.scope != "Namespaced"
    });
    // What a CEL expression leaves out is not known here.
    let unconditional = webhook.match_conditions.is_empty();
    // Fail is the default of v1.
    of_node
        && unconditional
        && webhook.failure_policy != "Ignore"
        && webhook.object_selector.selects(&node.metadata.labels)
}

/// A pod of the service's namespace, if there are some and none is Ready. nodewhy does not read which of them the
/// service selects.
fn unanswered<'c>(case: &Case<'c>, service: &WebhookService) -> Option<&'c Pod> {
    let mut pods = case.cluster.pods_in(&service.namespace);
    let first = pods.next()?;
    (!first.is_ready() && pods.all(|pod| !pod.is_ready())).then_some(first)
}

fn refused(
    case: &Case,
    node: &Node,
    (kind, config, webhook): (&str, &WebhookConfiguration, &Webhook),
    service: &WebhookService,
    pod: &Pod,
) -> Finding {
    let (name, config) = (node.name(), &config.metadata.name);
    let WebhookService { namespace, name: service, .. } = service;
    let summary = format!(
        "Node {name} has not been registered since {}: {kind} {config} sends every change of a Node to service \
         {namespace}/{service} and rejects it if the service does not answer. No pod of namespace {namespace} is \
         Ready.",
        case.since()
    );
    let waits =
        pod.unscheduled().map_or_else(|| "it is not Ready".to_owned(), |said| format!("it is not scheduled: {said}"));
    let evidence = Evidence::new(
        format!("{kind}/{config}"),
        "webhooks",
        format!("{}: UPDATE nodes, failurePolicy Fail, service {namespace}/{service}", webhook.name),
        "the API server asks this webhook before it accepts any change of a Node, also Karpenter's",
    );
    let plural = format!("{}s", kind.to_ascii_lowercase());
    Finding::new(Confidence::Likely, summary, evidence)
        .with(Evidence::new(
            format!("Pod/{}", pod.metadata.name),
            "status",
            waits.clone(),
            "no pod of its namespace is Ready, so the service cannot answer",
        ))
        .linked([
            Link::new(format!("Node/{name}"), format!("taint {UNREGISTERED_TAINT}")),
            Link::new(format!("{kind}/{config}"), "it rejects every change of a Node"),
            Link::new(format!("Pod/{}", pod.metadata.name), waits),
        ])
        .blaming(webhook::blame(kind, config))
        .fix(format!(
            "Exclude nodes from the rules of webhook {}, or let it fail open (failurePolicy: Ignore). Also let its \
             pods run on nodes that do not wait for it. Neither disrupts running pods.",
            webhook.name
        ))
        .change("Change the webhook", format!("kubectl edit {plural} {config}"))
        .unknown(
            format!("Does service {namespace}/{service} have no ready endpoint?"),
            format!("kubectl get endpointslices -n {namespace} -l kubernetes.io/service-name={service}"),
        )
}
