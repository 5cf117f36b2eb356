//! Where an answer and the operator's NodeDiagnoses differ, and why.
//!
//! Both use the same rules. The operator has watched for longer and remembers. A command sees one moment, with the
//! rights and the thresholds of the person who runs it.

use super::survey::Survey;
use crate::api::{NodeDiagnosis, NodeDiagnosisStatus};
use crate::case::timestamp;
use crate::cluster_state::{ClusterState, Subject};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Describes each difference. `is_asked` says which NodeDiagnoses the answer is about.
pub fn differences(
    cluster: &ClusterState,
    answer: &Survey,
    written: &[NodeDiagnosis],
    is_asked: impl Fn(&NodeDiagnosis) -> bool,
) -> Vec<String> {
    // No operator has ever run here.
    if written.is_empty() {
        return Vec::new();
    }
    let theirs = by_name(written.iter().filter(|diagnosis| diagnosis.is_open()));
    let ours = by_name(answer.diagnoses.iter());
    let mut differences = Vec::new();
    for (name, (diagnosis, status)) in &theirs {
        match ours.get(name) {
            Some((_, ours)) => differences.extend(other_verdict(name, ours, diagnosis, status)),
            None if is_asked(diagnosis) => differences.extend(not_stuck(cluster, answer, name, diagnosis, status)),
            None => {}
        }
    }
    let unwritten = ours.iter().filter(|(name, _)| !theirs.contains_key(*name));
    differences.extend(unwritten.map(|(name, (_, status))| {
        format!(
            "{name} has the verdict {} in this answer, and the operator has no open NodeDiagnosis about it. The \
             operator writes one within seconds, if it runs and its thresholds are not longer than these.",
            verdict(status)
        )
    }));
    differences
}

fn by_name<'d>(
    diagnoses: impl Iterator<Item = &'d NodeDiagnosis>,
) -> BTreeMap<&'d str, (&'d NodeDiagnosis, &'d NodeDiagnosisStatus)> {
    diagnoses.filter_map(|d| Some((d.metadata.name.as_deref()?, (d, d.status.as_ref()?)))).collect()
}

fn verdict(status: &NodeDiagnosisStatus) -> String {
    format!("{} ({:?})", status.cause, status.confidence)
}

/// Both say that it is stuck.
fn other_verdict(
    name: &str,
    ours: &NodeDiagnosisStatus,
    diagnosis: &NodeDiagnosis,
    theirs: &NodeDiagnosisStatus,
) -> Option<String> {
    let is_same = (&ours.cause, ours.confidence) == (&theirs.cause, theirs.confidence);
    // It repeats the verdict of one of its machines, which has a difference of its own.
    if is_same || diagnosis.speaks_for_machines() {
        return None;
    }
    let why = match ours.confidence.cmp(&theirs.confidence) {
        Ordering::Less => format!(
            "The operator has watched since {}. It keeps what it saw then, such as the node class at launch.",
            timestamp(theirs.first_observed_at)
        ),
        Ordering::Greater => {
            "This answer may use more than the operator may read, such as the logs of pods.".to_owned()
        }
        Ordering::Equal => {
            "The operator keeps a verdict for two minutes after its cause is gone, and then writes the new one."
                .to_owned()
        }
    };
    Some(format!("NodeDiagnosis {name} says {}, and this answer says {}. {why}", verdict(theirs), verdict(ours)))
}

