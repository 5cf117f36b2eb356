//! aws-iam-authenticator beside the real API server, whose aws-auth it reads, with tokens that it makes itself. STS and
//! EC2 answer at their own names.

use crate::real_logs::{assert_complete, judge, rows_in};
use logs::fact::{Reason, Trouble};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use testkit::control_plane::recipes::wait_until;
use testkit::control_plane::{ControlPlane, Process, free_ports};
use testkit::patience::Patience;
use testkit::programs::agents;
use testkit::tls_proxy::TlsProxy;

const NOT_MAPPED: &str = r#"access denied{}:role/{role}" client={}is not mapped"#;
const NOT_ASKED: &str = "renderTemplates error{}failed querying private DNS from EC2 API for node {instance}: {error}";
const NOT_FOUND: &str = "renderTemplates error{}failed to find node {instance} ";
const GRANTED: &str = r#"access granted{}:role/{role}" client="#;

const STS: &str = "sts.eu-west-1.amazonaws.com";
const EC2: &str = "ec2.eu-west-1.amazonaws.com";

/// Of EC2's answers, by the instance that is asked for.
fn instances(asked: &str) -> (u16, String) {
    let refused = |status, code, message| {
        let error = format!("<Code>{code}</Code><Message>{message}</Message>");
        (status, format!("<Response><Errors><Error>{error}</Error></Errors><RequestID>x</RequestID></Response>"))
    };
    if asked.contains("i-0a0000000000000b1") {
        return refused(403, "UnauthorizedOperation", "You are not authorized to perform this operation.");
    }
    if asked.contains("i-0a0000000000000b2") {
        return refused(400, "InvalidInstanceID.NotFound", "The instance ID 'i-0a0000000000000b2' does not exist");
    }
    let of = |id: &str, name: &str| {
        let instance = format!("<instanceId>{id}</instanceId><privateDnsName>{name}</privateDnsName>");
        format!("<item><instancesSet><item>{instance}</item></instancesSet></item>")
    };
    let found = match asked {
        _ if asked.contains("i-0a0000000000000b4") => of("i-0a0000000000000b4", "ip-10-0-3-9.ec2.internal"),
        _ => String::new(),
    };
    (200, format!("<DescribeInstancesResponse><reservationSet>{found}</reservationSet></DescribeInstancesResponse>"))
}

/// What STS says of whoever calls.
fn caller(who: &str) -> (u16, String) {
    let (_, session) = who.rsplit_once('/').unwrap_or_default();
    let (arn, id) = (format!("arn:aws:sts::111122223333:{who}"), format!("AROATEST:{session}"));
    let result = json!({ "Account": "111122223333", "Arn": arn, "UserId": id });
    let response = json!({ "GetCallerIdentityResult": result, "ResponseMetadata": { "RequestId": "x" } });
    (200, json!({ "GetCallerIdentityResponse": response }).to_string())
}

struct Field {
    control_plane: ControlPlane,
    authenticator: Process,
    port: u16,
    /// Who calls next.
    caller: Arc<Mutex<String>>,
}

fn with_credentials(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("AWS_ACCESS_KEY_ID", "AKIATESTTESTTESTTEST").env("AWS_SECRET_ACCESS_KEY", "secret");
    command.env("AWS_REGION", "eu-west-1").env("AWS_STS_REGIONAL_ENDPOINTS", "regional");
    command.env("AWS_EC2_METADATA_DISABLED", "true").args(["--cluster-id", "test"]);
    command
}

impl Field {
    fn start(folder: &Path) -> Self {
        let caller_now = Arc::new(Mutex::new(String::new()));
        let asked = Arc::clone(&caller_now);
        let aws = TlsProxy::start(&[STS, EC2], move |host, body| {
            if host == STS { caller(&asked.lock().expect("nobody panicked")) } else { instances(body) }
        });
        let trusted = folder.join("aws.crt");
        fs::write(&trusted, &aws.certificate).expect("it is ours");
        let control_plane = ControlPlane::start();
        let [port] = free_ports();
        let mut command = with_credentials(&agents::authenticator());
        command.env("HTTPS_PROXY", aws.url()).env("SSL_CERT_FILE", &trusted).env("AWS_CA_BUNDLE", &trusted);
        command.args(["server", "--backend-mode=EKSConfigMap", &format!("--port={port}")]);
        command.arg("--kubeconfig").arg(control_plane.kubeconfig());
        command.arg("--state-dir").arg(folder).arg("--generate-kubeconfig").arg(folder.join("webhook"));
        let authenticator = control_plane.spawn("authenticator", &command);
        wait_until(Duration::from_secs(30), || authenticator.log().contains("listening on").then_some(()));
        Self { control_plane, authenticator, port, caller: caller_now }
    }

