//! A line as it is quoted: what was said, without what the logger and the SDK put around it.

use crate::wrapping::klog_level;
use readers::source_text::mask;

/// Characters of a line that are shown.
const SHOWN: usize = 400;

/// A message as it may be shown, without klog's header: masked first, so that no cut leaves half of a secret.
pub(crate) fn shown(message: &str) -> String {
    let header = message.split_once("] ").filter(|(header, _)| klog_level(message).is_some() && header.len() < 80);
    cut(&mask(&said(header.map_or(message, |(_, rest)| rest))))
}

/// What a line that tells of a denial names. A role's name may look like a secret, and stands in an ARN, which is none.
/// Source: IAM API reference, `CreateRole` (RoleName).
pub(crate) fn of_denial(what: &str, value: &str) -> String {
    let is_name =
        |name: &str| name.len() <= 64 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"+=,.@-_".contains(&b));
    if what == "role" && is_name(value) { value.to_owned() } else { named(value) }
}

/// What a line names, in the same way.
pub(crate) fn named(value: &str) -> String {
    cut(&mask(&said(value.trim())))
}

/// Errors are put together from the outside in: what counts stands at both ends.
fn cut(text: &str) -> String {
    let length = text.chars().count();
    if length <= SHOWN {
        return text.to_owned();
    }
    let begin: String = text.chars().take(SHOWN / 3).collect();
    let end: String = text.chars().skip(length - SHOWN * 2 / 3).collect();
    format!("{begin} … {end}")
}

/// What is no part of an error: whose reconciliation it was, the id of the request, and the denial once more for who
/// may decode it.
fn said(message: &str) -> String {
    let text = without_request(without_logger(message));
    match text.split_once(ENCODED) {
        Some((before, rest)) => {
            let after = rest.find([' ', ',', '"']).map_or("", |end| &rest[end..]);
            format!("{}{after}", before.trim_end())
        }
        None => text.to_owned(),
    }
}

/// Source: <https://docs.aws.amazon.com/STS/latest/APIReference/API_DecodeAuthorizationMessage.html>.
const ENCODED: &str = "Encoded authorization failure message: ";

/// Sources: controller-runtime v0.24 pkg/builder/controller.go (`LogConstructor`),
/// pkg/internal/controller/controller.go (`Reconciler error`, `reconcileID`).
fn without_logger(message: &str) -> &str {
    const KEYS: [&str; 9] = [
        "controller",
        "controllerGroup",
        "controllerKind",
        "namespace",
        "name",
        "reconcileID",
        // karpenter-provider-aws v1.4.0 pkg/errors/errors.go, beside the code and the operation.
        "aws-request-id",
        "aws-service-name",
        "aws-status-code",
    ];
    if !message.contains(" controller=") {
        return message;
    }
    let is_added = |word: &str| {
        let is_object = |key: &str, value: &str| {
            key.starts_with(|c: char| c.is_ascii_uppercase()) && value.starts_with("{\"name\":")
        };
        let is_whole = !word.ends_with([',', ')']);
        word.split_once('=')
            .filter(|_| is_whole)
            .is_some_and(|(key, value)| KEYS.contains(&key) || is_object(key, value))
    };
    let mut text = message;
    while let Some((rest, word)) = text.rsplit_once(' ')
        && is_added(word)
    {
        text = rest;
    }
    text.strip_prefix("Reconciler error error=").unwrap_or(text)
}

/// Source: aws-sdk-go v1.55 aws/awserr/types.go `requestError.Error`.
fn without_request(text: &str) -> &str {
    match text.rsplit_once("status code: ") {
        Some((before, end)) if end.contains(", request id: ") && !end.contains(": User") => before.trim_end(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_quoted_without_the_record_that_it_stands_in() {
        let tail = "Node={\"name\":\"ip-10-0-0-1\"} controller=node.termination controllerGroup= controllerKind=Node \
                    name=ip-10-0-0-1 namespace= reconcileID=13bc";
        let error = "terminating instance, UnauthorizedOperation: You are not authorized to perform this operation.";
        let line = format!("Reconciler error error={error}  status code: 403, request id: 9ff8 {tail}");
        assert_eq!(shown(&line), error);
        let encoded = format!("{error} Encoded authorization failure message: aBc-_9 in region");
        assert_eq!(shown(&encoded), format!("{error} in region"));
    }

    #[test]
    fn what_only_looks_like_a_record_stays() {
        for line in ["mount failed name=disk1", "Reconciler error error=x", "status code: 403"] {
            assert_eq!(shown(line), line);
        }
    }
}
