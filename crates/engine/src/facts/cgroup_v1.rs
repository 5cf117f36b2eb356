//! What user data says about cgroup v1, on which newer kubelets do not run.

use readers::source_text::Span;
use readers::userdata::UserData;

/// The default of `failCgroupV1` changed (bottlerocket-core-kit#792, aws/eks-anywhere#10538).
/// Source: kubernetes v1.36.3 pkg/kubelet/apis/config/v1beta1/defaults.go, validation/validation_linux.go.
pub(crate) const SINCE: u32 = 35;

/// systemd takes cgroup v1 with this on the kernel's command line. Source: systemd v252 man/systemd.xml.
pub(crate) const ASKS_FOR_V1: &str = "systemd.unified_cgroup_hierarchy=0";

/// Whether the text lets its kubelet run on cgroup v1.
pub(crate) fn is_allowed(data: &UserData) -> bool {
    data.effective("fail-cgroupv1").is_some_and(|argument| argument.value != "true")
}

/// The place where a text puts cgroup v1 on the kernel's command line, if the text also reboots.
pub(crate) fn asked_for(text: &str) -> Option<Span> {
    let boots_again = ["reboot", "shutdown -r", "init 6", "power_state"].iter().any(|word| text.contains(word));
    let mut found = text.match_indices(ASKS_FOR_V1).map(|(at, word)| Span::new(at, at + word.len()));
    let is_code = |span: &Span| {
        let line = text.get(..span.start).and_then(|before| before.rsplit('\n').next()).unwrap_or_default();
        !line.trim_start().starts_with('#')
    };
    found.find(is_code).filter(|_| boots_again)
}
