//! Who a kubelet is: the Node authorizer, NodeRestriction and RBAC of a real API server answer kubelets with
//! certificates of their own. No Karpenter and no kubelet runs here: the tests say what they would, under those
//! identities.

use crate::cluster::life::ACCOUNT;
use crate::cluster::operator::{diagnosis, install};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use testkit::control_plane::identity::serving_request;
use testkit::control_plane::recipes::{SOON, mark_ready, wait_until};
use testkit::control_plane::{ControlPlane, NEWEST_KARPENTER};

const CAUSE: &str = "AwsAuthEntryIncomplete";
/// Machines were launched a minute ago: that is too long here.
const IMPATIENT: [&str; 4] =
    ["--join-threshold=10", "--register-threshold=10", "--initialize-threshold=10", "--proven-threshold=2"];

fn ago(seconds: i64) -> String {
    time(Utc::now() - TimeDelta::seconds(seconds))
}

fn time(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

fn cluster() -> (ControlPlane, PathBuf) {
    let control_plane = ControlPlane::start();
    control_plane.karpenter_crds(NEWEST_KARPENTER);
    control_plane.ec2nodeclass_crd();
    let rights = install(&control_plane);
    (control_plane, rights)
}

fn condition(type_: &str, status: &str, reason: &str, since: &str) -> Value {
    json!({ "type": type_, "status": status, "reason": reason, "message": reason, "lastTransitionTime": since })
}

/// A NodeClaim that was launched a minute ago, with a NodePool, a node class and a role of its own.
fn launched(control_plane: &ControlPlane, name: &str, user_data: &str) {
    launched_at(control_plane, name, user_data, &ago(60));
}

fn launched_at(control_plane: &ControlPlane, name: &str, user_data: &str, at: &str) {
    let class = json!({ "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": name });
    control_plane.apply(json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": { "name": name },
        "spec": {
            "role": format!("role-of-{name}"), "userData": user_data, "amiFamily": "AL2",
            "amiSelectorTerms": [{ "alias": "al2@v20251112" }],
            "subnetSelectorTerms": [{ "tags": { "karpenter.sh/discovery": "test" } }],
            "securityGroupSelectorTerms": [{ "tags": { "karpenter.sh/discovery": "test" } }],
        },
    }));
    control_plane.apply(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": { "name": name },
        "spec": { "template": { "spec": { "nodeClassRef": class, "requirements": [], "expireAfter": "Never" } } },
    }));
    control_plane.apply(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": { "name": name, "labels": { "karpenter.sh/nodepool": name } },
        "spec": { "nodeClassRef": class, "requirements": [], "expireAfter": "Never" },
    }));
    let conditions =
        [condition("Launched", "True", "Launched", at), condition("Registered", "Unknown", "NodeNotFound", at)];
    status(control_plane, name, &json!({ "providerID": provider_id(name), "conditions": conditions }));
}

fn provider_id(claim: &str) -> String {
    format!("aws:///eu-west-1a/i-0{claim}")
}

fn status(control_plane: &ControlPlane, claim: &str, status: &Value) {
    control_plane.patch_status("nodeclaim", claim, "merge", &json!({ "status": status }));
}

