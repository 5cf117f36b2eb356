//! The settings beside `settings.kubernetes`, and the types that Bottlerocket's API server takes for them.
//!
//! At boot, early-boot-config hands over the whole of the user data in one request. One value of a wrong type, and all
//! of it is refused: no setting is made, and the boot stops there (`RequiredBy=preconfigured.target`).

use toml::de::DeValue;

use super::{Kind, fits};
use crate::source_text::Span;
use crate::userdata::{kernel_tunables, known_flags};

/// A setting's name, in which `*` stands for any part, and what it holds.
// bottlerocket v1.20.5 sources/models/src/lib.rs; what is newer: bottlerocket-settings-sdk
// bottlerocket-settings-models/settings-extensions/*/src/lib.rs (kernel 193cc81, bootstrap-containers 96d45d3,
// host-containers 5f7a725, network 923a01d, ntp 691ed58, container-runtime 985f108). Of those that are
// `Any` only the names are known.
const MODEL: &[(&str, Kind)] = &[
    ("autoscaling.should-wait", Kind::Boolean),
    ("aws.config", Kind::Text),
    ("aws.credentials", Kind::Text),
    ("aws.profile", Kind::Text),
    ("aws.region", Kind::Text),
    ("boot.init", Kind::TextsMap),
    ("boot.init-parameters", Kind::TextsMap),
    ("boot.kernel", Kind::TextsMap),
    ("boot.kernel-parameters", Kind::TextsMap),
    ("boot.reboot-to-reconcile", Kind::Boolean),
    ("bootstrap-commands.*.commands", Kind::TextLists),
    ("bootstrap-commands.*.essential", Kind::Boolean),
    ("bootstrap-commands.*.mode", Kind::Word(MODES)),
    ("bootstrap-containers.*.command", Kind::Texts),
    ("bootstrap-containers.*.essential", Kind::Boolean),
    ("bootstrap-containers.*.mode", Kind::Word(MODES)),
    ("bootstrap-containers.*.source", Kind::Text),
    ("bootstrap-containers.*.user-data", Kind::Base64),
    ("cloudformation.logical-resource-id", Kind::Text),
    ("cloudformation.should-signal", Kind::Boolean),
    ("cloudformation.stack-name", Kind::Text),
    ("container-registry.credentials", Kind::List),
    ("container-registry.creds", Kind::List),
    ("container-registry.mirrors", Kind::Mirrors),
    ("container-runtime.enable-unprivileged-icmp", Kind::Boolean),
    ("container-runtime.enable-unprivileged-ports", Kind::Boolean),
    ("container-runtime.log-level", Kind::Text),
    ("container-runtime.max-concurrent-downloads", Kind::Integer),
    ("container-runtime.max-concurrent-unpacks", Kind::Integer),
    ("container-runtime.max-container-log-line-size", Kind::Integer),
    ("container-runtime.snapshotter", Kind::Text),
    ("container-runtime-plugins", Kind::Any),
    ("dns.name-servers", Kind::Texts),
    ("dns.search-list", Kind::Texts),
    ("host-containers.*.command", Kind::Texts),
    ("host-containers.*.enabled", Kind::Boolean),
    ("host-containers.*.source", Kind::Text),
    ("host-containers.*.superpowered", Kind::Boolean),
    ("host-containers.*.user-data", Kind::Base64),
    ("kernel.lockdown", Kind::Word(LOCKDOWN)),
    ("kernel.modules.*.allowed", Kind::Boolean),
    ("kernel.modules.*.autoload", Kind::Boolean),
    ("kernel.sysctl", Kind::TextMap),
    ("kubelet-device-plugins", Kind::Any),
    // Looked at by itself.
    ("kubernetes", Kind::Any),
    ("metrics.metrics-url", Kind::Text),
    ("metrics.send-metrics", Kind::Boolean),
    ("metrics.service-checks", Kind::Texts),
    ("motd", Kind::Text),
    ("network.disable-ipv6", Kind::Texts),
    ("network.hostname", Kind::Text),
    ("network.hosts", Kind::List),
    ("network.https-proxy", Kind::Text),
    ("network.no-proxy", Kind::Texts),
    ("ntp.logging", Kind::Texts),
    ("ntp.options", Kind::Texts),
    ("ntp.time-servers", Kind::ListOrTable),
    ("nvidia-container-runtime", Kind::Any),
    ("oci-defaults", Kind::Any),
    ("oci-hooks.log4j-hotpatch-enabled", Kind::Boolean),
    ("pki.*.data", Kind::Text),
    ("pki.*.trusted", Kind::Boolean),
    ("updates.ignore-waves", Kind::Boolean),
    ("updates.metadata-base-url", Kind::Text),
    ("updates.seed", Kind::Integer),
    ("updates.targets-base-url", Kind::Text),
    ("updates.version-lock", Kind::Text),
];

