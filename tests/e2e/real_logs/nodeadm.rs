//! nodeadm of AL2023, with user data that it does not take, beside a metadata service and an EC2 that answer little.

use crate::real_logs::{assert_beside, assert_complete, contained, http, judge, rows_in, said};
use logs::fact::Trouble;
use std::collections::BTreeSet;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use testkit::control_plane::Process;
use testkit::programs::agents;

/// What the services know.
#[derive(Debug, Clone, Copy, Default)]
pub struct Aws {
    user_data: &'static [u8],
    identity: &'static str,
    instances: &'static str,
}

const IDENTITY: &str = r#"{"instanceId":"i-0a0000000000000b1","region":"eu-west-1","instanceType":"m5.large"}"#;
const INSTANCES: &str = "<reservationSet><item><instancesSet><item><instanceId>i-0a0000000000000b1</instanceId>\
    <privateDnsName>ip-10-0-3-9.ec2.internal</privateDnsName></item></instancesSet></item></reservationSet>";

const HEAD: &str = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n";

/// The services, on a port of their own until the tests end.
pub fn serve(aws: Aws) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // nodeadm may be gone.
            let _ = answer(&stream, aws);
        }
    });
    port
}

fn answer(stream: &TcpStream, aws: Aws) -> std::io::Result<()> {
    let known = |text: &str| (!text.is_empty()).then(|| text.as_bytes().to_vec());
    http::answer(stream, |path, _| {
        let body = match path {
            "/latest/api/token" => Some(b"token".to_vec()),
            "/latest/user-data" => Some(aws.user_data.to_vec()),
            "/latest/dynamic/instance-identity/document" => known(aws.identity),
            "/latest/meta-data/mac" => Some(b"02:00:00:00:00:01".to_vec()),
            "/" => known(aws.instances)
                .map(|set| [b"<DescribeInstancesResponse>", set.as_slice(), b"</DescribeInstancesResponse>"].concat()),
            _ => None,
        };
        body.map_or((404, Vec::new()), |body| (200, body))
    })
}

/// Rows that are printed beside those of the cases.
const BESIDE: &[&str] = &["Instance details populated{}\"id\":\"{instance}\""];

const NOT_HERE: &[(&str, &str)] = &[
    (
        "retrying request EC2/{operation}, attempt {attempt}
        Command failed{}operation error ec2imds{error}
        Command failed{}operation error EC2: {operation}, {error}
        Command failed{}exceeded max wait time for InstanceCondition waiter
        Command failed{}reservation or instance not found
        Command failed{}failed to get MAC from IMDS: {error}",
        "it tries for ten minutes first",
    ),
    (
        "Configured daemon{}name=kubelet
        Daemon is running{}name=kubelet
        Command failed{}error={unit} status is not \"{wanted}\"
        Command failed{}image credential provider binary was not found on path {path}
        Command failed{}local disk{error}
        Command failed{}custom max pods expression{error}
        Command failed{}no instance found for type: {type}
        Command failed{}containerd.sock: connect: {}
        Command failed{}containerd.sock: no such file",
        "it needs systemd, and writes below /etc",
    ),
    (
        "Command failed{}failed to decode node config{error}
        Command failed{}could not find NodeConfig within UserData
        Command failed{}error converting YAML to JSON: {error}
        PullImage \"{image}\" from image service failed{error}
        Command failed{}failed to pull image{error}
        Command failed{}failed to resolve reference \"{image}\"{error}
        Command failed{}operation error ECR: {operation}, {error}
        Command failed{}operation error EKS: {operation}, {error}",
        "an older nodeadm says it, or one that is given a file",
    ),
    (
        "Command failed{}MIME type is not multipart
        Command failed{}mime: {error}
        Command failed{}failed to decode user data: {error}",
        "what it takes for MIME or base64 is both, so that its readers fail at odd bytes only",
    ),
    ("Command failed{}must run as root", "here it is root"),
    ("mdadm: No arrays found in config file or automatically", "mdadm says it, which needs disks"),
    ("Command failed{error}", "it stands for what has no row"),
];

