//! A real Alertmanager sends what the alerts' template says, with the fixes of the pages.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;
use testkit::alerts::fix_sentences;
use testkit::control_plane::{Process, free_ports};
use testkit::programs::monitoring;

fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(path: &str) -> String {
    fs::read_to_string(project(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn yaml(path: &str) -> Value {
    serde_saphyr::from_str(&read(path)).expect("YAML")
}

const FOLDER: &str = "manifests/components/monitoring/alertmanager";

/// Takes what Alertmanager posts, as Slack and PagerDuty would.
fn take(connection: &TcpStream, posted: &Sender<Value>) -> Option<()> {
    let mut reader = BufReader::new(connection.try_clone().ok()?);
    let (mut line, mut length) = (String::new(), 0);
    while line != "\r\n" {
        line.clear();
        reader.read_line(&mut line).ok()?;
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    posted.send(serde_json::from_slice(&body).ok()?).ok()?;
    let answer = "HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
    let mut connection = connection;
    connection.write_all(answer.as_bytes()).ok()
}

fn receiver() -> (u16, Receiver<Value>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
    let port = listener.local_addr().expect("an address").port();
    let (posted, received) = mpsc::channel();
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let _ = take(&connection, &posted);
        }
    });
    (port, received)
}

/// Alerts that tests/e2e/monitoring/alerts.yaml lets fire: their labels, and annotations with every name filled in.
fn fired() -> Vec<Value> {
    let tests = yaml("tests/e2e/monitoring/alerts.yaml");
    let cases = tests["tests"].as_array().expect("tests").iter();
    let cases = cases.flat_map(|test| test["alert_rule_test"].as_array().into_iter().flatten());
    let mut fired: BTreeMap<String, Value> = BTreeMap::new();
    for case in cases {
        for alert in case["exp_alerts"].as_array().into_iter().flatten() {
            let mut labels = alert["exp_labels"].clone();
            labels["alertname"] = case["alertname"].clone();
            fired.insert(labels.to_string(), json!({"labels": labels, "annotations": alert["exp_annotations"]}));
        }
    }
    fired.into_values().collect()
}

#[test]
fn a_real_alertmanager_sends_the_sentence_with_the_fix() {
    let folder = tempfile::tempdir().expect("a folder");
    for file in ["messages.tmpl", "fixes.tmpl"] {
        fs::copy(project(FOLDER).join(file), folder.path().join(file)).expect("a copy");
    }
    let mut config = yaml(&format!("{FOLDER}/example.yaml"));
    let (port, received) = receiver();
    config["route"]["group_wait"] = json!("1s");
    config["receivers"][1]["slack_configs"][0]["api_url"] = json!(format!("http://127.0.0.1:{port}/slack"));
    config["receivers"][1]["pagerduty_configs"][0]["url"] = json!(format!("http://127.0.0.1:{port}/pagerduty"));
    let file = folder.path().join("alertmanager.yaml");
    fs::write(&file, config.to_string()).expect("written");

    let amtool = |arguments: &[&str]| {
        let output = monitoring::alertmanager("amtool").args(arguments).output().expect("amtool runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        output.status.success().then_some(said.clone()).ok_or(said)
    };
    amtool(&["check-config", &file.display().to_string()]).unwrap_or_else(|complaint| panic!("{complaint}"));

    let [web] = free_ports();
    let url = format!("http://127.0.0.1:{web}");
    let mut command = monitoring::alertmanager("prometheus-alertmanager");
    command.arg(format!("--config.file={}", file.display()));
    command.arg(format!("--storage.path={}", folder.path().join("data").display()));
    command.args([&format!("--web.listen-address=127.0.0.1:{web}"), "--cluster.listen-address="]);
    let mut process = Process::spawn(&command, folder.path().join("alertmanager.log"));
    let url_flag = format!("--alertmanager.url={url}");
    process.wait_until_ready(Duration::from_secs(30), || amtool(&[&url_flag, "cluster", "show"]).is_ok());

    let alerts = fired();
    for alert in &alerts {
        let pairs = |of: &Value| {
            let pairs = of.as_object().expect("an object").iter();
            pairs.map(|(name, value)| format!("{name}={}", value.as_str().expect("a text"))).collect::<Vec<_>>()
        };
        let annotations = pairs(&alert["annotations"]).into_iter().map(|pair| format!("--annotation={pair}"));
        let arguments: Vec<String> = [url_flag.clone(), "alert".into(), "add".into()]
            .into_iter()
            .chain(annotations)
            .chain(pairs(&alert["labels"]))
            .collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        amtool(&arguments).unwrap_or_else(|complaint| panic!("{complaint}"));
    }

    // Each alert is told to both, whatever comes first.
    let mut said: Vec<(Option<Value>, Value)> = Vec::new();
    while said.len() < alerts.len() * 2 {
        let posted = received.recv_timeout(Duration::from_secs(30)).unwrap_or_else(|_| panic!("{said:#?}"));
        said.push((posted.get("payload").cloned(), posted));
    }
    let fixes = fix_sentences();
    for alert in &alerts {
        let summary = alert["annotations"]["summary"].as_str().expect("a summary");
        let cluster = alert["labels"]["cluster"].as_str().map(|name| format!(" (cluster {name})")).unwrap_or_default();
        let title = format!("{summary}{cluster}");
        let of = |is_slack: bool| {
            let is_it = |(payload, posted): &&(Option<Value>, Value)| match payload {
                Some(payload) => !is_slack && payload["summary"] == title,
                None => is_slack && posted["attachments"][0]["title"] == title,
            };
            said.iter().find(is_it).unwrap_or_else(|| panic!("no message {title:?} in {said:#?}"))
        };
        let slack = &of(true).1["attachments"][0];
        let (payload, posted) = of(false);
        let payload = payload.as_ref().expect("PagerDuty's");
        let (text, details) = (slack["text"].as_str().expect("a text"), &payload["custom_details"]);
        let page = alert["annotations"]["runbook_url"].as_str().expect("a page");
        assert_eq!((slack["title_link"].as_str(), posted["links"][0]["href"].as_str()), (Some(page), Some(page)));
        assert_eq!(payload["severity"], alert["labels"]["severity"]);
        let description = alert["annotations"]["description"].as_str().expect("a description");
        assert!(text.contains(description) && text.contains(page), "{text}");
        assert!(details["description"].as_str().is_some_and(|told| told.contains(description)), "{details:#}");
        match alert["labels"]["cause"].as_str() {
            Some(cause) => {
                let fix = fixes.get(cause).map_or("the page and the diagnosis say what to do", String::as_str);
                assert!(text.starts_with("*Fix:* ") && text.contains(fix), "{cause}: {text}");
                assert!(details["fix"].as_str().is_some_and(|told| told.contains(fix)), "{cause}: {details:#}");
            }
            None => assert!(!text.contains("*Fix:*"), "{text}"),
        }
    }
}

#[test]
fn the_documented_message_is_the_one_that_is_sent() {
    let documented = read("docs/alerts.md");
    let quoted: String = documented.lines().filter_map(|line| line.strip_prefix("> ")).collect::<Vec<_>>().join("\n");
    let alerts = fired();
    let alert = alerts.iter().find(|alert| alert["labels"]["cause"] == "KubeletFlagDropsTaints").expect("it fires");
    for told in ["summary", "description"] {
        let told = alert["annotations"][told].as_str().expect("a text");
        assert!(quoted.contains(told), "{told:?} is not in\n{quoted}");
    }
    let fix = &fix_sentences()["KubeletFlagDropsTaints"];
    assert!(quoted.contains(fix.as_str()), "{fix:?} is not in\n{quoted}");
}
