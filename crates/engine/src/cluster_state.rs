//! Everything seen so far, joined: by providerID, by owner, by node class. No IO, no clock.
//!
//! The cluster is fed object by object, from a dump or from watches, and answers with a [`Case`](crate::case::Case) for
//! one machine.

pub mod aws;
pub mod class_members;
mod events;
mod index;
pub mod logged;
pub mod memo;
mod reads;

use crate::api::ObjectRef;
use crate::cluster_state::class_members::ClassMembers;
use crate::objects::input::{Input, Object};
use crate::objects::intern::Interned;
use crate::objects::sink::{ObjectText, Sink};
use crate::objects::{
    ApiServer, ApiServerFacts, AwsObservation, CertificateSigningRequest, ConfigMapData, DaemonSet, EniConfig, Event,
    MachineLog, Meta, Node, NodeClaim, NodeClass, NodeOverlay, NodePool, Pod, PodDisruptionBudget, ReviewStatus,
    ServiceAccount, Webhook, WebhookConfiguration, Written,
};
use crate::upstream::karpenter::Karpenter;
use crate::upstream::unplaced::{self, PlacementObstacle};
use aws::Aws;
use chrono::{DateTime, Utc};
use events::{Events, KUBELET_ABOUT_PODS, is_about};
use index::Index;
use memo::Derived;
use readers::aws_auth::identity::Identity;
use readers::aws_auth::{self, AwsAuth};
use readers::userdata::{self, UserData};
use reads::Reads;
use std::collections::BTreeMap;

/// What a diagnosis can be about.
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
}

impl Subject {
    /// The subject that a diagnosis names.
    pub fn of(reference: &ObjectRef) -> Option<Self> {
        let name = reference.name.clone();
        match reference.kind.as_str() {
            "NodeClaim" => Some(Self::Claim(name)),
            "Node" => Some(Self::Node(name)),
            "NodePool" => Some(Self::Pool(name)),
            "Instance" => Some(Self::Instance(name)),
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
        }
    }

    /// The name of its NodeDiagnosis, also where it is gone.
    pub fn diagnosis_name(&self) -> String {
        let (kind, name) = self.kind_and_name();
        diagnosis_name(kind, name)
    }
}

/// What the NodeDiagnosis of a subject is called: a machine's as the machine, others with their kind before the name.
pub fn diagnosis_name(kind: &str, name: &str) -> String {
    match kind {
        "NodeClaim" | "Node" | "Instance" => name.to_owned(),
        kind => format!("{}-{name}", kind.to_ascii_lowercase()),
    }
}

/// What a change may have altered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Touched {
    /// These subjects only.
    Subjects(Vec<Subject>),
    /// Whatever is not settled: the change (aws-auth, a node class, Karpenter itself) may explain many machines.
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
#[derive(Debug)]
pub struct AwsAuthFacts {
    pub map_roles: String,
    pub read: AwsAuth,
    pub written: Option<Written>,
    pub created: Option<DateTime<Utc>>,
}

type Key = (String, String);

/// By kind, then by name: looked up for every machine, so without making a pair of both.
type ByKind<T> = BTreeMap<String, BTreeMap<String, T>>;

/// Everything seen so far.
#[derive(Debug, Default)]
pub struct ClusterState {
    claims: BTreeMap<Interned, Box<NodeClaim>>,
    nodes: BTreeMap<Interned, Box<Node>>,
    pools: BTreeMap<String, NodePool>,
    classes: ByKind<ClassFacts>,
    aws_auth: Option<AwsAuthFacts>,
    kube_proxy_server: Option<String>,
    windows_ipam: Option<String>,
    api_server: ApiServerFacts,
    karpenter: BTreeMap<Key, Karpenter>,
    service_accounts: BTreeMap<Key, ServiceAccount>,
    daemon_sets: BTreeMap<Key, DaemonSet>,
    csrs: BTreeMap<String, CertificateSigningRequest>,
    eni_configs: BTreeMap<String, EniConfig>,
    node_overlays: BTreeMap<String, NodeOverlay>,
    mutating_webhooks: BTreeMap<String, WebhookConfiguration>,
    validating_webhooks: BTreeMap<String, WebhookConfiguration>,
    disruption_budgets: BTreeMap<Key, PodDisruptionBudget>,
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
    /// By claim and condition, the reason that was seen to replace another, and when: Karpenter's own timestamps move
    /// only with the status.
    reason_changes: BTreeMap<Interned, BTreeMap<Interned, (Interned, DateTime<Utc>)>>,
    availability: BTreeMap<Input, Availability>,
    derived: Derived,
    reads: Reads,
}

