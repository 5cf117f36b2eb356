//! What says who a kubelet is and what it may do: the aws-auth ConfigMap, CertificateSigningRequests, ServiceAccounts,
//! SubjectAccessReviews; and which API server it does it at.

use super::{Condition, Meta, conditions, masked_by_line, message, nullable};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The ConfigMaps aws-auth, kube-proxy and amazon-vpc-cni of kube-system.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct ConfigMap {
    pub metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    pub data: ConfigMapData,
}

impl ConfigMap {
    pub fn is(&self, namespace: &str, name: &str) -> bool {
        self.metadata.name == name && self.metadata.namespace.as_deref() == Some(namespace)
    }
}

/// It holds no secrets, but people paste them anywhere.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConfigMapData {
    #[serde(serialize_with = "masked_by_line")]
    pub map_roles: Option<String>,
    #[serde(serialize_with = "masked_by_line")]
    pub map_users: Option<String>,
    #[serde(serialize_with = "masked_by_line")]
    pub map_accounts: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubeconfig: Option<ApiServer>,
    /// Source: amazon-vpc-resource-controller-k8s pkg/config/type.go `EnableWindowsIPAMKey`.
    #[serde(rename = "enable-windows-ipam", skip_serializing_if = "Option::is_none")]
    pub windows_ipam: Option<String>,
}

/// The API server's address from a kubeconfig. nodewhy drops the rest because it may hold credentials.
/// Source: client-go v0.36.3 tools/clientcmd/api/v1/types.go `Cluster`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiServer(pub String);

impl<'de> Deserialize<'de> for ApiServer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text: String = nullable(deserializer)?;
        let server = text.lines().find_map(|line| line.trim().strip_prefix("server:"));
        let address = server.map(|s| s.trim().trim_matches(['"', '\''])).filter(|s| !s.contains('@'));
        Ok(Self(address.filter(|s| s.starts_with("https://")).unwrap_or_default().to_owned()))
    }
}

impl Serialize for ApiServer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("server: {}", self.0))
    }
}

/// certificates.k8s.io/v1 CertificateSigningRequest. `spec.extra` also holds an access key id; it is not read.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct CertificateSigningRequest {
    pub metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    pub spec: CsrSpec,
    #[serde(deserialize_with = "nullable")]
    pub status: CsrStatus,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CsrSpec {
    #[serde(deserialize_with = "nullable")]
    pub signer_name: String,
    #[serde(deserialize_with = "nullable")]
    pub username: String,
    #[serde(deserialize_with = "nullable")]
    pub groups: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    pub extra: Extra,
}

/// The keys that aws-iam-authenticator adds.
/// Source: aws-iam-authenticator @81b1dab pkg/server/server.go.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Extra {
    #[serde(deserialize_with = "nullable")]
    pub canonical_arn: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    pub session_name: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct CsrStatus {
    #[serde(deserialize_with = "nullable")]
    pub conditions: Vec<Condition>,
}

impl CertificateSigningRequest {
    pub fn is_approved(&self) -> bool {
        conditions(&self.status.conditions, "Approved").is_some()
    }

    /// The role name at the end of the canonical ARN.
    pub fn role_name(&self) -> Option<&str> {
        self.spec.extra.canonical_arn.first().and_then(|arn| arn.rsplit('/').next())
    }

    /// The EC2 instance id: the session name of instance-profile credentials.
    pub fn instance_id(&self) -> Option<&str> {
        self.spec.extra.session_name.first().map(String::as_str).filter(|s| s.starts_with("i-"))
    }
}

/// core/v1 ServiceAccount: only Karpenter's own role matters.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct ServiceAccount {
    pub metadata: Meta,
}

/// The annotation of a ServiceAccount that names its IAM role.
/// Source: aws/amazon-eks-pod-identity-webhook v0.6 pkg/handler/handler.go.
pub const ROLE_ARN: &str = "eks.amazonaws.com/role-arn";

impl ServiceAccount {
    /// The IAM role of IRSA.
    pub fn role_arn(&self) -> Option<&str> {
        self.metadata.annotation(ROLE_ARN)
    }
}

/// authorization.k8s.io/v1 SubjectAccessReview: a question and the API server's answer. It is stored nowhere and has no
/// name.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct SubjectAccessReview {
    pub metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    pub spec: ReviewSpec,
    pub status: Option<ReviewStatus>,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReviewSpec {
    #[serde(deserialize_with = "nullable")]
    pub user: String,
    #[serde(deserialize_with = "nullable")]
    pub groups: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    pub resource_attributes: ResourceAttributes,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct ResourceAttributes {
    #[serde(deserialize_with = "nullable")]
    pub group: String,
    #[serde(deserialize_with = "nullable")]
    pub resource: String,
    #[serde(deserialize_with = "nullable")]
    pub subresource: String,
    #[serde(deserialize_with = "nullable")]
    pub verb: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReviewStatus {
    #[serde(deserialize_with = "nullable")]
    pub allowed: bool,
    #[serde(with = "message")]
    pub reason: String,
    #[serde(with = "message")]
    pub evaluation_error: String,
}

impl SubjectAccessReview {
    /// Whether the question was "may they create Nodes?".
    pub fn is_about_creating_nodes(&self) -> bool {
        let of = &self.spec.resource_attributes;
        of.verb == "create" && of.resource == "nodes" && of.group.is_empty() && of.subresource.is_empty()
    }
}
