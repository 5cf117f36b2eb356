//! What a fix does to running pods, in words: from the commands of its steps, and from the object to change.

use crate::api::{Blame, FixStep, Risk, Text};

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
    /// Anything else, as a sentence.
    Said(String),
}

/// One sentence for each object that the steps change. If they only read, one about a change of the blamed object.
pub fn of_fix(steps: &[FixStep], blame: Option<&Blame>) -> Option<Text> {
    let mut effects: Vec<Effect<'_>> = Vec::new();
    for step in steps.iter().filter(|step| step.risk != Risk::Inspect) {
        let effect = of_step(step, blame);
        if !effects.contains(&effect) {
            effects.push(effect);
        }
    }
    if effects.is_empty() {
        effects.extend(blame.and_then(|blame| of_change(&blame.kind, &blame.name, blame.field.as_deref())));
    }
    (!effects.is_empty()).then(|| in_words(&effects).into())
}

/// One sentence about all objects that Karpenter compares its nodes with, then the others.
fn in_words(effects: &[Effect<'_>]) -> String {
    let mut words = String::new();
    for effect in effects {
        if let Effect::Drift { kind, name } = effect {
            words.push_str(if words.is_empty() { "A change of " } else { " and " });
            words.extend([*kind, " ", *name]);
        }
    }
    if !words.is_empty() {
        words.push_str(" lets Karpenter replace running nodes (drift), so their pods move.");
    }
    for effect in effects {
        if let Effect::Said(sentence) = effect {
            words.extend([if words.is_empty() { "" } else { " " }, sentence.as_str()]);
        }
    }
    words
}

fn of_step<'f>(step: &'f FixStep, blame: Option<&'f Blame>) -> Effect<'f> {
    let known = step.command.as_deref().and_then(|command| of_command(command, blame));
    known.unwrap_or_else(|| {
        let what = match step.risk {
            Risk::Inspect => "only reads",
            Risk::LowRisk => "touches no running pods",
            Risk::Mutating => "changes something that running pods may depend on",
            Risk::Destructive => "deletes something for good",
        };
        Effect::Said(format!("The step \"{}\" {what}.", step.text.trim_end_matches('.')))
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

fn of_command<'f>(command: &'f str, blame: Option<&'f Blame>) -> Option<Effect<'f>> {
    let words = words(command);
    let (&program, &verb) = (words.first()?, words.get(1)?);
    if program == "aws" && matches!(verb, "iam" | "eks" | "service-quotas") {
        return Some(Effect::Said("The calls to AWS restart no pods.".to_owned()));
    }
    if program != "kubectl" {
        return None;
    }
    let objects = words.get(2..)?;
    let sentence = match verb {
        "uncordon" => format!("Running pods on Node {} stay, and new pods can start there.", objects.first()?),
        "cordon" => format!("Running pods on Node {} stay, and no new pods start there.", objects.first()?),
        "drain" => format!("Evicts the pods of Node {}.", objects.first()?),
        "taint" => of_taint(objects.get(1)?, objects.get(2)?)?,
        "annotate" => {
            let (kind, name) = object(objects)?;
            format!("A new annotation of {} {name} restarts no pods.", known(kind)?.0)
        }
        "rollout" | "set" => {
            let (kind, name) = object(objects.get(1..)?)?;
            format!("Restarts the pods of {} {name}.", known(kind)?.0)
        }
        "edit" | "patch" | "scale" if command.contains("finalizers") => {
            "Without the finalizer, the cleanup that it guards is skipped.".to_owned()
        }
        "edit" | "patch" | "scale" => {
            let (kind, name) = object(objects)?;
            let &(kind, _) = known(kind)?;
            let is_blamed = |blame: &&Blame| blame.kind == kind && blame.name == name;
            return of_change(kind, name, blame.filter(is_blamed).and_then(|blame| blame.field.as_deref()));
        }
        "delete" => of_deletion(objects)?,
        _ => return None,
    };
    Some(Effect::Said(sentence))
}

fn of_taint(node: &str, taint: &str) -> Option<String> {
    if taint.ends_with('-') {
        return Some(format!("Running pods on Node {node} stay, and new pods can start there."));
    }
    taint.ends_with(":NoExecute").then(|| format!("Evicts the pods of Node {node}."))
}

fn of_deletion(objects: &[&str]) -> Option<String> {
    let kind = objects.first()?.split('/').next()?;
    let named = object(objects);
    match (kind, named) {
        ("nodeclaim" | "machine", Some((_, name))) => Some(format!(
            "Replaces the node of {} {name}, so its pods move.",
            if kind == "machine" { "Machine" } else { "NodeClaim" }
        )),
        ("node", Some((_, name))) => Some(format!("Deletes Node {name}, so its pods move.")),
        ("pod", Some((_, name))) => Some(format!("Ends pod {name}. Its controller creates a new one.")),
        ("pod", None) => Some("Ends the pods that the command selects. Their controller creates new ones.".to_owned()),
        (_, Some((kind, name))) => match known(kind)? {
            (kind, Change::RestartsNothing) => Some(format!("The deletion of {kind} {name} restarts no pods.")),
            _ => None,
        },
        _ => None,
    }
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

fn of_change<'f>(kind: &'f str, name: &'f str, field: Option<&str>) -> Option<Effect<'f>> {
    let (_, change) = KINDS.iter().find(|(known, _)| *known == kind)?;
    // Karpenter hashes the template only, and compares requirements that are below it too.
    // Source: core pkg/apis/v1/nodepool.go `Hash` (v1.14.1).
    let of_limits = field.filter(|field| field.starts_with("spec.limits") || *field == "spec.weight");
    Some(match (change, of_limits) {
        (Change::MayReplaceNodes, Some(field)) => {
            Effect::Said(format!("A change of {field} of {kind} {name} restarts no pods."))
        }
        (Change::MayReplaceNodes, None) => Effect::Drift { kind, name },
        (Change::RestartsItsPods, _) => Effect::Said(format!("A change of {kind} {name} restarts its pods.")),
        (Change::LetsEvictionsPass, _) => {
            Effect::Said(format!("After a change of {kind} {name}, evictions that it blocks now can proceed."))
        }
        (Change::RestartsNothing, _) => Effect::Said(format!("A change of {kind} {name} restarts no pods.")),
    })
}

#[cfg(test)]
mod tests {
    use super::of_fix;
    use crate::api::{Blame, FixStep, Risk};

    fn said(steps: &[FixStep], blame: Option<&Blame>) -> String {
        of_fix(steps, blame).map_or_else(String::new, |text| text.to_string())
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
            ("kubectl delete pod -n a b --force --grace-period=0", "Ends pod b. Its controller creates a new one."),
            (
                "kubectl annotate ec2nodeclass a b/c=1 --overwrite",
                "A new annotation of EC2NodeClass a restarts no pods.",
            ),
            ("kubectl edit configmap -n kube-system aws-auth", "A change of ConfigMap aws-auth restarts no pods."),
            (
                "kubectl delete pod -n a -l app=b --field-selector spec.nodeName=n1",
                "Ends the pods that the command selects. Their controller creates new ones.",
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
            "A change of EC2NodeClass default lets Karpenter replace running nodes (drift), so their pods move.";
        assert_eq!(class, drift);
    }

    #[test]
    fn steps_that_only_read_leave_the_change_to_the_blamed_object() {
        let look = FixStep { text: "Look".into(), command: Some("kubectl get pods".to_owned()), risk: Risk::Inspect };
        let blame = Blame::object("apps/v1", "DaemonSet", "aws-node");
        let steps = [look];
        assert_eq!(said(&steps, Some(&blame)), "A change of DaemonSet aws-node restarts its pods.");
        assert_eq!(of_fix(&steps, None), None);
        assert_eq!(of_fix(&[], None), None);
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
            "A change of EC2NodeClass a and NodePool b lets Karpenter replace running nodes (drift), so their pods \
             move. Replaces the node of NodeClaim c, so its pods move."
        );
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
}
