//! `nodewhy userdata NAME` on a real API server, under the rights that are shipped.

use crate::cluster::operator::install;
use serde_json::Value;
use std::process::Command;
use testkit::control_plane::{ControlPlane, NEWEST_KARPENTER};

#[test]
fn a_node_class_of_the_cluster_is_read_as_its_file_is() {
    let control_plane = ControlPlane::start();
    control_plane.karpenter_crds(NEWEST_KARPENTER);
    control_plane.ec2nodeclass_crd();
    let rights = install(&control_plane);
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/userdata/taints-wiped.yaml");
    control_plane.kubectl(&["apply", "--filename", file]);
    let answer = |arguments: &[&str]| -> Value {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nodewhy"));
        let output = command
            .arg("userdata")
            .args(arguments)
            .args(["--kubernetes", "1.34", "-o", "json"])
            .env("KUBECONFIG", &rights)
            .output()
            .expect("nodewhy runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let of_cluster = answer(&["default"]);
    assert_eq!(of_cluster["items"][0]["defects"][0]["kind"], "DropsTaints");
    assert_eq!(of_cluster, answer(&["-f", file]));
}
