//! An `EC2NodeClass`'s `spec.userData` as the machine will read it: which of the user's words become which argument of
//! the kubelet, which are lost, and where.
//!
//! The text goes through several readers, one a file: MIME, then by family the shell and bootstrap.sh and systemd, or
//! nodeadm, or Bottlerocket's settings, and at last the kubelet's own flags. Nothing here fails: what cannot be
//! followed is marked as such.

mod bootstrap;
pub mod bottlerocket;
mod config_rules;
mod containerd;
pub mod feature_gates;
mod go_values;
mod ignition;
pub mod image_name;
mod ip_family;
mod kernel_tunables;
pub mod known_flags;
mod kubelet_config;
pub mod kubelet_flags;
pub mod mime;
pub mod nodeconfig;
mod placeholder;
mod powershell;
mod reader;
mod remedy;
pub mod shell;
pub mod systemd;
pub mod traced;
mod windows;
pub mod yaml;

use std::collections::{BTreeMap, HashMap};
use std::fmt;

pub use bootstrap::BootstrapCall;
pub use config_rules::{NO_CLOUD_PROVIDER, shutdown_of_image};
use feature_gates::GateRefusal;
pub use ip_family::IpFamily;
use known_flags::Recognized;
pub use kubelet_config::{OWNED_BY_KARPENTER, class_refusals, may_be_cel};
use kubelet_flags::{FlagError, RegisteredTaint};
pub use nodeconfig::NodeConfig;
pub use placeholder::has_placeholder;
pub use reader::LARGEST;
use traced::Traced;
pub use yaml::mistake as yaml_mistake;

use crate::source_text::Span;

/// A value and where the user wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located<T> {
    pub value: T,
    pub span: Span,
}

/// The AMI families of `EC2NodeClass` v1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    Al2,
    Al2023,
    Bottlerocket,
    Windows,
    Custom,
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Al2 => "AL2",
            Self::Al2023 => "AL2023",
            Self::Bottlerocket => "Bottlerocket",
            Self::Windows => "Windows",
            Self::Custom => "Custom",
        })
    }
}

impl Family {
    /// `spec.amiFamily`.
    pub fn from_name(ami_family: &str) -> Option<Self> {
        Some(match ami_family {
            "AL2" => Self::Al2,
            "AL2023" => Self::Al2023,
            "Bottlerocket" => Self::Bottlerocket,
            "Windows2019" | "Windows2022" | "Windows2025" => Self::Windows,
            "Custom" => Self::Custom,
            _ => return None,
        })
    }

    /// An alias of `spec.amiSelectorTerms`, such as `al2023@latest`.
    pub fn from_alias(alias: &str) -> Option<Self> {
        Some(match alias.split_once('@').map_or(alias, |(family, _)| family).to_ascii_lowercase().as_str() {
            "al2" => Self::Al2,
            "al2023" => Self::Al2023,
            "bottlerocket" => Self::Bottlerocket,
            "windows2019" | "windows2022" | "windows2025" => Self::Windows,
            _ => return None,
        })
    }
}

/// What one part of the text is to the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartKind {
    Shell,
    NodeConfig,
    CloudConfig,
    Bottlerocket,
    PowerShell,
    /// Ignition reads it, on an image that has Ignition. What is in it is not judged.
    Ignition,
    /// Nothing reads it, or nothing known does.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    pub kind: PartKind,
    pub span: Span,
}

/// What an argument sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    /// A flag's name without dashes, `_` written as `-`.
    Flag(String),
    /// A field of the kubelet's configuration file, such as `registerWithTaints`, or a Bottlerocket setting.
    Field(String),
}

/// The text from which an argument comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentOrigin {
    BootstrapExtraArgs,
    NodeConfigFlags,
    NodeConfigConfig,
    BottlerocketSetting,
    WindowsExtraArgs,
    /// The script starts the kubelet itself.
    DirectKubelet,
}

/// What becomes of an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    Taken,
    Overridden(By),
    Lost(Loss),
}

