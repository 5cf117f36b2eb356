//! A program under the securityContext of a pod, without a container runtime: bubblewrap, and the seccomp profile that
//! containerd takes for `RuntimeDefault`.

use programs::sandbox;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// What a pod's container may, as its securityContext says it. It panics where that says something it does not know.
pub struct Confinement {
    uid: i64,
    gid: i64,
}

impl Confinement {
    /// Of a pod and its only container.
    pub fn of(pod: &Value) -> Self {
        let (pod, container) = (&pod["securityContext"], &pod["containers"][0]["securityContext"]);
        let known = serde_json::json!({
            "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": { "drop": ["ALL"] },
        });
        assert_eq!(container, &known);
        assert_eq!(pod["seccompProfile"], serde_json::json!({ "type": "RuntimeDefault" }));
        let id = |field: &str| pod[field].as_i64().expect("the pod says who it runs as");
        Self { uid: id("runAsUser"), gid: id("runAsGroup") }
    }

    /// A program in a file system of its own: what programs and libraries need, `/proc`, and the files of that folder
    /// where a pod has those of its ServiceAccount. All of it can only be read. `with_seccomp` is false to see what the
    /// profile is good for.
    pub fn command(&self, files: &Path, program: &Path, with_seccomp: bool) -> Command {
        let mut command = Command::new("sh");
        let seccomp = if with_seccomp { r#"--seccomp 9 "$@" 9<"$0""# } else { r#""$@""# };
        command
            .arg("-c")
            .arg(format!(r#"bwrap=$1; shift; exec "$bwrap" {seccomp}"#))
            .arg(sandbox::seccomp_profile())
            .arg(sandbox::bubblewrap());
        command
            .args(["--die-with-parent", "--unshare-user", "--cap-drop", "ALL"])
            .args(["--uid", &self.uid.to_string(), "--gid", &self.gid.to_string()])
            .args(["--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin"])
            .args(["--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--proc", "/proc"])
            .args(["--symlink", "../run", "/var/run"])
            .arg("--ro-bind")
            .arg(files)
            .arg("/run/secrets/kubernetes.io/serviceaccount")
            .arg("--ro-bind")
            .arg(program)
            .args(["/program", "--remount-ro", "/", "--unsetenv", "HOME", "--unsetenv", "KUBECONFIG", "/program"]);
        command
    }
}
