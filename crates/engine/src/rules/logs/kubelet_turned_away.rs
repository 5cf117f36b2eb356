//! The kubelet's log says that the API server rejects it.

use crate::explain::commands;
use crate::explain::logged::{self, Root};
use crate::facts::{access_entry, aws_auth_role, node_role, role_in_use, webhook};
use crate::objects::NodeClass;
use crate::rules::prelude::*;
use logs::fact::Trouble;

rule! {
    cause: KubeletTurnedAway,
    summary: "The kubelet, Karpenter or the authenticator logged that the API server rejects it: not authenticated, \
              not authorized, or refused by a webhook",
    stages: [Join, Register, Initialize, Ready],
    reads: [
        Nodes, NodeClaims, NodeClasses, AwsAuth, Events, CertificateSigningRequests, Pods, Deployments,
        MutatingWebhooks, ValidatingWebhooks, AwsObservations, Logs,
    ],
    versions: "all; seen only in logs",
}

fn check(case: &Case) -> Option<Opinion> {
    let troubles = [Trouble::Unauthorized, Trouble::Forbidden, Trouble::AdmissionRefuses, Trouble::NodeInvalid];
    let root = logged::root(case, &troubles)?;
    let finding = if root.fact.trouble == Trouble::NodeInvalid {
        invalid(case, &root)
    } else if root.fact.trouble == Trouble::AdmissionRefuses {
        root.finding(case)
            .fix("Exempt Nodes, kubelets and Karpenter from the webhook or policy that the line names, or give the \
                  Nodes what it requires. Neither disrupts running nodes.")
            .inspect("See which webhooks and policies exist", "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations,validatingadmissionpolicies \
                 -o yaml".to_owned())
            .blaming(webhook::refusing(case, &root.fact.last.text))
    } else if root.fact.names.contains_key("instance") {
        root.finding(case).fix(
            "Allow the cluster's role to call ec2:DescribeInstances, as AmazonEKSClusterPolicy does. The authenticator \
             derives the Node name from the instance's private DNS name and rejects terminated instances.",
        )
    } else if let Some((known, own)) = two_names(&root.fact.last.text).filter(|(known, _)| has_domain(known)) {
        other_name(case, &root, known, own)
    } else if case.is_elsewhere() {
        by_token(case, &root)
    } else if let Some((known, own)) = two_names(&root.fact.last.text) {
        other_user(case, &root, known, own)
    } else if root.fact.trouble == Trouble::Unauthorized
        && let Some(proof) = role_in_use::is_let_in(case)
    {
        with_role_of_others(case, &root, proof.text())
    } else {
        let_in(case, &root)
    };
    finding.inspect("Read the whole console", logged::command(case)).into()
}

/// A name, a label or a taint of the Node is invalid. A label has the machine's name, so a name that is too long is
/// one, too. Sources: kubernetes v1.36.3 pkg/kubelet/kubelet_node_status.go `initialNode` (kubernetes.io/hostname);
/// apimachinery v0.36.3 pkg/util/validation/validation.go `LabelValueMaxLength`; VPC user guide, "DHCP option sets"
/// (domain-name).
fn invalid(case: &Case, root: &Root<'_>) -> Finding {
    const LONGEST_LABEL: usize = 63;
    let named = |name: &str| root.fact.names.get(name).map(String::as_str);
    let value = named("value");
    let host = named("name").filter(|host| Some(*host) == value && host.len() > LONGEST_LABEL);
    if let Some(host) = host {
        return root
            .finding(case)
            .adding(&format!(
                "The machine's own name has {} characters, and the label kubernetes.io/hostname takes {LONGEST_LABEL}.",
                host.len()
            ))
            .fix(
                "Set one domain name in the VPC's DHCP option set, because some images join several names to one. Or \
                 use an image that uses EC2's private DNS name as its host name. Only new nodes get the change.",
            )
            .inspect("See the domain names of the DHCP option sets", "aws ec2 describe-dhcp-options".to_owned());
    }
    let finding = root.finding(case).fix(
        "Correct the label, the taint or the name that the line shows, in the user data or in the labels and taints of \
         the NodePool. Only new nodes get the change.",
    );
    let text = case.class().and_then(|class| class.spec.user_data.as_deref());
    let is_own = text.zip(value).is_some_and(|(text, value)| text.contains(value));
    finding.blaming(root.user_data(case).filter(|_| is_own))
}

