//! TODO: what goes wrong, in one sentence.

use crate::rules::prelude::*;

rule! {
    cause: NewCause,
    summary: "TODO: what it is, in a few words",
    stages: [Join],
    reads: [],
    versions: "all",
}

fn check(_case: &Case) -> Option<Opinion> {
    // TODO: read the case and nothing else. `ruled_out` by an object that excludes this cause, `Found` with evidence
    // where it is this.
    None
}
