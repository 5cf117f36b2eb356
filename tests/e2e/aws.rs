//! `--aws` against a server that speaks as AWS does: what it settles, what stays open, and how it asks.

mod image;
mod key;
mod network;
mod quota;
mod role;

use assert_cmd::Command;
use aws::questions;
use serde_json::{Value, json};
use std::time::Duration;
use tempfile::TempDir;
use testkit::moto::{Moto, moto};
use testkit::objects::over_cluster;
use testkit::patience::patience;

const MACHINE: &str = "i-0a0000000000000b1";
const ROLE: &str = "arn:aws:iam::123456789012:role/KarpenterNodeRole-shop";
/// Answers that rules count on come within seconds.
const SOON: Duration = Duration::from_secs(20);

/// A machine that has been waited for since 11:50.
const JOINING: &str = r#"
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: general-7xk2p, uid: c1, creationTimestamp: "2026-01-15T11:50:00Z", labels: {karpenter.sh/nodepool: general}}
spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}
status:
  providerID: aws:///eu-west-1a/i-0a0000000000000b1
  imageID: ami-0aaa0000000000001
  conditions:
  - {type: Launched, status: "True", lastTransitionTime: "2026-01-15T11:50:05Z"}
  - {type: Registered, status: Unknown, reason: NodeNotFound, message: Node not registered with cluster, lastTransitionTime: "2026-01-15T11:50:00Z"}
"#;

/// What the dump holds over the healthy cluster, and what AWS is asked with.
struct Run<'m> {
    moto: &'m Moto,
    dump: TempDir,
    environment: Vec<(&'static str, String)>,
    arguments: Vec<&'static str>,
}

