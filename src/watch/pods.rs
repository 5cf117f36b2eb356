//! The pods of single Nodes, listed when a stuck machine's rules want them.

use super::{Change, Failure, PAGE, resource_of};
use crate::input::{Input, Object};
use crate::raw::Raw;
use kube::Client;
use kube::api::{Api, ListParams};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, timeout};

/// Lists a second at most.
const RATE: u32 = 5;
const TIMEOUT: Duration = Duration::from_secs(10);
/// Nodes that may wait for their list.
const QUEUE: usize = 1024;

/// Where the pods of a Node are asked for. The answer comes as [`Change::Pods`].
#[derive(Debug, Clone)]
pub struct Pods(mpsc::Sender<String>);

impl Pods {
    #[must_use]
    pub fn start(client: Client, changes: mpsc::Sender<Change>) -> Self {
        let (ask, asked) = mpsc::channel(QUEUE);
        tokio::spawn(answer(client, asked, changes));
        Self(ask)
    }

    /// Asks for the pods of a Node. While too many wait, nothing happens: whoever wants them asks again.
    pub fn ask(&self, node: String) {
        if self.0.try_send(node).is_err() {
            tracing::debug!("too many Nodes wait for their pods");
        }
    }
}

async fn answer(client: Client, mut asked: mpsc::Receiver<String>, changes: mpsc::Sender<Change>) {
    let mut ticks = interval(Duration::from_secs(1) / RATE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while let Some(node) = asked.recv().await {
        ticks.tick().await;
        let pods =
            timeout(TIMEOUT, list(&client, &node)).await.unwrap_or_else(|_| Err(Failure::Unanswered("no answer in time".to_owned())));
        if changes.send(Change::Pods { node, pods }).await.is_err() {
            return;
        }
    }
}

async fn list(client: &Client, node: &str) -> Result<Vec<Object>, Failure> {
    let mut objects = Vec::new();
    for source in Input::Pods.sources() {
        let resource = resource_of(source);
        let api: Api<Raw> = Api::all_with(client.clone(), &resource);
        let mut params = ListParams::default().fields(&format!("spec.nodeName={node}")).limit(PAGE);
        loop {
            let page = api.list(&params).await.map_err(|error| Failure::from(&error))?;
            objects.extend(page.items.into_iter().filter_map(|pod| pod.read(Input::Pods, &resource).ok()));
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params.continue_token = Some(token),
                None => break,
            }
        }
    }
    Ok(objects)
}