/// What overrides an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// A later text of the user's own.
    Later(Span),
    /// The part that Karpenter adds.
    Karpenter,
}

/// Why an argument never reaches the kubelet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Loss {
    EqualsForm,
    LooseWord,
    RepeatedOption,
    BootstrapExits,
    KubeletRunsAlready,
    AssignmentDropped,
    NotStarted,
    AfterExit,
    SyntaxError,
    NoInterpreter,
    NoBootstrapScript,
    CutAtNewline,
    NodeConfigIgnored,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EqualsForm => {
                "bootstrap.sh takes --kubelet-extra-args and its value as two words; written with '=' the whole option \
                 is ignored"
            }
            Self::LooseWord => {
                "it stands outside the one word that is the value of --kubelet-extra-args, and bootstrap.sh drops it"
            }
            Self::RepeatedOption => "bootstrap.sh keeps only the last --kubelet-extra-args of a call",
            Self::BootstrapExits => "bootstrap.sh exits over its arguments before it starts the kubelet",
            Self::KubeletRunsAlready => {
                "an earlier call of bootstrap.sh has started the kubelet, and a second call does not restart it"
            }
            Self::AssignmentDropped => {
                "systemd drops the whole assignment of KUBELET_EXTRA_ARGS over its quoting, and the kubelet starts \
                 without it"
            }
            Self::NotStarted => {
                "systemd cannot split the arguments over an unbalanced quote, and does not start the kubelet"
            }
            Self::AfterExit => "the script has ended with `exit` before this line",
            Self::SyntaxError => "a quote that is never closed stops the shell at this command",
            Self::NoInterpreter => "the script does not begin with `#!`, and is not run",
            Self::NoBootstrapScript => "Amazon Linux 2023 has no /etc/eks/bootstrap.sh",
            Self::CutAtNewline => {
                "a line end in a flag ends the line of nodeadm's environment file, and what follows is dropped"
            }
            Self::NodeConfigIgnored => "Amazon Linux 2 has no nodeadm, and nothing reads a NodeConfig",
        })
    }
}

/// One thing the user's text asks of the kubelet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    pub setting: Setting,
    /// What the kubelet receives; taints of a configuration field are written in the grammar of the flag.
    pub value: String,
    /// The whole argument in the user's text.
    pub span: Span,
    pub origin: ArgumentOrigin,
    pub fate: Fate,
    /// False where the text could not be followed with certainty.
    pub exact: bool,
    /// Whether it is certain but for the expansions that stand in it as they are written.
    settled: bool,
    source: Traced,
}

impl Argument {
    /// The flag's or field's name.
    pub fn name(&self) -> &str {
        match &self.setting {
            Setting::Flag(name) | Setting::Field(name) => name,
        }
    }

    /// Whether this part of it is certain: its name, or what it says of one label.
    pub fn is_certain_of(&self, part: &str) -> bool {
        self.exact || (self.settled && !has_expansion(part))
    }

    pub fn is_taken(&self) -> bool {
        self.fate == Fate::Taken
    }

    /// Where a span of `value` stands in the user's text.
    pub fn place(&self, in_value: Span) -> Span {
        self.source.span_of(in_value.start..in_value.end)
    }
}

/// A feature gate over which the kubelet exits, and its place.
#[derive(Debug, Clone, Copy)]
pub struct RefusedGate<'a> {
    pub argument: &'a Argument,
    pub name: &'a str,
    pub span: Span,
    pub refusal: GateRefusal,
}

/// What an argument sets gates to: of the flag `A=true,B=false`, of the configuration a field for each.
fn gates(argument: &Argument) -> Vec<(&Argument, &str, &str, Span)> {
    match &argument.setting {
        Setting::Field(field) => {
            let gate = field.strip_prefix("featureGates.");
            gate.map(|gate| (argument, gate, argument.value.trim(), argument.span)).into_iter().collect()
        }
        Setting::Flag(flag) if flag == "feature-gates" => {
            let mut start = 0;
            let pairs = argument.value.split(',').filter_map(|pair| {
                let begins = start;
                start += pair.len() + 1;
                let (gate, value) = pair.split_once('=')?;
                Some((argument, gate.trim(), value.trim(), argument.place(Span::new(begins, begins + gate.len()))))
            });
            pairs.collect()
        }
        Setting::Flag(_) => Vec::new(),
    }
}

