//! The live way in: one watch per source, told apart into changes of the state.
//!
//! A watch never ends. What cannot be read (not installed, not permitted, no answer) is said once and tried again, and
//! when it appears it is picked up without a restart.

mod access;
pub mod api_server;
mod ask;
mod demand;
mod known;
mod node_class;
mod pods;

pub use access::Access;
pub use ask::Ask;
pub use pods::Pods;

use crate::kube_client::raw::Raw;
use crate::kube_client::{PAGE, failure, resource_of};
use crate::operator::metrics::Metrics;
use crate::operator::sources::{DIAGNOSES, source_name};
use chrono::Utc;
use demand::{Demand, Kind, Turn};
use engine::api::NodeDiagnosis;
use engine::objects::input::{ApiSource, Input, Object};
use engine::objects::intern::Interned;
use engine::objects::{Meta, NodeClass};
use engine::triage::change::{Change, ReadFailure, SourceState, Watched};
use futures::{StreamExt, TryStreamExt};
use known::Known;
use kube::api::{Api, ApiResource};
use kube::runtime::watcher;
use kube::{Client, Resource};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio::time::Instant;

/// The API server ends a watch after so many seconds, and it goes on where it was. One that has not ended a little
/// later is dead, however open its connection looks: kube's watcher gives it up. Bookmarks do not tell: of a kind that
/// has not changed since the API server started it sends none.
/// Source: kubernetes staging/src/k8s.io/apiserver/pkg/storage/cacher/cacher.go `dispatchEvents` (v1.36).
const WATCH: u32 = 60;
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_LAST: Duration = Duration::from_mins(1);
/// An API server that is away comes back, and machines do not wait meanwhile; kinds are installed once in a while.
const RETRY_UNANSWERED: Duration = Duration::from_secs(10);
/// A watch that breaks off is resumed, and nobody notices. After so many failures in a row it is blind, and starts with
/// a new list.
const BLIND_AFTER: u32 = 3;
/// The longest time between two failures in a row: the pause, a request without an answer, and a silent watch. After a
/// longer time, a watch has ended as it should in between. kube's watcher does not report that.
const IN_A_ROW: Duration = Duration::from_secs(60 + 30 + 65);

/// Failures in a row.
#[derive(Debug, Default)]
struct Failures {
    count: u32,
    last: Option<Instant>,
}

impl Failures {
    /// Counts one more, and returns how many there are in a row.
    fn note(&mut self, now: Instant) -> u32 {
        let goes_on = self.last.is_some_and(|last| now - last <= IN_A_ROW);
        self.count = if goes_on { self.count.saturating_add(1) } else { 1 };
        self.last = Some(now);
        self.count
    }
}

/// What a broken watch means.
fn failure_of(error: &watcher::Error) -> ReadFailure {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => failure::of(error),
        other => ReadFailure::Unanswered(other.to_string()),
    }
}

/// All watches of one cluster.
#[must_use = "its watches end when it is dropped"]
pub struct Watches {
    client: Client,
    changes: mpsc::Sender<Change>,
    metrics: Arc<Metrics>,
    tasks: JoinSet<()>,
    demand: Demand,
    /// The watches of other node classes, by the name of their source.
    others: BTreeMap<String, AbortHandle>,
}

/// A kind of node class that no NodePool names any more.
#[derive(Debug, PartialEq, Eq)]
pub struct Unwatched {
    pub group: String,
    pub kind: String,
    /// Its source, as `Change::Source` names it.
    pub source: String,
}

impl Watches {
    /// Starts a watch for every source of the table, and one for the NodeDiagnoses.
    pub fn start(client: Client, changes: mpsc::Sender<Change>, metrics: Arc<Metrics>) -> Self {
        let mut watches = Self {
            client,
            changes,
            metrics,
            tasks: JoinSet::new(),
            demand: Demand::default(),
            others: BTreeMap::new(),
        };
        watches.spawn(Watch::of_diagnoses(&watches.client));
        for input in Input::ALL {
            for source in input.sources().iter().filter(|source| source.watched) {
                watches.spawn(Watch::of_source(&watches.client, input, source));
            }
        }
        watches
    }

    fn spawn(&mut self, watch: Watch) {
        self.tasks.spawn(watch.run(self.changes.clone(), Arc::clone(&self.metrics)));
    }

    /// A NodePool names this kind of node class. Gives the names of new sources, and what is not watched any more.
    pub fn pool_names(&mut self, pool: &str, group: &str, kind: &str) -> (Vec<String>, Vec<Unwatched>) {
        let turn = self.demand.name(pool, group, kind);
        self.follow(turn)
    }

    /// A NodePool is gone.
    pub fn pool_gone(&mut self, pool: &str) -> (Vec<String>, Vec<Unwatched>) {
        let turn = self.demand.pool_gone(pool);
        self.follow(turn)
    }

