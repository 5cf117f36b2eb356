//! The admission webhook with a real API server and a real kubectl: it warns, and whatever happens to it stops nobody.

use crate::cluster::operator::install;
use serde_json::{Value, json};
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use testkit::control_plane::recipes::{SOON, wait_until};
use testkit::control_plane::{ControlPlane, Nodewhy, binaries, free_ports};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

const CONFIG: &str = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    flags:\n";
const MISTAKE: &str = "--node-labels=node-role.kubernetes.io/batch=true";
const FINE: &str = "--v=4";
/// What every warning about the mistake says.
const WARNING: &str = "Warning: userData line 6: gives the kubelet the label";

fn user_data(flag: &str) -> String {
    format!("{CONFIG}    - {flag}\n")
}

fn class(name: &str, flag: &str) -> Value {
    json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": name},
        "spec": {
            "amiSelectorTerms": [{"alias": "al2023@latest"}], "role": "KarpenterNodeRole-shop", "userData": user_data(flag),
            "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "shop"}}],
            "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "shop"}}],
        },
    })
}

/// What kubectl said on standard error, if it succeeded or not.
fn kubectl(control_plane: &ControlPlane, arguments: &[&str], input: &Value) -> Result<String, String> {
    let mut child = Command::new(binaries::control_plane("kubectl"))
        .args(arguments)
        .env("KUBECONFIG", control_plane.kubeconfig())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("kubectl starts");
    // A kubectl that reads nothing has closed the pipe.
    let _ = child.stdin.take().expect("stdin is a pipe").write_all(input.to_string().as_bytes());
    let output = child.wait_with_output().expect("kubectl ends");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(said) } else { Err(said) }
}

/// What kubectl said when it stored the object.
fn stored(control_plane: &ControlPlane, arguments: &[&str], input: &Value) -> String {
    kubectl(control_plane, arguments, input).unwrap_or_else(|error| panic!("{arguments:?}: {error}"))
}

/// The webhook configuration that is shipped, but for the address: no Service leads anywhere here.
fn register(control_plane: &ControlPlane, port: u16, bundle: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/components/admission/webhook.yaml");
    let shipped = std::fs::read_to_string(file).expect("a manifest");
    let mut configuration: Value = serde_saphyr::from_str(&shipped).expect("YAML");
    for webhook in configuration["webhooks"].as_array_mut().expect("webhooks") {
        let bundle = k8s_openapi::ByteString(bundle.as_bytes().to_vec());
        webhook["clientConfig"] = json!({"url": format!("https://127.0.0.1:{port}/validate"), "caBundle": bundle});
    }
    control_plane.apply(configuration);
}

/// A cluster with the webhook and, by these flags, a nodewhy behind it that answers.
fn with_webhook(flags: &[&str]) -> (ControlPlane, Nodewhy, tempfile::TempDir) {
    let control_plane = ControlPlane::start();
    control_plane.karpenter_crds("1.14.1");
    control_plane.ec2nodeclass_crd();
    let rights = install(&control_plane);
    let folder = tempfile::tempdir().expect("a folder");
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("ring signs");
    std::fs::write(folder.path().join("tls.crt"), made.cert.pem()).expect("written");
    std::fs::write(folder.path().join("tls.key"), made.signing_key.serialize_pem()).expect("written");
    let [port] = free_ports();
    let own = [format!("--admission-port={port}"), format!("--admission-certificates={}", folder.path().display())];
    let flags: Vec<&str> = own.iter().map(String::as_str).chain(flags.iter().copied()).collect();
    let nodewhy = control_plane.nodewhy(&rights, &flags);
    register(&control_plane, port, &made.cert.pem());
    wait_until(SOON, || {
        let said = kubectl(&control_plane, &["create", "--dry-run=server", "--filename=-"], &class("probe", MISTAKE));
        said.unwrap_or_else(|refused| refused).contains("userData line 6").then_some(())
    });
    (control_plane, nodewhy, folder)
}

