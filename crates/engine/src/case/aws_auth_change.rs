//! A change of aws-auth after the node needed its mapping. The authenticator judged the node's tokens by the text of
//! that time, which no object shows any more. The operator keeps it.
//!
//! The present text decides what happens now, because a rejected kubelet never stops trying. A role that the change
//! mapped joins within minutes. Until then neither the present text nor a Ready Node of the same role excludes
//! anything: a Node that lost its mapping stays Ready for minutes, too. If the present text rejects the role, it
//! rejects the kubelet now, but it may not have done so at first.
//!
//! If nodewhy saw the earlier text, it knows whether the change concerns the role at all. Until a kubelet has met a
//! change that authorizes it, the earlier text is what rejected it.

use super::{Case, timestamp};
use crate::api::{Blame, Confidence, Evidence, Stage, Text};
use crate::case::finding::{Finding, Opinion};
use crate::cluster_state::AwsAuthFacts;
use crate::cluster_state::aws_auth_texts::{EarlierAwsAuth, Treatment};
use crate::objects::Written;
use chrono::{DateTime, TimeDelta, Utc};

/// By then a running kubelet has met the change: the API server keeps an answer about a token for at most two minutes,
/// and a kubelet tries at least every seven seconds, after a rejection with a new token.
/// Sources: kubernetes v1.36.3 pkg/kubeapiserver/options/authentication.go `WithWebHook`,
/// pkg/kubelet/kubelet_node_status.go `registerWithAPIServer`; client-go v0.36.3
/// plugin/pkg/client/auth/exec/exec.go `RoundTrip`.
const TAKES_EFFECT: TimeDelta = TimeDelta::minutes(5);

const OBJECT: &str = "ConfigMap/aws-auth";
const FIELD: &str = "metadata.managedFields";

/// The last change of aws-auth, made after the node needed its mapping.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AwsAuthChange<'w> {
    written: &'w Written,
    needed: DateTime<Utc>,
    /// What happened at that time.
    when: &'static str,
    /// The first text since then that treated the node's role differently, if nodewhy saw all of them.
    earlier: Option<EarlierAwsAuth<'w>>,
}

impl<'w> Case<'w> {
    /// `None` if nothing shows that aws-auth changed since the node needed its mapping, or if nodewhy saw that no
    /// change concerns the node's role.
    pub(crate) fn aws_auth_change(&self) -> Option<AwsAuthChange<'w>> {
        let written = self.cluster.aws_auth()?.written.as_ref()?;
        let (needed, when) = self.needed_aws_auth()?;
        // A node that does not exist yet is launched with the present text.
        if written.at <= needed || self.now < written.at {
            return None;
        }
        let texts = self.role_name().and_then(|role| self.cluster.aws_auth_since(needed, role));
        let earlier = match texts {
            Some(texts) => Some(texts.into_iter().find(|text| text.treatment != Treatment::Alike)?),
            None => None,
        };
        Some(AwsAuthChange { written, needed, when, earlier })
    }

    /// The earlier text of aws-auth with which the node was stuck, although the present one maps its role: the kubelet
    /// may not have met the change yet. With the time at which it has.
    pub(crate) fn rejected_by_earlier_aws_auth(&self) -> Option<(&'w AwsAuthFacts, DateTime<Utc>)> {
        let change = self.aws_auth_change()?;
        change.earlier?;
        // It has met every change that was made before.
        let met = change.needed.max(self.now.checked_sub_signed(TAKES_EFFECT)?);
        let text = self.cluster.aws_auth_since(met, self.role_name()?)?.first().copied()?;
        let settled = text.until.checked_add_signed(TAKES_EFFECT)?;
        // A node that was not stuck by then is about to join.
        let was_stuck = text.until - self.wait.since >= self.wait.patience;
        (was_stuck && text.treatment == Treatment::Rejected).then_some((text.facts?, settled))
    }

    /// The time from which on the node was not authorized, if aws-auth is the reason.
    fn needed_aws_auth(&self) -> Option<(DateTime<Utc>, &'static str)> {
        if let Some(node) = self.node {
            let silent = node.condition("Ready").filter(|ready| ready.reason == "NodeStatusUnknown")?;
            return Some((silent.last_transition_time?, "its kubelet fell silent"));
        }
        let claim = self.claim.filter(|_| self.stage() == Stage::Join)?;
        let launched = claim.true_since("Launched").or(claim.metadata.creation_timestamp)?;
        Some((launched, "this node was launched"))
    }

    /// A change that a running kubelet may not have met yet: look again then.
    pub(crate) fn aws_auth_settles(&self) -> Option<DateTime<Utc>> {
        let settled = self.aws_auth_change()?.written.at.checked_add_signed(TAKES_EFFECT)?;
        (self.now < settled).then_some(settled)
    }

    /// The answer of a rule whose cause the present aws-auth excludes.
    pub(crate) fn excluded_by_aws_auth(&self, auth: &AwsAuthFacts, because: impl Into<Text>) -> Opinion {
        if let Some(settled) = self.aws_auth_settles() {
            return Opinion::LookAgain(settled);
        }
        let because = because.into();
        let Some(change) = self.aws_auth_change() else { return Opinion::ruled_out(auth, because) };
        let changed = timestamp(change.written.at);
        Opinion::ruled_out(auth, format!("{because}, since {changed} at the latest: a running kubelet has tried since"))
    }

    /// A finding that blames aws-auth, no more certain than the change allows.
    pub(crate) fn within_known_aws_auth(&self, mut finding: Finding) -> Finding {
        if !finding.blame.as_deref().is_some_and(is_aws_auth) {
            return finding;
        }
        let Some(change) = self.aws_auth_change() else { return finding };
        if self.rejected_by_earlier_aws_auth().is_some() {
            return finding.with(change.evidence());
        }
        finding.confidence = finding.confidence.min(Confidence::Likely);
        let is_told = finding.evidence.iter().any(|e| e.object == OBJECT && e.field == FIELD);
        if is_told { finding } else { finding.with(change.evidence()) }
    }
}

impl AwsAuthChange<'_> {
    pub(crate) fn evidence(&self) -> Evidence {
        let Self { written, needed, when, earlier } = self;
        let before = match earlier.map(|earlier| earlier.treatment) {
            None | Some(Treatment::Alike) => "its earlier text is not visible",
            Some(Treatment::Rejected) => "its earlier text did not map the node role",
            Some(Treatment::Mapped) => "its earlier text mapped the node role",
            Some(Treatment::Otherwise) => "its earlier text did not map the node role either",
        };
        Evidence::new(
            OBJECT,
            FIELD,
            format!("{} by {}", timestamp(written.at), written.by),
            format!("changed after {when} ({}), and {before}", timestamp(*needed)),
        )
    }
}

fn is_aws_auth(blame: &Blame) -> bool {
    blame.kind == "ConfigMap" && blame.name == "aws-auth"
}
