//! The operator under the securityContext that is shipped: as its user, without capabilities, on a file system that can
//! only be read, under the seccomp profile of the runtime.

use crate::cluster::life::{claim_names, diagnosed, refuse};
use crate::cluster::operator::install;
use std::fs;
use std::path::Path;
use std::process::Command;
use testkit::confined::Confinement;
use testkit::control_plane::recipes::{SOON, ec2_nodepool, wait_until};
use testkit::control_plane::{ControlPlane, NEWEST_KARPENTER};

/// The process that a confined program became, and what the kernel says of it.
fn confined(parent: u32) -> Option<(String, String)> {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
    let of = |pid: &str, file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let program = children.split_whitespace().find(|pid| of(pid, "comm").trim() == "program")?;
    Some((program.to_owned(), of(program, "status") + &of(program, "uid_map")))
}

#[tokio::test(flavor = "multi_thread")]
async fn under_the_shipped_security_context_it_starts_judges_writes_and_ends_in_order() {
    let control_plane = ControlPlane::start();
    control_plane.karpenter_crds(NEWEST_KARPENTER);
    control_plane.ec2nodeclass_crd();
    let rights = install(&control_plane);
    ec2_nodepool(&control_plane);
    let deployment = control_plane.get(&["deployment", "nodewhy", "--namespace=nodewhy"]).expect("it is shipped");
    let pod = &deployment["spec"]["template"]["spec"];
    let confinement = Confinement::of(pod);

    // What kubelet gives the pod.
    let direct: serde_json::Value = serde_json::from_slice(&fs::read(&rights).unwrap()).unwrap();
    let cluster = &direct["clusters"][0]["cluster"];
    let files = tempfile::tempdir().expect("a folder");
    fs::copy(cluster["certificate-authority"].as_str().unwrap(), files.path().join("ca.crt")).unwrap();
    fs::write(files.path().join("token"), direct["users"][0]["user"]["token"].as_str().unwrap()).unwrap();
    fs::write(files.path().join("namespace"), "nodewhy").unwrap();

    // It does hold a program.
    let shell = |script: &str, with_seccomp| {
        let mut command = confinement.command(files.path(), Path::new("/bin/sh"), with_seccomp);
        let said = command.args(["-c", script]).output().expect("sh starts");
        (said.status.success(), String::from_utf8_lossy(&said.stderr).into_owned())
    };
    for file in ["/file", "/usr/file", "/run/secrets/kubernetes.io/serviceaccount/file"] {
        let (_, said) = shell(&format!("echo > {file}"), true);
        assert!(said.contains("Read-only file system"), "{file}: {said}");
    }
    let (_, said) = shell("unshare --user true", true);
    assert!(said.contains("Operation not permitted"), "{said}");
    assert_eq!(shell("unshare --user true", false), (true, String::new()), "only the profile forbids that");

    let (host, port) = cluster["server"].as_str().unwrap().trim_start_matches("https://").split_once(':').unwrap();
    let mut command = confinement.command(files.path(), Path::new(env!("CARGO_BIN_EXE_nodewhy")), true);
    command.env("KUBERNETES_SERVICE_HOST", host).env("KUBERNETES_SERVICE_PORT", port);
    let arguments: Vec<_> =
        pod["containers"][0]["args"].as_array().unwrap().iter().filter_map(|a| a.as_str()).collect();
    assert_eq!(arguments[0], "run");
    let nodewhy = control_plane.nodewhy_by(command, Path::new(""), &arguments[1..]);
    refuse(&control_plane.client().await, &claim_names(3)).await;
    wait_until(SOON, || (diagnosed(&control_plane).len() == 3).then_some(()));

    let (process, said) = confined(nodewhy.process.id()).expect("it runs");
    let of = |field: &str| {
        said.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).unwrap_or_default().trim()
    };
    for capabilities in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert_eq!(of(capabilities), "0000000000000000", "{capabilities}");
    }
    // A filter, and no way to more rights (proc_pid_status(5)).
    assert_eq!((of("NoNewPrivs"), of("Seccomp")), ("1", "2"));
    let map = said.lines().last().unwrap_or_default();
    assert_eq!(map.split_whitespace().next(), Some("65532"), "{map}");
    assert!(nodewhy.get("/readyz").starts_with("HTTP/1.0 200"));

    assert!(Command::new("kill").arg(process).status().is_ok_and(|status| status.success()));
    wait_until(SOON, || nodewhy.process.log().contains("nodewhy ends").then_some(()));
    wait_until(SOON, || confined(nodewhy.process.id()).is_none().then_some(()));
    assert!(!nodewhy.process.log().contains("ERROR"), "{}", nodewhy.process.log());
}
