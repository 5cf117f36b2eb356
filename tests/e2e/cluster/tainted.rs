//! Nodes with the cloud controller's taint, many at a time, in a cluster whose time goes by as a test wants it.

use crate::cluster::faults::metric;
use crate::cluster::faults::proxy::Proxy;
use crate::cluster::life::{claims, leads};
use crate::cluster::remediation::{UNINITIALIZED, component, nodepool, registered_machine, removals, said};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use testkit::control_plane::recipes::{SOON, wait_until};
use testkit::control_plane::{ControlPlane, Nodewhy};
use testkit::patience::Patience;

const AT_ONCE: usize = 16;
/// Time enough to do what must not be done.
pub(crate) const A_WHILE: Duration = Duration::from_secs(1);
const BOTH: [&str; 2] = ["--remove-stale-taints=on", "--remove-uninitialized-taints=on"];

/// Every two seconds it renews its Lease, and hears what time it is.
const ELECTS: [&str; 3] = ["--leader-elect", "--lease-namespace=nodewhy", "--identity=first"];

/// A cluster whose time goes by as the test wants it.
pub(crate) struct Cluster {
    pub(crate) control_plane: ControlPlane,
    pub(crate) client: Client,
    pub(crate) proxy: Proxy,
    pub(crate) nodewhy: Nodewhy,
    started: DateTime<Utc>,
}

impl Cluster {
    /// Both opt-ins are on.
    pub(crate) async fn start(arguments: &[&str]) -> Self {
        let control_plane = ControlPlane::start();
        let rights = control_plane.install("tests/e2e/cluster/ha");
        control_plane.apply_path(&component().join("cluster-role.yaml"));
        nodepool(&control_plane);
        let client = control_plane.client().await;
        let proxy = Proxy::start(&control_plane).await;
        let nodewhy =
            control_plane.nodewhy(&proxy.kubeconfig(&rights), &[BOTH.as_slice(), &ELECTS, arguments].concat());
        wait_until(SOON, || leads(&nodewhy).then_some(()));
        Self { control_plane, client, proxy, nodewhy, started: Utc::now() }
    }

    /// That time by the clock that nodewhy goes by.
    pub(crate) fn time(&self, minutes: i64) -> DateTime<Utc> {
        self.started + TimeDelta::minutes(minutes)
    }

    /// It is so many minutes after the beginning, and all kubelets report.
    pub(crate) async fn at(&self, minutes: i64) {
        self.put_clock(minutes, minutes).await;
    }

    /// It is so many minutes after the beginning, and the kubelets report that it is so late by theirs.
    pub(crate) async fn put_clock(&self, minutes: i64, theirs: i64) {
        let ahead = self.time(minutes) - Utc::now();
        self.proxy.put_clock_ahead(ahead);
        let is_known = || {
            let skew = metric(&self.nodewhy, "nodewhy_clock_skew_seconds");
            skew.is_some_and(|skew| (skew - ahead.as_seconds_f64()).abs() < 30.0)
        };
        let names: Vec<_> = nodes(&self.client).await.into_keys().collect();
        let patience = Patience::of(SOON);
        loop {
            // Once more when the time is known: what is reported makes nodewhy look.
            let known = is_known();
            report(&self.client, &names, self.time(theirs)).await;
            if known {
                break;
            }
            assert!(!patience.is_over(), "{}", self.nodewhy.process.log());
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    }

    pub(crate) fn said(&self, name: &str, reason: &str) {
        said(&self.control_plane, &self.nodewhy, name, reason);
    }

    /// Nothing more is removed, and this is why.
    pub(crate) fn holds(&self, name: &str, reason: &str, removed: &[&str]) {
        self.said(name, reason);
        std::thread::sleep(A_WHILE);
        self.said(name, reason);
        assert_eq!(removals(&self.control_plane), removed);
    }

    pub(crate) fn reasons(&self) -> BTreeMap<String, usize> {
        let mut reasons = BTreeMap::new();
        let list = self.control_plane.get(&["nodediagnoses"]).expect("a list");
        for diagnosis in list["items"].as_array().into_iter().flatten().filter(|d| d["status"]["outcome"].is_null()) {
            let conditions = diagnosis["status"]["conditions"].as_array().into_iter().flatten();
            for condition in conditions.filter(|c| c["type"] == "Remediated") {
                *reasons.entry(condition["reason"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
            }
        }
        reasons
    }
}

pub(crate) fn names(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{prefix}-{n:02}")).collect()
}

/// Machines that Karpenter has registered just now, and that the cloud controller has not seen.
pub(crate) async fn register(client: &Client, names: &[String]) {
    let (claims, nodes) = (claims(client), Api::<Node>::all(client.clone()));
    let (claims, nodes, create, patch) = (&claims, &nodes, &PostParams::default(), &PatchParams::default());
    each(names, async |name| {
        let [claim, status_of_claim, node, status_of_node] = registered_machine(name);
        claims.create(create, &serde_json::from_value(claim).unwrap()).await.unwrap();
        claims.patch_status(name, patch, &Patch::Merge(status_of_claim)).await.unwrap();
        nodes.create(create, &serde_json::from_value(node).unwrap()).await.unwrap();
        nodes.patch_status(name, patch, &Patch::Merge(status_of_node)).await.unwrap();
    })
    .await;
}

/// Their kubelets report, and it is so late by their clocks.
pub(crate) async fn report(client: &Client, names: &[String], at: DateTime<Utc>) {
    let nodes = &Api::<Node>::all(client.clone());
    let at = at.to_rfc3339_opts(SecondsFormat::Secs, true);
    let report = &json!({ "status": { "conditions": [{ "type": "Ready", "lastHeartbeatTime": at }] } });
    each(names, async |name| {
        nodes.patch_status(name, &PatchParams::default(), &Patch::Strategic(report)).await.unwrap();
    })
    .await;
}

/// Karpenter sees that their taint is gone.
pub(crate) async fn initialize(client: &Client, names: &[String]) {
    let claims = &claims(client);
    let now = Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true);
    let conditions: Vec<_> = ["Launched", "Registered", "Initialized"]
        .map(|type_| json!({ "type": type_, "status": "True", "reason": type_, "message": "", "lastTransitionTime": now }))
        .into();
    let status = &json!({ "status": { "conditions": conditions } });
    each(names, async |name| {
        claims.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    })
    .await;
}

/// All Nodes, as JSON.
pub(crate) async fn nodes(client: &Client) -> BTreeMap<String, Value> {
    let all = Api::<Node>::all(client.clone()).list(&ListParams::default()).await.unwrap();
    all.into_iter().map(|node| (node.metadata.name.clone().unwrap(), serde_json::to_value(node).unwrap())).collect()
}

pub(crate) fn has_taint(node: &Value, key: &str) -> bool {
    node["spec"]["taints"].as_array().into_iter().flatten().any(|taint| taint["key"] == key)
}

/// Those that have the taint.
pub(crate) async fn tainted(client: &Client) -> Vec<String> {
    let nodes = nodes(client).await.into_iter();
    nodes.filter(|(_, node)| has_taint(node, UNINITIALIZED)).map(|(name, _)| name).collect()
}

pub(crate) async fn each(names: &[String], what: impl AsyncFn(&str)) {
    stream::iter(names).for_each_concurrent(AT_ONCE, async |name| what(name).await).await;
}
