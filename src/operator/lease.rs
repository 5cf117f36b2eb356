//! The Lease that decides which of several replicas writes, held as in client-go's leader election.
//!
//! A replica that cannot renew in time stops by its own clock, well before another may take over by its own. So nothing
//! here compares the clocks of two machines, and nothing waits for an answer that may never come.

mod record;

use super::own_thread;
use crate::kube_client::clock::Clock;
use crate::kube_client::slept::slept;
use crate::kube_client::{ClusterFlags, failure};
use chrono::Utc;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::coordination::v1::LeaseSpec;
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};
use record::{Seen, acquired, released};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{oneshot, watch};
use tokio::time::{sleep, timeout};

/// The name of the Lease, in the namespace that the operator runs in.
pub const NAME: &str = "nodewhy";
/// Rights that the Lease needs in addition to `publish::WRITES` if several replicas run: verbs on any Lease, and on the
/// Lease of that name, in the operator's own namespace.
pub const NEEDS: (&str, &str, &[&str], &[&str]) = ("coordination.k8s.io", "leases", &["create"], &["get", "update"]);

/// The holder may still write until the Lease has been unchanged for this long. The three times are those of client-go.
/// Source: kubernetes staging/src/k8s.io/component-base/config/v1alpha1/defaults.go (v1.36).
const DURATION: Duration = Duration::from_secs(15);
/// A holder that has not renewed it for this long stops writing.
const DEADLINE: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_secs(2);
/// Time limit of one round of requests. kube itself waits forever.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The right to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leadership {
    /// Rises each time that this replica becomes the leader. Orders of an earlier term are void.
    pub term: u64,
    /// The end of the right. `None` if there is no other replica.
    until: Option<Until>,
}

/// An end, on a node that may be suspended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Until {
    /// The end, if the node is not suspended before it.
    end: Instant,
    /// For how long the node had been suspended when the right was gained.
    slept: Duration,
}

impl Leadership {
    /// The remaining time of the right. `None` if it has ended.
    pub fn lasts(&self, now: Instant) -> Option<Duration> {
        self.lasts_after(now, slept())
    }

    /// Like `lasts`, on a node that has been suspended for this long since it booted. `Instant` does not count that
    /// time, but the clocks of the other replicas do.
    fn lasts_after(&self, now: Instant, slept: Duration) -> Option<Duration> {
        let Some(until) = self.until else { return Some(Duration::MAX) };
        let left = until.end.checked_duration_since(now)?.checked_sub(slept.saturating_sub(until.slept))?;
        Some(left).filter(|left| !left.is_zero())
    }
}

/// The right of a term, if it lasts.
pub fn right_in(leads: &Leads, term: u64) -> Option<Duration> {
    let leadership = (*leads.borrow()).filter(|leadership| leadership.term == term)?;
    leadership.lasts(now())
}

/// Tokio's clock, which a test can hold.
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// Whether this replica leads, with updates.
pub type Leads = watch::Receiver<Option<Leadership>>;

/// How the replica takes part.
#[derive(Debug, Clone)]
pub struct Election {
    pub namespace: String,
    /// The name of the pod, which differs for every process.
    pub identity: String,
    /// The thread of the Lease has a client of its own, because a shared one would wait for the operator's thread.
    pub cluster: ClusterFlags,
    pub clock: Arc<Clock>,
}

/// A replica that leads or wants to.
pub struct Candidate {
    election: Option<Election>,
    says: watch::Sender<Option<Leadership>>,
    running: Option<Running>,
}

struct Running {
    stop: oneshot::Sender<()>,
    ended: oneshot::Receiver<()>,
}

impl Candidate {
    /// Without an election there is only this replica.
    pub fn new(election: Option<Election>) -> (Self, Leads) {
        let (says, leads) = watch::channel(None);
        (Self { election, says, running: None }, leads)
    }

    /// From now on it may lead. One that knows nothing yet must not.
    pub fn stand(&mut self) -> io::Result<()> {
        match self.election.clone() {
            None => drop(self.says.send_replace(Some(Leadership { term: 1, until: None }))),
            Some(election) => {
                let (stop, mut stopped) = oneshot::channel();
                let says = self.says.clone();
                let ended = own_thread::run("lease", move || async move {
                    if let Some(client) = connect(&election, &mut stopped).await {
                        let api = Api::namespaced(client, &election.namespace);
                        Holder::new(api, election.identity, says).run(stopped).await;
                    }
                })?;
                self.running = Some(Running { stop, ended });
            }
        }
        Ok(())
    }

