//! The program under test, beside the control plane.

use std::{
    io::{self, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::Command,
};

use super::{ControlPlane, Process, free_ports};

/// A running operator: dropped, it is killed; `process.terminate()` ends it as kubelet would.
#[must_use = "it is killed when it is dropped"]
pub struct Nodewhy {
    pub process: Process,
    /// Where it serves metrics and health on the loopback interface.
    pub port: u16,
}

impl Nodewhy {
    /// Head and body of what it answers; nothing where it does not.
    pub fn get(&self, path: &str) -> String {
        get(self.port, path).unwrap_or_default()
    }
}

/// Head and body of what a port of this machine answers.
pub fn get(port: u16, path: &str) -> io::Result<String> {
    let mut connection = TcpStream::connect(("127.0.0.1", port))?;
    write!(connection, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer)?;
    Ok(answer)
}

impl ControlPlane {
    /// Applies a kustomization of this project, and gives the rights of the ServiceAccount in it.
    pub fn install(&self, folder: &str) -> PathBuf {
        let manifests = crate::project().join(folder);
        self.kubectl(&["apply", "--server-side", "--kustomize", manifests.to_str().expect("a path in UTF-8")]);
        self.kubectl(&["wait", "--for=condition=Established", "crd/nodediagnoses.nodewhy.dev", "--timeout=120s"]);
        self.kubeconfig_for("nodewhy", "nodewhy")
    }

    /// Starts `nodewhy run` with the rights of that kubeconfig.
    pub fn nodewhy(&self, kubeconfig: &Path, arguments: &[&str]) -> Nodewhy {
        self.nodewhy_by(Command::new(crate::nodewhy()), kubeconfig, arguments)
    }

    /// The same by a command that becomes nodewhy, or has an environment of its own.
    pub fn nodewhy_by(&self, mut command: Command, kubeconfig: &Path, arguments: &[&str]) -> Nodewhy {
        let [port] = free_ports();
        command.env("KUBECONFIG", kubeconfig).arg("run").arg(format!("--listen=127.0.0.1:{port}")).args(arguments);
        Nodewhy { process: self.spawn(&format!("nodewhy-{port}"), &command), port }
    }
}
