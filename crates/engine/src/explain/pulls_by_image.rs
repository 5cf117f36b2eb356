//! A DaemonSet whose image no node of one machine image pulls, while nodes of other machine images run it.

use crate::api::{Blame, Evidence};
use crate::case::Case;
use crate::explain::commands;
use crate::explain::explanation::Explanation;
use crate::explain::pull::{self, Pull};
use crate::objects::{NodeClass, Pod};
use crate::upstream::text_hash::HashKey;

#[derive(Debug)]
pub(crate) struct PullsByImage<'w> {
    /// The machine image on which none runs it.
    ami: &'w str,
    failed: usize,
    /// Nodes of other machine images, all of which run it.
    running: usize,
    /// Whether all were launched with the same text of the node class, so with the same user data.
    same_text: bool,
    pull: Pull,
    /// The host of the registry.
    registry: String,
    set: String,
}

/// `None` if a node of this machine image runs it, if a node of another does not, or if there are fewer than two of
/// either.
pub(crate) fn pulls_by_image<'w>(case: &Case<'w>, pod: &Pod) -> Option<PullsByImage<'w>> {
    let (claim, text) = (case.claim?, case.class_hash());
    let ami = claim.status.image_id.as_str();
    let (set, pull) = (pod.daemon_set()?, refused(pod)?);
    let images = |pod: &Pod| pod.spec.containers.iter().map(|c| c.image.clone()).collect::<Vec<_>>();
    let own = images(pod);
    let is_alike = |other: &&Pod| {
        other.daemon_set() == Some(set) && other.metadata.namespace == pod.metadata.namespace && images(other) == own
    };
    let (mut failed, mut running, mut same_text) = (0, 0, text != HashKey::default());
    for other in case.cluster.claims_of_pool(claim.node_pool()?) {
        let is_of_class = other.spec.node_class_ref == claim.spec.node_class_ref;
        let Some(beside) = case.cluster.pods_on(&other.status.node_name).find(is_alike) else { continue };
        if !is_of_class || other.status.image_id.is_empty() {
            continue;
        }
        match (other.status.image_id == ami, beside.is_ready()) {
            (true, false) if refused(beside).is_some() => failed += 1,
            // It may still start.
            (true, false) => {}
            (false, true) => {
                running += 1;
                same_text &= HashKey::of_class(&other.metadata) == text;
            }
            (true, true) | (false, false) => return None,
        }
    }
    let (container, _) = pod.trouble()?;
    let image = pod.spec.containers.iter().find(|c| c.name == container).map(|c| c.image.clone())?;
    let registry = image.split('/').next().unwrap_or_default().to_owned();
    (failed >= 2 && running >= 2 && !ami.is_empty()).then(|| PullsByImage {
        ami,
        failed,
        running,
        same_text,
        pull,
        registry,
        set: set.to_owned(),
    })
}

/// What a registry's refusal of the login means. Limits of a registry, full disks and images that are gone affect new
/// nodes of any machine image.
fn refused(pod: &Pod) -> Option<Pull> {
    const OF_LOGIN: [Pull; 4] =
        [pull::REFUSED_ELSEWHERE, pull::REFUSED_BY_ECR, pull::NO_LOGIN_TO_ECR, pull::WITHOUT_LOGIN];
    let (_, said) = pod.trouble()?;
    pull::explain(&said).filter(|pull| OF_LOGIN.contains(pull))
}

impl PullsByImage<'_> {
    /// What is different, in sentences.
    pub(crate) fn sentences(&self) -> String {
        let Self { ami, failed, running, pull, .. } = self;
        // Others run this image, so it exists.
        let why = if *pull == pull::REFUSED_ELSEWHERE {
            "the registry requires a login that these nodes do not have"
        } else {
            pull.why
        };
        format!(
            "Its image cannot be pulled on nodes of {ami}: {why}. It runs on 0 of {failed} such nodes, and on \
             {running} of {running} nodes of other machine images."
        )
    }

    /// If the user data has a login to the registry, the machine image does not use it.
    pub(crate) fn onto(self, case: &Case, explanation: Explanation) -> Explanation {
        let Self { ami, failed, running, registry, set, .. } = &self;
        let observed = format!("{ami}: 0 of {failed} run it; other machine images: {running} of {running}");
        let because = "the nodes differ in their machine image; an older node may have pulled it earlier";
        let evidence =
            Evidence::new(format!("DaemonSet/{set}"), "spec.template.spec.containers[*].image", observed, because);
        let explanation = explanation.with(evidence);
        let Some(class) = case.class().filter(|class| self.same_text && has_login(class, registry)) else {
            return explanation;
        };
        let (kind, name) = (&class.kind, class.name());
        let login = Evidence::new(
            format!("{kind}/{name}"),
            "spec.userData",
            format!("a login to {registry}"),
            "nodes of other machine images got the same user data",
        );
        let mut explanation = explanation
            .with(login)
            .fix(format!(
                "Pin the former machine image in spec.amiSelectorTerms of {kind} {name}, because its nodes use the \
                 login to {registry} that the user data has. Or name a login in imagePullSecrets of DaemonSet {set}."
            ))
            .change("Pin the former machine image", commands::edit(class));
        explanation.blame = Blame::class(class).field("spec.amiSelectorTerms");
        explanation
    }
}

/// Bottlerocket's settings for logins to registries, `settings.container-registry.credentials` or `creds`.
/// Source: bottlerocket-settings-models settings-extensions/container-registry.
const LOGINS: &str = "container-registry.cred";
const HOST: &str = "registry";

/// Whether Bottlerocket's user data has a login to this registry.
fn has_login(class: &NodeClass, registry: &str) -> bool {
    let quoted = [format!("\"{registry}\""), format!("'{registry}'")];
    let mut is_login = false;
    class.spec.user_data.as_deref().unwrap_or_default().lines().map(str::trim).any(|line| {
        if line.starts_with('[') {
            is_login = line.contains(LOGINS);
        }
        is_login && line.starts_with(HOST) && quoted.iter().any(|quoted| line.contains(quoted))
    })
}
