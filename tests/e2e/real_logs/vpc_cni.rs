//! ipamd of the VPC CNI, on a machine whose metadata, EC2 and network interfaces a case says, beside the real API
//! server. Its network is a namespace of its own: what it sets up there, nobody has.

use crate::real_logs::{assert_beside, assert_complete, http, judge, prefixed, read, rows_in, said};
use logs::fact::{Reason, Trouble};
use logs::row_of;
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::{Shutdown, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use testkit::control_plane::{ControlPlane, Process};
use testkit::go;
use testkit::programs::agents;

/// The newest, and the one whose sources the table names.
const PREFIX: &str = "[pod/aws-node-x7k2p/aws-node]";
const NODE: &str = "ip-10-0-3-9";
const MAC: &str = "02:00:00:00:00:01";
/// Of the services of AWS, in the namespace.
const PORT: u16 = 8081;

/// Who ipamd is to the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Api {
    Administrator,
    /// Its ServiceAccount, to which nothing was granted.
    Itself,
    Unreachable,
}

#[derive(Debug, Clone, Copy)]
struct Case {
    name: &'static str,
    versions: &'static [&'static str],
    instance_type: &'static str,
    subnet_tag: &'static str,
    settings: &'static [(&'static str, &'static str)],
    api: Api,
    /// The action of EC2 or STS, and the code and message that it is refused with.
    fault: (&'static str, &'static str, &'static str),
    /// The row that is the root.
    says: &'static str,
    /// The row until whose line it runs, where that is another.
    until: &'static str,
    wanted: Option<(Trouble, Option<Reason>)>,
}

const PLAIN: Case = Case {
    name: "",
    versions: &agents::VPC_CNIS,
    instance_type: "m5.large",
    subnet_tag: "",
    settings: &[],
    api: Api::Administrator,
    fault: ("", "", ""),
    says: "",
    until: "",
    wanted: Some((Trouble::CniFails, None)),
};

const DENIED: &str = "You are not authorized to perform this operation.";
const CUSTOM: (&str, &str) = ("AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", "true");
/// Which label of the Node names its ENIConfig: here one that is not there.
const MISSING: (&str, &str) = ("ENI_CONFIG_LABEL_DEF", "example.com/missing");
const NO_INTERFACE: &str = "Failed to attach any ENIs for custom networking";

/// What EKS gives a pod whose ServiceAccount has a role.
const ROLE: [(&str, &str); 4] = [
    ("AWS_ROLE_ARN", "arn:aws:iam::111122223333:role/cni"),
    ("AWS_WEB_IDENTITY_TOKEN_FILE", "TOKEN"),
    ("AWS_ACCESS_KEY_ID", ""),
    ("AWS_SECRET_ACCESS_KEY", ""),
];

const REFUSED: Option<(Trouble, Option<Reason>)> = Some((Trouble::AwsRefuses, Some(Reason::AccessDenied)));

/// Whom it asks before it does anything.
fn services() -> Vec<Case> {
    use {Reason as R, Trouble as T};
    vec![
        Case { name: "healthy", says: "Serving RPC Handler version", wanted: None, ..PLAIN },
        Case {
            name: "interfaces-denied",
            fault: ("DescribeNetworkInterfaces", "UnauthorizedOperation", DENIED),
            says: "Initialization failure: {}UnauthorizedOperation{error}",
            wanted: REFUSED,
            ..PLAIN
        },
        Case {
            name: "role-refused",
            settings: &ROLE,
            fault: (
                "AssumeRoleWithWebIdentity",
                "AccessDenied",
                "Not authorized to perform sts:AssumeRoleWithWebIdentity",
            ),
            says: "AssumeRoleWithWebIdentity{error}",
            wanted: REFUSED,
            ..PLAIN
        },
        Case {
            // The newest names the call of EC2 first, which waits for the same.
            name: "no-way-to-sts",
            versions: &["1.20.4"],
            settings: &[ROLE[0], ROLE[1], ROLE[2], ROLE[3], ("AWS_ENDPOINT_URL_STS", "http://127.0.0.1:1")],
            says: "AssumeRoleWithWebIdentity{error}",
            wanted: Some((T::AwsUnreachable, Some(R::ConnectionRefused))),
            ..PLAIN
        },
        Case {
            name: "no-metadata",
            settings: &[("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:1")],
            says: "Initialization failure: {}instance metadata{}operation error ec2imds{error}",
            wanted: Some((T::NoMetadata, Some(R::ConnectionRefused))),
            ..PLAIN
        },
        Case {
            name: "no-api-server",
            api: Api::Unreachable,
            says: "Unable to reach API Server{error}",
            wanted: Some((T::ApiServerUnreachable, Some(R::ConnectionRefused))),
            ..PLAIN
        },
        Case {
            name: "no-api-server-for-pod-eni",
            api: Api::Unreachable,
            settings: &[("ENABLE_POD_ENI", "true")],
            says: "Failed to check API server connectivity: {error}",
            wanted: Some((T::ApiServerUnreachable, Some(R::ConnectionRefused))),
            ..PLAIN
        },
        Case {
            name: "no-rights",
            api: Api::Itself,
            says: r#"failed to list {kind}: {resource} is forbidden: User "system:serviceaccount:{namespace}:aws-node" cannot"#,
            wanted: Some((T::CniFails, Some(R::Forbidden))),
            ..PLAIN
        },
    ]
}

