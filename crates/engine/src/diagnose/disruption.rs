//! What a fix does to running pods, in words: from the commands of its steps, and from the object to change.

use super::in_service::{Compared, compared_with};
use crate::api::{Blame, FixStep, Risk, Text};
use crate::cluster_state::ClusterState;
use crate::objects::DaemonSet;
use crate::objects::input::Input;
use crate::upstream::former_words::present_kind;
use crate::upstream::karpenter::{Karpenter, Version};

/// What happens to running pods if somebody changes an object of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// Its controller replaces its pods.
    RestartsItsPods,
    /// Karpenter compares its nodes with it.
    /// Source: core pkg/controllers/nodeclaim/disruption/drift.go, karpenter-provider-aws pkg/cloudprovider/drift.go
    /// (v1.14.1).
    MayReplaceNodes,
    LetsEvictionsPass,
    RestartsNothing,
}

const KINDS: &[(&str, Change)] = &[
    ("DaemonSet", Change::RestartsItsPods),
    ("Deployment", Change::RestartsItsPods),
    ("StatefulSet", Change::RestartsItsPods),
    ("NodePool", Change::MayReplaceNodes),
    ("Provisioner", Change::MayReplaceNodes),
    ("EC2NodeClass", Change::MayReplaceNodes),
    ("NodeClass", Change::MayReplaceNodes),
    ("AWSNodeTemplate", Change::MayReplaceNodes),
    ("PodDisruptionBudget", Change::LetsEvictionsPass),
    ("ConfigMap", Change::RestartsNothing),
    ("ServiceAccount", Change::RestartsNothing),
    ("ClusterRole", Change::RestartsNothing),
    ("ResourceQuota", Change::RestartsNothing),
    ("PriorityClass", Change::RestartsNothing),
    ("StorageClass", Change::RestartsNothing),
    ("ENIConfig", Change::RestartsNothing),
    ("CiliumPodIPPool", Change::RestartsNothing),
    ("CRD", Change::RestartsNothing),
    ("CustomResourceDefinition", Change::RestartsNothing),
    ("ValidatingWebhookConfiguration", Change::RestartsNothing),
    ("MutatingWebhookConfiguration", Change::RestartsNothing),
    ("ValidatingAdmissionPolicy", Change::RestartsNothing),
    ("IAMRole", Change::RestartsNothing),
    ("InstanceProfile", Change::RestartsNothing),
    ("EKSAccessEntry", Change::RestartsNothing),
    ("KMSKey", Change::RestartsNothing),
    ("ServiceQuota", Change::RestartsNothing),
    ("ServiceControlPolicy", Change::RestartsNothing),
];

/// What a change does to running pods.
#[derive(Debug, PartialEq, Eq)]
enum Effect<'f> {
    /// Karpenter may replace the nodes of this object.
    Drift { kind: &'f str, name: &'f str },
    /// Pods stay where they are, as a sentence.
    Harmless(String),
    /// Anything else, as a sentence.
    Said(String),
}

/// One sentence for each object that the steps change. If they only read, or only keep pods away, one about the change
/// of the blamed object that the advice tells in words. The first sentence is about the first change. Later steps that
/// harm no pods have none.
pub fn of_fix(advice: &str, steps: &[FixStep], blame: Option<&Blame>, cluster: &ClusterState) -> Option<Text> {
    let acting = || steps.iter().filter(|step| step.risk != Risk::Inspect);
    let is_all_in_words = acting().all(|step| cordoned(step).is_some());
    let in_advice = blame.filter(|_| is_all_in_words).and_then(|blame| of_advice(advice, blame, cluster));
    let mut effects: Vec<Effect<'_>> = Vec::new();
    for step in acting() {
        let effect = match cordoned(step).filter(|_| in_advice.is_some()) {
            Some(node) => Effect::Said(format!("After the cordon, running pods on Node {node} {AFTER_CORDON}.")),
            None => of_step(step, blame, cluster),
        };
        if !effects.contains(&effect) {
            effects.push(effect);
        }
    }
    effects.splice(..0, in_advice);
    let harms = |effect: &Effect<'_>| !matches!(effect, Effect::Harmless(_));
    let mut is_first = true;
    effects.retain(|effect| std::mem::take(&mut is_first) || harms(effect));
    (!effects.is_empty()).then(|| in_words(effects).into())
}