/// A counter of the API server about one webhook.
fn counted(control_plane: &ControlPlane, metric: &str, webhook: &str) -> u64 {
    let metrics = control_plane.kubectl(&["get", "--raw", "/metrics"]);
    let of_webhook = format!("name=\"{webhook}\"");
    let lines = metrics.lines().filter(|line| line.starts_with(&format!("{metric}{{")) && line.contains(&of_webhook));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

fn calls(control_plane: &ControlPlane, webhook: &str) -> u64 {
    counted(control_plane, "apiserver_admission_webhook_admission_duration_seconds_count", webhook)
}

#[test]
fn kubectl_shows_the_mistake_however_the_object_is_written_and_a_harmless_one_has_no_warning() {
    let (control_plane, nodewhy, _certificates) = with_webhook(&[]);
    let said = |arguments: &[&str], input: &Value| stored(&control_plane, arguments, input);
    let create = &["create", "--filename=-"][..];
    let apply = &["apply", "--filename=-"][..];
    let server_side = &["apply", "--server-side", "--force-conflicts", "--filename=-"][..];
    let dry_run = &["apply", "--server-side", "--force-conflicts", "--dry-run=server", "--filename=-"][..];

    for (name, arguments) in [("created", create), ("applied", apply), ("server-side", server_side), ("dry", dry_run)] {
        let said_of = said(arguments, &class(name, MISTAKE));
        assert!(said_of.contains(WARNING), "{name}: {said_of}");
        assert!(said_of.contains("see nodewhy explain KubeletRefusesLabels"), "{name}: {said_of}");
        let harmless = said(arguments, &class(&format!("{name}-fine"), FINE));
        assert!(!harmless.contains("nodewhy"), "{name}: {harmless}");
    }
    assert!(control_plane.get(&["ec2nodeclass", "created"]).is_some(), "it only warns");
    assert!(control_plane.get(&["ec2nodeclass", "dry"]).is_none());

    let mistake = json!({"spec": {"userData": user_data(MISTAKE)}}).to_string();
    let patched = said(&["patch", "ec2nodeclass", "created-fine", "--type=merge", "--patch", &mistake], &Value::Null);
    assert!(patched.contains(WARNING), "{patched}");
    let corrected = said(server_side, &class("created", FINE));
    assert!(!corrected.contains("nodewhy"), "{corrected}");

    let overlay = |name: &str, resource: &str| {
        json!({
            "apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": {"name": name},
            "spec": {"requirements": [{"key": "karpenter.sh/nodepool", "operator": "Exists"}], "capacity": {resource: "4"}},
        })
    };
    let of_ec2 = said(create, &overlay("network", "vpc.amazonaws.com/efa"));
    assert!(of_ec2.contains("Warning: ") && of_ec2.contains("CapacityOfEc2"), "{of_ec2}");
    let own = said(create, &overlay("fuse", "smarter-devices/fuse"));
    assert!(!own.contains("nodewhy"), "{own}");

    // The template is spelled EC2PrivateDNSName.
    let map_roles = "- rolearn: arn:aws:iam::111122223333:role/KarpenterNodeRole-shop\n  \
        username: system:node:{{EC2PrivateDnsName}}\n  groups: [system:bootstrappers, system:nodes]\n";
    let map = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "kube-system"},
            "data": {"mapRoles": map_roles},
        })
    };
    let flawed = said(create, &map("aws-auth"));
    assert!(flawed.contains("Warning: mapRoles") && flawed.contains("AwsAuthEntryIncomplete"), "{flawed}");
    let before = calls(&control_plane, "aws-auth.nodewhy.dev");
    let other = said(create, &map("other"));
    assert!(!other.contains("nodewhy"), "{other}");
    assert_eq!(calls(&control_plane, "aws-auth.nodewhy.dev"), before, "no other ConfigMap is sent");
    assert!(nodewhy.process.terminate().success());
}

#[test]
fn what_karpenter_writes_is_not_sent() {
    let (control_plane, nodewhy, _certificates) = with_webhook(&[]);
    control_plane.kubectl(&[
        "create",
        "clusterrolebinding",
        "karpenter",
        "--clusterrole=cluster-admin",
        "--serviceaccount=kube-system:karpenter",
    ]);
    stored(&control_plane, &["create", "--filename=-"], &class("batch", MISTAKE));
    let reviewed = || calls(&control_plane, "karpenter.nodewhy.dev");
    let before = reviewed();
    let conditions = json!({"status": {"conditions": [{
        "type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-01-15T12:00:00Z",
    }]}});
    control_plane.patch_status("ec2nodeclass", "batch", "merge", &conditions);
    let as_karpenter = "--as=system:serviceaccount:kube-system:karpenter";
    wait_until(SOON, || {
        control_plane.try_kubectl(&["annotate", "ec2nodeclass", "batch", "karpenter.k8s.aws/test=1", as_karpenter]).ok()
    });
    let finalizers = json!({"metadata": {"finalizers": ["karpenter.k8s.aws/termination"]}}).to_string();
    control_plane.kubectl(&["patch", "ec2nodeclass", "batch", "--type=merge", "--patch", &finalizers, as_karpenter]);
    control_plane.kubectl(&["delete", "ec2nodeclass", "batch", "--wait=false"]);
    let none = json!({"metadata": {"finalizers": null}}).to_string();
    control_plane.kubectl(&["patch", "ec2nodeclass", "batch", "--type=merge", "--patch", &none]);
    wait_until(SOON, || control_plane.get(&["ec2nodeclass", "batch"]).is_none().then_some(()));
    assert_eq!(reviewed(), before);

    // A person who applies the mistake once more is told again.
    stored(&control_plane, &["create", "--filename=-"], &class("again", MISTAKE));
    let labeled = stored(&control_plane, &["label", "ec2nodeclass", "again", "team=batch"], &Value::Null);
    assert!(labeled.contains(WARNING), "{labeled}");
    assert_eq!(reviewed(), before + 2);
    assert!(nodewhy.process.terminate().success());
}

