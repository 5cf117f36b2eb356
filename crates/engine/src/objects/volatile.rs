//! What passes without the object saying anything new.

use serde::{Deserialize, Serialize};
use std::ops::Deref;

/// A value that changes with every report: the version of an object, a kubelet's heartbeat. Two states of an object
/// that differ only in it are equal, so no verdict may depend on it.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Volatile<T>(T);

impl<T> From<T> for Volatile<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

impl<T> PartialEq for Volatile<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Deref for Volatile<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