/// The name by which the API server knows the kubelet, and the name of the kubelet's Node.
fn two_names(text: &str) -> Option<(&str, &str)> {
    let (known, own) = of_node(text).or_else(|| of_lease(text))?;
    (known != own && !known.is_empty() && !own.is_empty()).then_some((known, own))
}

/// Source: kubernetes v1.36.3 plugin/pkg/admission/noderestriction/admission.go `admitNode`.
fn of_node(text: &str) -> Option<(&str, &str)> {
    let (before, after) = text.split_once(" is not allowed to modify node ")?;
    let quoted = |text: &str| matches!(text, "\\" | "");
    let mut before = before.rsplit('"');
    let (end, known) = (before.next()?, before.next()?);
    let mut after = after.split('"');
    let (begin, own) = (after.next()?, after.next()?);
    let (known, own) = (known.trim_end_matches('\\'), own.trim_end_matches('\\'));
    (quoted(end) && quoted(begin)).then_some((known, own))
}

/// Source: kubernetes v1.36.3 plugin/pkg/auth/authorizer/node/node_authorizer.go `authorizeLease`.
fn of_lease(text: &str) -> Option<(&str, &str)> {
    let (before, _) = text.split_once("can only access node lease with the same name as the requesting node")?;
    let quotes = ['\\', '"'];
    let name = |after: &str| {
        let (_, rest) = before.split_once(after)?;
        let rest = rest.trim_start_matches(quotes);
        rest.get(..rest.find(quotes)?)
    };
    Some((name("User ")?.strip_prefix("system:node:")?, name("leases.coordination.k8s.io ")?))
}

/// Whether a name of a machine may be EC2's private DNS name.
fn has_domain(name: &str) -> bool {
    name.contains('.')
}

/// EC2's name of the instance, and so the authenticator's name of its kubelet, differs from the machine's own.
/// Source: EC2 user guide, "Amazon EC2 instance hostnames and domains".
fn other_name(case: &Case, root: &Root<'_>, known: &str, own: &str) -> Finding {
    let machine = case.instance_id().unwrap_or("the machine");
    let of_id = |name: &str| case.instance_id().is_some_and(|id| name.split('.').next() == Some(id));
    let by_id = of_id(known) && !of_id(own);
    let why = if by_id { ": its subnet names instances after their id (resource-based names)" } else { "" };
    let finding = Finding::new(
        root.confidence(),
        format!(
            "On {machine} the kubelet's name for its Node is {own}, but EC2's name for the instance is {known}{why}. \
             Because they differ, the API server treats it as another Node's kubelet and rejects it."
        ),
        root.evidence(),
    );
    let look = case.instance_id().map(|id| {
        format!(
            "aws ec2 describe-instances --instance-ids {id} --query \
             'Reservations[].Instances[].[PrivateDnsName,PrivateDnsNameOptions,SubnetId]'"
        )
    });
    let asks_for_id = case
        .user_data_naming(&["InstanceIdNodeName", "hostname-override-source"])
        .filter(|_| of_id(own) && !of_id(known));
    let finding = if let Some(asks_for_id) = asks_for_id {
        finding
            .adding("User data names the Node after the instance's id.")
            .fix(
                "Remove InstanceIdNodeName (nodeadm) or hostname-override-source (Bottlerocket) from the user data. Or \
                 give the node role's entry in aws-auth the username system:node:{{SessionName}}. Only new nodes get \
                 the change.",
            )
            .blaming(asks_for_id)
    } else if by_id {
        finding
            .fix(
                "Select subnets in the node class whose instances are named by their address \
                 (private-dns-hostname-type-on-launch ip-name), or use an image that uses EC2's private DNS name as \
                 its Node name. Only new nodes get the change.",
            )
            .blaming(case.class_field("spec.subnetSelectorTerms"))
    } else {
        let finding = finding.fix(
            "Make the machine use EC2's private DNS name as its Node name. Look for a host name that user data or the \
             image sets, and for a domain-name in the VPC's DHCP options.",
        );
        match joins_from_same_subnet(case) {
            Some((other, subnet)) => of_own_class(case, finding, other, subnet),
            None => finding,
        }
    };
    finding.inspect("See EC2's name of the instance and how the subnet sets it", look)
}

