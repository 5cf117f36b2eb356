//! The `kube-system/aws-auth` `ConfigMap`, read as aws-iam-authenticator reads it, and how a node role fares with it.
//!
//! Upstream: kubernetes-sigs/aws-iam-authenticator @81b1dab `pkg/mapper/configmap/configmap.go` (`ParseMap`,
//! `saveMap`), `pkg/config/types.go` and `pkg/config/mapper.go`. `mapRoles` and `mapUsers` go through sigs.k8s.io/yaml
//! into Go's `encoding/json`; `mapAccounts` straight through yaml.v2. EKS runs a build of its own: this is the best
//! description there is.

mod decode;
pub mod identity;
mod mistake;
mod tabs;
mod verdict;
mod yaml;

use std::collections::HashMap;
use std::fmt;

pub use verdict::{Miss, NodeFlaw, NodeName, UsernameFlaw, Verdict};

use crate::source_text::Span;

/// The group that, with a `system:node:` username, makes an identity a node.
///
/// Kubernetes v1.36 `pkg/auth/nodeidentifier/default.go`.
pub const NODES_GROUP: &str = "system:nodes";
/// The group AWS documents beside [`NODES_GROUP`]. Access entries of type `EC2_LINUX` do without it, so its absence
/// stops no node.
pub const BOOTSTRAPPERS_GROUP: &str = "system:bootstrappers";
/// What a Windows node needs on top for kube-proxy and DNS; it joins without.
pub const WINDOWS_GROUP: &str = "eks:kube-proxy-windows";

/// What the authenticator makes of the `ConfigMap`'s `data`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AwsAuth {
    /// Entries of `mapRoles` that the authenticator keeps and that name an ARN, in the order of the text.
    pub roles: Vec<RoleMapping>,
    /// The same for `mapUsers`. A role's ARN works there too: both are compared with the caller's canonical ARN.
    pub users: Vec<RoleMapping>,
    /// Callers of these accounts are let in under their own ARN and without any group, which makes no node.
    pub accounts: Vec<String>,
    /// `mapRoles` as a whole cannot be read: every role mapping is gone.
    pub broken: Option<Broken>,
    pub defects: Vec<MappingDefect>,
    dropped: Vec<Dropped>,
}

/// Why a whole value cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    pub message: String,
    /// The place in the value's text; empty where a parser stopped between two characters.
    pub span: Span,
}

/// A key of the `ConfigMap`'s `data`; a [`Span`] counts within its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DataKey {
    MapRoles,
    MapUsers,
    MapAccounts,
}

impl fmt::Display for DataKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MapRoles => "mapRoles",
            Self::MapUsers => "mapUsers",
            Self::MapAccounts => "mapAccounts",
        })
    }
}

/// An entry with an ARN that the authenticator keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleMapping {
    pub key: DataKey,
    /// `rolearn`, or `userarn` in `mapUsers`; its syntax is never checked upstream.
    pub role_arn: String,
    /// Empty where it is missing or not a string.
    pub username: String,
    /// Items that are not strings are empty.
    pub groups: Vec<String>,
    /// The entry.
    pub span: Span,
    pub arn_span: Span,
    pub username_span: Option<Span>,
    pub groups_span: Option<Span>,
    /// The later entry of the same ARN that replaces this one whole: its place in the same list.
    pub shadowed_by: Option<usize>,
}

/// Something in the text that does not do what its writer meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappingDefect {
    pub key: DataKey,
    pub kind: MappingDefectKind,
    pub span: Span,
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MappingDefectKind {
    /// The whole value cannot be read: nothing of it is in force.
    Unreadable,
    /// One entry is dropped, the others stay.
    EntryDropped,
    /// A field of the wrong type counts as empty.
    FieldEmptied,
    /// A group that is not a string counts as an empty one.
    GroupEmptied,
    /// A field the authenticator does not know.
    FieldIgnored,
    /// A later entry of the same ARN replaces this one.
    EntryReplaced,
    /// Only the first YAML document is read.
    DocumentIgnored,
}