/// Something wrong in the text, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Defect {
    pub kind: DefectKind,
    pub span: Span,
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DefectKind {
    MimeUnreadable,
    /// The same where a NodeConfig is in it that only nodeadm would read.
    NodeConfigUnreachable,
    /// The body of a part that begins before the empty line that ends its header.
    BodyInHeader,
    EncodedPart,
    MisreadAsNodeConfig,
    NodeConfigUnreadable,
    NodeConfigWrongKind,
    NodeConfigWrongType,
    NodeConfigIgnored,
    /// A strategy for local disks that nodeadm cannot carry out.
    LocalDisksRefused,
    /// One of the four fields in which nodeadm wants to know the cluster is in no NodeConfig.
    ClusterIncomplete,
    /// The program that reads the document does not know the field.
    FieldIgnored,
    /// A YAML document behind the first.
    DocumentIgnored,
    /// A field of the kubelet's configuration over which it exits.
    InvalidField,
    /// A value of a flag over which the kubelet exits.
    InvalidFlagValue,
    ContainerdConfigUnreadable,
    /// containerd's own plugin for the kubelet does not load with it.
    ContainerdConfigRefused,
    NoInterpreter,
    OpenQuote,
    /// No line ends a here-document, so it takes the rest of the script.
    OpenDocument,
    /// The same where the call that starts the kubelet is in that rest.
    CallInDocument,
    OptionWithEquals,
    OptionWithoutValue,
    ClusterNameIsOption,
    ClusterNameMissing,
    NoBootstrapScript,
    /// The blank behind a `\` at the end of a line ends the command there.
    BlankAfterBackslash,
    BootstrapBeforeKarpenter,
    AssignmentDropped,
    NotStarted,
    CutAtNewline,
    StrayArgument,
    FlagWithoutValue,
    InvalidTaints,
    RefusedLabel,
    /// The same name for the Node of every instance.
    NodeNameFixed,
    InvalidLabels,
    TomlInvalid,
    TomlWrongType,
    /// Karpenter leaves it out.
    UnknownSetting,
    /// Bottlerocket's API server refuses it, and all other settings with it.
    SettingRefused,
    /// No known version of Bottlerocket has it.
    UnfamiliarSetting,
    /// The kubelet insists on another value of a kernel parameter.
    KernelParameterRefused,
    /// The image of an essential bootstrap container, which no registry has.
    BootImageUnreachable,
    /// The image of another bootstrap container, which no registry has.
    ContainerImageUnreachable,
    EndsBeforeKarpenter,
    /// A command that certainly fails, and with `set -e` ends the script.
    EndsAtFailure,
    /// A call of nodeadm that it ends with an error.
    NodeadmCallRefused,
    /// PowerShell cannot parse the script, and runs nothing of it.
    PowerShellRefused,
    /// The tags around the script, which Karpenter writes itself.
    OwnTags,
    /// PowerShell has no such command, and goes on without it or ends the script behind what joins the node.
    UnknownCmdlet,
    /// PowerShell has no such command, which ends the script before what joins the node.
    CmdletEndsScript,
    /// The script of Windows is called as that of Linux.
    OptionOfBootstrapSh,
    /// The kubelet's files are changed in a way that is not followed here.
    KubeletEdited,
    /// Nothing on the machine is known to read the text.
    ReadByNothing,
    /// A NodeConfig that does not parse as YAML, which Karpenter then sends as a shell script.
    MisreadAsShell,
    /// More than EC2 takes.
    TooLarge,
    /// A line of a script ends in a carriage return that nothing takes out.
    CarriageReturn,
    /// A quote or dash of typography where the ASCII one was meant.
    TypographicCharacter,
    /// The same in an option of bootstrap.sh, which then is none.
    TypographicOption,
    SecondBootstrap,
    /// The call that starts the kubelet stands behind an `exit`.
    NeverReached,
    UnknownFlag,
    RemovedFlag,
    SingleDash,
    /// A literal name, endpoint or certificate authority that is not this cluster's.
    OtherCluster,
    /// The text's own list of taints replaces Karpenter's.
    DropsTaints,
    /// The text is known only after the template is rendered.
    Template,
}

