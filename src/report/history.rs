//! What was written of machines that were stuck, the newest first.

use super::Error;
use chrono::{DateTime, Utc};
use engine::api::NodeDiagnosis;
use engine::case::{duration, timestamp};
use serde_json::{Value, json};

const HEAD: [&str; 8] = ["SINCE", "MACHINE", "NODEPOOL", "STAGE", "CAUSE", "CONFIDENCE", "OUTCOME", "WAITED"];

/// Those with a verdict, of this machine, NodePool or node class where one is named: what moved last stands first.
pub fn of(diagnoses: Vec<NodeDiagnosis>, name: Option<&str>) -> Vec<NodeDiagnosis> {
    let mut told: Vec<NodeDiagnosis> =
        diagnoses.into_iter().filter(|d| d.status.is_some() && name.is_none_or(|name| is_about(d, name))).collect();
    told.sort_by_cached_key(|d| {
        let times = d.status.as_ref().map(|status| status.ended_at.unwrap_or(status.first_observed_at));
        (std::cmp::Reverse(times), d.metadata.name.clone())
    });
    told
}

fn is_about(diagnosis: &NodeDiagnosis, name: &str) -> bool {
    let spec = &diagnosis.spec;
    let machines = [&spec.node_claim, &spec.node].into_iter().flatten().map(|named| &named.name);
    let groups = [&spec.node_pool, &spec.node_class].into_iter().flatten().map(|named| &named.name);
    std::iter::once(&spec.subject.name).chain(machines).chain(groups).any(|known| known == name)
}

/// One line each; in full also what was said of it, and how it ended.
pub fn text(diagnoses: &[NodeDiagnosis], in_full: bool, now: DateTime<Utc>) -> String {
    if diagnoses.is_empty() {
        return "No NodeDiagnosis is there: nothing was stuck, or the operator (nodewhy run) does not run here.\n"
            .into();
    }
    let mut rows = vec![HEAD.map(str::to_owned)];
    rows.extend(diagnoses.iter().filter_map(|d| row(d, now)));
    let mut widths = [0; HEAD.len()];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |row: &[String; HEAD.len()]| {
        let cells: Vec<String> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        cells.join("   ").trim_end().to_owned() + "\n"
    };
    let mut rows = rows.iter();
    let mut out: String = rows.next().map(line).unwrap_or_default();
    for (diagnosis, row) in diagnoses.iter().zip(rows) {
        out += &line(row);
        if let Some(status) = diagnosis.status.as_ref().filter(|_| in_full) {
            let said = ["    ", &status.summary, "\n"];
            out.extend(said);
            let ended = status.conditions.iter().find(|c| c.type_ == "Ended");
            out.extend(ended.into_iter().flat_map(|ended| ["    ", &ended.message, ".\n"]));
        }
    }
    out
}

fn row(diagnosis: &NodeDiagnosis, now: DateTime<Utc>) -> Option<[String; HEAD.len()]> {
    let status = diagnosis.status.as_ref()?;
    let subject = &diagnosis.spec.subject;
    let machine = match subject.kind.as_str() {
        "NodeClaim" | "Node" => subject.name.clone(),
        kind => format!("{kind}/{}", subject.name),
    };
    Some([
        timestamp(status.first_observed_at).to_string(),
        machine,
        diagnosis.spec.node_pool.as_ref().map_or_else(|| "<none>".to_owned(), |pool| pool.name.clone()),
        format!("{:?}", status.stage),
        status.cause.to_string(),
        format!("{:?}", status.confidence),
        status.outcome.map_or_else(|| "stuck".to_owned(), |outcome| format!("{outcome:?}")),
        duration(status.ended_at.unwrap_or(now) - status.first_observed_at),
    ])
}

/// A list as kubectl prints it.
fn list(diagnoses: &[NodeDiagnosis]) -> Value {
    json!({"apiVersion": "v1", "kind": "List", "items": diagnoses})
}

pub fn json(diagnoses: &[NodeDiagnosis]) -> Result<String, Error> {
    Ok(serde_json::to_string_pretty(&list(diagnoses))? + "\n")
}

pub fn yaml(diagnoses: &[NodeDiagnosis]) -> Result<String, Error> {
    serde_saphyr::to_string(&list(diagnoses)).map_err(|error| Error::Yaml(error.to_string()))
}
