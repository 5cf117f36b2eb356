//! Who of several replicas writes: a Lease, held the way client-go's leader election holds it.
//!
//! A replica that cannot renew in time stops by its own clock, well before another may take over by its own. So nothing
//! here compares the clocks of two machines, and nothing waits for an answer that may never come.

mod record;

use chrono::Utc;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};
use record::{Seen, acquired, released};
use std::time::{Duration, Instant};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// The name of the Lease, in the namespace that the operator runs in.
pub const NAME: &str = "nodewhy";
/// What the Lease takes beyond `publish::WRITES` where several replicas run: verbs on any, and on the one of that name,
/// in the operator's own namespace.
pub const NEEDS: (&str, &str, &[&str], &[&str]) = ("coordination.k8s.io", "leases", &["create"], &["get", "update"]);

/// As long as the Lease has not changed for so long, its holder may still write. The three times are those of
/// client-go. Source: kubernetes staging/src/k8s.io/component-base/config/v1alpha1/defaults.go (v1.36).
const DURATION: Duration = Duration::from_secs(15);
/// A holder that has not renewed it for so long no longer writes.
const DEADLINE: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_secs(2);
/// One round of asking and writing; kube itself waits for ever.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The right to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leadership {
    /// Rises whenever the right is gained anew: what was ordered in an earlier term is void.
    pub term: u64,
    /// Not for longer than this; `None` where nobody else may want it.
    until: Option<Instant>,
}

impl Leadership {
    /// How much longer it lasts; `None` where it is over.
    pub fn lasts(&self, now: Instant) -> Option<Duration> {
        self.until.map_or(Some(Duration::MAX), |until| until.checked_duration_since(now)).filter(|left| !left.is_zero())
    }
}

/// Whether this replica leads, as it changes.
pub type Leads = watch::Receiver<Option<Leadership>>;

/// How the replica takes part.
#[derive(Debug, Clone)]
pub struct Election {
    pub namespace: String,
    /// Different for every process: the name of the pod.
    pub identity: String,
}

/// A replica that leads, or would.
pub struct Candidate {
    client: Client,
    election: Option<Election>,
    says: watch::Sender<Option<Leadership>>,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Candidate {
    /// Without an election the replica is alone.
    pub fn new(client: Client, election: Option<Election>) -> (Self, Leads) {
        let (says, leads) = watch::channel(None);
        (Self { client, election, says, running: None }, leads)
    }

    /// From now on it may lead. One that knows nothing yet must not.
    pub fn stand(&mut self) {
        match self.election.clone() {
            None => drop(self.says.send_replace(Some(Leadership { term: 1, until: None }))),
            Some(election) => {
                let (stop, stopped) = oneshot::channel();
                let holder = Holder {
                    api: Api::namespaced(self.client.clone(), &election.namespace),
                    identity: election.identity,
                    seen: Seen::default(),
                    says: self.says.clone(),
                    term: 0,
                };
                self.running = Some((stop, tokio::spawn(holder.run(stopped))));
            }
        }
    }

    /// Gives the Lease back, so that another replica need not wait for its end.
    pub async fn withdraw(self) {
        let Some((stop, task)) = self.running else { return };
        drop(stop);
        if timeout(TIMEOUT, task).await.is_err() {
            tracing::warn!("the Lease could not be given back; another replica takes over when it ends");
        }
    }
}

struct Holder {
    api: Api<Lease>,
    identity: String,
    seen: Seen,
    says: watch::Sender<Option<Leadership>>,
    term: u64,
}

impl Holder {
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
            tracing::warn!(%error, "the Lease could not be given back");
        }
    }

    /// Takes or renews the Lease where that is due.
    async fn round(&mut self) {
        let asked = Instant::now();
        let leads = match timeout(TIMEOUT, self.hold()).await {
            Ok(Ok(leads)) => leads,
            Ok(Err(error)) => {
                tracing::warn!(%error, "the Lease cannot be read or written");
                return self.lapse();
            }
            Err(_) => {
                tracing::warn!("no answer about the Lease");
                return self.lapse();
            }
        };
        let before = *self.says.borrow();
        let says = match (leads, before) {
            (true, Some(Leadership { term, .. })) => Some(Leadership { term, until: asked.checked_add(DEADLINE) }),
            (true, None) => {
                self.term += 1;
                tracing::info!(identity = self.identity, "this replica leads");
                Some(Leadership { term: self.term, until: asked.checked_add(DEADLINE) })
            }
            (false, before) => {
                if before.is_some() {
                    tracing::warn!(identity = self.identity, "another replica leads");
                }
                None
            }
        };
        self.says.send_if_modified(|said| std::mem::replace(said, says) != says);
    }

    /// Until the deadline a leader without an answer leads on.
    fn lapse(&self) {
        let is_over =
            |said: &Option<Leadership>| said.is_some_and(|leadership| leadership.lasts(Instant::now()).is_none());
        self.says.send_if_modified(|said| is_over(said) && said.take().is_some());
    }

    async fn hold(&mut self) -> kube::Result<bool> {
        let lease = self.api.get_opt(NAME).await?;
        let record = lease.as_ref().and_then(|lease| lease.spec.as_ref());
        self.seen.look(record, Instant::now());
        if !self.seen.is_free_for(&self.identity, Instant::now()) {
            return Ok(false);
        }
        let spec = acquired(record, &self.identity, DURATION, Utc::now());
        self.write(lease.as_ref(), spec).await
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
    async fn write(
        &self,
        read: Option<&Lease>,
        spec: k8s_openapi::api::coordination::v1::LeaseSpec,
    ) -> kube::Result<bool> {
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

    #[test]
    fn the_right_to_write_ends_by_itself_where_nobody_renews_it() {
        let now = Instant::now();
        let leadership = Leadership { term: 1, until: Some(now + DEADLINE) };
        assert_eq!(leadership.lasts(now + Duration::from_secs(4)), Some(Duration::from_secs(6)));
        assert_eq!(leadership.lasts(now + DEADLINE), None);
        assert_eq!(leadership.lasts(now + DURATION), None);
    }
}
