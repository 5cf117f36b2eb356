//! A live cluster: filled, read raw, and by others.

use crate::machines::{PEERS_UP_TO, fill};
use crate::measure::{Row, timed, whole};
use crate::{operator, peers};
use std::process::Command;
use std::time::Instant;
use testkit::control_plane::recipes::ec2_nodepool;
use testkit::control_plane::{ControlPlane, binaries};

pub fn cluster(n: usize) -> Vec<Row> {
    // What the API server holds of 40,000 Nodes and NodeClaims takes 9 GB. Without its cache it reads them from etcd
    // each time.
    let flags: &[&str] = if n <= PEERS_UP_TO { &[] } else { &["--watch-cache=false"] };
    let control_plane = ControlPlane::start_with(flags);
    control_plane.karpenter_crds("1.14.1");
    control_plane.ec2nodeclass_crd();
    let rights = control_plane.install("manifests");
    ec2_nodepool(&control_plane);
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
                assert!(runtime.block_on(read(&client, path, n)) > n * 1_000);
            }
        });
        if round == 1 {
            rows.extend(raw);
        }
    }
    let kubeconfig = control_plane.kubeconfig();
    let mut diagnose = Command::new(env!("CARGO_BIN_EXE_nodewhy"));
    diagnose.arg("diagnose").env("KUBECONFIG", &kubeconfig);
    rows.push(whole("nodewhy diagnose, live", &[0], &mut diagnose));
    if n <= PEERS_UP_TO {
        let mut kubectl = Command::new(binaries::control_plane("kubectl"));
        kubectl.args(["get", "nodes", "-o", "name"]).env("KUBECONFIG", &kubeconfig);
        rows.push(whole("kubectl get nodes -o name", &[0], &mut kubectl));
        rows.push(peers::popeye(&kubeconfig));
        rows.push(peers::kube_state_metrics(&control_plane, n).0);
    }
    rows.extend(operator::rows(&control_plane, &rights, &runtime, &client, n));
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
