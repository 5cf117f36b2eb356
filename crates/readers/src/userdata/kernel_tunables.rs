//! The kernel parameters that the kubelet insists on where `protectKernelDefaults` holds, as it does on EKS's images.

/// What has to be set, in the notation of sysctl.
// kubernetes v1.36.3 pkg/kubelet/cm/container_manager_linux.go setupKernelTunables; component-helpers v0.36.3
// node/util/sysctl/sysctl.go
const WANTED: &[(&str, i64)] = &[
    ("vm.overcommit_memory", 1),
    ("vm.panic_on_oom", 0),
    ("kernel.panic", 10),
    ("kernel.panic_on_oops", 1),
    ("kernel.keys.root_maxkeys", 1_000_000),
    ("kernel.keys.root_maxbytes", 25_000_000),
];

/// What the kubelet has against a parameter of this value; nothing against one that it does not look at.
pub fn objection(name: &str, value: &str) -> Option<String> {
    let name = name.replace('/', ".");
    let (_, wanted) = WANTED.iter().find(|(tunable, _)| *tunable == name)?;
    let value: i64 = value.trim().parse().ok()?;
    (value != *wanted)
        .then(|| format!("the kubelet exits over {name} = {value}: it insists on {wanted} (protectKernelDefaults)"))
}

#[cfg(test)]
mod tests {
    use super::objection;

    #[test]
    fn only_another_value_of_a_parameter_that_the_kubelet_reads_is_objected_to() {
        for (name, value) in [("vm.overcommit_memory", "0"), ("kernel/panic", "0"), ("kernel.keys.root_maxkeys", "200")]
        {
            assert!(objection(name, value).is_some(), "{name} = {value}");
        }
        for (name, value) in [
            ("vm.overcommit_memory", "1"),
            ("kernel.panic", " 10 "),
            ("vm.overcommit_ratio", "80"),
            ("vm.overcommit_memory", "$MODE"),
        ] {
            assert_eq!(objection(name, value), None, "{name} = {value}");
        }
    }
}
