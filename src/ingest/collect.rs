//! `nodewhy collect`: the dump that `nodewhy diagnose -f` reads, of what nodewhy reads and no more.
//!
//! An object is written as its view is (`engine::objects`), so a field that no view has stays in the cluster, and what
//! is read of the dump is what was read of the cluster. Of annotations, which views keep whole, only those are written
//! that rules ask for.

use chrono::{DateTime, SecondsFormat, Utc};
use engine::objects::ApiServerFacts;
use engine::objects::input::{Input, Object};
use engine::upstream::annotations;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The annotation of the list that says when it was made: nothing else in a dump tells.
pub const COLLECTED_AT: &str = "nodewhy.dev/collected-at";

/// The annotation of the list that names the kinds that were read, with a comma between them: of which there is nothing
/// in the list, there was nothing in the cluster.
pub const READ: &str = "nodewhy.dev/read";

/// The annotations of the list that say of which API server it is.
pub const SERVER: &str = "nodewhy.dev/server";
pub const VERSION: &str = "nodewhy.dev/version";

/// The objects as one JSON `List`, made at this time, of all that was read.
pub fn list(
    objects: &[Object],
    read: impl IntoIterator<Item = Input>,
    api_server: &ApiServerFacts,
    at: DateTime<Utc>,
) -> serde_json::Result<String> {
    let told = objects.iter().filter_map(|object| match object {
        // amazon-vpc-cni-k8s v1.20.4 README.md: the annotation that names a Node's ENIConfig.
        Object::DaemonSet(set) => set.env("ENI_CONFIG_ANNOTATION_DEF"),
        _ => None,
    });
    let annotations: BTreeSet<&str> = annotations::READ.into_iter().chain(told).collect();
    let items: Vec<Value> = objects.iter().map(|object| disclosed(object, &annotations)).collect::<Result<_, _>>()?;
    let at = at.to_rfc3339_opts(SecondsFormat::Secs, true);
    let read = read.into_iter().map(Input::name).collect::<Vec<_>>().join(",");
    let ApiServerFacts { address, version } = api_server;
    let annotations = json!({COLLECTED_AT: at, READ: read, SERVER: address, VERSION: version});
    let mut list =
        json!({"apiVersion": "v1", "kind": "List", "metadata": {"annotations": annotations}, "items": items});
    drop_nulls(&mut list);
    Ok(list.to_string() + "\n")
}

fn disclosed(object: &Object, annotations: &BTreeSet<&str>) -> serde_json::Result<Value> {
    let mut value = serde_json::to_value(object)?;
    for metadata in ["/metadata", "/spec/template/metadata"] {
        if let Some(Value::Object(all)) = value.pointer_mut(&format!("{metadata}/annotations")) {
            all.retain(|name, _| annotations.contains(name.as_str()));
        }
    }
    if let (Value::Object(fields), Value::Object(type_)) = (&mut value, serde_json::to_value(object.type_meta())?) {
        fields.extend(type_);
    }
    Ok(value)
}

/// Removes fields that are null.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(values) => values.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_annotation_that_the_vpc_cni_is_told_to_look_for_is_kept_and_others_are_not() {
        let read = |input, value| Object::from_value(input, value).unwrap();
        let env = json!([{"name": "ENI_CONFIG_ANNOTATION_DEF", "value": "acme.io/eni"}]);
        let objects = [
            read(
                Input::Nodes,
                json!({"metadata": {"name": "n", "annotations": {"acme.io/eni": "a", "acme.io/note": "hunter2"}}}),
            ),
            read(
                Input::DaemonSets,
                json!({"metadata": {"name": "d"}, "spec": {"template": {"spec": {"containers": [{"env": env}]}}}}),
            ),
        ];
        let dump: Value =
            serde_json::from_str(&list(&objects, [], &ApiServerFacts::default(), DateTime::UNIX_EPOCH).unwrap())
                .unwrap();
        assert_eq!(dump["items"][0]["metadata"]["annotations"], json!({"acme.io/eni": "a"}));
        assert_eq!(
            (&dump["items"][0]["apiVersion"], &dump["items"][1]["apiVersion"]),
            (&json!("v1"), &json!("apps/v1"))
        );
    }
}
