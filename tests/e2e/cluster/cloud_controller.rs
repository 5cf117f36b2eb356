//! The real cloud controller of AWS, beside moto, at the Nodes whose taint nodewhy removes: both at once, and one that
//! crashes in a loop. The clock is moved, so that the waits are those that are shipped.

use crate::cluster::faults::metric;
use crate::cluster::faults::proxy::{Proxy, Traffic};
use crate::cluster::operator::diagnosis;
use crate::cluster::recoveries::watched;
use crate::cluster::remediation::{UNINITIALIZED, removals};
use crate::cluster::tainted::{A_WHILE, Cluster, has_taint, initialize, names, nodes, register, report, tainted};
use engine::api::REMOVED_ANNOTATION;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;
use testkit::control_plane::Process;
use testkit::control_plane::recipes::{SOON, wait_or, wait_until};
use testkit::moto::Moto;
use testkit::patience::Patience;

const CAUSE: &str = "CloudControllerNeverInitialized";
const CONFLICTS: &str = r#"nodewhy_remediations_total{result="conflict",reason="Conflict"}"#;
/// The path of a Node, and not of all.
const A_NODE: &str = "/api/v1/nodes/";

struct Scene {
    cluster: Cluster,
    moto: Moto,
    /// Between the cloud controller and the API server.
    proxy: Proxy,
    kubeconfig: PathBuf,
}

impl Scene {
    async fn start(name: &str, arguments: &[&str]) -> Self {
        let cluster = Cluster::start(arguments).await;
        let proxy = Proxy::for_administrator(&cluster.control_plane).await;
        let kubeconfig = proxy.kubeconfig(&cluster.control_plane.kubeconfig());
        Self { cluster, moto: Moto::start(name), proxy, kubeconfig }
    }

    fn controller(&self, workers: u8) -> Process {
        self.cluster.control_plane.cloud_controller(&self.moto.url(), &self.kubeconfig, workers)
    }

    /// Machines that Karpenter has registered.
    async fn machines(&self, prefix: &str, count: usize) -> Vec<String> {
        let names = names(prefix, count);
        for name in &names {
            self.moto.tell("instance", &json!({ "id": format!("i-{name}") }));
        }
        register(&self.cluster.client, &names).await;
        names
    }

    /// As where the role of the cloud controller lacks the right.
    fn deny(&self) {
        let refused = json!({ "action": "ec2:DescribeInstances", "kind": "error", "status": 403, "code": "UnauthorizedOperation" });
        self.moto.tell("fault", &refused);
    }

    /// The answers come so late.
    fn slow_down(&self, seconds: f64) {
        self.permit();
        self.moto.tell("fault", &json!({ "action": "ec2:DescribeInstances", "kind": "slow", "seconds": seconds }));
    }

    fn permit(&self) {
        self.moto.tell("no-faults", &Value::Null);
    }

    fn until_ec2_is_asked(&self) {
        wait_until(SOON, || self.moto.calls().iter().any(|call| call == "ec2:DescribeInstances").then_some(()));
    }

    /// Until so many have the taint at most.
    async fn until_tainted(&self, most: usize) {
        let patience = Patience::of(SOON);
        while tainted(&self.cluster.client).await.len() > most {
            assert!(!patience.is_over(), "{:?}", tainted(&self.cluster.client).await);
            tokio::time::sleep(Duration::from_millis(60)).await;
        }
    }

    /// All kubelets report, which makes the cloud controller look again.
    async fn report(&self, names: &[String], minutes: i64) {
        report(&self.cluster.client, names, self.cluster.time(minutes)).await;
    }

    /// Karpenter goes on with them, and their diagnoses end as what they were.
    async fn end(&self, names: &[String]) {
        initialize(&self.cluster.client, names).await;
        wait_until(SOON, || {
            let list = self.cluster.control_plane.get(&["nodediagnoses"])?;
            let recovered = |d: &&Value| d["status"]["outcome"] == "Recovered" && d["status"]["cause"] == CAUSE;
            let ended: Vec<_> = list["items"].as_array()?.iter().filter(recovered).collect();
            names.iter().all(|name| ended.iter().any(|d| d["metadata"]["name"] == **name)).then_some(())
        });
    }
}

