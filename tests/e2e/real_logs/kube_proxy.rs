//! kube-proxy against the real API server, on a machine whose kernel and tools a case says. What it tells iptables
//! reaches nobody.

use crate::real_logs::{assert_complete, contained, judge, prefixed, read, rows_in, said};
use logs::fact::{Reason, Trouble};
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use testkit::control_plane::{ControlPlane, Process, free_ports};
use testkit::programs::agents;

struct Case {
    /// The folder of the kubelet whose version it has.
    version: &'static str,
    /// The programs that stand for iptables.
    iptables: &'static [&'static str],
    flags: &'static [&'static str],
    /// The file it is given in place of flags.
    config: &'static str,
    /// A command that takes something from its machine first.
    without: &'static str,
    says: &'static str,
    wanted: (Trouble, Option<Reason>),
}

const NEWEST: &str = "kubelet";
const BEFORE: &str = "kubelet-1.34";

/// Nothing is asked of the kernel's connection tracking.
const NO_CONNTRACK: [&str; 4] = [
    "--conntrack-max-per-core=0",
    "--conntrack-min=0",
    "--conntrack-tcp-timeout-established=0s",
    "--conntrack-tcp-timeout-close-wait=0s",
];
const PREFIX: &str = "[pod/kube-proxy-x7k2p/kube-proxy]";

const CONFIG: &str = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n";
/// The limit is that of the user namespace it runs in.
const NO_INOTIFY: &str = "echo 0 > /proc/sys/user/max_inotify_instances";

const BOTH: &[&str] = &["iptables", "ip6tables"];

const PLAIN: Case = Case {
    version: NEWEST,
    iptables: BOTH,
    flags: &[],
    config: "",
    without: ":",
    says: "",
    wanted: (Trouble::KubeProxyFails, None),
};

fn cases() -> Vec<Case> {
    vec![
        Case { config: "apiVersion: kubeproxy.config.k8s.io/v1", says: "failed complete: {configuration}", ..PLAIN },
        Case {
            config: CONFIG,
            without: NO_INOTIFY,
            says: "failed complete: fsnotify watcher init: too many {files}",
            ..PLAIN
        },
        Case {
            version: BEFORE,
            config: CONFIG,
            without: NO_INOTIFY,
            says: "failed complete: too many {files}",
            ..PLAIN
        },
        Case { flags: &["--proxy-mode=ebpf"], says: "failed validate: {configuration}", ..PLAIN },
        Case {
            flags: &["--conntrack-min=1", "--conntrack-max-per-core=1"],
            says: "could not set conntrack parameters from kube-proxy configuration: {kernel}",
            ..PLAIN
        },
        Case {
            version: BEFORE,
            flags: &["--conntrack-min=1", "--conntrack-max-per-core=1"],
            says: "\"command failed\" err=\"open /proc/sys/net/{kernel}: no such file or directory",
            ..PLAIN
        },
        Case { iptables: &[], says: "iptables is not available on this host{kernel}", ..PLAIN },
        Case { iptables: &["ip6tables"], says: "no support for primary IP family {family}", ..PLAIN },
        Case {
            iptables: &["iptables"],
            flags: &["--cluster-cidr=fd00::/64", "--detect-local-mode=ClusterCIDR"],
            says: "kube-proxy configuration is incorrect: {configuration}",
            ..PLAIN
        },
        Case { flags: &["--proxy-mode=ipvs"], says: "can't use the IPVS proxier: {kernel}", ..PLAIN },
        Case { flags: &["--proxy-mode=nftables"], says: "unable to create proxier: {kernel}", ..PLAIN },
        Case {
            flags: &["--bind-address-hard-fail", "--metrics-bind-address=127.0.0.1:TAKEN"],
            says: "Error running ProxyServer\" err={error}",
            ..PLAIN
        },
        Case {
            flags: &["--master=https://abc.gr7.eks.invalid"],
            says: "Failed to watch{}dial tcp{why}",
            wanted: (Trouble::ApiServerUnreachable, Some(Reason::NameNotFound)),
            ..PLAIN
        },
    ]
}

