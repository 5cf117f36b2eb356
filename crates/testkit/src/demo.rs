//! A small zoo of machines that are stuck, beside a healthy one, on a real control plane with the real Karpenter, and
//! the operator that says why. `cargo demo` shows it.

use crate::control_plane::recipes::{
    condition, heartbeat, mark_ready, nodeclaim, nodeclaim_with, nodepool, wait_until,
};
use crate::control_plane::{ControlPlane, NEWEST_KARPENTER, Nodewhy, Process, binaries, free_ports};
use serde_json::json;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::time::Duration;

/// Shorter than anybody would wait for.
const SHORT: [&str; 4] =
    ["--join-threshold=15", "--register-threshold=15", "--initialize-threshold=20", "--proven-threshold=2"];
/// The zoo: a cause each.
pub const CAUSES: [&str; 4] =
    ["CloudControllerNeverInitialized", "KubeletRefusesLabels", "NodePoolNotReady", "StartupTaintStays"];
/// A report, put into the cluster as it was: kwok's machines run no user data.
const REPORTED: &str = "tests/cases/06-node-label-refused-by-kubelet/cluster.yaml";

#[must_use = "it ends when it is dropped"]
pub struct Demo {
    pub control_plane: ControlPlane,
    _karpenter: Process,
    _nodewhy: Nodewhy,
    /// Where the page is served on the loopback interface.
    pub page: u16,
}

impl Demo {
    /// Returns once the operator has a verdict of each; says in between what it does.
    pub fn start(say: impl Fn(&str)) -> Self {
        say("starting etcd and kube-apiserver");
        let control_plane = ControlPlane::start();
        let rights = control_plane.install("manifests");
        control_plane.ec2nodeclass_crd();
        say(&format!("starting Karpenter {NEWEST_KARPENTER}, whose kwok provider makes Nodes instead of machines"));
        let karpenter = control_plane.karpenter(NEWEST_KARPENTER);
        say("bringing machines into trouble");
        control_plane.replay(&fs::read_to_string(crate::project().join(REPORTED)).expect("a case"));
        let [page] = free_ports();
        let page_flag = format!("--page=127.0.0.1:{page}");
        let nodewhy = control_plane.nodewhy(&rights, &[&SHORT[..], &[&page_flag]].concat());
        zoo(&control_plane);
        say("waiting for verdicts");
        wait_until(Duration::from_mins(2), || {
            heartbeat(&control_plane);
            let list = control_plane.get(&["nodediagnoses"])?;
            let said: BTreeSet<&str> =
                list["items"].as_array()?.iter().filter_map(|d| d["status"]["cause"].as_str()).collect();
            CAUSES.iter().all(|cause| said.contains(cause)).then_some(())
        });
        Self { control_plane, _karpenter: karpenter, _nodewhy: nodewhy, page }
    }

    /// What the shell is to know.
    pub fn environment(&self) -> String {
        let folder = |program: std::path::PathBuf| {
            program.parent().map(|folder| folder.display().to_string()).unwrap_or_default()
        };
        let (nodewhy, kubectl) = (folder(crate::nodewhy()), folder(binaries::control_plane("kubectl")));
        format!("export KUBECONFIG={} PATH=\"{nodewhy}:{kubectl}:$PATH\"", self.control_plane.kubeconfig().display())
    }

    /// What to type next.
    pub fn commands() -> [&'static str; 6] {
        [
            "kubectl get ndx",
            "kubectl describe ndx startup-taint",
            "nodewhy diagnose",
            "nodewhy diagnose batch-spot-9dlcm",
            "nodewhy explain KubeletRefusesLabels",
            "nodewhy diagnose -o html > report.html",
        ]
    }

    pub fn what_next(&self) -> String {
        let mut text = format!("\nIn another terminal:\n\n    {}\n\nand then, for example:\n\n", self.environment());
        for command in Self::commands() {
            let _ = writeln!(text, "    {command}");
        }
        let _ = write!(text, "\nThe same as a page, live: http://localhost:{}\nCtrl-C ends it all.", self.page);
        text
    }
}

fn zoo(control_plane: &ControlPlane) {
    nodepool(control_plane, "startup-taint");
    let taint = json!({ "startupTaints": [{ "key": "example.com/agent-not-ready", "effect": "NoSchedule" }] });
    nodeclaim_with(control_plane, "startup-taint", "startup-taint", taint);
    nodepool(control_plane, "cloud-taint");
    nodeclaim(control_plane, "cloud-taint", "cloud-taint");
    nodepool(control_plane, "healthy");
    nodeclaim(control_plane, "healthy", "healthy");
    nodepool(control_plane, "no-class");
    control_plane.kubectl(&["delete", "kwoknodeclass", "no-class", "--wait=false"]);

    for claim in ["cloud-taint", "startup-taint", "healthy"] {
        let node = wait_until(Duration::from_mins(1), || {
            heartbeat(control_plane);
            condition(control_plane, "nodeclaim", claim, "Registered").filter(|said| said.starts_with("True"))?;
            control_plane.get(&["nodeclaim", claim])?["status"]["nodeName"].as_str().map(str::to_owned)
        });
        if claim == "cloud-taint" {
            let taint = "node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule";
            control_plane.kubectl(&["taint", "node", &node, taint]);
        }
        mark_ready(control_plane, &node);
    }
}