/// What a defect leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Consequence {
    /// Karpenter cannot render the user data: no instance.
    NoLaunch,
    /// The instance runs, its kubelet never does, or it knows another cluster.
    NoJoin,
    /// The node joins without what the text asked for.
    Lost,
    /// The text is not followed here.
    Unknown,
}

impl Defect {
    /// What this leads to on a machine of `family`.
    pub const fn consequence(&self, family: Family) -> Consequence {
        use DefectKind as D;
        match (self.kind, family) {
            // Where the user data is passed through, only the machine ever parses it.
            (D::MimeUnreadable, Family::Al2 | Family::Al2023)
            | (D::TomlInvalid | D::TomlWrongType, Family::Bottlerocket)
            | (D::TooLarge, _) => Consequence::NoLaunch,
            (D::MimeUnreadable | D::EncodedPart | D::KubeletEdited | D::UnfamiliarSetting | D::Template, _) => {
                Consequence::Unknown
            }
            // Karpenter's own call still joins the node on AL2, and its own part on AL2023.
            (
                D::NoInterpreter
                | D::OpenQuote
                | D::NoBootstrapScript
                | D::NeverReached
                | D::BodyInHeader
                | D::EndsAtFailure
                | D::NodeadmCallRefused
                | D::ReadByNothing,
                Family::Al2 | Family::Al2023,
            )
            | (
                D::OpenDocument
                | D::OptionWithEquals
                | D::BootstrapBeforeKarpenter
                | D::AssignmentDropped
                | D::CutAtNewline
                | D::NodeConfigIgnored
                | D::FieldIgnored
                | D::DocumentIgnored
                | D::UnknownSetting
                | D::ContainerImageUnreachable
                | D::MisreadAsShell
                | D::TypographicOption
                | D::SecondBootstrap
                | D::DropsTaints
                | D::BlankAfterBackslash
                | D::UnknownCmdlet,
                _,
            )
            | (D::OptionWithoutValue | D::ClusterNameMissing, Family::Al2)
            // Karpenter's own call is behind it.
            | (D::OptionOfBootstrapSh, Family::Windows) => Consequence::Lost,
            _ => Consequence::NoJoin,
        }
    }
}

/// User data as the machine reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserData {
    pub family: Family,
    pub parts: Vec<Part>,
    /// Every kubelet flag or configuration field that the text asks for, fields first, then flags in the kubelet's
    /// order.
    pub arguments: Vec<Argument>,
    pub bootstrap_calls: Vec<BootstrapCall>,
    pub node_configs: Vec<NodeConfig>,
    /// Where Bottlerocket believes itself to be: `settings.aws.region`.
    pub region: Option<Located<String>>,
    pub defects: Vec<Defect>,
    /// From here on something may change the kubelet in a way that is not followed.
    pub unread_from: Option<Span>,
    /// Whether a variable or a placeholder may hold further flags or fields.
    pub(crate) is_open: bool,
}

impl UserData {
    /// Drops the finding about the strategy for local disks, because Karpenter's part has one of its own:
    /// `instanceStorePolicy: RAID0`.
    // karpenter-provider-aws v1.14.1 pkg/providers/amifamily/bootstrap/nodeadm.go getNodeConfigYAML
    pub fn override_local_disks(&mut self) {
        if self.family == Family::Al2023 {
            self.defects.retain(|defect| defect.kind != DefectKind::LocalDisksRefused);
        }
    }

