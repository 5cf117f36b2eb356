//! Each of Karpenter's provisioning rounds fails as a whole, so no pod gets a node, and only its log says so.

use crate::case::failing_round::{FailingRound, failing_round};
use crate::case::timestamp;
use crate::cluster_state::ClassFacts;
use crate::explain::launch_error::{self, FaultIn};
use crate::explain::vcpu_quota::TooSmall;
use crate::explain::{commands, launch_blame, logged};
use crate::facts::webhook;
use crate::objects::{Meta, NodeClaim, NodePool, Pod};
use crate::rules::prelude::*;
use logs::fact::{Fact, Trouble};

rule! {
    cause: ProvisioningFails,
    summary: "Each of Karpenter's provisioning rounds fails for all waiting pods: a CRD is being deleted, pods are \
              bound to a Node that is gone, or another reason in its log",
    stages: [Launch],
    reads: [NodeClaims, NodePools, NodeClasses, Nodes, Pods, Deployments, Logs, MutatingWebhooks, ValidatingWebhooks],
    versions: "all; seen only in Karpenter's log",
}

fn check(case: &Case) -> Option<Opinion> {
    if case.wait.symptom != Symptom::RoundsFail {
        return None;
    }
    let failing = case.pool().and_then(|pool| failing_round(case.cluster, pool, case.now));
    let round = failing?;
    let error = error(&round.fact.last.text);
    let finding = panics(case, round)
        .or_else(|| definition_goes(case, round, &error))
        .or_else(|| node_is_gone(case, round, &error))
        .or_else(|| webhook_refuses(case, round, &error))
        .or_else(|| names_no_profile(case, round, &error))
        .or_else(|| template_is_gone(case, round, &error))
        .or_else(|| never_synced(case, round, &error))
        .or_else(|| refused_launch(case, round, &error))
        .unwrap_or_else(|| told(case, round, &error));
    finding.with(case.wait.evidence.clone()).into()
}

/// Messages of an old Karpenter about one node of a round. It may launch the other nodes.
/// Sources: github.com/aws/karpenter v0.6.5, v0.10.1, karpenter-core v0.22.0, v0.27.5
/// pkg/controllers/provisioning/provisioner.go.
const LAUNCHES: [&str; 5] =
    ["Could not launch node, ", "Launching node, ", "launching node, ", "launching machine, ", "creating machine, "];

/// The error of a round, without the text around it. For several NodeClaims, the log repeats it.
fn error(text: &str) -> String {
    let error = text.split_once("Reconciler error error=").map_or(text, |(_, error)| error);
    let error = error.split(" controller=provisioner").next().unwrap_or(error);
    let launch = LAUNCHES.iter().find_map(|begin| error.split_once(begin));
    // An old Karpenter writes its fields after the message, also the message of another logger.
    let fields = [" provisioner=", " nodeclaim=", " NodeClaim=", " {\"", "\"commit\": "];
    let without = |error: &'_ str| {
        fields.iter().find_map(|f| error.split_once(f)).map_or(error, |(error, _)| error).trim_end().to_owned()
    };
    let error = without(launch.map_or(error, |(_, error)| error));
    let mut pieces: Vec<&str> = Vec::new();
    for piece in error.split("; ").filter(|piece| !piece.is_empty()) {
        if !pieces.contains(&piece) {
            pieces.push(piece);
        }
    }
    pieces.join("; ")
}

/// What Karpenter panics with while it plans nodes. It recovers, and tries again.
/// Source: k8s.io/apimachinery v0.32.3 pkg/util/runtime/runtime.go `logPanic`.
fn panicked(text: &str) -> Option<&str> {
    let (_, said) = text.split_once("Observed a panic")?.1.split_once(" panic=")?;
    [" panicGoValue=", " reconcileID="].iter().try_fold(said, |said, field| said.split(field).next()).map(str::trim)
}

