//! What the API server says on whether somebody may create Nodes, asked when a stuck machine's rules want it.

use super::Ask;
use crate::kube_client::access_review::review;
use crate::kube_client::failure;
use engine::objects::input::Input;
use engine::triage::change::{Change, ReadFailure};
use kube::Client;
use readers::aws_auth::identity::Identity;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Entries of aws-auth are few, and one answer serves all machines of a role.
const EVERY: Duration = Duration::from_secs(1);
const QUEUE: usize = 64;

/// A queue of access reviews. The answer arrives as [`Change::Access`].
pub type Access = Ask<Identity>;

impl Access {
    pub fn start(client: Client, changes: mpsc::Sender<Change>, tasks: &mut JoinSet<()>) -> Self {
        Self::of(QUEUE, EVERY, changes, tasks, move |identity| {
            let client = client.clone();
            async move {
                let answer = review(&client, &identity).await.and_then(|(raw, resource)| {
                    raw.read(Input::AccessReviews, &resource)
                        .map(|(review, _)| Box::new(review))
                        .map_err(|error| ReadFailure::Unanswered(failure::said(&error)))
                });
                Change::Access { identity, answer }
            }
        })
    }
}
