//! nodeadm's `NodeConfig`, the user data of Amazon Linux 2023.
//!
//! Known to differ: Go reads nothing behind its first document, also where no `---` ends that one but a smaller
//! indentation, the end of a `{…}`, a `%` directive or a leading `...`. We take what follows for a mistake in the YAML.
//! And Go refuses a `!!binary` that is no base64.

use super::go_values;
use super::kubelet_config::{self, Schema, Wrong};
use super::traced::Traced;
use super::yaml::{self, YamlNode, YamlValue};
use super::{Defect, DefectKind, Located, has_expansion};
use crate::source_text::Span;

/// One `NodeConfig` document of the user's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeConfig {
    pub span: Span,
    pub cluster_name: Option<Located<String>>,
    pub api_server_endpoint: Option<Located<String>>,
    pub certificate_authority: Option<Located<String>>,
    pub cidr: Option<Located<String>>,
    /// `featureGates.InstanceIdNodeName`: the Node is named after the instance.
    pub instance_id_node_name: Option<Located<bool>>,
    /// `spec.containerd.config`.
    pub(super) containerd: Traced,
    pub(super) flags: Vec<Traced>,
    pub(super) fields: Vec<Field>,
    /// `spec.instance.localStorage.strategy`.
    pub local_storage: Option<Located<String>>,
    /// `spec.featureGates.FastImagePull`.
    pub fast_image_pull: Option<Located<bool>>,
    /// `spec.kubelet.config` as it is written.
    pub(super) kubelet: Option<YamlNode>,
    /// Fields and documents that nodeadm ignores.
    pub(super) ignored: Vec<Defect>,
}

/// One field of `spec.kubelet.config`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    pub name: String,
    /// Taints in the grammar of the flag, other values as they are written.
    pub value: Traced,
    pub span: Span,
}

impl NodeConfig {
    /// How many lines `spec.containerd.config` has, and where they stand.
    pub fn containerd_lines(&self) -> Option<(usize, Span)> {
        (!self.containerd.is_empty()).then(|| (self.containerd.as_str().lines().count(), self.containerd.span()))
    }
}

/// The only version nodeadm knows.
// amazon-eks-ami 81fec2e nodeadm/api/v1alpha1/doc.go
const API_VERSION: &str = "node.eks.aws/v1alpha1";

/// Whether Karpenter takes plain user data for a `NodeConfig`: whenever it parses as a YAML map, or as nothing at all.
// karpenter-provider-aws v1.14.1 pkg/providers/amifamily/bootstrap/nodeadm.go parseUserData
pub fn is_node_config_for_karpenter(text: &str) -> bool {
    yaml::read(text, Span::new(0, text.len()))
        .is_ok_and(|root| matches!(root.value, YamlValue::Map(_) | YamlValue::Null))
}

/// Whether the text names itself a `NodeConfig`.
pub fn names_itself_node_config(text: &str) -> bool {
    text.contains("node.eks.aws/")
}

