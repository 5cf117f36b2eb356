//! A large cluster on a real control plane: what nodewhy takes for it, beside what a user would take instead, in one run and one table.
//!
//! `cargo bench --bench scale`, with `NODEWHY_NODES=10000` Nodes and as many NodeClaims unless told otherwise; `NODEWHY_ONLY` is `engine`,
//! `offline` or `live`. Five of every thousand machines are stuck. Memory is what Linux counts as resident.

#[path = "../tests/control-plane/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the tests use the rest")]
mod control_plane;
#[path = "../tests/objects/mod.rs"]
mod objects;

use control_plane::{ControlPlane, binaries};
use futures::{StreamExt, stream};
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use nodewhy::diagnose::diagnose;
use nodewhy::dump::{Summary, load_bytes};
use nodewhy::gate::Thresholds;
use nodewhy::input::{Input, Object};
use nodewhy::world::World;
use objects::fleet::{Fate, claim, node, now};
use objects::over_cluster;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Requests that make the cluster, at once.
const AT_ONCE: usize = 32;

/// One line of the table.
struct Row {
    what: String,
    time: Duration,
    /// Of the processor, by all threads.
    cpu: f64,
    peak: Option<f64>,
    after: Option<f64>,
}

fn nodes() -> usize {
    std::env::var("NODEWHY_NODES").ok().and_then(|n| n.parse().ok()).unwrap_or(10_000)
}

fn fate(n: usize) -> Fate {
    if n.is_multiple_of(200) { Fate::Stuck } else { Fate::Healthy }
}

fn main() {
    let n = nodes();
    let only = std::env::var("NODEWHY_ONLY").ok();
    let parts = [("engine", engine as fn(usize) -> Vec<Row>), ("offline", offline), ("live", live)];
    let wanted = parts.iter().filter(|(name, _)| only.as_deref().is_none_or(|only| only == *name));
    let rows: Vec<Row> = wanted.flat_map(|(_, part)| part(n)).collect();
    println!("\n{n} Nodes and {n} NodeClaims\n");
    println!("{:64} {:>9} {:>9} {:>10} {:>10}", "what", "seconds", "cpu s", "peak MiB", "then MiB");
    for Row { what, time, cpu, peak, after } in &rows {
        let shown = |mib: &Option<f64>| mib.map_or_else(String::new, |mib| format!("{mib:.0}"));
        println!("{what:64} {:>9.2} {cpu:>9.2} {:>10} {:>10}", time.as_secs_f64(), shown(peak), shown(after));
    }
}

fn timed<T>(what: &str, rows: &mut Vec<Row>, f: impl FnOnce() -> T) -> T {
    let (begun, cpu) = (Instant::now(), own_cpu(OWN));
    let result = f();
    rows.push(Row { what: what.to_owned(), time: begun.elapsed(), cpu: own_cpu(OWN) - cpu, peak: None, after: None });
    result
}

/// Where `/proc/PID/stat` has the processor's ticks: one's own, and those of children that ended. (proc(5))
const OWN: [usize; 2] = [14, 15];
const OF_CHILDREN: [usize; 2] = [16, 17];

fn own_cpu(fields: [usize; 2]) -> f64 {
    cpu("self", fields)
}

