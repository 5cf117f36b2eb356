//! EC2: images, and the instance types that take them.

use super::ec2::{Items, StateReasonItem, answers, call, filter};
use super::questions::Call;
use super::transport::{CallFailure, Transport};
use chrono::{DateTime, Utc};
use engine::objects::{AmiTerm, Answer, Image, ImageVolume, InstanceType};
use readers::source_text;
use serde::Deserialize;

/// Deprecated and disabled ones too: only these flags show them.
pub async fn images(transport: &mut Transport, ids: &[&str]) -> Result<Vec<(String, Answer)>, CallFailure> {
    let mut parameters = filter("image-id", ids);
    parameters.extend([("IncludeDeprecated".to_owned(), "true"), ("IncludeDisabled".to_owned(), "true")]);
    let found: Images = call(transport, Call::DescribeImages, &parameters).await?;
    Ok(answers(
        ids,
        found.images_set.item.into_iter().map(|image| (image.image_id.clone(), Answer::Image(image.into()))).collect(),
    ))
}

/// A filter shows those that exist; asked by name, one that does not exist fails them all.
pub async fn instance_types(transport: &mut Transport, names: &[&str]) -> Result<Vec<(String, Answer)>, CallFailure> {
    let found: InstanceTypes = call(transport, Call::DescribeInstanceTypes, &filter("instance-type", names)).await?;
    let types = found.instance_type_set.item.into_iter();
    Ok(answers(names, types.map(|t| (t.instance_type.clone(), Answer::InstanceType(t.into()))).collect()))
}

/// The newest image that a selector term takes, were it available.
/// Source: karpenter-provider-aws v1.14.1 pkg/providers/amifamily/ami.go `DescribeImageQueries`, which adds
/// `state=available`.
pub async fn newest(transport: &mut Transport, term: &AmiTerm) -> Result<Option<(String, Image)>, CallFailure> {
    let mut parameters = vec![("IncludeDeprecated".to_owned(), "true")];
    match term.owner.as_ref().and_then(serde_json::Value::as_str) {
        Some(owner) => parameters.push(("Owner.1".to_owned(), owner)),
        // Anybody may call an image as ours.
        None if term.name.is_some() => {
            parameters.extend([("Owner.1".to_owned(), "self"), ("Owner.2".to_owned(), "amazon")]);
        }
        None => {}
    }
    let name = term.name.iter().map(|name| ("name".to_owned(), name.as_str()));
    let tags = term.tags.iter().map(|(key, value)| match value.as_str() {
        "*" => ("tag-key".to_owned(), key.as_str()),
        value => (format!("tag:{key}"), value),
    });
    let filters: Vec<(String, &str)> = name.chain(tags).collect();
    for (n, (name, value)) in filters.iter().enumerate() {
        parameters.push((format!("Filter.{}.Name", n + 1), name));
        parameters.push((format!("Filter.{}.Value.1", n + 1), value));
    }
    let found: Images = call(transport, Call::DescribeImages, &parameters).await?;
    let newest = found.images_set.item.into_iter().max_by(|a, b| a.creation_date.cmp(&b.creation_date));
    Ok(newest.map(|image| (image.image_id.clone(), image.into())))
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Images {
    images_set: Items<ImageItem>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ImageItem {
    image_id: String,
    image_state: String,
    name: String,
    creation_date: String,
    deprecation_time: String,
    state_reason: StateReasonItem,
    architecture: Option<String>,
    ena_support: Option<bool>,
    boot_mode: Option<String>,
    block_device_mapping: Items<MappingItem>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct MappingItem {
    device_name: String,
    ebs: Option<EbsItem>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct EbsItem {
    snapshot_id: Option<String>,
    volume_size: Option<u64>,
    encrypted: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct InstanceTypes {
    instance_type_set: Items<TypeItem>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TypeItem {
    instance_type: String,
    processor_info: Processor,
    network_info: NetworkInfo,
    supported_boot_modes: Items<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Processor {
    supported_architectures: Items<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NetworkInfo {
    ena_support: String,
}

impl From<TypeItem> for InstanceType {
    fn from(item: TypeItem) -> Self {
        Self {
            architectures: item.processor_info.supported_architectures.item,
            boot_modes: item.supported_boot_modes.item,
            ena: item.network_info.ena_support,
        }
    }
}

impl From<ImageItem> for Image {
    fn from(item: ImageItem) -> Self {
        let time = |text: &str| text.parse::<DateTime<Utc>>().ok();
        Self {
            state: item.image_state,
            state_reason: Some(source_text::mask(&item.state_reason.message)).filter(|reason| !reason.is_empty()),
            created: time(&item.creation_date),
            deprecated_at: time(&item.deprecation_time),
            name: item.name,
            architecture: item.architecture.filter(|text| !text.is_empty()),
            ena: item.ena_support,
            boot_mode: item.boot_mode.filter(|text| !text.is_empty()),
            volumes: item.block_device_mapping.item.into_iter().filter_map(volume).collect(),
        }
    }
}

fn volume(item: MappingItem) -> Option<ImageVolume> {
    let ebs = item.ebs?;
    Some(ImageVolume {
        device: item.device_name,
        snapshot: ebs.snapshot_id,
        gib: ebs.volume_size,
        encrypted: ebs.encrypted == Some(true),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ec2::read;
    use std::collections::BTreeMap;

    #[test]
    fn what_ec2_does_not_show_is_absent_and_what_is_no_answer_is_none() {
        let empty: Images = read(b"<DescribeImagesResponse><imagesSet/></DescribeImagesResponse>").unwrap();
        assert_eq!(empty.images_set.item.len(), 0);
        assert_eq!(answers(&["ami-1"], BTreeMap::new()), [("ami-1".to_owned(), Answer::Absent)]);
        for broken in [&b""[..], b"<html>", b"\xff\xfe", b"<DescribeImagesResponse/>", b"{}"] {
            assert!(matches!(read::<Images>(broken), Err(CallFailure::Unanswered(_))), "{broken:?}");
        }
    }
}
