//! The machines of one node class, counted as they come and go, so that a judgement need not look at all of them.

use crate::foreign::NodeClaim;
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
    #[must_use]
    pub fn value<'c>(&self, claim: &'c NodeClaim) -> Option<&'c str> {
        (self.value)(claim).filter(|value| !value.is_empty())
    }
}

pub const DIMENSIONS: [Dimension; 4] = [
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
    Dimension { what: "architecture", field: "metadata.labels['kubernetes.io/arch']", value: |c| c.metadata.label("kubernetes.io/arch") },
];

/// Launched machines that share a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    pub joined: u32,
    pub not_joined: u32,
}

/// The machines of one node class.
#[derive(Debug, Default)]
pub struct Peers {
    claims: BTreeSet<String>,
    joined: BTreeSet<String>,
    tallies: [BTreeMap<String, Tally>; DIMENSIONS.len()],
}

impl Peers {
    pub(crate) fn add(&mut self, claim: &NodeClaim) {
        self.claims.insert(claim.metadata.name.clone());
        if claim.is_true("Registered") {
            self.joined.insert(claim.metadata.name.clone());
        }
        self.count(claim, |n| *n += 1);
    }

    /// Takes out a claim that was added in just this state.
    pub(crate) fn remove(&mut self, claim: &NodeClaim) {
        self.claims.remove(&claim.metadata.name);
        self.joined.remove(&claim.metadata.name);
        self.count(claim, |n| *n = n.saturating_sub(1));
    }

    fn count(&mut self, claim: &NodeClaim, change: impl Fn(&mut u32)) {
        if !claim.is_true("Launched") {
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

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.claims.is_empty()
    }

    /// Names of all claims.
    #[must_use]
    pub const fn claims(&self) -> &BTreeSet<String> {
        &self.claims
    }

    /// Names of the claims that are registered.
    #[must_use]
    pub const fn joined(&self) -> &BTreeSet<String> {
        &self.joined
    }

    /// Each dimension with the tallies of its values.
    pub fn tallies(&self) -> impl Iterator<Item = (&'static Dimension, &BTreeMap<String, Tally>)> {
        DIMENSIONS.iter().zip(&self.tallies)
    }
}
