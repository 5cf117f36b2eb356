//! What the watches of a cluster say, as the operator takes it in.

use crate::api::NodeDiagnosis;
use crate::objects::ApiServerFacts;
use crate::objects::input::{Input, Object};
pub use crate::objects::watched::Watched;
use readers::aws_auth::identity::Identity;
use std::collections::BTreeSet;

/// What a watch says.
#[derive(Debug)]
pub enum Change {
    /// An object is there, or is different.
    Applied(Box<Object>),
    /// An object is gone. `last` is its last state, where the watch knows it.
    Removed { input: Input, namespace: Option<String>, name: String, last: Option<Box<Object>> },
    /// A NodeDiagnosis is in the cluster, whoever wrote it.
    Diagnosis(Box<NodeDiagnosis>),
    /// A NodeDiagnosis is no longer in the cluster, whoever deleted it.
    DiagnosisGone(String),
    /// The NodeDiagnoses of the cluster, all of them: one that came and went while nobody watched is not among them.
    DiagnosesListed(BTreeSet<String>),
    /// An object cannot be read, and why; its last readable state stays.
    Unreadable { what: Watched, name: String, object: String, error: String },
    /// The pods of one Node, of none where its name is empty, or why they cannot be read.
    Pods { node: String, pods: Result<Vec<Object>, ReadFailure> },
    /// Whether somebody may create Nodes, or why that could not be asked.
    Access { identity: Identity, answer: Result<Box<Object>, ReadFailure> },
    /// What the API server says of itself.
    ApiServer(ApiServerFacts),
    /// How far a source is.
    Source { what: Watched, name: String, state: SourceState },
}

/// How far a source is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceState {
    /// The first list is under way.
    Pending,
    /// Listed in full, and watched.
    Read,
    /// It cannot be read.
    Failed(ReadFailure),
}

/// Why a source cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadFailure {
    #[error("this kind is not installed in the cluster")]
    NotInstalled,
    #[error("not permitted: {0}")]
    NotPermitted(String),
    #[error("{0}")]
    Unanswered(String),
}
