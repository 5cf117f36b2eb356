//! What nodewhy writes goes wrong: its kind is missing, is an older one, is removed; a NodeDiagnosis is edited by hand.

use super::{is_alive, said_of, stuck, version};
use crate::cluster::life::{CAUSE, cluster, diagnosed, is_ready, refuse};
use crate::cluster::operator::diagnosis;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use testkit::control_plane::recipes::{SOON, wait_until};
use testkit::patience::settled;

const AGAIN: Duration = Duration::from_secs(75);
const NAME: &str = "nodediagnoses.nodewhy.dev";

fn shipped() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("crds/nodewhy.dev_nodediagnoses.yaml");
    serde_saphyr::from_str(&std::fs::read_to_string(path).expect("it is shipped")).expect("YAML")
}

/// As a release before that did not know these fields.
fn older() -> Value {
    let mut crd = shipped();
    let status = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"];
    for field in ["fix", "recurrences"] {
        assert!(status.as_object_mut().unwrap().remove(field).is_some());
    }
    crd
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_kind_it_waits_with_an_older_one_it_writes_and_what_is_deleted_comes_back() {
    let (control_plane, rights) = cluster();
    let client = control_plane.client().await;
    let install = |crd: &Value| {
        control_plane.apply(crd);
        control_plane.kubectl(&["wait", "--for=condition=Established", &format!("crd/{NAME}")]);
    };
    control_plane.kubectl(&["delete", "crd", NAME]);
    let nodewhy = control_plane.nodewhy(&rights, &[]);
    wait_until(SOON, || said_of(&nodewhy, "nodediagnoses").contains("not installed").then_some(()));
    assert!(!is_ready(&nodewhy) && is_alive(&nodewhy));
    refuse(&client, &["general-stuck".to_owned()]).await;

    install(&older());
    wait_until(AGAIN, || is_ready(&nodewhy).then_some(()));
    wait_until(SOON, || (diagnosis(&control_plane, "general-stuck")?["status"]["cause"] == CAUSE).then_some(()));
    let first = diagnosis(&control_plane, "general-stuck").unwrap();
    assert!(first["status"]["evidence"].is_array() && first["status"]["fix"].is_null(), "{first:#}");
    let settled = settled(|| version(&control_plane, "general-stuck"));
    assert_eq!(
        Some(first["metadata"]["resourceVersion"].clone()),
        settled,
        "what the API server drops is not written again and again"
    );

    // Removed with all that was said, and installed as it is shipped.
    control_plane.kubectl(&["delete", "crd", NAME]);
    wait_until(SOON, || said_of(&nodewhy, "nodediagnoses").contains("not installed").then_some(()));
    assert!(is_alive(&nodewhy));
    install(&shipped());
    let back =
        wait_until(AGAIN, || diagnosis(&control_plane, "general-stuck").filter(|d| d["status"]["cause"] == CAUSE));
    assert!(back["status"]["fix"].is_object(), "{back:#}");

    // Somebody writes over it: it stays until nodewhy has something to say, or starts anew.
    wait_until(AGAIN, || said_of(&nodewhy, "nodediagnoses").starts_with("[+]").then_some(()));
    let edit = json!({ "status": { "cause": "Wrong", "summary": "All is well." } });
    control_plane.patch_status("nodediagnosis", "general-stuck", "merge", &edit);
    assert!(diagnosed(&control_plane).is_empty());
    let others = version(&control_plane, "general-stuck");
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(version(&control_plane, "general-stuck"), others, "two who write over each other never end");
    assert!(nodewhy.process.terminate().success());
    let _again = super::started(&control_plane, &rights, &[]);
    wait_until(SOON, || (diagnosis(&control_plane, "general-stuck")?["status"]["cause"] == CAUSE).then_some(()));
    stuck(&control_plane, &client, &["general-later"]).await;
}
