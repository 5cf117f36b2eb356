//! kube-proxy's log says why it ends, or why it cannot write its rules.

use crate::api::{Blame, Risk, Stage};
use crate::case::Case;
use crate::case::finding::Opinion;
use crate::objects::input::Input;
use crate::rules::Rule;
use crate::rules::shared::logged;
use logs::fact::Trouble;

pub static RULE: Rule = Rule {
    cause: "KubeProxyFails",
    summary: "kube-proxy logged why it ends, or that it cannot write its rules: the kernel lacks a module, nft or iptables fails, its configuration is refused",
    stages: &[Stage::Initialize, Stage::Ready],
    reads: &[Input::Nodes, Input::NodeClasses, Input::Pods, Input::Logs],
    lint: false,
    versions: "all; seen only in logs",
    page: include_str!("../../../pages/KubeProxyFails.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let Some(root) = logged::root(case, &[Trouble::KubeProxyFails]) else { return Opinion::Silent };
    let says = |name: &str| root.fact.names.contains_key(name);
    if says("rules") && !root.fact.lasts() {
        return Opinion::Silent;
    }
    let (blame, fix) = if says("rules") {
        let set = Blame::object("apps/v1", "DaemonSet", "kube-proxy").namespace("kube-system");
        (
            Some(set),
            "Upgrade kube-proxy: its image holds the nft or iptables that fails. Until then take away from the machine what that one cannot read, such as tables that a newer nft of another pod or of user data has made, or let kube-proxy work in another mode.",
        )
    } else if says("configuration") {
        // The add-on of EKS keeps it in a ConfigMap of this name; its kubeconfig stands in `kube-proxy`.
        let config =
            Blame::object("v1", "ConfigMap", "kube-proxy-config").namespace("kube-system").field("data.config");
        (
            Some(config),
            "Correct what the line names in the configuration of kube-proxy; of the add-on, by its configuration values.",
        )
    } else {
        let image = case.class_field("spec.amiSelectorTerms");
        (
            image,
            "Use an image whose kernel has what the line names, load the module in user data, or let kube-proxy work in another mode.",
        )
    };
    let finding = root.finding(case).fix(fix).step(
        Risk::Inspect,
        "See kube-proxy's pod on this machine",
        case.node.map(|node| {
            format!("kubectl get pods -n kube-system -o wide --field-selector spec.nodeName={}", node.name())
        }),
    );
    finding.blaming(blame).into()
}
