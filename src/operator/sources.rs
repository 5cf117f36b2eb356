//! What the operator watches, by the names that metrics and /readyz use.

use engine::objects::input::{ApiSource, Input};
use engine::triage::change::Watched;

/// The sources that are watched from the start, as `Change::Source` names them.
pub fn sources() -> impl Iterator<Item = (Watched, String)> {
    let watched = |input: Input| {
        input.sources().iter().filter(|s| s.watched).map(move |s| (Watched::Input(input), source_name(s)))
    };
    Input::ALL.into_iter().flat_map(watched).chain([(Watched::Diagnoses, DIAGNOSES.to_owned())])
}

/// `nodes`, `events/NodeClaim`: the name of a source in metrics and in /readyz.
pub(super) fn source_name(source: &ApiSource) -> String {
    match (source.only, source.fields.and_then(|f| f.rsplit_once('='))) {
        (Some(name), _) => format!("{}/{name}", source.plural),
        (None, Some((_, kind))) => format!("{}/{kind}", source.plural),
        (None, None) => source.plural.to_owned(),
    }
}

/// The source of NodeDiagnoses, as others are named.
pub(super) const DIAGNOSES: &str = "nodediagnoses";
