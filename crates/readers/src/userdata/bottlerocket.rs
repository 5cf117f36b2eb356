//! Bottlerocket's TOML settings, as Karpenter reads them before it writes them out again.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::traced::Traced;
use super::{Defect, DefectKind, Located, go_values, has_expansion, known_flags};
use crate::source_text::Span;
use model::Wrong;

mod kubernetes;
mod model;

/// What the settings say to the kubelet.
#[derive(Debug, Default)]
pub struct Settings {
    /// `settings.kubernetes.node-labels` as `key=value`.
    pub labels: Vec<(Traced, Span)>,
    /// `settings.kubernetes.node-taints` in the grammar of the kubelet's flag, and where they stand.
    pub taints: Option<(Traced, Span)>,
    /// The other settings below `settings.kubernetes`.
    pub others: Vec<(String, Traced, Span)>,
    /// `settings.aws.region`
    pub region: Option<Located<String>>,
    pub defects: Vec<Defect>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    /// One of these.
    Word(&'static [&'static str]),
    Integer,
    /// A string for Karpenter, an integer too for Bottlerocket.
    Percent,
    Boolean,
    Texts,
    /// A string for Karpenter, a list too for Bottlerocket.
    Addresses,
    TextMap,
    TextsMap,
    Table,
    /// Of what, is not looked at.
    List,
    ListOrTable,
    /// Bytes in base64.
    Base64,
    /// Commands, each a list of words.
    TextLists,
    /// By registry, or a list of tables with `registry` and `endpoint`.
    Mirrors,
    /// nodewhy does not look into it.
    Any,
}

// karpenter-provider-aws v1.15.0 pkg/providers/amifamily/bootstrap/bottlerocketsettings.go BottlerocketKubernetes
const KNOWN: &[(&str, Kind)] = &[
    ("allowed-unsafe-sysctls", Kind::Texts),
    ("api-server", Kind::Text),
    ("cloud-provider", Kind::Text),
    ("cluster-certificate", Kind::Text),
    ("cluster-dns-ip", Kind::Addresses),
    ("cluster-domain", Kind::Text),
    ("cluster-name", Kind::Text),
    ("container-log-max-files", Kind::Integer),
    ("container-log-max-size", Kind::Text),
    ("container-log-max-workers", Kind::Integer),
    ("container-log-monitor-interval", Kind::Text),
    ("cpu-cfs-quota-enforced", Kind::Boolean),
    ("cpu-manager-policy", Kind::Text),
    ("cpu-manager-policy-options", Kind::Texts),
    ("cpu-manager-reconcile-period", Kind::Text),
    ("credential-providers", Kind::Table),
    ("device-ownership-from-security-context", Kind::Boolean),
    ("event-burst", Kind::Integer),
    ("event-qps", Kind::Integer),
    ("eviction-hard", Kind::TextMap),
    ("eviction-max-pod-grace-period", Kind::Integer),
    ("eviction-soft", Kind::TextMap),
    ("eviction-soft-grace-period", Kind::TextMap),
    ("hostname-override-source", Kind::Text),
    ("ids-per-pod", Kind::Integer),
    ("image-gc-high-threshold-percent", Kind::Percent),
    ("image-gc-low-threshold-percent", Kind::Percent),
    ("kube-api-burst", Kind::Integer),
    ("kube-api-qps", Kind::Integer),
    ("kube-reserved", Kind::TextMap),
    ("log-level", Kind::Integer),
    ("max-pods", Kind::Integer),
    ("memory-manager-policy", Kind::Text),
    // Since v1.15.0. Earlier versions leave it out.
    ("memory-manager-reserved-memory", Kind::Table),
    ("node-labels", Kind::TextMap),
    ("node-taints", Kind::TextsMap),
    ("pod-pids-limit", Kind::Integer),
    ("registry-burst", Kind::Integer),
    ("registry-qps", Kind::Integer),
    ("seccomp-default", Kind::Boolean),
    ("server-tls-bootstrap", Kind::Boolean),
    ("shutdown-grace-period", Kind::Text),
    ("shutdown-grace-period-for-critical-pods", Kind::Text),
    ("single-process-oom-kill", Kind::Boolean),
    ("static-pods", Kind::Table),
    ("system-reserved", Kind::TextMap),
    ("topology-manager-policy", Kind::Text),
    ("topology-manager-policy-options", Kind::Table),
    ("topology-manager-scope", Kind::Text),
];

