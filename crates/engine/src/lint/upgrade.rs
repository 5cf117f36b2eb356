//! Whether the objects are ready for other versions of Kubernetes and Karpenter: what blocks the upgrade, and what it
//! changes by itself. Mistakes with a line in a file are findings like all others.

use super::version::{self, OLDER};
use crate::cluster_state::ClusterState;
use crate::effective::difference::{Change, Given, Part, changes};
use crate::effective::{ClusterIdentity, Machine, resolve};
use crate::facts::kubelet_skew;
use crate::objects::NodeClass;
use crate::upstream::karpenter::{Version, first_for};
use readers::source_text;

/// The versions after the upgrade, as far as the user names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Target {
    /// The minor version of Kubernetes 1.
    pub kubernetes: Option<u32>,
    pub karpenter: Option<Version>,
}

/// What is known about an upgrade besides the findings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Upgrade {
    pub to: Target,
    /// Sentences about what to do before the upgrade.
    pub obstacles: Vec<String>,
    pub changes: Vec<Changed>,
    /// Sentences about what nothing shows.
    pub unknowns: Vec<String>,
}

/// A change that comes with the upgrade, though nobody changes the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    pub what: String,
    /// The node classes whose new nodes change. Empty if it is Karpenter itself.
    pub objects: Vec<String>,
}

/// What Karpenter does differently from a version on.
// karpenter-provider-aws#7672 (v1.2.2); core#2349 (v1.7.0); core pkg/controllers/disruption/repair.go (v1.15.0)
const OF_KARPENTER: [(Version, &str); 3] = [
    (Version(1, 2, 2), "Karpenter 1.2.2 and later selects only images that are available"),
    (Version(1, 7, 0), "Karpenter 1.7 and later deletes a NodeClaim without an instance after 5 minutes"),
    (
        Version(1, 15, 0),
        "Karpenter 1.15 and later repairs nodes within disruption budgets, unless LEGACY_NODE_REPAIR is true",
    ),
];

impl Upgrade {
    /// An upgrade, if the user names a version.
    pub fn to(target: Target) -> Option<Self> {
        let is_named = target.kubernetes.is_some() || target.karpenter.is_some();
        is_named.then(|| Self { to: target, ..Self::default() })
    }

    /// Adds what the objects of a cluster show.
    pub fn look_at(&mut self, state: &ClusterState) {
        let installed = state.karpenter().map(|karpenter| karpenter.version);
        self.karpenter(installed);
        self.nodes(state);
        let mut without_images = Vec::new();
        for class in state.classes().map(|facts| &facts.class).filter(|class| class.is_ec2()) {
            if self.to.kubernetes.is_some() && class.has_alias() && class.kubernetes().is_none() {
                without_images.push(class.name());
            }
            self.class(class, installed);
        }
        if !without_images.is_empty() {
            self.unknown(format!(
                "The images that these node classes have now are not known, so not what the new ones change: {}.",
                without_images.join(", ")
            ));
        }
    }

    /// Several clusters may lack the same.
    fn unknown(&mut self, sentence: String) {
        if !self.unknowns.contains(&sentence) {
            self.unknowns.push(sentence);
        }
    }

    /// Whether Karpenter supports the version of Kubernetes, and what it does differently.
    fn karpenter(&mut self, installed: Option<Version>) {
        let Some(version) = self.to.karpenter.or(installed) else {
            self.unknown(
                "The version of Karpenter is not known, so not whether it supports this Kubernetes (--karpenter)."
                    .to_owned(),
            );
            return;
        };
        if let Some(minor) = self.to.kubernetes {
            match first_for(minor) {
                Some(first) if version < first => self.obstacles.push(format!(
                    "Karpenter {version} does not support Kubernetes 1.{minor}. Upgrade Karpenter to {first} or later \
                     first."
                )),
                Some(_) => {}
                None => {
                    self.unknown(format!(
                        "nodewhy does not know which versions of Karpenter support Kubernetes 1.{minor}."
                    ));
                }
            }
        }
        let Some(to) = self.to.karpenter else { return };
        let Some(from) = installed else {
            self.unknown("No Deployment of Karpenter was read, so what its upgrade changes is not known.".to_owned());
            return;
        };
        for (since, what) in OF_KARPENTER {
            if from < since && since <= to {
                let change = Changed { what: what.to_owned(), objects: Vec::new() };
                if !self.changes.contains(&change) {
                    self.changes.push(change);
                }
            }
        }
    }

    /// Nodes with kubelets that are too old for the API server.
    fn nodes(&mut self, state: &ClusterState) {
        let Some(cluster) = self.to.kubernetes else { return };
        let mut old: Vec<(u32, &str)> = Vec::new();
        for node in state.nodes() {
            if let Some(minor) = kubelet_skew::minor(&node.status.node_info.kubelet_version)
                && minor + OLDER < cluster
            {
                old.push((minor, &*node.metadata.name));
            }
        }
        let Some((minor, name)) = old.iter().min() else { return };
        let counted = if old.len() == 1 {
            "1 Node has a kubelet".to_owned()
        } else {
            format!("{} Nodes have kubelets", old.len())
        };
        self.obstacles.push(format!(
            "{counted} older than 1.{}, which Kubernetes 1.{cluster} does not support. The oldest is 1.{minor} on Node \
             {name}. Replace old nodes first.",
            cluster - OLDER
        ));
    }

    /// What the new images and the new Karpenter change on new nodes of the class.
    fn class(&mut self, class: &NodeClass, installed: Option<Version>) {
        let Some(family) = class.family() else { return };
        let new_kubelet = version::kubelet(class, self.to.kubernetes);
        // A version that is not known changes nothing that nodewhy can name.
        let old_kubelet = class.kubernetes().or(new_kubelet);
        let new_karpenter = self.to.karpenter.or(installed);
        let old_karpenter = installed.or(new_karpenter);
        let machine = |kubernetes, karpenter| Machine {
            class,
            family,
            pool: None,
            karpenter,
            kubernetes,
            cluster: ClusterIdentity::default(),
        };
        let old = machine(old_kubelet, old_karpenter);
        let new = machine(new_kubelet, new_karpenter);
        for change in changes((&old, &resolve(&old)), (&new, &resolve(&new))) {
            let what = told(&change);
            let object = format!("EC2NodeClass {}", class.name());
            match self.changes.iter_mut().find(|known| known.what == what) {
                Some(known) if known.objects.contains(&object) => {}
                Some(known) => known.objects.push(object),
                None => self.changes.push(Changed { what, objects: vec![object] }),
            }
        }
    }
}

/// The change as a clause, with secrets masked.
fn told(change: &Change) -> String {
    let kind = match change.part {
        Part::Taint => "taint ",
        Part::Label => "label ",
        Part::Image | Part::Kubelet | Part::Nodeadm | Part::Cluster => "",
    };
    let shown = |given: &[Given]| {
        let one = |given: &Given| match change.part {
            Part::Taint | Part::Label | Part::Image => source_text::mask(&given.value),
            Part::Kubelet | Part::Nodeadm | Part::Cluster => {
                source_text::mask(&format!("{}={}", given.name, given.value))
            }
        };
        given.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    match (&*change.old, &*change.new) {
        ([], new) => format!("{kind}{} is new", shown(new)),
        (old, []) => format!("{kind}{} is gone", shown(old)),
        (old, new) => format!("{kind}{} becomes {}", shown(old), shown(new)),
    }
}
