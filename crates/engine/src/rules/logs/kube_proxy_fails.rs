//! kube-proxy's log says why it exits, or why it cannot write its rules.

use crate::explain::logged;
use crate::rules::prelude::*;
use logs::fact::Trouble;

rule! {
    cause: KubeProxyFails,
    summary: "kube-proxy logged why it exits or cannot write its rules: a missing kernel module, failing nft or \
              iptables, a rejected configuration, or no inotify instance",
    stages: [Initialize, Ready],
    reads: [Nodes, NodeClasses, Pods, Logs],
    versions: "all; seen only in logs",
}

fn check(case: &Case) -> Option<Opinion> {
    let root = logged::root(case, &[Trouble::KubeProxyFails])?;
    let says = |name: &str| root.fact.names.contains_key(name);
    // These two go on and try again; the others end kube-proxy.
    if (says("rules") || says("module")) && !root.fact.lasts() {
        return None;
    }
    let (blame, fix) = if says("rules") {
        let set = Blame::object("apps/v1", "DaemonSet", "kube-proxy").namespace("kube-system");
        (
            Some(set),
            "Upgrade kube-proxy, because its image contains the nft or iptables that fails. Its pods restart, which \
             disrupts no workload. Until then, set another mode of kube-proxy. Or remove from the node the rules \
             that this nft or iptables cannot read, such as tables that a newer nft created in another pod or in user \
             data.",
        )
    } else if says("configuration") {
        // The add-on of EKS keeps it in a ConfigMap of this name; its kubeconfig stands in `kube-proxy`.
        let config =
            Blame::object("v1", "ConfigMap", "kube-proxy-config").namespace("kube-system").field("data.config");
        (
            Some(config),
            "Correct the setting that the line names in kube-proxy's configuration. For the EKS add-on, use its \
             configuration values. Then restart kube-proxy's pods, which disrupts no workload.",
        )
    } else if says("files") {
        // Source: man7.org inotify(7), `max_user_instances` and EMFILE.
        (
            case.class_field("spec.userData"),
            "Raise the limit in user data, for example sysctl -w fs.inotify.max_user_instances=8192, and replace the \
             node. On this node the same command helps at once. Also find the pods of root that use up the instances.",
        )
    } else {
        let image = case.class_field("spec.amiSelectorTerms");
        (
            image,
            "Use an image whose kernel has what the line names, load the module in user data, or set another mode of \
             kube-proxy.",
        )
    };
    let finding = root.finding(case).fix(fix).inspect(
        "See kube-proxy's pod on this node",
        case.node.map(|node| {
            format!("kubectl get pods -n kube-system -o wide --field-selector spec.nodeName={}", node.name())
        }),
    );
    finding.blaming(blame).into()
}
