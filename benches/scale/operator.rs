//! `nodewhy run` beside that cluster: until its verdicts are complete, while kubelets report, while machines turn sick.

use crate::incident::incident;
use crate::machines::{PEERS_UP_TO, claims, diagnoses, healthy, nodes, refuse};
use crate::measure::{OWN, Row, cpu, percentile};
use crate::peers;
use futures::StreamExt;
use kube::api::{ListParams, Patch, PatchParams, WatchEvent, WatchParams};
use serde_json::json;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};
use testkit::control_plane::{ControlPlane, Nodewhy, Process};
use testkit::objects::fleet::node;
use tokio::runtime::Runtime;

/// Machines that turn sick one by one.
const ONE_BY_ONE: usize = 200;

pub fn until_verdicts_begin(process: &Process) {
    let begun = Instant::now();
    while !process.log().contains("verdicts begin") {
        assert!(begun.elapsed() < Duration::from_mins(10), "{}", process.log());
        sleep(Duration::from_millis(10));
    }
}

pub fn rows(
    control_plane: &ControlPlane,
    rights: &Path,
    runtime: &Runtime,
    client: &kube::Client,
    n: usize,
) -> Vec<Row> {
    let served = || cpu(control_plane.apiserver(), OWN);
    let (begun, served_before) = (Instant::now(), served());
    let Nodewhy { process, port } = control_plane.nodewhy(rights, &[]);
    let spent = || cpu(process.id(), OWN);
    until_verdicts_begin(&process);
    let (started, spent_then, served) = (begun.elapsed(), spent(), served() - served_before);
    sleep(Duration::from_secs(30));
    let mut rows = vec![Row {
        time: started,
        served: Some(served),
        ..Row::of("nodewhy run, until its first verdicts", begun, spent_then, process.id())
    }];

    let kubelets = runtime.spawn(heartbeats(client.clone(), n));
    let (written, spent_before, begun) = (runtime.block_on(newest_write(client)), spent(), Instant::now());
    sleep(Duration::from_mins(1));
    rows.push(Row::of(
        "nodewhy run, a minute in which only kubelets report",
        begun,
        spent() - spent_before,
        process.id(),
    ));
    assert_eq!(
        runtime.block_on(newest_write(client)),
        written,
        "a NodeDiagnosis was written though nothing had changed"
    );
    if n <= PEERS_UP_TO {
        let (_, peer) = peers::kube_state_metrics(control_plane, n);
        let (spent_before, begun) = (cpu(peer.id(), OWN), Instant::now());
        sleep(Duration::from_mins(1));
        let spent = cpu(peer.id(), OWN) - spent_before;
        rows.push(Row::of("kube-state-metrics, Nodes only, another such minute", begun, spent, peer.id()));
    }

    let mut delays = runtime.block_on(turn_sick(client, n));
    for (percent, name) in [(50, "half of them"), (99, "99 of 100")] {
        let what = format!("a machine turns sick, until that is written: {name}");
        rows.push(Row::delay(what, percentile(&mut delays, percent)));
    }
    let sick: Vec<usize> = healthy(n).skip(ONE_BY_ONE).take((n / 2).min(5_000)).collect();
    let (spent_before, begun) = (spent(), Instant::now());
    rows.extend(runtime.block_on(incident(client, &sick, port)));
    rows.push(Row::of(
        "nodewhy run, from the first of these to the last write",
        begun,
        spent() - spent_before,
        process.id(),
    ));
    kubelets.abort();
    rows
}

/// Every kubelet reports its status each five minutes, all of them evenly spread.
/// Source: kubernetes v1.36.3 pkg/kubelet/apis/config/v1beta1/defaults.go `NodeStatusReportFrequency`.
async fn heartbeats(client: kube::Client, n: usize) {
    let nodes = nodes(&client);
    let mut ticks = tokio::time::interval(Duration::from_mins(5) / u32::try_from(n).expect("a few thousand"));
    for machine in healthy(n).cycle() {
        ticks.tick().await;
        let name = node(machine)["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let heartbeat = json!({"status": {"conditions": [{"type": "Ready", "lastHeartbeatTime": chrono::Utc::now()}]}});
        nodes.patch_status(&name, &PatchParams::default(), &Patch::Strategic(heartbeat)).await.expect("a Node");
    }
}

/// The newest version of any NodeDiagnosis.
async fn newest_write(client: &kube::Client) -> Option<u64> {
    let all = diagnoses(client).list(&ListParams::default()).await.expect("NodeDiagnoses");
    all.items.iter().filter_map(|d| d.metadata.resource_version.as_ref()?.parse().ok()).max()
}

/// Karpenter refuses one machine after the other: how long after each its NodeDiagnosis was there.
async fn turn_sick(client: &kube::Client, n: usize) -> Vec<Duration> {
    let (claims, watched) = (claims(client), diagnoses(client));
    let from = watched
        .list(&ListParams::default().limit(1))
        .await
        .expect("NodeDiagnoses")
        .metadata
        .resource_version
        .unwrap_or_default();
    let mut written = watched.watch(&WatchParams::default(), &from).await.expect("a watch").boxed();
    let mut delays = Vec::new();
    for machine in healthy(n).take(ONE_BY_ONE) {
        let begun = Instant::now();
        let name = refuse(&claims, machine).await;
        while let Some(event) = written.next().await {
            if matches!(event.expect("an event"), WatchEvent::Added(d) | WatchEvent::Modified(d) if d.metadata.name.as_deref() == Some(name.as_str()))
            {
                break;
            }
        }
        delays.push(begun.elapsed());
    }
    delays
}
