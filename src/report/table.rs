//! One line a machine, in columns like kubectl's.

use crate::report::one_cluster::{JudgedCluster, OneCluster};
use crate::report::visible::in_a_line;
use crate::report::{columns, judged};
use chrono::{DateTime, Utc};
use engine::api::NodeDiagnosis;
use engine::case::duration;
use engine::diagnose::survey::Survey;

const HEAD: [&str; 9] = ["NAME", "CAUSE", "STAGE", "CONFIDENCE", "NODEPOOL", "NODE", "TERMINATES", "BLAME", "SUMMARY"];

pub fn render(survey: &Survey, now: DateTime<Utc>) -> String {
    let rows: Vec<_> = survey.diagnoses.iter().filter_map(|diagnosis| row(diagnosis, now)).collect();
    table(&HEAD, &rows, &judged::sentences(survey))
}

/// The same with the cluster in the first column.
pub fn of_clusters(clusters: &[OneCluster]) -> String {
    let (mut rows, mut said) = (Vec::new(), Vec::new());
    for OneCluster { name, seen } in clusters {
        match seen {
            Ok(JudgedCluster { survey, .. }) => {
                let of_this = survey.diagnoses.iter().filter_map(|diagnosis| row(diagnosis, survey.judged.at));
                rows.extend(of_this.map(|row| [vec![name.clone()], row].concat()));
                said.extend(judged::sentences_of(Some(name), survey));
            }
            Err(why) => said.push(judged::unread(name, why)),
        }
    }
    table(&[&["CLUSTER"], &HEAD[..]].concat(), &rows, &said)
}

fn table(head: &[&str], rows: &[Vec<String>], said: &[String]) -> String {
    let said: String = said.iter().map(|sentence| in_a_line(sentence) + "\n").collect();
    if rows.is_empty() {
        return said;
    }
    columns::lines(head, rows.iter().map(Vec::as_slice)).concat() + "\n" + &said
}

fn row(diagnosis: &NodeDiagnosis, now: DateTime<Utc>) -> Option<Vec<String>> {
    let status = diagnosis.status.as_ref()?;
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "<none>".to_owned());
    let terminates = match (status.ended_at, status.terminates_at) {
        (Some(_), _) => status.outcome.map(|o| format!("{o:?}")),
        (None, Some(at)) if at > now => Some(format!("in {}", duration(at - now))),
        (None, Some(_)) => Some("overdue".to_owned()),
        (None, None) => None,
    };
    Some(vec![
        diagnosis.spec.subject.name.clone(),
        status.cause.to_string(),
        format!("{:?}", status.stage),
        format!("{:?}", status.confidence),
        or_none(diagnosis.spec.node_pool.as_ref().map(|p| p.name.clone())),
        or_none(diagnosis.spec.node.as_ref().map(|n| n.name.clone())),
        or_none(terminates),
        or_none(status.blame.as_ref().map(|b| b.object.clone())),
        status.summary.to_string(),
    ])
}
