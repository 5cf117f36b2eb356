//! The kubelet's log says that it rejects its flags or its configuration.

use crate::explain::logged::{self, Root};
use crate::explain::selinux;
use crate::rules::prelude::*;
use logs::fact::Trouble;
use readers::source_text::Span;

rule! {
    cause: KubeletRefusesConfiguration,
    summary: "The kubelet logged that it rejects a flag, a label or its configuration, and exited",
    stages: [Join, Initialize, Ready],
    reads: [Nodes, NodeClasses, Pods, Logs],
    versions: "all; seen only in logs",
}

fn check(case: &Case) -> Option<Opinion> {
    let root = logged::root(case, &[Trouble::KubeletRefusesConfiguration])?;
    let (fix, blamed) = match root.selinux_refusal() {
        Some(_) => {
            let (fix, blamed) = selinux::fix(case);
            (fix.to_owned(), blamed)
        }
        None if root.line().contains(NO_SUCH_ADDRESS) => {
            let set_by_hand = case.user_data_naming(&["node-ip", "nodeIP"]);
            (OF_ADDRESS.to_owned(), set_by_hand.or_else(|| case.class_field("spec.amiSelectorTerms")))
        }
        None => match reserved_memory(&root) {
            Some(fix) => (fix, setting_of_memory_manager(case, &root)),
            None => (correction(root.line()), root.user_data(case)),
        },
    };
    let finding = root.finding(case).fix(fix).inspect("Read the whole console", logged::command(case));
    finding.blaming(blamed).into()
}

/// Source: kubernetes v1.36.3 pkg/kubelet/kubelet_node_status.go `validateNodeIP`.
const NO_SUCH_ADDRESS: &str = "not found in the host's network interfaces";

const OF_ADDRESS: &str = "Find out why the machine's interface has not got this address: --node-ip in user data may be \
                          wrong, or the image's DHCP client (for IPv6 its DHCPv6 client) got no lease. Replace the \
                          machine. If others meet this too, use a newer image.";

fn correction(line: &str) -> String {
    if let Some(parameters) = kernel_parameters(line) {
        return format!(
            "Set {parameters} in the image (/etc/sysctl.d), or with sysctl -w in a script of the user data, which runs \
             before the kubelet. Or turn off the kubelet's protectKernelDefaults, which checks them. Only new nodes \
             get the change."
        );
    }
    if line.contains("running with swap on is not supported") {
        return "Turn off swap in the image, or with swapoff -a in a script of the user data, which runs before the \
                kubelet. Or set failSwapOn: false in the kubelet's configuration. Only new nodes get the change."
            .to_owned();
    }
    if let Some(resource) = over_reserved(line) {
        return format!(
            "Lower what is reserved of {resource} (kubeReserved, systemReserved, evictionHard) to less than the node \
             has. Look in spec.kubelet, the user data and the image. Or launch nodes that have more of it. Only new \
             nodes get the change."
        );
    }
    "Remove or correct the setting that the quoted line names, in spec.kubelet, the user data or the image. Only new \
     nodes get the change."
        .to_owned()
}

/// The fix of a reservation that the memory manager refuses: per type, it must equal what is reserved for the node, and
/// no flag or field reserves huge pages.
/// Sources: kubernetes v1.36.3 pkg/kubelet/cm/memorymanager/memory_manager.go `validateReservedMemory`,
/// cmd/kubelet/app/server.go `parseResourceList`; Bottlerocket settings reference,
/// `settings.kubernetes.memory-manager-reserved-memory`.
fn reserved_memory(root: &Root<'_>) -> Option<String> {
    const SETTING: &str = "reservedMemory (in Bottlerocket settings.kubernetes.memory-manager-reserved-memory)";
    let named = |name: &str| root.fact.names.get(name).map(|value| value.trim_matches(['"', '\\']));
    if let Some(numa) = named("numa") {
        return Some(format!(
            "Remove NUMA node {numa} from {SETTING}, or launch instance types that have it. Most types have only NUMA \
             node 0. Only new nodes get the change."
        ));
    }
    let (amount, resource, wanted) = (named("amount")?, named("resource")?, named("wanted")?);
    if resource.starts_with("hugepages-") {
        return Some(format!(
            "Remove {resource} from {SETTING}. The kubelet takes only what kubeReserved, systemReserved and \
             evictionHard reserve, and they cannot reserve huge pages. Only new nodes get the change."
        ));
    }
    Some(format!(
        "Change {resource} in {SETTING} from {amount} to {wanted}, over all NUMA nodes together. That is the sum of \
         kubeReserved, systemReserved and evictionHard. Only new nodes get the change."
    ))
}

