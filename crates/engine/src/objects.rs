//! Narrow views of other people's kinds: only what a rule reads, everything optional.
//!
//! A view never insists on a field: objects come from clusters of many versions, from dumps cut by hand, from
//! half-written tests. What is missing is empty. What has the wrong type is left out and named, and the rest of the
//! object is read (`odd.rs`).
//!
//! Nothing else says which fields nodewhy reads. Each view is written as it is read, so what `nodewhy collect` prints
//! of an object is its view, and reading that gives an equal one. Messages are masked where they are read, other free
//! text where it is written (`disclosed.rs`).

mod affinity;
mod api_server;
mod auth;
mod aws;
mod aws_access;
mod aws_ec2;
mod aws_network;
mod custom_resource;
mod disclosed;
mod disruption_budget;
mod eni_config;
mod event;
pub mod former;
pub mod input;
pub mod intern;
pub mod json_fields;
mod label_selector;
mod machine_log;
mod meta;
mod node;
mod node_claim;
mod node_class;
mod node_overlay;
mod node_pool;
pub mod odd;
mod pairs;
pub(crate) mod quantity;
mod quote;
mod service;
pub mod sink;
mod volatile;
mod volume_attachment;
pub mod watched;
mod webhook;
mod workload;

pub use affinity::{Affinity, NodeAffinity, NodeSelector, NodeSelectorTerm};
pub use api_server::ApiServerFacts;
pub use auth::{
    ApiServer, CertificateSigningRequest, ConfigMap, ConfigMapData, CsrStatus, ROLE_ARN, ReviewStatus, ServiceAccount,
    SubjectAccessReview,
};
pub use aws::{Answer, AwsObservation, AwsRefusal};
pub use aws_access::{AccessEntry, EksCluster, InstanceProfile, KeyUsers, KmsKey, RolePolicies};
pub use aws_ec2::{Checks, Console, Image, ImageVolume, Instance, InstanceType, ServiceQuota};
pub use aws_network::{
    AclEntry, DhcpOptions, DnsAttributes, GroupRule, GroupRules, NatGateway, NetworkAcl, RouteTable, Vpc, VpcEndpoint,
    VpcRoute, VpcSubnet,
};
pub use custom_resource::CustomResourceDefinition;
pub use disruption_budget::{DisruptionBudgetSpec, PodDisruptionBudget};
pub use eni_config::EniConfig;
pub use event::Event;
pub use label_selector::LabelSelector;
pub use machine_log::MachineLog;
pub use meta::{CLOUD_LABELS, Condition, ManagedField, Meta, OwnerReference, Taint, Written, conditions};
pub use node::{Address, Node, NodeInfo, NodeSpec, NodeStatus};
pub use node_claim::{NodeClaim, NodeClaimSpec, NodeClaimStatus, NodeClassRef, Requirement, Resources};
pub use node_class::{
    Ami, AmiTerm, BlockDevice, CapacityReservation, Ebs, MetadataOptions, NodeClass, NodeClassSpec, NodeClassStatus,
    OTHER_KINDS, SecurityGroup, SelectorTerm, Subnet, is_of_other_provider,
};
pub use node_overlay::{NodeOverlay, NodeOverlaySpec, NodeOverlayStatus, SpotDearer};
pub use node_pool::{NodePool, NodePoolSpec, NodePoolStatus, Template, TemplateSpec};
pub use pairs::Pairs;
pub(crate) use quote::steady;
pub use service::ClusterService;
pub use volatile::Volatile;
pub use volume_attachment::{
    VolumeAttachment, VolumeAttachmentSpec, VolumeAttachmentStatus, VolumeError, VolumeSource,
};
pub use webhook::{Webhook, WebhookClientConfig, WebhookConfiguration, WebhookService};
pub use workload::{
    Container, ContainerState, ContainerStatus, DaemonSet, DaemonSetStatus, Deployment, EnvVar, OUT_OF_MEMORY, Pod,
    PodSpec, PodStatus, PodTemplate, Terminated, Toleration, UpdateStrategy, Waiting, Workload,
};

use disclosed::{masked_by_line, masked_values, message, message_read};
use serde::{Deserialize, Deserializer};

/// `null` and absent are the same: empty.
pub(crate) fn nullable<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}
