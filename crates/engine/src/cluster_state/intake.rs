//! How the state takes objects in, and what each touches.

use super::aws_auth_texts::AwsAuthTexts;
use super::index::Index;
use super::memo::Derived;
use super::{
    Availability, AwsAuthFacts, ByKind, ClassFacts, ClusterState, Key, Subject, Touched, aws,
    events::{KUBELET_ABOUT_PODS, VOLUMES_FOR},
    key_of,
};
use crate::cluster_state::class_members::ClassMembers;
use crate::objects::input::{Input, Object};
use crate::objects::intern::Interned;
use crate::objects::sink::{ObjectText, Sink};
use crate::objects::{
    ApiServer, ApiServerFacts, AwsObservation, ConfigMapData, Event, MachineLog, Node, NodeClaim, NodeClass, NodePool,
    Pod,
};
use crate::upstream::device_plugins;
use crate::upstream::karpenter::Karpenter;
use crate::upstream::unplaced;
use chrono::{DateTime, Utc};
use readers::aws_auth;
use readers::aws_auth::identity::Identity;
use readers::userdata;
use std::collections::BTreeMap;

/// How far each input was read, and what was derived from all objects.
#[derive(Debug)]
pub(crate) struct Aside {
    availability: BTreeMap<Input, Availability>,
    derived: Derived,
}

/// Objects of a dump are states, not changes: nothing was seen to happen.
const BEFORE_EVERYTHING: DateTime<Utc> = DateTime::UNIX_EPOCH;

impl Sink for ClusterState {
    fn object(&mut self, object: Object, _text: ObjectText<'_>) {
        self.apply(object, BEFORE_EVERYTHING);
    }

    fn unread(&mut self, what: &str) {
        self.could_not_read(what.to_owned());
    }

    fn was_read(&mut self, input: Input) {
        self.mark(input, Availability::Read);
    }

    fn of_api_server(&mut self, facts: ApiServerFacts) {
        self.derived = Derived::default();
        self.api_server = facts;
    }
}

impl ClusterState {
    /// Takes in an object as seen at `now`. One that says nothing new touches nothing.
    pub fn apply(&mut self, object: Object, now: DateTime<Utc>) -> Touched {
        self.availability.insert(object.input(), Availability::Read);
        let Some(object) = self.news(object) else { return Touched::Subjects(Vec::new()) };
        self.derived = Derived::default();
        let renews = match &object {
            Object::NodeClaim(_) => self.has_old_machines(),
            Object::NodePool(pool) => pool.is_provisioner(),
            object => matches!(object, Object::Deployment(_)),
        };
        let touched = self.take(object, now);
        if renews {
            self.renew_old_machines(now);
        }
        touched
    }