/// The name by which the API server knows the kubelet has no domain, so it is not EC2's private DNS name. It is the
/// name of a session, which is the instance's id, or one that the mapping gives to all.
/// Sources: aws-iam-authenticator v0.6.13 pkg/server/server.go `renderTemplate`; Amazon EKS user guide, "Create access
/// entries" (user names by type).
fn other_user(case: &Case, root: &Root<'_>, known: &str, own: &str) -> Finding {
    let machine = case.instance_id().unwrap_or("the machine");
    let finding = Finding::new(
        root.confidence(),
        format!(
            "On {machine} the kubelet's name for its Node is {own}, but its user name is system:node:{known}. Because \
             they differ, the API server treats it as another Node's kubelet and rejects it."
        ),
        root.evidence(),
    );
    let edit = || Some(commands::EDIT_AWS_AUTH.to_owned());
    // The log may be that of another machine of the class.
    let is_session = known.starts_with("i-");
    let mapping = node_role::name(case).filter(|_| is_session).and_then(|role| aws_auth_role::by_session(case, role));
    if let Some(mapping) = mapping {
        // EKS has not said so, but nodes join through access entries here, and the role may have one.
        let most = if aws_auth_role::by_entries(case) { Confidence::Likely } else { Confidence::Certain };
        return Finding { confidence: finding.confidence.min(most), ..finding }
            .adding(&format!(
                "ConfigMap aws-auth gives it that user name: the entry of {} has the username {}.",
                mapping.role, mapping.entry.username
            ))
            .with(mapping.evidence())
            .blaming(mapping.blame())
            .fix(with_dns_name(own))
            .change("Correct the entry", edit());
    }
    // No object shows what gives the kubelet that user name.
    let finding = Finding { confidence: finding.confidence.min(Confidence::Likely), ..finding };
    let type_ = access_entry::type_for(case);
    let is_read = aws_auth_role::is_read(case);
    if is_read == Some(false) || aws_auth_role::mapped(case).is_some() {
        let entry = node_role::name(case).map(|role| Blame::object("", "EKSAccessEntry", role));
        let look = node_role::name(case).map(|role| {
            let cluster = case.cluster_name().unwrap_or("CLUSTER");
            let arn = commands::role_arn(role, None);
            format!("aws eks describe-access-entry --cluster-name {cluster} --principal-arn {arn}")
        });
        return ask_mode(case, finding)
            .adding("Most likely the node role has an access entry of another type.")
            .fix(format!(
                "Delete the access entry of the node role, and create it again with the type {type_}, whose user name \
                 is system:node:{{{{EC2PrivateDNSName}}}}."
            ))
            .inspect("See the type and the user name of the entry", look)
            .blaming(entry);
    }
    let aws_auth = Blame::object("v1", "ConfigMap", "aws-auth").namespace("kube-system").field("data.mapRoles");
    ask_mode(case, finding)
        .adding("Most likely the node role's entry in aws-auth has the username system:node:{{SessionName}}.")
        .fix(format!(
            "Give the node role's entry in aws-auth the username system:node:{{{{EC2PrivateDNSName}}}}. If the cluster \
             does not use aws-auth, give the role an access entry of type {type_}."
        ))
        .change("Correct the entry in aws-auth", edit())
        .blaming((is_read == Some(true)).then_some(aws_auth))
}

