//! What nearly every rule uses.

pub use crate::api::{Blame, Confidence, Evidence, Link, Risk, Stage};
pub use crate::case::Case;
pub use crate::case::finding::{Finding, Opinion};
pub use crate::case::stage::Symptom;
pub use crate::objects::input::Input;
pub use crate::rule;