// bottlerocket v1.20.5 sources/models/modeled-types/src/shared.rs BootstrapContainerMode, Lockdown
const MODES: &[&str] = &["off", "once", "always"];
const LOCKDOWN: &[&str] = &["none", "integrity", "confidentiality"];

/// What is wrong with a setting.
pub enum Wrong {
    /// The API server refuses it, and with it all others.
    Type(String),
    /// No version that is known here has a setting of this name; a newer one may.
    Unfamiliar(String),
    /// A setting that Karpenter reads into its own struct: it launches nothing.
    NoLaunch(String),
    /// Not known, and nearly the name of one that is.
    Misspelt(String, String),
    /// Bottlerocket takes it, and the kubelet, which has protectKernelDefaults, exits over it.
    Tunable(String),
    /// An image that can never be pulled, so that the container never runs.
    Image { message: String, stops_boot: bool },
}

/// Goes through the table `settings`, but for `settings.kubernetes`.
pub fn check(settings: &toml::de::DeTable<'_>, found: &mut impl FnMut(Span, Wrong)) {
    for (key, value) in super::in_order(settings).filter(|(key, _)| key.get_ref() != "kubernetes") {
        walk(&[key.get_ref()], super::spanned(key.span()), value, found);
    }
}

fn walk(path: &[&str], key: Span, value: &toml::Spanned<DeValue<'_>>, found: &mut impl FnMut(Span, Wrong)) {
    let name = || format!("settings.{}", path.join("."));
    let span = super::spanned(value.span());
    let mut below = MODEL.iter().filter(|(row, _)| begins(row, path)).peekable();
    if below.peek().is_none() {
        found(key, nearest(path).map_or_else(|| Wrong::Unfamiliar(name()), |near| Wrong::Misspelt(name(), near)));
        return;
    }
    if let Some((_, kind)) = below.find(|(row, _)| row.split('.').count() == path.len()) {
        if !fits(*kind, value.get_ref(), false) {
            // The first value of a table that is wrong is what to mend.
            let (name, span) = inner(*kind, value).map_or((name(), span), |(key, span)| (name() + "." + &key, span));
            let wanted = match kind {
                Kind::TextMap => Kind::Text.wanted().to_owned(),
                Kind::Word(known) => known.join(" or "),
                kind => kind.wanted().to_owned(),
            };
            let message = format!("{name} must be {wanted}");
            // karpenter-provider-aws v1.14.1 pkg/providers/amifamily/bootstrap/bottlerocketsettings.go BootstrapCommand
            found(
                span,
                if path.first() == Some(&"bootstrap-commands") {
                    Wrong::NoLaunch(message)
                } else {
                    Wrong::Type(message)
                },
            );
        } else if let (["kernel", "sysctl"], DeValue::Table(table)) = (path, value.get_ref()) {
            tunables(table, found);
        }
        return;
    }
    let DeValue::Table(table) = value.get_ref() else {
        found(span, Wrong::Type(format!("{} must be a table", name())));
        return;
    };
    if let ["bootstrap-containers", container] = path {
        bootstrap_image(container, table, found);
    }
    for (key, value) in super::in_order(table) {
        walk(&[path, &[key.get_ref()]].concat(), super::spanned(key.span()), value, found);
    }
}

