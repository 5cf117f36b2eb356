//! The meaning of the messages with which the kubelet, the container runtime or an agent itself reports why a container
//! does not run.

use crate::explain::pull::{self, Pull};
use crate::facts::kernel_module;
use crate::objects::OUT_OF_MEMORY;
use std::borrow::Cow;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Meaning<'t> {
    /// The kubelet has not read the Services once.
    NoServices,
    /// An object that the pod's text refers to does not exist. A Secret's name is masked in quotes.
    Missing {
        kind: &'static str,
        name: Option<&'t str>,
        key: bool,
    },
    Image(Pull),
    OutOfMemory,
    /// The node has another architecture than the image.
    Architecture,
    /// The image is built for newer processors than the node's.
    Processor,
    /// The node's kernel lacks a module, or the agent's own modprobe cannot load it.
    KernelModule,
    /// The kubelet refuses each image, because the runtime names no size of it.
    ImageWithoutSize,
    /// The loaded kernel module of NVIDIA's driver is of another version than its libraries.
    DriverVersions,
    /// The VPC CNI does not know the instance type.
    InstanceType,
    /// The Node gets no range of addresses for its pods.
    NoPodCidr,
    /// The API server denies a call to this user.
    Forbidden {
        account: &'t str,
        what: &'t str,
    },
    /// AWS denies a call.
    AwsDenied {
        action: &'t str,
    },
    /// AWS rejects the ServiceAccount's token.
    WebIdentity,
    /// The container cannot reach the instance's metadata.
    Metadata,
    /// The container cannot reach the API server at this address.
    ApiServer {
        address: &'t str,
    },
    /// containerd does not have this runtime.
    Runtime {
        name: &'t str,
    },
    /// The program that containerd names as its runtime is not on the Node.
    RuntimeProgram {
        name: &'t str,
    },
    /// containerd's entry for the runtime does not say what it is.
    RuntimeWithoutType,
    /// The program that starts pods ends before it does anything.
    RuntimeEnds,
    /// The file with the kubelet's own name servers is not on the Node.
    ResolverFile {
        path: &'t str,
    },
    /// The kubelet names cgroups for one driver, and the runtime uses the other.
    CgroupDriver,
    /// containerd looks for a network plugin's program in another place than DaemonSets put theirs.
    PluginPath {
        program: &'t str,
        path: &'t str,
    },
    /// A plugin refuses the pod its network.
    CniPlugin {
        plugin: &'t str,
        /// The configuration's name of the network, if it has one.
        network: Option<&'t str>,
    },
    /// A path of the Node is not of the kind that the volume requires.
    HostPath {
        path: &'t str,
        kind: &'t str,
    },
    /// Another program on the Node has the port that it needs.
    PortTaken {
        port: Option<u16>,
    },
    /// It must not run as root, but its image does.
    RunsAsRoot,
    /// The runtime reports it as running, but it has stopped.
    StoppedUnnoticed,
    /// The runtime cannot start the container as its text describes it.
    Start,
}