#[test]
fn what_nodeadm_says_in_trouble_is_known() {
    use Trouble as T;
    let data = |text: &str| -> &'static [u8] { Vec::leak(text.as_bytes().to_vec()) };
    let spec = |spec: &str| data(&format!("{HEAD}spec: {{{spec}}}\n"));
    let mime = |head: &str, body: &str| data(&format!("MIME-Version: 1.0\nContent-Type: {head}\n\n{body}"));
    let full = Aws { user_data: b"", identity: IDENTITY, instances: INSTANCES };
    let cases: &[(&str, &'static [u8], Aws, T)] = &[
        ("Command failed{}no config in chain", data("kind: Pod"), full, T::UserDataRefused),
        ("Encountered error in config provider error={error}", spec("cluster: {name: [x]}"), full, T::UserDataRefused),
        (
            "Command failed{}multipart: NextPart: {error}",
            mime("multipart/mixed; boundary=B", "--B--\n"),
            full,
            T::UserDataRefused,
        ),
        ("Command failed{}Name is missing in cluster configuration", spec("cluster: {}"), full, T::UserDataRefused),
        (
            "Command failed{}Apiserver endpoint is missing in cluster configuration",
            spec("cluster: {name: x}"),
            full,
            T::UserDataRefused,
        ),
        (
            "Command failed{}Certificate authority is missing in cluster configuration",
            spec("cluster: {name: x, apiServerEndpoint: 'https://x'}"),
            full,
            T::UserDataRefused,
        ),
        (
            "Command failed{}CIDR is missing in cluster configuration",
            spec("cluster: {name: x, apiServerEndpoint: 'https://x', certificateAuthority: eHg=}"),
            full,
            T::UserDataRefused,
        ),
        (
            "Encountered error in config provider error={error}",
            mime("multipart/mixed; boundary=B", "--B\nContent-Type: text/x-shellscript\n\necho\n--B--\n"),
            full,
            T::UserDataRefused,
        ),
        (
            "Command failed{}failed to decompress user data: {error}",
            b"\x1f\x8b\x08\0\0\0\0\0\0\0x",
            full,
            T::UserDataRefused,
        ),
    ];
    let folder = tempfile::TempDir::new().expect("a folder");
    // All it asks of the kubelet is its version.
    let kubelet = folder.path().join("kubelet");
    fs::write(&kubelet, "#!/bin/sh\necho Kubernetes v1.34.2\n").expect("it is ours");
    let made = Command::new("chmod").arg("+x").arg(&kubelet).status();
    assert!(made.is_ok_and(|status| status.success()));
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").expect("there is one"));

    let (program, mut wrong, mut printed) = (agents::nodeadm(), Vec::new(), BTreeSet::new());
    for (says, user_data, aws, trouble) in cases {
        let log = run(&program, Aws { user_data, ..*aws }, &path, folder.path().join("log"));
        wrong.extend(judge(&String::from_utf8_lossy(user_data), &log, says, Some((*trouble, None))));
        printed.extend(rows_in(&log));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_beside(&printed, BESIDE);
    assert_complete("nodeadm", &printed, NOT_HERE);
}

fn run(program: &Path, aws: Aws, path: &str, log: PathBuf) -> String {
    let service = format!("http://127.0.0.1:{}", serve(aws));
    let mut command = contained(program, &["init", "--skip", "config", "--skip", "run"]);
    command.env("PATH", path).env("AWS_MAX_ATTEMPTS", "1");
    command.env("AWS_EC2_METADATA_SERVICE_ENDPOINT", &service).env("AWS_ENDPOINT_URL", &service);
    command.env("AWS_ACCESS_KEY_ID", "AKIATESTTESTTESTTEST").env("AWS_SECRET_ACCESS_KEY", "secret");
    said(Process::spawn(&command, log), |log| log.contains("Command failed"))
}
