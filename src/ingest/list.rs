//! The live way in for the command: every source listed once, then the pods of the machines that are stuck, those that
//! wait for a machine, and what kubelets may do.

use crate::kube_client::access_review::review;
use crate::kube_client::raw::Raw;
use crate::kube_client::{PAGE, failure, resource_of};
use chrono::{DateTime, Utc};
use engine::api::Stage;
use engine::case::Case;
use engine::case::judging::Judging;
use engine::case::stage::Thresholds;
use engine::cluster_state::{Availability, ClusterState};
use engine::objects::input::{ApiSource, Input, Object};
use engine::objects::{OTHER_KINDS, is_of_other_provider};
use engine::rules;
use engine::triage::change::ReadFailure;
use futures::{Stream, StreamExt, stream};
use kube::api::{Api, ApiResource, ListParams};
use kube::{Client, discovery};
use readers::aws_auth::identity::Identity;
use std::collections::BTreeSet;

/// Lists that are under way at once.
const LISTS: usize = 4;
/// Nodes whose pods are read; beyond that the first ones speak for the rest.
const NODES: usize = 100;
/// Identities that are asked about.
const IDENTITIES: usize = 20;

/// A list that is to be read.
struct Wanted {
    input: Input,
    api: Api<Raw>,
    resource: ApiResource,
    params: ListParams,
    /// One page says enough.
    is_sample: bool,
}

impl Wanted {
    fn of(client: &Client, input: Input, source: &ApiSource) -> Self {
        let resource = resource_of(source);
        let api = match source.namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
            None => Api::all_with(client.clone(), &resource),
        };
        let mut params = ListParams::default().limit(PAGE);
        params.field_selector = source.field_selector();
        params.label_selector = source.labels.map(str::to_owned);
        Self { input, api, resource, params, is_sample: false }
    }

    /// Page by page, so that no more than one of a list is held; the last thing it gives is how it ended.
    fn pages(self) -> impl Stream<Item = (Input, ApiResource, Result<Page, ReadFailure>)> {
        stream::unfold(Some(self), async |wanted| {
            let mut wanted = wanted?;
            let (input, resource) = (wanted.input, wanted.resource.clone());
            match wanted.api.list(&wanted.params).await {
                Ok(page) => {
                    wanted.params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
                    let is_last = wanted.is_sample || wanted.params.continue_token.is_none();
                    Some(((input, resource, Ok(Page { items: page.items, is_last })), (!is_last).then_some(wanted)))
                }
                Err(error) => Some(((input, resource, Err(failure::of(&error))), None)),
            }
        })
    }
}

struct Page {
    items: Vec<Raw>,
    is_last: bool,
}

/// A cluster that is read to be judged at one time.
pub struct Reading<'r> {
    /// Takes the objects in.
    pub state: &'r mut ClusterState,
    pub now: DateTime<Utc>,
    /// Only stuck nodes have their pods read.
    pub thresholds: &'r Thresholds,
    /// Is shown every object too.
    pub seen: &'r mut (dyn FnMut(&Object) + Send),
}

/// Reads the cluster into its state. Gives what could not be read, each reason once.
pub async fn load(client: &Client, reading: Reading<'_>) -> Vec<String> {
    let Reading { state, now, thresholds, seen } = reading;
    let mut reader = Reader { client, state, now, seen, failures: Vec::new(), complaints: Vec::new() };
    let sources =
        Input::ALL.into_iter().flat_map(|input| input.sources().iter().filter(|s| s.watched).map(move |s| (input, s)));
    reader.take(sources.map(|(input, source)| Wanted::of(client, input, source)).collect()).await;
    reader.other_node_classes().await;
    reader.pods(thresholds).await;
    reader.access(thresholds).await;
    reader.complaints()
}

/// Reads only these inputs.
pub async fn load_only(client: &Client, state: &mut ClusterState, now: DateTime<Utc>, inputs: &[Input]) -> Vec<String> {
    let mut reader = Reader { client, state, now, seen: &mut |_| (), failures: Vec::new(), complaints: Vec::new() };
    let sources = inputs.iter().flat_map(|&input| input.sources().iter().map(move |source| (input, source)));
    reader.take(sources.map(|(input, source)| Wanted::of(client, input, source)).collect()).await;
    reader.complaints()
}

struct Reader<'r> {
    client: &'r Client,
    state: &'r mut ClusterState,
    now: DateTime<Utc>,
    seen: &'r mut (dyn FnMut(&Object) + Send),
    /// What could not be listed.
    failures: Vec<(&'static str, ReadFailure)>,
    complaints: Vec<String>,
}