/// What it is told to do on this type of instance.
fn settings() -> Vec<Case> {
    vec![
        Case {
            name: "unknown-type",
            instance_type: "x9.large",
            says: "Failed to get ENI limits from file:vpc_ip_limits or EC2 for {type}",
            ..PLAIN
        },
        Case {
            name: "ipv6-without-prefixes",
            settings: &[("ENABLE_IPv6", "true"), ("ENABLE_IPv4", "false")],
            says: "IPv6 is supported only in Prefix Delegation mode",
            ..PLAIN
        },
        Case {
            name: "ipv6-without-nitro",
            instance_type: "m4.large",
            settings: &[("ENABLE_IPv6", "true"), ("ENABLE_IPv4", "false"), ("ENABLE_PREFIX_DELEGATION", "true")],
            says: "Prefix Delegation is not supported on non-nitro instance {type}. IPv6 is only supported",
            ..PLAIN
        },
        Case {
            name: "no-eni-config",
            settings: &[CUSTOM, MISSING],
            says: "error while retrieving eniconfig: {error}",
            until: NO_INTERFACE,
            ..PLAIN
        },
    ]
}

/// What EC2 refuses of network interfaces and addresses.
fn interfaces() -> Vec<Case> {
    vec![
        Case {
            // It says that there is none, and takes the one called default.
            name: "default-eni-config",
            settings: &[CUSTOM, ("ENI_CONFIG_LABEL_DEF", "example.com/none")],
            fault: (
                "CreateNetworkInterface",
                "InvalidSecurityGroupID.NotFound",
                "The security group 'sg-2' does not exist",
            ),
            says: "Failed to CreateNetworkInterface {error} for subnet {subnet}",
            until: NO_INTERFACE,
            ..PLAIN
        },
        Case {
            name: "subnet-full",
            settings: &[CUSTOM],
            fault: (
                "CreateNetworkInterface",
                "InsufficientFreeAddressesInSubnet",
                "The specified subnet does not have enough free addresses to satisfy the request.",
            ),
            says: "Failed to CreateNetworkInterface {}InsufficientFreeAddressesInSubnet{} for subnet {subnet}",
            until: NO_INTERFACE,
            ..PLAIN
        },
        Case {
            name: "subnet-without-prefixes",
            settings: &[CUSTOM],
            fault: (
                "CreateNetworkInterface",
                "InvalidParameterValue",
                "There aren't sufficient free Ipv4 addresses or prefixes",
            ),
            says: "Failed to CreateNetworkInterface {}aren't sufficient free{} for subnet {subnet}",
            until: NO_INTERFACE,
            ..PLAIN
        },
        Case {
            name: "interface-denied",
            settings: &[CUSTOM],
            fault: ("CreateNetworkInterface", "UnauthorizedOperation", DENIED),
            says: "Unauthorized operation: failed to call {call} due to missing permissions",
            until: NO_INTERFACE,
            wanted: REFUSED,
            ..PLAIN
        },
        Case {
            name: "attachment-limit",
            settings: &[CUSTOM],
            fault: (
                "AttachNetworkInterface",
                "AttachmentLimitExceeded",
                "Interface count 4 exceeds the limit for m5.large",
            ),
            says: "Failed to attach ENI {eni}: {error}",
            until: NO_INTERFACE,
            ..PLAIN
        },
        Case {
            name: "no-free-prefix",
            settings: &[("ENABLE_PREFIX_DELEGATION", "true")],
            fault: ("AssignPrivateIpAddresses", "InsufficientCidrBlocks", "There are not enough free cidr blocks"),
            says: "Failed to allocate a private IP/Prefix addresses on ENI {eni}: {error}",
            ..PLAIN
        },
        Case {
            name: "subnets-excluded",
            versions: &["1.23.2"],
            subnet_tag: "<item><key>kubernetes.io/role/cni</key><value>0</value></item>",
            fault: ("AssignPrivateIpAddresses", "InsufficientFreeAddressesInSubnet", "The specified subnet is full."),
            says: "no valid subnets available for ENI creation",
            ..PLAIN
        },
    ]
}

