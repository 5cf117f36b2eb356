//! amiFamily Custom, and user data in which nothing starts a kubelet or names a cluster.

use crate::explain::instance_questions::ask_the_instance;
use crate::rules::prelude::*;
use readers::userdata::Family;

rule! {
    cause: CustomUserDataJoinsNothing,
    summary: "The node class has amiFamily Custom, and its user data does other things than joining a cluster",
    stages: [Join],
    reads: [NodeClaims, NodeClasses, Deployments, AwsObservations],
    lint: true,
    versions: "all",
}

/// Every text that starts a kubelet has one of these words.
const JOINING: &[&str] =
    &["kube", "node", "eks", "bootstrap", "join", "register", "cluster", "settings", "ignition", "k3s", "rke"];

/// Commands that may run a text from elsewhere.
const ELSEWHERE: &[&str] = &[
    "curl",
    "wget",
    "aws",
    "git",
    "source",
    "eval",
    "sh",
    "bash",
    "python",
    "python3",
    "perl",
    "make",
    "docker",
    "ctr",
    "nerdctl",
    "tar",
    "base64",
    "ansible",
    "ansible-pull",
    "ansible-playbook",
    "puppet",
    "chef-client",
    "salt-call",
];

/// Words and marks that may precede a command.
const PREFIXES: &[&str] = &["sudo", "exec", "nohup", "time", "if", "then", "else", "do", "while", "!", "-", "{", "("];

/// Whether nodewhy can read every command of `text`, and none of them joins a cluster.
fn joins_nothing(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let readable = ["#!", "#cloud-config", "mime-version:", "content-type:"]
        .iter()
        .any(|start| lower.trim_start().starts_with(start));
    let encoded =
        lower.contains("base64") || lower.contains("b64") || lower.contains("gzip") || lower.contains("include");
    readable
        && !encoded
        && !JOINING.iter().any(|word| lower.contains(word))
        && !lower.lines().any(runs_what_is_not_here)
}

fn runs_what_is_not_here(line: &str) -> bool {
    if line.trim_start().starts_with('#') {
        return false;
    }
    line.contains("$(")
        || line.contains('`')
        || line.split([';', '&', '|']).any(|command| {
            let words = command.split_whitespace().map(|word| word.trim_matches(['[', ']', '"', '\'', ',']));
            words.skip_while(|word| PREFIXES.contains(word)).find(|word| !word.is_empty()).is_some_and(|word| {
                let name = word.trim_end_matches(':');
                word.starts_with(['/', '.', '$', '~']) || ELSEWHERE.contains(&name)
            })
        })
}

fn check(case: &Case) -> Option<Opinion> {
    let (claim, class, (user_data, text)) = (case.claim?, case.class()?, case.user_data()?);
    if class.family() != Some(Family::Custom) || text.trim().is_empty() {
        return None;
    }
    if !user_data.node_configs.is_empty() || !user_data.bootstrap_calls.is_empty() || !user_data.arguments.is_empty() {
        return None;
    }
    if !joins_nothing(text) {
        return None;
    }
    if let Some(joined) = case.same_spec_sibling_joined() {
        let because =
            format!("NodeClaim {} has joined with the same user data: its image joins by itself", joined.name());
        return Some(Opinion::ruled_out(joined, because));
    }
    let name = class.name();
    let object = format!("{}/{name}", class.kind);
    let image = class.status.amis.iter().find(|a| a.id == claim.status.image_id);
    let finding = Finding::new(
        // An image may hold its own bootstrap.
        Confidence::Likely,
        format!(
            "{} {name} has amiFamily Custom, so its userData is all that the machine is told, and nothing in it joins \
             a cluster: no NodeConfig, no bootstrap, no kubelet.",
            class.kind
        ),
        Evidence::new(
            &object,
            "spec.userData",
            format!("{} lines", text.lines().count()),
            "none of them starts a kubelet or names a cluster",
        ),
    )
    .with(Evidence::new(
        &object,
        "spec.amiFamily",
        class.family_name(),
        "for every other family Karpenter adds the bootstrap itself",
    ));
    let finding = match image {
        Some(image) => finding.with(Evidence::new(
            &object,
            "status.amis",
            format!("{} {}", image.id, image.name),
            "the image that waits for it",
        )),
        None => finding,
    };
    let finding = finding
        .blaming(Blame::class(class).field("spec.userData"))
        .fix(
            "Set amiFamily to what the image is built from, so that Karpenter adds the bootstrap to this user data, or \
             write it there: for AL2023 a NodeConfig with the cluster's name, endpoint, certificate and CIDR.",
        )
        .change(
            "Set spec.amiFamily, or add the NodeConfig to spec.userData",
            format!("kubectl edit {} {name}", class.kind.to_ascii_lowercase()),
        );
    ask_the_instance(case, finding).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_text_that_is_all_here_is_said_to_join_nothing() {
        assert!(joins_nothing(
            "#!/bin/bash\nset -e\nsysctl -w net.core.somaxconn=4096\ndnf install -y amazon-cloudwatch-agent\n"
        ));
        assert!(joins_nothing("#cloud-config\nruncmd:\n- [systemctl, enable, --now, amazon-ssm-agent]\n"));
        for text in [
            "#!/bin/bash\n/etc/eks/bootstrap.sh shop\n",
            "#!/bin/bash\n/opt/platform/setup\n",
            "#!/bin/bash\nset -e && /opt/platform/setup\n",
            "#!/bin/bash\naws s3 cp s3://platform/setup.sh - | sh\n",
            "#!/bin/bash\nRUN=$(cat /opt/platform/run)\n$RUN\n",
            "#cloud-config\nruncmd:\n- [/opt/platform/setup]\n",
            "#cloud-config\nruncmd:\n- [bash, /opt/platform/setup]\n",
            "[settings.kubernetes]\ncluster-name = \"shop\"\n",
            "H4sIAAAAAAAAA0vOSMzLS1UoSS0uUchIzEtRKC1OLdJVAAA=",
        ] {
            assert!(!joins_nothing(text), "{text}");
        }
    }
}