/// Applies a class that the webhook would warn about, and does not, because it does not answer.
fn passes_without_answer(control_plane: &ControlPlane, name: &str) {
    let unanswered = || counted(control_plane, "apiserver_admission_webhook_fail_open_count", "karpenter.nodewhy.dev");
    let before = unanswered();
    let said = stored(control_plane, &["apply", "--filename=-"], &class(name, MISTAKE));
    assert!(!said.contains("userData line"), "{name}: {said}");
    assert!(control_plane.get(&["ec2nodeclass", name]).is_some(), "{name}");
    assert_eq!(unanswered(), before + 1, "{name}: the webhook was called");
}

#[test]
fn a_nodewhy_that_is_frozen_killed_or_silent_stops_nobody() {
    let (control_plane, mut nodewhy, certificates) = with_webhook(&[]);
    let applied = |name: &str| stored(&control_plane, &["apply", "--filename=-"], &class(name, MISTAKE));
    assert!(applied("awake").contains(WARNING));
    nodewhy.process.signal("STOP");
    passes_without_answer(&control_plane, "frozen");
    nodewhy.process.signal("CONT");
    wait_until(SOON, || applied("woken").contains(WARNING).then_some(()));
    nodewhy.process.kill();
    passes_without_answer(&control_plane, "killed");

    // It takes connections and never says a word.
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    silent.set_nonblocking(true).expect("it is a socket");
    let bundle = std::fs::read_to_string(certificates.path().join("tls.crt")).expect("a certificate");
    register(&control_plane, silent.local_addr().expect("bound").port(), &bundle);
    // For a moment the API server still calls the port of the dead one.
    wait_until(SOON, || {
        passes_without_answer(&control_plane, "silent");
        silent.accept().ok()
    });
}

#[test]
fn the_second_opt_in_refuses_a_certain_error_and_a_label_lets_it_pass() {
    let (control_plane, nodewhy, _certificates) = with_webhook(&["--admission-deny=certain"]);
    let create = |object: &Value| kubectl(&control_plane, &["create", "--filename=-"], object);
    let refused = create(&class("refused", MISTAKE)).expect_err("it is refused");
    assert!(refused.contains("karpenter.nodewhy.dev") && refused.contains("denied the request"), "{refused}");
    assert!(refused.contains("KubeletRefusesLabels") && refused.contains("nodewhy.dev/admission: allow"), "{refused}");
    assert!(control_plane.get(&["ec2nodeclass", "refused"]).is_none());
    create(&class("fine", FINE)).expect("it is harmless");
    let mut labeled = class("labeled", MISTAKE);
    labeled["metadata"]["labels"] = json!({"nodewhy.dev/admission": "allow"});
    assert!(create(&labeled).expect("the label lets it pass").contains(WARNING));
    assert!(nodewhy.process.terminate().success());
}

/// How long the API server waits for reviews of 64 KiB of user data, as its own histogram has it.
#[test]
fn a_large_text_is_answered() {
    const MANY: u32 = 200;
    let (control_plane, nodewhy, _certificates) = with_webhook(&[]);
    let comment = format!("# {}\n", "x".repeat(78));
    let text = user_data(MISTAKE) + &comment.repeat(64 * 1024 / comment.len());
    let large = |number: u32| {
        let mut large = class(&format!("large-{number}"), MISTAKE);
        large["spec"]["userData"] = json!(text);
        large
    };
    let waited = |metric: &str, of: &str| {
        let metrics = control_plane.kubectl(&["get", "--raw", "/metrics"]);
        let name = format!("apiserver_admission_webhook_admission_duration_seconds_{metric}");
        let is_ours = |line: &&str| line.contains("karpenter.nodewhy.dev") && line.contains(of);
        let lines = metrics.lines().filter(|line| line.starts_with(&name)).filter(is_ours);
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum::<f64>()
    };
    let figures = || (waited("sum", ""), waited("bucket", "le=\"0.005\""), waited("bucket", "le=\"0.025\""));
    let (before, count) = (figures(), calls(&control_plane, "karpenter.nodewhy.dev"));
    let list = json!({"apiVersion": "v1", "kind": "List", "items": (0..MANY).map(large).collect::<Vec<_>>()});
    let said = stored(&control_plane, &["create", "--dry-run=server", "--filename=-"], &list);
    assert!(said.contains(WARNING), "{said}");
    assert_eq!(calls(&control_plane, "karpenter.nodewhy.dev"), count + u64::from(MANY));
    let after = figures();
    println!(
        "the API server waited {:.1} ms for a review: of {MANY}, {} took at most 5 ms, and {} at most 25 ms",
        (after.0 - before.0) * 1000.0 / f64::from(MANY),
        after.1 - before.1,
        after.2 - before.2
    );
    assert!(nodewhy.process.terminate().success());
}

