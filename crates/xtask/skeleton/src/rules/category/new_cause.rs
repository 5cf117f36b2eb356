//! TODO: what goes wrong, in one sentence.

use crate::api::Stage;
use crate::case::Case;
use crate::case::finding::Opinion;
use crate::rules::Rule;

pub static RULE: Rule = Rule {
    cause: "NewCause",
    summary: "TODO: what it is, in a few words",
    stages: &[Stage::Join],
    reads: &[],
    lint: false,
    versions: "all",
    page: include_str!("../../../pages/NewCause.md"),
    check,
};

fn check(_case: &Case) -> Opinion {
    // TODO: read the case and nothing else. `ruled_out` by an object that excludes this cause, `Found` with evidence
    // where it is this.
    Opinion::Silent
}