/// Only the operator says that it is stuck.
fn not_stuck(
    cluster: &ClusterState,
    answer: &Survey,
    name: &str,
    diagnosis: &NodeDiagnosis,
    theirs: &NodeDiagnosisStatus,
) -> Option<String> {
    if diagnosis.speaks_for_machines() {
        // The machines that it counts have differences of their own.
        let is_over = theirs.machines.as_ref().is_some_and(|machines| machines.stuck == 0);
        return is_over.then(|| {
            format!(
                "NodeDiagnosis {name} is open, and no machine of its NodePool is stuck. It ends when a machine of the \
                 NodePool becomes usable, or when none was stuck for 30 minutes."
            )
        });
    }
    let says = format!("NodeDiagnosis {name} says {}", verdict(theirs));
    if let Some(waiting) = answer.judged.waiting.iter().find(|waiting| waiting.name == name) {
        return Some(format!(
            "{says}, and in this answer it waits at {:?} and counts as stuck from {}. The operator keeps a verdict \
             until the machine is usable, and its thresholds may be shorter than these.",
            waiting.stage,
            timestamp(waiting.until)
        ));
    }
    let subject = &diagnosis.spec.subject;
    let here = Subject::of(subject).and_then(|subject| cluster.uid_of(&subject));
    Some(if here.is_some_and(|uid| subject.stands_for(uid)) {
        format!(
            "{says}, and in this answer it is not stuck. The operator ends the diagnosis within seconds, if it runs \
             and its thresholds are not shorter than these."
        )
    } else {
        format!(
            "{says}, and this answer does not know {} {}: it is gone, or you may not read it. The operator ends the \
             diagnosis within seconds after the object is gone, if it runs.",
            subject.kind, subject.name
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::judged::{JudgedBy, WaitingMachine};
    use crate::api::{Confidence, Stage};
    use crate::case::judging::Judging;
    use crate::case::stage::Thresholds;
    use crate::objects::input::{Input, Object};
    use serde_json::json;

    fn diagnosis(name: &str, cause: &str, confidence: &str) -> NodeDiagnosis {
        serde_json::from_value(json!({
            "apiVersion": "nodewhy.dev/v1alpha1", "kind": "NodeDiagnosis", "metadata": {"name": name},
            "spec": {"subject": {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": name, "uid": name}},
            "status": {
                "stage": "Join", "cause": cause, "confidence": confidence, "summary": "It cannot join.", "evidence": [],
                "firstObservedAt": "2026-01-15T11:00:00Z",
            },
        }))
        .unwrap()
    }

    /// An answer about a cluster with one healthy NodeClaim.
    fn answer(diagnoses: Vec<NodeDiagnosis>) -> (ClusterState, Survey) {
        let now = "2026-01-15T12:00:00Z".parse().unwrap();
        let mut cluster = ClusterState::default();
        let claim = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "healthy", "uid": "healthy"}});
        cluster.apply(Object::from_value(Input::NodeClaims, claim).unwrap(), now);
        let mut survey = Survey::of(Judging::new(&cluster, now, &Thresholds::default()), JudgedBy::Given);
        survey.diagnoses = diagnoses;
        survey.judged.waiting.clear();
        (cluster, survey)
    }

    fn of_pool(stuck: u32) -> NodeDiagnosis {
        let mut pool = diagnosis("nodepool-batch", "NoRouteOut", "Certain");
        pool.spec.subject.kind = "NodePool".to_owned();
        let machines =
            json!({"stuck": stuck, "example": "batch-a", "causes": [], "failedLaunches": 0, "failedLaunchSeconds": 0});
        pool.status.as_mut().unwrap().machines = serde_json::from_value(machines).unwrap();
        pool
    }

    #[test]
    fn each_difference_has_its_reason_and_what_is_the_same_has_none() {
        let ours = vec![
            diagnosis("same", "NoRouteOut", "Certain"),
            diagnosis("less", "Unknown", "Possible"),
            diagnosis("more", "NoRouteOut", "Certain"),
            diagnosis("other", "WrongCluster", "Certain"),
            diagnosis("unwritten", "NoRouteOut", "Certain"),
        ];
        let mut ended = diagnosis("ended", "NoRouteOut", "Certain");
        ended.status.as_mut().unwrap().outcome = Some(crate::api::Outcome::Recovered);
        let theirs = [
            diagnosis("same", "NoRouteOut", "Certain"),
            diagnosis("less", "KubeletRefusesLabels", "Certain"),
            diagnosis("more", "Unknown", "Possible"),
            diagnosis("other", "NoRouteOut", "Certain"),
            diagnosis("healthy", "NoRouteOut", "Certain"),
            diagnosis("gone", "NoRouteOut", "Certain"),
            diagnosis("waits", "NoRouteOut", "Certain"),
            ended,
            of_pool(0),
        ];
        let (cluster, mut answer) = answer(ours);
        let until = "2026-01-15T12:05:00Z".parse().unwrap();
        let waits = WaitingMachine {
            name: "waits".to_owned(),
            stage: Stage::Initialize,
            since: answer.judged.at,
            until,
            because: "it waits".into(),
        };
        answer.judged.waiting = vec![waits];
        let said = differences(&cluster, &answer, &theirs, |_| true);
        let of = |name: &str, reason: &str| {
            let found: Vec<_> = said.iter().filter(|said| said.split(' ').any(|word| word == name)).collect();
            assert!(found.len() == 1 && found[0].contains(reason), "{name}: {found:#?}");
        };
        of(
            "less",
            "says KubeletRefusesLabels (Certain), and this answer says Unknown (Possible). The operator has watched \
             since",
        );
        of("more", "the logs of pods");
        of("other", "two minutes after its cause is gone");
        of("unwritten", "no open NodeDiagnosis about it");
        of("healthy", "in this answer it is not stuck");
        of("gone", "does not know NodeClaim gone");
        of("waits", "waits at Initialize");
        of("nodepool-batch", "none was stuck for 30 minutes");
        assert_eq!(said.len(), 8, "{said:#?}");
    }

    #[test]
    fn without_an_operator_and_about_what_was_not_asked_nothing_is_said() {
        let (cluster, about_one) = answer(vec![diagnosis("unwritten", "NoRouteOut", "Certain")]);
        assert_eq!(differences(&cluster, &about_one, &[], |_| true), Vec::<String>::new());
        let theirs = [diagnosis("unwritten", "NoRouteOut", "Certain"), diagnosis("gone", "NoRouteOut", "Certain")];
        assert_eq!(differences(&cluster, &about_one, &theirs, |_| false), Vec::<String>::new());
        // Its machines are counted, and each has a verdict of its own.
        assert_eq!(differences(&cluster, &answer(Vec::new()).1, &[of_pool(3)], |_| true), Vec::<String>::new());
        assert!(Confidence::Possible < Confidence::Certain);
    }
}