/// An entry the authenticator drops, with the strings that stand in it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Dropped {
    defect: MappingDefect,
    scalars: Vec<String>,
}

/// Reads the values of the `ConfigMap`'s `data`, each where it is present.
pub fn read(map_roles: Option<&str>, map_users: Option<&str>, map_accounts: Option<&str>) -> AwsAuth {
    let mut auth = AwsAuth::default();
    if let Some(text) = map_roles.filter(|text| !is_skippable(text)) {
        match decode::mappings(text, DataKey::MapRoles, &mut auth) {
            Ok(roles) => auth.roles = roles,
            Err(broken) => {
                auth.unreadable(DataKey::MapRoles, &broken);
                auth.broken = Some(broken);
            }
        }
    }
    if let Some(text) = map_users.filter(|text| !is_skippable(text)) {
        match decode::mappings(text, DataKey::MapUsers, &mut auth) {
            Ok(users) => auth.users = users,
            Err(broken) => auth.unreadable(DataKey::MapUsers, &broken),
        }
    }
    if let Some(text) = map_accounts.filter(|text| !is_skippable(text)) {
        match decode::accounts(text, &mut auth) {
            Ok(accounts) => auth.accounts = accounts,
            Err(broken) => auth.unreadable(DataKey::MapAccounts, &broken),
        }
    }
    settle_duplicates(&mut auth.roles, &mut auth.defects, str::to_lowercase);
    settle_duplicates(&mut auth.users, &mut auth.defects, str::to_owned);
    auth.defects.sort_by_key(|defect| (defect.key, defect.span));
    auth
}

impl AwsAuth {
    /// What is wrong inside one entry.
    pub fn defects_of(&self, entry: &RoleMapping) -> impl Iterator<Item = &MappingDefect> {
        let (key, span) = (entry.key, entry.span);
        self.defects
            .iter()
            .filter(move |defect| defect.key == key && span.start <= defect.span.start && defect.span.end <= span.end)
    }

    fn unreadable(&mut self, key: DataKey, broken: &Broken) {
        self.defects.push(MappingDefect {
            key,
            kind: MappingDefectKind::Unreadable,
            span: broken.span,
            message: broken.message.clone(),
        });
    }
}

impl RoleMapping {
    pub fn has_group(&self, group: &str) -> bool {
        self.groups.iter().any(|have| have == group)
    }

    /// Which of the groups that AWS documents for nodes are absent; only [`NODES_GROUP`] is one a node cannot do
    /// without.
    pub fn missing_node_groups(&self) -> Vec<&'static str> {
        [BOOTSTRAPPERS_GROUP, NODES_GROUP].into_iter().filter(|group| !self.has_group(group)).collect()
    }
}

// configmap.go isSkippable()
fn is_skippable(data: &str) -> bool {
    matches!(data.trim(), "" | "``" | "\"\"" | "''")
}

/// Marks the entries that a later one of the same ARN replaces.
///
/// configmap.go `saveMap` stores entries in a map, so the last one wins whole and no groups are merged;
/// config/mapper.go `Key` lower-cases `rolearn` but not `userarn`.
fn settle_duplicates(entries: &mut [RoleMapping], defects: &mut Vec<MappingDefect>, map_key: impl Fn(&str) -> String) {
    let mut winners = HashMap::new();
    for (at, entry) in entries.iter_mut().enumerate().rev() {
        let winner = *winners.entry(map_key(&entry.role_arn)).or_insert(at);
        if winner != at {
            entry.shadowed_by = Some(winner);
            let message = "a later entry has the same ARN and replaces this one whole".to_owned();
            defects.push(MappingDefect {
                key: entry.key,
                kind: MappingDefectKind::EntryReplaced,
                span: entry.arn_span,
                message,
            });
        }
    }
}

#[cfg(test)]
mod tests;