/// Whether the text is TOML with a `settings` table.
pub fn names_itself_settings(text: &str) -> bool {
    DeTable::parse(text).is_ok_and(|root| root.get_ref().contains_key("settings"))
}

/// Reads the settings; `by_karpenter` where Karpenter parses them into its own struct first.
pub fn read(text: &str, by_karpenter: bool) -> Settings {
    let mut settings = Settings::default();
    let root = match DeTable::parse(text) {
        Ok(root) => root,
        Err(error) => {
            let span = error.span().map_or(Span::new(text.len(), text.len()), spanned);
            settings.defect(
                DefectKind::TomlInvalid,
                span,
                format!("this is no TOML: {}", error.message().lines().next().unwrap_or_default()),
            );
            return settings;
        }
    };
    if by_karpenter {
        // Karpenter's struct has nothing else, and writes out what it holds.
        // karpenter-provider-aws v1.14.1 pkg/providers/amifamily/bootstrap/bottlerocketsettings.go BottlerocketConfig
        for (key, _) in in_order(root.get_ref()).filter(|(key, _)| key.get_ref() != "settings") {
            let name = key.get_ref();
            let meant =
                if known_flags::is_near("settings", name) { "settings".to_owned() } else { format!("settings.{name}") };
            let message = format!("Karpenter keeps only the table `settings` and drops {name}: write {meant}");
            settings.defect(DefectKind::UnknownSetting, spanned(key.span()), message);
        }
    }
    let Some(below) = root.get_ref().get("settings") else { return settings };
    let Some(below) = settings.table("settings", below) else { return settings };
    // Karpenter copies these as they are.
    model::check(below, &mut |span, wrong| {
        let (kind, message) = match wrong {
            Wrong::Unfamiliar(name) => {
                (DefectKind::UnfamiliarSetting, format!("{name} is no setting that is known here"))
            }
            Wrong::NoLaunch(message) if by_karpenter => (DefectKind::TomlWrongType, message),
            Wrong::Type(message) | Wrong::NoLaunch(message) => {
                (DefectKind::SettingRefused, message + ": Bottlerocket refuses the whole user data at boot")
            }
            Wrong::Misspelt(name, near) => (
                DefectKind::SettingRefused,
                format!("{name} is no setting, and {near} is one: Bottlerocket refuses the whole user data at boot"),
            ),
            Wrong::Tunable(message) => (DefectKind::KernelParameterRefused, message),
            Wrong::Image { message, stops_boot: true } => (DefectKind::BootImageUnreachable, message),
            Wrong::Image { message, .. } => (DefectKind::ContainerImageUnreachable, message),
        };
        settings.defect(kind, span, message);
    });
    settings.region = below.get("aws").and_then(|aws| {
        let DeValue::Table(aws) = aws.get_ref() else { return None };
        let region = aws.get("region")?;
        let DeValue::String(name) = region.get_ref() else { return None };
        Some(Located { value: name.to_string(), span: spanned(region.span()) })
    });
    let Some(kubernetes) = below.get("kubernetes") else { return settings };
    let Some(kubernetes) = settings.table("settings.kubernetes", kubernetes) else { return settings };
    kubernetes::check(kubernetes, by_karpenter, &mut |span, why| {
        let message = format!("settings.kubernetes.{why}: Bottlerocket refuses the whole user data at boot");
        settings.defect(DefectKind::SettingRefused, span, message);
    });
    if let Some((span, why)) = kubernetes::reserved_huge_pages(kubernetes) {
        let message = format!("the kubelet exits over its configuration: settings.kubernetes.{why}");
        settings.defect(DefectKind::InvalidField, span, message);
    }
    let mut entries: Vec<_> = kubernetes.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    for (key, value) in entries {
        settings.entry(text, key.get_ref(), spanned(key.span()), value, by_karpenter);
    }
    settings
}

