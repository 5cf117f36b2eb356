//! How logs call the units of systemd, and which of them the kubelet needs.

use crate::last_words::is_of;
use crate::quoted::named;

/// A unit as the log calls it: by its id, its description, or both.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct UnitName {
    pub(crate) id: Option<String>,
    description: Option<String>,
}

/// The kubelet. Sources: awslabs/amazon-eks-ami v20251112 templates/shared/runtime/kubelet.service (and AL2's);
/// bottlerocket-os/bottlerocket-kernel-kit packages/kubernetes kubelet.service; Canonical's snap kubelet-eks.
pub(crate) const KUBELET: [&str; 5] = [
    "kubelet.service",
    "Kubelet",
    "Kubernetes Kubelet",
    "snap.kubelet-eks.daemon.service",
    "Service for snap application kubelet-eks.daemon",
];

/// Source: containerd v2.1 containerd.service.
pub(crate) const RUNTIME: [&str; 2] = ["containerd.service", "containerd container runtime"];

pub(crate) const KUBELET_AND_RUNTIME: [&str; 7] =
    [KUBELET[0], KUBELET[1], KUBELET[2], KUBELET[3], KUBELET[4], RUNTIME[0], RUNTIME[1]];

/// These are reached before any kubelet is started. Source: systemd v257 man/bootup.xml.
pub(crate) const BEGINS: [&str; 4] = ["sysinit.target", "System Initialization", "basic.target", "Basic System"];

/// When these are reached, all jobs of the boot were tried.
pub(crate) const ENDS: [&str; 4] =
    ["multi-user.target", "Multi-User System", "graphical.target", "Graphical Interface"];

/// What no kubelet starts without. Sources beside those above: amazon-eks-ami v20251112
/// templates/al2023/runtime/rootfs/etc/systemd/system (nodeadm-run.service requires nodeadm-config.service);
/// bottlerocket-core-kit packages/release (preconfigured.target, configured.target, multi-user.target); systemd v257
/// units/ (local-fs.target and those of the initrd isolate to emergency.target); canonical/cloud-init 24.4 systemd/:
/// what fetches user data.
pub(crate) const WAY: [&str; 43] = [
    KUBELET[0],
    KUBELET[1],
    KUBELET[2],
    KUBELET[3],
    KUBELET[4],
    RUNTIME[0],
    RUNTIME[1],
    "nodeadm-config.service",
    "EKS Nodeadm Config",
    "nodeadm-run.service",
    "EKS Nodeadm Run",
    "preconfigured.target",
    "Bottlerocket initial configuration complete",
    "configured.target",
    "Bottlerocket final configuration complete",
    "Isolates configured.target",
    "Isolates multi-user.target",
    "local-fs.target",
    "Local File Systems",
    "sysinit.target",
    "System Initialization",
    "basic.target",
    "Basic System",
    "multi-user.target",
    "Multi-User System",
    "initrd.target",
    "initrd-root-device.target",
    "Initrd Root Device",
    "initrd-root-fs.target",
    "Initrd Root File System",
    "initrd-switch-root.target",
    "Switch Root",
    "sysroot.mount",
    "/sysroot",
    "cloud-init-local.service",
    "Initial cloud-init job (pre-networking)",
    "Cloud-init: Local Stage (pre-network)",
    "cloud-init.service",
    "Initial cloud-init job (metadata service crawler)",
    "cloud-init-network.service",
    "Cloud-init: Network Stage",
    "cloud-init-main.service",
    "Cloud-init: Single Process",
];

impl UnitName {
    /// `nodeadm-run.service - EKS Nodeadm Run.`, `Kubelet.`, `/data.`, `dev-xvdb.device.`; the console cuts what is too
    /// long in its middle. Source: systemd v257 src/core/unit.c `unit_status_string`.
    pub(crate) fn of(text: &str) -> Self {
        // The kernel may print into the line.
        let text = text.split(" [ ").next().unwrap_or(text);
        let text = text.trim().trim_end_matches('.').trim_end_matches('…').trim();
        let owned = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        match text.split_once(" - ") {
            Some((id, description)) if is_id(id) => Self { id: owned(id), description: owned(description) },
            _ if is_id(text) => Self { id: owned(text), description: None },
            _ => Self { id: None, description: owned(text) },
        }
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let both = |one: &Option<String>, two: &Option<String>| {
            one.as_ref().zip(two.as_ref()).is_some_and(|(one, two)| is_alike(one, two))
        };
        both(&self.id, &other.id) || both(&self.description, &other.description)
    }

    pub(crate) fn is_one_of(&self, names: &[&str]) -> bool {
        let mut own = [&self.id, &self.description].into_iter().flatten();
        own.any(|own| names.iter().any(|name| is_alike(own, name)))
    }

