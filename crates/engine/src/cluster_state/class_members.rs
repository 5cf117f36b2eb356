//! The machines of one node class, counted as they come and go, so that a judgement need not look at all of them.

use crate::objects::NodeClaim;
use crate::objects::intern::Interned;
use crate::upstream::karpenter;
use crate::upstream::text_hash::HashKey;
use chrono::{DateTime, Utc};
use std::collections::{BTreeMap, BTreeSet};

/// In what machines of one class may differ: name, field, value.
pub struct Dimension {
    pub what: &'static str,
    pub field: &'static str,
    value: fn(&NodeClaim) -> Option<&str>,
}

impl std::fmt::Debug for Dimension {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.what)
    }
}

impl Dimension {
    pub fn value<'c>(&self, claim: &'c NodeClaim) -> Option<&'c str> {
        (self.value)(claim).filter(|value| !value.is_empty())
    }
}

/// The dimension of the text that the machines were launched with.
pub const TEXT: &str = "node class text";

pub const DIMENSIONS: [Dimension; 8] = [
    Dimension { what: "image", field: "status.imageID", value: |c| Some(&c.status.image_id) },
    Dimension {
        what: "zone",
        field: "metadata.labels['topology.kubernetes.io/zone']",
        value: |c| c.metadata.label("topology.kubernetes.io/zone"),
    },
    Dimension {
        what: "instance type",
        field: "metadata.labels['node.kubernetes.io/instance-type']",
        value: |c| c.metadata.label("node.kubernetes.io/instance-type"),
    },
    Dimension {
        what: "instance family",
        field: "metadata.labels['karpenter.k8s.aws/instance-family']",
        value: |c| c.metadata.label("karpenter.k8s.aws/instance-family"),
    },
    Dimension {
        what: "architecture",
        field: "metadata.labels['kubernetes.io/arch']",
        value: |c| c.metadata.label("kubernetes.io/arch"),
    },
    Dimension {
        what: "capacity type",
        field: "metadata.labels['karpenter.sh/capacity-type']",
        value: |c| c.metadata.label("karpenter.sh/capacity-type"),
    },
    Dimension { what: "NodePool", field: "metadata.labels['karpenter.sh/nodepool']", value: NodeClaim::node_pool },
    // User data, tags, volumes, network: whatever the class fixes at launch.
    Dimension {
        what: TEXT,
        field: "metadata.annotations['karpenter.k8s.aws/ec2nodeclass-hash']",
        value: |c| c.metadata.annotation(karpenter::CLASS_HASH),
    },
];

/// Launched machines that share a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    pub joined: u32,
    pub not_joined: u32,
    /// Joined machines that are initialized and have a Ready Node.
    pub in_service: u32,
    /// Joined machines that have a Node and are not in service.
    pub out_of_service: u32,
}

/// The machines of one node class.
#[derive(Debug, Default)]
pub struct ClassMembers {
    claims: BTreeSet<Interned>,
    joined: BTreeSet<Interned>,
    tallies: [BTreeMap<String, Tally>; DIMENSIONS.len()],
    joined_at: BTreeSet<(DateTime<Utc>, Interned)>,
    launched_in_vain: BTreeSet<(DateTime<Utc>, Interned)>,
    /// Those that are not initialized, by the earliest time that they carry.
    unfinished: BTreeSet<(DateTime<Utc>, Interned)>,
    /// Those that joined and that Karpenter will replace for another image.
    image_drifted: BTreeSet<Interned>,
    /// Those that joined, by the text of the class that they were made from.
    joined_of_text: BTreeMap<HashKey, BTreeSet<Interned>>,
}

/// When it registered, or was launched without having registered: the two times between which something may have
/// changed.
fn milestone(claim: &NodeClaim) -> Option<(DateTime<Utc>, Interned)> {
    let at = if claim.is_true("Registered") { claim.true_since("Registered") } else { claim.true_since("Launched") };
    at.map(|at| (at, claim.metadata.name.clone()))
}

/// Before this it has waited for nothing. `None` where it is initialized.
fn earliest(claim: &NodeClaim) -> Option<(DateTime<Utc>, Interned)> {
    if claim.is_true("Initialized") {
        return None;
    }
    let conditions = claim.status.conditions.iter().filter_map(|c| c.last_transition_time);
    let at = conditions.chain(claim.metadata.creation_timestamp).min()?;
    Some((at, claim.metadata.name.clone()))
}

fn text(claim: &NodeClaim) -> HashKey {
    HashKey::of_class(&claim.metadata)
}

