//! The objects that a removal rests on beside its Node. nodewhy reads them again just before it sends the patch.
//!
//! A silent watch shows the past, and nodewhy notices that only after a minute. The patch itself tests only the Node.

use crate::api::PAUSE_ANNOTATION;
use crate::objects::input::{Input, Object};
use crate::objects::{NodeClaim, NodePool};

/// An object, and the fields of it that the guards have read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Witness {
    pub input: Input,
    pub name: String,
    read: String,
}

impl Witness {
    pub fn of_pool(pool: &NodePool) -> Self {
        let read = format!("uid {} paused {:?}", pool.metadata.uid, pool.metadata.annotation(PAUSE_ANNOTATION));
        Self { input: Input::NodePools, name: pool.name().to_owned(), read }
    }

    pub fn of_claim(claim: &NodeClaim) -> Self {
        let read = format!(
            "uid {} deleted {:?} providerID {:?} Registered {}",
            claim.metadata.uid,
            claim.metadata.deletion_timestamp,
            claim.status.provider_id,
            claim.is_true("Registered")
        );
        Self { input: Input::NodeClaims, name: claim.name().to_owned(), read }
    }

    /// Whether the object, as it was read just now, still has the fields that nodewhy judged.
    pub fn stands(&self, object: Option<&Object>) -> Result<(), String> {
        let fresh = match object {
            Some(Object::NodePool(pool)) => Self::of_pool(pool),
            Some(Object::NodeClaim(claim)) => Self::of_claim(claim),
            _ => return Err(format!("{} {} is gone", self.input.name(), self.name)),
        };
        if fresh == *self {
            return Ok(());
        }
        Err(format!(
            "{} {} had {} when it was judged, and has {} now",
            self.input.name(),
            self.name,
            self.read,
            fresh.read
        ))
    }
}
