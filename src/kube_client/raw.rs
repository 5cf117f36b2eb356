//! An object as the API server wrote it, or as `super::protobuf` writes what is read of it. Its text is kept until
//! somebody reads the few fields of it that matter: a tree of all its values, which `DynamicObject` is, takes ten times
//! the memory and most of the time (docs/adr/0006-objects-stay-text.md).

use engine::objects::input::{Input, Object, Reading};
use engine::objects::json_fields::fields;
use engine::objects::odd::{self, OddField};
use kube::Resource;
use kube::api::{ApiResource, DynamicObject, Log, ObjectMeta};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::ops::ControlFlow;

/// The text of an object, and of its metadata what listing and watching need.
#[derive(Debug, Clone)]
pub struct Raw {
    /// Name, namespace and resourceVersion, nothing else.
    metadata: ObjectMeta,
    text: Box<RawValue>,
}

/// An odd object is an object without a name: it must not fail the list that it stands in.
impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize, Default)]
        #[serde(default, rename_all = "camelCase")]
        struct Names {
            name: Option<String>,
            namespace: Option<String>,
            resource_version: Option<String>,
        }
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let mut names = Names::default();
        // Up to the end of the metadata: most of a Node comes after it.
        fields(text.get(), |field, value| {
            if field != "metadata" {
                return ControlFlow::Continue(());
            }
            names = serde_json::from_str(value.get()).unwrap_or_default();
            ControlFlow::Break(())
        });
        let Names { name, namespace, resource_version } = names;
        Ok(Self { metadata: ObjectMeta { name, namespace, resource_version, ..ObjectMeta::default() }, text })
    }
}

impl Raw {
    pub fn text(&self) -> &str {
        self.text.get()
    }

    /// The name; empty where the object has none.
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// The facts of it, and the fields of another type than the kind has there. Lists leave out the type of their
    /// items, so that of the list is taken.
    pub fn read(&self, input: Input, resource: &ApiResource) -> Result<(Object, Vec<OddField>), String> {
        let read = Object::from_json(input, self.text());
        let (mut object, odd) = if let Ok(object) = read {
            (object, Vec::new())
        } else {
            let value: serde_json::Value = serde_json::from_str(self.text()).map_err(|error| error.to_string())?;
            odd::read(Reading::As(input), &value)
                .map_err(|odd| odd.first().map_or_else(|| "it is no such object".to_owned(), ToString::to_string))?
        };
        // Without its name nobody can say whose fields these are.
        if let Some(field) = odd.iter().find(|field| field.touches("metadata.name") && !field.is_read) {
            return Err(field.to_string());
        }
        if let Object::NodeClass(class) = &mut object {
            class.api_version.clone_from(&resource.api_version);
            class.kind.clone_from(&resource.kind);
        }
        Ok((object, odd))
    }

    /// Every field of it, and its type.
    pub fn whole(&self, resource: &ApiResource) -> Result<serde_json::Value, serde_json::Error> {
        let mut value: serde_json::Value = serde_json::from_str(self.text())?;
        if let Some(fields) = value.as_object_mut() {
            fields.insert("apiVersion".to_owned(), resource.api_version.as_str().into());
            fields.insert("kind".to_owned(), resource.kind.as_str().into());
        }
        Ok(value)
    }
}

impl Resource for Raw {
    type DynamicType = ApiResource;
    type Scope = <DynamicObject as Resource>::Scope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        DynamicObject::kind(resource)
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        DynamicObject::group(resource)
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        DynamicObject::version(resource)
    }

    fn api_version(resource: &ApiResource) -> Cow<'_, str> {
        DynamicObject::api_version(resource)
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        DynamicObject::plural(resource)
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// Of these only Pods have logs, and only their resource is asked for one.
impl Log for Raw {}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::api::ObjectList;

    fn node_classes() -> ApiResource {
        let gvk = kube::api::GroupVersionKind::gvk("karpenter.k8s.aws", "v1", "EC2NodeClass");
        ApiResource::from_gvk_with_plural(&gvk, "ec2nodeclasses")
    }

    #[test]
    fn one_odd_object_does_not_fail_the_list_and_each_has_its_type() {
        let list = r#"{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"7"},
            "items":[{"metadata":{"name":"a"},"spec":{"userData":"x"}},{"metadata":"x"},17,{"metadata":{"name":"b"},"spec":1}]}"#;
        let list: ObjectList<Raw> = serde_json::from_str(list).unwrap();
        let names: Vec<_> = list.items.iter().map(Raw::name).collect();
        assert_eq!(names, ["a", "", "", "b"]);
        let read = |raw: &Raw| raw.read(Input::NodeClasses, &node_classes());
        let odd: Vec<_> = list.items.iter().map(|raw| read(raw).map(|(_, odd)| odd.len()).ok()).collect();
        assert_eq!(odd, [Some(0), None, None, Some(1)]);
        let Ok((Object::NodeClass(class), _)) = read(&list.items[0]) else { panic!("no class") };
        assert_eq!((class.api_version.as_str(), class.kind.as_str()), ("karpenter.k8s.aws/v1", "EC2NodeClass"));
        assert_eq!(list.items[0].whole(&node_classes()).unwrap()["kind"], "EC2NodeClass");
    }

    /// The API server writes the type first; only then the object need not be held as a tree before it is known what it
    /// is.
    #[test]
    fn a_watch_event_is_read_as_the_api_server_writes_it() {
        let event = r#"{"type":"ADDED","object":{"kind":"Node","metadata":{"name":"n","resourceVersion":"9"}}}"#;
        let Ok(kube::api::WatchEvent::Added(raw)) = serde_json::from_str::<kube::api::WatchEvent<Raw>>(event) else {
            panic!("no event")
        };
        assert_eq!((raw.name(), raw.meta().resource_version.as_deref()), ("n", Some("9")));
    }
}
