//! nodeadm's `NodeConfig`, the user data of Amazon Linux 2023.
//!
//! Known to differ: Go reads nothing behind its first document, also where no `---` ends that one but a smaller
//! indentation, the end of a `{…}`, a `%` directive or a leading `...`. We take what follows for a mistake in the YAML.
//! And Go refuses a `!!binary` that is no base64.

use super::traced::Traced;
use super::yaml::{self, YamlNode, YamlValue};
use super::{Defect, DefectKind, Located};
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
}

/// One field of `spec.kubelet.config`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    pub name: String,
    /// Taints in the grammar of the flag, other values as they are written.
    pub value: Traced,
    pub span: Span,
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
    let section = |name: &'static str| spec.and_then(|spec| spec.get(name)).map(|node| (format!("spec.{name}"), node));
    let sections = spec
        .map(|spec| ("spec".to_owned(), spec))
        .into_iter()
        .chain(["cluster", "kubelet", "containerd", "featureGates"].into_iter().filter_map(section));
    for (name, node) in sections {
        if !matches!(node.value, YamlValue::Map(_) | YamlValue::Null) {
            return Err(wrong_type(&name, "a map", node.span));
        }
    }
    let below = |section: &str, key: &str| spec.and_then(|s| s.get(section)).and_then(|s| s.get(key));
    let string = |key: &str| match below("cluster", key) {
        Some(YamlNode { value: YamlValue::Text(text), span }) => Ok(Some(Located { value: text.clone(), span: *span })),
        Some(YamlNode { value: YamlValue::Null, .. }) | None => Ok(None),
        Some(node) => Err(wrong_type(&format!("spec.cluster.{key}"), "a string", node.span)),
    };
    let stage = match below("featureGates", "InstanceIdNodeName") {
        Some(YamlNode { value: YamlValue::Boolean(value), span }) => Some(Located { value: *value, span: *span }),
        Some(YamlNode { value: YamlValue::Null, .. }) | None => None,
        Some(node) => return Err(wrong_type("spec.featureGates.InstanceIdNodeName", "true or false", node.span)),
    };
    let containerd = match below("containerd", "config") {
        Some(YamlNode { value: YamlValue::Null, .. }) | None => Traced::default(),
        Some(node) => node.traced(text).ok_or_else(|| wrong_type("spec.containerd.config", "a string", node.span))?,
    };
    Ok(NodeConfig {
        span,
        cluster_name: string("name")?,
        api_server_endpoint: string("apiServerEndpoint")?,
        certificate_authority: string("certificateAuthority")?,
        cidr: string("cidr")?,
        instance_id_node_name: stage,
        containerd,
        flags: flags(text, below("kubelet", "flags"))?,
        fields: fields(text, below("kubelet", "config"))?,
    })
}

fn first_line_end(text: &str, span: Span) -> usize {
    span.start + span.of(text).find('\n').unwrap_or(span.end - span.start)
}

fn wrong_type(field: &str, wanted: &str, span: Span) -> Defect {
    Defect {
        kind: DefectKind::NodeConfigWrongType,
        span,
        message: format!("nodeadm refuses the document: {field} must be {wanted}"),
    }
}

fn flags(text: &str, list: Option<&YamlNode>) -> Result<Vec<Traced>, Defect> {
    let Some(list) = list.filter(|node| node.value != YamlValue::Null) else { return Ok(Vec::new()) };
    let YamlValue::List(items) = &list.value else {
        return Err(wrong_type("spec.kubelet.flags", "a list of strings", list.span));
    };
    items
        .iter()
        .map(|item| item.traced(text).ok_or_else(|| wrong_type("spec.kubelet.flags", "a list of strings", item.span)))
        .collect()
}

fn fields(text: &str, config: Option<&YamlNode>) -> Result<Vec<Field>, Defect> {
    let Some(config) = config.filter(|node| node.value != YamlValue::Null) else { return Ok(Vec::new()) };
    if !matches!(config.value, YamlValue::Map(_)) {
        return Err(wrong_type("spec.kubelet.config", "a map", config.span));
    }
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
    Ok(fields)
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
            "{HEAD}spec:\n  cluster: {{name: prod}}\n  kubelet:\n    flags:\n    - --v=2\n    config:\n      maxPods: 58\n      registerWithTaints:\n      - {{key: a, value: b, effect: NoSchedule}}\n      - key: c\n        effect: NoExecute\n"
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
        for spec in
            ["{kubelet: {flags: --v=2}}", "{cluster: []}", "[]", "{featureGates: {InstanceIdNodeName: \"true\"}}"]
        {
            let error = whole(&format!("{HEAD}spec: {spec}\n")).unwrap_err();
            assert_eq!(error.kind, DefectKind::NodeConfigWrongType, "{spec}");
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