/// `Karpenter launches no node for NodePool general, nor for any other: … (14 times from … to …)`
fn summary(case: &Case, round: FailingRound, why: &str) -> String {
    let is_of_all = !is_of_launch(round.fact);
    let others = if is_of_all { ", nor for any other NodePool" } else { "" };
    format!(
        "Karpenter launches no node for {}{others}: {why} (its log says so {} times from {} to {}).",
        case.subject().replacen('/', " ", 1),
        round.count,
        timestamp(round.first),
        timestamp(round.last)
    )
}

/// Whether it is about one node, and not about the whole round.
fn is_of_launch(fact: &Fact) -> bool {
    fact.trouble != Trouble::ProvisioningFails || LAUNCHES.iter().any(|begin| fact.last.text.contains(begin))
}

fn line(fact: &Fact) -> Evidence {
    logged::told(fact, "a failing round handles no pod, or launches none of its nodes")
}

fn panics(case: &Case, round: FailingRound) -> Option<Finding> {
    let said = panicked(&round.fact.last.text)?;
    let why = format!("it panics while it plans nodes: {}", logged::excerpt(said));
    // The disruption controller plans nodes too, but not for pods that wait.
    let is_of_provisioner = round.fact.last.text.contains("controller=provisioner");
    let confidence = if is_of_provisioner { Confidence::Likely } else { Confidence::Possible };
    let finding = Finding::new(confidence, summary(case, round, &why), line(round.fact)).fix(
        "Upgrade Karpenter, or go back to the version that worked: a panic is a fault of its code. If the panic is \
         about one feature, such as capacity reservations, turn this feature off until then.",
    );
    Some(of_karpenter(case, finding, "Change its version, or turn the feature off", |namespace, name| {
        format!("kubectl edit deployment -n {namespace} {name}")
    }))
}

/// The API server accepts no new object of a kind while its definition is being deleted, which waits for the last
/// object.
/// Source: k8s.io/apiextensions-apiserver v0.34.0 pkg/apiserver/customresource_handler.go `forbidCreateAdmission`.
fn definition_goes(case: &Case, round: FailingRound, error: &str) -> Option<Finding> {
    const CRD: &str = "nodeclaims.karpenter.sh";
    if !error.contains("create not allowed while custom resource definition is terminating") {
        return None;
    }
    let leaving = |claim: &&NodeClaim| claim.metadata.deletion_timestamp.is_some();
    let last = case.cluster.claims().filter(leaving).min_by_key(|claim| claim.metadata.deletion_timestamp);
    let holds = last.map_or_else(String::new, |claim| format!(", and NodeClaim {} still exists", claim.name()));
    let why = format!(
        "CustomResourceDefinition {CRD} is being deleted, and until it is gone the API server accepts no new \
         NodeClaim{holds}"
    );
    let mut finding = Finding::new(Confidence::Certain, summary(case, round, &why), line(round.fact))
        .linked([
            Link::new(case.subject(), "pods wait, and no NodeClaim has appeared since"),
            Link::new(format!("CustomResourceDefinition/{CRD}"), "it is being deleted"),
        ])
        .blaming(
            Blame::object("apiextensions.k8s.io/v1", "CustomResourceDefinition", CRD)
                .field("metadata.deletionTimestamp"),
        )
        .fix(format!(
            "Find what blocks the drain of the remaining NodeClaims, such as a PodDisruptionBudget or a pod that does \
             not end. When they are gone, Kubernetes deletes {CRD}, and you can install it again (chart \
             karpenter-crd). With a definition, Kubernetes deletes all objects of its kind. If the definitions of \
             NodePools and node classes were deleted too, apply these objects again."
        ))
        .inspect("See what the definition waits for", format!("kubectl describe customresourcedefinition {CRD}"));
    if let Some(claim) = last {
        let name = claim.name();
        finding = finding
            .with(deleted(&format!("NodeClaim/{name}"), &claim.metadata, "its definition waits for it"))
            .linked([Link::new(format!("NodeClaim/{name}"), "it is being deleted, but still exists")])
            .inspect("See what it waits for", format!("kubectl describe nodeclaim {name}"));
    }
    Some(finding)
}

