//! The kubelet's flags by name: those it has, and those it had.
//!
//! An unknown flag ends the kubelet at once: `failed to parse kubelet flag: unknown flag: --x`.

/// The minor version of Kubernetes 1 whose kubelet was asked for its flags: a newer one may have others.
pub const NEWEST: u32 = 37;

/// The flags of that kubelet.
// kubernetes v1.37.2 cmd/kubelet/app/options: its flag set, which tests/e2e/oracles prints; and what component-base's
// JSON logging, cobra and Windows add.
#[rustfmt::skip]
pub const KNOWN: &[&str] = &[
    "address", "allowed-unsafe-sysctls", "anonymous-auth", "authentication-token-webhook",
    "authentication-token-webhook-cache-ttl", "authorization-mode", "authorization-webhook-cache-authorized-ttl",
    "authorization-webhook-cache-unauthorized-ttl", "bootstrap-kubeconfig", "cert-dir", "cgroup-driver",
    "cgroup-root", "cgroups-per-qos", "client-ca-file", "cloud-provider", "cluster-dns", "cluster-domain", "config", "config-dir",
    "container-log-max-files", "container-log-max-size", "container-runtime-endpoint",
    "contention-profiling", "cpu-cfs-quota", "cpu-cfs-quota-period", "cpu-manager-policy",
    "cpu-manager-policy-options", "cpu-manager-reconcile-period", "enable-controller-attach-detach", "enable-debugging-handlers",
    "enable-server", "enforce-node-allocatable", "event-burst", "event-qps",
    "eviction-hard", "eviction-max-pod-grace-period", "eviction-minimum-reclaim",
    "eviction-pressure-transition-period", "eviction-soft", "eviction-soft-grace-period", "exit-on-lock-contention",
    "experimental-allocatable-ignore-eviction", "experimental-mounter-path", "fail-cgroupv1", "fail-swap-on", "feature-gates",
    "file-check-frequency", "hairpin-mode", "healthz-bind-address", "healthz-port", "help",
    "hostname-override", "housekeeping-interval", "http-check-frequency", "image-credential-provider-bin-dir",
    "image-credential-provider-config", "image-gc-high-threshold", "image-gc-low-threshold", "image-service-endpoint",
    "kernel-memcg-notification", "kube-api-burst", "kube-api-content-type", "kube-api-qps", "kube-reserved",
    "kube-reserved-cgroup", "kubeconfig", "kubelet-cgroups", "local-storage-capacity-isolation", "lock-file",
    "log-flush-frequency", "log-json-info-buffer-size", "log-json-split-stream", "log-text-info-buffer-size",
    "log-text-split-stream", "logging-format", "make-iptables-util-chains", "manifest-url",
    "manifest-url-header", "max-open-files", "max-pods", "maximum-dead-containers", "maximum-dead-containers-per-container",
    "memory-manager-policy", "minimum-container-ttl-duration", "minimum-image-ttl-duration", "node-ip", "node-labels",
    "node-status-max-images", "node-status-update-frequency", "oom-score-adj", "pod-cidr", "pod-manifest-path", "pod-max-pids",
    "pods-per-core", "port", "protect-kernel-defaults", "provider-id", "qos-reserved", "read-only-port", "register-node",
    "register-with-taints", "registry-burst", "registry-qps", "reserved-cpus", "reserved-memory", "resolv-conf", "root-dir",
    "rotate-certificates", "rotate-server-certificates", "runonce", "runtime-cgroups", "runtime-request-timeout",
    "seccomp-default", "serialize-image-pulls",
    "streaming-connection-idle-timeout", "sync-frequency", "system-cgroups", "system-reserved", "system-reserved-cgroup",
    "tls-cert-file", "tls-cipher-suites", "tls-min-version", "tls-private-key-file", "topology-manager-policy",
    "topology-manager-policy-options", "topology-manager-scope", "v", "version", "vmodule", "volume-plugin-dir",
    "volume-stats-agg-period", "windows-priorityclass", "windows-service",
];