/// Reads one document. Where nodeadm could not decode it, there is a defect and no document.
// amazon-eks-ami 81fec2e nodeadm/internal/api/bridge/decode.go: one undecodable part fails the whole user data
pub fn read(text: &str, span: Span) -> Result<NodeConfig, Defect> {
    let root = yaml::read(text, span).map_err(|error| Defect {
        kind: DefectKind::NodeConfigUnreadable,
        span: error.span,
        message: format!("nodeadm cannot read this as YAML: {}", error.message),
    })?;
    let (version, kind) = (root.get("apiVersion"), root.get("kind"));
    if version.and_then(YamlNode::text) != Some(API_VERSION) || kind.and_then(YamlNode::text) != Some("NodeConfig") {
        let wanted = format!("`apiVersion: {API_VERSION}` and `kind: NodeConfig`");
        let missing = match (version.and_then(YamlNode::text), kind.and_then(YamlNode::text)) {
            (None, Some("NodeConfig")) => Some(format!("apiVersion: {API_VERSION}")),
            (Some(API_VERSION), None) => Some("kind: NodeConfig".to_owned()),
            _ => None,
        };
        let message = missing.map_or_else(
            || format!("nodeadm takes this part for a NodeConfig and wants {wanted}"),
            |missing| format!("nodeadm refuses this NodeConfig, because `{missing}` is missing"),
        );
        let wrong_version = version.filter(|v| v.text() != Some(API_VERSION));
        let at = wrong_version.or(kind).map_or(Span::new(span.start, first_line_end(text, span)), |node| node.span);
        return Err(Defect { kind: DefectKind::NodeConfigWrongKind, span: at, message });
    }
    let spec = root.get("spec");
    let (mut refused, mut ignored) = (None, Vec::new());
    // The nodeadm of hybrid nodes has the same apiVersion, and fields of its own: aws/eks-hybrid api/v1alpha1.
    let is_hybrid = spec.is_some_and(|spec| spec.get("hybrid").is_some());
    for (name, node) in root.entries() {
        kubelet_config::walk(NODE_CONFIG, text, name, node, &mut |wrong| match wrong {
            Wrong::Refused(span, why) if refused.is_none() => refused = Some(wrong_type(&why, span)),
            Wrong::Refused(..) => {}
            Wrong::Ignored(..) if is_hybrid => {}
            Wrong::Ignored(span, message) => ignored.push(Defect { kind: DefectKind::FieldIgnored, span, message }),
        });
    }
    if let Some(defect) = refused {
        return Err(defect);
    }
    ignored.extend(unknown_features(spec));
    ignored.extend(unknown_mounts(spec));
    if let Some(behind) = yaml::behind_first_document(text, span) {
        let message = "nodeadm reads only the first YAML document of a part, so it ignores this one".to_owned();
        ignored.push(Defect { kind: DefectKind::DocumentIgnored, span: behind, message });
    }
    let below = |section: &str, key: &str| spec.and_then(|s| s.get(section)).and_then(|s| s.get(key));
    let located = |node: Option<&YamlNode>| {
        let node = node?;
        Some(Located { value: node.text()?.to_owned(), span: node.span })
    };
    let string = |key: &str| located(below("cluster", key));
    let authority = string("certificateAuthority");
    if let Some(authority) = authority.as_ref().filter(|a| !has_expansion(&a.value) && !go_values::is_base64(&a.value))
    {
        return Err(wrong_type("spec.cluster.certificateAuthority must be base64, and is not", authority.span));
    }
    let feature = |name: &str| match below("featureGates", name) {
        Some(YamlNode { value: YamlValue::Boolean(value), span }) => Some(Located { value: *value, span: *span }),
        _ => None,
    };
    let containerd = below("containerd", "config").and_then(|node| node.traced(text)).unwrap_or_default();
    Ok(NodeConfig {
        span,
        cluster_name: string("name"),
        api_server_endpoint: string("apiServerEndpoint"),
        certificate_authority: authority,
        cidr: string("cidr"),
        instance_id_node_name: feature("InstanceIdNodeName"),
        containerd,
        flags: flags(text, below("kubelet", "flags")),
        fields: fields(text, below("kubelet", "config")),
        local_storage: located(below("instance", "localStorage").and_then(|storage| storage.get("strategy"))),
        fast_image_pull: feature("FastImagePull"),
        kubelet: below("kubelet", "config").cloned(),
        ignored,
    })
}

fn first_line_end(text: &str, span: Span) -> usize {
    span.start + span.of(text).find('\n').unwrap_or(span.end - span.start)
}

fn wrong_type(why: &str, span: Span) -> Defect {
    Defect { kind: DefectKind::NodeConfigWrongType, span, message: format!("nodeadm refuses the document: {why}") }
}

/// The fields that nodeadm decodes.
const NODE_CONFIG: Schema = Schema { reader: "nodeadm", paths: paths_of_fields, kind: kind_of_field };

