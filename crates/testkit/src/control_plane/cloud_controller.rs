//! The real cloud controller of AWS beside the control plane.

use std::{fs, path::Path, process::Command};

use super::{ControlPlane, Process, binaries, flag, free_ports};

/// Where its cluster is said, it does not ask the instance that it runs on.
/// Source: kubernetes/cloud-provider-aws v1.37.1 pkg/providers/v1/aws.go `newAWSCloud2`.
const CONFIG: &str = "[Global]\nRegion = eu-west-1\nVPC = vpc-1\nSubnetID = subnet-1\nKubernetesClusterID = test\n";

impl ControlPlane {
    /// Starts the part of it that initializes Nodes, for the AWS at that address and with the rights of that
    /// kubeconfig. So many Nodes at a time; it is killed when the value is dropped.
    pub fn cloud_controller(&self, aws: &str, kubeconfig: &Path, workers: u8) -> Process {
        let config = self.folder.path().join("cloud.conf");
        fs::write(&config, CONFIG).expect("the folder is writable");
        let mut command = Command::new(binaries::cloud_controller());
        command
            .env("AWS_ENDPOINT_URL", aws)
            .env("AWS_REGION", "eu-west-1")
            .env("AWS_ACCESS_KEY_ID", "AKIATESTTESTTESTTEST")
            .env("AWS_SECRET_ACCESS_KEY", "secret")
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .arg(flag("kubeconfig", kubeconfig))
            .arg(flag("cloud-config", &config))
            .arg(flag("concurrent-node-syncs", workers.to_string()))
            .args([
                "--cloud-provider=aws",
                "--controllers=cloud-node-controller",
                "--leader-elect=false",
                "--secure-port=0",
            ]);
        let [number] = free_ports();
        self.spawn(&format!("cloud-controller-{number}"), &command)
    }
}
