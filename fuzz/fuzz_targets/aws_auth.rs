#![no_main]

use libfuzzer_sys::fuzz_target;
use nodewhy_fuzz::lies_in;
use readers::aws_auth;

/// A `ConfigMap` may be larger, but slow readers show here too.
const LIMIT: usize = 64 * 1024;

fuzz_target!(|text: &str| {
    if text.len() > LIMIT {
        return;
    }
    let auth = aws_auth::read(Some(text), Some(text), Some(text));
    auth.broken.iter().for_each(|broken| lies_in(broken.span, text));
    auth.defects.iter().for_each(|defect| lies_in(defect.span, text));
    for entry in auth.roles.iter().chain(&auth.users) {
        lies_in(entry.span, text);
        lies_in(entry.arn_span, text);
        entry.username_span.into_iter().chain(entry.groups_span).for_each(|span| lies_in(span, text));
    }
});
