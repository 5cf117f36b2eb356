//! The kubelet or the container runtime of the Node is set up so that it starts no pod there: by the image, or by user
//! data.

use super::agent::Agent;
use crate::api::{Blame, Link};
use crate::case::Case;
use crate::explain::explanation::{Explanation, Proof};
use crate::objects::{Node, Pod};

/// The field that selects the node's image.
pub(super) fn of_image(case: &Case, node: &Node) -> Blame {
    case.class_field("spec.amiSelectorTerms").unwrap_or_else(|| Blame::object("v1", "Node", node.name()))
}

/// User data that configures either program may be at fault; otherwise the image brings both.
fn of_cgroups(case: &Case, node: &Node) -> Blame {
    let sets_it = ["cgroupDriver", "cgroup-driver", "SystemdCgroup", "containerd/config.toml"];
    case.user_data_naming(&sets_it).unwrap_or_else(|| of_image(case, node))
}

/// User data that names it sets it; otherwise the image does.
fn of_runtime_settings(case: &Case, node: &Node, named: &str) -> Blame {
    case.user_data_naming(&[named]).unwrap_or_else(|| of_image(case, node))
}

/// The pod wants a runtime that containerd's configuration does not have.
pub(super) fn without_runtime(
    case: &Case,
    node: &Node,
    runtime: &str,
    fails: impl Fn(&str) -> String,
    link: Link,
) -> Explanation {
    let why = fails(&format!("; containerd on the Node has no runtime {runtime}"));
    Explanation::new(Proof::Lasting, why, of_image(case, node), link).fix(format!(
        "Select an image whose containerd has the runtime {runtime} (EKS's accelerated variants do), or have an \
         operator install it before this pod."
    ))
}

/// NVIDIA's libraries and the loaded module of the kernel are of two versions.
pub(super) fn driver_versions(case: &Case, node: &Node, fails: impl Fn(&str) -> String, link: Link) -> Explanation {
    let why = fails("; the driver's libraries on the node are of another version than its loaded kernel module");
    Explanation::new(Proof::Lasting, why, of_image(case, node), link).fix(
        "Replace or reboot the node, which ends its pods: something updated the driver's packages while the older \
         module was loaded. So that this does not happen again, turn off unattended upgrades of these packages in the \
         image or in user data.",
    )
}

/// The configuration of containerd starts pods with a program that the image does not contain.
pub(super) fn runtime_program(
    case: &Case,
    node: &Node,
    program: &str,
    fails: impl Fn(&str) -> String,
    link: Link,
) -> Explanation {
    let why = fails(&format!(
        "; containerd on the Node must start pods with {program}, but the node's image does not contain it"
    ));
    Explanation::new(Proof::Lasting, why, of_image(case, node), link)
        .behind(Link::new(format!("Node/{}", node.name()), format!("it has no {program}")))
        .fix(format!(
            "Select an image that has {program}. EKS's NVIDIA variants have nvidia-container-runtime. Or remove \
             {program} from containerd's configuration: in the user data, or in the settings of the operator that \
             wrote it."
        ))
}

/// Source: kubernetes v1.29.7 pkg/kubelet/cri/remote/remote_image.go `imageStatusV1`; Mirantis/cri-dockerd#299.
pub(super) fn image_without_size(case: &Case, node: &Node, fails: impl Fn(&str) -> String, link: Link) -> Explanation {
    let why = fails("; the container runtime on the node tells no size of its images, so the kubelet refuses each");
    Explanation::new(Proof::Lasting, why, of_image(case, node), link).fix(
        "Match the runtime and its CRI server on the node: cri-dockerd reads the sizes of Docker 25 and later from \
         0.3.10 on, and the dockershim of old kubelets does not. Install matching versions in the image or in user \
         data, or use containerd.",
    )
}

/// The kubelet and the container runtime of one image manage control groups in different ways.
pub(super) fn cgroup_driver(case: &Case, node: &Node, fails: impl Fn(&str) -> String, link: Link) -> Explanation {
    let why = fails("; its kubelet uses cgroupfs, but the container runtime of the same image systemd");
    let image = node.status.node_info.os_image.as_str();
    let differ = format!("image {image}: the cgroup drivers of kubelet and runtime differ");
    Explanation::new(Proof::Lasting, why, of_cgroups(case, node), link)
        .behind(Link::new(format!("Node/{}", node.name()), differ))
        .fix(
            "Use systemd for both: remove cgroupDriver from the kubelet's configuration and SystemdCgroup from \
             containerd's, or pin a release of the image with the correct setting.",
        )
}

