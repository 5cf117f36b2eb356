//! How to reach the cluster: the flags, and the clients they give.

pub mod access_review;
pub mod clock;
pub mod complaint;
pub mod failure;
pub mod protobuf;
pub mod raw;
pub mod slept;

use crate::kube_client::clock::Clock;
use complaint::Target;
use engine::objects::ApiServerFacts;
use engine::objects::input::ApiSource;
use engine::upstream::eks;
use kube::api::ApiResource;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::timeout;
use tower_http::timeout::TimeoutBody;

/// A connection that says nothing for so long while an answer is awaited is dead, however open it looks. No watch lasts
/// as long.
const SILENCE: Duration = Duration::from_secs(90);
/// An answer begins within this time; kube itself waits for ever.
const ANSWER: Duration = Duration::from_secs(30);
/// A command that has heard nothing for so long says what it waits for.
const PATIENCE: Duration = Duration::from_secs(2);

/// Which cluster.
#[derive(Debug, Clone, clap::Args)]
pub struct ClusterFlags {
    /// Kubeconfig file [default: $KUBECONFIG, ~/.kube/config, or the pod's ServiceAccount]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read the kubeconfig: {}", readers::source_text::mask(&.0.to_string()))]
    Kubeconfig(#[from] kube::config::KubeconfigError),
    #[error("no cluster: {0}")]
    Infer(#[from] kube::config::InferConfigError),
    #[error("cannot create a client: {0}")]
    Client(#[from] kube::Error),
    #[error("{0}")]
    Unreachable(String),
}

/// A cluster that a command reads, and what it is called in complaints.
pub struct Connection {
    pub client: Client,
    target: Target,
    version: Option<String>,
}

impl Connection {
    /// The address of the API server.
    pub fn server(&self) -> &str {
        &self.target.server
    }

    /// Facts about the API server. An address that does not come from EKS belongs to a proxy, so it is left out.
    pub fn api_server(&self) -> ApiServerFacts {
        let address = Some(self.server()).filter(|server| eks::cluster_id(server).is_some());
        ApiServerFacts { address: address.map(str::to_owned), version: self.version.clone() }
    }

    /// Checks that the cluster answers. The error names the reason and the remedy. If the cluster is silent for a
    /// while, `waits` is called once with its address.
    pub async fn greet(&mut self, waits: impl FnOnce(&str)) -> Result<(), Error> {
        let mut answer = pin!(self.client.apiserver_version());
        let mut in_time = timeout(PATIENCE, &mut answer).await;
        if in_time.is_err() {
            waits(&self.target.server);
            in_time = timeout(self.target.within.saturating_sub(PATIENCE), answer).await;
        }
        match in_time {
            Ok(Ok(server)) => {
                self.version = Some(server.git_version).filter(|version| !version.is_empty());
                Ok(())
            }
            Ok(Err(error)) => Err(Error::Unreachable(self.target.complaint(&error))),
            Err(_) => Err(Error::Unreachable(self.target.silence())),
        }
    }
}

impl ClusterFlags {
    /// A connection to this cluster on which an answer is waited for so long. Nothing is asked of it yet; its
    /// credentials are.
    pub async fn connect(&self, within: Duration) -> Result<Connection, Error> {
        let mut config = self.config().await?;
        config.connect_timeout = Some(within);
        config.read_timeout = Some(within);
        config.reset_reader_on_write = true;
        // A command is repeated by whoever typed it; kube's own retries are silent for minutes.
        config.default_retry = false;
        let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let plugin = config.auth_info.exec.as_ref().and_then(|exec| exec.command.clone());
        let target = Target { server, plugin, within };
        let client = Client::try_from(config).map_err(|error| Error::Unreachable(target.complaint(&error)))?;
        let namespace = client.default_namespace().to_owned();
        let service = tower::service_fn(move |mut request| {
            let client = client.clone();
            async move {
                protobuf::ask(&mut request);
                Ok::<_, kube::Error>(protobuf::answer(client.send(request).await?))
            }
        });
        Ok(Connection { client: Client::new(service, namespace), target, version: None })
    }

    /// A client for one who stays: it gives up on an answer that does not come, leaves it to the caller to try again,
    /// and tells the clock what the API server's says.
    pub async fn lasting_client(&self, clock: Arc<Clock>) -> Result<Client, Error> {
        let mut config = self.config().await?;
        // kube's own retries wait for minutes, and meanwhile nobody is told.
        config.default_retry = false;
        let client = Client::try_from(config)?;
        let namespace = client.default_namespace().to_owned();
        let service = tower::service_fn(move |mut request| {
            let (client, clock) = (client.clone(), Arc::clone(&clock));
            async move {
                protobuf::ask(&mut request);
                let asked = Instant::now();
                let answer = timeout(ANSWER, client.send(request))
                    .await
                    .map_err(|_| kube::Error::Service("no answer in time".into()))??;
                clock.observe(answer.status(), answer.headers(), asked);
                // Not `read_timeout`: hyper-timeout wakes the thread once more for all that is read, a tenth of what a
                // quiet watch costs.
                Ok::<_, kube::Error>(protobuf::answer(answer.map(|body| TimeoutBody::new(SILENCE, body))))
            }
        });
        Ok(Client::new(service, namespace))
    }

    /// The contexts of the kubeconfig, in its order; of those that differ in nothing but the namespace the first.
    pub fn contexts(&self) -> Result<Vec<String>, Error> {
        let config = match &self.kubeconfig {
            Some(file) => Kubeconfig::read_from(file)?,
            None => Kubeconfig::read()?,
        };
        let mut seen = Vec::new();
        let named = config.contexts.into_iter().filter_map(|named| Some((named.name, named.context?)));
        let new = named.filter_map(|(name, context)| {
            let leads_to = (context.cluster, context.user);
            let is_new = !seen.contains(&leads_to);
            seen.push(leads_to);
            is_new.then_some(name)
        });
        Ok(new.collect())
    }

    async fn config(&self) -> Result<Config, Error> {
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        Ok(match (&self.kubeconfig, &self.context) {
            (Some(file), _) => Config::from_custom_kubeconfig(Kubeconfig::read_from(file)?, &options).await?,
            (None, Some(_)) => Config::from_kubeconfig(&options).await?,
            (None, None) => Config::infer().await?,
        })
    }
}

/// Objects that one answer of a list holds, as in client-go.
pub const PAGE: u32 = 500;

/// The kind as kube's client names it.
pub fn resource_of(source: &ApiSource) -> ApiResource {
    let gvk = kube::api::GroupVersionKind::gvk(source.group, source.version, source.kind);
    ApiResource::from_gvk_with_plural(&gvk, source.plural)
}
