//! aws-auth authorizes the Windows kubelet as a node, but gives its kube-proxy no rights.

use crate::explain::commands;
use crate::facts::access_entry::{self, EntryState};
use crate::facts::node_role;
use crate::rules::prelude::*;
use crate::upstream::node_events::{Sandbox, refused_sandbox};
use readers::aws_auth::{Verdict, WINDOWS_GROUP};

rule! {
    cause: WindowsGroupMissing,
    summary: "The entry of a Windows node role in aws-auth lacks eks:kube-proxy-windows, so no pod gets a network",
    stages: [Ready],
    reads: [NodeClasses, AwsAuth, Events, Pods, CertificateSigningRequests, Deployments, AwsObservations],
    versions: "all, in clusters whose authentication mode includes the ConfigMap",
}

fn check(case: &Case) -> Option<Opinion> {
    if case.wait.symptom != Symptom::PodsRefused {
        return None;
    }
    let node = case.node.filter(|node| node.is_windows())?;
    let (role, auth) = (node_role::name(case)?, case.cluster.aws_auth()?);
    let Verdict::Mapped(entry) = auth.read.judge(role) else { return None };
    if entry.has_group(WINDOWS_GROUP) {
        return Some(Opinion::ruled_out(
            auth,
            format!("the entry of {role} in aws-auth has the group {WINDOWS_GROUP}"),
        ));
    }
    let refusals = case.cluster.pod_events_on(node.name()).filter(|e| refused_sandbox(e) == Some(Sandbox::Network));
    let event = refusals.max_by_key(|e| e.last_seen())?;
    if let Some(pod) = case.pods().find(|pod| pod.status.phase == "Running" && !pod.spec.host_network) {
        return Some(Opinion::ruled_out(
            pod,
            format!("pod {} has a network on Node {}", pod.metadata.name, node.name()),
        ));
    }
    // kube-proxy has the kubelet's identity, which the kubelet's certificate requests show.
    let username = format!("system:node:{}", node.name());
    let own = case.cluster.csrs().filter(|csr| csr.spec.username == username);
    let csr = own.max_by_key(|csr| csr.metadata.creation_timestamp);
    // An access entry takes precedence over the ConfigMap, and an entry of this type brings the group.
    let proven = match (access_entry::entry_state(case, role), csr) {
        (EntryState::Fits(own), _) if own.type_ == "EC2_WINDOWS" => {
            return None;
        }
        (_, Some(csr)) if csr.spec.groups.iter().any(|group| group == WINDOWS_GROUP) => {
            return Some(Opinion::ruled_out(csr, format!("its kubelet has the group {WINDOWS_GROUP}")));
        }
        (EntryState::Missing { .. } | EntryState::NotRead, _) | (_, Some(_)) => {
            case.cluster.missing(Input::Pods).is_none()
        }
        _ => false,
    };
    let confidence = if proven { Confidence::Certain } else { Confidence::Likely };
    let span = entry.groups_span.unwrap_or(entry.span);
    let finding = Finding::new(
        confidence,
        format!(
            "The entry of {role} in ConfigMap aws-auth lacks the group {WINDOWS_GROUP}. kube-proxy on the Windows Node \
             {} may read nothing, so its pods get no network since {}.",
            node.name(),
            case.since()
        ),
        Evidence::new(
            "ConfigMap/aws-auth",
            "data.mapRoles",
            readers::source_text::quoted(&auth.map_roles, span),
            "on Windows kube-proxy is part of the node, and uses the node role instead of a ServiceAccount",
        ),
    )
    .with(Evidence::new(
        format!("Event Pod/{}", event.involved_object.name),
        "message",
        event.said(),
        "no pod runs on the Node, and the runtime cannot create their sandboxes",
    ))
    .blaming(
        Blame::object("v1", "ConfigMap", "aws-auth")
            .namespace("kube-system")
            .field("data.mapRoles")
            .at(&auth.map_roles, span),
    )
    .fix(format!(
        "Add the group {WINDOWS_GROUP} to the entry of {role}. If you create a managed node group later, it may remove \
         the group again. An access entry of type EC2_WINDOWS lasts."
    ))
    .change(format!("Add {WINDOWS_GROUP} to its groups"), commands::EDIT_AWS_AUTH.to_owned());
    let finding = finding.with_all(csr.map(|csr| {
        Evidence::new(
            format!("CertificateSigningRequest/{}", csr.metadata.name),
            "spec.groups",
            csr.spec.groups.join(", "),
            "the identity that the authenticator gives to the kubelet and to kube-proxy",
        )
    }));
    if proven {
        return finding.into();
    }
    let cluster = case.cluster_name().unwrap_or("CLUSTER");
    finding
        .ask_aws(
            format!("Is there an access entry of type EC2_WINDOWS for {role}? It would replace the group."),
            format!("aws eks list-access-entries --cluster-name {cluster} --output text"),
        )
        .into()
}
