//! The fields of Kubernetes' messages that nodewhy reads: the number of each, and its form in JSON. All other fields
//! are skipped, such as the images of a Node, which are a third of it.
//!
//! `tests/e2e/upstream` compares each row with the `generated.proto` of its package in k8s.io/api and
//! k8s.io/apimachinery v0.36.3. `tests/it/foreign` compares it with the fields that the rules read.

/// Paths of lists and watches that nodewhy reads as protobuf.
pub const PATHS: [&str; 2] = ["/api/v1/nodes", "/api/v1/events"];

/// A message, as far as it is read.
#[derive(Debug)]
pub struct Message {
    /// Its package in Go.
    pub package: &'static str,
    pub name: &'static str,
    pub fields: &'static [MessageField],
}

/// A field that is read.
#[derive(Debug)]
pub struct MessageField {
    pub number: u64,
    pub name: &'static str,
    pub many: Many,
    pub shape: Shape,
}

/// How often a field occurs in its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Many {
    One,
    List,
    /// A list that is written even if it is empty, because kube's client needs it.
    Items,
    /// A list of keys and values.
    Map,
}

/// How a value is written as JSON.
#[derive(Debug)]
pub enum Shape {
    Text,
    Flag,
    Number,
    /// Bytes that are JSON.
    Json,
    /// Seconds since 1970 and nanoseconds, written as text. An absent time is null.
    Time,
    Object(&'static Message),
    /// A message that JSON writes as its one field.
    Only(&'static Message),
}

const fn field(number: u64, name: &'static str, shape: Shape) -> MessageField {
    MessageField { number, name, many: Many::One, shape }
}

const fn list(number: u64, name: &'static str, shape: Shape) -> MessageField {
    MessageField { number, name, many: Many::List, shape }
}

const fn items(shape: Shape) -> MessageField {
    MessageField { number: 2, name: "items", many: Many::Items, shape }
}

const fn map(number: u64, name: &'static str, shape: Shape) -> MessageField {
    MessageField { number, name, many: Many::Map, shape }
}

use Shape::{Flag, Json, Number, Object, Only, Text, Time};

const CORE: &str = "k8s.io/api/core/v1";
const META: &str = "k8s.io/apimachinery/pkg/apis/meta/v1";
const QUANTITIES: &str = "k8s.io/apimachinery/pkg/api/resource";

/// The messages that an answer may contain. All are `v1`.
pub const ANSWERS: [&Message; 5] = [&NODE_LIST, &NODE, &EVENT_LIST, &EVENT, &STATUS];

const NODE_LIST: Message = Message {
    package: CORE,
    name: "NodeList",
    fields: &[field(1, "metadata", Object(&LIST_META)), items(Object(&NODE))],
};

const NODE: Message = Message {
    package: CORE,
    name: "Node",
    fields: &[
        field(1, "metadata", Object(&OBJECT_META)),
        field(2, "spec", Object(&NODE_SPEC)),
        field(3, "status", Object(&NODE_STATUS)),
    ],
};

const NODE_SPEC: Message = Message {
    package: CORE,
    name: "NodeSpec",
    fields: &[field(3, "providerID", Text), field(4, "unschedulable", Flag), list(5, "taints", Object(&TAINT))],
};

const TAINT: Message = Message {
    package: CORE,
    name: "Taint",
    fields: &[field(1, "key", Text), field(2, "value", Text), field(3, "effect", Text), field(4, "timeAdded", Time)],
};

const NODE_STATUS: Message = Message {
    package: CORE,
    name: "NodeStatus",
    fields: &[
        map(2, "allocatable", Only(&QUANTITY)),
        list(4, "conditions", Object(&NODE_CONDITION)),
        list(5, "addresses", Object(&NODE_ADDRESS)),
        field(7, "nodeInfo", Object(&NODE_SYSTEM_INFO)),
    ],
};

const QUANTITY: Message = Message { package: QUANTITIES, name: "Quantity", fields: &[field(1, "string", Text)] };

const NODE_CONDITION: Message = Message {
    package: CORE,
    name: "NodeCondition",
    fields: &[
        field(1, "type", Text),
        field(2, "status", Text),
        field(3, "lastHeartbeatTime", Time),
        field(4, "lastTransitionTime", Time),
        field(5, "reason", Text),
        field(6, "message", Text),
    ],
};

const NODE_ADDRESS: Message =
    Message { package: CORE, name: "NodeAddress", fields: &[field(1, "type", Text), field(2, "address", Text)] };

const NODE_SYSTEM_INFO: Message = Message {
    package: CORE,
    name: "NodeSystemInfo",
    fields: &[
        field(4, "kernelVersion", Text),
        field(5, "osImage", Text),
        field(7, "kubeletVersion", Text),
        field(9, "operatingSystem", Text),
    ],
};

const EVENT_LIST: Message = Message {
    package: CORE,
    name: "EventList",
    fields: &[field(1, "metadata", Object(&LIST_META)), items(Object(&EVENT))],
};

const EVENT: Message = Message {
    package: CORE,
    name: "Event",
    fields: &[
        field(1, "metadata", Object(&OBJECT_META)),
        field(2, "involvedObject", Object(&OBJECT_REFERENCE)),
        field(3, "reason", Text),
        field(4, "message", Text),
        field(5, "source", Object(&EVENT_SOURCE)),
        field(6, "firstTimestamp", Time),
        field(7, "lastTimestamp", Time),
        field(8, "count", Number),
        field(9, "type", Text),
        field(10, "eventTime", Time),
        field(11, "series", Object(&EVENT_SERIES)),
        field(14, "reportingComponent", Text),
    ],
};

const OBJECT_REFERENCE: Message = Message {
    package: CORE,
    name: "ObjectReference",
    fields: &[field(1, "kind", Text), field(2, "namespace", Text), field(3, "name", Text), field(4, "uid", Text)],
};

const EVENT_SOURCE: Message =
    Message { package: CORE, name: "EventSource", fields: &[field(1, "component", Text), field(2, "host", Text)] };

const EVENT_SERIES: Message = Message {
    package: CORE,
    name: "EventSeries",
    fields: &[field(1, "count", Number), field(2, "lastObservedTime", Time)],
};

const OBJECT_META: Message = Message {
    package: META,
    name: "ObjectMeta",
    fields: &[
        field(1, "name", Text),
        field(3, "namespace", Text),
        field(5, "uid", Text),
        field(6, "resourceVersion", Text),
        field(8, "creationTimestamp", Time),
        field(9, "deletionTimestamp", Time),
        map(11, "labels", Text),
        map(12, "annotations", Text),
        list(13, "ownerReferences", Object(&OWNER_REFERENCE)),
        list(14, "finalizers", Text),
        list(17, "managedFields", Object(&MANAGED_FIELDS_ENTRY)),
    ],
};

const OWNER_REFERENCE: Message = Message {
    package: META,
    name: "OwnerReference",
    fields: &[field(1, "kind", Text), field(3, "name", Text), field(5, "apiVersion", Text)],
};

const MANAGED_FIELDS_ENTRY: Message = Message {
    package: META,
    name: "ManagedFieldsEntry",
    fields: &[
        field(1, "manager", Text),
        field(4, "time", Time),
        field(7, "fieldsV1", Only(&FIELDS_V1)),
        field(8, "subresource", Text),
    ],
};

const FIELDS_V1: Message = Message { package: META, name: "FieldsV1", fields: &[field(1, "Raw", Json)] };

const LIST_META: Message = Message {
    package: META,
    name: "ListMeta",
    fields: &[field(2, "resourceVersion", Text), field(3, "continue", Text), field(4, "remainingItemCount", Number)],
};

/// Why a request or a watch failed.
const STATUS: Message = Message {
    package: META,
    name: "Status",
    fields: &[
        field(1, "metadata", Object(&LIST_META)),
        field(2, "status", Text),
        field(3, "message", Text),
        field(4, "reason", Text),
        field(6, "code", Number),
    ],
};
