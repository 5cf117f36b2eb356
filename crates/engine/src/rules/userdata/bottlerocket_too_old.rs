//! The user data has a setting that this version of Bottlerocket does not know yet: all of it is refused.

use crate::explain::commands;
use crate::explain::instance_questions::ask_the_instance;
use crate::facts::machine_image;
use crate::objects::{NodeClaim, NodeClass};
use crate::rules::prelude::*;
use crate::upstream::karpenter::Version;
use readers::source_text::Span;
use readers::userdata::Family;

rule! {
    cause: BottlerocketTooOld,
    summary: "The user data has a setting that the image's version of Bottlerocket does not know yet",
    stages: [Join],
    reads: [NodeClaims, NodeClasses, Deployments, AwsObservations],
    versions: "all; Karpenter 1.1 and later add such a setting for instanceStorePolicy",
}

/// Tables of settings, and the first version that has them.
/// Source: bottlerocket-os/bottlerocket v1.26.1 CHANGELOG.md (#4131, #2697, #2353).
const SINCE: [(&str, Version); 3] = [
    ("settings.bootstrap-commands", BOOTSTRAP_COMMANDS),
    ("settings.oci-defaults", Version(1, 12, 0)),
    ("settings.dns", Version(1, 10, 0)),
];
const BOOTSTRAP_COMMANDS: Version = Version(1, 22, 0);

/// Since then Karpenter writes bootstrap commands for `instanceStorePolicy: RAID0`.
/// Source: karpenter-provider-aws v1.14.1 pkg/providers/amifamily/bootstrap/bottlerocket.go `Script`; upgrade guide,
/// "Upgrading to 1.1.0+".
const RAID0_SINCE: Version = Version(1, 1, 0);

/// The last version that is known to have no image of its own for bootstrap containers.
/// Sources: bottlerocket-os/bottlerocket#4349; aws/karpenter-provider-aws#8131 (1.30.0).
const WITHOUT_IMAGE: Version = Version(1, 30, 0);

/// What the version cannot do, and how to correct it.
struct Problem {
    summary: String,
    because: String,
    blame: Blame,
    fix: String,
}

/// The setting, the version that it needs, and where the node class says or causes it.
struct TooNew {
    setting: &'static str,
    since: Version,
    blame: Blame,
    why: &'static str,
}

fn check(case: &Case) -> Option<Opinion> {
    let (claim, class) = (case.claim?, case.class()?);
    if class.family() != Some(Family::Bottlerocket) {
        return None;
    }
    let (image, version) = machine_image::of(case).and_then(|id| bottlerocket(class, id))?;
    let too_new = in_user_data(case, class, version).or_else(|| by_karpenter(case, class, version));
    let problem = too_new.map(|found| unknown(class, image, version, found));
    let problem = problem.or_else(|| without_source(case, class, image, version))?;
    let same_image = |sibling: &&NodeClaim| sibling.status.image_id == claim.status.image_id;
    // Those that joined before may be an older Karpenter's.
    let written = case.karpenter().and_then(|karpenter| karpenter.written.as_ref()).map(|written| written.at);
    let mut joined = case.same_spec_siblings_joined().filter(same_image);
    if let Some(sibling) = joined.find(|sibling| sibling.true_since("Registered") > written) {
        return Some(Opinion::ruled_out(
            sibling,
            format!("NodeClaim {} joined with this image and the same user data", sibling.name()),
        ));
    }
    let finding = Finding::new(
        Confidence::Likely,
        problem.summary,
        Evidence::new(format!("{}/{}", class.kind, class.name()), "status.amis[*].name", image, problem.because),
    )
    .blaming(problem.blame)
    .fix(problem.fix)
    .change("Correct the user data, or select a later image", commands::edit(class));
    ask_the_instance(case, finding).into()
}

fn unknown(class: &NodeClass, image: &str, version: Version, found: TooNew) -> Problem {
    let TooNew { setting, since, blame, why } = found;
    Problem {
        summary: format!(
            "{why} of {} {} puts {setting} into the user data, which Bottlerocket knows since {since}, and the image \
             {image} is an older version ({version}): it refuses the whole of the user data, and the machine never \
             joins.",
            class.kind,
            class.name()
        ),
        because: format!("Bottlerocket {version}, and an unknown setting stops its boot"),
        blame,
        fix: format!("Take Bottlerocket {since} or later (amiSelectorTerms), or leave the setting out."),
    }
}