const AFTER_CORDON: &str = "stay, and no new pods start there";

/// The Node that a step cordons. That repairs nothing.
fn cordoned(step: &FixStep) -> Option<&str> {
    step.command.as_deref()?.strip_prefix("kubectl cordon ")
}

/// What the advice does, if it is about the blamed object. It is not if it says to look or to wait, or to install what
/// is not there.
fn of_advice<'f>(advice: &str, blame: &'f Blame, cluster: &ClusterState) -> Option<Effect<'f>> {
    let is_absent = || {
        cluster.missing(Input::DaemonSets).is_none()
            && !cluster.daemon_sets().any(|set| set.metadata.name == *blame.name)
    };
    if only_looks(advice) || blame.kind == "DaemonSet" && (advice.starts_with("Install ") || is_absent()) {
        return None;
    }
    of_change(&blame.kind, &blame.name, blame.field.as_deref(), cluster)
}

/// Whether every part of an advice says to look, to wait or to ask AWS.
fn only_looks(advice: &str) -> bool {
    const VERBS: [&str; 9] = ["ask", "check", "compare", "find", "look", "name", "read", "see", "wait"];
    let looks = |part: &str| {
        let first = part.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default().to_ascii_lowercase();
        VERBS.contains(&first.as_str()) || part.contains("support case")
    };
    let sentences = advice.split(". ").filter(|sentence| !sentence.is_empty());
    let mut parts = sentences.flat_map(|sentence| sentence.split(" or ")).flat_map(|part| part.split(" and "));
    !advice.is_empty() && parts.all(looks)
}

/// One sentence about all objects that Karpenter compares its nodes with, in place of the first of them.
fn in_words(effects: Vec<Effect<'_>>) -> String {
    let drifting: Vec<String> = effects.iter().filter_map(drifting).collect();
    let mut words = String::new();
    for effect in effects {
        let sentence = match effect {
            Effect::Harmless(sentence) | Effect::Said(sentence) => sentence,
            Effect::Drift { .. } => format!(
                "A change of {} makes Karpenter replace running nodes (drift), so their pods move.",
                drifting.join(" and ")
            ),
        };
        if words.is_empty() {
            words = sentence;
        } else if !words.contains(&sentence) {
            words.push(' ');
            words.push_str(&sentence);
        }
    }
    words
}

fn drifting(effect: &Effect<'_>) -> Option<String> {
    let Effect::Drift { kind, name } = effect else { return None };
    Some(format!("{kind} {name}"))
}

fn of_step<'f>(step: &'f FixStep, blame: Option<&'f Blame>, cluster: &ClusterState) -> Effect<'f> {
    let known = step.command.as_deref().and_then(|command| of_command(command, blame, cluster));
    known.unwrap_or_else(|| {
        let what = match step.risk {
            Risk::Inspect => "only reads",
            Risk::LowRisk => "touches no running pods",
            Risk::Mutating => "changes something that running pods may depend on",
            Risk::Destructive => "deletes something for good",
        };
        let text = step.text.split(". ").next().unwrap_or_default().trim_end_matches('.');
        let sentence = format!("The step \"{text}\" {what}.");
        if step.risk <= Risk::LowRisk { Effect::Harmless(sentence) } else { Effect::Said(sentence) }
    })
}

/// The words of a command that are no flags, and no values of flags.
fn words(command: &str) -> Vec<&str> {
    const WITH_VALUE: [&str; 6] = ["-n", "-l", "-p", "-f", "--type", "--field-selector"];
    let mut words = Vec::new();
    let mut all = command.split_whitespace();
    while let Some(word) = all.next() {
        if WITH_VALUE.contains(&word) {
            all.next();
        } else if !word.starts_with('-') {
            words.push(word);
        }
    }
    words
}

