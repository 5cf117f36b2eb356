//! The admission webhook: says at `kubectl apply` what `lint` finds. Opt-in.
//!
//! It has a thread of its own, so that no review waits for the operator's loop and the loop waits for no review. The
//! loop shows it the configuration of the cluster when that changed, and each review judges a copy of what it needs.

mod certificates;
pub mod own_certificate;
mod review;
mod server;

use crate::kube_client::ClusterFlags;
use crate::kube_client::clock::Clock;
use crate::operator::own_thread;
use certificates::ServedCertificate;
use engine::cluster_state::surroundings::Surroundings;
use engine::triage::Triage;
use server::Reviewer;
use std::io;
use std::net::{Ipv6Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// What the webhook refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Deny {
    /// None.
    #[default]
    #[value(name = "off")]
    Nothing,
    /// Objects whose text alone proves an error.
    Certain,
}

/// The options of the webhook.
#[derive(Debug, Clone)]
pub struct AdmissionOptions {
    pub port: u16,
    /// The folder with `tls.crt` and `tls.key`. `None` if nodewhy makes its own.
    pub certificates: Option<PathBuf>,
    pub deny: Deny,
}

impl AdmissionOptions {
    /// Every address of the pod.
    pub(super) const fn listen(&self) -> SocketAddr {
        SocketAddr::new(std::net::IpAddr::V6(Ipv6Addr::UNSPECIFIED), self.port)
    }
}

/// Where nodewhy runs: its own certificate is kept there.
#[derive(Debug, Clone)]
pub(super) struct Home {
    pub cluster: ClusterFlags,
    /// The namespace. `None` if it is that of the client.
    pub namespace: Option<String>,
    pub clock: Arc<Clock>,
}

/// The newest configuration that the operator has shown. `None` before the first lists are complete.
type Shown = watch::Receiver<Option<Arc<Surroundings>>>;

/// The operator's end of the webhook. Nothing is reviewed any more when it is dropped.
pub(super) struct Admission {
    shows: watch::Sender<Option<Arc<Surroundings>>>,
    /// The revision of the configuration that was shown last.
    revision: Option<u64>,
}

impl Admission {
    /// Starts to answer. A defect there ends the webhook and nothing else.
    pub(super) fn serve(listener: TcpListener, options: AdmissionOptions, home: Home) -> io::Result<Self> {
        let (shows, shown) = watch::channel(None);
        drop(own_thread::run("admission", move || answer(listener, options, home, shown))?);
        Ok(Self { shows, revision: None })
    }

    /// Shows the configuration if it changed.
    pub(super) fn show(&mut self, triage: &Triage) {
        let revision = triage.configuration_revision();
        if self.revision != Some(revision) {
            self.revision = Some(revision);
            self.shows.send_replace(triage.cluster().surroundings().map(Arc::new));
        }
    }
}

async fn answer(listener: TcpListener, options: AdmissionOptions, home: Home, shown: Shown) {
    let served = Arc::new(ServedCertificate::default());
    let mut tasks = JoinSet::new();
    let reviewer = Reviewer::new(shown.clone(), Arc::clone(&home.clock), options.deny);
    match options.certificates {
        Some(folder) => tasks.spawn(certificates::follow(folder, Arc::clone(&served))),
        None => tasks.spawn(own_certificate::keep(home, Arc::clone(&served))),
    };
    let mut ends = shown;
    let until_dropped = async move { while ends.changed().await.is_ok() {} };
    if let Err(error) = server::serve(listener, served, reviewer, until_dropped).await {
        tracing::warn!(%error, "the admission webhook does not run, so nodewhy reviews nothing at kubectl apply");
    }
}