/// Objects of a dump are states, not changes: nothing was seen to happen.
const BEFORE_EVERYTHING: DateTime<Utc> = DateTime::UNIX_EPOCH;

impl Sink for ClusterState {
    fn object(&mut self, object: Object, _text: ObjectText<'_>) {
        self.apply(object, BEFORE_EVERYTHING);
    }

    fn was_read(&mut self, input: Input) {
        self.mark(input, Availability::Read);
    }

    fn of_api_server(&mut self, facts: ApiServerFacts) {
        self.api_server = facts;
    }
}

impl ClusterState {
    /// Takes in an object as seen at `now`. One that says nothing new touches nothing.
    pub fn apply(&mut self, object: Object, now: DateTime<Utc>) -> Touched {
        self.availability.insert(object.input(), Availability::Read);
        let Some(object) = self.news(object) else { return Touched::Subjects(Vec::new()) };
        self.derived = Derived::default();
        match object {
            Object::NodeClaim(claim) => self.apply_claim(claim, now),
            Object::Node(node) => self.apply_node(node),
            Object::NodePool(pool) => {
                let name = pool.metadata.name.to_string();
                let mut subjects: Vec<_> =
                    self.claims_by_pool.under(&pool.metadata.name).map(|c| Subject::Claim(c.into())).collect();
                self.pools.insert(name.clone(), pool);
                subjects.push(Subject::Pool(name));
                Touched::Subjects(subjects)
            }
            Object::NodeClass(class) => {
                let user_data = match (&class.spec.user_data, class.family()) {
                    (Some(text), Some(family)) => Some(userdata::read(text, family)),
                    _ => None,
                };
                let of_kind = self.classes.entry(class.kind.clone()).or_default();
                of_kind.insert(class.metadata.name.to_string(), ClassFacts { class, user_data });
                Touched::Everything
            }
            Object::AwsAuth(map) => {
                if !map.is("kube-system", "aws-auth") {
                    self.availability
                        .remove(&Input::AwsAuth)
                        .filter(|_| self.aws_auth.is_some())
                        .map(|a| self.availability.insert(Input::AwsAuth, a));
                    return Touched::Subjects(Vec::new());
                }
                let ConfigMapData { map_roles, map_users, map_accounts, .. } = map.data;
                let read = aws_auth::read(map_roles.as_deref(), map_users.as_deref(), map_accounts.as_deref());
                self.aws_auth = Some(AwsAuthFacts {
                    map_roles: map_roles.unwrap_or_default(),
                    read,
                    written: map.metadata.last_written(),
                    created: map.metadata.creation_timestamp,
                });
                Touched::Everything
            }
            Object::KubeProxyConfig(map) => {
                let server = map.data.kubeconfig.map(|ApiServer(address)| address).filter(|a| !a.is_empty());
                replace(&mut self.kube_proxy_server, server)
            }
            Object::VpcCniConfig(map) => replace(&mut self.windows_ipam, map.data.windows_ipam),
            Object::Deployment(deployment) => {
                let key = key_of(&deployment.metadata);
                match Karpenter::from_deployment(&deployment) {
                    Some(karpenter) if self.karpenter.get(&key) == Some(&karpenter) => Touched::Subjects(Vec::new()),
                    Some(karpenter) => {
                        self.karpenter.insert(key, karpenter);
                        Touched::Everything
                    }
                    None => Touched::Subjects(Vec::new()),
                }
            }
            Object::ServiceAccount(account) => {
                if account.role_arn().is_some() {
                    self.service_accounts.insert(key_of(&account.metadata), account);
                }
                Touched::Subjects(Vec::new())
            }
            Object::DaemonSet(set) => {
                let changed =
                    self.daemon_sets.insert(key_of(&set.metadata), set.clone()).is_none_or(|old| old.spec != set.spec);
                if changed { Touched::Everything } else { Touched::Subjects(Vec::new()) }
            }
            Object::CertificateSigningRequest(csr) => {
                self.csrs.insert(csr.metadata.name.to_string(), csr);
                Touched::Subjects(Vec::new())
            }
            Object::NodeOverlay(overlay) => {
                self.node_overlays.insert(overlay.metadata.name.to_string(), overlay);
                Touched::Subjects(Vec::new())
            }
            Object::EniConfig(config) => {
                let new = self.eni_configs.insert(config.metadata.name.to_string(), config).is_none();
                if new { Touched::Everything } else { Touched::Subjects(Vec::new()) }
            }
            // They are looked at when a machine is judged, which is again soon while it is stuck.
            Object::MutatingWebhooks(config) => {
                self.mutating_webhooks.insert(config.metadata.name.to_string(), config);
                Touched::Subjects(Vec::new())
            }
            Object::ValidatingWebhooks(config) => {
                self.validating_webhooks.insert(config.metadata.name.to_string(), config);
                Touched::Subjects(Vec::new())
            }
            Object::DisruptionBudget(budget) => {
                self.disruption_budgets.insert(key_of(&budget.metadata), budget);
                Touched::Subjects(Vec::new())
            }
            Object::AccessReview(review) => {
                let Some(status) = review.status.clone().filter(|_| review.is_about_creating_nodes()) else {
                    return Touched::Subjects(Vec::new());
                };
                let changed = self.access.insert(Identity::new(review.spec.user, review.spec.groups), status.clone())
                    != Some(status);
                if changed { Touched::Everything } else { Touched::Subjects(Vec::new()) }
            }
            Object::Event(event) => self.apply_event(event),
            Object::Pod(pod) => self.apply_pod(pod),
            Object::AwsObservation(observation) => self.apply_aws(observation),
            Object::MachineLog(log) => {
                let touched = self.subjects_of_log(&log);
                self.logs.insert(log.metadata.name.clone(), log);
                Touched::Subjects(touched)
            }
        }
    }