/// In seconds. Linux counts in hundredths for programs.
fn cpu(process: &str, fields: [usize; 2]) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The second field, the name in parentheses, may hold spaces.
    let after_name: Vec<&str> = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ').collect();
    fields.iter().filter_map(|field| after_name.get(field - 3)?.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// The engine alone, ten times as many machines.
fn engine(n: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for (fate, what) in [(Fate::Healthy, "healthy"), (Fate::Stuck, "stuck")] {
        let (mut world, mut summary) = (World::default(), Summary::default());
        let cluster = json!({"apiVersion": "v1", "kind": "List", "items": over_cluster("")});
        load_bytes("the cluster", cluster.to_string().as_bytes(), &mut world, &mut summary);
        for machine in 0..10 * n {
            if fate == Fate::Healthy {
                world.apply(Object::from_value(Input::Nodes, node(machine)).expect("a Node"), now());
            }
            world.apply(Object::from_value(Input::NodeClaims, claim(machine, fate)).expect("a NodeClaim"), now());
        }
        let found =
            timed(&format!("engine: judge {} {what} machines", 10 * n), &mut rows, || diagnose(&world, now(), &Thresholds::default()));
        assert_eq!(found.len(), if fate == Fate::Stuck { 10 * n } else { 0 });
    }
    rows
}

fn items(n: usize) -> Vec<Value> {
    let machines = (0..n).flat_map(|n| [(fate(n) == Fate::Healthy).then(|| node(n)), Some(claim(n, fate(n)))]);
    over_cluster("").into_iter().chain(machines.flatten()).collect()
}

/// A dump, as JSON and as YAML.
fn offline(n: usize) -> Vec<Row> {
    let folder = tempfile::tempdir().expect("a folder");
    let mut rows = Vec::new();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items(n)});
    let json = folder.path().join("dump.json");
    std::fs::write(&json, serde_json::to_string_pretty(&list).expect("JSON")).expect("room");
    let yaml = folder.path().join("dump.yaml");
    std::fs::write(&yaml, serde_saphyr::to_string(&list).expect("YAML")).expect("room");
    drop(list);
    for file in [json, yaml] {
        let size = std::fs::metadata(&file).expect("just written").len() / (1 << 20);
        let name = file.extension().unwrap_or_default().to_string_lossy().into_owned();
        let mut command = Command::new(env!("CARGO_BIN_EXE_nodewhy"));
        command.arg("diagnose").arg("--now=2026-01-15T12:00:00Z").arg("-f").arg(&file);
        rows.push(whole(&format!("nodewhy diagnose -f, {size} MiB of {name}"), &mut command));
    }
    rows
}

/// A live cluster.
fn live(n: usize) -> Vec<Row> {
    let control_plane = ControlPlane::start();
    control_plane.karpenter_crds("1.14.1");
    control_plane.ec2nodeclass_crd();
    let manifests = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests");
    control_plane.kubectl(&["apply", "--server-side", "--kustomize", manifests.to_str().expect("a path in UTF-8")]);
    control_plane.kubectl(&["wait", "--for=condition=Established", "crd/nodediagnoses.nodewhy.dev"]);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let begun = Instant::now();
    let client = runtime.block_on(async {
        let client = control_plane.client().await;
        fill(&client, n).await;
        client
    });
    eprintln!("made {n} Nodes and NodeClaims in {:.0} s", begun.elapsed().as_secs_f64());

    let mut rows = Vec::new();
    // The API server has served each list once when it is measured.
    for round in 0..2 {
        let mut raw = Vec::new();
        timed("the same LISTs, read raw one after the other", &mut raw, || {
            for path in ["/api/v1/nodes", "/apis/karpenter.sh/v1/nodeclaims"] {
                let request = http::Request::get(path).body(Vec::new()).expect("a path");
                let text = runtime.block_on(client.request_text(request)).expect("an answer");
                assert!(text.len() > n * 1_000);
            }
        });
        if round == 1 {
            rows.extend(raw);
        }
    }
    let mut kubectl = Command::new(binaries::control_plane("kubectl"));
    kubectl.args(["get", "nodes", "-o", "name"]).env("KUBECONFIG", control_plane.kubeconfig());
    rows.push(whole("kubectl get nodes -o name", &mut kubectl));
    let mut diagnose = Command::new(env!("CARGO_BIN_EXE_nodewhy"));
    diagnose.arg("diagnose").env("KUBECONFIG", control_plane.kubeconfig());
    rows.push(whole("nodewhy diagnose, live", &mut diagnose));
    rows.extend(operator(&control_plane, &runtime, &client, n));
    rows
}

