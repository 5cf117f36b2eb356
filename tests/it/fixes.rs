//! The fix of every verdict, over every cause's examples and every case: it names what to change, and its commands can
//! be run.

use engine::api::{NodeDiagnosis, Risk};
use engine::case::judging::Judging;
use engine::case::stage::Thresholds;
use engine::cluster_state::ClusterState;
use engine::diagnose::diagnose;
use engine::rules;
use nodewhy::ingest::dump::{Summary, load_from};
use serde_json::json;
use std::collections::BTreeSet;
use testkit::fixes::{commands, split, tried, verdicts};
use testkit::objects::{examples, over_cluster};

/// What a verdict is about: the blamed object, the machine, its instance and its pool, and what it has seen.
fn names(diagnosis: &NodeDiagnosis) -> BTreeSet<String> {
    let (spec, status) = (&diagnosis.spec, diagnosis.status.as_ref().expect("a status"));
    let machine = spec.node_claim.iter().chain(&spec.node).map(|r| r.name.clone());
    let class = spec.node_pool.iter().chain(&spec.node_class).map(|r| r.name.clone());
    let blamed = status.blame.iter().map(|b| b.name.clone());
    let seen = status.evidence.iter().filter_map(|e| Some(e.object.rsplit(['/', ' ']).next()?.to_owned()));
    let told = status
        .summary
        .split(' ')
        .filter(|word| word.contains('-'))
        .map(|word| word.trim_end_matches([',', '.', ':']).to_owned());
    let all = machine.chain(class).chain(blamed).chain(seen).chain(told).chain([spec.subject.name.clone()]);
    all.filter(|name| !name.is_empty()).collect()
}

#[test]
fn every_fix_says_what_to_change() {
    let mut faults = BTreeSet::new();
    for (whence, diagnosis) in verdicts() {
        let status = diagnosis.status.as_ref().expect("a status");
        let mut fault = |what: &str| faults.insert(format!("{whence} {}: {what}", status.cause));
        let Some(fix) = status.fix.as_ref().filter(|fix| !fix.summary.is_empty()) else {
            fault("no fix");
            continue;
        };
        for text in fix.steps.iter().map(|s| s.text.to_string()).chain([fix.summary.to_string()]) {
            if text.starts_with("Mend ") || text.ends_with("mend it.") {
                fault(&format!("no advice: {text}"));
            }
        }
        let commands: Vec<&String> = fix.steps.iter().filter_map(|s| s.command.as_ref()).collect();
        let names = names(diagnosis);
        // Without a cause there is nothing to change yet: evidence is to be kept.
        let is_open = status.cause == rules::unknown::CAUSE;
        let instance = |c: &str| c.split([' ', '=']).any(|word| word.starts_with("i-"));
        if !is_open && !commands.iter().any(|c| instance(c) || names.iter().any(|name| c.contains(name.as_str()))) {
            fault(&format!("no command names {names:?}: {commands:?}"));
        }
    }
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.into_iter().collect::<Vec<_>>().join("\n"));
}

/// What an operator owns, it writes again.
fn is_there(objects: &str, daemon_set: &str) -> bool {
    let is = |object: &serde_json::Value| {
        object["kind"] == "DaemonSet"
            && object["metadata"]["name"] == daemon_set
            && object["metadata"]["namespace"] == "kube-system"
    };
    over_cluster(objects).iter().any(is)
}

