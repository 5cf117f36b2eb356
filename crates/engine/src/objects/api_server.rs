//! The API server itself, of which no object tells.

/// Facts about the API server, from the client that read the objects there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ApiServerFacts {
    /// The address at which the client reached it.
    pub address: Option<String>,
    /// Its own version: `v1.34.2-eks-ecaa3a6`.
    pub version: Option<String>,
}

impl ApiServerFacts {
    /// 34 of `v1.34.2-eks-ecaa3a6`.
    pub fn minor(&self) -> Option<u32> {
        self.version.as_deref()?.strip_prefix("v1.")?.split('.').next()?.parse().ok()
    }
}
