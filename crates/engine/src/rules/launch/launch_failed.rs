//! The cloud refused the launch, and Karpenter tries again: the condition says why.

use crate::explain::commands;
use crate::explain::launch_blame;
use crate::explain::launch_error::{self, FaultIn, LaunchError};
use crate::explain::logged::{self, Root};
use crate::explain::vcpu_quota::TooSmall;
use crate::objects::{Condition, NodeClaim, NodeClass};
use crate::rules::prelude::*;
use logs::fact::{Fact, Trouble};
use readers::source_text;
use readers::userdata::{Consequence, Defect};

rule! {
    cause: LaunchFailed,
    summary: "The cloud refuses to launch the instance, for the reason in the Launched condition",
    stages: [Launch],
    reads: [NodeClaims, Nodes, NodeClasses, Pods, Deployments, AwsObservations, Logs],
    versions: "all; reasons other than LaunchFailed since AWS provider 1.2.0, before that nodewhy reads the message",
}

fn check(case: &Case) -> Option<Opinion> {
    let claim = case.claim?;
    let launched = claim.condition("Launched").filter(|c| !c.is_true())?;
    // Another rule reports NodeClassReadinessUnknown.
    if matches!(launched.reason.as_str(), "AwaitingReconciliation" | "" | "Launched" | "NodeClassReadinessUnknown") {
        return None;
    }
    // And this one too.
    let is_ready = |class: &NodeClass| class.condition("Ready").is_some_and(Condition::is_true);
    if claim.waits_for_class() && case.class().is_some_and(|class| !is_ready(class)) {
        return None;
    }
    // Since 1.2, Karpenter writes errors without a reason only to its log.
    let logged = logged::root(case, &[Trouble::RequestRefused]);
    let line = if logged.is_none() { logged_line(case, launched) } else { None };
    let known =
        launch_error::known(launched, logged.as_ref().map(Root::line).or(line.map(|fact| fact.last.text.as_str())));
    // One such error is a user data that Karpenter cannot render, and nodewhy can show the place.
    let unreadable =
        unreadable_user_data(case).filter(|_| known.is_none_or(|e| e.fault == FaultIn::Class("spec.userData")));
    let confidence = if known.is_some_and(|e| e.exact) { Confidence::Certain } else { Confidence::Likely };
    let said = launch_error::said(launched);
    let name = claim.name();
    let what = profile(case, &launched.reason, &launched.message)
        .map_or_else(String::new, |name| format!(", the node class names {name}"));
    let of_role = |text: &str| case.class().map_or_else(|| text.to_owned(), |class| class.with_its_role(text));
    let tagged = tagged_by_auto_mode(case).filter(|_| known.is_some_and(LaunchError::names_missing_right));
    let confidence = if tagged.is_some() { Confidence::Likely } else { confidence };
    let summary = match (&unreadable, known) {
        (Some((class, text, defect)), _) => format!(
            "NodeClaim {name} cannot be launched because Karpenter cannot read userData of {} {}, line {}: {} \
             ({said}).",
            class.kind,
            class.name(),
            source_text::position(text, defect.span.start).line,
            defect.message.trim_end_matches('.')
        ),
        (None, Some(error)) => {
            let tags = tagged.map_or_else(String::new, |class| {
                format!(". {} {} sets tags, which EKS's managed policies do not allow", class.kind, class.name())
            });
            let quota = TooSmall::of(case, error, &launched.message);
            let why = quota.map_or_else(|| of_role(error.why), |quota| quota.why());
            format!("The cloud refuses to launch NodeClaim {name}: {why} ({said}{what}){tags}.")
        }
        (None, None) => format!("The cloud refuses to launch NodeClaim {name}: {said}."),
    };
    let quoted = || line.map_or_else(String::new, logged::quoted);
    let summary = summary + &logged.as_ref().map_or_else(quoted, Root::refusal);
    let evidence = Evidence::new(
        case.subject(),
        r#"status.conditions[?(@.type=="Launched")]"#,
        launched.shown(),
        "Karpenter tries again until its launch timeout",
    );
    let finding = Finding::new(confidence, summary, evidence)
        .with_all(logged.as_ref().map(Root::evidence))
        .with_all(line.map(|fact| logged::told(fact, "Karpenter logs this each time that it tries to launch it")))
        .fix(known.map_or_else(
            || "Change what the message names. It is AWS's own message.".to_owned(),
            |error| of_role(&error.fix_for(&launched.message)),
        ));
    let finding = match unsynced(case, claim) {
        Some(fact) => {
            finding.adding(UNSYNCED).with(logged::told(fact, "it launches nothing for other NodePools meanwhile"))
        }
        None => finding,
    };
    let finding = if case.class().is_some_and(NodeClass::is_auto_mode) {
        finding.inspect("See the whole error", format!("kubectl describe nodeclaim {name}"))
    } else {
        let log = format!("{} | grep {name}", commands::karpenter_log(case));
        finding.inspect("See the whole error", log)
    };
    if let Some(class) = tagged {
        return of_tags(finding, class).into();
    }
    let finding = match known.and_then(|e| e.command) {
        Some(command) => finding.inspect("See what AWS reports", command.to_owned()),
        None => finding,
    };
    let pending = [&launched.reason, &launched.message]
        .iter()
        .any(|text| text.contains("InvalidAMIID") && !text.contains("NotFound"));
    let finding = match case.karpenter().filter(|k| pending && k.takes_pending_images()) {
        Some(karpenter) => finding.with(Evidence::new(
            "Deployment/karpenter",
            "spec.template.spec.containers[0].image",
            karpenter.version.to_string(),
            "this version also selects images that are still pending; 1.2.2, 1.3.0 and later select only available \
             ones",
        )),
        None => finding,
    };
    if let Some((class, text, defect)) = unreadable {
        let blame = Blame::class(class).field("spec.userData").at(text, defect.span);
        let place = source_text::position(text, defect.span.start);
        return finding
            .fix(format!("Correct userData of {} {} at line {}.", class.kind, class.name(), place.line))
            .change("Correct it (Karpenter tries again by itself)", commands::edit(class))
            .blaming(blame)
            .into();
    }
    if let Some(in_aws) = known.and_then(|error| launch_blame::in_aws(case, error, &launched.message)) {
        return in_aws.onto(finding).into();
    }
    blamed(finding, case, claim, known, &launched.message).into()
}