fn deleted(object: &str, meta: &Meta, because: &'static str) -> Evidence {
    let at = meta.deletion_timestamp.map_or_else(|| "none".to_owned(), |at| timestamp(at).to_string());
    Evidence::new(object, "metadata.deletionTimestamp", at, because)
}

/// Up to 0.31, Karpenter counted pods of a Node that is gone for the topology of waiting pods, and failed on them.
/// Source: core v0.31.0 pkg/controllers/provisioning/scheduling/topology.go `countDomains`, `IgnoredForTopology`; from
/// core#642 on it skips them.
fn node_is_gone(case: &Case, round: FailingRound, error: &str) -> Option<Finding> {
    let (_, rest) = error.split_once("getting node ")?;
    let node = rest.split(',').next().filter(|node| error.contains(&format!("Node \"{node}\" not found")))?;
    if case.cluster.node(node).is_some() {
        return None;
    }
    let mut left: Vec<&Pod> = case.cluster.pods_on(node).filter(|pod| *pod.spec.node_name == *node).collect();
    // The source of that version does not count pods that are being deleted, but reports have no others (core#640). The
    // log proves the Node, and other pods bound to it are not visible.
    let is_leaving = |pod: &Pod| pod.metadata.deletion_timestamp.is_some();
    left.sort_by_key(|pod| (is_leaving(pod), &pod.metadata.namespace, &pod.metadata.name));
    let names: Vec<&str> = left.iter().map(|pod| &*pod.metadata.name).collect();
    let whose = match names.as_slice() {
        [] => String::new(),
        names => format!(": {}", names.join(", ")),
    };
    let confidence = if left.is_empty() { Confidence::Likely } else { Confidence::Certain };
    let why = format!("each round fails on Node {node}, which does not exist, but pods are still bound to it{whose}");
    let finding = Finding::new(confidence, summary(case, round, &why), line(round.fact)).fix(
        "Delete these pods for good, and remove the finalizers that keep them. Upgrade Karpenter to 0.32.1 or later, \
         which skips pods whose Node is gone.",
    );
    let Some(pod) = left.first() else {
        let command = format!("kubectl get pods -A --field-selector spec.nodeName={node}");
        return Some(finding.inspect("See which pods are bound to it", command));
    };
    let (name, namespace) = (&pod.metadata.name, pod.metadata.namespace.as_deref().unwrap_or("default"));
    let finding = finding
        .with(Evidence::new(format!("Pod/{name}"), "spec.nodeName", node, "there is no such Node"))
        .linked([
            Link::new(case.subject(), "pods wait, and no NodeClaim has appeared since"),
            Link::new(format!("Pod/{name}"), "it is bound to a Node that is gone"),
        ])
        .blaming(Blame::object("v1", "Pod", name).namespace(namespace).field("spec.nodeName"))
        .destroy(
            "Delete it by force (no kubelet confirms the deletion)",
            format!("kubectl delete pod -n {namespace} {name} --force --grace-period=0"),
        );
    if pod.metadata.finalizers.is_empty() {
        return Some(finding);
    }
    let kept = pod.metadata.finalizers.join(", ");
    Some(
        finding
            .with(Evidence::new(format!("Pod/{name}"), "metadata.finalizers", kept, "they keep it while it is deleted"))
            .destroy(
                "Remove its finalizers, when their owner does not need them any more",
                format!(
                    r#"kubectl patch pod -n {namespace} {name} --type=merge -p '{{"metadata":{{"finalizers":null}}}}'"#
                ),
            ),
    )
}

