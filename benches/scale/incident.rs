//! One cause holds up thousands of machines at once: when that is known, when each is written, and what others feel of
//! it.

use crate::machines::{AT_ONCE, claims, diagnoses, refuse};
use crate::measure::{Row, percentile};
use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams};
use std::time::{Duration, Instant};
use testkit::control_plane::nodewhy::get;
use tokio::time::sleep;

pub async fn incident(client: &kube::Client, sick: &[usize], port: u16) -> Vec<Row> {
    let n = sick.len();
    let mut quiet = others(client, Duration::from_secs(10)).await;
    let claims = claims(client);
    stream::iter(sick).for_each_concurrent(AT_ONCE, async |machine| drop(refuse(&claims, *machine).await)).await;
    let begun = Instant::now();
    let mut rows = Vec::new();
    let mut seen =
        |what: &str| rows.push(Row::delay(format!("{n} machines are stuck by one cause, {what}"), begun.elapsed()));
    until(Duration::from_millis(20), async || counted(port) >= n).await;
    seen("until the metric counts them all");
    until(Duration::from_millis(20), async || told(client).await >= n / 2).await;
    seen("until an Event tells of half of them");
    let mut meanwhile = others(client, Duration::from_secs(10)).await;
    until(Duration::from_millis(500), async || written(client).await >= n).await;
    seen("until each has its NodeDiagnosis");
    for (delays, when) in [(&mut quiet, "before"), (&mut meanwhile, "while these are written")] {
        for (percent, name) in [(50, "half of them"), (99, "99 of 100")] {
            rows.push(Row::delay(format!("somebody else's GET {when}: {name}"), percentile(delays, percent)));
        }
    }
    rows
}

/// Looks again and again; it is given half an hour.
async fn until(pause: Duration, mut is_so: impl AsyncFnMut() -> bool) {
    for begun in std::iter::repeat(Instant::now()) {
        if is_so().await {
            return;
        }
        assert!(begun.elapsed() < Duration::from_mins(30), "it does not come to an end");
        sleep(pause).await;
    }
}

/// Requests of somebody who has nothing to do with it.
async fn others(client: &kube::Client, so_long: Duration) -> Vec<Duration> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-system");
    let (begun, mut delays) = (Instant::now(), Vec::new());
    while begun.elapsed() < so_long {
        let asked = Instant::now();
        maps.get_opt("extension-apiserver-authentication").await.expect("an answer");
        delays.push(asked.elapsed());
        sleep(Duration::from_millis(20)).await;
    }
    delays
}

/// Machines that the metric counts as stuck.
fn counted(port: u16) -> usize {
    let text = get(port, "/metrics").unwrap_or_default();
    let values = text
        .lines()
        .filter(|line| line.starts_with("nodewhy_diagnoses{"))
        .filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok());
    values.sum()
}

/// The most machines that an Event on a NodePool tells of.
async fn told(client: &kube::Client) -> usize {
    let events: Api<Event> = Api::all(client.clone());
    let about_pools = ListParams::default().fields("regarding.kind=NodePool");
    let events = events.list(&about_pools).await.expect("Events");
    events
        .items
        .iter()
        .filter_map(|event| event.note.as_ref()?.split(' ').next()?.parse().ok())
        .max()
        .unwrap_or_default()
}

async fn written(client: &kube::Client) -> usize {
    let first = diagnoses(client).list_metadata(&ListParams::default().limit(1)).await.expect("NodeDiagnoses");
    first.items.len()
        + usize::try_from(first.metadata.remaining_item_count.unwrap_or_default()).expect("a few thousand")
}
