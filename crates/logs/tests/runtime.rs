//! Behind a kubelet that waits for its network plugin: what the runtime and the kernel say of all containers.

use logs::fact::Trouble;
use logs::journey::Journey;
use logs::{FileLimits, LogReader};

fn read(lines: &[&str]) -> Journey {
    let mut reader = LogReader::new(FileLimits::default());
    reader.file("journal.log", lines.join("\n").as_bytes(), None).expect("text");
    reader.of_one_machine()
}

fn root(lines: &[&str]) -> Trouble {
    let journey = read(lines);
    let open = journey.open();
    open.first().unwrap_or_else(|| panic!("{journey:#?}")).trouble
}

const WAITS: &str = r#"2026-01-15T11:52:00Z node kubelet[4021]: E0115 11:52:00.030211    4021 kubelet.go:3002] "Container runtime network not ready" networkReady="NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized""#;
const DENIED: &str = r#"2026-01-15T11:52:01Z node kernel: audit: type=1400 audit(1768477921.314:120): avc:  denied  { create } for  pid=5100 comm="runc:[2:INIT]" scontext=system_u:system_r:unconfined_service_t:s0 tcontext=system_u:object_r:unlabeled_t:s0 tclass=key permissive=0"#;
const SANDBOX: &str = r#"2026-01-15T11:52:02Z node containerd[3702]: time="2026-01-15T11:52:02.228520514Z" level=error msg="RunPodSandbox for &PodSandboxMetadata{Name:aws-node-htbp4,Namespace:kube-system,Attempt:0,} failed, error" error="failed to start sandbox: failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: unable to join session keyring: unable to create session key: permission denied: unknown""#;
const LAYER: &str = r#"2026-01-15T11:52:03Z node containerd[3702]: time="2026-01-15T11:52:03.785505937Z" level=error msg="PullImage \"602401143452.dkr.ecr.eu-west-1.amazonaws.com/amazon-k8s-cni:v1.19.5\" failed" error="failed to pull and unpack image \"602401143452.dkr.ecr.eu-west-1.amazonaws.com/amazon-k8s-cni:v1.19.5\": failed to extract layer sha256:53fa: open /var/lib/containerd/x/aws-cni: operation not permitted""#;

#[test]
fn what_no_container_gets_past_is_the_root_of_a_missing_network_plugin() {
    assert_eq!(root(&[WAITS]), Trouble::CniFails);
    assert_eq!(root(&[WAITS, SANDBOX]), Trouble::RuntimeNotUp);
    assert_eq!(root(&[WAITS, LAYER]), Trouble::ImagePullFails);
    let journey = read(&[WAITS, DENIED, SANDBOX]);
    let open = journey.open();
    let first = open.first().expect("a fact");
    assert!(first.means.contains("SELinux denies runc") && first.vague, "{open:#?}");
}

#[test]
fn what_one_container_or_another_program_is_denied_is_not() {
    let permissive = DENIED.replace("permissive=0", "permissive=1");
    let of_another = DENIED.replace("runc:[2:INIT]", "chronyd");
    let own_command = SANDBOX.replace(
        "RunPodSandbox for &PodSandboxMetadata{Name:aws-node-htbp4,Namespace:kube-system,Attempt:0,}",
        "StartContainer for x",
    );
    let canceled = LAYER.replace("operation not permitted", "context canceled");
    for line in [permissive, of_another, own_command, canceled] {
        assert_eq!(root(&[WAITS, &line]), Trouble::CniFails, "{line}");
    }
}

#[test]
fn once_the_node_was_ready_they_are_no_trouble_any_more() {
    let ready = r#"2026-01-15T11:53:00Z node kubelet[4021]: I0115 11:53:00.000000    4021 kubelet_node_status.go:593] "Recording event message for node" node="node" event="NodeReady""#;
    let journey = read(&[WAITS, DENIED, SANDBOX, LAYER, ready]);
    assert!(journey.open().is_empty(), "{:#?}", journey.open());
}