async fn fill(client: &kube::Client, n: usize) {
    let nodes: Api<DynamicObject> = Api::all_with(client.clone(), &of("", "v1", "Node", "nodes"));
    let claims: Api<DynamicObject> = Api::all_with(client.clone(), &of("karpenter.sh", "v1", "NodeClaim", "nodeclaims"));
    let make = async |n: usize| {
        if fate(n) == Fate::Healthy {
            nodes.create(&PostParams::default(), &object(node(n))).await.expect("a Node");
        }
        let made = claim(n, fate(n));
        let status = json!({"status": made["status"]});
        let made = claims.create(&PostParams::default(), &object(made)).await.expect("a NodeClaim");
        let name = made.metadata.name.unwrap_or_default();
        claims.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await.expect("its status");
    };
    stream::iter(0..n).for_each_concurrent(AT_ONCE, make).await;
}

/// What the API server gives itself must not be in a new object.
fn object(mut value: Value) -> DynamicObject {
    if let Some(metadata) = value["metadata"].as_object_mut() {
        for field in ["uid", "resourceVersion", "creationTimestamp", "generation", "ownerReferences"] {
            metadata.remove(field);
        }
    }
    serde_json::from_value(value).expect("an object")
}

/// Runs a command to its end.
fn whole(what: &str, command: &mut Command) -> Row {
    let (begun, cpu) = (Instant::now(), own_cpu(OF_CHILDREN));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let mut peak = 0.0;
    let status = loop {
        if let Some(status) = child.try_wait().expect("our child") {
            break status;
        }
        peak = memory(&child, "VmHWM").max(peak);
        sleep(Duration::from_millis(5));
    };
    assert!(status.code().is_some_and(|code| code < 2), "{what}: {status}");
    Row { what: what.to_owned(), time: begun.elapsed(), cpu: own_cpu(OF_CHILDREN) - cpu, peak: Some(peak), after: None }
}

/// `nodewhy run` until its verdicts are complete; half a minute later; while kubelets report; and while machines turn sick one by one.
fn operator(control_plane: &ControlPlane, runtime: &tokio::runtime::Runtime, client: &kube::Client, n: usize) -> Vec<Row> {
    let log = tempfile::NamedTempFile::new().expect("a file");
    let [port] = control_plane::free_ports();
    let kubeconfig = control_plane.kubeconfig_for("nodewhy", "nodewhy");
    let mut command = Command::new(env!("CARGO_BIN_EXE_nodewhy"));
    command.env("KUBECONFIG", kubeconfig).args(["run", &format!("--listen=127.0.0.1:{port}")]);
    let begun = Instant::now();
    let mut child = command.stdout(Stdio::null()).stderr(log.reopen().expect("a second handle")).spawn().expect("it starts");
    let said = |what: &str| std::fs::read_to_string(log.path()).unwrap_or_default().contains(what);
    while !said("verdicts begin") {
        assert!(begun.elapsed() < Duration::from_mins(5), "{}", std::fs::read_to_string(log.path()).unwrap_or_default());
        sleep(Duration::from_millis(10));
    }
    let (time, spent) = (begun.elapsed(), cpu(&child.id().to_string(), OWN));
    sleep(Duration::from_secs(30));
    let row = |what: &str, time, cpu| Row {
        what: what.to_owned(),
        time,
        cpu,
        peak: Some(memory(&child, "VmHWM")),
        after: Some(memory(&child, "VmRSS")),
    };
    let mut rows = vec![row("nodewhy run, until its first verdicts", time, spent)];
    let kubelets = runtime.spawn(heartbeats(client.clone(), n));
    let (written, cpu_before, begun) = (runtime.block_on(newest_write(client)), cpu(&child.id().to_string(), OWN), Instant::now());
    sleep(Duration::from_mins(1));
    let spent = cpu(&child.id().to_string(), OWN) - cpu_before;
    rows.push(row("nodewhy run, a minute in which only kubelets report", begun.elapsed(), spent));
    assert_eq!(runtime.block_on(newest_write(client)), written, "a NodeDiagnosis was written though nothing had changed");
    let mut delays = runtime.block_on(turn_sick(client, n));
    delays.sort();
    for (percentile, name) in [(50, "half of them"), (99, "99 of 100")] {
        let delay = delays.get(delays.len() * percentile / 100).copied().unwrap_or_default();
        rows.push(Row {
            what: format!("a machine turns sick, until that is written: {name}"),
            time: delay,
            cpu: 0.0,
            peak: None,
            after: None,
        });
    }
    kubelets.abort();
    child.kill().expect("our child");
    child.wait().expect("our child");
    rows
}

