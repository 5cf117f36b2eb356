//! How EKS authorizes the node role, if nodewhy asked it: the common part of the rules about access entries.

use crate::case::Case;
use crate::case::finding::Opinion;
use crate::cluster_state::aws::{self, AwsAnswer};
use crate::facts::node_role;
use crate::objects::{AccessEntry, EksCluster};
use chrono::{DateTime, Utc};
use readers::userdata::Family;

/// The state of the node role's access entry, as EKS tells it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum EntryState<'w> {
    /// nodewhy did not ask, or got no answer.
    Unseen,
    /// The cluster's authentication mode is CONFIG_MAP: entries authorize nothing.
    NotRead,
    /// There is none.
    Missing {
        at: Option<DateTime<Utc>>,
        mode: &'w EksCluster,
    },
    /// There is one, but its type does not authorize kubelets.
    WrongType {
        entry: &'w AccessEntry,
        at: Option<DateTime<Utc>>,
    },
    /// There is one, but it was created for a role of this name that is gone.
    Outlived {
        entry: &'w AccessEntry,
        role_created: DateTime<Utc>,
        at: Option<DateTime<Utc>>,
    },
    Fits(&'w AccessEntry),
}

/// The types that authorize kubelets. `EC2` is that of EKS Auto Mode.
/// Source: Amazon EKS user guide, access entries; aws-sdk-go-v2 service/eks `CreateAccessEntryInput.Type`.
const OF_NODES: [&str; 3] = ["EC2_LINUX", "EC2_WINDOWS", "EC2"];

/// The type that an entry for the machine's role needs.
pub(crate) fn type_for(case: &Case) -> &'static str {
    match case.class() {
        Some(class) if class.is_auto_mode() => "EC2",
        Some(class) if class.family() == Some(Family::Windows) => "EC2_WINDOWS",
        _ => "EC2_LINUX",
    }
}

/// Excludes a cause by EKS's answer about the role's entry.
pub(crate) fn excludes(case: &Case, role: &str, because: String) -> Option<Opinion> {
    let cluster = case.cluster_name().unwrap_or_default();
    by_answer(case, aws::ENTRY, &format!("{cluster}/{role}"), because)
}

/// Excludes a cause by the cluster's authentication mode.
pub(crate) fn mode_excludes(case: &Case, because: String) -> Option<Opinion> {
    by_answer(case, aws::CLUSTER, case.cluster_name().unwrap_or_default(), because)
}

fn by_answer(case: &Case, call: &str, about: &str, because: String) -> Option<Opinion> {
    let answer = case.cluster.aws().observation(call, about);
    answer.map(|answer| Opinion::ruled_out(answer, because))
}

pub(crate) fn entry_state<'w>(case: &Case<'w>, role: &str) -> EntryState<'w> {
    let Some(name) = case.cluster_name() else { return EntryState::Unseen };
    let told = case.cluster.aws();
    let cluster = told.cluster(name).known().map(|(cluster, _)| cluster);
    if cluster.is_some_and(|c| c.authentication_mode.as_deref() == Some("CONFIG_MAP")) {
        return EntryState::NotRead;
    }
    match (told.access_entry(name, role), cluster) {
        (AwsAnswer::Absent(at), Some(mode)) if mode.reads_entries() => EntryState::Missing { at, mode },
        (AwsAnswer::Found(entry, at), _) if !OF_NODES.contains(&entry.type_.as_str()) => {
            EntryState::WrongType { entry, at }
        }
        (AwsAnswer::Found(entry, at), _) => {
            // EKS keeps the role's id in the entry, not only its ARN: a role made anew under the name is another one.
            let role_created = node_role::profile(case).and_then(|profile| profile.role_created);
            match role_created.filter(|role| entry.created.is_some_and(|created| *role > created)) {
                Some(role_created) => EntryState::Outlived { entry, role_created, at },
                None => EntryState::Fits(entry),
            }
        }
        _ => EntryState::Unseen,
    }
}