/// Who freed the Nodes of the taint: nodewhy left its annotation, the cloud controller its labels. One may have both.
fn by_whom(nodes: &BTreeMap<String, Value>, names: &[String]) -> (BTreeSet<String>, BTreeSet<String>) {
    let mut by = (BTreeSet::new(), BTreeSet::new());
    for name in names {
        let node = &nodes[name];
        assert!(!has_taint(node, UNINITIALIZED) && has_taint(node, "dedicated"), "{node:#}");
        let metadata = &node["metadata"];
        if metadata["annotations"][REMOVED_ANNOTATION].is_string() {
            by.0.insert(name.clone());
        }
        let wrote = |field: &Value| {
            field["manager"] == "aws-cloud-controller-manager"
                && field["fieldsV1"].to_string().contains("beta.kubernetes.io/instance-type")
        };
        if metadata["managedFields"].as_array().into_iter().flatten().any(wrote) {
            assert!(metadata["labels"]["failure-domain.beta.kubernetes.io/zone"].is_string(), "{node:#}");
            by.1.insert(name.clone());
        }
    }
    by
}

/// So many may be freed that they meet often, and all that end are kept.
const NO_LIMITS: [&str; 4] =
    ["--remediation-many=1000", "--remediation-budget=1000", "--remediation-share=100", "--history-limit=100"];
/// As many at a time as are raced for: alone the cloud controller is slower than nodewhy.
const WORKERS: u8 = 10;

