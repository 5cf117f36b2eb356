//! A summary without what client-go and gRPC put around the errors that it quotes. Evidence keeps every word of them.

/// Source: client-go v0.36.3 tools/record/events_cache.go `EventAggregatorByReasonMessageFunc`.
const AGGREGATED: &str = "(combined from similar events): ";

/// What is before and after the code. Source: grpc-go v1.72.1 internal/status/status.go `Status.String`.
const CODE: [&str; 2] = ["rpc error: code = ", " desc = "];

/// A code says nothing that the description does not say. One without a description stays.
pub(crate) fn unwrapped(summary: &str) -> String {
    let mut rest = summary.replace(AGGREGATED, "");
    let mut kept = String::new();
    let [before, after] = CODE;
    while let Some(start) = rest.find(before) {
        let behind = rest.split_off(start);
        kept.push_str(&rest);
        let (code, description) = behind[before.len()..].split_once(after).unwrap_or_default();
        let is_code = !code.is_empty() && code.chars().all(char::is_alphanumeric);
        if is_code && description.starts_with(|c: char| c.is_alphanumeric() || c == '"') {
            rest = description.to_owned();
        } else {
            kept.push_str(before);
            rest = behind[before.len()..].to_owned();
        }
    }
    kept + &rest
}

#[cfg(test)]
mod tests {
    use super::unwrapped;

    #[test]
    fn an_error_is_quoted_without_what_is_wrapped_around_it() {
        let said = "pod a gets no network (Failed: (combined from similar events): Failed to create pod \
                    sandbox: rpc error: code = Unknown desc = add cmd: rpc error: code = Unavailable desc = refused).";
        let short = "pod a gets no network (Failed: Failed to create pod sandbox: add cmd: refused).";
        assert_eq!(unwrapped(said), short);
    }

    #[test]
    fn what_has_no_description_stays() {
        for said in [
            "It logs: rpc error: code = Unknown desc = ",
            "It logs: rpc error: code = DeadlineExceeded desc = …",
            "It logs: rpc error: code = Unkno…",
            "Node n1 is Ready.",
        ] {
            assert_eq!(unwrapped(said), said);
        }
    }
}
