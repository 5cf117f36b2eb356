//! An input goes away while nodewhy runs, and comes back: its right is taken, its kind is removed.

use super::proxy::Proxy;
use super::{is_alive, is_up, metric, said_of, started, stuck};
use crate::cluster::life::{CAUSE, cluster, diagnosed, is_ready};
use crate::cluster::operator::diagnosis;
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;
use testkit::control_plane::recipes::{SOON, wait_until};

const AGAIN: Duration = Duration::from_secs(75);

#[tokio::test(flavor = "multi_thread")]
async fn a_right_or_a_kind_that_goes_away_is_told_and_taken_up_again_when_it_is_back() {
    let (control_plane, rights) = cluster();
    let client = control_plane.client().await;
    let proxy = Proxy::start(&control_plane).await;
    let nodewhy = started(&control_plane, &proxy.kubeconfig(&rights), &[]);
    stuck(&control_plane, &client, &["general-stuck"]).await;
    let role = control_plane.get(&["clusterrole", "nodewhy"]).expect("it is shipped");
    let class = control_plane.get(&["ec2nodeclass", "default"]).expect("made above");
    let verdict = || diagnosis(&control_plane, "general-stuck").map(|d| d["status"]["cause"].clone());

    let mut less = role.clone();
    less["metadata"] = json!({ "name": "nodewhy" });
    less["rules"].as_array_mut().unwrap().retain(|rule| rule["apiGroups"][0] != "apps");
    control_plane.try_kubectl_with_input(&["replace", "--filename=-"], &less).expect("the administrator may");
    // A watch that is open goes on, as Kubernetes has it.
    proxy.cut();
    control_plane.kubectl(&["delete", "crd", "ec2nodeclasses.karpenter.k8s.aws"]);
    wait_until(SOON, || said_of(&nodewhy, "daemonsets").contains("not permitted").then_some(()));
    wait_until(SOON, || said_of(&nodewhy, "ec2nodeclasses").contains("not installed").then_some(()));
    assert_eq!(metric(&nodewhy, r#"nodewhy_watch_permitted{input="daemonsets"}"#), Some(0.0));
    assert!(!is_up(&nodewhy, "daemonsets") && !is_up(&nodewhy, "ec2nodeclasses") && is_up(&nodewhy, "nodeclaims"));
    assert!(is_ready(&nodewhy) && is_alive(&nodewhy), "the rest works on");
    assert_eq!(verdict(), Some(json!(CAUSE)));
    stuck(&control_plane, &client, &["general-meanwhile"]).await;

    less["rules"] = role["rules"].clone();
    control_plane.try_kubectl_with_input(&["replace", "--filename=-"], &less).expect("the administrator may");
    control_plane.ec2nodeclass_crd();
    let again = json!({ "apiVersion": class["apiVersion"], "kind": class["kind"], "metadata": { "name": "default" }, "spec": class["spec"] });
    wait_until(SOON, || control_plane.try_kubectl_with_input(&["apply", "--server-side", "--filename=-"], &again).ok());
    wait_until(AGAIN, || (is_up(&nodewhy, "daemonsets") && is_up(&nodewhy, "ec2nodeclasses")).then_some(()));
    assert_eq!(metric(&nodewhy, r#"nodewhy_watch_permitted{input="daemonsets"}"#), Some(1.0));
    let blamed: BTreeSet<_> = diagnosed(&control_plane);
    assert_eq!(blamed, BTreeSet::from(["general-meanwhile".to_owned(), "general-stuck".to_owned()]));
    assert_eq!(verdict(), Some(json!(CAUSE)));
}