impl<'m> Run<'m> {
    fn of(moto: &'m Moto, objects: &str) -> Self {
        let dump = tempfile::tempdir().expect("a folder");
        let list = json!({"apiVersion": "v1", "kind": "List", "items": over_cluster(objects)});
        std::fs::write(dump.path().join("dump.json"), list.to_string()).expect("the folder is writable");
        let environment = vec![
            ("AWS_ACCESS_KEY_ID", "AKIATESTTESTTESTTEST".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
            ("AWS_ENDPOINT_URL", moto.url()),
        ];
        Self { moto, dump, environment, arguments: vec!["--aws"] }
    }

    fn with(mut self, variable: &'static str, value: impl Into<String>) -> Self {
        self.environment.retain(|(name, _)| *name != variable);
        self.environment.push((variable, value.into()));
        self
    }

    fn without(mut self, variable: &str) -> Self {
        self.environment.retain(|(name, _)| *name != variable);
        self
    }

    fn argument(mut self, argument: &'static str) -> Self {
        self.arguments.push(argument);
        self
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nodewhy"));
        let nowhere = self.dump.path().join("none");
        command
            .env_clear()
            .env("HOME", self.dump.path())
            .env("AWS_CONFIG_FILE", &nowhere)
            .env("AWS_SHARED_CREDENTIALS_FILE", &nowhere);
        // Nobody listens there: a machine of the tests may have a metadata service of its own.
        command.env("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:9");
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// The one diagnosis, and what was said on standard error.
    fn judge(&self) -> (Value, String) {
        let mut command = self.command();
        command.args(["diagnose", "--now", "2026-01-15T12:00:00Z", "-o", "json", "-f"]).arg(self.dump.path());
        // It is killed where it takes longer: no fault may make it hang.
        command.args(&self.arguments).timeout(patience(SOON * 2));
        let output = command.output().expect("nodewhy ends");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        let list: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let items = list["items"].as_array().expect("a list");
        assert_eq!(items.len(), 1, "{list:#}");
        (items[0]["status"].clone(), said)
    }

    #[track_caller]
    fn assert(&self, cause: &str, confidence: &str) -> Value {
        let (status, said) = self.judge();
        assert_eq!(
            (status["cause"].as_str(), status["confidence"].as_str()),
            (Some(cause), Some(confidence)),
            "{status:#}\n{said}"
        );
        status
    }

    fn calls(&self) -> Vec<String> {
        self.moto.calls()
    }
}

fn questions(status: &Value) -> String {
    status["unknowns"].to_string()
}

fn running(moto: &Moto) {
    moto.tell("instance", &json!({"id": MACHINE}));
}

fn cluster(moto: &Moto, mode: &str) {
    moto.tell("cluster", &json!({"name": "shop", "mode": mode}));
}

fn entry(moto: &Moto, arn: &str, type_: &str) {
    moto.tell("entry", &json!({"cluster": "shop", "principalArn": arn, "type": type_, "createdAt": 1_762_000_000.5}));
}

#[test]
fn nobody_asks_unless_told_to() {
    let moto = moto();
    let mut run = Run::of(&moto, JOINING);
    run.arguments.clear();
    let status = run.assert("Unknown", "Possible");
    assert!(questions(&status).contains("aws eks list-access-entries"), "{status:#}");
    assert_eq!(run.calls(), [""; 0]);
}

#[test]
fn nobody_asks_about_a_machine_whose_cause_the_cluster_proves() {
    let moto = moto();
    let objects = JOINING.to_owned()
        + "---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec: {userData: \"apiVersion: node.eks.aws/v1alpha1\\nkind: NodeConfig\\nspec: {kubelet: {flags: [--node-labels=node-role.kubernetes.io/batch=true]}}\\n\"}
";
    let run = Run::of(&moto, &objects);
    run.assert("KubeletRefusesLabels", "Certain");
    assert_eq!(run.calls(), [""; 0]);
}

#[test]
fn an_instance_that_ended_for_its_key_is_told_from_one_that_runs() {
    let moto = moto();
    let run = Run::of(&moto, JOINING);
    let reason = "Client.InvalidKMSKey.InvalidState";
    moto.tell("instance", &json!({"id": MACHINE, "state": "terminated", "code": reason, "message": reason}));
    let status = run.assert("VolumeKeyRefused", "Certain");
    assert!(status["evidence"].to_string().contains("ec2:DescribeInstances i-0a0000000000000b1"), "{status:#}");
    running(&moto);
    cluster(&moto, "API_AND_CONFIG_MAP");
    entry(&moto, ROLE, "EC2_LINUX");
    let status = run.assert("Unknown", "Possible");
    for told in ["ec2:DescribeInstances", "ec2:DescribeInstanceStatus", "eks:DescribeAccessEntry"] {
        assert!(status["evidence"].to_string().contains(told), "{told}: {status:#}");
    }
    assert!(!questions(&status).contains("describe-instances"), "{status:#}");
}

#[test]
fn an_instance_is_gone_only_where_ec2_shows_another_of_the_cluster() {
    let moto = moto();
    let run = Run::of(&moto, JOINING);
    let status = run.assert("Unknown", "Possible");
    assert!(questions(&status).contains("in the region and account that nodewhy asked"), "{status:#}");
    moto.tell("instance", &json!({"id": "i-0c0000000000000a1"}));
    run.assert("InstanceEnded", "Certain");
}

#[test]
fn another_region_proves_nothing() {
    let moto = moto();
    let reason = "Client.InstanceInitiatedShutdown";
    moto.tell("instance", &json!({"id": MACHINE, "state": "terminated", "code": reason, "message": reason}));
    let run = Run::of(&moto, JOINING);
    run.assert("InstanceEnded", "Certain");
    run.argument("--aws-region=us-east-2").assert("Unknown", "Possible");
}

#[test]
fn the_console_tells_why_and_keeps_secrets() {
    let moto = moto();
    running(&moto);
    cluster(&moto, "API");
    entry(&moto, ROLE, "EC2_LINUX");
    let text = "[    0.0] Linux version 6.12\nexport DB_PASSWORD=hunter2\n\
        [   12.3] nodeadm[1629]: Command failed: password=hunter3 operation error EC2: DescribeInstances, i/o timeout\n";
    moto.tell("console", &json!({"id": MACHINE, "text": text}));
    let run = Run::of(&moto, JOINING);
    let status = run.assert("AwsUnreachable", "Certain");
    assert!(status["summary"].as_str().is_some_and(|s| s.contains("i/o timeout")), "{status:#}");
    assert!(!status.to_string().contains("hunter"), "{status:#}");
    assert!(status["evidence"].to_string().contains("ec2:GetConsoleOutput i-0a0000000000000b1"), "{status:#}");
}

#[test]
fn every_rule_of_logs_hears_the_console() {
    for (line, cause) in [
        ("Failed to start bootstrap container 'setup'.", "BootContainerFails"),
        (
            r#"kubelet[1629]: E0115 11:52:07.123456    1629 run.go:72] "command failed" err="failed to run Kubelet: running with swap on is not supported, please disable swap or set --fail-swap-on flag to false""#,
            "KubeletRefusesConfiguration",
        ),
        (
            r#"nodeadm[1629]: {"level":"fatal","ts":1768477795.787,"msg":"Command failed","error":"could not find NodeConfig within UserData"}"#,
            "UserDataRefused",
        ),
    ] {
        let moto = moto();
        running(&moto);
        moto.tell("console", &json!({"id": MACHINE, "text": format!("[   12.3] {line}\n")}));
        Run::of(&moto, JOINING).assert(cause, "Certain");
    }
}

#[test]
fn what_a_machine_got_past_on_its_console_is_no_trouble() {
    let moto = moto();
    running(&moto);
    let text = "[   12.3] systemd[1]: nodeadm-config.service: Failed with result 'exit-code'.\n\
        [   19.8] kubelet[1629]: I0115 11:51:12.123456    1629 server.go:1285] \"Started kubelet\"\n";
    moto.tell("console", &json!({"id": MACHINE, "text": text}));
    Run::of(&moto, JOINING).assert("Unknown", "Possible");
}

/// A cluster whose replacement cannot be launched: the seed of all this.
fn drifting(karpenter: &str) -> String {
    format!(
        r#"
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {{name: default}}
spec: {{amiSelectorTerms: [{{name: "shop-golden-*"}}], amiFamily: AL2023}}
status: {{amis: [{{id: ami-0bbb0000000000002, name: shop-golden-2026-01-15}}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: karpenter, namespace: kube-system}}
spec: {{template: {{spec: {{containers: [{{name: controller, image: "public.ecr.aws/karpenter/controller:{karpenter}", env: [{{name: CLUSTER_NAME, value: shop}}]}}]}}}}}}
---
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {{name: general-aaaaa, uid: c0, creationTimestamp: "2026-01-10T09:00:00Z", labels: {{karpenter.sh/nodepool: general}}}}
spec: {{nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}}}
status:
  providerID: aws:///eu-west-1a/i-0a0000000000000a1
  imageID: ami-0aaa0000000000001
  nodeName: ip-10-0-2-10.eu-west-1.compute.internal
  conditions:
  - {{type: Launched, status: "True", lastTransitionTime: "2026-01-10T09:00:05Z"}}
  - {{type: Registered, status: "True", lastTransitionTime: "2026-01-10T09:00:45Z"}}
  - {{type: Initialized, status: "True", lastTransitionTime: "2026-01-10T09:01:10Z"}}
  - {{type: Drifted, status: "True", reason: AMIDrift, message: AMIDrift, lastTransitionTime: "2026-01-15T11:30:00Z"}}
---
apiVersion: v1
kind: Node
metadata: {{name: ip-10-0-2-10.eu-west-1.compute.internal, creationTimestamp: "2026-01-10T09:00:40Z", labels: {{karpenter.sh/registered: "true"}}}}
spec: {{providerID: "aws:///eu-west-1a/i-0a0000000000000a1"}}
status: {{conditions: [{{type: Ready, status: "True", reason: KubeletReady, lastTransitionTime: "2026-01-10T09:01:00Z"}}]}}
---
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {{name: general-7xk2p, uid: c1, creationTimestamp: "2026-01-15T11:57:00Z", labels: {{karpenter.sh/nodepool: general}}}}
spec: {{nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}}}
status:
  conditions:
  - {{type: Launched, status: Unknown, reason: InvalidAMIID, message: AMI used for instance launch is invalid, lastTransitionTime: "2026-01-15T11:57:00Z"}}
"#
    )
}

#[test]
fn drift_to_an_image_that_is_still_pending_is_told_in_full() {
    let moto = moto();
    moto.tell("image", &json!({"id": "ami-0bbb0000000000002", "name": "shop-golden-2026-01-15", "state": "pending"}));
    let run = Run::of(&moto, &drifting("1.2.1"));
    let status = run.assert("ImageNotAvailable", "Certain");
    let all = status.to_string();
    for told in [
        "ami-0bbb0000000000002 (shop-golden-2026-01-15)",
        "which the name shop-golden-* of EC2NodeClass default selects, is pending",
        "1.2.2, 1.3.0 and later select only available ones",
        "Karpenter removes one only when its replacement is initialized",
    ] {
        assert!(all.contains(told), "{told}: {status:#}");
    }
    assert_eq!(status["blame"]["field"], "spec.amiSelectorTerms[0]");
    assert_eq!(run.calls(), ["ec2:DescribeImages"]);
    moto.tell("image", &json!({"id": "ami-0bbb0000000000002", "name": "shop-golden-2026-01-15"}));
    let status = run.assert("AmiDriftReplacementsFail", "Certain");
    assert_eq!(questions(&status), "null", "{status:#}");
}

/// The page's policy, without these actions.
fn policy_without(actions: &[&str]) -> Value {
    let mut policy = questions::policy();
    for statement in policy["Statement"].as_array_mut().expect("statements") {
        statement["Resource"] = statement["Resource"].as_str().expect("a resource").replace("CLUSTER", "shop").into();
        // moto knows no condition on tags.
        statement.as_object_mut().expect("a statement").remove("Condition");
        statement["Action"]
            .as_array_mut()
            .expect("actions")
            .retain(|a| !actions.contains(&a.as_str().unwrap_or_default()));
    }
    policy["Statement"]
        .as_array_mut()
        .expect("statements")
        .retain(|s| s["Action"].as_array().is_some_and(|a| !a.is_empty()));
    policy
}

#[test]
fn the_policy_permits_every_call_and_each_denial_is_said_once_by_name() {
    let moto = moto();
    // The name servers are the VPC's own: there the way is not followed to its end.
    moto.tell("network", &json!({"instance": MACHINE, "name_servers": ["10.0.0.53"]}));
    cluster(&moto, "API_AND_CONFIG_MAP");
    entry(&moto, ROLE, "EC2_LINUX");
    moto.tell(
        "profile",
        &json!({"name": "shop_1", "role": "KarpenterNodeRole-shop", "attached": ["arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy"]}),
    );
    let profile = "---\napiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: default}\nstatus: \
                   {instanceProfile: shop_1}\n";
    let run = Run::of(&moto, &(JOINING.to_owned() + profile));
    moto.tell("policy", &policy_without(&[]));
    let status = run.assert("Unknown", "Possible");
    assert!(!questions(&status).contains("not permitted"), "{status:#}");
    let mut called = run.calls();
    called.sort();
    called.dedup();
    let all: Vec<_> = questions::Call::ALL.into_iter().map(questions::Call::action).collect();
    // Images, instance types and quotas are asked about where a launch is refused, a key where an instance ended for
    // it.
    assert_eq!(called.len(), all.len() - 6, "{called:?}");
    for action in called {
        moto.tell("policy", &policy_without(&[&action]));
        let status = run.assert("Unknown", "Possible");
        let said = questions(&status).matches(&format!("not permitted to call {action}:")).count();
        assert_eq!(said, 1, "{action}: {status:#}");
    }
    moto.tell("image", &json!({"id": "ami-0bbb0000000000002", "name": "shop-golden-2026-01-15", "state": "pending"}));
    moto.tell("policy", &policy_without(&["ec2:DescribeImages"]));
    let status = Run::of(&moto, &drifting("1.2.1")).assert("AmiDriftReplacementsFail", "Certain");
    assert!(questions(&status).contains("not permitted to call ec2:DescribeImages"), "{status:#}");
}

/// What a fault makes of a machine whose role has no entry: never a verdict, always the reason, soon.
#[track_caller]
fn stays_open(run: &Run, faults: &[Value], said: &str) {
    for fault in faults {
        run.moto.tell("fault", fault);
    }
    let status = run.assert("Unknown", "Possible");
    assert!(questions(&status).contains(said), "{said}: {:#}", status["unknowns"]);
}

#[test]
fn no_fault_of_aws_makes_a_verdict() {
    let moto = moto();
    let ready = |moto: &Moto| {
        running(moto);
        cluster(moto, "API");
    };
    let run = Run::of(&moto, JOINING);
    ready(&moto);
    run.assert("NodeRoleHasNoAccessEntry", "Certain");
    let eks = |more: Value| {
        let mut fault = json!({"action": "eks:ListAccessEntries"});
        json_patch::merge(&mut fault, &more);
        fault
    };
    let faults = [
        (
            eks(json!({"kind": "error", "status": 429, "code": "ThrottlingException"})),
            "eks:ListAccessEntries gave no answer: ThrottlingException",
        ),
        (eks(json!({"kind": "error", "status": 500, "code": "ServerException"})), "ServerException"),
        (eks(json!({"kind": "error", "status": 403, "code": "ExpiredTokenException"})), "ExpiredTokenException"),
        (eks(json!({"kind": "slow", "seconds": 13, "times": 1})), "no answer within 10 s"),
        (eks(json!({"kind": "body", "text": "{\"accessEntries\": 7}"})), "the answer cannot be read"),
        (eks(json!({"kind": "body", "text": "<html>captive portal</html>"})), "the answer cannot be read"),
        (eks(json!({"kind": "body", "text": ""})), "the answer cannot be read"),
        (eks(json!({"kind": "error", "status": 404, "code": "ResourceNotFoundException"})), "eks:ListAccessEntries"),
    ];
    for (fault, said) in faults {
        moto.tell("reset", &json!({}));
        ready(&moto);
        stays_open(&run, &[fault], said);
    }
}

#[test]
fn who_is_throttled_once_asks_again() {
    let moto = moto();
    running(&moto);
    cluster(&moto, "API");
    moto.tell("fault", &json!({"kind": "error", "status": 503, "code": "RequestLimitExceeded", "times": 2}));
    Run::of(&moto, JOINING).assert("NodeRoleHasNoAccessEntry", "Certain");
}

#[test]
fn an_ec2_that_talks_nonsense_is_not_believed() {
    let moto = moto();
    running(&moto);
    let run = Run::of(&moto, JOINING);
    for text in [
        "",
        "<html/>",
        "<DescribeInstancesResponse>",
        "\u{0}\u{1}",
        "<DescribeInstancesResponse><reservationSet><item>",
    ] {
        moto.tell("fault", &json!({"kind": "body", "action": "ec2:DescribeInstances", "text": text, "times": 1}));
        let status = run.assert("Unknown", "Possible");
        assert!(questions(&status).contains("the answer cannot be read"), "{text:?}: {:#}", status["unknowns"]);
    }
}

#[test]
fn credentials_come_from_the_environment_a_web_identity_or_pod_identity_and_their_lack_is_said() {
    let moto = moto();
    running(&moto);
    cluster(&moto, "API");
    let without = || Run::of(&moto, JOINING).without("AWS_ACCESS_KEY_ID").without("AWS_SECRET_ACCESS_KEY");
    stays_open(&without(), &[], "no credentials");
    assert_eq!(moto.calls(), [""; 0]);
    let wrong = Run::of(&moto, JOINING).with("AWS_SECRET_ACCESS_KEY", "another");
    stays_open(&wrong, &[], "SignatureDoesNotMatch");
    // IAM roles for service accounts.
    let by_token =
        without().with("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/nodewhy").with("AWS_REGION", "eu-west-1");
    let token = by_token.dump.path().join("token");
    std::fs::write(&token, "a.web.token").expect("the folder is writable");
    let by_token = by_token.with("AWS_WEB_IDENTITY_TOKEN_FILE", token.to_str().expect("UTF-8"));
    by_token.assert("NodeRoleHasNoAccessEntry", "Certain");
    assert!(moto.calls().iter().any(|call| call == "sts:AssumeRoleWithWebIdentity"));
    // EKS Pod Identity: the agent on the Node hands out what belongs to the token.
    let by_agent = without().with("AWS_CONTAINER_CREDENTIALS_FULL_URI", moto.url() + "/test/pod-identity");
    let token = by_agent.dump.path().join("token");
    std::fs::write(&token, "the-pods-token").expect("the folder is writable");
    let by_agent = by_agent.with("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", token.to_str().expect("UTF-8"));
    by_agent.assert("NodeRoleHasNoAccessEntry", "Certain");
    // The shared file.
    let by_file = without();
    let file = by_file.dump.path().join("credentials");
    std::fs::write(&file, "[default]\naws_access_key_id = AKIATESTTESTTESTTEST\naws_secret_access_key = secret\n")
        .expect("the folder is writable");
    let by_file = by_file.with("AWS_SHARED_CREDENTIALS_FILE", file.to_str().expect("UTF-8"));
    by_file.assert("NodeRoleHasNoAccessEntry", "Certain");
}

#[test]
fn no_more_calls_than_the_budget_and_things_of_a_kind_in_one() {
    let moto = moto();
    let many: String = (0..250)
        .map(|n| {
            let machine =
                JOINING.replace("general-7xk2p", &format!("general-{n:05}")).replace("uid: c1", &format!("uid: u{n}"));
            machine.replace(MACHINE, &format!("i-0a000000000{n:05}")) + "---"
        })
        .collect();
    let run = Run::of(&moto, many.trim_end_matches("---")).argument("--aws-calls-per-minute=4");
    let mut command = run.command();
    command.args(["diagnose", "--now", "2026-01-15T12:00:00Z", "-f"]).arg(run.dump.path());
    let output = command.args(&run.arguments).output().expect("nodewhy runs");
    assert!(output.status.success());
    let calls = moto.calls();
    assert_eq!(calls.len(), 4, "{calls:?}");
    let of_machines = calls.iter().filter(|call| *call == "ec2:DescribeInstances").count();
    assert_eq!(of_machines, 3, "250 machines are three calls: {calls:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("--aws-calls-per-minute"));
}

fn lint(run: &Run, class: &str) -> (Value, bool) {
    let file = run.dump.path().join("class.yaml");
    std::fs::write(&file, class).expect("the folder is writable");
    let output = run
        .command()
        .args(["lint", "--aws", "--aws-region=eu-west-1", "-o", "json"])
        .arg(&file)
        .output()
        .expect("nodewhy runs");
    (serde_json::from_slice(&output.stdout).expect("JSON"), output.status.success())
}

#[test]
fn lint_tells_of_an_image_that_is_not_available_before_anything_is_launched() {
    let moto = moto();
    let run = Run::of(&moto, "");
    let class = "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: default}\nspec:\n  role: r\n  \
                 amiFamily: AL2023\n  amiSelectorTerms:\n  - name: shop-golden-*\n";
    let image = |id: &str, created: &str, state: &str| {
        let name = format!("shop-golden-{}", &created[..10]);
        moto.tell("image", &json!({"id": id, "name": name, "state": state, "created": created}));
    };
    image("ami-0aaa0000000000001", "2025-12-01T00:00:00+00:00", "available");
    let (found, fine) = lint(&run, class);
    assert!(fine, "{found:#}");
    image("ami-0bbb0000000000002", "2026-01-15T11:20:00+00:00", "pending");
    let (found, fine) = lint(&run, class);
    assert!(!fine);
    let told = &found["items"][0];
    assert_eq!(told["cause"], "ImageNotAvailable", "{found:#}");
    assert!(
        told["message"].as_str().is_some_and(|m| m.contains("ami-0bbb0000000000002") && m.contains("pending")),
        "{found:#}"
    );
    assert_eq!(told["line"], 7, "{found:#}");
    // By id, too, and gone.
    let by_id = class.replace("name: shop-golden-*", "id: ami-0ccc0000000000003");
    let (found, _) = lint(&run, &by_id);
    assert!(found.to_string().contains("ami-0ccc0000000000003"), "{found:#}");
}

#[test]
fn the_manual_has_the_policy_of_the_code() {
    let manual = include_str!("../../docs/aws.md");
    let written =
        manual.split_once("```json\n").and_then(|(_, rest)| rest.split_once("```")).expect("a block of JSON").0;
    assert_eq!(serde_json::from_str::<Value>(written).expect("JSON"), questions::policy());
    for call in questions::Call::ALL {
        assert!(manual.matches(call.action()).count() >= 2, "{} is not explained", call.action());
    }
}
