//! Why the API server gave no objects, in a sentence that helps.

use engine::triage::change::ReadFailure;

/// What a failed request means to whoever wanted to read.
pub fn of(error: &kube::Error) -> ReadFailure {
    match error {
        // A group that nobody serves is answered in plain text, without a reason: only the code tells.
        kube::Error::Api(status) if status.code == 404 => ReadFailure::NotInstalled,
        kube::Error::Api(status) if status.code == 403 => ReadFailure::NotPermitted(status.message.clone()),
        kube::Error::Api(status) => ReadFailure::Unanswered(format!("{} {}", status.code, status.message)),
        other => ReadFailure::Unanswered(with_root(other)),
    }
}

/// What went wrong, and why in the end: "client error (Connect)" alone helps nobody.
fn with_root(error: &dyn std::error::Error) -> String {
    let said = error.to_string();
    let root = std::iter::successors(error.source(), |error| error.source()).last().map(ToString::to_string);
    match root {
        Some(root) if !said.contains(&root) => format!("{said}: {root}"),
        _ => said,
    }
}