pub(super) fn meaning(said: &str) -> Option<Meaning<'_>> {
    // Source: kubernetes v1.36.3 pkg/kubelet/kubelet_pods.go `getServiceEnvVarMap`.
    if said.contains("services have not yet been read at least once") {
        return Some(Meaning::NoServices);
    }
    if let Some(missing) = missing(said) {
        return Some(missing);
    }
    if said.contains(OUT_OF_MEMORY) {
        return Some(Meaning::OutOfMemory);
    }
    // containerd v2.1 internal/cri/config/config.go `GetSandboxRuntime`; an AL2023 image without the NVIDIA toolkit.
    if let Some(name) = quoted_after(said, "no runtime for ") {
        return Some(Meaning::Runtime { name });
    }
    if let Some(name) = runtime_program(said) {
        return Some(Meaning::RuntimeProgram { name });
    }
    // containerd v2.1 core/metadata/containers.go `validateContainer`; NVIDIA/nvidia-container-toolkit#1956.
    if said.contains("container.Runtime.Name must be set") {
        return Some(Meaning::RuntimeWithoutType);
    }
    // containerd v2.1 cmd/containerd-shim-runc-v2/process/init.go `runtimeError`, where runc has left no log.
    if said.contains("runc did not terminate successfully: exit status 127") {
        return Some(Meaning::RuntimeEnds);
    }
    if let Some(path) = resolver_file(said) {
        return Some(Meaning::ResolverFile { path });
    }
    // kubernetes v1.36.3 cri-client/pkg/remote_image.go `imageStatusV1`; Mirantis/cri-dockerd#299.
    if said.contains("Id or size of image ") && said.contains(" is not set") {
        return Some(Meaning::ImageWithoutSize);
    }
    // runc v1.3 libcontainer/specconv/spec_linux.go `CreateCgroupConfig`.
    if said.contains("expected cgroupsPath to be of format") {
        return Some(Meaning::CgroupDriver);
    }
    // kubernetes v1.36.3 pkg/volume/hostpath/host_path.go `checkTypeInternal`.
    let host_path = said.split_once("hostPath type check failed: ").and_then(|(_, rest)| rest.split_once(" is not a "));
    if let Some((path, kind)) = host_path {
        return Some(Meaning::HostPath { path, kind });
    }
    // kubernetes v1.36.3 pkg/kubelet/kuberuntime/security_context_others.go `verifyRunAsNonRoot`.
    let as_root = ["has runAsNonRoot and image", "runAsUser breaks non-root policy"];
    if as_root.iter().any(|part| said.contains(part)) {
        return Some(Meaning::RunsAsRoot);
    }
    // runc 1.1 libcontainer/container_linux.go, containerd v1.7.20 pkg/process/init_state.go: the kubelet asks for what
    // it takes for running.
    if said.contains("cannot exec in a stopped ") {
        return Some(Meaning::StoppedUnnoticed);
    }
    if said.contains("exec format error") {
        return Some(Meaning::Architecture);
    }
    // glibc 2.34 sysdeps/x86/dl-get-cpu-features.c: `CPU does not support x86-64-v2`; Amazon Linux 2023 says the like
    // of ARM: amazonlinux/amazon-linux-2023#850.
    let is_processor = |rest: &str| rest.contains("CPU does not support") || rest.contains("requires a newer");
    if said.split_once("Fatal glibc error: ").is_some_and(|(_, rest)| is_processor(rest)) {
        return Some(Meaning::Processor);
    }
    if let Some(pull) = pull::explain(said) {
        return Some(Meaning::Image(pull));
    }
    if kernel_module::is_missing(said) {
        return Some(Meaning::KernelModule);
    }
    // NVIDIA/go-nvml v0.12 gen/nvml/nvml.h `NVML_ERROR_LIB_RM_VERSION_MISMATCH`, as nvmlErrorString tells it.
    if said.contains("Driver/library version mismatch") {
        return Some(Meaning::DriverVersions);
    }
    // amazon-vpc-cni-k8s v1.9.0 pkg/awsutils/awsutils.go `UnknownInstanceType`.
    if said.contains("unknown instance type") {
        return Some(Meaning::InstanceType);
    }
    // cilium v1.14 pkg/k8s/init.go `WaitForNodeInformation`; v1.16 the same.
    if said.contains("PodCIDR not available") {
        return Some(Meaning::NoPodCidr);
    }
    // Source: k8s.io/apimachinery v0.36.3 pkg/api/errors `NewForbidden`, apiserver endpoints/handlers/responsewriters
    // `forbiddenMessage`.
    if let Some(account) = quoted_after(said, "User ").and_then(|user| user.strip_prefix("system:serviceaccount:"))
        && let Some((_, what)) = said.split_once(" cannot ")
    {
        return Some(Meaning::Forbidden { account, what: first_sentence(what) });
    }
    if ["AssumeRoleWithWebIdentity", "InvalidIdentityToken", "WebIdentityErr"].iter().any(|part| said.contains(part)) {
        return Some(Meaning::WebIdentity);
    }
    if ["not authorized to perform", "UnauthorizedOperation", "AccessDenied"].iter().any(|part| said.contains(part)) {
        let word = said.split([' ', ',', ';', '"']).find(|word| is_action(word));
        return Some(Meaning::AwsDenied { action: word.unwrap_or("AWS") });
    }
    let unreachable =
        ["i/o timeout", "connection refused", "no route to host", "deadline exceeded", "context canceled"];
    if unreachable.iter().any(|part| said.contains(part)) {
        if said.contains("169.254.169.254") || said.contains("IMDS") {
            return Some(Meaning::Metadata);
        }
        if let Some(address) = api_server(said) {
            return Some(Meaning::ApiServer { address });
        }
    }
    if let Some(taken) = port_taken(said) {
        return Some(taken);
    }
    if let Some((program, path)) = plugin_path(said) {
        return Some(Meaning::PluginPath { program, path });
    }
    if let Some((plugin, network)) = cni_plugin(said) {
        return Some(Meaning::CniPlugin { plugin, network });
    }
    // containerd v2.1 and runc: what the kubelet repeats under these reasons is the runtime's own error. One that
    // passes, such as a deadline under load, is not the text's fault.
    // Source: kubernetes v1.36.3 pkg/kubelet/kuberuntime/kuberuntime_container.go,
    // pkg/kubelet/container/sync_result.go.
    let is_text = ["no such file", "not found", "permission denied", "not permitted", "not a directory", "invalid"]
        .iter()
        .any(|part| said.contains(part));
    if ["RunContainerError", "CreateContainerError", "StartError"].iter().any(|reason| said.contains(reason)) && is_text
    {
        return Some(Meaning::Start);
    }
    None
}

