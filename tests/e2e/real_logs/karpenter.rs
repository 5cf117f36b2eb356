//! Karpenter with its AWS provider, beside an AWS that refuses what a case says.

use crate::real_logs::{assert_complete, judge, read, rows_in};
use logs::fact::{Phase, Reason, Trouble};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use testkit::control_plane::recipes::{ec2_node_class_ref, mark_ready, wait_until};
use testkit::control_plane::{ControlPlane, Process};
use testkit::moto::{Moto, moto};
use testkit::patience::Patience;

/// What AWS refuses, the type of the machine whose launch it is, what Karpenter says, and its root.
/// What has no capacity is not asked for again: each case has a type of its own.
struct Case {
    name: &'static str,
    instance_type: &'static str,
    fault: Value,
    says: &'static str,
    wanted: (Trouble, Option<Reason>),
}

const DENIED: &str = "You are not authorized to perform this operation.";
const LAUNCHING: &str = "Reconciler error{}launching nodeclaim, {error}";
const REFUSED: &str = "Reconciler error{}launching nodeclaim, {}, api error {code}: {error}";
/// Of an error that AWS' model names.
const NAMED: &str =
    "Reconciler error error={}, https response error StatusCode: {}, RequestID: {}, {code}: {error} EC2NodeClass=";
const FAILED: &str = "failed launching nodeclaim{error}";

fn cases() -> Vec<Case> {
    use {Reason as R, Trouble as T};
    let fleet = |code: &str, message: &str| {
        let of = "<launchTemplateAndOverrides><overrides><instanceType>TYPE</instanceType><availabilityZone>eu-west-1a</availabilityZone></overrides></launchTemplateAndOverrides>";
        let error = format!("<item><errorCode>{code}</errorCode><errorMessage>{message}</errorMessage>{of}</item>");
        let text = format!(
            "<CreateFleetResponse><fleetId>fleet-1</fleetId><errorSet>{error}</errorSet></CreateFleetResponse>"
        );
        json!({ "kind": "body", "action": "ec2:CreateFleet", "text": text })
    };
    let case = |name, instance_type, fault, says, wanted| Case { name, instance_type, fault, says, wanted };
    vec![
        case(
            "fleet-denied",
            "m5.large",
            refused("ec2:CreateFleet", "UnauthorizedOperation", DENIED),
            LAUNCHING,
            (T::AwsRefuses, Some(R::AccessDenied)),
        ),
        case(
            "scp",
            "m5.xlarge",
            refused(
                "ec2:CreateFleet",
                "UnauthorizedOperation",
                &format!(
                    "{DENIED} User: x is not authorized to perform: ec2:RunInstances with an explicit deny in a \
                     service control policy"
                ),
            ),
            LAUNCHING,
            (T::AwsRefuses, Some(R::OrganizationPolicy)),
        ),
        case(
            "template-denied",
            // It has room for as many pods as no other type here: a template that another launch made does not serve
            // it.
            "t3.medium",
            refused("ec2:CreateLaunchTemplate", "UnauthorizedOperation", DENIED),
            LAUNCHING,
            (T::AwsRefuses, Some(R::AccessDenied)),
        ),
        case(
            "clock",
            "m5.4xlarge",
            refused("ec2:CreateFleet", "RequestExpired", "Request has expired."),
            LAUNCHING,
            (T::ClockWrong, Some(R::Clock)),
        ),
        case(
            "template-limit",
            "t3.large",
            refused(
                "ec2:CreateLaunchTemplate",
                "LaunchTemplateLimitExceeded",
                "The limit of launch templates is reached.",
            ),
            REFUSED,
            (T::RequestRefused, None),
        ),
        case(
            "run-denied",
            "m6i.large",
            fleet("UnauthorizedOperation", DENIED),
            LAUNCHING,
            (T::AwsRefuses, Some(R::AccessDenied)),
        ),
        case(
            "linked-role",
            "m6i.xlarge",
            fleet(
                "AuthFailure.ServiceLinkedRoleCreationNotPermitted",
                "The provided credentials do not have permission to create the service-linked role for EC2 Spot \
                 Instances.",
            ),
            FAILED,
            (T::AwsRefuses, Some(R::AccessDenied)),
        ),
    ]
}

