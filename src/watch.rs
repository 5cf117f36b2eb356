//! The live way in: one watch per source, told apart into changes of the world.
//!
//! A watch never ends. What cannot be read (not installed, not permitted, no answer) is said once and tried again, and when it
//! appears it is picked up without a restart.

mod known;
mod node_class;
mod pods;

pub use pods::Pods;

use crate::input::{Input, Object, Source};
use futures::{StreamExt, TryStreamExt};
use known::Known;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::runtime::watcher;
use kube::{Client, ResourceExt};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};

/// Objects that one answer of a list holds, as in client-go.
pub(crate) const PAGE: u32 = 500;
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_LAST: Duration = Duration::from_mins(1);
/// A watch that breaks off is resumed, and nobody notices. After so many failures in a row it is blind, and starts with a new list.
const BLIND_AFTER: u32 = 3;

/// What a watch says.
#[derive(Debug)]
pub enum Change {
    /// An object is there, or is different.
    Applied(Box<Object>),
    /// An object is gone. `last` is its last state, where the watch knows it.
    Removed { input: Input, namespace: Option<String>, name: String, last: Option<Box<Object>> },
    /// An object cannot be read, and why; its last readable state stays.
    Unreadable { input: Input, object: String, error: String },
    /// The pods of one Node, or why they cannot be read.
    Pods { node: String, pods: Result<Vec<Object>, Failure> },
    /// How far a source is.
    Source { input: Input, name: String, state: State },
}

/// How far a source is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// The first list is under way.
    Pending,
    /// Listed in full, and watched.
    Read,
    /// It cannot be read.
    Failed(Failure),
}

/// Why a source cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    #[error("this kind is not installed in the cluster")]
    NotInstalled,
    #[error("not permitted: {0}")]
    NotPermitted(String),
    #[error("{0}")]
    Unanswered(String),
}

impl From<&kube::Error> for Failure {
    fn from(error: &kube::Error) -> Self {
        match error {
            // A group that nobody serves is answered in plain text, without a reason: only the code tells.
            kube::Error::Api(status) if status.code == 404 => Self::NotInstalled,
            kube::Error::Api(status) if status.code == 403 => Self::NotPermitted(status.message.clone()),
            kube::Error::Api(status) => Self::Unanswered(format!("{} {}", status.code, status.message)),
            other => Self::Unanswered(other.to_string()),
        }
    }
}

impl From<&watcher::Error> for Failure {
    fn from(error: &watcher::Error) -> Self {
        match error {
            watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error) | watcher::Error::WatchFailed(error) => {
                error.into()
            }
            other => Self::Unanswered(other.to_string()),
        }
    }
}

/// All watches of one cluster.
pub struct Watches {
    client: Client,
    changes: mpsc::Sender<Change>,
    tasks: JoinSet<()>,
    node_classes: BTreeSet<(String, String)>,
}

impl Watches {
    /// Starts a watch for every source of the table.
    #[must_use]
    pub fn start(client: Client, changes: mpsc::Sender<Change>) -> Self {
        let mut watches = Self { client, changes, tasks: JoinSet::new(), node_classes: BTreeSet::new() };
        for input in Input::ALL {
            for source in input.sources().iter().filter(|source| source.watched) {
                if input == Input::NodeClasses {
                    watches.node_classes.insert((source.group.to_owned(), source.kind.to_owned()));
                }
                watches.tasks.spawn(Watch::of_source(&watches.client, input, source).run(watches.changes.clone()));
            }
        }
        watches
    }

    /// The sources that are watched from the start, as `Change::Source` names them.
    pub fn sources() -> impl Iterator<Item = (Input, String)> {
        let watched = |input: Input| input.sources().iter().filter(|s| s.watched).map(move |s| (input, source_name(s)));
        Input::ALL.into_iter().flat_map(watched)
    }

    /// Watches the kind of node class that a NodePool names, unless that is done already. Gives the name of the new source.
    pub fn node_class(&mut self, group: &str, kind: &str) -> Option<String> {
        if kind.is_empty() || !self.node_classes.insert((group.to_owned(), kind.to_owned())) {
            return None;
        }
        let name = format!("{kind}.{group}");
        self.tasks.spawn(node_class::run(self.client.clone(), name.clone(), group.to_owned(), kind.to_owned(), self.changes.clone()));
        Some(name)
    }

    /// Resolves when a watch has died, which only a defect can do.
    pub async fn died(&mut self) -> JoinError {
        loop {
            match self.tasks.join_next().await {
                Some(Err(error)) => return error,
                Some(Ok(())) => {}
                None => std::future::pending().await,
            }
        }
    }
}

/// `nodes`, `events/NodeClaim`: the name of a source in metrics and in /readyz.
fn source_name(source: &Source) -> String {
    match (source.only, source.fields.and_then(|f| f.rsplit_once('='))) {
        (Some((_, name)), _) => format!("{}/{name}", source.plural),
        (None, Some((_, kind))) => format!("{}/{kind}", source.plural),
        (None, None) => source.plural.to_owned(),
    }
}

