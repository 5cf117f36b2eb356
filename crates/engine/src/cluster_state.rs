//! Everything seen so far, joined: by providerID, by owner, by node class. No IO, no clock.
//!
//! The cluster is fed object by object, from a dump or from watches, and answers with a [`Case`](crate::case::Case) for
//! one machine.

pub mod at_launch;
pub mod aws;
pub(crate) mod aws_auth_texts;
pub mod class_members;
mod events;
mod index;
mod intake;
pub mod logged;
mod looked_up;
pub mod memo;
pub mod old_machines;
mod reads;
pub mod surroundings;

use crate::api::ObjectRef;
use crate::cluster_state::class_members::ClassMembers;
use crate::objects::input::Input;
use crate::objects::intern::Interned;
use crate::objects::{
    ApiServerFacts, CertificateSigningRequest, ClusterService, CustomResourceDefinition, DaemonSet, EniConfig, Event,
    MachineLog, Meta, Node, NodeClaim, NodeClass, NodeOverlay, NodePool, Pod, PodDisruptionBudget, ReviewStatus,
    ServiceAccount, VolumeAttachment, Webhook, WebhookConfiguration, Written,
};
use crate::upstream::karpenter::{Karpenter, Version};
use crate::upstream::unplaced::{self, PlacementObstacle};
use at_launch::Texts;
use aws::Aws;
use aws_auth_texts::AwsAuthTexts;
use chrono::{DateTime, Utc};
use events::{Events, KUBELET_ABOUT_PODS, VOLUMES_FOR, is_about};
use index::Index;
use looked_up::LookedUp;
use memo::Derived;
use old_machines::OldMachines;
use readers::aws_auth::AwsAuth;
use readers::aws_auth::identity::Identity;
use readers::userdata::UserData;
use reads::Reads;
use std::collections::BTreeMap;

/// The subject of a diagnosis.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// A machine with a NodeClaim, by the claim's name.
    Claim(String),
    /// A machine without NodeClaim, by the Node's name.
    Node(String),
    /// A NodePool that launches nothing.
    Pool(String),
    /// A node class that is not ready, by kind and name.
    Class(String, String),
    /// A machine of which nothing is known but its log.
    Instance(String),
    /// Karpenter itself, by the name of its Deployment: where nothing could be read that it makes machines of.
    Karpenter(String),
}

impl Subject {
    /// The subject that a diagnosis names.
    pub fn of(reference: &ObjectRef) -> Option<Self> {
        let name = reference.name.clone();
        match reference.kind.as_str() {
            "NodeClaim" | "Machine" => Some(Self::Claim(name)),
            "Node" => Some(Self::Node(name)),
            "NodePool" | "Provisioner" => Some(Self::Pool(name)),
            "AWSNodeTemplate" => Some(Self::Class("EC2NodeClass".to_owned(), name)),
            "Instance" => Some(Self::Instance(name)),
            "Deployment" => Some(Self::Karpenter(name)),
            kind if kind.ends_with("NodeClass") => Some(Self::Class(kind.to_owned(), name)),
            _ => None,
        }
    }

    /// `NodePool` and `general`.
    pub fn kind_and_name(&self) -> (&str, &str) {
        match self {
            Self::Claim(name) => ("NodeClaim", name),
            Self::Node(name) => ("Node", name),
            Self::Pool(name) => ("NodePool", name),
            Self::Class(kind, name) => (kind, name),
            Self::Instance(name) => ("Instance", name),
            Self::Karpenter(name) => ("Deployment", name),
        }
    }

    /// The name of its NodeDiagnosis, also where it is gone.
    pub fn diagnosis_name(&self) -> String {
        let (kind, name) = self.kind_and_name();
        diagnosis_name(kind, name)
    }
}

/// The name of the NodeDiagnosis for a subject. A machine keeps its own name. Other kinds get their kind as a prefix.
pub fn diagnosis_name(kind: &str, name: &str) -> String {
    match kind {
        "NodeClaim" | "Node" | "Instance" => name.to_owned(),
        kind => format!("{}-{name}", kind.to_ascii_lowercase()),
    }
}