/// What `nodewhy` prints.
fn nodewhy(rights: &Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_nodewhy"))
        .args(arguments)
        .env("KUBECONFIG", rights)
        .output()
        .expect("nodewhy runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The verdict of the live command; nothing where the machine is fine.
fn verdict(rights: &Path, claim: &str) -> Option<Value> {
    let list: Value =
        serde_json::from_str(&nodewhy(rights, &[&["diagnose", "-o", "json"], &IMPATIENT[..]].concat())).expect("JSON");
    list["items"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|d| d["spec"]["subject"]["name"] == claim)
        .map(|d| d["status"].clone())
}

fn cause_and_confidence(status: Option<&Value>) -> Option<(&str, &str)> {
    status.map(|s| (s["cause"].as_str().unwrap_or_default(), s["confidence"].as_str().unwrap_or_default()))
}

/// Whether something of a list says this.
fn says(list: &Value, text: &str) -> bool {
    list.as_array().into_iter().flatten().any(|item| item.to_string().contains(text))
}

/// A kubelet: the name that it gives itself, and who the API server takes it for.
pub(crate) struct Kubelet<'c> {
    control_plane: &'c ControlPlane,
    calls_itself: &'c str,
    kubeconfig: PathBuf,
    since: String,
}

impl<'c> Kubelet<'c> {
    pub(crate) fn new(control_plane: &'c ControlPlane, calls_itself: &'c str, user: &str, group: &str) -> Self {
        Self { control_plane, calls_itself, kubeconfig: control_plane.kubeconfig_of(user, group), since: ago(0) }
    }

    fn node(control_plane: &'c ControlPlane, name: &'c str) -> Self {
        Self::new(control_plane, name, &format!("system:node:{name}"), "system:nodes")
    }

    fn create(&self, object: &Value) -> Result<String, String> {
        self.kubectl(&["create", "--filename=-"], object)
    }

    fn kubectl(&self, arguments: &[&str], input: &Value) -> Result<String, String> {
        let identity = format!("--kubeconfig={}", self.kubeconfig.display());
        self.control_plane.try_kubectl_with_input(&[arguments, &[&identity]].concat(), input)
    }

    /// kubernetes v1.36.3 pkg/kubelet/kubelet_node_status.go `initialNode`
    fn registers(&self, claim: &str, labels: &Value) -> Result<String, String> {
        self.create(&json!({
            "apiVersion": "v1", "kind": "Node", "metadata": { "name": self.calls_itself, "labels": labels },
            "spec": { "providerID": provider_id(claim), "taints": [{ "key": "karpenter.sh/unregistered", "effect": "NoExecute" }] },
        }))
    }

    /// What it reports at each attempt to register: one event, whose count goes up.
    pub(crate) fn reports(&self, times: u32) -> Result<String, String> {
        let event = |count: u32| {
            json!({
                "apiVersion": "v1", "kind": "Event", "metadata": { "name": format!("{}.1", self.calls_itself), "namespace": "default" },
                "involvedObject": { "kind": "Node", "name": self.calls_itself, "uid": self.calls_itself },
                "reason": "NodeHasSufficientMemory", "message": format!("Node {} status is now: \
                    NodeHasSufficientMemory", self.calls_itself),
                "type": "Normal", "count": count, "firstTimestamp": self.since, "lastTimestamp": ago(0),
                "source": { "component": "kubelet", "host": self.calls_itself },
                "reportingComponent": "kubelet", "reportingInstance": self.calls_itself,
            })
        };
        if let Err(error) = self.create(&event(1))
            && !error.contains("AlreadyExists")
        {
            return Err(error);
        }
        // Nodes may not read events, which kubectl's patch does first.
        let path = format!("/api/v1/namespaces/default/events/{}.1", self.calls_itself);
        self.kubectl(&["replace", "--raw", &path, "--filename=-"], &event(times))
    }

    fn asks_for_its_serving_certificate(&self) -> Result<String, String> {
        self.create(&json!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": { "generateName": "csr-" },
            "spec": {
                "signerName": "kubernetes.io/kubelet-serving", "usages": ["digital signature", "server auth"],
                "request": serving_request(self.calls_itself, "10.0.0.1"),
            },
        }))
    }
}

/// aws-auth with one entry, for the role of that machine.
fn aws_auth(control_plane: &ControlPlane, claim: &str, username: &str, group: &str) {
    let entry = format!(
        "- rolearn: arn:aws:iam::111122223333:role/role-of-{claim}\n  username: {username}\n  groups: [{group}]\n"
    );
    control_plane.apply(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "aws-auth", "namespace": "kube-system" }, "data": { "mapRoles": entry },
    }));
}

