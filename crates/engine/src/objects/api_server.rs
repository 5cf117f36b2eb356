//! The API server itself, of which no object tells.

/// What was seen of the API server by who read the objects there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ApiServerFacts {
    /// The address by which it was reached.
    pub address: Option<String>,
    /// Its own version: `v1.34.2-eks-ecaa3a6`.
    pub version: Option<String>,
}
