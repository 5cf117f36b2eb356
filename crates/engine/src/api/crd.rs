//! `nodewhy crd`: the CustomResourceDefinition, made from the Rust types.
//!
//! The program carries it as text: the code that makes it, with the schema of all schemas, serves only the test that
//! keeps the text up to date.

use crate::api::NodeDiagnosis;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{CustomResourceDefinition, ValidationRule};
use kube_core::CustomResourceExt;

/// CEL rule for the name of a NodeDiagnosis. It matches `cluster_state::diagnosis_name`.
const NAMED: &str = "self.metadata.name == (self.spec.subject.kind in ['NodeClaim', 'Node'] ? '' : \
                     self.spec.subject.kind.lowerAscii() + '-') + self.spec.subject.name";

/// The CustomResourceDefinition as YAML, as [`crd_yaml`] makes it.
pub const CRD: &str = include_str!("../../crd.yaml");

/// The CustomResourceDefinition.
fn crd() -> CustomResourceDefinition {
    let mut crd = NodeDiagnosis::crd();
    // The derive macro takes rules about the whole object only from crates that depend on `kube`.
    for schema in crd.spec.versions.iter_mut().filter_map(|v| v.schema.as_mut()?.open_api_v3_schema.as_mut()) {
        schema.x_kubernetes_validations.get_or_insert_default().push(ValidationRule {
            rule: NAMED.to_owned(),
            message: Some(
                "the name is the subject's, after its kind in lower case where that is no machine".to_owned(),
            ),
            ..ValidationRule::default()
        });
    }
    crd
}

/// Makes the CustomResourceDefinition as YAML from the types.
pub fn crd_yaml() -> Result<String, serde_saphyr::SerializeError> {
    let body = serde_saphyr::to_string(&crd())?;
    Ok(format!("# Made by `nodewhy crd`. Do not edit.\n{body}"))
}
