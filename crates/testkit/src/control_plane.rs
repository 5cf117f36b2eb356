//! A real Kubernetes control plane for tests: etcd and kube-apiserver, without containers and without nodes.
//!
//! `crates/programs/control-plane/README.md` says what runs and what it costs.

mod cloud_controller;
mod etcd;
pub mod identity;
mod karpenter;
pub mod kubelet;
pub mod nodewhy;
pub mod process;
pub mod recipes;
mod replay;

use std::{
    ffi::OsStr,
    fmt::Display,
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use crate::patience::Patience;
use serde_json::{Value, json};
use tempfile::TempDir;

pub use nodewhy::Nodewhy;
pub use process::{Process, free_ports};
pub use programs::control_plane::{self as binaries, NEWEST_KARPENTER};

/// The administrator's token. The server listens on the loopback interface and lives as long as one test.
const ADMIN_TOKEN: &str = "administrator";

/// Issuer of `ServiceAccount` tokens, in a name that every cluster's tokens carry.
const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// Every write, once it is answered.
const AUDIT_POLICY: &str = r#"{
    "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived", "ResponseStarted"],
    "rules": [{ "level": "Metadata", "verbs": ["create", "update", "patch", "delete", "deletecollection"] }]
}"#;

#[must_use = "it is killed when it is dropped"]
pub struct ControlPlane {
    // Fields are dropped in this order: the client of etcd before etcd, the folder with their data last.
    apiserver: Process,
    apiserver_command: Command,
    _etcd: Process,
    endpoint: String,
    etcd_port: u16,
    clients: identity::Authority,
    folder: TempDir,
}

impl ControlPlane {
    /// Starts etcd and kube-apiserver and returns when the API is ready. Panics, with the end of the server's log, when
    /// it never is.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same with more flags for kube-apiserver.
    pub fn start_with(flags: &[&str]) -> Self {
        let folder =
            tempfile::Builder::new().prefix("control-plane-").tempdir_in(crate::scratch()).expect("target is writable");
        let path = folder.path();
        let [etcd_port, peer_port, api_port] = free_ports();

        let etcd_url = format!("http://127.0.0.1:{etcd_port}");
        let peer_url = format!("http://127.0.0.1:{peer_port}");
        let mut etcd = Command::new(binaries::control_plane("etcd"));
        etcd.arg(flag("data-dir", path.join("etcd")))
            .arg(flag("listen-client-urls", &etcd_url))
            .arg(flag("advertise-client-urls", &etcd_url))
            .arg(flag("listen-peer-urls", &peer_url))
            .arg(flag("initial-advertise-peer-urls", &peer_url))
            .arg(flag("initial-cluster", format!("default={peer_url}")))
            .arg("--unsafe-no-fsync")
            // A hundred thousand Nodes need more than the usual two.
            .arg(flag("quota-backend-bytes", (8_u64 << 30).to_string()));
        let etcd = Process::spawn(&etcd, path.join("etcd.log"));

        let key = rcgen::KeyPair::generate().expect("ring makes a key");
        fs::write(path.join("service-account.key"), key.serialize_pem()).expect("the folder is writable");
        fs::write(path.join("service-account.pub"), key.public_key_pem()).expect("the folder is writable");
        fs::write(path.join("tokens.csv"), format!("{ADMIN_TOKEN},administrator,administrator,system:masters\n"))
            .expect("the folder is writable");
        let clients = identity::authority();
        fs::write(path.join("clients.crt"), clients.pem()).expect("the folder is writable");
        fs::write(path.join("audit-policy.json"), AUDIT_POLICY).expect("the folder is writable");
        let mut command = Command::new(binaries::control_plane("kube-apiserver"));
        command
            .arg(flag("etcd-servers", &etcd_url))
            .arg("--bind-address=127.0.0.1")
            .arg(flag("secure-port", api_port.to_string()))
            .arg(flag("cert-dir", path))
            .arg(flag("service-account-issuer", ISSUER))
            .arg(flag("service-account-key-file", path.join("service-account.pub")))
            .arg(flag("service-account-signing-key-file", path.join("service-account.key")))
            .arg(flag("token-auth-file", path.join("tokens.csv")))
            .arg(flag("client-ca-file", path.join("clients.crt")))
            .arg(flag("audit-policy-file", path.join("audit-policy.json")))
            .arg(flag("audit-log-path", path.join("audit.log")))
            .args(["--authorization-mode=Node,RBAC", "--service-cluster-ip-range=10.0.0.0/24", "--allow-privileged"])
            // Nobody makes the default ServiceAccount that this plug-in demands of every Pod.
            .args(["--enable-admission-plugins=NodeRestriction", "--disable-admission-plugins=ServiceAccount"])
            .args(flags);
        let endpoint = format!("https://127.0.0.1:{api_port}");
        write_kubeconfig(path, "administrator", &endpoint, &json!({ "token": ADMIN_TOKEN }));
        let apiserver = start_apiserver(&command, path);
        Self { apiserver, apiserver_command: command, _etcd: etcd, endpoint, etcd_port, clients, folder }
    }

