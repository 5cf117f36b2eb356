//! The live way in for the command: every source listed once, then the pods of the machines that are stuck.

use crate::api::Stage;
use crate::case::Case;
use crate::gate::Thresholds;
use crate::input::{Input, Source};
use crate::watch::{Failure, PAGE, read, resource_of};
use crate::world::{Availability, World};
use chrono::{DateTime, Utc};
use futures::{StreamExt, stream};
use kube::api::{Api, ApiResource, DynamicObject, ListParams, TypeMeta};
use kube::{Client, discovery};
use std::collections::BTreeSet;

/// Lists that are under way at once.
const LISTS: usize = 4;
/// Nodes whose pods are read; beyond that the first ones speak for the rest.
const NODES: usize = 100;

/// A list that is to be read.
struct Wanted {
    input: Input,
    api: Api<DynamicObject>,
    resource: ApiResource,
    params: ListParams,
}

impl Wanted {
    fn of(client: &Client, input: Input, source: &Source) -> Self {
        let resource = resource_of(source);
        let api = match source.only {
            Some((namespace, _)) => Api::namespaced_with(client.clone(), namespace, &resource),
            None => Api::all_with(client.clone(), &resource),
        };
        let mut params = ListParams::default().limit(PAGE);
        params.field_selector = source.only.map(|(_, name)| format!("metadata.name={name}")).or(source.fields.map(str::to_owned));
        params.label_selector = source.labels.map(str::to_owned);
        Self { input, api, resource, params }
    }

    async fn list(mut self) -> (Input, Result<Vec<DynamicObject>, Failure>, ApiResource) {
        let mut objects = Vec::new();
        loop {
            match self.api.list(&self.params).await {
                Ok(page) => {
                    objects.extend(page.items);
                    match page.metadata.continue_.filter(|token| !token.is_empty()) {
                        Some(token) => self.params.continue_token = Some(token),
                        None => return (self.input, Ok(objects), self.resource),
                    }
                }
                Err(error) => return (self.input, Err(Failure::from(&error)), self.resource),
            }
        }
    }
}

/// Reads the cluster into the world. Gives what could not be read; an error only where the cluster does not answer at all.
/// Every object is also shown to `seen`, as the cluster gave it.
pub async fn load(
    client: &Client,
    world: &mut World,
    now: DateTime<Utc>,
    thresholds: &Thresholds,
    seen: &mut (dyn FnMut(&DynamicObject) + Send),
) -> Result<Vec<String>, kube::Error> {
    client.apiserver_version().await?;
    let mut reader = Reader { client, world, now, seen, complaints: Vec::new() };
    let sources = Input::ALL.into_iter().flat_map(|input| input.sources().iter().filter(|s| s.watched).map(move |s| (input, s)));
    reader.take(sources.map(|(input, source)| Wanted::of(client, input, source)).collect()).await;
    reader.other_node_classes().await;
    reader.pods(thresholds).await;
    Ok(reader.complaints)
}

/// Reads only these inputs. An error only where the cluster does not answer at all.
pub async fn load_only(client: &Client, world: &mut World, now: DateTime<Utc>, inputs: &[Input]) -> Result<Vec<String>, kube::Error> {
    client.apiserver_version().await?;
    let mut reader = Reader { client, world, now, seen: &mut |_| (), complaints: Vec::new() };
    let sources = inputs.iter().flat_map(|&input| input.sources().iter().map(move |source| (input, source)));
    reader.take(sources.map(|(input, source)| Wanted::of(client, input, source)).collect()).await;
    Ok(reader.complaints)
}

struct Reader<'r> {
    client: &'r Client,
    world: &'r mut World,
    now: DateTime<Utc>,
    seen: &'r mut (dyn FnMut(&DynamicObject) + Send),
    complaints: Vec<String>,
}

impl Reader<'_> {
    async fn take(&mut self, wanted: Vec<Wanted>) {
        let mut lists = stream::iter(wanted.into_iter().map(Wanted::list)).buffered(LISTS);
        while let Some((input, listed, resource)) = lists.next().await {
            match listed {
                Ok(objects) => {
                    self.world.mark(input, Availability::Read);
                    for object in objects {
                        self.one(input, &resource, object);
                    }
                }
                Err(failure) => {
                    if !(input.may_be_absent() && matches!(failure, Failure::NotInstalled)) {
                        self.complaints.push(format!("{} ({}): {failure}", input.name(), resource.plural));
                    }
                    self.world.mark(input, Availability::Missing(failure.to_string()));
                }
            }
        }
    }

    fn one(&mut self, input: Input, resource: &ApiResource, mut object: DynamicObject) {
        // Lists leave out the type of their items.
        object.types.get_or_insert_with(|| TypeMeta { api_version: resource.api_version.clone(), kind: resource.kind.clone() });
        (self.seen)(&object);
        let name = object.metadata.name.clone().unwrap_or_default();
        match read(input, resource, object) {
            Ok(object) => drop(self.world.apply(object, self.now)),
            Err(error) => self.complaints.push(format!("{} {name} cannot be read: {error}", resource.kind)),
        }
    }

    /// The kinds of node class that NodePools name, beside EC2NodeClass.
    async fn other_node_classes(&mut self) {
        let known = Input::NodeClasses.sources();
        let references = self.world.pools().map(|p| &p.spec.template.spec.node_class_ref);
        let others: BTreeSet<(String, String)> = references
            .filter(|r| !r.kind.is_empty() && !known.iter().any(|s| s.group == r.group && s.kind == r.kind))
            .map(|r| (r.group.to_string(), r.kind.to_string()))
            .collect();
        for (group, kind) in others {
            let found = discovery::group(self.client, &group).await.ok();
            match found.and_then(|g| g.recommended_kind(&kind).map(|(resource, _)| resource)) {
                Some(resource) => {
                    let api = Api::all_with(self.client.clone(), &resource);
                    self.take(vec![Wanted { input: Input::NodeClasses, api, resource, params: ListParams::default().limit(PAGE) }]).await;
                }
                None => self.complaints.push(format!("{kind} of {group}, which a NodePool names, is not installed in the cluster")),
            }
        }
    }

    /// The pods of machines that wait where pods matter: a cluster has too many to read them all.
    async fn pods(&mut self, thresholds: &Thresholds) {
        let node_of = |subject| {
            let case = Case::of(self.world, &subject, self.now, thresholds)?;
            case.node.filter(|_| matches!(case.stage(), Stage::Initialize | Stage::Ready | Stage::Terminate)).map(|n| n.name().to_owned())
        };
        let nodes: BTreeSet<String> = self.world.subjects().filter_map(node_of).take(NODES).collect();
        self.world.mark(Input::Pods, Availability::Read);
        let client = self.client;
        let of_node = |source, node: &String| {
            let mut wanted = Wanted::of(client, Input::Pods, source);
            wanted.params.field_selector = Some(format!("spec.nodeName={node}"));
            wanted
        };
        let wanted = Input::Pods.sources().iter().flat_map(|source| nodes.iter().map(move |node| of_node(source, node)));
        self.take(wanted.collect()).await;
    }
}