    fn take(&mut self, object: Object, now: DateTime<Utc>) -> Touched {
        match object {
            Object::NodeClaim(claim) => self.apply_claim(claim, now),
            Object::Node(node) => {
                let old = node.is_of_provisioner().then(|| node.clone());
                let touched = self.apply_node(node);
                if let Some(node) = old {
                    self.note_old_machine(node, now);
                }
                touched
            }
            Object::NodePool(pool) => {
                let name = pool.metadata.name.to_string();
                let mut subjects: Vec<_> =
                    self.claims_by_pool.under(&pool.metadata.name).map(|c| Subject::Claim(c.into())).collect();
                self.put_pool(pool);
                subjects.push(Subject::Pool(name));
                Touched::Subjects(subjects)
            }
            Object::NodeClass(class) => {
                let mut user_data = match (&class.spec.user_data, class.family()) {
                    (Some(text), Some(family)) => Some(userdata::read(text, family)),
                    _ => None,
                };
                if let Some(data) = user_data.as_mut().filter(|_| class.sets_up_local_disks()) {
                    data.override_local_disks();
                }
                self.put_class(ClassFacts { class, user_data });
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
                let facts = AwsAuthFacts {
                    uid: map.metadata.uid.clone(),
                    map_roles: map_roles.unwrap_or_default(),
                    map_users: map_users.unwrap_or_default(),
                    read,
                    written: map.metadata.last_written(),
                    created: map.metadata.creation_timestamp,
                };
                self.put_aws_auth(facts, now > BEFORE_EVERYTHING);
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
            Object::DaemonSet(set) => {
                let changed =
                    self.daemon_sets.insert(key_of(&set.metadata), set.clone()).is_none_or(|old| old.spec != set.spec);
                if changed { Touched::Everything } else { Touched::Subjects(Vec::new()) }
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
            object @ (Object::MutatingWebhooks(_)
            | Object::ValidatingWebhooks(_)
            | Object::DisruptionBudget(_)
            | Object::VolumeAttachment(_)
            | Object::CustomResource(_)
            | Object::Service(_)
            | Object::ServiceAccount(_)
            | Object::CertificateSigningRequest(_)) => {
                self.looked_up.insert(object);
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
            Object::Node(mut node) => {
                node.set_own_condition_apart();
                node.name_its_pool();
                new(self.nodes.get_mut(&node.metadata.name).map(AsMut::as_mut), node).map(Object::Node)
            }
            Object::NodeClaim(mut claim) => {
                claim.drop_repetitions();
                new(self.claims.get_mut(&claim.metadata.name).map(AsMut::as_mut), claim).map(Object::NodeClaim)
            }
            // While both were served, what is new counts.
            Object::NodePool(pool) if pool.is_provisioner() && self.pool_in_place_of(&pool) => None,
            Object::NodePool(pool) => new(self.pools.get_mut(&*pool.metadata.name), pool).map(Object::NodePool),
            Object::NodeClass(class) if class.is_node_template() && self.class_in_place_of(&class) => None,
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

    fn pool_in_place_of(&self, provisioner: &NodePool) -> bool {
        self.pools.get(&*provisioner.metadata.name).is_some_and(|pool| !pool.is_provisioner())
    }

    fn class_in_place_of(&self, template: &NodeClass) -> bool {
        let known = self.classes.get(&template.kind).and_then(|of_kind| of_kind.get(&*template.metadata.name));
        known.is_some_and(|facts| !facts.class.is_node_template())
    }

    pub(super) fn apply_claim(&mut self, claim: NodeClaim, now: DateTime<Utc>) -> Touched {
        let name = claim.metadata.name.clone();
        self.count_texts(&claim);
        if let Some(old) = self.claims.remove(&name) {
            for condition in &claim.status.conditions {
                let before = old.condition(&condition.type_);
                if condition.is_true() {
                    self.reason_changes.get_mut(&name).map(|of_claim| of_claim.remove(&condition.type_));
                } else if old.metadata.uid == claim.metadata.uid && before.is_none_or(|c| c.reason != condition.reason)
                {
                    let moved = before.is_none_or(|c| c.status != condition.status);
                    let at = condition.last_transition_time.filter(|_| moved).unwrap_or(now);
                    let of_claim = self.reason_changes.entry(name.clone()).or_default();
                    of_claim.insert(condition.type_.clone(), (condition.reason.clone(), at));
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

    pub(super) fn unindex_claim(&mut self, claim: &NodeClaim) {
        self.count_service(claim, |n| *n = n.saturating_sub(1));
        self.uncount_texts(claim);
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

    pub(super) fn apply_node(&mut self, node: Node) -> Touched {
        let name = node.metadata.name.clone();
        let id = node.spec.provider_id.clone();
        let before = self.nodes.get(&name).map(|old| old.spec.provider_id.clone());
        let ids = || before.iter().filter(|before| **before != id).chain([&id]);
        ids().for_each(|id| self.count_service_of(id, |n| *n = n.saturating_sub(1)));
        if let Some(before) = &before {
            self.nodes_by_provider_id.remove(before, &name);
        }
        self.nodes_by_provider_id.insert(id.clone(), name.clone());
        let touched = self.subjects_of_node(&node);
        self.nodes.insert(name, Box::new(node));
        ids().for_each(|id| self.count_service_of(id, |n| *n += 1));
        let is_any_machines = before.is_some_and(|before| before.is_empty()) != id.is_empty();
        touched_by_node(touched, is_any_machines)
    }

    pub(super) fn subjects_of_node(&self, node: &Node) -> Vec<Subject> {
        let claims = self.claims_by_provider_id.under(&node.spec.provider_id);
        let mut subjects: Vec<_> = claims.map(|c| Subject::Claim(c.into())).collect();
        subjects.push(Subject::Node(node.metadata.name.to_string()));
        subjects
    }

    fn apply_event(&mut self, mut event: Event) -> Touched {
        event.name_its_kind();
        let nominated = unplaced::nominated(&event).and_then(|claim| self.pool_of_claim_name(claim));
        let named = unplaced::refusals(&event).map(|(pool, _)| pool).chain(nominated);
        let is_open = unplaced::unnamed(&event).next().is_some();
        let any = self.pools.keys().filter(|_| is_open).map(String::as_str);
        let pools: Vec<Subject> = named.chain(any).map(|pool| Subject::Pool(pool.to_owned())).collect();
        let (kind, name) = self.events.insert(event);
        Touched::Subjects(match kind.as_str() {
            "NodeClaim" => {
                let pool = self.pool_of_claim_name(&name).map(|p| Subject::Pool(p.to_owned()));
                std::iter::once(Subject::Claim(name)).chain(pool).collect()
            }
            "Node" | KUBELET_ABOUT_PODS | VOLUMES_FOR => {
                self.node(&name).map(|n| self.subjects_of_node(n)).unwrap_or_default()
            }
            _ => pools,
        })
    }

    fn apply_pod(&mut self, pod: Pod) -> Touched {
        let key = key_of(&pod.metadata);
        self.remove_pod(&key);
        let node = pod.node().to_owned();
        self.pod_nodes.insert(key.clone(), node.clone());
        let subjects = match self.node(&node) {
            Some(node) => self.subjects_of_node(node),
            None => self.short_of_devices(&pod),
        };
        self.pods.entry(node).or_default().insert(key, pod);
        Touched::Subjects(subjects)
    }

    /// The Nodes that a pod may wait for, until they offer the devices that it asks for.
    fn short_of_devices(&self, pod: &Pod) -> Vec<Subject> {
        let asked = || pod.requests().map(|(name, _)| name);
        if !asked().any(|name| name.contains('/')) {
            return Vec::new();
        }
        let offers_it = |own: &Pod| {
            let set = own.daemon_set().filter(|_| !own.is_ready());
            set.is_some_and(|set| asked().any(|name| device_plugins::offers(set, name)))
        };
        let nodes = self.pods.iter().filter(|(_, pods)| pods.values().any(offers_it));
        nodes.filter_map(|(node, _)| self.node(node)).flat_map(|node| self.subjects_of_node(node)).collect()
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
                self.forget_aws_auth_texts();
                claim.instance_id().into_iter().for_each(|id| self.forget_instance(id));
                self.unindex_claim(&claim);
                self.reason_changes.remove(name);
                let mut subjects = vec![Subject::Claim(name.to_owned())];
                subjects.extend(self.leaving_class(&claim));
                subjects.extend(claim.node_pool().map(|p| Subject::Pool(p.to_owned())));
                subjects.extend(
                    self.nodes_with_provider_id(&claim.status.provider_id)
                        .map(|n| Subject::Node(n.metadata.name.to_string())),
                );
                Touched::Subjects(subjects)
            }
            Input::Nodes => {
                self.forget_old_machine(name);
                let Some(id) = self.nodes.get(name).map(|node| node.spec.provider_id.clone()) else { return none };
                self.count_service_of(&id, |n| *n = n.saturating_sub(1));
                let Some(node) = self.nodes.remove(name) else { return none };
                self.nodes_by_provider_id.remove(&id, &node.metadata.name);
                self.count_service_of(&id, |n| *n += 1);
                for (key, pod) in self.pods.remove(name).unwrap_or_default() {
                    self.pod_nodes.remove(&key);
                    self.logs.remove(&pod.metadata.name);
                }
                let is_any_machines = node.spec.provider_id.is_empty();
                touched_by_node(self.subjects_of_node(&node), is_any_machines)
            }
            Input::NodePools => {
                self.drop_pool(name);
                Touched::Subjects(vec![Subject::Pool(name.to_owned())])
            }
            // Two kinds may have the name: see `remove_class`.
            Input::NodeClasses => {
                let mut named = self.classes.iter().filter(|(_, of_kind)| of_kind.contains_key(name));
                let (Some((kind, _)), None) = (named.next(), named.next()) else { return none };
                let kind = kind.clone();
                self.drop_class(&kind, name);
                Touched::Everything
            }
            Input::AwsAuth => {
                (self.aws_auth, self.aws_auth_texts) = (None, AwsAuthTexts::default());
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
            Input::MutatingWebhooks
            | Input::ValidatingWebhooks
            | Input::DisruptionBudgets
            | Input::VolumeAttachments
            | Input::CustomResources
            | Input::Services
            | Input::ServiceAccounts
            | Input::CertificateSigningRequests => {
                self.looked_up.remove(input, &key);
                none
            }
            // It has no name: see `forget_access`.
            Input::AccessReviews => none,
        }
    }

    /// Forgets a node class. Its name is its own only within a kind of one group.
    pub fn remove_class(&mut self, group: &str, kind: &str, name: &str) -> Touched {
        let is_of_group = |facts: &ClassFacts| facts.class.group() == group;
        if !self.classes.get(kind).and_then(|of_kind| of_kind.get(name)).is_some_and(is_of_group) {
            return Touched::Subjects(Vec::new());
        }
        self.derived = Derived::default();
        self.drop_class(kind, name);
        Touched::Everything
    }

    /// Forgets the node classes of a kind that is not read any more.
    pub fn remove_classes_of(&mut self, group: &str, kind: &str) -> Touched {
        let of_kind = self.classes.get(kind).into_iter().flatten();
        let names: Vec<String> =
            of_kind.filter(|(_, facts)| facts.class.group() == group).map(|(name, _)| name.clone()).collect();
        for name in &names {
            self.remove_class(group, kind, name);
        }
        if names.is_empty() { Touched::Subjects(Vec::new()) } else { Touched::Everything }
    }

    /// Forgets what the API server said of this identity.
    pub fn forget_access(&mut self, identity: &Identity) {
        self.access.remove(identity);
    }

    /// Sets aside what objects change that do not exist and are removed again.
    pub(crate) fn set_aside(&mut self) -> Aside {
        Aside { availability: self.availability.clone(), derived: std::mem::take(&mut self.derived) }
    }

    /// Takes back what [`Self::set_aside`] gave. The objects are as they were then, so what was derived from them still
    /// holds.
    pub(crate) fn take_back(&mut self, aside: Aside) {
        let Aside { availability, derived } = aside;
        (self.availability, self.derived) = (availability, derived);
    }

    /// Says that an input was read, or why it could not be.
    pub fn mark(&mut self, input: Input, availability: Availability) {
        self.derived = Derived::default();
        self.availability.insert(input, availability);
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

/// A Node without a providerID may be any machine's that has no Node.
fn touched_by_node(subjects: Vec<Subject>, is_any_machines: bool) -> Touched {
    if is_any_machines { Touched::AndWithoutNode(subjects) } else { Touched::Subjects(subjects) }
}

/// A setting of the whole cluster.
fn replace<T: PartialEq>(known: &mut T, new: T) -> Touched {
    if *known == new {
        return Touched::Subjects(Vec::new());
    }
    *known = new;
    Touched::Everything
}
