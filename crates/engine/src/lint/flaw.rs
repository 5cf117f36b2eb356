//! Mistakes in fields of a NodePool or a node class.

/// A field that Karpenter or EC2 refuses, or that contradicts another one.
pub struct Flaw {
    pub cause: &'static str,
    pub message: String,
    pub fix: String,
    pub field: String,
    /// Whether nothing can be launched with it.
    pub fatal: bool,
}
