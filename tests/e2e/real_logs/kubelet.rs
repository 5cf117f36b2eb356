//! The kubelet, against the real API server and a runtime that only says how it is.

use crate::real_logs::{assert_beside, assert_complete, contained, judge, read, rows_in, said};
use logs::fact::{Phase, Reason, Trouble};
use logs::table::{FILES, Row, rows};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;
use testkit::control_plane::{ControlPlane, Process, free_ports};
use testkit::patience::Patience;
use testkit::programs::agents::{KUBELETS, Kubelet, kubelet};

/// Who the kubelet is to the API server, and how it gets there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    /// As its node.
    Node,
    /// As another node.
    Other,
    /// As a user without rights.
    Nobody,
    /// As that, for its first certificate.
    Bootstrap,
    WrongToken,
    WrongAuthority,
    /// At an address where nothing listens, at one that never answers, at a name that nobody knows.
    Refused,
    Silent,
    Unknown,
    /// The API server's certificate is for another name, is not valid yet, or not any more.
    WrongName,
    Future,
    Past,
    /// Credentials come from a program that fails, is missing (by its path, by its name), or speaks an old version.
    ExecFails,
    ExecMissing,
    ExecNotFound,
    ExecOld,
    /// A kubeconfig that is no YAML, whose authority is no certificate, or that is not there, and none.
    Garbled,
    NoAuthority,
    Missing,
    None,
}

struct Case {
    name: &'static str,
    /// One that policies know; else it has a name of its own.
    node: &'static str,
    flags: &'static [&'static str],
    config: &'static str,
    access: Access,
    /// What of the runtime is not so.
    runtime: &'static str,
    says: &'static str,
    /// The root of it, where it stops the machine.
    wanted: Option<(Trouble, Option<Reason>)>,
    /// The minor versions that answer so; where the table says that of the row, that is enough.
    minors: [u32; 2],
}

const ALL: [u32; 2] = [0, 99];

/// Of which most cases differ in one thing.
const PLAIN: Case = Case {
    name: "",
    node: "",
    flags: &[],
    config: "",
    access: Access::Node,
    runtime: "RuntimeReady",
    says: "",
    wanted: Some((Trouble::KubeletRefusesConfiguration, None)),
    minors: ALL,
};

