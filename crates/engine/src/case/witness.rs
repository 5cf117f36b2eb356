//! What an exclusion rests on: something that was seen. That nothing was seen excludes nothing.

use crate::api::Text;
use crate::cluster_state::AwsAuthFacts;
use crate::objects::{
    AwsObservation, CertificateSigningRequest, EniConfig, Event, Node, NodeClaim, NodeClass, NodePool, Pod,
    ReviewStatus,
};

/// An object that was seen, or an answer of AWS; it is made from nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighting(Text);

impl From<Sighting> for Text {
    fn from(Sighting(object): Sighting) -> Self {
        object
    }
}

macro_rules! named {
    ($($view:ident),*) => {
        $(impl From<&$view> for Sighting {
            fn from(object: &$view) -> Self {
                Self(format!(concat!(stringify!($view), "/{}"), object.metadata.name).into())
            }
        })*
    };
}

named!(CertificateSigningRequest, Event, Node, NodeClaim, NodePool, Pod);

impl From<&NodeClass> for Sighting {
    fn from(class: &NodeClass) -> Self {
        Self(format!("{}/{}", class.kind, class.name()).into())
    }
}

impl From<&EniConfig> for Sighting {
    fn from(config: &EniConfig) -> Self {
        Self(format!("ENIConfig/{}", config.metadata.name).into())
    }
}

impl From<&AwsAuthFacts> for Sighting {
    fn from(_: &AwsAuthFacts) -> Self {
        Self("ConfigMap/aws-auth".into())
    }
}

/// The API server keeps no review and gives it no name.
impl From<&ReviewStatus> for Sighting {
    fn from(_: &ReviewStatus) -> Self {
        Self("SubjectAccessReview".into())
    }
}

impl From<&AwsObservation> for Sighting {
    fn from(answer: &AwsObservation) -> Self {
        Self(format!("{} {}", answer.call, answer.about).into())
    }
}
