//! What a user would take instead, in the versions that the modules beside this file pin.

use crate::machines::healthy;
use crate::measure::{OWN, Row, cpu, whole};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};
use testkit::control_plane::nodewhy::get;
use testkit::control_plane::{ControlPlane, Process, binaries, free_ports};

fn program(name: &str) -> PathBuf {
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/scale").join(name);
    binaries::tools(name, &module, |_| "-ldflags=-s -w".to_owned()).join(name)
}

/// Looks at Nodes only, and at nothing of Karpenter's.
pub fn popeye(kubeconfig: &Path) -> Row {
    let mut command = Command::new(program("popeye"));
    command.arg("--kubeconfig").arg(kubeconfig).args([
        "--all-namespaces",
        "--sections=nodes",
        "--out=json",
        "--force-exit-zero",
    ]);
    whole("popeye 0.22.1, Nodes only", &[0], &mut command)
}

/// Counts the items of a dump, and nothing else. `None` where the PATH has no jq.
pub fn jq(dump: &Path) -> Option<Row> {
    let there = Command::new("jq").arg("--version").output().is_ok();
    there.then(|| whole("jq '.items | length' of the same", &[0], Command::new("jq").arg(".items | length").arg(dump)))
}

/// Counts Nodes only. It runs as long as the process is held.
pub fn kube_state_metrics(control_plane: &ControlPlane, n: usize) -> (Row, Process) {
    let [port, own_port] = free_ports();
    let mut command = Command::new(program("kube-state-metrics"));
    command.arg("--kubeconfig").arg(control_plane.kubeconfig()).args([
        "--resources=nodes",
        "--host=127.0.0.1",
        "--telemetry-host=127.0.0.1",
    ]);
    command.args([format!("--port={port}"), format!("--telemetry-port={own_port}")]);
    let served = || cpu(control_plane.apiserver(), OWN);
    let (begun, served_before) = (Instant::now(), served());
    let process = control_plane.spawn("kube-state-metrics", &command);
    let shown = || get(port, "/metrics").map_or(0, |text| text.matches("\nkube_node_info{").count());
    while shown() < healthy(n).count() {
        assert!(begun.elapsed() < Duration::from_mins(5), "kube-state-metrics does not show all Nodes");
        sleep(Duration::from_millis(100));
    }
    let (started, spent) = (begun.elapsed(), cpu(process.id(), OWN));
    let served = Some(served() - served_before);
    sleep(Duration::from_secs(30));
    let what = "kube-state-metrics 2.20.0, Nodes only";
    (Row { time: started, served, ..Row::of(what, begun, spent, process.id()) }, process)
}