/// The line of user data with the huge pages, else the setting.
fn setting_of_memory_manager(case: &Case, root: &Root<'_>) -> Option<Blame> {
    const NAMES: [&str; 3] = ["memory-manager-reserved-memory", "reservedMemory", "reserved-memory"];
    if root.fact.names.get("resource").is_some_and(|resource| resource.contains("hugepages-")) {
        return root.user_data(case);
    }
    let of_setting = || {
        let class = case.class()?;
        let text = class.spec.user_data.as_deref()?;
        let (start, name) = NAMES.iter().find_map(|name| Some((text.find(name)?, name)))?;
        Some(Blame::class(class).field("spec.userData").at(text, Span::new(start, start + name.len())))
    };
    of_setting().or_else(|| root.user_data(case))
}

/// The resource of which more is reserved than the node has. Source: kubernetes v1.36.3
/// pkg/kubelet/cm/node_container_manager_linux.go `validateNodeAllocatable`.
fn over_reserved(line: &str) -> Option<&str> {
    let (before, _) = line.split_once(" has a reservation of ")?;
    let quoted = before.trim_end_matches(['"', '\\']);
    let resource = quoted.rsplit('"').next()?;
    (!resource.is_empty() && !resource.contains(char::is_whitespace)).then_some(resource)
}

/// The kernel parameters that the kubelet insists on, in the notation of sysctl: `kernel.panic=10`.
/// Source: kubernetes v1.36.3 pkg/kubelet/cm/container_manager_linux.go `setupKernelTunables`.
fn kernel_parameters(line: &str) -> Option<String> {
    let parameters = line.split("invalid kernel flag: ").skip(1).map(|flag| {
        let (name, rest) = flag.split_once(", expected value: ")?;
        let value = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        Some(format!("{}={value}", name.replace('/', ".")))
    });
    let parameters: Vec<String> = parameters.collect::<Option<_>>()?;
    (!parameters.is_empty()).then(|| parameters.join(", "))
}

#[cfg(test)]
mod tests {
    use super::{kernel_parameters, over_reserved};

    #[test]
    fn the_line_names_the_parameters_and_what_they_must_be() {
        let line = "err=\"[invalid kernel flag: vm/overcommit_memory, expected value: 1, actual value: 0, invalid \
                    kernel flag: kernel/panic, expected value: 10, actual value: 5]\"";
        assert_eq!(kernel_parameters(line).as_deref(), Some("vm.overcommit_memory=1, kernel.panic=10"));
        for line in ["err=\"invalid Node Allocatable configuration\"", "invalid kernel flag: kernel/panic", ""] {
            assert_eq!(kernel_parameters(line), None, "{line}");
        }
    }

    #[test]
    fn the_line_names_the_resource_with_and_without_the_quotes_of_its_log() {
        let said =
            r#"Resource "ephemeral-storage" has a reservation of {{8 0} {<nil>} BinarySI} but capacity of {{3 0}"#;
        for line in [said.to_owned(), said.replace('"', "\\\"")] {
            assert_eq!(over_reserved(&line), Some("ephemeral-storage"), "{line}");
        }
        for line in ["a node has a reservation of 3", "\"\" has a reservation of 3", ""] {
            assert_eq!(over_reserved(line), None, "{line}");
        }
    }
}
