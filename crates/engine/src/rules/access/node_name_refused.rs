//! The kubelet is authenticated but may not create the Node with its own name.

use crate::explain::commands;
use crate::facts::aws_auth_role::{self, SessionEntry};
use crate::facts::kubelet_without_node::{Attribution, of_this_machine};
use crate::facts::webhook;
use crate::objects::Webhook;
use crate::rules::prelude::*;

rule! {
    cause: NodeNameRefused,
    summary: "The kubelet authenticates, but the API server refuses to let it create a Node with its name",
    stages: [Join],
    reads: [
        Nodes, NodeClaims, NodeClasses, AwsAuth, Events, CertificateSigningRequests, Deployments, MutatingWebhooks,
        ValidatingWebhooks, AwsObservations,
    ],
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let claim = case.claim?;
    let launched = claim.true_since("Launched")?;
    let (name, event, whose) = of_this_machine(case, launched)?;
    let head = format!(
        "The kubelet of NodeClaim {} runs and is authenticated, but is not allowed to create its Node {name}",
        claim.name()
    );
    let asked = case.cluster.all_webhooks().find(|(.., webhook)| is_asked(webhook));
    // If nodewhy did not read certificate requests, the Node may have existed.
    let requests_read = case.cluster.missing(Input::CertificateSigningRequests).is_none();
    // Never Certain: only the kubelet's log names what refuses the Node.
    let confidence = if requests_read && whose != Attribution::Unclear && asked.is_none() {
        Confidence::Likely
    } else {
        Confidence::Possible
    };
    let summary = match asked {
        Some((kind, config, _)) => format!(
            "{head}. Either {kind} {} refuses new Nodes or adds something that no kubelet may set (a node-role label), \
             or the kubelet's own name differs from its authenticated name.",
            config.metadata.name
        ),
        None => format!("{head}. Most likely its own name differs from the name that it is authenticated as."),
    };
    let finding = Finding::new(
        confidence,
        summary,
        Evidence::new(
            format!("Event/{}", event.metadata.name),
            "message",
            event.said(),
            format!("a kubelet calls itself {name}, only nodes may write such events, and there is no such Node"),
        )
        .figures(format!("{} times", event.times())),
    )
    .fix(
        "Make the kubelet's name the instance's private DNS name. Remove a hostname override or a custom domain name \
         in the DHCP options, and use an AMI that asks EC2 for the name.",
    )
    .inspect(
        "Compare the name with the instance's private DNS name",
        claim.instance_id().map(|id| {
            format!(
                "aws ec2 describe-instances --instance-ids {id} --query 'Reservations[].Instances[].PrivateDnsName'"
            )
        }),
    )
    .ask_aws(
        "Which name is the kubelet authenticated as?",
        "aws logs filter-log-events --log-group-name /aws/eks/CLUSTER/cluster --log-stream-name-prefix authenticator"
            .to_owned(),
    )
    .unknown(
        "Does an admission webhook or policy refuse the Node? It leaves the same trace.",
        "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations,validatingadmissionpolicies -o yaml",
    );
    let finding = match by_session(case).filter(|_| asked.is_none() && !name.starts_with("i-")) {
        Some(mapping) => of_mapping(finding, &mapping),
        None => finding,
    };
    let of_webhook = asked.map(|(kind, config, _)| webhook::blame(kind, &config.metadata.name));
    let blamed = of_webhook.or_else(|| blame(case));
    finding.blaming(blamed.unwrap_or_else(|| Blame::object("karpenter.sh/v1", "NodeClaim", claim.name()))).into()
}

/// Whether a webhook is called when a Node is created, as one that is meant for Nodes.
fn is_asked(webhook: &Webhook) -> bool {
    let any = |items: &[String], wanted: &[&str]| items.iter().any(|item| wanted.contains(&item.as_str()));
    webhook
        .rules
        .iter()
        .any(|rule| any(&rule.operations, &["CREATE", "*"]) && any(&rule.resources, &["nodes", "nodes/*"]))
}

/// The source of the kubelet's name: your own override, an entry of aws-auth that expects the instance's id, or the
/// node class.
fn blame(case: &Case) -> Option<Blame> {
    let override_ = case.user_data().and_then(|(u, text)| Some((u.effective("hostname-override")?.span, text)));
    let class = case.class().map(|c| Blame::object(&c.api_version, &c.kind, c.name()));
    if let (Some((span, text)), Some(class)) = (override_, class.clone()) {
        return Some(class.field("spec.userData").at(text, span));
    }
    by_session(case).map(|mapping| mapping.blame()).or(class)
}

/// The entry of aws-auth that expects the instance's id, unless user data names the Node.
fn by_session<'w>(case: &Case<'w>) -> Option<SessionEntry<'w>> {
    if case.user_data().is_some_and(|(data, _)| data.effective("hostname-override").is_some()) {
        return None;
    }
    aws_auth_role::by_session(case, case.class()?.spec.role.as_deref()?)
}

fn of_mapping(finding: Finding, mapping: &SessionEntry<'_>) -> Finding {
    finding
        .adding(&format!(
            "ConfigMap aws-auth authenticates it as the instance's id: the entry of {} has the username {}.",
            mapping.role, mapping.entry.username
        ))
        .with(mapping.evidence())
        .fix("Change the username of the entry to system:node:{{EC2PrivateDNSName}}.")
        .change("Correct the entry", commands::EDIT_AWS_AUTH.to_owned())
}
