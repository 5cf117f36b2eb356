//! What the API server says on whether somebody may create Nodes, asked when a stuck machine's rules want it.

use super::{Ask, Change, Failure, resource_of};
use crate::identity::Identity;
use crate::input::Input;
use crate::raw::Raw;
use kube::api::{ApiResource, PostParams};
use kube::{Client, Resource};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Entries of aws-auth are few, and one answer serves all machines of a role.
const EVERY: Duration = Duration::from_secs(1);
const TIMEOUT: Duration = Duration::from_secs(5);
const QUEUE: usize = 64;

/// Where it is asked. The answer comes as [`Change::Access`].
pub type Access = Ask<Identity>;

impl Access {
    #[must_use]
    pub fn start(client: Client, changes: mpsc::Sender<Change>) -> Self {
        Self::of(QUEUE, EVERY, changes, move |identity| {
            let client = client.clone();
            async move {
                let answer = review(&client, &identity).await.and_then(|(raw, resource)| {
                    raw.read(Input::AccessReviews, &resource).map(Box::new).map_err(|error| Failure::Unanswered(error.to_string()))
                });
                Change::Access { identity, answer }
            }
        })
    }
}

/// Asks once. Nothing is stored in the cluster.
pub(crate) async fn review(client: &Client, identity: &Identity) -> Result<(Raw, ApiResource), Failure> {
    let [source] = Input::AccessReviews.sources() else { return Err(Failure::NotInstalled) };
    let resource = resource_of(source);
    let url = kube::core::Request::new(Raw::url_path(&resource, None));
    let request = url
        .create(&PostParams::default(), identity.review().to_string().into_bytes())
        .map_err(|error| Failure::Unanswered(error.to_string()))?;
    match timeout(TIMEOUT, client.request::<Raw>(request)).await {
        Ok(Ok(answer)) => Ok((answer, resource)),
        Ok(Err(error)) => Err(Failure::from(&error)),
        Err(_) => Err(Failure::Unanswered("no answer in time".to_owned())),
    }
}