/// The setting whose name was probably meant. Short names are near many others.
fn nearest(path: &[&str]) -> Option<String> {
    let (last, parents) = path.split_last().filter(|(last, _)| last.len() > 4)?;
    let beside = |row: &'static str| {
        let own = row.split('.').nth(parents.len())?;
        (begins(row, parents) && own != "*" && known_flags::is_near(own, last)).then_some(own)
    };
    let own = MODEL.iter().find_map(|&(row, _)| beside(row))?;
    Some(format!("settings.{}", [parents, &[own]].concat().join(".")))
}

/// Whether a row is this setting, or one below it.
fn begins(row: &str, path: &[&str]) -> bool {
    let mut parts = row.split('.');
    path.iter().all(|part| parts.next().is_some_and(|own| own == "*" || own == *part))
}

/// The value in a table of strings that is none.
fn inner(kind: Kind, value: &toml::Spanned<DeValue<'_>>) -> Option<(String, Span)> {
    let DeValue::Table(table) = value.get_ref() else { return None };
    let (key, value) = super::in_order(table)
        .find(|(_, value)| kind == Kind::TextMap && !matches!(value.get_ref(), DeValue::String(_)))?;
    let key = key.get_ref();
    let key = if key.contains('.') { format!("{key:?}") } else { key.to_string() };
    Some((key, super::spanned(value.span())))
}

// bottlerocket v1.20.5 packages/kubernetes-1.30/kubelet-config (protectKernelDefaults: true)
fn tunables(sysctl: &toml::de::DeTable<'_>, found: &mut impl FnMut(Span, Wrong)) {
    for (key, value) in super::in_order(sysctl) {
        if let DeValue::String(text) = value.get_ref()
            && let Some(message) = kernel_tunables::objection(key.get_ref(), text)
        {
            found(super::spanned(value.span()), Wrong::Tunable(message));
        }
    }
}

/// host-ctr resolves `HOST/PATH:TAG` or `HOST/PATH@DIGEST`, and adds nothing to it.
///
/// Where an essential bootstrap container fails, the boot does not go on.
// bottlerocket-core-kit a10182f sources/host-ctr/cmd/host-ctr/main.go pullImage; containerd v1.7.22
// reference/reference.go Parse, remotes/docker/resolver.go Resolve ("object required"); bottlerocket-core-kit a10182f
// sources/api/bootstrap-containers/src/main.rs (RequiredBy where essential)
fn bootstrap_image(container: &str, table: &toml::de::DeTable<'_>, found: &mut impl FnMut(Span, Wrong)) {
    let text = |name: &str| match table.get(name).map(toml::Spanned::get_ref) {
        Some(DeValue::String(value)) => Some(value.as_ref()),
        _ => None,
    };
    let (Some(source), Some(place)) = (text("source"), table.get("source")) else { return };
    // The mode is off where none is written.
    if crate::userdata::has_expansion(source) || matches!(text("mode"), None | Some("off")) {
        return;
    }
    let lacks = match source.split_once('/') {
        None => "no registry",
        Some((_, path)) if !path.contains('@') && !path.rsplit('/').next().unwrap_or(path).contains(':') => {
            "neither a tag nor a digest"
        }
        Some(_) => return,
    };
    let stops_boot = matches!(table.get("essential").map(toml::Spanned::get_ref), Some(DeValue::Boolean(true)));
    let so = if stops_boot { "as it is essential, the boot stops there" } else { "the machine boots without it" };
    let message =
        format!("settings.bootstrap-containers.{container}.source has {lacks}, so the image can never be pulled; {so}");
    found(super::spanned(place.span()), Wrong::Image { message, stops_boot });
}
