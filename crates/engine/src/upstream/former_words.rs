//! What is said of Provisioners, Machines and AWSNodeTemplates, in their users' words: rules speak of what took their
//! place, as whose kinds they are read (`objects/former.rs`).

use crate::objects::former::{V1ALPHA1, V1ALPHA5, inline_of};
use serde_json::{Map, Value};

/// Which of Karpenter's kinds a user has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Words {
    Present,
    /// Karpenter 0.28 to 0.31: Provisioner, Machine, AWSNodeTemplate.
    BeforeNodePools,
    /// Before 0.28 a Node was all there was of a machine.
    BeforeMachines,
}

/// Fields that hold none of a rule's words, so their text stays: names of causes and reasons, links, identifiers.
const KEPT: [&str; 6] = ["cause", "reason", "documentation", "uid", "labels", "lastTransitionTime"];

/// Present and former names as texts have them, the longer before the shorter.
const NAMES: [(&str, &str); 22] = [
    ("karpenter.sh/nodepool", "karpenter.sh/provisioner-name"),
    ("nodepools.karpenter.sh", "provisioners.karpenter.sh"),
    ("nodeclaims.karpenter.sh", "machines.karpenter.sh"),
    ("ec2nodeclasses.karpenter.k8s.aws", "awsnodetemplates.karpenter.k8s.aws"),
    ("NodePool", "Provisioner"),
    ("EC2NodeClasses", "AWSNodeTemplates"),
    ("EC2NodeClass", "AWSNodeTemplate"),
    ("node class", "node template"),
    ("spec.template.spec.nodeClassRef", "spec.providerRef"),
    ("spec.template.spec.kubelet", "spec.kubeletConfiguration"),
    ("spec.template.spec.expireAfter", "spec.ttlSecondsUntilExpired"),
    ("spec.template.spec.requirements", "spec.requirements"),
    ("spec.template.spec.startupTaints", "spec.startupTaints"),
    ("spec.template.spec.taints", "spec.taints"),
    ("spec.template.metadata.", "spec."),
    ("spec.nodeClassRef", "spec.machineTemplateRef"),
    ("spec.limits", "spec.limits.resources"),
    ("subnetSelectorTerms", "subnetSelector"),
    ("securityGroupSelectorTerms", "securityGroupSelector"),
    ("amiSelectorTerms", "amiSelector"),
    ("karpenter.sh/disrupted", "karpenter.sh/disruption"),
    ("karpenter.sh/do-not-disrupt", "karpenter.sh/do-not-evict"),
];