fn of_command<'f>(command: &'f str, blame: Option<&'f Blame>, cluster: &ClusterState) -> Option<Effect<'f>> {
    let words = words(command);
    let (&program, &verb) = (words.first()?, words.get(1)?);
    if program == "aws" && matches!(verb, "iam" | "eks" | "service-quotas") {
        return Some(Effect::Harmless("The calls to AWS restart no pods.".to_owned()));
    }
    if program != "kubectl" {
        return None;
    }
    let objects = words.get(2..)?;
    let sentence = match verb {
        "uncordon" => return Some(frees(objects.first()?)),
        "cordon" => {
            let node = objects.first()?;
            return Some(Effect::Harmless(format!("Running pods on Node {node} {AFTER_CORDON}.")));
        }
        "drain" => format!("Evicts the pods of Node {}.", objects.first()?),
        "taint" => return of_taint(objects.get(1)?, objects.get(2)?),
        "annotate" => {
            let (kind, name) = object(objects)?;
            let sentence = format!("A new annotation of {} {name} restarts no pods.", known(kind)?.0);
            return Some(Effect::Harmless(sentence));
        }
        "rollout" | "set" => {
            let (kind, name) = object(objects.get(1..)?)?;
            let kind = known(kind)?.0;
            if daemon_set(kind, name, cluster).is_some_and(DaemonSet::waits_for_deletion) {
                return of_change(kind, name, None, cluster);
            }
            format!("Restarts the pods of {kind} {name}{}", on_nodes(kind, name, cluster))
        }
        "edit" | "patch" | "scale" if command.contains("finalizers") => {
            "Without the finalizer, the cleanup that it guards is skipped.".to_owned()
        }
        "edit" | "patch" | "scale" => {
            let (kind, name) = object(objects)?;
            let &(kind, _) = known(kind)?;
            let is_blamed = |blame: &&Blame| blame.kind == kind && blame.name == name;
            let of_blame = || blame.filter(is_blamed).and_then(|blame| blame.field.as_deref());
            return of_change(kind, name, patched(command).or_else(of_blame), cluster);
        }
        "delete" => return of_deletion(objects),
        "apply" if command.contains("/crds/") => {
            let definition = blame.filter(|blame| blame.kind == "CustomResourceDefinition")?;
            return of_change(&definition.kind, &definition.name, None, cluster);
        }
        _ => return None,
    };
    Some(Effect::Said(sentence))
}

fn frees(node: &str) -> Effect<'static> {
    Effect::Harmless(format!("Running pods on Node {node} stay, and new pods can start there."))
}

fn of_taint(node: &str, taint: &str) -> Option<Effect<'static>> {
    if taint.ends_with('-') {
        return Some(frees(node));
    }
    taint.ends_with(":NoExecute").then(|| Effect::Said(format!("Evicts the pods of Node {node}.")))
}

fn of_deletion(objects: &[&str]) -> Option<Effect<'static>> {
    let kind = objects.first()?.split('/').next()?;
    let named = object(objects);
    let sentence = match (kind, named) {
        ("nodeclaim" | "machine", Some((_, name))) => format!(
            "Replaces the node of {} {name}, so its pods move.",
            if kind == "machine" { "Machine" } else { "NodeClaim" }
        ),
        ("node", Some((_, name))) => format!("Deletes Node {name}, so its pods move."),
        ("pod", Some((_, name))) => format!("Ends pod {name}, and its controller creates a new one."),
        ("pod", None) => "Ends the pods that the command selects, and their controller creates new ones.".to_owned(),
        (_, Some((kind, name))) => {
            let (kind, Change::RestartsNothing) = known(kind)? else { return None };
            return Some(Effect::Harmless(format!("The deletion of {kind} {name} restarts no pods.")));
        }
        _ => return None,
    };
    Some(Effect::Said(sentence))
}

/// `daemonset aws-node` or `daemonset/aws-node`.
fn object<'c>(words: &[&'c str]) -> Option<(&'c str, &'c str)> {
    let first = words.first()?;
    first.split_once('/').or_else(|| Some((first, *words.get(1)?)))
}

/// The kind that kubectl means with a word: `ec2nodeclass`, `poddisruptionbudgets`.
fn known(word: &str) -> Option<&'static (&'static str, Change)> {
    let singular = |name: &str| name.trim_end_matches('s').to_ascii_lowercase();
    KINDS.iter().find(|(kind, _)| singular(kind) == singular(word))
}