/// The finding with the object that requests what AWS refuses.
fn blamed(
    finding: Finding,
    case: &Case,
    claim: &NodeClaim,
    known: Option<&'static LaunchError>,
    message: &str,
) -> Finding {
    match (known.map(|e| e.fault), case.class(), claim.node_pool()) {
        (Some(FaultIn::Class(field)), Some(class), _) => finding
            .change(format!("Change {field} of {} {}", class.kind, class.name()), commands::edit(class))
            .blaming(Blame::class(class).field(field)),
        (Some(FaultIn::Class(field)), None, _) => match case.class_field(field) {
            Some(blame) => finding.blaming(blame),
            None => finding,
        },
        (Some(FaultIn::Requirements | FaultIn::Nowhere), _, Some(pool)) if known.is_some_and(|e| e.exact) => finding
            .change("Allow more in the NodePool", format!("kubectl edit nodepool {pool}"))
            .blaming(Blame::object("karpenter.sh/v1", "NodePool", pool).field("spec.template.spec.requirements")),
        _ => match launch_blame::refused_role(message) {
            Some(role) => finding.blaming(Blame::object("", "IAMRole", role)),
            // The node class says what the launch uses.
            None => match case.class() {
                Some(class) => finding.blaming(Blame::class(class)),
                None => finding,
            },
        },
    }
}