/// nodewhy knows so many Nodes, and that it is too early to free them.
async fn too_recent(cluster: &Cluster, minutes: i64, count: usize) {
    cluster.at(minutes).await;
    let all = BTreeMap::from([("TooRecent".to_owned(), count)]);
    let log = || format!("{:?}\n{}", cluster.reasons(), cluster.nodewhy.process.log());
    wait_or(SOON, || (cluster.reasons() == all).then_some(()), log);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nodewhy_sends_after_the_cloud_controller_is_through_changes_nothing() {
    let scene = Scene::start("controller-first", &NO_LIMITS).await;
    let cluster = &scene.cluster;
    scene.deny();
    let _controller = scene.controller(WORKERS);
    let late = scene.machines("late", 3).await;
    scene.until_ec2_is_asked();
    too_recent(cluster, 11, late.len()).await;
    // The cloud controller's writes wait too. If it were denied until now, it would come back only after its backoff,
    // and nodewhy's write does not outlive the term of its Lease.
    scene.proxy.set(Traffic::Held(A_NODE));
    scene.permit();
    scene.report(&late, 11).await;
    wait_until(SOON, || (scene.proxy.held() > 0).then_some(()));
    cluster.proxy.set(Traffic::Held(A_NODE));
    cluster.at(45).await;
    wait_until(SOON, || (cluster.proxy.held() > 0).then_some(()));
    scene.proxy.set(Traffic::Flows);
    scene.until_tainted(0).await;
    cluster.proxy.set(Traffic::Flows);
    wait_until(SOON, || metric(&cluster.nodewhy, CONFLICTS).filter(|conflicts| *conflicts >= 1.0));
    std::thread::sleep(A_WHILE);
    assert_eq!(by_whom(&nodes(&cluster.client).await, &late), (BTreeSet::new(), late.iter().cloned().collect()));
    assert_eq!(removals(&cluster.control_plane), [""; 0]);
    scene.end(&late).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_cloud_controller_sends_after_nodewhy_is_through_comes_again_with_its_labels() {
    let scene = Scene::start("nodewhy-first", &NO_LIMITS).await;
    let cluster = &scene.cluster;
    scene.deny();
    let _controller = scene.controller(WORKERS);
    let early = scene.machines("early", 3).await;
    scene.until_ec2_is_asked();
    too_recent(cluster, 11, early.len()).await;
    scene.proxy.set(Traffic::Held(A_NODE));
    scene.permit();
    scene.report(&early, 11).await;
    wait_until(SOON, || (scene.proxy.held() > 0).then_some(()));
    cluster.at(45).await;
    wait_until(SOON, || (removals(&cluster.control_plane).len() >= early.len()).then_some(()));
    scene.proxy.set(Traffic::Flows);
    let patience = Patience::of(SOON);
    loop {
        let (by_nodewhy, by_controller) = by_whom(&nodes(&cluster.client).await, &early);
        assert_eq!(by_nodewhy.len(), early.len());
        if !by_controller.is_empty() {
            break;
        }
        assert!(!patience.is_over(), "the cloud controller gave up");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let mut made = removals(&cluster.control_plane);
    made.sort();
    assert_eq!(made, early);
    scene.end(&early).await;
}

/// Who is first at a Node, nobody decides here: the two tests above have each of them win.
#[tokio::test(flavor = "multi_thread")]
async fn where_both_are_at_many_nodes_each_is_freed_once_and_nothing_is_lost() {
    let scene = Scene::start("both-at-many", &NO_LIMITS).await;
    let cluster = &scene.cluster;
    scene.deny();
    let _controller = scene.controller(WORKERS);
    let raced = scene.machines("raced", 30).await;
    scene.until_ec2_is_asked();
    too_recent(cluster, 11, raced.len()).await;
    // A kubelet that is silent for half an hour keeps nodewhy from its Node: the cloud controller begins.
    cluster.put_clock(45, 11).await;
    scene.permit();
    scene.report(&raced, 11).await;
    scene.until_tainted(raced.len() - 3).await;
    scene.report(&raced, 45).await;
    scene.until_tainted(0).await;
    std::thread::sleep(A_WHILE);
    let (by_nodewhy, by_controller) = by_whom(&nodes(&cluster.client).await, &raced);
    println!(
        "of {} Nodes {} by nodewhy, {} by the cloud controller, {} by both; {:?} conflicts of nodewhy's in all",
        raced.len(),
        by_nodewhy.len(),
        by_controller.len(),
        by_nodewhy.intersection(&by_controller).count(),
        metric(&cluster.nodewhy, CONFLICTS)
    );
    assert!(!by_controller.is_empty(), "it began");
    assert_eq!(by_nodewhy.union(&by_controller).count(), raced.len());
    let made = removals(&cluster.control_plane);
    let once: BTreeSet<_> = made.iter().cloned().collect();
    assert_eq!(made.len(), once.len(), "a Node was patched twice: {made:?}");
    assert_eq!(once, by_nodewhy);
    scene.end(&raced).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cloud_controller_that_crashes_in_a_loop_is_no_stale_taint_and_no_second_removal() {
    let scene = Scene::start("crashes-in-a-loop", &[]).await;
    let cluster = &scene.cluster;
    let all = scene.machines("looped", 8).await;
    cluster.at(11).await;
    let many = BTreeMap::from([("ManyNodes".to_owned(), all.len())]);
    wait_until(SOON, || (cluster.reasons() == many).then_some(()));
    let watched = watched(&cluster.control_plane);

    // It dies before it has written anything.
    scene.slow_down(5.0);
    for minutes in [45, 90] {
        scene.moto.calls();
        let mut controller = scene.controller(1);
        scene.until_ec2_is_asked();
        controller.kill();
        cluster.at(minutes).await;
        std::thread::sleep(A_WHILE);
        assert_eq!((cluster.reasons(), removals(&cluster.control_plane)), (many.clone(), Vec::new()));
    }
    // It dies amid its work, each time a little later.
    scene.slow_down(0.3);
    let mut crashes = 2;
    loop {
        let left = tainted(&cluster.client).await.len();
        if left <= 5 {
            break;
        }
        let mut controller = scene.controller(1);
        scene.until_tainted(left - 1).await;
        controller.kill();
        crashes += 1;
    }
    // Few are left: nodewhy mends as many as it may of eight Nodes, and the next start of the controller the others.
    cluster.at(91).await;
    wait_until(SOON, || (removals(&cluster.control_plane).len() == 1).then_some(()));
    scene.permit();
    let mut controller = scene.controller(1);
    scene.until_tainted(0).await;
    controller.kill();
    std::thread::sleep(A_WHILE);
    let mended = removals(&cluster.control_plane);
    let (by_nodewhy, by_controller) = by_whom(&nodes(&cluster.client).await, &all);
    println!("{crashes} crashes; {} Nodes by the cloud controller, {mended:?} by nodewhy", by_controller.len());
    assert_eq!(by_nodewhy, mended.iter().cloned().collect());
    assert_eq!(by_nodewhy.union(&by_controller).count(), all.len());
    assert!(!watched.log().contains("StaleCloudProviderTaint"), "{}", watched.log());
    // Of a Node that the cloud controller has freed it is not said that the taint stays.
    assert!(!cluster.nodewhy.process.log().contains("Fingerprint"), "{}", cluster.nodewhy.process.log());

    // One that it did initialize, and gets the taint again: its labels tell.
    let (stale, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|name| by_controller.first() == Some(name));
    scene.end(&others).await;
    let taint = json!([{ "op": "add", "path": "/spec/taints/-", "value": { "key": UNINITIALIZED, "value": "true", "effect": "NoSchedule" } }]);
    let back = ["patch", "node", &stale[0], "--type=json", "--field-manager=node-labeler", "-p", &taint.to_string()];
    cluster.control_plane.kubectl(&back);
    cluster.at(152).await;
    let found = wait_until(SOON, || {
        diagnosis(&cluster.control_plane, &stale[0]).filter(|d| d["status"]["cause"] == "StaleCloudProviderTaint")
    });
    assert_eq!(found["status"]["confidence"], "Certain", "{found:#}");
    cluster.holds(&stale[0], "TooRecent", &[&mended[0]]);
    cluster.at(166).await;
    cluster.said(&stale[0], "Removed");
}