/// EC2's private DNS name has a domain. A machine whose own name has none needs more than another user name.
fn with_dns_name(own: &str) -> String {
    let username = "Change the username of the entry to system:node:{{EC2PrivateDNSName}}.";
    if has_domain(own) {
        return username.to_owned();
    }
    format!(
        "{username} Also make the machine use EC2's private DNS name as its Node name: look for a host name that user \
         data or the image sets."
    )
}

/// A class with another image whose machines join from a subnet that this class has too, while none of this class has
/// joined. A DHCP option set belongs to the VPC, so it is the same for both.
/// Source: VPC user guide, "DHCP option sets".
fn joins_from_same_subnet<'w>(case: &Case<'w>) -> Option<(&'w NodeClass, &'w str)> {
    let class = case.class()?;
    if case.class_members().is_none_or(|members| !members.joined().is_empty()) {
        return None;
    }
    let has_subnet = |id: &str| class.status.subnets.iter().any(|own| own.id == *id);
    let has_image = |id: &str| class.status.amis.iter().any(|own| own.id == *id);
    case.cluster.classes().map(|facts| &facts.class).find_map(|other| {
        let is_other = other.kind == class.kind && other.name() != class.name();
        let subnet = other.status.subnets.iter().find(|subnet| has_subnet(&subnet.id))?;
        let shares_image = other.status.amis.iter().any(|ami| has_image(&ami.id));
        let joins = case.cluster.joined_of_class(&other.kind, other.name()).next().is_some();
        (is_other && !shares_image && joins).then_some((other, subnet.id.as_str()))
    })
}

/// The same VPC names the machines of another class well, so this class's image or user data is to be looked at first.
fn of_own_class(case: &Case, finding: Finding, other: &NodeClass, subnet: &str) -> Finding {
    let blame = case.user_data_naming(&["hostname"]).or_else(|| case.class_field("spec.amiSelectorTerms"));
    finding
        .adding(&format!(
            "Nodes of {} {} join in the same VPC with another image, so check the image and the user data of this \
             class first.",
            other.kind,
            other.name()
        ))
        .with(Evidence::new(
            format!("{}/{}", other.kind, other.name()),
            "status.subnets",
            subnet,
            "the stuck node's class has this subnet too, so both have the same DHCP options",
        ))
        .blaming(blame)
}

/// Outside EKS a new kubelet requests its certificate with a bootstrap token.
/// Source: kubernetes v1.36.3 plugin/pkg/auth/authenticator/token/bootstrap/bootstrap.go `AuthenticateToken`.
fn by_token(case: &Case, root: &Root<'_>) -> Finding {
    let finding = root.finding(case);
    if root.fact.trouble == Trouble::Forbidden {
        return finding
            .fix(
                "Allow the kubelets' group to create certificate signing requests (ClusterRole \
                 system:node-bootstrapper). Make sure that the kubelet's own certificate names its Node.",
            )
            .inspect(
                "See to which groups and users roles are bound",
                "kubectl get clusterrolebindings -o wide".to_owned(),
            );
    }
    let finding = finding.adding(
        "The kubelet uses a bootstrap token, or a certificate, that the API server does not know (any more): it has \
         expired, or was renewed since.",
    );
    // Source: Azure/karpenter-provider-azure pkg/operator/options/options.go `KubeletClientTLSBootstrapToken`.
    let is_handed_on = case.class().is_some_and(|class| class.kind == "AKSNodeClass");
    let given = case.karpenter().filter(|_| is_handed_on);
    let Some((namespace, name)) = given.and_then(|karpenter| karpenter.deployment.split_once('/')) else {
        return finding.fix(
            "Renew the bootstrap token or credentials that new nodes get: in the instance template, the image or \
             Karpenter's settings.",
        );
    };
    finding
        .fix(format!(
            "Give Karpenter the currently valid bootstrap token (KUBELET_BOOTSTRAP_TOKEN of Deployment {name}), and \
             again whenever it is renewed. Karpenter passes its token to every new machine."
        ))
        .inspect(
            "See which bootstrap tokens exist and when they expire",
            "kubectl get secrets -n kube-system --field-selector type=bootstrap.kubernetes.io/token -o yaml".to_owned(),
        )
        .change("Set the valid token", format!("kubectl edit deployment -n {namespace} {name}"))
        .blaming(
            Blame::object("apps/v1", "Deployment", name)
                .namespace(namespace)
                .field("spec.template.spec.containers[0].env"),
        )
}

