//! The kinds of Karpenter before 0.32, read as those that took their place.
//!
//! As Karpenter 0.32 itself reads both: core pkg/utils/nodepool/nodepool.go and pkg/utils/nodeclaim/nodeclaim.go `New`
//! (v0.32.1), karpenter-provider-aws pkg/utils/nodeclass/nodeclass.go `New` (v0.32.0; tools/karpenter-convert calls
//! it). Their apiVersion, which their successors never had, shows that an object is of a former kind.

use super::node_class::{AmiTerm, NodeClassSpec, NodeClassStatus, SelectorTerm};
use super::{
    Event, Meta, Node, NodeClaim, NodeClass, NodeClassRef, NodePool, Pairs, Requirement, Resources, Taint, nullable,
};
use crate::objects::intern::Interned;
use crate::objects::node_claim::NodeClaimStatus;
use crate::objects::node_pool::quantities;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Of Provisioners and Machines.
pub const V1ALPHA5: &str = "karpenter.sh/v1alpha5";
/// Of AWSNodeTemplates.
pub const V1ALPHA1: &str = "karpenter.k8s.aws/v1alpha1";
/// The apiVersion of a NodeClaim that nodewhy derives from a Node alone: `cluster_state/old_machines.rs`.
pub(crate) const NODE: &str = "v1";
/// Names the Provisioner of a Node or Machine. core pkg/apis/v1alpha5/labels.go (v0.31.0).
pub const PROVISIONER_NAME: &str = "karpenter.sh/provisioner-name";
const NODEPOOL: &str = "karpenter.sh/nodepool";

/// A kind that is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Former {
    Provisioner,
    Machine,
    NodeTemplate,
}

impl Former {
    /// The command that shows it.
    pub const fn command(self) -> &'static str {
        match self {
            Self::Provisioner => "kubectl get provisioners -o yaml",
            Self::Machine => "kubectl get machines -o yaml",
            Self::NodeTemplate => "kubectl get awsnodetemplates -o yaml",
        }
    }
}

pub(super) fn provisioner(json: &str) -> serde_json::Result<NodePool> {
    Ok(serde_json::from_str::<Provisioner>(json)?.into())
}

pub(super) fn machine(json: &str) -> serde_json::Result<NodeClaim> {
    Ok(serde_json::from_str::<Machine>(json)?.into())
}

pub(super) fn node_template(json: &str) -> serde_json::Result<NodeClass> {
    Ok(serde_json::from_str::<NodeTemplate>(json)?.into())
}

