//! How diagnoses are shown: as text for people, as a table, as JSON and YAML for programs.

pub mod lint;
mod snippet;
mod table;
mod text;
pub mod userdata;

use chrono::{DateTime, Utc};
use clap::ValueEnum;
use engine::api::{NodeDiagnosis, NodeDiagnosisList};

/// An output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// For people: each cause once, in full.
    #[default]
    Text,
    /// One line a machine.
    Wide,
    /// A NodeDiagnosisList.
    Json,
    /// The same as YAML.
    Yaml,
}

/// How to show it.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    pub format: Format,
    pub color: bool,
    /// The time against which "in 6m" is said.
    pub now: DateTime<Utc>,
}

/// The diagnoses in the given style, with a final line end.
pub fn render(diagnoses: Vec<NodeDiagnosis>, style: Style) -> Result<String, Error> {
    Ok(match style.format {
        Format::Text => text::render(&diagnoses, style.color, style.now),
        Format::Wide => table::render(&diagnoses, style.now),
        Format::Json => serde_json::to_string_pretty(&NodeDiagnosisList::new(diagnoses))? + "\n",
        Format::Yaml => serde_saphyr::to_string(&NodeDiagnosisList::new(diagnoses)).map_err(|e| Error::Yaml(e.to_string()))?,
    })
}

/// Diagnoses that could not be written out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the diagnoses cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("the diagnoses cannot be written as YAML: {0}")]
    Yaml(String),
}
