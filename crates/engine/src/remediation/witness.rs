//! What a removal rests on beside its Node, to be read once more just before the patch is sent.
//!
//! A watch that has gone silent shows the past, and nobody notices for a minute. The patch itself tests only the Node.

use crate::api::PAUSE_ANNOTATION;
use crate::objects::input::{Input, Object};
use crate::objects::{NodeClaim, NodePool};

/// An object, and what guards have read of it.
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

    /// Whether the object, as it was read just now, still says what was judged.
    pub fn stands(&self, object: Option<&Object>) -> Result<(), String> {
        let fresh = match object {
            Some(Object::NodePool(pool)) => Self::of_pool(pool),
            Some(Object::NodeClaim(claim)) => Self::of_claim(claim),
            _ => return Err(format!("{} {} is gone", self.input.name(), self.name)),
        };
        if fresh == *self {
            return Ok(());
        }
        Err(format!("{} {} was judged with {}, and now has {}", self.input.name(), self.name, self.read, fresh.read))
    }
}