    /// The object, unless it is as it was but for what passes: kubelets report every five minutes, Karpenter counts the
    /// resources of a NodePool with each Node, and a new list shows everything once more.
    fn news(&mut self, object: Object) -> Option<Object> {
        fn new<T: PartialEq>(known: Option<&mut T>, object: T) -> Option<T> {
            match known {
                Some(known) if *known == object => {
                    *known = object;
                    None
                }
                _ => Some(object),
            }
        }
        match object {
            Object::Node(node) => {
                new(self.nodes.get_mut(&node.metadata.name).map(AsMut::as_mut), node).map(Object::Node)
            }
            Object::NodeClaim(mut claim) => {
                claim.drop_repetitions();
                new(self.claims.get_mut(&claim.metadata.name).map(AsMut::as_mut), claim).map(Object::NodeClaim)
            }
            Object::NodePool(pool) => new(self.pools.get_mut(&*pool.metadata.name), pool).map(Object::NodePool),
            Object::NodeClass(class) => {
                let known =
                    self.classes.get_mut(&class.kind).and_then(|of_kind| of_kind.get_mut(&*class.metadata.name));
                new(known.map(|facts| &mut facts.class), class).map(Object::NodeClass)
            }
            // Later lines of the same are no news, and the first ones stay: a verdict that quotes them stands.
            Object::MachineLog(log) => {
                let known = self.logs.get(&log.metadata.name);
                let is_known = known.is_some_and(|known| log.journey.tells_no_more_than(&known.journey));
                (!is_known).then_some(Object::MachineLog(log))
            }
            other => Some(other),
        }
    }

    fn apply_claim(&mut self, claim: NodeClaim, now: DateTime<Utc>) -> Touched {
        let name = claim.metadata.name.clone();
        if let Some(old) = self.claims.remove(&name) {
            for condition in &claim.status.conditions {
                let before = old.condition(&condition.type_).map(|c| c.reason.as_str());
                if condition.is_true() {
                    self.reason_changes.get_mut(&name).map(|of_claim| of_claim.remove(&condition.type_));
                } else if old.metadata.uid == claim.metadata.uid && before != Some(condition.reason.as_str()) {
                    let of_claim = self.reason_changes.entry(name.clone()).or_default();
                    of_claim.insert(condition.type_.clone(), (condition.reason.clone(), now));
                }
            }
            self.unindex_claim(&old);
        }
        self.index_claim(&claim);
        let mut subjects = vec![Subject::Claim(name.to_string())];
        subjects.extend(claim.node_pool().map(|p| Subject::Pool(p.to_owned())));
        subjects.extend(
            self.nodes_with_provider_id(&claim.status.provider_id).map(|n| Subject::Node(n.metadata.name.to_string())),
        );
        self.claims.insert(name, Box::new(claim));
        Touched::Subjects(subjects)
    }