#[test]
fn a_daemon_set_with_an_owner_is_also_changed_there() {
    const THERE: &str = "kubectl edit installation.v1.operator.tigera.io -n kube-system default";
    let owner =
        json!([{"apiVersion": "operator.tigera.io/v1", "kind": "Installation", "name": "default", "uid": "o1"}]);
    let mut blamed = 0;
    for (example, owned) in examples("CniNotReady").iter().flat_map(|example| [(example, true), (example, false)]) {
        let mut state = ClusterState::default();
        for mut object in over_cluster(&example.objects) {
            if owned && object["kind"] == "DaemonSet" {
                object["metadata"]["ownerReferences"] = owner.clone();
            }
            load_from("page", object.to_string().as_bytes(), &mut state, &mut Summary::default());
        }
        let now = "2026-01-15T12:00:00Z".parse().expect("a time");
        for status in diagnose(Judging::new(&state, now, &Thresholds::default())).into_iter().filter_map(|d| d.status) {
            // A DaemonSet of which only pods are there has no owner that anybody could see.
            let is_set = status.blame.is_some_and(|b| b.kind == "DaemonSet" && is_there(&example.objects, &b.name));
            let steps = status.fix.into_iter().flat_map(|fix| fix.steps);
            let there = steps.filter(|step| step.command.as_deref() == Some(THERE)).count();
            assert_eq!(there, usize::from(is_set && owned), "{}", status.summary);
            blamed += there;
        }
    }
    assert!(blamed > 3, "{blamed}");
}

#[test]
fn whoever_does_not_run_deletes_nothing() {
    for (whence, diagnosis) in verdicts() {
        let status = diagnosis.status.as_ref().expect("a status");
        assert!(
            status.cause != "KarpenterNotRunning" || status.terminates_at.is_none(),
            "{whence} announces a deletion"
        );
    }
}

/// Verbs and the flags that fixes use of each. Source: kubectl v1.36.3, `kubectl VERB --help`.
const KUBECTL: &[(&str, &[&str])] = &[
    ("get", &["-A", "-n", "-o", "-l", "-L", "--field-selector", "--show-managed-fields"]),
    ("describe", &["-n", "-l"]),
    ("logs", &["-n", "-l", "-c", "--tail", "--previous", "--all-containers"]),
    ("apply", &["-f"]),
    ("edit", &["-n"]),
    ("annotate", &["--overwrite"]),
    ("patch", &["-n", "--type", "-p"]),
    ("delete", &["-n", "-l", "--field-selector", "--force", "--grace-period"]),
    ("taint", &[]),
    ("cordon", &[]),
    ("uncordon", &[]),
    ("drain", &["--ignore-daemonsets", "--delete-emptydir-data"]),
    ("scale", &["-n", "--replicas"]),
    ("rollout", &["-n"]),
    ("set", &["-n", "-c"]),
    ("create", &["-f", "-o"]),
    ("auth", &["--as", "--as-group", "--list"]),
    ("cluster-info", &[]),
    ("version", &[]),
];

/// Resources as fixes write them, of Kubernetes and of what it is extended by here.
const RESOURCES: &[&str] = &[
    "crd",
    "securitygrouppolicies.vpcresources.k8s.aws",
    "clusterroles",
    "node",
    "nodes",
    "nodeclaim",
    "nodeclaims",
    "nodepool",
    "nodepools",
    "provisioner",
    "awsnodetemplate",
    "ec2nodeclass",
    "ec2nodeclasses",
    "nodeclass",
    "ocinodeclass",
    "nimcache",
    "nodeset",
    "skyhook",
    "configmap",
    "csinode",
    "pod",
    "pods",
    "poddisruptionbudgets",
    "daemonset",
    "daemonsets",
    "deployment",
    "deployments",
    "endpointslices",
    "event",
    "events",
    "csr",
    "service",
    "serviceaccount",
    "serviceaccounts",
    "nodeoverlay",
    "nodeoverlays",
    "eniconfig",
    "eniconfigs",
    "ciliumpodippools",
    "lease",
    "resourceclaims",
    "resourceslices",
    "resourcequota",
    "resourcequotas",
    "limitranges",
    "configmaps",
    "secrets",
    "namespace",
    "volumeattachment",
    "volumeattachments",
    "persistentvolumes",
    "persistentvolumeclaims",
    "storageclasses",
    "statefulset",
    "customresourcedefinition",
    "validatingwebhookconfigurations",
    "mutatingwebhookconfigurations",
    "validatingadmissionpolicies",
    "mutatingadmissionpolicies",
    "nodereadinessrules",
];