fn webhook_refuses(case: &Case, round: FailingRound, error: &str) -> Option<Finding> {
    let (kind, config, webhook) = webhook::holder(case, webhook::named(error)?)?;
    let name = &config.metadata.name;
    let why = format!("{kind} {name} blocks its NodeClaims: {}", logged::excerpt(error));
    let plural = format!("{}s", kind.to_ascii_lowercase());
    Some(
        Finding::new(Confidence::Likely, summary(case, round, &why), line(round.fact))
            .with(Evidence::new(
                format!("{kind}/{name}"),
                "webhooks",
                webhook.name.clone(),
                "the API server calls it before it accepts the object",
            ))
            .blaming(webhook::blame(kind, name))
            .fix(
                "Get the service of the webhook running, or exclude Karpenter's objects from its rules. If the webhook \
                 is left over, delete it.",
            )
            .inspect("See its rules and its service", format!("kubectl get {plural} {name} -o yaml")),
    )
}

/// Source: github.com/aws/karpenter v0.6.5 pkg/cloudprovider/aws/launchtemplate.go `getInstanceProfile`.
fn names_no_profile(case: &Case, round: FailingRound, error: &str) -> Option<Finding> {
    if !error.contains("neither spec.provider.instanceProfile nor --aws-default-instance-profile is specified") {
        return None;
    }
    let why = "nothing names the instance profile of its nodes, neither its spec.provider.instanceProfile nor \
               Karpenter's --aws-default-instance-profile";
    let finding = Finding::new(Confidence::Certain, summary(case, round, why), line(round.fact)).fix(
        "Set the default instance profile in the values of Karpenter's chart (aws.defaultInstanceProfile), or \
         spec.provider.instanceProfile.",
    );
    Some(of_karpenter(case, finding, "Name the instance profile", |namespace, name| {
        format!("kubectl edit deployment -n {namespace} {name}")
    }))
}

/// Karpenter caches the names of the launch templates that it has created, and requests them by these names.
/// Source: github.com/aws/karpenter v0.10.1 pkg/cloudprovider/aws/launchtemplate.go `ensureLaunchTemplate`,
/// `onCacheEvicted`.
fn template_is_gone(case: &Case, round: FailingRound, error: &str) -> Option<Finding> {
    if !error.contains("InvalidLaunchTemplateName.NotFoundException") {
        return None;
    }
    let (_, rest) = error.split_once("with template name ")?;
    let template = rest.split(',').next()?;
    let why =
        format!("it requests instances of launch template {template}, which is still in its cache but gone from AWS");
    let finding = Finding::new(Confidence::Certain, summary(case, round, &why), line(round.fact)).fix(
        "Restart Karpenter: it then creates the launch template again. Someone deleted it, or another replica or \
         another Karpenter with the same cluster name did when its own cache expired. Run only one Karpenter, and \
         upgrade it.",
    );
    Some(of_karpenter(case, finding, "Restart it", |namespace, name| {
        format!("kubectl rollout restart deployment -n {namespace} {name}")
    }))
}

/// The message of versions that check all Nodes and NodeClaims only until their first sync.
/// Source: core v1.14.1 pkg/controllers/state/cluster.go `Synced` (not in v1.4.0).
const LONG_UNSYNCED: &str = "cluster is waiting on sync for extended duration";