    fn index_claim(&mut self, claim: &NodeClaim) {
        let name = claim.metadata.name.clone();
        if !claim.status.provider_id.is_empty() {
            self.claims_by_provider_id.insert(claim.status.provider_id.clone(), name.clone());
        }
        let class = &claim.spec.node_class_ref;
        self.class_members
            .entry(class.kind.to_string())
            .or_default()
            .entry(class.name.to_string())
            .or_default()
            .add(claim);
        if let Some(pool) = claim.node_pool() {
            self.claims_by_pool.insert(pool.into(), name);
        }
        self.count_service(claim, |n| *n += 1);
    }

    /// Counts it among those of its class that are in service, or that are not.
    fn count_service(&mut self, claim: &NodeClaim, change: impl Fn(&mut u32)) {
        let Self { nodes, nodes_by_provider_id, class_members, .. } = self;
        count_service(claim, nodes, nodes_by_provider_id, class_members, change);
    }

    /// The same of all that have this providerID.
    fn count_service_of(&mut self, provider_id: &str, change: impl Fn(&mut u32)) {
        let Self { claims, claims_by_provider_id, nodes, nodes_by_provider_id, class_members, .. } = self;
        for claim in claims_by_provider_id.under(provider_id).filter_map(|name| claims.get(name)) {
            count_service(claim, nodes, nodes_by_provider_id, class_members, &change);
        }
    }

    fn unindex_claim(&mut self, claim: &NodeClaim) {
        self.count_service(claim, |n| *n = n.saturating_sub(1));
        let name = &claim.metadata.name;
        let class = &claim.spec.node_class_ref;
        self.claims_by_provider_id.remove(&claim.status.provider_id, name);
        if let Some(of_kind) = self.class_members.get_mut(class.kind.as_str())
            && let Some(class_members) = of_kind.get_mut(class.name.as_str())
        {
            class_members.remove(claim);
            if class_members.is_empty() {
                of_kind.remove(class.name.as_str());
            }
        }
        if let Some(pool) = claim.node_pool() {
            self.claims_by_pool.remove(pool, name);
        }
    }

    fn apply_node(&mut self, node: Node) -> Touched {
        let name = node.metadata.name.clone();
        let id = node.spec.provider_id.clone();
        let before = self.nodes.get(&name).map(|old| old.spec.provider_id.clone());
        let ids = || before.iter().filter(|before| **before != id).chain([&id]);
        ids().for_each(|id| self.count_service_of(id, |n| *n = n.saturating_sub(1)));
        if let Some(before) = &before {
            self.nodes_by_provider_id.remove(before, &name);
        }
        self.nodes_by_provider_id.insert(id.clone(), name.clone());
        let mut touched = self.subjects_of_node(&node);
        self.nodes.insert(name, Box::new(node));
        ids().for_each(|id| self.count_service_of(id, |n| *n += 1));
        if before.is_some_and(|before| before.is_empty()) != id.is_empty() {
            touched.extend(self.claims_without_node());
        }
        Touched::Subjects(touched)
    }

    /// Any of them may be the machine of a Node that has no providerID.
    fn claims_without_node(&self) -> impl Iterator<Item = Subject> {
        let waits = |c: &&NodeClaim| {
            !c.status.provider_id.is_empty() && self.nodes_with_provider_id(&c.status.provider_id).next().is_none()
        };
        self.claims().filter(waits).map(|claim| Subject::Claim(claim.name().to_owned()))
    }

    fn subjects_of_node(&self, node: &Node) -> Vec<Subject> {
        let claims = self.claims_by_provider_id.under(&node.spec.provider_id);
        let mut subjects: Vec<_> = claims.map(|c| Subject::Claim(c.into())).collect();
        subjects.push(Subject::Node(node.metadata.name.to_string()));
        subjects
    }

    fn apply_event(&mut self, event: Event) -> Touched {
        let pools: Vec<Subject> = unplaced::refusals(&event).map(|(pool, _)| Subject::Pool(pool.to_owned())).collect();
        let (kind, name) = self.events.insert(event);
        Touched::Subjects(match kind.as_str() {
            "NodeClaim" => {
                let pool = self.pool_of_claim_name(&name).map(|p| Subject::Pool(p.to_owned()));
                std::iter::once(Subject::Claim(name)).chain(pool).collect()
            }
            "Node" | KUBELET_ABOUT_PODS => self.node(&name).map(|n| self.subjects_of_node(n)).unwrap_or_default(),
            _ => pools,
        })
    }