fn of_change<'f>(kind: &'f str, name: &'f str, field: Option<&str>, cluster: &ClusterState) -> Option<Effect<'f>> {
    let (_, change) = KINDS.iter().find(|(known, _)| *known == kind)?;
    let sentence = match change {
        Change::MayReplaceNodes => return Some(of_template(kind, name, field, cluster)),
        Change::RestartsItsPods if daemon_set(kind, name, cluster).is_some_and(DaemonSet::waits_for_deletion) => {
            return Some(Effect::Harmless(format!(
                "A change of {kind} {name} restarts no pods (its updateStrategy is OnDelete). Each pod gets the change \
                 once you delete it."
            )));
        }
        Change::RestartsItsPods => {
            format!("A change of {kind} {name} restarts its pods{}", on_nodes(kind, name, cluster))
        }
        Change::LetsEvictionsPass => {
            format!("After a change of {kind} {name}, the evictions that it blocks proceed.")
        }
        Change::RestartsNothing if kind == "ConfigMap" && name == "aws-auth" => {
            format!("A change of {kind} {name} restarts no pods, but a mistake in it locks out nodes and users.")
        }
        Change::RestartsNothing => {
            return Some(Effect::Harmless(format!("A change of {kind} {name} restarts no pods.")));
        }
    };
    Some(Effect::Said(sentence))
}

/// The DaemonSet of that name. Two of one name are in two namespaces, so neither is meant for sure.
fn daemon_set<'s>(kind: &str, name: &str, cluster: &'s ClusterState) -> Option<&'s DaemonSet> {
    if kind != "DaemonSet" {
        return None;
    }
    let mut sets = cluster.daemon_sets().filter(|set| set.metadata.name == *name);
    let (Some(set), None) = (sets.next(), sets.next()) else { return None };
    Some(set)
}

/// How the sentence about the pods of an object ends: on how many Nodes a DaemonSet has them, as far as its status was
/// read.
fn on_nodes(kind: &str, name: &str, cluster: &ClusterState) -> String {
    let set = daemon_set(kind, name, cluster);
    let nodes = match set.map_or(0, |set| set.status.desired_number_scheduled) {
        0 => return ".".to_owned(),
        1 => "1 node".to_owned(),
        nodes => format!("{nodes} nodes"),
    };
    format!(" on {nodes}.")
}

/// The field of a NodePool that a patch sets, if Karpenter does not compare nodes with it.
fn patched(command: &str) -> Option<&'static str> {
    let sets = |field: &str| command.contains(&format!("\"spec\":{{\"{field}\""));
    if sets("limits") {
        return Some("spec.limits");
    }
    sets("disruption").then_some("spec.disruption")
}

/// A change of what Karpenter launches nodes from, and compares them with.
fn of_template<'f>(kind: &'f str, name: &'f str, field: Option<&str>, cluster: &ClusterState) -> Effect<'f> {
    // Karpenter hashes the template only, and compares requirements that are below it too.
    // Source: core pkg/apis/v1/nodepool.go `Hash` (v1.14.1).
    let is_beside =
        |field: &&str| ["spec.limits", "spec.weight", "spec.disruption"].iter().any(|f| field.starts_with(f));
    if let Some(field) = field.filter(is_beside) {
        return Effect::Harmless(format!("A change of {field} of {kind} {name} restarts no pods."));
    }
    let compared = compared_with(cluster, present_kind(kind), name);
    if compared == Compared::NoneJoined {
        let sentence = format!("No node of {kind} {name} has joined yet, so a change of it moves no pods.");
        return Effect::Harmless(sentence);
    }
    if !drifts(cluster.karpenter()) {
        return Effect::Said(format!(
            "A change of {kind} {name} replaces running nodes only if Karpenter's feature gate Drift is on."
        ));
    }
    Effect::Said(match (field.and_then(|field| of_some(kind, field)), compared) {
        (Some(that), Compared::InService(nodes)) => {
            let count = if nodes == 1 { "1 node".to_owned() } else { format!("{nodes} nodes") };
            format!(
                "A change of {kind} {name} makes Karpenter replace only nodes {that} (drift). The {kind} has {count} \
                 in service."
            )
        }
        (Some(that), _) => {
            format!("A change of {kind} {name} makes Karpenter replace only nodes {that} (drift).")
        }
        (None, Compared::InService(1)) => {
            format!(
                "A change of {kind} {name} makes Karpenter replace its 1 node in service (drift), so its pods move."
            )
        }
        (None, Compared::InService(nodes)) => format!(
            "A change of {kind} {name} makes Karpenter replace its {nodes} nodes in service (drift), so their pods \
             move."
        ),
        (None, Compared::OutOfService) => {
            format!("A change of {kind} {name} makes Karpenter replace its nodes (drift), but none is in service.")
        }
        (None, Compared::Uncounted | Compared::NoneJoined) => return Effect::Drift { kind, name },
    })
}