const NOT_HERE: &[(&str, &str)] = &[
    (
        "Observed a panic{}ller=provisioner 
        Observed a panic{}ller=disruption ",
        "Karpenter 1.5.0 panics so, and later ones do not",
    ),
    ("Reconciler error{}syncing node, {error}", "Karpenter up to 1.0 says it"),
    (
        "The kubelet compatibility annotation, {annotation}, is not supported on Karpenter v1.1+. Please refer to the \
         upgrade guide in the docs. The following NodePools still have the compatibility annotation: {annotated}",
        "Karpenter 1.1 says it, and 1.14 does not",
    ),
    ("Checking EC2 API connectivity, {error}", "Karpenter up to 0.36 says it"),
    ("Failed to renew lease{}err={error}", "no other replica takes the lease, and the API server answers"),
    (
        "Reconciler error{}deleting instance profile, {error} EC2NodeClass=",
        "the profiles here are not made by Karpenter",
    ),
    (
        "Reconciler error{}listing instance profiles, {error} EC2NodeClass=",
        "the profiles here are not made by Karpenter",
    ),
    (r#"creating node claim, NodeClaim.karpenter.sh "{claim}" is invalid: {error}"#, "Karpenter up to 0.36 says it"),
    (
        r#"creating node claim, NodeClaim.karpenter.sh "{claim}" is invalid: {error} controller="#,
        "the NodePool here is a good one",
    ),
    ("creating node claim, {error}", "Karpenter up to 0.36 says it"),
    ("creating scheduler, {error}", "Karpenter up to 0.36 says it"),
    ("Could not launch node, {error}", "Karpenter up to 0.9 says it"),
    ("Launching node, {error}", "Karpenter from 0.10 on says it, as long as a round makes the machines itself"),
    (
        "launched machine
        registered machine
        initialized machine
        deleted machine",
        "Karpenter from 0.28 to 0.31 says it",
    ),
    ("launching node, {error}", "Karpenter up to 0.21 says it, where a round makes the machines itself"),
    (
        "Reconciler error{}fetching instance types using ec2.DescribeInstanceTypes, {error}",
        "Karpenter up to 0.6 says it",
    ),
    ("Reconciler error{}tracking volume usage, {error}", "Karpenter up to 0.31 says it"),
    ("launching machine, {error}", "Karpenter 0.22 says it, where a round makes the machines itself"),
    ("creating machine, {error}", "Karpenter from 0.25 to 0.27 says it, where a round makes the machines itself"),
    ("waiting on cluster sync", "it is said at debug level, and of a cluster that never gets in step"),
    ("Unable to detect the IP of the kube-dns service, {error}", "later versions go on without that Service"),
    ("Launched instance: ", "Karpenter says so as long as a round makes the machines itself"),
    (
        "failed to list {}: conversion webhook for {version}, Kind={kind} failed: {error}",
        "the definitions of this Karpenter have one version, and convert nothing",
    ),
    (
        "failed to list {}: request to convert CR from an invalid group/version: {version}",
        "the API server refuses to forget a version in which objects are stored",
    ),
    ("Reconciler error{}ller=provisioner ", "this Karpenter is an administrator, and its inputs are well"),
    ("ec2 api connectivity check failed{}error={error}", "Karpenter ends with it, and no other case could follow"),
    ("failed detecting cluster endpoint{}error={error}", "Karpenter ends with it, and no other case could follow"),
    (
        r#"failed to list {kind}: {resource} is forbidden: User "{user}" cannot list resource"#,
        "this Karpenter is an administrator",
    ),
    ("failed to renew lease {lease}: {error}", "client-go up to 0.34 says it"),
    ("if kind is a CRD, it should be installed before calling Start{}error={error}", "the custom resources are there"),
    ("nodepool failed validation, {error} nodepool=", "Karpenter up to 0.36 says it"),
    ("nodepool failed validation{}error={error} NodePool=", "Karpenter 0.37 says it"),
    ("unable to detect the cluster endpoint, {error}", "Karpenter up to 0.36 says it"),
];

const SOON: Duration = Duration::from_mins(1);

struct Field {
    control_plane: ControlPlane,
    karpenter: Process,
}

impl Field {
    fn new(moto: &Moto) -> Self {
        moto.tell("tags", &json!({ "key": "karpenter.sh/discovery", "value": "test" }));
        moto.tell("image", &json!({ "id": "ami-0a0000000000000b1", "name": "al2023" }));
        moto.tell("cluster", &json!({ "name": "test", "mode": "API" }));
        let created = "2026-01-15T11:20:00+00:00";
        moto.tell("profile", &json!({ "name": "shop_1", "role": "KarpenterNodeRole-test", "created": created }));
        let control_plane = ControlPlane::start();
        let karpenter = control_plane.aws_karpenter(&moto.url());
        Self { control_plane, karpenter }
    }

    fn class(&self, name: &str, more: Value) {
        let tags = json!([{ "tags": { "karpenter.sh/discovery": "test" } }]);
        let mut spec = json!({
            "amiFamily": "AL2023", "amiSelectorTerms": [{ "id": "ami-0a0000000000000b1" }],
            "subnetSelectorTerms": tags, "securityGroupSelectorTerms": tags,
        });
        if let (Some(spec), Value::Object(more)) = (spec.as_object_mut(), more) {
            spec.extend(more);
        }
        self.control_plane.apply(json!({
            "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": { "name": name }, "spec": spec,
        }));
    }

    fn claim(&self, name: &str, instance_type: &str) {
        let one_of = |key: &str, value: &str| json!({ "key": key, "operator": "In", "values": [value] });
        self.control_plane.apply(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": { "name": name },
            "spec": {
                "nodeClassRef": ec2_node_class_ref(), "expireAfter": "Never",
                "requirements": [
                    one_of("node.kubernetes.io/instance-type", instance_type),
                    one_of("karpenter.sh/capacity-type", "on-demand"),
                    one_of("topology.kubernetes.io/zone", "eu-west-1a"),
                ],
            },
        }));
    }

    /// What Karpenter says of an object, up to the first line that has this row.
    fn said_of(&self, name: &str, says: &str) -> String {
        let (patience, quoted) = (Patience::of(SOON), format!("\"{name}\""));
        loop {
            let log = self.karpenter.log();
            let lines: Vec<&str> = log.lines().filter(|line| line.contains(&quoted)).collect();
            let said = lines.iter().position(|line| rows_in(line).contains(says));
            if said.is_some() || patience.is_over() {
                return lines[..said.map_or(lines.len(), |at| at + 1)].join("\n");
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// The first line that holds these words, once it is there.
    fn line(&self, words: &str) -> String {
        wait_until(SOON, || self.karpenter.log().lines().find(|line| line.contains(words)).map(str::to_owned))
    }

    /// A NodePool, and a pod that no Node has room for: there is no scheduler here, so its word is put in its mouth.
    fn pool_with_a_pod(&self, name: &str) {
        self.control_plane.apply(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": { "name": name },
            "spec": { "template": { "spec": {
                "nodeClassRef": ec2_node_class_ref(),
                "requirements": [{ "key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"] }],
            } } },
        }));
        self.control_plane.apply(json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "namespace": "default" },
            "spec": {
                "nodeSelector": { "karpenter.sh/nodepool": name },
                "containers": [{ "name": "app", "image": "app", "resources": { "requests": { "cpu": "100m" } } }],
            },
        }));
        let condition = json!({
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/0 nodes are available",
        });
        self.control_plane.patch_status("pod", name, "merge", &json!({ "status": { "conditions": [condition] } }));
    }

    fn delete(&self, claim: &str) {
        self.control_plane.kubectl(&["delete", "nodeclaim", claim, "--wait=false"]);
    }

    /// The Node of a claim that was launched.
    fn join(&self, claim: &str) {
        let id = wait_until(SOON, || {
            let claim = self.control_plane.get(&["nodeclaim", claim])?;
            claim["status"]["providerID"].as_str().filter(|id| !id.is_empty()).map(str::to_owned)
        });
        self.control_plane.apply(json!({
            "apiVersion": "v1", "kind": "Node", "metadata": { "name": claim },
            "spec": { "providerID": id, "taints": [{ "key": "karpenter.sh/unregistered", "effect": "NoExecute" }] },
        }));
    }

    /// A policy that refuses what anybody does to the objects that the expression is true of.
    fn refuse(&self, name: &str, resource: &str, operation: &str, expression: &str) {
        let rules = json!([{
            "apiGroups": ["*"], "apiVersions": ["*"], "resources": [resource], "operations": [operation],
        }]);
        let policy = json!({
            "matchConstraints": { "resourceRules": rules },
            "matchConditions": [{ "name": "those", "expression": expression }],
            "validations": [{ "expression": "false", "message": "it needs the label team" }],
        });
        let binding = json!({ "policyName": name, "validationActions": ["Deny"] });
        for (kind, spec) in [("ValidatingAdmissionPolicy", policy), ("ValidatingAdmissionPolicyBinding", binding)] {
            self.control_plane.apply(json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": { "name": name }, "spec": spec,
            }));
        }
    }
}