impl Reader<'_> {
    fn complaints(self) -> Vec<String> {
        failure::once_a_reason(&self.failures).into_iter().chain(self.complaints).collect()
    }

    async fn take(&mut self, wanted: Vec<Wanted>) {
        let mut ended = Vec::new();
        let lists = stream::iter(wanted.into_iter().enumerate())
            .map(|(n, wanted)| wanted.pages().map(move |page| (n, page)).boxed());
        let mut pages = lists.flatten_unordered(LISTS);
        while let Some((n, (input, resource, page))) = pages.next().await {
            match page {
                Ok(Page { items, is_last }) => {
                    for object in items {
                        self.one(input, &resource, &object);
                    }
                    if is_last {
                        ended.push((n, input, Ok(())));
                    }
                }
                Err(failure) => ended.push((n, input, Err(failure))),
            }
        }
        // In the order of the table, whichever list came first.
        ended.sort_by_key(|(n, ..)| *n);
        for (_, input, result) in ended {
            match result {
                Ok(()) => self.state.mark(input, Availability::Read),
                Err(failure) => {
                    if !(input.may_be_absent() && matches!(failure, ReadFailure::NotInstalled)) {
                        self.failures.push((input.name(), failure.clone()));
                    }
                    self.state.mark(input, Availability::Missing(failure.to_string()));
                }
            }
        }
    }

    fn one(&mut self, input: Input, resource: &ApiResource, object: &Raw) {
        match object.read(input, resource) {
            Ok((read, odd)) => {
                for field in odd {
                    self.complain(format!("{} {}: {field}", resource.kind, object.name()));
                }
                (self.seen)(&read);
                self.state.apply(read, self.now);
            }
            Err(error) => self.complain(format!("{} {} cannot be read: {error}", resource.kind, object.name())),
        }
    }

    /// Of an object or a field that cannot be read.
    fn complain(&mut self, what: String) {
        self.state.could_not_read(what.clone());
        self.complaints.push(what);
    }

    /// The kinds of node class that NodePools name, beside EC2NodeClass.
    async fn other_node_classes(&mut self) {
        let references = self.state.pools().map(|p| &p.spec.template.spec.node_class_ref);
        let others: BTreeSet<(String, String)> = references
            .filter(|r| is_of_other_provider(&r.group, &r.kind))
            .map(|r| (r.group.to_string(), r.kind.to_string()))
            .collect();
        for (group, kind) in others.into_iter().take(OTHER_KINDS) {
            let found = discovery::group(self.client, &group).await.ok();
            match found.and_then(|g| g.recommended_kind(&kind).map(|(resource, _)| resource)) {
                Some(resource) => {
                    let api = Api::all_with(self.client.clone(), &resource);
                    self.take(vec![Wanted {
                        input: Input::NodeClasses,
                        api,
                        resource,
                        params: ListParams::default().limit(PAGE),
                        is_sample: false,
                    }])
                    .await;
                }
                None => self
                    .complaints
                    .push(format!("{kind} of {group}, which a NodePool names, is not installed in the cluster")),
            }
        }
    }

    /// The pods of machines that wait where pods matter, and those that wait for a machine of a NodePool, for few
    /// reasons: a cluster has too many to read them all.
    async fn pods(&mut self, thresholds: &Thresholds) {
        let wants_pods = |case: &Case| matches!(case.stage(), Stage::Initialize | Stage::Ready | Stage::Terminate);
        let stuck = Case::all(Judging::new(self.state, self.now, thresholds)).filter(wants_pods);
        let nodes: BTreeSet<String> =
            stuck.filter_map(|case| case.node.map(|n| n.name().to_owned())).take(NODES).collect();
        self.state.mark(Input::Pods, Availability::Read);
        let client = self.client;
        let of_node = |source, node: &String| {
            let mut wanted = Wanted::of(client, Input::Pods, source);
            wanted.params.field_selector = Some(format!("spec.nodeName={node}"));
            wanted
        };
        let without_node = |source| {
            let mut wanted = Wanted::of(client, Input::Pods, source);
            wanted.params.field_selector = Some("spec.nodeName=,status.phase=Pending".to_owned());
            Wanted { is_sample: true, ..wanted }
        };
        let has_pools = self.state.classes_and_pools().next().is_some();
        let wanted = Input::Pods.sources().iter().flat_map(|source| {
            let waiting = has_pools.then(|| without_node(source));
            waiting.into_iter().chain(nodes.iter().map(move |node| of_node(source, node)))
        });
        self.take(wanted.collect()).await;
    }

    /// Whether the kubelets of machines that do not join may create Nodes, where that is in doubt.
    async fn access(&mut self, thresholds: &Thresholds) {
        let stuck = Case::all(Judging::new(self.state, self.now, thresholds));
        let identities: BTreeSet<Identity> = stuck.filter_map(|case| rules::identity_in_doubt(&case)).collect();
        for identity in identities.iter().take(IDENTITIES) {
            match review(self.client, identity).await {
                Ok((answer, resource)) => self.one(Input::AccessReviews, &resource, &answer),
                Err(failure) => {
                    self.failures.push((Input::AccessReviews.name(), failure.clone()));
                    self.state.mark(Input::AccessReviews, Availability::Missing(failure.to_string()));
                    return;
                }
            }
        }
    }
}
