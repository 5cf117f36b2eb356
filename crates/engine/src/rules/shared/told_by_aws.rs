//! What only AWS knows: evidence where it was asked and answered, else the question, with why there is no answer.

use crate::api::{Confidence, Evidence, NodeDiagnosisStatus, Text, Witness};
use crate::case::finding::Finding;
use crate::case::{Case, timestamp};
use crate::cluster_state::aws::Told;
use crate::objects::AwsRefusal;
use crate::rules::shared::instance_state;
use crate::rules::shared::machine_image;
use crate::rules::shared::network_path;
use crate::rules::shared::node_role;
use chrono::{DateTime, Utc};

impl Evidence {
    /// Told by AWS, `seen 2026-01-15 11:58:00Z`: it is asked later than the cluster.
    #[must_use]
    pub(crate) fn told_by_aws(mut self, at: Option<DateTime<Utc>>) -> Self {
        self.source = Witness::Aws;
        match at {
            Some(at) => self.figures(format!("seen {}", timestamp(at))),
            None => self,
        }
    }
}

/// Adds what AWS told to the evidence. Where it told nothing that settles the question, the question stays, and says
/// why.
pub(crate) fn or_ask<T>(
    mut finding: Finding,
    told: Told<'_, T>,
    question: impl Into<Text>,
    command: String,
    evidence: impl FnOnce(&T, Option<DateTime<Utc>>) -> Option<Evidence>,
) -> Finding {
    let question = question.into();
    match told {
        Told::Nothing => finding.ask_aws(question, command),
        Told::Refused(refusal) => {
            finding.denied.extend(refusal.denied.then(|| refusal.action.clone()));
            finding.ask_aws(format!("{question} ({refusal}.)"), command)
        }
        Told::Absent(_) => finding.ask_aws(
            format!("{question} (AWS knows nothing of it, in the region and account that were asked.)"),
            command,
        ),
        Told::Is(fact, at) => match evidence(fact, at) {
            Some(evidence) => finding.with(evidence),
            None => finding.ask_aws(question, command),
        },
    }
}

/// Whether AWS could prove or mend a verdict: it is not Certain, or names itself a question that only AWS answers.
pub fn leaves_open(verdict: &NodeDiagnosisStatus) -> bool {
    verdict.confidence != Confidence::Certain || verdict.unknowns.iter().any(|unknown| unknown.source == Witness::Aws)
}

/// Whether AWS is asked about a machine: it could settle the verdict, or has told something that may have changed
/// since.
pub fn concerns(verdict: &NodeDiagnosisStatus) -> bool {
    leaves_open(verdict) || is_told(verdict)
}

/// Whether a verdict holds what AWS told.
pub fn is_told(verdict: &NodeDiagnosisStatus) -> bool {
    verdict.evidence.iter().any(|evidence| evidence.source == Witness::Aws)
}

/// The calls that IAM denied when AWS was asked about this machine; each once.
pub fn denials<'w>(case: &Case<'w>) -> Vec<&'w AwsRefusal> {
    let aws = case.cluster.aws();
    let (cluster, role) = (case.cluster_name().unwrap_or_default(), node_role::name(case).unwrap_or_default());
    let of_instance =
        case.instance_id().map(|id| [aws.instance(id).refusal(), aws.checks(id).refusal(), aws.console(id).refusal()]);
    let of_image = machine_image::of(case).map(|id| aws.image(id).refusal());
    let of_profile =
        case.class().and_then(|class| class.instance_profile()).map(|name| aws.instance_profile(name).refusal());
    let of_key = instance_state::key_in_question(case).map(|key| aws.key(key).refusal());
    let of_role = [aws.cluster(cluster).refusal(), aws.access_entry(cluster, role).refusal()];
    let network = network_path::questions(case);
    let of_network = [network.vpc, network.dhcp_options].into_iter().flatten().chain(network.groups);
    let of_network = of_network.flat_map(|about| aws.refusals_about(about));
    let all =
        of_instance.into_iter().flatten().chain(of_image).chain(of_profile).chain(of_key).chain(of_role).flatten();
    let all = all.chain(of_network);
    let mut denied: Vec<&AwsRefusal> = all.filter(|refusal| refusal.denied).collect();
    denied.sort_by_key(|refusal| &refusal.action);
    denied.dedup_by_key(|refusal| &refusal.action);
    denied
}
