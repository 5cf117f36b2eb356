//! A dump put back into an API server, as if it had been made now.

use super::ControlPlane;
use crate::objects::documents;
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};

impl ControlPlane {
    /// Writes the dump's objects with their status, the newest of their times now. Workloads are left out: what runs
    /// here is another Karpenter. When an object was created, the API server says itself.
    pub fn replay(&self, dump: &str) {
        let mut objects = documents(dump);
        objects.retain(|object| object["kind"] != "Pod" && object["kind"] != "Deployment");
        let mut newest = DateTime::UNIX_EPOCH;
        for object in &mut objects {
            each_time(object, &mut |at, _| newest = newest.max(at));
        }
        let later = Utc::now() - newest;
        for object in &mut objects {
            each_time(object, &mut |at, text| *text = moved(at, later, text));
            self.write(object);
        }
    }

    fn write(&self, object: &Value) {
        let metadata = &object["metadata"];
        let mut written = object.clone();
        written["metadata"] = json!({
            "name": metadata["name"], "namespace": metadata["namespace"], "labels": metadata["labels"],
            "annotations": metadata["annotations"],
        });
        if object["kind"] == "Event" {
            // Its object has begun another life.
            let about = &object["involvedObject"];
            let now =
                about["kind"].as_str().zip(about["name"].as_str()).and_then(|(kind, name)| self.get(&[kind, name]));
            written["involvedObject"]["uid"] = now.map_or(Value::Null, |now| now["metadata"]["uid"].clone());
        }
        self.apply(&written);
        let is_of_the_cluster = metadata["namespace"].is_null();
        if let (Some(kind), Some(name), true) = (object["kind"].as_str(), metadata["name"].as_str(), is_of_the_cluster)
            && !object["status"].is_null()
        {
            self.patch_status(kind, name, "merge", &json!({"status": object["status"]}));
            // The API server gives every new Node a taint.
            // Source: kubernetes v1.36 plugin/pkg/admission/nodetaint/admission.go
            if kind == "Node" {
                let taints = json!({"spec": {"taints": object["spec"]["taints"]}});
                self.kubectl(&["patch", "node", name, "--type=merge", "--patch", &taints.to_string()]);
            }
        }
    }
}

/// Every text that is a time.
fn each_time(value: &mut Value, see: &mut impl FnMut(DateTime<Utc>, &mut String)) {
    match value {
        Value::String(text) => {
            if let Ok(at) = DateTime::parse_from_rfc3339(text) {
                see(at.to_utc(), text);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| each_time(item, see)),
        Value::Object(fields) => fields.values_mut().for_each(|field| each_time(field, see)),
        _ => {}
    }
}

fn moved(at: DateTime<Utc>, later: TimeDelta, text: &str) -> String {
    let precision = if text.contains('.') { SecondsFormat::Micros } else { SecondsFormat::Secs };
    (at + later).to_rfc3339_opts(precision, true)
}
