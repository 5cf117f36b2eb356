//! The commands of all fixes and open questions, run by the real kubectl against a real API server.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::Command;
use testkit::control_plane::{ControlPlane, NEWEST_KARPENTER, binaries};
use testkit::fixes::{commands, split};

/// Verbs that change nothing.
const READS: [&str; 6] = ["get", "describe", "logs", "auth", "cluster-info", "version"];
/// Verbs that can be told to store nothing.
const WRITES: [&str; 7] = ["patch", "delete", "taint", "cordon", "uncordon", "drain", "scale"];

/// A kind that newer versions of Kubernetes have, and this API server does not: a command that asks for it among others
/// gets nothing of those either.
const NOT_EVERYWHERE: &str = "mutatingadmissionpolicies";

/// The line as this test runs it: what it would change is only tried. `None` where it needs more than the API server.
fn tried(line: &str, parts: &[Vec<String>]) -> Option<String> {
    let mut tried = line.to_owned();
    for words in parts {
        match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["kubectl", verb, ..] if READS.contains(verb) => {}
            ["kubectl", verb, ..]
                if WRITES.contains(verb) || words.get(1..3).is_some_and(|of| of == ["set", "env"]) =>
            {
                assert_eq!(parts.len(), 1, "what changes something stands alone: {line}");
                tried.push_str(" --dry-run=server");
            }
            ["grep", ..] => {}
            _ => return None,
        }
    }
    Some(tried)
}

/// Commands of one shape fail alike: the same verb, kinds, flags, format and selected fields, whatever the names.
fn shape(parts: &[Vec<String>]) -> String {
    let of = |words: &Vec<String>| {
        // The program, the verb and the kinds.
        let mut kept = 3_usize;
        let mut shape = Vec::new();
        for word in words {
            shape.push(match word.split(['=', '/']).next().unwrap_or(word) {
                start if kept > 0 || word.starts_with('-') => start,
                _ => "_",
            });
            kept = if ["-o", "--field-selector"].contains(&word.as_str()) { 1 } else { kept.saturating_sub(1) };
        }
        shape.join(" ")
    };
    parts.iter().map(of).collect::<Vec<_>>().join("; ")
}

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

#[test]
fn kubectl_and_the_api_server_take_every_command_of_a_fix() {
    let mut shapes = BTreeMap::new();
    for (whence, line) in commands() {
        if let Some(parts) = split(&line)
            && let Some(tried) = tried(&line, &parts)
        {
            shapes.entry(shape(&parts)).or_insert((whence, tried));
        }
    }
    assert!(shapes.len() > 50, "most commands are kubectl's: {shapes:#?}");

    let older = format!("--runtime-config=admissionregistration.k8s.io/v1/{NOT_EVERYWHERE}=false");
    let control_plane = ControlPlane::start_with(&[&older, "--disable-admission-plugins=MutatingAdmissionPolicy"]);
    control_plane.karpenter_crds(NEWEST_KARPENTER);
    control_plane.ec2nodeclass_crd();
    // Of the VPC CNI, of Cilium, and of node-readiness-controller.
    control_plane.apply(kind("crd.k8s.amazonaws.com", "v1alpha1", "ENIConfig", "eniconfigs"));
    control_plane.apply(kind("cilium.io", "v2alpha1", "CiliumPodIPPool", "ciliumpodippools"));
    control_plane.apply(kind("readiness.node.x-k8s.io", "v1alpha1", "NodeReadinessRule", "nodereadinessrules"));
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
    control_plane.kubectl(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"]);

    let kubectl = binaries::control_plane("kubectl");
    let path = format!("{}:{}", kubectl.parent().expect("a folder").display(), std::env::var("PATH").expect("a PATH"));
    let home = tempfile::tempdir().expect("a folder");
    let mut faults = Vec::new();
    for (whence, line) in shapes.values() {
        let output = Command::new("bash")
            .args(["-c", line])
            .env("PATH", &path)
            .env("HOME", home.path())
            .env("KUBECONFIG", control_plane.kubeconfig())
            .output()
            .expect("bash runs");
        let said = String::from_utf8_lossy(&output.stderr);
        if !is_taken(line, &said) {
            faults.push(format!("{whence}: {line}: {said}"));
        }
    }
    assert!(faults.is_empty(), "{} of {} commands\n{}", faults.len(), shapes.len(), faults.join("\n"));
}