/// The line about the launch that Karpenter repeats and no row of the table knows, if the condition says less. The
/// errors of a fleet have codes of EC2, and Karpenter passes on to the condition only those that it knows.
/// Sources: karpenter-provider-aws v1.14.1 pkg/providers/instance/instance.go `combineFleetErrors`,
/// pkg/errors/errors.go `ToReasonMessage`.
fn logged_line<'w>(case: &Case<'w>, launched: &Condition) -> Option<&'w Fact> {
    if launched.reason != "LaunchFailed" || launch_error::named(&launched.message).is_some() {
        return None;
    }
    let said = launched.message.trim_end_matches('.');
    let is_new = |fact: &&Fact| {
        let text = &fact.last.text;
        text.contains("launching nodeclaim, ") && (said.is_empty() || !text.contains(said))
    };
    // However old it is: the condition says that the launch still fails.
    let logs = case.logs().into_iter().filter(|of_machine| of_machine.is_named);
    let told = logs.flat_map(|of_machine| of_machine.log.journey.open());
    told.filter(|fact| fact.trouble == Trouble::Unexplained && fact.lasts()).find(is_new)
}

const UNSYNCED: &str = "Pods of other NodePools wait meanwhile (waiting on cluster sync).";

/// Karpenter's line, since the NodeClaim was created, that it begins no round of provisioning: up to its first sync, or
/// always in earlier versions, it waits for the instance of every NodeClaim.
/// Source: core v1.0.5, v1.14.1 pkg/controllers/state/cluster.go `Synced`.
fn unsynced<'w>(case: &Case<'w>, claim: &NodeClaim) -> Option<&'w Fact> {
    let created = claim.metadata.creation_timestamp?;
    let told = case.cluster.logs_of_components().flat_map(|log| log.journey.open());
    let is_since = |fact: &&Fact| fact.last.time.is_some_and(|at| at >= created);
    told.filter(is_since).find(|fact| fact.last.text.contains("waiting on cluster sync"))
}

/// The class of EKS Auto Mode whose tags the cluster's role may not be allowed to set, as long as none of its nodes has
/// joined.
/// Source: <https://docs.aws.amazon.com/eks/latest/userguide/auto-cluster-iam-role.html#tag-prop>.
fn tagged_by_auto_mode<'w>(case: &Case<'w>) -> Option<&'w NodeClass> {
    let class = case.class().filter(|class| class.is_auto_mode() && class.spec.tags.iter().next().is_some())?;
    case.joined_siblings().next().is_none().then_some(class)
}

/// The tags of an Auto Mode class, which the cluster's role may not set.
fn of_tags(finding: Finding, class: &NodeClass) -> Finding {
    finding
        .with(Evidence::new(
            format!("{}/{}", class.kind, class.name()),
            "spec.tags",
            class.spec.tags.iter().map(|(key, _)| key).collect::<Vec<_>>().join(", "),
            "the managed policies of the cluster's role allow only EKS's own tags",
        ))
        .fix(format!(
            "Give the cluster's IAM role a policy that allows these tags, or remove spec.tags from {} {}.",
            class.kind,
            class.name()
        ))
        .change("Remove the tags", commands::edit(class))
        .blaming(Blame::class(class).field("spec.tags"))
}

/// The first mistake in userData that prevents Karpenter from creating a launch template.
fn unreadable_user_data<'w>(case: &Case<'w>) -> Option<(&'w NodeClass, &'w str, &'w Defect)> {
    let (user_data, text) = case.user_data()?;
    let defect = user_data.defects.iter().find(|d| d.consequence(user_data.family) == Consequence::NoLaunch)?;
    Some((case.class()?, text, defect))
}

/// The instance profile that the cloud does not know.
fn profile<'w>(case: &Case<'w>, reason: &str, message: &str) -> Option<&'w str> {
    let unknown = reason == "InstanceProfileNameInvalid" || message.contains("Invalid IAM Instance Profile");
    let class = case.class().filter(|_| unknown)?;
    class.spec.instance_profile.as_deref().or(class.status.instance_profile.as_deref())
}