/// Which nodes a change of this field replaces, if it does not replace all of them.
/// Sources: core pkg/apis/v1/nodepool.go `Requirements` is `hash:"ignore"`, and
/// pkg/controllers/nodeclaim/disruption/drift.go `areRequirementsDrifted` compares the labels (v1.14.1);
/// karpenter-provider-aws pkg/apis/v1/ec2nodeclass.go `SubnetSelectorTerms` is `hash:"ignore"`, and
/// pkg/cloudprovider/drift.go `isSubnetDrifted` compares the node's own subnet (v1.14.1).
fn of_some(kind: &str, field: &str) -> Option<&'static str> {
    let begins = |names: [&str; 2]| names.iter().any(|name| field.starts_with(name));
    match present_kind(kind) {
        "NodePool" if begins(["spec.template.spec.requirements", "spec.requirements"]) => {
            Some("whose labels no longer fit its requirements")
        }
        "EC2NodeClass" if begins(["spec.subnetSelectorTerms", "spec.subnetSelector"]) => {
            Some("in subnets that the class no longer selects")
        }
        _ => None,
    }
}

/// Whether this Karpenter replaces nodes that drifted.
/// Source: core pkg/operator/options/options.go: `Drift=false` in v0.32.0, `Drift=true` from v0.33.0 on, no such gate
/// from v1.0.0 on.
fn drifts(karpenter: Option<&Karpenter>) -> bool {
    karpenter.is_none_or(|karpenter| {
        let by_default = karpenter.version >= Version(0, 33, 0);
        karpenter.version >= Version(1, 0, 0) || karpenter.gate("Drift").unwrap_or(by_default)
    })
}

#[cfg(test)]
mod tests {
    use super::of_fix;
    use crate::api::{Blame, FixStep, Risk};
    use crate::cluster_state::{Availability, ClusterState};
    use crate::objects::input::{Input, Object};
    use chrono::DateTime;
    use serde_json::json;

    fn said(steps: &[FixStep], blame: Option<&Blame>) -> String {
        said_in(&ClusterState::default(), steps, blame)
    }

    fn said_in(cluster: &ClusterState, steps: &[FixStep], blame: Option<&Blame>) -> String {
        advised("Correct it.", steps, blame, cluster)
    }

    fn advised(advice: &str, steps: &[FixStep], blame: Option<&Blame>, cluster: &ClusterState) -> String {
        of_fix(advice, steps, blame, cluster).map_or_else(String::new, |text| text.to_string())
    }

    fn told(risk: Risk, command: &str) -> String {
        said(&[FixStep { text: "Do it".into(), command: Some(command.to_owned()), risk }], None)
    }

