//! `nodewhy crd`: the CustomResourceDefinition, made from the Rust types.

use crate::api::NodeDiagnosis;
use kube_core::CustomResourceExt;

/// The CustomResourceDefinition as YAML.
pub fn crd_yaml() -> Result<String, serde_saphyr::SerializeError> {
    let body = serde_saphyr::to_string(&NodeDiagnosis::crd())?;
    Ok(format!("# Made by `nodewhy crd`. Do not edit.\n{body}"))
}