impl Settings {
    fn defect(&mut self, kind: DefectKind, span: Span, message: String) {
        self.defects.push(Defect { kind, span, message });
    }

    fn table<'t, 'a>(&mut self, name: &str, value: &'t Spanned<DeValue<'a>>) -> Option<&'t DeTable<'a>> {
        if let DeValue::Table(table) = value.get_ref() {
            return Some(table);
        }
        self.defect(DefectKind::TomlWrongType, spanned(value.span()), format!("{name} must be a table"));
        None
    }

    fn entry(&mut self, text: &str, key: &str, key_span: Span, value: &Spanned<DeValue<'_>>, by_karpenter: bool) {
        let span = spanned(value.span());
        let known = KNOWN.iter().find(|(name, _)| *name == key).map(|(_, kind)| *kind);
        match known {
            // Karpenter writes out only what its struct holds, and says so in nothing but its log.
            None if by_karpenter => {
                let message = format!("Karpenter does not know settings.kubernetes.{key} and leaves it out");
                self.defect(DefectKind::UnknownSetting, key_span, message);
                return;
            }
            Some(kind) if !fits(kind, value.get_ref(), by_karpenter) => {
                self.defect(
                    DefectKind::TomlWrongType,
                    span,
                    format!("settings.kubernetes.{key} must be {}", kind.wanted()),
                );
                return;
            }
            _ => {}
        }
        match (key, value.get_ref()) {
            ("node-labels", DeValue::Table(labels)) => {
                self.labels =
                    in_order(labels).map(|(label, value)| (pair(text, label, value), around(label, value))).collect();
            }
            ("node-taints", DeValue::Table(taints)) => {
                let span = in_order(taints)
                    .map(|(key, value)| around(key, value))
                    .reduce(|a, b| Span::new(a.start, a.end.max(b.end)));
                self.taints = Some((taint_list(text, taints), span.unwrap_or(key_span)));
            }
            _ => self.others.push((key.to_owned(), scalar(text, value), span)),
        }
    }
}

impl Kind {
    const fn wanted(self) -> &'static str {
        match self {
            Self::Text | Self::Percent | Self::Addresses => "a string",
            Self::Word(_) => "one of its words",
            Self::Integer => "an integer",
            Self::Boolean => "a boolean",
            Self::Texts => "a list of strings",
            Self::TextMap => "a table of strings",
            Self::TextsMap => "a table of lists of strings",
            Self::Table => "a table",
            Self::List => "a list",
            Self::ListOrTable => "a list or a table",
            Self::Base64 => "base64",
            Self::TextLists => "a list of lists of strings",
            Self::Mirrors => "a table of lists of URLs, or a list of tables whose endpoint is a list",
            Self::Any => "anything",
        }
    }
}

