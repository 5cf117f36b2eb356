//! Token and certificate authority are replaced, as kubelet replaces them in the files of a pod.

use super::{is_up, said_of, stuck, version};
use crate::cluster::life::{cluster, diagnosed, is_ready, refuse};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use testkit::control_plane::recipes::{SOON, wait_until};
use testkit::control_plane::{ControlPlane, Nodewhy};

/// Both files are read again once a minute.
const READ_AGAIN: Duration = Duration::from_secs(110);

/// Gives a program files where a pod has them; it sees a /run of its own.
const POD: &str = r#"
set -e
mount -t tmpfs none /run
mkdir -p /run/secrets/kubernetes.io/serviceaccount
mount --bind "$1" /run/secrets/kubernetes.io/serviceaccount
shift
unset KUBECONFIG
HOME=/nonexistent exec "$@"
"#;

fn in_a_pod(control_plane: &ControlPlane, files: &Path, server: &str) -> Nodewhy {
    let (host, port) = server.trim_start_matches("https://").split_once(':').expect("an address");
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", POD, "sh"]).arg(files).arg(env!("CARGO_BIN_EXE_nodewhy"));
    command.env("KUBERNETES_SERVICE_HOST", host).env("KUBERNETES_SERVICE_PORT", port);
    let mut nodewhy = control_plane.nodewhy_by(command, Path::new(""), &[]);
    let port = nodewhy.port;
    nodewhy.process.wait_until_ready(SOON, || TcpStream::connect(("127.0.0.1", port)).is_ok());
    wait_until(SOON, || is_ready(&nodewhy).then_some(()));
    nodewhy
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_token_and_a_new_authority_are_taken_up_from_their_files() {
    let (mut control_plane, rights) = cluster();
    let client = control_plane.client().await;
    let folder = tempfile::tempdir().expect("a folder");
    let (token, authority) = (folder.path().join("token"), folder.path().join("ca.crt"));
    let direct: serde_json::Value = serde_json::from_slice(&std::fs::read(&rights).unwrap()).unwrap();
    let cluster = &direct["clusters"][0]["cluster"];
    let (served, server) = (cluster["certificate-authority"].as_str().unwrap(), cluster["server"].as_str().unwrap());
    std::fs::copy(served, &authority).unwrap();
    std::fs::write(folder.path().join("namespace"), "nodewhy").unwrap();
    // A token is good as long as what it is bound to exists: the shortest that can be had by time is good for ten
    // minutes.
    control_plane.kubectl(&["create", "secret", "generic", "shift", "--namespace=nodewhy"]);
    let bound = [
        "create",
        "token",
        "nodewhy",
        "--namespace=nodewhy",
        "--bound-object-kind=Secret",
        "--bound-object-name=shift",
    ];
    std::fs::write(&token, control_plane.kubectl(&bound).trim()).unwrap();

    let nodewhy = in_a_pod(&control_plane, folder.path(), server);
    stuck(&control_plane, &client, &["general-before"]).await;
    let settled = version(&control_plane, "general-before");
    control_plane.kubectl(&["delete", "secret", "shift", "--namespace=nodewhy"]);
    control_plane.restart_apiserver(|folder| {
        for file in ["apiserver.crt", "apiserver.key"] {
            std::fs::remove_file(folder.join(file)).expect("it made them itself");
        }
    });
    wait_until(SOON, || said_of(&nodewhy, "nodes").contains("certificate").then_some(()));
    assert!(!is_up(&nodewhy, "nodes"));

    std::fs::copy(served, &authority).unwrap();
    std::fs::write(&token, control_plane.kubectl(&["create", "token", "nodewhy", "--namespace=nodewhy"]).trim())
        .unwrap();
    let since = Instant::now();
    refuse(&control_plane.client().await, &["general-meanwhile".to_owned()]).await;
    wait_until(READ_AGAIN, || diagnosed(&control_plane).contains("general-meanwhile").then_some(()));
    println!("taken up after {:.0?}", since.elapsed());
    wait_until(SOON, || is_up(&nodewhy, "nodes").then_some(()));
    assert!(is_ready(&nodewhy), "{}", nodewhy.get("/readyz"));
    assert_eq!(version(&control_plane, "general-before"), settled);
}