/// Flags that take no second word.
// The same flag set: those with a NoOptDefVal.
#[rustfmt::skip]
const SWITCHES: &[&str] = &[
    "anonymous-auth", "authentication-token-webhook", "cgroups-per-qos", "contention-profiling", "cpu-cfs-quota",
    "enable-controller-attach-detach", "enable-debugging-handlers", "enable-server",
    "exit-on-lock-contention", "experimental-allocatable-ignore-eviction", "fail-cgroupv1", "fail-swap-on", "help",
    "kernel-memcg-notification", "local-storage-capacity-isolation", "log-json-split-stream",
    "log-text-split-stream", "make-iptables-util-chains", "protect-kernel-defaults", "register-node", "rotate-certificates",
    "rotate-server-certificates", "runonce", "seccomp-default", "serialize-image-pulls", "version",
    "windows-service",
];

/// Flags that are gone, each with the first minor version of Kubernetes 1 without it.
#[rustfmt::skip]
const REMOVED: &[(&str, u32)] = &[
    ("add-dir-header", 26), // KEP-2845
    ("allow-privileged", 15), // kubernetes#77820
    ("alsologtostderr", 26), // KEP-2845
    ("application-metrics-count-limit", 37), // kubernetes v1.37.0 cmd/kubelet/app/options/globalflags_linux.go
    ("azure-container-registry-config", 30), // kubernetes#122595
    ("boot-id-file", 37), // kubernetes v1.37.0 cmd/kubelet/app/options/globalflags_linux.go
    ("cloud-config", 34), // kubernetes#130161
    ("cni-bin-dir", 24), // kubernetes#106907
    ("cni-cache-dir", 24), // kubernetes#106907
    ("cni-conf-dir", 24), // kubernetes#106907
    ("container-hints", 37), // kubernetes v1.37.0 cmd/kubelet/app/options/globalflags_linux.go
    ("container-runtime", 27), // kubernetes#114017
    ("containerd", 37), // kubernetes v1.37.0 cmd/kubelet/app/options/globalflags_linux.go
    ("containerd-namespace", 37), // kubernetes v1.37.0 cmd/kubelet/app/options/globalflags_linux.go
    ("docker-endpoint", 24), // kubernetes#106907
    ("dynamic-config-dir", 24), // KEP-281
    ("enable-load-reader", 37), // kubernetes v1.37.0 cmd/kubelet/app/options/globalflags_linux.go
    ("event-storage-age-limit", 37), // kubernetes v1.37.0 cmd/kubelet/app/options/globalflags_linux.go
    ("event-storage-event-limit", 37), // kubernetes v1.37.0 cmd/kubelet/app/options/globalflags_linux.go
    ("experimental-dockershim-root-directory", 24), // kubernetes#106907
    ("global-housekeeping-interval", 37), // kubernetes v1.37.0 cmd/kubelet/app/options/globalflags_linux.go
    ("image-pull-progress-deadline", 24), // kubernetes#106907
    ("iptables-drop-bit", 31), // kubernetes#122363
    ("iptables-masquerade-bit", 31), // kubernetes#122363
    ("keep-terminated-pod-volumes", 31), // kubernetes#122082
    ("log-backtrace-at", 26), // KEP-2845
    ("log-cadvisor-usage", 37), // kubernetes v1.37.0 cmd/kubelet/app/options/globalflags_linux.go
    ("log-dir", 26), // KEP-2845
    ("log-file", 26), // KEP-2845
    ("log-file-max-size", 26), // KEP-2845
    ("logtostderr", 26), // KEP-2845
    ("machine-id-file", 37), // kubernetes v1.37.0 cmd/kubelet/app/options/globalflags_linux.go
    ("master-service-namespace", 27), // kubernetes#116015
    ("network-plugin", 24), // kubernetes#106907
    ("network-plugin-mtu", 24), // kubernetes#106907
    ("one-output", 26), // KEP-2845
    ("pod-infra-container-image", 35), // kubernetes#133779
    ("register-schedulable", 34), // kubernetes#122384
    ("skip-headers", 26), // KEP-2845
    ("skip-log-headers", 26), // KEP-2845
    ("stderrthreshold", 26), // KEP-2845
    ("storage-driver-buffer-duration", 37), // kubernetes v1.37.0 cmd/kubelet/app/options/globalflags_linux.go
    ("storage-driver-db", 37), // kubernetes v1.37.0 cmd/kubelet/app/options/globalflags_linux.go
    ("storage-driver-host", 37), // kubernetes v1.37.0 cmd/kubelet/app/options/globalflags_linux.go
    ("storage-driver-password", 37), // kubernetes v1.37.0 cmd/kubelet/app/options/globalflags_linux.go
    ("storage-driver-secure", 37), // kubernetes v1.37.0 cmd/kubelet/app/options/globalflags_linux.go
    ("storage-driver-table", 37), // kubernetes v1.37.0 cmd/kubelet/app/options/globalflags_linux.go
    ("storage-driver-user", 37), // kubernetes v1.37.0 cmd/kubelet/app/options/globalflags_linux.go
];