/// Rows that are printed beside those of the cases.
const BESIDE: &[&str] = &[
    "Failed to call ec2:{call} for {}: {error}",
    "Initialization failure: {error}",
    "No ENIConfig could be found for this node{error}",
];

const NOT_HERE: &[(&str, &str)] = &[
    ("Failed to communicate with K8S Server{error}", "a VPC CNI up to 1.7 says it"),
    ("Timed out waiting for IPAM daemon to start", "a VPC CNI up to 1.10 says it: later ones wait for ever"),
    ("Successfully copied CNI plugin binary and config file", "it copies what its image has in /app"),
    ("Skipping ENI allocation as the max ENI limit", "it needs an instance with all its network interfaces"),
];

/// What EC2 and STS answer to an action, and the metadata service at a path.
fn aws(case: &Case, path: &str, body: &str) -> (u16, Vec<u8>) {
    let Some(action) = body.split('&').find_map(|field| field.strip_prefix("Action=")) else {
        return metadata(case, path).map_or((404, Vec::new()), |text| (200, text.into()));
    };
    let (refused, code, message) = case.fault;
    if action != refused {
        return (200, format!("<{action}Response>{}</{action}Response>", ec2(case, action)).into_bytes());
    }
    let error = format!("<Error><Code>{code}</Code><Message>{message}</Message></Error>");
    let status = if code.contains("Unauthorized") || code.contains("Denied") { 403 } else { 400 };
    let whole = match action {
        "AssumeRoleWithWebIdentity" => format!("<ErrorResponse>{error}</ErrorResponse>"),
        _ => format!("<Response><Errors>{error}</Errors><RequestID>x</RequestID></Response>"),
    };
    (status, whole.into_bytes())
}

fn ec2(case: &Case, action: &str) -> String {
    let interface = |id: &str| {
        format!(
            "<networkInterfaceId>{id}</networkInterfaceId><subnetId>subnet-1</subnetId><macAddress>{MAC}</macAddress><interfaceType>interface</interfaceType><privateIpAddress>10.0.3.9</privateIpAddress><attachment><attachmentId>a-1</attachmentId><deviceIndex>0</deviceIndex><networkCardIndex>0</networkCardIndex></attachment><privateIpAddressesSet><item><privateIpAddress>10.0.3.9</privateIpAddress><primary>true</primary></item></privateIpAddressesSet>"
        )
    };
    match action {
        "DescribeNetworkInterfaces" => {
            format!("<networkInterfaceSet><item>{}</item></networkInterfaceSet>", interface("eni-1"))
        }
        "CreateNetworkInterface" => format!("<networkInterface>{}</networkInterface>", interface("eni-2")),
        "DescribeInstances" => {
            "<reservationSet><item><instancesSet><item/></instancesSet></item></reservationSet>".to_owned()
        }
        "DescribeSubnets" => format!(
            "<subnetSet><item><subnetId>subnet-1</subnetId><availableIpAddressCount>9</availableIpAddressCount>\
             <tagSet>{}</tagSet></item></subnetSet>",
            case.subnet_tag
        ),
        _ => "<return>true</return>".to_owned(),
    }
}

