//! Several clusters as one answer. The shape for programs is the same however many clusters were asked for.

use super::one_cluster::{JudgedCluster, OneCluster, use_context};
use super::visible::in_a_line;
use super::{Background, Error, Format, Style, html, judged, table, text};
use engine::api::NodeDiagnosisList;
use engine::diagnose::survey::Survey;
use serde::Serialize;
use std::fmt::Write;

/// The output of `-o json` and `-o yaml` for several clusters.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Lists {
    api_version: &'static str,
    kind: &'static str,
    items: Vec<Item>,
}

#[derive(Serialize)]
struct Item {
    cluster: String,
    #[serde(flatten)]
    read: Read,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Read {
    List(Box<NodeDiagnosisList>),
    Unread(String),
}

impl From<OneCluster> for Item {
    fn from(one: OneCluster) -> Self {
        let read = match one.seen {
            Ok(JudgedCluster { survey: Survey { diagnoses, judged }, .. }) => {
                Read::List(Box::new(NodeDiagnosisList::new(diagnoses, judged)))
            }
            Err(why) => Read::Unread(why),
        };
        Self { cluster: one.name, read }
    }
}

/// The verdicts of the clusters in the given style, in this order.
pub fn render(clusters: Vec<OneCluster>, style: Style) -> Result<String, Error> {
    let lists = |clusters: Vec<OneCluster>| Lists {
        api_version: "nodewhy.dev/v1alpha1",
        kind: "NodeDiagnosisLists",
        items: clusters.into_iter().map(Item::from).collect(),
    };
    Ok(match style.format {
        Format::Text => in_text(&clusters, style),
        Format::Wide => table::of_clusters(&clusters),
        Format::Json => super::json(&lists(clusters))? + "\n",
        Format::Yaml => super::yaml(&lists(clusters))?,
        Format::Html => page(&clusters),
    })
}

fn in_text(clusters: &[OneCluster], style: Style) -> String {
    let mut out = String::new();
    for OneCluster { name, seen } in clusters {
        out.push_str(&text::heading(&format!("Cluster {name}"), style));
        match seen {
            Ok(JudgedCluster { survey, .. }) => {
                if !survey.diagnoses.is_empty() {
                    let _ = writeln!(out, "  first run: {}\n", in_a_line(&use_context(name)));
                }
                out.push_str(&text::render(survey, Style { now: survey.judged.at, ..style }));
            }
            Err(why) => drop(writeln!(out, "{}", in_a_line(&judged::unread(name, why)))),
        }
        out.push('\n');
    }
    out + &in_a_line(&in_sum(clusters)) + "\n"
}

/// `Read 2 of 3 clusters: 4 are stuck, in prod-eu.`
fn in_sum(clusters: &[OneCluster]) -> String {
    let read = clusters.iter().filter_map(|one| Some((&*one.name, one.seen.as_ref().ok()?.survey.judged.stuck)));
    let stuck: usize = read.clone().map(|(_, stuck)| stuck).sum();
    let names: Vec<&str> = read.clone().filter(|(_, stuck)| *stuck > 0).map(|(name, _)| name).collect();
    let found = match stuck {
        0 => "nothing is stuck".to_owned(),
        1 => format!("1 is stuck, in {}", names.join(", ")),
        _ => format!("{stuck} are stuck, in {}", names.join(", ")),
    };
    format!("Read {} of {}: {found}.", read.count(), judged::counted_as(clusters.len(), "cluster"))
}

fn page(clusters: &[OneCluster]) -> String {
    let read = clusters.iter().filter_map(|one| Some((&*one.name, one.seen.as_ref().ok()?)));
    let parts: Vec<html::Section> = read
        .map(|(name, seen)| html::Section {
            cluster: Some(name),
            survey: &seen.survey,
            background: Background { cluster: &seen.state, notes: &seen.notes },
        })
        .collect();
    let unread = clusters.iter().filter_map(|one| Some(judged::unread(&one.name, one.seen.as_ref().err()?)));
    html::render(&parts, &unread.collect::<Vec<_>>(), None)
}
