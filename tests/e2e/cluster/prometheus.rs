//! A real Prometheus that scrapes the operator, and promtool, which asks it.

use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;
use testkit::control_plane::{Nodewhy, Process, free_ports};
use testkit::programs::monitoring;

const MONITORING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/manifests/components/monitoring");

pub struct Prometheus {
    _process: Process,
    url: String,
    _folder: TempDir,
}

impl Prometheus {
    /// Scrapes where the PodMonitor says, each second, and evaluates the rules.
    pub fn start(nodewhy: &Nodewhy, rules: &Value) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("prometheus-")
            .tempdir_in(env!("CARGO_TARGET_TMPDIR"))
            .expect("target is writable");
        let pod_monitor = shipped("pod-monitor.yaml");
        let config = json!({
            "global": { "scrape_interval": "1s", "evaluation_interval": "1s" },
            "rule_files": ["rules.json"],
            "scrape_configs": [{
                "job_name": "nodewhy",
                "metrics_path": pod_monitor["spec"]["podMetricsEndpoints"][0]["path"],
                "static_configs": [{ "targets": [format!("127.0.0.1:{}", nodewhy.port)], "labels": { "pod": "nodewhy-0" } }],
            }],
        });
        // JSON is YAML.
        std::fs::write(folder.path().join("rules.json"), rules.to_string()).expect("the folder is writable");
        std::fs::write(folder.path().join("prometheus.json"), config.to_string()).expect("the folder is writable");
        let [port] = free_ports();
        let url = format!("http://127.0.0.1:{port}");
        let mut command = Command::new(monitoring::prometheus("prometheus"));
        let in_folder = |name: &str| folder.path().join(name).display().to_string();
        command
            .arg(format!("--config.file={}", in_folder("prometheus.json")))
            .arg(format!("--storage.tsdb.path={}", in_folder("data")))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"));
        let mut process = Process::spawn(&command, folder.path().join("prometheus.log"));
        process
            .wait_until_ready(Duration::from_mins(1), || query(&url, "vector(1)").is_ok_and(|found| !found.is_empty()));
        Self { _process: process, url, _folder: folder }
    }

    /// What an expression gives now: one entry a series.
    pub fn query(&self, expression: &str) -> Vec<Value> {
        query(&self.url, expression).unwrap_or_else(|error| panic!("{expression}: {error}"))
    }

    /// Names of the alerts that fire, in order, each once.
    pub fn firing(&self) -> Vec<String> {
        let firing = self.query(r#"ALERTS{alertstate="firing"}"#);
        let mut names: Vec<_> =
            firing.iter().filter_map(|alert| alert["metric"]["alertname"].as_str().map(str::to_owned)).collect();
        names.sort();
        names.dedup();
        names
    }
}

fn query(url: &str, expression: &str) -> Result<Vec<Value>, String> {
    let answer = promtool(Path::new("."), &["query", "instant", "--format=json", url, expression])?;
    serde_json::from_str(&answer).map_err(|error| format!("{error} in {answer}"))
}

/// What promtool prints; its complaint when it fails.
pub fn promtool(folder: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(monitoring::prometheus("promtool"))
        .current_dir(folder)
        .args(arguments)
        .output()
        .expect("promtool starts");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stdout) + &text(&output.stderr)) }
}

/// A file of the component, YAML or JSON.
pub fn shipped(name: &str) -> Value {
    let text = std::fs::read_to_string(Path::new(MONITORING).join(name)).expect("it is shipped");
    serde_saphyr::from_str(&text).expect("YAML")
}