    /// Whether Ignition reads the text, so that nothing is known of how it starts the kubelet.
    pub fn is_for_ignition(&self) -> bool {
        self.parts.iter().any(|part| part.kind == PartKind::Ignition)
    }

    /// The arguments for `flag` that reach the kubelet, in its order.
    pub fn all<'a>(&'a self, flag: &'a str) -> impl Iterator<Item = &'a Argument> {
        self.arguments.iter().filter(move |argument| argument.is_taken() && sets(&argument.setting, flag))
    }

    /// What wins at last: a flag over a field, the last flag over the others. Labels merge: see [`UserData::labels`].
    pub fn effective(&self, flag: &str) -> Option<&Argument> {
        self.arguments.iter().rfind(|argument| argument.is_taken() && sets(&argument.setting, flag))
    }

    pub fn lost(&self) -> impl Iterator<Item = &Argument> {
        self.arguments.iter().filter(|argument| matches!(argument.fate, Fate::Lost(_)))
    }

    /// The taints that the user's text registers; nothing where it names none. An error is in the value of the
    /// argument.
    pub fn taints(&self) -> Option<Result<Vec<RegisteredTaint>, FlagError>> {
        self.effective("register-with-taints").map(|argument| kubelet_flags::parse_taints(&argument.value))
    }

    /// The labels that the user's text gives to the node: key, value, place. A later one replaces an earlier one of its
    /// key.
    pub fn labels(&self) -> Vec<(String, String, Span)> {
        let mut labels: Vec<(&str, &str, Span)> = Vec::new();
        for argument in self.all("node-labels") {
            labels.extend(
                kubelet_flags::parse_labels(&argument.value)
                    .map(|(key, value, span)| (key, value, argument.place(span))),
            );
        }
        let last: HashMap<&str, usize> = labels.iter().enumerate().map(|(at, (key, ..))| (*key, at)).collect();
        let kept = labels.iter().enumerate().filter(|(at, (key, ..))| last.get(key) == Some(at));
        kept.map(|(_, &(key, value, span))| (key.to_owned(), value.to_owned(), span)).collect()
    }

    /// The keys of `--node-labels` over which the kubelet exits, each with its place. A key that a variable or a
    /// template may still change is not among them.
    pub fn refused_labels(&self) -> Vec<(String, Span)> {
        let is_template = self.defects.iter().any(|defect| defect.kind == DefectKind::Template);
        let of = |argument: &Argument| {
            let mut refused = kubelet_flags::refused_labels(&argument.value);
            refused.retain(|(key, _)| argument.is_certain_of(key) || !(is_template || has_expansion(key)));
            refused.into_iter().map(|(key, span)| (key, argument.place(span))).collect::<Vec<_>>()
        };
        self.all("node-labels").flat_map(of).collect()
    }

    /// The flags that a kubelet of this minor version of Kubernetes 1 no longer has, and exits over, each with the
    /// first version without it. Every occurrence is parsed, also one that a later one replaces.
    pub fn removed_flags(&self, minor: u32) -> impl Iterator<Item = (&Argument, u32)> {
        let reaches = |a: &&Argument| {
            matches!((&a.setting, &a.fate), (Setting::Flag(_), Fate::Taken | Fate::Overridden(By::Later(_))))
        };
        self.arguments.iter().filter(reaches).filter_map(move |argument| match known_flags::look_up(argument.name()) {
            Recognized::Until(since) if since <= minor => Some((argument, since)),
            _ => None,
        })
    }

