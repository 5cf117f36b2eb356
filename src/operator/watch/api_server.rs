//! The version of the API server, which no object tells: an upgrade of the cluster changes it.

use engine::objects::ApiServerFacts;
use engine::triage::change::Change;
use kube::Client;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::sleep;

/// An upgrade of EKS takes longer.
const EVERY: Duration = Duration::from_mins(10);
/// The API server did not answer.
const AGAIN: Duration = Duration::from_secs(30);

/// Asks for the version now and then, and tells each new one.
pub async fn follow(client: Client, changes: mpsc::Sender<Change>) {
    let mut known = String::new();
    loop {
        let Ok(server) = client.apiserver_version().await else {
            sleep(AGAIN).await;
            continue;
        };
        if server.git_version != known {
            known.clone_from(&server.git_version);
            let facts = ApiServerFacts { address: None, version: Some(server.git_version) };
            if changes.send(Change::ApiServer(facts)).await.is_err() {
                return;
            }
        }
        sleep(EVERY).await;
    }
}
