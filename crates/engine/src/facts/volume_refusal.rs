//! The parts of a node class's volume that EC2 refuses.

use crate::objects::{AmiTerm, BlockDevice, Ebs, NodeClass};
use readers::userdata::Family;

/// EC2's limits for a volume type.
// Amazon EBS user guide, "Amazon EBS volume types"; Amazon EC2 API Reference, EbsBlockDevice. Upper bounds are left
// out: they differ by instance type, and have risen.
struct Type {
    name: &'static str,
    least_gib: u64,
    least_iops: u64,
    /// `None` where iops cannot be set.
    iops_a_gib: Option<u64>,
    /// The minimum that every volume may have, however small.
    free_iops: u64,
    boots: bool,
}

const TYPES: &[Type] = &[
    Type { name: "gp3", least_gib: 1, least_iops: 3_000, iops_a_gib: Some(500), free_iops: 3_000, boots: true },
    Type { name: "io1", least_gib: 4, least_iops: 100, iops_a_gib: Some(50), free_iops: 100, boots: true },
    Type { name: "io2", least_gib: 4, least_iops: 100, iops_a_gib: Some(1_000), free_iops: 100, boots: true },
    Type { name: "gp2", least_gib: 1, least_iops: 0, iops_a_gib: None, free_iops: 0, boots: true },
    Type { name: "st1", least_gib: 125, least_iops: 0, iops_a_gib: None, free_iops: 0, boots: false },
    Type { name: "sc1", least_gib: 125, least_iops: 0, iops_a_gib: None, free_iops: 0, boots: false },
    Type { name: "standard", least_gib: 1, least_iops: 0, iops_a_gib: None, free_iops: 0, boots: true },
];

/// MiB/s of a gp3 volume: at least, and of four I/O operations a second.
const GP3_THROUGHPUT: u64 = 125;
const GP3_IOPS_A_MIB: u64 = 4;

/// The refused part of a volume.
pub(crate) struct VolumeRefusal {
    /// Below `ebs`.
    pub field: &'static str,
    pub what: String,
    pub fix: String,
    /// Whether nothing outside of the class can make up for it.
    pub sure: bool,
}

/// The first thing that EC2 refuses of it.
pub(crate) fn volume_refusal(class: &NodeClass, volume: &BlockDevice) -> Option<VolumeRefusal> {
    let ebs = volume.ebs.as_ref()?;
    let no = |field, what: String, fix: String| Some(VolumeRefusal { field, what, fix, sure: true });
    if ebs.kms_key_id.is_some() && ebs.encrypted != Some(true) {
        return Some(VolumeRefusal {
            field: "kmsKeyID",
            what: "a KMS key and without encrypted: true".into(),
            fix: "Set encrypted: true.".into(),
            // The account may encrypt all volumes.
            sure: ebs.encrypted == Some(false),
        });
    }
    let gib = volume.gib();
    if let Some((least, gib)) = snapshot(class, volume).zip(gib).filter(|(least, gib)| gib < least) {
        return no(
            "volumeSize",
            format!("{gib} GiB, less than the {least} GiB of the image's snapshot"),
            format!("Make it {least}Gi or more."),
        );
    }
    let type_ = TYPES.iter().find(|type_| ebs.volume_type.as_deref() == Some(type_.name))?;
    let name = type_.name;
    if let Some(gib) = gib.filter(|gib| *gib < type_.least_gib) {
        let least = type_.least_gib;
        return no("volumeSize", format!("{gib} GiB as {name}"), format!("Make it {least}Gi or more."));
    }
    if !type_.boots && boots(class, volume) {
        return no("volumeType", format!("{name}, from which no instance boots"), "Use gp3.".into());
    }
    let throughput = ebs.throughput.and_then(|set| u64::try_from(set).ok());
    if let Some(set) = throughput.filter(|_| name != "gp3") {
        return no("throughput", format!("throughput {set} as {name}"), "Remove throughput, or use gp3.".into());
    }
    let iops = ebs.iops.and_then(|set| u64::try_from(set).ok());
    let Some(a_gib) = type_.iops_a_gib else {
        let set = iops?;
        return no("iops", format!("iops {set} as {name}"), "Remove iops, or use gp3.".into());
    };
    if iops.is_none() && name != "gp3" {
        return no("volumeType", format!("{name} and without iops"), "Set iops.".into());
    }
    if let Some(set) = iops.filter(|set| *set < type_.least_iops) {
        let least = type_.least_iops;
        return no("iops", format!("iops {set} as {name}"), format!("Make it {least} or more."));
    }
    let most = gib.map(|gib| type_.free_iops.max(gib.saturating_mul(a_gib)));
    if let Some((set, most)) = iops.zip(most).filter(|(set, most)| set > most) {
        let gib = gib.unwrap_or_default();
        let fix = format!("Make it {most} or less, or the volume larger: {name} has at most {a_gib} a GiB.");
        return no("iops", format!("iops {set} for {gib} GiB as {name}"), fix);
    }
    let set = throughput?;
    let most = iops.unwrap_or(type_.free_iops) / GP3_IOPS_A_MIB;
    if set < GP3_THROUGHPUT {
        return no("throughput", format!("throughput {set}"), format!("Make it {GP3_THROUGHPUT} or more."));
    }
    let fix = format!("Make it {most} or less, or set iops to {}.", set.saturating_mul(GP3_IOPS_A_MIB));
    if set > most { no("throughput", format!("throughput {set} beside {}", shown_iops(ebs)), fix) } else { None }
}

fn shown_iops(ebs: &Ebs) -> String {
    ebs.iops.map_or_else(|| "the 3000 iops of every gp3 volume".to_owned(), |set| format!("iops {set}"))
}

/// Whether machines boot from it.
fn boots(class: &NodeClass, volume: &BlockDevice) -> bool {
    let root = match class.family() {
        Some(Family::Al2 | Family::Al2023 | Family::Bottlerocket) => "/dev/xvda",
        Some(Family::Windows) => "/dev/sda1",
        _ => return false,
    };
    is_of_eks(class) && volume.device_name.as_deref() == Some(root)
}

/// Whether all its images are those that AWS builds for EKS: by an alias, or by their name and their owner.
fn is_of_eks(class: &NodeClass) -> bool {
    let by_name = |term: &AmiTerm| {
        let is_amazons = term.owner.as_ref().is_some_and(|owner| owner == "amazon");
        is_amazons && term.name.as_deref().is_some_and(|name| name.starts_with("amazon-eks-node-"))
    };
    let terms = &class.spec.ami_selector_terms;
    class.has_alias() || (!terms.is_empty() && terms.iter().all(by_name))
}

/// GiB of the snapshot of EKS's own images that a volume is made of, where all images of the family have at least that.
// amazon-eks-ami templates/al2023/template.json ami_block_device_mappings and variables-default.json; Windows as
// Karpenter describes it, karpenter-provider-aws v1.14.1 pkg/providers/amifamily/windows.go DefaultBlockDeviceMappings
fn snapshot(class: &NodeClass, volume: &BlockDevice) -> Option<u64> {
    let own = volume.ebs.as_ref().is_some_and(|ebs| ebs.snapshot_id.is_some());
    let least = match class.family()? {
        Family::Al2023 => 20,
        Family::Windows => 50,
        _ => return None,
    };
    (!own && boots(class, volume)).then_some(least)
}