const OF_MACHINES: [(&str, &str); 4] = [
    ("NodeClaim", "Machine"),
    (r#"type=="Launched""#, r#"type=="MachineLaunched""#),
    (r#"type=="Registered""#, r#"type=="MachineRegistered""#),
    (r#"type=="Initialized""#, r#"type=="MachineInitialized""#),
];

const OF_NODES: [(&str, &str); 4] = [
    ("NodeClaim", "Node"),
    (r#"status.conditions[?(@.type=="Launched")]"#, "metadata.creationTimestamp"),
    (r#"status.conditions[?(@.type=="Registered")]"#, r#"status.conditions[?(@.type=="Ready")]"#),
    (r#"status.conditions[?(@.type=="Initialized")]"#, r#"metadata.labels["karpenter.sh/initialized"]"#),
];

/// As kubectl is given them.
const RESOURCES: [(&str, &str); 4] = [
    ("nodepool", "provisioner"),
    ("nodepools", "provisioners"),
    ("ec2nodeclass", "awsnodetemplate"),
    ("ec2nodeclasses", "awsnodetemplates"),
];
const MACHINES: [(&str, &str); 2] = [("nodeclaim", "machine"), ("nodeclaims", "machines")];
const NODES: [(&str, &str); 2] = [("nodeclaim", "node"), ("nodeclaims", "nodes")];

/// The present kind that nodewhy reads a kind as.
pub(crate) fn present_kind(kind: &str) -> &str {
    match kind {
        "Provisioner" => "NodePool",
        "Machine" => "NodeClaim",
        "AWSNodeTemplate" => "EC2NodeClass",
        kind => kind,
    }
}

/// The same of what kubectl is given.
pub(crate) fn present_resource(resource: &str) -> &str {
    let known = RESOURCES.iter().chain(&MACHINES).find(|(_, former)| *former == resource);
    known.map_or(resource, |(present, _)| present)
}

impl Words {
    pub const ALL: [Self; 3] = [Self::Present, Self::BeforeNodePools, Self::BeforeMachines];

    /// A diagnosis as JSON, in these words.
    pub fn say(self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.said(text),
            Value::Array(values) => values.iter_mut().for_each(|value| self.say(value)),
            Value::Object(fields) => self.say_fields(fields),
            _ => {}
        }
    }

    fn say_fields(self, fields: &mut Map<String, Value>) {
        let text = |name: &str| fields.get(name).and_then(Value::as_str);
        let own = text("object").and_then(|object| object.split_once('/')).and_then(|(_, name)| inline_of(name));
        let own = own.map(str::to_owned);
        // Workloads have templates too.
        let of = |object: &str| {
            ["NodePool", "NodeClaim", "EC2NodeClass", "Node"].iter().any(|kind| object.split('/').next() == Some(kind))
        };
        let foreign = text("object").is_some_and(|object| !of(object));
        if let (Some(provisioner), Some(field)) = (own, text("field")) {
            let field =
                field.strip_prefix("spec.").map_or("spec.provider".to_owned(), |of| format!("spec.provider.{of}"));
            fields.insert("field".to_owned(), field.into());
            if fields.contains_key("name") {
                fields.insert("name".to_owned(), provisioner.into());
                fields.insert("kind".to_owned(), "NodePool".into());
            }
        }
        for (name, value) in fields.iter_mut() {
            if !(KEPT.contains(&name.as_str()) || foreign && name == "field") {
                self.say(value);
            }
        }
        let version = match fields.get("kind").and_then(Value::as_str) {
            Some("Provisioner" | "Machine") => V1ALPHA5,
            Some("AWSNodeTemplate") => V1ALPHA1,
            Some("Node") => "v1",
            _ => return,
        };
        fields.entry("apiVersion").and_modify(|own| *own = version.into());
    }

    /// A text in these words.
    pub(crate) fn said(self, text: &str) -> String {
        let (names, resources) = match self {
            Self::Present => return text.to_owned(),
            Self::BeforeNodePools => (&OF_MACHINES, &MACHINES),
            Self::BeforeMachines => (&OF_NODES, &NODES),
        };
        let text = without_inline(text);
        let said = NAMES.iter().chain(names).fold(text, |text, (from, to)| text.replace(from, to));
        let words = said.split(' ').map(|word| {
            let known = RESOURCES.iter().chain(resources).find(|(from, _)| *from == word);
            known.map_or(word, |(_, to)| to)
        });
        words.collect::<Vec<_>>().join(" ")
    }
}

/// A Provisioner's own node template is the Provisioner.
fn without_inline(text: &str) -> String {
    let words = text.split(' ').collect::<Vec<_>>();
    let mut said: Vec<String> = Vec::with_capacity(words.len());
    for word in words {
        let bare = word.trim_end_matches(['.', ',', ':', ';', ')']);
        let Some(name) = inline_of(bare) else {
            said.push(word.to_owned());
            continue;
        };
        let rest = word.get(bare.len()..).unwrap_or_default();
        if let Some((_, name)) = name.split_once('/') {
            said.push(format!("Provisioner/{name}{rest}"));
            continue;
        }
        match said.last_mut() {
            Some(kind) if kind == "EC2NodeClass" => "Provisioner".clone_into(kind),
            Some(kind) if kind == "ec2nodeclass" => "provisioner".clone_into(kind),
            _ => {}
        }
        said.push(format!("{name}{rest}"));
    }
    said.join(" ")
}

#[cfg(test)]
mod tests {
    use super::Words;
    use serde_json::json;

    #[test]
    fn what_is_said_of_present_kinds_is_said_of_those_that_a_user_has() {
        let said = |words: Words, text: &str| {
            let mut value = json!(text);
            words.say(&mut value);
            value.as_str().unwrap().to_owned()
        };
        let text =
            "NodeClaim nodepool-a of NodePool nodepool-a: kubectl edit nodepool nodepool-a, kubectl get nodeclaims";
        let old =
            "Machine nodepool-a of Provisioner nodepool-a: kubectl edit provisioner nodepool-a, kubectl get machines";
        assert_eq!(said(Words::BeforeNodePools, text), old);
        let older = "Node nodepool-a of Provisioner nodepool-a: kubectl edit provisioner nodepool-a, kubectl get nodes";
        assert_eq!(said(Words::BeforeMachines, text), older);
        assert_eq!(said(Words::Present, text), text);
        let own =
            said(Words::BeforeMachines, "EC2NodeClass default/provider: kubectl edit ec2nodeclass default/provider");
        assert_eq!(own, "Provisioner default: kubectl edit provisioner default");
    }

    #[test]
    fn a_field_is_named_as_it_was() {
        let blame = |object: &str, kind: &str, name: &str, field: &str| {
            let mut value = json!({ "apiVersion": "karpenter.sh/v1", "kind": kind, "object": object, "name": name, "field": field });
            Words::BeforeNodePools.say(&mut value);
            ["apiVersion", "object", "name", "field"].map(|field| value[field].as_str().unwrap().to_owned()).join(" ")
        };
        let of_pool = blame("NodePool/a", "NodePool", "a", "spec.template.spec.startupTaints");
        assert_eq!(of_pool, "karpenter.sh/v1alpha5 Provisioner/a a spec.startupTaints");
        let of_class = blame("EC2NodeClass/a", "EC2NodeClass", "a", "spec.subnetSelectorTerms");
        assert_eq!(of_class, "karpenter.k8s.aws/v1alpha1 AWSNodeTemplate/a a spec.subnetSelector");
        let own = blame("EC2NodeClass/a/provider", "EC2NodeClass", "a/provider", "spec.subnetSelectorTerms");
        assert_eq!(own, "karpenter.sh/v1alpha5 Provisioner/a a spec.provider.subnetSelector");
    }
}