    /// Resolves when the thread of the Lease has died, which only a defect can do.
    pub async fn died(&mut self) {
        match &mut self.running {
            Some(running) => drop((&mut running.ended).await),
            None => std::future::pending().await,
        }
        self.running = None;
    }

    /// Gives the Lease back, so that another replica need not wait for its end.
    pub async fn withdraw(self) {
        let Some(Running { stop, ended }) = self.running else { return };
        drop(stop);
        if timeout(TIMEOUT, ended).await.is_err() {
            tracing::warn!("the Lease could not be released; another replica takes over when it ends");
        }
    }
}

/// Tries until there is a client, or until the candidate withdraws.
async fn connect(election: &Election, stopped: &mut oneshot::Receiver<()>) -> Option<Client> {
    loop {
        match election.cluster.lasting_client(Arc::clone(&election.clock)).await {
            Ok(client) => return Some(client),
            Err(error) => tracing::warn!(%error, "cannot connect to the API server for the Lease; nodewhy tries again"),
        }
        tokio::select! {
            () = sleep(RETRY) => {}
            _ = &mut *stopped => return None,
        }
    }
}

struct Holder {
    api: Api<Lease>,
    identity: String,
    seen: Seen,
    says: watch::Sender<Option<Leadership>>,
    term: u64,
    /// `leaseTransitions` when this replica last wrote the Lease.
    transitions: Option<i32>,
}

impl Holder {
    fn new(api: Api<Lease>, identity: String, says: watch::Sender<Option<Leadership>>) -> Self {
        Self { api, identity, seen: Seen::default(), says, term: 0, transitions: None }
    }

    async fn run(mut self, mut stopped: oneshot::Receiver<()>) {
        loop {
            tokio::select! {
                () = self.round() => {}
                _ = &mut stopped => break,
            }
            tokio::select! {
                () = sleep(RETRY) => {}
                _ = &mut stopped => break,
            }
        }
        // First nobody writes here any more, then somebody may elsewhere.
        let led = self.says.send_replace(None).is_some();
        if led && let Err(error) = self.release().await {
            let error = failure::of(&error).to_string();
            tracing::warn!(error, "the Lease could not be released");
        }
    }

    /// Takes or renews the Lease where that is due.
    async fn round(&mut self) {
        let (asked, slept) = (now(), slept());
        let held = match timeout(TIMEOUT, self.hold()).await {
            Ok(Ok(held)) => held,
            Ok(Err(error)) => {
                let error = failure::of(&error).to_string();
                tracing::warn!(error, "the Lease cannot be read or written");
                return self.lapse();
            }
            Err(_) => {
                tracing::warn!("the API server did not answer about the Lease in time");
                return self.lapse();
            }
        };
        let before = *self.says.borrow();
        let says = held.map(|transitions| {
            let is_same = self.transitions.replace(transitions) == Some(transitions);
            // A replica that was held still finds the Lease free, or as it left it. Another may have led in between.
            let lasted = before.is_some_and(|leadership| leadership.lasts(now()).is_some());
            if !is_same || !lasted {
                self.term += 1;
                tracing::info!(identity = self.identity, term = self.term, "this replica leads");
            }
            Leadership { term: self.term, until: asked.checked_add(DEADLINE).map(|end| Until { end, slept }) }
        });
        if says.is_none() && before.is_some() {
            tracing::warn!(identity = self.identity, "another replica leads");
        }
        self.says.send_if_modified(|said| std::mem::replace(said, says) != says);
    }

    /// Until the deadline a leader without an answer leads on.
    fn lapse(&self) {
        let is_over = |said: &Option<Leadership>| said.is_some_and(|leadership| leadership.lasts(now()).is_none());
        self.says.send_if_modified(|said| is_over(said) && said.take().is_some());
    }

    /// `leaseTransitions`, if this replica holds the Lease now.
    async fn hold(&mut self) -> kube::Result<Option<i32>> {
        let lease = self.api.get_opt(NAME).await?;
        let record = lease.as_ref().and_then(|lease| lease.spec.as_ref());
        self.seen.look(record, now());
        if !self.seen.is_free_for(&self.identity, now()) {
            return Ok(None);
        }
        // A deleted Lease counts from zero again, so an equal number means nothing.
        if record.is_none() {
            self.transitions = None;
        }
        let spec = acquired(record, &self.identity, DURATION, Utc::now());
        let transitions = spec.lease_transitions.unwrap_or_default();
        Ok(self.write(lease.as_ref(), spec).await?.then_some(transitions))
    }

