//! Node classes of other providers: the kind that a NodePool names is looked up in the cluster, then watched like any
//! other.

use super::{Watch, backoff, config};
use crate::kube_client::failure;
use crate::operator::metrics::Metrics;
use engine::objects::input::Input;
use engine::triage::change::{Change, ReadFailure, SourceState, Watched};
use kube::api::{Api, ApiResource};
use kube::{Client, discovery};
use std::sync::Arc;
use tokio::sync::mpsc;

const WHAT: Watched = Watched::Input(Input::NodeClasses);

pub(super) async fn run(
    client: Client,
    name: String,
    group: String,
    kind: String,
    changes: mpsc::Sender<Change>,
    metrics: Arc<Metrics>,
) {
    let mut said = SourceState::Pending;
    let mut failures = 0;
    loop {
        match find(&client, &group, &kind).await {
            Ok(resource) => {
                let api = Api::all_with(client, &resource);
                let config = config();
                return Watch { what: WHAT, name, api, resource, config }.run(changes, metrics).await;
            }
            Err(failure) => {
                let state = SourceState::Failed(failure);
                if said != state {
                    said = state.clone();
                    if changes.send(Change::Source { what: WHAT, name: name.clone(), state }).await.is_err() {
                        return;
                    }
                }
            }
        }
        failures += 1;
        tokio::time::sleep(backoff(failures)).await;
    }
}

async fn find(client: &Client, group: &str, kind: &str) -> Result<ApiResource, ReadFailure> {
    let found = discovery::group(client, group).await.map_err(|error| match &error {
        kube::Error::Discovery(_) => ReadFailure::NotInstalled,
        other => failure::of(other),
    })?;
    found.recommended_kind(kind).map(|(resource, _)| resource).ok_or(ReadFailure::NotInstalled)
}