fn fits(kind: Kind, value: &DeValue<'_>, by_karpenter: bool) -> bool {
    let all = |value: &DeValue<'_>, kind| match value {
        DeValue::Array(items) => items.iter().all(|v| fits(kind, v.get_ref(), by_karpenter)),
        _ => false,
    };
    match (kind, value) {
        // Nobody knows which text a template puts there.
        (Kind::Word(_) | Kind::Base64, DeValue::String(text)) if has_expansion(text) => true,
        (Kind::Word(known), DeValue::String(word)) => known.contains(&word.as_ref()),
        (Kind::Base64, DeValue::String(text)) => go_values::is_base64(text),
        (Kind::TextLists, DeValue::Array(_)) => all(value, Kind::Texts),
        // bottlerocket v1.19.0 sources/models/src/lib.rs RegistryMirror, de.rs deserialize_mirrors
        (Kind::Mirrors, DeValue::Array(mirrors)) => mirrors.iter().all(|mirror| match mirror.get_ref() {
            DeValue::Table(mirror) => {
                mirror.get("endpoint").is_none_or(|e| fits(Kind::Texts, e.get_ref(), by_karpenter))
            }
            _ => false,
        }),
        (Kind::Mirrors, DeValue::Table(mirrors)) => {
            mirrors.values().all(|endpoints| fits(Kind::Texts, endpoints.get_ref(), by_karpenter))
        }
        (Kind::Any, _)
        | (Kind::Text | Kind::Percent | Kind::Addresses, DeValue::String(_))
        | (Kind::Integer, DeValue::Integer(_))
        | (Kind::Boolean, DeValue::Boolean(_))
        | (Kind::List | Kind::ListOrTable, DeValue::Array(_))
        | (Kind::Table | Kind::ListOrTable, DeValue::Table(_)) => true,
        (Kind::Texts, DeValue::Array(_)) => all(value, Kind::Text),
        // Labels, reservations and thresholds are strings for both; `cpu = 2` and `"x" = true` are refused.
        // bottlerocket v1.19.0 sources/models/modeled-types/src/kubernetes.rs
        (Kind::TextMap, DeValue::Table(table)) => table.values().all(|v| matches!(v.get_ref(), DeValue::String(_))),
        // Bottlerocket itself takes a single string for a list of one; Karpenter's struct does not.
        // bottlerocket v1.20.5 sources/models/src/de.rs deserialize_node_taints
        (Kind::TextsMap, DeValue::Table(table)) => table.values().all(|v| match v.get_ref() {
            DeValue::String(_) => !by_karpenter,
            list => fits(Kind::Texts, list, by_karpenter),
        }),
        // bottlerocket v1.20.5 sources/models/modeled-types/src/kubernetes.rs IntegerPercent, KubernetesClusterDnsIp
        (Kind::Percent, DeValue::Integer(_)) => !by_karpenter,
        (Kind::Addresses, DeValue::Array(_)) => !by_karpenter && all(value, Kind::Text),
        _ => false,
    }
}

fn in_order<'t, 'a>(
    table: &'t DeTable<'a>,
) -> impl Iterator<Item = (&'t Spanned<toml::de::DeString<'a>>, &'t Spanned<DeValue<'a>>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries.into_iter()
}

fn pair(text: &str, key: &Spanned<toml::de::DeString<'_>>, value: &Spanned<DeValue<'_>>) -> Traced {
    let mut pair = name(text, key);
    pair.push_unwritten('=', key.span().end);
    pair.append(&scalar(text, value));
    pair
}

/// `key=value:Effect,…`, the value that Bottlerocket's template gives to `--register-with-taints`.
// bottlerocket v1.19.0 packages/kubernetes-*/kubelet-exec-start-conf
fn taint_list(text: &str, taints: &DeTable<'_>) -> Traced {
    let mut list = Traced::default();
    for (key, value) in in_order(taints) {
        let items = match value.get_ref() {
            DeValue::Array(items) => items.iter().collect(),
            _ => vec![value],
        };
        for item in items {
            if !list.is_empty() {
                list.push_unwritten(',', key.span().start);
            }
            list.append(&pair(text, key, item));
        }
    }
    list
}

fn name(text: &str, key: &Spanned<toml::de::DeString<'_>>) -> Traced {
    let span = spanned(key.span());
    Traced::decoded(key.get_ref(), span.of(text), span.start)
}

fn scalar(text: &str, value: &Spanned<DeValue<'_>>) -> Traced {
    let span = spanned(value.span());
    match value.get_ref() {
        DeValue::String(value) => Traced::decoded(value, span.of(text), span.start),
        _ => Traced::written_at(span.of(text), span.start),
    }
}

