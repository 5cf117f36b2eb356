//! What lines mean: one file a program in `crates/logs/table`.

use crate::clock;
use crate::denial;
use crate::device_plugins;
use crate::fact::{Phase, Reason, Trouble};
use crate::lease;
use crate::pattern::Pattern;
use crate::systemd;
use crate::wrapping::PANIC;
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The files, by the program whose lines they are about.
pub const FILES: [(&str, &str); 18] = [
    (KUBELET, include_str!("../table/kubelet.toml")),
    ("nodeadm", include_str!("../table/nodeadm.toml")),
    ("bottlerocket", include_str!("../table/bottlerocket.toml")),
    (CLOUD_INIT, include_str!("../table/cloud_init.toml")),
    ("windows-bootstrap", include_str!("../table/windows_bootstrap.toml")),
    ("containerd", include_str!("../table/containerd.toml")),
    ("systemd", include_str!("../table/systemd.toml")),
    ("vpc-cni", include_str!("../table/vpc_cni.toml")),
    ("kube-proxy", include_str!("../table/kube_proxy.toml")),
    ("pod-identity-agent", include_str!("../table/pod_identity_agent.toml")),
    ("calico", include_str!("../table/calico.toml")),
    // Its name holds that of the next.
    (CILIUM_OPERATOR, include_str!("../table/cilium_operator.toml")),
    ("cilium", include_str!("../table/cilium.toml")),
    (CSI_DRIVER, include_str!("../table/csi_driver.toml")),
    ("devices", include_str!("../table/devices.toml")),
    (KARPENTER, include_str!("../table/karpenter.toml")),
    (CLOUD_CONTROLLER, include_str!("../table/cloud_controller.toml")),
    (AUTHENTICATOR, include_str!("../table/authenticator.toml")),
];

pub(crate) const KUBELET: &str = "kubelet";
pub(crate) const CLOUD_INIT: &str = "cloud-init";
/// It serves all machines, and where it names an instance it speaks of that one.
pub const CILIUM_OPERATOR: &str = "cilium-operator";
/// The CSI drivers of AWS.
pub const CSI_DRIVER: &str = "csi-driver";
pub const KARPENTER: &str = "karpenter";
/// What SELinux denies. Source: Linux v6.12 security/selinux/avc.c `avc_audit_pre_callback`.
pub(crate) const AVC_DENIED: &str = "avc:  denied";
/// Nobody else's level is large. Source: core v0.34.0 pkg/operator/logging/logging.go `CapitalLevelEncoder`.
pub(crate) const KARPENTERS_ERROR: &str = r#""level":"ERROR""#;
const CLOUD_CONTROLLER: &str = "cloud-controller";
const AUTHENTICATOR: &str = "authenticator";

/// Whether the program speaks of machines elsewhere, not of the one that it runs on.
pub fn is_about_others(program: &str) -> bool {
    [KARPENTER, CLOUD_CONTROLLER, AUTHENTICATOR].contains(&program)
}

/// Why requests fail, whoever makes them.
pub const REASONS: &str = include_str!("../table/reasons.toml");

/// A line that is known.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools, reason = "each is a remark of its own about the line")]
pub struct Row {
    /// What it says, with names for what differs: `pull image "{image}"`.
    pub says: String,
    /// What that means, as the end of "on i-0abc …".
    pub means: String,
    /// What the machine has passed when it is said.
    pub passes: Option<Phase>,
    /// The program has come up: what it ended with before, and what it waited for till then, is behind it.
    #[serde(default)]
    pub is_up: bool,
    /// It is said only while the program comes up.
    #[serde(default)]
    pub at_start: bool,
    /// What it proves.
    pub proves: Option<Trouble>,
    /// What was asked: with the reason in the line it says what is wrong.
    pub asks: Option<Asked>,
    /// What the machine cannot pass.
    pub blocks: Option<Phase>,
    /// The program gives up.
    #[serde(default)]
    pub ends: bool,
    /// Other lines say more of the same.
    #[serde(default)]
    pub vague: bool,
    /// Where the line names no reason, the program has logged it before.
    #[serde(default)]
    pub wraps: bool,
    /// A trace of Python's follows, whose last line says why.
    #[serde(default)]
    pub traced: bool,
    /// The row, by its `means`, that this one takes back: whoever stopped runs again.
    pub undoes: Option<String>,
    /// The first and the last minor version of its program that says so, where not all do. Held against real programs:
    /// a line is known whatever version printed it.
    pub since: Option<String>,
    pub until: Option<String>,
    /// Where upstream writes it.
    pub source: String,
    /// Such a line.
    pub sample: String,
    /// One that looks like it and means nothing.
    pub harmless: String,
}