impl ClassMembers {
    pub(crate) fn add(&mut self, claim: &NodeClaim) {
        self.claims.insert(claim.metadata.name.clone());
        if claim.is_true("Registered") {
            self.joined.insert(claim.metadata.name.clone());
            self.joined_at.extend(milestone(claim));
            self.joined_of_text.entry(text(claim)).or_default().insert(claim.metadata.name.clone());
            if claim.is_image_drifted() {
                self.image_drifted.insert(claim.metadata.name.clone());
            }
        } else {
            self.launched_in_vain.extend(milestone(claim));
        }
        self.unfinished.extend(earliest(claim));
        self.count(claim, |n| *n += 1);
    }

    /// Takes out a claim that was added in just this state.
    pub(crate) fn remove(&mut self, claim: &NodeClaim) {
        self.claims.remove(&claim.metadata.name);
        if self.joined.remove(&claim.metadata.name)
            && let Some(of_text) = self.joined_of_text.get_mut(&text(claim))
        {
            of_text.remove(&claim.metadata.name);
            if of_text.is_empty() {
                self.joined_of_text.remove(&text(claim));
            }
        }
        self.image_drifted.remove(&claim.metadata.name);
        if let Some(earliest) = earliest(claim) {
            self.unfinished.remove(&earliest);
        }
        if let Some(milestone) = milestone(claim) {
            self.joined_at.remove(&milestone);
            self.launched_in_vain.remove(&milestone);
        }
        self.count(claim, |n| *n = n.saturating_sub(1));
    }

    fn count(&mut self, claim: &NodeClaim, change: impl Fn(&mut u32)) {
        // In a dump cut by hand one may have joined and not say that it was launched.
        if !claim.is_true("Launched") && !claim.is_true("Registered") {
            return;
        }
        for (dimension, tallies) in DIMENSIONS.iter().zip(&mut self.tallies) {
            let Some(value) = dimension.value(claim) else { continue };
            let tally = tallies.entry(value.to_owned()).or_default();
            change(if claim.is_true("Registered") { &mut tally.joined } else { &mut tally.not_joined });
            if *tally == Tally::default() {
                tallies.remove(value);
            }
        }
    }

    /// Counts one more or one less of those that are in service, or are not. It must be counted as joined.
    pub(crate) fn count_service(&mut self, claim: &NodeClaim, in_service: bool, change: impl Fn(&mut u32)) {
        for (dimension, tallies) in DIMENSIONS.iter().zip(&mut self.tallies) {
            let Some(tally) = dimension.value(claim).and_then(|value| tallies.get_mut(value)) else { continue };
            change(if in_service { &mut tally.in_service } else { &mut tally.out_of_service });
        }
    }

    pub fn is_empty(&self) -> bool {
        self.claims.is_empty()
    }

    /// Names of all claims.
    pub const fn claims(&self) -> &BTreeSet<Interned> {
        &self.claims
    }

    /// Names of the claims that are registered.
    pub const fn joined(&self) -> &BTreeSet<Interned> {
        &self.joined
    }

    /// When the last machine that joined registered, and its name.
    pub fn last_joined(&self) -> Option<&(DateTime<Utc>, Interned)> {
        self.joined_at.last()
    }

    /// Names of the machines that registered after this time, the last first.
    pub fn joined_after(&self, time: DateTime<Utc>) -> impl Iterator<Item = &Interned> {
        self.joined_at.iter().rev().take_while(move |(at, _)| *at > time).map(|(_, name)| name)
    }

    /// Names of the machines that registered and were made from this text of the class.
    pub fn joined_of_text(&self, hash: &HashKey) -> impl Iterator<Item = &Interned> + use<'_> {
        self.joined_of_text.get(hash).into_iter().flatten()
    }

    /// How many of this value joined.
    pub fn joined_with(&self, what: &str, value: &str) -> u32 {
        let of_what = self.tallies().find(|(dimension, _)| dimension.what == what);
        of_what.and_then(|(_, tallies)| tallies.get(value)).map_or(0, |tally| tally.joined)
    }

    /// Names of the registered claims that Karpenter will replace for another image.
    pub const fn image_drifted(&self) -> &BTreeSet<Interned> {
        &self.image_drifted
    }

    /// The claims that are not initialized and may have begun to wait by this time.
    pub fn unfinished(&self, by: DateTime<Utc>) -> impl Iterator<Item = &Interned> {
        self.unfinished.iter().take_while(move |(earliest, _)| *earliest <= by).map(|(_, name)| name)
    }

    /// When each machine was launched that has not registered, the first of them first, and their names.
    pub fn launched_in_vain(&self) -> impl Iterator<Item = &(DateTime<Utc>, Interned)> {
        self.launched_in_vain.iter()
    }

    /// How many were launched and have not registered.
    pub fn waiting(&self) -> usize {
        self.launched_in_vain.len()
    }

    /// Each dimension with the tallies of its values.
    pub fn tallies(&self) -> impl Iterator<Item = (&'static Dimension, &BTreeMap<String, Tally>)> {
        DIMENSIONS.iter().zip(&self.tallies)
    }
}