    #[test]
    fn commands_say_what_they_do_to_pods() {
        let told = |command: &str| told(Risk::Mutating, command);
        for (command, says) in [
            ("kubectl edit daemonset -n kube-system aws-node", "A change of DaemonSet aws-node restarts its pods."),
            ("kubectl set env -n kube-system daemonset/aws-node A=b", "Restarts the pods of DaemonSet aws-node."),
            ("kubectl rollout restart deployment -n karpenter karpenter", "Restarts the pods of Deployment karpenter."),
            ("kubectl uncordon n1", "Running pods on Node n1 stay, and new pods can start there."),
            ("kubectl taint node n1 a/b:NoSchedule-", "Running pods on Node n1 stay, and new pods can start there."),
            ("kubectl taint node n1 a/b=c:NoExecute", "Evicts the pods of Node n1."),
            ("kubectl delete nodeclaim c1", "Replaces the node of NodeClaim c1, so its pods move."),
            ("kubectl delete pod -n a b --force --grace-period=0", "Ends pod b, and its controller creates a new one."),
            (
                "kubectl annotate ec2nodeclass a b/c=1 --overwrite",
                "A new annotation of EC2NodeClass a restarts no pods.",
            ),
            ("kubectl edit configmap -n kube-system kube-proxy", "A change of ConfigMap kube-proxy restarts no pods."),
            (
                "kubectl edit configmap -n kube-system aws-auth",
                "A change of ConfigMap aws-auth restarts no pods, but a mistake in it locks out nodes and users.",
            ),
            (
                "kubectl delete pod -n a -l app=b --field-selector spec.nodeName=n1",
                "Ends the pods that the command selects, and their controller creates new ones.",
            ),
            ("aws eks create-access-entry --cluster-name c", "The calls to AWS restart no pods."),
            (
                "aws service-quotas request-service-quota-increase --service-code ec2",
                "The calls to AWS restart no pods.",
            ),
            ("kubectl frobnicate x", "The step \"Do it\" changes something that running pods may depend on."),
        ] {
            assert_eq!(told(command), says);
        }
        let class = told("kubectl edit ec2nodeclass default");
        let drift =
            "A change of EC2NodeClass default makes Karpenter replace running nodes (drift), so their pods move.";
        assert_eq!(class, drift);
    }

    #[test]
    fn steps_that_only_read_leave_the_change_to_the_blamed_object() {
        let look = FixStep { text: "Look".into(), command: Some("kubectl get pods".to_owned()), risk: Risk::Inspect };
        let blame = Blame::object("apps/v1", "DaemonSet", "aws-node");
        let steps = [look];
        assert_eq!(said(&steps, Some(&blame)), "A change of DaemonSet aws-node restarts its pods.");
        assert_eq!(said(&steps, None), "");
        assert_eq!(said(&[], None), "");
    }

    #[test]
    fn an_advice_to_look_or_to_wait_has_no_risk() {
        let class = Blame::object("karpenter.k8s.aws/v1", "EC2NodeClass", "default");
        let advised = |advice: &str| advised(advice, &[], Some(&class), &ClusterState::default());
        for advice in [
            "Wait, or find the program that calls EC2 so often.",
            "Wait. If the error lasts, open a support case with AWS and name the request id from Karpenter's log.",
            "Read the log of pod a: it names the reason.",
        ] {
            assert_eq!(advised(advice), "", "{advice}");
        }
        for advice in [
            "Wait until it is available: launches then succeed by themselves. Until then, pin the image that works.",
            "Find what reconfigures the network, and remove it.",
            "Look at the kubelet's log. Then replace the node.",
        ] {
            assert!(advised(advice).contains("drift"), "{advice}");
        }
    }

    /// A cluster with DaemonSet aws-node, and the numbers of its pods.
    fn with_daemon_set(desired: u32) -> ClusterState {
        with_strategy(desired, "RollingUpdate")
    }

    fn with_strategy(desired: u32, update: &str) -> ClusterState {
        let mut state = ClusterState::default();
        state.mark(Input::DaemonSets, Availability::Read);
        let set = json!({
            "metadata": { "name": "aws-node", "namespace": "kube-system" },
            "spec": { "updateStrategy": { "type": update } },
            "status": { "desiredNumberScheduled": desired },
        });
        state.apply(Object::from_value(Input::DaemonSets, set).unwrap(), DateTime::UNIX_EPOCH);
        state
    }

