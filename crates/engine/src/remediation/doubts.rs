//! Why a removal may not rely on the lists that nodewhy has read, or on the time. The operator fills this in.

use crate::objects::watched::Watched;
use std::collections::BTreeMap;

/// Without doubts, all lists are current and the time is certain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Doubts {
    /// The lists that are not current, and why.
    pub not_current: BTreeMap<Watched, String>,
    /// Why the time is not certain.
    pub clock: Option<String>,
}
