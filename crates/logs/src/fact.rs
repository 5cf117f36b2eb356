//! What logs prove.

use chrono::{DateTime, TimeDelta, Utc};
use readers::source_text::hide_secrets_by_line;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};

/// What a machine passes on its way, in order. Whatever it passes, it has all before it behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Deserialize, Serialize)]
pub enum Phase {
    /// Its kernel or its first services print something.
    #[default]
    Booted,
    /// Its user data was taken in: the configuration of runtime and kubelet is written.
    Configured,
    /// The container runtime answers.
    RuntimeUp,
    /// A kubelet runs.
    KubeletUp,
    /// The kubelet has its Node.
    Registered,
    Ready,
    /// Its NodeClaim was deleted, and its instance with it.
    Gone,
}

impl Phase {
    /// For sentences: "its last step was: …".
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Booted => "it booted",
            Self::Configured => "its configuration was written",
            Self::RuntimeUp => "its container runtime was up",
            Self::KubeletUp => "its kubelet was started",
            Self::Registered => "its kubelet registered the Node",
            Self::Ready => "its Node was Ready",
            Self::Gone => "it was deleted",
        }
    }
}

/// What keeps a machine from going on, in the order in which one follows from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
pub enum Trouble {
    /// nodeadm, Bottlerocket or cloud-init does not take what user data says.
    UserDataRefused,
    /// A script of user data, or bootstrap.sh, ended with an error.
    ScriptFailed,
    /// A step of the bootstrap failed for another reason.
    BootstrapFailed,
    /// The kernel has stopped for good, at its start or later.
    KernelPanicked,
    /// A container or command that has to succeed before Bottlerocket goes on did not.
    BootContainerFailed,
    RuntimeNotUp,
    /// systemd stopped the kubelet, and did not start it again.
    KubeletStopped,
    /// The kubelet does not take its flags or its configuration.
    KubeletRefusesConfiguration,
    ImagePullFails,
    /// The instance's metadata service gives no answer.
    NoMetadata,
    AwsUnreachable,
    AwsRefuses,
    /// AWS understands a request and refuses it, for another reason than rights.
    RequestRefused,
    /// The Pod Identity agent of the machine gives its pods no credentials.
    IdentityAgentFails,
    ApiServerUnreachable,
    /// The certificate of the API server is not of the authority that the machine knows.
    ApiServerUntrusted,
    ClockWrong,
    Unauthorized,
    Forbidden,
    /// An admission webhook or policy refuses what the kubelet writes.
    AdmissionRefuses,
    /// The API server does not take the Node that the kubelet describes: a name, a label or a taint of it cannot be.
    NodeInvalid,
    CniFails,
    /// kube-proxy ends, so connections to Services fail.
    KubeProxyFails,
    DeviceFails,
    DiskFails,
    /// An agent does not get its startup taint off the Node.
    TaintStays,
    /// The cloud controller cannot take in the Node, so its taint stays.
    CloudControllerFails,
    /// Karpenter leaves a NodePool out, for what it says.
    NodePoolRefused,
    /// The API server does not take the NodeClaims that Karpenter makes of a NodePool.
    NodeClaimRefused,
    /// Karpenter finds out for no pod where it could go, or makes no NodeClaim whatever it found.
    ProvisioningFails,
    /// Karpenter cannot get on with a machine or a node class, for what no row of the table knows.
    Unexplained,
    /// Karpenter itself ends: no machine's trouble, and everybody's.
    KarpenterEnds,
    /// The network plugin attaches no further interface. Each full Node says so: it explains pods without an address,
    /// and stops no machine.
    InterfaceLimit,
}

/// Why a request failed, as its error text ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
pub enum Reason {
    NameNotFound,
    Timeout,
    ConnectionRefused,
    NoRoute,
    UnknownAuthority,
    /// A certificate is not valid yet, or a signature is of another time.
    Clock,
    /// A certificate has ended, or is the machine's own that was not renewed.
    Expired,
    WrongName,
    TlsHandshake,
    Unauthorized,
    Forbidden,
    Admission,
    AccessDenied,
    /// A policy of the organization denies what the role's own policies may allow.
    OrganizationPolicy,
    PermissionsBoundary,
    NoCredentials,
    /// The EKS Pod Identity agent, which hands out credentials on the machine, does not answer.
    NoIdentityAgent,
    Throttled,
    NotFound,
    NotListening,
    Unresolvable,
    /// The queue that a setting names is not there.
    NoQueue,
    /// The API server knows no such kind: its CustomResourceDefinition is missing, or of another version.
    NoKind,
    /// The API server cannot convert an object to the version that was asked for.
    NotConverted,
    /// A setting of the program's own is missing or cannot be.
    Setting,
}

