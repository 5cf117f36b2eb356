//! The kubelet's log says that it rejects its flags or its configuration.

use crate::api::{Risk, Stage};
use crate::case::Case;
use crate::case::finding::Opinion;
use crate::explain::{logged, selinux};
use crate::objects::input::Input;
use crate::rules::Rule;
use logs::fact::Trouble;

pub static RULE: Rule = Rule {
    cause: "KubeletRefusesConfiguration",
    summary: "The kubelet logged that it rejects a flag, a label or its configuration, and exited",
    stages: &[Stage::Join, Stage::Ready],
    reads: &[Input::Nodes, Input::NodeClasses, Input::Pods, Input::Logs],
    lint: false,
    versions: "all; seen only in logs",
    page: include_str!("../../../pages/KubeletRefusesConfiguration.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let Some(root) = logged::root(case, &[Trouble::KubeletRefusesConfiguration]) else { return Opinion::Silent };
    let (fix, blamed) = match root.selinux_refusal() {
        Some(_) => {
            let (fix, blamed) = selinux::fix(case);
            (fix.to_owned(), blamed)
        }
        None => (correction(root.line()), root.user_data(case)),
    };
    let finding = root.finding(case).fix(fix).step(Risk::Inspect, "Read the whole console", logged::command(case));
    finding.blaming(blamed).into()
}

fn correction(line: &str) -> String {
    match kernel_parameters(line) {
        Some(parameters) => format!(
            "Set {parameters} in the image (/etc/sysctl.d), or with sysctl -w in a script of the user data, which runs \
             before the kubelet. Or turn off the kubelet's protectKernelDefaults, which checks them. New nodes get the \
             change."
        ),
        None => "Remove or correct the setting that the line names, in the user data or in the image's own \
                 configuration of the kubelet. New nodes get the change."
            .to_owned(),
    }
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
    use super::kernel_parameters;

    #[test]
    fn the_line_names_the_parameters_and_what_they_must_be() {
        let line = "err=\"[invalid kernel flag: vm/overcommit_memory, expected value: 1, actual value: 0, invalid \
                    kernel flag: kernel/panic, expected value: 10, actual value: 5]\"";
        assert_eq!(kernel_parameters(line).as_deref(), Some("vm.overcommit_memory=1, kernel.panic=10"));
        for line in ["err=\"invalid Node Allocatable configuration\"", "invalid kernel flag: kernel/panic", ""] {
            assert_eq!(kernel_parameters(line), None, "{line}");
        }
    }
}