impl Row {
    /// Whether that minor version says it: 28 of 1.28.
    pub fn is_of(&self, minor: u32) -> bool {
        let of = |version: &Option<String>| version.as_ref()?.rsplit('.').next()?.parse::<u32>().ok();
        of(&self.since).is_none_or(|since| since <= minor) && of(&self.until).is_none_or(|until| minor <= until)
    }
}

/// Who gave no answer, or the wrong one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Asked {
    Api,
    Aws,
    Metadata,
    Registry,
}

impl Asked {
    /// What is wrong where it fails for this reason.
    pub fn trouble(self, reason: Reason) -> Trouble {
        match (self, reason) {
            (_, Reason::Clock) => Trouble::ClockWrong,
            (_, Reason::NotListening) => Trouble::RuntimeNotUp,
            (_, Reason::NoIdentityAgent) => Trouble::IdentityAgentFails,
            (Self::Registry, _) => Trouble::ImagePullFails,
            (Self::Metadata, _) => Trouble::NoMetadata,
            (
                _,
                Reason::AccessDenied | Reason::OrganizationPolicy | Reason::PermissionsBoundary | Reason::NoCredentials,
            )
            | (Self::Aws, Reason::Unauthorized | Reason::Forbidden) => Trouble::AwsRefuses,
            (Self::Api, Reason::Unauthorized) => Trouble::Unauthorized,
            (Self::Api, Reason::Forbidden) => Trouble::Forbidden,
            (Self::Api, Reason::Admission) => Trouble::AdmissionRefuses,
            (Self::Api, Reason::UnknownAuthority | Reason::WrongName | Reason::Expired) => Trouble::ApiServerUntrusted,
            (Self::Api, _) => Trouble::ApiServerUnreachable,
            (Self::Aws, _) => Trouble::AwsUnreachable,
        }
    }
}

/// How an error text ends that tells why.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReasonRow {
    pub says: String,
    pub reason: Reason,
    pub source: String,
    pub sample: String,
    pub harmless: String,
}

#[derive(Debug, Deserialize)]
struct File<R> {
    /// What the journal calls the program and those that speak for it.
    #[serde(default)]
    names: Vec<String>,
    /// What the DaemonSets are called whose pods run it, or a part of that.
    #[serde(default)]
    pods: Vec<String>,
    row: Vec<R>,
}

/// A row, ready to be looked for.
#[derive(Debug)]
pub(crate) struct KnownRow {
    pub(crate) program: &'static str,
    pub(crate) row: Row,
    pattern: Pattern,
}

/// All rows.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) rows: Vec<KnownRow>,
    reasons: Vec<(Pattern, Reason)>,
    /// By what the journal calls it, and by its own name.
    programs: BTreeMap<String, Vec<&'static str>>,
    pods: Vec<(String, &'static str)>,
    needles: Option<AhoCorasick>,
}

/// What a line was found to say.
pub(crate) struct Understood<'t, 'l> {
    pub(crate) known: &'t KnownRow,
    pub(crate) names: Vec<(&'t str, &'l str)>,
    pub(crate) reason: Option<Reason>,
}

pub(crate) static TABLE: LazyLock<Table> = LazyLock::new(Table::read);

/// The rows of a file's text, each with what is wrong with the file.
pub fn rows(text: &str) -> Result<Vec<Row>, String> {
    toml::from_str::<File<Row>>(text).map(|file| file.row).map_err(|error| error.to_string())
}

/// The reasons.
pub fn reasons() -> Result<Vec<ReasonRow>, String> {
    toml::from_str::<File<ReasonRow>>(REASONS).map(|file| file.row).map_err(|error| error.to_string())
}

/// The program that the pods of this DaemonSet, or this pod, run, where the table knows what it says.
pub fn program_of(daemon_set: &str) -> Option<&'static str> {
    TABLE.pods.iter().find(|(part, _)| daemon_set.contains(part.as_str())).map(|(_, program)| *program)
}

/// Whether the program, as [`program_of`] names it, runs in pods.
pub fn runs_in_pods(program: &str) -> bool {
    TABLE.pods.iter().any(|(_, own)| *own == program)
}

