//! The pods of single Nodes, and those that wait for one, listed when the rules of something stuck want them.

use super::Ask;
use crate::kube_client::raw::Raw;
use crate::kube_client::{PAGE, failure, resource_of};
use engine::objects::input::{Input, Object};
use engine::triage::change::{Change, ReadFailure};
use kube::Client;
use kube::api::{Api, ListParams};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Lists a second at most.
const RATE: u32 = 5;
const TIMEOUT: Duration = Duration::from_secs(10);
/// Nodes that may wait for their list.
const QUEUE: usize = 1024;

/// Maximum number of pods without a Node to read. There may be any number, and they wait for few reasons.
const WAITING: usize = 2_000;

/// A queue of Nodes whose pods to list. An empty name lists pods that wait for a Node. The answer arrives as
/// [`Change::Pods`].
pub type Pods = Ask<String>;

impl Pods {
    pub fn start(client: Client, changes: mpsc::Sender<Change>, tasks: &mut JoinSet<()>) -> Self {
        Self::of(QUEUE, Duration::from_secs(1) / RATE, changes, tasks, move |node| {
            let client = client.clone();
            async move {
                let pods = timeout(TIMEOUT, list(&client, &node)).await;
                Change::Pods {
                    node,
                    pods: pods.unwrap_or_else(|_| Err(ReadFailure::Unanswered("no answer in time".to_owned()))),
                }
            }
        })
    }
}

async fn list(client: &Client, node: &str) -> Result<Vec<Object>, ReadFailure> {
    let mut objects = Vec::new();
    let (fields, most) = match node {
        "" => ("spec.nodeName=,status.phase=Pending".to_owned(), WAITING),
        node => (format!("spec.nodeName={node}"), usize::MAX),
    };
    for source in Input::Pods.sources() {
        let resource = resource_of(source);
        let api: Api<Raw> = Api::all_with(client.clone(), &resource);
        let mut params = ListParams::default().fields(&fields).limit(PAGE);
        loop {
            let page = api.list(&params).await.map_err(|error| failure::of(&error))?;
            let read = page.items.into_iter().filter_map(|pod| pod.read(Input::Pods, &resource).ok());
            objects.extend(read.map(|(pod, _)| pod));
            match page.metadata.continue_.filter(|token| !token.is_empty() && objects.len() < most) {
                Some(token) => params.continue_token = Some(token),
                None => break,
            }
        }
    }
    Ok(objects)
}
