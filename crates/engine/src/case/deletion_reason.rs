//! Why a machine is deleted by design. That is no fault, and the end of its diagnosis mentions it.

use crate::cluster_state::ClusterState;
use crate::objects::NodeClaim;
use chrono::{DateTime, TimeDelta, Utc};

/// The reason of a NodeClaim's deletion, where the objects tell one.
pub fn reason(cluster: &ClusterState, claim: &NodeClaim, deleted: DateTime<Utc>) -> Option<String> {
    if cluster.events("NodeClaim", claim.name()).any(|e| e.reason == "SpotInterrupted") {
        return Some("EC2 took its spot instance back".to_owned());
    }
    // core pkg/apis/v1/nodeclaim_status.go `ConditionTypeDisruptionReason` (v1.14.3), since v1.3.1; its reasons in
    // nodepool.go, Unhealthy since v1.15.0.
    if let Some(disrupted) = claim.condition("DisruptionReason").filter(|c| c.is_true()) {
        return Some(match disrupted.reason.as_str() {
            "Drifted" => "it had drifted from its NodePool or node class".to_owned(),
            "Empty" => "it was empty".to_owned(),
            "Underutilized" => "Karpenter consolidated it".to_owned(),
            "Unhealthy" => "Karpenter replaced it as unhealthy".to_owned(),
            other => format!("Karpenter disrupted it ({other})"),
        });
    }
    let expires =
        claim.metadata.creation_timestamp?.checked_add_signed(go_duration(claim.spec.expire_after.as_deref()?)?)?;
    (deleted >= expires).then(|| "it had reached its expireAfter".to_owned())
}

/// `720h`, `1h30m`: what `metav1.Duration` writes, in hours, minutes and seconds. `Never` is none.
pub(super) fn go_duration(text: &str) -> Option<TimeDelta> {
    let mut total = TimeDelta::zero();
    let mut number = String::new();
    for c in text.chars() {
        if c.is_ascii_digit() {
            number.push(c);
            continue;
        }
        let count: i64 = number.parse().ok()?;
        number.clear();
        let unit = match c {
            'h' => TimeDelta::try_hours(count),
            'm' => TimeDelta::try_minutes(count),
            's' => TimeDelta::try_seconds(count),
            _ => None,
        }?;
        total = total.checked_add(&unit)?;
    }
    (number.is_empty() && !text.is_empty()).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::go_duration;
    use chrono::TimeDelta;

    #[test]
    fn durations_are_read_as_go_writes_them() {
        assert_eq!(go_duration("720h"), Some(TimeDelta::hours(720)));
        assert_eq!(go_duration("1h30m0s"), Some(TimeDelta::minutes(90)));
        assert_eq!(go_duration("Never"), None);
        assert_eq!(go_duration("99999999999999999999h"), None);
        assert_eq!(go_duration("5"), None);
    }
}
