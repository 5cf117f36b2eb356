//! A summary without what client-go, gRPC, the kubelet and the SDK of AWS put around the errors that it quotes.
//! Evidence keeps every word of them.

/// Source: client-go v0.36.3 tools/record/events_cache.go `EventAggregatorByReasonMessageFunc`.
const AGGREGATED: &str = "(combined from similar events): ";

/// What is before and after the code. Source: grpc-go v1.72.1 internal/status/status.go `Status.String`.
const CODE: [&str; 2] = ["rpc error: code = ", " desc = "];

/// A call of AWS's SDK that got no answer: it has no status and no id.
/// Source: aws-sdk-go-v2 v1.36.3 aws/transport/http/response_error.go `ResponseError.Error`.
const UNANSWERED: &str = "https response error StatusCode: 0, RequestID: , ";

/// What the kubelet says of its next attempt, behind the reason `CrashLoopBackOff` and before the container's name, as
/// `objects::quote::steady` writes it.
/// Source: kubernetes v1.36.3 pkg/kubelet/kuberuntime/kuberuntime_manager.go `doBackOff`.
const BACK_OFF: &str = ": back-off … restarting failed container=";

fn without_back_off(summary: &str) -> String {
    let mut parts = summary.split(BACK_OFF);
    let first = parts.next().unwrap_or_default().to_owned();
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
    parts.fold(first, |kept, part| kept + part.trim_start_matches(is_of_name))
}

/// A code says nothing that the description does not say. One without a description stays. Most summaries quote none
/// of this, and are not copied.
pub(crate) fn unwrapped(summary: String) -> String {
    if ![AGGREGATED, CODE[0], UNANSWERED, BACK_OFF].iter().any(|wrapping| summary.contains(wrapping)) {
        return summary;
    }
    let short = without_back_off(&summary).replace(AGGREGATED, "").replace(UNANSWERED, "");
    let mut rest = short.as_str();
    let mut kept = String::new();
    let [before, after] = CODE;
    while let Some((head, behind)) = rest.split_once(before) {
        kept.push_str(head);
        let (code, description) = behind.split_once(after).unwrap_or_default();
        let is_code = !code.is_empty() && code.chars().all(char::is_alphanumeric);
        if is_code && description.starts_with(|c: char| c.is_alphanumeric() || c == '"') {
            rest = description;
        } else {
            kept.push_str(before);
            rest = behind;
        }
    }
    kept + rest
}

#[cfg(test)]
mod tests {
    use super::unwrapped;

    #[test]
    fn an_error_is_quoted_without_what_is_wrapped_around_it() {
        let said = "pod a gets no network (Failed: (combined from similar events): Failed to create pod \
                    sandbox: rpc error: code = Unknown desc = add cmd: rpc error: code = Unavailable desc = refused).";
        let short = "pod a gets no network (Failed: Failed to create pod sandbox: add cmd: refused).";
        assert_eq!(unwrapped(said.to_owned()), short);
    }

    #[test]
    fn a_call_without_an_answer_has_no_status() {
        let said = "operation error EC2: DescribeInstances, https response error StatusCode: 0, RequestID: , canceled";
        assert_eq!(unwrapped(said.to_owned()), "operation error EC2: DescribeInstances, canceled");
        let answered = "operation error EC2: RunInstances, https response error StatusCode: 403, RequestID: 1, denied";
        assert_eq!(unwrapped(answered.to_owned()), answered);
    }

    #[test]
    fn a_pause_before_the_next_start_is_left_out() {
        let said = "pod a fails: container b: CrashLoopBackOff: back-off … restarting failed container=b-1. It logs x: \
                    back-off … restarting failed container=c: exit code 1";
        let short = "pod a fails: container b: CrashLoopBackOff. It logs x: exit code 1";
        assert_eq!(unwrapped(said.to_owned()), short);
    }

    #[test]
    fn what_has_no_description_stays() {
        for said in [
            "container a: CrashLoopBackOff: back-off … restarting failed container",
            "It logs: rpc error: code = Unknown desc = ",
            "It logs: rpc error: code = DeadlineExceeded desc = …",
            "It logs: rpc error: code = Unkno…",
            "Node n1 is Ready.",
        ] {
            assert_eq!(unwrapped(said.to_owned()), said);
        }
    }
}