/// The subjects whose verdicts a change may affect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Touched {
    /// These subjects only.
    Subjects(Vec<Subject>),
    /// These, and every machine that has no Node yet: [`ClusterState::claims_without_node`]. Many Nodes may appear at
    /// once, so those machines are looked up once for all of them.
    AndWithoutNode(Vec<Subject>),
    /// All unsettled subjects, because the change (aws-auth, a node class, Karpenter itself) may explain many machines.
    Everything,
}

/// How far an input could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Availability {
    /// Read in full, or at least one object of it was in the dump.
    Read,
    /// Not in the dump, not installed, not permitted: the reason.
    Missing(String),
}

/// A node class with its user data read once.
#[derive(Debug)]
pub struct ClassFacts {
    pub class: NodeClass,
    pub user_data: Option<UserData>,
}

/// The aws-auth ConfigMap with its mappings read once.
#[derive(Debug, Clone)]
pub struct AwsAuthFacts {
    pub uid: Box<str>,
    pub map_roles: String,
    pub map_users: String,
    pub read: AwsAuth,
    pub written: Option<Written>,
    pub created: Option<DateTime<Utc>>,
}

type Key = (String, String);

fn key_of(meta: &Meta) -> Key {
    (meta.namespace.as_deref().unwrap_or_default().to_owned(), meta.name.to_string())
}

/// By kind, then by name: looked up for every machine, so without making a pair of both.
type ByKind<T> = BTreeMap<String, BTreeMap<String, T>>;

/// Everything seen so far.
#[derive(Debug, Default)]
pub struct ClusterState {
    claims: BTreeMap<Interned, Box<NodeClaim>>,
    nodes: BTreeMap<Interned, Box<Node>>,
    pools: BTreeMap<String, NodePool>,
    classes: ByKind<ClassFacts>,
    /// Earlier texts of node classes and NodePools, for the machines that were launched with them.
    class_texts: Texts<ClassFacts>,
    pool_texts: Texts<NodePool>,
    aws_auth: Option<AwsAuthFacts>,
    /// Its earlier texts, for the machines that tried to join with them.
    aws_auth_texts: AwsAuthTexts,
    kube_proxy_server: Option<String>,
    windows_ipam: Option<String>,
    api_server: ApiServerFacts,
    /// Objects and fields that nodewhy could not read, a sentence each.
    unread: Vec<String>,
    karpenter: BTreeMap<Key, Karpenter>,
    daemon_sets: BTreeMap<Key, DaemonSet>,
    looked_up: LookedUp,
    eni_configs: BTreeMap<String, EniConfig>,
    node_overlays: BTreeMap<String, NodeOverlay>,
    /// Whether they may create Nodes.
    access: BTreeMap<Identity, ReviewStatus>,
    aws: Aws,
    /// By machine.
    logs: BTreeMap<Interned, MachineLog>,
    events: Events,
    /// By Node.
    pods: BTreeMap<String, BTreeMap<Key, Pod>>,
    pod_nodes: BTreeMap<Key, String>,
    /// Nodes without a providerID stand under the empty one.
    nodes_by_provider_id: Index,
    claims_by_provider_id: Index,
    class_members: ByKind<ClassMembers>,
    claims_by_pool: Index,
    /// By claim and condition, the reason that was seen to replace another, and when: as the condition tells where its
    /// status moved too, else when it was seen, for Karpenter's own timestamps move only with the status.
    reason_changes: BTreeMap<Interned, BTreeMap<Interned, (Interned, DateTime<Utc>)>>,
    old_machines: OldMachines,
    availability: BTreeMap<Input, Availability>,
    derived: Derived,
    reads: Reads,
}

impl ClusterState {
    /// The inputs that were read, also those of which there is nothing.
    pub fn inputs_read(&self) -> impl Iterator<Item = Input> {
        self.availability.iter().filter(|(_, how)| **how == Availability::Read).map(|(input, _)| *input)
    }

    /// Facts about the API server itself.
    pub const fn api_server(&self) -> &ApiServerFacts {
        &self.api_server
    }

    /// Objects and fields that nodewhy could not read and did not judge, a sentence each.
    pub fn unread(&self) -> &[String] {
        &self.unread
    }