/// Karpenter begins no round before it knows every Node and NodeClaim, and for that it reads the node class of their
/// NodePool.
/// Sources: github.com/aws/karpenter-core v0.30.0, sigs.k8s.io/karpenter v1.14.1 pkg/controllers/state/cluster.go
/// `Synced`.
fn never_synced(case: &Case, round: FailingRound, error: &str) -> Option<Finding> {
    let said = ["waiting on cluster sync", LONG_UNSYNCED];
    let said = said.into_iter().find(|said| error.contains(said))?;
    let why = &*format!("it never gets a complete picture of the cluster, and begins no round without it ({said})");
    let Some((pool, machine)) = of_gone_class(case) else {
        if let Some(remembers) = remembers_gone(case, round, why) {
            return Some(remembers);
        }
        if let Some(fails) = fails_over_node(case, round, why).or_else(|| waits_for_launch(case, round, why)) {
            return Some(fails);
        }
        let finding = Finding::new(Confidence::Likely, summary(case, round, why), line(round.fact));
        return Some(
            finding
                .fix(
                    "Find the controller in its log (node_state, state.node, state.nodeclaim) that fails on a Node or \
                     NodeClaim again and again, and fix what it names.",
                )
                .inspect("See what it fails on", format!("{} | grep -i error", commands::karpenter_log(case)))
                .inspect("See which NodeClaims have no instance", "kubectl get nodeclaims -o wide".to_owned())
                .inspect(
                    "See the NodePool",
                    case.pool().map(|pool| format!("kubectl describe nodepool {}", pool.name())),
                ),
        );
    };
    let reference = &pool.spec.template.spec.node_class_ref;
    let class = format!("{} {}", reference.kind, reference.name);
    let name = pool.name();
    let why = format!(
        "{why}: {class}, which NodePool {name} refers to, does not exist, and without it Karpenter cannot classify \
         {machine}"
    );
    Some(
        Finding::new(Confidence::Likely, summary(case, round, &why), line(round.fact))
            .with(Evidence::new(
                format!("NodePool/{name}"),
                "spec.template.spec.nodeClassRef.name",
                reference.name.to_string(),
                "there is no such node class",
            ))
            .linked([
                Link::new(case.subject(), "pods wait, and no NodeClaim has appeared since"),
                Link::new(format!("NodePool/{name}"), "its node class was deleted, but its nodes exist"),
            ])
            .blaming(Blame::object("karpenter.sh/v1", "NodePool", name).field("spec.template.spec.nodeClassRef"))
            .fix(format!("Recreate {class}, or delete NodePool {name} and its nodes (this drains their pods)."))
            .inspect("See what it refers to", format!("kubectl get nodepool {name} -o yaml")),
    )
}

/// The object that Karpenter has no picture of, and the reason, if its log says that too.
/// Source: core v1.3.3 pkg/scheduling/volumeusage.go `driverFromSC`: Karpenter skips a missing StorageClass.
fn fails_over_node(case: &Case, round: FailingRound, why: &str) -> Option<Finding> {
    let told = case.cluster.logs().flat_map(|log| &log.journey.facts);
    let told = told.filter(|fact| fact.means.contains(PICTURE) && fact.last.time >= Some(round.first));
    let fact = told.max_by_key(|fact| fact.last.time)?;
    let (_, said) = fact.last.text.split_once(VOLUME_USAGE)?;
    let said = said.split([')', '\n']).next().unwrap_or(said).trim();
    let why = format!("{why}: it fails on a Node when it counts the Node's volumes: {}", logged::excerpt(said));
    let finding = Finding::new(Confidence::Certain, summary(case, round, &why), line(round.fact)).with(line(fact));
    let class = said.split_once("StorageClass.storage.k8s.io \"").and_then(|(_, rest)| rest.split('"').next());
    let finding = match class {
        Some(class) => finding
            .blaming(Blame::object("storage.k8s.io/v1", "StorageClass", class))
            .inspect("See which claims name it", format!("kubectl get persistentvolumeclaims -A | grep {class}")),
        None => finding,
    };
    Some(finding.fix(
        "Create what the line names (if necessary a StorageClass without a provisioner: kubernetes.io/no-provisioner), \
         or remove it from the claims of that Node's pods. Or upgrade Karpenter: 1.3 and later continue without it.",
    ))
}