impl Reason {
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::NameNotFound => "the name cannot be resolved",
            Self::Timeout => "nothing answers in time",
            Self::ConnectionRefused => "the connection is refused",
            Self::NoRoute => "there is no route",
            Self::UnknownAuthority => "the certificate is of another authority",
            Self::Clock => "the clock is wrong",
            Self::Expired => "the certificate has ended",
            Self::WrongName => "the certificate is for another name",
            Self::TlsHandshake => "the TLS handshake fails",
            Self::Unauthorized => "the request is not authenticated",
            Self::Forbidden => "the request is not authorized",
            Self::Admission => "an admission webhook or policy refuses it",
            Self::AccessDenied => "IAM denies it",
            Self::OrganizationPolicy => "a service control policy of the organization denies it",
            Self::PermissionsBoundary => "the permissions boundary of the role does not allow it",
            Self::NoCredentials => "there are no credentials",
            Self::NoIdentityAgent => "the Pod Identity agent on the machine does not answer",
            Self::Throttled => "AWS throttles",
            Self::NotFound => "there is no such thing",
            Self::NotListening => "nothing listens on its socket",
            Self::Unresolvable => "the reference cannot be resolved",
            Self::NoQueue => "there is no such queue",
            Self::NoKind => "the API server knows no such kind",
            Self::NotConverted => "the API server cannot convert it",
            Self::Setting => "a setting is missing or cannot be",
        }
    }
}

/// Masked once more where it is written: it may have been read from a document that somebody else wrote.
fn hidden<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&hide_secrets_by_line(text))
}

/// A line that was read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LogLine {
    pub file: String,
    /// From 1.
    pub line: u64,
    pub time: Option<DateTime<Utc>>,
    /// The line without what wraps it, masked and cut.
    #[serde(serialize_with = "hidden")]
    pub text: String,
}

impl LogLine {
    /// Whether it was written after another: by the clock, else by its place. What cannot be compared counts as later:
    /// better no trouble than a wrong one.
    pub fn is_after(&self, other: &Self) -> bool {
        match (self.time, other.time) {
            (Some(own), Some(others)) if own != others => own > others,
            _ => self.file != other.file || self.line > other.line,
        }
    }
}

/// One kind of trouble, each time that a program told it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(clippy::struct_excessive_bools, reason = "each is a remark of its own about the line")]
pub struct Fact {
    pub program: String,
    /// What the line means, for sentences.
    pub means: String,
    pub trouble: Trouble,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// What the machine cannot pass.
    pub blocks: Phase,
    /// The program gave up; it does not try again by itself.
    #[serde(default)]
    pub ends: bool,
    /// It is said only while the program comes up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_start: bool,
    /// Others of the table say more: this one speaks only where they do not.
    #[serde(default)]
    pub vague: bool,
    /// The table does not know the line: it is the last that the program said before it ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unknown: bool,
    /// What the line names: `image`, `flag`, `host`, `address`; of a denial of IAM the `role`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub names: BTreeMap<String, String>,
    pub count: u64,
    /// The error that the program logged before, if the line itself says only that it gave up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<LogLine>,
    /// The step of the boot that this is, if it is the first that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<BootStep>,
    /// What the script printed last, if it is a script that ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<ScriptEnd>,
    /// Nothing but the kernel and its initrd had run, if it is a panic.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub before_user_data: bool,
    /// In which module of the kernel it happened, if it is a panic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oops: Option<Oops>,
    /// The end of containerd with which systemd stopped the kubelet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_end: Option<RuntimeEnd>,
    pub first: LogLine,
    pub last: LogLine,
}

/// The step of a boot that failed before all others.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BootStep {
    /// The unit of systemd, by its id and what it does, as far as the log tells; empty if it failed before the log
    /// begins.
    pub unit: String,
    /// Its id, if it can be a word of a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What it said just before, else just behind, then the kernel about a disk, the network, the memory or SELinux.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<LogLine>,
    /// The kernel's line that says why it refused what the unit asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<LogLine>,
    /// What was logged before of the accelerator that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceFault>,
    /// The lines that name the units which wait for each other, if systemd did not start it for that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cycle: Vec<LogLine>,
    /// What systemd did not start for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub needed_by: Vec<String>,
    /// The target of the boot that was reached last before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reached: Option<String>,
    /// Disks and parts of the network that failed earlier, and that the boot went on without.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<LogLine>,
}