/// What became of a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recognized {
    Yes,
    /// Gone since this minor version of Kubernetes 1.
    Until(u32),
    /// Never heard of.
    No,
}

/// Looks a flag up by its name without dashes, `_` written as `-`.
pub fn look_up(name: &str) -> Recognized {
    if KNOWN.binary_search(&name).is_ok() {
        return Recognized::Yes;
    }
    match REMOVED.binary_search_by_key(&name, |(removed, _)| removed) {
        Ok(at) => REMOVED.get(at).map_or(Recognized::No, |&(_, minor)| Recognized::Until(minor)),
        // cAdvisor's flags about Docker came and went with cAdvisor.
        Err(_) if name == "docker" || name.starts_with("docker-") => Recognized::Yes,
        Err(_) => Recognized::No,
    }
}

pub fn is_switch(name: &str) -> bool {
    // These are gone, and old user data still has them.
    SWITCHES.binary_search(&name).is_ok()
        || matches!(name, "allow-privileged" | "logtostderr" | "alsologtostderr" | "register-schedulable")
        || matches!(name, "enable-load-reader" | "log-cadvisor-usage" | "storage-driver-secure")
}

/// The flag that was probably meant.
pub fn nearest(name: &str) -> Option<&'static str> {
    KNOWN.iter().find(|known| is_near(known, name)).copied()
}

/// Whether two letters were changed, or one is too many or missing, wherever it stands.
pub fn is_near(known: &str, name: &str) -> bool {
    let differing = || known.bytes().zip(name.bytes()).filter(|(a, b)| a != b).count();
    (known.len() == name.len() && differing() <= 2) || one_letter_apart(known, name) || one_letter_apart(name, known)
}

/// Whether `longer` without one of its letters is `shorter`.
pub fn one_letter_apart(longer: &str, shorter: &str) -> bool {
    if longer.len() != shorter.len() + 1 {
        return false;
    }
    let common = longer.bytes().zip(shorter.bytes()).take_while(|(a, b)| a == b).count();
    longer.as_bytes().get(common + 1..) == shorter.as_bytes().get(common..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_sorted_and_do_not_overlap() {
        assert!(KNOWN.is_sorted() && SWITCHES.is_sorted() && REMOVED.is_sorted());
        assert!(REMOVED.iter().all(|(name, _)| KNOWN.binary_search(name).is_err()));
        assert!(SWITCHES.iter().all(|name| look_up(name) == Recognized::Yes));
    }

    #[test]
    fn flags_are_known_gone_or_never_heard_of() {
        assert_eq!(look_up("register-with-taints"), Recognized::Yes);
        assert_eq!(look_up("container-runtime"), Recognized::Until(27));
        assert_eq!(look_up("containerd"), Recognized::Until(37));
        assert_eq!(look_up("housekeeping-interval"), Recognized::Yes);
        assert!(is_switch("log-cadvisor-usage") && !is_switch("containerd"));
        assert_eq!(look_up("container-runtime-endpoint"), Recognized::Yes);
        assert_eq!(look_up("register-with-taint"), Recognized::No);
    }

    #[test]
    fn a_misspelt_flag_has_a_nearest_one() {
        assert_eq!(nearest("register-with-taint"), Some("register-with-taints"));
        assert_eq!(nearest("node-lables"), Some("node-labels"));
        assert_eq!(nearest("nodes-labels"), Some("node-labels"));
        assert_eq!(nearest("frobnicate"), None);
    }
}
