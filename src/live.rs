//! The live way in for the command: every source listed once, then the pods of the machines that are stuck.

use crate::api::Stage;
use crate::case::Case;
use crate::gate::Thresholds;
use crate::input::{Input, Source};
use crate::watch::{Failure, PAGE, read, resource_of};
use crate::world::{Availability, World};
use chrono::{DateTime, Utc};
use futures::{StreamExt, stream};
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
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
pub async fn load(client: &Client, world: &mut World, now: DateTime<Utc>, thresholds: &Thresholds) -> Result<Vec<String>, kube::Error> {
    client.apiserver_version().await?;
    let mut complaints = Vec::new();
    let sources = Input::ALL.into_iter().flat_map(|input| input.sources().iter().filter(|s| s.watched).map(move |s| (input, s)));
    take(sources.map(|(input, source)| Wanted::of(client, input, source)).collect(), world, now, &mut complaints).await;

    let known = Input::NodeClasses.sources();
    let others: BTreeSet<(String, String)> = world
        .pools()
        .map(|p| (p.spec.template.spec.node_class_ref.group.clone(), p.spec.template.spec.node_class_ref.kind.clone()))
        .filter(|(group, kind)| !kind.is_empty() && !known.iter().any(|s| s.group == group && s.kind == kind))
        .collect();
    for (group, kind) in others {
        match discovery::group(client, &group).await.ok().and_then(|g| g.recommended_kind(&kind).map(|(resource, _)| resource)) {
            Some(resource) => {
                let api = Api::all_with(client.clone(), &resource);
                take(
                    vec![Wanted { input: Input::NodeClasses, api, resource, params: ListParams::default().limit(PAGE) }],
                    world,
                    now,
                    &mut complaints,
                )
                .await;
            }
            None => complaints.push(format!("{kind} of {group}, which a NodePool names, is not installed in the cluster")),
        }
    }
    pods(client, world, now, thresholds, &mut complaints).await;
    Ok(complaints)
}

async fn take(wanted: Vec<Wanted>, world: &mut World, now: DateTime<Utc>, complaints: &mut Vec<String>) {
    let mut lists = stream::iter(wanted.into_iter().map(Wanted::list)).buffered(LISTS);
    while let Some((input, listed, resource)) = lists.next().await {
        match listed {
            Ok(objects) => {
                world.mark(input, Availability::Read);
                for object in objects {
                    let name = object.metadata.name.clone().unwrap_or_default();
                    match read(input, &resource, object) {
                        Ok(object) => drop(world.apply(object, now)),
                        Err(error) => complaints.push(format!("{}/{name} cannot be read: {error}", resource.kind)),
                    }
                }
            }
            Err(failure) => {
                complaints.push(format!("{} ({}): {failure}", input.name(), resource.plural));
                world.mark(input, Availability::Missing(failure.to_string()));
            }
        }
    }
}

/// The pods of machines that wait where pods matter: a cluster has too many to read them all.
async fn pods(client: &Client, world: &mut World, now: DateTime<Utc>, thresholds: &Thresholds, complaints: &mut Vec<String>) {
    let waiting: BTreeSet<String> = world
        .subjects()
        .filter_map(|subject| {
            let case = Case::of(world, &subject, now, thresholds)?;
            case.node.filter(|_| matches!(case.stage(), Stage::Initialize | Stage::Ready)).map(|n| n.name().to_owned())
        })
        .take(NODES)
        .collect();
    let wanted = |source| {
        waiting.iter().map(move |node| {
            let mut wanted = Wanted::of(client, Input::Pods, source);
            wanted.params.field_selector = Some(format!("spec.nodeName={node}"));
            wanted
        })
    };
    take(Input::Pods.sources().iter().flat_map(wanted).collect(), world, now, complaints).await;
    if waiting.is_empty() {
        world.mark(Input::Pods, Availability::Read);
    }
}
