//! Asks the API server whether somebody may create Nodes.

use super::raw::Raw;
use super::{failure, resource_of};
use engine::objects::input::Input;
use engine::triage::change::ReadFailure;
use kube::api::{ApiResource, PostParams};
use kube::{Client, Resource};
use readers::aws_auth::identity::Identity;
use std::time::Duration;
use tokio::time::timeout;

const TIMEOUT: Duration = Duration::from_secs(5);

/// Asks once. Nothing is stored in the cluster.
pub async fn review(client: &Client, identity: &Identity) -> Result<(Raw, ApiResource), ReadFailure> {
    let [source] = Input::AccessReviews.sources() else { return Err(ReadFailure::NotInstalled) };
    let resource = resource_of(source);
    let url = kube::core::Request::new(Raw::url_path(&resource, None));
    let request = url
        .create(&PostParams::default(), identity.review().to_string().into_bytes())
        .map_err(|error| ReadFailure::Unanswered(error.to_string()))?;
    match timeout(TIMEOUT, client.request::<Raw>(request)).await {
        Ok(Ok(answer)) => Ok((answer, resource)),
        Ok(Err(error)) => Err(failure::of(&error)),
        Err(_) => Err(ReadFailure::Unanswered("no answer in time".to_owned())),
    }
}
