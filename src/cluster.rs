//! How to reach the cluster: the flags, and the client they give.

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use std::path::PathBuf;

/// Which cluster.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Cluster {
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
    #[error("cannot read the kubeconfig: {0}")]
    Kubeconfig(#[from] kube::config::KubeconfigError),
    #[error("no cluster: {0}")]
    Infer(#[from] kube::config::InferConfigError),
    #[error("cannot make a client: {0}")]
    Client(#[from] kube::Error),
}

impl Cluster {
    /// A client for this cluster. Nothing is asked of it yet.
    pub async fn client(&self) -> Result<Client, Error> {
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let config = match (&self.kubeconfig, &self.context) {
            (Some(file), _) => Config::from_custom_kubeconfig(Kubeconfig::read_from(file)?, &options).await?,
            (None, Some(_)) => Config::from_kubeconfig(&options).await?,
            (None, None) => Config::infer().await?,
        };
        Ok(Client::try_from(config)?)
    }
}