/// One that the kubelet refuses before it asks anybody.
const fn refused(name: &'static str, flags: &'static [&'static str], config: &'static str, says: &'static str) -> Case {
    Case { name, flags, config, says, ..PLAIN }
}

/// One where the API server is asked in vain.
const fn asks(name: &'static str, access: Access, says: &'static str, trouble: Trouble, reason: Reason) -> Case {
    Case { name, access, says, wanted: Some((trouble, Some(reason))), ..PLAIN }
}

const REGISTER: &str = "Unable to register node with API server{error}";

#[allow(clippy::too_many_lines, reason = "a table")]
fn cases() -> Vec<Case> {
    use {Access as A, Reason as R, Trouble as T};
    vec![
        refused("flag", &["--network-plugin=cni"], "", "failed to parse kubelet flag: {flag}"),
        refused(
            "labels",
            &["--node-labels=node-role.kubernetes.io/web=x"],
            "",
            "unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: {labels}",
        ),
        refused("label", &["--node-labels=team=a b"], "", "invalid node labels: {labels}"),
        refused("yaml", &[], "maxPods: [", "failed to load kubelet config file, path: {path}, error: {error}"),
        Case {
            minors: [30, 99],
            ..refused("drop-in", &["--config-dir=/nonexistent"], "", "failed to merge kubelet configs: {error}")
        },
        refused(
            "drop-in without its variable",
            &["--config-dir=/nonexistent"],
            "",
            "specified but environment variable KUBELET_CONFIG_DROPIN_DIR_ALPHA not set",
        ),
        refused(
            "thresholds",
            &[],
            "imageGCHighThresholdPercent: 10",
            "failed to validate kubelet configuration, error: {error}",
        ),
        refused(
            "gate by flag",
            &["--feature-gates=Nope=true"],
            "",
            "failed to set feature gates from initial flags-based config: {error}",
        ),
        refused(
            "gate by file",
            &[],
            "featureGates: {Nope: true}",
            "failed to merge global and in-flight KubeletConfiguration while setting defaults, error: {error}",
        ),
        Case {
            minors: [0, 31],
            ..refused(
                "gate by file, as a flag",
                &[],
                "featureGates: {Nope: true}",
                "failed to set feature gates from initial flags-based config: {error}",
            )
        },
        Case { access: A::Garbled, ..refused("garbled kubeconfig", &[], "", "invalid kubeconfig: {error}") },
        Case {
            access: A::Garbled,
            ..refused(
                "rotating",
                &[],
                "rotateCertificates: true",
                "failed to run Kubelet: unable to load kubeconfig: {error}",
            )
        },
        Case { access: A::NoAuthority, ..refused("authority", &[], "", "unable to load root certificates: {error}") },
        Case { access: A::None, ..refused("no kubeconfig", &[], "", "no client provided, cannot use webhook auth") },
        Case {
            access: A::Missing,
            ..refused(
                "no bootstrap",
                &["--bootstrap-kubeconfig=/no"],
                "",
                "unable to load bootstrap kubeconfig: {error}",
            )
        },
        Case { access: A::ExecOld, ..refused("exec v1alpha1", &[], "", "exec plugin: invalid apiVersion {version}") },
        Case {
            minors: [36, 99],
            ..refused(
                "client CA",
                &[],
                "authentication: {x509: {clientCAFile: /nonexistent}}",
                "failed to run Kubelet: open {path}: no such file",
            )
        },
        Case {
            minors: [0, 35],
            ..refused(
                "client CA at once",
                &[],
                "authentication: {x509: {clientCAFile: /nonexistent}}",
                "unable to load client CA file {path}: {error}",
            )
        },
        refused(
            "serving certificate",
            &[],
            "tlsCertFile: /nonexistent\ntlsPrivateKeyFile: /nonexistent",
            "unable to set up dynamic certificate manager for kubelet server cert files: {error}",
        ),
        refused(
            "serving certificate at last",
            &[],
            "tlsCertFile: /nonexistent\ntlsPrivateKeyFile: /nonexistent",
            "Failed to listen and serve{}open {path}: no such file",
        ),
        refused("kube", &[], "kubeReserved: {memory: '1,5Gi'}", "--kube-reserved value failed to parse: {error}"),
        refused("system", &[], "systemReserved: {pods: '1'}", "--system-reserved value failed to parse: {error}"),
        refused("CPU list", &[], "reservedSystemCPUs: x", "unable to parse reservedSystemCPUs{error}"),
        refused("CPUs", &[], "reservedSystemCPUs: 0-999", "is not a subset of online-cpus"),
        refused("address", &["--node-ip=10.0.3.1,10.0.3.2"], "", "bad --node-ip \"{ip}\""),
        Case {
            runtime: "",
            ..refused(
                "memory",
                &[],
                "kubeReserved: {memory: 999Ti}",
                "Failed to start ContainerManager{}err=\"{error}\"",
            )
        },
        refused("foreign address", &["--node-ip=10.9.9.9"], "", "failed to validate nodeIP: {error}"),
        refused("threshold", &[], "evictionHard: {memory.available: x}", "failed to run Kubelet: {error}"),
        Case {
            minors: [29, 99],
            ..refused("cloud", &["--cloud-provider=aws"], "", "but built-in cloud providers are disabled")
        },
        refused(
            "cloud that is gone",
            &["--cloud-provider=aws"],
            "",
            "failed to run Kubelet: unknown cloud provider \"{provider}\"",
        ),
        refused("lock", &["--lock-file=/proc/x"], "", "failed to run Kubelet: unable to acquire file lock"),
        refused("port", &["--port=PORT"], "", "Failed to listen and serve{error}"),
        Case {
            runtime: "none",
            says: "validate service connection: {error}",
            wanted: Some((T::RuntimeNotUp, None)),
            ..refused("no runtime", &[], "", "")
        },
        Case {
            runtime: "CRI",
            says: "unknown service runtime.v1.RuntimeService",
            wanted: Some((T::RuntimeNotUp, None)),
            ..refused("no CRI", &[], "", "")
        },
        Case {
            runtime: "Status",
            says: "Container runtime sanity check failed{}err=\"{error}\"",
            wanted: Some((T::RuntimeNotUp, None)),
            ..refused("runtime fails", &[], "", "")
        },
        Case {
            name: "network",
            // In its first two minutes it says that to the curious only.
            flags: &["--v=4"],
            runtime: "NetworkReady",
            says: "Container runtime network not ready",
            wanted: Some((T::CniFails, None)),
            ..PLAIN
        },
        // A pod that somebody made does not stop the machine.
        Case {
            name: "pull",
            runtime: "PullImage",
            config: "staticPodPath: FOLDER",
            says: "Failed to pull image{}image=\"{image}\"",
            wanted: None,
            ..PLAIN
        },
        asks("wrong token", A::WrongToken, REGISTER, T::Unauthorized, R::Unauthorized),
        asks("other authority", A::WrongAuthority, REGISTER, T::ApiServerUntrusted, R::UnknownAuthority),
        asks("refused", A::Refused, REGISTER, T::ApiServerUnreachable, R::ConnectionRefused),
        asks("unknown name", A::Unknown, REGISTER, T::ApiServerUnreachable, R::NameNotFound),
        asks("silent", A::Silent, REGISTER, T::ApiServerUnreachable, R::TlsHandshake),
        asks("wrong name", A::WrongName, REGISTER, T::ApiServerUntrusted, R::WrongName),
        asks("future", A::Future, REGISTER, T::ClockWrong, R::Clock),
        asks("past", A::Past, REGISTER, T::ApiServerUntrusted, R::Expired),
        asks(
            "CSINode",
            A::Unknown,
            "Failed to contact API server when waiting for CSINode publishing{error}",
            T::ApiServerUnreachable,
            R::NameNotFound,
        ),
        asks(
            "lease",
            A::WrongToken,
            "Failed to ensure lease exists, will retry{error}",
            T::Unauthorized,
            R::Unauthorized,
        ),
        asks("watch", A::WrongToken, "reflector.go{}Failed to watch{error}", T::Unauthorized, R::Unauthorized),
        asks("nobody", A::Nobody, REGISTER, T::Forbidden, R::Forbidden),
        // As it does it up to 1.31.
        Case {
            config: "featureGates: {KubeletRegistrationGetOnExistsOnly: true, KubeletInUserNamespace: true}",
            ..asks(
                "nobody, asked once",
                A::Nobody,
                "Unable to register node with API server, reason is forbidden{error}",
                T::Forbidden,
                R::Forbidden,
            )
        },
        asks("other node", A::Other, REGISTER, T::Forbidden, R::Forbidden),
        Case {
            name: "long name",
            node: "ip-10-0-3-9.eu-west-1.compute.internalplatform.northwind.internal",
            says: "Unable to register node with API server\" err=\"Node \"{name}\" is invalid: {field}: Invalid value: \
                   \"{value}\": {rule}\" node=",
            wanted: Some((T::NodeInvalid, None)),
            ..PLAIN
        },
        Case {
            config: "rotateCertificates: true",
            ..asks(
                "first certificate, before",
                A::Bootstrap,
                "kube-apiserver-client-kubelet: Failed while requesting a signed certificate",
                T::Forbidden,
                R::Forbidden,
            )
        },
        Case {
            config: "rotateCertificates: true",
            ..asks(
                "first certificate",
                A::Bootstrap,
                "Failed while requesting a signed certificate{}kube-apiserver-client-kubelet",
                T::Forbidden,
                R::Forbidden,
            )
        },
        Case {
            name: "exec fails",
            access: A::ExecFails,
            says: "getting credentials: {error}",
            wanted: Some((T::AwsRefuses, None)),
            ..PLAIN
        },
        Case {
            name: "exec missing",
            access: A::ExecMissing,
            says: "getting credentials: exec: fork/exec {program}: no such file",
            ..PLAIN
        },
        Case {
            name: "exec not found",
            access: A::ExecNotFound,
            says: "getting credentials: exec: executable {program} not found",
            ..PLAIN
        },
        Case { node: "denied", ..asks("policy", A::Node, REGISTER, T::AdmissionRefuses, R::Admission) },
        Case { node: "unhooked", ..asks("webhook", A::Node, REGISTER, T::AdmissionRefuses, R::Admission) },
        Case {
            node: "old",
            ..asks(
                "update",
                A::Node,
                "Unable to reconcile node with API server,error updating node{error}",
                T::AdmissionRefuses,
                R::Admission,
            )
        },
        Case {
            node: "mute",
            config: "nodeStatusUpdateFrequency: 1s",
            ..asks("status", A::Node, "Unable to update node status{error}", T::AdmissionRefuses, R::Admission)
        },
    ]
}

/// What the machine alone decides.
fn cgroup_case() -> Option<Case> {
    let is_v1 = !Path::new("/sys/fs/cgroup/cgroup.controllers").exists();
    let case = refused("cgroups", &[], "failCgroupV1: true", "configured to not run on a host using cgroup v1");
    is_v1.then_some(case)
}

/// Rows that are printed beside those of the cases.
const BESIDE: &[&str] = &[
    "Error updating node status, will retry{error}",
    "Fast updating node status as it just became ready",
    "Kubelet version",
    "Successfully registered node{}node=\"{node}\"",
    "Unable to write event{error}",
    "reflector.go{}failed to list {error}",
    "run.go{}command failed{error}",
    "server.go:{}Started kubelet",
];

/// Rows that nothing here prints, and why.
const NOT_HERE: &[(&str, &str)] = &[
    (
        "failed to load Kubelet config file {path}, error
        unknown flag: --{flag}
        misconfiguration: kubelet cgroup driver: \"{kubelet}\" is different from
        failed to create kubelet: get remote runtime typed service failed: {error}
        failed to run Kubelet: unable to determine runtime API version: {error}
        failed to run Kubelet: could not init cloud provider
        Unable to register node \"{node}\" with API server: {error}
        unable to parse reserved-cpus list: {error}",
        "an older kubelet says it",
    ),
    ("running with swap on is not supported", "it needs a machine with swap"),
    ("Id or size of image {image} is not set", "it needs Docker and an older cri-dockerd"),
    (
        "\"SyncLoop {}\" source=\"api\" pods=[\"{pod}\"
        Unable to retrieve pull secret, the image pull may not succeed.\" pod=\"{pod}\"",
        "it needs pods",
    ),
    (
        "failed to run Kubelet: the total amount \"{amount}\" of type \"{resource}\" is not equal to the value \"{wanted}\"
        failed to run Kubelet: the reserved memory configuration references a NUMA node {numa} that does not exist",
        "it needs a machine whose NUMA nodes the kubelet sees",
    ),
    (
        "Failed to start ContainerManager{}invalid kernel flag: {error}",
        "it needs a machine with other kernel parameters",
    ),
    (
        "No valid client certificate is found and the server is responsive, exiting
        The currently active client certificate has expired and the server is responsive, exiting",
        "it takes five minutes: v1.36.3 pkg/kubelet/certificate/transport.go",
    ),
    ("expected cgroupsPath to be of format \"slice:prefix:name\" for systemd cgroups", "runc says it"),
    (
        "RunPodSandbox from runtime service failed{}failed to get sandbox image \"{image}\": {error}
        RunPodSandbox from runtime service failed{}runc did not terminate successfully: exit status {status}
        RunPodSandbox from runtime service failed{}unable to start container process: {init}
        Failed to pull image{}failed to extract layer {layer}: operation not permitted{}image=\"{image}\"
        Failed to pull image{}failed to extract layer {layer}: permission denied{}image=\"{image}\"",
        "containerd says it, once it has pods to start",
    ),
    (
        "Unable to register node with API server\" err=\"Node \"{name}\" is invalid: {error}",
        "the API server says it of what the kubelet checks before",
    ),
    ("aws: error: argument {argument}: Invalid choice", "an old AWS CLI says it"),
    (
        "error execing credential provider plugin {provider} for image {}.dkr{}: {error}",
        "it needs a pod whose image is in ECR, and a provider that fails",
    ),
    (
        "No space left on device
        no space left on device",
        "whoever finds its disk full says it",
    ),
];

/// A certificate of a time, as PEM: itself and its key.
fn certificate(name: &str, years: [i32; 2]) -> [String; 2] {
    let key = rcgen::KeyPair::generate().expect("ring makes a key");
    let mut params = rcgen::CertificateParams::new([name.to_owned()]).expect("a DNS name");
    [params.not_before, params.not_after] = years.map(|year| rcgen::date_time_ymd(year, 1, 1));
    [params.self_signed(&key).expect("ring signs").pem(), key.serialize_pem()]
}

/// All that kubelets need here.
struct Field {
    folder: tempfile::TempDir,
    control_plane: ControlPlane,
    kubelets: Vec<Kubelet>,
    /// Listens and never answers; its port is taken, too.
    silent: TcpListener,
    /// A user's is written and read in one go.
    kubeconfigs: Mutex<()>,
}

impl Field {
    fn new() -> Self {
        let folder = tempfile::TempDir::new().expect("a folder");
        let names = [("future.test", [2090, 2091]), ("past.test", [2020, 2021])];
        let flags = names.map(|(name, years)| {
            let paths = ["crt", "key"].map(|end| folder.path().join(format!("{name}.{end}")));
            for (path, pem) in paths.iter().zip(certificate(name, years)) {
                fs::write(path, pem).expect("it is ours");
            }
            format!("--tls-sni-cert-key={},{}:{name}", paths[0].display(), paths[1].display())
        });
        let control_plane = ControlPlane::start_with(&flags.each_ref().map(String::as_str));
        let silent = TcpListener::bind(("0.0.0.0", 0)).expect("a port is free");
        let kubelets = KUBELETS.map(kubelet).into();
        let field = Self { folder, control_plane, kubelets, silent, kubeconfigs: Mutex::default() };
        field.refuse_writes();
        field
    }

    /// Policies that refuse what the kubelets of some nodes write, and a webhook that nobody answers.
    fn refuse_writes(&self) {
        let policies =
            [("denied", "nodes", "CREATE"), ("old", "nodes/status", "UPDATE"), ("mute", "nodes/status", "UPDATE")];
        for (node, resource, operation) in policies {
            let rules = json!([{ "apiGroups": [""], "apiVersions": ["v1"], "resources": [resource], "operations": [operation] }]);
            let by_kubelet = format!("request.userInfo.username == 'system:node:{node}'");
            let policy = json!({
                "matchConstraints": { "resourceRules": rules },
                "matchConditions": [{ "name": "kubelet", "expression": by_kubelet }],
                "validations": [{ "expression": "false", "message": "a Node needs the label team" }],
            });
            let binding = json!({ "policyName": node, "validationActions": ["Deny"] });
            for (kind, spec) in [("ValidatingAdmissionPolicy", policy), ("ValidatingAdmissionPolicyBinding", binding)] {
                self.control_plane.apply(json!({
                    "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": { "name": node }, "spec": spec,
                }));
            }
        }
        self.control_plane.apply(json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": { "name": "unhooked" },
            "webhooks": [{
                "name": "nodes.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "clientConfig": { "url": "https://127.0.0.1:1/" },
                "rules": [{ "apiGroups": [""], "apiVersions": ["v1"], "resources": ["nodes"], "operations": ["CREATE"] }],
                "matchConditions": [{ "name": "node", "expression": "object.metadata.name == 'unhooked'" }],
            }],
        }));
        // The kubelet of this one has something to mend: its labels are missing.
        self.control_plane.apply(json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "old" } }));
        // The API server takes a moment to act on a new policy.
        thread::sleep(Duration::from_secs(2));
    }

    fn kubeconfig(&self, node: &str, access: Access, at: &Path) -> PathBuf {
        let user = match access {
            Access::Nobody | Access::Bootstrap => "nobody".to_owned(),
            Access::Other => "system:node:other".to_owned(),
            _ => format!("system:node:{node}"),
        };
        let one = self.kubeconfigs.lock();
        let group = if user == "nobody" { "nobodies" } else { "system:nodes" };
        let text = fs::read_to_string(self.control_plane.kubeconfig_of(&user, group)).expect("it was written");
        let mut config: Value = serde_json::from_str(&text).expect("it is JSON");
        drop(one);
        let cluster =
            |config: &mut Value, field: &str, value: String| config["clusters"][0]["cluster"][field] = json!(value);
        let file = |name: &str| self.folder.path().join(name).display().to_string();
        let exec = |command: &str, version: &str| {
            json!({ "exec": {
                "apiVersion": format!("client.authentication.k8s.io/{version}"), "command": command, "interactiveMode": "Never",
            }})
        };
        match access {
            Access::WrongToken => config["users"][0]["user"] = json!({ "token": "wrong" }),
            Access::WrongAuthority => cluster(&mut config, "certificate-authority", file("past.test.crt")),
            Access::Refused => cluster(&mut config, "server", "https://127.0.0.1:1".to_owned()),
            Access::Silent => {
                let port = self.silent.local_addr().expect("it is bound").port();
                cluster(&mut config, "server", format!("https://127.0.0.1:{port}"));
            }
            Access::Unknown => cluster(&mut config, "server", "https://abc.gr7.eks.invalid".to_owned()),
            Access::WrongName => cluster(&mut config, "tls-server-name", "other.test".to_owned()),
            Access::Future | Access::Past => {
                let name = if access == Access::Future { "future.test" } else { "past.test" };
                cluster(&mut config, "tls-server-name", name.to_owned());
                cluster(&mut config, "certificate-authority", file(&format!("{name}.crt")));
            }
            Access::ExecFails => config["users"][0]["user"] = exec("false", "v1beta1"),
            Access::ExecMissing => config["users"][0]["user"] = exec("/usr/bin/aws-iam-authenticator", "v1beta1"),
            Access::ExecNotFound => config["users"][0]["user"] = exec("heptio-authenticator-aws", "v1beta1"),
            Access::ExecOld => config["users"][0]["user"] = exec("true", "v1alpha1"),
            Access::NoAuthority => {
                cluster(&mut config, "certificate-authority", file("past.test.key"));
            }
            _ => {}
        }
        let text = if access == Access::Garbled { "{{".to_owned() } else { config.to_string() };
        fs::write(at, text).expect("it is ours");
        at.to_owned()
    }

    /// Runs a kubelet until it ends or what it says is enough; what it said.
    fn run(&self, kubelet: &Kubelet, case: &Case, enough: impl Fn(&str) -> bool) -> String {
        let name = format!("{}-{}", case.name.replace([' ', ','], "-"), kubelet.minor).to_lowercase();
        let node = if case.node.is_empty() { &name } else { case.node };
        let folder = self.folder.path().join(&name);
        fs::create_dir_all(&folder).expect("it is ours");
        let path = |name: &str| folder.join(name).display().to_string();
        let _runtime = (case.runtime != "none").then(|| {
            let mut command = Command::new(self.kubelets[0].folder.join("runtime"));
            let runtime =
                Process::spawn(command.args([path("socket").as_str(), case.runtime]), folder.join("runtime.log"));
            let patience = Patience::of(Duration::from_secs(10));
            while !folder.join("socket").exists() {
                assert!(!patience.is_over(), "the runtime does not start: {}", runtime.log());
                thread::sleep(Duration::from_millis(20));
            }
            runtime
        });
        let [port] = free_ports();
        // Nothing of it may change the machine, and no two may meet.
        let config = format!(
            "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nport: {port}\nhealthzPort: 0\n\
             failSwapOn: false\ncgroupsPerQOS: false\nenforceNodeAllocatable: []\nmakeIPTablesUtilChains: false\n\
             containerRuntimeEndpoint: unix://{}\npodLogsDir: {}\nvolumePluginDir: {}\n{}{}{}\n",
            path("socket"),
            path("pods"),
            path("plugins"),
            if case.config.contains("failCgroupV1") { "" } else { "failCgroupV1: false\n" },
            if case.config.contains("featureGates") { "" } else { "featureGates: {KubeletInUserNamespace: true}\n" },
            case.config.replace("FOLDER", &path("manifests")),
        );
        fs::create_dir_all(path("manifests")).expect("it is ours");
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "x" },
            "spec": { "hostNetwork": true, "containers": [{ "name": "x", "image": "registry.invalid/x:1" }] },
        });
        fs::write(path("manifests/pod.json"), pod.to_string()).expect("it is ours");
        fs::write(folder.join("config.yaml"), config).expect("it is ours");
        let taken = self.silent.local_addr().expect("it is bound").port().to_string();
        let mut arguments = vec![
            format!("--config={}", path("config.yaml")),
            format!("--root-dir={}", path("root")),
            format!("--cert-dir={}", path("certificates")),
            format!("--hostname-override={node}"),
            "--v=2".to_owned(),
        ];
        let kubeconfig = || self.kubeconfig(node, case.access, &folder.join("kubeconfig")).display().to_string();
        match case.access {
            Access::None => {}
            Access::Missing => arguments.push(format!("--kubeconfig={}", path("none"))),
            Access::Bootstrap => {
                arguments.push(format!("--kubeconfig={}", path("none")));
                arguments.push(format!("--bootstrap-kubeconfig={}", kubeconfig()));
            }
            _ => arguments.push(format!("--kubeconfig={}", kubeconfig())),
        }
        arguments.extend(case.flags.iter().map(|flag| flag.replace("PORT", &taken)));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        said(Process::spawn(&contained(&kubelet.folder.join("kubelet"), &arguments), folder.join("log")), enough)
    }
}