fn around(key: &Spanned<toml::de::DeString<'_>>, value: &Spanned<DeValue<'_>>) -> Span {
    Span::new(key.span().start, value.span().end.max(key.span().end))
}

fn spanned(range: Range<usize>) -> Span {
    Span::new(range.start, range.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_taints_become_the_kubelets_flags() {
        let text = "[settings.kubernetes]\nmax-pods = 58\n[settings.kubernetes.node-labels]\n\"a/b\" = \
                    \"c\"\n[settings.kubernetes.node-taints]\n\"karpenter.sh/unregistered\" = [\":NoExecute\"]\nx = \
                    [\"y:NoSchedule\", \"z:NoExecute\"]\n";
        let settings = read(text, true);
        assert_eq!(settings.labels[0].0.as_str(), "a/b=c");
        assert_eq!(
            settings.taints.as_ref().unwrap().0.as_str(),
            "karpenter.sh/unregistered=:NoExecute,x=y:NoSchedule,x=z:NoExecute"
        );
        assert!(settings.taints.unwrap().1.of(text).starts_with("\"karpenter.sh/"));
        assert_eq!(settings.others[0].0, "max-pods");
        assert!(settings.defects.is_empty());
    }

    #[test]
    fn bad_toml_has_a_place() {
        let text = "[settings.kubernetes]\nmax-pods = = 3\n";
        let defect = &read(text, true).defects[0];
        assert_eq!(defect.kind, DefectKind::TomlInvalid);
        assert_eq!(crate::source_text::position(text, defect.span.start).line, 2);
    }

    #[test]
    fn wrong_types_and_unknown_settings_are_told_apart() {
        let text = "[settings.kubernetes]\nmax-pods = \"58\"\nfoo = 1\n";
        let kinds: Vec<_> = read(text, true).defects.iter().map(|d| d.kind).collect();
        assert_eq!(kinds, [DefectKind::TomlWrongType, DefectKind::UnknownSetting]);
        let text = "[settings.kubernetes.memory-manager-reserved-memory.0]\nenabled = true\nmemory = \"1Gi\"\n";
        assert!(read(text, true).defects.is_empty());
    }

    #[test]
    fn huge_pages_are_not_reserved_by_the_memory_manager() {
        let text = |policy: &str, enabled: bool, pages: &str| {
            let reserved = format!("enabled = {enabled}\nmemory = \"993Mi\"\n{pages}");
            let policy = format!("[settings.kubernetes]\nmemory-manager-policy = \"{policy}\"\n");
            format!("{policy}[settings.kubernetes.memory-manager-reserved-memory.0]\n{reserved}")
        };
        let pages = "hugepages-2Mi = \"10Mi\"\n";
        let refused = text("Static", true, pages);
        assert_eq!(told(&refused), [(DefectKind::InvalidField, "hugepages-2Mi")]);
        for taken in [
            text("None", true, pages),
            text("Static", false, pages),
            text("Static", true, ""),
            text("Static", true, "hugepages-2Mi = \"0\"\n"),
        ] {
            assert_eq!(told(&taken), [], "{taken}");
        }
    }

    fn told(text: &str) -> Vec<(DefectKind, &str)> {
        let mut defects = read(text, true).defects;
        defects.sort_by_key(|defect| defect.span.start);
        defects.iter().map(|defect| (defect.kind, defect.span.of(text))).collect()
    }

    #[test]
    fn one_value_of_a_wrong_type_is_shown_where_it_stands() {
        let refused = |text| {
            let told = told(text);
            assert!(told.iter().all(|(kind, _)| *kind == DefectKind::SettingRefused), "{told:?}");
            told.into_iter().map(|(_, place)| place).collect::<Vec<_>>()
        };
        assert_eq!(
            refused("[settings.kernel.sysctl]\n\"vm.max_map_count\" = \"1\"\n\"user.x\" = 1048576\n"),
            ["1048576"]
        );
        assert_eq!(refused("[settings.kernel]\nlockdown = \"on\"\n"), ["\"on\""]);
        assert_eq!(refused("[settings.host-containers.admin]\nenabled = \"true\"\n"), ["\"true\""]);
        assert_eq!(refused("[settings.ntp]\ntime-servers = \"169.254.169.123\"\n"), ["\"169.254.169.123\""]);
        assert_eq!(refused("[settings.pki]\nour-ca = \"LS0t\"\n"), ["\"LS0t\""]);
        assert_eq!(refused("settings.metrics = true\n"), ["true"]);
        assert_eq!(refused("[settings.bootstrap-containers.tune]\nmode = \"on\"\n"), ["\"on\""]);
    }

    #[test]
    fn what_the_model_takes_is_taken() {
        let text = r#"
settings.motd = "hello"
[settings.kernel]
lockdown = "integrity"
sysctl = {"net.core.somaxconn" = "1024"}
modules.sctp.allowed = true
[settings.host-containers.admin]
enabled = true
user-data = "e30="
[settings.bootstrap-containers.tune]
source = "public.ecr.aws/shop/tune:v1"
mode = "always"
essential = true
[settings.container-registry.mirrors]
"docker.io" = ["https://mirror.example.com"]
[[settings.container-registry.credentials]]
registry = "docker.io"
[settings.boot.kernel-parameters]
quiet = ["a", "b"]
[settings.network]
hosts = [["10.0.0.1", ["a"]]]
no-proxy = ["localhost"]
[settings.ntp]
time-servers = ["169.254.169.123"]
[settings.updates]
seed = 3
"#;
        assert_eq!(told(text), []);
    }

    #[test]
    fn values_that_bottlerocket_refuses_are_shown() {
        let refused = |text: &str| {
            let told = told(text);
            assert_eq!(told.len(), 1, "{text}: {told:?}");
            assert_eq!(told[0].0, DefectKind::SettingRefused, "{text}");
            told[0].1.to_owned()
        };
        for (text, place) in [
            ("[settings.bootstrap-containers.x]\nuser-data = \"echo hi!\"\n", "\"echo hi!\""),
            ("[settings.host-containers.admin]\nuser-data = \"{}\"\n", "\"{}\""),
            ("[settings.kubernetes.static-pods.x]\nmanifest = \"no base64!\"\n", "\"no base64!\""),
            ("[settings.kubernetes]\ntopology-manager-policy = \"single-numa\"\n", "\"single-numa\""),
            ("[settings.kubernetes]\ncpu-manager-policy = \"Static\"\n", "\"Static\""),
            ("[settings.kubernetes]\nshutdown-grace-period = \"30\"\n", "\"30\""),
            ("[settings.kubernetes]\nimage-gc-high-threshold-percent = \"101\"\n", "\"101\""),
            ("[settings.kubernetes]\nhostname-override-source = \"instance\"\n", "\"instance\""),
            ("[settings.kubernetes.eviction-hard]\n\"memory.avail\" = \"5%\"\n", "\"5%\""),
            ("[settings.kubernetes.eviction-hard]\n\"memory.available\" = \"5MB\"\n", "\"5MB\""),
            ("[settings.kubernetes.kube-reserved]\nmem = \"1Gi\"\n", "\"1Gi\""),
            ("[settings.kubernetes.system-reserved]\nmemory = \"1GB\"\n", "\"1GB\""),
            ("[[settings.container-registry.mirrors]]\nregistry = \"docker.io\"\nendpoint = \"https://m\"\n", ""),
            ("[settings.kernal]\nlockdown = \"none\"\n", "kernal"),
            ("[settings.kernel]\nlockdwn = \"none\"\n", "lockdwn"),
        ] {
            assert!(refused(text).contains(place), "{text}: {}", refused(text));
        }
        let commands = "[settings.bootstrap-commands.motd]\ncommands = [\"apiclient set motd=hi\"]\n";
        assert_eq!(told(commands), [(DefectKind::TomlWrongType, "[\"apiclient set motd=hi\"]")]);
    }

    #[test]
    fn values_that_bottlerocket_takes_are_taken() {
        let text = r#"
[settings.oci-defaults.resource-limits.max-open-files]
hard-limit = 1048576
soft-limit = 65536
[settings.kubelet-device-plugins.nvidia]
device-sharing-strategy = "time-slicing"
[settings.nvidia-container-runtime]
visible-devices-as-volume-mounts = true
[settings.container-runtime-plugins.soci-snapshotter]
pull-mode = "parallel-pull-unpack"
[settings.bootstrap-commands.motd]
commands = [["apiclient", "set", "motd=hi"]]
mode = "once"
essential = false
[settings.bootstrap-containers.x]
user-data = "${base64encode(script)}"
[settings.kubernetes]
topology-manager-policy = "single-numa-node"
shutdown-grace-period = "30s"
image-gc-high-threshold-percent = "85"
cluster-dns-ip = "10.100.0.10"
hostname-override-source = "instance-id"
cpu-manager-policy = "${policy}"
[settings.kubernetes.eviction-hard]
"memory.available" = "5%"
"nodefs.available" = "1Gi"
[settings.kubernetes.kube-reserved]
cpu = "500m"
ephemeral-storage = "1Gi"
[settings.kubernetes.node-taints]
dedicated = ["gpu:NoSchedule", ":NoExecute"]
[settings.kubernetes.node-labels]
"example.com/a" = ""
[[settings.container-registry.mirrors]]
registry = "docker.io"
endpoint = ["https://m"]
"#;
        assert_eq!(told(text), []);
    }

    #[test]
    fn karpenter_keeps_nothing_beside_settings() {
        assert_eq!(told("[kubernetes]\nmax-pods = 50\n"), [(DefectKind::UnknownSetting, "kubernetes")]);
        assert_eq!(told("[setting.kubernetes]\nmax-pods = 50\n"), [(DefectKind::UnknownSetting, "setting")]);
        assert_eq!(read("[kubernetes]\nmax-pods = 50\n", false).defects.len(), 0);
    }

    #[test]
    fn an_unknown_setting_may_be_a_newer_ones() {
        let text = "[settings.quantum]\nspin = 1\n[settings.network]\nfuture = true\n";
        assert_eq!(told(text), [(DefectKind::UnfamiliarSetting, "quantum"), (DefectKind::UnfamiliarSetting, "future")]);
    }

    #[test]
    fn an_image_needs_a_registry_and_a_tag_or_digest() {
        let with = |source: &str, rest: &str| {
            read(&format!("[settings.bootstrap-containers.tune]\nsource = {source:?}\n{rest}\n"), true)
                .defects
                .iter()
                .map(|defect| defect.kind)
                .collect::<Vec<_>>()
        };
        let essential = "mode = \"once\"\nessential = true";
        assert_eq!(with("docker.io/tune", essential), [DefectKind::BootImageUnreachable]);
        assert_eq!(with("tune:v1", essential), [DefectKind::BootImageUnreachable]);
        assert_eq!(with("docker.io:443/tune", "mode = \"always\""), [DefectKind::ContainerImageUnreachable]);
        assert_eq!(with("docker.io/shop/tune:v1", essential), []);
        assert_eq!(with("docker.io/shop/tune@sha256:0a", essential), []);
        assert_eq!(with("docker.io/tune", "mode = \"off\"\nessential = true"), []);
        assert_eq!(with("docker.io/tune", "essential = true"), []);
        assert_eq!(with("{{ .Values.image }}", essential), []);
    }

    #[test]
    fn a_single_string_is_a_list_for_bottlerocket_but_not_for_karpenter() {
        let text = "[settings.kubernetes.node-taints]\na = \"b:NoSchedule\"\n";
        assert_eq!(read(text, true).defects[0].kind, DefectKind::TomlWrongType);
        assert_eq!(read(text, false).taints.unwrap().0.as_str(), "a=b:NoSchedule");
    }
}