    #[test]
    fn pods_of_a_daemon_set_restart_on_as_many_nodes_as_it_has() {
        let set = Blame::object("apps/v1", "DaemonSet", "aws-node");
        let says = |desired: u32| said_in(&with_daemon_set(desired), &[], Some(&set));
        assert_eq!(says(3), "A change of DaemonSet aws-node restarts its pods on 3 nodes.");
        assert_eq!(says(1), "A change of DaemonSet aws-node restarts its pods on 1 node.");
        assert_eq!(says(0), "A change of DaemonSet aws-node restarts its pods.");
        assert_eq!(
            said_in(&with_strategy(3, "OnDelete"), &[], Some(&set)),
            "A change of DaemonSet aws-node restarts no pods (its updateStrategy is OnDelete). Each pod gets the \
             change once you delete it."
        );
        let absent = Blame::object("apps/v1", "DaemonSet", "cilium");
        assert_eq!(said_in(&with_daemon_set(3), &[], Some(&absent)), "");
        let install = "Install a network plugin, for example the VPC CNI add-on (DaemonSet aws-node).";
        assert_eq!(advised(install, &[], Some(&set), &ClusterState::default()), "");
    }

    #[test]
    fn a_cordon_stands_beside_the_change_that_the_advice_tells() {
        let cordon = FixStep {
            text: "Keep new pods off this node".into(),
            command: Some("kubectl cordon n1".to_owned()),
            risk: Risk::LowRisk,
        };
        let class = Blame::object("karpenter.k8s.aws/v1", "EC2NodeClass", "default").field("spec.userData");
        let steps = [cordon];
        assert_eq!(
            said_in(&cluster(2, "1.14.1"), &steps, Some(&class)),
            "A change of EC2NodeClass default makes Karpenter replace its 2 nodes in service (drift), so their pods \
             move. After the cordon, running pods on Node n1 stay, and no new pods start there."
        );
        let node = Blame::object("v1", "Node", "n1");
        assert_eq!(said(&steps, Some(&node)), "Running pods on Node n1 stay, and no new pods start there.");
    }