fn refused(action: &str, code: &str, message: &str) -> Value {
    json!({ "kind": "error", "action": action, "status": 403, "code": code, "message": message })
}

#[test]
fn what_karpenter_says_in_trouble_is_known() {
    let moto = moto();
    let field = Field::new(&moto);
    // The API server takes a moment to act on a new policy.
    field.refuse("unpatched", "nodes", "UPDATE", "object.metadata.name == 'unpatched'");
    field.class("default", json!({ "instanceProfile": "shop_1" }));
    let (mut wrong, mut printed) = (Vec::new(), BTreeSet::new());
    let mut tell = |name: &str, says: &str, wanted| {
        let log = field.said_of(name, says);
        wrong.extend(judge(name, &log, says, wanted));
        printed.extend(rows_in(&log));
        log
    };
    wait_until(SOON, || {
        let class = field.control_plane.get(&["ec2nodeclass", "default"])?;
        let conditions = class["status"]["conditions"].as_array()?.clone();
        conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True").then_some(())
    });
    for Case { name, instance_type, fault, says, wanted } in cases() {
        moto.tell("fault", &serde_json::from_str(&fault.to_string().replace("TYPE", instance_type)).expect("JSON"));
        field.claim(name, instance_type);
        tell(name, says, Some(wanted));
        moto.tell("no-faults", &json!({}));
    }

    let denied = Some((Trouble::AwsRefuses, Some(Reason::AccessDenied)));
    moto.tell("fault", &refused("iam:CreateInstanceProfile", "AccessDenied", "x is not authorized to perform that"));
    field.class("roled", json!({ "role": "KarpenterNodeRole-test" }));
    tell("roled", "Reconciler error error={error} EC2NodeClass=", denied);
    moto.tell("no-faults", &json!({}));

    moto.tell("fault", &refused("iam:CreateInstanceProfile", "InvalidInput", "The name is not valid."));
    field.class("misnamed", json!({ "role": "KarpenterNodeRole-test" }));
    let other = Some((Trouble::RequestRefused, None));
    tell("misnamed", NAMED, other);
    moto.tell("fault", &refused("ec2:DescribeSubnets", "InvalidParameterValue", "x is not valid."));
    let terms = json!([{ "id": "subnet-0a0000000000000b1" }]);
    field.class("invalid", json!({ "instanceProfile": "shop_1", "subnetSelectorTerms": terms }));
    tell("invalid", "Reconciler error error={}, api error {code}: {error} EC2NodeClass=", other);
    moto.tell("no-faults", &json!({}));

    field.claim("unpatched", "c5.large");
    field.join("unpatched");
    let admission = Some((Trouble::AdmissionRefuses, Some(Reason::Admission)));
    tell("unpatched", "Reconciler error{}patching node, {error}", admission);

    // While a NodeClaim has no instance, Karpenter waits with everything else; after half a minute it says so.
    moto.tell("fault", &refused("ec2:CreateFleet", "InternalError", "An internal error has occurred"));
    field.claim("waited-for", "c5.4xlarge");
    let unsynced = "cluster is waiting on sync for extended duration";
    let of_waiting = field.line(unsynced);
    moto.tell("no-faults", &json!({}));
    field.delete("waited-for");

    // One that gets there, and whose end AWS refuses at first.
    let mut passes = |name: &str, says: &str, phase| {
        let log = tell(name, says, None);
        assert_eq!(read(&log).came_to().map(|(phase, _)| phase), Some(phase), "{name}: {says}: {log}");
    };
    field.claim("joins", "c5.xlarge");
    passes("joins", "launched nodeclaim", Phase::Booted);
    field.join("joins");
    passes("joins", "registered nodeclaim", Phase::Registered);
    mark_ready(&field.control_plane, "joins");
    passes("joins", "initialized nodeclaim", Phase::Ready);
    field.claim("ends", "c5.2xlarge");
    passes("ends", "launched nodeclaim", Phase::Booted);
    moto.tell("fault", &refused("ec2:TerminateInstances", "UnauthorizedOperation", DENIED));
    field.delete("ends");
    tell("ends", "Reconciler error{}TerminateInstances{error}", denied);
    moto.tell("no-faults", &json!({}));
    tell("ends", "deleted nodeclaim", None);

    // Machines for pods; then nobody may make a NodeClaim; then their definition goes, and waits for one that stays.
    field.pool_with_a_pod("general");
    tell("general", "created nodeclaim", None);
    field.refuse("strict", "nodeclaims", "CREATE", "object.metadata.labels['karpenter.sh/nodepool'] == 'strict'");
    field.pool_with_a_pod("strict");
    let of_a_policy = field.line("ValidatingAdmissionPolicy 'strict'");
    moto.tell("fault", &refused("ec2:TerminateInstances", "UnauthorizedOperation", DENIED));
    field.control_plane.kubectl(&["delete", "crd", "nodeclaims.karpenter.sh", "--wait=false"]);
    field.pool_with_a_pod("late");
    let terminating = "create not allowed while custom resource definition is terminating";
    let of_a_definition = field.line(terminating);
    let is_forbidden = r#"creating node claim, nodeclaims.karpenter.sh "{claim}" is forbidden: {error}"#;
    for (says, line, trouble) in [
        (is_forbidden, of_a_policy, (Trouble::NodeClaimRefused, Some(Reason::Admission))),
        (unsynced, of_waiting, (Trouble::ProvisioningFails, None)),
        (terminating, of_a_definition, (Trouble::ProvisioningFails, Some(Reason::Forbidden))),
    ] {
        wrong.extend(judge(says, &line, says, Some(trouble)));
        printed.extend(rows_in(&line));
    }

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_complete("karpenter", &printed, NOT_HERE);
}