// amazon-eks-ami 81fec2e nodeadm/api/v1alpha1/nodeconfig_types.go
const FIELDS: &[(&str, &str)] = &[
    ("apiVersion", "string"),
    ("kind", "string"),
    ("metadata", "any"),
    ("status", "any"),
    ("spec", "map"),
    ("spec.cluster", "map"),
    ("spec.cluster.name", "string"),
    ("spec.cluster.apiServerEndpoint", "string"),
    ("spec.cluster.certificateAuthority", "base64"),
    ("spec.cluster.cidr", "string"),
    ("spec.cluster.enableOutpost", "bool"),
    ("spec.cluster.id", "string"),
    ("spec.containerd", "map"),
    ("spec.containerd.config", "string"),
    ("spec.containerd.baseRuntimeSpec", "map"),
    ("spec.containerd.baseRuntimeSpec.*", "any"),
    ("spec.instance", "map"),
    ("spec.instance.localStorage", "map"),
    ("spec.instance.localStorage.strategy", "string"),
    ("spec.instance.localStorage.mountPath", "string"),
    ("spec.instance.localStorage.disabledMounts", "list"),
    ("spec.instance.localStorage.disabledMounts[]", "string"),
    ("spec.instance.environment", "map"),
    ("spec.instance.environment.*", "any"),
    ("spec.instance.network", "map"),
    ("spec.instance.network.nameservers", "list"),
    ("spec.instance.network.nameservers[]", "string"),
    ("spec.instance.network.domains", "list"),
    ("spec.instance.network.domains[]", "string"),
    ("spec.kubelet", "map"),
    ("spec.kubelet.config", "map"),
    ("spec.kubelet.config.*", "any"),
    ("spec.kubelet.flags", "list"),
    ("spec.kubelet.flags[]", "string"),
    ("spec.kubelet.maxPodsExpression", "string"),
    ("spec.featureGates", "map"),
    ("spec.featureGates.*", "bool"),
];

fn paths_of_fields() -> Vec<&'static str> {
    FIELDS.iter().map(|(path, _)| *path).collect()
}

fn kind_of_field(path: &str) -> Option<&'static str> {
    FIELDS.iter().find(|(field, _)| *field == path).map(|(_, kind)| *kind)
}

// amazon-eks-ami 81fec2e nodeadm/api/v1alpha1/nodeconfig_types.go Feature
const FEATURES: &[&str] = &["InstanceIdNodeName", "FastImagePull"];

/// Features that are misspelt: nodeadm takes any name, and asks only for its own. A newer one may have others.
fn unknown_features(spec: Option<&YamlNode>) -> Vec<Defect> {
    let Some(gates) = spec.and_then(|spec| spec.get("featureGates")) else { return Vec::new() };
    let misspelt = |name: &str| {
        let near = |known: &&&str| known.eq_ignore_ascii_case(name) || super::known_flags::is_near(known, name);
        FEATURES.iter().find(near).filter(|_| !FEATURES.contains(&name))
    };
    let told = gates.entries().iter().filter_map(|(name, node)| {
        let message = format!("nodeadm has no feature {name} and ignores it; {} is one", misspelt(name)?);
        Some(Defect { kind: DefectKind::FieldIgnored, span: node.span, message })
    });
    told.collect()
}

// amazon-eks-ami 81fec2e nodeadm/api/v1alpha1/nodeconfig_types.go DisabledMount
const MOUNTS: &[&str] = &["Containerd", "PodLogs", "SOCI"];

/// Directories that nodeadm does not know: it compares the names exactly, and passes over others.
// amazon-eks-ami 81fec2e nodeadm/internal/system/local_disk.go Setup
fn unknown_mounts(spec: Option<&YamlNode>) -> Vec<Defect> {
    let storage = spec.and_then(|spec| spec.get("instance")).and_then(|instance| instance.get("localStorage"));
    let Some(mounts) = storage.and_then(|storage| storage.get("disabledMounts")) else { return Vec::new() };
    let mut told = Vec::new();
    for item in mounts.items() {
        let Some(name) = item.text().filter(|name| !MOUNTS.contains(name) && !has_expansion(name)) else { continue };
        let meant = MOUNTS.iter().find(|known| known.eq_ignore_ascii_case(name));
        let known =
            meant.map_or_else(|| format!("it knows {}", MOUNTS.join(", ")), |meant| format!("{meant} is meant"));
        let message = format!("nodeadm has no mount {name} and ignores it; {known}");
        told.push(Defect { kind: DefectKind::FieldIgnored, span: item.span, message });
    }
    told
}

/// What setup-local-disks takes. nodeadm hands it the strategy in lower case.
// amazon-eks-ami 81fec2e templates/al2023/runtime/bin/setup-local-disks
const STRATEGIES: &[&str] = &["raid0", "raid10", "mount", "none"];

