//! The API server itself, of which no object tells.

/// Facts about the API server, from the client that read the objects there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ApiServerFacts {
    /// The address at which the client reached it.
    pub address: Option<String>,
    /// Its own version: `v1.34.2-eks-ecaa3a6`.
    pub version: Option<String>,
}