/// Calls and their options. Source: botocore 1.44.5 service models.
const AWS: &[(&str, &str, &[&str])] = &[
    ("ec2", "describe-instance-attribute", &["--attribute", "--instance-id"]),
    ("ec2", "describe-instances", &["--instance-ids", "--filters"]),
    ("ec2", "describe-instance-type-offerings", &["--filters", "--location-type"]),
    ("ec2", "describe-capacity-reservations", &["--capacity-reservation-ids"]),
    ("ec2", "describe-images", &["--image-ids", "--include-deprecated", "--include-disabled"]),
    ("ec2", "describe-nat-gateways", &["--nat-gateway-ids"]),
    ("ec2", "describe-network-acls", &["--network-acl-ids"]),
    ("ec2", "describe-launch-templates", &[]),
    ("ec2", "describe-placement-groups", &[]),
    ("ec2", "describe-subnets", &["--filters", "--subnet-ids"]),
    ("ec2", "describe-tags", &["--filters"]),
    ("ec2", "describe-vpc-attribute", &["--attribute", "--vpc-id"]),
    ("ec2", "describe-vpc-endpoints", &["--vpc-endpoint-ids"]),
    ("ec2", "get-ebs-default-kms-key-id", &[]),
    ("ec2", "describe-route-tables", &["--filters", "--route-table-ids"]),
    ("ec2", "describe-security-groups", &["--filters", "--group-ids"]),
    ("ec2", "describe-dhcp-options", &[]),
    ("ec2", "describe-security-group-rules", &["--filters"]),
    ("ec2", "get-console-output", &["--instance-id", "--latest"]),
    ("eks", "describe-cluster", &["--name"]),
    ("eks", "list-access-entries", &["--cluster-name"]),
    ("eks", "describe-access-entry", &["--cluster-name", "--principal-arn"]),
    ("eks", "associate-access-policy", &["--access-scope", "--cluster-name", "--policy-arn", "--principal-arn"]),
    ("eks", "create-addon", &["--addon-name", "--cluster-name"]),
    ("eks", "create-access-entry", &["--cluster-name", "--principal-arn", "--type"]),
    ("eks", "delete-access-entry", &["--cluster-name", "--principal-arn"]),
    ("eks", "update-cluster-config", &["--name", "--logging"]),
    ("route53", "list-hosted-zones-by-vpc", &["--vpc-id", "--vpc-region"]),
    ("logs", "filter-log-events", &["--log-group-name", "--log-stream-name-prefix", "--filter-pattern"]),
    ("ssm", "start-automation-execution", &["--document-name", "--parameters"]),
    ("cloudtrail", "lookup-events", &["--lookup-attributes"]),
    ("kms", "cancel-key-deletion", &["--key-id"]),
    ("kms", "describe-key", &["--key-id"]),
    ("kms", "enable-key", &["--key-id"]),
    ("kms", "get-key-policy", &["--key-id", "--policy-name"]),
    ("kms", "list-grants", &["--key-id"]),
    ("iam", "add-role-to-instance-profile", &["--instance-profile-name", "--role-name"]),
    ("iam", "attach-role-policy", &["--role-name", "--policy-arn"]),
    ("iam", "create-instance-profile", &["--instance-profile-name"]),
    ("iam", "get-instance-profile", &["--instance-profile-name"]),
    ("iam", "get-role", &["--role-name"]),
    ("iam", "update-assume-role-policy", &["--role-name", "--policy-document"]),
    ("service-quotas", "get-service-quota", &["--service-code", "--quota-code"]),
    ("service-quotas", "list-service-quotas", &["--service-code"]),
    ("service-quotas", "request-service-quota-increase", &["--service-code", "--quota-code", "--desired-value"]),
    ("sts", "get-caller-identity", &[]),
    ("sts", "decode-authorization-message", &["--encoded-message"]),
];

/// Options that every call of aws has.
const OF_EVERY_CALL: &[&str] = &["--query", "--output"];

fn unknown_flag<'w>(words: &'w [String], known: &[&str]) -> Option<&'w str> {
    let flags = words.iter().filter(|w| w.starts_with('-') && w.len() > 1).map(|w| w.split('=').next().unwrap_or(w));
    flags.into_iter().find(|flag| !known.contains(flag))
}

