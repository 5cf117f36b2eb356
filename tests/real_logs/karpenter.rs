//! Karpenter with its AWS provider, beside an AWS that refuses what a case says.

use crate::{assert_complete, judge, read, rows_in};
use logs::fact::{Phase, Reason, Trouble};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use testkit::control_plane::recipes::{ec2_node_class_ref, mark_ready, wait_until};
use testkit::control_plane::{ControlPlane, Process};
use testkit::moto::{Moto, moto};

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
        let of = "<launchTemplateAndOverrides><overrides><instanceType>TYPE</instanceType>\
             <availabilityZone>eu-west-1a</availabilityZone></overrides></launchTemplateAndOverrides>";
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
                    "{DENIED} User: x is not authorized to perform: ec2:RunInstances with an explicit deny in a service control policy"
                ),
            ),
            LAUNCHING,
            (T::AwsRefuses, Some(R::OrganizationPolicy)),
        ),
        case(
            "template-denied",
            // It has room for as many pods as no other type here: a template that another launch made does not serve it.
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
                "The provided credentials do not have permission to create the service-linked role for EC2 Spot Instances.",
            ),
            FAILED,
            (T::AwsRefuses, Some(R::AccessDenied)),
        ),
    ]
}

const NOT_HERE: &[(&str, &str)] = &[
    ("Reconciler error{}syncing node, {error}", "Karpenter up to 1.0 says it"),
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
        "no pod asks for a machine here",
    ),
    (
        r#"creating node claim, nodeclaims.karpenter.sh "{claim}" is forbidden: {error}"#,
        "no pod asks for a machine here",
    ),
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
        let (until, quoted) = (Instant::now() + SOON, format!("\"{name}\""));
        loop {
            let log = self.karpenter.log();
            let lines: Vec<&str> = log.lines().filter(|line| line.contains(&quoted)).collect();
            let said = lines.iter().position(|line| rows_in(line).contains(says));
            if said.is_some() || Instant::now() > until {
                return lines[..said.map_or(lines.len(), |at| at + 1)].join("\n");
            }
            std::thread::sleep(Duration::from_millis(200));
        }
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

    /// A policy that refuses what anybody writes into the Node of that name.
    fn refuse_writes(&self, node: &str) {
        let rules =
            json!([{ "apiGroups": [""], "apiVersions": ["v1"], "resources": ["nodes"], "operations": ["UPDATE"] }]);
        let policy = json!({
            "matchConstraints": { "resourceRules": rules },
            "matchConditions": [{ "name": "node", "expression": format!("object.metadata.name == '{node}'") }],
            "validations": [{ "expression": "false", "message": "a Node needs the label team" }],
        });
        let binding = json!({ "policyName": node, "validationActions": ["Deny"] });
        for (kind, spec) in [("ValidatingAdmissionPolicy", policy), ("ValidatingAdmissionPolicyBinding", binding)] {
            self.control_plane.apply(json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": { "name": node }, "spec": spec,
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
    field.refuse_writes("unpatched");
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

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_complete("karpenter", &printed, NOT_HERE);
}