    /// The process of kube-apiserver.
    pub fn apiserver(&self) -> u32 {
        self.apiserver.id()
    }

    /// The port of the loopback interface where kube-apiserver answers.
    pub fn port(&self) -> u16 {
        let port = self.endpoint.rsplit(':').next().and_then(|port| port.parse().ok());
        port.expect("`start_with` has written it")
    }

    /// Kills kube-apiserver, does something while it is away, and starts it again at the same address.
    pub fn restart_apiserver(&mut self, meanwhile: impl FnOnce(&Path)) {
        self.apiserver.kill();
        meanwhile(self.folder.path());
        self.apiserver = start_apiserver(&self.apiserver_command, self.folder.path());
    }

    /// Forgets every earlier state in etcd: nobody can go on from there.
    pub fn compact(&self) {
        etcd::compact(self.etcd_port);
    }

    /// Starts kube-controller-manager: node lifecycle, garbage collection, deletion of namespaces. It stops when the
    /// value is dropped.
    pub fn controller_manager(&self) -> Process {
        let mut command = Command::new(binaries::control_plane("kube-controller-manager"));
        command
            .arg(flag("kubeconfig", self.kubeconfig()))
            .arg(flag("service-account-private-key-file", self.folder.path().join("service-account.key")))
            .args(["--leader-elect=false", "--secure-port=0"]);
        let mut process = self.spawn("kube-controller-manager", &command);
        process.wait_until_ready(Duration::from_mins(1), || self.get(&["serviceaccount", "default"]).is_some());
        process
    }

    /// Starts a program that talks to this control plane. Its log is kept with the others, under `name`.
    pub fn spawn(&self, name: &str, command: &Command) -> Process {
        Process::spawn(command, self.folder.path().join(format!("{name}.log")))
    }

    /// The writes of a user so far, as the API server's audit log has them.
    pub fn writes_of(&self, user: &str) -> Vec<Value> {
        let log = fs::read_to_string(self.folder.path().join("audit.log")).unwrap_or_default();
        // The last line may be half written.
        let events = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        events.filter(|event| event["user"]["username"] == user).collect()
    }

    /// Makes a Node older. The API server sets the time of creation itself and lets nobody change it, so it is changed
    /// where it is stored.
    pub fn age_node(&self, name: &str, by: Duration) {
        etcd::age(self.etcd_port, &format!("/registry/minions/{name}"), by);
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        kubeconfig(self.folder.path(), "administrator")
    }

    /// A kubeconfig with a token of the `ServiceAccount` `name`, which must exist: what it may do is what RBAC gave it.
    pub fn kubeconfig_for(&self, namespace: &str, name: &str) -> PathBuf {
        let token = self.kubectl(&["create", "token", name, "--namespace", namespace]);
        write_kubeconfig(
            self.folder.path(),
            &format!("{namespace}-{name}"),
            &self.endpoint,
            &json!({ "token": token.trim() }),
        )
    }

    /// A client with the administrator's rights.
    pub async fn client(&self) -> kube::Client {
        let kubeconfig = kube::config::Kubeconfig::read_from(self.kubeconfig()).expect("start() wrote it");
        let config =
            kube::Config::from_custom_kubeconfig(kubeconfig, &kube::config::KubeConfigOptions::default()).await;
        kube::Client::try_from(config.expect("its context is complete")).expect("its certificate is valid")
    }

    /// What kubectl writes to standard output; panics when it fails.
    pub fn kubectl(&self, arguments: &[&str]) -> String {
        self.try_kubectl(arguments).unwrap_or_else(|error| panic!("kubectl {}: {error}", arguments.join(" ")))
    }

    /// What kubectl writes to standard output, or to standard error when it fails.
    pub fn try_kubectl(&self, arguments: &[&str]) -> Result<String, String> {
        self.try_kubectl_with_input(arguments, "")
    }

