//! Versions of Karpenter's kinds that it no longer reads.

use crate::objects::input::Object;

/// The apiVersion of an object that the current Karpenter does not read.
pub fn version(object: &Object) -> Option<String> {
    match object {
        Object::NodePool(pool) if pool.is_provisioner() => Some("karpenter.sh/v1alpha5".to_owned()),
        Object::NodeClaim(claim) if claim.is_machine() => Some("karpenter.sh/v1alpha5".to_owned()),
        Object::NodeClass(class) if class.is_node_template() => Some("karpenter.k8s.aws/v1alpha1".to_owned()),
        Object::NodePool(pool) => is_beta(&pool.api_version),
        Object::NodeClaim(claim) => is_beta(&claim.api_version),
        Object::NodeClass(class) => is_beta(&class.api_version),
        _ => None,
    }
}

fn is_beta(version: &str) -> Option<String> {
    matches!(version, "karpenter.sh/v1beta1" | "karpenter.k8s.aws/v1beta1").then(|| version.to_owned())
}

/// Says what to do about the objects of such a version in these files.
// https://karpenter.sh/v1.0/upgrading/v1-migration/ and /v0.32/upgrading/v1beta1-migration/; core v1.1.0 drops v1beta1
pub fn told(version: &str, files: &[String]) -> String {
    /// Files that are named.
    const NAMED: usize = 3;
    let mut names: Vec<&str> = files.iter().map(|file| file.strip_prefix("./").unwrap_or(file)).collect();
    names.dedup();
    let more = names.len().saturating_sub(NAMED);
    let shown = names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    let more = if more > 0 { format!(" and {more} more files") } else { String::new() };
    let objects = if files.len() == 1 { "1 object".to_owned() } else { format!("{} objects", files.len()) };
    if version.ends_with("v1beta1") {
        format!(
            "{objects} of {version} ({shown}{more}): judged, but Karpenter 1.1 and later does not serve them. Write them as v1: https://karpenter.sh/v1.0/upgrading/v1-migration/"
        )
    } else {
        format!(
            "{objects} of {version} ({shown}{more}): not judged, and Karpenter 0.33 and later does not serve them. Convert them to NodePool and EC2NodeClass: https://karpenter.sh/v0.32/upgrading/v1beta1-migration/"
        )
    }
}