/// core pkg/apis/v1alpha5/provisioner.go (v0.31.0).
#[derive(Default, Deserialize)]
#[serde(default)]
struct Provisioner {
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: ProvisionerSpec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ProvisionerSpec {
    #[serde(deserialize_with = "nullable")]
    labels: Pairs,
    #[serde(deserialize_with = "nullable")]
    annotations: Pairs,
    #[serde(deserialize_with = "nullable")]
    taints: Vec<Taint>,
    #[serde(deserialize_with = "nullable")]
    startup_taints: Vec<Taint>,
    #[serde(deserialize_with = "nullable")]
    requirements: Vec<Requirement>,
    #[serde(deserialize_with = "nullable")]
    kubelet_configuration: BTreeMap<String, Value>,
    /// A node template of its own, without a name.
    provider: Option<NodeTemplateSpec>,
    #[serde(deserialize_with = "nullable")]
    provider_ref: TemplateRef,
    ttl_seconds_until_expired: Option<u64>,
    #[serde(deserialize_with = "nullable")]
    limits: Limits,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Limits {
    #[serde(deserialize_with = "quantities")]
    resources: Pairs,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TemplateRef {
    #[serde(deserialize_with = "nullable")]
    name: Interned,
}

impl TemplateRef {
    fn converted(self) -> NodeClassRef {
        if self.name.is_empty() {
            return NodeClassRef::default();
        }
        NodeClassRef { group: "karpenter.k8s.aws".into(), kind: "EC2NodeClass".into(), name: self.name }
    }
}

/// The name that nodewhy gives the inline node template of a Provisioner. No object can have this name.
fn inline(provisioner: &str) -> String {
    format!("{provisioner}/provider")
}

/// The Provisioner that the inline node template of this name belongs to.
pub fn inline_of(class: &str) -> Option<&str> {
    class.strip_suffix("/provider").filter(|name| !name.is_empty())
}

impl From<Provisioner> for NodePool {
    fn from(Provisioner { metadata, spec }: Provisioner) -> Self {
        let name = metadata.name.clone();
        let own = spec.provider.map(|spec| {
            let metadata = Meta { name: inline(&name).into(), ..metadata.clone() };
            Box::new(NodeClass::from(NodeTemplate { metadata, spec, status: NodeClassStatus::default() }))
        });
        let template = TemplateRef { name: own.as_ref().map_or(spec.provider_ref.name, |c| c.metadata.name.clone()) };
        let mut pool = Self { api_version: V1ALPHA5.into(), metadata, provider: own, ..Self::default() };
        pool.spec.limits = spec.limits.resources;
        let of_machines = &mut pool.spec.template;
        // core pkg/scheduling/nodetemplate.go `NewNodeTemplate` (v0.31.0): every Machine has the label.
        of_machines.metadata.labels = spec.labels.with(PROVISIONER_NAME, &name);
        of_machines.metadata.annotations = spec.annotations;
        let of_machines = &mut of_machines.spec;
        of_machines.node_class_ref = template.converted();
        of_machines.requirements = spec.requirements;
        of_machines.taints = spec.taints;
        of_machines.startup_taints = spec.startup_taints;
        of_machines.expire_after = spec.ttl_seconds_until_expired.map(|seconds| format!("{seconds}s"));
        of_machines.kubelet = spec.kubelet_configuration;
        pool
    }
}

/// core pkg/apis/v1alpha5/machine.go (v0.31.0).
#[derive(Default, Deserialize)]
#[serde(default)]
struct Machine {
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: MachineSpec,
    #[serde(deserialize_with = "nullable")]
    status: NodeClaimStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct MachineSpec {
    #[serde(deserialize_with = "nullable")]
    taints: Vec<Taint>,
    #[serde(deserialize_with = "nullable")]
    startup_taints: Vec<Taint>,
    #[serde(deserialize_with = "nullable")]
    requirements: Vec<Requirement>,
    #[serde(deserialize_with = "nullable")]
    resources: Resources,
    #[serde(deserialize_with = "nullable")]
    machine_template_ref: TemplateRef,
}

impl From<Machine> for NodeClaim {
    fn from(Machine { mut metadata, spec, mut status }: Machine) -> Self {
        name_pool(&mut metadata);
        for condition in &mut status.conditions {
            if let Some(type_) = condition.type_.strip_prefix("Machine") {
                condition.type_ = type_.into();
            }
        }
        let mut claim = Self { api_version: V1ALPHA5.into(), metadata, status, ..Self::default() };
        claim.spec.node_class_ref = spec.machine_template_ref.converted();
        claim.spec.requirements = spec.requirements;
        claim.spec.resources = spec.resources;
        claim.spec.taints = spec.taints;
        claim.spec.startup_taints = spec.startup_taints;
        claim
    }
}

/// karpenter-provider-aws pkg/apis/v1alpha1/awsnodetemplate.go, provider.go (v0.31.0).
#[derive(Default, Deserialize)]
#[serde(default)]
struct NodeTemplate {
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: NodeTemplateSpec,
    #[serde(deserialize_with = "nullable")]
    status: NodeClassStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeTemplateSpec {
    #[serde(deserialize_with = "nullable")]
    ami_selector: Pairs,
    #[serde(deserialize_with = "nullable")]
    subnet_selector: Pairs,
    #[serde(deserialize_with = "nullable")]
    security_group_selector: Pairs,
    /// Somebody's own, in place of all that Karpenter would put into one.
    launch_template: Option<String>,
    /// The rest has the names that it kept.
    #[serde(flatten)]
    kept: NodeClassSpec,
}

impl From<NodeTemplate> for NodeClass {
    fn from(NodeTemplate { metadata, spec, status }: NodeTemplate) -> Self {
        let NodeTemplateSpec { ami_selector, subnet_selector, security_group_selector, launch_template, mut kept } =
            spec;
        kept.ami_selector_terms = ami_terms(&ami_selector);
        kept.subnet_selector_terms = terms(&subnet_selector);
        kept.security_group_selector_terms = terms(&security_group_selector);
        // karpenter-provider-aws pkg/providers/amifamily/resolver.go `GetAMIFamily` (v0.31.0).
        kept.ami_family = kept.ami_family.or_else(|| launch_template.is_none().then(|| "AL2".to_owned()));
        Self { api_version: V1ALPHA1.to_owned(), kind: "EC2NodeClass".to_owned(), metadata, spec: kept, status }
    }
}

/// The values of a selector's keys that are no tags, one after the other, and its tags.
fn split<'s>(selector: &'s Pairs, keys: &[&str]) -> (Vec<&'s str>, BTreeMap<String, String>) {
    let (listed, tags): (Vec<_>, Vec<_>) = selector.iter().partition(|(key, _)| keys.contains(key));
    let listed = listed.into_iter().flat_map(|(_, values)| values.split(',')).map(str::trim).collect();
    (listed, tags.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
}

const IDS: [&str; 2] = ["aws-ids", "aws::ids"];

fn terms(selector: &Pairs) -> Vec<SelectorTerm> {
    let (ids, tags) = split(selector, &IDS);
    match &*ids {
        [] if tags.is_empty() => Vec::new(),
        [] => vec![SelectorTerm { tags, ..SelectorTerm::default() }],
        ids => ids
            .iter()
            .map(|id| SelectorTerm { id: Some((*id).to_owned()), tags: tags.clone(), ..SelectorTerm::default() })
            .collect(),
    }
}

/// One term for each owner, id and name.
fn ami_terms(selector: &Pairs) -> Vec<AmiTerm> {
    if selector.is_empty() {
        return Vec::new();
    }
    let special = ["aws-ids", "aws::ids", "aws::name", "aws::owners"];
    let (_, tags) = split(selector, &special);
    let each = |keys: &[&str]| {
        let (listed, _) = split(selector, keys);
        let some: Vec<Option<String>> = listed.into_iter().map(|one| Some(one.to_owned())).collect();
        if some.is_empty() { vec![None] } else { some }
    };
    let (owners, ids, names) = (each(&["aws::owners"]), each(&IDS), each(&["aws::name"]));
    let mut terms = Vec::new();
    for owner in &owners {
        for id in &ids {
            for name in &names {
                let owner = owner.clone().map(Value::String);
                let tags = tags.clone();
                terms.push(AmiTerm { id: id.clone(), name: name.clone(), owner, tags, ..AmiTerm::default() });
            }
        }
    }
    terms
}

/// The label that names the pool, as all name it now.
fn name_pool(meta: &mut Meta) {
    if meta.label(NODEPOOL).is_none()
        && let Some(provisioner) = meta.label(PROVISIONER_NAME).map(str::to_owned)
    {
        meta.labels = std::mem::take(&mut meta.labels).with(NODEPOOL, &provisioner);
    }
}

impl NodePool {
    pub fn is_provisioner(&self) -> bool {
        self.api_version == V1ALPHA5
    }
}

impl NodeClaim {
    pub fn is_machine(&self) -> bool {
        self.api_version == V1ALPHA5
    }

    /// Whether there is no such object, but a Node that Karpenter itself made.
    pub fn is_node(&self) -> bool {
        self.api_version == NODE
    }
}

impl NodeClass {
    pub fn is_node_template(&self) -> bool {
        self.api_version == V1ALPHA1
    }
}

impl Node {
    pub(crate) fn name_its_pool(&mut self) {
        name_pool(&mut self.metadata);
    }

    pub fn is_of_provisioner(&self) -> bool {
        self.metadata.label(PROVISIONER_NAME).is_some()
    }
}

impl Event {
    /// About what is read as another kind, it is about that.
    pub(crate) fn name_its_kind(&mut self) {
        let now = match self.involved_object.kind.as_str() {
            "Provisioner" => "NodePool",
            "Machine" => "NodeClaim",
            "AWSNodeTemplate" => "EC2NodeClass",
            _ => return,
        };
        now.clone_into(&mut self.involved_object.kind);
    }
}
