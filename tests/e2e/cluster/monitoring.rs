//! What is shipped for Prometheus and Grafana works: alerts fire when they should, link to pages that exist, and no
//! panel is empty.

use crate::cluster::operator::{install, one_refused_one_healthy};
use crate::cluster::prometheus::{Prometheus, promtool, shipped};
use engine::rules;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use testkit::control_plane::ControlPlane;
use testkit::control_plane::recipes::{SOON, backdate_registration, heartbeat, nodeclaim, wait_until};
use testkit::patience::Patience;

fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn alerts(spec: &Value) -> Vec<&Value> {
    let groups = spec["groups"].as_array().expect("groups");
    let rules = groups.iter().flat_map(|group| group["rules"].as_array().expect("rules"));
    rules.filter(|rule| rule["record"].is_null()).collect()
}

#[test]
fn alerts_fire_when_they_should_and_not_before() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("rules.yaml"), shipped("prometheus-rule.yaml")["spec"].to_string())
        .expect("a file");
    std::fs::copy(project().join("tests/e2e/monitoring/alerts.yaml"), folder.path().join("alerts.yaml"))
        .expect("a file");
    promtool(folder.path(), &["test", "rules", "alerts.yaml"]).unwrap_or_else(|complaint| panic!("{complaint}"));
}

#[test]
fn every_alert_is_tested_and_has_a_page() {
    let tests = std::fs::read_to_string(project().join("tests/e2e/monitoring/alerts.yaml")).expect("the tests");
    let tests: Value = serde_saphyr::from_str(&tests).expect("YAML");
    let cases = tests["tests"]
        .as_array()
        .expect("tests")
        .iter()
        .flat_map(|test| test["alert_rule_test"].as_array().into_iter().flatten());
    let fired = cases.filter(|case| case["exp_alerts"].is_array()).filter_map(|case| case["alertname"].as_str());
    let fired: BTreeSet<_> = fired.collect();
    let rule = shipped("prometheus-rule.yaml");
    let overview = std::fs::read_to_string(project().join("docs/alerts.md")).expect("the pages");
    for alert in alerts(&rule["spec"]) {
        let name = alert["alert"].as_str().expect("an alert has a name");
        assert!(fired.contains(name), "no test lets {name} fire");
        assert!(overview.contains(name), "docs/alerts.md does not list {name}");
        let url = alert["annotations"]["runbook_url"].as_str().expect("an alert has a page");
        let path = url.strip_prefix("https://github.com/nodewhy/nodewhy/blob/main/").expect("a page of this project");
        if let Some((file, anchor)) = path.split_once('#') {
            let page = std::fs::read_to_string(project().join(file)).expect("the page exists");
            let headings = page.lines().filter_map(|line| line.strip_prefix("## ")).map(str::to_lowercase);
            assert!(headings.into_iter().any(|heading| heading == anchor), "{url}");
        } else {
            // What Prometheus puts in is a value of the label `cause`.
            for cause in rules::ALL.iter().map(|rule| rule.cause).chain([rules::unknown::CAUSE]) {
                let page = path.replace("{{ $labels.cause }}", cause);
                assert!(project().join(&page).is_file(), "{page}");
            }
        }
    }
}

/// A copy of the rules that need not wait.
fn impatient(mut spec: Value) -> Value {
    for group in spec["groups"].as_array_mut().expect("groups") {
        for rule in group["rules"].as_array_mut().expect("rules") {
            if !rule["for"].is_null() {
                rule["for"] = json!("2s");
            }
        }
    }
    spec
}

/// Expressions of the dashboard: its panels', and what its variables list; the variables replaced by what Grafana puts
/// in for "All".
fn expressions(dashboard: &Value) -> Vec<String> {
    let panels = dashboard["panels"]
        .as_array()
        .expect("panels")
        .iter()
        .flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let asked = panels.filter_map(|target| target["expr"].as_str()).map(str::to_owned);
    let variables = dashboard["templating"]["list"].as_array().expect("variables").iter();
    let listed = variables.filter_map(|variable| variable["query"]["query"].as_str()).map(|query| {
        let series = query
            .strip_prefix("label_values(")
            .and_then(|rest| rest.rsplit_once(','))
            .expect("label_values(series, label)")
            .0;
        series.to_owned()
    });
    let filled = |text: String| {
        let values = [("$__rate_interval", "1m"), ("$__range", "5m"), ("$cluster", ".*"), ("$nodepool", ".*")];
        values.into_iter().fold(text, |text, (name, value)| text.replace(name, value))
    };
    asked.chain(listed).map(filled).collect()
}

#[test]
fn a_real_prometheus_fires_the_alert_and_fills_every_panel() {
    let control_plane = ControlPlane::start();
    control_plane.ec2nodeclass_crd();
    let _karpenter = control_plane.karpenter("1.0.5");
    let rights = install(&control_plane);
    // What docs/install.md says about node classes of another provider; without it NodewhyCannotRead fires, rightly.
    control_plane.apply(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": { "name": "nodewhy-kwok" },
        "rules": [{ "apiGroups": ["karpenter.kwok.sh"], "resources": ["kwoknodeclasses"], "verbs": ["list", "watch"] }],
    }));
    control_plane.kubectl(&[
        "create",
        "clusterrolebinding",
        "nodewhy-kwok",
        "--clusterrole=nodewhy-kwok",
        "--serviceaccount=nodewhy:nodewhy",
    ]);
    let nodewhy = control_plane.nodewhy(&rights, &[]);
    let prometheus = Prometheus::start(&nodewhy, &impatient(shipped("prometheus-rule.yaml")["spec"].clone()));
    one_refused_one_healthy(&control_plane);
    nodeclaim(&control_plane, "stuck-too", "tainted-away");

    let fires = |names: &[&str]| {
        let patience = Patience::of(SOON);
        while prometheus.firing() != names {
            assert!(!patience.is_over(), "{names:?} should fire, and {:?} do", prometheus.firing());
            heartbeat(&control_plane);
        }
    };
    fires(&["NodeNeverRegisters"]);
    let alert = prometheus.query(r#"ALERTS{alertname="NodeNeverRegisters"}"#);
    assert_eq!(alert[0]["metric"]["cause"], "UnregisteredTaintMissing", "{alert:?}");
    assert_eq!(alert[0]["metric"]["nodepool"], "tainted-away");

    // When the first one has ended, the second must have a verdict: the panels show what is stuck now.
    let patience = Patience::of(SOON);
    while prometheus.query("sum(nodewhy_diagnoses) >= 2").is_empty() {
        assert!(!patience.is_over(), "{:?}", prometheus.query("nodewhy_diagnoses"));
        heartbeat(&control_plane);
    }
    backdate_registration(&control_plane, "stuck");
    fires(&["NodeClaimsKilledByTimeout", "NodeNeverRegisters"]);

    let dashboard = shipped("dashboard.json");
    let expressions = expressions(&dashboard);
    assert!(expressions.len() > 10, "{expressions:?}");
    wait_until(SOON, || prometheus.query("increase(nodewhy_outcomes_total[1m])").first().cloned());
    let empty: Vec<_> = expressions.iter().filter(|expression| prometheus.query(expression).is_empty()).collect();
    assert!(empty.is_empty(), "these queries of the dashboard return nothing: {empty:#?}");

    assert!(nodewhy.process.terminate().success());
    wait_until(SOON, || prometheus.firing().contains(&"NodewhyDown".to_owned()).then_some(()));
}