#[test]
fn five_hundred_classes_at_once_are_all_stored_and_reviewed() {
    const CLIENTS: usize = 10;
    const EACH: usize = 50;
    let (control_plane, nodewhy, _certificates) = with_webhook(&[]);
    let webhook = "karpenter.nodewhy.dev";
    let unanswered = || counted(&control_plane, "apiserver_admission_webhook_fail_open_count", webhook);
    let before = (calls(&control_plane, webhook), unanswered());
    let list = |client: usize| {
        let items = (0..EACH).map(|number| class(&format!("batch-{client}-{number}"), MISTAKE));
        json!({"apiVersion": "v1", "kind": "List", "items": items.collect::<Vec<_>>()})
    };
    let control_plane = &control_plane;
    let warnings: usize = std::thread::scope(|scope| {
        let start = |client| scope.spawn(move || stored(control_plane, &["create", "--filename=-"], &list(client)));
        let clients: Vec<_> = (0..CLIENTS).map(start).collect();
        clients.into_iter().map(|client| client.join().expect("kubectl ends").matches(WARNING).count()).sum()
    });
    let names = control_plane.kubectl(&["get", "ec2nodeclasses", "--output=name"]);
    assert_eq!(names.lines().filter(|name| name.contains("/batch-")).count(), CLIENTS * EACH);
    assert_eq!((calls(control_plane, webhook), unanswered()), (before.0 + (CLIENTS * EACH) as u64, before.1));
    // kubectl says each warning once.
    assert!(warnings >= CLIENTS, "{warnings}");
    assert!(nodewhy.process.terminate().success());
}

/// Whether a server at this port has a certificate for the Service, by these authorities.
async fn is_trusted(port: u16, bundle: &[u8]) -> bool {
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(bundle) {
        roots.add(authority.expect("PEM")).expect("a certificate");
    }
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let config = config.with_safe_default_protocol_versions().expect("ring has them").with_root_certificates(roots);
    let connector = TlsConnector::from(Arc::new(config.with_no_client_auth()));
    let name = ServerName::try_from("nodewhy-admission.nodewhy.svc").expect("a DNS name");
    let Ok(stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await else { return false };
    connector.connect(name, stream).await.is_ok()
}

#[tokio::test]
async fn two_replicas_share_the_certificate_that_nodewhy_makes_with_the_rights_that_are_shipped() {
    let control_plane = ControlPlane::start();
    let rights = install(&control_plane);
    let component = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/components/admission");
    for file in ["secret.yaml", "role.yaml", "cluster-role.yaml", "webhook.yaml"] {
        control_plane.apply_path(&component.join(file));
    }
    let ports: [u16; 2] = free_ports();
    let start =
        |port: u16| control_plane.nodewhy(&rights, &[&format!("--admission-port={port}"), "--lease-namespace=nodewhy"]);
    let replicas = ports.map(start);
    let bundles = || {
        let configuration = control_plane.get(&["validatingwebhookconfiguration", "nodewhy-admission"])?;
        let webhooks = configuration["webhooks"].as_array()?.clone();
        webhooks.iter().map(|webhook| webhook["clientConfig"]["caBundle"].as_str().map(str::to_owned)).collect()
    };
    let bundles: Vec<String> = wait_until(SOON, bundles);
    assert_eq!(bundles.len(), 2);
    assert_eq!(bundles[0], bundles[1]);
    let bundle: k8s_openapi::ByteString = serde_json::from_value(json!(bundles[0])).expect("base64");
    for port in ports {
        let patience = testkit::patience::Patience::of(SOON);
        while !is_trusted(port, &bundle.0).await {
            assert!(!patience.is_over(), "the certificate at {port} is another one");
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
    }
    let configuration =
        control_plane.get(&["validatingwebhookconfiguration", "nodewhy-admission"]).expect("it is there");
    assert_eq!(configuration["webhooks"][0]["clientConfig"]["service"]["name"], "nodewhy-admission");
    assert_eq!(configuration["webhooks"][0]["rules"].as_array().map(Vec::len), Some(4), "the rest of it stays");
    for replica in replicas {
        assert!(replica.process.terminate().success());
    }
}