/// The groups of an entry are only names: what RBAC gives them decides whether its kubelets join.
#[test]
fn what_rbac_gives_a_group_decides_whether_its_entry_is_the_cause() {
    const COMMAND: &str = "kubectl auth can-i create nodes --as=system:node:nodewhy-asks --as-group=our-nodes";
    let (control_plane, rights) = cluster();
    aws_auth(&control_plane, "custom", "system:node:{{EC2PrivateDNSName}}", "our-nodes");
    // An instance from before may have tried to join with another aws-auth.
    launched_at(&control_plane, "custom", "", &ago(0));
    let kubelet = Kubelet::new(&control_plane, "ip-10-0-0-1", "system:node:ip-10-0-0-1", "our-nodes");
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "ip-10-0-0-1" } });
    let may_join = || kubelet.kubectl(&["create", "--dry-run=server", "--filename=-"], &node);
    // As people ask, with the command that the verdict gives them.
    let can_i = || control_plane.try_kubectl(&COMMAND.split(' ').skip(1).collect::<Vec<_>>());

    // Nobody has given the group anything.
    assert!(may_join().unwrap_err().contains(r#"cannot create resource "nodes""#));
    let operator = control_plane.nodewhy(&rights, &IMPATIENT);
    let found = wait_until(SOON, || {
        diagnosis(&control_plane, "custom").map(|d| d["status"].clone()).filter(|s| s["cause"] == CAUSE)
    });
    assert_eq!(found["confidence"], "Certain", "{found:#}");
    let answer = found["evidence"].as_array().unwrap().iter().find(|e| e["object"] == "SubjectAccessReview").unwrap();
    assert_eq!((&answer["field"], &answer["observed"]), (&json!("status.allowed"), &json!("false")));
    assert_eq!(cause_and_confidence(verdict(&rights, "custom").as_ref()), Some((CAUSE, "Certain")));

    // A dump holds the answer too.
    let dump = tempfile::NamedTempFile::with_suffix(".json").unwrap();
    std::fs::write(dump.path(), nodewhy(&rights, &["collect"])).unwrap();
    let offline: Value = serde_json::from_str(&nodewhy(
        &rights,
        &[&["diagnose", "-o", "json", "-f", dump.path().to_str().unwrap(), "--now", &ago(0)], &IMPATIENT[..]].concat(),
    ))
    .unwrap();
    assert_eq!(cause_and_confidence(Some(&offline["items"][0]["status"])), Some((CAUSE, "Certain")), "{offline:#}");

    // RBAC gives the group what the Node authorizer gives nodes. The running operator hears of it when it asks again.
    control_plane.kubectl(&["create", "clusterrole", "our-nodes", "--verb=create", "--resource=nodes"]);
    control_plane.kubectl(&[
        "create",
        "clusterrolebinding",
        "our-nodes",
        "--clusterrole=our-nodes",
        "--group=our-nodes",
    ]);
    wait_until(SOON, || may_join().ok());
    assert!(can_i().unwrap().contains("yes"));
    // Nothing is proven any more, so the machine must wait longer before it counts as stuck.
    let cleared = wait_until(SOON, || verdict(&rights, "custom"));
    assert_eq!(cleared["cause"], "Unknown", "{cleared:#}");
    assert!(says(&cleared["ruledOut"], r#"allowed by ClusterRoleBinding \"our-nodes\""#), "{cleared:#}");
    wait_until(SOON, || diagnosis(&control_plane, "custom").filter(|d| d["status"]["cause"] == "Unknown"));
    drop(operator);

    // nodewhy may not ask: it does not know, and says so.
    control_plane.kubectl(&["delete", "clusterrolebinding", "our-nodes"]);
    wait_until(SOON, || may_join().err());
    let mut role = control_plane.get(&["clusterrole", "nodewhy"]).unwrap();
    role["rules"].as_array_mut().unwrap().retain(|rule| rule["resources"] != json!(["subjectaccessreviews"]));
    role["metadata"] = json!({ "name": "nodewhy" });
    control_plane.apply(&role);
    control_plane.kubectl(&["delete", "nodediagnosis", "custom"]);
    let operator = control_plane.nodewhy(&rights, &IMPATIENT);
    let found = wait_until(SOON, || {
        diagnosis(&control_plane, "custom").map(|d| d["status"].clone()).filter(|s| s["cause"] == CAUSE)
    });
    assert_eq!(found["confidence"], "Likely", "{found:#}");
    let unknown = found["unknowns"].as_array().unwrap().iter().find(|u| u["command"] == COMMAND).unwrap();
    assert!(
        unknown["question"].as_str().unwrap().contains(r#"cannot create resource "subjectaccessreviews""#),
        "{unknown:#}"
    );
    assert!(can_i().is_err(), "kubectl says no by its exit code");
    assert_eq!(cause_and_confidence(verdict(&rights, "custom").as_ref()), Some((CAUSE, "Likely")));
    // It asks again.
    let asked = || {
        let of_reviews = |event: &&Value| event["objectRef"]["resource"] == "subjectaccessreviews";
        control_plane.writes_of(ACCOUNT).iter().filter(of_reviews).count()
    };
    let before = asked();
    wait_until(2 * SOON, || (asked() > before).then_some(()));

    // Members of system:masters need no right that anybody gives.
    aws_auth(&control_plane, "custom", "test", "system:masters");
    control_plane.kubectl(&["delete", "nodeclaim", "custom"]);
    launched_at(&control_plane, "custom", "", &ago(0));
    let master = Kubelet::new(&control_plane, "ip-10-0-0-1", "test", "system:masters");
    master.kubectl(&["create", "--dry-run=server", "--filename=-"], &node).unwrap();
    let cleared = wait_until(SOON, || verdict(&rights, "custom"));
    assert_eq!(cleared["cause"], "Unknown", "{cleared:#}");
    assert!(says(&cleared["ruledOut"], "may do everything"), "{cleared:#}");
    // Once it says so itself, it has read the second refusal too. It logged only the first.
    wait_until(SOON, || diagnosis(&control_plane, "custom").filter(|d| d["status"]["cause"] == "Unknown"));
    assert_eq!(
        operator.process.log().matches("cannot check the permissions of kubelets").count(),
        1,
        "{}",
        operator.process.log()
    );
}

#[test]
fn what_the_api_server_answers_a_kubelet_is_what_the_verdict_says() {
    let (control_plane, rights) = cluster();
    let said = |claim: &str| verdict(&rights, claim);
    let over = |claim: &str, node: &str| {
        control_plane.kubectl(&["delete", "nodeclaim", claim, "--ignore-not-found"]);
        control_plane.kubectl(&["delete", "node", node, "--ignore-not-found"]);
        control_plane.kubectl(&["delete", "events", "--all", "--namespace=default"]);
    };

    // The right name and group: the Node, the events and the request for a certificate are taken, and nothing is wrong.
    launched(&control_plane, "right", "");
    let right = Kubelet::node(&control_plane, "ip-10-0-0-1.eu-west-1.compute.internal");
    right.reports(1).unwrap();
    right.registers("right", &json!({})).unwrap();
    right.asks_for_its_serving_certificate().unwrap();
    let requests = control_plane.get(&["csr"]).unwrap();
    assert_eq!(requests["items"][0]["spec"]["username"], format!("system:node:{}", right.calls_itself));
    assert!(says(&requests["items"][0]["spec"]["groups"], "system:nodes"));
    let has_become = |type_| condition(type_, "True", type_, &ago(60));
    let conditions = ["Launched", "Registered", "Initialized"].map(has_become);
    status(&control_plane, "right", &json!({ "nodeName": right.calls_itself, "conditions": conditions }));
    mark_ready(&control_plane, right.calls_itself);
    assert_eq!(said("right"), None);

    // Another name than the authenticated one: NodeRestriction refuses the Node, and takes the events.
    launched(&control_plane, "misnamed", "");
    let authenticated = "system:node:ip-10-0-0-2.eu-west-1.compute.internal";
    let misnamed = Kubelet::new(&control_plane, "ip-10-0-0-2.corp.example.com", authenticated, "system:nodes");
    let refused = misnamed.registers("misnamed", &json!({})).unwrap_err();
    assert!(refused.contains("is not allowed to modify node"), "{refused}");
    misnamed.reports(4).unwrap();
    let named = said("misnamed");
    assert_eq!(cause_and_confidence(named.as_ref()), Some(("NodeNameRefused", "Likely")), "{named:#?}");

    // Beside it a machine whose entry lacks the group: it may do nothing at all, and the other one's events say nothing
    // about it.
    launched(&control_plane, "ungrouped", "");
    aws_auth(&control_plane, "ungrouped", "system:node:{{EC2PrivateDNSName}}", "system:bootstrappers");
    let ungrouped = Kubelet::new(&control_plane, "ip-10-0-0-3", "system:node:ip-10-0-0-3", "system:bootstrappers");
    for refused in [
        ungrouped.registers("ungrouped", &json!({})),
        ungrouped.reports(1),
        ungrouped.asks_for_its_serving_certificate(),
    ] {
        assert!(refused.as_ref().is_err_and(|error| error.contains("cannot create resource")), "{refused:?}");
    }
    let found = said("ungrouped");
    // The first Node has come without system:bootstrappers, as by an access entry: this role may have one too.
    assert_eq!(cause_and_confidence(found.as_ref()), Some((CAUSE, "Likely")), "{found:#?}");
    over("misnamed", misnamed.calls_itself);
    over("ungrouped", ungrouped.calls_itself);
    control_plane.kubectl(&["delete", "configmap", "aws-auth", "--namespace=kube-system"]);

    // The Node existed and somebody deleted it: the request for a certificate proves that the name was right.
    launched(&control_plane, "deleted", "");
    let deleted = Kubelet::node(&control_plane, "ip-10-0-0-4.eu-west-1.compute.internal");
    deleted.reports(4).unwrap();
    deleted.registers("deleted", &json!({})).unwrap();
    deleted.asks_for_its_serving_certificate().unwrap();
    control_plane.kubectl(&["delete", "node", deleted.calls_itself]);
    let found = said("deleted");
    assert_eq!(cause_and_confidence(found.as_ref()), Some(("Unknown", "Possible")), "{found:#?}");
    over("deleted", deleted.calls_itself);

    // A label that no kubelet may set. The kubelet itself refuses first; the API server would too.
    let label = "node-role.kubernetes.io/worker";
    launched(
        &control_plane,
        "labelled",
        &format!("#!/bin/bash\n/etc/eks/bootstrap.sh test --kubelet-extra-args '--node-labels={label}=true'\n"),
    );
    let labelled = Kubelet::node(&control_plane, "ip-10-0-0-5.eu-west-1.compute.internal");
    let refused = labelled.registers("labelled", &json!({ label: "true" })).unwrap_err();
    assert!(refused.contains(&format!("is not allowed to set the following labels: {label}")), "{refused}");
    let found = said("labelled");
    assert_eq!(cause_and_confidence(found.as_ref()), Some(("KubeletRefusesLabels", "Certain")), "{found:#?}");
    over("labelled", labelled.calls_itself);

    // The right name, and a policy that wants no such Node: the same trace as of a wrong name.
    launched(&control_plane, "unwanted", "");
    control_plane.apply(json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": { "name": "no-nodes" },
        "spec": {
            "matchConstraints": { "resourceRules": [{ "apiGroups": [""], "apiVersions": ["v1"], "resources": ["nodes"], "operations": ["CREATE"] }] },
            "validations": [{ "expression": "has(object.metadata.labels) && 'team' in \
                                             object.metadata.labels", "message": "a Node needs the label team" }],
        },
    }));
    control_plane.apply(json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": { "name": "no-nodes" },
        "spec": { "policyName": "no-nodes", "validationActions": ["Deny"] },
    }));
    let unwanted = Kubelet::node(&control_plane, "i-0unwanted.eu-west-1.compute.internal");
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": unwanted.calls_itself } });
    let refused = wait_until(SOON, || unwanted.kubectl(&["create", "--dry-run=server", "--filename=-"], &node).err());
    assert!(refused.contains("a Node needs the label team"), "{refused}");
    unwanted.reports(4).unwrap();
    let found = said("unwanted").unwrap();
    assert_eq!(cause_and_confidence(Some(&found)), Some(("NodeNameRefused", "Likely")), "{found:#}");
    assert!(says(&found["unknowns"], "validatingadmissionpolicies"), "{found:#}");
    assert_eq!(said("right"), None);
}