/// Others with the same role are authorized, so the token is at fault, or the machine has another role.
/// Source: AWS IAM user guide, "Troubleshoot Signature Version 4": a signature is valid for 15 minutes.
fn with_role_of_others(case: &Case, root: &Root<'_>, proof: &str) -> Finding {
    let finding = root.finding(case);
    let finding = Finding { confidence: finding.confidence.min(Confidence::Likely), ..finding };
    let blame = joins_from_same_subnet(case).and_then(|_| case.class_field("spec.amiSelectorTerms"));
    finding
        .adding(&format!(
            "The role itself is authorized: {proof}. So the API server rejects the token. Most often the clock of the \
             machine is wrong."
        ))
        .fix(
            "Compare the clock of the machine with UTC: AWS refuses a token that is signed with a time 15 minutes off. \
             If the clock is wrong, use an image with chrony that reads the hardware clock as UTC. If it is right, \
             check whether the instance has the role of the node class.",
        )
        .inspect(
            "Compare the last times of the console with the time of the answer",
            case.instance_id().map(|id| format!("aws ec2 get-console-output --latest --instance-id {id}")),
        )
        .blaming(blame)
}

const OUTLIVED: &str = "If the entry is older than the role, it belongs to an earlier role of the same name: delete it \
                        and create it again.";

/// EKS keeps the id of the role in its access entry. A role that was deleted and recreated under its name has another
/// id, so EKS rejects it although an entry names it.
fn made_anew(finding: Finding, is_forbidden: bool, cluster: &str, role: &str) -> Finding {
    if is_forbidden {
        return finding;
    }
    let entry = format!(
        "aws eks describe-access-entry --cluster-name {cluster} --principal-arn {}",
        commands::role_arn(role, None)
    );
    let made = format!("aws iam get-role --role-name {role} --query Role.CreateDate");
    finding.blaming(Blame::object("", "EKSAccessEntry", role)).inspect(
        "See whether the role has an entry, and whether the entry is older than the role",
        format!("{entry}; {made}"),
    )
}

fn ask_mode(case: &Case, finding: Finding) -> Finding {
    let cluster = case.cluster_name().unwrap_or("CLUSTER");
    finding.ask_aws(
        "Does the cluster use aws-auth, access entries, or both?",
        format!(
            "aws eks describe-cluster --name {cluster} --query cluster.accessConfig.authenticationMode --output text"
        ),
    )
}