    /// Whether the program's lines are the unit's.
    pub(crate) fn is_of(&self, program: &str) -> bool {
        let Some(id) = &self.id else { return false };
        let Some((stem, kind)) = id.rsplit_once('.') else { return false };
        let tools: &[&str] = match kind {
            "mount" => &["mount"],
            "swap" => &["swapon"],
            _ => &[],
        };
        tools.contains(&program) || is_of(&stem.replacen('@', "-", 1), program)
    }

    /// Disks and the network are under everything: what fails later may follow from them.
    pub(crate) fn is_ground(&self) -> bool {
        const NETWORK: [&str; 3] = ["network", "dhcp", "resolve"];
        let lower = self.in_words().to_ascii_lowercase();
        self.is_disk() || NETWORK.iter().any(|word| lower.contains(word))
    }

    pub(crate) fn is_disk(&self) -> bool {
        const KINDS: [&str; 3] = [".mount", ".device", ".swap"];
        const WORDS: [&str; 6] = ["File System", "Directory (/", "/dev/", "fsck", "systemd-makefs", "Remount Root"];
        let is_kind = self.id.as_ref().is_some_and(|id| KINDS.iter().any(|kind| id.ends_with(kind)));
        let words = self.in_words();
        is_kind || words.starts_with('/') || WORDS.iter().any(|word| words.contains(word))
    }

    /// Whether it sets up the driver of an accelerator. The fabric manager fails on each machine without NVSwitch.
    /// Sources: awslabs/amazon-eks-ami v20240329 templates/al2/runtime/gpu (configure-nvidia.service);
    /// NVIDIA fabric manager user guide.
    pub(crate) fn is_driver(&self) -> bool {
        let words = self.in_words();
        vendor_in(&words).is_some() && !words.to_ascii_lowercase().contains("fabric")
    }

    /// Whether a machine joins without it: logins, mail, printing, crash dumps, metrics, other machines' file systems.
    pub(crate) fn is_beside(&self) -> bool {
        const WORDS: [&str; 22] = [
            "getty",
            "login",
            "user session",
            "user manager",
            "session c",
            "user@",
            "motd",
            "message of the day",
            "syslog",
            "logrotate",
            "kdump",
            "crash",
            "postfix",
            "mail",
            "nfs",
            "rpc",
            "metricdog",
            "cloudformation",
            "printer",
            "bluetooth",
            "sound",
            "graphical",
        ];
        let lower = self.in_words().to_ascii_lowercase();
        WORDS.iter().any(|word| lower.contains(word))
    }

    pub(crate) fn in_words(&self) -> String {
        let text = match (&self.id, &self.description) {
            (Some(id), Some(description)) => format!("{id} ({description})"),
            (Some(name), None) | (None, Some(name)) => name.clone(),
            (None, None) => String::new(),
        };
        named(&text)
    }

    /// The id, if it can be a word of a command.
    pub(crate) fn command_id(&self) -> Option<String> {
        let may_be_in = |c: char| c.is_ascii_alphanumeric() || "@._:-".contains(c);
        self.id.clone().filter(|id| id.len() < 100 && id.chars().all(may_be_in) && !id.starts_with('-'))
    }
}

/// The vendor of the accelerator of which a text speaks. NVRM and NVML are parts of NVIDIA's driver.
pub(crate) fn vendor_in(text: &str) -> Option<&'static str> {
    const WORDS: [(&str, &str); 6] = [
        ("nvidia", "nvidia"),
        ("nvrm:", "nvidia"),
        ("nvml", "nvidia"),
        ("neuron", "neuron"),
        ("habana", "habana"),
        ("amdgpu", "amdgpu"),
    ];
    let lower = text.to_ascii_lowercase();
    WORDS.into_iter().find(|(word, _)| lower.contains(word)).map(|(_, vendor)| vendor)
}

/// Source: systemd.unit(5).
pub(crate) fn is_id(text: &str) -> bool {
    const KINDS: [&str; 10] =
        ["service", "mount", "device", "target", "socket", "swap", "path", "timer", "slice", "automount"];
    let kind = text.rsplit_once('.').map(|(_, kind)| kind);
    !text.contains(' ') && (kind.is_some_and(|kind| KINDS.contains(&kind)) || text.contains('…'))
}

/// Whether both are one name, of which one may be cut in its middle.
fn is_alike(one: &str, other: &str) -> bool {
    let is_cut = |cut: &str, whole: &str| {
        let Some((begin, end)) = cut.split_once('…') else { return false };
        begin.len() + end.len() <= whole.len()
            && begin.len() + end.len() > 5
            && whole.starts_with(begin)
            && whole.ends_with(end)
    };
    one == other || is_cut(one, other) || is_cut(other, one)
}
