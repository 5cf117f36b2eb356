//! Why a removal may not count on what was read, or on the time. Whoever reads says so; without doubts both are
//! current.

use crate::triage::change::Watched;
use std::collections::BTreeMap;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Doubts {
    /// What is not as the cluster has it now, and why.
    pub not_current: BTreeMap<Watched, String>,
    /// Why the time is not certain.
    pub clock: Option<String>,
}
