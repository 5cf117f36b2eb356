//! The real Karpenter beside the control plane. Its kwok provider makes Node objects where another would start
//! machines.

use std::{
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    process::Command,
    time::Duration,
};

use serde_json::json;

use super::{ControlPlane, NEWEST_KARPENTER, Process, binaries, free_ports};
use crate::go::module_source;

/// Where Karpenter says it runs, and where the object `Deployment/karpenter` is.
const NAMESPACE: &str = "kube-system";

impl ControlPlane {
    /// Installs Karpenter's kinds and starts the controller of that version. It stops when the value is dropped.
    pub fn karpenter(&self, version: &str) -> Process {
        self.karpenter_with(version, &[])
    }

    /// The same with more in its environment.
    pub fn karpenter_with(&self, version: &str, environment: &[(&str, &str)]) -> Process {
        self.karpenter_crds(version);
        let source = module_source(&format!("sigs.k8s.io/karpenter@v{version}"));
        self.apply_crds(&source.join("kwok/apis/crds"));
        self.karpenter_deployment(version);
        self.controller(&format!("karpenter-{version}"), &binaries::karpenter(version), environment)
    }

    /// Installs the kinds of Karpenter's AWS provider and starts its controller, for the cluster `test` of the
    /// AWS at that address. It stops when the value is dropped.
    pub fn aws_karpenter(&self, aws: &str) -> Process {
        self.karpenter_crds(NEWEST_KARPENTER);
        self.ec2nodeclass_crd();
        let environment = [
            ("AWS_ENDPOINT_URL", aws),
            ("AWS_REGION", "eu-west-1"),
            ("AWS_ACCESS_KEY_ID", "AKIATESTTESTTESTTEST"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("CLUSTER_ENDPOINT", &self.endpoint),
            // Else each launch is rehearsed first.
            ("DISABLE_DRY_RUN", "true"),
        ];
        self.controller("karpenter-aws", &binaries::aws_karpenter(), &environment)
    }

    fn controller(&self, name: &str, program: &Path, environment: &[(&str, &str)]) -> Process {
        let [metrics_port, health_port] = free_ports();
        let mut command = Command::new(program);
        command
            .env("KUBECONFIG", self.kubeconfig())
            .env("SYSTEM_NAMESPACE", NAMESPACE)
            .env("KARPENTER_SERVICE", "karpenter")
            .env("CLUSTER_NAME", "test")
            .env("DISABLE_LEADER_ELECTION", "true")
            .env("METRICS_PORT", metrics_port.to_string())
            .env("HEALTH_PROBE_PORT", health_port.to_string())
            // Karpenter 1.0.x converts v1beta1 objects in a webhook; later versions do not know this variable.
            .env("DISABLE_WEBHOOK", "true")
            .envs(environment.iter().copied());
        let mut process = self.spawn(name, &command);
        process.wait_until_ready(Duration::from_mins(1), || is_ready(health_port));
        process
    }

    /// Installs Karpenter's kinds only: the test says what Karpenter would.
    pub fn karpenter_crds(&self, version: &str) {
        let source = module_source(&format!("sigs.k8s.io/karpenter@v{version}"));
        self.apply_crds(&source.join("pkg/apis/crds"));
    }

    /// Installs the kind `EC2NodeClass` of Karpenter's AWS provider.
    pub fn ec2nodeclass_crd(&self) {
        let source = module_source(&format!("github.com/aws/karpenter-provider-aws@v{NEWEST_KARPENTER}"));
        self.apply_crds(&source.join("pkg/apis/crds/karpenter.k8s.aws_ec2nodeclasses.yaml"));
    }

    /// The Deployment as the AWS chart makes it, with the version in the image's tag. No pod comes of it: there is no
    /// scheduler here.
    fn karpenter_deployment(&self, version: &str) {
        let labels = json!({ "app.kubernetes.io/name": "karpenter" });
        self.apply(json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": { "name": "karpenter", "namespace": NAMESPACE, "labels": labels },
            "spec": {
                "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": { "containers": [{ "name": "controller", "image": format!("public.ecr.aws/karpenter/controller:{version}") }] },
                },
            },
        }));
    }
}

fn is_ready(port: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return false };
    let mut answer = String::new();
    write!(stream, "GET /readyz HTTP/1.0\r\n\r\n").is_ok()
        && stream.read_to_string(&mut answer).is_ok()
        && answer.contains(" 200 ")
}
