//! userData holds a mistake after which the kubelet never starts, or serves another cluster.

use crate::cluster_state::memo::Memo;
use crate::explain::instance_questions::ask_the_instance;
use crate::explain::kubelet_exit::{FatalSetting, KubeletStart};
use crate::explain::logged;
use crate::facts::kubelet_version;
use crate::objects::NodeClaim;
use crate::rules::prelude::*;
use readers::source_text;
use readers::userdata::{Consequence, Defect, DefectKind, Family, NO_CLOUD_PROVIDER, known_flags};

rule! {
    cause: UserDataStopsKubelet,
    summary: "userData holds a mistake after which the kubelet never starts",
    stages: [Join],
    reads: [Nodes, NodeClaims, NodeClasses, Deployments, Pods, AwsObservations, Logs],
    lint: true,
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let ((user_data, text), class) = (case.user_data()?, case.class()?);
    let fatal = |kind: DefectKind| kind != DefectKind::RefusedLabel;
    let Some(defect) =
        user_data.defects.iter().find(|d| d.consequence(user_data.family) == Consequence::NoJoin && fatal(d.kind))
    else {
        if let Some(opinion) = contradiction(case) {
            return Some(opinion);
        }
        // That no mistake was seen excludes none: a machine that joined with this very text does.
        return case.same_spec_sibling_joined().map(joined);
    };
    if let Some(sibling) = case.same_spec_sibling_joined() {
        return Some(joined(sibling));
    }
    let place = source_text::position(text, defect.span.start);
    let name = class.name();
    // A kubelet that is newer than the list of flags may have the one that is not there.
    let is_of_flag = defect.kind == DefectKind::UnknownFlag;
    let newer = kubelet_version::by_images(case).filter(|minor| is_of_flag && *minor > known_flags::NEWEST);
    let former = case.former_image().filter(|_| is_of_flag && newer.is_none());
    let own_image = !class.spec.ami_selector_terms.is_empty() && !class.has_alias();
    let is_complete = match defect.kind {
        // The image may have a file of nodeadm's own with the rest.
        DefectKind::ClusterIncomplete => false,
        // A newer Bottlerocket may leave out what its kubelet refuses (bottlerocket-core-kit#821).
        DefectKind::InvalidField => user_data.family != Family::Bottlerocket,
        // The image may have a module with this command.
        DefectKind::CmdletEndsScript => !own_image,
        _ => true,
    };
    let is_read = user_data.unread_from.is_none() && is_complete;
    let is_flag_known = newer.is_none() && former.is_none();
    let confidence = if is_read && is_flag_known { Confidence::Certain } else { Confidence::Likely };
    let message = source_text::mask(defect.message.trim_end_matches('.'));
    let summary = format!(
        "The machine cannot join because of userData of {} {name}, line {}: {message}.",
        class.kind, place.line
    );
    let remedy = defect.kind.remedy().map_or_else(String::new, |remedy| format!(": {remedy}"));
    let finding = Finding::new(
        confidence,
        summary,
        Evidence::new(
            format!("{}/{name}", class.kind),
            format!("spec.userData:{}:{}", place.line, place.column),
            source_text::quoted(text, defect.span),
            message,
        ),
    )
    .with_all(newer.map(|minor| {
        Evidence::new(
            format!("{}/{name}", class.kind),
            "status.amis",
            format!("1.{minor}"),
            format!("nodewhy knows the flags of kubelets up to 1.{}", known_flags::NEWEST),
        )
    }))
    .with_all(former.map(|image| {
        Evidence::new(
            case.subject(),
            "status.imageID",
            image,
            format!(
                "{} {name} does not select this image any more, so its kubelet's version is not visible",
                class.kind
            ),
        )
    }))
    .blaming(Blame::class(class).field("spec.userData").at(text, defect.span))
    .fix(format!("Correct userData of {} {name} at line {}{remedy}.", class.kind, place.line))
    .change("Correct userData. New nodes will be correct", format!("kubectl edit ec2nodeclass {name}"));
    if confidence == Confidence::Certain { finding.into() } else { ask_the_instance(case, finding).into() }
}

/// Settings over which only a kubelet of this machine's version exits, or which contradict each other.
/// [`lint`](crate::lint) reports them too.
fn contradiction(case: &Case) -> Option<Opinion> {
    static FIRST: Memo<Option<Defect>> = Memo::new("the first setting that contradicts another one");
    // A log says itself what stops the kubelet.
    if logged::tells_a_root(case) {
        return None;
    }
    let start = KubeletStart::of(case)?;
    let (class, minor) = (case.class()?, start.kubelet.minor);
    let about = format!("{}/{} {} {minor}", class.kind, class.name(), case.class_hash());
    let first = case
        .cluster
        .once(&FIRST, &about, || start.user_data.contradictions(Some(minor), &class.spec.kubelet).into_iter().next());
    let defect = first.as_ref().as_ref()?;
    let is_of_provider = defect.kind == DefectKind::InvalidFlagValue;
    let message = source_text::mask(&defect.message);
    let setting = FatalSetting {
        span: defect.span,
        is_exact: start.user_data.unread_from.is_none(),
        since: if is_of_provider { NO_CLOUD_PROVIDER } else { 0 },
        does: format!("stops the kubelet ({message}),"),
        error: message,
        fix: match defect.kind.remedy() {
            Some(remedy) => format!("Correct userData of {} {} at this line: {remedy}.", class.kind, class.name()),
            None => format!("Correct userData of {} {} at this line.", class.kind, class.name()),
        },
        step: "Correct userData. New nodes will be correct",
    };
    start.ends_over(case, setting)
}

fn joined(sibling: &NodeClaim) -> Opinion {
    Opinion::ruled_out(sibling, format!("NodeClaim {} joined with the same userData", sibling.name()))
}