    fn apply_pod(&mut self, pod: Pod) -> Touched {
        let key = key_of(&pod.metadata);
        self.remove_pod(&key);
        let node = pod.node().to_owned();
        self.pod_nodes.insert(key.clone(), node.clone());
        let subjects = self.node(&node).map(|n| self.subjects_of_node(n)).unwrap_or_default();
        self.pods.entry(node).or_default().insert(key, pod);
        Touched::Subjects(subjects)
    }

    fn apply_aws(&mut self, observation: AwsObservation) -> Touched {
        let about = observation.about.clone();
        let name = observation.metadata.name.clone();
        let console = MachineLog::of_console(&observation);
        let is_news = self.aws.insert(observation);
        if is_news {
            self.logs.remove(&name);
        }
        // A log is forgotten when its machine is well, the answer is not.
        if let Some(log) = console.filter(|_| !self.logs.contains_key(&name)) {
            self.mark(Input::Logs, Availability::Read);
            self.logs.insert(name, log);
            // One console speaks for all machines that were made alike.
            return Touched::Everything;
        }
        if !is_news {
            return Touched::Subjects(Vec::new());
        }
        // An image, a role or a cluster is many machines'.
        if !about.starts_with("i-") {
            return Touched::Everything;
        }
        let claims = self
            .claims
            .values()
            .filter(|c| c.instance_id() == Some(about.as_str()))
            .map(|c| Subject::Claim(c.name().to_owned()));
        let nodes = self
            .nodes
            .values()
            .filter(|n| n.instance_id() == Some(about.as_str()))
            .map(|n| Subject::Node(n.name().to_owned()));
        Touched::Subjects(claims.chain(nodes).collect())
    }

    /// Forgets what AWS told of an instance.
    fn forget_instance(&mut self, id: &str) {
        if let Some(console) = self.aws.observation(aws::CONSOLE, id) {
            self.logs.remove(&console.metadata.name);
        }
        self.aws.forget(id);
    }

    fn remove_pod(&mut self, key: &Key) {
        if let Some(node) = self.pod_nodes.remove(key)
            && let Some(pods) = self.pods.get_mut(&node)
        {
            pods.remove(key);
            if pods.is_empty() {
                self.pods.remove(&node);
            }
        }
    }

    /// Forgets an object. Evidence that others may still need (Events) goes with the object that holds it, not with its
    /// subject.
    pub fn remove(&mut self, input: Input, namespace: Option<&str>, name: &str) -> Touched {
        self.derived = Derived::default();
        let key = (namespace.unwrap_or_default().to_owned(), name.to_owned());
        let none = Touched::Subjects(Vec::new());
        match input {
            Input::NodeClaims => {
                let Some(claim) = self.claims.remove(name) else { return none };
                claim.instance_id().into_iter().for_each(|id| self.forget_instance(id));
                self.unindex_claim(&claim);
                self.reason_changes.remove(name);
                let mut subjects = vec![Subject::Claim(name.to_owned())];
                subjects.extend(claim.node_pool().map(|p| Subject::Pool(p.to_owned())));
                subjects.extend(
                    self.nodes_with_provider_id(&claim.status.provider_id)
                        .map(|n| Subject::Node(n.metadata.name.to_string())),
                );
                Touched::Subjects(subjects)
            }
            Input::Nodes => {
                let Some(id) = self.nodes.get(name).map(|node| node.spec.provider_id.clone()) else { return none };
                self.count_service_of(&id, |n| *n = n.saturating_sub(1));
                let Some(node) = self.nodes.remove(name) else { return none };
                self.nodes_by_provider_id.remove(&id, &node.metadata.name);
                self.count_service_of(&id, |n| *n += 1);
                for (key, pod) in self.pods.remove(name).unwrap_or_default() {
                    self.pod_nodes.remove(&key);
                    self.logs.remove(&pod.metadata.name);
                }
                let mut touched = self.subjects_of_node(&node);
                if node.spec.provider_id.is_empty() {
                    touched.extend(self.claims_without_node());
                }
                Touched::Subjects(touched)
            }
            Input::NodePools => {
                self.pools.remove(name);
                Touched::Subjects(vec![Subject::Pool(name.to_owned())])
            }
            Input::NodeClasses => {
                for of_kind in self.classes.values_mut() {
                    of_kind.remove(name);
                }
                Touched::Everything
            }
            Input::AwsAuth => {
                self.aws_auth = None;
                Touched::Everything
            }
            Input::KubeProxyConfig => {
                self.kube_proxy_server = None;
                Touched::Everything
            }
            Input::VpcCniConfig => {
                self.windows_ipam = None;
                Touched::Everything
            }
            Input::Events => {
                self.events.remove(&key);
                none
            }
            Input::CertificateSigningRequests => {
                self.csrs.remove(name);
                none
            }
            Input::Pods => {
                self.remove_pod(&key);
                none
            }
            Input::DaemonSets => {
                self.daemon_sets.remove(&key);
                Touched::Everything
            }
            Input::Deployments => {
                if self.karpenter.remove(&key).is_some() {
                    Touched::Everything
                } else {
                    none
                }
            }
            Input::ServiceAccounts => {
                self.service_accounts.remove(&key);
                none
            }
            Input::AwsObservations => {
                self.aws.remove(name);
                self.logs.remove(name);
                Touched::Everything
            }
            Input::Logs => {
                let Some(log) = self.logs.remove(name) else { return none };
                Touched::Subjects(self.subjects_of_log(&log))
            }
            Input::NodeOverlays => self.node_overlays.remove(name).map_or(none, |_| Touched::Everything),
            Input::EniConfigs => {
                self.eni_configs.remove(name);
                Touched::Everything
            }
            Input::MutatingWebhooks => {
                self.mutating_webhooks.remove(name);
                none
            }
            Input::ValidatingWebhooks => {
                self.validating_webhooks.remove(name);
                none
            }
            Input::DisruptionBudgets => {
                self.disruption_budgets.remove(&key);
                none
            }
            // It has no name: see `forget_access`.
            Input::AccessReviews => none,
        }
    }