/// That an accelerator does not work.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeviceFault {
    /// What the line means, for sentences.
    pub means: String,
    pub line: LogLine,
}

/// What a script printed last before it ended.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScriptEnd {
    /// Its last error, as far as it printed one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<LogLine>,
    /// Its last command, behind the substitutions in it, as far as `set -x` shows them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<LogLine>,
}

/// That containerd ended, and when it was up again.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RuntimeEnd {
    pub ended: LogLine,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up: Option<LogLine>,
}

/// The module of the kernel in whose code a fault lies.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Oops {
    pub module: String,
    /// Its function, with the offset.
    pub function: String,
    /// The kernel's own code failed, which this function had called.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub calls: bool,
    /// The letters that the kernel writes behind the module in the list of all, if the log has the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flags: Option<String>,
    /// The line that names the function.
    pub line: LogLine,
}

impl Oops {
    /// Whether the module is no part of Linux: O stands for out-of-tree. Source: Linux v6.12 kernel/panic.c
    /// `taint_flags`.
    pub fn is_foreign(&self) -> Option<bool> {
        self.flags.as_ref().map(|flags| flags.contains('O'))
    }
}

impl ScriptEnd {
    /// The instance type of which bootstrap.sh found no line in its image's table of pods, so that it had nothing to
    /// set. Sources: awslabs/amazon-eks-ami v20211206 files/bootstrap.sh (`MAX_PODS=$(cat … | awk "/^…/" …)`);
    /// canonical's snap kubelet-eks and earlier releases (`MAX_PODS=$(grep … | awk …)`).
    pub fn unknown_type(&self) -> Option<&str> {
        const TABLE: &str = "/etc/eks/eni-max-pods.txt";
        self.commands.last().filter(|last| last.text == "+ MAX_PODS=")?;
        self.commands.iter().find(|command| command.text.ends_with(TABLE))?;
        self.commands.iter().find_map(|command| {
            let of_grep = command.text.strip_suffix(TABLE).and_then(|text| text.split_once(" grep "));
            let of_awk = command.text.split_once(" awk '/^").and_then(|(_, rest)| rest.split_once('/'));
            let sought = of_grep.map(|(_, sought)| sought).or(of_awk.map(|(sought, _)| sought));
            sought.map(|sought| sought.trim().trim_start_matches('^'))
        })
    }
}

impl Fact {
    /// What no row of the table knows: the program gave up with this line.
    pub(crate) fn of_no_row(program: &str, means: String, trouble: Trouble, blocks: Phase, seen: LogLine) -> Self {
        Self {
            program: program.to_owned(),
            means,
            trouble,
            reason: None,
            blocks,
            ends: true,
            at_start: false,
            vague: true,
            unknown: true,
            names: BTreeMap::new(),
            count: 1,
            cause: None,
            boot: None,
            script: None,
            before_user_data: false,
            oops: None,
            runtime_end: None,
            first: seen.clone(),
            last: seen,
        }
    }

    /// Told again and again, for a while.
    pub fn lasts(&self) -> bool {
        Self::last_together([self].into_iter())
    }

