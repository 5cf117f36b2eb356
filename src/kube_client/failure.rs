//! Why the API server gave no objects, in a sentence that helps.

use engine::triage::change::ReadFailure;
use readers::source_text;

/// The meaning of a failed read request.
pub fn of(error: &kube::Error) -> ReadFailure {
    match error {
        // A group that is not served is answered in plain text, without a reason. Only the code shows it.
        kube::Error::Api(status) if status.code == 404 => ReadFailure::NotInstalled,
        kube::Error::Api(status) if status.code == 403 => ReadFailure::NotPermitted(said(&status.message)),
        kube::Error::Api(status) => ReadFailure::Unanswered(format!("{} {}", status.code, said(&status.message))),
        other => ReadFailure::Unanswered(said(&with_root(other))),
    }
}

/// The message of the API server or of an admission webhook, masked so that it may be stored and logged.
pub fn said(message: &str) -> String {
    source_text::mask(message)
}

/// Inputs that could not be read, grouped by reason. Without rights that is every input.
pub fn once_a_reason(failures: &[(impl AsRef<str>, ReadFailure)]) -> Vec<String> {
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    for (what, failure) in failures {
        let what = what.as_ref();
        let reason = match failure {
            // The message names the kind, which would make every reason different.
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

/// The error with its root cause: "client error (Connect)" alone does not help.
fn with_root(error: &dyn std::error::Error) -> String {
    let said = error.to_string();
    let root = std::iter::successors(error.source(), |error| error.source()).last().map(ToString::to_string);
    match root {
        Some(root) if !said.contains(&root) => format!("{said}: {root}"),
        _ => said,
    }
}