/// Of a machine with one network interface.
fn metadata(case: &Case, path: &str) -> Option<&'static str> {
    let known = [
        ("api/token", "token"),
        ("dynamic/instance-identity/document", r#"{"region":"eu-west-1"}"#),
        ("meta-data/placement/availability-zone", "eu-west-1a"),
        ("meta-data/instance-id", "i-0a0000000000000b1"),
        ("meta-data/instance-type", case.instance_type),
        ("meta-data/mac", MAC),
        ("meta-data/local-ipv4", "10.0.3.9"),
        ("meta-data/network/interfaces/macs", MAC),
        ("meta-data/network/interfaces/macs/MAC", "device-number\nlocal-ipv4s"),
        ("meta-data/network/interfaces/macs/MAC/interface-id", "eni-1"),
        ("meta-data/network/interfaces/macs/MAC/device-number", "0"),
        ("meta-data/network/interfaces/macs/MAC/subnet-id", "subnet-1"),
        ("meta-data/network/interfaces/macs/MAC/vpc-id", "vpc-1"),
        ("meta-data/network/interfaces/macs/MAC/security-group-ids", "sg-1"),
        ("meta-data/network/interfaces/macs/MAC/local-ipv4s", "10.0.3.9"),
        ("meta-data/network/interfaces/macs/MAC/subnet-ipv4-cidr-block", "10.0.3.0/24"),
        ("meta-data/network/interfaces/macs/MAC/vpc-ipv4-cidr-blocks", "10.0.0.0/16"),
    ];
    let asked = path.strip_prefix("/latest/")?.trim_end_matches('/').replace(MAC, "MAC");
    known.into_iter().find(|(path, _)| *path == asked).map(|(_, text)| text)
}

/// Answers each connection to the socket, for as long as the tests run.
fn listen(socket: &Path, answer: impl Fn(UnixStream) -> io::Result<()> + Clone + Send + 'static) {
    let listener = UnixListener::bind(socket).expect("it is ours");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = answer.clone();
            // Whoever is gone needs no answer.
            thread::spawn(move || drop(answer(stream)));
        }
    });
}

/// Passes on what is said, both ways.
fn pass_on(client: &UnixStream, port: u16) -> io::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", port))?;
    thread::scope(|scope| {
        scope.spawn(|| io::copy(&mut &*client, &mut &server).and(server.shutdown(Shutdown::Write)));
        io::copy(&mut &server, &mut &*client).and(client.shutdown(Shutdown::Write))
    })
}

struct Field {
    folder: tempfile::TempDir,
    control_plane: ControlPlane,
    itself: PathBuf,
}