#[test]
fn what_the_kubelet_says_in_trouble_is_known() {
    let field = Field::new();
    let cases: Vec<Case> = cases().into_iter().chain(cgroup_case()).collect();
    let (_, table) = FILES.into_iter().find(|(program, _)| *program == "kubelet").expect("its file");
    let rows: Vec<Row> = rows(table).expect("the table");
    let says = |kubelet: &Kubelet, case: &Case| {
        let is_of = |row: &Row| row.says == case.says && row.is_of(kubelet.minor);
        case.minors[0] <= kubelet.minor && kubelet.minor <= case.minors[1] && rows.iter().any(is_of)
    };
    let all = field.kubelets.iter().flat_map(|kubelet| cases.iter().map(move |case| (kubelet, case)));
    let all = all.filter(|(kubelet, case)| says(kubelet, case));
    let (waiting, done) = (Mutex::new(all), Mutex::new((Vec::new(), BTreeSet::new())));
    thread::scope(|scope| {
        for _ in 0..4 * thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((kubelet, case)) = { waiting.lock().expect("nobody panicked").next() } {
                    // What stops nothing is said before the kubelet has got there.
                    let is_over = |log: &str| case.wanted.is_some() || read(log).open().is_empty();
                    let log = field.run(kubelet, case, |log| rows_in(log).contains(case.says) && is_over(log));
                    let name = format!("{} of 1.{}", case.name, kubelet.minor);
                    let wrong = judge(&name, &log, case.says, case.wanted);
                    let mut done = done.lock().expect("nobody panicked");
                    done.0.extend(wrong);
                    done.1.extend(rows_in(&log));
                    done.0.extend(rows_in(&log).iter().filter_map(|printed| {
                        let row = rows.iter().find(|row| row.says == *printed)?;
                        (!row.is_of(kubelet.minor))
                            .then(|| format!("{name}: prints {printed}, which it does not by the table"))
                    }));
                }
            });
        }
    });
    let (wrong, mut printed) = done.into_inner().expect("nobody panicked");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));

    // A healthy one last: it complains at its start, too, and gets there.
    for (kubelet, node) in field.kubelets.iter().zip(["healthy", "healthy-too", "healthy-as-well"]) {
        let healthy = Case { name: "healthy", node, runtime: "", ..PLAIN };
        let is_ready = |log: &str| log.contains("just became ready") && log.contains("event=\"NodeReady\"");
        let log = field.run(kubelet, &healthy, is_ready);
        let journey = read(&log);
        assert_eq!(journey.came_to().map(|(phase, _)| phase), Some(Phase::Ready), "{log}");
        assert!(journey.open().is_empty() && log.lines().any(|line| line.starts_with('E')), "{log}");
        printed.extend(rows_in(&log));
    }
    if cgroup_case().is_none() {
        printed.insert("configured to not run on a host using cgroup v1");
    }
    assert_beside(&printed, BESIDE);
    assert_complete("kubelet", &printed, NOT_HERE);
}