/// One watch.
struct Watch {
    input: Input,
    name: String,
    api: Api<DynamicObject>,
    resource: ApiResource,
    config: watcher::Config,
}

impl Watch {
    fn of_source(client: &Client, input: Input, source: &Source) -> Self {
        let resource = resource_of(source);
        let api = match source.only {
            Some((namespace, _)) => Api::namespaced_with(client.clone(), namespace, &resource),
            None => Api::all_with(client.clone(), &resource),
        };
        let mut config = watcher::Config::default().page_size(PAGE);
        // With this selector a Role that names the object permits list and watch.
        // Source: kubernetes staging/src/k8s.io/apiserver/pkg/endpoints/request/requestinfo.go (v1.36).
        config.field_selector = source.only.map(|(_, name)| format!("metadata.name={name}")).or(source.fields.map(str::to_owned));
        config.label_selector = source.labels.map(str::to_owned);
        Self { input, name: source_name(source), api, resource, config }
    }

    /// Watches for ever, or until nobody listens.
    async fn run(self, changes: mpsc::Sender<Change>) {
        let mut said = State::Pending;
        let mut known = Known::default();
        let mut unreadable = BTreeSet::new();
        let mut failures = 0;
        let mut events = watcher(self.api.clone(), self.config.clone()).boxed();
        loop {
            let mut told = Vec::new();
            match events.try_next().await {
                Ok(None) => return,
                Err(error) => {
                    failures += 1;
                    let failure = Failure::from(&error);
                    let unanswered = matches!(failure, Failure::Unanswered(_));
                    if unanswered && failures == BLIND_AFTER {
                        events = watcher(self.api.clone(), self.config.clone()).boxed();
                    }
                    let state = State::Failed(failure);
                    if said != state && (!unanswered || failures >= BLIND_AFTER) {
                        said = state;
                        told.push(self.state(&said));
                    }
                    if send(&changes, told).await.is_err() {
                        return;
                    }
                    tokio::time::sleep(backoff(failures)).await;
                    continue;
                }
                Ok(Some(watcher::Event::Init)) => known.begin(),
                Ok(Some(watcher::Event::InitApply(object) | watcher::Event::Apply(object))) => {
                    failures = 0;
                    known.saw(key_of(&object));
                    told.extend(self.applied(object, &mut unreadable));
                }
                Ok(Some(watcher::Event::InitDone)) => {
                    failures = 0;
                    for (namespace, name) in known.vanished() {
                        told.push(Change::Removed { input: self.input, namespace, name, last: None });
                    }
                    if said != State::Read {
                        said = State::Read;
                        told.push(self.state(&said));
                    }
                }
                Ok(Some(watcher::Event::Delete(object))) => {
                    let key = key_of(&object);
                    known.lost(&key);
                    unreadable.remove(&key);
                    let last = self.read(object).ok().map(Box::new);
                    told.push(Change::Removed { input: self.input, namespace: key.0, name: key.1, last });
                }
            }
            if send(&changes, told).await.is_err() {
                return;
            }
        }
    }

    fn state(&self, state: &State) -> Change {
        Change::Source { input: self.input, name: self.name.clone(), state: state.clone() }
    }

    fn applied(&self, object: DynamicObject, unreadable: &mut BTreeSet<Key>) -> Option<Change> {
        let key = key_of(&object);
        match self.read(object) {
            Ok(object) => {
                unreadable.remove(&key);
                Some(Change::Applied(Box::new(object)))
            }
            Err(error) => {
                let object = format!("{}/{}", self.resource.kind, key.1);
                unreadable.insert(key).then(|| Change::Unreadable { input: self.input, object, error: error.to_string() })
            }
        }
    }

    fn read(&self, object: DynamicObject) -> Result<Object, serde_json::Error> {
        read(self.input, &self.resource, object)
    }
}

/// Reads an object; lists leave out the type of their items.
pub(crate) fn read(input: Input, resource: &ApiResource, mut object: DynamicObject) -> Result<Object, serde_json::Error> {
    object.types.get_or_insert_with(|| kube::api::TypeMeta { api_version: resource.api_version.clone(), kind: resource.kind.clone() });
    Object::from_value(input, serde_json::to_value(object)?)
}

pub(crate) fn resource_of(source: &Source) -> ApiResource {
    let gvk = kube::api::GroupVersionKind::gvk(source.group, source.version, source.kind);
    ApiResource::from_gvk_with_plural(&gvk, source.plural)
}

type Key = (Option<String>, String);

fn key_of(object: &DynamicObject) -> Key {
    (object.namespace(), object.name_any())
}

/// 1 s, 2 s, 4 s … 60 s.
fn backoff(failures: u32) -> Duration {
    RETRY_FIRST.saturating_mul(1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX)).min(RETRY_LAST)
}

async fn send(changes: &mpsc::Sender<Change>, told: Vec<Change>) -> Result<(), mpsc::error::SendError<Change>> {
    for change in told {
        changes.send(change).await?;
    }
    Ok(())
}