/// Names what authorizes the node role: aws-auth, access entries, or both. The log does not show which, and correcting
/// the one that does not apply does not help.
fn let_in(case: &Case, root: &Root<'_>) -> Finding {
    let type_ = access_entry::type_for(case);
    let is_forbidden = root.fact.trouble == Trouble::Forbidden;
    let entry = if is_forbidden {
        "Add the groups system:bootstrappers and system:nodes, and the username of the Node's name, to the node role's \
         entry in aws-auth"
            .to_owned()
    } else {
        "Map the node role in aws-auth".to_owned()
    };
    let or_entry = format!("an access entry of type {type_}");
    let correct = (Risk::Mutating, "Correct the entry in aws-auth", commands::EDIT_AWS_AUTH.to_owned());
    let (is_read, mapped) = (aws_auth_role::is_read(case), aws_auth_role::mapped(case));
    let cluster = case.cluster_name().unwrap_or("CLUSTER");
    let finding = root.finding(case).with_all(node_role::name(case).map(|role| {
        Evidence::new(case.class_object().unwrap_or_default(), "spec.role", role, "the role of the machines")
    }));
    let ask = |finding: Finding| ask_mode(case, finding);
    let with_role = |finding: Finding| match node_role::name(case) {
        Some(role) => made_anew(finding, is_forbidden, cluster, role),
        None => finding,
    };
    match (is_read, mapped) {
        (Some(false), _) => with_role(finding)
            .fix(format!("Give the node role {or_entry}, because this cluster does not use aws-auth. {OUTLIVED}"))
            .inspect(
                "See which roles have one",
                format!("aws eks list-access-entries --cluster-name {cluster} --output text"),
            ),
        (_, Some(role)) => ask(made_anew(finding, is_forbidden, cluster, role)
            .with_all(case.aws_auth_change().map(|change| change.evidence()))
            .fix(format!(
                "aws-auth now maps {role} as a node. Check whether an access entry of {role} contradicts it or is \
                 older than the role (then recreate the entry), and whether the machine has that role."
            ))
            .inspect(
                "See which instance profile the instance has",
                case.instance_id().map(|id| {
                    format!(
                        "aws ec2 describe-instances --instance-ids {id} --query \
                         'Reservations[].Instances[].IamInstanceProfile.Arn' --output text"
                    )
                }),
            )),
        (Some(true), None) => {
            let (risk, text, command) = correct;
            finding
                .fix(format!("{entry}."))
                .step(risk, text, command)
                .blaming(Blame::object("v1", "ConfigMap", "aws-auth").namespace("kube-system").field("data.mapRoles"))
        }
        (None, None) if aws_auth_role::by_entries(case) => ask(with_role(finding)
            .fix(format!("Other Nodes join through an access entry: give the node role {or_entry}. {OUTLIVED}"))),
        (None, None) => {
            let (risk, text, command) = correct;
            // The mapped roles are unknown, and the rejection is only the symptom.
            let finding = Finding { confidence: finding.confidence.min(Confidence::Likely), ..finding };
            ask(finding.fix(format!(
                "{entry}, if the cluster uses it. Otherwise create {or_entry} for the role. Neither disrupts running \
                 nodes."
            )))
            .step(risk, format!("{text}, if the cluster uses it"), command)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{two_names, with_dns_name};

    #[test]
    fn a_machine_with_a_name_of_its_own_needs_more_than_another_user_name() {
        assert!(!with_dns_name("ip-10-0-1-2.ec2.internal").contains("Also"));
        assert!(with_dns_name("worker-1").contains("Also make the machine use EC2's private DNS name"));
    }

    #[test]
    fn two_names_are_read_in_both_messages() {
        let line = |known: &str, own: &str| {
            format!(
                r#"err="nodes \"{own}\" is forbidden: node \"{known}\" is not allowed to modify node \"{own}\"" node="{own}""#
            )
        };
        let (id, ip) = ("i-0f04c923e115123af.us-west-2.compute.internal", "ip-10-0-12-163.us-west-2.compute.internal");
        assert_eq!(two_names(&line(id, ip)), Some((id, ip)));
        let plain = format!(r#"node "{id}" is not allowed to modify node "{ip}""#);
        assert_eq!(two_names(&plain), Some((id, ip)));
        assert_eq!(two_names(&line(ip, ip)), None);
        // The session of a role.
        let session = "i-0f04c923e115123af";
        assert_eq!(two_names(&line(session, ip)), Some((session, ip)));
        let why = "can only access node lease with the same name as the requesting node";
        let of_lease = |user: &str| {
            let lease = format!(r#"leases.coordination.k8s.io \"{ip}\" is forbidden"#);
            format!(r#"{lease}: User \"{user}\" cannot get resource \"leases\": {why}"#)
        };
        let lease = of_lease(&format!("system:node:{session}"));
        assert_eq!(two_names(&lease), Some((session, ip)));
        assert_eq!(two_names(&lease.replace('\\', "")), Some((session, ip)));
        for user in [&*format!("system:node:{ip}"), "karpenter", ""] {
            assert_eq!(two_names(&of_lease(user)), None, "{user}");
        }
        assert_eq!(two_names("is not allowed to modify node"), None);
    }
}
