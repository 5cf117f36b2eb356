//! How diagnoses are shown: as text and as a page for people, as a table, as JSON and YAML for programs.

pub mod clusters;
mod columns;
mod grouping;
pub mod history;
mod html;
mod judged;
pub mod lint;
pub mod one_cluster;
mod snippet;
mod table;
mod text;
pub mod userdata;
mod visible;

pub use judged::counted_as;
pub use visible::visible;

use chrono::{DateTime, SecondsFormat, Utc};
use clap::ValueEnum;
use engine::api::NodeDiagnosisList;
use engine::cluster_state::ClusterState;
use engine::diagnose::survey::Survey;
use engine::lint::LintFinding;
use serde::Serialize;

/// An output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// For people: each cause once.
    #[default]
    Text,
    /// One line per node.
    Wide,
    /// A NodeDiagnosisList.
    Json,
    /// A NodeDiagnosisList as YAML.
    Yaml,
    /// One self-contained page for a browser.
    Html,
}

/// The data that the page shows besides the verdicts.
#[derive(Debug, Clone, Copy)]
pub struct Background<'c> {
    /// The state that the timelines come from.
    pub cluster: &'c ClusterState,
    /// One sentence for each reason why inputs could not be read.
    pub notes: &'c [String],
}

/// How to show it.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    pub format: Format,
    pub color: bool,
    /// The present, for relative times such as "in 6m".
    pub now: DateTime<Utc>,
    /// Characters that text is wrapped at.
    pub width: usize,
    /// Evidence, exclusions and questions too.
    pub details: bool,
}

/// Characters that text is wrapped at where nobody says how wide the terminal is.
pub const WIDTH: usize = 110;

/// The diagnoses in the given style, and what was judged, with a final line end.
pub fn render(survey: Survey, background: &Background, style: Style) -> Result<String, Error> {
    let list = |Survey { diagnoses, judged }| NodeDiagnosisList::new(diagnoses, judged);
    Ok(match style.format {
        Format::Text => text::render(&survey, style),
        Format::Wide => table::render(&survey, style.now),
        Format::Json => json(&list(survey))? + "\n",
        Format::Yaml => yaml(&list(survey))?,
        Format::Html => {
            html::render(&[html::Section { cluster: None, survey: &survey, background: *background }], &[], None)
        }
    })
}

/// The page for a browser that reloads it when `revision` changes. It shows the mistakes of the configuration too.
pub fn live_page(survey: &Survey, background: &Background, findings: &[&LintFinding], revision: u64) -> String {
    let live = html::Live { revision, findings };
    html::render(&[html::Section { cluster: None, survey, background: *background }], &[], Some(&live))
}

/// Renders one of several surveys: JSON on a line of its own, YAML as a document, text with an empty line after it.
pub fn render_one_of_many(survey: Survey, background: &Background, style: Style) -> Result<String, Error> {
    Ok(match style.format {
        Format::Text | Format::Wide | Format::Html => render(survey, background, style)? + "\n",
        Format::Json => {
            let list = NodeDiagnosisList::new(survey.diagnoses, survey.judged);
            visible::in_json(&serde_json::to_string(&list)?) + "\n"
        }
        Format::Yaml => "---\n".to_owned() + &render(survey, background, style)?,
    })
}

/// As JSON for people and programs, whose strings no terminal obeys.
fn json(value: &impl Serialize) -> serde_json::Result<String> {
    serde_json::to_string_pretty(value).map(|json| visible::in_json(&json))
}

/// As YAML for people and programs, in which no character hides others.
fn yaml(value: &impl Serialize) -> Result<String, Error> {
    let yaml = serde_saphyr::to_string(value).map_err(|error| Error::Yaml(error.to_string()))?;
    Ok(visible::in_yaml(&yaml))
}

/// Diagnoses that could not be written out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the diagnoses cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("the diagnoses cannot be written as YAML: {0}")]
    Yaml(String),
}

/// `2026-01-15T18:00:51Z`.
fn clock(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}