/// `…: fork/exec /usr/bin/nvidia-container-runtime: no such file or directory`, `…: exec: "crun": executable file not
/// found in $PATH`. Where the runtime could be started, it has left an error of its own.
/// Source: containerd v2.1 cmd/containerd-shim-runc-v2/process/init.go `runtimeError`.
fn runtime_program(said: &str) -> Option<&str> {
    let (_, rest) = said.split_once("unable to retrieve OCI runtime error")?;
    let (program, why) = match rest.split_once("fork/exec ") {
        Some((_, rest)) => rest.split_once(": ")?,
        None => rest.split_once("exec: \"")?.1.split_once("\": ")?,
    };
    let absent = why.starts_with("no such file") || why.starts_with("executable file not found");
    program.rsplit('/').next().filter(|name| absent && !name.is_empty())
}

/// `Failed to create pod sandbox: open /run/systemd/resolve/resolv.conf: no such file or directory`. It has not come
/// from the runtime (`rpc error: …`), and the kubelet opens no other file for a sandbox.
/// Source: kubernetes v1.36.3 pkg/kubelet/kuberuntime/kuberuntime_sandbox.go `generatePodSandboxConfig`.
fn resolver_file(said: &str) -> Option<&str> {
    let (_, rest) = said.split_once("Failed to create pod sandbox: open ")?;
    let (path, why) = rest.split_once(": ")?;
    why.starts_with("no such file").then_some(path)
}

/// `listen tcp 127.0.0.1:50052: bind: address already in use`, `[Errno 98] Address already in use`
/// Sources: golang/go go1.26 src/net/net.go `OpError.Error`, src/syscall/zerrors_linux_amd64.go (EADDRINUSE); glibc's
/// words for it begin large.
fn port_taken(said: &str) -> Option<Meaning<'_>> {
    let (before, _) = said.split_once("ddress already in use")?;
    let before = before.trim_end_matches(['a', 'A', ' ']).trim_end_matches("bind:").trim_end_matches([':', ' ']);
    let port = before.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).filter(|port| *port != 0);
    Some(Meaning::PortTaken { port })
}

/// `failed to find plugin "aws-cni" in path [/home/containerd/opt/cni/bin]`
/// Source: containernetworking/cni v1.3.0 pkg/invoke/find.go; containerd v2.1 internal/cri/config/config_unix.go.
fn plugin_path(said: &str) -> Option<(&str, &str)> {
    const USUAL: &str = "/opt/cni/bin";
    let program = quoted_after(said, "failed to find plugin ")?;
    let (path, _) = said.split_once(" in path [")?.1.split_once(']')?;
    (!path.is_empty() && path.split(' ').all(|one| one.trim_end_matches('/') != USUAL)).then_some((program, path))
}

/// `plugin type="aws-cni" name="aws-cni" failed (add): …`
/// Source: containernetworking/cni v1.3.0 libcni/api.go `pluginDescription`.
fn cni_plugin(said: &str) -> Option<(&str, Option<&str>)> {
    let plugin = quoted_after(said, "plugin type=")?;
    let (_, rest) = said.split_once("plugin type=")?;
    let (network, _) = rest.split_once(" failed (add)")?;
    Some((plugin, quoted_after(network, " name=")))
}

