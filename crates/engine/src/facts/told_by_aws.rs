//! Facts that only AWS knows: evidence if AWS answered, otherwise the question and why there is no answer.

use crate::api::{Confidence, Evidence, NodeDiagnosisStatus, Text, Witness};
use crate::case::finding::Finding;
use crate::case::timestamp;
use crate::cluster_state::aws::AwsAnswer;
use chrono::{DateTime, Utc};

impl Evidence {
    /// AwsAnswer by AWS, `seen 2026-01-15 11:58:00Z`: it is asked later than the cluster.
    #[must_use]
    pub(crate) fn told_by_aws(mut self, at: Option<DateTime<Utc>>) -> Self {
        self.source = Witness::Aws;
        match at {
            Some(at) => self.figures(format!("seen {}", timestamp(at))),
            None => self,
        }
    }
}

/// Adds AWS's answer to the evidence. If no answer settles the question, the question stays and says why.
pub(crate) fn or_ask<T>(
    mut finding: Finding,
    told: AwsAnswer<'_, T>,
    question: impl Into<Text>,
    command: String,
    evidence: impl FnOnce(&T, Option<DateTime<Utc>>) -> Option<Evidence>,
) -> Finding {
    let question = question.into();
    match told {
        AwsAnswer::NotAsked => finding.ask_aws(question, command),
        AwsAnswer::Refused(refusal) => {
            finding.denied.extend(refusal.denied.then(|| refusal.action.clone()));
            finding.ask_aws(format!("{question} ({refusal}.)"), command)
        }
        AwsAnswer::Absent(_) => finding.ask_aws(
            format!("{question} (AWS has no such object in the region and account that nodewhy asked.)"),
            command,
        ),
        AwsAnswer::Found(fact, at) => match evidence(fact, at) {
            Some(evidence) => finding.with(evidence),
            None => finding.ask_aws(question, command),
        },
    }
}

/// Whether AWS could prove or correct a verdict: it is not Certain, or names a question that only AWS answers.
pub fn leaves_open(verdict: &NodeDiagnosisStatus) -> bool {
    verdict.confidence != Confidence::Certain || verdict.unknowns.iter().any(|unknown| unknown.source == Witness::Aws)
}

/// Whether AWS is asked about a machine: it could settle the verdict, or has told something that may have changed
/// since.
pub fn concerns(verdict: &NodeDiagnosisStatus) -> bool {
    leaves_open(verdict) || is_told(verdict)
}

/// Whether a verdict contains an answer of AWS.
pub fn is_told(verdict: &NodeDiagnosisStatus) -> bool {
    verdict.evidence.iter().any(|evidence| evidence.source == Witness::Aws)
}
