//! What the API server refuses or drops, because the schema of the kind does not have it.
//!
//! In review no API server has seen the file yet, and Helm, Argo CD and Flux let the API server drop unknown fields.

mod structure;

use super::place::{Piece, Place};
use super::{Level, Mistake};
use crate::api::Blame;
use crate::upstream::schemas::{self, Schema};
use kube_cel::{ErrorKind, Validator};
use serde_json::Value;
use structure::{Extent, Misfit, has_placeholder, misfits};

/// The mistakes in an object's `spec`, each with its place. Those that `is_told` knows have a finding that says more.
pub fn flaws(blame: &Blame, object: &Value, piece: &Piece, is_told: &dyn Fn(&str) -> bool) -> Vec<(Mistake, Place)> {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let Some(schema) = schemas::find(text("apiVersion"), text("kind")) else { return Vec::new() };
    let spec = &without_nulls(&object["spec"]);
    let extent = if piece.is_patch { Extent::Part } else { Extent::of(&schema.spec, spec) };
    let mut found = misfits(&schema.spec, spec, extent);
    if is_of_auto_mode(spec) {
        found.retain(|misfit| !misfit.is_unknown);
    }
    let broken = broken_rules(schema, spec, &found, extent);
    found.extend(broken);
    found.retain(|misfit| !is_told(&misfit.path.join(".")));
    found.into_iter().map(|misfit| flaw(blame, piece, &misfit)).collect()
}

/// As the API server sees it, which drops nulls first.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(_, value)| !value.is_null());
            kept.map(|(key, value)| (key.clone(), without_nulls(value))).collect()
        }
        other => other.clone(),
    }
}

fn flaw(blame: &Blame, piece: &Piece, misfit: &Misfit) -> (Mistake, Place) {
    let field = misfit.path.join(".");
    let (level, cause, effect) = if misfit.is_unknown {
        (
            Level::Warning,
            "UnknownField",
            "kubectl refuses the object, and Helm, Argo CD and Flux apply it without the field",
        )
    } else {
        (Level::Error, "RefusedByApiServer", "The API server rejects the object")
    };
    let mistake = Mistake {
        level,
        cause: cause.to_owned(),
        message: format!("{}: {field} {}. {effect}.", blame.object, misfit.says),
        fix: None,
        blame: blame.clone().field(field),
        grave: false,
    };
    (mistake, piece.place_of(&misfit.path))
}

/// The schema of NodePools in Auto Mode is not published: it may have more fields than Karpenter's.
fn is_of_auto_mode(spec: &Value) -> bool {
    spec["template"]["spec"]["nodeClassRef"]["group"] == "eks.amazonaws.com"
}

/// The rules of the schema that the object breaks, where its structure is right.
fn broken_rules(schema: &Schema, spec: &Value, misfits: &[Misfit], extent: Extent) -> Vec<Misfit> {
    let Err(errors) = Validator::new().validate_compiled(&schema.rules, spec, None) else { return Vec::new() };
    let mut broken: Vec<Misfit> = Vec::new();
    for error in errors.as_slice() {
        let mut path = path_of(&error.field_path);
        let Some(part) = at(spec, &path) else { continue };
        let is_told =
            misfits.iter().any(|own| !own.is_unknown && (own.path.starts_with(&path) || path.starts_with(&own.path)));
        // Something may have to merge the object with its rest before it is whole.
        let is_partial = path.len() == 1 && extent == Extent::Part;
        if is_told || is_partial || is_filled_in(&error.rule, part) {
            continue;
        }
        let says = match (&error.kind, error.message.split_once("No such key: ")) {
            (ErrorKind::ValidationFailure, _) => format!("breaks a rule of the kind: {}", error.message),
            // The items of a list are complete. Other fields may be left to a patch.
            (ErrorKind::EvaluationError, Some((_, key))) if part.is_array() => {
                format!("lacks {key}, which a rule of the kind reads")
            }
            _ => continue,
        };
        path.extend(item_at_fault(schema, spec, &path, &error.rule));
        if broken.iter().all(|own| own.path != path) {
            broken.push(Misfit { path, says, is_unknown: false });
        }
    }
    broken
}

/// Whether a template will fill in what the rule reads of this part.
fn is_filled_in(rule: &str, part: &Value) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut read = rule.split("self.").skip(1).map(|rest| rest.split(|c| !is_name(c)).next().unwrap_or_default());
    let Some(fields) = part.as_object().filter(|_| rule.contains("self.")) else { return has_placeholder(part) };
    read.any(|field| fields.get(field).is_some_and(has_placeholder))
}

