//! nodeadm, as Amazon Linux 2023 runs it: its packages are internal, so that our question is built inside a copy of its
//! module.

use std::{collections::BTreeMap, process::Command};

use readers::userdata::{DefectKind, Family, Fate, Setting, read};
use serde::Deserialize;
use serde_json::Value;

use testkit::compare::{Random, ask, compare};
use testkit::programs::oracles;

#[derive(Debug, Deserialize)]
struct Answer {
    error: String,
    config: Option<Value>,
}

fn answers(texts: &[String]) -> Vec<Answer> {
    ask(&mut Command::new(oracles::nodeadm()), texts)
}

/// What of a `NodeConfig` we read too: the cluster's name, the flags in one line, and scalar fields of the kubelet's
/// configuration.
#[derive(Debug, Clone, PartialEq)]
struct Read {
    cluster: String,
    flags: Vec<String>,
    max_pods: Option<String>,
    taints: Option<String>,
}

fn theirs(answer: Answer) -> Option<Read> {
    let config = answer.config.filter(|_| answer.error.is_empty())?;
    let spec = &config["spec"];
    let fields = &spec["kubelet"]["config"];
    let taint = |taint: &Value| {
        let part = |key: &str| taint[key].as_str().unwrap_or_default().to_owned();
        format!("{}={}:{}", part("key"), part("value"), part("effect"))
    };
    let taints = fields.get("registerWithTaints").filter(|taints| !taints.is_null());
    Some(Read {
        cluster: spec["cluster"]["name"].as_str().unwrap_or_default().to_owned(),
        flags: spec["kubelet"]["flags"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|flag| flag.as_str().unwrap().to_owned())
            .collect(),
        max_pods: fields.get("maxPods").map(ToString::to_string),
        taints: taints.map(|taints| taints.as_array().into_iter().flatten().map(taint).collect::<Vec<_>>().join(",")),
    })
}

fn ours(text: &str) -> Option<Read> {
    let data = read(text, Family::Custom);
    let refused = |kind| {
        use DefectKind as D;
        matches!(
            kind,
            D::MimeUnreadable
                | D::NodeConfigUnreachable
                | D::NodeConfigUnreadable
                | D::NodeConfigWrongKind
                | D::NodeConfigWrongType
        )
    };
    if data.node_configs.is_empty() || data.defects.iter().any(|defect| refused(defect.kind)) {
        return None;
    }
    let fields: BTreeMap<&str, &str> = data
        .arguments
        .iter()
        .filter(|argument| matches!(argument.setting, Setting::Field(_)) && !matches!(argument.fate, Fate::Lost(_)))
        .map(|argument| (argument.name(), argument.value.as_str()))
        .collect();
    Some(Read {
        cluster: data
            .node_configs
            .iter()
            .rev()
            .find_map(|c| c.cluster_name.as_ref())
            .map(|name| name.value.clone())
            .unwrap_or_default(),
        flags: data
            .arguments
            .iter()
            .filter(|argument| matches!(argument.setting, Setting::Flag(_)))
            .map(|argument| format!("--{}={}", argument.name(), argument.value))
            .collect(),
        max_pods: fields.get("maxPods").map(|&value| value.to_owned()),
        taints: fields.get("registerWithTaints").map(|&value| value.to_owned()),
    })
}

const HEADS: &[&str] = &[
    "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n",
    "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n",
    "kind: NodeConfig\napiVersion: \"node.eks.aws/v1alpha1\"\n",
    "---\n# a comment\napiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n",
    "apiVersion: node.eks.aws/v1\nkind: NodeConfig\n",
    "apiVersion: node.eks.aws/v1alpha1\nkind: NodeClass\n",
    "apiVersion: node.eks.aws/v1alpha1\n",
];

const CLUSTERS: &[&str] = &[
    "",
    "  cluster: {name: prod}\n",
    "  cluster:\n    name: 'other'\n",
    "  cluster:\n    name: 12\n",
    "  cluster: null\n",
    "  cluster: []\n",
    "  cluster: {NAME: upper}\n",
];

const KUBELETS: &[&str] = &[
    "",
    "  kubelet:\n    flags: [--v=2]\n",
    "  kubelet:\n    flags:\n    - \"--node-labels=a=b\"\n    - --max-pods=3\n",
    "  kubelet:\n    flags: --v=2\n",
    "  kubelet:\n    flags: [--v=2, 3]\n",
    "  kubelet:\n    flags: null\n",
    "  kubelet:\n    flags: [true]\n",
    "  kubelet:\n    config: {maxPods: 58}\n",
    "  kubelet:\n    config:\n      maxPods: 10\n      registerWithTaints:\n      - \
     {key: a, value: b, effect: NoSchedule}\n      - key: c\n        effect: NoExecute\n",
    "  kubelet:\n    config: {registerWithTaints: [], maxPods: 1}\n",
    "  kubelet:\n    config: maxPods\n",
    "  kubelet:\n    config: []\n",
    "  kubelet:\n    config:\n      maxPods: 10\n    flags: [--register-with-taints=x:NoSchedule]\n",
    "  kubelet: {}\n",
    "  kubelet: null\n",
    "  featureGates: {InstanceIdNodeName: true}\n",
    "  featureGates: {InstanceIdNodeName: \"true\"}\n",
    "  featureGates: [InstanceIdNodeName]\n",
    "  kubelet:\n\tconfig: {}\n",
    "  kubelet:\n    unknown: 1\n",
    "  Kubelet:\n    flags: [--v=9]\n",
];

fn documents(random: &mut Random) -> String {
    let (head, cluster, kubelet) = (random.pick(HEADS), random.pick(CLUSTERS), random.pick(KUBELETS));
    if cluster.is_empty() && kubelet.is_empty() { head.to_owned() } else { format!("{head}spec:\n{cluster}{kubelet}") }
}

#[test]
fn node_configs_are_read_and_merged_alike() {
    let mut random = Random::new();
    let texts: Vec<String> = (0..4_000)
        .map(|_| {
            if random.below(3) == 0 {
                return documents(&mut random);
            }
            let mut archive = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"B\"\n\n".to_owned();
            for _ in 0..=random.below(2) {
                let kind = random.pick(&[
                    "application/node.eks.aws",
                    "application/node.eks.aws",
                    "application/node.eks.aws; charset=utf-8",
                    "text/x-shellscript",
                ]);
                archive += &["--B\nContent-Type: ", kind, "\n\n", &documents(&mut random)].concat();
            }
            archive + "--B--\n"
        })
        .collect();
    let theirs: Vec<_> = answers(&texts).into_iter().map(theirs).collect();
    assert!(theirs.iter().flatten().count() > 500, "many cases are read");
    compare(&texts, &theirs, |text, _| Some(ours(text))).agrees(3_000);
    compare(&texts, &theirs, |text, _| {
        Some(ours(
            &text.replace("--B\nContent-Type: text/x-shellscript", "--B\nContent-Type: application/node.eks.aws"),
        ))
    })
    .finds_the_mistake();
    compare(&texts, &theirs, |text, _| Some(ours(&text.replace("effect: NoExecute", "effect: NoSchedule"))))
        .finds_the_mistake();
}