/// Why one command cannot be run.
fn refused(words: &[String]) -> Option<String> {
    let rest = |n: usize| words.get(n..).unwrap_or_default();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["kubectl", verb, ..] => {
            let Some((_, flags)) = KUBECTL.iter().find(|(known, _)| known == verb) else {
                return Some(format!("no verb {verb}"));
            };
            if let Some(flag) = unknown_flag(rest(2), flags) {
                return Some(format!("kubectl {verb} knows no {flag}"));
            }
            if let Some(patch) = words.iter().position(|w| w == "-p").and_then(|at| words.get(at + 1))
                && let Err(error) = serde_json::from_str::<serde_json::Value>(patch)
            {
                return Some(format!("the patch is no JSON: {error}"));
            }
            let of_resources = ["get", "describe", "edit", "annotate", "patch", "delete", "scale"].contains(verb);
            let kinds = words.get(2).filter(|_| of_resources)?.split('/').next()?;
            kinds.split(',').find(|kind| !RESOURCES.contains(kind)).map(|kind| format!("no resource {kind}"))
        }
        ["aws", service, call, ..] => {
            let Some((.., options)) = AWS.iter().find(|(s, c, _)| (s, c) == (service, call)) else {
                return Some(format!("no call {service} {call}"));
            };
            unknown_flag(rest(3), &[*options, OF_EVERY_CALL].concat())
                .map(|option| format!("aws {service} {call} knows no {option}"))
        }
        ["base64", "-d"] | ["grep", ..] | ["nodewhy", "collect", ..] => None,
        _ => Some(format!("no program: {words:?}")),
    }
}

#[test]
fn every_command_can_be_run() {
    let mut faults = BTreeSet::new();
    for (whence, command) in commands() {
        let Some(parts) = split(&command) else {
            faults.insert(format!("{whence}: a shell reads more in it than words: {command}"));
            continue;
        };
        for why in parts.iter().filter_map(|words| refused(words)) {
            faults.insert(format!("{whence}: {why}: {command}"));
        }
    }
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.into_iter().collect::<Vec<_>>().join("\n"));
}

#[test]
fn the_list_of_commands_that_kubectl_tries_is_fresh() {
    let (path, made) = (tried::path(), tried::made());
    if std::env::var_os("NODEWHY_UPDATE").is_some() {
        std::fs::write(&path, &made).expect("the list of commands");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let missing: Vec<&str> = made.lines().filter(|line| !written.lines().any(|of| of == *line)).collect();
    let (file, make) = (tried::FILE, tried::MAKE);
    assert!(written == made, "{file} is stale: {make}\nIt lacks {} lines\n{}", missing.len(), missing.join("\n"));
}

/// What a command can do, by its verb; the risk that a step names is no less.
fn least_risk(command: &str) -> Risk {
    let words: Vec<&str> = command.split(' ').take(3).collect();
    match words.as_slice() {
        ["kubectl", "delete", "node" | "nodeclaim"] | ["kubectl", "drain", _] => Risk::Destructive,
        ["kubectl", "apply" | "edit" | "patch" | "scale" | "set", _]
        | ["aws", "eks", "associate-access-policy" | "create-access-entry" | "delete-access-entry"] => Risk::Mutating,
        ["kubectl", "taint" | "cordon" | "uncordon" | "delete" | "annotate", _] | ["aws", "eks", "create-addon"] => {
            Risk::LowRisk
        }
        _ => Risk::Inspect,
    }
}

#[test]
fn no_step_is_called_safer_than_its_command() {
    let rank =
        |risk: Risk| [Risk::Inspect, Risk::LowRisk, Risk::Mutating, Risk::Destructive].iter().position(|r| *r == risk);
    for (whence, diagnosis) in verdicts() {
        for step in diagnosis.status.iter().filter_map(|s| s.fix.as_ref()).flat_map(|fix| &fix.steps) {
            let Some(command) = &step.command else { continue };
            assert!(rank(step.risk) >= rank(least_risk(command)), "{whence}: {command} is called {:?}", step.risk);
        }
    }
}