    /// Forgets what the API server said of this identity.
    pub fn forget_access(&mut self, identity: &Identity) {
        self.access.remove(identity);
    }

    /// Says that an input was read, or why it could not be.
    pub fn mark(&mut self, input: Input, availability: Availability) {
        self.availability.insert(input, availability);
    }

    /// The inputs that were read, also those of which there is nothing.
    pub fn inputs_read(&self) -> impl Iterator<Item = Input> {
        self.availability.iter().filter(|(_, how)| **how == Availability::Read).map(|(input, _)| *input)
    }

    /// What was seen of the API server itself.
    pub const fn api_server(&self) -> &ApiServerFacts {
        &self.api_server
    }

    /// Why an input is missing; `None` where it was read.
    pub fn missing(&self, input: Input) -> Option<&str> {
        self.asks(input);
        match self.availability.get(&input) {
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
        classes.chain(self.pools.keys().cloned().map(Subject::Pool))
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

    /// Whether the VPC resource controller is told to give pods on Windows their addresses, in the ConfigMap's own word.
    pub fn windows_ipam(&self) -> Option<&str> {
        self.asks(Input::VpcCniConfig);
        self.windows_ipam.as_deref()
    }

    /// The Karpenter of this cluster; the newest where several are installed.
    pub fn karpenter(&self) -> Option<&Karpenter> {
        self.asks(Input::Deployments);
        self.karpenter.values().max_by_key(|k| k.version)
    }

    pub fn service_accounts(&self) -> impl Iterator<Item = &ServiceAccount> {
        self.asks(Input::ServiceAccounts);
        self.service_accounts.values()
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
        let mutating = self.mutating_webhooks.values().map(|config| ("MutatingWebhookConfiguration", config));
        let validating = self.validating_webhooks.values().map(|config| ("ValidatingWebhookConfiguration", config));
        let all = mutating.chain(validating);
        all.flat_map(|(kind, config)| config.webhooks.iter().map(move |webhook| (kind, config, webhook)))
    }

    pub fn disruption_budgets(&self) -> impl Iterator<Item = &PodDisruptionBudget> {
        self.asks(Input::DisruptionBudgets);
        self.disruption_budgets.values()
    }

    /// What the API server said on whether they may create Nodes.
    pub fn access(&self, identity: &Identity) -> Option<&ReviewStatus> {
        self.asks(Input::AccessReviews);
        self.access.get(identity)
    }

    pub fn csrs(&self) -> impl Iterator<Item = &CertificateSigningRequest> {
        self.asks(Input::CertificateSigningRequests);
        self.csrs.values()
    }

    /// What AWS was asked and answered.
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

    /// The UID of the object of that name.
    pub fn uid_of(&self, subject: &Subject) -> Option<&str> {
        Some(match subject {
            Subject::Claim(name) => &self.claim(name)?.metadata.uid,
            Subject::Node(name) => &self.node(name)?.metadata.uid,
            Subject::Pool(name) => &self.pool(name)?.metadata.uid,
            Subject::Class(kind, name) => &self.class(kind, name)?.class.metadata.uid,
            Subject::Instance(name) => &self.logs.get(name.as_str())?.metadata.uid,
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

    /// The NodeClaims of a node class.
    pub fn claims_of_class(&self, kind: &str, name: &str) -> impl Iterator<Item = &NodeClaim> {
        self.class_members(kind, name).into_iter().flat_map(ClassMembers::claims).filter_map(|name| self.claim(name))
    }

    /// The NodeClaims of a node class that are registered.
    pub fn joined_of_class(&self, kind: &str, name: &str) -> impl Iterator<Item = &NodeClaim> {
        self.class_members(kind, name).into_iter().flat_map(ClassMembers::joined).filter_map(|name| self.claim(name))
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

    /// What the kubelet of a Node says about its pods, those that are gone included.
    pub fn pod_events_on(&self, node: &str) -> impl Iterator<Item = &Event> {
        let began = self.nodes.get(node).and_then(|node| node.metadata.creation_timestamp);
        self.asks(Input::Events);
        // What does not say which kubelet it is of, is of the one that has the pod.
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

    /// What Karpenter says of pods that a NodePool could not take, each with the pod where it was read.
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
            let about = self.events.about("Pod", &pod.metadata.name);
            let own = move |e: &&Event| {
                e.involved_object.namespace.as_deref() == pod.metadata.namespace.as_deref()
                    && is_about(e, &pod.metadata)
            };
            about.filter(own).filter(|e| unplaced::is_refusal(e)).map(move |event| (event, pod))
        })
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
    /// Source: awslabs/operatorpkg status/controller.go `reconcile`: the reason is the condition's type, and the message
    /// has its status before and after.
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

    /// The pods that were read and that no Node has, nor is to have by name.
    pub fn pods_without_node(&self) -> impl Iterator<Item = &Pod> {
        self.pods_on("")
    }

    /// When the present reason of a claim's condition was seen to replace another; `None` where it was not seen to
    /// change.
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
        let csrs = self.csrs.values().filter_map(|c| c.metadata.creation_timestamp);
        let pods = self.pods.values().flat_map(BTreeMap::values).filter_map(|p| p.metadata.creation_timestamp);
        let classes =
            self.classes().flat_map(|c| c.class.status.conditions.iter().filter_map(|c| c.last_transition_time));
        let pools = self.pools.values().flat_map(|p| p.status.conditions.iter().filter_map(|c| c.last_transition_time));
        claims.chain(nodes).chain(events).chain(csrs).chain(pods).chain(classes).chain(pools).max()
    }
}

/// A machine that joined is in service where it is initialized and its Node is Ready. Without a Node it is not counted.
fn count_service(
    claim: &NodeClaim,
    nodes: &BTreeMap<Interned, Box<Node>>,
    nodes_by_provider_id: &Index,
    class_members: &mut ByKind<ClassMembers>,
    change: impl Fn(&mut u32),
) {
    let (id, class) = (&claim.status.provider_id, &claim.spec.node_class_ref);
    if id.is_empty() || !claim.is_true("Registered") {
        return;
    }
    let node = nodes_by_provider_id.under(id).next().and_then(|name| nodes.get(name));
    let of_kind = class_members.get_mut(class.kind.as_str());
    let of_class = of_kind.and_then(|of_kind| of_kind.get_mut(class.name.as_str()));
    if let (Some(node), Some(class_members)) = (node, of_class) {
        class_members.count_service(claim, claim.is_true("Initialized") && node.is_ready(), change);
    }
}

fn key_of(meta: &Meta) -> Key {
    (meta.namespace.as_deref().unwrap_or_default().to_owned(), meta.name.to_string())
}

/// A setting of the whole cluster.
fn replace<T: PartialEq>(known: &mut T, new: T) -> Touched {
    if *known == new {
        return Touched::Subjects(Vec::new());
    }
    *known = new;
    Touched::Everything
}