    /// Of aws-auth: the roles of nodes.
    fn map(&self, roles: &[&str]) {
        let role = |role: &&str| {
            json!({
                "rolearn": format!("arn:aws:iam::111122223333:role/{role}"),
                "username": "system:node:{{EC2PrivateDNSName}}", "groups": ["system:bootstrappers", "system:nodes"],
            })
        };
        let roles: Vec<Value> = roles.iter().map(role).collect();
        self.control_plane.apply(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "namespace": "kube-system", "name": "aws-auth" },
            "data": { "mapRoles": json!(roles).to_string() },
        }));
    }

    /// What the authenticator says, from the first call of this caller on, up to the first line that has this row.
    fn calls(&self, who: &str, says: &str) -> String {
        who.clone_into(&mut self.caller.lock().expect("nobody panicked"));
        let (before, patience) = (self.authenticator.log().len(), Patience::of(Duration::from_secs(30)));
        loop {
            self.review(&token());
            let log = self.authenticator.log().split_off(before);
            if rows_in(&log).contains(says) || patience.is_over() {
                return log;
            }
            // It has not heard of the last change of aws-auth yet.
            std::thread::sleep(Duration::from_millis(500));
        }
    }

    /// As the API server asks about a token.
    fn review(&self, token: &str) {
        let review = json!({
            "apiVersion": "authentication.k8s.io/v1beta1", "kind": "TokenReview", "spec": { "token": token },
        });
        let url = format!("https://127.0.0.1:{}/authenticate", self.port);
        let asked = Command::new("curl").args(["-sk", "--max-time", "20", "-d", &review.to_string(), &url]).output();
        assert!(asked.is_ok_and(|answer| answer.status.success()), "{}", self.authenticator.log());
    }
}

/// As the kubelet's credential plugin makes it.
fn token() -> String {
    let Output { stdout, stderr, .. } =
        with_credentials(&agents::authenticator()).arg("token").output().expect("it is built");
    let credential: Value = serde_json::from_slice(&stdout).unwrap_or_default();
    let token = credential["status"]["token"].as_str();
    token.unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&stderr))).to_owned()
}

#[test]
fn what_the_authenticator_says_in_trouble_is_known() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let field = Field::start(folder.path());
    let node = |role: &str, number: u8| format!("assumed-role/{role}/i-0a0000000000000b{number}");
    let (mut wrong, mut printed) = (Vec::new(), BTreeSet::new());
    let mut tell = |name: &str, log: &str, says: &str, wanted| {
        wrong.extend(judge(name, log, says, wanted));
        printed.extend(rows_in(log));
    };
    let refuses = |reason| Some((Trouble::Unauthorized, reason));

    field.map(&["KarpenterNodeRole-test"]);
    let unmapped = field.calls(&node("KarpenterNodeRole-other", 4), NOT_MAPPED);
    tell("not mapped", &unmapped, NOT_MAPPED, refuses(None));
    let refused = field.calls(&node("KarpenterNodeRole-test", 1), NOT_ASKED);
    tell("EC2 refuses", &refused, NOT_ASKED, refuses(Some(Reason::AccessDenied)));
    let gone = field.calls(&node("KarpenterNodeRole-test", 2), NOT_ASKED);
    tell("no such instance", &gone, NOT_ASKED, refuses(Some(Reason::NotFound)));
    let empty = field.calls(&node("KarpenterNodeRole-test", 3), NOT_FOUND);
    tell("an empty answer", &empty, NOT_FOUND, refuses(None));

    // Once the role is mapped, nothing is left of it.
    field.map(&["KarpenterNodeRole-test", "KarpenterNodeRole-other"]);
    let granted = field.calls(&node("KarpenterNodeRole-other", 4), GRANTED);
    tell("granted", &(unmapped + &granted), GRANTED, None);

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_complete("authenticator", &printed, &[]);
}
