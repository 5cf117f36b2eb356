//! Why the API server gave no objects, in a sentence that helps.

use engine::triage::change::ReadFailure;
use readers::source_text;

/// What a failed request means to whoever wanted to read.
pub fn of(error: &kube::Error) -> ReadFailure {
    match error {
        // A group that nobody serves is answered in plain text, without a reason: only the code tells.
        kube::Error::Api(status) if status.code == 404 => ReadFailure::NotInstalled,
        kube::Error::Api(status) if status.code == 403 => ReadFailure::NotPermitted(said(&status.message)),
        kube::Error::Api(status) => ReadFailure::Unanswered(format!("{} {}", status.code, said(&status.message))),
        other => ReadFailure::Unanswered(said(&with_root(other))),
    }
}

/// What the API server says, or an admission webhook through it, as it may be written and logged.
pub fn said(message: &str) -> String {
    source_text::mask(message)
}

/// What could not be read, each reason once with all that it keeps from being read: without rights that is everything.
pub fn once_a_reason(failures: &[(impl AsRef<str>, ReadFailure)]) -> Vec<String> {
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    for (what, failure) in failures {
        let what = what.as_ref();
        let reason = match failure {
            // The words name the kind, which would make each another reason.
            // Source: k8s.io/apiserver v0.36.3 pkg/endpoints/handlers/responsewriters/errors.go `forbiddenMessage`.
            ReadFailure::NotPermitted(why) => {
                match why.split_once("User \"").and_then(|(_, rest)| rest.split_once('"')) {
                    Some((user, _)) => format!("not permitted to {user}; kubectl auth can-i --list shows what is"),
                    None => failure.to_string(),
                }
            }
            other => other.to_string(),
        };
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, kinds)) if kinds.contains(&what) => {}
            Some((_, kinds)) => kinds.push(what),
            None => reasons.push((reason, vec![what])),
        }
    }
    reasons.into_iter().map(|(reason, kinds)| format!("cannot read {}: {reason}", kinds.join(", "))).collect()
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