    /// The same of several that are told in place of each other.
    pub fn last_together<'f>(facts: impl Iterator<Item = &'f Self> + Clone) -> bool {
        const LONG: TimeDelta = TimeDelta::minutes(1);
        let count: u64 = facts.clone().map(|fact| fact.count).sum();
        let first = facts.clone().map(|fact| fact.first.time).min().flatten();
        let last = facts.map(|fact| fact.last.time).max().flatten();
        count > 2 && first.zip(last).is_none_or(|(first, last)| last.signed_duration_since(first) >= LONG)
    }

    /// Whether the kubelet, which tries everything again within five minutes, was right with most tries: it complains
    /// now and then. Source: k8s.io/kubernetes v1.36.3 pkg/kubelet/kubelet.go `MaxImageBackOff`, `MaxCrashLoopBackOff`.
    pub(crate) fn is_now_and_then(&self) -> bool {
        const APART: TimeDelta = TimeDelta::minutes(10);
        let lasted = self.first.time.zip(self.last.time).map(|(first, last)| last.signed_duration_since(first));
        let gaps = i32::try_from(self.count).unwrap_or(i32::MAX).saturating_sub(1);
        let is_apart = |lasted: TimeDelta| APART.checked_mul(gaps).is_some_and(|apart| lasted > apart);
        self.program == "kubelet" && !self.ends && self.count > 2 && lasted.is_some_and(is_apart)
    }

    /// Whether both are one trouble, told twice.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let what = |fact: &Self| (fact.trouble, fact.reason);
        (&self.program, &self.means) == (&other.program, &other.means) && what(self) == what(other)
    }

    /// Whether it says why the program ended, and the other only that it did, as systemd does behind each such line.
    pub(crate) const fn says_why_before(&self, other: &Self) -> bool {
        self.ends && other.ends && !self.vague && other.vague
    }

    /// What another line of the same trouble says more clearly: that it is the end, or what it is about.
    pub(crate) fn learn(&mut self, other: &mut Self) {
        self.ends |= other.ends;
        self.vague &= other.vague;
        self.unknown &= other.unknown;
        self.before_user_data &= other.before_user_data;
        if self.cause.is_none() {
            self.cause = other.cause.take();
        }
        if self.boot.is_none() {
            self.boot = other.boot.take();
        }
        if self.script.is_none() {
            self.script = other.script.take();
        }
        if self.oops.is_none() {
            self.oops = other.oops.take();
        }
        if self.runtime_end.is_none() {
            self.runtime_end = other.runtime_end.take();
        }
        for (name, value) in std::mem::take(&mut other.names) {
            self.names.entry(name).or_insert(value);
        }
    }

    /// The root of all trouble is the least of these. Of what says little, the first step of the boot that failed says
    /// most.
    pub fn rank(&self) -> (bool, bool, bool, Option<DateTime<Utc>>, Phase, Trouble) {
        let step = self.boot.as_ref().filter(|step| !step.unit.is_empty());
        let since = step.and(self.first.time);
        (self.vague, self.vague && step.is_none(), !self.ends, since, self.blocks, self.trouble)
    }
}

/// When a phase was passed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Milestone {
    pub program: String,
    pub first: LogLine,
    pub last: LogLine,
}

/// What logs call a machine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineNames {
    pub instances: BTreeSet<String>,
    /// Host names, private DNS names, names of Nodes.
    pub hosts: BTreeSet<String>,
    /// The NodeClaims that a component speaks of.
    pub claims: BTreeSet<String>,
    /// The pods on the machine whose log this is.
    pub pods: BTreeSet<String>,
    /// The node classes that a component speaks of. No machine is called so.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub classes: BTreeSet<String>,
    /// The IAM roles that a component speaks of: of all machines that have one.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub roles: BTreeSet<String>,
    /// The NodePools that a component speaks of.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub pools: BTreeSet<String>,
    /// The pods of a component that speaks of itself, the component's own name where nothing tells which pod it was.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub components: BTreeSet<String>,
}

impl MachineNames {
    pub(crate) fn sets(&self) -> [&BTreeSet<String>; 8] {
        let Self { instances, hosts, claims, pods, classes, roles, pools, components } = self;
        [instances, hosts, claims, pods, classes, roles, pools, components]
    }

    pub fn is_empty(&self) -> bool {
        self.sets().into_iter().all(BTreeSet::is_empty)
    }

    /// Whether nothing in it names many machines at once, such as a node class or a role, or what serves all of them.
    pub fn is_no_group(&self) -> bool {
        self.classes.is_empty() && self.roles.is_empty() && self.pools.is_empty() && self.components.is_empty()
    }

    /// Whether nothing in it names an instance or a host.
    pub fn is_no_machine(&self) -> bool {
        self.instances.is_empty() && self.hosts.is_empty()
    }

    /// Whether both name one machine.
    pub fn meets(&self, other: &Self) -> bool {
        let same_host = |host: &String| other.hosts.iter().any(|theirs| is_same_host(host, theirs));
        let mut both = self.sets().into_iter().zip(other.sets());
        both.any(|(own, theirs)| !own.is_disjoint(theirs)) || self.hosts.iter().any(same_host)
    }

    pub fn extend(&mut self, other: &Self) {
        let Self { instances, hosts, claims, pods, classes, roles, pools, components } = self;
        let own = [instances, hosts, claims, pods, classes, roles, pools, components];
        for (own, theirs) in own.into_iter().zip(other.sets()) {
            own.extend(theirs.iter().cloned());
        }
    }
}

/// `ip-10-0-0-1` and `ip-10-0-0-1.ec2.internal` are one host.
pub fn is_same_host(one: &str, other: &str) -> bool {
    let is_longer = |long: &str, short: &str| long.strip_prefix(short).is_some_and(|rest| rest.starts_with('.'));
    !one.is_empty() && !other.is_empty() && (one == other || is_longer(one, other) || is_longer(other, one))
}