/// `configmap "x" not found`, `secret "x" not found`, `couldn't find key k in ConfigMap ns/x`.
/// Source: kubernetes v1.36.3 pkg/kubelet/kubelet_pods.go `makeEnvironmentVariables`, k8s.io/apimachinery v0.36.3
/// pkg/api/errors `NewNotFound`.
fn missing(said: &str) -> Option<Meaning<'_>> {
    const KINDS: [(&str, &str, &str); 4] = [
        ("configmap", "configmaps", "ConfigMap"),
        ("secret", "secrets", "Secret"),
        ("serviceaccount", "serviceaccounts", "ServiceAccount"),
        ("runtimeclass", "runtimeclasses.node.k8s.io", "RuntimeClass"),
    ];
    for (singular, plural, kind) in KINDS {
        for word in [singular, plural, kind] {
            let Some((_, rest)) = said.split_once(&format!("{word} \"")) else { continue };
            let Some((name, rest)) = rest.split_once('"') else { continue };
            if rest.trim_start().starts_with("not found") {
                return Some(Meaning::Missing { kind, name: is_name(name).then_some(name), key: false });
            }
        }
        if let Some((_, rest)) = said.split_once("couldn't find key ")
            && let Some((_, rest)) = rest.split_once(&format!(" in {kind} "))
        {
            let object = rest.split([' ', ',', ';']).next().unwrap_or(rest);
            let name = object.rsplit('/').next().filter(|name| is_name(name));
            return Some(Meaning::Missing { kind, name, key: true });
        }
    }
    None
}

/// Source: k8s.io/apimachinery v0.36.3 pkg/util/validation `IsDNS1123Subdomain`.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.".contains(&b))
}

/// The address that a call of the API server's went to: `Get "https://172.20.0.1:443/api?timeout=32s": dial tcp …`.
fn api_server(said: &str) -> Option<&str> {
    let (_, rest) = said.split_once("https://")?;
    let host = rest.split(['/', '"', ' ', '\\']).next()?;
    let path = rest.get(host.len()..)?;
    // Registries and AWS speak https too: an API server has these paths, and its Service an address of its own.
    let is_api = ["/api/", "/api?", "/apis/", "/version", "/healthz", "/openapi"].iter().any(|p| path.starts_with(p));
    let (ip, port) = host.split_once(':').unwrap_or((host, "443"));
    let is_address = port == "443" && ip.parse::<std::net::IpAddr>().is_ok();
    (is_api || is_address).then_some(host)
}

fn quoted_after<'t>(said: &'t str, before: &str) -> Option<&'t str> {
    said.split_once(before)?.1.strip_prefix('"')?.split_once('"').map(|(quoted, _)| quoted)
}

fn first_sentence(text: &str) -> &str {
    text.split([';', '\n']).next().unwrap_or(text).trim_end_matches('.')
}

/// `ec2:DescribeInstances`
fn is_action(word: &str) -> bool {
    word.split_once(':').is_some_and(|(service, call)| {
        !service.is_empty()
            && service.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && call.starts_with(|c: char| c.is_ascii_uppercase())
            && call.bytes().all(|b| b.is_ascii_alphanumeric())
    })
}

/// The beginning and the end of a long message: the reason that stopped a program comes last.
pub(crate) fn last_words(said: &str) -> Cow<'_, str> {
    const LONG: usize = 320;
    const LAST: usize = 240;
    let Some(at) = said.len().checked_sub(LAST).filter(|_| said.len() > LONG) else { return said.into() };
    let at = said.ceil_char_boundary(at);
    let reason = said.split(": ").next().unwrap_or_default();
    let from = said[at..].find(' ').map_or(at, |blank| at + blank + 1);
    format!("{reason}: … {}", &said[from..]).into()
}

#[cfg(test)]
mod tests {
    use super::{Meaning, meaning};

    #[test]
    fn a_driver_whose_parts_differ_says_so() {
        let said = "unable to create plugin manager: nvml init failed: Driver/library version mismatch";
        assert_eq!(meaning(said), Some(Meaning::DriverVersions));
    }

    #[test]
    fn an_image_without_a_size_is_the_runtimes() {
        let said =
            "Failed to inspect image \"example.com/agent:v1\": Id or size of image \"example.com/agent:v1\" is not set";
        assert_eq!(meaning(said), Some(Meaning::ImageWithoutSize));
        assert_eq!(meaning("Failed to inspect image \"example.com/agent:v1\": context deadline exceeded"), None);
    }