/// Without `source` the file for `bootstrap-containers create-containers` has an empty one, so that program fails, and
/// so does settings-applier.service, which the boot requires.
/// Source: bottlerocket v1.20.5 packages/os/{bootstrap-containers-toml,settings-applier.service},
/// sources/api/thar-be-settings/src/main.rs, sources/models/modeled-types/src/shared.rs `Url`.
fn without_source(case: &Case, class: &NodeClass, image: &str, version: Version) -> Option<Problem> {
    if version > WITHOUT_IMAGE {
        return None;
    }
    let (_, text) = case.user_data()?;
    let span = sourceless(text)?;
    let container = span.of(text);
    Some(Problem {
        summary: format!(
            "userData of {} {} has [{container}] without source, and Bottlerocket {version} of the image {image} has \
             no default image for bootstrap containers. So it cannot apply its settings, and the boot stops before \
             the kubelet.",
            class.kind,
            class.name()
        ),
        because: format!("Bottlerocket {version}: releases up to {WITHOUT_IMAGE} need the source"),
        blame: Blame::class(class).field("spec.userData").at(text, span),
        fix: format!(
            "Add source to [{container}], or take a Bottlerocket later than {WITHOUT_IMAGE} that has a default image \
             for bootstrap containers (amiSelectorTerms)."
        ),
    })
}

/// The place of the first table of a bootstrap container that has no `source`.
fn sourceless(text: &str) -> Option<Span> {
    const TABLE: &str = "settings.bootstrap-containers.";
    const KEY: &str = "source";
    let (mut table, mut start) = (None, 0);
    for line in text.split_inclusive('\n') {
        let at = start + line.len() - line.trim_start().len();
        start += line.len();
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[') {
            if table.is_some() {
                return table;
            }
            let name = header.strip_prefix(TABLE).and_then(|rest| rest.find(']'));
            table = name.map(|length| Span::new(at + 1, at + 1 + TABLE.len() + length));
            continue;
        }
        // A placeholder may become any line.
        let is_open = !line.is_empty() && !line.starts_with('#') && !line.contains('=');
        if is_open || line.trim_start_matches(['"', '\'']).starts_with(KEY) {
            table = None;
        }
    }
    table
}

/// The image's name, and the version in it: `bottlerocket-aws-k8s-1.30-x86_64-v1.21.1-82691b51`.
fn bottlerocket<'c>(class: &'c NodeClass, id: &str) -> Option<(&'c str, Version)> {
    let name = class.status.amis.iter().find(|ami| ami.id == id)?.name.as_str();
    let (_, version) = name.strip_prefix("bottlerocket-aws-")?.rsplit_once("-v")?;
    Some((name, Version::parse(version)?))
}

fn in_user_data(case: &Case, class: &NodeClass, version: Version) -> Option<TooNew> {
    let (_, text) = case.user_data()?;
    SINCE.into_iter().filter(|(_, since)| version < *since).find_map(|(setting, since)| {
        let span = header(text, setting)?;
        let blame = Blame::class(class).field("spec.userData").at(text, span);
        Some(TooNew { setting, since, blame, why: "userData" })
    })
}

/// The place of the header of this TOML table, or of a table below it.
fn header(text: &str, table: &str) -> Option<Span> {
    let mut start = 0;
    text.split_inclusive('\n').find_map(|line| {
        let at = start + line.len() - line.trim_start().len();
        start += line.len();
        let rest = line.trim_start().strip_prefix('[')?.strip_prefix(table)?;
        rest.starts_with([']', '.']).then(|| Span::new(at + 1, at + 1 + table.len()))
    })
}

fn by_karpenter(case: &Case, class: &NodeClass, version: Version) -> Option<TooNew> {
    let asked = class.spec.instance_store_policy.as_deref() == Some("RAID0");
    case.karpenter().filter(|karpenter| asked && karpenter.version >= RAID0_SINCE && version < BOOTSTRAP_COMMANDS)?;
    Some(TooNew {
        setting: "settings.bootstrap-commands",
        since: BOOTSTRAP_COMMANDS,
        blame: Blame::class(class).field("spec.instanceStorePolicy"),
        why: "instanceStorePolicy RAID0",
    })
}

#[cfg(test)]
mod tests {
    use super::sourceless;

    #[test]
    fn a_bootstrap_container_without_source_is_found() {
        let of = |lines: &str| {
            let text = format!("[settings.bootstrap-containers.x]\nmode = \"once\"\n{lines}\n[settings.kernel]\n");
            sourceless(&text).map(|span| span.of(&text).to_owned())
        };
        assert_eq!(of("").as_deref(), Some("settings.bootstrap-containers.x"));
        assert_eq!(of("user-data = \"e30=\"").as_deref(), Some("settings.bootstrap-containers.x"));
        for lines in ["source = \"public.ecr.aws/a/b:1\"", "\"source\" = \"a\"", "{{ source }}"] {
            assert_eq!(of(lines), None, "{lines}");
        }
        assert!(sourceless("[settings.bootstrap-containers.x]\nmode = \"off\"").is_some());
        assert!(sourceless("[settings.kubernetes]\nmax-pods = 58\n").is_none());
    }
}