    #[test]
    fn a_newer_definition_restarts_no_pods() {
        let apply = FixStep {
            text: "Upgrade it".into(),
            command: Some("kubectl apply -f https://example.com/crds/nodepools.yaml".to_owned()),
            risk: Risk::Mutating,
        };
        let definition = Blame::object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "nodepools.karpenter.sh");
        assert_eq!(
            said(&[apply], Some(&definition)),
            "A change of CustomResourceDefinition nodepools.karpenter.sh restarts no pods."
        );
    }

    #[test]
    fn two_objects_with_drift_take_one_sentence() {
        let edit = |command: &str| FixStep {
            text: "Correct it".into(),
            command: Some(command.to_owned()),
            risk: Risk::Mutating,
        };
        let steps =
            [edit("kubectl edit ec2nodeclass a"), edit("kubectl delete nodeclaim c"), edit("kubectl edit nodepool b")];
        assert_eq!(
            said(&steps, None),
            "A change of EC2NodeClass a and NodePool b makes Karpenter replace running nodes (drift), so their pods \
             move. Replaces the node of NodeClaim c, so its pods move."
        );
    }

    #[test]
    fn the_first_sentence_is_about_the_first_change_and_later_harmless_ones_are_left_out() {
        let step = |risk: Risk, command: Option<&str>| FixStep {
            text: "Remove that taint when the node is back".into(),
            command: command.map(str::to_owned),
            risk,
        };
        let replace = step(Risk::Destructive, Some("kubectl delete nodeclaim c"));
        let (remove, call) = (step(Risk::LowRisk, None), step(Risk::Mutating, Some("aws eks create-access-entry")));
        let replaced = "Replaces the node of NodeClaim c, so its pods move.";
        assert_eq!(said(&[replace.clone(), remove.clone(), call.clone()], None), replaced);
        let both = format!("The calls to AWS restart no pods. {replaced}");
        assert_eq!(said(&[call, replace], None), both);
        let alone = "The step \"Remove that taint when the node is back\" touches no running pods.";
        assert_eq!(said(&[remove], None), alone);
    }

    #[test]
    fn a_limit_of_a_node_pool_replaces_no_node() {
        let edit = FixStep {
            text: "Raise it".into(),
            command: Some("kubectl edit nodepool general".to_owned()),
            risk: Risk::Mutating,
        };
        let blame = |field: &str| Blame::object("karpenter.sh/v1", "NodePool", "general").field(field);
        let steps = [edit];
        let limits = said(&steps, Some(&blame("spec.limits.cpu")));
        assert_eq!(limits, "A change of spec.limits.cpu of NodePool general restarts no pods.");
        assert!(said(&steps, Some(&blame("spec.template.spec.taints"))).contains("drift"));
    }

    /// A cluster with as many nodes in service of NodePool general and EC2NodeClass default.
    fn cluster(in_service: usize, karpenter: &str) -> ClusterState {
        let mut state = ClusterState::default();
        for input in [Input::NodeClaims, Input::Nodes, Input::NodePools] {
            state.mark(input, Availability::Read);
        }
        let is_true = |type_: &str| json!({ "type": type_, "status": "True" });
        let deployment = json!({
            "metadata": { "name": "karpenter", "namespace": "kube-system" },
            "spec": { "template": { "spec": { "containers": [{
                "name": "controller", "image": format!("public.ecr.aws/karpenter/controller:{karpenter}"),
            }] } } },
        });
        let mut objects = vec![(Input::Deployments, deployment)];
        for number in 0..in_service {
            let id = format!("aws:///eu-west-1a/i-{number}");
            let conditions = ["Launched", "Registered", "Initialized"].map(is_true);
            let claim = json!({
                "metadata": { "name": format!("general-{number}"), "labels": { "karpenter.sh/nodepool": "general" } },
                "spec": { "nodeClassRef":
                    { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" } },
                "status": { "providerID": id, "conditions": conditions },
            });
            let node = json!({
                "metadata": { "name": format!("n{number}"), "labels": { "karpenter.sh/nodepool": "general" } },
                "spec": { "providerID": id }, "status": { "conditions": [is_true("Ready")] },
            });
            objects.extend([(Input::NodeClaims, claim), (Input::Nodes, node)]);
        }
        for (input, object) in objects {
            state.apply(Object::from_value(input, object).unwrap(), DateTime::UNIX_EPOCH);
        }
        state
    }

    #[test]
    fn drift_replaces_what_is_in_service_and_no_longer_fits() {
        let pool = |field: &str| Blame::object("karpenter.sh/v1", "NodePool", "general").field(field);
        let class = |field: &str| Blame::object("karpenter.k8s.aws/v1", "EC2NodeClass", "default").field(field);
        let user_data = class("spec.userData");
        let says = |nodes: usize, blame: &Blame, says: &str| {
            assert_eq!(said_in(&cluster(nodes, "1.14.1"), &[], Some(blame)), says);
        };
        says(
            3,
            &user_data,
            "A change of EC2NodeClass default makes Karpenter replace its 3 nodes in service (drift), so their pods \
             move.",
        );
        says(0, &user_data, "No node of EC2NodeClass default has joined yet, so a change of it moves no pods.");
        let requirements = pool("spec.template.spec.requirements");
        says(
            1,
            &requirements,
            "A change of NodePool general makes Karpenter replace only nodes whose labels no longer fit its \
             requirements (drift). The NodePool has 1 node in service.",
        );
        says(0, &requirements, "No node of NodePool general has joined yet, so a change of it moves no pods.");
        says(
            2,
            &class("spec.subnetSelectorTerms"),
            "A change of EC2NodeClass default makes Karpenter replace only nodes in subnets that the class no longer \
             selects (drift). The EC2NodeClass has 2 nodes in service.",
        );
        says(2, &pool("spec.limits"), "A change of spec.limits of NodePool general restarts no pods.");
    }

    #[test]
    fn drift_was_a_feature_gate() {
        let class = Blame::object("karpenter.k8s.aws/v1beta1", "EC2NodeClass", "default").field("spec.userData");
        assert!(said_in(&cluster(1, "0.33.0"), &[], Some(&class)).contains("its 1 node in service (drift)"));
        assert_eq!(
            said_in(&cluster(1, "0.32.1"), &[], Some(&class)),
            "A change of EC2NodeClass default replaces running nodes only if Karpenter's feature gate Drift is on."
        );
    }

    #[test]
    fn a_patch_of_budgets_or_limits_replaces_no_node() {
        let budgets =
            r#"kubectl patch nodepool general --type=merge -p '{"spec":{"disruption":{"budgets":[{"nodes":"0"}]}}}'"#;
        assert_eq!(told(Risk::Mutating, budgets), "A change of spec.disruption of NodePool general restarts no pods.");
    }
}
