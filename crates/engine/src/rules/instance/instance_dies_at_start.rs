//! EC2 launches the instance and ends it again before it can boot.

use crate::case::pool_wait;
use crate::case::vanished::vanished;
use crate::objects::{Event, NodePool};
use crate::rules::prelude::*;
use std::collections::BTreeSet;

rule! {
    cause: InstanceDiesAtStart,
    summary: "EC2 ends instance after instance within minutes of its launch, mostly because it cannot decrypt a volume",
    stages: [Launch],
    reads: [NodeClaims, NodePools, NodeClasses, Events, Logs],
    versions: "all, if Karpenter has an interruption queue; up to 1.0 if its log is available",
}

fn check(case: &Case) -> Option<Opinion> {
    let (Some(node_pool), None) = (case.pool(), case.claim) else { return None };
    let pool = node_pool.name();
    let (count, told) = told_by_queue(case, pool).or_else(|| told_by_log(case, node_pool))?;
    let encrypted = case.class().and_then(|class| {
        let ebs = class.spec.block_device_mappings.iter().filter_map(|b| b.ebs.as_ref());
        let key = ebs.clone().find_map(|e| e.kms_key_id.as_deref());
        (key.is_some() || ebs.clone().any(|e| e.encrypted == Some(true))).then_some((class, key))
    });
    let suspicion = match encrypted {
        Some((class, Some(key))) => {
            format!(
                ". {} {} encrypts their volumes with {key}, which EC2 may not be allowed to use",
                class.kind,
                class.name()
            )
        }
        Some((class, None)) => {
            format!(
                ". {} {} encrypts their volumes, and EC2 may not be allowed to use the key",
                class.kind,
                class.name()
            )
        }
        // If the account's default says so, EC2 also encrypts volumes that no mapping mentions.
        None => ". Most often EC2 cannot decrypt their volumes".to_owned(),
    };
    let class = case.class_object().unwrap_or_else(|| "the node class".to_owned());
    let amis = case.class().into_iter().flat_map(|class| &class.status.amis).map(|ami| ami.id.as_str());
    let images = amis.collect::<Vec<_>>().join(" ");
    let images = if images.is_empty() { "AMI".to_owned() } else { images };
    let mut finding = Finding::new(
        // It is certain that they end, but not why.
        Confidence::Likely,
        format!(
            "EC2 ended one instance of NodePool {pool} after the other within minutes of its launch, before it could \
             join{suspicion}."
        ),
        told.figures(format!("{count} instances, the first at {}", case.since())),
    )
    .fix(
        "Read EC2's state reason while EC2 keeps it (about an hour). Client.InternalError and \
         Client.InvalidKMSKey.InvalidState: fix the key of a volume (the class's, the image's snapshot's or the \
         account's default). Client.VolumeLimitExceeded: raise the volume quota. Client.InvalidSnapshot.NotFound: fix \
         the image's snapshot. Server.InternalError: a fault of EC2 itself. Client.InstanceInitiatedShutdown: check \
         what the instance runs.",
    )
    .inspect(
        "See why the instances ended",
        format!(
            "aws ec2 describe-instances --filters Name=tag:karpenter.sh/nodepool,Values={pool} \
             Name=instance-state-name,Values=terminated --query \
             'Reservations[].Instances[].[InstanceId,StateReason.Code,StateReason.Message]' --output text"
        ),
    )
    .inspect(
        "See the key that the account encrypts volumes with by default, if it does",
        "aws ec2 get-ebs-default-kms-key-id".to_owned(),
    )
    .inspect(
        format!("See whether the snapshots of the images of {class} are encrypted"),
        format!(
            "aws ec2 describe-images --image-ids {images} --query \
             'Images[].[ImageId,RootDeviceType,BlockDeviceMappings[].Ebs.[Encrypted,SnapshotId]]'"
        ),
    )
    .ask_aws(
        "Why did EC2 end them? Kubernetes does not learn the reason.",
        format!(
            "aws ec2 describe-instances --filters Name=tag:karpenter.sh/nodepool,Values={pool} --query \
             'Reservations[].Instances[].StateReason'"
        ),
    );
    finding.recurrences = u32::try_from(count.saturating_sub(1)).unwrap_or(u32::MAX);
    match encrypted {
        Some((class, _)) => finding
            .with(Evidence::new(
                format!("{}/{}", class.kind, class.name()),
                "spec.blockDeviceMappings",
                "encrypted",
                "an instance ends at once if EC2 cannot decrypt its volume",
            ))
            .blaming(Blame::class(class).field("spec.blockDeviceMappings"))
            .into(),
        None => finding.into(),
    }
}

/// The number of instances that Karpenter's interruption queue reported, and its message about the newest.
fn told_by_queue(case: &Case, pool: &str) -> Option<(usize, Evidence)> {
    let events: Vec<&Event> = case.cluster.claim_events_of_pool(pool).collect();
    let died = pool_wait::died_at_start(&events, case.cluster.claims_of_pool(pool));
    let claims: BTreeSet<&str> = died.iter().map(|e| e.involved_object.name.as_str()).collect();
    let newest = died.iter().max_by_key(|e| e.last_seen())?;
    let told = Evidence::new(
        format!("Event NodeClaim/{}", newest.involved_object.name),
        "message",
        newest.said(),
        "the interruption queue told Karpenter that the instance ends, and the NodeClaim was not being deleted",
    );
    Some((claims.len(), told))
}

/// The number of instances without a queue, if Karpenter's log is available.
fn told_by_log(case: &Case, pool: &NodePool) -> Option<(usize, Evidence)> {
    let vanished = vanished(case.cluster, pool, case.now);
    let line = vanished.last()?.line;
    let told = Evidence::new(
        line.file.clone(),
        format!("line {}", line.line),
        line.text.clone(),
        "Karpenter launched the instance minutes before. It waits 15 minutes for a registration, unless the instance \
         is gone",
    );
    Some((vanished.len(), told))
}