    fn follow(&mut self, turn: Turn) -> (Vec<String>, Vec<Unwatched>) {
        let source = |(group, kind): &Kind| format!("{kind}.{group}");
        let mut ended = Vec::new();
        for (group, kind) in turn.end {
            let source = format!("{kind}.{group}");
            if let Some(task) = self.others.remove(&source) {
                task.abort();
            }
            ended.push(Unwatched { group, kind, source });
        }
        let begun: Vec<String> = turn.begin.iter().map(source).collect();
        for (name, (group, kind)) in begun.iter().zip(turn.begin) {
            let (changes, metrics) = (self.changes.clone(), Arc::clone(&self.metrics));
            let watch = node_class::run(self.client.clone(), name.clone(), group, kind, changes, metrics);
            self.others.insert(name.clone(), self.tasks.spawn(watch));
        }
        (begun, ended)
    }

    /// Whether a change comes from a watch that has been ended meanwhile.
    pub fn is_over(&self, change: &Change) -> bool {
        let is_of_table = |is: &dyn Fn(&ApiSource) -> bool| Input::NodeClasses.sources().iter().any(is);
        match change {
            Change::Source { what: Watched::Input(Input::NodeClasses), name, .. } => {
                !is_of_table(&|source| source_name(source) == *name) && !self.others.contains_key(name)
            }
            Change::Applied(object) => match &**object {
                Object::NodeClass(class) => {
                    let (group, kind) = (class.group(), class.kind.as_str());
                    !is_of_table(&|source| source.group == group && source.kind == kind)
                        && !self.demand.watches(group, kind)
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// The tasks of the watches. Other parts of the operator add theirs.
    pub const fn tasks(&mut self) -> &mut JoinSet<()> {
        &mut self.tasks
    }

    /// Resolves when a watch, or another of the tasks, has died, which only a defect can do.
    pub async fn died(&mut self) -> JoinError {
        loop {
            match self.tasks.join_next().await {
                // One that was told to end.
                Some(Err(error)) if error.is_cancelled() => {}
                Some(Err(error)) => return error,
                Some(Ok(())) => {}
                None => std::future::pending().await,
            }
        }
    }
}

fn config() -> watcher::Config {
    watcher::Config::default().page_size(PAGE).timeout(WATCH)
}

/// One watch.
struct Watch {
    what: Watched,
    name: String,
    api: Api<Raw>,
    resource: ApiResource,
    config: watcher::Config,
}

impl Watch {
    fn of_source(client: &Client, input: Input, source: &ApiSource) -> Self {
        let resource = resource_of(source);
        let api = match source.namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
            None => Api::all_with(client.clone(), &resource),
        };
        let mut config = config();
        // With this selector a Role that names the object permits list and watch.
        // Source: kubernetes staging/src/k8s.io/apiserver/pkg/endpoints/request/requestinfo.go (v1.36).
        config.field_selector = source.field_selector();
        config.label_selector = source.labels.map(str::to_owned);
        Self { what: Watched::Input(input), name: source_name(source), api, resource, config }
    }

    fn of_diagnoses(client: &Client) -> Self {
        let resource = ApiResource::erase::<NodeDiagnosis>(&());
        let api = Api::all_with(client.clone(), &resource);
        let config = config();
        Self { what: Watched::Diagnoses, name: DIAGNOSES.to_owned(), api, resource, config }
    }

    /// Watches for ever, or until nobody listens.
    async fn run(self, changes: mpsc::Sender<Change>, metrics: Arc<Metrics>) {
        let mut said = SourceState::Pending;
        let mut known = Known::default();
        let mut unreadable = BTreeSet::new();
        let mut failed = Failures::default();
        let mut listed = false;
        // Not there before it has heard of anything: zero would be 1970.
        let mut last_event = None;
        let mut events = watcher(self.api.clone(), self.config.clone()).boxed();
        loop {
            let mut told = Vec::new();
            let event = events.try_next().await;
            if event.is_ok() {
                last_event.get_or_insert_with(|| metrics.last_event(&self.name)).set(Utc::now().timestamp());
            }
            match event {
                Ok(None) => return,
                Err(error) => {
                    let failures = failed.note(Instant::now());
                    let failure = failure_of(&error);
                    // An API server that starts refuses and misses things for a moment: what was read before is not
                    // given up at once.
                    let unanswered = matches!(failure, ReadFailure::Unanswered(_));
                    let at_once = said == SourceState::Pending && !unanswered;
                    // "Not installed" and "not permitted" say more than "no answer", and stay true until there is one.
                    let less = unanswered
                        && matches!(
                            said,
                            SourceState::Failed(ReadFailure::NotInstalled | ReadFailure::NotPermitted(_))
                        );
                    if failures == BLIND_AFTER {
                        events = watcher(self.api.clone(), self.config.clone()).boxed();
                    }
                    let state = SourceState::Failed(failure);
                    if said != state && !less && (at_once || failures >= BLIND_AFTER) {
                        said = state;
                        told.push(self.state(&said));
                    }
                    if send(&changes, told).await.is_err() {
                        return;
                    }
                    tokio::time::sleep(backoff(failures).min(if unanswered { RETRY_UNANSWERED } else { RETRY_LAST }))
                        .await;
                    continue;
                }
                Ok(Some(watcher::Event::Init)) => known.begin(),
                Ok(Some(watcher::Event::InitApply(object) | watcher::Event::Apply(object))) => {
                    failed = Failures::default();
                    known.seen(key_of(&object));
                    told.extend(self.applied(&object, &mut unreadable));
                }
                Ok(Some(watcher::Event::InitDone)) => {
                    failed = Failures::default();
                    if std::mem::replace(&mut listed, true) {
                        metrics.watch_relisted(&self.name);
                    }
                    told.extend(known.vanished().into_iter().map(|key| self.removed(key, None)));
                    if self.what == Watched::Diagnoses {
                        told.push(Change::DiagnosesListed(known.names()));
                    }
                    if said != SourceState::Read {
                        said = SourceState::Read;
                        told.push(self.state(&said));
                    }
                }
                Ok(Some(watcher::Event::Delete(object))) => {
                    let key = key_of(&object);
                    known.lost(&key);
                    unreadable.remove(&key);
                    told.push(self.removed(key, Some(&object)));
                }
            }
            if send(&changes, told).await.is_err() {
                return;
            }
        }
    }

    fn state(&self, state: &SourceState) -> Change {
        Change::Source { what: self.what, name: self.name.clone(), state: state.clone() }
    }

    /// What an object says, and once of each object that something of it cannot be read.
    fn applied(&self, object: &Raw, unreadable: &mut BTreeSet<Key>) -> Vec<Change> {
        let key = key_of(object);
        let read = match self.what {
            Watched::Input(input) => object
                .read(input, &self.resource)
                .map(|(object, odd)| (Change::Applied(Box::new(object)), odd.first().map(ToString::to_string))),
            Watched::Diagnoses => object
                .whole(&self.resource)
                .and_then(serde_json::from_value)
                .map(|diagnosis| (Change::Diagnosis(Box::new(diagnosis)), None))
                .map_err(|error| error.to_string()),
        };
        let (change, error) = match read {
            Ok((change, odd)) => (Some(change), odd),
            Err(error) => (None, Some(error)),
        };
        let Some(error) = error else {
            unreadable.remove(&key);
            return change.into_iter().collect();
        };
        let object = format!("{}/{}", self.resource.kind, key.1);
        let told = unreadable.insert(key).then(|| Change::Unreadable {
            what: self.what,
            name: self.name.clone(),
            object,
            error: failure::said(&error),
        });
        told.into_iter().chain(change).collect()
    }

    fn removed(&self, (namespace, name): Key, last: Option<&Raw>) -> Change {
        match self.what {
            Watched::Input(input) => {
                let bare = || (input == Input::NodeClasses).then(|| self.bare_class(&name));
                let read = last.and_then(|object| object.read(input, &self.resource).ok()).map(|(object, _)| object);
                let last = read.or_else(bare).map(Box::new);
                Change::Removed { input, namespace: namespace.map(String::from), name: name.into(), last }
            }
            Watched::Diagnoses => Change::DiagnosisGone(name.into()),
        }
    }

    /// A node class is known by its kind too, which no other input has several of.
    fn bare_class(&self, name: &Interned) -> Object {
        let metadata = Meta { name: name.clone(), ..Meta::default() };
        let (api_version, kind) = (self.resource.api_version.clone(), self.resource.kind.clone());
        Object::NodeClass(NodeClass { api_version, kind, metadata, ..NodeClass::default() })
    }
}

/// Namespace, and name.
type Key = (Option<Interned>, Interned);

fn key_of(object: &Raw) -> Key {
    (object.meta().namespace.as_deref().map(Interned::from), object.name().into())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quiet_watch_that_breaks_off_once_an_hour_is_not_blind() {
        let (mut failures, now) = (Failures::default(), Instant::now());
        let hourly: Vec<_> = (0..5).map(|hour| failures.note(now + Duration::from_hours(hour))).collect();
        assert_eq!(hourly, [1; 5]);
        // One connection after the other that looks open and is dead.
        let later = now + Duration::from_hours(9);
        let silent: Vec<_> = (0..4).map(|n| failures.note(later + n * IN_A_ROW)).collect();
        assert_eq!(silent, [1, 2, 3, 4]);
    }
}