/// Every kubelet reports its status each five minutes, all of them evenly spread.
/// Source: kubernetes v1.36.3 pkg/kubelet/apis/config/v1beta1/defaults.go `NodeStatusReportFrequency`.
async fn heartbeats(client: kube::Client, n: usize) {
    let nodes: Api<DynamicObject> = Api::all_with(client, &of("", "v1", "Node", "nodes"));
    let mut ticks = tokio::time::interval(Duration::from_mins(5) / u32::try_from(n).expect("a few thousand"));
    for machine in (0..n).filter(|n| fate(*n) == Fate::Healthy).cycle() {
        ticks.tick().await;
        let name = node(machine)["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let heartbeat = json!({"status": {"conditions": [{"type": "Ready", "lastHeartbeatTime": chrono::Utc::now()}]}});
        nodes.patch_status(&name, &PatchParams::default(), &Patch::Strategic(heartbeat)).await.expect("a Node");
    }
}

fn of(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&kube::api::GroupVersionKind::gvk(group, version, kind), plural)
}

fn diagnoses(client: &kube::Client) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &of("nodewhy.dev", "v1alpha1", "NodeDiagnosis", "nodediagnoses"))
}

/// The newest version of any NodeDiagnosis.
async fn newest_write(client: &kube::Client) -> Option<u64> {
    let all = diagnoses(client).list(&ListParams::default()).await.expect("NodeDiagnoses");
    all.items.iter().filter_map(|d| d.metadata.resource_version.as_ref()?.parse().ok()).max()
}

/// Karpenter refuses one machine after the other: how long after each its NodeDiagnosis was there.
async fn turn_sick(client: &kube::Client, n: usize) -> Vec<Duration> {
    let claims: Api<DynamicObject> = Api::all_with(client.clone(), &of("karpenter.sh", "v1", "NodeClaim", "nodeclaims"));
    let watched = diagnoses(client);
    let from = watched.list(&ListParams::default().limit(1)).await.expect("NodeDiagnoses").metadata.resource_version.unwrap_or_default();
    let mut written = watched.watch(&WatchParams::default(), &from).await.expect("a watch").boxed();
    let mut delays = Vec::new();
    for machine in (0..n).filter(|n| fate(*n) == Fate::Healthy).take(200) {
        let made = claim(machine, Fate::Healthy);
        let name = made["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let mut conditions = made["status"]["conditions"].clone();
        for condition in conditions.as_array_mut().into_iter().flatten().filter(|c| c["type"] == "Registered") {
            condition["status"] = json!("False");
            condition["reason"] = json!("UnregisteredTaintNotFound");
        }
        let begun = Instant::now();
        let refused = Patch::Merge(json!({"status": {"conditions": conditions}}));
        claims.patch_status(&name, &PatchParams::default(), &refused).await.expect("a NodeClaim");
        let is_it = |event: &WatchEvent<DynamicObject>| match event {
            WatchEvent::Added(d) | WatchEvent::Modified(d) => d.metadata.name.as_deref() == Some(name.as_str()),
            _ => false,
        };
        while let Some(event) = written.next().await {
            if is_it(&event.expect("an event")) {
                break;
            }
        }
        delays.push(begun.elapsed());
    }
    delays
}

/// In MiB.
fn memory(child: &Child, field: &str) -> f64 {
    let mut path = String::new();
    let _ = write!(path, "/proc/{}/status", child.id());
    let status = std::fs::read_to_string(path).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
    line.split_whitespace().find_map(|word| word.parse::<f64>().ok()).unwrap_or_default() / 1024.0
}
