//! `nodewhy collect`: the dump that `nodewhy diagnose -f` reads, without the secrets that user data may hold.

use chrono::{DateTime, SecondsFormat, Utc};
use readers::source_text;
use serde_json::{Value, json};

/// The annotation of the list that says when it was made: nothing else in a dump tells.
pub const COLLECTED_AT: &str = "nodewhy.dev/collected-at";

/// The objects as one JSON `List`, made at this time.
#[must_use]
pub fn list(objects: &[Value], at: DateTime<Utc>) -> String {
    let at = at.to_rfc3339_opts(SecondsFormat::Secs, true);
    json!({"apiVersion": "v1", "kind": "List", "metadata": {"annotations": {COLLECTED_AT: at}}, "items": objects}).to_string() + "\n"
}

/// An object as it may leave the cluster: user data masked line by line, so that places in it stay right, and no access key ids.
pub fn disclosed(mut value: Value) -> Value {
    if let Some(Value::String(user_data)) = value.pointer_mut("/spec/userData") {
        *user_data = user_data.split('\n').map(source_text::mask).collect::<Vec<_>>().join("\n");
    }
    // aws-iam-authenticator @81b1dab pkg/server/server.go adds the kubelet's access key id to each request.
    if let Some(Value::Object(extra)) = value.pointer_mut("/spec/extra") {
        extra.remove("accessKeyId");
    }
    // The last applied configuration repeats the user data.
    if let Some(Value::Object(annotations)) = value.pointer_mut("/metadata/annotations") {
        annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    }
    // Environment variables of workloads are nobody's business but for the few that rules read.
    for container in value.pointer_mut("/spec/template/spec/containers").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(env) = container.get_mut("env").and_then(Value::as_array_mut) {
            env.retain(|e| e["name"] == "CLUSTER_NAME" || e["name"] == "CLUSTER_ENDPOINT");
        }
    }
    for container in value.pointer_mut("/spec/containers").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(container) = container.as_object_mut() {
            container.remove("env");
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_stay_in_the_cluster_and_places_stay_right() {
        let object = json!({
            "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass",
            "metadata": {"name": "default", "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "TOKEN=hunter2"}},
            "spec": {"userData": "#!/bin/bash\nexport TOKEN=hunter2\n/etc/eks/bootstrap.sh x\n", "extra": {"accessKeyId": ["AKIA1"]}},
        });
        let shown = disclosed(object);
        assert_eq!(shown["spec"]["userData"], "#!/bin/bash\nexport TOKEN=***\n/etc/eks/bootstrap.sh x\n");
        assert!(!shown.to_string().contains("hunter2") && !shown.to_string().contains("AKIA1"));
    }
}
