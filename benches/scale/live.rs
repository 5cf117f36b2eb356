//! A live cluster: filled, read raw, by nodewhy and by others.

use crate::chart::{Line, Point};
use crate::machines::{PEERS_UP_TO, fill};
use crate::measure::{Row, timed, whole};
use crate::{chart, operator, peers, upgrade as replacement};
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;
use testkit::control_plane::recipes::ec2_nodepool;
use testkit::control_plane::{ControlPlane, NEWEST_KARPENTER, binaries};
use tokio::runtime::Runtime;

/// A control plane with so many machines.
struct Cluster {
    control_plane: ControlPlane,
    rights: PathBuf,
    runtime: Runtime,
    client: kube::Client,
}

impl Cluster {
    fn of(n: usize) -> Self {
        // What the API server holds of 40,000 Nodes and NodeClaims takes 9 GB. Without its cache it reads them from
        // etcd each time.
        let flags: &[&str] = if n <= PEERS_UP_TO { &[] } else { &["--watch-cache=false"] };
        let control_plane = ControlPlane::start_with(flags);
        control_plane.karpenter_crds(NEWEST_KARPENTER);
        control_plane.ec2nodeclass_crd();
        let rights = control_plane.install("manifests");
        ec2_nodepool(&control_plane);
        let runtime = Runtime::new().expect("a runtime");
        let begun = Instant::now();
        let client = runtime.block_on(async {
            let client = control_plane.client().await;
            fill(&client, n).await;
            client
        });
        eprintln!("made {n} Nodes and NodeClaims in {:.0} s", begun.elapsed().as_secs_f64());
        Self { control_plane, rights, runtime, client }
    }

    /// The lists as whoever wants all of them gets them.
    fn read_raw(&self, n: usize) -> Row {
        let mut raw = Vec::new();
        timed("the same LISTs, read raw one after the other", &mut raw, || {
            for path in ["/api/v1/nodes", "/apis/karpenter.sh/v1/nodeclaims"] {
                assert!(self.runtime.block_on(read(&self.client, path, n)) > n * 1_000);
            }
        });
        raw.remove(0)
    }

    /// Looks at it once, by nodewhy and by others.
    fn looks(&self, n: usize) -> Vec<Row> {
        let kubeconfig = self.control_plane.kubeconfig();
        let whole = |what, command: &mut Command| {
            command.env("KUBECONFIG", &kubeconfig);
            Row::served(&self.control_plane, || whole(what, &[0], command))
        };
        let mut nodewhy = Command::new(env!("CARGO_BIN_EXE_nodewhy"));
        let mut rows = vec![whole("nodewhy diagnose", nodewhy.arg("diagnose"))];
        if n <= PEERS_UP_TO {
            let mut kubectl = Command::new(binaries::control_plane("kubectl"));
            rows.push(whole("kubectl get nodes", kubectl.args(["get", "nodes"])));
            rows.push(Row::served(&self.control_plane, || peers::popeye(&kubeconfig)));
            rows.push(peers::kube_state_metrics(&self.control_plane, n).0);
        }
        rows
    }
}

pub fn cluster(n: usize) -> Vec<Row> {
    let cluster = Cluster::of(n);
    // The API server has served each list once when it is measured.
    cluster.read_raw(n);
    let mut rows = vec![Row::served(&cluster.control_plane, || cluster.read_raw(n))];
    rows.extend(cluster.looks(n));
    let Cluster { control_plane, rights, runtime, client } = &cluster;
    rows.extend(operator::rows(control_plane, rights, runtime, client, n));
    rows
}

/// Makes every machine anew beside `nodewhy run`.
pub fn upgrade(n: usize) -> Vec<Row> {
    let Cluster { control_plane, rights, runtime, client } = &Cluster::of(n);
    replacement::rows(control_plane, rights, runtime, client, n)
}

/// Draws what a look costs in clusters of 100 Nodes, of ten times as many, and so on up to `most`.
pub fn chart(most: usize) -> Vec<Row> {
    let mut lines: Vec<Line> = Vec::new();
    let mut rows = Vec::new();
    for n in std::iter::successors(Some(100), |n| Some(10 * n)).take_while(|n| *n <= most) {
        let cluster = Cluster::of(n);
        cluster.read_raw(n);
        for row in cluster.looks(n) {
            let point =
                Point { nodes: n, costs: [row.cpu, row.peak.unwrap_or_default(), row.served.unwrap_or_default()] };
            match lines.iter_mut().find(|line| line.name == row.what) {
                Some(line) => line.points.push(point),
                None => lines.push(Line { name: row.what.clone(), points: vec![point] }),
            }
            rows.push(Row { what: format!("{n} Nodes: {}", row.what), ..row });
        }
    }
    let file = testkit::project().join("docs/images/scale.svg");
    std::fs::write(file, chart::svg(&lines)).expect("the folder is writable");
    rows
}

/// Reads a list and gives its length. Without its cache the API server does not come to the end of a long one within
/// its minute.
async fn read(client: &kube::Client, path: &str, n: usize) -> usize {
    let limit = if n <= PEERS_UP_TO { 0 } else { 10_000 };
    let (mut length, mut next) = (0, Some(String::new()));
    while let Some(token) = next {
        let request =
            http::Request::get(format!("{path}?limit={limit}&continue={token}")).body(Vec::new()).expect("a path");
        let text = client.request_text(request).await.expect("an answer");
        length += text.len();
        // The token stands in the list's metadata: before all items, or after them where a CustomResourceDefinition
        // describes them.
        let (first, last) = text
            .split_once(r#""items":"#)
            .map_or(("", ""), |(before, items)| (before, items.rsplit_once(']').map_or("", |(_, after)| after)));
        let token = [first, last].into_iter().find_map(|metadata| metadata.split_once(r#""continue":""#));
        next = token.and_then(|(_, rest)| Some(rest.split_once('"')?.0.to_owned())).filter(|token| !token.is_empty());
    }
    length
}