    async fn release(&mut self) -> kube::Result<bool> {
        let Some(lease) = self.api.get_opt(NAME).await? else { return Ok(false) };
        let Some(spec) = lease.spec.as_ref().filter(|spec| spec.holder_identity.as_ref() == Some(&self.identity))
        else {
            return Ok(false);
        };
        let spec = released(spec, Utc::now());
        self.write(Some(&lease), spec).await
    }

    /// Writes over exactly the Lease that was read; whoever else wrote meanwhile has won.
    async fn write(&self, read: Option<&Lease>, spec: LeaseSpec) -> kube::Result<bool> {
        let metadata = read.map_or_else(
            || ObjectMeta { name: Some(NAME.to_owned()), ..ObjectMeta::default() },
            |lease| lease.metadata.clone(),
        );
        let lease = Lease { metadata, spec: Some(spec) };
        let params = PostParams { field_manager: Some(engine::api::FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let written = match read {
            None => self.api.create(&params, &lease).await,
            Some(_) => self.api.replace(NAME, &params, &lease).await,
        };
        match written {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;
    use kube::client::Body;
    use serde_json::{Value, json};
    use std::sync::Mutex;

    fn until(end: Instant) -> Until {
        Until { end, slept: Duration::ZERO }
    }

    #[test]
    fn the_right_to_write_ends_by_itself_where_nobody_renews_it() {
        let now = Instant::now();
        let leadership = Leadership { term: 1, until: Some(until(now + DEADLINE)) };
        let lasts = |now| leadership.lasts_after(now, Duration::ZERO);
        assert_eq!(lasts(now + Duration::from_secs(4)), Some(Duration::from_secs(6)));
        assert_eq!(lasts(now + DEADLINE), None);
        assert_eq!(lasts(now + DURATION), None);
    }

    #[test]
    fn a_machine_that_was_suspended_has_lost_that_time() {
        let now = Instant::now();
        let slept = Duration::from_hours(2);
        let leadership = Leadership { term: 1, until: Some(Until { end: now + DEADLINE, slept }) };
        assert_eq!(leadership.lasts_after(now, slept), Some(DEADLINE));
        assert_eq!(leadership.lasts_after(now, slept + Duration::from_secs(4)), Some(Duration::from_secs(6)));
        assert_eq!(leadership.lasts_after(now, slept + DEADLINE), None);
        assert_eq!(leadership.lasts_after(now, slept + Duration::from_hours(1)), None);
    }

    /// An API server that has one Lease.
    fn api_server() -> (Api<Lease>, Arc<Mutex<Option<Value>>>) {
        let lease = Arc::new(Mutex::new(None::<Value>));
        let kept = Arc::clone(&lease);
        let answer = move |request: http::Request<Body>| {
            let kept = Arc::clone(&kept);
            async move {
                let (parts, body) = request.into_parts();
                let mut sent: Value = serde_json::from_slice(&body.collect_bytes().await?).unwrap_or_default();
                let mut kept = kept.lock().expect("nobody panics");
                let version = |lease: &Value| lease["metadata"]["resourceVersion"].clone();
                let failure = |code: u16| {
                    let reason = if code == 404 { "NotFound" } else { "Conflict" };
                    json!({ "kind": "Status", "status": "Failure", "code": code, "reason": reason })
                };
                let (code, answer): (u16, Value) = match (parts.method.as_str(), kept.clone()) {
                    ("GET", Some(lease)) => (200, lease),
                    ("GET", None) => (404, failure(404)),
                    ("POST", Some(_)) => (409, failure(409)),
                    (_, before) if before.as_ref().is_some_and(|before| version(before) != version(&sent)) => {
                        (409, failure(409))
                    }
                    (_, before) => {
                        let next =
                            before.and_then(|before| version(&before).as_str()?.parse::<u64>().ok()).unwrap_or(0);
                        sent["metadata"]["resourceVersion"] = json!((next + 1).to_string());
                        *kept = Some(sent.clone());
                        (200, sent)
                    }
                };
                drop(kept);
                let answer = Body::from(answer.to_string().into_bytes());
                Ok::<_, tower::BoxError>(http::Response::builder().status(code).body(answer)?)
            }
        };
        (Api::namespaced(Client::new(tower::service_fn(answer), "default"), "default"), lease)
    }

    /// A replica that runs only when the test says so: between two rounds it is held still.
    struct Replica {
        holder: Holder,
        leads: Leads,
        /// What it was ordered to remove, and in which term.
        ordered: Option<u64>,
    }

    fn replica(api: &Api<Lease>, name: &str) -> Replica {
        let (says, leads) = watch::channel(None);
        Replica { holder: Holder::new(api.clone(), name.to_owned(), says), leads, ordered: None }
    }

    impl Replica {
        fn term(&self) -> Option<u64> {
            let leadership = (*self.leads.borrow())?;
            leadership.lasts(now()).map(|_| leadership.term)
        }

        async fn give_back(&mut self) {
            self.holder.says.send_replace(None);
            self.holder.release().await.expect("it answers");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_was_held_still_while_another_led_and_gave_the_lease_back_begins_a_new_term() {
        let (api, _) = api_server();
        let (mut first, mut second) = (replica(&api, "first"), replica(&api, "second"));
        first.holder.round().await;
        second.holder.round().await;
        assert_eq!((first.term(), second.term()), (Some(1), None));
        // The first is held still; the second waits as long as it must.
        sleep(DURATION).await;
        second.holder.round().await;
        assert_eq!(second.term(), Some(1));
        second.give_back().await;
        first.holder.round().await;
        assert_eq!((first.term(), right_in(&first.leads, 1)), (Some(2), None), "what it ordered before is void");
    }

    #[tokio::test(start_paused = true)]
    async fn a_right_that_has_lapsed_is_another_one_when_it_is_gained_again() {
        let (api, kept) = api_server();
        let mut alone = replica(&api, "alone");
        for _ in 0..5 {
            alone.holder.round().await;
            sleep(RETRY).await;
        }
        assert_eq!(alone.term(), Some(1), "as long as it is renewed the term is the same");
        sleep(DEADLINE).await;
        alone.holder.round().await;
        assert_eq!(alone.term(), Some(2));
        // The Lease is deleted. Nothing shows which replica held it in between.
        *kept.lock().expect("nobody panics") = None;
        alone.holder.round().await;
        assert_eq!(alone.term(), Some(3));
    }

    /// Two replicas that are held still at any moment, give the Lease back, and carry out what they have ordered. An
    /// order is never carried out once the other has led.
    #[tokio::test(start_paused = true)]
    async fn no_order_outlives_the_term_of_another_replica() {
        let mut carried_out = 0;
        for seed in 0..300 {
            let mut rng = Rng::with_seed(seed);
            let (api, _) = api_server();
            let mut replicas = [replica(&api, "a"), replica(&api, "b")];
            for _ in 0..200 {
                sleep(Duration::from_millis(rng.u64(..6_000))).await;
                let one = usize::from(rng.bool());
                match rng.u8(..10) {
                    0..5 => replicas[one].holder.round().await,
                    5 => replicas[one].give_back().await,
                    6 | 7 => replicas[one].ordered = replicas[one].term().or(replicas[one].ordered),
                    _ => {
                        let replica = &mut replicas[one];
                        let is_sent = |term: &u64| right_in(&replica.leads, *term).is_some();
                        if replica.ordered.take_if(|term| is_sent(term)).is_some() {
                            carried_out += 1;
                        }
                        // The term of one that leads was gained after that of the other: its orders are void for good.
                        continue;
                    }
                }
                let leading = replicas.iter().filter(|replica| replica.term().is_some()).count();
                assert!(leading <= 1, "seed {seed}: both lead");
                if let Some(leader) = replicas.iter().position(|replica| replica.term().is_some()) {
                    let other = &replicas[1 - leader];
                    let term = other.ordered.unwrap_or_default();
                    // Whenever it wakes up, that term must be over.
                    assert!(right_in(&other.leads, term).is_none(), "seed {seed}");
                    replicas[1 - leader].ordered = other.ordered.map(|term| term | VOID);
                }
                for replica in &replicas {
                    let void = replica.ordered.filter(|term| term & VOID > 0).map(|term| term & !VOID);
                    assert!(void.is_none_or(|term| right_in(&replica.leads, term).is_none()), "seed {seed}");
                }
            }
        }
        assert!(carried_out > 300, "{carried_out}");
    }

    /// Marks an order that was given before the other led.
    const VOID: u64 = 1 << 32;
}