impl Field {
    fn start() -> Self {
        let control_plane = ControlPlane::start();
        control_plane.apply_crds(
            &go::module_source(&agents::vpc_cni_module(agents::VPC_CNIS[0]))
                .join("charts/aws-vpc-cni/crds/customresourcedefinition.yaml"),
        );
        control_plane.apply(json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": { "name": NODE, "labels": { "k8s.amazonaws.com/eniConfig": "one", "example.com/missing": "two" } },
        }));
        control_plane.patch_status("node", NODE, "merge", &json!({ "status": { "capacity": { "pods": "29" } } }));
        for name in ["one", "default"] {
            control_plane.apply(json!({
                "apiVersion": "crd.k8s.amazonaws.com/v1alpha1", "kind": "ENIConfig", "metadata": { "name": name },
                "spec": { "subnet": "subnet-2", "securityGroups": ["sg-2"] },
            }));
        }
        let folder = tempfile::TempDir::new().expect("a folder");
        let port = control_plane.port();
        listen(&folder.path().join("api"), move |client| pass_on(&client, port));
        // All it asks of them is their version, and that a rule is there.
        let tools = folder.path().join("bin");
        fs::create_dir(&tools).expect("it is ours");
        for name in ["iptables", "ip6tables"] {
            let script = tools.join(name);
            fs::write(&script, "#!/bin/sh\necho 'iptables v1.8.9 (legacy)'\n").expect("it is ours");
            fs::set_permissions(script, fs::Permissions::from_mode(0o755)).expect("it is ours");
        }
        control_plane.kubectl(&["create", "serviceaccount", "aws-node", "--namespace=kube-system"]);
        let itself = control_plane.kubeconfig_for("kube-system", "aws-node");
        Self { folder, control_plane, itself }
    }

    fn run(&self, case: &Case, version: &str) -> String {
        const NAMESPACE: &str = r#"
            ip link add eth0 address "$0" type veth peer name peer && ip link set lo up && ip link set peer up &&
            ip link set eth0 up && ip address add 10.0.3.9/24 dev eth0 && mount -t tmpfs tmpfs /run && exec "$@""#;
        let folder = self.folder.path().join(format!("{}-{version}", case.name));
        fs::create_dir(&folder).expect("it is ours");
        let own = *case;
        listen(&folder.join("aws"), move |client| http::answer(&client, |path, body| aws(&own, path, body)));
        fs::write(folder.join("token"), "x").expect("it is ours");

        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "--net", "--pid", "--fork", "--kill-child"]);
        command.args(["sh", "-c", NAMESPACE, MAC, "python3"]);
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/real_logs/vpc_cni/forward.py"));
        command.arg(format!("{PORT}={}", folder.join("aws").display()));
        if case.api != Api::Unreachable {
            let port = self.control_plane.port();
            command.arg(format!("{port}={}", self.folder.path().join("api").display()));
        }
        command.arg("--").arg(agents::vpc_cni(version));
        let kubeconfig = if case.api == Api::Itself { self.itself.clone() } else { self.control_plane.kubeconfig() };
        let path = std::env::var("PATH").expect("there is one");
        let service = format!("http://127.0.0.1:{PORT}");
        command
            .env("PATH", format!("{}:{path}", self.folder.path().join("bin").display()))
            .env("KUBECONFIG", kubeconfig);
        command.envs([("MY_NODE_NAME", NODE), ("AWS_VPC_K8S_CNI_LOG_FILE", "stdout"), ("ENABLE_IPv4", "true")]);
        command.envs([("AWS_REGION", "eu-west-1"), ("AWS_MAX_ATTEMPTS", "1")]);
        command.envs([("AWS_ACCESS_KEY_ID", "AKIATESTTESTTESTTEST"), ("AWS_SECRET_ACCESS_KEY", "secret")]);
        let of_service = ["AWS_EC2_METADATA_SERVICE_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_STS"];
        command.envs(of_service.map(|name| (name, &service)));
        let token = folder.join("token").display().to_string();
        command.envs(case.settings.iter().map(|(name, value)| (*name, value.replace("TOKEN", &token))));
        let until = if case.until.is_empty() { case.says } else { case.until };
        let process = Process::spawn(&command, folder.join("log"));
        prefixed(PREFIX, &said(process, |log| rows_in(&prefixed(PREFIX, log)).contains(until)))
    }
}

#[test]
fn what_ipamd_says_in_trouble_is_known() {
    /// They wait more than they work.
    const ABREAST: usize = 6;
    let field = Field::start();
    let cases = [services(), settings(), interfaces()].concat();
    let runs: Vec<_> =
        cases.iter().flat_map(|case| case.versions.iter().map(move |version| (case, *version))).collect();
    let (mut wrong, mut printed) = (Vec::new(), BTreeSet::new());
    for some in runs.chunks(ABREAST) {
        let logs: Vec<String> = thread::scope(|scope| {
            let started: Vec<_> = some.iter().map(|(case, version)| scope.spawn(|| field.run(case, version))).collect();
            started.into_iter().map(|run| run.join().expect("it ran")).collect()
        });
        for ((case, version), log) in some.iter().zip(&logs) {
            let name = format!("{} of {version}", case.name);
            wrong.extend(judge(&name, log, case.says, case.wanted));
            let (journey, own) = (read(log), log.lines().filter_map(row_of).find(|(_, row)| row.says == case.says));
            let root = journey.open().first().map(|fact| fact.means.clone());
            if let Some((root, (_, row))) = root.zip(own).filter(|(root, (_, row))| *root != row.means) {
                wrong.push(format!("{name}: {root}, not {}", row.means));
            }
            printed.extend(rows_in(log));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_beside(&printed, BESIDE);
    assert_complete("vpc-cni", &printed, NOT_HERE);
}
