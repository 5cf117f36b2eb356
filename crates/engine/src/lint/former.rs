//! Versions of Karpenter's kinds that it no longer reads.

use super::place::Piece;
use super::{Level, LintFinding, Mistake};
use crate::api::Blame;
use crate::objects::input::{Input, Object};
use crate::upstream::karpenter::Version;
use std::collections::BTreeSet;

/// An object of a former version.
#[derive(Debug)]
pub struct Former {
    kind: String,
    name: String,
    /// Whether Karpenter creates it.
    is_of_karpenter: bool,
    piece: Piece,
}

impl Former {
    pub fn new(object: &Object, piece: Piece) -> Self {
        Self {
            kind: object.former_kind().map_or_else(|| object.type_meta().kind, str::to_owned),
            name: object.meta().name.to_string(),
            is_of_karpenter: object.input() == Input::NodeClaims,
            piece,
        }
    }

    fn at(&self, mistake: Mistake) -> LintFinding {
        mistake.at(&self.piece.file, self.piece.place(Some("apiVersion"), None))
    }
}

/// The finding about an apiVersion that Karpenter does not serve. `why` ends the sentence.
pub fn refusal(level: Level, blame: Blame, written: &str, why: &str, fix: Option<String>) -> Mistake {
    Mistake {
        level,
        cause: "ApiVersionNotServed".to_owned(),
        message: format!("{} {} has the apiVersion {written}, {why}.", blame.kind, blame.name),
        fix,
        blame: blame.field("apiVersion"),
        grave: false,
    }
}

/// Findings about objects of this apiVersion that people write, if this Karpenter does not serve it.
// core pkg/apis (no v1alpha5 since v0.33.0), core v1.1.0 drops v1beta1
pub fn not_served(version: &str, objects: &[Former], karpenter: Version) -> Vec<LintFinding> {
    let until = if version.ends_with("v1beta1") { Version(1, 1, 0) } else { Version(0, 33, 0) };
    if karpenter < until {
        return Vec::new();
    }
    let written = objects.iter().filter(|object| !object.is_of_karpenter);
    let finding = |object: &Former| {
        let blame = Blame::object(version, &object.kind, &object.name);
        let why = format!("which Karpenter {karpenter} does not serve");
        object.at(refusal(Level::Error, blame, version, &why, None))
    };
    written.map(finding).collect()
}

/// Findings about objects of v1beta1 that stand in one file with objects of v1. Only Karpenter 1.0 serves both. Alone,
/// either may be right: nothing in such a file names the version of Karpenter.
// core v1.0.0 pkg/apis/crds/karpenter.sh_nodepools.yaml has both versions; v1.1.0 has only v1, v0.37.0 only v1beta1
pub fn beside_v1(version: &str, objects: &[Former], of_v1: &BTreeSet<String>) -> Vec<LintFinding> {
    if !version.ends_with("v1beta1") {
        return Vec::new();
    }
    let written = objects.iter().filter(|object| !object.is_of_karpenter && of_v1.contains(&object.piece.file));
    let finding = |object: &Former| {
        let blame = Blame::object(version, &object.kind, &object.name);
        let why = "beside objects of v1 in this file. Only Karpenter 1.0 serves both";
        object.at(refusal(Level::Warning, blame, version, why, None))
    };
    written.map(finding).collect()
}

/// Whether the object is of v1, the version after v1beta1.
pub fn is_v1(object: &Object) -> bool {
    let version = match object {
        Object::NodePool(pool) => pool.api_version.as_str(),
        Object::NodeClass(class) => class.api_version.as_str(),
        _ => return false,
    };
    matches!(version, "karpenter.sh/v1" | "karpenter.k8s.aws/v1")
}

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

/// Says what to do about the objects of a former version in these files.
// https://karpenter.sh/v1.0/upgrading/v1-migration/ and /v0.32/upgrading/v1beta1-migration/; core v1.1.0 drops v1beta1
pub fn told(version: &str, objects: &[Former]) -> String {
    /// Files that are named.
    const NAMED: usize = 3;
    let files = objects.iter().map(|object| object.piece.file.as_str());
    let mut names: Vec<&str> = files.map(|file| file.strip_prefix("./").unwrap_or(file)).collect();
    names.dedup();
    let more = names.len().saturating_sub(NAMED);
    let shown = names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    let more = if more > 0 { format!(" and {more} more files") } else { String::new() };
    let objects = if objects.len() == 1 { "1 object".to_owned() } else { format!("{} objects", objects.len()) };
    if version.ends_with("v1beta1") {
        format!(
            "{objects} of {version} ({shown}{more}): judged, but Karpenter 1.1 and later does not serve them. Write \
             them as v1: https://karpenter.sh/v1.0/upgrading/v1-migration/"
        )
    } else {
        format!(
            "{objects} of {version} ({shown}{more}): not judged, and Karpenter 0.33 and later does not serve them. \
             Convert them to NodePool and EC2NodeClass: https://karpenter.sh/v0.32/upgrading/v1beta1-migration/"
        )
    }
}