    /// The same, for `--filename=-`.
    pub fn try_kubectl_with_input(&self, arguments: &[&str], input: impl Display) -> Result<String, String> {
        kubectl(self.folder.path(), arguments, &input.to_string())
    }

    /// Patches an object's status; `how` is kubectl's `--type`.
    pub fn patch_status(&self, kind: &str, name: &str, how: &str, patch: &Value) {
        self.try_patch_status(kind, name, how, patch).unwrap_or_else(|error| panic!("{kind} {name}: {error}"));
    }

    /// The same, with what kubectl says where it fails.
    pub fn try_patch_status(&self, kind: &str, name: &str, how: &str, patch: &Value) -> Result<String, String> {
        let (how, patch) = (format!("--type={how}"), patch.to_string());
        self.try_kubectl(&["patch", kind, name, "--subresource=status", &how, "--patch", &patch])
    }

    /// Applies YAML or JSON, server-side.
    pub fn apply(&self, manifest: impl Display) {
        let applied =
            self.try_kubectl_with_input(&["apply", "--server-side", "--force-conflicts", "--filename=-"], &manifest);
        applied.unwrap_or_else(|error| panic!("{error}\nin\n{manifest}"));
    }

    /// Applies a file, or the files of a folder, server-side.
    pub fn apply_path(&self, path: &Path) {
        self.kubectl(&["apply", "--server-side", "--force-conflicts", "--filename", &path.to_string_lossy()]);
    }

    /// Applies definitions of kinds, and waits until the API server serves them.
    pub fn apply_crds(&self, path: &Path) {
        self.apply_path(path);
        self.kubectl(&["wait", "--for=condition=Established", "customresourcedefinition", "--all", "--timeout=120s"]);
    }

    /// One object (`&["node", "a"]`), or a list; nothing when the object does not exist. An API server that has much
    /// to do may answer nothing at first.
    pub fn get(&self, arguments: &[&str]) -> Option<Value> {
        let patience = Patience::of(Duration::from_secs(20));
        loop {
            // Not --ignore-not-found: that writes nothing for an empty list either.
            match self.try_kubectl(&[&["get", "--output=json"], arguments].concat()) {
                Ok(json) => return Some(serde_json::from_str(&json).expect("kubectl writes JSON")),
                Err(error) if error.contains("(NotFound)") => return None,
                Err(error) => assert!(!patience.is_over(), "kubectl get {}: {error}", arguments.join(" ")),
            }
            thread::sleep(Duration::from_millis(200));
        }
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        if thread::panicking() {
            self.folder.disable_cleanup(true);
            eprintln!("the logs of the control plane are in {}", self.folder.path().display());
        }
    }
}

fn start_apiserver(command: &Command, folder: &Path) -> Process {
    let mut apiserver = Process::spawn(command, folder.join("kube-apiserver.log"));
    apiserver.wait_until_ready(Duration::from_mins(1), || kubectl(folder, &["get", "--raw=/readyz"], "").is_ok());
    apiserver
}

fn flag(name: &str, value: impl AsRef<OsStr>) -> std::ffi::OsString {
    let mut flag = std::ffi::OsString::from(format!("--{name}="));
    flag.push(value);
    flag
}

fn kubeconfig(folder: &Path, user: &str) -> PathBuf {
    folder.join(format!("{user}.kubeconfig"))
}

/// JSON is YAML. The certificate is the one that kube-apiserver makes for itself in its `--cert-dir`.
fn write_kubeconfig(folder: &Path, user: &str, endpoint: &str, credentials: &Value) -> PathBuf {
    let path = kubeconfig(folder, user);
    let content = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "test", "cluster": { "server": endpoint, "certificate-authority": folder.join("apiserver.crt") } }],
        "users": [{ "name": user, "user": credentials }],
        "contexts": [{ "name": "test", "context": { "cluster": "test", "user": user } }],
        "current-context": "test",
    });
    fs::write(&path, content.to_string()).expect("the folder is writable");
    path
}

/// kubectl as administrator, its cache in the test's own folder: the usual one in the home directory is kept by port,
/// and ports come back.
fn kubectl(folder: &Path, arguments: &[&str], input: &str) -> Result<String, String> {
    let mut child = Command::new(binaries::control_plane("kubectl"))
        .arg(flag("kubeconfig", kubeconfig(folder, "administrator")))
        .arg(flag("cache-dir", folder.join("kubectl")))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    // A kubectl that fails early has closed the pipe; what it says then is in its standard error.
    let _ = child.stdin.take().expect("stdin is a pipe").write_all(input.as_bytes());
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}