/// A NodeClaim whose launch is refused, if Karpenter waits until it has its instance.
/// Source: core v1.4.0, v1.15.0 pkg/controllers/state/cluster.go `Synced`.
fn waits_for_launch(case: &Case, round: FailingRound, why: &str) -> Option<Finding> {
    let refused = case.cluster.claims().filter_map(|claim| {
        let launched = claim.condition("Launched").filter(|c| !c.is_true() && claim.status.provider_id.is_empty())?;
        Some((claim, launched, launch_error::known(launched, None)?))
    });
    let (claim, launched, known) = refused.min_by_key(|(claim, ..)| claim.metadata.creation_timestamp)?;
    let name = claim.name();
    let why = format!("{why}: NodeClaim {name} has no instance, because {}", known.why);
    let evidence = Evidence::new(
        format!("NodeClaim/{name}"),
        r#"status.conditions[?(@.type=="Launched")]"#,
        launched.shown(),
        "Karpenter waits for each NodeClaim until it has an instance",
    );
    let pool = claim.node_pool().filter(|_| known.fault == FaultIn::Requirements);
    let blame = match pool {
        Some(pool) => Blame::object("karpenter.sh/v1", "NodePool", pool).field("spec.template.spec.requirements"),
        None => Blame::object("karpenter.sh/v1", "NodeClaim", name).field("status.conditions"),
    };
    Some(
        Finding::new(Confidence::Likely, summary(case, round, &why), line(round.fact))
            .with(evidence)
            .linked([
                Link::new(case.subject(), "pods wait, and no NodeClaim has appeared since"),
                Link::new(format!("NodeClaim/{name}"), "its launch is refused again and again"),
            ])
            .blaming(blame)
            .fix(known.fix_for(&launched.message))
            .inspect("See the whole error", format!("kubectl describe nodeclaim {name}")),
    )
}

/// The table's text for such a line, and the rest of the line.
const PICTURE: &str = "cannot take a Node into its picture";
const VOLUME_USAGE: &str = "tracking volume usage, ";

/// After its first sync, Karpenter waits only for NodeClaims without an instance. If every NodeClaim has one, it waits
/// for one that is gone and that only its memory has.
/// Sources: core v1.14.1 pkg/controllers/state/cluster.go `Synced`; kubernetes-sigs/karpenter#3176.
fn remembers_gone(case: &Case, round: FailingRound, why: &str) -> Option<Finding> {
    case.karpenter()?;
    let mut claims = case.cluster.claims().peekable();
    claims.peek()?;
    if claims.any(|claim| claim.status.provider_id.is_empty()) || !round.fact.last.text.contains(LONG_UNSYNCED) {
        return None;
    }
    let why = format!(
        "{why}: each NodeClaim has its instance, so Karpenter waits for one that is gone but still in its memory"
    );
    let finding = Finding::new(Confidence::Likely, summary(case, round, &why), line(round.fact))
        .with(Evidence::new(
            "NodeClaims",
            "status.providerID",
            "each has one",
            "Karpenter waits for those that are not launched yet, but there is none",
        ))
        .fix(
            "Restart Karpenter, which clears its memory. Karpenter 1.14.0 keeps a NodeClaim that was deleted within a \
             second after its creation, for example because EC2 has no capacity.",
        );
    Some(of_karpenter(case, finding, "Restart it", |namespace, name| {
        format!("kubectl rollout restart deployment -n {namespace} {name}")
    }))
}

/// A NodePool without its node class, and an object of it: no class is missing if none was specified.
fn of_gone_class<'c>(case: &Case<'c>) -> Option<(&'c NodePool, String)> {
    case.cluster.missing(Input::NodeClasses).is_none().then_some(())?;
    case.cluster.pools().find_map(|pool| {
        let reference = &pool.spec.template.spec.node_class_ref;
        let is_gone = !reference.name.is_empty() && case.cluster.class(&reference.kind, &reference.name).is_none();
        let alike = |class: &ClassFacts| *class.class.kind == *reference.kind;
        let claim = case.cluster.claims_of_pool(pool.name()).next().filter(|_| is_gone)?;
        case.cluster.classes().any(alike).then(|| (pool, format!("NodeClaim {}", claim.name())))
    })
}