/// containerd looks for a network plugin in a folder of its own.
pub(super) fn plugin_path(
    case: &Case,
    node: &Node,
    agent: &Agent,
    (program, path): (&str, &str),
    link: Link,
) -> Explanation {
    let why = format!(
        "pod {} gets no network: containerd looks for plugin {program} in {path}, but DaemonSets put theirs into \
         /opt/cni/bin",
        agent.name
    );
    Explanation::new(Proof::Lasting, why, of_runtime_settings(case, node, path), link)
        .behind(Link::new(format!("Node/{}", node.name()), format!("its containerd takes network plugins from {path}")))
        .fix(
            "Set bin_dir (bin_dirs from containerd 2.1 on) of containerd's configuration to /opt/cni/bin for these \
             nodes, and replace them, which evicts their pods.",
        )
}

/// The NVIDIA container toolkit writes such an entry if it may not read containerd's own configuration.
/// Source: NVIDIA/nvidia-container-toolkit#1956, mended in 1.20.0.
pub(super) fn runtime_without_type(
    case: &Case,
    node: &Node,
    fails: impl Fn(&str) -> String,
    link: Link,
) -> Explanation {
    let is_toolkit = |pod: &&Pod| pod.daemon_set().is_some_and(|set| set.starts_with("nvidia-container-toolkit"));
    let toolkit = case.pods().find(is_toolkit).map(Agent::of);
    let writer = toolkit.as_ref().map_or_else(String::new, |of| format!(" that DaemonSet {} writes", of.set));
    let why =
        fails(&format!("; the entry of this runtime in containerd's configuration{writer} lacks its runtime_type"));
    let blame = toolkit.as_ref().map(|toolkit| toolkit.in_spec("containers"));
    let blame = blame.unwrap_or_else(|| of_runtime_settings(case, node, "runtimes"));
    let fix = if toolkit.is_some() {
        "Upgrade the NVIDIA container toolkit to 1.20 or later (toolkit.version of the ClusterPolicy), or remove \
         RUNTIME_CONFIG_SOURCE=file from its environment. Then replace the node."
    } else {
        "Add runtime_type = \"io.containerd.runc.v2\" to the entry of the runtime in containerd's configuration, in \
         user data or in the image. Then replace the node."
    };
    Explanation::new(Proof::Lasting, why, blame, link).fix(fix)
}

/// What helps if runc ends with the status 127.
pub(crate) const LIBRARY_OF_RUNC: &str = "Install the runc of the image's own distribution, or the statically linked \
                                          runc of its releases page. A bundle of containerd that user data unpacks \
                                          replaces the image's runc. On the node, runc --version names what it lacks. \
                                          Then replace the node.";

/// runc ends before it does anything: the dynamic linker finds no library for it, or not the functions that it needs.
/// Sources: opencontainers/runc#3413; glibc 2.34 elf/rtld.c, which ends with 127.
pub(super) fn runtime_ends(case: &Case, node: &Node, fails: impl Fn(&str) -> String, link: Link) -> Explanation {
    let why = fails(
        "; runc does not start on this machine (exit status 127), because it lacks a library (such as a newer \
         libseccomp) or is built for another system",
    );
    let blame = case.user_data_naming(&["runc", "containerd"]).unwrap_or_else(|| of_image(case, node));
    Explanation::new(Proof::Lasting, why, blame, link)
        .behind(Link::new(format!("Node/{}", node.name()), "its runc ends at once, with the status 127"))
        .fix(LIBRARY_OF_RUNC)
}

/// The kubelet copies its own name servers into such pods, and their file is not on the Node.
/// Source: kubernetes v1.36.3 pkg/kubelet/network/dns/dns.go `getHostDNSConfig`.
pub(super) fn resolver_file(
    case: &Case,
    node: &Node,
    path: &str,
    fails: impl Fn(&str) -> String,
    link: Link,
) -> Explanation {
    let why = fails(&format!("; the kubelet must read the name servers from {path}, which the node does not have"));
    Explanation::new(Proof::Lasting, why, of_runtime_settings(case, node, path), link)
        .behind(Link::new(format!("Node/{}", node.name()), format!("it has no {path}")))
        .fix(format!(
            "Remove resolvConf (--resolv-conf) from the kubelet's configuration for these nodes, in user data or in \
             the image. Without it the kubelet reads /etc/resolv.conf. Only an image with systemd-resolved has {path}. \
             Then replace the nodes."
        ))
}
