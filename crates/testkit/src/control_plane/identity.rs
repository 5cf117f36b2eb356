//! Client certificates: who a kubelet is to the API server.

use std::path::PathBuf;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};
use serde_json::{Value, json};

use super::{ControlPlane, write_kubeconfig};

/// Whose certificates the API server takes.
pub type Authority = CertifiedIssuer<'static, KeyPair>;

pub fn authority() -> Authority {
    let mut params = params("clients", None);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    CertifiedIssuer::self_signed(params, key()).expect("ring signs")
}

impl ControlPlane {
    /// A kubeconfig with a certificate of that user and group, as a kubelet of `system:node:NAME` in `system:nodes` has
    /// one.
    pub fn kubeconfig_of(&self, user: &str, group: &str) -> PathBuf {
        let key = key();
        let mut params = params(user, Some(group));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.signed_by(&key, &self.clients).expect("ring signs");
        let base64 = |pem: String| json!(k8s_openapi::ByteString(pem.into_bytes()));
        let credentials = json!({ "client-certificate-data": base64(certificate.pem()), "client-key-data": base64(key.serialize_pem()) });
        write_kubeconfig(self.folder.path(), &format!("{user} in {group}"), &self.endpoint, &credentials)
    }
}

/// What kubelet sends for its serving certificate: `spec.request`.
/// kubernetes v1.36.3 pkg/kubelet/certificate/kubelet.go `newGetTemplateFn`
pub fn serving_request(node: &str, address: &str) -> Value {
    let mut params = params(&format!("system:node:{node}"), Some("system:nodes"));
    params.subject_alt_names = vec![
        rcgen::SanType::DnsName(node.try_into().expect("a DNS name")),
        rcgen::SanType::IpAddress(address.parse().expect("an address")),
    ];
    let request = params.serialize_request(&key()).expect("ring signs").pem().expect("PEM");
    json!(k8s_openapi::ByteString(request.into_bytes()))
}

fn params(name: &str, organization: Option<&str>) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    if let Some(organization) = organization {
        params.distinguished_name.push(DnType::OrganizationName, organization);
    }
    params
}

fn key() -> KeyPair {
    KeyPair::generate().expect("ring makes a key")
}
