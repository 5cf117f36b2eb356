//! What a user would take instead, in the versions that the modules beside this file pin.

use crate::control_plane::{binaries, free_ports};
use crate::measure::{OWN, Row, cpu, whole};
use crate::operator::healthy;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

fn program(name: &str) -> PathBuf {
    binaries::tool(name, &Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/scale").join(name))
}

/// Looks at Nodes only, and at nothing of Karpenter's.
pub fn popeye(kubeconfig: &Path) -> Row {
    let mut command = Command::new(program("popeye"));
    command.arg("--kubeconfig").arg(kubeconfig).args(["--all-namespaces", "--sections=nodes", "--out=json", "--force-exit-zero"]);
    whole("popeye 0.22.1, Nodes only", &[0], &mut command)
}

/// Counts Nodes only.
pub fn kube_state_metrics(kubeconfig: &Path, n: usize) -> Row {
    let [port, own_port] = free_ports();
    let mut command = Command::new(program("kube-state-metrics"));
    command.arg("--kubeconfig").arg(kubeconfig).args(["--resources=nodes", "--host=127.0.0.1", "--telemetry-host=127.0.0.1"]);
    command.args([format!("--port={port}"), format!("--telemetry-port={own_port}")]);
    let begun = Instant::now();
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let shown = || scrape(port).map_or(0, |text| text.matches("\nkube_node_info{").count());
    while shown() < healthy(n).count() {
        assert!(begun.elapsed() < Duration::from_mins(5), "kube-state-metrics does not show all Nodes");
        sleep(Duration::from_millis(100));
    }
    let (started, spent) = (begun.elapsed(), cpu(&child.id().to_string(), OWN));
    sleep(Duration::from_secs(30));
    let row = Row { time: started, ..Row::of("kube-state-metrics 2.20.0, Nodes only, until it shows them", begun, spent, &child) };
    child.kill().expect("our child");
    child.wait().expect("our child");
    row
}

/// What a port of this machine has for Prometheus; nothing while nobody listens.
pub fn scrape(port: u16) -> Option<String> {
    let mut connection = TcpStream::connect(("127.0.0.1", port)).ok()?;
    write!(connection, "GET /metrics HTTP/1.0\r\n\r\n").ok()?;
    let mut text = String::new();
    connection.read_to_string(&mut text).ok()?;
    Some(text)
}