/// The strategy for local disks over which nodeadm fails. The last document that has one decides.
// amazon-eks-ami 81fec2e nodeadm/internal/system/local_disk.go Setup
pub fn refused_strategy(configs: &[NodeConfig]) -> Option<Defect> {
    let mut strategies = configs.iter().rev().filter_map(|config| config.local_storage.as_ref());
    let written = strategies.find(|strategy| !strategy.value.is_empty())?;
    let is_known = STRATEGIES.iter().any(|known| known.eq_ignore_ascii_case(&written.value));
    if is_known || has_expansion(&written.value) {
        return None;
    }
    let message = format!(
        "nodeadm fails over the strategy {} for local disks: setup-local-disks takes RAID0, RAID10 and Mount",
        written.value
    );
    Some(Defect { kind: DefectKind::LocalDisksRefused, span: written.span, message })
}

/// The one field of `spec.cluster` that no document has, beside three that they have. If more are missing, the image
/// is likely to have a configuration of its own.
// amazon-eks-ami 81fec2e nodeadm/internal/api/validation.go ValidateNodeConfig
pub fn incomplete_cluster(configs: &[NodeConfig]) -> Option<Defect> {
    let (mut missing, mut place) = (Vec::new(), None);
    for (name, field) in CLUSTER_FIELDS {
        match configs.iter().filter_map(field).find(|text| !text.value.is_empty()) {
            Some(written) => _ = place.get_or_insert(written.span),
            None => missing.push(*name),
        }
    }
    let ([name], Some(span)) = (missing.as_slice(), place) else { return None };
    let message = format!("nodeadm refuses the configuration, because no NodeConfig has spec.cluster.{name}");
    Some(Defect { kind: DefectKind::ClusterIncomplete, span, message })
}

type ClusterField = fn(&NodeConfig) -> Option<&Located<String>>;

/// What nodeadm wants to know of the cluster.
const CLUSTER_FIELDS: &[(&str, ClusterField)] = &[
    ("name", |config| config.cluster_name.as_ref()),
    ("apiServerEndpoint", |config| config.api_server_endpoint.as_ref()),
    ("certificateAuthority", |config| config.certificate_authority.as_ref()),
    ("cidr", |config| config.cidr.as_ref()),
];

fn flags(text: &str, list: Option<&YamlNode>) -> Vec<Traced> {
    let Some(list) = list else { return Vec::new() };
    // A bare placeholder is no text, and nothing is known of it.
    list.items().iter().filter_map(|item| item.traced(text)).collect()
}

fn fields(text: &str, config: Option<&YamlNode>) -> Vec<Field> {
    let Some(config) = config else { return Vec::new() };
    let written =
        |node: &YamlNode| node.traced(text).unwrap_or_else(|| Traced::written_at(node.span.of(text), node.span.start));
    let mut fields = Vec::new();
    for (name, node) in config.entries() {
        if name == "registerWithTaints" {
            fields.push(Field { name: name.clone(), value: taints(text, node), span: node.span });
        } else if let YamlValue::Map(entries) = &node.value {
            // Maps are merged key by key, so that each key has a fate of its own.
            fields.extend(entries.iter().map(|(key, node)| Field {
                name: format!("{name}.{key}"),
                value: written(node),
                span: node.span,
            }));
        } else {
            fields.push(Field { name: name.clone(), value: written(node), span: node.span });
        }
    }
    fields
}