/// The place of the item that breaks the rule of its list on its own.
fn item_at_fault(schema: &Schema, spec: &Value, path: &[String], rule: &str) -> Option<String> {
    let count = at(spec, path)?.as_array()?.len();
    let breaks = |place: &usize| {
        let mut alone = spec.clone();
        let Some(Value::Array(items)) = at_mut(&mut alone, path) else { return false };
        *items = vec![items.swap_remove(*place)];
        let broken = Validator::new().validate_compiled(&schema.rules, &alone, None);
        broken.is_err_and(|errors| {
            errors.as_slice().iter().any(|error| error.rule == rule && path_of(&error.field_path) == path)
        })
    };
    (0..count).find(breaks).map(|place| place.to_string())
}

/// `amiSelectorTerms[0].alias` as steps, behind `spec`.
fn path_of(field: &str) -> Vec<String> {
    let steps = field.split(['.', '[']).map(|step| step.trim_end_matches(']')).filter(|step| !step.is_empty());
    ["spec"].into_iter().chain(steps).map(str::to_owned).collect()
}

fn at<'v>(spec: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().skip(1).try_fold(spec, |value, step| match value {
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        _ => value.get(step),
    })
}

fn at_mut<'v>(spec: &'v mut Value, path: &[String]) -> Option<&'v mut Value> {
    path.iter().skip(1).try_fold(spec, |value, step| match value {
        Value::Array(items) => items.get_mut(step.parse::<usize>().ok()?),
        _ => value.get_mut(step),
    })
}

#[cfg(test)]
mod tests {
    use super::structure::form;
    use super::{Extent, misfits, schemas};
    use kube_cel::{CompiledSchema, ErrorKind, Validator};
    use regex::Regex;
    use serde_json::{Value, json};

    fn compiles(schema: &CompiledSchema) -> bool {
        let inner =
            schema.properties.values().chain(schema.items.as_deref()).chain(schema.additional_properties.as_deref());
        schema.compilation_errors().is_empty() && inner.into_iter().all(compiles)
    }

    fn patterns(schema: &Value, all: &mut Vec<String>) {
        match schema {
            Value::Object(fields) => {
                all.extend(fields.get("pattern").and_then(Value::as_str).map(str::to_owned));
                fields.values().for_each(|inner| patterns(inner, all));
            }
            Value::Array(items) => items.iter().for_each(|inner| patterns(inner, all)),
            _ => {}
        }
    }

    #[test]
    fn every_rule_and_every_pattern_of_the_schemas_can_be_evaluated() {
        for (api_version, kind, least) in [
            ("karpenter.k8s.aws/v1", "EC2NodeClass", 6),
            ("karpenter.sh/v1", "NodePool", 6),
            ("karpenter.sh/v1alpha1", "NodeOverlay", 5),
        ] {
            let schema = schemas::find(api_version, kind).expect("a schema");
            assert!(compiles(&schema.rules), "{kind}");
            let mut all = Vec::new();
            patterns(&schema.spec, &mut all);
            assert!(all.len() >= least, "{kind}: {all:?}");
            for pattern in all {
                assert!(Regex::new(&pattern).is_ok() && form(&pattern).is_some(), "{kind}: {pattern}");
            }
        }
    }

    #[test]
    fn the_rules_use_no_function_that_is_missing() {
        let pool = json!({
            "limits": {"cpu": "10"}, "disruption": {"budgets": [{"nodes": "1", "schedule": "@daily"}]},
            "template": {
                "metadata": {"labels": {"karpenter.k8s.aws/x": "1"}},
                "spec": {
                    "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "a"},
                    "requirements": [{"key": "karpenter.sh/x", "operator": "In", "values": ["a"], "minValues": 2},
                        {"key": "kubernetes.io/hostname", "operator": "Gt", "values": ["1"]}],
                },
            },
        });
        let class = json!({
            "amiFamily": "AL2", "role": "a", "instanceProfile": "b", "tags": {"kubernetes.io/cluster/a": "owned"},
            "amiSelectorTerms": [{"alias": "al2023@latest"}, {"id": "ami-1"}],
            "subnetSelectorTerms": [{"id": "subnet-1", "tags": {"a": "b"}}], "securityGroupSelectorTerms": [{"name": "a", "id": "sg-1"}],
            "capacityReservationSelectorTerms": [{"ownerID": "111122223333"}],
            "blockDeviceMappings": [{"ebs": {"volumeInitializationRate": 200}}],
        });
        for (api_version, kind, spec, least) in
            [("karpenter.sh/v1", "NodePool", pool, 5), ("karpenter.k8s.aws/v1", "EC2NodeClass", class, 8)]
        {
            let schema = schemas::find(api_version, kind).expect("a schema");
            assert!(misfits(&schema.spec, &spec, Extent::Part).is_empty(), "{kind}: the structure is right");
            let errors = Validator::new().validate_compiled(&schema.rules, &spec, None).expect_err("broken rules");
            let other: Vec<_> = errors.as_slice().iter().filter(|e| e.kind != ErrorKind::ValidationFailure).collect();
            assert!(other.is_empty(), "{other:#?}");
            assert!(errors.as_slice().len() >= least, "{errors:#?}");
        }
    }
}
