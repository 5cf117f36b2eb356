//! The program under test, beside the control plane.

use std::{path::Path, process::Command};

use super::{ControlPlane, Process, free_ports};

/// A running operator: dropped, it is killed; `process.terminate()` ends it as kubelet would.
pub struct Nodewhy {
    pub process: Process,
    /// Where it serves metrics and health on the loopback interface.
    pub port: u16,
}

impl ControlPlane {
    /// Starts `nodewhy run` with the rights of that kubeconfig.
    pub fn nodewhy(&self, kubeconfig: &Path, arguments: &[&str]) -> Nodewhy {
        self.nodewhy_by(Command::new(env!("CARGO_BIN_EXE_nodewhy")), kubeconfig, arguments)
    }

    /// The same by a command that becomes nodewhy, or has an environment of its own.
    pub fn nodewhy_by(&self, mut command: Command, kubeconfig: &Path, arguments: &[&str]) -> Nodewhy {
        let [port] = free_ports();
        command.env("KUBECONFIG", kubeconfig).arg("run").arg(format!("--listen=127.0.0.1:{port}")).args(arguments);
        Nodewhy { process: self.spawn(&format!("nodewhy-{port}"), &command), port }
    }
}