/// `registerWithTaints` in the grammar of the flag.
fn taints(text: &str, list: &YamlNode) -> Traced {
    let mut value = Traced::default();
    for taint in list.items() {
        let part = |key: &str| taint.get(key).and_then(|node| node.traced(text)).unwrap_or_default();
        let at = taint.span.start;
        if !value.is_empty() {
            value.push_unwritten(',', at);
        }
        value.append(&part("key"));
        value.push_unwritten('=', at);
        value.append(&part("value"));
        value.push_unwritten(':', at);
        value.append(&part("effect"));
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Result<NodeConfig, Defect> {
        read(text, Span::new(0, text.len()))
    }

    const HEAD: &str = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n";

    #[test]
    fn flags_and_fields_are_found_with_their_places() {
        let text = format!(
            "{HEAD}spec:\n  cluster: {{name: prod}}\n  kubelet:\n    flags:\n    - --v=2\n    config:\n      maxPods: \
             58\n      registerWithTaints:\n      - {{key: a, value: b, effect: NoSchedule}}\n      - key: c\n        \
             effect: NoExecute\n"
        );
        let config = whole(&text).unwrap();
        assert_eq!(config.cluster_name.unwrap().value, "prod");
        assert_eq!(config.flags[0].span().of(&text), "--v=2");
        assert_eq!(config.fields[0].value.as_str(), "58");
        assert_eq!(config.fields[1].value.as_str(), "a=b:NoSchedule,c=:NoExecute");
        assert!(config.fields[1].span.of(&text).contains("NoExecute"));
    }

    #[test]
    fn another_kind_or_version_is_refused() {
        for text in [
            "apiVersion: node.eks.aws/v1\nkind: NodeConfig\n",
            "apiVersion: node.eks.aws/v1alpha1\nkind: NodeClass\n",
            "#cloud-config\npackages: [x]\n",
            "# nothing\n",
        ] {
            assert_eq!(whole(text).unwrap_err().kind, DefectKind::NodeConfigWrongKind, "{text}");
        }
    }

    #[test]
    fn a_field_of_another_type_fails_the_document() {
        for spec in [
            "{kubelet: {flags: --v=2}}",
            "{kubelet: {flags: [1]}}",
            "{cluster: []}",
            "[]",
            "{featureGates: {InstanceIdNodeName: \"true\"}}",
            "{featureGates: {FastImagePull: 1}}",
            "{instance: {localStorage: RAID0}}",
            "{instance: {localStorage: {disabledMounts: Containerd}}}",
            "{cluster: {certificateAuthority: \"-----BEGIN CERTIFICATE-----\"}}",
            "{cluster: {name: 5}}",
            "{cluster: {enableOutpost: \"false\"}}",
            "{containerd: {config: {a: b}}}",
            "{kubelet: {config: [a]}}",
        ] {
            let error = whole(&format!("{HEAD}spec: {spec}\n")).unwrap_err();
            assert_eq!(error.kind, DefectKind::NodeConfigWrongType, "{spec}");
        }
    }

    #[test]
    fn what_nodeadm_decodes_is_taken() {
        for spec in [
            "{cluster: {certificateAuthority: LS0t, enableOutpost: false, name: \"${name}\"}}",
            "{cluster: {certificateAuthority: \"${ca}\"}}",
            "{featureGates: {InstanceIdNodeName: yes, FastImagePull: true, Newer: false}}",
            "{instance: {localStorage: {strategy: RAID0, disabledMounts: [Containerd]}, environment: {default: {A: b}}}}",
            "{containerd: {baseRuntimeSpec: {process: {rlimits: []}}}}",
            "{kubelet: {maxPodsExpression: \"10\", flags: [], config: null}}",
            "null",
        ] {
            let config = whole(&format!("{HEAD}spec: {spec}\n")).unwrap_or_else(|error| panic!("{spec}: {error:?}"));
            assert_eq!(config.ignored, [], "{spec}");
        }
        assert_eq!(whole(&format!("---\n{HEAD}spec: {{}}\n---\n# nothing\n")).unwrap().ignored, []);
    }

    #[test]
    fn what_nodeadm_leaves_out_is_told() {
        for (rest, place) in [
            ("spec:\n  kubelet:\n  config:\n    a: b\n", "b"),
            ("spec: {kubelet: {configuration: x}}\n", "x"),
            ("spec: {Kubelet: x}\n", "x"),
            ("Spec: {kubelet: {}}\n", "kubelet"),
            ("spec: {instance: {localStorage: {mountpath: /mnt}}}\n", "/mnt"),
            ("spec: {featureGates: {FastImagePul: true}}\n", "true"),
            ("spec: {}\n---\nkind: NodeConfig\n", "kind: NodeConfig"),
        ] {
            let text = format!("{HEAD}{rest}");
            let ignored = whole(&text).unwrap().ignored;
            assert_eq!(ignored.len(), 1, "{rest}");
            assert!(ignored[0].span.of(&text).contains(place), "{rest}: {:?}", ignored[0]);
        }
    }

    #[test]
    fn a_script_is_a_node_config_for_karpenter_where_yaml_can_read_it() {
        for text in ["# only a comment\n", "#!/bin/bash\nmode: fast\n", "#cloud-config\nruncmd: [x]\n", ""] {
            assert!(is_node_config_for_karpenter(text), "{text}");
        }
        assert!(!is_node_config_for_karpenter("#!/bin/bash\nset -e\necho hi\n"));
        assert!(!is_node_config_for_karpenter("#!/bin/bash\nfoo() {\n  bar\n}\n"));
    }
}