    #[test]
    fn a_missing_kernel_module_is_told_from_one_that_is_loaded() {
        // cilium#32610
        let missing = "iptables v1.8.7 (legacy): can't initialize iptables table `raw': Table does not exist (do you \
                       need to insmod?)";
        assert_eq!(meaning(missing), Some(Meaning::KernelModule));
        assert_eq!(meaning("level=info msg=\"kernel module ip_set is loaded\" subsys=daemon"), None);
    }

    /// Messages of public reports, shortened.
    #[test]
    fn words_of_the_kubelet_the_runtime_and_the_agents_are_told_apart() {
        let absent = |kind, name, key| Some(Meaning::Missing { kind, name, key });
        for (said, meant) in [
            (
                "CreateContainerConfigError: services have not yet been read at least once, cannot construct envvars",
                Some(Meaning::NoServices),
            ),
            (
                "CreateContainerConfigError: configmap \"cilium-config\" not found",
                absent("ConfigMap", Some("cilium-config"), false),
            ),
            (
                "CreateContainerConfigError: couldn't find key token in Secret kube-system/datadog",
                absent("Secret", Some("datadog"), true),
            ),
            (
                "MountVolume.SetUp failed for volume \"config\" : configmap \"nvidia-plugin\" not found",
                absent("ConfigMap", Some("nvidia-plugin"), false),
            ),
            ("FailedMount: secret \"***\" not found", absent("Secret", None, false)),
            (
                "level=error msg=\"Timeout while waiting for k8s node information\" error=\"required IPv4 PodCIDR not available\" subsys=daemon",
                Some(Meaning::NoPodCidr),
            ),
            ("level=info msg=\"Received own node information from API server\" v4Prefix=10.1.4.0/24 subsys=k8s", None),
            ("CrashLoopBackOff: OOMKilled: back-off … restarting failed container", Some(Meaning::OutOfMemory)),
            (
                "Error: unable to create token: Post \"https://172.20.0.1:443/api/v1/namespaces/kube-system/serviceaccounts/calico-node/token\": dial tcp 172.20.0.1:443: i/o timeout",
                Some(Meaning::ApiServer { address: "172.20.0.1:443" }),
            ),
            (
                "nodes is forbidden: User \"system:serviceaccount:kube-system:cilium\" cannot list resource \"nodes\" in API group \"\" at the cluster scope",
                Some(Meaning::Forbidden {
                    account: "kube-system:cilium",
                    what: "list resource \"nodes\" in API group \"\" at the cluster scope",
                }),
            ),
            (
                "User: arn:aws:sts::1:assumed-role/n/i-0 is not authorized to perform: ec2:DescribeInstances because no policy allows it",
                Some(Meaning::AwsDenied { action: "ec2:DescribeInstances" }),
            ),
            (
                "could not get metadata: Get \"http://169.254.169.254/latest/meta-data\": context deadline exceeded",
                Some(Meaning::Metadata),
            ),
            (
                "failed to get sandbox runtime: no runtime for \"nvidia\" is configured",
                Some(Meaning::Runtime { name: "nvidia" }),
            ),
            (
                "FailedCreatePodSandBox: failed to create shim task: OCI runtime create failed: unable to retrieve OCI runtime error (open /run/x/log.json: no such file or directory): fork/exec /usr/bin/nvidia-container-runtime: no such file or directory: unknown",
                Some(Meaning::RuntimeProgram { name: "nvidia-container-runtime" }),
            ),
            (
                "Failed to set up gRPC Handler: failed to listen to gRPC port: listen tcp 127.0.0.1:50052: bind: address already in use",
                Some(Meaning::PortTaken { port: Some(50052) }),
            ),
            ("listen tcp :9100: bind: address already in use", Some(Meaning::PortTaken { port: Some(9100) })),
            ("OSError: [Errno 98] Address already in use", Some(Meaning::PortTaken { port: None })),
            (
                "OCI runtime create failed: unable to retrieve OCI runtime error (open /run/x/log.json: no such file or directory): exec: \"crun\": executable file not found in $PATH: unknown",
                Some(Meaning::RuntimeProgram { name: "crun" }),
            ),
            // It was started, and says nothing of a program.
            (
                "OCI runtime create failed: unable to retrieve OCI runtime error (unexpected EOF): runc did not terminate successfully: exit status 255",
                None,
            ),
            (
                "FailedCreatePodSandBox: OCI runtime create failed: unable to retrieve OCI runtime error (open /run/x/log.json: no such file or directory): runc did not terminate successfully: exit status 127: unknown",
                Some(Meaning::RuntimeEnds),
            ),
            (
                "FailedCreatePodSandBox: Failed to create pod sandbox: open /run/systemd/resolve/resolv.conf: no such file or directory",
                Some(Meaning::ResolverFile { path: "/run/systemd/resolve/resolv.conf" }),
            ),
            // The runtime opens files of its own.
            (
                "FailedCreatePodSandBox: Failed to create pod sandbox: rpc error: code = Unknown desc = failed to create sandbox: open /run/x: no such file or directory",
                None,
            ),
        ] {
            assert_eq!(meaning(said), meant, "{said}");
        }
    }

