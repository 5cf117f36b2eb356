//! core/v1 and events.k8s.io/v1 Event, read as one.

use super::quote::steady;
use super::{Meta, message, nullable};
use chrono::{DateTime, Utc};
use readers::source_text;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Event {
    pub metadata: Meta,
    #[serde(alias = "regarding", deserialize_with = "nullable")]
    pub involved_object: Regarding,
    #[serde(with = "message")]
    pub reason: String,
    #[serde(alias = "note", with = "message")]
    pub message: String,
    #[serde(rename = "type", deserialize_with = "nullable")]
    pub type_: String,
    #[serde(alias = "deprecatedSource", deserialize_with = "nullable")]
    pub source: EventSource,
    #[serde(alias = "reportingController", deserialize_with = "nullable")]
    pub reporting_component: String,
    #[serde(alias = "deprecatedCount")]
    pub count: Option<u32>,
    #[serde(alias = "deprecatedFirstTimestamp")]
    pub first_timestamp: Option<DateTime<Utc>>,
    #[serde(alias = "deprecatedLastTimestamp")]
    pub last_timestamp: Option<DateTime<Utc>>,
    pub event_time: Option<DateTime<Utc>>,
    #[serde(deserialize_with = "nullable")]
    pub series: Series,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Regarding {
    #[serde(deserialize_with = "nullable")]
    pub kind: String,
    pub namespace: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    #[serde(deserialize_with = "nullable")]
    pub uid: String,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct EventSource {
    #[serde(deserialize_with = "nullable")]
    pub component: String,
    #[serde(deserialize_with = "nullable")]
    pub host: String,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Series {
    pub count: Option<u32>,
    pub last_observed_time: Option<DateTime<Utc>>,
}

impl Event {
    /// Its message, for sentences. Whoever reports puts in what he likes, a command line with a password too.
    pub fn said(&self) -> String {
        source_text::mask(&steady(&self.message))
    }

    /// When it was last seen.
    pub fn last_seen(&self) -> Option<DateTime<Utc>> {
        [
            self.series.last_observed_time,
            self.last_timestamp,
            self.event_time,
            self.first_timestamp,
            self.metadata.creation_timestamp,
        ]
        .into_iter()
        .flatten()
        .max()
    }

    /// How often it was seen, at least once.
    pub fn times(&self) -> u32 {
        self.series.count.or(self.count).unwrap_or(1).max(1)
    }

    /// Whether it names this object of a namespace. One of another kind, or an earlier one, may be called so too.
    pub fn names(&self, object: &Meta) -> bool {
        self.involved_object.name == *object.name && self.metadata.namespace == object.namespace
    }

    /// Who reported it.
    pub fn reporter(&self) -> &str {
        if self.source.component.is_empty() { &self.reporting_component } else { &self.source.component }
    }
}