    /// The feature gates over which a kubelet of this minor version of Kubernetes 1 exits. Every occurrence is parsed.
    pub fn refused_gates(&self, minor: u32) -> impl Iterator<Item = RefusedGate<'_>> {
        let reaches = |a: &&Argument| matches!(a.fate, Fate::Taken | Fate::Overridden(By::Later(_)));
        self.arguments.iter().filter(reaches).flat_map(gates).filter_map(move |(argument, name, value, span)| {
            let refusal = feature_gates::refusal(name, value, minor)?;
            Some(RefusedGate { argument, name, span, refusal })
        })
    }

    /// Fields of the kubelet's configuration that contradict each other, so that a kubelet of this minor version of
    /// Kubernetes 1 exits. `class` is `spec.kubelet` of the node class.
    pub fn contradictions(&self, minor: Option<u32>, class: &BTreeMap<String, serde_json::Value>) -> Vec<Defect> {
        config_rules::refusals(self, minor, class)
    }

    /// The name and the endpoint of the cluster that the user's own text joins. Elsewhere than on Custom, Karpenter's
    /// part overrides it, but for a first call on AL2.
    pub fn joins(&self) -> (Option<&Located<String>>, Option<&Located<String>>) {
        let call = self.bootstrap_calls.first().filter(|call| call.exact);
        let endpoint =
            |call: &'_ BootstrapCall| call.options.iter().rposition(|(option, _)| option == "--apiserver-endpoint");
        let named = call.and_then(|call| call.cluster_name.as_ref());
        let reached = call.and_then(|call| Some(&call.options.get(endpoint(call)?)?.1));
        match self.family {
            Family::Al2 => (named, reached),
            Family::Custom => (
                named.or_else(|| self.node_configs.iter().find_map(|config| config.cluster_name.as_ref())),
                reached.or_else(|| self.node_configs.iter().find_map(|config| config.api_server_endpoint.as_ref())),
            ),
            _ => (None, None),
        }
    }

    /// A literal name or endpoint that sends the kubelet to another cluster than the one with this name and endpoint,
    /// and what it should be.
    pub fn other_cluster<'a>(
        &'a self,
        name: Option<&'a str>,
        endpoint: Option<&'a str>,
    ) -> Option<(&'a Located<String>, &'a str)> {
        let literal = |located: &&Located<String>| !located.value.is_empty() && !has_expansion(&located.value);
        let (named, reached) = self.joins();
        let by_name = named.filter(literal).zip(name).filter(|(named, own)| named.value != *own);
        by_name.or_else(|| {
            reached.filter(literal).zip(endpoint).filter(|(reached, own)| !same_endpoint(&reached.value, own))
        })
    }

    /// Whether the user's own call of bootstrap.sh starts the kubelet, so that Karpenter's comes too late.
    pub fn starts_kubelet_before_karpenter(&self) -> bool {
        self.defects.iter().any(|defect| defect.kind == DefectKind::BootstrapBeforeKarpenter)
    }
}

/// The user data of this size, once rendered, is more than EC2 takes.
pub fn too_large(text: &str, rendered: usize) -> Defect {
    let message = format!(
        "EC2 takes no more than {LARGEST} bytes of user data; with Karpenter's part these {} become at least \
         {rendered}",
        text.len()
    );
    Defect { kind: DefectKind::TooLarge, span: Span::new(text.len(), text.len()), message }
}

/// Whether a part of this text is known only to the shell that runs it, or to whoever fills the template in.
pub fn has_expansion(text: &str) -> bool {
    text.contains(['$', '`']) || has_placeholder(text)
}

/// Whether two endpoints are one cluster's.
pub fn same_endpoint(one: &str, other: &str) -> bool {
    let bare = |url: &str| url.trim().trim_end_matches('/').trim_end_matches(":443").to_ascii_lowercase();
    bare(one) == bare(other)
}

/// Whether a setting is the one that `flag` names: fields are the flag in camel case.
fn sets(setting: &Setting, flag: &str) -> bool {
    match setting {
        Setting::Flag(name) => name == flag,
        Setting::Field(name) => {
            name.chars().filter(|&c| c != '-').map(|c| c.to_ascii_lowercase()).eq(flag.chars().filter(|&c| c != '-'))
        }
    }
}

/// Reads `text` as a machine of `family` would, with Karpenter's own part merged the way Karpenter merges it.
pub fn read(text: &str, family: Family) -> UserData {
    reader::read(text, family)
}

#[cfg(test)]
mod tests;