const NOT_HERE: &[(&str, &str)] = &[
    (
        "\"nftables sync failed\" err={rules}
        \"Failed to execute iptables-restore\" {rules}",
        "it needs a kernel, or sets of another nft, that the rules do not fit",
    ),
    (
        "\"Failed to execute iptables-restore\"{}missing kernel module?{module}",
        "it needs a kernel that lacks the module",
    ),
];

struct Field {
    folder: tempfile::TempDir,
    control_plane: ControlPlane,
    taken: TcpListener,
}

impl Field {
    fn run(&self, number: usize, case: &Case, enough: impl Fn(&str) -> bool) -> String {
        let folder = self.folder.path().join(number.to_string());
        fs::create_dir_all(&folder).expect("it is ours");
        for name in case.iptables {
            let script = folder.join(name);
            fs::write(&script, "#!/bin/sh\necho 'iptables v1.8.9 (legacy)'\n").expect("it is ours");
            fs::set_permissions(script, fs::Permissions::from_mode(0o755)).expect("it is ours");
        }
        let [health, metrics] = free_ports();
        let mut flags = vec![
            format!("--kubeconfig={}", self.control_plane.kubeconfig().display()),
            "--hostname-override=ip-10-0-3-9".to_owned(),
            format!("--healthz-bind-address=127.0.0.1:{health}"),
            format!("--metrics-bind-address=127.0.0.1:{metrics}"),
            "--iptables-localhost-nodeports=false".to_owned(),
        ];
        flags.extend(NO_CONNTRACK.map(str::to_owned));
        let taken = self.taken.local_addr().expect("it is bound").port().to_string();
        flags.extend(case.flags.iter().map(|flag| flag.replace("TAKEN", &taken)));
        if !case.config.is_empty() {
            let config = folder.join("config");
            fs::write(&config, case.config).expect("it is ours");
            flags = vec![format!("--config={}", config.display())];
        }
        // What it would set of the kernel is not there.
        let without = case.without;
        let script = format!(r#"mount -t tmpfs tmpfs /proc/sys/net && {without} && PATH=$1 && shift && exec "$@""#);
        let (program, path) = (agents::kube_proxy(case.version).display().to_string(), folder.display().to_string());
        let mut arguments = vec!["-c", &script, "sh", &path, &program];
        arguments.extend(flags.iter().map(String::as_str));
        let process = Process::spawn(&contained(Path::new("sh"), &arguments), folder.join("log"));
        prefixed(PREFIX, &said(process, |log| enough(&prefixed(PREFIX, log))))
    }
}

#[test]
fn what_kube_proxy_says_in_trouble_is_known() {
    let control_plane = ControlPlane::start();
    control_plane.apply(json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "ip-10-0-3-9" } }));
    let addresses = json!({ "status": { "addresses": [{ "type": "InternalIP", "address": "10.0.3.9" }] } });
    control_plane.patch_status("node", "ip-10-0-3-9", "merge", &addresses);
    let folder = tempfile::TempDir::new().expect("a folder");
    let taken = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
    let field = Field { folder, control_plane, taken };

    let (mut wrong, mut printed) = (Vec::new(), BTreeSet::new());
    let cases = cases();
    for (number, case) in cases.iter().enumerate() {
        let log = field.run(number, case, |log| rows_in(log).contains(case.says));
        wrong.extend(judge(case.says, &log, case.says, Some(case.wanted)));
        printed.extend(rows_in(&log));
    }
    // One that works complains at its start, too.
    let synced = "Caches are synced{}service config";
    let log = field.run(cases.len(), &PLAIN, |log| rows_in(log).contains(synced));
    // Later its iptables fail, which only answer for their version.
    let log: String = log.split_inclusive('\n').take_while(|line| !line.contains("Failed to execute")).collect();
    assert!(read(&log).open().is_empty() && log.contains(&format!("{PREFIX} E")), "{log}");
    printed.extend(rows_in(&log));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_complete("kube-proxy", &printed, NOT_HERE);
}
