//! The commands of all fixes and open questions, one of each shape, run by the real kubectl against a real API server.
//! `fixes.txt` lists them, and `cargo test --test it fixes` compares that list with the verdicts.

use serde_json::{Value, json};
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use testkit::control_plane::{ControlPlane, NEWEST_KARPENTER, binaries};
use testkit::fixes::tried;

/// A kind that newer versions of Kubernetes have, and this API server does not: a command that asks for it among others
/// gets nothing of those either.
const NOT_EVERYWHERE: &str = "mutatingadmissionpolicies";

/// Whether kubectl says of a line no more than that an object is not there, and what it says beside an answer.
fn is_taken(line: &str, said: &str) -> bool {
    let alone = format!("kubectl get {NOT_EVERYWHERE} ");
    let is_harmless = |said: &str| {
        said.is_empty()
            || said.contains("(NotFound)") && said.contains("\" not found")
            || said.starts_with("No resources found")
            || said.starts_with("Warning: ")
            || said.contains(NOT_EVERYWHERE) && line.contains(&alone)
    };
    said.lines().all(|said| is_harmless(said.trim()))
}

/// A kind of somebody else, its fields unread.
fn kind(group: &str, version: &str, kind: &str, plural: &str) -> Value {
    let schema = json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{group}") },
        "spec": {
            "group": group, "scope": "Cluster", "names": { "kind": kind, "plural": plural },
            "versions": [{ "name": version, "served": true, "storage": true, "schema": schema }],
        },
    })
}

/// An API server that has the kinds which commands name.
fn control_plane() -> ControlPlane {
    let older = format!("--runtime-config=admissionregistration.k8s.io/v1/{NOT_EVERYWHERE}=false");
    let control_plane = ControlPlane::start_with(&[&older, "--disable-admission-plugins=MutatingAdmissionPolicy"]);
    control_plane.karpenter_crds(NEWEST_KARPENTER);
    control_plane.ec2nodeclass_crd();
    // Of the VPC CNI, of its resource controller, of Cilium, of node-readiness-controller, and of Skyhook.
    control_plane.apply(kind("crd.k8s.amazonaws.com", "v1alpha1", "ENIConfig", "eniconfigs"));
    let group = "vpcresources.k8s.aws";
    control_plane.apply(kind(group, "v1beta1", "SecurityGroupPolicy", "securitygrouppolicies"));
    control_plane.apply(kind("cilium.io", "v2alpha1", "CiliumPodIPPool", "ciliumpodippools"));
    control_plane.apply(kind("readiness.node.x-k8s.io", "v1alpha1", "NodeReadinessRule", "nodereadinessrules"));
    control_plane.apply(kind("skyhook.nvidia.com", "v1alpha1", "Skyhook", "skyhooks"));
    control_plane.apply(kind("eks.amazonaws.com", "v1", "NodeClass", "nodeclasses"));
    control_plane.apply(kind("oci.oraclecloud.com", "v1beta1", "OCINodeClass", "ocinodeclasses"));
    // As charts of Karpenter's definitions had it up to 1.0.
    let service = json!({ "namespace": "karpenter", "name": "karpenter", "port": 8443 });
    let webhook = json!({ "clientConfig": { "service": service }, "conversionReviewVersions": ["v1"] });
    let conversion = json!({ "spec": { "conversion": { "strategy": "Webhook", "webhook": webhook } } });
    control_plane.kubectl(&["patch", "crd", "nodepools.karpenter.sh", "--type=merge", "-p", &conversion.to_string()]);
    // Of Karpenter before 0.32.
    control_plane.apply(kind("karpenter.sh", "v1alpha5", "Provisioner", "provisioners"));
    control_plane.apply(kind("karpenter.sh", "v1alpha5", "Machine", "machines"));
    control_plane.apply(kind("karpenter.k8s.aws", "v1alpha1", "AWSNodeTemplate", "awsnodetemplates"));
    control_plane.kubectl(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=120s"]);
    control_plane
}

/// Works on the items with as many threads as there are cores: a kubectl mostly waits for the API server.
fn on_all_cores<I: Sync>(items: &[I], work: impl Fn(&I) + Sync) {
    let next = Mutex::new(items.iter());
    let take = || next.lock().expect("no thread fails here").next();
    let work_through = || {
        while let Some(item) = take() {
            work(item);
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work_through);
        }
    });
}

#[test]
fn kubectl_and_the_api_server_take_every_command_of_a_fix() {
    let commands = tried::read();
    assert!(commands.len() > 50, "most commands are kubectl's: {commands:#?}");

    let control_plane = control_plane();
    let (kubectl, kubeconfig) = (binaries::control_plane("kubectl"), control_plane.kubeconfig());
    let path = format!("{}:{}", kubectl.parent().expect("a folder").display(), std::env::var("PATH").expect("a PATH"));
    let home = tempfile::tempdir().expect("a folder");
    let said = |line: &str| {
        let output = Command::new("bash")
            .args(["-c", line])
            .env("PATH", &path)
            .env("HOME", home.path())
            .env("KUBECONFIG", &kubeconfig)
            .output()
            .expect("bash runs");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    // Writes the list of kinds to the cache that all commands share. A kubectl that misses a kind in a list that it did
    // not read itself reads the list again. Source: client-go v0.37.2 restmapper/discovery.go.
    said("kubectl api-resources");
    let faults = Mutex::new(Vec::new());
    on_all_cores(&commands, |(whence, line)| {
        let said = said(line);
        if !is_taken(line, &said) {
            faults.lock().expect("no thread fails here").push(format!("{whence}: {line}: {said}"));
        }
    });
    let mut faults = faults.into_inner().expect("no thread fails here");
    faults.sort();
    assert!(faults.is_empty(), "{} of {} commands\n{}", faults.len(), commands.len(), faults.join("\n"));
}
