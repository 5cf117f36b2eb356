//! What nodewhy may fix. You opt in to each separately, and neither includes the other.

use crate::rules::taints::{cloud_controller_never_initialized as uninitialized, stale_cloud_provider_taint as stale};

/// Why a Node carries the taint that is to be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptIn {
    /// The cloud controller has done its work, and somebody put the taint back: nothing is lost.
    Stale,
    /// The cloud controller never came. Karpenter vouches for the machine; what the controller would have set stays
    /// away.
    Uninitialized,
}

impl OptIn {
    pub const fn cause(self) -> &'static str {
        match self {
            Self::Stale => stale::CAUSE,
            Self::Uninitialized => uninitialized::CAUSE,
        }
    }

    pub fn of(cause: &str) -> Option<Self> {
        [Self::Stale, Self::Uninitialized].into_iter().find(|opt_in| opt_in.cause() == cause)
    }
}
