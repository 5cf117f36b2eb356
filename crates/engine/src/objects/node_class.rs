//! karpenter.k8s.aws/v1 EC2NodeClass, and any other node class as far as it goes: conditions only.

use super::{Condition, Meta, Pairs, Requirement, conditions, masked_by_line, masked_values, nullable};
use crate::objects::intern::Interned;
use readers::userdata::Family;
use readers::userdata::image_name;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeClass {
    pub api_version: String,
    pub kind: String,
    pub metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    pub spec: NodeClassSpec,
    #[serde(deserialize_with = "nullable")]
    pub status: NodeClassStatus,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeClassSpec {
    pub ami_family: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub ami_selector_terms: Vec<AmiTerm>,
    #[serde(deserialize_with = "nullable")]
    pub subnet_selector_terms: Vec<SelectorTerm>,
    #[serde(deserialize_with = "nullable")]
    pub security_group_selector_terms: Vec<SelectorTerm>,
    pub role: Option<String>,
    pub instance_profile: Option<String>,
    #[serde(serialize_with = "masked_by_line")]
    pub user_data: Option<String>,
    /// The kubelet's settings, as written: Karpenter hands them on by name.
    #[serde(deserialize_with = "nullable", serialize_with = "masked_values")]
    pub kubelet: BTreeMap<String, serde_json::Value>,
    #[serde(deserialize_with = "nullable")]
    pub metadata_options: MetadataOptions,
    #[serde(deserialize_with = "nullable")]
    pub block_device_mappings: Vec<BlockDevice>,
    #[serde(deserialize_with = "nullable")]
    pub capacity_reservation_selector_terms: Vec<SelectorTerm>,
    /// The subnets from which EKS Auto Mode takes the addresses of pods.
    #[serde(deserialize_with = "nullable")]
    pub pod_subnet_selector_terms: Vec<SelectorTerm>,
    /// Whether instances get a public address. If unset, the setting of their subnet counts.
    #[serde(rename = "associatePublicIPAddress")]
    pub associate_public_ip_address: Option<bool>,
    /// How nodes of EKS Auto Mode reach what is outside of their subnet.
    pub advanced_networking: Option<Box<AdvancedNetworking>>,
    /// The certificates that nodes of EKS Auto Mode trust in addition to those of their image.
    #[serde(deserialize_with = "nullable")]
    pub certificate_bundles: Vec<CertificateBundle>,
    /// The data volume of EKS Auto Mode.
    pub ephemeral_storage: Option<Box<EphemeralStorage>>,
    /// `RAID0`: images and pods are on the instance's own disks, if it has any.
    pub instance_store_policy: Option<Box<str>>,
    /// The interfaces that every instance has, in place of those that pods ask for.
    #[serde(deserialize_with = "nullable")]
    pub network_interfaces: Vec<NetworkInterface>,
    /// The tags that every instance gets, in addition to Karpenter's own.
    #[serde(deserialize_with = "nullable")]
    pub tags: Pairs,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AmiTerm {
    pub alias: Option<String>,
    pub id: Option<String>,
    pub name: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub tags: BTreeMap<String, String>,
    pub ssm_parameter: Option<String>,
    /// An account's number, which people also write without quotes.
    pub owner: Option<serde_json::Value>,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkInterface {
    pub interface_type: Option<Box<str>>,
}

// Amazon EKS user guide, Create a Node Class for Amazon EKS, "Node Class Specification", as of 2026-11
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AdvancedNetworking {
    #[serde(rename = "associatePublicIPAddress")]
    pub associate_public_ip_address: Option<bool>,
    /// Its URL may hold a password.
    #[serde(serialize_with = "masked_by_line")]
    pub https_proxy: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub no_proxy: Vec<String>,
}

/// Its data is a certificate, which nodewhy does not judge.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct CertificateBundle {
    #[serde(deserialize_with = "nullable")]
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct EphemeralStorage {
    #[serde(rename = "kmsKeyID")]
    pub kms_key_id: Option<Box<str>>,
}

/// A subnet or security group selector term.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct SelectorTerm {
    pub id: Option<String>,
    pub name: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub tags: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MetadataOptions {
    pub http_put_response_hop_limit: Option<i64>,
    pub http_endpoint: Option<String>,
    pub http_tokens: Option<Box<str>>,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BlockDevice {
    pub device_name: Option<String>,
    pub ebs: Option<Ebs>,
    /// Whether images and pods are to live here, whatever the family's device.
    #[serde(deserialize_with = "nullable")]
    pub root_volume: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Ebs {
    /// A quantity, which may be written as a number.
    #[serde(deserialize_with = "quantity")]
    pub volume_size: Option<String>,
    pub volume_type: Option<String>,
    pub iops: Option<i64>,
    pub throughput: Option<i64>,
    pub encrypted: Option<bool>,
    #[serde(rename = "kmsKeyID")]
    pub kms_key_id: Option<String>,
    #[serde(rename = "snapshotID")]
    pub snapshot_id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeClassStatus {
    #[serde(deserialize_with = "nullable")]
    pub conditions: Vec<Condition>,
    #[serde(deserialize_with = "nullable")]
    pub amis: Vec<Ami>,
    #[serde(deserialize_with = "nullable")]
    pub subnets: Vec<Subnet>,
    #[serde(deserialize_with = "nullable")]
    pub security_groups: Vec<SecurityGroup>,
    pub instance_profile: Option<String>,
    /// Those that are active, where Karpenter looks for any.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub capacity_reservations: Vec<CapacityReservation>,
}

/// So many instances of one type in one zone.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CapacityReservation {
    #[serde(deserialize_with = "nullable")]
    pub id: String,
    #[serde(deserialize_with = "nullable")]
    pub instance_type: String,
    #[serde(deserialize_with = "nullable")]
    pub availability_zone: String,
    /// `default` or `capacity-block`. Source: karpenter-provider-aws v1.14.1 pkg/apis/v1/ec2nodeclass_status.go.
    #[serde(deserialize_with = "nullable")]
    pub reservation_type: String,
}

impl CapacityReservation {
    pub fn is_capacity_block(&self) -> bool {
        self.reservation_type == "capacity-block"
    }

    /// The value that the reservation fixes for this label of the node.
    /// Source: karpenter-provider-aws v1.14.1 pkg/providers/instancetype/offering/provider.go `createOfferings`.
    fn decides(&self, key: &str) -> Option<&str> {
        let value = match key {
            "node.kubernetes.io/instance-type" => Some(self.instance_type.as_str()),
            "karpenter.k8s.aws/instance-family" => self.instance_type.split('.').next(),
            "karpenter.k8s.aws/instance-size" => self.instance_type.split_once('.').map(|(_, size)| size),
            "topology.kubernetes.io/zone" => Some(self.availability_zone.as_str()),
            "karpenter.k8s.aws/capacity-reservation-id" => Some(self.id.as_str()),
            _ => None,
        };
        value.filter(|value| !value.is_empty())
    }

    /// The first of these requirements that it does not meet.
    pub fn unmet<'r>(&self, requirements: &'r [Requirement]) -> Option<&'r Requirement> {
        requirements.iter().find(|r| self.decides(&r.key).is_some_and(|value| !r.admits(value)))
    }
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Subnet {
    #[serde(deserialize_with = "nullable")]
    pub id: String,
    #[serde(deserialize_with = "nullable")]
    pub zone: String,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct SecurityGroup {
    #[serde(deserialize_with = "nullable")]
    pub id: String,
    #[serde(deserialize_with = "nullable")]
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Ami {
    #[serde(deserialize_with = "nullable")]
    pub id: String,
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    #[serde(deserialize_with = "nullable")]
    pub deprecated: bool,
    #[serde(deserialize_with = "nullable")]
    pub requirements: Vec<Requirement>,
}

/// So many kinds of node class are read beside those of the table. A cluster has one or two.
pub const OTHER_KINDS: usize = 8;

/// Whether a kind that a NodePool names is the node class of another provider: Auto Mode's, `AKSNodeClass`,
/// `KWOKNodeClass` and the like, each in a group of its own.
pub fn is_of_other_provider(group: &str, kind: &str) -> bool {
    match kind {
        "EC2NodeClass" => false,
        "NodeClass" => group == "eks.amazonaws.com",
        _ => kind.ends_with("NodeClass") && group.contains('.') && !matches!(group, "karpenter.sh" | "nodewhy.dev"),
    }
}

impl NodeClass {
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    pub fn condition(&self, type_: &str) -> Option<&Condition> {
        conditions(&self.status.conditions, type_)
    }

    /// The field that says whether instances get a public address, and what it says. Classes of EKS Auto Mode have it
    /// in another place.
    pub fn assigns_public_address(&self) -> Option<(&'static str, bool)> {
        let own = self.spec.associate_public_ip_address.map(|assigns| ("associatePublicIPAddress", assigns));
        let of_auto_mode = || {
            let assigns = self.spec.advanced_networking.as_ref()?.associate_public_ip_address?;
            Some(("advancedNetworking.associatePublicIPAddress", assigns))
        };
        own.or_else(of_auto_mode)
    }

    /// The proxy of a class of EKS Auto Mode.
    pub fn https_proxy(&self) -> Option<&str> {
        self.spec.advanced_networking.as_ref()?.https_proxy.as_deref().filter(|proxy| !proxy.is_empty())
    }

    /// The key with which EKS Auto Mode encrypts the data volume.
    pub fn storage_key(&self) -> Option<&str> {
        self.spec.ephemeral_storage.as_ref()?.kms_key_id.as_deref()
    }

    /// Whether both say the same of what Karpenter reckons its hash of, as far as that is read here.
    /// Source: karpenter-provider-aws v1.14.1 pkg/apis/v1/ec2nodeclass.go `EC2NodeClass.Hash`: all but the fields with
    /// `hash:"ignore"`.
    pub fn has_same_text(&self, other: &Self) -> bool {
        // Every field is named, so that a new one has to be thought of.
        let NodeClassSpec {
            ami_family: _,
            ami_selector_terms: _,
            subnet_selector_terms: _,
            security_group_selector_terms: _,
            capacity_reservation_selector_terms: _,
            role,
            instance_profile,
            user_data,
            kubelet,
            metadata_options,
            block_device_mappings,
            pod_subnet_selector_terms: _,
            associate_public_ip_address,
            advanced_networking,
            certificate_bundles,
            ephemeral_storage,
            instance_store_policy,
            network_interfaces,
            tags,
        } = &self.spec;
        let theirs = &other.spec;
        (role, instance_profile, user_data, kubelet)
            == (&theirs.role, &theirs.instance_profile, &theirs.user_data, &theirs.kubelet)
            && (metadata_options, block_device_mappings) == (&theirs.metadata_options, &theirs.block_device_mappings)
            && (instance_store_policy, network_interfaces, tags)
                == (&theirs.instance_store_policy, &theirs.network_interfaces, &theirs.tags)
            && *associate_public_ip_address == theirs.associate_public_ip_address
            && (advanced_networking, certificate_bundles, ephemeral_storage)
                == (&theirs.advanced_networking, &theirs.certificate_bundles, &theirs.ephemeral_storage)
            && self.family() == other.family()
    }

    /// How Karpenter writes this class's user data: `spec.amiFamily`, else the family of the alias.
    /// Source: karpenter-provider-aws v1.14.1 pkg/apis/v1/ec2nodeclass.go `AMIFamily`.
    pub fn family(&self) -> Option<Family> {
        match &self.spec.ami_family {
            Some(name) => Family::from_name(name),
            None => self.spec.ami_selector_terms.iter().find_map(|t| t.alias.as_deref()).and_then(Family::from_alias),
        }
    }

    /// The value of `spec.amiFamily` that the alias implies, if the field is unset: `windows2022` is `Windows2022`.
    pub fn family_by_alias(&self) -> Option<String> {
        let unsaid = self.spec.ami_family.is_none();
        let alias = self.spec.ami_selector_terms.iter().filter(|_| unsaid).find_map(|t| t.alias.as_deref())?;
        let family = Family::from_alias(alias)?;
        let version: String = alias.split('@').next()?.chars().filter(char::is_ascii_digit).collect();
        Some(if family == Family::Windows { format!("{family}{version}") } else { family.to_string() })
    }

    /// The family as the user wrote it, for sentences.
    pub fn family_name(&self) -> &str {
        self.spec
            .ami_family
            .as_deref()
            .or_else(|| self.spec.ami_selector_terms.iter().find_map(|t| t.alias.as_deref()))
            .unwrap_or("unknown")
    }

    /// The volume on which images and pods live, as Karpenter finds it among those that the class describes.
    /// Source: karpenter-provider-aws v1.14.1 pkg/providers/instancetype/types.go `ephemeralStorage`.
    pub fn data_volume(&self) -> Option<&BlockDevice> {
        let volumes = &self.spec.block_device_mappings;
        volumes.iter().find(|volume| volume.root_volume).or_else(|| match self.family()? {
            Family::Custom => volumes.last(),
            family => volumes.iter().find(|volume| volume.device_name.as_deref() == data_device(family)),
        })
    }

    /// The size of that volume in GiB, as Karpenter counts it for every instance type; `None` where the class does not
    /// tell.
    /// Source: karpenter-provider-aws v1.14.1 pkg/providers/amifamily/{resolver,windows}.go `DefaultEBS`,
    /// `DefaultBlockDeviceMappings`.
    pub fn ephemeral_storage(&self) -> Option<u64> {
        match self.data_volume() {
            Some(volume) => volume.gib(),
            None if self.family()? == Family::Windows => Some(50),
            None => Some(20),
        }
    }

    /// A volume that is described under the name which the device of images and pods has in other families, so that
    /// this one keeps the image's own size; and that device here.
    pub fn misnamed_volume(&self) -> Option<(usize, &BlockDevice, &'static str)> {
        let own = data_device(self.family()?)?;
        // Somebody's own image may have its root on any device.
        if self.data_volume().is_some() || !self.has_alias() {
            return None;
        }
        let mut volumes = self.spec.block_device_mappings.iter().enumerate();
        volumes.find_map(|(at, volume)| {
            let name = volume.device_name.as_deref()?;
            // Bottlerocket's system is on the first volume, which may well be described alone where it stays small.
            let is_system = own == BOTTLEROCKET_DATA && name == LINUX_ROOT && volume.gib()? <= BOTTLEROCKET_SYSTEM;
            (DATA_DEVICES.contains(&name) && !is_system).then_some((at, volume, own))
        })
    }

    /// Whether its images are EKS's own.
    pub fn has_alias(&self) -> bool {
        self.spec.ami_selector_terms.iter().any(|term| term.alias.is_some())
    }

    /// The architectures that its images run on; `None` where an image does not say, or there is none.
    pub fn architectures(&self) -> Option<BTreeSet<&str>> {
        let of =
            |ami: &'_ Ami| ami.requirements.iter().position(|r| r.key == "kubernetes.io/arch" && r.operator == "In");
        if self.status.amis.is_empty() || self.status.amis.iter().any(|ami| of(ami).is_none()) {
            return None;
        }
        let values =
            self.status.amis.iter().filter_map(|ami| ami.requirements.get(of(ami)?)).flat_map(|r| r.values.iter());
        Some(values.map(Interned::as_str).collect())
    }

    /// `spec.kubelet.maxPods`.
    pub fn max_pods(&self) -> Option<u64> {
        self.spec.kubelet.get("maxPods").and_then(serde_json::Value::as_u64)
    }

    /// The minor version of Kubernetes 1 that the resolved images carry in their names; `None` where they differ or
    /// tell none.
    pub fn kubernetes(&self) -> Option<u32> {
        let mut minors = self.status.amis.iter().map(|ami| image_name::kubernetes(&ami.name));
        let first = minors.next()??;
        minors.all(|minor| minor == Some(first)).then_some(first)
    }

    /// The machines' instance profile: the one that the class names, else the one that Karpenter made for its role.
    pub fn instance_profile(&self) -> Option<&str> {
        self.spec.instance_profile.as_deref().or(self.status.instance_profile.as_deref())
    }

    /// Whether Karpenter sets up the disks of an instance's own.
    pub fn sets_up_local_disks(&self) -> bool {
        self.spec.instance_store_policy.as_deref() == Some("RAID0")
    }

    pub fn is_ec2(&self) -> bool {
        self.kind == "EC2NodeClass"
    }

    /// Whether its machines are EC2 instances: only then its conditions and fields mean what they mean of AWS.
    pub fn is_of_aws(&self) -> bool {
        self.is_ec2() || self.is_auto_mode()
    }

    /// Whether it is EKS Auto Mode's: then Karpenter is EKS's, and calls AWS with the cluster's own role.
    pub fn is_auto_mode(&self) -> bool {
        self.api_version.starts_with("eks.amazonaws.com/")
    }

    /// A text about Karpenter's rights, as it is true of this class.
    pub fn with_its_role(&self, text: &str) -> String {
        if self.is_auto_mode() { text.replace("Karpenter's role", "the cluster's IAM role") } else { text.to_owned() }
    }
}

/// A quantity as text, however it is written.
// karpenter-provider-aws v1.14.1 pkg/apis/v1/ec2nodeclass.go BlockDevice: a resource.Quantity, which Go reads from both
fn quantity<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Quantity {
        Text(String),
        Number(serde_json::Number),
    }
    Ok(Option::deserialize(deserializer)?.map(|quantity| match quantity {
        Quantity::Text(text) => text,
        Quantity::Number(number) => number.to_string(),
    }))
}

const LINUX_ROOT: &str = "/dev/xvda";
const BOTTLEROCKET_DATA: &str = "/dev/xvdb";
/// Also that of Ubuntu's images.
const WINDOWS_ROOT: &str = "/dev/sda1";
const DATA_DEVICES: [&str; 3] = [LINUX_ROOT, BOTTLEROCKET_DATA, WINDOWS_ROOT];

/// GiB of Bottlerocket's first volume, as Karpenter makes it since 1.15. Before, it made it of 4 GiB, and a class had
/// to give it 6 for newer images.
// karpenter-provider-aws v1.14.1, v1.15.0 pkg/providers/amifamily/bottlerocket.go DefaultBlockDeviceMappings
const BOTTLEROCKET_SYSTEM: u64 = 6;

/// The device on which images and pods live.
// karpenter-provider-aws v1.14.1 pkg/providers/amifamily/{al2,al2023,bottlerocket,windows,custom}.go
// EphemeralBlockDevice
const fn data_device(family: Family) -> Option<&'static str> {
    match family {
        Family::Al2 | Family::Al2023 => Some(LINUX_ROOT),
        Family::Bottlerocket => Some(BOTTLEROCKET_DATA),
        Family::Windows => Some(WINDOWS_ROOT),
        Family::Custom => None,
    }
}

impl BlockDevice {
    /// Its size as Karpenter passes it to EC2: in GiB, rounded up.
    /// Source: karpenter-provider-aws v1.14.1 pkg/providers/launchtemplate/launchtemplate.go `volumeSize`.
    pub fn gib(&self) -> Option<u64> {
        let size = self.ebs.as_ref()?.volume_size.as_deref()?;
        let digits = size.find(|c: char| !c.is_ascii_digit()).unwrap_or(size.len());
        let (number, unit) = (size.get(..digits)?.parse::<u64>().ok()?, size.get(digits..)?);
        let bytes: u64 = match unit {
            "Gi" => 1 << 30,
            "Ti" => 1 << 40,
            "G" => 1_000_000_000,
            "T" => 1_000_000_000_000,
            // A number alone is one of bytes.
            "" => 1,
            _ => return None,
        };
        Some(number.checked_mul(bytes)?.div_ceil(1 << 30))
    }
}