/// AWS's refusal, if it shows what to change.
fn refused_launch(case: &Case, round: FailingRound, error: &str) -> Option<Finding> {
    let known = launch_error::named(error).filter(|_| is_of_launch(round.fact))?;
    let why = TooSmall::of(case, known, error).map_or_else(|| known.why.to_owned(), |quota| quota.why());
    let why = format!("AWS refuses the launch: {why} ({})", logged::excerpt(error));
    let confidence = if known.exact { Confidence::Certain } else { Confidence::Likely };
    let finding = Finding::new(confidence, summary(case, round, &why), line(round.fact)).fix(known.fix_for(error));
    let finding = match known.command {
        Some(command) => finding.inspect("See what AWS reports", command.to_owned()),
        None => finding,
    };
    if let Some(in_aws) = launch_blame::in_aws(case, known, error) {
        return Some(in_aws.onto(finding));
    }
    let finding = finding.inspect(
        "See everything that Karpenter logs about it",
        case.pool().map(|pool| format!("{} | grep {}", commands::karpenter_log(case), pool.name())),
    );
    let pool = case.pool().map(|pool| Blame::object("karpenter.sh/v1", "NodePool", pool.name()));
    Some(match (known.fault, case.class()) {
        (FaultIn::Class(field), Some(class)) => {
            finding.change(format!("Change {field}"), commands::edit(class)).blaming(Blame::class(class).field(field))
        }
        (FaultIn::Requirements | FaultIn::Nowhere, _) => {
            finding.blaming(pool?.field("spec.template.spec.requirements"))
        }
        _ => match launch_blame::refused_role(error) {
            Some(role) => finding.blaming(Blame::object("", "IAMRole", role)),
            None => finding.blaming(pool?),
        },
    })
}

/// Blames Karpenter's Deployment, if it is in this cluster.
fn of_karpenter(case: &Case, finding: Finding, step: &str, command: impl Fn(&str, &str) -> String) -> Finding {
    let Some((namespace, name)) = case.karpenter().and_then(|karpenter| karpenter.deployment.split_once('/')) else {
        return finding;
    };
    finding
        .change(step.to_owned(), command(namespace, name))
        .blaming(Blame::object("apps/v1", "Deployment", name).namespace(namespace))
}

/// A line that no row knows is quoted.
fn told(case: &Case, round: FailingRound, error: &str) -> Finding {
    let why = format!("each provisioning round fails: {}", logged::excerpt(error));
    let finding = Finding::new(Confidence::Likely, summary(case, round, &why), line(round.fact));
    let finding = match named(case, error) {
        Some((blame, kind, name)) => {
            finding.blaming(blame).inspect("See what the line names", format!("kubectl describe {kind} {name}"))
        }
        None => finding,
    };
    let grep = format!("{} | grep ERROR", commands::karpenter_log(case));
    let finding = finding
        .fix("Correct what the line names. Karpenter tries again by itself within seconds.")
        .unknown("Does it still log this, and what else?", grep);
    let Some(karpenter) = case.karpenter() else { return finding };
    let (namespace, name) = karpenter.deployment.split_once('/').unwrap_or(("default", &karpenter.deployment));
    finding
        .with(Evidence::new(
            format!("Deployment/{name}"),
            "spec.template.spec.containers[*].image",
            karpenter.version.to_string(),
            "it is this one's round",
        ))
        .inspect(
            "See its ServiceAccount, its version and its settings",
            format!("kubectl describe deployment -n {namespace} {name}"),
        )
}

/// The object of the API server's error: `nodepools.karpenter.sh "general" not found`.
/// Source: apimachinery v0.36.3 pkg/api/errors/errors.go (NewNotFound, NewForbidden, NewConflict).
fn named<'e>(case: &Case, error: &'e str) -> Option<(Blame, &'static str, &'e str)> {
    let (_, rest) = error.split_once("nodepools.karpenter.sh \"")?;
    let name = rest.split('"').next()?;
    case.cluster.pool(name).map(|_| (Blame::object("karpenter.sh/v1", "NodePool", name), "nodepool", name))
}