    /// Takes a sentence about an object or a field that nodewhy could not read.
    pub fn could_not_read(&mut self, what: String) {
        /// Enough to show that the dump is odd.
        const MOST: usize = 100;
        if self.unread.len() < MOST {
            self.unread.push(what);
        }
    }

    /// Why an input is missing; `None` where it was read.
    pub fn missing(&self, input: Input) -> Option<&str> {
        self.asks(input);
        match self.availability.get(&input) {
            _ if input == Input::NodeClaims && self.is_before_machines() => None,
            Some(Availability::Read) => None,
            Some(Availability::Missing(why)) => Some(why),
            None => Some("nothing of this kind was given"),
        }
    }

    /// Every subject that could be judged, machines first, in a stable order.
    pub fn subjects(&self) -> impl Iterator<Item = Subject> + '_ {
        let claims = self.claims.keys().map(|name| Subject::Claim(name.into()));
        let nodes = self
            .nodes()
            .filter(|n| self.claim_of_node(n).is_none())
            .map(|n| Subject::Node(n.metadata.name.to_string()));
        claims.chain(nodes).chain(self.classes_and_pools()).chain(self.instances())
    }

    /// The subjects that are no machines.
    pub fn classes_and_pools(&self) -> impl Iterator<Item = Subject> + '_ {
        let classes = self
            .classes
            .iter()
            .flat_map(|(kind, classes)| classes.keys().map(|name| Subject::Class(kind.clone(), name.clone())));
        classes.chain(self.pools.keys().cloned().map(Subject::Pool)).chain(self.karpenter_alone())
    }

    /// Karpenter, where its CustomResourceDefinitions are here, and nothing of their kinds is.
    fn karpenter_alone(&self) -> Option<Subject> {
        let is_alone = self.pools.is_empty() && self.claims.is_empty() && !self.looked_up.custom_resources.is_empty();
        let karpenter = self.karpenter()?;
        if !is_alone {
            return None;
        }
        Some(Subject::Karpenter(karpenter.metadata.name.to_string()))
    }

    pub fn claim(&self, name: &str) -> Option<&NodeClaim> {
        self.asks(Input::NodeClaims);
        self.claims.get(name).map(AsRef::as_ref)
    }

    pub fn node(&self, name: &str) -> Option<&Node> {
        self.asks(Input::Nodes);
        self.nodes.get(name).map(AsRef::as_ref)
    }

    pub fn claims(&self) -> impl Iterator<Item = &NodeClaim> {
        self.asks(Input::NodeClaims);
        self.claims.values().map(AsRef::as_ref)
    }

    pub fn pool(&self, name: &str) -> Option<&NodePool> {
        self.asks(Input::NodePools);
        self.pools.get(name)
    }

    pub fn class(&self, kind: &str, name: &str) -> Option<&ClassFacts> {
        self.asks(Input::NodeClasses);
        self.classes.get(kind)?.get(name)
    }

    pub fn pools(&self) -> impl Iterator<Item = &NodePool> {
        self.asks(Input::NodePools);
        self.pools.values()
    }

    pub fn classes(&self) -> impl Iterator<Item = &ClassFacts> {
        self.asks(Input::NodeClasses);
        self.classes.values().flat_map(BTreeMap::values)
    }

    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.asks(Input::Nodes);
        self.nodes.values().map(AsRef::as_ref)
    }

    pub fn aws_auth(&self) -> Option<&AwsAuthFacts> {
        self.asks(Input::AwsAuth);
        self.aws_auth.as_ref()
    }

    /// The API server that kube-proxy's configuration names.
    pub fn kube_proxy_server(&self) -> Option<&str> {
        self.asks(Input::KubeProxyConfig);
        self.kube_proxy_server.as_deref()
    }

    /// The ConfigMap's own value of the setting that lets the VPC resource controller assign addresses to Windows pods.
    pub fn windows_ipam(&self) -> Option<&str> {
        self.asks(Input::VpcCniConfig);
        self.windows_ipam.as_deref()
    }

    /// The Karpenter of this cluster; the newest where several are installed.
    pub fn karpenter(&self) -> Option<&Karpenter> {
        self.asks(Input::Deployments);
        self.karpenter.values().max_by_key(|k| k.version)
    }

    /// Judges from now on as if Karpenter had this version. It changes nothing if no Deployment shows a Karpenter.
    pub fn suppose_karpenter(&mut self, version: Version) {
        for karpenter in self.karpenter.values_mut() {
            karpenter.version = version;
        }
        self.derived = Derived::default();
    }

    /// Those of Karpenter's kinds.
    pub fn custom_resources(&self) -> impl Iterator<Item = &CustomResourceDefinition> {
        self.asks(Input::CustomResources);
        self.looked_up.custom_resources.values()
    }

    pub fn services(&self) -> impl Iterator<Item = &ClusterService> {
        self.asks(Input::Services);
        self.looked_up.services.values()
    }

    pub fn service_accounts(&self) -> impl Iterator<Item = &ServiceAccount> {
        self.asks(Input::ServiceAccounts);
        self.looked_up.service_accounts.values()
    }

    pub fn daemon_sets(&self) -> impl Iterator<Item = &DaemonSet> {
        self.asks(Input::DaemonSets);
        self.daemon_sets.values()
    }

    pub fn node_overlays(&self) -> impl Iterator<Item = &NodeOverlay> {
        self.asks(Input::NodeOverlays);
        self.node_overlays.values()
    }

    pub fn eni_config(&self, name: &str) -> Option<&EniConfig> {
        self.asks(Input::EniConfigs);
        self.eni_configs.get(name)
    }

    pub fn eni_configs(&self) -> impl Iterator<Item = &EniConfig> {
        self.asks(Input::EniConfigs);
        self.eni_configs.values()
    }

    /// The configurations that hold a webhook of this name, each with its kind.
    pub fn webhooks<'w>(
        &'w self,
        name: &str,
    ) -> impl Iterator<Item = (&'static str, &'w WebhookConfiguration, &'w Webhook)> {
        self.all_webhooks().filter(move |(.., webhook)| webhook.name == name)
    }

    /// Each webhook, with the configuration that holds it and its kind.
    pub fn all_webhooks(&self) -> impl Iterator<Item = (&'static str, &WebhookConfiguration, &Webhook)> {
        self.asks(Input::MutatingWebhooks);
        self.asks(Input::ValidatingWebhooks);
        let mutating = self.looked_up.mutating_webhooks.values().map(|config| ("MutatingWebhookConfiguration", config));
        let validating =
            self.looked_up.validating_webhooks.values().map(|config| ("ValidatingWebhookConfiguration", config));
        let all = mutating.chain(validating);
        all.flat_map(|(kind, config)| config.webhooks.iter().map(move |webhook| (kind, config, webhook)))
    }

    pub fn disruption_budgets(&self) -> impl Iterator<Item = &PodDisruptionBudget> {
        self.asks(Input::DisruptionBudgets);
        self.looked_up.disruption_budgets.values()
    }

    pub fn volume_attachments(&self) -> impl Iterator<Item = &VolumeAttachment> {
        self.asks(Input::VolumeAttachments);
        self.looked_up.volume_attachments.values()
    }

    /// The API server's answer to whether this identity may create Nodes.
    pub fn access(&self, identity: &Identity) -> Option<&ReviewStatus> {
        self.asks(Input::AccessReviews);
        self.access.get(identity)
    }

    pub fn csrs(&self) -> impl Iterator<Item = &CertificateSigningRequest> {
        self.asks(Input::CertificateSigningRequests);
        self.looked_up.csrs.values()
    }

    /// The answers of AWS.
    pub fn aws(&self) -> &Aws {
        self.asks(Input::AwsObservations);
        &self.aws
    }

    /// The Nodes with this providerID; none for an empty one.
    pub fn nodes_with_provider_id(&self, id: &str) -> impl Iterator<Item = &Node> + use<'_> {
        self.asks(Input::Nodes);
        self.nodes_under(id).filter(|n| !n.spec.provider_id.is_empty())
    }

    /// The Nodes that nobody has given a providerID.
    pub fn nodes_without_provider_id(&self) -> impl Iterator<Item = &Node> {
        self.asks(Input::Nodes);
        self.nodes_under("")
    }

    /// The Nodes that Karpenter made and that no NodeClaim has.
    pub fn nodes_left_over(&self) -> impl Iterator<Item = &Node> {
        self.asks(Input::Nodes);
        self.asks(Input::NodeClaims);
        self.left_over().iter().filter_map(|name| self.node(name))
    }

    fn nodes_under(&self, id: &str) -> impl Iterator<Item = &Node> + use<'_> {
        self.nodes_by_provider_id.under(id).filter_map(|name| self.node(name))
    }

    /// The Nodes of a claim: by providerID, else the one that it names.
    pub fn nodes_of(&self, claim: &NodeClaim) -> Vec<&Node> {
        let id = &claim.status.provider_id;
        let by_id: Vec<_> = if id.is_empty() { Vec::new() } else { self.nodes_with_provider_id(id).collect() };
        if by_id.is_empty() { self.node(&claim.status.node_name).into_iter().collect() } else { by_id }
    }

    /// The NodeClaims that were launched and have no Node. Any of them may be the machine of one without a providerID.
    pub fn claims_without_node(&self) -> impl Iterator<Item = &NodeClaim> {
        self.claims().filter(|claim| {
            let id = &claim.status.provider_id;
            !id.is_empty() && self.nodes_with_provider_id(id).next().is_none()
        })
    }

    /// The UID of the object of that name.
    pub fn uid_of(&self, subject: &Subject) -> Option<&str> {
        Some(match subject {
            Subject::Claim(name) => &self.claim(name)?.metadata.uid,
            Subject::Node(name) => &self.node(name)?.metadata.uid,
            Subject::Pool(name) => &self.pool(name)?.metadata.uid,
            Subject::Class(kind, name) => &self.class(kind, name)?.class.metadata.uid,
            Subject::Instance(name) => &self.logs.get(name.as_str())?.metadata.uid,
            Subject::Karpenter(name) => &self.karpenter().filter(|own| *own.metadata.name == **name)?.metadata.uid,
        })
    }

    /// The NodeClaim whose machine this Node is.
    pub fn claim_of_node(&self, node: &Node) -> Option<&NodeClaim> {
        self.asks(Input::NodeClaims);
        let by_id =
            || self.claims_by_provider_id.under(&node.spec.provider_id).next().and_then(|name| self.claim(name));
        let by_owner = || {
            node.metadata.owner_references.iter().filter(|o| o.kind == "NodeClaim").find_map(|o| self.claim(&o.name))
        };
        by_id().or_else(by_owner)
    }

    /// The machines of a node class, counted.
    pub fn class_members(&self, kind: &str, name: &str) -> Option<&ClassMembers> {
        self.asks(Input::NodeClaims);
        self.class_members.get(kind)?.get(name)
    }

    /// The machines of every node class, counted.
    pub fn all_class_members(&self) -> impl Iterator<Item = &ClassMembers> {
        self.asks(Input::NodeClaims);
        self.class_members.values().flat_map(BTreeMap::values)
    }

    /// The NodeClaims of a node class.
    pub fn claims_of_class(&self, kind: &str, name: &str) -> impl Iterator<Item = &NodeClaim> {
        self.class_members(kind, name).into_iter().flat_map(ClassMembers::claims).filter_map(|name| self.claim(name))
    }

    /// The NodeClaims of a node class that are registered.
    pub fn joined_of_class(&self, kind: &str, name: &str) -> impl Iterator<Item = &NodeClaim> {
        self.class_members(kind, name).into_iter().flat_map(ClassMembers::joined).filter_map(|name| self.claim(name))
    }

    /// The node class of a NodeClaim, or of the one whose machine a Node is, where it was deleted and so waits for it.
    pub fn leaving_class_of(&self, subject: &Subject) -> Option<Subject> {
        let claim = match subject {
            Subject::Claim(name) => self.claim(name)?,
            Subject::Node(name) => self.claim_of_node(self.node(name)?)?,
            _ => return None,
        };
        self.leaving_class(claim)
    }

    fn leaving_class(&self, claim: &NodeClaim) -> Option<Subject> {
        let reference = &claim.spec.node_class_ref;
        let class = &self.class(&reference.kind, &reference.name)?.class;
        class.metadata.deletion_timestamp?;
        Some(Subject::Class(class.kind.clone(), class.name().to_owned()))
    }

    /// The NodeClaims of a NodePool.
    pub fn claims_of_pool(&self, name: &str) -> impl Iterator<Item = &NodeClaim> {
        self.asks(Input::NodeClaims);
        self.claims_by_pool.under(name).filter_map(|name| self.claim(name))
    }

    /// Events about one object; of an object that is there, none about an earlier one of its name.
    pub fn events(&self, kind: &str, name: &str) -> impl Iterator<Item = &Event> {
        self.asks(Input::Events);
        self.events.about(kind, name).filter(|event| self.named_by(event).is_none_or(|object| is_about(event, object)))
    }

    /// The object that has the name now that an event names.
    fn named_by(&self, event: &Event) -> Option<&Meta> {
        let about = &event.involved_object;
        let key = || (about.namespace.clone().unwrap_or_default(), about.name.clone());
        Some(match about.kind.as_str() {
            "NodeClaim" => &self.claims.get(about.name.as_str())?.metadata,
            "Node" => &self.nodes.get(about.name.as_str())?.metadata,
            "NodePool" => &self.pools.get(&about.name)?.metadata,
            "DaemonSet" => &self.daemon_sets.get(&key())?.metadata,
            "Pod" => {
                let key = key();
                &self.pods.get(self.pod_nodes.get(&key)?)?.get(&key)?.metadata
            }
            kind => &self.classes.get(kind)?.get(&about.name)?.class.metadata,
        })
    }

    /// The kubelet's Events about the pods of a Node, deleted pods included.
    pub fn pod_events_on(&self, node: &str) -> impl Iterator<Item = &Event> {
        let began = self.nodes.get(node).and_then(|node| node.metadata.creation_timestamp);
        self.asks(Input::Events);
        // An Event without a host comes from the kubelet of the Node that has the pod.
        let without_host = self.pods_on(node).flat_map(|pod| {
            let about = self.events.about("Pod", &pod.metadata.name);
            about.filter(|e| {
                e.reporter() == "kubelet"
                    && e.metadata.namespace == pod.metadata.namespace
                    && is_about(e, &pod.metadata)
            })
        });
        let of_host = self.events.about(KUBELET_ABOUT_PODS, node);
        of_host.filter(move |event| event.last_seen() >= began).chain(without_host)
    }

    /// Events in which Karpenter says why a NodePool could not take a pod, each with the pod if it still exists.
    pub fn unplaced_in(&self, pool: &str) -> impl Iterator<Item = (&Event, PlacementObstacle, Option<&Pod>)> {
        self.asks(Input::Events);
        self.asks(Input::Pods);
        self.events.unplaced(pool).filter_map(|(event, refusal)| {
            let about = &event.involved_object;
            let key = (about.namespace.clone().unwrap_or_default(), about.name.clone());
            let pod = self.pod_nodes.get(&key).and_then(|node| self.pods.get(node)?.get(&key));
            // Another pod may have the name by now.
            pod.is_none_or(|pod| is_about(event, &pod.metadata)).then_some((event, refusal, pod))
        })
    }

    /// Since when Karpenter says of pods that the limits of this NodePool keep it from making a machine for them.
    pub fn full_since(&self, pool: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.asks(Input::Events);
        let limits = self.events.unplaced(pool).filter(|(_, refusal)| *refusal == PlacementObstacle::Limits);
        let said = limits.map(|(event, _)| event).filter(|event| unplaced::is_repeated(event, now));
        said.filter_map(|event| event.first_timestamp.or(event.event_time).or(event.last_seen())).min()
    }

    /// The NodePools of which it says so.
    pub fn full_pools(&self, now: DateTime<Utc>) -> impl Iterator<Item = &str> {
        self.events.pools_with_unplaced().filter(move |pool| self.full_since(pool, now).is_some())
    }

    /// Pods without a Node that Karpenter makes no machine for, as far as pods were read.
    pub fn unplaced(&self) -> impl Iterator<Item = (&Event, &Pod)> {
        self.asks(Input::Events);
        self.pods_on("").flat_map(|pod| {
            self.events_about_pod(pod).filter(|e| unplaced::is_refusal(e)).map(move |event| (event, pod))
        })
    }

    /// Events about this very pod.
    pub fn events_about_pod<'w>(&'w self, pod: &'w Pod) -> impl Iterator<Item = &'w Event> {
        self.asks(Input::Events);
        let own = move |e: &&Event| {
            e.involved_object.namespace.as_deref() == pod.metadata.namespace.as_deref() && is_about(e, &pod.metadata)
        };
        self.events.about("Pod", &pod.metadata.name).filter(own)
    }

    /// Events about claims for which no volume can be created on this Node.
    pub fn volumes_refused_for<'w>(&'w self, node: &'w Node) -> impl Iterator<Item = &'w Event> {
        self.asks(Input::Events);
        let began = node.metadata.creation_timestamp;
        self.events.about(VOLUMES_FOR, node.name()).filter(move |event| event.last_seen() >= began)
    }

    /// All Events about this pod, those of the kubelet of its Node included.
    pub fn told_of_pod<'w>(&'w self, pod: &'w Pod) -> impl Iterator<Item = &'w Event> {
        let of_kubelet = self.events.about(KUBELET_ABOUT_PODS, pod.node());
        let own = of_kubelet.filter(|e| e.names(&pod.metadata) && is_about(e, &pod.metadata));
        self.events_about_pod(pod).chain(own)
    }

    /// Events about objects of a kind of which no object is read.
    pub fn events_of_kind(&self, kind: &str) -> impl Iterator<Item = &Event> {
        self.asks(Input::Events);
        self.events.with_prefix(kind, "").map(|(_, event)| event)
    }

    /// Events of kubelets about pods, those of Nodes that are gone included.
    pub fn events_of_kubelets(&self) -> impl Iterator<Item = &Event> {
        self.asks(Input::Events);
        let without_host = self.events_of_kind("Pod").filter(|event| event.reporter() == "kubelet");
        self.events.with_prefix(KUBELET_ABOUT_PODS, "").map(|(_, event)| event).chain(without_host)
    }

    /// Events about Nodes that do not exist, each with the Node's name.
    pub fn events_without_node(&self) -> impl Iterator<Item = (&str, &Event)> {
        self.asks(Input::Events);
        self.asks(Input::Nodes);
        self.reported_without_node()
            .iter()
            .flat_map(|name| self.events("Node", name).map(move |event| (name.as_str(), event)))
    }

    /// Names under which kubelets report, though no such Node exists, with their events.
    pub fn kubelets_without_node(&self) -> impl Iterator<Item = (&str, &Event)> {
        self.events_without_node().filter(|(_, event)| event.reporter() == "kubelet")
    }

    /// NodeClaims that are gone and, as their Events have it, were launched and never registered. Events can be
    /// switched off, and live for an hour.
    /// Source: awslabs/operatorpkg status/controller.go `reconcile`: the reason is the condition's type, and the
    /// message has its status before and after.
    pub fn gone_unregistered(&self) -> impl Iterator<Item = &str> {
        self.events.names_of_kind("NodeClaim").filter(|name| {
            let became_true = |type_: &str| {
                self.events.about("NodeClaim", name).any(|e| e.reason == type_ && e.message.contains("-> True"))
            };
            !self.claims.contains_key(*name) && became_true("Launched") && !became_true("Registered")
        })
    }

    /// Events about the NodeClaims of a pool, gone ones included: Karpenter names a claim after its pool.
    /// Source: core pkg/controllers/provisioning/scheduling/nodeclaimtemplate.go `ToNodeClaim` (GenerateName, v1.14.3).
    pub fn claim_events_of_pool(&self, pool: &str) -> impl Iterator<Item = &Event> {
        self.asks(Input::Events);
        let own = pool.to_owned();
        let named = self.events.with_prefix("NodeClaim", &format!("{pool}-"));
        named
            .filter(move |(claim, _)| self.pool_of_claim_name(claim) == Some(own.as_str()))
            .map(|(_, event)| event)
            .filter(|event| self.named_by(event).is_none_or(|claim| is_about(event, claim)))
    }

    /// The NodePool of a claim that may be gone: the claim's own label, else its name without the random suffix.
    pub fn pool_of_claim_name(&self, claim: &str) -> Option<&str> {
        self.asks(Input::NodeClaims);
        self.asks(Input::NodePools);
        match self.claims.get(claim) {
            Some(claim) => claim.node_pool(),
            None => claim.rsplit_once('-').and_then(|(pool, _)| self.pools.get(pool)).map(|p| p.metadata.name.as_str()),
        }
    }

    /// The pods on a Node that were read.
    pub fn pods_on(&self, node: &str) -> impl Iterator<Item = &Pod> {
        self.asks(Input::Pods);
        self.pods.get(node).into_iter().flat_map(BTreeMap::values)
    }

    /// Every pod that was read.
    pub fn pods(&self) -> impl Iterator<Item = &Pod> {
        self.asks(Input::Pods);
        self.pods.values().flat_map(BTreeMap::values)
    }

    /// The pods of a namespace that were read.
    pub fn pods_in(&self, namespace: &str) -> impl Iterator<Item = &Pod> {
        self.asks(Input::Pods);
        let begin = (namespace.to_owned(), String::new());
        let within = self.pod_nodes.range(begin..).take_while(move |((own, _), _)| own == namespace);
        within.filter_map(|(key, node)| self.pods.get(node)?.get(key))
    }

    /// The pods of a namespace whose names begin so.
    pub fn pods_named<'w>(&'w self, namespace: &str, prefix: &str) -> impl Iterator<Item = &'w Pod> + use<'w> {
        self.asks(Input::Pods);
        let (namespace, prefix) = (namespace.to_owned(), prefix.to_owned());
        let from = self.pod_nodes.range((namespace.clone(), prefix.clone())..);
        let within = from.take_while(move |((own, name), _)| *own == namespace && name.starts_with(&prefix));
        within.filter_map(|(key, node)| self.pods.get(node)?.get(key))
    }

    /// The pods of a Deployment that were read.
    pub fn pods_of_deployment(&self, namespace: &str, deployment: &'static str) -> impl Iterator<Item = &Pod> {
        self.pods_named(namespace, &format!("{deployment}-")).filter(|pod| pod.is_of_deployment(deployment))
    }

    /// The pods that were read and that no Node has, nor is to have by name.
    pub fn pods_without_node(&self) -> impl Iterator<Item = &Pod> {
        self.pods_on("")
    }

    /// When the present reason of a claim's condition replaced another; `None` where that was not seen.
    pub fn reason_changed_at(&self, claim: &str, condition: &str, reason: &str) -> Option<DateTime<Utc>> {
        let (seen, at) = self.reason_changes.get(claim)?.get(condition)?;
        (seen == reason).then_some(*at)
    }

    /// When a kubelet last reported.
    pub fn newest_heartbeat(&self) -> Option<DateTime<Utc>> {
        self.nodes.values().flat_map(|n| n.status.conditions.iter().filter_map(|c| *c.last_heartbeat_time)).max()
    }

    /// The newest time that any object carries.
    pub fn newest_time(&self) -> Option<DateTime<Utc>> {
        let claims = self.claims.values().flat_map(|c| {
            [c.metadata.creation_timestamp, c.metadata.deletion_timestamp]
                .into_iter()
                .chain(c.status.conditions.iter().map(|c| c.last_transition_time))
                .flatten()
        });
        let nodes = self.nodes.values().flat_map(|n| {
            let conditions = n.status.conditions.iter().flat_map(|c| [c.last_transition_time, *c.last_heartbeat_time]);
            conditions.chain([n.metadata.creation_timestamp]).flatten()
        });
        let events = self.events.all().filter_map(Event::last_seen);
        let csrs = self.looked_up.csrs.values().filter_map(|c| c.metadata.creation_timestamp);
        let pods = self.pods.values().flat_map(BTreeMap::values).filter_map(|p| p.metadata.creation_timestamp);
        let classes =
            self.classes().flat_map(|c| c.class.status.conditions.iter().filter_map(|c| c.last_transition_time));
        let pools = self.pools.values().flat_map(|p| p.status.conditions.iter().filter_map(|c| c.last_transition_time));
        claims.chain(nodes).chain(events).chain(csrs).chain(pods).chain(classes).chain(pools).max()
    }
}
