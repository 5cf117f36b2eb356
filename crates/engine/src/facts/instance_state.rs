//! The ended instance of a machine as EC2 describes it: the common part of the rules about that.

use crate::case::Case;
use crate::cluster_state::aws::AwsAnswer;
use crate::objects::Instance;
use chrono::{DateTime, TimeDelta, Utc};

/// How far the clocks of EC2 and the cluster may differ.
const SKEW: TimeDelta = TimeDelta::seconds(60);

/// An instance that ended while its machine was expected to join.
pub(crate) struct Ended<'w> {
    pub id: &'w str,
    pub instance: &'w Instance,
    /// EC2's reason; empty if it gives none.
    pub code: &'w str,
    pub seen: Option<DateTime<Utc>>,
}

/// `None` if it runs, if nodewhy did not ask, or if it ended because its NodeClaim was deleted.
pub(crate) fn ended<'w>(case: &Case<'w>) -> Option<Ended<'w>> {
    let id = case.instance_id()?;
    let (instance, at) = case.cluster.aws().instance(id).known()?;
    // aws-sdk-go-v2 service/ec2 types/enums.go InstanceStateName
    let has_ended = ["shutting-down", "terminated", "stopping", "stopped"].contains(&instance.state.as_str());
    if !has_ended || case.claim.is_some_and(|c| c.metadata.deletion_timestamp.is_some()) {
        return None;
    }
    let code = instance.reason.as_deref().unwrap_or_default();
    // A dump is older than the answer: what ended since is no cause of what was seen.
    let after = |time: Option<DateTime<Utc>>| time.is_some_and(|time| time > case.now + SKEW);
    let by_hand = code == "Client.UserInitiatedShutdown";
    if after(instance.since) || (instance.since.is_none() && by_hand && after(at)) {
        return None;
    }
    Some(Ended { id, instance, code, seen: at })
}

/// The keys of the machine's volumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encryption<'w> {
    /// The key that the node class names; empty for the account's own.
    Class(&'w str),
    /// The key of a snapshot in this image, which EC2 decrypts for a copy.
    Image(&'w str),
}

/// `None` if no volume is known to be encrypted.
pub(crate) fn encryption<'w>(case: &Case<'w>) -> Option<Encryption<'w>> {
    let of_image = || {
        let id = own_image(case)?;
        let (image, _) = case.cluster.aws().image(id).known()?;
        image.volumes.iter().any(|volume| volume.encrypted).then_some(Encryption::Image(id))
    };
    by_class(case).map(Encryption::Class).or_else(of_image)
}

/// The image of the instance, as EC2 says.
fn own_image<'w>(case: &Case<'w>) -> Option<&'w str> {
    case.cluster.aws().instance(case.instance_id()?).known()?.0.image.as_deref()
}

/// The image to ask about, if the instance ended like one whose volume cannot be decrypted, and the class encrypts no
/// volume.
pub(crate) fn image_in_question<'w>(case: &Case<'w>) -> Option<&'w str> {
    let is_suspect = ended(case)?.code == "Client.InternalError" && by_class(case).is_none();
    own_image(case).filter(|_| is_suspect)
}

fn by_class<'w>(case: &Case<'w>) -> Option<&'w str> {
    let ebs = case.class()?.spec.block_device_mappings.iter().filter_map(|b| b.ebs.as_ref());
    let key = ebs.clone().find_map(|e| e.kms_key_id.as_deref());
    (key.is_some() || ebs.clone().any(|e| e.encrypted == Some(true))).then_some(key.unwrap_or_default())
}

/// The key that the node class names, if the instance ended because of its volumes.
pub(crate) fn key_in_question<'w>(case: &Case<'w>) -> Option<&'w str> {
    let code = ended(case)?.code;
    let for_volumes = code.starts_with("Client.InvalidKMSKey") || code == "Client.InternalError";
    by_class(case).filter(|key| for_volumes && !key.is_empty())
}

/// The ARN of that key, if it works. Then the question is which roles may use it.
pub(crate) fn key_users_in_question<'w>(case: &Case<'w>) -> Option<&'w str> {
    let (key, _) = case.cluster.aws().key(key_in_question(case)?).known()?;
    key.arn.as_deref().filter(|_| key.state == "Enabled")
}

/// An instance that EC2 no longer knows.
pub(crate) struct Gone {
    pub seen: Option<DateTime<Utc>>,
}

/// EC2 knows no such instance, though it shows others of this cluster: it is gone for more than an hour.
pub(crate) fn gone(case: &Case) -> Option<Gone> {
    match case.cluster.aws().instance(case.instance_id()?) {
        AwsAnswer::Absent(at) if case.cluster.aws().sees_instances() => Some(Gone { seen: at }),
        _ => None,
    }
}