/// The program whose log somebody has kept in this file: `kube-proxy.log`, or as its pod is called
/// `kube-proxy-x7k2p.log`.
pub(crate) fn program_in(path: &str) -> Option<&'static str> {
    /// What the API server puts behind a name: apimachinery v0.36.3 pkg/util/rand/rand.go.
    const DRAWN: &str = "bcdfghjklmnpqrstvwxz2456789";
    /// And what people do.
    const ADDED: [&str; 8] = ["previous", "prev", "old", "controller", "log", "logs", "agent", "pod"];
    let stem = path.rsplit('/').next()?.split('.').next()?;
    let is_drawn = |end: &str| (5..=10).contains(&end.len()) && end.chars().all(|c| DRAWN.contains(c));
    let is_behind = |part: &str| ADDED.contains(&part) || is_drawn(part);
    let is_of = |pod: &str| {
        let end = stem.strip_prefix(pod);
        end.is_some_and(|end| {
            end.is_empty() || end.strip_prefix(['-', '_']).is_some_and(|end| end.split(['-', '_']).all(is_behind))
        })
    };
    TABLE.pods.iter().find(|(pod, _)| is_of(pod)).map(|(_, program)| *program)
}

impl Table {
    /// A file that cannot be read has no rows: `tests/table.rs` sees to it that there is none.
    fn read() -> Self {
        let mut table =
            Self { rows: Vec::new(), reasons: Vec::new(), programs: BTreeMap::new(), pods: Vec::new(), needles: None };
        for (program, text) in FILES {
            let Ok(file) = toml::from_str::<File<Row>>(text) else { continue };
            for name in file.names.into_iter().chain([program.to_owned()]) {
                table.programs.entry(name).or_default().push(program);
            }
            table.pods.extend(file.pods.into_iter().map(|part| (part, program)));
            let known = file.row.into_iter().filter_map(|row| {
                let pattern = Pattern::new(&row.says)?;
                Some(KnownRow { program, row, pattern })
            });
            table.rows.extend(known);
        }
        let reasons = reasons().unwrap_or_default();
        table.reasons = reasons.into_iter().filter_map(|r| Some((Pattern::new(&r.says)?, r.reason))).collect();
        // Behind those of the rows: of what no row knows, Karpenter's errors and the steps of a boot are kept.
        let needles = table.rows.iter().map(|known| known.pattern.needle());
        let needles = needles.chain([KARPENTERS_ERROR, PANIC]).chain(systemd::NEEDLES.into_iter().flatten().copied());
        let needles = needles.chain(systemd::STOP_NEEDLES).chain([denial::NEEDLE, AVC_DENIED]);
        let needles = needles.chain(clock::NEEDLES.into_iter().flatten().copied()).chain(lease::NEEDLES);
        let needles = needles.chain(device_plugins::NEEDLES);
        // Each byte of a log goes through it: one look-up a byte is worth three megabytes.
        let kind = Some(AhoCorasickKind::DFA);
        table.needles = AhoCorasick::builder().match_kind(MatchKind::Standard).kind(kind).build(needles).ok();
        table
    }

    /// Whether any row may fit a raw line. Most lines of a log fit none, and are not looked at any further.
    pub(crate) fn may_fit(&self, line: &[u8]) -> bool {
        self.needles.as_ref().is_some_and(|needles| needles.is_match(line))
    }

    /// What a line says, of the program that the journal names; the first row that fits.
    pub(crate) fn read_line<'t, 'l>(&'t self, program: Option<&str>, line: &'l str) -> Option<Understood<'t, 'l>> {
        let programs = program.and_then(|program| self.programs.get(program.trim_matches(['(', ')'])));
        let is_its = |known: &KnownRow| programs.is_none_or(|programs| programs.contains(&known.program));
        let mut candidates: Vec<usize> =
            self.needles.as_ref()?.find_overlapping_iter(line).map(|found| found.pattern().as_usize()).collect();
        candidates.sort_unstable();
        candidates.dedup();
        candidates.into_iter().find_map(|row| {
            let known = self.rows.get(row).filter(|known| is_its(known))?;
            let names = known.pattern.read(line)?;
            let reason = self.reason(line);
            // A request whose failure nobody can read proves nothing.
            let is_told = known.row.asks.is_none() || reason.is_some() || known.row.proves.is_some();
            is_told.then_some(Understood { known, names, reason })
        })
    }

    /// The one program that the journal calls so.
    pub(crate) fn program(&self, name: &str) -> Option<&'static str> {
        self.programs.get(name)?.first().copied()
    }

    /// Whether the journal calls this program so.
    pub(crate) fn is_called(&self, name: &str, program: &str) -> bool {
        self.programs.get(name).is_some_and(|programs| programs.contains(&program))
    }

    pub(crate) fn reason(&self, line: &str) -> Option<Reason> {
        self.reasons.iter().find(|(pattern, _)| pattern.read(line).is_some()).map(|(_, reason)| *reason)
    }
}