    #[test]
    fn words_of_programs_that_do_not_start_are_told_apart() {
        for (said, meant) in [
            ("CrashLoopBackOff: exec /usr/bin/agent: exec format error", Some(Meaning::Architecture)),
            ("Fatal glibc error: CPU does not support x86-64-v2", Some(Meaning::Processor)),
            (
                "Fatal glibc error: This version of Amazon Linux requires a newer ARM64 processor",
                Some(Meaning::Processor),
            ),
            ("Fatal glibc error: malloc.c:2617 (sysmalloc): assertion failed", None),
            (
                "RunContainerError: failed to create containerd task: exec: \"/agent\": stat /agent: no such file",
                Some(Meaning::Start),
            ),
            (
                "FailedCreatePodSandBox: failed to setup network for sandbox \"…\": plugin type=\"linkerd-cni\" name=\"linkerd-cni\" failed (add): cannot convert: no valid IP addresses",
                Some(Meaning::CniPlugin { plugin: "linkerd-cni", network: Some("linkerd-cni") }),
            ),
            (
                "FailedCreatePodSandBox: failed to setup network for sandbox \"…\": plugin type=\"cilium-cni\" failed (add): unable to allocate IP via local cilium agent: [POST /ipam][502] postIpamFailure \"all CIDR ranges are exhausted\"",
                Some(Meaning::CniPlugin { plugin: "cilium-cni", network: None }),
            ),
            (
                "FailedCreatePodSandBox: OCI runtime create failed: runc create failed: expected cgroupsPath to be of format \"slice:prefix:name\" for systemd cgroups, got \"/kubepods/burstable/podd414e450\" instead: unknown",
                Some(Meaning::CgroupDriver),
            ),
            (
                "FailedMount: MountVolume.SetUp failed for volume \"xtables-lock\" : hostPath type check failed: /run/xtables.lock is not a file",
                Some(Meaning::HostPath { path: "/run/xtables.lock", kind: "file" }),
            ),
            (
                "CreateContainerConfigError: container has runAsNonRoot and image will run as root (pod: \"a_b(c)\", container: d)",
                Some(Meaning::RunsAsRoot),
            ),
            // The plugin deletes what it no longer knows.
            ("FailedKillPod: plugin type=\"cilium-cni\" failed (delete): not found", None),
            // What a plugin could not ask says more than who asked.
            (
                "FailedCreatePodSandBox: failed to setup network for sandbox \"…\": plugin type=\"calico\" name=\"k8s-pod-network\" failed (add): error getting ClusterInformation: Get \"https://10.100.0.1:443/apis/crd.projectcalico.org/v1/clusterinformations/default\": dial tcp 10.100.0.1:443: i/o timeout",
                Some(Meaning::ApiServer { address: "10.100.0.1:443" }),
            ),
            // Near misses: nothing is said, or another one's address cannot be reached.
            ("CrashLoopBackOff: back-off … restarting failed container=aws-node", None),
            ("Error: dial tcp: lookup proxy.example.com: i/o timeout", None),
            ("Error: Get \"https://example.com/\": dial tcp 1.2.3.4:443: i/o timeout", None),
            ("CreateContainerError: context deadline exceeded", None),
            ("Error: Get \"https://10.0.5.3:8443/metrics\": dial tcp 10.0.5.3:8443: connection refused", None),
        ] {
            assert_eq!(meaning(said), meant, "{said}");
        }
    }
}
