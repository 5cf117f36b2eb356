//! What the scenarios stand on: the control plane and Karpenter behave as they should.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use testkit::control_plane::{
    ControlPlane, NEWEST_KARPENTER,
    process::{Process, supervised},
    recipes::{
        SOON, backdate_registration, condition, heartbeat, join_without_unregistered_taint, mark_ready, nodeclaim,
        nodepool, nodepool_without_nodes, wait_until,
    },
};

#[test]
fn karpenter_1_0_5_gives_up_a_node_without_its_taint_and_registers_the_one_beside_it() {
    let control_plane = ControlPlane::start();
    let _karpenter = control_plane.karpenter("1.0.5");
    nodepool(&control_plane, "custom-bootstrap");
    nodepool(&control_plane, "healthy");
    join_without_unregistered_taint(&control_plane, "custom-bootstrap");
    nodeclaim(&control_plane, "stuck", "custom-bootstrap");
    nodeclaim(&control_plane, "joined", "healthy");

    let registered = |claim| condition(&control_plane, "nodeclaim", claim, "Registered");
    wait_until(SOON, || {
        heartbeat(&control_plane);
        (registered("stuck")? == "False UnregisteredTaintNotFound").then_some(())
    });
    wait_until(SOON, || {
        heartbeat(&control_plane);
        registered("joined")?.starts_with("True").then_some(())
    });
}

#[test]
fn karpenter_deletes_a_claim_whose_node_has_not_come_in_fifteen_minutes() {
    let control_plane = ControlPlane::start();
    let _karpenter = control_plane.karpenter(NEWEST_KARPENTER);
    nodepool_without_nodes(&control_plane, "default");
    nodeclaim(&control_plane, "late", "default");
    let registered = || condition(&control_plane, "nodeclaim", "late", "Registered");
    wait_until(SOON, || (registered()? == "Unknown NodeNotFound").then_some(()));

    backdate_registration(&control_plane, "late");
    wait_until(SOON, || control_plane.get(&["nodeclaim", "late"]).is_none().then_some(()));
}

#[test]
fn karpenter_initializes_a_node_once_kubelet_says_it_is_ready() {
    let control_plane = ControlPlane::start();
    let _karpenter = control_plane.karpenter(NEWEST_KARPENTER);
    nodepool(&control_plane, "default");
    nodeclaim(&control_plane, "starting", "default");
    let initialized = || condition(&control_plane, "nodeclaim", "starting", "Initialized");
    wait_until(SOON, || (initialized()? == "Unknown NodeNotReady").then_some(()));

    let claim = control_plane.get(&["nodeclaim", "starting"]).unwrap();
    mark_ready(&control_plane, claim["status"]["nodeName"].as_str().unwrap());
    wait_until(SOON, || initialized()?.starts_with("True").then_some(()));
}

#[tokio::test]
async fn a_service_account_may_do_what_its_role_says_and_no_more() {
    let control_plane = ControlPlane::start();
    control_plane.kubectl(&["create", "serviceaccount", "reader", "--namespace=kube-system"]);
    control_plane.kubectl(&["create", "clusterrole", "reader", "--verb=list", "--resource=nodes"]);
    control_plane.kubectl(&[
        "create",
        "clusterrolebinding",
        "reader",
        "--clusterrole=reader",
        "--serviceaccount=kube-system:reader",
    ]);
    let kubeconfig = control_plane.kubeconfig_for("kube-system", "reader");
    let as_reader = |arguments: &[&str]| {
        control_plane.try_kubectl(&[arguments, &["--kubeconfig", kubeconfig.to_str().unwrap()]].concat())
    };

    wait_until(SOON, || as_reader(&["get", "nodes"]).ok());
    assert!(as_reader(&["get", "pods"]).unwrap_err().contains("Forbidden"));
    let nodes = Api::<Node>::all(control_plane.client().await);
    assert!(nodes.list(&kube::api::ListParams::default()).await.unwrap().items.is_empty());
}

#[test]
fn the_controller_manager_collects_what_its_owner_left_behind() {
    let control_plane = ControlPlane::start();
    let _controllers = control_plane.controller_manager();
    control_plane.kubectl(&["create", "deployment", "left", "--image=example.com/none"]);
    wait_until(SOON, || control_plane.get(&["replicasets"])?["items"].as_array()?.first().cloned());
    control_plane.kubectl(&["delete", "deployment", "left"]);
    wait_until(SOON, || control_plane.get(&["replicasets"])?["items"].as_array()?.is_empty().then_some(()));
}

#[test]
fn an_ec2nodeclass_can_be_stored_without_karpenters_aws_provider() {
    let control_plane = ControlPlane::start();
    control_plane.ec2nodeclass_crd();
    control_plane.apply(
        r"
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec:
  role: KarpenterNodeRole-test
  amiSelectorTerms: [{alias: al2023@v20251112}]
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: test}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: test}}]
",
    );
    assert_eq!(control_plane.get(&["ec2nodeclass", "default"]).unwrap()["spec"]["role"], "KarpenterNodeRole-test");
}

#[test]
fn a_child_dies_with_a_test_that_is_killed() {
    // The first `sleep` holds the pipe as a test would.
    let mut test = Command::new("sleep").arg("600").stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let lifeline = test.stdout.take().unwrap();
    let mut child = supervised(Command::new("sleep").arg("600")).stdin(lifeline).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert!(child.try_wait().unwrap().is_none(), "it lives as long as the test does");
    test.kill().unwrap();
    test.wait().unwrap();
    assert!(!child.wait().unwrap().success());
}

#[test]
fn a_child_that_is_asked_to_end_ends_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::spawn(Command::new("sleep").arg("600"), folder.path().join("log"));
    assert_eq!(process.terminate().signal(), Some(15));
}
